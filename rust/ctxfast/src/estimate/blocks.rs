//! The pass over text that is ASCII, or most of it, in blocks.
//!
//! Character by character the pass would be a chain: a run's length follows from the one before, the slot from that. In
//! a block everything but the look-ups is computed for all characters side by side, in plain loops over bytes of which
//! the compiler makes vector code. The length of a run is never counted: the table asks for 2, 4 and 7, so it is enough
//! to know whether the run went on at the last 2, 4 and 7 characters, which are conjunctions of neighbours' bytes.
//!
//! Arrows, boxes, ticks and accents stand in most texts of agents, but far apart. To their neighbours in a block they
//! are one more byte; what they cost themselves is looked up apart.

#![expect(
    clippy::inline_always,
    reason = "a kernel of `dispatch.rs`: what is not inlined is not compiled for AVX2"
)]

use super::pass::{Seam, is_ascii};
use super::roles::{Role, Roles, Runs};
use super::tables::{ASCII_SLOTS, SLOTS};

/// Characters of a block. Longer ones are as fast; shorter ones clear less memory for a short text.
pub(super) const BLOCK: usize = 256;
/// What is computed together; the arrays of a block are used up to a multiple of it.
pub(super) const STRIDE: usize = 32;
/// As far as runs are looked back, and more.
const BACK: usize = 8;

/// The arrays of a block, each used again by the next block.
pub(super) struct Block {
    /// the characters as they are
    bytes: [u8; BLOCK],
    /// the character before a place as it stands in the table
    codes: [u8; BLOCK + 1],
    /// what the character before a place makes runs with, see [`Runs`]
    runs: [u8; BLOCK + 2],
    /// whether a run goes on at the character `BACK` before a place: all bits or none
    goes_on: [u8; BACK + BLOCK],
    /// the slots, see `tables.rs`, lowest byte first
    slots: [[u8; 4]; BLOCK],
}

impl Block {
    #[inline(always)]
    pub(super) fn new() -> Block {
        Block {
            bytes: [0; BLOCK],
            codes: [0; BLOCK + 1],
            runs: [0; BLOCK + 2],
            goes_on: [0; BACK + BLOCK],
            slots: [[0; 4]; BLOCK],
        }
    }

    /// The sum of the slots of characters, as many as a block has or fewer, and the sum of their costs alone.
    /// `strangers` says whether any of them is not ASCII.
    #[inline(always)]
    pub(super) fn sum<T: Copy + Into<u32>>(
        &mut self,
        seam: &mut Seam,
        units: &[T],
        strangers: bool,
        table: &[u16; SLOTS],
    ) -> (u32, u32) {
        let strides = units.len().div_ceil(STRIDE);
        for (byte, &unit) in self.bytes.iter_mut().zip(units) {
            [*byte, ..] = unit.into().to_le_bytes();
        }
        self.classify(strides);
        self.put(0, Roles::ALL.of(seam.before));
        if let Some(last) = self.runs.get_mut(units.len() + 1) {
            *last = Roles::ALL.of(seam.next).runs.is;
        }
        let mut costs = if strangers { self.strangers(seam, units, table) } else { 0 };
        let mut all = costs;
        if let Some(flags) = self.goes_on.first_chunk_mut() {
            *flags = u64::MAX.checked_shl(64 - 8 * seam.run).unwrap_or(0).to_le_bytes();
        }
        self.follow_runs(strides);
        if let Some(&flags) = self.goes_on.get(units.len()..).and_then(|flags| flags.first_chunk()) {
            seam.run = (u64::from_le_bytes(flags).leading_ones() / 8).min(7);
        }
        let Some(table) = table.first_chunk::<ASCII_SLOTS>() else { return (0, 0) };
        for &slot in self.slots.iter().take(units.len()) {
            // the remainder is the slot itself, but tells the compiler that it is there
            let found =
                u32::from(table.get(u32::from_le_bytes(slot) as usize % ASCII_SLOTS).copied().unwrap_or(0));
            all += found;
            costs += found & 0xFF;
        }
        (all, costs)
    }

    /// Puts in what is not ASCII. It costs nothing in the table's part for ASCII; what it costs in another is the
    /// result.
    #[inline(always)]
    fn strangers<T: Copy + Into<u32>>(&mut self, seam: &Seam, units: &[T], table: &[u16; SLOTS]) -> u32 {
        let mut costs = 0;
        for (number, stride) in units.chunks(STRIDE).enumerate() {
            if is_ascii(stride) {
                continue;
            }
            // marked in bits, so that there is no branch for each character
            let mut marks = 0_u32;
            for (place, &unit) in stride.iter().enumerate() {
                marks |= u32::from(unit.into() >= 128) << place;
            }
            while marks != 0 {
                let place = number * STRIDE + marks.trailing_zeros() as usize;
                marks &= marks - 1; // the lowest
                let at = |place: usize| units.get(place).map(|&unit| unit.into());
                let point = at(place).unwrap_or(0);
                let before = at(place.wrapping_sub(1)).unwrap_or(seam.before);
                let next = at(place + 1).unwrap_or(seam.next);
                let role = Roles::ALL.of(point);
                self.put(place + 1, role);
                let slot = role.slot(point, Roles::ALL.of(before).left(before), Roles::ALL.of(next).right);
                costs += u32::from(table.get(slot as usize).copied().unwrap_or(0) & 0xFF);
            }
        }
        costs
    }

    /// Puts a character before a place.
    #[inline(always)]
    fn put(&mut self, place: usize, role: &Role) {
        if let (Some(code), Some(runs)) = (self.codes.get_mut(place), self.runs.get_mut(place)) {
            [_, *code, ..] = role.left.to_le_bytes();
            *runs = role.runs.is;
        }
    }

    /// What each character is.
    #[inline(always)]
    fn classify(&mut self, strides: usize) {
        let bytes = from(&self.bytes, 0).iter().take(strides);
        let out = from_mut(&mut self.codes, 1).iter_mut().zip(from_mut(&mut self.runs, 1));
        for (bytes, (codes, runs)) in bytes.zip(out) {
            for (&byte, (code, run)) in bytes.iter().zip(codes.iter_mut().zip(runs)) {
                let digit = within(byte, b'0', b'9');
                *code = byte & !(digit & 0xF);
                *run = (Runs::NEXT_HIGH | Runs::NEXT_LOW)
                    ^ (digit & Runs::DIGIT)
                    ^ (within(byte, b'a', b'z') & (Runs::LOWER | Runs::NEXT_HIGH | Runs::NEXT_LOW))
                    ^ (within(byte, b'A', b'Z') & (Runs::UPPER | Runs::NEXT_HIGH))
                    ^ (within(byte, b' ', b' ') & (Runs::SPACE | Runs::NEXT_LOW));
            }
        }
    }

    /// Where runs go on, and with that the slots.
    #[inline(always)]
    fn follow_runs(&mut self, strides: usize) {
        let pairs = from(&self.runs, 0).iter().zip(from(&self.runs, 1));
        for (goes_on, (before, here)) in from_mut(&mut self.goes_on, BACK).iter_mut().zip(pairs).take(strides)
        {
            for (goes_on, (&before, &here)) in goes_on.iter_mut().zip(before.iter().zip(here)) {
                *goes_on = if Runs::go_on(before) & here == 0 { 0 } else { 0xFF };
            }
        }
        // `a` to `g`: whether it went on here, at the character before, and so on
        let back = |by| from(&self.goes_on, BACK - by).iter();
        let near = back(0).zip(back(1)).zip(back(2).zip(back(3)));
        let far = back(4).zip(back(5)).zip(back(6).zip(from(&self.runs, 2)));
        let codes = from(&self.codes, 0).iter().zip(from(&self.codes, 1));
        let out = self.slots.as_chunks_mut::<STRIDE>().0.iter_mut().zip(codes);
        for (((slots, (before, here)), ((a, b), (c, d))), ((e, f), (g, next))) in
            out.zip(near).zip(far).take(strides)
        {
            let out = slots.iter_mut().zip(before.iter().zip(here));
            let near = a.iter().zip(b).zip(c.iter().zip(d));
            let far = e.iter().zip(f).zip(g.iter().zip(next));
            for (((slot, (before, here)), ((a, b), (c, d))), ((e, f), (g, next))) in out.zip(near).zip(far) {
                let two = a & b;
                let four = two & c & d;
                let seven = four & e & f & g;
                // all bits are -1
                let level = 0_u8.wrapping_sub(two).wrapping_sub(four).wrapping_sub(seven);
                *slot = [here | next & Runs::NEXT_LOW, before | (next & Runs::NEXT_HIGH) << 1, level, 0];
            }
        }
    }
}

/// The strides of an array from a place on.
#[inline(always)]
fn from<T>(items: &[T], start: usize) -> &[[T; STRIDE]] {
    items.get(start..).unwrap_or_default().as_chunks().0
}

#[inline(always)]
fn from_mut<T>(items: &mut [T], start: usize) -> &mut [[T; STRIDE]] {
    items.get_mut(start..).unwrap_or_default().as_chunks_mut().0
}

/// All bits where a byte lies in a range.
#[inline(always)]
fn within(byte: u8, first: u8, last: u8) -> u8 {
    if byte.wrapping_sub(first) <= last - first { 0xFF } else { 0 }
}

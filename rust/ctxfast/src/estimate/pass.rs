//! The pass over a text: stretches of ASCII in blocks, anything else, and what is shorter than a
//! stride, character by character.

#![expect(
    clippy::inline_always,
    reason = "a kernel of `dispatch.rs`: what is not inlined is not compiled for AVX2"
)]

use super::Sums;
use super::blocks::{BLOCK, Block, STRIDE};
use super::mixed;
use super::tables::{NEUTRAL, SLOTS};
use crate::dispatch::{self, Kernel};

/// What stands before and behind a text.
const LINE_END: u32 = b'\n' as u32;

/// The sums of a text.
pub(super) fn sums<T: Copy + Into<u32>>(units: &[T], slots: &[u16; SLOTS]) -> Sums {
    if units.len() < STRIDE {
        let (mut sums, mut seam) = (Sums::default(), Seam::START);
        sums.add(mixed::sum(&mut seam, units, slots), units.len());
        return sums;
    }
    dispatch::best(Pass { units, slots })
}

/// The pass over a text.
pub(super) struct Pass<'a, T> {
    pub(super) units: &'a [T],
    pub(super) slots: &'a [u16; SLOTS],
}

impl<T: Copy + Into<u32>> Kernel for Pass<'_, T> {
    type Output = Sums;

    #[inline(always)]
    fn run(self) -> Sums {
        let mut sums = Sums::default();
        let mut seam = Seam::START;
        let mut block = None;
        let mut rest = self.units;
        while !rest.is_empty() {
            let (ascii, len) = match ascii_prefix(rest) {
                0 => (false, mixed_prefix(rest)),
                len => (true, len),
            };
            let Some((units, others)) = rest.split_at_checked(len) else { break };
            seam.next = others.first().map_or(LINE_END, |&unit| unit.into());
            let found = if ascii {
                block.get_or_insert_with(Block::new).sum(&mut seam, units, self.slots)
            } else {
                mixed::sum(&mut seam, units, self.slots)
            };
            sums.add(found, units.len());
            seam.before = units.last().map_or(LINE_END, |&unit| unit.into());
            rest = others;
        }
        sums
    }
}

impl Sums {
    /// Adds a stretch: the sum of its slots, the sum of their costs alone, and its length.
    #[inline(always)]
    fn add(&mut self, (all, costs): (u32, u32), chars: usize) {
        self.cost += u64::from(costs);
        self.chars += chars as u64;
        self.register += i64::from((all - costs) >> 8) - i64::from(NEUTRAL) * (chars as u64).cast_signed();
    }
}

/// How a stretch of text hangs together with what is around it.
pub(super) struct Seam {
    pub(super) before: u32,
    /// how often the run of the character before went on, up to 7
    pub(super) run: u32,
    pub(super) next: u32,
}

impl Seam {
    /// Where a text starts, and ends.
    const START: Seam = Seam { before: LINE_END, run: 0, next: LINE_END };
}

/// How many characters from the start are ASCII, up to a block; 0 where there is not a stride of them.
#[inline(always)]
fn ascii_prefix<T: Copy + Into<u32>>(units: &[T]) -> usize {
    if units.len() < STRIDE {
        return 0;
    }
    let units = units.get(..BLOCK).unwrap_or(units);
    let (strides, rest) = units.as_chunks::<STRIDE>();
    let whole = strides.iter().take_while(|stride| is_ascii(*stride)).count();
    if whole == strides.len() && is_ascii(rest) { units.len() } else { whole * STRIDE }
}

/// How many characters there are, up to a block, before a stride of ASCII.
#[inline(always)]
fn mixed_prefix<T: Copy + Into<u32>>(units: &[T]) -> usize {
    let units = units.get(..BLOCK).unwrap_or(units);
    let (strides, _) = units.as_chunks::<STRIDE>();
    let whole = strides.iter().take_while(|stride| !is_ascii(*stride)).count();
    if whole == strides.len() { units.len() } else { whole * STRIDE }
}

#[inline(always)]
pub(super) fn is_ascii<T: Copy + Into<u32>>(units: &[T]) -> bool {
    units.iter().fold(0, |all, &unit| all | unit.into()) < 128
}

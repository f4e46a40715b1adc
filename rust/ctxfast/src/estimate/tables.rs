//! The table of a family as the pass over a text reads it.
//!
//! The compressed form has 96 symbols of ASCII, costs and registers apart, and no gaps. Here cost and register of a
//! slot lie side by side, so that one look-up reads both; ASCII characters stand for themselves; and what stands before
//! a character is told by the same bits for every character. There are four parts, one after another; from the highest
//! bit to the lowest, the slots within them are
//!
//! | part | bits | what they say |
//! |---|---|---|
//! | ASCII | 2, 1, 7, 1, 7 | level of the run, next (high bit), character before, next (low bit), character |
//! | alphabets | 3, 7, 6, 2 | script, letter before, letter, next |
//! | Han, Hangul | 1, 13, 2 | whether CJK stands before, group, next |
//! | others | 3, 6, 2, 6 | script (high bits), class before, script (low bits), next |
//!
//! where "next" is the class of the next character, and only 40 of 64 classes before have a place.

use super::roles;

pub(super) const ALPHABETS_START: u32 = 1 << 18;
pub(super) const HAN_START: u32 = ALPHABETS_START + (1 << 18);
pub(super) const OTHERS_START: u32 = HAN_START + (1 << 16);
pub(super) const ASCII_SLOTS: usize = ALPHABETS_START as usize;
pub(super) const SLOTS: usize = OTHERS_START as usize + 8 * 40 * 256;

/// The parts of the packed form, see [`Packed`].
const PACKED_ASCII: usize = 96 * 96 * 4 * 4;
const PACKED_ALPHABETS: usize = 8 * 128 * 64 * 4;
const PACKED_HAN: usize = (1 << 13) * 4 * 2;
const PACKED_OTHERS: usize = 40 * 32 * 40;
/// Its bytes.
pub(super) const PACKED: usize =
    2 * PACKED_ASCII + PACKED_ALPHABETS + PACKED_HAN + PACKED_OTHERS + 2 * size_of::<f64>();

/// The form in which a table is delivered, in parts.
#[derive(Clone, Copy, Default)]
pub(super) struct Packed<'a> {
    /// Costs of ASCII: 96 symbols before, 96 here, 4 lengths of the run, 4 classes of the next.
    pub(super) ascii: &'a [u8],
    /// Alphabets: 8 scripts, 128 letters before, 64 here, 4 classes of the next.
    pub(super) alphabets: &'a [u8],
    /// Han and Hangul: characters in 2^13 groups, 4 classes of the next, whether CJK stands before.
    pub(super) han: &'a [u8],
    /// Everything else: 40 classes before, 32 scripts here, 40 classes of the next.
    pub(super) others: &'a [u8],
    /// Registers of ASCII, signed, in the order of the costs.
    pub(super) registers: &'a [u8],
    /// What the correction is for a register of 0, and how it grows with the register.
    pub(super) offset: f64,
    pub(super) slope: f64,
}

impl<'a> Packed<'a> {
    /// Nothing where the size is not [`PACKED`].
    pub(super) fn of(bytes: &'a [u8]) -> Option<Packed<'a>> {
        let (ascii, rest) = bytes.split_at_checked(PACKED_ASCII)?;
        let (alphabets, rest) = rest.split_at_checked(PACKED_ALPHABETS)?;
        let (han, rest) = rest.split_at_checked(PACKED_HAN)?;
        let (others, rest) = rest.split_at_checked(PACKED_OTHERS)?;
        let (registers, rest) = rest.split_at_checked(PACKED_ASCII)?;
        let (&offset, rest) = rest.split_first_chunk()?;
        let (offset, slope) = (f64::from_le_bytes(offset), f64::from_le_bytes(rest.try_into().ok()?));
        Some(Packed { ascii, alphabets, han, others, registers, offset, slope })
    }
}

/// What the pass over a text needs of a family: 1.3 MB.
#[derive(Debug)]
pub(super) struct Table {
    slots: Vec<u16>,
    pub(super) offset: f64,
    pub(super) slope: f64,
}

impl Table {
    pub(super) const EMPTY: Table = Table { slots: Vec::new(), offset: 0.0, slope: 0.0 };

    pub(super) fn new(packed: Packed) -> Table {
        let mut slots = Vec::with_capacity(SLOTS);
        let symbols: Vec<usize> = (0..128).map(|code| roles::symbol(code).into()).collect();
        for (level, high) in (0..4).flat_map(|level| [(level, 0), (level, 2)]) {
            for (before, low) in symbols.iter().flat_map(|before| [(before, 0), (before, 1)]) {
                slots.extend((0..128).zip(&symbols).map(|(code, here)| {
                    let place = ((before * 96 + here) * 4 + level) * 4 + high + low;
                    // what is not ASCII costs nothing here: it has a part of its own
                    let at = |bytes: &[u8]| bytes.get(place).copied().filter(|_| !roles::is_other(code));
                    slot(at(packed.ascii).unwrap_or(0), at(packed.registers).unwrap_or(0))
                }));
            }
        }
        slots.extend(packed.alphabets.iter().map(|&cost| slot(cost, 0)));
        for before in 0..2 {
            slots.extend(packed.han.iter().skip(before).step_by(2).map(|&cost| slot(cost, 0)));
        }
        for (scripts, before) in (0..8).flat_map(|scripts| (0..40).map(move |before| (scripts, before))) {
            for script in scripts * 4..scripts * 4 + 4 {
                let around = packed.others.chunks(40).nth(before * 32 + script).unwrap_or_default();
                slots.extend(around.iter().map(|&cost| slot(cost, 0)));
                slots.extend([0; 64 - 40]);
            }
        }
        slots.resize(SLOTS, 0);
        Table { slots, offset: packed.offset, slope: packed.slope }
    }

    /// The slots; nothing if the table is empty.
    #[inline]
    pub(super) fn slots(&self) -> Option<&[u16; SLOTS]> {
        self.slots.first_chunk()
    }
}

/// A cost and a register in one number.
fn slot(cost: u8, register: u8) -> u16 {
    u16::from_le_bytes([cost, register.wrapping_add(NEUTRAL)])
}

/// What is added to registers, so that they are not negative.
pub(super) const NEUTRAL: u8 = 128;

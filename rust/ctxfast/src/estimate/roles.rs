//! What the pass over a text needs of a character, in the form in which it is added up to a slot of the table.
//!
//! Characters of one script and block of 16 play the same role, so roles are few; a map of Unicode leads to them.

#![expect(
    clippy::inline_always,
    reason = "a kernel of `dispatch.rs`: what is not inlined is not compiled for AVX2"
)]

use super::classes::{Class, Sort};
use super::tables::{ALPHABETS_START, HAN_START, OTHERS_START};

/// How a character is looked up, and what it says to its neighbours. The slot of a character is
/// `start`, its own place, its neighbours' fields for its sort, and in ASCII 2^16 times the level of its run.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Role {
    pub(super) start: u32,
    /// its own place from `start`: `(point * spread / 2) & mask`
    pub(super) spread: u16,
    pub(super) mask: u16,
    /// by how many bits the fields of its sort are shifted in `left` and `right`
    pub(super) sort: u8,
    /// of a character that stands before: four fields of 16 bits
    pub(super) left: u64,
    /// the bits of the point, shifted by 24, that are part of `left`
    pub(super) letter: u32,
    /// of a character that comes next: four fields of 16 bits
    pub(super) right: u64,
    pub(super) runs: Runs,
    /// all bits of the level of a run for ASCII, else none
    pub(super) level: u32,
}

/// What a character makes runs with, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Runs {
    /// in the lower bits what it is, in the upper two what ASCII asks of the next
    pub(super) is: u8,
    /// what it can go on with
    pub(super) goes_on: u8,
}

impl Runs {
    pub(super) const UPPER: u8 = 1;
    pub(super) const LOWER: u8 = 1 << 1;
    pub(super) const SPACE: u8 = 1 << 2;
    pub(super) const DIGIT: u8 = 1 << 3;
    pub(super) const ALL: u8 = (1 << 4) - 1;
    /// The two bits of [`Class::of_four`].
    pub(super) const NEXT_HIGH: u8 = 1 << 6;
    pub(super) const NEXT_LOW: u8 = 1 << 7;

    const fn of(class: Class) -> Runs {
        let is = match class.run {
            1 => Runs::LOWER,
            2 => Runs::UPPER,
            3 => Runs::DIGIT,
            4 => Runs::SPACE,
            // letters that are not ASCII go on with either case, and either with them
            5 => Runs::UPPER | Runs::LOWER,
            _ => 0,
        };
        let goes_on = Runs::go_on(is);
        Runs { is: is | (class.of_four() & 1) << 7 | (class.of_four() & 2) << 5, goes_on }
    }

    /// What a character can go on with that is `is`: lower case goes on after upper case too, but not the reverse.
    #[inline(always)]
    pub(super) const fn go_on(is: u8) -> u8 {
        (is | (is & Runs::UPPER) << 1) & Runs::ALL
    }
}

impl Role {
    /// What it adds to the slot of the next character.
    #[inline(always)]
    pub(super) fn left(&self, point: u32) -> u64 {
        self.left | u64::from(point << 24 & self.letter)
    }

    /// The slot, but for the level of a run, of a character between two others.
    #[inline(always)]
    pub(super) fn slot(&self, point: u32, left: u64, right: u64) -> u32 {
        let place = point.wrapping_mul(self.spread.into()) >> 1 & u32::from(self.mask);
        self.start + place + low_16((left + right) >> self.sort)
    }

    const fn of(class: Class) -> Role {
        let (start, spread, mask, sort) = match class.sort() {
            Sort::Ascii => (code(class) as u32, 0, 0, 0),
            Sort::Alphabet(alphabet) => (ALPHABETS_START + ((alphabet as u32) << 15), 8, 63 << 2, 16),
            // the group is bits 3 to 15 of the product
            Sort::Han => (HAN_START, 40_503, 0x1FFF << 2, 32),
            Sort::Other => {
                let script = class.script as u32;
                (OTHERS_START + (script >> 2) * 40 * 256 + ((script & 3) << 6), 0, 0, 48)
            }
        };
        let letter = if class.is_ascii() { class.symbol_64 } else { 64 };
        let han = if class.is_east_asian() { 1 << 7 } else { 0 };
        let next = ((class.of_four() & 1) << 7, (class.of_four() & 2) << 6);
        let after = class.after_others();
        Role {
            start,
            spread,
            mask,
            sort,
            left: u64::from_le_bytes([0, code(class), 0, letter, 0, han, 0, class.script_or_kind()]),
            letter: if class.is_ascii() { 0 } else { 63 << 24 },
            right: u64::from_le_bytes([next.0, next.1, after, 0, after, 0, class.script_or_kind(), 0]),
            runs: Runs::of(class),
            level: if class.is_ascii() { 3 << 16 } else { 0 },
        }
    }
}

#[inline(always)]
pub(super) fn low_16(fields: u64) -> u32 {
    let [low, high, ..] = fields.to_le_bytes();
    u16::from_le_bytes([low, high]).into()
}

/// A character as ASCII before or at a slot: digits are one, and what is not ASCII takes the place of other digits.
const fn code(class: Class) -> u8 {
    match class.symbol {
        1 => b'0',
        90.. => b'1' + class.symbol - 90,
        _ if class.is_ascii() => class.point.to_le_bytes()[0],
        _ => b'7',
    }
}

/// Whether no ASCII character has this code.
pub(super) const fn is_other(code: u8) -> bool {
    matches!(code, b'1'..=b'9')
}

/// The inverse of [`code`]: of 96 symbols.
pub(super) const fn symbol(code: u8) -> u8 {
    match code {
        b'1'..b'7' => 90 + code - b'1',
        b'7' => 0,
        _ => Class::of_ascii(code).symbol,
    }
}

/// How many roles there can be: what fits a byte.
const ROLES: usize = 256;
/// Up to here each character has its own place in the map; then 16 share one.
const SINGLE: u32 = 256;
const MAP: u32 = SINGLE + (0x1_0000 - SINGLE) / 16 + 1;

/// The roles, and where the characters' are.
pub(super) struct Roles {
    map: [u8; MAP as usize],
    roles: [Role; ROLES],
}

impl Roles {
    pub(super) const ALL: &Roles = &Roles { map: map(), roles: roles() };

    /// The role that a character plays.
    #[inline(always)]
    pub(super) fn of(&self, point: u32) -> &Role {
        // up to `SINGLE` the point is the lesser one, beyond it the number of its sixteen
        let place = point.min(SINGLE - SINGLE / 16 + point / 16).min(MAP - 1);
        let number = self.map.get(place as usize).copied().unwrap_or(0);
        // a byte always finds one
        self.roles.get(usize::from(number)).unwrap_or(&NOBODY)
    }
}

const NOBODY: Role = Role::of(Class::LINE_END);

/// ASCII characters play their own roles; the others those of their script, which are apart by what Han asks of the one
/// before.
const fn number(point: u32) -> u8 {
    let class = Class::of(point);
    match (class.is_ascii(), class.is_east_asian()) {
        (true, _) => class.point.to_le_bytes()[0],
        (_, false) => 128 + class.script,
        (_, true) => 160 + class.script,
    }
}

const fn map() -> [u8; MAP as usize] {
    let mut map = [0; MAP as usize];
    let mut rest: &mut [u8] = &mut map;
    let mut point = 0;
    while let Some((first, others)) = rest.split_first_mut() {
        *first = number(point);
        rest = others;
        point += if point < SINGLE { 1 } else { 16 };
    }
    map
}

const fn roles() -> [Role; ROLES] {
    let mut roles = [NOBODY; ROLES];
    let mut rest: &mut [Role] = &mut roles;
    let mut number: u32 = 0;
    while let Some((first, others)) = rest.split_first_mut() {
        let [script, ..] = (number % 32).to_le_bytes();
        *first = Role::of(match number {
            0..128 => Class::of(number),
            128..160 => Class::of_script(script, 0x80),
            _ => Class::of_script(script, 0x2E80),
        });
        rest = others;
        number += 1;
    }
    roles
}

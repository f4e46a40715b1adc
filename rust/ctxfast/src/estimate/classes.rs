//! What the tables of the estimator know of a single character.

/// A character and its classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) point: u32,
    /// of 96: each letter, sign and a few groups
    pub(super) symbol: u8,
    /// of 64: letters in groups of four, signs
    pub(super) symbol_64: u8,
    /// of 8: lower, upper, digit, space, tab and line ends, signs, not ASCII, control
    pub(super) kind: u8,
    /// what it makes runs with: 0 nothing, 1 lower, 2 upper, 3 digits, 4 spaces, 5 letters that are not ASCII
    pub(super) run: u8,
    /// of 32: the writing system, by blocks of Unicode; 0 for ASCII, which never asks
    pub(super) script: u8,
}

impl Class {
    pub(super) const LINE_END: Class = Class::of_ascii(b'\n');

    /// The classes of any code point, lone surrogates included.
    #[inline]
    pub(super) fn of(point: u32) -> Class {
        match u8::try_from(point).ok().and_then(|byte| ASCII.get(usize::from(byte))) {
            Some(&class) => class,
            None => Class::of_others(point),
        }
    }

    const fn of_ascii(byte: u8) -> Class {
        let symbol = match byte {
            b'0'..=b'9' => 1,
            b'\n' | b'\r' => 2,
            b'\t' => 3,
            0..32 | 127.. => 4,
            b' ' => 5,
            b'a'..=b'z' => 6 + byte - b'a',
            b'A'..=b'Z' => 32 + byte - b'A',
            b'!'..=b'/' => 58 + byte - b'!',
            b':'..=b'@' => 73 + byte - b':',
            b'['..=b'`' => 80 + byte - b'[',
            b'{'..=b'~' => 86 + byte - b'{',
        };
        let symbol_64 = match byte {
            _ if symbol < 32 => symbol,
            b'A'..=b'Z' => 32 + (byte - b'A') / 4,
            b'_' => 39,
            b'-' => 40,
            b'.' => 41,
            b'/' => 42,
            b'(' => 43,
            b')' => 44,
            b'"' => 45,
            b'\'' => 46,
            b',' => 47,
            b':' => 48,
            b'=' => 49,
            b'\\' => 50,
            b'<' => 51,
            b'>' => 52,
            b'{' | b'[' => 53,
            b'}' | b']' => 54,
            b';' => 55,
            b'*' | b'#' => 56,
            b'$' | b'%' | b'&' | b'@' => 57,
            b'`' | b'|' | b'~' | b'+' | b'!' | b'?' | b'^' => 58,
            _ => 63,
        };
        let (kind, run) = match byte {
            b'a'..=b'z' => (0, 1),
            b'A'..=b'Z' => (1, 2),
            b'0'..=b'9' => (2, 3),
            b' ' => (3, 4),
            b'\t' | b'\n' | b'\r' => (4, 0),
            b'!'..=b'~' => (5, 0),
            _ => (7, 0),
        };
        Class { point: byte as u32, symbol, symbol_64, kind, run, script: 0 }
    }

    fn of_others(point: u32) -> Class {
        let script = script(point);
        let symbol = match script {
            1 => 90,
            2 | 3 | 17 => 91,
            0 | 4 => 92,
            18..=23 => 93,
            24..=28 => 94,
            31 => 95,
            _ => 0,
        };
        Class { point, symbol, symbol_64: 0, kind: 6, run: if point >= 0xC0 { 5 } else { 0 }, script }
    }

    pub(super) const fn is_ascii(self) -> bool {
        self.point < 128
    }

    /// Of four: lower case, upper case, space, anything else.
    pub(super) const fn of_four(self) -> u8 {
        match self.kind {
            0 => 0,
            1 => 1,
            3 => 2,
            _ => 3,
        }
    }

    /// Of four: space, letter, other ASCII, not ASCII.
    pub(super) const fn after_others(self) -> u8 {
        match self.kind {
            3 => 0,
            0 | 1 => 1,
            6 => 3,
            _ => 2,
        }
    }

    /// Of 40: the script, and for ASCII the kind.
    pub(super) const fn script_or_kind(self) -> u8 {
        if self.is_ascii() { 32 + self.kind } else { self.script }
    }
}

const ASCII: [Class; 128] = {
    let mut classes = [Class { point: 0, symbol: 0, symbol_64: 0, kind: 0, run: 0, script: 0 }; 128];
    let mut rest: &mut [Class] = &mut classes;
    let mut byte = 0;
    while let Some((class, others)) = rest.split_first_mut() {
        *class = Class::of_ascii(byte);
        rest = others;
        byte += 1;
    }
    classes
};

/// What the pass over ASCII needs of a character: symbol, class as the next one, what it makes runs with. Three bytes
/// instead of a whole `Class` make the pass 15 % faster.
#[derive(Clone, Copy)]
pub(super) struct Traits {
    symbol: u8,
    of_four: u8,
    run: u8,
}

impl Traits {
    const fn of_class(class: Class) -> Traits {
        Traits { symbol: class.symbol, of_four: class.of_four(), run: class.run }
    }

    /// Of a character that is ASCII.
    #[inline]
    pub(super) fn of_ascii(point: u32) -> Traits {
        TRAITS.get(point as usize & 0x7F).copied().unwrap_or(Traits::of_class(Class::LINE_END))
    }

    #[inline]
    pub(super) fn symbol(self) -> usize {
        self.symbol.into()
    }

    #[inline]
    pub(super) fn of_four(self) -> usize {
        self.of_four.into()
    }

    /// The length of its run, up to 7, where the one before has this one.
    #[inline]
    pub(super) fn run_after(self, before: Traits, run: u32) -> u32 {
        let goes_on = (CONTINUES >> (before.run * 8 + self.run)) & 1;
        (run + 1).min(7) * u32::from(goes_on == 1)
    }
}

impl From<Class> for Traits {
    fn from(class: Class) -> Traits {
        Traits::of_class(class)
    }
}

const TRAITS: [Traits; 128] = {
    let mut traits = [Traits::of_class(Class::LINE_END); 128];
    let mut rest: &mut [Traits] = &mut traits;
    let mut byte = 0;
    while let Some((first, others)) = rest.split_first_mut() {
        *first = Traits::of_class(Class::of_ascii(byte));
        rest = others;
        byte += 1;
    }
    traits
};

/// Whether a run goes on, as bits, eight for each kind of run before.
const CONTINUES: u64 = {
    let mut bits = 0;
    let mut before = 0;
    while before < 6 {
        let mut here = 0;
        while here < 6 {
            bits |= (continues(before, here) as u64) << (before * 8 + here);
            here += 1;
        }
        before += 1;
    }
    bits
};

const fn continues(before: u8, here: u8) -> bool {
    matches!((before, here), (1 | 5, 1 | 5) | (2, 1 | 2 | 5) | (5, 2) | (3, 3) | (4, 4))
}

/// The writing system, by blocks of Unicode.
const fn script(point: u32) -> u8 {
    match point {
        0..0xC0 => 0,
        0xC0..0xDF => 1,
        0xDF..0x100 => 2,
        0x100..0x250 => 3,
        0x250..0x370 => 4,
        0x370..0x400 | 0x1F00..0x2000 => 5,
        0x400..0x530 => 6,
        0x530..0x590 => 7,
        0x590..0x600 => 8,
        0x600..0x700 => 9,
        0x700..0x900 => 10,
        0x900..0x980 => 11,
        0x980..0xE00 => 12,
        0xE00..0xE80 => 13,
        0xE80..0x1100 => 14,
        0x1100..0x1200 => 15,
        0x1200..0x1E00 => 16,
        0x1E00..0x1F00 => 17,
        0x2000..0x2070 => 18,
        0x2070..0x2500 => 19,
        0x2500..0x2600 => 20,
        0x2600..0x2C00 => 21,
        0x2C00..0x3000 | 0xA000..0xAC00 => 22,
        0x3000..0x3040 => 23,
        0x3040..0x30A0 => 24,
        0x30A0..0x3100 => 25,
        0x3100..0x4E00 => 26,
        0x4E00..0xA000 => 27,
        0xAC00..0xD800 => 28,
        0xD800..0xFF00 => 29,
        0xFF00..0x1_0000 => 30,
        0x1_0000.. => 31,
    }
}

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

/// Which part of a table a character is looked up in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Ascii,
    /// with its number, of 8
    Alphabet(u8),
    Han,
    Other,
}

impl Class {
    pub(super) const LINE_END: Class = Class::of_ascii(b'\n');

    /// The classes of any code point, lone surrogates included.
    pub(super) const fn of(point: u32) -> Class {
        if point < 128 {
            Class::of_ascii(point.to_le_bytes()[0])
        } else {
            Class::of_script(script(point), point)
        }
    }

    pub(super) const fn of_ascii(byte: u8) -> Class {
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

    /// The classes of a character that is not ASCII; but for its place within the script, its script tells them all.
    pub(super) const fn of_script(script: u8, point: u32) -> Class {
        let symbol = match script {
            1 => 90,
            2 | 3 | 17 => 91,
            0 | 4 => 92,
            18..=23 => 93,
            24..=28 => 94,
            31 => 95,
            _ => 0,
        };
        Class { point, symbol, symbol_64: 0, kind: 6, run: if script == 0 { 0 } else { 5 }, script }
    }

    pub(super) const fn is_ascii(self) -> bool {
        self.point < 128
    }

    /// The part of the table.
    pub(super) const fn sort(self) -> Sort {
        match self.script {
            _ if self.is_ascii() => Sort::Ascii,
            0..=3 | 17 => Sort::Alphabet(0),
            5 => Sort::Alphabet(1),
            6 => Sort::Alphabet(2),
            8 => Sort::Alphabet(3),
            9 => Sort::Alphabet(4),
            11 => Sort::Alphabet(5),
            13 => Sort::Alphabet(6),
            24 | 25 => Sort::Alphabet(7),
            27 | 28 => Sort::Han,
            _ => Sort::Other,
        }
    }

    /// What Han and Hangul ask of the one before.
    pub(super) const fn is_east_asian(self) -> bool {
        self.point >= 0x2E80
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

/// The writing system, by blocks of Unicode.
pub(super) const fn script(point: u32) -> u8 {
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

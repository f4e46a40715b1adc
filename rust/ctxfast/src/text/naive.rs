//! The kernels' twins: one rule for one character, written to be read.

use super::Escapes;

/// Bytes of a code point as UTF-8; a lone surrogate has three.
#[must_use]
pub fn utf8_bytes(point: u32) -> usize {
    match point {
        0..0x80 => 1,
        0x80..0x800 => 2,
        0x800..0x1_0000 => 3,
        _ => 4,
    }
}

/// Whether Python's `str.strip` removes a code point: Unicode's white space and four separators of ASCII.
#[must_use]
pub fn is_space(point: u32) -> bool {
    (0x1c..0x20).contains(&point) || char::from_u32(point).is_some_and(char::is_whitespace)
}

/// Whether a code point is in the Thai block.
#[must_use]
pub fn is_thai(point: u32) -> bool {
    (0xe00..0xe80).contains(&point)
}

/// Characters that escaping adds to one code point inside a JSON string.
#[must_use]
pub fn escape(point: u32, escapes: Escapes) -> usize {
    match point {
        0x08 | 0x09 | 0x0a | 0x0c | 0x0d | 0x22 | 0x5c => 1,
        0..0x20 => 5,
        0x3c | 0x3e | 0x26 | 0x2028 | 0x2029 if escapes == Escapes::Go => 5,
        _ => 0,
    }
}

/// Characters that escaping adds to a text, and how many escaped line separators are among them.
pub fn escapes(points: impl Iterator<Item = u32>, escapes: Escapes) -> (usize, usize) {
    points.fold((0, 0), |(chars, separators), point| {
        let is_separator = escapes == Escapes::Go && matches!(point, 0x2028 | 0x2029);
        (chars + escape(point, escapes), separators + usize::from(is_separator))
    })
}

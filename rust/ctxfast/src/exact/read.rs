//! A text as UTF-8, block by block, whatever its storage is.
//!
//! Surrogates are read as UTF-16 is: a pair is one character, one alone is U+FFFD.

use std::ops::Range;

use crate::text::Text;
use crate::text::encode::add;

/// What stands in for a lone surrogate.
const REPLACEMENT: u32 = 0xFFFD;

/// Adds a range of a text's units (bytes, of UTF-8) to a buffer, or a unit more or less so that no character is cut;
/// the end of what was added.
pub(super) fn read(text: Text<'_>, range: Range<usize>, buffer: &mut Vec<u8>) -> usize {
    match text {
        Text::Ucs1(units) => {
            let units = units.get(range.start..units.len().min(range.end)).unwrap_or_default();
            if units.is_ascii() {
                buffer.extend_from_slice(units);
            } else {
                add(units, buffer);
            }
            range.start + units.len()
        }
        Text::Ucs2(units) => wide(units, range, buffer),
        Text::Ucs4(units) => wide(units, range, buffer),
        Text::Utf8(text) => {
            let end = (range.end..text.len()).find(|&end| text.is_char_boundary(end)).unwrap_or(text.len());
            buffer.extend_from_slice(text.as_bytes().get(range.start..end).unwrap_or_default());
            end
        }
    }
}

fn wide<T: Copy + Into<u32>>(units: &[T], range: Range<usize>, buffer: &mut Vec<u8>) -> usize {
    let mut end = range.end.min(units.len());
    let at = |place: usize| units.get(place).map(|&unit| unit.into());
    if is_pair(at(end.wrapping_sub(1)), at(end)) {
        end += 1;
    }
    let units = units.get(range.start..end).unwrap_or_default();
    let surrogates = units.iter().fold(false, |any, &unit| any | (unit.into() & 0xFFFF_F800 == 0xD800));
    if surrogates {
        repair(units, buffer);
    } else {
        add(units, buffer);
    }
    end
}

/// Units of a text: characters of Python, bytes of UTF-8.
pub(super) fn units(text: Text<'_>) -> usize {
    match text {
        Text::Utf8(text) => text.len(),
        _ => text.chars(),
    }
}

/// Units, from a place on, of which so many bytes of UTF-8 were read.
pub(super) fn units_of(text: Text<'_>, start: usize, bytes: usize) -> usize {
    fn of<T: Copy + Into<u32>>(units: &[T], start: usize, bytes: usize) -> usize {
        let (mut place, mut left) = (start, bytes);
        while left > 0
            && let Some(unit) = units.get(place).map(|&unit| unit.into())
        {
            let pair = is_pair(Some(unit), units.get(place + 1).map(|&unit| unit.into()));
            let (units, bytes) = match unit {
                _ if pair => (2, 4),
                0..0x80 => (1, 1),
                0x80..0x800 => (1, 2),
                0x800..0x1_0000 => (1, 3),
                _ => (1, 4),
            };
            place += units;
            left = left.saturating_sub(bytes);
        }
        place - start
    }
    match text {
        Text::Ucs1(units) => of(units, start, bytes),
        Text::Ucs2(units) => of(units, start, bytes),
        Text::Ucs4(units) => of(units, start, bytes),
        Text::Utf8(_) => bytes,
    }
}

/// The start of the character that has the unit at a place.
pub(super) fn start_of_char(text: Text<'_>, mut place: usize) -> usize {
    match text {
        Text::Utf8(text) => {
            while !text.is_char_boundary(place) {
                place -= 1;
            }
        }
        Text::Ucs1(_) => {}
        _ if is_pair(place.checked_sub(1).and_then(|high| text.at(high)), text.at(place)) => place -= 1,
        _ => {}
    }
    place
}

fn is_surrogate(unit: u32) -> bool {
    is_high(unit) || is_low(unit)
}

/// The first half of a character.
pub(super) fn is_high(unit: u32) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

/// The second half of a character.
pub(super) fn is_low(unit: u32) -> bool {
    (0xDC00..0xE000).contains(&unit)
}

fn is_pair(high: Option<u32>, low: Option<u32>) -> bool {
    high.is_some_and(is_high) && low.is_some_and(is_low)
}

/// The character of two halves.
pub(super) fn joined(high: u32, low: u32) -> u32 {
    0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)
}

fn repair<T: Copy + Into<u32>>(units: &[T], buffer: &mut Vec<u8>) {
    let mut points = Vec::with_capacity(units.len());
    let mut units = units.iter().map(|&unit| unit.into()).peekable();
    while let Some(unit) = units.next() {
        points.push(match units.peek() {
            Some(&low) if is_pair(Some(unit), Some(low)) => {
                units.next();
                joined(unit, low)
            }
            _ if is_surrogate(unit) => REPLACEMENT,
            _ => unit,
        });
    }
    add(&points, buffer);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: Text<'_>, block: usize) -> Vec<u8> {
        let (mut bytes, mut place) = (Vec::new(), 0);
        loop {
            let end = read(text, place..place + block, &mut bytes);
            if end == place {
                return bytes;
            }
            place = end;
        }
    }

    proptest! {
        #[test]
        fn blocks_are_the_text_and_surrogates_are_read_as_utf_16_is(
            units in proptest::collection::vec(prop_oneof![0..0x1_0000_u32, 0xD800..0xE000_u32, 0..0x80_u32], 0..40),
            block in 1..20_usize,
        ) {
            let units: Vec<u16> = units.into_iter().filter_map(|unit| u16::try_from(unit).ok()).collect();
            let wide: Vec<u32> = units.iter().copied().map(u32::from).collect();
            let expected = String::from_utf16_lossy(&units);
            prop_assert_eq!(&all(Text::Ucs2(&units), block), expected.as_bytes());
            prop_assert_eq!(&all(Text::Ucs4(&wide), block), expected.as_bytes());
            prop_assert_eq!(&all(Text::Utf8(&expected), block), expected.as_bytes());
            let latin: Vec<u8> = units.iter().map(|&unit| unit.to_le_bytes()[0]).collect();
            let expected: String = latin.iter().map(|&byte| char::from(byte)).collect();
            prop_assert_eq!(&all(Text::Ucs1(&latin), block), expected.as_bytes());
        }
    }
}

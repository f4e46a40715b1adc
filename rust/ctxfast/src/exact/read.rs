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
    let surrogates = units.iter().fold(false, |any, &unit| any | is_surrogate(unit.into()));
    if surrogates {
        repair(units, buffer);
    } else {
        add(units, buffer);
    }
    end
}

fn is_surrogate(unit: u32) -> bool {
    unit & 0xFFFF_F800 == 0xD800
}

fn is_pair(high: Option<u32>, low: Option<u32>) -> bool {
    matches!((high, low), (Some(0xD800..0xDC00), Some(0xDC00..0xE000)))
}

fn repair<T: Copy + Into<u32>>(units: &[T], buffer: &mut Vec<u8>) {
    let mut points = Vec::with_capacity(units.len());
    let mut units = units.iter().map(|&unit| unit.into()).peekable();
    while let Some(unit) = units.next() {
        points.push(match units.peek() {
            Some(&low) if is_pair(Some(unit), Some(low)) => {
                units.next();
                0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00)
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

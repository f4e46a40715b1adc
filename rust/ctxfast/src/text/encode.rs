//! A text as the UTF-8 bytes that are saved of it, piece by piece: no copy of the whole is made.

use std::convert::Infallible;

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::Text;

/// Bytes that are passed on together, at most. ASCII in one-byte storage is passed on as it lies.
const PIECE: usize = 1 << 16;
/// Characters that are written anew together.
const FEW: usize = 1 << 12;

impl Text<'_> {
    /// Calls `take` with the text as UTF-8, piece by piece, until it fails. A lone surrogate is written as if it were a
    /// character (Python calls that `surrogatepass`).
    ///
    /// # Errors
    ///
    /// What `take` gives.
    pub fn encode<E>(self, mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        match self {
            Text::Ucs1(units) => units
                .chunks(PIECE)
                .try_for_each(|piece| if piece.is_ascii() { take(piece) } else { pass_on(piece, &mut take) }),
            Text::Ucs2(units) => pass_on(units, &mut take),
            Text::Ucs4(units) => pass_on(units, &mut take),
            Text::Utf8(text) => text.as_bytes().chunks(PIECE).try_for_each(take),
        }
    }

    /// A hash of the text as UTF-8: that of [`fingerprint`] of the same bytes.
    #[must_use]
    pub fn fingerprint(self) -> u128 {
        let all: Result<u128, Infallible> = self.encode_and_hash(|_| Ok(()));
        match all {
            Ok(hash) => hash,
        }
    }

    /// Both in one pass.
    ///
    /// # Errors
    ///
    /// What `take` gives.
    pub fn encode_and_hash<E>(self, mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<u128, E> {
        let mut hash = Xxh3::new();
        self.encode(|piece| {
            hash.update(piece);
            take(piece)
        })?;
        Ok(hash.digest128())
    }
}

/// A hash of bytes by which equal contents are found. It is fast and not safe against forgery: who relies on it compares.
#[must_use]
pub fn fingerprint(bytes: &[u8]) -> u128 {
    xxh3_128(bytes)
}

/// Units of which it is asked together whether they are of one kind.
const STRIDE: usize = 8;

fn pass_on<T: Copy + Into<u32>, E>(
    units: &[T],
    take: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut buffer = Vec::with_capacity(PIECE.min(4 * units.len()));
    for few in units.chunks(FEW) {
        if buffer.len() + 4 * FEW > PIECE {
            take(&buffer)?;
            buffer.clear();
        }
        add(few, &mut buffer);
    }
    take(&buffer)
}

/// Adds units to a buffer as UTF-8; a surrogate is written as if it were a character.
pub(crate) fn add<T: Copy + Into<u32>>(units: &[T], buffer: &mut Vec<u8>) {
    let (strides, rest) = units.as_chunks::<STRIDE>();
    for stride in strides {
        let stride = stride.map(Into::into);
        // runs of one script, which are what there is most of, without a branch for each character
        if stride.iter().all(|&point| point < 0x80) {
            buffer.extend_from_slice(&stride.map(low));
        } else if stride.iter().all(|&point| (0x800..0x1_0000).contains(&point)) {
            buffer.extend_from_slice(stride.map(three).as_flattened());
        } else {
            let (mut bytes, mut size) = ([0; 4 * STRIDE], 0);
            for point in stride {
                let (char, length) = utf8(point);
                if let Some(place) = bytes.get_mut(size..size + 4) {
                    place.copy_from_slice(&char); // what is too much is written over
                }
                size += length;
            }
            let start = buffer.len();
            buffer.extend_from_slice(&bytes);
            buffer.truncate(start + size);
        }
    }
    for &unit in rest {
        let (char, length) = utf8(unit.into());
        buffer.extend_from_slice(char.get(..length).unwrap_or_default());
    }
}

#[expect(clippy::cast_possible_truncation, reason = "what is above is not wanted")]
fn low(point: u32) -> u8 {
    point as u8
}

/// The last six bits, `shift` from the end.
fn tail(point: u32, shift: u32) -> u8 {
    0x80 | low(point >> shift & 0x3f)
}

fn three(point: u32) -> [u8; 3] {
    [0xe0 | low(point >> 12), tail(point, 6), tail(point, 0)]
}

/// The bytes of one code point, and how many of the four they are.
#[inline]
fn utf8(point: u32) -> ([u8; 4], usize) {
    match point {
        0..0x80 => ([low(point), 0, 0, 0], 1),
        0x80..0x800 => ([0xc0 | low(point >> 6), tail(point, 0), 0, 0], 2),
        0x800..0x1_0000 => {
            let [one, two, three] = three(point);
            ([one, two, three, 0], 3)
        }
        _ => ([0xf0 | low(point >> 18 & 7), tail(point, 12), tail(point, 6), tail(point, 0)], 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(text: Text<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let whole: Result<(), ()> = text.encode(|piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        });
        assert_eq!(whole, Ok(()));
        bytes
    }

    proptest! {
        #[test]
        fn encodes_as_rust_does(text in "\\PC{0,40}|[\u{0}-\u{ff}]{0,40}", times in prop::sample::select(&[1, 3_000][..])) {
            let text = text.repeat(times);
            let points: Vec<u32> = text.chars().map(u32::from).collect();
            let wide: Option<Vec<u16>> = points.iter().map(|&c| u16::try_from(c).ok()).collect();
            let narrow: Option<Vec<u8>> = points.iter().map(|&c| u8::try_from(c).ok()).collect();
            let mut forms = vec![Text::Ucs4(&points), Text::from(text.as_str())];
            forms.extend(wide.as_deref().map(Text::Ucs2));
            forms.extend(narrow.as_deref().map(Text::Ucs1));
            for form in forms {
                prop_assert_eq!(encoded(form), text.as_bytes());
                prop_assert_eq!(form.fingerprint(), fingerprint(text.as_bytes()));
            }
        }
    }

    #[test]
    fn lone_surrogates_are_written() {
        assert_eq!(encoded(Text::Ucs2(&[0xd83d, 0x41])), [0xed, 0xa0, 0xbd, 0x41]);
    }

    #[test]
    fn what_fails_ends_it() {
        let mut calls = 0;
        let stopped = Text::Ucs1(&vec![0x41; 3 * PIECE]).encode(|_| {
            calls += 1;
            Err("full")
        });
        assert_eq!((stopped, calls), (Err("full"), 1));
    }
}

//! The numbers of tokens of pieces seen lately: words come again.
//!
//! Two tables of a fixed size, 1 MiB each: pieces up to 15 bytes, and up to 30. A set has four places or two; a new piece
//! that finds none pushes one out. The length is part of an entry, so pieces with NUL are told from shorter ones.

const SHORT_SETS: usize = 1 << 14;
const LONG_SETS: usize = 1 << 14;

/// Bytes of the longest piece that is remembered.
pub(super) const LONGEST: usize = 30;

/// An entry of the first table: up to 15 bytes, and in the last byte the length (low half) and the count.
type Short = u128;
const SHORT_COUNT: u32 = 124;

/// Up to 30 bytes, the length and the count.
type Long = [u8; 32];

/// The memory of one counter at a time.
#[derive(Debug)]
pub(super) struct Memo {
    short: Box<[[Short; 4]]>,
    long: Box<[[Long; 2]]>,
}

impl Memo {
    pub(super) fn new() -> Memo {
        Memo {
            short: vec![[0; 4]; SHORT_SETS].into_boxed_slice(),
            long: vec![[[0; 32]; 2]; LONG_SETS].into_boxed_slice(),
        }
    }

    /// The number of tokens of a piece of at most 15 bytes, which `chunk` begins with, if it is known.
    #[inline]
    pub(super) fn known(&self, chunk: [u8; 16], length: usize) -> Option<u8> {
        let key = short_key(chunk, length);
        let set = self.short.get(place(fold(key), SHORT_SETS))?;
        set.iter().find(|&&entry| entry << 4 >> 4 == key).map(|entry| (entry >> SHORT_COUNT) as u8)
    }

    /// The number of tokens of a piece; `count` is asked where it is not known.
    #[inline]
    pub(super) fn of(&mut self, piece: &[u8], count: impl FnOnce() -> usize) -> usize {
        match piece.len() {
            0 => 0,
            1..=15 => self.of_short(piece, count),
            16..=LONGEST => self.of_long(piece, count),
            _ => count(),
        }
    }

    #[inline]
    fn of_short(&mut self, piece: &[u8], count: impl FnOnce() -> usize) -> usize {
        let mut key = [0; 16];
        for (to, from) in key.iter_mut().zip(piece) {
            *to = *from;
        }
        let key = short_key(key, piece.len());
        let Some(set) = self.short.get_mut(place(fold(key), SHORT_SETS)) else { return count() };
        for entry in set.iter() {
            if entry << 4 >> 4 == key {
                return (entry >> SHORT_COUNT) as usize;
            }
        }
        let count = count();
        if count < 16 {
            set.rotate_right(1);
            set[0] = key | (count as u128) << SHORT_COUNT;
        }
        count
    }

    fn of_long(&mut self, piece: &[u8], count: impl FnOnce() -> usize) -> usize {
        let mut key = [0; 32];
        for (to, from) in key.iter_mut().zip(piece) {
            *to = *from;
        }
        let Ok(length) = u8::try_from(piece.len()) else { return count() };
        key[30] = length;
        let (halves, _) = key.as_chunks::<16>();
        let hash = halves.iter().fold(0, |hash: u64, &half| {
            (hash.rotate_left(29) ^ fold(u128::from_le_bytes(half))).wrapping_mul(MIXER)
        });
        let Some(set) = self.long.get_mut(place(hash, LONG_SETS)) else { return count() };
        for entry in set.iter() {
            if entry[..31] == key[..31] {
                return entry[31].into();
            }
        }
        let count = count();
        if let Ok(small) = u8::try_from(count) {
            key[31] = small;
            set.swap(0, 1);
            set[0] = key;
        }
        count
    }
}

/// The bytes of a piece, and its length.
#[inline]
fn short_key(chunk: [u8; 16], length: usize) -> Short {
    u128::from_le_bytes(chunk) & ((1 << (8 * length)) - 1) | (length as u128) << 120
}

const MIXER: u64 = 0x9E37_79B9_7F4A_7C15;

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the two halves")]
fn fold(key: u128) -> u64 {
    (key as u64).wrapping_mul(MIXER)
        ^ ((key >> 64) as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F).rotate_left(23)
}

#[inline]
fn place(hash: u64, sets: usize) -> usize {
    (hash.wrapping_mul(MIXER) >> 32) as usize & (sets - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_remembered_by_all_its_bytes() {
        let mut memo = Memo::new();
        for length in 1..40 {
            for fill in [0_u8, b'a', 255] {
                let piece = vec![fill; length];
                let count = length % 13 + 1;
                assert_eq!(memo.of(&piece, || count), count);
                let again = memo.of(&piece, || 99);
                assert_eq!(again, if length <= LONGEST { count } else { 99 });
            }
        }
    }

    #[test]
    fn many_pieces_push_others_out_and_none_is_mixed_up() {
        let mut memo = Memo::new();
        for round in 0..2 {
            for number in 0..200_000_usize {
                let piece = format!("{number}-{}", "x".repeat(number % 25));
                let count = number % 15 + 1;
                assert_eq!(memo.of(piece.as_bytes(), || count), count, "{piece} in round {round}");
            }
        }
    }
}

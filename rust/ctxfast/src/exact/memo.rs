//! The numbers of tokens of pieces seen lately: words come again.
//!
//! Two tables of a fixed size, 1 MiB each: pieces up to 15 bytes, and up to 30. A set has four places or two; a new piece
//! that finds none pushes one out. The length is part of an entry, so pieces with NUL are told from shorter ones. Longer
//! pieces (rules and indentation come again) are kept by their hash in half a megabyte, and all forgotten when it is
//! full.

use std::hint::black_box;

use xxhash_rust::xxh3::xxh3_64;

use super::sets::{Key, Sets, masks, mix};

const SHORT_SETS: usize = 1 << 14;
const LONG_SETS: usize = 1 << 14;

/// Bytes of a piece that fits into the second table.
const LONG: usize = 30;

/// Bytes of the longest piece that is remembered.
const LONGEST: usize = 1 << 10;

/// Longer pieces that are remembered, at most, and their bytes.
const KEPT: usize = 1 << 11;
const KEPT_BYTES: usize = 1 << 19;

/// Up to 30 bytes, zeros behind them, the length and the count.
type Long = [u64; 4];

/// A line of the cache.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Pair([Long; 2]);

/// Bits of the last part before the count.
const COUNT: u32 = 56;

/// The memory of one counter at a time.
#[derive(Debug)]
pub(super) struct Memo {
    short: Sets,
    long: Box<[Pair]>,
    kept: Kept,
}

impl Memo {
    pub(super) fn new() -> Memo {
        Memo {
            short: Sets::new(SHORT_SETS),
            long: vec![Pair::default(); LONG_SETS].into_boxed_slice(),
            kept: Kept::default(),
        }
    }

    /// Brings the short pieces into a near cache.
    pub(super) fn fetch(&self) {
        self.short.fetch();
    }

    /// Brings those of up to 30 bytes there.
    pub(super) fn fetch_long(&self) {
        black_box(self.long.iter().fold(0, |all, pair| all ^ pair.0[0][0]));
    }

    /// The number of tokens of a short piece, if it is known.
    #[inline(always)]
    pub(super) fn known(&self, key: Key) -> Option<u8> {
        self.short.get(key)
    }

    /// Remembers a short piece that is not known.
    #[inline]
    pub(super) fn learn(&mut self, key: Key, count: usize) {
        self.short.put(key, count);
    }

    /// The number of tokens of the piece of a length that is not short, if it is known; more of the text is behind it.
    #[inline]
    pub(super) fn known_long(&self, text: &[u8], length: usize) -> Option<usize> {
        let Some((key, hash)) = long(text, length) else { return self.kept.get(text.get(..length)?) };
        let Pair(pair) = self.long.get(place(hash, LONG_SETS))?;
        // both are looked at, for nobody can predict which it is
        let count = pair.iter().fold(0, |count, known| {
            let differs = (known[0] ^ key[0])
                | (known[1] ^ key[1])
                | (known[2] ^ key[2])
                | (known[3] ^ key[3]) << (u64::BITS - COUNT);
            count | known[3] >> COUNT & u64::from(differs == 0).wrapping_neg()
        });
        if count == 0 { None } else { usize::try_from(count).ok() }
    }

    /// Remembers a piece that is not short, and not known.
    pub(super) fn learn_long(&mut self, text: &[u8], length: usize, count: usize) {
        let Some((mut key, hash)) = long(text, length) else {
            return self.kept.put(text.get(..length).unwrap_or_default(), count);
        };
        if let Some(Pair(pair)) = self.long.get_mut(place(hash, LONG_SETS))
            && count < 1 << (u64::BITS - COUNT)
        {
            key[3] |= (count as u64) << COUNT;
            *pair = [key, pair[0]];
        }
    }
}

/// A piece as it is in the second table, and its hash; nothing for a longer one.
#[inline]
fn long(text: &[u8], length: usize) -> Option<(Long, u64)> {
    let (Some(chunk), Some(masks)) = (text.first_chunk::<32>(), MASKS.get(length)) else { return None };
    let mut key = [0; 4];
    for ((part, bytes), mask) in key.iter_mut().zip(chunk.as_chunks().0).zip(masks) {
        *part = u64::from_le_bytes(*bytes) & mask;
    }
    key[3] |= (length as u64) << (COUNT - 8);
    Some((key, mix(mix(key[0], key[1]), mix(key[2], key[3]))))
}

static MASKS: [Long; LONG + 1] = masks();

fn place(hash: u64, size: usize) -> usize {
    (hash >> 32) as usize & (size - 1)
}

/// Longer pieces, by their hash.
#[derive(Debug, Default)]
struct Kept {
    pieces: Vec<KeptPiece>,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct KeptPiece {
    hash: u64,
    start: usize,
    length: usize,
    count: usize,
}

impl Kept {
    fn get(&self, piece: &[u8]) -> Option<usize> {
        if piece.len() > LONGEST {
            return None;
        }
        let hash = xxh3_64(piece);
        let known = self.pieces.get(place(hash, KEPT)).filter(|known| known.hash == hash)?;
        let bytes = self.bytes.get(known.start..known.start + known.length)?;
        (bytes == piece).then_some(known.count)
    }

    fn put(&mut self, piece: &[u8], count: usize) {
        if piece.len() > LONGEST {
            return;
        }
        if self.bytes.len() + piece.len() > KEPT_BYTES || self.pieces.is_empty() {
            self.bytes.clear();
            self.bytes.reserve_exact(KEPT_BYTES);
            self.pieces.clear();
            self.pieces.resize(KEPT, KeptPiece::default());
        }
        let hash = xxh3_64(piece);
        if let Some(place) = self.pieces.get_mut(place(hash, KEPT)) {
            *place = KeptPiece { hash, start: self.bytes.len(), length: piece.len(), count };
            self.bytes.extend_from_slice(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(memo: &mut Memo, piece: &[u8], count: usize) -> usize {
        if let Some(key) = Key::of(piece) {
            return memo.known(key).map_or_else(
                || {
                    memo.learn(key, count);
                    count
                },
                usize::from,
            );
        }
        let text = [piece, &[b'x'; 32]].concat();
        memo.known_long(&text, piece.len()).unwrap_or_else(|| {
            memo.learn_long(&text, piece.len(), count);
            count
        })
    }

    #[test]
    fn what_was_counted_is_remembered_by_all_its_bytes() {
        let mut memo = Memo::new();
        for length in (1..100).chain([LONGEST - 1, LONGEST, LONGEST + 1]) {
            for fill in [0_u8, b'a', 255] {
                let piece = vec![fill; length];
                let count = length % 13 + 1;
                assert_eq!(of(&mut memo, &piece, count), count);
                let again = of(&mut memo, &piece, 99);
                assert_eq!(again, if length <= LONGEST { count } else { 99 });
            }
        }
    }

    #[test]
    fn many_pieces_push_others_out_and_none_is_mixed_up() {
        let mut memo = Memo::new();
        for round in 0..2 {
            for number in 0..200_000_usize {
                let piece = format!("{number}-{}", "x".repeat(number % 45));
                let count = number % 15 + 1;
                assert_eq!(of(&mut memo, piece.as_bytes(), count), count, "{piece} in round {round}");
            }
        }
    }
}

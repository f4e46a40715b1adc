//! A vocabulary as merging needs it: which token two tokens make, and which two a token is made of.
//!
//! It is delivered as two ranks a token (`tools/exact/vocabularies.py` has the format), so that it is built in one pass.

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use xxhash_rust::xxh3::xxh3_64;

/// No token: above all ranks.
pub(super) const NONE: u32 = u32::MAX;

/// Single bytes have the ranks below.
const BYTES: u32 = 256;

/// Bytes of the longest token, checked when a vocabulary is built.
pub(super) const LONGEST: usize = 128;

/// Bits of a rank.
const RANK: u32 = 18;
const RANKS: u32 = 1 << RANK;
const EMPTY: u64 = u64::MAX;

/// A vocabulary in memory: 3.5 MB for 100,000 tokens, 6 MB for 200,000.
#[derive(Debug)]
pub(super) struct Vocab {
    ranks_of_bytes: Vec<u32>,
    parts: Vec<(u32, u32)>,
    lengths: Vec<u8>,
    /// Open addressing: the two parts and the token that they make, 18 bits each.
    pairs: Vec<u64>,
}

impl Vocab {
    /// Builds what a file holds; nothing if it is not the file with this checksum of its packed form.
    pub(super) fn new(compressed: &[u8], checksum: u64) -> Option<Vocab> {
        let limit = 256 + 6 * RANKS as usize;
        let packed = decompress_to_vec_zlib_with_limit(compressed, limit).ok()?;
        if xxh3_64(&packed) != checksum {
            return None;
        }
        let (bytes, planes) = packed.split_at_checked(BYTES as usize)?;
        let tokens = planes.len() / 6;
        let mut ranks_of_bytes = vec![NONE; 256];
        for (rank, &byte) in (0..).zip(bytes) {
            *ranks_of_bytes.get_mut(usize::from(byte))? = rank;
        }
        let mut vocab = Vocab {
            ranks_of_bytes,
            parts: (0..BYTES).map(|rank| (rank, rank)).collect(),
            lengths: vec![1; BYTES as usize],
            pairs: vec![EMPTY; (2 * tokens).next_power_of_two()],
        };
        vocab.parts.reserve_exact(tokens);
        vocab.lengths.reserve_exact(tokens);
        let mut planes = planes.chunks_exact(tokens.max(1)).map(<[u8]>::iter);
        let mut part = || {
            let (low, middle, high) = (planes.next()?, planes.next()?, planes.next()?);
            let bytes = low.zip(middle).zip(high);
            Some(bytes.map(|((&low, &middle), &high)| u32::from_le_bytes([low, middle, high, 0])))
        };
        for (rank, (one, two)) in (BYTES..).zip(part()?.zip(part()?)) {
            let length = vocab.length(one)? + vocab.length(two)?;
            if length > LONGEST || rank >= RANKS {
                return None;
            }
            vocab.lengths.push(u8::try_from(length).ok()?);
            vocab.parts.push((one, two));
            vocab.put(one, two, rank)?;
        }
        Some(vocab)
    }

    fn put(&mut self, one: u32, two: u32, rank: u32) -> Option<()> {
        let key = key(one, two);
        let mut place = self.place(key);
        while *self.pairs.get(place)? != EMPTY {
            place = (place + 1) & (self.pairs.len() - 1);
        }
        *self.pairs.get_mut(place)? = key << RANK | u64::from(rank);
        Some(())
    }

    #[inline]
    fn place(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (self.pairs.len() - 1)
    }

    /// The token that two tokens make, or [`NONE`].
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "18 bits are left")]
    pub(super) fn pair(&self, one: u32, two: u32) -> u32 {
        let key = key(one, two);
        let mut place = self.place(key);
        while let Some(&entry) = self.pairs.get(place) {
            if entry >> RANK == key {
                return entry as u32 & (RANKS - 1);
            }
            if entry == EMPTY {
                break;
            }
            place = (place + 1) & (self.pairs.len() - 1);
        }
        NONE
    }

    /// The token of a single byte.
    #[inline]
    pub(super) fn byte(&self, byte: u8) -> u32 {
        self.ranks_of_bytes.get(usize::from(byte)).copied().unwrap_or(NONE)
    }

    /// Bytes of a token.
    pub(super) fn length(&self, rank: u32) -> Option<usize> {
        self.lengths.get(rank as usize).map(|&length| length.into())
    }

    /// Whether the tokens of some text can be these two: whether no merge across their border comes before those that
    /// make them. Tokens are those of their text if this holds for all neighbours.
    ///
    /// Goes back in time from the two, undoing the later merge of those at the border: what stood there until then must
    /// not have merged before. Of two merges of one rank the left one is first.
    pub(super) fn can_be_neighbours(&self, mut one: u32, mut two: u32) -> bool {
        let mut until = NONE;
        loop {
            if self.pair(one, two) < until {
                return false;
            }
            if one.max(two) < BYTES {
                return true;
            }
            if one > two {
                until = one;
                one = self.parts.get(one as usize).map_or(0, |parts| parts.1);
            } else {
                until = two + 1;
                two = self.parts.get(two as usize).map_or(0, |parts| parts.0);
            }
        }
    }
}

fn key(one: u32, two: u32) -> u64 {
    u64::from(one) << RANK | u64::from(two)
}

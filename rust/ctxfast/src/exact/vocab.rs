//! A vocabulary as merging needs it: which token two tokens make, and which two a token is made of.
//!
//! It is delivered as two ranks a token (`tools/exact/vocabularies.py` has the format), so that it is built in one pass.
//! A vocabulary from elsewhere (`tiktoken_file`, `tokenizer_json`) is built by the same steps.

use std::hint::black_box;
use std::sync::OnceLock;

use hashbrown::HashSet;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use xxhash_rust::xxh3::xxh3_64;

use super::chars::Chars;
use super::odd::Odd;
use super::sets::{Key, Sets};
use crate::dispatch::prefetch;

/// No token: above all ranks.
pub(super) const NONE: u32 = u32::MAX;

/// Single bytes have the ranks below.
pub(super) const BYTES: u32 = 256;

/// Bytes that a token may have, checked when a vocabulary is built.
pub(super) const LONGEST: usize = 1024;

/// Bits of a rank.
const RANK: u32 = 18;
/// Tokens that a vocabulary may have: their ranks are below.
pub(super) const RANKS: u32 = (1 << RANK) - 1;
const EMPTY: u64 = u64::MAX;

/// Ranks below this are of tokens that most merges make: their pairs are in a table of their own, which stays in a
/// near cache.
const COMMON: u32 = 1 << 15;

/// Words of the filter before the pairs: 256 KiB.
const FILTER: usize = 1 << 15;

/// Words that are put into their table together, so that fetching their places takes the time of one or two.
const TOGETHER: usize = 32;

/// A vocabulary in memory: 4.5 MB for 100,000 tokens, 7 MB for 200,000.
#[derive(Debug)]
pub(super) struct Vocab {
    ranks_of_bytes: Vec<u32>,
    parts: Vec<(u32, u32)>,
    lengths: Vec<u16>,
    /// Bytes of the longest token.
    pub(super) longest: usize,
    /// What two single bytes make, by their ranks.
    bytes: Vec<u32>,
    /// A bit for some pairs, set if one of them makes a token: most do not.
    filter: Vec<u64>,
    common: Pairs,
    rare: Pairs,
    pub(super) chars: Chars,
    /// The bytes of all tokens.
    spelled: Vec<u8>,
    /// Most tokens of up to 15 bytes, once there was a long text.
    words: OnceLock<Sets>,
    /// Tokens that merging does not make of two of lower rank: a piece that is one of them has one token, a part of a
    /// piece has not.
    unmerged: HashSet<Box<[u8]>>,
    /// Whether each number of up to three digits is a token.
    pub(super) has_numbers: bool,
    /// Some vocabularies have tokens that are made of tokens of higher rank.
    pub(super) odd: Option<Odd>,
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
        let mut planes = planes.chunks_exact(tokens.max(1)).map(<[u8]>::iter);
        let mut part = || {
            let (low, middle, high) = (planes.next()?, planes.next()?, planes.next()?);
            let bytes = low.zip(middle).zip(high);
            Some(bytes.map(|((&low, &middle), &high)| u32::from_le_bytes([low, middle, high, 0])))
        };
        let mut builder = Builder::new(bytes.first_chunk()?, tokens)?;
        for (one, two) in part()?.zip(part()?) {
            builder.add(one, two)?;
        }
        Some(builder.vocab)
    }

    /// The token that two tokens make, or [`NONE`].
    #[inline(always)]
    pub(super) fn pair(&self, one: u32, two: u32) -> u32 {
        let (key, hash) = key(one, two);
        if self.filter.get(filter_word(hash)).is_none_or(|word| word >> (hash >> 58) & 1 == 0) {
            return NONE;
        }
        match self.common.get(key, hash) {
            NONE => self.rare.get(key, hash),
            token => token,
        }
    }

    /// Fetches what [`Vocab::pair`] will look at, without waiting.
    #[inline(always)]
    pub(super) fn prefetch_pair(&self, one: u32, two: u32) {
        let (_, hash) = key(one, two);
        self.filter.get(filter_word(hash)).map(prefetch);
        self.common.prefetch(hash);
        self.rare.prefetch(hash);
    }

    /// The same, faster if both are single bytes.
    #[inline]
    pub(super) fn first_pair(&self, one: u32, two: u32) -> u32 {
        if one.max(two) < BYTES {
            return self.bytes.get((one << 8 | two) as usize).copied().unwrap_or(NONE);
        }
        self.pair(one, two)
    }

    /// Makes ready for much text: builds the table of words, some ten milliseconds the first time, and brings the tables
    /// that are used most into a near cache.
    pub(super) fn fetch(&self) {
        self.words.get_or_init(|| self.words());
        black_box(
            self.filter.iter().step_by(8).fold(0, |a, b| a ^ b)
                ^ self.common.0.iter().step_by(8).fold(0, |a, b| a ^ b)
                ^ u64::from(self.bytes.iter().step_by(16).fold(0, |a, b| a ^ b)),
        );
    }

    /// The token of a single byte.
    #[inline]
    pub(super) fn byte(&self, byte: u8) -> u32 {
        self.ranks_of_bytes.get(usize::from(byte)).copied().unwrap_or(NONE)
    }

    /// Fetches what [`Vocab::is_word`] will look at, without waiting.
    #[inline(always)]
    pub(super) fn prefetch_word(&self, key: Key) {
        if let Some(words) = self.words.get() {
            words.prefetch(key);
        }
    }

    /// Whether a piece is known to be one token.
    #[inline]
    pub(super) fn is_word(&self, key: Key) -> bool {
        self.words.get().is_some_and(|words| words.get(key).is_some())
    }

    fn words(&self) -> Sets {
        let mut place = 0;
        let words = self.lengths.iter().filter_map(|&length| {
            let start = place;
            place += usize::from(length);
            Key::of(self.spelled.get(start..place)?)
        });
        let words: Vec<Key> = words.collect();
        let mut table = Sets::new(self.lengths.len().next_power_of_two() / 4);
        // the lowest ranks last, for they are used most, and some words push others out
        for some in words.rchunks(TOGETHER) {
            for &word in some {
                table.prefetch(word);
            }
            for &word in some.iter().rev() {
                table.put(word, 1);
            }
        }
        table
    }

    /// Whether merging makes all its tokens.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.unmerged.is_empty() && self.odd.is_none()
    }

    /// Whether a piece is one token that merging does not make of it.
    #[inline]
    pub(super) fn is_unmerged(&self, piece: &[u8]) -> bool {
        self.unmerged.contains(piece)
    }

    /// Adds a token that merging does not make; whether it is new.
    pub(super) fn add_unmerged(&mut self, token: &[u8]) -> bool {
        self.longest = self.longest.max(token.len());
        self.unmerged.insert(token.into())
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

/// Builds a vocabulary, one token after the other in the order of ranks.
pub(super) struct Builder {
    pub(super) vocab: Vocab,
    /// Where the bytes of each token begin.
    starts: Vec<usize>,
}

impl Builder {
    /// Of the 256 single bytes, which have the lowest ranks, and so many tokens more.
    pub(super) fn new(bytes: &[u8; BYTES as usize], tokens: usize) -> Option<Builder> {
        let mut ranks_of_bytes = vec![NONE; bytes.len()];
        for (rank, &byte) in (0..).zip(bytes) {
            *ranks_of_bytes.get_mut(usize::from(byte))? = rank;
        }
        let mut vocab = Vocab {
            ranks_of_bytes,
            parts: (0..BYTES).map(|rank| (rank, rank)).collect(),
            lengths: vec![1; bytes.len()],
            longest: 1,
            bytes: vec![NONE; 1 << 16],
            filter: vec![0; FILTER],
            common: Pairs::new(COMMON as usize),
            rare: Pairs::new((bytes.len() + tokens).saturating_sub(COMMON as usize)),
            chars: Chars::new(),
            spelled: bytes.to_vec(),
            words: OnceLock::new(),
            unmerged: HashSet::new(),
            has_numbers: false,
            odd: None,
        };
        vocab.parts.reserve_exact(tokens);
        vocab.lengths.reserve_exact(tokens);
        Some(Builder { vocab, starts: (0..bytes.len()).collect() })
    }

    /// The next token, by the ranks of the two that it is made of. Nothing if it is too long, or one too many.
    pub(super) fn add(&mut self, one: u32, two: u32) -> Option<()> {
        let Builder { vocab, starts } = self;
        let rank = u32::try_from(starts.len()).ok().filter(|&rank| rank < RANKS)?;
        let start = vocab.spelled.len();
        for part in [one, two] {
            let from = *starts.get(part as usize)?;
            vocab.spelled.extend_from_within(from..from + vocab.length(part)?);
        }
        let token = vocab.spelled.get(start..)?;
        if token.len() > LONGEST {
            return None;
        }
        starts.push(start);
        vocab.longest = vocab.longest.max(token.len());
        vocab.lengths.push(u16::try_from(token.len()).ok()?);
        vocab.parts.push((one, two));
        vocab.chars.learn(token, rank);
        if one.max(two) < BYTES {
            *vocab.bytes.get_mut((one << 8 | two) as usize)? = rank;
        }
        let (key, hash) = key(one, two);
        *vocab.filter.get_mut(filter_word(hash))? |= 1 << (hash >> 58);
        let pairs = if rank < COMMON { &mut vocab.common } else { &mut vocab.rare };
        pairs.put(key, hash, rank)
    }
}

/// Which pairs make which tokens. Open addressing: the two parts and the token that they make, 18 bits each.
#[derive(Debug)]
struct Pairs(Vec<u64>);

impl Pairs {
    fn new(pairs: usize) -> Pairs {
        Pairs(vec![EMPTY; (pairs + pairs / 4 + 1).next_power_of_two()]) // a place stays empty: it ends a search
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "18 bits are left")]
    fn get(&self, key: u64, hash: u64) -> u32 {
        let mut place = self.place(hash);
        while let Some(&entry) = self.0.get(place) {
            if entry >> RANK == key {
                return entry as u32 & RANKS;
            }
            if entry == EMPTY {
                break;
            }
            place = (place + 1) & (self.0.len() - 1);
        }
        NONE
    }

    #[inline(always)]
    fn place(&self, hash: u64) -> usize {
        place(hash >> 20, self.0.len())
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        self.0.get(self.place(hash)).map(prefetch);
    }

    fn put(&mut self, key: u64, hash: u64, rank: u32) -> Option<()> {
        let mut place = self.place(hash);
        while *self.0.get(place)? != EMPTY {
            place = (place + 1) & (self.0.len() - 1);
        }
        *self.0.get_mut(place)? = key << RANK | u64::from(rank);
        Some(())
    }
}

/// Both ranks in one number, and its hash.
#[inline(always)]
fn key(one: u32, two: u32) -> (u64, u64) {
    let key = u64::from(one) << RANK | u64::from(two);
    let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (key, mixed ^ mixed >> 32)
}

#[inline(always)]
fn filter_word(hash: u64) -> usize {
    place(hash, FILTER)
}

/// The lowest bits of a hash, for a table of this size.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "what is above is not wanted")]
fn place(hash: u64, size: usize) -> usize {
    hash as usize & (size - 1)
}

#[cfg(test)]
impl Vocab {
    /// The tokens of a piece, by the rule as it is written: the pair of lowest rank is merged, the left one of equals.
    pub(super) fn naive(&self, piece: &[u8]) -> Vec<u32> {
        let mut tokens: Vec<u32> = piece.iter().map(|&byte| self.byte(byte)).collect();
        loop {
            let pairs = tokens.windows(2).map(|pair| self.pair(pair[0], pair[1]));
            let Some((rank, place)) = pairs.zip(0..).filter(|&(rank, _)| rank != NONE).min() else {
                return tokens;
            };
            tokens.splice(place..place + 2, [rank]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CL100K, O200K};
    use super::*;

    #[test]
    fn words_are_tokens_and_are_known_after_a_long_text() {
        for source in [&CL100K, &O200K] {
            let vocab = &source.get().unwrap().vocab;
            vocab.fetch();
            let (mut place, mut known, mut words) = (0, 0, 0);
            for (&length, number) in vocab.lengths.iter().zip(0..) {
                let token = &vocab.spelled[place..place + usize::from(length)];
                place += token.len();
                let Some(key) = Key::of(token).filter(|_| number % 17 == 0) else { continue };
                words += 1;
                known += usize::from(vocab.is_word(key));
                assert_eq!(vocab.naive(token).len(), 1);
            }
            assert!(known * 10 > words * 8, "{known} of {words}");
            for piece in ["internationa", "qzx", "", "hello world"] {
                assert!(!vocab.is_word(Key::of(piece.as_bytes()).unwrap()));
            }
        }
    }
}

//! How many tokens a text has, exactly, for encodings whose vocabulary is public: those of OpenAI's models.
//!
//! Only the number is wanted, never the tokens: a text is cut into pieces as the encoding's split pattern says
//! (`scan`), the tokens of a piece are merged (`merge`) or known from the last time (`memo`), and their numbers are
//! added. Vocabularies are in the package (`vocab`); a text is read where it lies, piece by piece, so that counting can
//! stop at a limit.
//!
//! Text is ordinary text: what looks like a special token (`<|endoftext|>`) is counted by its characters. Surrogates are
//! read as UTF-16 is: a pair is one character, one alone counts as U+FFFD.

mod classes;
mod memo;
mod merge;
mod scan;
mod vocab;

use std::sync::{Mutex, MutexGuard, OnceLock};

use self::memo::Memo;
use self::merge::Merger;
use self::scan::{Char, Grammar, piece_end};
use self::vocab::Vocab;
use crate::text::Text;

/// An encoding: a vocabulary and a split pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// GPT-4, GPT-3.5
    Cl100kBase,
    /// GPT-4o and later
    O200kBase,
    /// gpt-oss: as [`Encoding::O200kBase`], but for special tokens
    O200kHarmony,
}

impl Encoding {
    /// All encodings, in the order of their definition.
    pub const ALL: [Encoding; 3] = [Encoding::Cl100kBase, Encoding::O200kBase, Encoding::O200kHarmony];

    /// Its name, such as `o200k_base`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Cl100kBase => "cl100k_base",
            Encoding::O200kBase => "o200k_base",
            Encoding::O200kHarmony => "o200k_harmony",
        }
    }

    /// The encoding of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Encoding> {
        Encoding::ALL.into_iter().find(|encoding| encoding.name() == name)
    }
}

/// A vocabulary as it is in the package, and what was built from it: shared by all counters of a process.
struct Source {
    compressed: &'static [u8],
    /// XXH3 of the packed form
    checksum: u64,
    built: OnceLock<Option<(Vocab, Desks)>>,
}

static CL100K: Source = Source {
    compressed: include_bytes!("../vocab/cl100k_base.z"),
    checksum: 0x6B7C_B54F_578F_EC7F,
    built: OnceLock::new(),
};
static O200K: Source = Source {
    compressed: include_bytes!("../vocab/o200k_base.z"),
    checksum: 0x28D5_0BFD_FD4A_D10E,
    built: OnceLock::new(),
};

impl Source {
    fn get(&'static self) -> Option<(&'static Vocab, &'static Desks)> {
        let built =
            self.built.get_or_init(|| Some((Vocab::new(self.compressed, self.checksum)?, Desks::default())));
        built.as_ref().map(|(vocab, desks)| (vocab, desks))
    }
}

/// Places to count at, each with a memory of its own; who finds them all taken counts without a memory.
type Desks = [Mutex<Option<Box<Desk>>>; 4];

#[derive(Debug)]
struct Desk {
    memo: Memo,
    tools: Tools,
}

/// Buffers to work in.
#[derive(Debug, Default)]
struct Tools {
    merger: Merger,
    bytes: Vec<u8>,
}

/// Bytes of a piece beyond which the buffer is given back.
const KEPT: usize = 1 << 16;

/// Counts the tokens of texts in one encoding.
#[derive(Clone, Copy)]
pub struct Exact {
    encoding: Encoding,
    grammar: Grammar,
    vocab: &'static Vocab,
    desks: &'static Desks,
}

impl std::fmt::Debug for Exact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Exact").field(&self.encoding).finish()
    }
}

impl Exact {
    /// Builds the vocabulary if it is the first that has it: 10 to 30 ms. Nothing if the vocabulary in the package is not
    /// the published one, or what was built from it does not count right.
    #[must_use]
    pub fn new(encoding: Encoding) -> Option<Exact> {
        let (source, grammar) = match encoding {
            Encoding::Cl100kBase => (&CL100K, Grammar::Cl100k),
            Encoding::O200kBase | Encoding::O200kHarmony => (&O200K, Grammar::O200k),
        };
        let (vocab, desks) = source.get()?;
        let exact = Exact { encoding, grammar, vocab, desks };
        (exact.count("hello world".into()) == 2).then_some(exact)
    }

    /// Its encoding.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The number of tokens of a text.
    #[must_use]
    pub fn count(&self, text: Text<'_>) -> u64 {
        self.count_up_to(text, u64::MAX)
    }

    /// The number of tokens if it is at most `limit`; else some number above `limit`, found without reading on.
    #[must_use]
    pub fn count_up_to(&self, text: Text<'_>, limit: u64) -> u64 {
        match text {
            Text::Ucs1(units) => self.walk(units, limit),
            Text::Ucs2(units) => self.walk(units, limit),
            Text::Ucs4(units) => self.walk(units, limit),
            Text::Utf8(text) if text.is_ascii() => self.walk(text.as_bytes(), limit),
            Text::Utf8(text) => self.walk(&text.chars().map(u32::from).collect::<Vec<u32>>(), limit),
        }
    }

    fn walk<T: Unit>(&self, units: &[T], limit: u64) -> u64 {
        // a token has at most so many bytes, and a unit has a byte or more
        if (units.len() / vocab::LONGEST) as u64 > limit {
            return limit + 1;
        }
        let mut desk = self.desk();
        let mut own = None;
        let (mut memo, tools) = match desk.as_deref_mut() {
            Some(Some(desk)) => (Some(&mut desk.memo), &mut desk.tools),
            _ => (None, own.get_or_insert_with(Tools::default)),
        };
        let mut tokens = 0;
        let mut start = 0;
        while start < units.len() && tokens <= limit {
            let end = piece_end(self.grammar, units, start);
            if let Some(memo) = &memo
                && let Some(chunk) = T::ascii(units, start, end - start)
                && let Some(known) = memo.known(chunk, end - start)
            {
                tokens += u64::from(known);
                start = end;
                continue;
            }
            let piece = units.get(start..end).unwrap_or_default();
            let Tools { merger, bytes } = tools;
            let piece = T::utf8(piece, bytes);
            let mut count = || merger.count(self.vocab, piece);
            tokens += match &mut memo {
                Some(memo) => memo.of(piece, count),
                None => count(),
            } as u64;
            start = end;
        }
        if tools.bytes.capacity() > KEPT {
            tools.bytes = Vec::new();
        }
        tokens
    }

    /// A desk that nobody else is at.
    fn desk(&self) -> Option<MutexGuard<'static, Option<Box<Desk>>>> {
        let mut desk = self.desks.iter().find_map(|desk| desk.try_lock().ok())?;
        desk.get_or_insert_with(|| Box::new(Desk { memo: Memo::new(), tools: Tools::default() }));
        Some(desk)
    }
}

/// A unit of a text in memory.
trait Unit: Copy + Into<u32> {
    /// 16 bytes of which the first are a piece in ASCII, if it can be had at once.
    #[inline]
    fn ascii(units: &[Self], start: usize, length: usize) -> Option<[u8; 16]> {
        if length > 15 {
            return None;
        }
        let chunk: &[Self; 16] = units.get(start..)?.first_chunk()?;
        let all = chunk.iter().take(length).fold(0, |all: u32, &unit| all | unit.into());
        // what is behind the piece does not matter
        (all < 128).then(|| chunk.map(|unit| unit.into().to_le_bytes()[0]))
    }

    /// The UTF-8 of a piece, in `buffer` if it does not lie there already.
    #[inline]
    fn utf8<'a>(piece: &'a [Self], buffer: &'a mut Vec<u8>) -> &'a [u8] {
        encode(piece, buffer);
        buffer
    }
}

impl Unit for u8 {
    #[inline]
    fn ascii(units: &[u8], start: usize, length: usize) -> Option<[u8; 16]> {
        if length > 15 {
            return None;
        }
        let chunk = *units.get(start..)?.first_chunk()?;
        let others = u128::from_le_bytes(chunk) & 0x8080_8080_8080_8080_8080_8080_8080_8080;
        (others & ((1 << (8 * length)) - 1) == 0).then_some(chunk)
    }

    #[inline]
    fn utf8<'a>(piece: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
        if piece.is_ascii() {
            return piece;
        }
        encode(piece, buffer);
        buffer
    }
}

impl Unit for u16 {}
impl Unit for u32 {}

fn encode<T: Copy + Into<u32>>(piece: &[T], buffer: &mut Vec<u8>) {
    buffer.clear();
    let mut place = 0;
    while let Some(char) = Char::at(piece, place) {
        let char_of = char::from_u32(char.point).unwrap_or(char::REPLACEMENT_CHARACTER);
        buffer.extend_from_slice(char_of.encode_utf8(&mut [0; 4]).as_bytes());
        place += char.units;
    }
}

#[cfg(test)]
mod tests {
    use miniz_oxide::inflate::decompress_to_vec_zlib;
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    fn exact(name: &str) -> Exact {
        Exact::new(Encoding::named(name).unwrap()).unwrap()
    }

    #[test]
    fn the_vocabularies_are_the_published_ones() {
        // that the files are those of this checksum; `tests/test_exact.py` takes the published hash of what is in them
        for source in [&CL100K, &O200K] {
            let packed = decompress_to_vec_zlib(source.compressed).unwrap();
            assert_eq!(source.checksum, xxh3_64(&packed), "{:#X}", xxh3_64(&packed));
        }
    }

    #[test]
    fn a_damaged_vocabulary_is_none() {
        let mut compressed = CL100K.compressed.to_vec();
        compressed[200_000] ^= 1;
        assert!(Vocab::new(&compressed, CL100K.checksum).is_none());
        assert!(Vocab::new(CL100K.compressed, O200K.checksum).is_none());
        assert!(Vocab::new(&[], 0).is_none());
    }

    #[test]
    fn texts_of_every_storage_are_counted_alike() {
        let o200k = exact("o200k_base");
        for (text, tokens) in
            [("", 0), ("hello world", 2), ("<|endoftext|>", 7), ("internationa", 3), ("international", 1)]
        {
            let wide: Vec<u32> = text.chars().map(u32::from).collect();
            let middle: Vec<u16> = text.encode_utf16().collect();
            assert_eq!(o200k.count(text.into()), tokens, "{text}");
            assert_eq!(o200k.count(Text::Ucs1(text.as_bytes())), tokens);
            assert_eq!(o200k.count(Text::Ucs2(&middle)), tokens);
            assert_eq!(o200k.count(Text::Ucs4(&wide)), tokens);
        }
        let latin: Vec<u8> = (0..=255).collect();
        let same: String = latin.iter().map(|&byte| char::from(byte)).collect();
        assert_eq!(o200k.count(Text::Ucs1(&latin)), o200k.count(same.as_str().into()));
        let pair = [0xD83D, 0xDC4D];
        assert_eq!(o200k.count(Text::Ucs2(&pair)), o200k.count("👍".into()));
        assert_eq!(o200k.count(Text::Ucs2(&pair[..1])), o200k.count("\u{FFFD}".into()));
    }

    #[test]
    fn harmony_shares_the_vocabulary() {
        assert!(std::ptr::eq(exact("o200k_base").vocab, exact("o200k_harmony").vocab));
        assert!(Encoding::named("o200k").is_none());
    }

    #[test]
    fn counting_up_to_a_limit_is_exact_below_it_and_more_above() {
        let text = "Some words, 12345 numbers; and\n\n  a few ſigns!\n".repeat(20);
        for encoding in Encoding::ALL {
            let exact = Exact::new(encoding).unwrap();
            let all = exact.count(text.as_str().into());
            for limit in 0..all + 3 {
                let counted = exact.count_up_to(text.as_str().into(), limit);
                assert!(if limit < all { counted > limit } else { counted == all }, "{limit}: {counted}");
            }
            assert_eq!(exact.count_up_to(Text::Ucs1(&vec![b'a'; 100_000]), 100), 101);
        }
    }

    #[test]
    fn counters_beyond_the_desks_count_the_same() {
        let o200k = exact("o200k_base");
        let text = Text::from("The same words, counted with and without a memory.");
        let expected = o200k.count(text);
        let taken: Vec<_> = o200k.desks.iter().map(|desk| desk.lock()).collect();
        assert!(o200k.desk().is_none());
        assert_eq!(o200k.count(text), expected);
        drop(taken);
        assert!(o200k.desk().is_some());
    }
}

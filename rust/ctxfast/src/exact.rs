//! How many tokens a text has, exactly, for encodings whose vocabulary is public: those of OpenAI's models.
//!
//! Only the number is wanted, never the tokens: a text is read as UTF-8, block by block (`read`), and cut into pieces as
//! the encoding's split pattern says (`scan`, and `wide` for many at once); the tokens of a piece are merged (`merge`,
//! `chars`) or known from the last time (`memo`), and their numbers are added (`pieces`). Vocabularies are in the
//! package (`vocab`). Counting can stop at a limit.
//!
//! Text is ordinary text: what looks like a special token (`<|endoftext|>`) is counted by its characters. Surrogates are
//! read as UTF-16 is: a pair is one character, one alone counts as U+FFFD.

#![expect(clippy::inline_always, reason = "what is called in a kernel has to be compiled with it")]

mod chars;
mod classes;
mod memo;
mod merge;
mod pieces;
mod read;
mod scan;
mod sets;
mod vocab;
mod wide;

use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, OnceLock};

use self::memo::Memo;
use self::merge::Merger;
use self::pieces::Pieces;
use self::read::read;
use self::scan::{END_BYTE, Grammar, PADDING, Padded, last_border};
use self::vocab::Vocab;
use crate::dispatch::best;
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

    fn source(self) -> (&'static Source, Grammar) {
        match self {
            Encoding::Cl100kBase => (&CL100K, Grammar::CL100K),
            Encoding::O200kBase | Encoding::O200kHarmony => (&O200K, Grammar::O200K),
        }
    }
}

/// A vocabulary as it is in the package, and what was built from it: shared by all counters of a process.
struct Source {
    compressed: &'static [u8],
    /// XXH3 of the packed form
    checksum: u64,
    built: OnceLock<Option<(Vocab, Desks)>>,
    /// whether what was built counts right
    sound: OnceLock<bool>,
}

static CL100K: Source = Source {
    compressed: include_bytes!("../vocab/cl100k_base.z"),
    checksum: 0x6B7C_B54F_578F_EC7F,
    built: OnceLock::new(),
    sound: OnceLock::new(),
};
static O200K: Source = Source {
    compressed: include_bytes!("../vocab/o200k_base.z"),
    checksum: 0x28D5_0BFD_FD4A_D10E,
    built: OnceLock::new(),
    sound: OnceLock::new(),
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

/// Units of a text that are read at a time: few enough to stop early, and to stay in the nearest cache.
const BLOCK: usize = 1 << 14;

/// Units of a text for which the tables, some two megabytes, are read in order first: other work has pushed them out of
/// the caches, and a long text would fetch them line by line in no order.
const LONG: usize = 1 << 17;

/// Bytes beyond which the buffer is given back.
const KEPT: usize = 8 * BLOCK;

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
        let (source, grammar) = encoding.source();
        let (vocab, desks) = source.get()?;
        let exact = Exact { encoding, grammar, vocab, desks };
        source.sound.get_or_init(|| exact.count("hello world".into()) == 2).then_some(exact)
    }

    /// Whether `new` has nothing to build.
    #[must_use]
    pub fn is_built(encoding: Encoding) -> bool {
        encoding.source().0.sound.get().is_some()
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
        let units = match text {
            Text::Ucs1(units) => units.len(),
            Text::Ucs2(units) => units.len(),
            Text::Ucs4(units) => units.len(),
            Text::Utf8(text) => text.len(),
        };
        // a token has at most so many bytes, and a unit has a byte or more
        if (units / vocab::LONGEST) as u64 > limit {
            return limit + 1;
        }
        let mut desk = self.desk();
        let mut own = None;
        let (mut memo, Tools { merger, bytes }) = match desk.as_deref_mut() {
            Some(Some(desk)) => (Some(&mut desk.memo), &mut desk.tools),
            _ => (None, own.get_or_insert_with(Tools::default)),
        };
        bytes.clear();
        if units >= LONG {
            black_box(self.vocab.fetch() ^ memo.as_ref().map_or(0, |memo| memo.fetch()));
        }
        let (mut tokens, mut place, mut block) = (0, 0, BLOCK);
        while place < units && tokens <= limit {
            place = read(text, place..place + block, bytes);
            let size = bytes.len();
            bytes.resize(size + PADDING, END_BYTE);
            let text = Padded { bytes, end: size };
            let Some(end) = (if place < units { last_border(text) } else { Some(size) }) else {
                bytes.truncate(size);
                block = 2 * size; // so that a text without a border is not looked through again and again
                continue;
            };
            let behind = bytes.get_mut(end).map(|behind| std::mem::replace(behind, END_BYTE));
            tokens += best(Pieces {
                grammar: self.grammar,
                vocab: self.vocab,
                text: Padded { bytes, end },
                limit: limit - tokens,
                merger,
                memo: memo.as_deref_mut(),
            });
            if let (Some(place), Some(behind)) = (bytes.get_mut(end), behind) {
                *place = behind;
            }
            bytes.truncate(size);
            bytes.drain(..end);
        }
        if bytes.capacity() > KEPT {
            *bytes = Vec::new();
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
        assert!(Exact::is_built(Encoding::O200kBase) && Exact::is_built(Encoding::O200kHarmony));
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

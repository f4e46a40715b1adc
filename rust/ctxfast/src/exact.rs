//! How many tokens a text has, exactly, for encodings whose vocabulary is public: those of OpenAI's models, and others
//! whose vocabulary is in a file.
//!
//! Only the number is wanted, never the tokens: a text is read as UTF-8, block by block (`read`), and cut into pieces as
//! the encoding's split pattern says (`scan`, and `wide` for many at once); the tokens of a piece are merged (`merge`,
//! `chars`) or known from the last time (`memo`), and their numbers are added (`pieces`). Vocabularies are in the
//! package (`vocab`), or are read from files (`tiktoken_file`, `tokenizer_json`) with one of the known split patterns
//! (`patterns`). Counting can stop at a limit.
//!
//! Text is ordinary text: what looks like a special token (`<|endoftext|>`) is counted by its characters, unless special
//! tokens are asked for (`special`, `prepare`). Surrogates are read as UTF-16 is: a pair is one character, one alone
//! counts as U+FFFD.

#![expect(clippy::inline_always, reason = "what is called in a kernel has to be compiled with it")]

mod chars;
mod classes;
mod memo;
mod merge;
mod odd;
mod patterns;
mod pieces;
mod prepare;
mod read;
mod scan;
mod sets;
mod special;
mod tiktoken_file;
mod tokenizer_json;
mod vocab;
mod wide;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::hint::black_box;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use xxhash_rust::xxh3::xxh3_128;

use self::memo::Memo;
use self::merge::Merger;
pub use self::patterns::Split;
use self::pieces::Pieces;
use self::prepare::Prepare;
use self::read::read;
use self::scan::{END_BYTE, Grammar, PADDING, Padded, last_border};
use self::special::Special;
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

    /// Its special tokens.
    #[must_use]
    pub fn special_tokens(self) -> Vec<String> {
        let named: &[&str] = match self {
            Encoding::Cl100kBase => &["endoftext", "fim_prefix", "fim_middle", "fim_suffix", "endofprompt"],
            Encoding::O200kBase => &["endoftext", "endofprompt"],
            Encoding::O200kHarmony => &[
                "endoftext",
                "endofprompt",
                "startoftext",
                "return",
                "constrain",
                "channel",
                "start",
                "end",
                "message",
                "call",
            ],
        };
        let mut tokens: Vec<String> = named.iter().map(|name| format!("<|{name}|>")).collect();
        if self == Encoding::O200kHarmony {
            let named = [200_002, 200_003, 200_005, 200_006, 200_007, 200_008, 200_012];
            let reserved = (200_000..201_088).filter(|rank| !named.contains(rank));
            tokens.extend(reserved.map(|rank| format!("<|reserved_{rank}|>")));
        }
        tokens
    }
}

/// Why a file cannot be counted with: where in it, what was expected and what came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError(String);

impl FileError {
    /// The problem is in this part of the file.
    fn at(self, place: &str) -> FileError {
        // `model` and `vocab: ...` are `model.vocab: ...`
        let joint = match self.0.split_once(": ") {
            Some((inner, _))
                if inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.[]".contains(&byte)) =>
            {
                "."
            }
            _ => ": ",
        };
        FileError(format!("{place}{joint}{}", self.0))
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FileError {}

/// A vocabulary as it is in the package, and what was built from it: shared by all counters of a process.
struct Source {
    compressed: &'static [u8],
    /// XXH3 of the packed form
    checksum: u64,
    built: OnceLock<Option<Arc<Built>>>,
}

/// A vocabulary, and places to count at.
#[derive(Debug)]
struct Built {
    vocab: Vocab,
    desks: Desks,
}

impl Built {
    fn new(vocab: Vocab) -> Arc<Built> {
        Arc::new(Built { vocab, desks: Desks::default() })
    }
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
    fn get(&self) -> Option<Arc<Built>> {
        self.built.get_or_init(|| Some(Built::new(Vocab::new(self.compressed, self.checksum)?))).clone()
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

/// Counts the tokens of texts in one encoding. Clones share everything.
#[derive(Clone)]
pub struct Exact {
    origin: Origin,
    grammar: Grammar,
    built: Arc<Built>,
    /// Nothing is done to most texts.
    prepare: Option<Arc<Prepare>>,
}

/// Where a vocabulary is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Origin {
    Encoding(Encoding),
    /// The checksum of a file.
    File(u128),
}

impl fmt::Debug for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exact").field(&self.origin).finish_non_exhaustive()
    }
}

/// Counters are equal that have the same encoding, or files with the same bytes, and the same options.
impl PartialEq for Exact {
    fn eq(&self, other: &Exact) -> bool {
        (self.origin, self.grammar, &self.prepare) == (other.origin, other.grammar, &other.prepare)
    }
}

impl Eq for Exact {}

impl Hash for Exact {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.origin, self.grammar).hash(state);
    }
}

impl Exact {
    /// Builds the vocabulary if it is the first that has it: 10 to 30 ms. Nothing if the vocabulary in the package is not
    /// the published one, or what was built from it does not count right.
    #[must_use]
    pub fn new(encoding: Encoding) -> Option<Exact> {
        let (source, grammar) = match encoding {
            Encoding::Cl100kBase => (&CL100K, Grammar::CL100K),
            Encoding::O200kBase | Encoding::O200kHarmony => (&O200K, Grammar::O200K),
        };
        let exact =
            Exact { origin: Origin::Encoding(encoding), grammar, built: source.get()?, prepare: None };
        (exact.count("hello world".into()) == 2).then_some(exact)
    }

    /// Builds the vocabulary of a `.tiktoken` file: what tiktoken counts with these ranks and this pattern.
    ///
    /// # Errors
    ///
    /// A line that is no token and its rank, a gap between ranks, a token that is there twice, or one that is made of
    /// tokens of higher rank.
    pub fn from_tiktoken(file: &[u8], split: Split) -> Result<Exact, FileError> {
        let built = Built::new(tiktoken_file::vocabulary(file)?);
        Ok(Exact { origin: Origin::File(xxh3_128(file)), grammar: split.grammar(), built, prepare: None })
    }

    /// Builds the vocabulary of a `tokenizer.json` of Hugging Face's tokenizers, if it is byte-level BPE with one of the
    /// known patterns, or of Mistral's `tekken.json`. With `special`, the tokens that the file adds count as 1 each.
    ///
    /// # Errors
    ///
    /// What is no such file, and everything in it that is not known here.
    pub fn from_tokenizer_json(file: &[u8], special: bool) -> Result<Exact, FileError> {
        let tokenizer = tokenizer_json::read(file, special)?;
        let nfc = tokenizer.nfc;
        let special = |after| {
            let tokens = tokenizer.special.iter().filter(move |(_, normalized)| *normalized == after);
            Special::new(tokens.map(|(token, _)| token.as_str()))
        };
        let special_after = if nfc { special(true).normal() } else { special(true) };
        let prepare = Prepare { special: special(false), nfc, special_after };
        Ok(Exact {
            origin: Origin::File(xxh3_128(file)),
            grammar: tokenizer.split.grammar(),
            built: Built::new(tokenizer.vocab),
            prepare: (prepare != Prepare::default()).then(|| Arc::new(prepare)),
        })
    }

    /// The same, but each of these special tokens that is in a text counts as 1: the leftmost first, of those that begin
    /// at the same place the longest. The texts between are counted by themselves.
    #[must_use]
    pub fn with_special_tokens<S: AsRef<str>>(self, tokens: &[S]) -> Exact {
        let special = Special::new(tokens.iter().map(AsRef::as_ref));
        let prepare = Prepare { special, ..Prepare::default() };
        Exact { prepare: (prepare != Prepare::default()).then(|| Arc::new(prepare)), ..self }
    }

    /// The number of tokens of a text.
    #[must_use]
    pub fn count(&self, text: Text<'_>) -> u64 {
        self.count_up_to(text, u64::MAX)
    }

    /// The number of tokens if it is at most `limit`; else some number above `limit`, found without reading on.
    #[must_use]
    pub fn count_up_to(&self, text: Text<'_>, limit: u64) -> u64 {
        let Some(prepare) = &self.prepare else { return self.count_prepared(text, limit) };
        if (units(text) / prepare.longest(self.built.vocab.longest)) as u64 > limit {
            return limit + 1;
        }
        prepare.count(text, limit, |text, limit| self.count_prepared(text, limit))
    }

    fn count_prepared(&self, text: Text<'_>, limit: u64) -> u64 {
        let units = units(text);
        let Built { vocab, .. } = &*self.built;
        // a token has at most so many bytes, and a unit has a byte or more
        if (units / vocab.longest) as u64 > limit {
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
            black_box(vocab.fetch() ^ memo.as_ref().map_or(0, |memo| memo.fetch()));
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
                vocab,
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
    fn desk(&self) -> Option<MutexGuard<'_, Option<Box<Desk>>>> {
        let mut desk = self.built.desks.iter().find_map(|desk| desk.try_lock().ok())?;
        desk.get_or_insert_with(|| Box::new(Desk { memo: Memo::new(), tools: Tools::default() }));
        Some(desk)
    }
}

/// Units of a text: bytes, of UTF-8.
fn units(text: Text<'_>) -> usize {
    match text {
        Text::Ucs1(units) => units.len(),
        Text::Ucs2(units) => units.len(),
        Text::Ucs4(units) => units.len(),
        Text::Utf8(text) => text.len(),
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
        assert!(Arc::ptr_eq(&exact("o200k_base").built, &exact("o200k_harmony").built));
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
        let taken: Vec<_> = o200k.built.desks.iter().map(|desk| desk.lock()).collect();
        assert!(o200k.desk().is_none());
        assert_eq!(o200k.count(text), expected);
        drop(taken);
        assert!(o200k.desk().is_some());
    }
}

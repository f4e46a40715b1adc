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
mod running;
mod scan;
mod sets;
mod special;
mod tiktoken_file;
mod tokenizer_json;
mod vocab;
mod wide;
mod worker;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use xxhash_rust::xxh3::xxh3_128;

use self::memo::Memo;
use self::merge::Merger;
pub use self::patterns::Split;
use self::prepare::Prepare;
use self::read::units;
pub use self::running::Running;
use self::scan::Grammar;
use self::special::Special;
use self::vocab::Vocab;
use self::worker::{Tools, Worker};
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
    built: OnceLock<Option<Built>>,
    /// whether what was built counts right
    sound: OnceLock<bool>,
}

/// A vocabulary, and places to count at.
#[derive(Debug)]
struct Built {
    vocab: Vocab,
    desks: Desks,
}

impl Built {
    fn new(mut vocab: Vocab) -> Built {
        let mut merger = Merger::default();
        let mut is_token = |number: String| merger.tokens(&vocab, number.as_bytes()).len() == 1;
        let are_tokens = |digits: u32| {
            let width = digits as usize;
            (0..10_u32.pow(digits)).all(|number| is_token(format!("{number:0width$}")))
        };
        vocab.has_numbers = vocab.odd.is_none() && (1..=3).all(are_tokens);
        Built { vocab, desks: Desks::default() }
    }
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
    fn get(&self) -> Option<&Built> {
        let built = || Some(Built::new(Vocab::new(self.compressed, self.checksum)?));
        self.built.get_or_init(built).as_ref()
    }
}

/// A vocabulary from the package, which is built when it is used first, or another one.
#[derive(Clone)]
enum Vocabulary {
    Packaged(&'static Source),
    Own(Arc<Built>),
}

impl Vocabulary {
    fn get(&self) -> Option<&Built> {
        match self {
            Vocabulary::Packaged(source) => source.get(),
            Vocabulary::Own(built) => Some(built),
        }
    }
}

/// Places to count at, each with a memory of its own; who finds them all taken counts without a memory.
type Desks = [Mutex<Option<Box<Desk>>>; 4];

#[derive(Debug)]
struct Desk {
    memo: Memo,
    tools: Tools,
}

/// Units of a text for which the tables, some two megabytes, are read in order first: other work has pushed them out of
/// the caches, and a long text would fetch them line by line in no order.
const LONG: usize = 1 << 17;

/// Counts the tokens of texts in one encoding. Clones share everything.
#[derive(Clone)]
pub struct Exact {
    origin: Origin,
    grammar: Grammar,
    vocabulary: Vocabulary,
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
    /// A counter whose vocabulary is built: in 10 to 30 ms if it is the first. Nothing if the vocabulary in the package is
    /// not the published one, or what was built from it does not count right.
    #[must_use]
    pub fn new(encoding: Encoding) -> Option<Exact> {
        let exact = Exact::of(encoding);
        exact.build().then_some(exact)
    }

    /// The same, but the vocabulary is built by the first count, if [`Exact::build`] was not asked before. With a damaged
    /// vocabulary all counts are 0.
    #[must_use]
    pub fn of(encoding: Encoding) -> Exact {
        let (source, grammar) = encoding.source();
        let origin = Origin::Encoding(encoding);
        Exact { origin, grammar, vocabulary: Vocabulary::Packaged(source), prepare: None }
    }

    /// The name of its encoding, or that it is from a file.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.origin {
            Origin::Encoding(encoding) => encoding.name(),
            Origin::File(_) => "a file",
        }
    }

    /// Builds the vocabulary; whether it is sound.
    #[must_use]
    pub fn build(&self) -> bool {
        match &self.vocabulary {
            Vocabulary::Packaged(source) => {
                *source.sound.get_or_init(|| self.count_plain("hello world".into(), u64::MAX) == 2)
            }
            Vocabulary::Own(_) => true,
        }
    }

    /// Whether there is nothing to build, and the vocabulary is sound.
    #[must_use]
    pub fn is_built(&self) -> bool {
        match &self.vocabulary {
            Vocabulary::Packaged(source) => source.sound.get().is_some_and(|&sound| sound),
            Vocabulary::Own(_) => true,
        }
    }

    /// Whether the tokens of a text are those of its pieces, made by merging alone: not if special tokens are counted, or
    /// texts are brought into a normal form, or there are tokens that merging does not make.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        self.prepare.is_none()
            && match &self.vocabulary {
                Vocabulary::Packaged(_) => true,
                Vocabulary::Own(built) => built.vocab.is_plain(),
            }
    }

    /// Builds the vocabulary of a `.tiktoken` file: what tiktoken counts with these ranks and this pattern.
    ///
    /// # Errors
    ///
    /// A line that is no token and its rank, a gap between ranks, or a token that is there twice.
    pub fn from_tiktoken(file: &[u8], split: Split) -> Result<Exact, FileError> {
        let vocabulary = Vocabulary::Own(Arc::new(Built::new(tiktoken_file::vocabulary(file)?)));
        Ok(Exact {
            origin: Origin::File(xxh3_128(file)),
            grammar: split.grammar(),
            vocabulary,
            prepare: None,
        })
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
            vocabulary: Vocabulary::Own(Arc::new(Built::new(tokenizer.vocab))),
            prepare: prepare.unless_idle(),
        })
    }

    /// The same, but each of these special tokens that is in a text counts as 1: the leftmost first, of those that begin
    /// at the same place the longest. The texts between are counted by themselves.
    #[must_use]
    pub fn with_special_tokens<S: AsRef<str>>(self, tokens: &[S]) -> Exact {
        let special = Special::new(tokens.iter().map(AsRef::as_ref));
        let prepare = Prepare { special, ..Prepare::default() };
        Exact { prepare: prepare.unless_idle(), ..self }
    }

    /// The number of tokens of a text.
    #[must_use]
    pub fn count(&self, text: Text<'_>) -> u64 {
        self.count_up_to(text, u64::MAX)
    }

    /// The number of tokens if it is at most `limit`; else some number above `limit`, found without reading on.
    #[must_use]
    pub fn count_up_to(&self, text: Text<'_>, limit: u64) -> u64 {
        let Some(prepare) = &self.prepare else { return self.count_plain(text, limit) };
        let longest = self.vocabulary.get().map_or(1, |built| prepare.longest(built.vocab.longest));
        if (units(text) / longest) as u64 > limit {
            return limit + 1;
        }
        prepare.count(text, limit, |text, limit| self.count_plain(text, limit))
    }

    /// The same, of text as it is.
    fn count_plain(&self, text: Text<'_>, limit: u64) -> u64 {
        self.work(|worker| {
            if units(text) >= LONG {
                worker.vocab.fetch();
                if let Some(memo) = &worker.memo {
                    memo.fetch();
                    if !matches!(text, Text::Ucs1(_)) {
                        memo.fetch_long(); // words beyond ASCII have more bytes
                    }
                }
            }
            worker.count_up_to(text, limit)
        })
    }

    /// The end of the longest prefix that has at most `limit` tokens: in characters, in bytes for [`Text::Utf8`].
    ///
    /// It has as many whole tokens of the text as fit and make whole characters; fewer where cutting there makes more of
    /// them. Nothing behind it is read but some kilobytes. Only for counters of which [`Exact::adds_up`] says so.
    #[must_use]
    pub fn head(&self, text: Text<'_>, limit: u64) -> usize {
        self.work(|worker| worker.head(text, limit))
    }

    /// The start of the longest suffix that has at most `limit` tokens, as in [`Exact::head`]. It is read from the end:
    /// how much is before it does not matter.
    #[must_use]
    pub fn tail(&self, text: Text<'_>, limit: u64) -> usize {
        self.work(|worker| worker.tail(text, limit))
    }

    /// Has work done by one who has a memory, if there is one.
    fn work<T: Default>(&self, work: impl FnOnce(&mut Worker<'_>) -> T) -> T {
        let Some(Built { vocab, desks }) = self.vocabulary.get() else { return T::default() };
        let grammar = self.grammar;
        let mut desk = free(desks);
        match desk.as_deref_mut() {
            Some(Some(desk)) => {
                let Desk { memo, tools } = &mut **desk;
                work(&mut Worker { grammar, vocab, memo: Some(memo), tools })
            }
            _ => work(&mut Worker { grammar, vocab, memo: None, tools: &mut Tools::default() }),
        }
    }
}

/// A desk that nobody else is at.
fn free(desks: &Desks) -> Option<MutexGuard<'_, Option<Box<Desk>>>> {
    let mut desk = desks.iter().find_map(|desk| desk.try_lock().ok())?;
    desk.get_or_insert_with(|| Box::new(Desk { memo: Memo::new(), tools: Tools::default() }));
    Some(desk)
}

#[cfg(test)]
mod tests {
    use miniz_oxide::inflate::decompress_to_vec_zlib;
    use proptest::prelude::*;
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
        let [one, two] = ["o200k_base", "o200k_harmony"].map(exact);
        assert!(std::ptr::eq(one.vocabulary.get().unwrap(), two.vocabulary.get().unwrap()));
        assert!(Encoding::named("o200k").is_none());
        assert!(one.is_built() && two.is_built());
        assert!(
            [one, two]
                .iter()
                .all(|exact| exact.adds_up() && exact.vocabulary.get().unwrap().vocab.is_plain())
        );
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn heads_and_tails_fit_and_with_a_piece_more_they_do_not(
            text in "[a-zA-Z '\n.]{0,200}|([ก-๙]{1,9}|[a-z]{1,9}| |\n){0,40}|\\PC{0,40}|[A ก'é/\n一二]{0,60}|('ll|'s|a|  |\n){0,60}",
            limit in 0..60_u64,
            times in prop::sample::select(&[1, 1, 30][..]),
        ) {
            let text = text.repeat(times);
            let wide: Vec<u32> = text.chars().map(u32::from).collect();
            for encoding in Encoding::ALL {
                let exact = Exact::new(encoding).unwrap();
                let all = exact.count(text.as_str().into());
                let (head, tail) = (exact.head(text.as_str().into(), limit), exact.tail(text.as_str().into(), limit));
                prop_assert!(exact.count(text[..head].into()) <= limit, "{:?}", &text[..head]);
                prop_assert!(exact.count(text[tail..].into()) <= limit, "{:?}", &text[tail..]);
                if all <= limit {
                    prop_assert_eq!((head, tail), (text.len(), 0));
                }
                // as far as there are borders: with the text up to the next one it is too much
                let mut starts = Vec::new();
                scan::padded(&text, |padded| {
                    let mut place = 0;
                    while let Some(border) = scan::first_border(padded, place) {
                        starts.push(border);
                        place = border;
                    }
                });
                if let Some(&next) = starts.iter().find(|&&border| border > head) {
                    prop_assert!(exact.count(text[..next].into()) > limit);
                }
                if let Some(&before) = starts.iter().rfind(|&&border| border < tail) {
                    prop_assert!(exact.count(text[before..].into()) > limit);
                }
                let chars = Text::Ucs4(&wide);
                prop_assert_eq!(exact.head(chars, limit), text[..head].chars().count());
                prop_assert_eq!(exact.tail(chars, limit), text[..tail].chars().count());
            }
        }
    }

    #[test]
    fn a_head_is_cut_between_tokens_at_characters() {
        let o200k = exact("o200k_base");
        let head = |text: &str, limit| text[..o200k.head(text.into(), limit)].to_owned();
        let tail = |text: &str, limit| text[o200k.tail(text.into(), limit)..].to_owned();
        assert_eq!(head("hello 🧠", 2), "hello ");
        assert_eq!(head("hello world", 1), "hello");
        assert_eq!(head("internationally", 1), "international");
        assert_eq!(tail("hello world", 1), " world");
        assert_eq!((head("", 3), tail("", 3), head("a", 0), tail("a", 0)), Default::default());
        assert_eq!((head("a b", u64::MAX).len(), tail("a b", u64::MAX).len()), (3, 3));
        let long = "-".repeat(100_000);
        for limit in [1, 10, 1_000] {
            assert!(o200k.count(head(&long, limit).as_str().into()) <= limit);
            assert!(o200k.count(tail(&long, limit).as_str().into()) <= limit);
            assert!(head(&long, limit).len() as u64 > 10 * limit);
        }
        let pair = [0x61, 0xD83D, 0xDC4D, 0xDC4D];
        for limit in 0..6 {
            let (head, tail) = (o200k.head(Text::Ucs2(&pair), limit), o200k.tail(Text::Ucs2(&pair), limit));
            assert!(head != 2 && tail != 2, "inside of the pair");
            assert!(
                o200k.count(Text::Ucs2(&pair[..head])) <= limit
                    && o200k.count(Text::Ucs2(&pair[tail..])) <= limit
            );
        }
    }

    #[test]
    fn numbers_are_tokens_of_openai_s_vocabularies_and_not_of_all() {
        let file = tiktoken_file::tests::file(&["12", "123"]);
        let own = Exact::from_tiktoken(file.as_bytes(), Split::Cl100k).unwrap();
        for (exact, tokens) in [(own, 2 + 1 + 3), (exact("o200k_base"), 3), (exact("cl100k_base"), 3)] {
            assert_eq!(exact.vocabulary.get().unwrap().vocab.has_numbers, tokens == 3);
            assert_eq!(exact.count("124123987".into()), tokens);
        }
    }

    #[test]
    fn counters_beyond_the_desks_count_the_same() {
        let o200k = exact("o200k_base");
        let text = Text::from("The same words, counted with and without a memory.");
        let expected = o200k.count(text);
        let desks = &o200k.vocabulary.get().unwrap().desks;
        let taken: Vec<_> = desks.iter().map(|desk| desk.lock()).collect();
        assert!(free(desks).is_none());
        assert_eq!(o200k.count(text), expected);
        drop(taken);
        assert!(free(desks).is_some());
    }
}

//! How many tokens the pieces of a text have together: the loop that everything here is for.

use super::memo::Memo;
use super::merge::{Merger, TURNS};
use super::scan::{Grammar, Padded, piece_end};
use super::sets::Key;
use super::vocab::Vocab;
use super::wide::{self, Starts};
use crate::dispatch::{Kernel, Vectors};

/// Counts pieces from the start of a text.
pub(super) struct Pieces<'a> {
    pub(super) grammar: Grammar,
    pub(super) vocab: &'a Vocab,
    /// The text, up to a border or to its end.
    pub(super) text: Padded<'a>,
    /// Counting ends soon after more tokens than this.
    pub(super) limit: u64,
    pub(super) merger: &'a mut Merger,
    pub(super) memo: Option<&'a mut Memo>,
}

impl Kernel for Pieces<'_> {
    /// Tokens.
    type Output = u64;

    #[inline(always)]
    fn run(self, vectors: impl Vectors) -> u64 {
        let Pieces { grammar, vocab, text, limit, .. } = self;
        let padded = text.bytes;
        let mut count = Count {
            vocab,
            padded,
            merger: self.merger,
            memo: self.memo,
            tokens: 0,
            new: [New::default(); TURNS],
            size: 0,
        };
        let mut place = 0;
        while place < text.end && count.tokens <= limit {
            // pieces of a window; if none of them is certain, the first one by itself
            let begin = place;
            let rest = padded.get(begin..).unwrap_or_default();
            let others = beyond_ascii(rest);
            if let (0, Some(bytes)) = (others, rest.first_chunk()) {
                let starts = wide::starts_in_ascii(vectors, grammar, bytes);
                let (numbers, single) = starts.numbers_and_single();
                let known = single | if vocab.has_numbers { numbers } else { 0 };
                place = count.pieces(starts, known, |char| begin + char as usize);
            } else if let (MANY.., Some(bytes)) = (others, rest.first_chunk()) {
                let (starts, places) = wide::starts_in_chars(vectors, grammar, bytes);
                let at = |char: u32| begin + places.get(char as usize).map_or(0, |&place| usize::from(place));
                place = count.pieces(starts, 0, at);
            }
            if place == begin {
                let end = piece_end(grammar, text, place);
                count.piece(place, end);
                place = end;
            }
        }
        count.count_new();
        count.tokens
    }
}

/// How many of the first eight bytes are not ASCII.
#[inline(always)]
fn beyond_ascii(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |&first| u64::from_le_bytes(first) & 0x8080_8080_8080_8080).count_ones()
}

/// So many, and it will be more than a quotation mark in English.
const MANY: u32 = 4;

/// Adds up pieces.
struct Count<'a> {
    vocab: &'a Vocab,
    padded: &'a [u8],
    merger: &'a mut Merger,
    memo: Option<&'a mut Memo>,
    tokens: u64,
    /// Pieces that are not remembered, to be counted together.
    new: [New; TURNS],
    size: usize,
}

/// A piece that is not remembered.
#[derive(Clone, Copy, Default)]
struct New {
    start: usize,
    end: usize,
    /// That of a short piece; else the one of no piece.
    key: Key,
    /// Whether it is only a part of a piece.
    part: bool,
}

impl Count<'_> {
    /// Counts the pieces that end where one begins for certain, those that are known as one token each; where the last
    /// one ends.
    #[inline(always)]
    fn pieces(&mut self, starts: Starts, known: u64, at: impl Fn(u32) -> usize) -> usize {
        self.tokens += u64::from(known.count_ones());
        let mut others = starts.all() & !known;
        while others != 0 {
            let (start, end) = (others.trailing_zeros(), starts.end(others));
            others &= others - 1;
            self.piece(at(start), at(end));
        }
        at(starts.last())
    }

    #[inline(always)]
    fn piece(&mut self, start: usize, end: usize) {
        match self.key(start, end) {
            Some(key) => self.short(key, New { start, end, key, part: false }),
            None => self.long(start, end),
        }
    }

    #[inline(always)]
    fn key(&self, start: usize, end: usize) -> Option<Key> {
        let chunk = self.padded.get(start..).and_then(<[u8]>::first_chunk)?;
        Key::first(chunk, end - start)
    }

    #[inline(always)]
    fn short(&mut self, key: Key, new: New) {
        match self.memo.as_ref().and_then(|memo| memo.known(key)) {
            Some(known) => self.tokens += u64::from(known),
            None => self.later(new),
        }
    }

    /// In parts, where the script has enough cuts for that.
    #[inline(never)]
    fn long(&mut self, start: usize, end: usize) {
        let Count { vocab, padded, .. } = *self;
        let piece = padded.get(start..end).unwrap_or_default();
        if let Some(count) = odd_count(vocab, piece) {
            self.tokens += count as u64;
            return;
        }
        if !piece.iter().take(4).any(|&byte| byte >= FIRST_OF_THREE) {
            return self.uncut(start, end);
        }
        vocab.chars.cut(padded.get(start..).unwrap_or_default(), end - start, |one, two| {
            let (one, two) = (start + one, start + two);
            match self.key(one, two) {
                Some(key) => self.short(key, New { start: one, end: two, key, part: true }),
                None => self.uncut(one, two),
            }
        });
    }

    /// Of what is not short, and no token that merging does not make.
    fn uncut(&mut self, start: usize, end: usize) {
        let text = self.padded.get(start..).unwrap_or_default();
        match self.memo.as_ref().and_then(|memo| memo.known_long(text, end - start)) {
            Some(known) => self.tokens += known as u64,
            None => self.later(New { start, end, key: Key::default(), part: true }),
        }
    }

    #[inline(always)]
    fn later(&mut self, new: New) {
        self.vocab.prefetch_word(new.key);
        if let Some(place) = self.new.get_mut(self.size) {
            *place = new;
            self.size += 1;
        }
        if self.size == TURNS {
            self.count_new();
        }
    }

    /// Counts the new pieces.
    #[inline(never)]
    fn count_new(&mut self) {
        let (vocab, padded) = (self.vocab, self.padded);
        let new = self.new.get(..self.size).unwrap_or_default();
        let piece = |new: &New| padded.get(new.start..new.end).unwrap_or_default();
        let mut known = [None; TURNS];
        for (known, new) in known.iter_mut().zip(new) {
            *known = vocab.is_word(new.key).then_some(1); // and nothing else, so that many are fetched at once
        }
        if !vocab.is_plain() {
            for (known, new) in known.iter_mut().zip(new).filter(|(known, new)| known.is_none() && !new.part)
            {
                *known = odd_count(vocab, piece(new));
            }
        }
        let others = new.iter().zip(known).filter(|(_, known)| known.is_none()).map(|(new, _)| piece(new));
        let mut counts = [0; TURNS];
        self.merger.counts(vocab, others, &mut counts);
        let mut counts = counts.into_iter();
        for (new, known) in new.iter().zip(known) {
            let count = known.or_else(|| counts.next()).unwrap_or(0);
            self.tokens += count as u64;
            // what counts otherwise as a part is not remembered
            let Some(memo) = self.memo.as_mut().filter(|_| !vocab.is_unmerged(piece(new))) else { continue };
            // unless one of the others was the same
            if new.key.is_some() {
                if memo.known(new.key).is_none() {
                    memo.learn(new.key, count);
                }
            } else {
                let text = padded.get(new.start..).unwrap_or_default();
                let length = new.end - new.start;
                if memo.known_long(text, length).is_none() {
                    memo.learn_long(text, length, count);
                }
            }
        }
        self.size = 0;
    }
}

/// The number of tokens of a whole piece that merging by rank gets wrong: such pieces are few, and in some vocabularies
/// only.
#[inline]
fn odd_count(vocab: &Vocab, piece: &[u8]) -> Option<usize> {
    if vocab.is_unmerged(piece) { Some(1) } else { vocab.odd.as_ref()?.count(piece) }
}

/// Characters of three bytes begin with this byte, or higher ones.
const FIRST_OF_THREE: u8 = 0xE0;

//! Who counts a text: a buffer that blocks of it are read into, tools to merge with, and a memory.

use std::ops::Range;

use super::memo::Memo;
use super::merge::Merger;
use super::pieces::Pieces;
use super::read::{self, read};
use super::scan::{END_BYTE, Grammar, PADDING, Padded, first_border, last_border, piece_end};
use super::vocab::Vocab;
use crate::dispatch::best;
use crate::text::Text;

/// Units of a text that are read at a time: few enough to stop early, and to stay in the nearest cache.
const BLOCK: usize = 1 << 14;

/// Bytes beyond which the buffer is given back.
const KEPT: usize = 8 * BLOCK;

/// What one needs to work, but for the memory.
#[derive(Debug, Default)]
pub(super) struct Tools {
    merger: Merger,
    /// What was read, and bytes behind it.
    bytes: Vec<u8>,
    /// Bytes that were read.
    size: usize,
}

/// One who counts.
pub(super) struct Worker<'a> {
    pub(super) grammar: Grammar,
    pub(super) vocab: &'a Vocab,
    pub(super) memo: Option<&'a mut Memo>,
    pub(super) tools: &'a mut Tools,
}

impl Worker<'_> {
    /// The number of tokens if it is at most `limit`; else some number above it.
    pub(super) fn count_up_to(&mut self, text: Text<'_>, limit: u64) -> u64 {
        let units = read::units(text);
        // a token has at most so many bytes, and a unit has a byte or more
        if (units / self.vocab.longest) as u64 > limit {
            return limit + 1;
        }
        let (mut tokens, mut place) = (0, 0);
        self.clear();
        while place < units && tokens <= limit {
            let end;
            (place, end) = self.read_block(text, place, units);
            tokens += self.count(0..end, limit - tokens);
            self.forget(end);
        }
        self.tidy();
        tokens
    }

    /// Where the longest prefix ends that has at most `limit` tokens, in units. It is made of whole pieces, and of the
    /// first tokens of the next one that make whole characters.
    pub(super) fn head(&mut self, text: Text<'_>, limit: u64) -> usize {
        let units = read::units(text);
        let (mut left, mut before, mut place) = (limit, 0, 0);
        self.clear();
        while place < units {
            let end;
            (place, end) = self.read_block(text, place, units);
            let counted = self.count(0..end, left);
            if counted > left {
                let bytes = before + self.cut_head(end, left);
                self.tidy();
                return read::units_of(text, 0, bytes);
            }
            left -= counted;
            before += end;
            self.forget(end);
        }
        self.tidy();
        units
    }

    /// Where the longest suffix begins that has at most `limit` tokens, in units; the counterpart of `head`. What is
    /// before it is not read, but for as much again.
    pub(super) fn tail(&mut self, text: Text<'_>, limit: u64) -> usize {
        let (mut left, mut end) = (limit, read::units(text));
        let mut width = usize::try_from(limit).unwrap_or(usize::MAX).saturating_mul(4).clamp(1 << 8, 1 << 20);
        while end > 0 {
            let start = read::start_of_char(text, end.saturating_sub(width));
            width = width.saturating_mul(2);
            self.clear();
            self.read(text, start..end);
            let first = if start == 0 { Some(0) } else { first_border(self.padded(), 0) };
            let Some(first) = first else { continue };
            let counted = self.count(first..self.tools.size, left);
            let bytes = if counted > left { self.cut_tail(first, left) } else { first };
            end = start + read::units_of(text, start, bytes);
            if counted > left {
                break;
            }
            left -= counted;
        }
        self.tidy();
        end
    }

    /// Where in the first bytes, up to a border, those with at most `limit` tokens end.
    fn cut_head(&mut self, end: usize, limit: u64) -> usize {
        let (mut rest, mut left) = (0..end, limit);
        while let Some(middle) = self.middle(&rest) {
            let counted = self.count(rest.start..middle, left);
            if counted > left {
                rest.end = middle;
            } else {
                left -= counted;
                rest.start = middle;
            }
        }
        let cuts = self.cuts(rest.clone());
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(cuts.len() - 1);
        for cut in cuts.into_iter().take(most + 1).rev() {
            let cut = self.start_of_char(cut);
            // without what follows, the last pieces can be other ones
            if self.count(rest.start..cut, left) <= left {
                return cut;
            }
        }
        rest.start
    }

    /// Where in the bytes from a border on those with at most `limit` tokens begin.
    fn cut_tail(&mut self, start: usize, limit: u64) -> usize {
        let (mut rest, mut left) = (start..self.tools.size, limit);
        while let Some(middle) = self.middle(&rest) {
            let counted = self.count(middle..rest.end, left);
            if counted > left {
                rest.start = middle;
            } else {
                left -= counted;
                rest.end = middle;
            }
        }
        let cuts = self.cuts(rest.clone());
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(cuts.len() - 1);
        for cut in cuts.into_iter().rev().take(most + 1).rev() {
            let cut = self.end_of_char(cut);
            // without what is before, the first pieces can be other ones
            if self.count(cut..rest.end, left) <= left {
                return cut;
            }
        }
        rest.end
    }

    /// A border in the middle of much text.
    fn middle(&self, part: &Range<usize>) -> Option<usize> {
        const FEW: usize = 1 << 9;
        if part.len() < FEW {
            return None;
        }
        let middle = self.start_of_char(part.start + part.len() / 2);
        first_border(self.padded(), middle).filter(|&border| border < part.end)
    }

    /// Where the tokens of a part begin, and where the last one ends.
    fn cuts(&mut self, part: Range<usize>) -> Vec<usize> {
        let (grammar, vocab) = (self.grammar, self.vocab);
        let mut cuts = vec![part.start];
        self.parted(part, |text, merger| {
            let mut place = 0;
            while place < text.end {
                let end = piece_end(grammar, text, place);
                let piece = text.bytes.get(place..end).unwrap_or_default();
                for length in merger.tokens(vocab, piece).iter().filter_map(|&token| vocab.length(token)) {
                    cuts.push(cuts.last().unwrap_or(&0) + length);
                }
                place = end;
            }
        });
        cuts
    }

    /// Tokens of a part of what was read, as a text by itself; more than `limit` may be any number above it.
    fn count(&mut self, part: Range<usize>, limit: u64) -> u64 {
        let (grammar, vocab) = (self.grammar, self.vocab);
        let mut memo = self.memo.take();
        let tokens = self.parted(part, |text, merger| {
            best(Pieces { grammar, vocab, text, limit, merger, memo: memo.as_deref_mut() })
        });
        self.memo = memo;
        tokens
    }

    /// Does something with a part of what was read, as a text by itself.
    fn parted<T>(&mut self, part: Range<usize>, work: impl FnOnce(Padded<'_>, &mut Merger) -> T) -> T {
        let Tools { merger, bytes, .. } = &mut *self.tools;
        let behind = bytes.get_mut(part.end).map(|behind| std::mem::replace(behind, END_BYTE));
        let own = bytes.get(part.start..).unwrap_or_default();
        let done = work(Padded { bytes: own, end: part.len() }, merger);
        if let (Some(place), Some(behind)) = (bytes.get_mut(part.end), behind) {
            *place = behind;
        }
        done
    }

    /// Reads on from a place, up to a border or to the end of the text: where reading ended, in units, and where the
    /// border is in what was read.
    fn read_block(&mut self, text: Text<'_>, mut place: usize, units: usize) -> (usize, usize) {
        let mut block = BLOCK;
        loop {
            place = self.read(text, place..place + block);
            if place >= units {
                return (place, self.tools.size);
            }
            if let Some(border) = last_border(self.padded()) {
                return (place, border);
            }
            block = 2 * self.tools.size; // so that a text without a border is not looked through again and again
        }
    }

    /// Adds a range of a text to what was read; the end of the range, or one unit more so that no character is cut.
    fn read(&mut self, text: Text<'_>, range: Range<usize>) -> usize {
        let Tools { bytes, size, .. } = &mut *self.tools;
        bytes.truncate(*size);
        let end = read(text, range, bytes);
        *size = bytes.len();
        bytes.resize(*size + PADDING, END_BYTE);
        end
    }

    /// All that was read.
    fn padded(&self) -> Padded<'_> {
        Padded { bytes: &self.tools.bytes, end: self.tools.size }
    }

    fn clear(&mut self) {
        self.forget(self.tools.size);
    }

    /// Forgets the first bytes that were read.
    fn forget(&mut self, bytes: usize) {
        let bytes = bytes.min(self.tools.size);
        self.tools.bytes.drain(..bytes);
        self.tools.size -= bytes;
    }

    /// Gives back what only a long text needed.
    fn tidy(&mut self) {
        if self.tools.bytes.capacity() > KEPT {
            (self.tools.bytes, self.tools.size) = (Vec::new(), 0);
        }
    }

    fn is_inside(&self, place: usize) -> bool {
        place < self.tools.size && self.tools.bytes.get(place).is_some_and(|&byte| byte & 0xC0 == 0x80)
    }

    fn start_of_char(&self, mut place: usize) -> usize {
        while self.is_inside(place) {
            place -= 1;
        }
        place
    }

    fn end_of_char(&self, mut place: usize) -> usize {
        while self.is_inside(place) {
            place += 1;
        }
        place
    }
}

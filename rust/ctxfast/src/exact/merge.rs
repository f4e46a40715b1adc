//! The tokens of a piece: the two neighbours that make the token of lowest rank are merged, the left ones first, until
//! no two make one. Merging begins with bytes, or with the characters of which it would make one token first.
//!
//! That is done in three ways, by the length of the piece:
//!
//! - less than [`MEDIUM`] bytes or characters, by looking through all neighbours for each merge; of less than [`SHORT`],
//!   several pieces in turn: what is fetched from a distant memory for one of them comes while the others are at work;
//! - up to [`BLOCK`] bytes, with a heap;
//! - longer ones, in blocks. At the border of two blocks the tokens are right if the last and the first can be neighbours
//!   ([`Vocab::can_be_neighbours`]); else a few tokens around it are merged again, then twice as many. So the time is
//!   linear, and the heap stays in the cache. Blocks grow where borders cost too much, at last to all of the piece.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::vocab::{NONE, RANKS, Vocab};
use crate::dispatch::{Kernel, Vectors, best};

/// Bytes or characters of a piece that is merged in turn with others are fewer.
const SHORT: usize = 32;

/// Those of a piece that is merged without a heap are fewer.
const MEDIUM: usize = 128;

/// Pieces that are merged in turn, at most.
pub(super) const TURNS: usize = 16;

/// Bytes of a block.
const BLOCK: usize = 1024;

/// Bytes at the end of a block that are merged again with the next one.
const UNSETTLED: usize = 64;

/// Half of the bytes, and so many, may be merged again before blocks grow.
const AGAIN: usize = 16 * BLOCK;

/// Buffers beyond this many bytes are given back.
const KEPT: usize = 1 << 16;

/// Merges, with buffers to work in.
#[derive(Debug, Default)]
pub(super) struct Merger {
    tokens: Vec<u32>,
    short: Box<[Few<SHORT>; TURNS]>,
    medium: Box<Few<MEDIUM>>,
    links: Vec<Link>,
    heap: BinaryHeap<Reverse<u64>>,
}

/// A token in a list that is linked by places.
#[derive(Clone, Copy, Debug)]
struct Link {
    token: u32,
    /// that it makes with the next one
    merged: u32,
    before: u32,
    next: u32,
}

impl Merger {
    /// The number of tokens of each of at most [`TURNS`] pieces.
    pub(super) fn counts<'a>(
        &mut self,
        vocab: &Vocab,
        pieces: impl Iterator<Item = &'a [u8]>,
        counts: &mut [usize; TURNS],
    ) {
        let mut turns = [0; TURNS];
        let mut size = 0;
        for ((piece, count), number) in pieces.zip(counts.iter_mut()).zip(0..) {
            if let (Some(few), Some(turn)) = (self.short.get_mut(size), turns.get_mut(size))
                && few.begin(vocab, piece)
            {
                *turn = number;
                size += 1;
            } else {
                *count = self.tokens(vocab, piece).len();
            }
        }
        let short = self.short.get_mut(..size).unwrap_or_default();
        best(Turns { vocab, few: short });
        for (few, turn) in short.iter().zip(turns) {
            if let Some(count) = counts.get_mut(turn) {
                *count = few.left;
            }
        }
        if self.links.capacity().max(self.tokens.capacity()) * size_of::<Link>() > KEPT {
            (self.tokens, self.links, self.heap) = Default::default();
        }
    }

    /// The tokens of a piece.
    pub(super) fn tokens(&mut self, vocab: &Vocab, piece: &[u8]) -> &[u32] {
        if piece.len() > BLOCK {
            self.long(vocab, piece);
        } else {
            self.merge(vocab, piece);
        }
        &self.tokens
    }

    /// Merges a piece into `tokens`.
    fn merge(&mut self, vocab: &Vocab, piece: &[u8]) {
        if self.medium.begin(vocab, piece) {
            best(Turns { vocab, few: std::slice::from_mut(&mut *self.medium) });
            self.medium.tokens(&mut self.tokens);
        } else {
            self.with_heap(vocab, piece);
        }
    }

    fn with_heap(&mut self, vocab: &Vocab, piece: &[u8]) {
        let Merger { tokens, links, heap, .. } = self;
        tokens.clear();
        begin(vocab, piece, |token| tokens.push(token));
        links.clear();
        let mut single = tokens.iter().copied().peekable();
        let mut place = 0_u32;
        while let Some(token) = single.next() {
            let merged = single.peek().map_or(NONE, |&next| vocab.first_pair(token, next));
            links.push(Link { token, merged, before: place.wrapping_sub(1), next: place + 1 });
            place += 1;
        }
        let mut entries = std::mem::take(heap).into_vec();
        entries.clear();
        let ranked = links.iter().zip(0_u32..).filter(|(link, _)| link.merged != NONE);
        entries.extend(ranked.map(|(link, place)| entry(link.merged, place)));
        *heap = BinaryHeap::from(entries);

        let link = |links: &[Link], place: u32| links.get(place as usize).copied();
        while let Some(Reverse(top)) = heap.pop() {
            let (rank, place) = rank_and_place(top);
            let Some(mut one) = link(links, place).filter(|one| one.merged == rank) else { continue };
            let Some(two) = link(links, one.next) else { continue };
            if let Some(gone) = links.get_mut(one.next as usize) {
                gone.merged = NONE;
            }
            one.token = rank;
            one.next = two.next;
            one.merged = NONE;
            if let Some(next) = links.get_mut(one.next as usize) {
                next.before = place;
                one.merged = vocab.pair(rank, next.token);
                if one.merged != NONE {
                    heap.push(entry(one.merged, place));
                }
            }
            if let Some(before) = links.get_mut(one.before as usize) {
                before.merged = vocab.pair(before.token, rank);
                if before.merged != NONE {
                    heap.push(entry(before.merged, one.before));
                }
            }
            if let Some(link) = links.get_mut(place as usize) {
                *link = one;
            }
        }

        tokens.clear();
        let mut place = 0;
        while let Some(one) = link(links, place) {
            tokens.push(one.token);
            place = one.next;
        }
    }

    /// Merges a long piece into `tokens`.
    fn long(&mut self, vocab: &Vocab, piece: &[u8]) {
        let mut done: Vec<u32> = Vec::new();
        let mut block: Vec<u32> = Vec::new();
        let mut merged: &[u8] = &[];
        let (mut size, mut again, mut grown, mut border) = (BLOCK, 0, 0, 0);
        while let Some(rest) = piece.get(border..).filter(|rest| !rest.is_empty()) {
            let bytes = rest.get(..size).unwrap_or(rest);
            // one character again and again: as the block before
            if bytes != merged {
                self.merge(vocab, bytes);
                block.clone_from(&self.tokens);
                merged = bytes;
            }
            let settled = if bytes.len() == rest.len() { &block[..] } else { settled(vocab, &block) };
            again += self.join(vocab, piece, border, &mut done, settled);
            border += bytes_of(vocab, settled);
            if again > (border - grown) / 2 + AGAIN {
                (size, again, grown) = (size * 4, 0, border);
            }
        }
        self.tokens = done;
    }

    /// Puts the tokens of a block behind those of what is before it; how many bytes were merged again for that.
    fn join(
        &mut self,
        vocab: &Vocab,
        piece: &[u8],
        border: usize,
        done: &mut Vec<u32>,
        block: &[u32],
    ) -> usize {
        let heals = |one: Option<&u32>, two: Option<&u32>| match (one, two) {
            (Some(&one), Some(&two)) => vocab.can_be_neighbours(one, two),
            _ => true,
        };
        if heals(done.last(), block.first()) {
            done.extend(block);
            return 0;
        }
        let (mut left, mut right, mut again) = (1, 1, 0);
        loop {
            let (kept, redone) = done.split_at(done.len().saturating_sub(left));
            let (redone_too, rest) = block.split_at(right.min(block.len()));
            let window = border - bytes_of(vocab, redone)..border + bytes_of(vocab, redone_too);
            again += window.len();
            self.merge(vocab, piece.get(window).unwrap_or_default());
            let heals_left = heals(kept.last(), self.tokens.first());
            let heals_right = heals(self.tokens.last(), rest.first());
            if heals_left && heals_right {
                done.truncate(kept.len());
                done.extend(&self.tokens);
                done.extend(rest);
                return again;
            }
            left *= if heals_left { 1 } else { 2 };
            right *= if heals_right { 1 } else { 2 };
        }
    }
}

fn bytes_of(vocab: &Vocab, tokens: &[u32]) -> usize {
    tokens.iter().filter_map(|&token| vocab.length(token)).sum()
}

/// The tokens of a block, at least one, without the last ones: what is behind the block may change them.
fn settled<'a>(vocab: &Vocab, mut block: &'a [u32]) -> &'a [u32] {
    let mut left = UNSETTLED;
    while let [rest @ .., last] = block
        && !rest.is_empty()
        && left > 0
    {
        left = left.saturating_sub(vocab.length(*last).unwrap_or(0));
        block = rest;
    }
    block
}

/// What merging begins with: the characters of which it would make one token first, and other bytes.
#[inline(always)]
fn begin(vocab: &Vocab, piece: &[u8], mut take: impl FnMut(u32)) {
    let mut place = 0;
    while let Some(&byte) = piece.get(place) {
        let (token, length) = match byte {
            0xC0.. => vocab.chars.whole(piece, place).unwrap_or((vocab.byte(byte), 1)),
            _ => (vocab.byte(byte), 1),
        };
        take(token);
        place += length;
    }
}

/// Merges several pieces in turn, one step of each.
struct Turns<'a, const N: usize> {
    vocab: &'a Vocab,
    few: &'a mut [Few<N>],
}

impl<const N: usize> Kernel for Turns<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: impl Vectors) {
        let Turns { vocab, few } = self;
        let mut working = (1_u32 << few.len().min(TURNS)) - 1;
        while working != 0 {
            let mut later = working;
            while later != 0 {
                let turn = later.trailing_zeros();
                later &= later - 1;
                if !few.get_mut(turn as usize).is_some_and(|few| few.merge_lowest(vocab)) {
                    working &= !(1 << turn);
                }
            }
        }
    }
}

/// Less than `N` tokens, a power of two, linked by their places. The last place is that of no token: its links may be
/// written, and what it could be merged with is nothing.
#[derive(Debug)]
struct Few<const N: usize> {
    tokens: [u32; N],
    next: [u8; N],
    before: [u8; N],
    /// The token that one makes with the next, and its place: the least one is merged first.
    merges: [u32; N],
    /// Tokens that are left.
    left: usize,
    /// The place of the token that was made last; what it makes with its neighbours was not looked up.
    made: Option<u8>,
}

/// A rank that no token has.
const NO_TOKEN: u32 = RANKS;

impl<const N: usize> Default for Few<N> {
    fn default() -> Few<N> {
        Few { tokens: [NO_TOKEN; N], next: [0; N], before: [0; N], merges: [NONE; N], left: 0, made: None }
    }
}

impl<const N: usize> Few<N> {
    /// No place.
    const END: u8 = (N - 1).to_le_bytes()[0];

    /// Takes what merging of a piece begins with; whether that was possible.
    #[inline]
    fn begin(&mut self, vocab: &Vocab, piece: &[u8]) -> bool {
        if piece.len() >= 4 * N {
            return false;
        }
        let Few { tokens, next, before, merges, left, made } = self;
        *merges = [NONE; N];
        let (mut size, mut last) = (0, Self::END);
        begin(vocab, piece, |token| {
            // those that are too many are put into the last place
            let place = size.min(N - 1).to_le_bytes()[0];
            let merge =
                if size == 0 { NONE } else { merge_at(vocab.first_pair(at(tokens, last), token), last) };
            put(tokens, place, token);
            put(before, place, last);
            put(next, last, place);
            put(merges, last, merge);
            (size, last) = (size + 1, place);
        });
        put(next, last, Self::END);
        put(tokens, Self::END, NO_TOKEN);
        (*left, *made) = (size, None);
        size < N
    }

    /// The tokens that are left.
    fn tokens(&self, tokens: &mut Vec<u32>) {
        tokens.clear();
        let mut place = 0;
        for _ in 0..self.left {
            tokens.push(at(&self.tokens, place));
            place = at(&self.next, place);
        }
    }

    /// Makes a token of two; whether there were any. What that makes with its neighbours is fetched, and looked up the
    /// next time.
    #[inline(always)]
    fn merge_lowest(&mut self, vocab: &Vocab) -> bool {
        if let Some(made) = self.made {
            self.look_up(vocab, made);
        }
        let lowest = self.merges.iter().fold(NONE, |lowest, &merge| lowest.min(merge));
        if lowest >= NOTHING {
            return false;
        }
        self.left -= 1;
        let (token, place) = (lowest >> 8, lowest.to_le_bytes()[0]);
        let gone = at(&self.next, place);
        let (before, next) = (at(&self.before, place), at(&self.next, gone));
        put(&mut self.tokens, place, token);
        put(&mut self.next, place, next);
        put(&mut self.before, next, place);
        put(&mut self.merges, gone, NONE);
        self.made = Some(place);
        vocab.prefetch_pair(at(&self.tokens, before), token);
        vocab.prefetch_pair(token, at(&self.tokens, next));
        true
    }

    /// Looks up what the token at a place makes with its neighbours.
    #[inline(always)]
    fn look_up(&mut self, vocab: &Vocab, place: u8) {
        let token = at(&self.tokens, place);
        let (before, next) = (at(&self.before, place), at(&self.next, place));
        let left = vocab.pair(at(&self.tokens, before), token);
        let right = vocab.pair(token, at(&self.tokens, next));
        put(&mut self.merges, before, merge_at(left, before));
        put(&mut self.merges, place, merge_at(right, place));
    }
}

/// The lowest rank first, then the leftmost; at least [`NOTHING`] if there is none.
#[inline(always)]
fn merge_at(rank: u32, place: u8) -> u32 {
    rank << 8 | u32::from(place)
}

/// Above all merges: ranks have 18 bits.
const NOTHING: u32 = 1 << 26;

#[inline(always)]
fn at<T: Copy + Default, const N: usize>(array: &[T; N], place: u8) -> T {
    array.get(usize::from(place) % N).copied().unwrap_or_default()
}

#[inline(always)]
fn put<T, const N: usize>(array: &mut [T; N], place: u8, value: T) {
    if let Some(slot) = array.get_mut(usize::from(place) % N) {
        *slot = value;
    }
}

/// The lowest rank first, then the leftmost.
fn entry(rank: u32, place: u32) -> Reverse<u64> {
    Reverse(u64::from(rank) << 32 | u64::from(place))
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves")]
fn rank_and_place(entry: u64) -> (u32, u32) {
    ((entry >> 32) as u32, entry as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Built, CL100K, O200K};
    use super::*;

    fn vocabs() -> [&'static Built; 2] {
        [CL100K.get().unwrap(), O200K.get().unwrap()]
    }

    proptest! {
        #[test]
        fn all_ways_merge_alike(
            piece in r"[a-zA-Z]{1,60}|[ab]{1,60}|-{1,60}|\PC{1,20}|[ ก-๙]{1,30}|[ а-я]{1,30}|[ \u{900}-\u{1780}]{1,20}|[ 一-龥ぁ-ヿ]{1,20}|[ا-ي ἀ-ῼא-ת]{1,20}"
        ) {
            for built in vocabs() {
                let vocab = &built.vocab;
                let mut merger = Merger::default();
                let expected = vocab.naive(piece.as_bytes());
                if merger.medium.begin(vocab, piece.as_bytes()) {
                    merger.merge(vocab, piece.as_bytes());
                    prop_assert_eq!(&merger.tokens, &expected);
                }
                let mut counts = [0; TURNS];
                merger.counts(vocab, std::iter::repeat_n(piece.as_bytes(), TURNS), &mut counts);
                prop_assert_eq!(counts, [expected.len(); TURNS]);
                merger.with_heap(vocab, piece.as_bytes());
                prop_assert_eq!(&merger.tokens, &expected);
            }
        }

        #[test]
        fn neighbours_are_those_that_merging_leaves(piece in r"[a-z]{2,12}|[a-e -]{2,12}", cut in 1..11_usize) {
            for built in vocabs() {
                let vocab = &built.vocab;
                let (one, two) = piece.split_at(cut.min(piece.len() - 1));
                let [one, two] = [one, two].map(|part| vocab.naive(part.as_bytes()));
                let joined = [one.clone(), two.clone()].concat();
                let can = vocab.can_be_neighbours(one[one.len() - 1], two[0]);
                prop_assert_eq!(can, vocab.naive(piece.as_bytes()) == joined);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))] // of several thousand bytes each

        #[test]
        fn blocks_join_to_what_one_heap_makes_beside_other_pieces(
            piece in r"[a-z]{1025,5000}|[ab]{1025,3000}|[-=]{1025,5000}|(ab|abc|-){600,2000}|[ก-๙]{400,2000}|\PC{500,1500}",
            same in 1025..6000_usize,
            byte: u8,
        ) {
            let period = [&vec![byte; same / 2][..], b"b"].concat().repeat(30);
            for piece in [piece.into_bytes(), vec![byte; same], vec![b'-'; same], period] {
                for built in vocabs() {
                let vocab = &built.vocab;
                    let mut merger = Merger::default();
                    merger.with_heap(vocab, &piece);
                    let expected = merger.tokens.len();
                    let mut counts = [0; TURNS];
                    let pieces: [&[u8]; 4] = [b"internationalisations", &piece, b"", b"between"];
                    merger.counts(vocab, pieces.into_iter(), &mut counts);
                    let first = vocab.naive(pieces[0]).len();
                    prop_assert_eq!(&counts[..4], [first, expected, 0, 1]);
                }
            }
        }
    }
}

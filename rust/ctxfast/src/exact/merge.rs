//! The tokens of a piece: the two neighbours that make the token of lowest rank are merged, the left ones first, until
//! no two make one.
//!
//! That is done in three ways, by the length of the piece:
//!
//! - up to [`SHORT`] bytes, by looking through all neighbours for each merge;
//! - up to [`BLOCK`] bytes, with a heap;
//! - longer ones, in blocks. At the border of two blocks the tokens are right if the last and the first can be neighbours
//!   ([`Vocab::can_be_neighbours`]); else a few tokens around it are merged again, then twice as many. So the time is
//!   linear, and the heap stays in the cache. Blocks grow where borders cost too much, at last to all of the piece.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::vocab::{NONE, Vocab};

/// Bytes up to which the heap is slower.
const SHORT: usize = 40;

/// Bytes of a block.
const BLOCK: usize = 1024;

/// Half of the bytes, and so many, may be merged again before blocks grow.
const AGAIN: usize = 16 * BLOCK;

/// Buffers beyond this many bytes are given back.
const KEPT: usize = 1 << 16;

/// Merges, with buffers to work in.
#[derive(Debug, Default)]
pub(super) struct Merger {
    tokens: Vec<u32>,
    ranks: Vec<u32>,
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
    /// The number of tokens of a piece.
    pub(super) fn count(&mut self, vocab: &Vocab, piece: &[u8]) -> usize {
        if piece.len() <= BLOCK {
            self.merge(vocab, piece);
            return self.tokens.len();
        }
        let count = self.long(vocab, piece);
        if self.links.capacity() * size_of::<Link>() > KEPT {
            *self = Merger::default();
        }
        count
    }

    /// Merges a piece into `tokens`.
    fn merge(&mut self, vocab: &Vocab, piece: &[u8]) {
        if piece.len() <= SHORT {
            self.looking_through(vocab, piece);
        } else {
            self.with_heap(vocab, piece);
        }
    }

    fn looking_through(&mut self, vocab: &Vocab, piece: &[u8]) {
        let Merger { tokens, ranks, .. } = self;
        tokens.clear();
        tokens.extend(piece.iter().map(|&byte| vocab.byte(byte)));
        ranks.clear();
        ranks.extend(tokens.iter().zip(tokens.iter().skip(1)).map(|(&one, &two)| vocab.pair(one, two)));
        // the first of equal ones
        while let Some((place, &rank)) = ranks.iter().enumerate().min_by_key(|(_, rank)| **rank) {
            if rank == NONE {
                break;
            }
            tokens.remove(place + 1);
            ranks.remove(place);
            if let Some(token) = tokens.get_mut(place) {
                *token = rank;
            }
            if let (Some(&next), Some(after)) = (tokens.get(place + 1), ranks.get_mut(place)) {
                *after = vocab.pair(rank, next);
            }
            if let Some(before) = place.checked_sub(1)
                && let (Some(&token), Some(merged)) = (tokens.get(before), ranks.get_mut(before))
            {
                *merged = vocab.pair(token, rank);
            }
        }
    }

    fn with_heap(&mut self, vocab: &Vocab, piece: &[u8]) {
        let Merger { tokens, links, heap, .. } = self;
        links.clear();
        let mut bytes = piece.iter().map(|&byte| vocab.byte(byte)).peekable();
        let mut place = 0_u32;
        while let Some(token) = bytes.next() {
            let merged = bytes.peek().map_or(NONE, |&next| vocab.pair(token, next));
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

    /// The number of tokens of a long piece.
    fn long(&mut self, vocab: &Vocab, piece: &[u8]) -> usize {
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
            again += self.join(vocab, piece, border, &mut done, &block);
            border += bytes.len();
            if again > (border - grown) / 2 + AGAIN {
                (size, again, grown) = (size * 4, 0, border);
            }
        }
        done.len()
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
        let bytes = |tokens: &[u32]| tokens.iter().filter_map(|&token| vocab.length(token)).sum::<usize>();
        if heals(done.last(), block.first()) {
            done.extend(block);
            return 0;
        }
        let (mut left, mut right, mut again) = (1, 1, 0);
        loop {
            let (kept, redone) = done.split_at(done.len().saturating_sub(left));
            let (redone_too, rest) = block.split_at(right.min(block.len()));
            let window = border - bytes(redone)..border + bytes(redone_too);
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

    use super::super::{CL100K, O200K};
    use super::*;

    /// The rule as it is written above.
    fn naive(vocab: &Vocab, piece: &[u8]) -> Vec<u32> {
        let mut tokens: Vec<u32> = piece.iter().map(|&byte| vocab.byte(byte)).collect();
        loop {
            let pairs = tokens.windows(2).map(|pair| vocab.pair(pair[0], pair[1]));
            let Some((rank, place)) = pairs.zip(0..).filter(|&(rank, _)| rank != NONE).min() else {
                return tokens;
            };
            tokens.splice(place..place + 2, [rank]);
        }
    }

    fn vocabs() -> [&'static Vocab; 2] {
        [CL100K.get().unwrap().0, O200K.get().unwrap().0]
    }

    proptest! {
        #[test]
        fn all_ways_merge_alike(piece in r"[a-zA-Z]{1,60}|[ab]{1,60}|-{1,60}|\PC{1,20}|[ก-๙]{1,30}") {
            for vocab in vocabs() {
                let mut merger = Merger::default();
                let expected = naive(vocab, piece.as_bytes());
                merger.looking_through(vocab, piece.as_bytes());
                prop_assert_eq!(&merger.tokens, &expected);
                merger.with_heap(vocab, piece.as_bytes());
                prop_assert_eq!(&merger.tokens, &expected);
            }
        }

        #[test]
        fn neighbours_are_those_that_merging_leaves(piece in r"[a-z]{2,12}|[a-e -]{2,12}", cut in 1..11_usize) {
            for vocab in vocabs() {
                let (one, two) = piece.split_at(cut.min(piece.len() - 1));
                let [one, two] = [one, two].map(|part| naive(vocab, part.as_bytes()));
                let joined = [one.clone(), two.clone()].concat();
                let can = vocab.can_be_neighbours(one[one.len() - 1], two[0]);
                prop_assert_eq!(can, naive(vocab, piece.as_bytes()) == joined);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))] // of several thousand bytes each

        #[test]
        fn blocks_join_to_what_one_heap_makes(
            piece in r"[a-z]{1025,5000}|[ab]{1025,3000}|[-=]{1025,5000}|(ab|abc|-){600,2000}|[ก-๙]{400,2000}|\PC{500,1500}",
            same in 1025..6000_usize,
            byte: u8,
        ) {
            let period = [&vec![byte; same / 2][..], b"b"].concat().repeat(30);
            for piece in [piece.into_bytes(), vec![byte; same], vec![b'-'; same], period] {
                for vocab in vocabs() {
                    let mut merger = Merger::default();
                    merger.with_heap(vocab, &piece);
                    let expected = merger.tokens.len();
                    prop_assert_eq!(merger.count(vocab, &piece), expected);
                }
            }
        }
    }
}

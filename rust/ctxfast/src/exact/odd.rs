//! The few tokens of some vocabularies that are made of tokens of higher rank, and the pieces that have their bytes.
//!
//! Everything else here relies on that a token is made of two of lower rank. Where a piece has the bytes of a token that
//! is not, its merges are done as they are written: with all pairs of the vocabulary, the lowest rank that there is
//! first. No other piece is different, for a token cannot be made where its bytes are not.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aho_corasick::Input;
use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous::NFA;
use hashbrown::HashMap;

/// What is needed to merge such pieces.
#[derive(Debug)]
pub(super) struct Odd {
    /// Finds the odd tokens.
    finder: NFA,
    pairs: Pairs,
}

/// All pairs of a vocabulary: their rank, and the token that they make. Tokens have numbers, the single bytes their own.
pub(super) type Pairs = HashMap<(u32, u32), (u32, u32)>;

/// A token in a list that is linked by places.
#[derive(Clone, Copy)]
struct Link {
    token: u32,
    before: usize,
    next: usize,
    /// The rank of the merge with the next one.
    rank: Option<u32>,
}

impl Odd {
    /// Nothing if there are no odd tokens.
    pub(super) fn new(odd: &[Box<[u8]>], pairs: Pairs) -> Option<Odd> {
        if odd.is_empty() {
            return None;
        }
        Some(Odd { finder: NFA::new(odd).ok()?, pairs })
    }

    /// The number of tokens of a piece that has the bytes of an odd one.
    pub(super) fn count(&self, piece: &[u8]) -> Option<usize> {
        let found = self.finder.try_find(&Input::new(piece).earliest(true));
        found.is_ok_and(|found| found.is_some()).then(|| self.merged(piece))
    }

    fn merged(&self, piece: &[u8]) -> usize {
        let rank = |one: u32, two: u32| self.pairs.get(&(one, two)).map(|&(rank, _)| rank);
        let mut heap = BinaryHeap::new();
        let mut links: Vec<Link> = Vec::with_capacity(piece.len());
        for (place, &byte) in piece.iter().enumerate() {
            let next = piece.get(place + 1);
            let rank = next.and_then(|&next| rank(byte.into(), next.into()));
            heap.extend(rank.map(|rank| Reverse((rank, place))));
            links.push(Link { token: byte.into(), before: place.wrapping_sub(1), next: place + 1, rank });
        }
        let mut tokens = piece.len();
        while let Some(Reverse((merge, place))) = heap.pop() {
            let Some(mut one) = links.get(place).copied().filter(|one| one.rank == Some(merge)) else {
                continue;
            };
            let Some(gone) = links.get_mut(one.next) else { continue };
            let Some(&(_, token)) = self.pairs.get(&(one.token, gone.token)) else { continue };
            gone.rank = None;
            (one.token, one.next, one.rank) = (token, gone.next, None);
            tokens -= 1;
            if let Some(next) = links.get_mut(one.next) {
                next.before = place;
                one.rank = rank(token, next.token);
                heap.extend(one.rank.map(|rank| Reverse((rank, place))));
            }
            if let Some(before) = links.get_mut(one.before) {
                before.rank = rank(before.token, token);
                heap.extend(before.rank.map(|rank| Reverse((rank, one.before))));
            }
            if let Some(link) = links.get_mut(place) {
                *link = one;
            }
        }
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_of_later_tokens_is_made_when_these_are() {
        let [a, b, c] = [b'a', b'b', b'c'].map(u32::from);
        // abc is made of ab, which is made later
        let pairs = Pairs::from_iter([((257, c), (0, 256)), ((a, b), (1, 257)), ((256, 257), (2, 258))]);
        let odd = Odd::new(&[b"abc".to_vec().into()], pairs).unwrap();
        for (piece, tokens) in [("abc", 1), ("abcab", 1), ("ababc", 2), ("xabcabcy", 4), ("abcc", 2)] {
            assert_eq!(odd.count(piece.as_bytes()), Some(tokens), "{piece}");
        }
        assert_eq!(odd.count(b"abab"), None);
        assert!(Odd::new(&[], Pairs::new()).is_none());
    }
}

//! Characters beyond ASCII, which lie whole between the tokens of most texts: where a piece may be cut among them before
//! merging, and which of them merging makes of their bytes before anything else.
//!
//! A *cut*: where no token of the vocabulary has bytes of two neighbours side by side, none will be made across their
//! border, so the tokens of both sides are those of the whole. In Chinese, that is every second border or more. There is
//! none within ASCII, whose tokens are not looked at.
//!
//! A *whole* character: its bytes merge to its own token before anything else if all tokens that take a part of it
//! together with bytes of a neighbour have a higher rank, since merging takes the pair of lowest rank first. Those tokens
//! are few (`b" \xd0"`, a space and the first byte of a Cyrillic letter), and known by the two bytes at the border.

use hashbrown::HashMap;

use super::scan::decode;
use super::vocab::NONE;

/// What is known of a vocabulary's characters up to U+FFFF.
#[derive(Debug)]
pub(super) struct Chars {
    /// The token of each code point, or [`NONE`].
    tokens: Vec<u32>,
    /// Characters, or parts of them, that stand side by side in some token, and threes of characters that do; a bit for
    /// several of them.
    neighbours: Vec<u64>,
    /// By the last byte of a character and the first of the next: whether there is something in `broken`.
    borders: Vec<u64>,
    /// The lowest ranks of tokens across a border that have only a part of a character.
    broken: HashMap<usize, Broken>,
}

/// Bits for neighbours: 128 KiB.
const NEIGHBOURS: u32 = 20;

/// The lowest ranks of tokens across a border, or [`NONE`].
#[derive(Clone, Copy, Debug)]
struct Broken {
    /// which begin inside of the character before it
    before: u32,
    /// which end inside of the character behind it
    behind: u32,
}

impl Chars {
    pub(super) fn new() -> Chars {
        Chars {
            tokens: vec![NONE; 1 << 16],
            neighbours: vec![0; 1 << (NEIGHBOURS - 6)],
            borders: vec![0; 1 << (16 - 6)],
            broken: HashMap::new(),
        }
    }

    /// Takes the next token, in the order of ranks.
    pub(super) fn learn(&mut self, token: &[u8], rank: u32) {
        if token.is_ascii() {
            return;
        }
        let mut before: [Option<Char>; 2] = [None; 2];
        let mut place = 0;
        while let Some(rest) = token.get(place..).filter(|rest| !rest.is_empty()) {
            let own = Char::first(rest);
            if let Some(own) = own
                && own.length == token.len()
                && let Some(entry) = self.tokens.get_mut(own.point)
            {
                *entry = rank;
            }
            if let Some(border) = Border::at(token, place) {
                let [first, last] = before;
                self.join(border.between(last, own));
                if let (Some(last), Some(own)) = (last, own) {
                    let next = rest.get(own.length..).and_then(Char::first);
                    match first {
                        Some(first) => self.join(three(first, last, own)),
                        None if next.is_none() => self.join(only(last, own)),
                        None => {}
                    }
                }
                if last.is_none() || own.is_none() {
                    self.break_at(border, last.is_none(), own.is_none(), rank);
                }
            }
            before = [before[1], own];
            place += own.map_or_else(|| broken_length(rest), |own| own.length);
        }
    }

    fn join(&mut self, hash: usize) {
        if let Some(word) = self.neighbours.get_mut(hash >> 6) {
            *word |= 1 << (hash & 63);
        }
    }

    #[inline(always)]
    fn is_joined(&self, hash: usize) -> bool {
        self.neighbours.get(hash >> 6).is_none_or(|word| word >> (hash & 63) & 1 != 0)
    }

    fn break_at(&mut self, border: Border, before: bool, behind: bool, rank: u32) {
        let border = border.index();
        if let Some(word) = self.borders.get_mut(border >> 6) {
            *word |= 1 << (border & 63);
        }
        let broken = self.broken.entry(border).or_insert(Broken { before: NONE, behind: NONE });
        if before {
            broken.before = broken.before.min(rank);
        }
        if behind {
            broken.behind = broken.behind.min(rank);
        }
    }

    /// Calls `take` with the parts between its cuts of the piece that a text begins with.
    #[inline]
    pub(super) fn cut(&self, text: &[u8], length: usize, mut take: impl FnMut(usize, usize)) {
        let char = |place: usize| text.get(place..).and_then(Char::unchecked).filter(|_| place < length);
        let Some(mut before) = char(0) else { return };
        let (mut start, mut place, mut own) = (0, before.length, char(before.length));
        let mut three_before = false; // whether some token has the two and the one before them
        while let Some(char_here) = own {
            let behind = place + char_here.length;
            let next = char(behind);
            let three_behind = next.is_some_and(|next| self.is_joined(three(before, char_here, next)));
            let joined = self.is_joined(neighbours(before.point, char_here.point));
            // tokens with both, but none with what is around them
            let apart = !joined | !(three_before | three_behind | self.is_joined(only(before, char_here)));
            if apart
                && before.length.max(char_here.length) > 1
                && !self.is_broken_at(text, place, before, char_here)
            {
                take(start, place);
                start = place;
            }
            (place, before, own, three_before) = (behind, char_here, next, three_behind);
        }
        take(start, length);
    }

    #[inline]
    fn is_broken_at(&self, text: &[u8], place: usize, one: Char, two: Char) -> bool {
        if one.length.max(two.length) > 3 {
            return true; // of these nothing is known
        }
        let Some(border) = Border::at(text, place).filter(|&border| self.is_broken(border)) else {
            return false;
        };
        self.is_joined(border.between(Some(one), None))
            || self.is_joined(border.between(None, Some(two)))
            || self.is_joined(border.between(None, None))
    }

    #[inline(always)]
    fn is_broken(&self, border: Border) -> bool {
        let border = border.index();
        self.borders.get(border >> 6).is_none_or(|word| word >> (border & 63) & 1 != 0)
    }

    /// The token of the character of two or three bytes at a place, and its bytes, if merging begins with it.
    #[inline]
    pub(super) fn whole(&self, piece: &[u8], place: usize) -> Option<(u32, usize)> {
        let Char { point, length } = Char::first(piece.get(place..)?)?;
        let token = *self.tokens.get(point)?;
        let is_first = |rank: fn(&Broken) -> u32, end: usize| {
            let border = Border::at(piece, end).filter(|&border| self.is_broken(border));
            border.is_none_or(|border| {
                self.broken.get(&border.index()).is_none_or(|broken| token < rank(broken))
            })
        };
        let first = token != NONE
            && is_first(|broken| broken.behind, place)
            && is_first(|broken| broken.before, place + length);
        first.then_some((token, length))
    }
}

/// The bytes at both sides of a border between characters.
#[derive(Clone, Copy)]
struct Border {
    before: u8,
    behind: u8,
}

impl Border {
    /// That before a byte; none at the ends of the text.
    #[inline(always)]
    fn at(text: &[u8], place: usize) -> Option<Border> {
        Some(Border { before: *text.get(place.checked_sub(1)?)?, behind: *text.get(place)? })
    }

    #[inline(always)]
    fn index(self) -> usize {
        usize::from(self.before) << 8 | usize::from(self.behind)
    }

    /// The place among neighbours of the characters at the border, or of a part of one, which its byte there stands for.
    #[inline(always)]
    fn between(self, one: Option<Char>, two: Option<Char>) -> usize {
        let one = one.map_or(PART | usize::from(self.before), |char| char.point);
        let two = two.map_or(PART | usize::from(self.behind), |char| char.point);
        neighbours(one, two)
    }
}

/// Above all points of [`Char`].
const PART: usize = 1 << 17;

/// The place of three characters.
#[inline(always)]
fn three(one: Char, two: Char, three: Char) -> usize {
    neighbours(one.point << 18 | two.point, three.point)
}

/// The place of two that are a token, or are in one with nothing else but parts of characters.
#[inline(always)]
fn only(one: Char, two: Char) -> usize {
    neighbours(PART << 1 | one.point, two.point)
}

#[inline(always)]
fn neighbours(one: usize, two: usize) -> usize {
    let both = (one as u64).rotate_left(20) ^ two as u64;
    (both.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - NEIGHBOURS)) as usize
}

/// A character.
#[derive(Clone, Copy)]
struct Char {
    point: usize,
    length: usize,
}

impl Char {
    /// That with which some UTF-8 begins; nothing if there are not four bytes, whatever they are.
    #[inline(always)]
    fn unchecked(text: &[u8]) -> Option<Char> {
        let (point, length) = decode(*text.first_chunk()?);
        Some(Char { point: point as usize, length })
    }

    /// That of one to three bytes with which a token begins.
    #[inline]
    fn first(text: &[u8]) -> Option<Char> {
        let tail = |byte: u8| (byte & 0xC0 == 0x80).then_some(usize::from(byte & 0x3F));
        let (point, length) = match *text {
            [first @ ..0x80, ..] => (usize::from(first), 1),
            [first @ 0xC0..0xE0, second, ..] => (usize::from(first & 0x1F) << 6 | tail(second)?, 2),
            [first @ 0xE0..0xF0, second, third, ..] => {
                (usize::from(first & 0x0F) << 12 | tail(second)? << 6 | tail(third)?, 3)
            }
            _ => return None,
        };
        Some(Char { point, length })
    }
}

/// Bytes of what is no such character: up to the start of the next one.
#[inline]
fn broken_length(text: &[u8]) -> usize {
    1 + text.iter().skip(1).take_while(|&byte| byte & 0xC0 == 0x80).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::scan::PADDING;
    use super::super::{CL100K, O200K};
    use super::*;

    fn parts<'a>(chars: &Chars, piece: &'a str) -> Vec<&'a str> {
        let padded = [piece.as_bytes(), &[0xFF; PADDING]].concat();
        let mut parts = Vec::new();
        chars.cut(&padded, piece.len(), |start, end| parts.push(&piece[start..end]));
        parts
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn parts_have_the_tokens_of_the_whole(
            piece in "[ a一-龥ぁ-ヿ]{1,20}|[ก-๙]{1,30}|[一-丸的是在人有。，]{1,20}|[가-힣 ]{1,20}|[ใาเแก่้นรมที่เป็น]{1,30}|(\\PC|🧠|é|\u{900}){1,12}|[\u{900}-\u{e7f} ]{1,20}|[а-яa一ا-ي]{1,20}"
        ) {
            for source in [&CL100K, &O200K] {
                let built = source.get().unwrap();
                let vocab = &built.vocab;
                let parts = parts(&vocab.chars, &piece);
                prop_assert_eq!(parts.concat(), piece.as_str());
                let sum = parts.iter().map(|part| vocab.naive(part.as_bytes()).len()).sum::<usize>();
                prop_assert_eq!(sum, vocab.naive(piece.as_bytes()).len(), "{:?}", parts);
            }
        }
    }

    #[test]
    fn chinese_has_cuts_and_ascii_none() {
        let built = O200K.get().unwrap();
        let vocab = &built.vocab;
        assert!(parts(&vocab.chars, "人龥有龥的").len() > 2);
        assert_eq!(parts(&vocab.chars, "internationalisation").len(), 1);
        assert_eq!(parts(&vocab.chars, "").len(), 0);
    }
}

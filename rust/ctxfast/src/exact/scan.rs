//! Where a tokenizer cuts a text before it merges: one function for each published split pattern.
//!
//! The patterns look ahead, never back, so where a piece ends depends on nothing before it. These functions are the
//! specification: plain, one character after the other.

use super::classes::{LETTER, LOWER, NUMBER, SPACE, UPPER, classes};

/// A split pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grammar {
    Cl100k,
    O200k,
}

/// What stands in for a lone surrogate.
const REPLACEMENT: u32 = 0xFFFD;

/// A character, and how many units of the text it takes: two for a pair of surrogates.
#[derive(Clone, Copy)]
pub(super) struct Char {
    pub(super) point: u32,
    pub(super) units: usize,
    classes: u8,
}

impl Char {
    #[inline]
    pub(super) fn at<T: Copy + Into<u32>>(units: &[T], place: usize) -> Option<Char> {
        let point: u32 = (*units.get(place)?).into();
        if point & 0xFFFF_F800 == 0xD800 {
            return Some(Char::surrogate(point, units.get(place + 1).map(|&unit| unit.into())));
        }
        Some(Char { point, units: 1, classes: classes(point) })
    }

    /// As Python's codec for UTF-16 reads them: a pair is a character, one alone is U+FFFD.
    #[cold]
    fn surrogate(point: u32, next: Option<u32>) -> Char {
        let (point, units) = match next {
            Some(low @ 0xDC00..0xE000) if point < 0xDC00 => {
                (0x1_0000 + ((point - 0xD800) << 10) + (low - 0xDC00), 2)
            }
            _ => (REPLACEMENT, 1),
        };
        Char { point, units, classes: classes(point) }
    }

    #[inline]
    fn is(self, class: u8) -> bool {
        self.classes & class != 0
    }

    fn is_line_end(self) -> bool {
        self.point == 0x0A || self.point == 0x0D
    }

    /// `[^\r\n\p{L}\p{N}]`, which may stand before letters.
    fn may_lead(self) -> bool {
        !self.is(LETTER | NUMBER) && !self.is_line_end()
    }
}

/// Where the piece that starts at a place ends; behind `start`, or the end of the text.
#[inline]
pub(super) fn piece_end<T: Copy + Into<u32>>(grammar: Grammar, units: &[T], start: usize) -> usize {
    let Some(first) = Char::at(units, start) else { return units.len() };
    match grammar {
        Grammar::Cl100k => cl100k(units, start, first),
        Grammar::O200k => o200k(units, start, first),
    }
}

/// `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`
fn cl100k<T: Copy + Into<u32>>(units: &[T], start: usize, first: Char) -> usize {
    if let Some(end) = contraction(units, start) {
        return end;
    }
    if first.is(LETTER) || first.may_lead() {
        let letters = if first.is(LETTER) { start } else { start + first.units };
        let end = run(units, letters, |char| char.is(LETTER));
        if end > letters {
            return end;
        }
    }
    if first.is(NUMBER) {
        return numbers(units, start);
    }
    if let Some(end) = signs(units, start, first, Char::is_line_end) {
        return end;
    }
    let space = Space::at(units, start);
    if space.end == units.len() { space.end } else { space.line_end.unwrap_or(space.before_last) }
}

/// `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`, then
/// `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`, then
/// `\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
fn o200k<T: Copy + Into<u32>>(units: &[T], start: usize, first: Char) -> usize {
    if let Some(end) = word(units, start, first) {
        return contraction(units, end).unwrap_or(end);
    }
    if first.is(NUMBER) {
        return numbers(units, start);
    }
    let is_tail = |char: Char| char.is_line_end() || char.point == u32::from('/');
    if let Some(end) = signs(units, start, first, is_tail) {
        return end;
    }
    let space = Space::at(units, start);
    space.line_end.unwrap_or(if space.end == units.len() { space.end } else { space.before_last })
}

/// A word of the second grammar, without the contraction behind it. Four attempts, in the pattern's order: with lower
/// case at its end, and a sign before it or not; then without lower case, and a sign or not.
fn word<T: Copy + Into<u32>>(units: &[T], start: usize, first: Char) -> Option<usize> {
    let led = first.may_lead().then(|| Word::at(units, start + first.units));
    if let Some(end) = led.as_ref().and_then(|word| word.with_lower) {
        return Some(end);
    }
    let bare = Word::at(units, start);
    let upper = |word: Word| (word.upper > word.start).then_some(word.upper);
    bare.with_lower.or_else(|| led.and_then(upper)).or_else(|| upper(bare))
}

struct Word {
    start: usize,
    /// the end of the characters that can be upper case
    upper: usize,
    /// the end of the word, if there can be lower case at its end
    with_lower: Option<usize>,
}

impl Word {
    fn at<T: Copy + Into<u32>>(units: &[T], start: usize) -> Word {
        let mut last_lower = None; // letters without case, and marks, can be both
        let mut upper = start;
        while let Some(char) = Char::at(units, upper).filter(|char| char.is(UPPER)) {
            upper += char.units;
            if char.is(LOWER) {
                last_lower = Some(upper);
            }
        }
        let end = run(units, upper, |char| char.is(LOWER));
        Word { start, upper, with_lower: if end > upper { Some(end) } else { last_lower } }
    }
}

/// The end of the characters that are of a kind.
#[inline]
fn run<T: Copy + Into<u32>>(units: &[T], start: usize, belongs: impl Fn(Char) -> bool) -> usize {
    let mut end = start;
    while let Some(char) = Char::at(units, end).filter(|&char| belongs(char)) {
        end += char.units;
    }
    end
}

/// Up to three digits.
fn numbers<T: Copy + Into<u32>>(units: &[T], start: usize) -> usize {
    let mut end = start;
    for _ in 0..3 {
        let Some(char) = Char::at(units, end).filter(|char| char.is(NUMBER)) else { break };
        end += char.units;
    }
    end
}

/// A space or none, signs, and what may stand behind them.
fn signs<T: Copy + Into<u32>>(
    units: &[T],
    start: usize,
    first: Char,
    is_tail: impl Fn(Char) -> bool,
) -> Option<usize> {
    let signs = if first.point == u32::from(' ') { start + 1 } else { start };
    let end = run(units, signs, |char| !char.is(SPACE | LETTER | NUMBER));
    (end > signs).then(|| run(units, end, is_tail))
}

/// White space from a place on.
struct Space {
    end: usize,
    /// behind the last line end
    line_end: Option<usize>,
    /// before its last character, which goes to what follows; behind it if it is the only one
    before_last: usize,
}

impl Space {
    fn at<T: Copy + Into<u32>>(units: &[T], start: usize) -> Space {
        let (mut end, mut last, mut line_end) = (start, start, None);
        while let Some(char) = Char::at(units, end).filter(|char| char.is(SPACE)) {
            last = end;
            end += char.units;
            if char.is_line_end() {
                line_end = Some(end);
            }
        }
        Space { end, line_end, before_last: if last > start { last } else { end } }
    }
}

/// The end of a contraction, in upper or lower case: `'s`, `'t`, `'m`, `'d`, `'ll`, `'ve`, `'re`.
fn contraction<T: Copy + Into<u32>>(units: &[T], start: usize) -> Option<usize> {
    let letter = |place: usize| {
        let point: u32 = (*units.get(start + place)?).into();
        match char::from_u32(point)? {
            'ſ' => Some('s'), // the only other character that is one of these letters where case is ignored
            char => Some(char.to_ascii_lowercase()),
        }
    };
    if letter(0)? != '\'' {
        return None;
    }
    match (letter(1)?, letter(2)) {
        ('s' | 't' | 'm' | 'd', _) => Some(start + 2),
        ('l', Some('l')) | ('v' | 'r', Some('e')) => Some(start + 3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(grammar: Grammar, text: &str) -> Vec<String> {
        let units: Vec<u32> = text.chars().map(u32::from).collect();
        let mut pieces = Vec::new();
        let mut start = 0;
        while start < units.len() {
            let end = piece_end(grammar, &units, start);
            pieces.push(units[start..end].iter().filter_map(|&point| char::from_u32(point)).collect());
            start = end;
        }
        pieces
    }

    #[test]
    fn the_grammars_differ_in_words_and_line_ends() {
        assert_eq!(pieces(Grammar::Cl100k, "camelCase don't"), ["camelCase", " don", "'t"]);
        assert_eq!(pieces(Grammar::O200k, "camelCase don't"), ["camel", "Case", " don't"]);
        assert_eq!(pieces(Grammar::Cl100k, "x \n  "), ["x", " \n  "]);
        assert_eq!(pieces(Grammar::O200k, "x \n  "), ["x", " \n", "  "]);
        assert_eq!(pieces(Grammar::Cl100k, "!/\n/"), ["!/\n", "/"]);
        assert_eq!(pieces(Grammar::O200k, "!/\n/"), ["!/\n/"]);
        assert_eq!(pieces(Grammar::O200k, "1234  a"), ["123", "4", " ", " a"]);
        assert_eq!(pieces(Grammar::O200k, "n'ſ'SDn"), ["n'ſ", "'SDn"]);
    }

    #[test]
    fn surrogates_are_read_as_utf_16_is() {
        let thumb = Char::at(&[0xD83D_u16, 0xDC4D], 0).unwrap();
        assert_eq!((thumb.point, thumb.units), (0x1F44D, 2));
        for alone in [&[0xD83D_u16][..], &[0xD83D, 0xD83D], &[0xDC4D, 0xD83D], &[0xD83D, 0x61]] {
            let char = Char::at(alone, 0).unwrap();
            assert_eq!((char.point, char.units), (REPLACEMENT, 1));
        }
    }

    proptest! {
        #[test]
        fn every_piece_ends_behind_its_start(units in proptest::collection::vec(0..0x11_0000_u32, 0..40), words in r"[aA '\n/1é\u{301}]{0,40}") {
            let words: Vec<u32> = words.chars().map(u32::from).collect();
            for text in [units, words] {
                for start in 0..text.len() {
                    for grammar in [Grammar::Cl100k, Grammar::O200k] {
                        let end = piece_end(grammar, &text, start);
                        prop_assert!(start < end && end <= text.len());
                    }
                }
            }
        }
    }
}

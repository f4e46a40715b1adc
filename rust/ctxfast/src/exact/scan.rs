//! Where a tokenizer cuts a text before it merges: the split patterns that are published, as functions.
//!
//! The patterns look ahead, never back, so where a piece ends depends on nothing before it. These functions are the
//! specification: plain, one character after the other. `wide` does the same for 64 characters at a time.

use super::classes::{END, LETTER, LOWER, NUMBER, SPACE, UPPER, classes};

/// A split pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Grammar {
    pub(super) words: Words,
    /// Digits of a piece, at most.
    pub(super) digits: usize,
    /// Whether `'s`, `'t`, `'re` and the like are pieces (of [`Words::Letters`]) or belong to the word before.
    pub(super) contractions: bool,
    /// Whether white space at the end of the text is one piece, whatever line ends are in it (of [`Words::Letters`]).
    pub(super) whole_end: bool,
}

/// What is a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Words {
    /// Letters.
    Letters,
    /// Letters and marks; a capital behind a small letter begins another word. Signs take slashes behind them.
    Cased,
}

impl Grammar {
    pub(super) const CL100K: Grammar =
        Grammar { words: Words::Letters, digits: 3, contractions: true, whole_end: true };
    pub(super) const O200K: Grammar =
        Grammar { words: Words::Cased, digits: 3, contractions: true, whole_end: false };
    pub(super) const LLAMA3: Grammar = Grammar { whole_end: false, ..Grammar::CL100K };
    pub(super) const QWEN2: Grammar = Grammar { digits: 1, ..Grammar::LLAMA3 };
    pub(super) const TEKKEN: Grammar = Grammar { digits: 1, contractions: false, ..Grammar::O200K };

    #[cfg(test)]
    pub(super) const ALL: [Grammar; 5] =
        [Grammar::CL100K, Grammar::O200K, Grammar::LLAMA3, Grammar::QWEN2, Grammar::TEKKEN];
}

/// UTF-8 in a buffer: the text, then [`END_BYTE`], and what may be read beyond it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Padded<'a> {
    pub(super) bytes: &'a [u8],
    /// Bytes of text; at least [`PADDING`] others follow.
    pub(super) end: usize,
}

/// What stands behind a text, and never in one.
pub(super) const END_BYTE: u8 = 0xFF;

/// Bytes behind a text, with the one that ends it.
pub(super) const PADDING: usize = 128;

/// A character of UTF-8, or the end of the text.
#[derive(Clone, Copy)]
struct Char {
    point: u32,
    length: usize,
    classes: u8,
}

impl Char {
    #[inline(always)]
    fn at(text: Padded<'_>, place: usize) -> Char {
        let four: Option<&[u8; 4]> = text.bytes.get(place..).and_then(<[u8]>::first_chunk);
        let (point, length) = decode(four.copied().unwrap_or([END_BYTE; 4]));
        Char { point, length, classes: classes(point) }
    }

    #[inline(always)]
    fn is(self, class: u8) -> bool {
        self.classes & class != 0
    }

    fn is_line_end(self) -> bool {
        self.point == 0x0A || self.point == 0x0D
    }

    /// `[^\r\n\p{L}\p{N}]`, which may stand before letters.
    fn may_lead(self) -> bool {
        !self.is(LETTER | NUMBER | END) && !self.is_line_end()
    }

    /// `[^\s\p{L}\p{N}]`
    fn is_sign(self) -> bool {
        !self.is(SPACE | LETTER | NUMBER | END)
    }
}

/// The code point of the character with which four bytes begin, and its bytes: above all code points for [`END_BYTE`].
#[inline(always)]
pub(super) fn decode(four: [u8; 4]) -> (u32, usize) {
    let four = u32::from_le_bytes(four);
    let tail = |shift: u32| four >> shift & 0x3F;
    match four & 0xFF {
        first @ ..0x80 => (first, 1),
        first @ ..0xE0 => ((first & 0x1F) << 6 | tail(8), 2),
        first @ ..0xF0 => ((first & 0x0F) << 12 | tail(8) << 6 | tail(16), 3),
        first => ((first & 0x0F) << 18 | tail(8) << 12 | tail(16) << 6 | tail(24), 4),
    }
}

/// Where the piece that starts at a place ends; behind `start`, or the end of the text.
#[inline(always)]
pub(super) fn piece_end(grammar: Grammar, text: Padded<'_>, start: usize) -> usize {
    let first = Char::at(text, start);
    match grammar.words {
        _ if first.is(END) => text.end,
        Words::Letters => letters(grammar, text, start, first),
        Words::Cased => cased(grammar, text, start, first),
    }
}

/// `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`;
/// others have `\s*[\r\n]+|\s+(?!\S)|\s+` at the end.
#[inline(always)]
fn letters(grammar: Grammar, text: Padded<'_>, start: usize, first: Char) -> usize {
    if first.point == u32::from('\'')
        && grammar.contractions
        && let Some(end) = contraction(text, start)
    {
        return end;
    }
    if first.is(LETTER) || first.may_lead() {
        let letters = if first.is(LETTER) { start } else { start + first.length };
        let end = run(text, letters, |char| char.is(LETTER));
        if end > letters {
            return end;
        }
    }
    if first.is(NUMBER) {
        return numbers(grammar, text, start);
    }
    if let Some(end) = signs(text, start, first, Char::is_line_end) {
        return end;
    }
    let space = Space::at(text, start);
    if grammar.whole_end && space.end == text.end { space.end } else { space.piece_end(text) }
}

/// `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`, then
/// `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`, then
/// `\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
#[inline(always)]
fn cased(grammar: Grammar, text: Padded<'_>, start: usize, first: Char) -> usize {
    if let Some(end) = word(text, start, first) {
        let behind = if grammar.contractions { contraction(text, end) } else { None };
        return behind.unwrap_or(end);
    }
    if first.is(NUMBER) {
        return numbers(grammar, text, start);
    }
    let is_tail = |char: Char| char.is_line_end() || char.point == u32::from('/');
    if let Some(end) = signs(text, start, first, is_tail) {
        return end;
    }
    Space::at(text, start).piece_end(text)
}

/// A word of the second grammar, without the contraction behind it. Four attempts, in the pattern's order: with lower
/// case at its end, and a sign before it or not; then without lower case, and a sign or not.
#[inline(always)]
fn word(text: Padded<'_>, start: usize, first: Char) -> Option<usize> {
    let upper = |word: Word| (word.upper > word.start).then_some(word.upper);
    if !first.may_lead() {
        let bare = Word::at(text, start);
        return bare.with_lower.or_else(|| upper(bare));
    }
    let led = Word::at(text, start + first.length);
    if led.with_lower.is_some() {
        return led.with_lower;
    }
    if !first.is(UPPER | LOWER) {
        return upper(led);
    }
    let bare = Word::at(text, start); // a mark, which can be the sign as well
    bare.with_lower.or_else(|| upper(led)).or_else(|| upper(bare))
}

struct Word {
    start: usize,
    /// the end of the characters that can be upper case
    upper: usize,
    /// the end of the word, if there can be lower case at its end
    with_lower: Option<usize>,
}

impl Word {
    #[inline(always)]
    fn at(text: Padded<'_>, start: usize) -> Word {
        let mut last_lower = None; // letters without case, and marks, can be both
        let mut upper = start;
        loop {
            let char = Char::at(text, upper);
            if !char.is(UPPER) {
                break;
            }
            upper += char.length;
            if char.is(LOWER) {
                last_lower = Some(upper);
            }
        }
        let end = run(text, upper, |char| char.is(LOWER));
        Word { start, upper, with_lower: if end > upper { Some(end) } else { last_lower } }
    }
}

/// The end of the characters that are of a kind.
#[inline(always)]
fn run(text: Padded<'_>, start: usize, belongs: impl Fn(Char) -> bool) -> usize {
    let mut end = start;
    loop {
        let char = Char::at(text, end);
        if !belongs(char) {
            return end;
        }
        end += char.length;
    }
}

fn numbers(grammar: Grammar, text: Padded<'_>, start: usize) -> usize {
    let mut end = start;
    for _ in 0..grammar.digits {
        let char = Char::at(text, end);
        if !char.is(NUMBER) {
            break;
        }
        end += char.length;
    }
    end
}

/// A space or none, signs, and what may stand behind them.
#[inline(always)]
fn signs(text: Padded<'_>, start: usize, first: Char, is_tail: impl Fn(Char) -> bool) -> Option<usize> {
    let signs = if first.point == u32::from(' ') { start + 1 } else { start };
    let end = run(text, signs, Char::is_sign);
    (end > signs).then(|| run(text, end, is_tail))
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
    fn at(text: Padded<'_>, start: usize) -> Space {
        let (mut end, mut last, mut line_end) = (start, start, None);
        loop {
            let char = Char::at(text, end);
            if !char.is(SPACE) {
                break;
            }
            last = end;
            end += char.length;
            if char.is_line_end() {
                line_end = Some(end);
            }
        }
        Space { end, line_end, before_last: if last > start { last } else { end } }
    }

    /// `\s*[\r\n]+|\s+(?!\S)|\s+`
    #[inline(always)]
    fn piece_end(&self, text: Padded<'_>) -> usize {
        self.line_end.unwrap_or(if self.end == text.end { self.end } else { self.before_last })
    }
}

/// The end of a contraction, in upper or lower case: `'s`, `'t`, `'m`, `'d`, `'ll`, `'ve`, `'re`.
fn contraction(text: Padded<'_>, start: usize) -> Option<usize> {
    let letter = |place: usize| text.bytes.get(start + place).map(u8::to_ascii_lowercase);
    if letter(0)? != b'\'' {
        return None;
    }
    match (letter(1)?, letter(2)) {
        (b's' | b't' | b'm' | b'd', _) => Some(start + 2),
        // the last one is `ſ`, which is an s where case is ignored
        (b'l', Some(b'l')) | (b'v' | b'r', Some(b'e')) | (0xC5, Some(0xBF)) => Some(start + 3),
        _ => None,
    }
}

/// The last place, behind the start, at which a piece begins whatever the rest of the text is, and at which the text
/// may be cut: the tokens of both parts are those of the whole. It is where letters or digits end before something else,
/// or where a line begins.
pub(super) fn last_border(text: Padded<'_>) -> Option<usize> {
    last_border_behind(text, 0)
}

/// The same behind a place, up to which there is none.
pub(super) fn last_border_behind(text: Padded<'_>, first: usize) -> Option<usize> {
    let mut place = text.end;
    let mut next: Option<Char> = None;
    while place >= first
        && let Some(start) = place.checked_sub(1).and_then(|last| start_of_char(text.bytes, last))
    {
        let char = Char::at(text, start);
        if next.is_some_and(|next| is_border(char, next)) {
            return Some(place);
        }
        (place, next) = (start, Some(char));
    }
    None
}

/// The first such place behind the character at a place.
pub(super) fn first_border(text: Padded<'_>, start: usize) -> Option<usize> {
    let mut before = Char::at(text, start);
    let mut place = start + before.length;
    while place < text.end {
        let char = Char::at(text, place);
        if is_border(before, char) {
            return Some(place);
        }
        (place, before) = (place + char.length, char);
    }
    None
}

/// The start of the character that has the byte at a place.
fn start_of_char(text: &[u8], mut place: usize) -> Option<usize> {
    while text.get(place)? & 0xC0 == 0x80 {
        place = place.checked_sub(1)?;
    }
    Some(place)
}

fn is_border(one: Char, two: Char) -> bool {
    if one.is_line_end() {
        return !two.is(SPACE) && two.point != u32::from('/');
    }
    one.is(LETTER | NUMBER) && !two.is(LETTER | NUMBER | UPPER | LOWER) && two.point != u32::from('\'')
}

/// What tests read.
#[cfg(test)]
pub(super) fn padded(text: &str, read: impl FnOnce(Padded<'_>)) {
    let bytes = [text.as_bytes(), &[END_BYTE; PADDING]].concat();
    read(Padded { bytes: &bytes, end: text.len() });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(grammar: Grammar, text: &str) -> Vec<&str> {
        let mut pieces = Vec::new();
        padded(text, |bytes| {
            let mut start = 0;
            while start < text.len() {
                let end = piece_end(grammar, bytes, start);
                pieces.push(&text[start..end]);
                start = end;
            }
        });
        pieces
    }

    #[test]
    fn the_grammars_differ_in_words_and_line_ends() {
        let [cl100k, o200k, llama3, qwen2, tekken] = Grammar::ALL;
        assert_eq!(pieces(cl100k, "camelCase don't"), ["camelCase", " don", "'t"]);
        assert_eq!(pieces(o200k, "camelCase don't"), ["camel", "Case", " don't"]);
        assert_eq!(pieces(tekken, "camelCase don't"), ["camel", "Case", " don", "'t"]);
        assert_eq!(pieces(cl100k, "x \n  "), ["x", " \n  "]);
        for grammar in [o200k, llama3, qwen2, tekken] {
            assert_eq!(pieces(grammar, "x \n  "), ["x", " \n", "  "]);
        }
        assert_eq!(pieces(llama3, "1234  a"), ["123", "4", " ", " a"]);
        assert_eq!(pieces(cl100k, "!/\n/"), ["!/\n", "/"]);
        assert_eq!(pieces(o200k, "!/\n/"), ["!/\n/"]);
        assert_eq!(pieces(o200k, "1234  a"), ["123", "4", " ", " a"]);
        assert_eq!(pieces(qwen2, "123  a"), ["1", "2", "3", " ", " a"]);
        assert_eq!(pieces(o200k, "n'ſ'SDn"), ["n'ſ", "'SDn"]);
    }

    /// Texts of characters that the patterns tell apart.
    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            "[aA '\n/1.é\u{301}สſʰ\t\r中🧠\u{a0}stlLvVeE]{0,40}",
            "\\PC{0,40}",
            "[a-zA-Z0-9 \n.,'/]{0,80}"
        ]
    }

    proptest! {
        #[test]
        fn every_piece_ends_behind_its_start_at_a_character(text in texts()) {
            padded(&text, |bytes| for (start, _) in text.char_indices() {
                for grammar in Grammar::ALL {
                    let end = piece_end(grammar, bytes, start);
                    assert!(start < end && text.is_char_boundary(end));
                }
            });
        }

        #[test]
        fn a_text_may_be_cut_at_a_border(text in texts(), behind in texts()) {
            let (mut border, mut first) = (None, None);
            padded(&text, |bytes| (border, first) = (last_border(bytes), first_border(bytes, 0)));
            prop_assert!(first <= border && first.is_some() == border.is_some());
            let Some(border) = border else { return Ok(()) };
            prop_assert!(0 < border && border < text.len() && text.is_char_boundary(border));
            let whole = text.clone() + &behind;
            let (one, two) = whole.split_at(border);
            for grammar in Grammar::ALL {
                let parts = [pieces(grammar, one), pieces(grammar, two)].concat();
                prop_assert_eq!(pieces(grammar, &whole), parts);
            }
        }

        #[test]
        fn there_is_a_border_in_words(words in "[a-z]{1,9} [a-z]{1,9}") {
            padded(&words, |bytes| assert_eq!(last_border(bytes), words.find(' ')));
        }
    }
}

//! Where pieces begin in 64 bytes at once, for ASCII: the rules of `scan` in the algebra of bits.
//!
//! Bit `i` of a mask stands for byte `i`. The bytes begin where a piece begins, so nothing before them is asked for.
//! What could depend on bytes behind them, or on characters beyond ASCII, is left to `scan`.
//!
//! The masks are made by plain code that the compiler vectorises: a byte of classes for each byte of text, and a
//! transposition of these bits.

use super::scan::{Grammar, PADDING, Words};

/// Bytes that are looked at together.
pub(super) const WINDOW: usize = PADDING;

/// Bytes behind a piece on which its end can depend: a contraction.
const AHEAD: u32 = 3;

/// Which bytes are of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Masks {
    letter: u64,
    small: u64,
    digit: u64,
    space: u64,
    line_end: u64,
    /// white space, with spaces and line ends
    white: u64,
    apostrophe: u64,
    slash: u64,
    /// beyond ASCII, such as what stands behind a text
    unknown: u64,
}

const LETTER: u8 = 1;
const SMALL: u8 = 2; // or a slash, if it is no letter
const DIGIT: u8 = 4;
const SPACE: u8 = 8;
const LINE_END: u8 = 16;
const WHITE: u8 = 32;
const MARKED: u8 = 64; // an apostrophe or a slash
const UNKNOWN: u8 = 128;

/// The classes of a byte.
#[inline(always)]
#[expect(
    clippy::needless_bitwise_bool,
    reason = "without branches, of which the compiler makes wide comparisons"
)]
fn class(byte: u8) -> u8 {
    let within = |byte: u8, start: u8, more: u8| byte.wrapping_sub(start) <= more;
    let when = |is: bool, class: u8| if is { class } else { 0 };
    let letter = within(byte | 0x20, b'a', 25);
    let small = letter & (byte & 0x20 != 0);
    let line_end = (byte == b'\n') | (byte == b'\r');
    let white = (byte == b' ') | within(byte, 9, 4);
    when(letter, LETTER)
        | when(small | (byte == b'/'), SMALL)
        | when(within(byte, b'0', 9), DIGIT)
        | when(byte == b' ', SPACE)
        | when(line_end, LINE_END)
        | when(white, WHITE)
        | when((byte == b'\'') | (byte == b'/'), MARKED)
        | when(byte >= 0x80, UNKNOWN)
}

impl Masks {
    #[inline(always)]
    fn of(bytes: &[u8; WINDOW]) -> Masks {
        let [letter, small, digit, space, line_end, white, marked, unknown] = planes(bytes.map(class));
        let slash = marked & small;
        Masks {
            letter,
            small: small & letter,
            digit,
            space,
            line_end,
            white,
            apostrophe: marked & !slash,
            slash,
            unknown,
        }
    }
}

/// Bit `i` of plane `k` is bit `k` of byte `i`.
#[inline(always)]
fn planes(bytes: [u8; WINDOW]) -> [u64; 8] {
    let mut rows = [0_u64; 8];
    for (row, eight) in rows.iter_mut().zip(bytes.as_chunks().0) {
        *row = u64::from_le_bytes(*eight);
    }
    // the 8 x 8 bits of each row
    for row in &mut rows {
        let mut bits = *row;
        let swap = (bits ^ bits >> 7) & 0x00AA_00AA_00AA_00AA;
        bits ^= swap ^ swap << 7;
        let swap = (bits ^ bits >> 14) & 0x0000_CCCC_0000_CCCC;
        bits ^= swap ^ swap << 14;
        let swap = (bits ^ bits >> 28) & 0x0000_0000_F0F0_F0F0;
        *row = bits ^ swap ^ swap << 28;
    }
    // the 8 x 8 bytes of all rows
    swap(&mut rows, [(0, 4), (1, 5), (2, 6), (3, 7)], 32, 0x0000_0000_FFFF_FFFF);
    swap(&mut rows, [(0, 2), (1, 3), (4, 6), (5, 7)], 16, 0x0000_FFFF_0000_FFFF);
    swap(&mut rows, [(0, 1), (2, 3), (4, 5), (6, 7)], 8, 0x00FF_00FF_00FF_00FF);
    rows
}

/// Of two rows, swaps the bits of the first that the mask leaves out with those of the second that it has.
#[inline(always)]
fn swap(rows: &mut [u64; 8], pairs: [(usize, usize); 4], shift: u32, mask: u64) {
    for (one, two) in pairs {
        if let Ok([one, two]) = rows.get_disjoint_mut([one, two]) {
            (*one, *two) = (*one & mask | (*two & mask) << shift, (*one & !mask) >> shift | *two & !mask);
        }
    }
}

/// Places at which pieces begin for certain, but for the first one; all up to the last of them.
#[inline(always)]
pub(super) fn starts(grammar: Grammar, bytes: &[u8; WINDOW]) -> u64 {
    let cased = grammar.words == Words::Cased;
    let masks = Masks::of(bytes);
    let Masks { letter, digit, space, line_end, .. } = masks;
    let mut unknown = masks.unknown;
    let sign = !(letter | digit | masks.white | unknown);

    // line ends behind signs belong to them: adding carries through a run of line ends
    let behind_sign = sign << 1 & line_end;
    let tail = (line_end.wrapping_add(behind_sign) ^ line_end) & line_end;
    if cased {
        unknown |= masks.slash & tail << 1; // more of the tail; rare
    }
    let white = masks.white & !tail;
    let blank = white & !line_end;
    let with_space = (space & white) << 1; // what a space stands before

    // signs: a run, with a space before it; a single one before letters belongs to them
    let first_sign = sign & !(sign << 1) & !with_space;
    let leads = first_sign & !(sign >> 1) & letter >> 1;
    let mut starts = first_sign;

    // letters: a run, with a blank or a sign before it
    starts |= letter & !(letter << 1) & !((blank | leads) << 1);
    if cased {
        starts |= letter & !masks.small & masks.small << 1;
    }

    // digits: a run, in groups
    let first_digit = digit & !(digit << 1);
    starts |= if grammar.digits == 1 { digit } else { groups_of_three(digit, first_digit) };

    // white space: a run, up to its last line end, then up to its last blank
    starts |= white & !(white << 1);
    starts |= blank & !(masks.white >> 1);
    starts |= behind_last_line_end(white, blank, line_end);

    let contractions = leads & masks.apostrophe;
    if grammar.contractions && contractions != 0 {
        // of the word before, if there is one; or pieces by themselves
        let (two, three) = of_length(bytes, if cased { contractions & letter << 1 } else { contractions });
        let ends = two << 2 | three << 3;
        if cased {
            starts &= !(two | two << 1 | three | three << 1 | three << 2);
            unknown |= ends & masks.apostrophe; // one behind another is the next word
        }
        starts |= ends;
    }

    // certain: what stands far enough before the first unknown byte, and not in white space that reaches it
    let known = unknown.trailing_zeros();
    let not_white = !masks.white & below(known);
    let certain = known.saturating_sub(AHEAD).min(u64::BITS - not_white.leading_zeros());
    starts & (below(certain) | below(certain) << 1) & !1
}

/// The lowest bits.
#[inline(always)]
fn below(bits: u32) -> u64 {
    1_u64.checked_shl(bits).unwrap_or(0).wrapping_sub(1)
}

/// The first of each three digits.
#[inline(always)]
fn groups_of_three(digit: u64, first: u64) -> u64 {
    let fourth = digit & digit << 1 & digit << 2 & digit << 3;
    let (mut starts, mut next) = (first, first);
    loop {
        next = next << 3 & fourth;
        if next == 0 {
            return starts;
        }
        starts |= next;
    }
}

/// Blanks behind the last line end of a run of white space.
#[inline(always)]
fn behind_last_line_end(white: u64, blank: u64, line_end: u64) -> u64 {
    let mut behind = blank & (line_end & white) << 1;
    let mut later = if behind == 0 { 0 } else { line_end & blank << 1 };
    while later != 0 {
        let place = later.trailing_zeros();
        later &= later - 1;
        // the blanks before it begin behind a line end that is not the last, or at the start of the run
        let others = !blank & below(place);
        behind &= !1_u64.checked_shl(u64::BITS - others.leading_zeros()).unwrap_or(0);
    }
    behind
}

/// The apostrophes with which contractions of two bytes begin, and of three.
#[inline(always)]
fn of_length(bytes: &[u8; WINDOW], mut apostrophes: u64) -> (u64, u64) {
    let (mut two, mut three) = (0, 0);
    while apostrophes != 0 {
        let place = apostrophes.trailing_zeros();
        let apostrophe = apostrophes & apostrophes.wrapping_neg();
        apostrophes &= apostrophes - 1;
        let letter = |offset| bytes.get(place as usize + offset).map_or(0, |byte| byte | 0x20);
        match (letter(1), letter(2)) {
            (b's' | b't' | b'm' | b'd', _) => two |= apostrophe,
            (b'l', b'l') | (b'v' | b'r', b'e') => three |= apostrophe,
            _ => {}
        }
    }
    (two, three)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::scan::{padded, piece_end};
    use super::*;

    #[test]
    fn planes_are_the_bits_of_the_bytes() {
        let bytes: [u8; WINDOW] = std::array::from_fn(|place| (place * 151 + 7).to_le_bytes()[0]);
        for (plane, bits) in planes(bytes).into_iter().enumerate() {
            for (place, byte) in bytes.into_iter().enumerate() {
                assert_eq!(bits >> place & 1, u64::from(byte >> plane & 1));
            }
        }
    }

    #[test]
    fn classes_are_those_of_the_patterns() {
        for byte in 0..=255_u8 {
            let char = char::from(byte);
            let known = char.is_ascii();
            let marked = (byte == b'\'') || (byte == b'/');
            let expected = [
                (char.is_ascii_alphabetic(), LETTER),
                (char.is_ascii_lowercase() || byte == b'/', SMALL),
                (char.is_ascii_digit(), DIGIT),
                (char == ' ', SPACE),
                (char == '\n' || char == '\r', LINE_END),
                (known && (char.is_ascii_whitespace() || byte == 11), WHITE),
                (marked, MARKED),
                (!known, UNKNOWN),
            ];
            let expected = expected.into_iter().filter(|(is, _)| *is).map(|(_, class)| class).sum::<u8>();
            assert_eq!(class(byte), expected, "{byte}");
        }
    }

    fn windows(text: &str) {
        padded(text, |padded| {
            for grammar in Grammar::ALL {
                let mut begin = 0;
                while begin < text.len() {
                    let window = padded.bytes[begin..].first_chunk().unwrap();
                    let mut expected = 0;
                    let found = starts(grammar, window);
                    let mut end = piece_end(grammar, padded, begin);
                    while end < begin + WINDOW && end < text.len() {
                        expected |= 1 << (end - begin);
                        end = piece_end(grammar, padded, end);
                    }
                    let last = u64::BITS - found.leading_zeros();
                    let certain = if last == 64 { u64::MAX } else { (1 << last) - 1 };
                    assert_eq!(found, expected & certain, "{grammar:?} {:?}", &text[begin..]);
                    // on with the next piece, not the next window: every start is tried
                    begin = piece_end(grammar, padded, begin);
                }
            }
        });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn starts_are_those_of_the_scanner(
            text in "[a-zA-Z0-9 \n.,'/]{0,160}|[ -~\t\r\n]{0,160}|(\\PC|[ -~]{1,20}){0,12}|('[sStTlLvVrReEmMdD]{0,3}|[aB /\n\r\t!]){0,60}|[ \n\ta!]{0,100}|[\0\u{b}\u{1c}a 0]{0,80}"
        ) {
            windows(&text);
        }
    }

    #[test]
    fn most_of_a_window_of_words_is_certain() {
        let text = b"Most words of a text are known at once, and so are 12345 numbers.";
        let found = starts(Grammar::O200K, text.first_chunk().unwrap());
        assert_eq!(found.count_ones(), 16);
    }
}

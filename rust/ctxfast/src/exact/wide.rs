//! Where pieces begin among 64 characters at once: the rules of `scan` in the algebra of bits.
//!
//! Bit `i` of a mask stands for character `i`. The characters begin where a piece begins, so nothing before them is asked
//! for. What could depend on characters behind them is left to `scan`, and so is what is rare.
//!
//! Each character becomes a byte of classes, and the bits of these the masks. For ASCII that is plain code that the
//! compiler vectorises; for other characters, which have two or three bytes, it is a table.

use super::classes::{END, LEAD, LETTER, LOWER, NUMBER, SPACE, TAIL, UPPER, classes};
use super::scan::{Grammar, PADDING, Words};
use crate::dispatch::Vectors;

/// Characters that are looked at together.
const CHARS: usize = 64;

/// Bytes that are looked at together, if not all are ASCII.
pub(super) const BYTES: usize = PADDING;

/// Characters behind a piece on which its end can depend: a contraction.
const AHEAD: u32 = 3;

/// A surrogate, of the class [`END`].
const NO_CHAR: u16 = 0xD800;

/// The places of characters.
type Places = [u8; CHARS];

/// Those of ASCII.
#[expect(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "while compiling")]
static PLACES: Places = {
    let mut places = [0; CHARS];
    let mut place = 0;
    while place < CHARS {
        places[place] = place as u8;
        place += 1;
    }
    places
};

/// The classes of a character of one byte; [`END`] for other bytes.
#[inline(always)]
#[expect(
    clippy::needless_bitwise_bool,
    reason = "without branches, of which the compiler makes wide comparisons"
)]
fn class(byte: u8) -> u8 {
    let within = |byte: u8, start: u8, more: u8| byte.wrapping_sub(start) <= more;
    let when = |is: bool, class: u8| if is { class } else { 0 };
    let line_end = (byte == b'\n') | (byte == b'\r');
    when(within(byte | 0x20, b'a', 25), LETTER)
        | when(within(byte, b'A', 25), UPPER)
        | when(within(byte, b'a', 25), LOWER)
        | when(within(byte, b'0', 9), NUMBER)
        | when((byte == b' ') | within(byte, 9, 4), SPACE)
        | when(line_end | (byte == b'/'), TAIL)
        | when((byte == b' ') | (byte == b'\''), LEAD)
        | when(byte >= 0x80, END)
}

/// Characters at which pieces begin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Starts {
    /// For certain, but for the first one; all up to the last of them.
    pub(super) certain: u64,
    /// Characters that are digits.
    digit: u64,
}

impl Starts {
    /// Of the pieces that end where one begins for certain: those that begin with a digit, and those of one character.
    #[inline(always)]
    pub(super) fn numbers_and_single(self) -> (u64, u64) {
        let starts = self.all();
        (starts & self.digit, starts & self.certain >> 1)
    }

    /// Of all pieces that end where one begins for certain.
    #[inline(always)]
    pub(super) fn all(self) -> u64 {
        (self.certain | 1) & below(self.last())
    }

    /// Where the last of these ends; at the first character if there are none.
    #[inline(always)]
    pub(super) fn last(self) -> u32 {
        (self.certain | 1).ilog2()
    }

    /// Where the first of some pieces ends.
    #[inline(always)]
    pub(super) fn end(self, pieces: u64) -> u32 {
        let up_to_its_start = pieces ^ pieces.wrapping_sub(1);
        (self.certain & !up_to_its_start).trailing_zeros()
    }
}

/// Those of ASCII.
#[inline(always)]
pub(super) fn starts_in_ascii(vectors: impl Vectors, grammar: Grammar, bytes: &[u8; CHARS]) -> Starts {
    starts(vectors, grammar, bytes, &PLACES, bytes.map(class))
}

/// Those of any characters, and where they are.
#[inline(always)]
pub(super) fn starts_in_chars(
    vectors: impl Vectors,
    grammar: Grammar,
    bytes: &[u8; BYTES],
) -> (Starts, Places) {
    let mut points = [NO_CHAR; BYTES]; // the last two bytes do not show which
    let (second, third) = (bytes.iter().skip(1), bytes.iter().skip(2));
    for (((point, &one), &two), &three) in points.iter_mut().zip(bytes).zip(second).zip(third) {
        *point = code_point(one, two, three);
    }
    let (mut found, mut places) = ([END; CHARS], [0; CHARS]);
    let mut chars = found.iter_mut().zip(&mut places);
    let (halves, _) = bytes.as_chunks();
    for ((half, points), first) in halves.iter().zip(points.as_chunks::<CHARS>().0).zip([0, 64]) {
        let mut here = vectors.highest_bits(half.map(|byte| !byte | byte << 1)); // not of those 0b10...
        while here != 0
            && let Some((own, place)) = chars.next()
        {
            let char = here.trailing_zeros();
            here &= here - 1;
            *own = points.get(char as usize).map_or(END, |&point| classes(point.into()));
            *place = first + char.to_le_bytes()[0];
        }
    }
    (starts(vectors, grammar, bytes, &places, found), places)
}

/// That of a character of at most three bytes; else, or if these are not its own, some surrogate or a wrong one.
#[inline(always)]
fn code_point(one: u8, two: u8, three: u8) -> u16 {
    let tail = |byte: u8| u16::from(byte & 0x3F);
    let lead = u16::from(one);
    match one {
        0..0x80 => lead,
        0x80..0xE0 => (lead & 0x1F) << 6 | tail(two),
        0xE0..0xF0 => lead << 12 | tail(two) << 6 | tail(three),
        _ => NO_CHAR,
    }
}

#[inline(always)]
fn starts(
    vectors: impl Vectors,
    grammar: Grammar,
    bytes: &[u8],
    places: &Places,
    classes: [u8; CHARS],
) -> Starts {
    let cased = grammar.words == Words::Cased;
    let [mut letter, digit, all_white, upper, lower, tail, lead, mut unknown] = planes(vectors, classes);
    let (line_end, slash) = (tail & all_white, tail & !all_white);
    let (space, apostrophe) = (lead & all_white, lead & !all_white);
    let either = upper & lower;
    if cased {
        let mark = either & !letter; // as a letter, behind others
        letter |= mark;
        unknown |= mark & !(letter << 1) | upper & !lower & either << 1;
    }
    let sign = !(letter | digit | all_white | unknown);

    // line ends behind signs belong to them: adding carries through a run of line ends
    let behind_sign = sign << 1 & line_end;
    let trailing = (line_end.wrapping_add(behind_sign) ^ line_end) & line_end;
    if cased {
        unknown |= slash & trailing << 1; // more of them; rare
    }
    let white = all_white & !trailing;
    let blank = white & !line_end;
    let with_space = (space & white) << 1; // what a space stands before

    // signs: a run, with a space before it; a single one before letters belongs to them
    let first_sign = sign & !(sign << 1) & !with_space;
    let leads = first_sign & !(sign >> 1) & letter >> 1;
    let mut starts = first_sign;

    // letters: a run, with a blank or a sign before it
    starts |= letter & !(letter << 1) & !((blank | leads) << 1);
    if cased {
        starts |= upper & !lower & (lower & !upper) << 1;
    }

    // digits: a run, in groups
    let first_digit = digit & !(digit << 1);
    starts |= if grammar.digits == 1 { digit } else { groups_of_three(digit, first_digit) };

    // white space: a run, up to its last line end, then up to its last blank
    starts |= white & !(white << 1);
    starts |= blank & !(all_white >> 1);
    starts |= behind_last_line_end(white, blank, line_end);

    let contractions = leads & apostrophe;
    if grammar.contractions && contractions != 0 {
        // of the word before, if there is one; or pieces by themselves
        let (two, three) =
            of_length(bytes, places, if cased { contractions & letter << 1 } else { contractions });
        let ends = two << 2 | three << 3;
        if cased {
            starts &= !(two | two << 1 | three | three << 1 | three << 2);
            unknown |= ends & apostrophe; // one behind another is the next word
        }
        starts |= ends;
    }

    // certain: what stands far enough before the first unknown one, and not in white space that reaches it
    let known = unknown.trailing_zeros();
    let not_white = !all_white & below(known);
    let certain = known.saturating_sub(AHEAD).min(u64::BITS - not_white.leading_zeros());
    Starts { certain: starts & (below(certain) | below(certain) << 1) & !1, digit }
}

/// Bit `i` of plane `k` is bit `k` of byte `i`.
#[inline(always)]
fn planes(vectors: impl Vectors, mut bytes: [u8; CHARS]) -> [u64; 8] {
    let mut planes = [0; 8];
    for plane in planes.iter_mut().rev() {
        *plane = vectors.highest_bits(bytes);
        bytes = bytes.map(|byte| byte << 1);
    }
    planes
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

/// The apostrophes with which contractions of two characters begin, and of three.
#[inline(always)]
fn of_length(bytes: &[u8], places: &Places, mut apostrophes: u64) -> (u64, u64) {
    let (mut two, mut three) = (0, 0);
    while apostrophes != 0 {
        let place = places.get(apostrophes.trailing_zeros() as usize).map_or(0, |&place| usize::from(place));
        let apostrophe = apostrophes & apostrophes.wrapping_neg();
        apostrophes &= apostrophes - 1;
        let letter = |offset| bytes.get(place + offset).map_or(0, u8::to_ascii_lowercase);
        match (letter(1), letter(2)) {
            (b's' | b't' | b'm' | b'd', _) | (0xC5, 0xBF) => two |= apostrophe,
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
    use crate::dispatch::{Baseline, Kernel, best};

    #[test]
    fn planes_are_the_bits_of_the_bytes() {
        let bytes: [u8; CHARS] = std::array::from_fn(|place| (place * 151 + 7).to_le_bytes()[0]);
        for (plane, bits) in planes(Baseline, bytes).into_iter().enumerate() {
            for (place, byte) in bytes.into_iter().enumerate() {
                assert_eq!(bits >> place & 1, u64::from(byte >> plane & 1));
            }
        }
    }

    #[test]
    fn classes_are_those_of_the_table() {
        for byte in 0..0x80 {
            assert_eq!(class(byte), classes(byte.into()), "{byte}");
        }
        for byte in 0x80..=255 {
            assert_eq!(class(byte), END);
        }
        for char in '\0'..='\u{ffff}' {
            let bytes = char.to_string().into_bytes();
            let at = |place| bytes.get(place).copied().unwrap_or(0xFF);
            assert_eq!(u32::from(code_point(at(0), at(1), at(2))), u32::from(char));
        }
        assert_eq!(classes(code_point(0xF0, 0x9F, 0xA7).into()), END);
        assert_eq!(classes(code_point(0xFF, 0x20, 0x20).into()), END);
    }

    /// What is found from a place on, by the bytes.
    struct Found<'a> {
        grammar: Grammar,
        bytes: &'a [u8],
        ascii: bool,
    }

    impl Kernel for Found<'_> {
        /// Where pieces begin.
        type Output = Vec<usize>;

        fn run(self, vectors: impl Vectors) -> Vec<usize> {
            let (starts, places) = if self.ascii {
                (starts_in_ascii(vectors, self.grammar, self.bytes.first_chunk().unwrap()), PLACES)
            } else {
                starts_in_chars(vectors, self.grammar, self.bytes.first_chunk().unwrap())
            };
            let place = |char: u32| usize::from(places[char as usize]);
            let (numbers, single) = starts.numbers_and_single();
            let mut found = Vec::new();
            let mut all = starts.all();
            while all != 0 {
                let start = all.trailing_zeros();
                let (from, end) = (place(start), place(starts.end(all)));
                let piece = std::str::from_utf8(&self.bytes[from..end]).unwrap();
                let first = classes(piece.chars().next().unwrap().into());
                assert_eq!(numbers >> start & 1 != 0, first & NUMBER != 0, "{piece:?}");
                assert_eq!(single >> start & 1 != 0, piece.chars().count() == 1, "{piece:?}");
                assert_eq!(from, found.last().copied().unwrap_or(0));
                found.push(end);
                all &= all - 1;
            }
            assert_eq!(found.len(), starts.certain.count_ones() as usize);
            found
        }
    }

    fn windows(text: &str) {
        padded(text, |padded| {
            for grammar in Grammar::ALL {
                let mut begin = 0;
                while begin < text.len() {
                    let mut pieces = Vec::new();
                    let mut end = begin;
                    while end < begin + BYTES && end < text.len() {
                        end = piece_end(grammar, padded, end);
                        pieces.push(end - begin);
                    }
                    for ascii in [true, false] {
                        let found = || Found { grammar, bytes: &padded.bytes[begin..], ascii };
                        let starts = found().run(Baseline);
                        assert_eq!(starts, best(found()));
                        assert_eq!(starts, &pieces[..starts.len()], "{grammar:?} {:?}", &text[begin..]);
                    }
                    // on with the next piece, not the next window: every start is tried
                    begin += pieces[0];
                }
            }
        });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn starts_are_those_of_the_scanner(
            text in "[a-zA-Z0-9 \n.,'/]{0,160}|[ -~\t\r\n]{0,160}|(\\PC|[ -~]{1,20}){0,12}|('[sStTlLvVrReEmMdDſ]{0,3}|[aB /\n\r\t!]){0,60}|[ \n\ta!]{0,100}|[\0\u{b}\u{1c}a 0]{0,80}|[ а-яА-Я.,«»—-]{60,120}|[a-zA-Zא-ת中 .'ʰ\u{301}é\u{a0}\u{2028}½٣。🧠sS/\n]{0,80}|\\PC{0,60}|[ ا-ي، \u{64b}\u{64c}]{0,80}|[一-龥ぁ-ヿ，。 a\n]{40,60}|[ก-๙ ]{40,60}|[中и]{36,66}( {0,12}|[ \n\r!/'s1]{0,12})中?"
        ) {
            windows(&text);
        }
    }

    #[test]
    fn most_of_a_window_of_words_is_certain() {
        let found = |text: &str, ascii| {
            let bytes = &[text.as_bytes(), &[0xFF; BYTES]].concat();
            Found { grammar: Grammar::O200K, bytes, ascii }.run(Baseline).len()
        };
        let text = "Most words of a text are known at once, and so are 12345 numbers.";
        assert_eq!([found(text, true), found(text, false)], [16, 16]);
        assert_eq!(
            found("«Здесь» стоят слова и числа, например, 12345, و هنا أيضا، 在这里，也是 ", false),
            18
        );
    }
}

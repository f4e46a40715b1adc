//! Text as it lies in memory: Python's three storage widths, or UTF-8.
//!
//! Nothing here converts or copies. Lengths in code points are known without looking at the text (but for UTF-8);
//! everything else is one linear pass of [`kernels`], whose one-line twins are in [`naive`].

pub mod encode;
mod kernels;
pub mod naive;

use std::borrow::Cow;
use std::ops::Range;

/// A borrowed text. Lone surrogates are fine in the 2- and 4-byte forms.
#[derive(Clone, Copy, Debug)]
pub enum Text<'a> {
    /// One byte a character: Latin-1, which ASCII is a part of.
    Ucs1(&'a [u8]),
    /// Two bytes a character: no character above U+FFFF, so surrogates stand alone.
    Ucs2(&'a [u16]),
    /// Four bytes a character.
    Ucs4(&'a [u32]),
    /// Rust's own strings.
    Utf8(&'a str),
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Text::Utf8(text)
    }
}

/// How JSON escapes a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escapes {
    /// Quotes, backslashes and control characters.
    Json,
    /// Those, and `<`, `>`, `&`, U+2028, U+2029, as Go's encoder does.
    Go,
}

impl<'a> Text<'a> {
    /// Number of code points.
    #[inline]
    #[must_use]
    pub fn chars(self) -> usize {
        match self {
            Text::Ucs1(units) => units.len(),
            Text::Ucs2(units) => units.len(),
            Text::Ucs4(units) => units.len(),
            Text::Utf8(text) => text.chars().count(),
        }
    }

    /// Calls `visit` with each code point.
    pub fn each_point(self, mut visit: impl FnMut(u32)) {
        match self {
            Text::Ucs1(units) => units.iter().for_each(|&unit| visit(unit.into())),
            Text::Ucs2(units) => units.iter().for_each(|&unit| visit(unit.into())),
            Text::Ucs4(units) => units.iter().for_each(|&unit| visit(unit)),
            Text::Utf8(text) => text.chars().for_each(|char| visit(char.into())),
        }
    }

    /// The code points, from the start or from the end.
    #[must_use]
    pub fn points(self) -> Points<'a> {
        match self {
            Text::Ucs1(units) => Points::Ucs1(units.iter()),
            Text::Ucs2(units) => Points::Ucs2(units.iter()),
            Text::Ucs4(units) => Points::Ucs4(units.iter()),
            Text::Utf8(text) => Points::Utf8(text.chars()),
        }
    }

    /// Whether there is nothing but white space, as Python's `str.strip` sees it.
    #[must_use]
    pub fn is_blank(self) -> bool {
        match self {
            Text::Ucs1(units) => units.iter().all(|&unit| naive::is_space(unit.into())),
            Text::Ucs2(units) => units.iter().all(|&unit| naive::is_space(unit.into())),
            Text::Ucs4(units) => units.iter().all(|&unit| naive::is_space(unit)),
            Text::Utf8(text) => text.chars().all(|char| naive::is_space(char.into())),
        }
    }

    /// Number of bytes as UTF-8; a lone surrogate has three.
    #[must_use]
    pub fn utf8_bytes(self) -> usize {
        match self {
            Text::Ucs1(units) => kernels::utf8_bytes_1(units),
            Text::Ucs2(units) => kernels::utf8_bytes_2(units),
            Text::Ucs4(units) => kernels::utf8_bytes_4(units),
            Text::Utf8(text) => text.len(),
        }
    }

    /// Number of Thai characters, U+0E00 to U+0E7F.
    #[must_use]
    pub fn thai(self) -> usize {
        match self {
            Text::Ucs1(_) => 0,
            Text::Ucs2(units) => kernels::thai_2(units),
            Text::Ucs4(units) => kernels::thai_4(units),
            Text::Utf8(text) => text.chars().filter(|&c| naive::is_thai(c.into())).count(),
        }
    }

    /// What escaping adds to the text inside JSON: characters, and bytes of UTF-8.
    #[must_use]
    pub fn escapes(self, escapes: Escapes) -> (usize, usize) {
        let (chars, separators) = match self {
            Text::Ucs1(units) => (kernels::escapes_1(units, escapes), 0),
            Text::Ucs2(units) => kernels::escapes_2(units, escapes),
            Text::Ucs4(units) => kernels::escapes_4(units, escapes),
            Text::Utf8(text) => naive::escapes(text.chars().map(u32::from), escapes),
        };
        // U+2028 and U+2029 are three bytes already, and six as an escape
        (chars, chars - 2 * separators)
    }

    /// The code point at a place.
    #[inline]
    #[must_use]
    pub fn at(self, place: usize) -> Option<u32> {
        match self {
            Text::Ucs1(units) => units.get(place).map(|&unit| unit.into()),
            Text::Ucs2(units) => units.get(place).map(|&unit| unit.into()),
            Text::Ucs4(units) => units.get(place).copied(),
            Text::Utf8(text) => text.chars().nth(place).map(u32::from),
        }
    }

    /// Where an ASCII character stands first.
    #[inline]
    #[must_use]
    pub fn find(self, char: u8) -> Option<usize> {
        match self {
            Text::Ucs1(units) => memchr::memchr(char, units),
            Text::Ucs2(units) => kernels::find(units, char.into()),
            Text::Ucs4(units) => kernels::find(units, char.into()),
            Text::Utf8(text) => text.chars().position(|other| other == char::from(char)),
        }
    }

    /// Where an ASCII character stands last.
    #[must_use]
    pub fn find_last(self, char: u8) -> Option<usize> {
        match self {
            Text::Ucs1(units) => memchr::memrchr(char, units),
            Text::Ucs2(units) => units.iter().rposition(|&unit| u32::from(unit) == u32::from(char)),
            Text::Ucs4(units) => units.iter().rposition(|&unit| unit == u32::from(char)),
            Text::Utf8(text) => {
                let last = text.rfind(char::from(char))?;
                Some(text.get(..last).unwrap_or_default().chars().count())
            }
        }
    }

    /// How often an ASCII character occurs.
    #[must_use]
    pub fn count(self, char: u8) -> usize {
        match self {
            Text::Ucs1(units) => memchr::memchr_iter(char, units).count(),
            Text::Ucs2(units) => kernels::count(units, char.into()),
            Text::Ucs4(units) => kernels::count(units, char.into()),
            Text::Utf8(text) => text.bytes().filter(|&byte| byte == char).count(),
        }
    }

    /// Whether a text begins with another one.
    #[must_use]
    pub fn starts_with(self, start: &str) -> bool {
        match self {
            Text::Ucs1(units) if start.is_ascii() => units.starts_with(start.as_bytes()),
            _ => start.chars().enumerate().all(|(place, char)| self.at(place) == Some(char.into())),
        }
    }

    /// Whether a text begins with one of several that begin with ASCII; most texts are told from them by one character.
    #[must_use]
    pub fn starts_with_any(self, starts: &[&str]) -> bool {
        let Some(first) = self.at(0).and_then(|point| u8::try_from(point).ok()) else { return false };
        starts.iter().any(|start| start.as_bytes().first() == Some(&first) && self.starts_with(start))
    }

    /// Whether two texts have the same characters.
    #[must_use]
    pub fn same(self, other: Text<'_>) -> bool {
        match (self, other) {
            (Text::Ucs1(one), Text::Ucs1(two)) => one == two,
            (Text::Ucs2(one), Text::Ucs2(two)) => one == two,
            (Text::Ucs4(one), Text::Ucs4(two)) => one == two,
            _ => {
                let all = self.chars();
                all == other.chars() && (0..all).all(|place| self.at(place) == other.at(place))
            }
        }
    }

    /// The text as a Rust string; lone surrogates become U+FFFD.
    #[must_use]
    pub fn to_well_formed(self) -> String {
        self.as_well_formed().into_owned()
    }

    /// The same, without a copy where the text lies like that already.
    #[must_use]
    pub fn as_well_formed(self) -> Cow<'a, str> {
        match self {
            Text::Utf8(text) => return text.into(),
            Text::Ucs1(units) if units.is_ascii() => {
                if let Ok(text) = str::from_utf8(units) {
                    return text.into();
                }
            }
            _ => {}
        }
        let mut text = String::with_capacity(self.chars());
        self.each_point(|point| text.push(char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER)));
        text.into()
    }

    /// The lines: what stands between line feeds, as Python's `text.split("\n")` gives it.
    #[must_use]
    pub fn lines(self) -> Lines<'a> {
        Lines { rest: Some(self) }
    }

    /// The characters in `range`, cut to what is there.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Text<'a> {
        fn cut<T>(units: &[T], range: Range<usize>) -> &[T] {
            let end = range.end.min(units.len());
            units.get(range.start.min(end)..end).unwrap_or_default()
        }
        match self {
            Text::Ucs1(units) => Text::Ucs1(cut(units, range)),
            Text::Ucs2(units) => Text::Ucs2(cut(units, range)),
            Text::Ucs4(units) => Text::Ucs4(cut(units, range)),
            Text::Utf8(text) => {
                let at = |n| text.char_indices().nth(n).map_or(text.len(), |(byte, _)| byte);
                let (start, end) = (at(range.start), at(range.end));
                Text::Utf8(text.get(start.min(end)..end).unwrap_or_default())
            }
        }
    }
}

/// The code points of a text, from the start or from the end.
#[derive(Clone, Debug)]
pub enum Points<'a> {
    /// Of one byte a character.
    Ucs1(std::slice::Iter<'a, u8>),
    /// Of two bytes a character.
    Ucs2(std::slice::Iter<'a, u16>),
    /// Of four bytes a character.
    Ucs4(std::slice::Iter<'a, u32>),
    /// Of a Rust string.
    Utf8(std::str::Chars<'a>),
}

impl Iterator for Points<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        match self {
            Points::Ucs1(units) => units.next().map(|&unit| unit.into()),
            Points::Ucs2(units) => units.next().map(|&unit| unit.into()),
            Points::Ucs4(units) => units.next().copied(),
            Points::Utf8(chars) => chars.next().map(u32::from),
        }
    }
}

impl DoubleEndedIterator for Points<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<u32> {
        match self {
            Points::Ucs1(units) => units.next_back().map(|&unit| unit.into()),
            Points::Ucs2(units) => units.next_back().map(|&unit| unit.into()),
            Points::Ucs4(units) => units.next_back().copied(),
            Points::Utf8(chars) => chars.next_back().map(u32::from),
        }
    }
}

/// The lines of a text, from the start or from the end.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    rest: Option<Text<'a>>,
}

impl<'a> Iterator for Lines<'a> {
    type Item = Text<'a>;

    #[inline]
    fn next(&mut self) -> Option<Text<'a>> {
        let rest = self.rest?;
        let Some(end) = rest.find(b'\n') else { return self.rest.take() };
        self.rest = Some(rest.slice(end + 1..usize::MAX));
        Some(rest.slice(0..end))
    }
}

impl DoubleEndedIterator for Lines<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let rest = self.rest?;
        let Some(feed) = rest.find_last(b'\n') else { return self.rest.take() };
        self.rest = Some(rest.slice(0..feed));
        Some(rest.slice(feed + 1..usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Code points of every width, lone surrogates among them.
    fn points(widest: u32) -> impl Strategy<Value = Vec<u32>> {
        let interesting = prop_oneof![
            0..0x30_u32,
            0x30..0x100_u32,
            0x7e..0x82_u32,
            0xd7f0..0xe010_u32,
            0xdf0..0xe90_u32,
            0x2020..0x2030_u32,
            0x7f0..0x810_u32,
            0xfff0..0x1_0010_u32,
        ]
        .prop_map(move |c| c.min(widest));
        prop::collection::vec(interesting, 0..700)
    }

    fn check(text: Text<'_>, points: &[u32]) {
        assert_eq!(text.chars(), points.len());
        assert_eq!(text.utf8_bytes(), points.iter().map(|&c| naive::utf8_bytes(c)).sum::<usize>());
        assert_eq!(text.thai(), points.iter().filter(|&&c| naive::is_thai(c)).count());
        for escapes in [Escapes::Json, Escapes::Go] {
            let (chars, separators) = naive::escapes(points.iter().copied(), escapes);
            assert_eq!(text.escapes(escapes), (chars, chars - 2 * separators));
        }
    }

    proptest! {
        #[test]
        fn one_byte_kernels_equal_their_twins(points in points(0xff)) {
            let units: Vec<u8> = points.iter().map(|&c| u8::try_from(c).unwrap()).collect();
            check(Text::Ucs1(&units), &points);
        }

        #[test]
        fn two_byte_kernels_equal_their_twins(points in points(0xffff)) {
            let units: Vec<u16> = points.iter().map(|&c| u16::try_from(c).unwrap()).collect();
            check(Text::Ucs2(&units), &points);
        }

        #[test]
        fn four_byte_kernels_equal_their_twins(points in points(0x10_ffff)) {
            check(Text::Ucs4(&points), &points);
        }

        #[test]
        fn rust_strings_equal_the_twins(text in "\\PC{0,80}|[\u{0}-\u{2f}\u{e30}\u{2028}<]{0,80}") {
            let points: Vec<u32> = text.chars().map(u32::from).collect();
            check(Text::from(text.as_str()), &points);
        }

        #[test]
        fn lines_and_searches_are_those_of_strings(text in "[ab\u{e9}\u{4e00}\n]{0,60}") {
            let points: Vec<u32> = text.chars().map(u32::from).collect();
            let wide: Option<Vec<u16>> = points.iter().map(|&c| u16::try_from(c).ok()).collect();
            let narrow: Option<Vec<u8>> = points.iter().map(|&c| u8::try_from(c).ok()).collect();
            let mut forms = vec![Text::Ucs4(&points), Text::from(text.as_str())];
            forms.extend(wide.as_deref().map(Text::Ucs2));
            forms.extend(narrow.as_deref().map(Text::Ucs1));
            let lines: Vec<&str> = text.split('\n').collect();
            for form in forms {
                let found: Vec<String> = form.lines().map(Text::to_well_formed).collect();
                prop_assert_eq!(&found, &lines);
                let mut back: Vec<String> = form.lines().rev().map(Text::to_well_formed).collect();
                back.reverse();
                prop_assert_eq!(&back, &lines);
                prop_assert_eq!(form.count(b'\n'), lines.len() - 1);
                prop_assert_eq!(form.find(b'a'), text.chars().position(|c| c == 'a'));
                prop_assert_eq!(form.find_last(b'a'), points.iter().rposition(|&c| c == u32::from('a')));
                prop_assert!(form.same(Text::from(text.as_str())));
                prop_assert!(form.starts_with(lines[0]));
                prop_assert_eq!(form.starts_with("ab"), text.starts_with("ab"));
            }
        }

        #[test]
        fn slices_have_the_characters_of_their_range(text in "\\PC{0,20}", start in 0..25_usize, end in 0..25_usize) {
            let points: Vec<u32> = text.chars().map(u32::from).collect();
            let expected = start.min(end.min(points.len()))..end.min(points.len());
            prop_assert_eq!(Text::Ucs4(&points).slice(start..end).chars(), expected.len());
            prop_assert_eq!(Text::from(text.as_str()).slice(start..end).chars(), expected.len());
        }
    }
}

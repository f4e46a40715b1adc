//! Where a text has special tokens: the leftmost first, of several that begin there the longest.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use crate::text::Text;

/// Special tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Special {
    /// As characters, for Python's storages.
    points: Finder,
    /// As bytes, for UTF-8.
    bytes: Finder,
}

impl Special {
    pub(super) fn new<'a>(tokens: impl Iterator<Item = &'a str> + Clone) -> Special {
        Special {
            points: Finder::new(tokens.clone().map(|token| token.chars().map(u32::from).collect())),
            bytes: Finder::new(tokens.map(|token| token.bytes().map(u32::from).collect())),
        }
    }

    /// The same in Unicode's normal form C.
    pub(super) fn normal(&self) -> Special {
        let tokens = self.points.tokens.iter();
        let tokens: Vec<String> = tokens
            .map(|token| token.iter().filter_map(|&point| char::from_u32(point)).nfc().collect())
            .collect();
        Special::new(tokens.iter().map(String::as_str))
    }

    /// Units of the longest of them, at most.
    pub(super) fn longest(&self) -> usize {
        self.bytes.tokens.iter().map(|token| token.len()).max().unwrap_or(0)
    }

    /// Adds up the special tokens of a text, each as 1, and what `count` says of each text between two of them, until it
    /// is more than `limit`. It is given what is left of the limit.
    pub(super) fn count<'a>(
        &self,
        text: Text<'a>,
        limit: u64,
        count: impl FnMut(Text<'a>, u64) -> u64,
    ) -> u64 {
        match text {
            Text::Ucs1(units) => self.points.count(units, limit, Text::Ucs1, count),
            Text::Ucs2(units) => self.points.count(units, limit, Text::Ucs2, count),
            Text::Ucs4(units) => self.points.count(units, limit, Text::Ucs4, count),
            Text::Utf8(text) => {
                let as_text = |bytes| Text::Utf8(std::str::from_utf8(bytes).unwrap_or_default());
                self.bytes.count(text.as_bytes(), limit, as_text, count)
            }
        }
    }
}

/// Finds sequences of units.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Finder {
    /// In their order, none twice, none empty.
    tokens: Vec<Box<[u32]>>,
}

impl Finder {
    fn new(tokens: impl Iterator<Item = Box<[u32]>>) -> Finder {
        let mut tokens: Vec<_> = tokens.filter(|token| !token.is_empty()).collect();
        tokens.sort_unstable();
        tokens.dedup();
        Finder { tokens }
    }

    fn count<'a, T: Copy + Into<u32>>(
        &self,
        units: &'a [T],
        limit: u64,
        as_text: impl Fn(&'a [T]) -> Text<'a>,
        mut count: impl FnMut(Text<'a>, u64) -> u64,
    ) -> u64 {
        if self.tokens.is_empty() {
            return count(as_text(units), limit);
        }
        let mut first = [false; 256]; // by the lowest byte
        for unit in self.tokens.iter().filter_map(|token| token.first()) {
            if let Some(first) = first.get_mut(low_byte(*unit)) {
                *first = true;
            }
        }
        let (mut tokens, mut rest) = (0, units);
        while tokens <= limit {
            let Some(found) = self.next(&first, rest) else {
                return tokens + count(as_text(rest), limit - tokens);
            };
            let before = rest.get(..found.start).unwrap_or_default();
            if !before.is_empty() {
                tokens += count(as_text(before), limit - tokens);
            }
            tokens += 1;
            rest = rest.get(found.end..).unwrap_or_default();
        }
        tokens
    }

    /// The first token of a text.
    fn next<T: Copy + Into<u32>>(&self, first: &[bool; 256], units: &[T]) -> Option<Range<usize>> {
        let mut place = 0;
        loop {
            let rest = units.get(place..)?;
            place += rest.iter().position(|&unit| first.get(low_byte(unit.into())).is_some_and(|&is| is))?;
            if let Some(length) = self.longest_at(units.get(place..)?) {
                return Some(place..place + length);
            }
            place += 1;
        }
    }

    /// The length of the longest token with which a text begins.
    fn longest_at<T: Copy + Into<u32>>(&self, units: &[T]) -> Option<usize> {
        // those that begin like the text: they stand together
        let mut these = self.tokens.as_slice();
        let mut longest = None;
        for (place, &unit) in units.iter().enumerate() {
            let unit = unit.into();
            let start = these.partition_point(|token| token.get(place).is_none_or(|&own| own < unit));
            let end = these.partition_point(|token| token.get(place).is_none_or(|&own| own <= unit));
            these = these.get(start..end).unwrap_or_default();
            match these.first() {
                None => break,
                Some(token) if token.len() == place + 1 => longest = Some(place + 1),
                Some(_) => {}
            }
        }
        longest
    }
}

#[inline(always)]
fn low_byte(unit: u32) -> usize {
    unit.to_le_bytes()[0].into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The special tokens of a text and the texts between.
    fn parts(tokens: &[&str], text: Text<'_>, limit: u64) -> (u64, Vec<String>) {
        let mut between = Vec::new();
        let count = Special::new(tokens.iter().copied()).count(text, limit, |part, limit| {
            between.push(part.to_well_formed());
            (part.chars() as u64).min(limit.saturating_add(1))
        });
        (count, between)
    }

    #[test]
    fn the_leftmost_is_first_and_the_longest_of_those() {
        let tokens = ["<a>", "<a>b", "<", "b<a>c", "é🧠"];
        let found = |text: &str| parts(&tokens, text.into(), u64::MAX);
        assert_eq!(found("x<a>b<a>cy"), (5, vec!["x".to_owned(), "cy".to_owned()])); // <a>b, <a>
        assert_eq!(found("b<a>c"), (1, vec![String::new()]));
        assert_eq!(found("b<a"), (3, vec!["b".to_owned(), "a".to_owned()]));
        assert_eq!(found("éé🧠é").0, 3);
        assert_eq!(parts(&[], "<a>".into(), u64::MAX), (3, vec!["<a>".to_owned()]));
        assert_eq!(parts(&[""], "<a>".into(), u64::MAX).0, 3);
    }

    #[test]
    fn it_stops_at_a_limit() {
        let (count, between) = parts(&["<>"], "ab<>cd<>ef<>".into(), 4);
        assert!(count > 4);
        assert_eq!(between, ["ab", "cd"]);
    }

    proptest! {
        #[test]
        fn every_storage_is_read_alike(text in "[<a>é🧠]{0,30}") {
            let tokens = ["<a>", "<a>a", "<", "é🧠"];
            let wide: Vec<u32> = text.chars().map(u32::from).collect();
            let expected = parts(&tokens, text.as_str().into(), u64::MAX);
            prop_assert_eq!(parts(&tokens, Text::Ucs4(&wide), u64::MAX), expected);
        }
    }
}

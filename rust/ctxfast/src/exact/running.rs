//! The tokens of a text that grows at its end: what is final is counted once and forgotten.

use super::Exact;
use super::read::{is_high, is_low, joined, read, units};
use super::scan::{END_BYTE, PADDING, Padded, last_border_behind};
use crate::text::Text;

/// A text that grows, as its number of tokens and the part of it that is not final.
#[derive(Clone, Debug)]
pub struct Running {
    exact: Exact,
    /// Tokens of what is forgotten, which ends at a border.
    tokens: u64,
    /// UTF-8 behind that.
    pending: Vec<u8>,
    /// How far there is no border in it.
    borderless: usize,
    /// The first half of a character.
    high: Option<u32>,
}

impl Running {
    /// An empty text.
    #[must_use]
    pub fn new(exact: Exact) -> Running {
        Running { exact, tokens: 0, pending: Vec::new(), borderless: 0, high: None }
    }

    /// Adds to the end of the text.
    pub fn append(&mut self, text: Text<'_>) {
        let (mut start, mut end) = (0, units(text));
        if start == end {
            return;
        }
        if let Some(high) = self.high.take() {
            let low = text.at(0).filter(|&low| is_low(low));
            start += usize::from(low.is_some());
            let char =
                low.and_then(|low| char::from_u32(joined(high, low))).unwrap_or(char::REPLACEMENT_CHARACTER);
            self.pending.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        }
        if !matches!(text, Text::Utf8(_)) && end > start {
            self.high = text.at(end - 1).filter(|&high| is_high(high));
            end -= usize::from(self.high.is_some());
        }
        while start < end {
            start = read(text, start..end, &mut self.pending);
        }
        self.settle();
    }

    /// Counts what is final.
    fn settle(&mut self) {
        let end = self.pending.len();
        self.pending.resize(end + PADDING, END_BYTE);
        let border = last_border_behind(Padded { bytes: &self.pending, end }, self.borderless);
        self.pending.truncate(end);
        if let Some(border) = border {
            self.tokens += self.count(self.pending.get(..border).unwrap_or_default());
            self.pending.drain(..border);
        }
        self.borderless = self.pending.len();
    }

    /// The number of tokens of the whole text.
    #[must_use]
    pub fn total(&self) -> u64 {
        if self.high.is_none() {
            return self.tokens + self.count(&self.pending);
        }
        let pending = [&self.pending[..], "\u{FFFD}".as_bytes()].concat();
        self.tokens + self.count(&pending)
    }

    fn count(&self, text: &[u8]) -> u64 {
        self.exact.count(Text::Utf8(&String::from_utf8_lossy(text))) // it is UTF-8: nothing is copied
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Encoding;
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn every_total_is_that_of_the_text_so_far(
            parts in proptest::collection::vec("[a-zA-Z '\n]{0,9}|[ก-๙]{0,4}|\\PC{0,5}|[A ก'é/\n]{0,6}|('ll|'s|a){0,3}", 0..12),
            units in proptest::collection::vec(prop::sample::select(&[0x61_u16, 0x20, 0xD835, 0xDC00, 0xD83D, 0xDC4D, 0x27][..]), 0..12),
        ) {
            for encoding in Encoding::ALL {
                let exact = Exact::new(encoding).unwrap();
                let (mut running, mut text) = (Running::new(exact.clone()), String::new());
                for part in &parts {
                    running.append(part.as_str().into());
                    text += part;
                    prop_assert_eq!(running.total(), exact.count(text.as_str().into()), "{:?}", text);
                }
                let mut running = Running::new(exact.clone());
                for (place, unit) in units.iter().enumerate() {
                    running.append(Text::Ucs2(&[*unit]));
                    prop_assert_eq!(running.total(), exact.count(Text::Ucs2(&units[..=place])));
                }
            }
        }
    }
}

//! So many characters make a token: the flat estimator.
//!
//! One division for each message. It knows nothing of vocabularies and scripts: 4.0 characters per token is what
//! frameworks use and is too low for most text, 2.5 errs upwards. It needs no pass over the text, since a Python
//! string knows its length. [`estimate`](crate::estimate) looks at it.

use crate::json::Length;
use crate::part::Kind;
use crate::text::{Escapes, Text};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// code points
    Chars,
    /// bytes of UTF-8
    Bytes,
    /// PicoClaw's mixture: code points of what people, the model and tools say, bytes of everything else
    Mixed,
}

/// How the tokens of a message become a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// to the next whole number
    Up,
    /// to the whole number before
    Down,
}

/// The rates of a flat estimator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flat {
    /// units of text per token
    pub per_token: f64,
    /// units of JSON and code per token; `None`: as prose
    pub code_per_token: Option<f64>,
    /// units of Thai per token; `None`: as the text around
    pub thai_per_token: Option<f64>,
    /// what a unit is
    pub unit: Unit,
    /// applied once to each message
    pub rounding: Rounding,
    /// units of a message's frame
    pub message_overhead: u64,
    /// units of a tool definition's frame
    pub tool_overhead: u64,
    /// tokens of a media part
    pub media_tokens: u64,
}

/// What a message weighs, in units for each rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// units of prose
    pub prose: u64,
    /// units of JSON and code
    pub code: u64,
    /// units of Thai, in a counter that has a rate for it
    pub thai: u64,
    /// media parts
    pub media: u64,
}

impl Weight {
    /// What was added since it weighed so much.
    #[inline]
    #[must_use]
    pub fn since(&self, earlier: Self) -> Self {
        Self {
            prose: self.prose - earlier.prose,
            code: self.code - earlier.code,
            thai: self.thai - earlier.thai,
            media: self.media - earlier.media,
        }
    }

    /// All units of text.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.prose + self.code + self.thai
    }
}

/// PicoClaw adds so many characters to each part of its alternative form of a system prompt.
pub const SYSTEM_PART_OVERHEAD: u64 = 20;

impl Flat {
    /// PicoClaw's estimator as its fork has it: 4.0 characters per token, rounded up.
    pub const PICOCLAW_4: Flat = Flat {
        per_token: 4.0,
        code_per_token: None,
        thai_per_token: None,
        unit: Unit::Mixed,
        rounding: Rounding::Up,
        message_overhead: 12,
        tool_overhead: 20,
        media_tokens: 256,
    };

    /// PicoClaw's estimator as upstream has it: 2.5 characters per token, rounded down.
    pub const PICOCLAW_2_5: Flat = Flat { per_token: 2.5, rounding: Rounding::Down, ..Flat::PICOCLAW_4 };

    /// Whether a kind of text counts nothing: PicoClaw does not know of some.
    #[inline]
    #[must_use]
    pub fn ignores(&self, kind: Kind) -> bool {
        self.unit == Unit::Mixed && kind == Kind::Alias
    }

    /// How strings are escaped where a value is counted as its JSON.
    #[must_use]
    pub fn escapes(&self) -> Escapes {
        if self.unit == Unit::Mixed { Escapes::Go } else { Escapes::Json }
    }

    /// Whether a text's number of code points is all that matters.
    #[inline]
    #[must_use]
    pub fn needs_only_length(&self) -> bool {
        self.unit == Unit::Chars && self.thai_per_token.is_none()
    }

    /// Adds a text of which only the length is known; see [`Flat::needs_only_length`].
    #[inline]
    pub fn weigh_chars(kind: Kind, chars: usize, weight: &mut Weight) {
        match kind {
            Kind::Prose | Kind::Alias => weight.prose += chars as u64,
            Kind::Output | Kind::Name | Kind::Arguments | Kind::Id => weight.code += chars as u64,
        }
    }

    /// Adds a text.
    #[inline]
    pub fn weigh(&self, kind: Kind, text: Text<'_>, weight: &mut Weight) {
        let in_chars = match self.unit {
            Unit::Chars => true,
            Unit::Bytes => false,
            Unit::Mixed if self.ignores(kind) => return,
            Unit::Mixed => matches!(kind, Kind::Prose | Kind::Output),
        };
        let units = if in_chars { text.chars() } else { text.utf8_bytes() };
        let thai = if self.thai_per_token.is_some() { text.thai() } else { 0 };
        add(kind, units, thai, in_chars, weight);
    }

    /// Adds a value that is counted as its JSON.
    pub fn weigh_json(&self, kind: Kind, length: Length, weight: &mut Weight) {
        let in_chars = self.unit == Unit::Chars;
        let units = if in_chars { length.chars } else { length.bytes };
        let thai = if self.thai_per_token.is_some() { length.thai } else { 0 };
        add(kind, units, thai, in_chars, weight);
    }

    /// Units to tokens. Rounded once; media come on top.
    #[inline]
    #[must_use]
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_wrap, reason = "units stay far below 2^53")]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "never negative; `as` saturates"
    )]
    pub fn tokens(&self, weight: &Weight) -> u64 {
        let mut prose = weight.prose;
        if self.code_per_token.is_none() {
            prose += weight.code;
        }
        if self.thai_per_token.is_none() {
            prose += weight.thai;
        }
        // signed: x86 converts only those in one instruction
        let mut share = prose as i64 as f64 / self.per_token;
        if let Some(rate) = self.code_per_token {
            share += weight.code as i64 as f64 / rate;
        }
        if let Some(rate) = self.thai_per_token {
            share += weight.thai as i64 as f64 / rate;
        }
        // no call of `ceil`: the baseline x86 has no instruction for it
        let whole = share as i64;
        let rest = self.rounding == Rounding::Up && (whole as f64) < share;
        whole as u64 + u64::from(rest) + weight.media * self.media_tokens
    }

    /// The most code points that a text of so many tokens can have.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "an upper bound")]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "never negative; `as` saturates"
    )]
    pub fn most_chars(&self, tokens: u64) -> usize {
        // a character is at least one unit; only one rate can be the largest
        let rate = self.per_token.max(self.thai_per_token.unwrap_or(0.0));
        ((tokens as f64 + 1.0) * rate).ceil() as usize
    }
}

#[inline]
fn add(kind: Kind, units: usize, thai_chars: usize, in_chars: bool, weight: &mut Weight) {
    let thai = if in_chars { thai_chars } else { 3 * thai_chars };
    let rest = (units - thai) as u64;
    match kind {
        Kind::Prose | Kind::Alias => weight.prose += rest,
        Kind::Output | Kind::Name | Kind::Arguments | Kind::Id => weight.code += rest,
    }
    weight.thai += thai as u64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(counter: &Flat, kind: Kind, text: &str) -> u64 {
        let mut weight = Weight::default();
        counter.weigh(kind, text.into(), &mut weight);
        counter.tokens(&weight)
    }

    #[test]
    fn picoclaw_counts_content_in_characters_and_arguments_in_bytes() {
        assert_eq!(tokens(&Flat::PICOCLAW_4, Kind::Prose, "สวัสดีครับ"), 3);
        assert_eq!(tokens(&Flat::PICOCLAW_4, Kind::Arguments, "สวัสดีครับ"), 8);
        assert_eq!(tokens(&Flat::PICOCLAW_4, Kind::Alias, "unknown to PicoClaw"), 0);
    }

    #[test]
    fn thai_has_its_own_rate_wherever_it_stands() {
        let seed = Flat {
            code_per_token: Some(2.0),
            thai_per_token: Some(2.5),
            unit: Unit::Bytes,
            ..Flat::PICOCLAW_4
        };
        assert_eq!(tokens(&seed, Kind::Prose, "ไทย!"), 4); // 9 / 2.5 + 1 / 4
        assert_eq!(tokens(&seed, Kind::Output, "abcd"), 2);
    }

    proptest! {
        #[test]
        fn integer_arithmetic_gives_the_same_as_picoclaws(chars in 0_u64..1 << 40) {
            let weight = Weight { prose: chars, ..Weight::default() };
            prop_assert_eq!(Flat::PICOCLAW_4.tokens(&weight), chars.div_ceil(4));
            prop_assert_eq!(Flat::PICOCLAW_2_5.tokens(&weight), chars * 2 / 5);
        }
    }
}

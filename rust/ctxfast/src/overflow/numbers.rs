//! The numbers in an error's words: which is the window, and which what was asked for?
//!
//! Some print the limit first and some the request; some know prompt and answer apart; some only say by how much it was
//! too much. So every wording has its own shape.

use memchr::memmem;

/// Numbers of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) window: Option<u64>,
    pub(super) requested: Option<u64>,
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    /// Tokens in a time.
    pub(super) rate: Option<u64>,
}

/// A `#` and a letter stand for a number: `w` the window, `r` what was asked for, `i` of it the input, `o` the output,
/// `p` what was asked for if that is all input, `l` a limit in a time, `x` something else.
const SHAPES: &[&str] = &[
    "maximum context length is #w",
    "maximum context length of #w",
    "context length is only #w",
    "messages resulted in #p tokens",
    "requested #r tokens (#i in the messages, #o in the completion",
    "requested #r tokens (#p in the messages, none in the completion",
    "requested about #r tokens (#i of text input, #o in the output",
    "requested about #r tokens (#i of text input, #x of tool input, #o in the output",
    "requested #o output tokens and your prompt contains at least #i input tokens",
    "requested #r tokens (#i in your prompt; #o for the completion",
    "for a total of at least #r tokens",
    "requested #o output tokens and your prompt contains #i",
    "is too large: #o. this model's maximum context length is #w tokens and your request has #i input tokens",
    "you passed #i input tokens and requested #o output tokens",
    "requested a total of #r tokens: #i tokens from the input messages and #o tokens for the completion",
    "maximum prompt length is #w but the request contains #p tokens",
    "exceed the configured limit of #w",
    "prompt is too long: #p, model maximum context length: #w",
    "number of input tokens #p cannot exceed the total tokens limit #w",
    "#p tokens > #w",
    "#p input tokens > #w",
    "exceed context limit: #i + #o > #w",
    "max input tokens: #w, request input token count: #p",
    "token count (#p) exceeds the maximum number of tokens allowed (#w",
    "token count exceeds the maximum number of tokens allowed #w",
    "token count exceeds the maximum number of tokens allowed (#w",
    "token count of #p exceeds the limit of #w",
    "prompt contains #p tokens",
    "too large for model with #w maximum context length",
    "the input (#p tokens) is longer than the model's context length (#w tokens",
    "must be <= #w. given: #i inputs tokens and #o max_new_tokens",
    "inputs must have less than #w tokens. given: #p",
    "current length is #p while limit is #w",
    "(total length #p) is too long to fit into the model (context length #w",
    "input length (#p) exceeds model's maximum context length (#w",
    "input length (#p tokens) exceeds the maximum allowed length (#w tokens",
    "input length #p exceeds the maximum allowed input length of #w",
    "request (#p tokens) exceeds the available context size (#w tokens",
    "input (#p tokens) is too large to process",
    ">= n_ctx (#w",
    "cannot exceed #w - received #r",
    "token limit: #w (requested: #p",
    "max length:#w",
    "max length: #w",
    "range of input length should be [#x, #w]",
    "current context (~#p/#w tokens",
    "window=#w requested=#r", // our own
    "window=#w requested=unknown",
];

/// Of limits in a time.
const RATE_SHAPES: &[&str] = &[
    "limit #l, requested #r",
    "limit: #l, requested: #r",
    "limit: #l, requested #r",
    "limit of #l tokens per",
];

impl Numbers {
    /// Those of a prompt that does not fit, as far as they are not known yet.
    pub(super) fn read(&mut self, text: &str) {
        for shape in SHAPES {
            self.add(Self::of_shape(shape, text));
        }
    }

    /// Those of a limit in a time.
    pub(super) fn read_rate(&mut self, text: &str) {
        for shape in RATE_SHAPES {
            self.add(Self::of_shape(shape, text));
        }
    }

    /// What follows from what is known: prompt and answer are what was asked for.
    pub(super) fn complete(&mut self) {
        if let (None, Some(input), Some(output)) = (self.requested, self.input, self.output) {
            self.requested = input.checked_add(output);
        }
        // GitHub Copilot has said "exceeds the limit of 0"
        self.window = self.window.filter(|&window| window > 0);
    }

    fn add(&mut self, more: Option<Self>) {
        let Some(more) = more else { return };
        self.window = self.window.or(more.window);
        self.requested = self.requested.or(more.requested);
        self.input = self.input.or(more.input);
        self.output = self.output.or(more.output);
        self.rate = self.rate.or(more.rate);
    }

    fn set(&mut self, letter: char, number: u64) {
        match letter {
            'w' => self.window = Some(number),
            'r' => self.requested = Some(number),
            'i' => self.input = Some(number),
            'o' => self.output = Some(number),
            'l' => self.rate = Some(number),
            'p' => {
                // of "requested #r tokens (#p in the messages" the first is what was asked for
                self.requested = self.requested.or(Some(number));
                self.input = Some(number);
            }
            _ => {}
        }
    }

    /// The numbers of the first place where the text has this shape.
    fn of_shape(shape: &str, text: &str) -> Option<Self> {
        let mut pieces = shape.split('#');
        let start = pieces.next()?;
        let pieces: Vec<(char, &str)> = pieces
            .filter_map(|piece| {
                let mut chars = piece.chars();
                Some((chars.next()?, chars.as_str()))
            })
            .collect();
        if start.is_empty() {
            // it begins with a number: look for what comes after it
            let (&(letter, anchor), rest) = pieces.split_first()?;
            return memmem::find_iter(text.as_bytes(), anchor).find_map(|place| {
                let number = number_before(text.get(..place)?)?;
                let mut numbers = Self::default();
                numbers.set(letter, number);
                numbers.follow(text.get(place + anchor.len()..)?, rest)
            });
        }
        memmem::find_iter(text.as_bytes(), start)
            .find_map(|place| Self::default().follow(text.get(place + start.len()..)?, &pieces))
    }

    fn follow(mut self, mut text: &str, pieces: &[(char, &str)]) -> Option<Self> {
        for &(letter, literal) in pieces {
            let (number, rest) = number(text)?;
            self.set(letter, number);
            text = rest.strip_prefix(literal)?;
        }
        Some(self)
    }
}

/// The number with which the text begins, thousands separators or not, and what comes after it.
pub(super) fn number(text: &str) -> Option<(u64, &str)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(0);
    if (1..=3).contains(&end) {
        while matches!(bytes.get(end), Some(b',' | b'_')) && digits(end + 1) == 3 {
            end += 4;
        }
    }
    let (number, rest) = text.split_at_checked(end)?;
    let number: String = number.chars().filter(char::is_ascii_digit).collect();
    Some((number.parse().ok()?, rest))
}

fn number_before(text: &str) -> Option<u64> {
    let part_of_one = |char: char| char.is_ascii_digit() || char == ',' || char == '_';
    let start = text.trim_end_matches(part_of_one).len();
    let number = text.get(start..)?.trim_start_matches([',', '_']);
    match self::number(number)? {
        (number, "") => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn thousands_have_separators_or_not() {
        for (text, found) in [
            ("200000 maximum", Some((200_000, " maximum"))),
            ("1,048,576).", Some((1_048_576, ")."))),
            ("12000, requested 18231", Some((12_000, ", requested 18231"))),
            ("200_000", Some((200_000, ""))),
            ("1,2", Some((1, ",2"))),
            ("none", None),
            ("99999999999999999999999", None),
        ] {
            assert_eq!(number(text), found);
        }
        assert_eq!(number_before("was: 208,380"), Some(208_380));
        assert_eq!(number_before("none"), None);
    }

    proptest! {
        #[test]
        fn every_shape_finds_its_numbers(shape in prop::sample::select(SHAPES), seed in 1_000..9_000_000_u64) {
            let mut text = String::from("before ");
            let mut expected = Numbers::default();
            let mut pieces = shape.split('#');
            text += pieces.next().unwrap();
            for (place, piece) in (0_u64..).zip(pieces) {
                let value = seed + place * 17;
                let (letter, literal) = piece.split_at(1);
                expected.set(letter.chars().next().unwrap(), value);
                text += &value.to_string();
                text += literal;
            }
            text += " after";
            prop_assert_eq!(Numbers::of_shape(shape, &text), Some(expected));
        }

        #[test]
        fn any_text_has_some_or_none(text in "[#0-9a-z ,_().:+>~-]{0,80}") {
            Numbers::default().read(&text);
            Numbers::default().read_rate(&text);
        }
    }
}

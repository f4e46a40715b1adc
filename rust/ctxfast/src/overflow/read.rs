//! Reads the fields of records that stand in a text: JSON, Python's `repr`, whole, cut off or inside each other.
//!
//! It is lenient and has one pass: a field counts as soon as it is read, whatever comes after it. Strictness would lose
//! what gateways write, such as JSON in JSON whose quotes nobody escaped. Work is bounded by `Signals::fuel`.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use super::signals::{Key, Signals};
use super::{DEEPEST, SENTENCE_BYTES};

/// Reads a text. With `says` what stands outside of records are sentences.
pub(super) fn text(signals: &mut Signals, text: &str, depth: u8, says: bool) {
    if depth > DEEPEST || signals.fuel == 0 {
        return;
    }
    let mut outside = Outside { says, whole: text, from: 0, kept: String::new() };
    let mut at = 0;
    while let Some(found) = text.as_bytes().get(at..).and_then(|rest| memchr2(b'{', b'[', rest)) {
        let start = at + found;
        if text.as_bytes().get(start + 1) == Some(&b'\\') {
            // JSON as a string in JSON, written out with its escapes
            outside.skip(start, text.len());
            outside.finish(signals);
            signals.fuel = signals.fuel.saturating_sub(text.len());
            self::text(signals, &unescape(text.get(start..).unwrap_or_default()), depth + 1, says);
            return;
        }
        let mut reader = Reader { text, at: start, signals, fields: false };
        // strings in a list without records are part of a sentence: "should be [1, 204800]"
        reader.value(Key::Inside, depth);
        let (end, fields) = (reader.at, reader.fields);
        signals.fuel = signals.fuel.saturating_sub(end - start + 1);
        if signals.fuel == 0 {
            break;
        }
        at = start + 1;
        if fields {
            outside.skip(start, end);
            at = end.max(at);
        }
    }
    outside.finish(signals);
}

/// The parts of a text that are no record.
struct Outside<'t> {
    says: bool,
    whole: &'t str,
    from: usize,
    kept: String,
}

impl Outside<'_> {
    fn skip(&mut self, start: usize, end: usize) {
        if self.says && self.kept.len() < SENTENCE_BYTES {
            self.kept.push_str(self.whole.get(self.from..start).unwrap_or_default());
            self.kept.push(' ');
        }
        self.from = end;
    }

    fn finish(self, signals: &mut Signals) {
        if !self.says {
            return;
        }
        let rest = self.whole.get(self.from..).unwrap_or_default();
        // a quote or a bracket that is left over says nothing
        let meaningful = |text: &str| text.chars().any(char::is_alphanumeric);
        if self.from == 0 {
            if meaningful(rest) {
                signals.sentence(rest);
            }
        } else {
            let all = self.kept + rest;
            if meaningful(&all) {
                signals.sentence(&all);
            }
        }
    }
}

struct Reader<'t, 's> {
    text: &'t str,
    at: usize,
    signals: &'s mut Signals,
    /// Whether a field of a record has been read.
    fields: bool,
}

impl<'t> Reader<'t, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next character that is no space.
    fn token(&mut self) -> Option<u8> {
        while self.peek()?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.peek()
    }

    /// Reads a value; `None` if it is none, or is cut off.
    fn value(&mut self, key: Key, depth: u8) -> Option<()> {
        match self.token()? {
            b'{' if depth < DEEPEST => self.record(depth + 1),
            b'[' | b'(' if depth < DEEPEST => self.list(key, depth + 1),
            b'{' | b'[' | b'(' => self.pass(),
            quote @ (b'"' | b'\'') => {
                let (string, whole) = self.quoted(quote);
                self.signals.string(key, &string, depth + 1);
                whole.then_some(())
            }
            b'-' | b'0'..=b'9' => {
                let number = self.word();
                if let Ok(number) = number.parse() {
                    self.signals.integer(key, number);
                }
                Some(())
            }
            byte if byte.is_ascii_alphabetic() => {
                self.word(); // null, True, or the b of b'...'
                match self.peek() {
                    Some(b'"' | b'\'') => self.value(key, depth),
                    _ => Some(()),
                }
            }
            _ => None,
        }
    }

    fn record(&mut self, depth: u8) -> Option<()> {
        self.at += 1;
        loop {
            match self.token()? {
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                b',' => self.at += 1,
                quote @ (b'"' | b'\'') => {
                    let (name, _) = self.quoted(quote);
                    if self.token()? != b':' {
                        return None;
                    }
                    self.at += 1;
                    let key = Key::of(&name);
                    let next = self.token()?;
                    self.fields = true;
                    match next {
                        b'{' | b'[' | b'(' if !key.descends() => self.pass()?,
                        b'"' | b'\'' if key == Key::Other => self.pass()?,
                        _ => self.value(key, depth)?,
                    }
                }
                _ => return None,
            }
        }
    }

    fn list(&mut self, key: Key, depth: u8) -> Option<()> {
        self.at += 1;
        loop {
            match self.token()? {
                b']' | b')' => {
                    self.at += 1;
                    return Some(());
                }
                b',' => self.at += 1,
                _ => self.value(key, depth)?,
            }
        }
    }

    /// Passes over a value without reading it.
    fn pass(&mut self) -> Option<()> {
        let mut open = 0_usize;
        loop {
            match self.peek()? {
                quote @ (b'"' | b'\'') => {
                    if !self.end_of_string(quote).1 {
                        return None;
                    }
                }
                b'{' | b'[' | b'(' => {
                    open += 1;
                    self.at += 1;
                }
                b'}' | b']' | b')' => {
                    open = open.checked_sub(1)?;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
            if open == 0 {
                return Some(());
            }
        }
    }

    /// A number, `true`, `None`.
    fn word(&mut self) -> &'t str {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.' | b'_'))
        {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// A string without its quotes and escapes, and whether it ends.
    fn quoted(&mut self, quote: u8) -> (Cow<'t, str>, bool) {
        let (inside, whole) = self.end_of_string(quote);
        (unescape(inside), whole)
    }

    /// Passes over a string: what stands between its quotes, and whether it ends.
    fn end_of_string(&mut self, quote: u8) -> (&'t str, bool) {
        self.at += 1;
        let start = self.at;
        while let Some(found) =
            self.text.as_bytes().get(self.at..).and_then(|rest| memchr2(quote, b'\\', rest))
        {
            self.at += found;
            if self.peek() == Some(quote) {
                let inside = self.text.get(start..self.at).unwrap_or_default();
                self.at += 1;
                return (inside, true);
            }
            self.at += 2; // the escape and what it escapes, which can be the first byte of several
            while !self.text.is_char_boundary(self.at.min(self.text.len())) {
                self.at += 1;
            }
        }
        self.at = self.text.len();
        (self.text.get(start.min(self.text.len())..).unwrap_or_default(), false)
    }
}

/// The text without its escapes, one level of them: those of JSON and of Python, in any case.
pub(super) fn unescape(text: &str) -> Cow<'_, str> {
    if memchr(b'\\', text.as_bytes()).is_none() {
        return text.into();
    }
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    let mut high = None; // the first half of a surrogate pair
    while let Some((before, escaped)) = rest.split_once('\\') {
        if !before.is_empty() {
            high = None;
        }
        result.push_str(before);
        let mut chars = escaped.chars();
        let digits = match chars.next() {
            Some('n' | 'N' | 'r' | 'R') => {
                result.push('\n');
                0
            }
            Some('t' | 'T') => {
                result.push('\t');
                0
            }
            // "\U0001f600" of Python, or "\u00e9" in capitals
            Some('U') if escaped.starts_with("U000") && hex(escaped, 8).is_some() => 8,
            Some('u' | 'U') => 4,
            Some('x' | 'X') => 2,
            Some(other) => {
                result.push(other);
                0
            }
            None => 0,
        };
        rest = chars.as_str();
        if digits == 0 {
            high = None;
            continue;
        }
        let Some(code) = hex(escaped, digits) else { continue };
        rest = rest.get(digits..).unwrap_or_default();
        match (high.take(), code) {
            (_, 0xd800..=0xdbff) => high = Some(code),
            (Some(first), 0xdc00..=0xdfff) => {
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (code - 0xdc00);
                result.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            (_, code) => result.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }
    result.push_str(rest);
    result.into()
}

/// The number in so many hexadecimal digits behind the first character.
fn hex(text: &str, digits: usize) -> Option<u32> {
    let digits = text.get(1..=digits)?;
    digits
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then(|| u32::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sentences(text: &str) -> Vec<String> {
        let mut signals = Signals::new(None);
        signals.text(text);
        signals.sentences.into_iter().map(|sentence| sentence.text).collect()
    }

    #[test]
    fn sentences_of_records_and_around_them() {
        for (text, expected) in [
            ("too long", vec!["too long"]),
            (r#"{"error": {"message": "too long"}}"#, vec!["too long"]),
            (r"{'error': {'message': 'it\'s too long', 'code': None}}", vec!["it's too long"]),
            (r#"Error code: 400 - {"message": "a"} etc."#, vec!["a", "error code: 400 - etc."]),
            (r#"{"error": "{\"message\": \"a\"}"}"#, vec!["a"]),
            (r#""{\"error\": {\"message\": \"a\"}}""#, vec!["a"]),
            (
                "event: error\ndata: {\"message\": \"a\"}\n\ndata: [DONE]",
                vec!["a", "event: error data: data: [done]"],
            ),
            (r#"{"error": {"message": "cut off he"#, vec!["cut off he"]),
            (r#"said "{"error":"a","type":"b"}""#, vec!["a", "said"]),
            (r#"{"input": {"message": "echo"}, "msg": "a"}"#, vec!["a"]),
            (r#"{"input": "\"echo\"", "detail": [{"msg": "a"}, {"msg": "b"}]}"#, vec!["a", "b"]),
            ("not a {record} at all [x]", vec!["not a {record} at all [x]"]),
            (r#"{"value": "echo", "metadata": {"raw": "a"}}"#, vec!["a"]),
            ("{\"ERROR\": {\"MESSAGE\": \"A\\NB\"}}", vec!["a b"]),
        ] {
            assert_eq!(sentences(text), expected, "{text}");
        }
    }

    #[test]
    fn escapes() {
        for (text, plain) in [
            (r"\u4e0a\u4E0B", "上下"),
            (r"\U4E0A", "上"),
            (r"\U0001f600", "😀"),
            (r"\ud83d\ude00", "😀"),
            (r"\x41\n", "A\n"),
            (r#"\"a\\n\""#, r#""a\n""#),
            (r"\", ""),
            (r"\u12", "12"),
        ] {
            assert_eq!(unescape(text), plain, "{text}");
        }
    }

    #[test]
    fn hostile_texts_take_bounded_work() {
        for unit in
            ["{", "[", "{\"a\":", "[{\"error\":", "{\"", "{'", "\\\"", "{\\", "[\"{\", ", "{\"a\":[", "(("]
        {
            let text = unit.repeat(1_000_000 / unit.len());
            let start = std::time::Instant::now();
            sentences(&text);
            assert!(start.elapsed().as_secs_f64() < 3.0, "{unit}"); // without optimisation
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in r#"([{}\[\]()"':,\\ ]|error|message|null|[0-9]|u4e0a|超|\PC){0,60}"#) {
            sentences(&text);
            unescape(&text);
        }
    }
}

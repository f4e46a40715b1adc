//! What is read from an error before anything is decided: sentences, codes, status, reasons to finish, numbers.
//!
//! Only fields in which providers say what went wrong are read. What they echo (the request, its messages, what the model
//! has written) is passed over: a user may well ask what "prompt is too long" means.

use super::numbers::{Numbers, number};
use super::read;
use super::words::{Marks, marks, normalise};
use super::{Code, MOST_BYTES, SENTENCE_BYTES};

/// Sentences and codes kept of one error.
const MOST: usize = 32;
/// Of a sentence, what is kept word for word.
const SAID_BYTES: usize = 500;

/// What the value of a field means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A sentence, or a record in which there are some: `message`, `error`, `detail`.
    Says,
    /// A record or list in which there may be sentences: `metadata`, `response`, `choices`.
    Inside,
    /// An error code or type.
    Code,
    /// A status of HTTP.
    Status,
    /// Why the model has stopped.
    Finish,
    /// Tokens of the prompt.
    PromptTokens,
    /// The window.
    Window,
    /// When to come back.
    Delay,
    /// Anything else: not to be read.
    Other,
}

impl Key {
    /// By the name of the field, in any case, with `_` or without.
    #[must_use]
    pub fn of(name: &str) -> Self {
        if name.len() > 32 {
            return Self::Other;
        }
        let bare: String =
            name.chars().filter(|&char| char != '_').map(|char| char.to_ascii_lowercase()).collect();
        match bare.as_str() {
            "message" | "msg" | "detail" | "details" | "error" | "errors" | "errormessage" | "statusmsg"
            | "raw" | "description" | "errordescription" | "cause" => Self::Says,
            "metadata" | "data" | "response" | "value" | "baseresp" | "choices" | "candidates"
            | "innererror" | "responsemetadata" | "incompletedetails" | "promptfeedback"
            | "responseheaders" => Self::Inside,
            "code" | "type" | "errortype" | "errorcode" | "errcode" | "name" | "reason" | "blockreason" => {
                Self::Code
            }
            "status" | "statuscode" | "httpcode" | "httpstatuscode" | "httpstatus" => Self::Status,
            "finishreason" | "stopreason" | "donereason" => Self::Finish,
            "nprompttokens" => Self::PromptTokens,
            "nctx" => Self::Window,
            "retrydelay" | "retryafter" => Self::Delay,
            _ => Self::Other,
        }
    }

    /// Whether records and lists under this key are read.
    #[must_use]
    pub fn descends(self) -> bool {
        matches!(self, Self::Says | Self::Inside)
    }
}

/// A sentence of an error and what it speaks of.
#[derive(Clone, Debug)]
pub(super) struct Sentence {
    /// Word for word, its first bytes.
    pub(super) said: String,
    /// Normalised.
    pub(super) text: String,
    pub(super) marks: Marks,
}

/// What an error says.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    pub(super) sentences: Vec<Sentence>,
    /// In lower case.
    pub(super) codes: Vec<String>,
    pub(super) status: Option<u16>,
    pub(super) finish: Vec<String>,
    pub(super) numbers: Numbers,
    pub(super) retry_after: Option<f64>,
    /// Bytes that may still be looked at.
    pub(super) fuel: usize,
}

impl Signals {
    /// Nothing yet. `status` is that of the HTTP response, if the caller knows it.
    #[must_use]
    pub fn new(status: Option<u16>) -> Self {
        Self { status, fuel: 4 * MOST_BYTES, ..Self::default() }
    }

    /// Whether a sentence has been read.
    #[must_use]
    pub fn speak(&self) -> bool {
        !self.sentences.is_empty()
    }

    /// A body, or a message of an exception: a sentence, JSON, Python's `repr`, events of a stream, all of these around
    /// and inside each other.
    pub fn text(&mut self, text: &str) {
        read::text(self, text, 0, true);
    }

    /// The name of an exception's class, or of one of its bases. Most say nothing.
    pub fn class(&mut self, name: &str) {
        if name == "LengthFinishReasonError" {
            self.string(Key::Finish, "length", 0);
        }
        if Code::of(&name.to_ascii_lowercase(), None) != Code::Other {
            self.code(name);
        }
    }

    /// The status of the response, unless it is known already.
    pub fn status(&mut self, status: i64) {
        if self.status.is_none()
            && let Ok(status @ 100..=599) = u16::try_from(status)
        {
            self.status = Some(status);
        }
    }

    /// Seconds after which to come back.
    pub fn retry_after(&mut self, seconds: f64) {
        if self.retry_after.is_none() && seconds.is_finite() && seconds >= 0.0 {
            self.retry_after = Some(seconds);
        }
    }

    /// A field with a text.
    pub fn string(&mut self, key: Key, value: &str, depth: u8) {
        match key {
            Key::Says => read::text(self, value, depth, true),
            Key::Inside => read::text(self, value, depth, false),
            Key::Code => self.code(value),
            Key::Status => match value.parse() {
                Ok(status) => self.integer(key, status),
                Err(_) => self.code(value),
            },
            Key::Finish => {
                if self.finish.len() < MOST && value.len() <= SENTENCE_BYTES {
                    self.finish.push(value.to_ascii_lowercase());
                }
            }
            Key::Delay => {
                if let Some(seconds) = duration(&normalise(cut(value, 64))) {
                    self.retry_after(seconds);
                }
            }
            Key::PromptTokens | Key::Window => {
                if let Ok(value) = value.parse() {
                    self.integer(key, value);
                }
            }
            Key::Other => {}
        }
    }

    /// A field with a whole number.
    pub fn integer(&mut self, key: Key, value: i64) {
        let tokens = u64::try_from(value).ok();
        match key {
            Key::Code | Key::Status => {
                if (400..600).contains(&value) || (key == Key::Status && value == 200) {
                    self.status(value);
                } else {
                    self.code(&value.to_string());
                }
            }
            Key::PromptTokens => {
                self.numbers.requested = self.numbers.requested.or(tokens);
                self.numbers.input = self.numbers.input.or(tokens);
            }
            Key::Window => self.numbers.window = self.numbers.window.or(tokens),
            Key::Delay => {
                if let Ok(seconds) = u32::try_from(value) {
                    self.retry_after(seconds.into());
                }
            }
            _ => {}
        }
    }

    fn code(&mut self, code: &str) {
        if code.contains(' ') {
            self.sentence(code); // xAI: {"code": "Some resource has been exhausted"}
        } else if !code.is_empty() && self.codes.len() < MOST {
            if let Ok(status @ 400..600) = code.parse::<i64>() {
                self.status(status);
            }
            self.codes.push(cut(code, 128).to_ascii_lowercase());
        }
    }

    pub(super) fn sentence(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() || self.sentences.len() >= MOST {
            return;
        }
        // what matters stands at the start or at the end
        let (start, end) = (cut(text, SENTENCE_BYTES * 3 / 4), cut_front(text, SENTENCE_BYTES / 4));
        let mut normal = if text.len() <= SENTENCE_BYTES {
            normalise(text)
        } else {
            normalise(start) + " ... " + &normalise(end)
        };
        normal.truncate(normal.trim_end().len());
        if normal.is_empty() {
            return;
        }
        if self.status.is_none()
            && let Some(status) = status_in(&normal)
        {
            self.status = Some(status);
        }
        if self.retry_after.is_none()
            && let Some(seconds) = delay_in(&normal)
        {
            self.retry_after(seconds);
        }
        let said = cut(text, SAID_BYTES).to_owned();
        self.sentences.push(Sentence { said, marks: marks(&normal), text: normal });
    }
}

/// The first bytes of a text, whole characters.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The last ones.
fn cut_front(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or_default()
}

/// The status that SDKs and gateways write in front: "Error code: 400 - ...", "400 {...}", "HTTP 429".
fn status_in(normal: &str) -> Option<u16> {
    let status = |text: &str| match number(text)? {
        (status @ 400..600, rest) => {
            let thing = [" token", " message", " image", " character", " byte"];
            (!thing.iter().any(|thing| rest.starts_with(thing))).then(|| u16::try_from(status).ok()).flatten()
        }
        _ => None,
    };
    if let Some(found) = status(normal.strip_prefix('<').unwrap_or(normal)) {
        return Some(found);
    }
    [
        "error code: ",
        "status code: ",
        "status code ",
        "status: ",
        "http error ",
        "http status ",
        "http/1.1 ",
        "http ",
    ]
    .iter()
    .find_map(|before| status(normal.split_once(before)?.1))
}

/// Seconds after "retry in", "try again in".
fn delay_in(normal: &str) -> Option<f64> {
    ["retry in ", "try again in ", "retry after "]
        .iter()
        .find_map(|before| duration(normal.split_once(before)?.1))
}

/// `22.5s`, `26 seconds`, `6m0s`, `350ms`.
fn duration(text: &str) -> Option<f64> {
    let mut seconds = None;
    let mut rest = text.trim_start();
    while let Some(found) = rest.find(|char: char| !char.is_ascii_digit() && char != '.').or(Some(rest.len()))
    {
        let Some(value) = rest.get(..found).and_then(|value| value.trim_end_matches('.').parse::<f64>().ok())
        else {
            break;
        };
        let after = rest.get(found..)?.trim_start();
        let unit = cut(after, after.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(after.len()));
        let factor = match unit {
            "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "ms" | "milliseconds" => 0.001,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hour" | "hours" => 3_600.0,
            _ => break,
        };
        seconds = Some(seconds.unwrap_or(0.0) + value * factor);
        rest = after.get(unit.len()..)?;
        if unit.is_empty() {
            break;
        }
    }
    seconds
}

/// Whether this is an empty body, or all that libraries can say of a refusal without one: "Error code: 400" (`openai`,
/// `anthropic`), "Client error '400 Bad Request' for url ..." (`httpx`), "400 Client Error: Bad Request for url: ..."
/// (`requests`). Normalised, thus without the quotes.
pub(super) fn says_nothing(normal: &str) -> bool {
    let is_empty = |text| matches!(text, "" | "{}" | "[]" | "null" | "none");
    let after = |text| number(text).filter(|(status, _)| (400..600).contains(status)).map(|(_, rest)| rest);
    if let Some(rest) = normal.strip_prefix("error code: ").and_then(after) {
        return is_empty(rest.trim_start_matches([' ', '-']));
    }
    let of_httpx =
        normal.strip_prefix("client error ").and_then(after).is_some_and(|rest| rest.contains(" for url "));
    let of_requests = |rest: &str| rest.starts_with(" client error: ") && rest.contains(" for url: ");
    is_empty(normal) || of_httpx || after(normal).is_some_and(of_requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_status() {
        for (text, expected) in [
            ("error code: 400", true),
            ("error code: 413 - ", true),
            ("error code: 400 - {}", true),
            ("error code: 400 - none", true),
            ("error code: 400 - bad request", false),
            ("error code: 1261", false),
            ("client error 400 bad request for url https://x.org/a", true),
            ("400 client error: bad request for url: https://x.org/a", true),
            ("400 bad request", false),
            ("client error", false),
            ("null", true),
        ] {
            assert_eq!(says_nothing(text), expected, "{text}");
        }
    }

    #[test]
    fn a_status_in_front() {
        for (text, status) in [
            ("error code: 400 - ", Some(400)),
            ("413 status code (no body)", Some(413)),
            ("400 prompt exceeds maximum context length", Some(400)),
            ("<400> internalerror", Some(400)),
            ("http 429: slow down", Some(429)),
            ("500 tokens are too many", None),
            ("8192 tokens", None),
            ("prompt is too long", None),
        ] {
            assert_eq!(status_in(text), status, "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, seconds) in [
            ("22.5s.", Some(22.5)),
            ("26 seconds. thanks", Some(26.0)),
            ("6m0s", Some(360.0)),
            ("1h2m3s", Some(3_723.0)),
            ("20", Some(20.0)),
            ("a while", None),
        ] {
            assert_eq!(duration(text), seconds, "{text}");
        }
        assert!((duration("350ms").unwrap() - 0.35).abs() < 1e-9);
        assert_eq!(delay_in("please retry in 22.5s."), Some(22.5));
    }

    #[test]
    fn keys_in_any_spelling() {
        for (name, key) in [
            ("message", Key::Says),
            ("ERROR", Key::Says),
            ("error_message", Key::Says),
            ("errorMessage", Key::Says),
            ("__type", Key::Code),
            ("finishReason", Key::Finish),
            ("HTTPStatusCode", Key::Status),
            ("input", Key::Other),
            ("failed_generation", Key::Other),
        ] {
            assert_eq!(Key::of(name), key, "{name}");
        }
    }
}

//! The words by which errors are known: one pass over a text finds all of them.
//!
//! A word belongs to one [`Mark`]; what marks mean together is decided in the parent module. Texts come normalised: in
//! lower case, without quotes and back-ticks, with single spaces.

use std::sync::OnceLock;

use aho_corasick::Input;
use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous::NFA;

/// What a word speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Throttling: a rate limit, whatever else is said.
    Throttle,
    /// Requests or tokens in a time.
    Rate,
    /// Money and allowances.
    Quota,
    /// An allowance for prompts: a smaller one would pass.
    PromptQuota,
    /// How much may be written.
    OutputCap,
    /// Images, pages, sound.
    Media,
    /// A number of images.
    MediaCount,
    /// Calls and results that do not go together, thinking that was changed, roles in the wrong order.
    History,
    /// Bytes and characters.
    Bytes,
    /// A text that is too long in characters: of a message or of a tool's description.
    StringLength,
    /// A place among the messages.
    InMessages,
    /// Some other parameter is wrong.
    Parameter,
    /// What the provider will not talk about.
    Filter,
    /// Who is asking?
    Auth,
    /// The server is at fault, or busy.
    Server,
    /// A phrase that says: the prompt does not fit.
    Overflow,
    /// A phrase that names the window, as only overflows do.
    WindowStated,
    /// An error code or class of that meaning, in the text.
    OverflowCode,
    /// The same in the words of llama.cpp, which says it with status 500 too.
    LlamaOverflow,
    /// Such a thing as a context window.
    Window,
    /// Such a thing as a prompt.
    Prompt,
    /// Tokens.
    Token,
    /// Too much of something.
    Over,
    /// The most of something.
    Most,
    /// Nothing is said: the SDK has lost the body.
    NoBody,
}

/// A set of marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u32);

impl Marks {
    pub(super) fn add(&mut self, mark: Mark) {
        self.0 |= 1 << mark as u32;
    }

    pub(super) fn has(self, mark: Mark) -> bool {
        self.0 & (1 << mark as u32) != 0
    }

    pub(super) fn any(self, marks: &[Mark]) -> bool {
        marks.iter().any(|&mark| self.has(mark))
    }
}

impl std::ops::BitOrAssign for Marks {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

const WORDS: &[(Mark, &[&str])] = &[
    (Mark::Throttle, &["throttl", "too many tokens, please wait"]),
    (
        Mark::Rate,
        &[
            "rate limit",
            "rate-limit",
            "ratelimit",
            "rate_limit",
            "per minute",
            "per-minute",
            "per min ",
            "per min)",
            "per hour",
            "per day",
            "per second",
            "(tpm)",
            "(rpm)",
            "too many requests",
            "concurrency",
            "concurrent requests",
            "resource exhausted",
            "resource_exhausted",
            "resource has been exhausted",
            "please wait before",
            "slow down",
            "速率限制",
            "请求过于频繁",
            "并发",
        ],
    ),
    (
        Mark::Quota,
        &[
            "current quota",
            "available quota",
            "quota exceeded",
            "exceeded quota",
            "insufficient_quota",
            "insufficient quota",
            "insufficient balance",
            "insufficient funds",
            "insufficient credit",
            "credit balance",
            "more credits",
            "settings/credits",
            "plan and billing",
            "billing hard limit",
            "can only afford",
            "payment required",
            "spending limit",
            "spend limit",
            "usage limit",
            "monthly limit",
            "余额不足",
            "欠费",
        ],
    ),
    (Mark::PromptQuota, &["prompt tokens limit exceeded"]),
    (
        Mark::OutputCap,
        &[
            "maximum allowed number of output tokens",
            "maximum number of output tokens",
            "maximum output tokens",
            "maximum output length",
            "max output tokens",
            "max_tokens is too large",
            "max_output_tokens is too large",
            "max_completion_tokens is too large",
            "completion tokens, whereas you provided",
            "max_tokens must be less than",
            "max_completion_tokens must be less than",
            "max_output_tokens must be less than",
            "maximum value for max_tokens",
            "range of max_tokens",
            "max_tokens should be",
            "maximum tokens you requested exceeds",
            "before any response was generated",
            "output limit was reached",
        ],
    ),
    (Mark::Media, &["image", "pdf", "video", "audio"]),
    (Mark::MediaCount, &[" images", " pages"]),
    (
        Mark::History,
        &[
            "tool_use ids",
            "tool_use block",
            "tool_result block",
            "tool_use_id",
            "tool_call_id",
            "tool_call_ids",
            "with tool_calls",
            "message with role tool",
            "messages with role tool",
            "function response parts",
            "function call output",
            "function call turn",
            "no tool output found",
            "no tool call found",
            "tool messages must follow",
            "thinking blocks",
            "redacted_thinking",
            "thought_signature",
            "thought signature",
            "signature in thinking",
            "roles must alternate",
            "expected last role",
            "last message role",
            "first message must",
            "without its required following item",
            "without its required reasoning item",
            "does not support assistant message prefill",
            "conversation must end with a user message",
        ],
    ),
    (
        Mark::Bytes,
        &[
            "payload size",
            "payload too large",
            "payloadtoolarge",
            "entity too large",
            "message size",
            "request_too_large",
            "request body too large",
            "request exceeds the maximum size",
            "request size",
            "content too large",
            "content length too large",
            "maximum request size",
            "body size",
        ],
    ),
    (Mark::StringLength, &["string too long"]),
    (
        Mark::InMessages,
        &["invalid messages[", "invalid input[", "invalid input:", ".content: string", "].content"],
    ),
    (
        Mark::Parameter,
        &[
            "unsupported parameter",
            "unsupported value",
            "unknown parameter",
            "unrecognized request argument",
            "below minimum value",
            "above maximum value",
            "array too long",
            "minimum token count",
            "long context beta",
            "budget_tokens",
            "thinking budget",
            "token indices sequence length",
        ],
    ),
    (
        Mark::Filter,
        &[
            "content management policy",
            "content filter",
            "content_filter",
            "content policy",
            "contentpolicyviolation",
            "content violation",
            "flagged",
            "safety system",
            "data_inspection_failed",
            "inappropriate content",
            "敏感内容",
            "敏感信息",
        ],
    ),
    (
        Mark::Auth,
        &[
            "incorrect api key",
            "invalid api key",
            "invalid x-api-key",
            "api key not valid",
            "invalid_api_key",
            "authentication token",
            "authentication credential",
            "authenticationerror",
            "authentication failed",
            "auth credentials",
            "unauthorized",
            "permission denied",
            "access denied",
            "not authorized to",
        ],
    ),
    (
        Mark::Server,
        &[
            "overloaded",
            "high demand",
            "service unavailable",
            "serviceunavailable",
            "temporarily unavailable",
            "bad gateway",
            "gateway timeout",
            "gateway time-out",
            "timed out",
            "internal server error",
            "internal error",
            "connection error",
            "connection reset",
        ],
    ),
    (
        Mark::Overflow,
        &[
            "prompt is too long",
            "prompt too long",
            "prompt is too large",
            "prompt too large",
            "prompt has too many tokens",
            "prompt exceeds max",
            "prompt exceeds the max",
            "input is too long",
            "input too long",
            "input text is too long",
            "prompt 超长",
            "too many input tokens",
            "too many tokens: ",
            "number of tokens (prompt and prediction)",
            "input token count exceeds",
            "input tokens exceeds",
            "maximum prompt length is",
            "calculated available context size -",
            "input tokens exceed",
            "range of input length should be",
            "tokens + max_new_tokens must be",
            "inputs must have less than",
            "max_tokens must be at least 1, got -",
            "tokens in request more than max tokens allowed",
            "max length exceeded",
            "exceeds max length",
            "length limit exceeded",
            "token limit exceeded",
            "tokens limit exceeded",
            "exceeded model token limit",
            "exceeds model token limit",
            "exceed max message tokens",
            "please reduce the length of the messages",
            "please reduce the length of the input",
            "please reduce the length of the prompt",
            "please reduce the length of either one",
            "input after truncation exceeds",
            "cannot truncate prompt with n_keep",
            "no models have context window large enough",
            "to keep from the initial prompt is greater than",
            "expected maxlength",
            "longer than the model's context",
            "超过最大长度",
            "超出最大长度",
            "输入过长",
            "超出模型限制",
            "上下文超",
        ],
    ),
    (Mark::WindowStated, &["maximum context length is"]),
    (
        Mark::OverflowCode,
        &[
            "context_length_exceeded",
            "contextwindowexceeded",
            "contextoverflowerror",
            "model_context_window_exceeded",
            "model_max_prompt_tokens_exceeded",
            "exceed_context_size_error",
        ],
    ),
    (
        Mark::LlamaOverflow,
        &["exceeds the available context size", "is too large to process. increase the physical batch size"],
    ),
    (
        Mark::Window,
        &[
            "context length",
            "context window",
            "context size",
            "context limit",
            "current context",
            "max context",
            "maximum context",
            "context the ",
            "prompt length",
            "input length",
            "max_model_len",
            "max_seq_len",
            "上下文长度",
            "上下文窗口",
        ],
    ),
    (Mark::Prompt, &["prompt", "input", "messages", "your request", "the request", "conversation"]),
    // not "token": that is also what one signs in with
    (Mark::Token, &["tokens", "token count", "token limit", "token length", "token window"]),
    (
        Mark::Over,
        &[
            " exceed",
            "too long",
            "too large",
            "too many",
            "longer than",
            "larger than",
            "greater than",
            "more than",
            "bigger than",
            "is over ",
            "over the ",
            "overflow",
            "beyond the",
            "must be less than",
            "does not fit",
            "not fit in",
            "reduce the",
            "超出",
            "超过",
            "过长",
            "超长",
        ],
    ),
    (Mark::Most, &["maximum of", "at most", "up to"]),
    (Mark::NoBody, &["(no body)"]),
];

/// What a text speaks of.
pub(super) fn marks(text: &str) -> Marks {
    static FINDER: OnceLock<Option<NFA>> = OnceLock::new();
    static MARKS: OnceLock<Vec<Mark>> = OnceLock::new();
    let Some(finder) = FINDER.get_or_init(|| NFA::new(words().map(|(_, word)| word)).ok()) else {
        return marks_one_by_one(text);
    };
    let of_word = MARKS.get_or_init(|| words().map(|(mark, _)| mark).collect());
    let mut found = Marks::default();
    for hit in finder.try_find_overlapping_iter(Input::new(text)).into_iter().flatten() {
        if let Some(&mark) = of_word.get(hit.pattern().as_usize()) {
            found.add(mark);
        }
    }
    found
}

/// The same, a search for each word.
fn marks_one_by_one(text: &str) -> Marks {
    let mut found = Marks::default();
    for (mark, _) in words().filter(|(_, word)| text.contains(word)) {
        found.add(mark);
    }
    found
}

fn words() -> impl Iterator<Item = (Mark, &'static str)> {
    WORDS.iter().flat_map(|&(mark, words)| words.iter().map(move |&word| (mark, word)))
}

/// The text as words are looked for: in lower case (ASCII), single spaces, no quotes, asterisks and escapes; an
/// apostrophe inside a word stays.
pub(super) fn normalise(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let char = match char {
            '\\' => match chars.next() {
                Some('n' | 'r' | 't' | 'N' | 'R' | 'T') | None => ' ',
                Some('u' | 'U' | 'x' | 'X') => continue,
                Some(escaped) => escaped,
            },
            '\u{2018}' | '\u{2019}' => '\'',
            other => other,
        };
        match char {
            '`' | '"' | '*' | '\u{201c}' | '\u{201d}' => {}
            // "model's", but not 'messages'
            '\'' => {
                let inside = result.ends_with(|before: char| before.is_alphanumeric());
                if inside && chars.peek().is_some_and(|after| after.is_alphanumeric()) {
                    result.push('\'');
                }
            }
            char if char.is_whitespace() => {
                if !result.is_empty() && !result.ends_with(' ') {
                    result.push(' ');
                }
            }
            char => result.push(char.to_ascii_lowercase()),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn normalised_texts() {
        for (text, normal) in [
            ("This model's  MAXIMUM\n context", "this model's maximum context"),
            ("`inputs` tokens + `max_new_tokens`", "inputs tokens + max_new_tokens"),
            ("Invalid 'messages[3].content': too", "invalid messages[3].content: too"),
            (r#"say \"it\" twice\nnow"#, "say it twice now"),
            ("请求的上下文", "请求的上下文"),
            ("model\u{2019}s", "model's"),
        ] {
            assert_eq!(normalise(text), normal);
        }
    }

    #[test]
    fn words_are_written_as_texts_are_normalised() {
        for (_, word) in words() {
            let inside = format!("x{word}x");
            assert_eq!(normalise(&inside), inside);
        }
    }

    proptest! {
        #[test]
        fn one_pass_finds_what_single_searches_find(
            chosen in prop::collection::vec((0..words().count(), "[ -~]{0,4}", 0..40_usize), 0..6)
        ) {
            let all: Vec<_> = words().collect();
            let mut text = String::new();
            for (word, between, cut) in chosen {
                let word = all[word].1;
                text += word.get(..word.len().saturating_sub(cut / 8)).unwrap_or(word);
                text += &between;
            }
            prop_assert_eq!(marks(&text), marks_one_by_one(&text));
        }
    }
}

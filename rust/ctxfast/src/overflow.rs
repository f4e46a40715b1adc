//! What a provider's "no" means: does the prompt not fit, and what are the numbers, or is it something else?
//!
//! Three steps: [`Signals`] collects what an error says, whatever it is wrapped in (`signals`, `read`); its sentences
//! are searched for words (`words`), and [`Signals::classify`] decides. Order matters, for the words are alike: rate
//! limits, quotas, limits of the output, of images and of bytes also speak of tokens that exceed a maximum. So vetoes
//! come before error codes, codes before wording. Numbers are read last (`numbers`).

mod numbers;
mod read;
mod signals;
mod words;

use numbers::Numbers;
use signals::says_nothing;
pub use signals::{Key, Signals};
use words::{Mark, Marks};

/// The most that is read of a text.
pub const MOST_BYTES: usize = 1 << 20;
/// Levels of records, and of texts with records in them. Each gateway adds three or four.
pub const DEEPEST: u8 = 32;
/// The most that is searched of a sentence: three quarters from its start, one from its end.
const SENTENCE_BYTES: usize = 8 << 10;
/// Share of the window from which a refusal without words is taken for an overflow.
const NEARLY_FULL: f64 = 0.8;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The prompt, or prompt and answer, do not fit the model's context window.
    ContextOverflow,
    /// The request has too many bytes, or a text in it too many characters.
    PayloadTooLarge,
    /// Too much in a time.
    RateLimit,
    /// More output was asked for than the model writes, or the output was cut at its limit.
    OutputCap,
    /// Images, pages or sound: too many or too large.
    MediaLimit,
    /// Calls and results that do not go together, changed thinking, roles in the wrong order.
    InvalidHistory,
    /// No money or allowance left.
    Quota,
    /// The provider will not answer this.
    ContentFilter,
    /// Who is asking, and may they?
    Auth,
    /// The server's fault, or the network's.
    Server,
    /// None of these, or nothing to know it by.
    Unknown,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::ContextOverflow,
        Self::PayloadTooLarge,
        Self::RateLimit,
        Self::OutputCap,
        Self::MediaLimit,
        Self::InvalidHistory,
        Self::Quota,
        Self::ContentFilter,
        Self::Auth,
        Self::Server,
        Self::Unknown,
    ];

    /// Its name in Python.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ContextOverflow => "context_overflow",
            Self::PayloadTooLarge => "payload_too_large",
            Self::RateLimit => "rate_limit",
            Self::OutputCap => "output_cap",
            Self::MediaLimit => "media_limit",
            Self::InvalidHistory => "invalid_history",
            Self::Quota => "quota",
            Self::ContentFilter => "content_filter",
            Self::Auth => "auth",
            Self::Server => "server",
            Self::Unknown => "unknown",
        }
    }
}

/// When is it worth trying again?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// With less: fewer or shorter messages.
    Shrink,
    /// With the same, later.
    Wait,
    /// With another request: its `max_tokens`, its images, its pairs of calls and results.
    Change,
    /// Not before somebody has done something about it.
    No,
}

impl Retry {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Shrink, Self::Wait, Self::Change, Self::No];

    /// Its name in Python.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shrink => "shrink",
            Self::Wait => "wait",
            Self::Change => "change",
            Self::No => "no",
        }
    }
}

/// An answer that came, though perhaps not whole: what its usage record says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answered {
    /// Tokens of the prompt.
    pub prompt: Option<u64>,
    /// Tokens of the output.
    pub output: Option<u64>,
}

/// What the caller knows of the request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent<'a> {
    /// Who has answered; codes that are mere numbers belong to one provider.
    pub provider: Option<&'a str>,
    /// Tokens of the model's window.
    pub window: Option<u64>,
    /// Tokens of the request, as estimated.
    pub estimate: Option<u64>,
}

/// What an error means.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What is wrong.
    pub kind: Kind,
    /// Tokens of the model's window, or of the server's, which can be smaller.
    pub window: Option<u64>,
    /// Tokens that were compared with the limit.
    pub requested: Option<u64>,
    /// Those of the prompt.
    pub input: Option<u64>,
    /// Those reserved for the output.
    pub output: Option<u64>,
    /// The limit that was passed, in tokens: the window, or a number in a time.
    pub limit: Option<u64>,
    /// Whether a smaller prompt mends it.
    pub shrink_helps: bool,
    /// When it is worth trying again.
    pub retry: Retry,
    /// Seconds after which the provider says to come back.
    pub retry_after: Option<f64>,
    /// Whether it may be an overflow all the same: nothing was said.
    pub maybe_overflow: bool,
    /// Status of the HTTP response.
    pub status: Option<u16>,
    /// The error code that tells most.
    pub code: Option<String>,
    /// The sentence that tells most, its first 500 bytes.
    pub message: Option<String>,
}

impl Signals {
    /// Whether words or codes say what is wrong, and not the status alone.
    #[must_use]
    pub fn say_what(&self, sent: Sent<'_>) -> bool {
        Facts { status: None, ..Facts::of(self, sent) }.kind() != Kind::Unknown
    }

    /// What it all means.
    #[must_use]
    pub fn classify(&self, sent: Sent<'_>, answered: Option<Answered>) -> Verdict {
        let facts = Facts::of(self, sent);
        let mut kind = facts.kind();
        if kind == Kind::Unknown || (kind == Kind::OutputCap && facts.finish_length) {
            kind = answered.and_then(|answered| facts.of_answer(answered, sent)).unwrap_or(kind);
        }
        let silent = facts.nothing_said() && matches!(facts.status, Some(400 | 422)) && kind == Kind::Unknown;
        let too_large = self.speak() && facts.nothing_said() && facts.status == Some(413);
        let mut maybe_overflow = silent || too_large;
        if let (true, Some(window), Some(estimate)) =
            (maybe_overflow, sent.window.filter(|&n| n > 0), sent.estimate)
        {
            maybe_overflow = false;
            if as_f64(estimate) >= NEARLY_FULL * as_f64(window) {
                kind = Kind::ContextOverflow;
            }
        }

        let mut numbers = Numbers::default();
        if kind == Kind::ContextOverflow {
            numbers = self.numbers;
            self.sentences.iter().for_each(|sentence| numbers.read(&sentence.text));
            numbers.complete();
        } else if kind == Kind::RateLimit {
            self.sentences.iter().for_each(|sentence| numbers.read_rate(&sentence.text));
        }
        let shrink_helps = match kind {
            Kind::ContextOverflow | Kind::PayloadTooLarge => true,
            Kind::RateLimit => facts.one_request_too_large(numbers),
            Kind::MediaLimit => facts.marks.has(Mark::MediaCount),
            Kind::Quota => facts.marks.has(Mark::PromptQuota),
            _ => false,
        };
        let retry = match kind {
            _ if shrink_helps => Retry::Shrink,
            Kind::RateLimit | Kind::Server => Retry::Wait,
            Kind::OutputCap | Kind::MediaLimit | Kind::InvalidHistory => Retry::Change,
            _ => Retry::No,
        };
        let message = self
            .sentences
            .iter()
            .find(|sentence| kind == Kind::ContextOverflow && overflows(sentence.marks))
            .or_else(|| self.sentences.first());
        let telling = |code: &&String| Code::of(code, sent.provider) != Code::Other;
        let code = self.codes.iter().find(telling).or_else(|| self.codes.first()).cloned();
        Verdict {
            kind,
            window: numbers.window,
            requested: numbers.requested,
            input: numbers.input,
            output: numbers.output,
            limit: numbers.window.or(numbers.rate),
            shrink_helps,
            retry,
            retry_after: self.retry_after.filter(|_| retry != Retry::No),
            maybe_overflow,
            status: self.status,
            code,
            message: message.map(|sentence| sentence.said.clone()),
        }
    }
}

/// What a code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    Overflow,
    Throttle,
    Rate,
    Quota,
    Auth,
    Filter,
    Bytes,
    History,
    Server,
    Other,
}

impl Code {
    /// Codes and classes of exceptions, in lower case.
    fn of(code: &str, provider: Option<&str>) -> Self {
        let from = |providers: &[&str]| provider.is_none_or(|provider| providers.contains(&provider));
        match code {
            "context_length_exceeded"
            | "model_context_window_exceeded"
            | "model_max_prompt_tokens_exceeded"
            | "exceed_context_size_error"
            | "context_window_exceeded"
            | "contextwindowexceedederror"
            | "contextoverflowerror"
            | "llmcontextlengthexceedederror"
            | "llmcontextlengthexceededexception"
            | "llmcontextwindowexceederror"
            | "context_overflow"
            | "prompt_too_long"
            | "input_too_long" => Self::Overflow,
            "1261" if from(&["zhipu", "zai", "z.ai", "glm", "bigmodel"]) => Self::Overflow,
            "40303" if from(&["fastchat"]) => Self::Overflow,
            "1039" if from(&["minimax"]) => Self::Overflow,
            "1002" if from(&["minimax"]) => Self::Rate,
            "1008" if from(&["minimax"]) => Self::Quota,
            "1301" if from(&["zhipu", "zai", "z.ai", "glm", "bigmodel"]) => Self::Filter,
            "1302" | "1303" if from(&["zhipu", "zai", "z.ai", "glm", "bigmodel"]) => Self::Rate,
            "rate_limit_exceeded"
            | "rate_limit_error"
            | "rate_limit"
            | "too_many_requests"
            | "resource_exhausted"
            | "ratelimiterror"
            | "toomanyrequestsexception"
            | "resourceexhausted" => Self::Rate,
            _ if code.starts_with("throttl") => Self::Throttle,
            "insufficient_quota"
            | "quota_exceeded"
            | "billing_error"
            | "billing_hard_limit_reached"
            | "insufficient_balance"
            | "insufficient_credits"
            | "servicequotaexceededexception"
            | "arrearage" => Self::Quota,
            "authentication_error"
            | "permission_error"
            | "permission_denied"
            | "unauthenticated"
            | "invalid_api_key"
            | "api_key_invalid"
            | "invalid_authentication_error"
            | "token_invalidated"
            | "accessdeniedexception"
            | "unrecognizedclientexception"
            | "expiredtokenexception"
            | "authenticationerror"
            | "permissiondeniederror" => Self::Auth,
            "content_filter"
            | "content_policy_violation"
            | "responsibleaipolicyviolation"
            | "data_inspection_failed"
            | "prohibited_content"
            | "contentpolicyviolationerror"
            | "contentfiltererror"
            | "contentfilterfinishreasonerror" => Self::Filter,
            "request_too_large" | "requesttoolargeerror" | "payloadtoolargeerror" => Self::Bytes,
            "invalid_request_message_order" => Self::History,
            "server_error"
            | "internal_server_error"
            | "internal"
            | "overloaded_error"
            | "api_error"
            | "unavailable"
            | "service_unavailable"
            | "deadline_exceeded"
            | "timeout_error"
            | "serviceunavailableexception"
            | "internalserverexception"
            | "internalfailure"
            | "modelnotreadyexception"
            | "modeltimeoutexception"
            | "internalservererror"
            | "serviceunavailableerror"
            | "overloadederror"
            | "apiconnectionerror"
            | "apitimeouterror"
            | "timeout"
            | "timeouterror"
            | "timeoutexception"
            | "connectionerror"
            | "transporterror"
            | "endpointconnectionerror" => Self::Server,
            _ => Self::Other,
        }
    }
}

/// What the signals come to.
struct Facts<'s> {
    signals: &'s Signals,
    codes: Vec<Code>,
    /// Of all sentences together.
    marks: Marks,
    status: Option<u16>,
    /// The answer was cut at a limit.
    finish_length: bool,
    finish_filter: bool,
    finish_window: bool,
}

impl<'s> Facts<'s> {
    fn of(signals: &'s Signals, sent: Sent<'_>) -> Self {
        let mut marks = Marks::default();
        for sentence in &signals.sentences {
            marks |= sentence.marks;
        }
        let finished =
            |reasons: &[&str]| signals.finish.iter().any(|reason| reasons.contains(&reason.as_str()));
        let incomplete = |reason: &str| signals.codes.iter().any(|code| code == reason);
        Self {
            signals,
            codes: signals.codes.iter().map(|code| Code::of(code, sent.provider)).collect(),
            marks,
            status: signals.status,
            finish_length: finished(&["length", "max_tokens", "max_output_tokens"])
                || incomplete("max_output_tokens"),
            finish_filter: finished(&[
                "content_filter",
                "content_filtered",
                "safety",
                "prohibited_content",
                "blocklist",
                "spii",
                "refusal",
                "guardrail_intervened",
                "sensitive",
            ]),
            finish_window: finished(&["model_context_window_exceeded"]),
        }
    }

    fn coded(&self, code: Code) -> bool {
        self.codes.contains(&code)
    }

    fn nothing_said(&self) -> bool {
        self.marks.has(Mark::NoBody) || self.signals.sentences.iter().all(|said| says_nothing(&said.text))
    }

    fn kind(&self) -> Kind {
        self.of_status().or_else(|| self.of_veto()).unwrap_or_else(|| self.of_code_and_wording())
    }

    /// Statuses that cannot be an overflow.
    fn of_status(&self) -> Option<Kind> {
        let marks = self.marks;
        match self.status? {
            402 => Some(Kind::Quota),
            403 if self.coded(Code::Quota) || marks.has(Mark::Quota) => Some(Kind::Quota),
            403 if self.coded(Code::Filter) || marks.has(Mark::Filter) => Some(Kind::ContentFilter),
            401 | 403 => Some(Kind::Auth),
            404 => Some(Kind::Unknown),
            408 | 409 | 529 => Some(Kind::Server),
            429 => Some(self.limited().unwrap_or(Kind::RateLimit)),
            _ => None,
        }
    }

    /// Rate limit or quota.
    fn limited(&self) -> Option<Kind> {
        let marks = self.marks;
        if self.coded(Code::Throttle) || marks.has(Mark::Throttle) {
            Some(Kind::RateLimit)
        } else if self.coded(Code::Quota) || marks.any(&[Mark::Quota, Mark::PromptQuota]) {
            Some(Kind::Quota)
        } else if self.coded(Code::Rate) || marks.has(Mark::Rate) {
            Some(Kind::RateLimit)
        } else {
            None
        }
    }

    /// What sounds like an overflow and is none.
    fn of_veto(&self) -> Option<Kind> {
        let marks = self.marks;
        let coded_overflow = self.coded_overflow();
        if let (Some(kind), false) = (self.limited(), self.prompt_quota_alone()) {
            return Some(kind);
        }
        // vLLM: "max_completion_tokens is too large: ... This model's maximum context length is ..."
        if marks.has(Mark::OutputCap) && !marks.has(Mark::WindowStated) {
            return Some(Kind::OutputCap);
        }
        if coded_overflow {
            return None;
        }
        if marks.has(Mark::History) || self.coded(Code::History) {
            return Some(Kind::InvalidHistory);
        }
        if self.signals.sentences.iter().any(|sentence| about_media(sentence.marks)) {
            return Some(Kind::MediaLimit);
        }
        if marks.has(Mark::StringLength) {
            return Some(if marks.has(Mark::InMessages) { Kind::PayloadTooLarge } else { Kind::Unknown });
        }
        if marks.has(Mark::Bytes) || self.coded(Code::Bytes) {
            return Some(Kind::PayloadTooLarge);
        }
        if marks.has(Mark::Parameter) {
            return Some(Kind::Unknown);
        }
        if self.coded(Code::Filter) || self.finish_filter || marks.has(Mark::Filter) {
            return Some(Kind::ContentFilter);
        }
        if self.coded(Code::Auth) || marks.has(Mark::Auth) {
            return Some(Kind::Auth);
        }
        None
    }

    /// "Tokens limit exceeded" without a word of money.
    fn prompt_quota_alone(&self) -> bool {
        self.marks.has(Mark::PromptQuota)
            && !self.marks.any(&[Mark::Quota, Mark::Rate, Mark::Throttle])
            && ![Code::Quota, Code::Rate, Code::Throttle].iter().any(|&code| self.coded(code))
    }

    fn coded_overflow(&self) -> bool {
        self.coded(Code::Overflow) || self.finish_window || self.marks.has(Mark::OverflowCode)
    }

    fn of_code_and_wording(&self) -> Kind {
        let faulty = self.status.is_some_and(|status| status >= 500);
        if self.coded_overflow() || self.marks.has(Mark::LlamaOverflow) {
            return Kind::ContextOverflow;
        }
        // SageMaker passes a model's 422 on as 424
        if faulty || self.coded(Code::Server) && !self.signals.sentences.iter().any(|it| overflows(it.marks))
        {
            return Kind::Server;
        }
        if self.signals.sentences.iter().any(|sentence| overflows(sentence.marks)) {
            return Kind::ContextOverflow;
        }
        if self.status == Some(413) {
            return Kind::PayloadTooLarge;
        }
        if self.marks.has(Mark::Server) {
            return Kind::Server;
        }
        if self.finish_length {
            return Kind::OutputCap;
        }
        Kind::Unknown
    }

    /// An answer came: was it for a prompt that had been cut, or cut itself by the window?
    fn of_answer(&self, answered: Answered, sent: Sent<'_>) -> Option<Kind> {
        let window = sent.window.filter(|&window| window > 0)?;
        let prompt = answered.prompt?;
        let output = answered.output.unwrap_or(0);
        let (window, prompt, output) = (as_f64(window), as_f64(prompt), as_f64(output));
        let estimate = sent.estimate.map(as_f64);
        if prompt > window {
            // many times the window is a sum over many requests
            let sum = estimate.map_or(prompt > 2.0 * window, |estimate| prompt > 4.0 * estimate);
            return (!sum).then_some(Kind::ContextOverflow);
        }
        let full = prompt + output >= 0.99 * window;
        let front_dropped = estimate.is_some_and(|estimate| {
            // close to the window, and much less than was sent: the server has dropped the front
            prompt >= NEARLY_FULL * window && prompt < 0.6 * estimate
        });
        ((self.finish_length && full) || front_dropped).then_some(Kind::ContextOverflow)
    }

    /// A limit in a time that a single request passes: to wait does not help.
    fn one_request_too_large(&self, numbers: Numbers) -> bool {
        let said = |words: &str| self.signals.sentences.iter().any(|sentence| sentence.text.contains(words));
        match (numbers.rate, numbers.requested) {
            (Some(limit), Some(requested)) => requested > limit && said("request too large"),
            (Some(_), None) => said("this request exceeds the limit of"),
            _ => false,
        }
    }
}

/// Whether a sentence is about images that are too large or too many.
fn about_media(marks: Marks) -> bool {
    marks.has(Mark::Media)
        && marks.any(&[Mark::Over, Mark::Most])
        && !marks.any(&[Mark::Overflow, Mark::WindowStated, Mark::Window, Mark::Token])
}

/// Whether a sentence says that a prompt does not fit.
fn overflows(marks: Marks) -> bool {
    marks.any(&[Mark::Overflow, Mark::WindowStated])
        || marks.has(Mark::Over)
            && (marks.has(Mark::Window) || marks.has(Mark::Token) && marks.has(Mark::Prompt))
}

#[expect(clippy::cast_precision_loss, reason = "tokens")]
fn as_f64(tokens: u64) -> f64 {
    tokens as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdict(text: &str) -> Verdict {
        let mut signals = Signals::new(None);
        signals.text(text);
        signals.classify(Sent::default(), None)
    }

    #[test]
    fn an_overflow_and_its_numbers() {
        let found =
            verdict(r#"400 {"error": {"message": "prompt is too long: 208,380 tokens > 200,000 maximum"}}"#);
        assert_eq!(
            (found.kind, found.window, found.requested),
            (Kind::ContextOverflow, Some(200_000), Some(208_380))
        );
        assert_eq!((found.status, found.retry), (Some(400), Retry::Shrink));
    }

    #[test]
    fn look_alikes() {
        for (text, kind) in [
            ("Too many tokens, please wait before trying again.", Kind::RateLimit),
            (
                "`max_tokens` must be less than or equal to 16384, less than the context_window",
                Kind::OutputCap,
            ),
            ("image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes", Kind::MediaLimit),
            ("A maximum of 100 PDF pages may be provided.", Kind::MediaLimit),
            ("Total tokens of image and text exceed max message tokens.", Kind::ContextOverflow),
            ("Error code: 500 - internal error computing maximum context length", Kind::Server),
            (r#"{"choices": [{"finish_reason": "length"}]}"#, Kind::OutputCap),
            (r#"{"choices": [{"message": {"content": "prompt is too long"}}]}"#, Kind::Unknown),
            ("", Kind::Unknown),
        ] {
            assert_eq!(verdict(text).kind, kind, "{text}");
        }
    }

    #[test]
    fn nothing_said_is_decided_by_the_estimate() {
        let judge = |sent| {
            let mut signals = Signals::new(None);
            signals.text("400 status code (no body)");
            signals.classify(sent, None)
        };
        let unknown = judge(Sent::default());
        assert!(unknown.kind == Kind::Unknown && unknown.maybe_overflow);
        let full = judge(Sent { window: Some(100), estimate: Some(80), provider: None });
        assert!(full.kind == Kind::ContextOverflow && !full.maybe_overflow);
        let half = judge(Sent { window: Some(100), estimate: Some(50), provider: None });
        assert!(half.kind == Kind::Unknown && !half.maybe_overflow);
    }

    proptest! {
        #[test]
        fn any_text_means_something(text in r#"([{}\[\]"':, ]|error|message|code|tokens|exceed|[0-9]{1,9}|\PC){0,40}"#) {
            let found = verdict(&text);
            prop_assert!(found.window != Some(0));
            prop_assert!(found.kind == Kind::ContextOverflow || found.window.is_none());
        }
    }
}

//! `TokenCounter`: one frozen class for every way to count.

use std::hash::{DefaultHasher, Hash, Hasher};

use ctxfast::batch;
use ctxfast::estimate::{Estimator, Family};
use ctxfast::exact::{Encoding, Exact, Split};
use ctxfast::flat::{Flat, Rounding, Unit, Weight};
use ctxfast::overheads::{MediaRule, Notation, Overheads};
use ctxfast::part::Kind;
use ctxfast::safety::Safety;
use ctxfast::text::Text;
use pyo3::PyTraverseError;
use pyo3::exceptions::PyValueError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PySlice, PyString, PyTuple};

use crate::adders::{
    Adder, Count, FlatAdder, Frame, Metered, PerText, PerTextAdder, ToolAdder, is_long, ready,
};
use crate::errors::{At, Error, Read};
use crate::made::MadeBy;
use crate::memory::{chars, view, wanted};
use crate::model::Model;
use crate::numbers::{Least, MediaTokens, MessageOverhead, budget, some};
use crate::read::{self, Both, Items, Nobody, Shape, Visit, fields};
use crate::tokenizer_files::{TokenizerFile, counts_special, noted, special_tokens as named_tokens};

/// Counts the tokens of texts, messages and requests.
///
/// A counter is made by one of the constructors below. It is callable, frozen, hashable and picklable; its `repr` is
/// the call that makes it. Counting never changes or keeps a message, and reads text where it lies: no UTF-8 copy is
/// made or left behind, lone surrogates are fine.
///
/// A message may be a dict in the form of OpenAI's chat completions or of Anthropic's messages, or an object of their
/// SDKs. What cannot be read raises `MessageTypeError` or `MessageValueError` (`ctxfast.errors`), which say what was
/// expected, what came and where (`messages[12].content`). Blocks of an unknown type are counted as their JSON.
#[pyclass(frozen, module = "ctxfast._core")]
pub(crate) struct TokenCounter {
    made_by: MadeBy,
    rule: Rule,
}

enum Rule {
    Flat(Flat),
    PerText(PerText),
}

#[pymethods]
impl TokenCounter {
    /// The counter that every function uses unless it is given another: `estimator("o200k")`, the family of OpenAI's
    /// models, with 3 % on totals.
    ///
    /// Other models make more tokens of the same text (Claude 3 to 4.6 about a quarter more, Claude 4.7 and later about
    /// half as many more): name the model, `TokenCounter.for_model("claude-sonnet-4-5")`.
    #[staticmethod]
    pub(crate) fn default() -> Self {
        let rule = PerText {
            count: Count::Estimator(Family::O200k, Estimator::new(Family::O200k)),
            safety: Safety::Totals,
            overheads: plain(MessageOverhead::DEFAULT, MediaTokens::DEFAULT),
        };
        Self { made_by: MadeBy::DEFAULT, rule: Rule::PerText(rule) }
    }

    /// A flat estimator: so many characters (or bytes) make one token.
    ///
    /// `config` is an `EstimatorConfig`. Counted are content, reasoning, names, arguments, ids and the frame of each
    /// message; each message is rounded by itself, a list is the plain sum.
    #[staticmethod]
    #[pyo3(signature = (config: "EstimatorConfig"))]
    fn flat(config: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = config.py();
        let class = py.import("ctxfast.counting")?.getattr("EstimatorConfig")?;
        if !config.is_instance(&class)? {
            return Err(crate::errors::parameter_type_error("config", "an EstimatorConfig", config));
        }
        let unit: String = config.getattr("unit")?.extract()?;
        let rounding: String = config.getattr("rounding")?.extract()?;
        let flat = Flat {
            per_token: config.getattr("chars_per_token")?.extract()?,
            code_per_token: config.getattr("code_per_token")?.extract()?,
            thai_per_token: config.getattr("thai_per_token")?.extract()?,
            unit: match unit.as_str() {
                "bytes" => Unit::Bytes,
                "mixed" => Unit::Mixed,
                _ => Unit::Chars,
            },
            rounding: if rounding == "down" { Rounding::Down } else { Rounding::Up },
            message_overhead: config.getattr("message_overhead")?.extract()?,
            tool_overhead: config.getattr("tool_overhead")?.extract()?,
            media_tokens: config.getattr("media_tokens")?.extract()?,
        };
        Ok(Self { made_by: MadeBy::new("flat", config), rule: Rule::Flat(flat) })
    }

    /// PicoClaw's estimator, bit by bit: `"4.0"` characters per token rounded up, as its fork has it, or `"2.5"` rounded
    /// down, as upstream has it. Content and reasoning count code points; ids, names, arguments and schemas count bytes.
    #[staticmethod]
    #[pyo3(signature = (version: "Literal['4.0', '2.5']"))]
    fn picoclaw(version: &Bound<'_, PyString>) -> PyResult<Self> {
        let flat = match version.to_string_lossy().as_ref() {
            "4.0" => Flat::PICOCLAW_4,
            "2.5" => Flat::PICOCLAW_2_5,
            other => {
                return Err(PyValueError::new_err(format!(
                    "version: expected '4.0' or '2.5', got '{other}'"
                )));
            }
        };
        Ok(Self { made_by: MadeBy::new("picoclaw", version), rule: Rule::Flat(flat) })
    }

    /// Any function `str -> int`: a tokenizer's count, say.
    ///
    /// It is called for each text of a message by itself (content, reasoning, names, arguments), never for ids, which
    /// providers do not send to the model. `message_overhead` tokens are added for each message's frame (4: OpenAI's
    /// documentation gives 3 for the frame and 1 for the role) and each tool, `media_tokens` for each media part. The
    /// counter can be pickled if the function can.
    #[staticmethod]
    #[pyo3(
        signature = (
            r#fn: "Callable[[str], int]",
            *,
            message_overhead: "int" = MessageOverhead::DEFAULT,
            media_tokens: "int" = MediaTokens::DEFAULT
        ),
        text_signature = "(fn, *, message_overhead=4, media_tokens=256)"
    )]
    fn from_callable(
        r#fn: &Bound<'_, PyAny>,
        message_overhead: MessageOverhead,
        media_tokens: MediaTokens,
    ) -> PyResult<Self> {
        if !r#fn.is_callable() {
            return Err(crate::errors::parameter_type_error("fn", "a function", r#fn));
        }
        let count = Count::Function(r#fn.clone().unbind());
        let made_by = MadeBy::new("from_callable", r#fn);
        Self::with_count(r#fn.py(), count, made_by, message_overhead, media_tokens)
    }

    /// A tokenizer object of another package, which counts through its own methods: an `Encoding` of tiktoken
    /// (`encode_ordinary`), a `Tokenizer` of tokenizers or a tokenizer of transformers
    /// (`encode(text, add_special_tokens=False)`).
    ///
    /// It is known by the methods that it has; none of these packages is imported. What looks like a special token is
    /// ordinary text to tiktoken and transformers; a `Tokenizer` finds its added tokens unless its
    /// `encode_special_tokens` is set. A lone surrogate counts as U+FFFD. The counter can be pickled if the object can.
    /// All else is as with `from_callable`.
    /// Raises `TypeError` for another object, `ValueError` for a `Tokenizer` that truncates or pads.
    #[staticmethod]
    #[pyo3(
        signature = (
            tokenizer: "object",
            *,
            message_overhead: "int" = MessageOverhead::DEFAULT,
            media_tokens: "int" = MediaTokens::DEFAULT
        ),
        text_signature = "(tokenizer, *, message_overhead=4, media_tokens=256)"
    )]
    fn from_tokenizer(
        tokenizer: &Bound<'_, PyAny>,
        message_overhead: MessageOverhead,
        media_tokens: MediaTokens,
    ) -> PyResult<Self> {
        let py = tokenizer.py();
        let count = py.import("ctxfast.foreign_tokenizers")?.call_method1("counting", (tokenizer,))?;
        let made_by = MadeBy::new("from_tokenizer", tokenizer);
        Self::with_count(py, Count::Function(count.unbind()), made_by, message_overhead, media_tokens)
    }

    /// An estimate for a family of tokenizers, from the characters of a text and their neighbours.
    ///
    /// `family` is `"o200k"` (GPT-4o and later), `"cl100k"` (GPT-4, GPT-3.5), `"claude_v3"` (Claude 3 to 4.6),
    /// `"claude_v47"` (Claude 4.7 and later), `"claude_legacy"` (Claude 2), `"llama3"`, `"qwen3"`, `"deepseek_v3"`,
    /// `"gemma3"` (Gemini, too) or `"mistral_tekken"`. On documents of 55 kinds that the tables were not fitted to, the
    /// mean error was 3.1 to 4.1 % in the study that fitted them, by family, where four characters per token were 23 to
    /// 47 % off. It is worse for rare languages. A text of 1,000 characters and more that repeats a short thing again and
    /// again is counted exactly for `o200k` and `cl100k`, whose vocabularies are in the package.
    ///
    /// Each text of a message is estimated by itself; each message is rounded, a half up. `message_overhead` and
    /// `media_tokens` are those of `from_callable`.
    ///
    /// `safety` says how sure a count shall be. By default the total of a list of messages is raised by 3 %, for a total
    /// that is too low ends a run, and everything else is the middle: too low as often as too high. With 0.95 or 0.99
    /// whatever is counted (a text, a message, a list) is raised once, so that it is not too low for so many of 100
    /// documents: by 4 to 7 % or 5 to 9 %, and more where the text is short. 0.5 is the middle for totals too.
    /// Raises `ValueError` for another family or another safety.
    #[staticmethod]
    #[pyo3(
        signature = (
            family: "Literal['o200k', 'cl100k', 'claude_v3', 'claude_v47', 'claude_legacy', 'llama3', 'qwen3', 'deepseek_v3', 'gemma3', 'mistral_tekken']" = "o200k",
            *,
            safety: "float | None" = None,
            message_overhead: "int" = MessageOverhead::DEFAULT,
            media_tokens: "int" = MediaTokens::DEFAULT
        ),
        text_signature = "(family='o200k', *, safety=None, message_overhead=4, media_tokens=256)"
    )]
    fn estimator(
        py: Python<'_>,
        family: &str,
        safety: Option<&Bound<'_, PyAny>>,
        message_overhead: MessageOverhead,
        media_tokens: MediaTokens,
    ) -> PyResult<Self> {
        let family = self::family(family)?;
        let rule = PerText {
            count: Count::Estimator(family, Estimator::new(family)),
            safety: read_safety(safety)?,
            overheads: plain(message_overhead, media_tokens),
        };
        let made_by = MadeBy::new("estimator", PyString::new(py, family.name()).as_any());
        let made_by = made_by.with("safety", safety.cloned());
        let made_by = with_overheads(py, made_by, message_overhead, media_tokens)?;
        Ok(Self { made_by, rule: Rule::PerText(rule) })
    }

    /// The tokens that OpenAI's own tokenizer makes of a text, offline: the vocabularies are in the package.
    ///
    /// `encoding` is `"o200k_base"` (GPT-4o and later), `"cl100k_base"` (GPT-4, GPT-3.5) or `"o200k_harmony"` (gpt-oss).
    /// A text is counted as tiktoken's `len(encoding.encode_ordinary(text))` has it: what looks like a special token is
    /// ordinary text, a lone surrogate counts as U+FFFD; no text raises. The first counter of a process with a vocabulary
    /// takes some 10 milliseconds to build it. `fits` and `count_up_to` stop at their limit.
    ///
    /// With `special_tokens="control"` each special token of the encoding that stands in a text counts as 1, as tiktoken's
    /// `encode(text, allowed_special="all")` has it: for prompts that are written out with their control tokens. What
    /// users or tools have said should stay text.
    ///
    /// Each text of a message is counted by itself; `message_overhead` and `media_tokens` are those of `from_callable`.
    /// Raises `ValueError` for another encoding or other `special_tokens`, `RuntimeError` if the vocabulary in the package
    /// is damaged.
    #[staticmethod]
    #[pyo3(
        signature = (
            encoding: "Literal['o200k_base', 'cl100k_base', 'o200k_harmony']",
            *,
            special_tokens: "Literal['text', 'control']" = "text",
            message_overhead: "int" = MessageOverhead::DEFAULT,
            media_tokens: "int" = MediaTokens::DEFAULT
        ),
        text_signature = "(encoding, *, special_tokens='text', message_overhead=4, media_tokens=256)"
    )]
    fn exact(
        py: Python<'_>,
        encoding: &str,
        special_tokens: &str,
        message_overhead: MessageOverhead,
        media_tokens: MediaTokens,
    ) -> PyResult<Self> {
        let known = self::encoding(encoding)?;
        let special = counts_special(special_tokens)?;
        let mut exact = Exact::of(known);
        ready(py, &exact)?;
        if special {
            exact = exact.with_special_tokens(&known.special_tokens());
        }
        let made_by = MadeBy::new("exact", PyString::new(py, known.name()).as_any());
        let made_by = made_by.with("special_tokens", noted(py, special));
        Self::with_count(py, Count::Exact(exact), made_by, message_overhead, media_tokens)
    }

    /// The tokens that tiktoken makes with the ranks of a `.tiktoken` file and a split pattern, without tiktoken.
    ///
    /// `path` is the file: a line for each token, its bytes as base64, a space and its rank, from 0 on without gaps. The
    /// first 256 are the single bytes, as in all public files of this kind. `grammar` is the pattern that texts are split
    /// by before merging, which is not in the file: `"cl100k"` (GPT-4, as tiktoken has it today), `"o200k"` (GPT-4o),
    /// `"llama3"` (Llama 3, GLM 4), `"qwen2"` (Qwen 2 and 3) or `"tekken"` (Mistral).
    ///
    /// Special tokens are not in the file either. Without `special_tokens` what looks like one is ordinary text; those
    /// that are named (a list, or the keys of a mapping) count as 1 each, as with `exact`; of two that begin at the same
    /// place the longest counts.
    ///
    /// Counters are equal that have the same bytes in their files and the same options. Pickle keeps the path, and reads
    /// the file again. `message_overhead` and `media_tokens` are those of `from_callable`.
    /// Raises `OSError` if the file cannot be read, `ValueError` for another grammar, for a file of more than 64 MiB and
    /// for one that is no such vocabulary, with the line and the rank.
    #[staticmethod]
    #[pyo3(
        signature = (
            path: "str | PathLike[str]",
            grammar: "Literal['cl100k', 'o200k', 'llama3', 'qwen2', 'tekken']",
            *,
            special_tokens: "Sequence[str] | Mapping[str, int] | None" = None,
            message_overhead: "int" = MessageOverhead::DEFAULT,
            media_tokens: "int" = MediaTokens::DEFAULT
        ),
        text_signature = "(path, grammar, *, special_tokens=None, message_overhead=4, media_tokens=256)"
    )]
    fn from_tiktoken_file(
        path: &Bound<'_, PyAny>,
        grammar: &Bound<'_, PyString>,
        special_tokens: Option<&Bound<'_, PyAny>>,
        message_overhead: MessageOverhead,
        media_tokens: MediaTokens,
    ) -> PyResult<Self> {
        let py = path.py();
        let name = grammar.to_string_lossy();
        let Some(split) = Split::named(&name) else {
            let names = Split::ALL.map(Split::name).join(", ");
            return Err(PyValueError::new_err(format!("grammar: expected one of {names}, got '{name}'")));
        };
        let special = special_tokens.map(named_tokens).transpose()?;
        let file = TokenizerFile::read(path)?;
        let mut exact = file.build(|bytes| Exact::from_tiktoken(bytes, split))?;
        let made_by = MadeBy::new("from_tiktoken_file", &file.path);
        let mut made_by = made_by.with("grammar", Some(grammar.clone().into_any()));
        if let Some((tokens, noted)) = special.filter(|(tokens, _)| !tokens.is_empty()) {
            exact = exact.with_special_tokens(&tokens);
            made_by = made_by.with("special_tokens", Some(noted.into_any()));
        }
        Self::with_count(py, Count::Exact(exact), made_by, message_overhead, media_tokens)
    }

    /// The tokens that Hugging Face's tokenizers makes with a `tokenizer.json`, without that package: byte-level BPE that
    /// splits by a known pattern.
    ///
    /// The files of Llama 3, Qwen 2 and 3, GLM 4 and MiniMax are such; `ignore_merges` and the normal form NFC are
    /// followed. Mistral's `tekken.json` is read as well. Everything in a file that is not known is a `ValueError` which
    /// says what was expected, what came and where; nothing is guessed.
    ///
    /// What looks like a special token is ordinary text. With `special_tokens="control"` each of the file's
    /// `added_tokens`, special or not, counts as 1: that is what `len(tokenizer.encode(text, add_special_tokens=False))`
    /// counts. Truncation, padding and what the file puts around a text are not followed.
    ///
    /// Counters are equal that have the same bytes in their files and the same options. Pickle keeps the path, and reads
    /// the file again. `message_overhead` and `media_tokens` are those of `from_callable`.
    /// Raises `OSError` if the file cannot be read, `ValueError` for other `special_tokens`, for a file of more than
    /// 64 MiB and for one that is no such tokenizer.
    #[staticmethod]
    #[pyo3(
        signature = (
            path: "str | PathLike[str]",
            *,
            special_tokens: "Literal['text', 'control']" = "text",
            message_overhead: "int" = MessageOverhead::DEFAULT,
            media_tokens: "int" = MediaTokens::DEFAULT
        ),
        text_signature = "(path, *, special_tokens='text', message_overhead=4, media_tokens=256)"
    )]
    fn from_tokenizer_json(
        path: &Bound<'_, PyAny>,
        special_tokens: &str,
        message_overhead: MessageOverhead,
        media_tokens: MediaTokens,
    ) -> PyResult<Self> {
        let py = path.py();
        let special = counts_special(special_tokens)?;
        let file = TokenizerFile::read(path)?;
        let exact = file.build(|bytes| Exact::from_tokenizer_json(bytes, special))?;
        let made_by = MadeBy::new("from_tokenizer_json", &file.path);
        let made_by = made_by.with("special_tokens", noted(py, special));
        Self::with_count(py, Count::Exact(exact), made_by, message_overhead, media_tokens)
    }

    /// The counter of a model: the tokens of its texts, and what its provider adds for messages, tool calls, tool
    /// definitions and media.
    ///
    /// Texts are counted exactly, as by `exact`, where the encoding is known: for OpenAI's models
    /// (`model_info(name).encoding`). For others they are estimated, as by `estimator`, for the family of the model's
    /// tokenizer. `exact=False` estimates for all: faster, and without a vocabulary, which the first count of a process
    /// takes some 10 milliseconds to build.
    ///
    /// `model` is a name as providers, gateways and frameworks write it (`"gpt-5"`,
    /// `"bedrock/us.anthropic.claude-sonnet-4-5-v1:0"`), or a `ModelInfo`. What is known comes from a table in the
    /// package, never from the network; `model_info(name)` shows it.
    ///
    /// A name that is not in the table gives an `UnknownModelWarning`, which lists similar names (not if it comes as
    /// `model_info(name)`). It is counted like the newest models of its maker if the name says who that is; otherwise as
    /// `o200k` if it is OpenAI-compatible (`openai/...`, `azure/...`), else as 1.2 times `deepseek_v3`, the most central
    /// family.
    ///
    /// Images, PDFs and sound cost what the provider says for their size in pixels, pages or seconds, which is read from
    /// their headers; an image that is not in the message (a URL, an id) counts as a screenshot of 1,920 x 1,080.
    ///
    /// `safety` is that of `estimator`, and for estimates only: by default the total of a list is raised by 3 %, single
    /// texts are not. Nothing is added where texts are counted exactly.
    /// Raises `TypeError` if `model` is neither a string nor a `ModelInfo`, `ValueError` for an empty name or another
    /// safety.
    #[staticmethod]
    #[pyo3(
        signature = (model: "str | ModelInfo", *, exact: "bool" = true, safety: "float | None" = None),
        text_signature = "(model, *, exact=True, safety=None)"
    )]
    pub(crate) fn for_model(
        model: &Bound<'_, PyAny>,
        exact: bool,
        safety: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let Model { family, estimator, encoding, overheads } = Model::read(model)?;
        let asked = read_safety(safety)?;
        let (count, safety_used) = match encoding {
            Some(encoding) if exact => (Count::Exact(Exact::of(encoding)), Safety::Middle),
            _ => (Count::Estimator(family, estimator), asked),
        };
        let estimated = (!exact).then(|| PyBool::new(model.py(), false).to_owned().into_any());
        let made_by =
            MadeBy::new("for_model", model).with("exact", estimated).with("safety", safety.cloned());
        Ok(Self { made_by, rule: Rule::PerText(PerText { count, safety: safety_used, overheads }) })
    }

    /// Tokens of a string.
    pub(crate) fn text(&self, text: &Bound<'_, PyString>) -> PyResult<u64> {
        Ok(self.one(self.text_tokens(text)?))
    }

    /// Tokens of each of many strings, in their order: what `text` says of each, without the interpreter's lock.
    ///
    /// `threads` are at most so many threads; by default as many as the machine has cores, at most 4, and fewer if
    /// there are less than 131,072 characters for each. A string is not divided. A function (`from_callable`) is called
    /// in this thread. `abatch` is for event loops.
    /// Raises `MessageTypeError` for what is no list of strings, `ValueError` for fewer than one thread.
    #[pyo3(signature = (texts: "Sequence[str]", *, threads: "int | None" = None))]
    fn batch(&self, texts: &Bound<'_, PyAny>, threads: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<u64>> {
        let threads = threads.map(|threads| some(threads, "threads")).transpose()?;
        let strings = read::strings(texts).at_key("texts")?;
        let count: &(dyn Fn(Text<'_>) -> u64 + Sync) = match &self.rule {
            Rule::Flat(flat) => &|text| flat_tokens(flat, Kind::Prose, text),
            Rule::PerText(per_text) => match &per_text.count {
                Count::Function(_) => return strings.iter().map(|text| self.text(text)).collect(),
                Count::Estimator(_, estimator) => &|text| self.one(per_text.tokens(estimator.units(text))),
                Count::Exact(exact) => {
                    ready(texts.py(), exact)?;
                    &|text| exact.count(text)
                }
            },
        };
        let views: Vec<Text<'_>> = strings.iter().map(view).collect();
        // strings cannot change, and `strings` keeps them alive
        Ok(texts.py().detach(|| batch::counts(&views, threads, count)))
    }

    /// Tokens of a message's content without the message: a string, `None` or a list of parts.
    #[pyo3(signature = (parts: "object"))]
    fn content(&self, parts: &Bound<'_, PyAny>) -> PyResult<u64> {
        let tokens = self.with_adder(|adder| {
            adder.content(parts).at_key("content")?;
            Ok(adder.tokens(Frame::None))
        })?;
        Ok(self.one(tokens))
    }

    /// `text` for an event loop, which goes on meanwhile: `await counter.atext(text)`. It is counted in a thread of
    /// `asyncio`, without the interpreter's lock from 2,048 characters on (65,536 with an estimator).
    #[pyo3(signature = (text) -> "Coroutine[Any, Any, int]")]
    fn atext<'py>(slf: &Bound<'py, Self>, text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        in_thread(slf, "text", text)
    }

    /// `batch` for an event loop: `await counter.abatch(texts)`.
    #[pyo3(signature = (texts: "Sequence[str]") -> "Coroutine[Any, Any, list[int]]")]
    fn abatch<'py>(slf: &Bound<'py, Self>, texts: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        in_thread(slf, "batch", texts)
    }

    /// Tokens of one message.
    #[pyo3(signature = (message: "object"))]
    fn message(&self, message: &Bound<'_, PyAny>) -> PyResult<u64> {
        Ok(self.one(self.message_tokens(message).at_key("message")?))
    }

    /// Tokens of a list of messages, and of tool definitions: the sum, with the counter's safety and what the model's
    /// provider adds to a request.
    #[pyo3(signature = (messages: "Sequence[object]", tools: "Sequence[object] | None" = None))]
    fn messages(&self, messages: &Bound<'_, PyAny>, tools: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        Ok(self.total(self.messages_sum(messages, u64::MAX)? + self.tools_sum(tools)?))
    }

    /// Tokens of tool definitions: name, description, JSON schema and a frame for each.
    #[pyo3(signature = (tools: "Sequence[object] | None"))]
    fn tools(&self, tools: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        Ok(self.one(self.tools_sum(tools)?))
    }

    /// Tokens of a request body: its `messages`, `system` (Anthropic's separate system prompt) and `tools`.
    #[pyo3(signature = (body: "object"))]
    fn request(&self, body: &Bound<'_, PyAny>) -> PyResult<u64> {
        Ok(self.request_tokens(body)?)
    }

    /// Whether `content` (a string, a message or a list of messages) has at most `limit` tokens. Counting stops at the
    /// limit.
    #[pyo3(signature = (content: "object", limit: "float"))]
    fn fits(&self, content: &Bound<'_, PyAny>, limit: &Bound<'_, PyAny>) -> PyResult<bool> {
        let limit = budget(limit, "limit", Least::Zero)?;
        Ok(self.any_tokens(content, None, limit)? <= limit)
    }

    /// Tokens of a text if they are at most `limit`, else `limit + 1`. An exact counter stops reading at the limit; a
    /// function is called once, and an estimator reads all.
    #[pyo3(signature = (text, limit: "float"))]
    fn count_up_to(&self, text: &Bound<'_, PyString>, limit: &Bound<'_, PyAny>) -> PyResult<u64> {
        let limit = budget(limit, "limit", Least::Zero)?;
        let tokens = self.one(self.text_tokens_up_to(text, limit)?);
        Ok(tokens.min(limit.saturating_add(1)))
    }

    /// The longest prefix of `text` that has at most `max_tokens` tokens, cut between characters.
    ///
    /// With an estimator or a function the prefix fits, and is the longest if counts do not fall as text grows. With an
    /// exact counter it is as much as the first `max_tokens` tokens make whole characters of (less in the rare case that
    /// cutting there makes more tokens), and little behind it is read.
    #[pyo3(signature = (text, max_tokens: "float"))]
    fn head<'py>(
        &self,
        text: &Bound<'py, PyString>,
        max_tokens: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyString>> {
        self.longest(text, max_tokens, End::Head)
    }

    /// The longest suffix of `text` that has at most `max_tokens` tokens, cut between characters; see `head`. An exact
    /// counter reads from the end: how much is before the suffix does not matter.
    #[pyo3(signature = (text, max_tokens: "float"))]
    fn tail<'py>(
        &self,
        text: &Bound<'py, PyString>,
        max_tokens: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyString>> {
        self.longest(text, max_tokens, End::Tail)
    }

    /// Tokens of a string, a message or a list of messages.
    #[pyo3(signature = (content: "object"))]
    fn __call__(&self, content: &Bound<'_, PyAny>) -> PyResult<u64> {
        Ok(self.any_tokens(content, None, u64::MAX)?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.made_by.repr(py)
    }

    fn __eq__(&self, other: &Bound<'_, Self>) -> PyResult<bool> {
        match (&self.rule, &other.get().rule) {
            (Rule::Flat(one), Rule::Flat(two)) => Ok(one == two),
            (Rule::PerText(one), Rule::PerText(two)) => {
                let same = match (&one.count, &two.count) {
                    (Count::Function(one), Count::Function(two)) => {
                        one.bind(other.py()).eq(two.bind(other.py()))?
                    }
                    (Count::Estimator(family, one), Count::Estimator(other, two)) => {
                        family == other && one.scale().to_bits() == two.scale().to_bits()
                    }
                    (Count::Exact(one), Count::Exact(two)) => one == two,
                    _ => false,
                };
                Ok(same && one.safety == two.safety && one.overheads == two.overheads)
            }
            _ => Ok(false),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        match &self.rule {
            Rule::Flat(flat) => {
                let rates = [Some(flat.per_token), flat.code_per_token, flat.thai_per_token];
                rates.map(|rate| rate.map(f64::to_bits)).hash(&mut hasher);
                (flat.unit, flat.rounding).hash(&mut hasher);
                (flat.message_overhead, flat.tool_overhead, flat.media_tokens).hash(&mut hasher);
            }
            Rule::PerText(per_text) => {
                match &per_text.count {
                    Count::Function(function) => function.bind(py).hash()?.hash(&mut hasher),
                    Count::Estimator(family, _) => family.hash(&mut hasher),
                    Count::Exact(exact) => exact.hash(&mut hasher),
                }
                (per_text.safety, per_text.overheads.message).hash(&mut hasher);
            }
        }
        Ok(hasher.finish())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let arguments = self.made_by.arguments(py)?.into_pyobject(py)?;
        Ok((py.import("ctxfast._core")?.getattr("_restore_counter")?, arguments))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.made_by.traverse(&visit)?;
        if let Rule::PerText(PerText { count: Count::Function(function), .. }) = &self.rule {
            visit.call(function)?;
        }
        Ok(())
    }
}

/// The table of a family of tokenizers, as bytes: for `ctxfast.reference`.
#[pyfunction]
#[pyo3(name = "_estimator_table")]
pub(crate) fn estimator_table<'py>(py: Python<'py>, family: &str) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, self::family(family)?.table()))
}

/// The family of that name.
pub(crate) fn family(name: &str) -> PyResult<Family> {
    Family::named(name).ok_or_else(|| {
        let names: Vec<&str> = Family::all().map(Family::name).collect();
        let names = names.join(", ");
        PyValueError::new_err(format!("family: expected one of {names}, got '{name}'"))
    })
}

/// The encoding of that name.
pub(crate) fn encoding(name: &str) -> PyResult<Encoding> {
    Encoding::named(name).ok_or_else(|| {
        let names = Encoding::ALL.map(Encoding::name).join(", ");
        PyValueError::new_err(format!("encoding: expected one of {names}, got '{name}'"))
    })
}

fn read_safety(safety: Option<&Bound<'_, PyAny>>) -> PyResult<Safety> {
    let Some(safety) = safety else { return Ok(Safety::Totals) };
    let number = if safety.is_instance_of::<PyBool>() { None } else { safety.extract::<f64>().ok() };
    [(0.5, Safety::Middle), (0.95, Safety::P95), (0.99, Safety::P99)]
        .into_iter()
        .find_map(|(value, safety)| (number == Some(value)).then_some(safety))
        .ok_or_else(|| {
            let got = safety.repr().map_or_else(|_| "an object".to_owned(), |repr| repr.to_string());
            PyValueError::new_err(format!("safety: expected 0.5 (the middle), 0.95, 0.99 or None, got {got}"))
        })
}

/// The same for each message and tool, and for each media part.
fn plain(message: MessageOverhead, media: MediaTokens) -> Overheads {
    Overheads {
        request: 0,
        message: message.0,
        result: 0,
        tools: 0,
        tool: message.0,
        tool_text: 1.0,
        notation: Notation::Json,
        media: MediaRule::Fixed(media.0),
    }
}

/// Notes those that are not the default.
fn with_overheads(
    py: Python<'_>,
    made_by: MadeBy,
    message: MessageOverhead,
    media: MediaTokens,
) -> PyResult<MadeBy> {
    let unless = |number: u64, default: u64| -> PyResult<Option<Bound<'_, PyAny>>> {
        Ok(if number == default { None } else { Some(number.into_pyobject(py)?.into_any()) })
    };
    Ok(made_by
        .with("message_overhead", unless(message.0, MessageOverhead::DEFAULT.0)?)
        .with("media_tokens", unless(media.0, MediaTokens::DEFAULT.0)?))
}

/// Tokens of a string, a message or a list of messages, and of tool definitions.
///
/// `model` is the name of a model or a `ModelInfo`, for `TokenCounter.for_model`; `counter` is a `TokenCounter`. Without
/// either it is `TokenCounter.default()`; both together are a `ValueError`.
#[pyfunction]
#[pyo3(
    signature = (
        content: "object",
        *,
        tools: "Sequence[object] | None" = None,
        model: "str | ModelInfo | None" = None,
        counter = None
    )
)]
pub(crate) fn count_tokens(
    content: &Bound<'_, PyAny>,
    tools: Option<&Bound<'_, PyAny>>,
    model: Option<&Bound<'_, PyAny>>,
    counter: Option<&Bound<'_, TokenCounter>>,
) -> PyResult<u64> {
    let made;
    let counter = match (model, counter) {
        (None, Some(counter)) => counter.get(),
        (None, None) => {
            made = TokenCounter::default();
            &made
        }
        (Some(model), None) => {
            made = TokenCounter::for_model(model, true, None)?;
            &made
        }
        (Some(_), Some(_)) => {
            return Err(PyValueError::new_err("model and counter: expected one of them, got both"));
        }
    };
    Ok(counter.any_tokens(content, tools, u64::MAX)?)
}

wanted! {
    /// Fields of a request body that are sent to the model.
    pub(crate) struct RequestFields {
        messages = b"messages",
        system = b"system",
        tools = b"tools",
    }
}

#[derive(Clone, Copy)]
enum End {
    Head,
    Tail,
}

impl TokenCounter {
    /// The counter that a ledger is given, or the default.
    pub(crate) fn or_default(py: Python<'_>, counter: Option<&Bound<'_, Self>>) -> PyResult<Py<Self>> {
        counter.map_or_else(|| Py::new(py, Self::default()), |counter| Ok(counter.clone().unbind()))
    }

    /// What counts exactly, if it does that and a text may be cut at borders.
    pub(crate) fn exact_count(&self, py: Python<'_>) -> PyResult<Option<&Exact>> {
        match &self.rule {
            Rule::PerText(PerText { count: Count::Exact(exact), .. }) if exact.adds_up() => {
                ready(py, exact).map(|()| Some(exact))
            }
            _ => Ok(None),
        }
    }

    /// A counter of true counts, which need no safety.
    fn with_count(
        py: Python<'_>,
        count: Count,
        made_by: MadeBy,
        message_overhead: MessageOverhead,
        media_tokens: MediaTokens,
    ) -> PyResult<Self> {
        let overheads = plain(message_overhead, media_tokens);
        let made_by = with_overheads(py, made_by, message_overhead, media_tokens)?;
        Ok(Self { made_by, rule: Rule::PerText(PerText { count, safety: Safety::Middle, overheads }) })
    }

    /// Whether to count a message again takes longer than to see that it is the same.
    pub(crate) fn is_slow(&self) -> bool {
        matches!(self.rule, Rule::PerText(_))
    }

    /// Tokens of one message, its place not yet in the error.
    pub(crate) fn message_tokens(&self, message: &Bound<'_, PyAny>) -> Read<u64> {
        self.message_tokens_and(message, &mut Nobody).map(|(tokens, _)| tokens)
    }

    /// The same; more than `limit` may be any number above it.
    fn message_tokens_up_to(&self, message: &Bound<'_, PyAny>, limit: u64) -> Read<u64> {
        match &self.rule {
            Rule::Flat(_) => self.message_tokens(message),
            Rule::PerText(per_text) => {
                let mut adder = PerTextAdder::up_to(per_text, limit);
                read::message(message, &mut adder)?;
                Ok(Adder::tokens(&adder, Frame::Message))
            }
        }
    }

    /// Tokens of one message; `noter` is told of its calls and results.
    #[inline]
    pub(crate) fn message_tokens_and<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        noter: &mut impl Visit<'py>,
    ) -> Read<(u64, Shape)> {
        match &self.rule {
            Rule::Flat(flat) => {
                let mut adder = FlatAdder::new(flat);
                let shape = read::message(message, &mut Both(&mut adder, noter))?;
                Ok((Adder::tokens(&adder, Frame::Message), shape))
            }
            Rule::PerText(per_text) => {
                let mut adder = PerTextAdder::new(per_text);
                let shape = read::message(message, &mut Both(&mut adder, noter))?;
                Ok((Adder::tokens(&adder, Frame::Message), shape))
            }
        }
    }

    /// The same; `outputs` gets the tokens of each tool output in the message.
    #[inline]
    pub(crate) fn message_tokens_with_outputs<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        noter: &mut impl Visit<'py>,
        outputs: &mut Vec<u64>,
    ) -> Read<(u64, Shape)> {
        match &self.rule {
            Rule::Flat(flat) => {
                let mut meter = Metered::new(FlatAdder::new(flat), outputs);
                let shape = read::message(message, &mut Both(&mut meter, noter))?;
                Ok((Adder::tokens(&meter.adder, Frame::Message), shape))
            }
            Rule::PerText(per_text) => {
                let mut meter = Metered::new(PerTextAdder::new(per_text), outputs);
                let shape = read::message(message, &mut Both(&mut meter, noter))?;
                Ok((Adder::tokens(&meter.adder, Frame::Message), shape))
            }
        }
    }

    /// Tokens of what a tool has said.
    pub(crate) fn output_tokens(&self, py: Python<'_>, text: &str) -> Read<u64> {
        match &self.rule {
            Rule::Flat(flat) => Ok(flat_tokens(flat, Kind::Output, text.into())),
            Rule::PerText(_) if text.is_empty() => Ok(0),
            Rule::PerText(per_text) => per_text.text_tokens(&PyString::new(py, text)),
        }
    }

    /// What a single count is raised to.
    fn one(&self, tokens: u64) -> u64 {
        match &self.rule {
            Rule::Flat(_) => tokens,
            Rule::PerText(per_text) => per_text.one().add_to(tokens),
        }
    }

    /// What a sum of counts of messages and tools is raised to, as the count of a request.
    pub(crate) fn total(&self, sum: u64) -> u64 {
        match &self.rule {
            Rule::PerText(per_text) if sum > 0 => per_text.total().add_to(sum + per_text.overheads.request),
            _ => sum,
        }
    }

    /// The largest sum whose total is not above `limit`.
    pub(crate) fn sum_within(&self, limit: u64) -> u64 {
        match &self.rule {
            Rule::Flat(_) => limit,
            Rule::PerText(per_text) => {
                per_text.total().most_within(limit).saturating_sub(per_text.overheads.request)
            }
        }
    }

    /// A sum as the count of a request, without safety.
    pub(crate) fn exact_total(&self, sum: u64) -> u64 {
        match &self.rule {
            Rule::PerText(per_text) if sum > 0 => sum + per_text.overheads.request,
            _ => sum,
        }
    }

    /// The largest sum that is not above `limit` as the count of a request, without safety.
    pub(crate) fn exact_sum_within(&self, limit: u64) -> u64 {
        match &self.rule {
            Rule::Flat(_) => limit,
            Rule::PerText(per_text) => limit.saturating_sub(per_text.overheads.request),
        }
    }

    /// Tokens of a system prompt that stands beside the messages.
    pub(crate) fn system_sum(&self, system: Option<&Bound<'_, PyAny>>) -> Read<u64> {
        let Some(system) = system else { return Ok(0) };
        self.with_adder(|adder| {
            adder.content(system).at_key("system")?;
            Ok(adder.tokens(Frame::Message))
        })
    }

    /// Tokens of tool definitions.
    pub(crate) fn tools_sum(&self, tools: Option<&Bound<'_, PyAny>>) -> Read<u64> {
        let Some(tools) = tools else { return Ok(0) };
        let py = tools.py();
        match &self.rule {
            Rule::Flat(flat) => {
                let mut adder = FlatAdder::new(flat);
                read::tools::tools(tools, &mut adder, |adder| adder.weight.code += flat.tool_overhead)?;
                Ok(flat.tokens(&adder.weight))
            }
            Rule::PerText(per_text) => {
                let mut adder = ToolAdder::new(per_text);
                let mut count = 0;
                read::tools::tools(tools, &mut adder, |_| count += 1)?;
                let mut adder = adder.finish(py)?;
                let Overheads { tools, tool, tool_text, .. } = per_text.overheads;
                let frames = if count > 0 { tools + count * tool } else { 0 };
                adder.scale(tool_text);
                Ok(Adder::tokens(&adder, Frame::None) + frames)
            }
        }
    }

    /// The sum of a list of messages; more than `limit` may be any number above it.
    pub(crate) fn messages_sum(&self, messages: &Bound<'_, PyAny>, limit: u64) -> Read<u64> {
        let messages = Items::of_messages(messages)?;
        let mut total = 0;
        if let (Rule::Flat(flat), u64::MAX) = (&self.rule, limit) {
            // the loop that most programs spend their counting time in
            let add = |message| {
                let mut adder = FlatAdder::new(flat);
                read::message(&message, &mut adder)?;
                total += Adder::tokens(&adder, Frame::Message);
                Ok(())
            };
            messages.each(add).at_key("messages")?;
            return Ok(total);
        }
        for index in 0..messages.len() {
            let Ok(message) = messages.get(index) else {
                break;
            };
            let tokens = self.message_tokens_up_to(&message, limit - total);
            total += tokens.at_index(index).at_key("messages")?;
            if total > limit {
                break;
            }
        }
        Ok(total)
    }

    /// Tokens of a string, a message or a list of messages, and of tools; more than `limit` may be any number above it.
    fn any_tokens(
        &self,
        content: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        limit: u64,
    ) -> Read<u64> {
        let tools = self.tools_sum(tools)?;
        if let Ok(text) = content.cast::<PyString>() {
            Ok(self.one(self.text_tokens_up_to(text, limit)? + tools))
        } else if Items::of(content).is_some() {
            let most = if limit == u64::MAX { limit } else { self.sum_within(limit) };
            Ok(self.total(self.messages_sum(content, most)? + tools))
        } else {
            Ok(self.one(self.message_tokens_up_to(content, limit).at_key("message")? + tools))
        }
    }

    fn text_tokens(&self, text: &Bound<'_, PyString>) -> Read<u64> {
        match &self.rule {
            Rule::Flat(flat) => Ok(flat_tokens(flat, Kind::Prose, view(text))),
            Rule::PerText(per_text) => per_text.text_tokens(text),
        }
    }

    /// The same; more than `limit` may be any number above it.
    fn text_tokens_up_to(&self, text: &Bound<'_, PyString>, limit: u64) -> Read<u64> {
        match &self.rule {
            Rule::PerText(per_text) => per_text.text_tokens_up_to(text, limit),
            Rule::Flat(_) => self.text_tokens(text),
        }
    }

    fn request_tokens(&self, body: &Bound<'_, PyAny>) -> Read<u64> {
        let mut fields = RequestFields::default();
        fields::read(body, &mut fields).at_key("request")?;
        let Some(messages) = &fields.messages else {
            return Err(Error::wrong_value("a request with `messages`", "none".to_owned())).at_key("request");
        };
        let mut sum = self.messages_sum(messages, u64::MAX)? + self.tools_sum(fields.tools.as_ref())?;
        sum += self.system_sum(fields.system.as_ref()).at_key("request")?;
        Ok(self.total(sum))
    }

    fn with_adder<'py>(&self, sum: impl FnOnce(&mut dyn Adder<'py>) -> Read<u64>) -> Read<u64> {
        match &self.rule {
            Rule::Flat(flat) => sum(&mut FlatAdder::new(flat)),
            Rule::PerText(per_text) => sum(&mut PerTextAdder::new(per_text)),
        }
    }

    fn longest<'py>(
        &self,
        text: &Bound<'py, PyString>,
        max_tokens: &Bound<'_, PyAny>,
        end: End,
    ) -> PyResult<Bound<'py, PyString>> {
        let max_tokens = budget(max_tokens, "max_tokens", Least::Zero)?;
        let all = chars(text);
        let range = |chars: usize| match end {
            End::Head => 0..chars,
            End::Tail => all - chars..all,
        };
        let slice = |chars: usize| -> PyResult<Bound<'py, PyString>> {
            let range = range(chars);
            let slice = PySlice::new(text.py(), range.start.cast_signed(), range.end.cast_signed(), 1);
            Ok(text.get_item(slice)?.cast_into::<PyString>()?)
        };
        let chars = match &self.rule {
            Rule::Flat(flat) => {
                let most = all.min(flat.most_chars(max_tokens));
                search(most, |chars| {
                    Ok(flat_tokens(flat, Kind::Prose, view(text).slice(range(chars))) <= max_tokens)
                })?
            }
            Rule::PerText(PerText { count: Count::Exact(exact), .. }) if exact.adds_up() => {
                let units = view(text);
                ready(text.py(), exact)?;
                let ends = || match end {
                    End::Head => exact.head(units, max_tokens),
                    End::Tail => all - exact.tail(units, max_tokens),
                };
                if is_long(units) { text.py().detach(ends) } else { ends() }
            }
            Rule::PerText(per_text) => {
                let within = per_text.one().most_within(max_tokens);
                let fits = |chars| Ok(per_text.text_tokens_up_to(&slice(chars)?, within)? <= within);
                // the function need not see the whole of a long text: twice as much each time, until it is too much
                let most = usize::try_from(max_tokens).unwrap_or(all).saturating_mul(4).saturating_add(64);
                let mut most = most.min(all);
                while most < all && fits(most)? {
                    most = most.saturating_mul(2).min(all);
                }
                // a longer text can have fewer tokens: what fits whole stays whole
                if most == all && fits(all)? { all } else { search(most, fits)? }
            }
        };
        slice(chars)
    }
}

/// A method, called in a thread of `asyncio`.
fn in_thread<'py>(
    counter: &Bound<'py, TokenCounter>,
    method: &str,
    argument: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let asyncio = counter.py().import("asyncio")?;
    asyncio.call_method1("to_thread", (counter.getattr(method)?, argument))
}

/// The largest number up to `most` of which `fits` holds, if it holds of all smaller ones; 0 is taken to fit.
fn search(most: usize, mut fits: impl FnMut(usize) -> PyResult<bool>) -> PyResult<usize> {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle)? {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Ok(low)
}

fn flat_tokens(flat: &Flat, kind: Kind, text: Text<'_>) -> u64 {
    let mut weight = Weight::default();
    flat.weigh(kind, text, &mut weight);
    flat.tokens(&weight)
}

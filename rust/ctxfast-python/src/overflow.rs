//! Errors as Python has them: exceptions of any library, known by their attributes and the names of their classes,
//! bodies, responses, texts. What is found is handed to `ctxfast::overflow`, which decides.
//!
//! Nothing here trusts an attribute: it can be missing, be a method, or raise.

use std::fmt::Write as _;

use ctxfast::overflow::{Answered, DEEPEST, Key, Kind, MOST_BYTES, Retry, Sent, Signals, Verdict};
use pyo3::exceptions::{PyBaseException, PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

use crate::errors::parameter_type_error;
use crate::memory::{chars, view};

/// Values looked at in all.
const MOST_VALUES: usize = 4_096;
/// Exceptions of a chain or group.
const MOST_EXCEPTIONS: usize = 32;
/// Base classes of an exception.
const MOST_BASES: usize = 16;

/// What an error of a provider means, and the numbers in it.
///
/// `error` can be an exception of any library (`openai`, `anthropic`, Google, `botocore`, `litellm`, `httpx`,
/// `langchain`, `pydantic-ai`: known by their attributes and the names of their classes, none is imported), with its
/// causes; a body as dict, JSON or text; an event of a stream, whole or in part; or a response that came and was cut
/// (`finish_reason`, `stop_reason`). Wrappings do not matter: JSON in JSON, Python's `repr`, the words that gateways
/// put in front.
///
/// `status` is that of the HTTP response, if it is known and not in `error`. `provider` ("zhipu", "minimax",
/// "fastchat") matters for codes that are mere numbers.
///
/// With `context_window` and `estimated_tokens` (of the request) more can be decided: whether a refusal without words
/// (`400 status code (no body)`) is an overflow, which it is from 80 % of the window on, and whether an answer was made
/// of a prompt that the server had cut.
///
/// Never raises, whatever the attributes of `error` do, but for wrong types of the other parameters (`TypeError`,
/// `ValueError`). Bounded in depth and size: at most a megabyte of a text is read.
#[pyfunction]
#[pyo3(signature = (
    error: "object",
    status: "int | None" = None,
    provider: "str | None" = None,
    *,
    context_window: "int | None" = None,
    estimated_tokens: "int | None" = None
))]
pub(crate) fn classify_error(
    error: &Bound<'_, PyAny>,
    status: Option<&Bound<'_, PyAny>>,
    provider: Option<&str>,
    context_window: Option<&Bound<'_, PyAny>>,
    estimated_tokens: Option<&Bound<'_, PyAny>>,
) -> PyResult<ErrorInfo> {
    let provider = provider.map(str::to_lowercase);
    let status = number("status", status)?.and_then(|status| u16::try_from(status).ok());
    let sent = Sent {
        provider: provider.as_deref(),
        window: number("context_window", context_window)?,
        estimate: number("estimated_tokens", estimated_tokens)?,
    };
    let (verdict, model) = if error.is_instance_of::<PyBaseException>() {
        of_exception(error, status, sent)?
    } else {
        (of_body(error, status, sent)?, None)
    };
    Ok(ErrorInfo::new(verdict, model))
}

fn number(name: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u64>> {
    let Some(value) = value else { return Ok(None) };
    if !value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>() {
        return Err(parameter_type_error(name, "`int` or `None`", value));
    }
    let wrong = |_| PyValueError::new_err(format!("{name}: expected 0 or more, got {value}"));
    value.extract::<u64>().map(Some).map_err(wrong)
}

/// A body, a text, a response.
fn of_body(error: &Bound<'_, PyAny>, status: Option<u16>, sent: Sent<'_>) -> PyResult<Verdict> {
    let mut walk = Walk::new(status);
    walk.value(Key::Says, error, 0)?;
    if walk.plain_object {
        walk.response(error)?; // that of an HTTP library
    }
    let mut verdict = walk.signals.classify(sent, None);
    let open = matches!(verdict.kind, Kind::Unknown | Kind::OutputCap);
    if open && sent.window.is_some() && !error.is_instance_of::<PyString>() {
        verdict = walk.signals.classify(sent, answered(error)?);
    }
    Ok(verdict)
}

/// What the usage record of a response says, if it has one.
fn answered(response: &Bound<'_, PyAny>) -> PyResult<Option<Answered>> {
    let usage = response.py().import("ctxfast.usage")?.getattr("Usage")?;
    let Some(usage) = harmless(response.py(), usage.call_method1("from_provider", (response,)))? else {
        return Ok(None);
    };
    if usage.is_none() {
        return Ok(None);
    }
    let count = |name: &str| usage.getattr(name)?.extract::<Option<u64>>();
    Ok(Some(Answered { prompt: count("prompt_tokens")?, output: count("output_tokens")? }))
}

/// An exception and what has led to it: the first of the chain that says what is wrong. A mere status, or a server's
/// fault, is what wrappers say that know nothing better: it yields to a cause, but not to what merely came before it.
fn of_exception(
    error: &Bound<'_, PyAny>,
    status: Option<u16>,
    sent: Sent<'_>,
) -> PyResult<(Verdict, Option<String>)> {
    let mut queue = vec![error.clone()];
    let mut next = 0;
    let mut model = None;
    let mut best: Option<Verdict> = None;
    while let Some(exception) = queue.get(next).cloned() {
        next += 1;
        if model.is_none() {
            model = model_of(&exception)?;
        }
        let (verdict, said) = of_one(&exception, status, sent)?;
        let kind = verdict.kind;
        if !matches!(kind, Kind::Unknown | Kind::Server) && said {
            return Ok((verdict, model));
        }
        let says = |verdict: &Verdict| {
            (verdict.kind != Kind::Unknown, verdict.maybe_overflow, verdict.status.is_some())
        };
        if best.as_ref().is_none_or(|best| says(&verdict) > says(best)) {
            best = Some(verdict);
        }
        for reason in reasons(&exception, kind == Kind::Unknown)? {
            if queue.len() < MOST_EXCEPTIONS && !queue.iter().any(|seen| seen.is(&reason)) {
                queue.push(reason);
            }
        }
    }
    Ok((best.unwrap_or_else(|| Signals::new(status).classify(sent, None)), model))
}

/// The exceptions behind an exception; with `context` also the one that was being handled when it was raised.
fn reasons<'py>(exception: &Bound<'py, PyAny>, context: bool) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut found = Vec::new();
    let mut take = |value: Option<Bound<'py, PyAny>>| {
        if let Some(value) = value.filter(PyAnyMethods::is_instance_of::<PyBaseException>) {
            found.push(value);
            return true;
        }
        false
    };
    if !take(attribute(exception, "__cause__")?) && context {
        let hidden =
            attribute(exception, "__suppress_context__")?.is_some_and(|it| it.is_truthy().unwrap_or(false));
        if !hidden {
            take(attribute(exception, "__context__")?);
        }
    }
    take(attribute(exception, "original_exception")?);
    for name in ["exceptions", "args"] {
        // of a group; of those that wrap another by hand
        if let Some(all) = attribute(exception, name)?
            && let Ok(all) = all.cast::<PyTuple>()
        {
            for one in all.iter().take(MOST_EXCEPTIONS) {
                take(Some(one));
            }
        }
    }
    Ok(found)
}

/// One exception: its body first, then its response, its message last. SDKs lose parts of a body when they make a
/// message of it. Also whether words or codes say it.
fn of_one(exception: &Bound<'_, PyAny>, status: Option<u16>, sent: Sent<'_>) -> PyResult<(Verdict, bool)> {
    let mut walk = Walk::new(status);
    walk.status_of(exception, &["status_code", "status", "http_status", "code"])?;
    walk.classes(exception)?;
    let response = attribute(exception, "response")?;
    if let Some(response) = &response {
        walk.status_of(response, &["status_code", "status"])?;
    }

    let mut verdict = None;
    for source in ["body", "response", "details", "message", ""] {
        match source {
            "response" => match &response {
                Some(response) if response.is_instance_of::<PyDict>() => {
                    walk.value(Key::Says, response, 0)?;
                }
                Some(response) => walk.response(response)?,
                None => continue,
            },
            "" => {
                if let Some(text) = harmless(exception.py(), exception.str())? {
                    walk.value(Key::Says, text.as_any(), 0)?;
                }
            }
            name => match attribute(exception, name)? {
                Some(value) => walk.value(Key::Says, &value, 0)?,
                None => continue,
            },
        }
        let found = walk.signals.classify(sent, None);
        verdict = Some(found);
        // the name of a class says what it is, but has no numbers
        if walk.signals.speak() && walk.signals.say_what(sent) {
            break;
        }
    }
    let mut verdict = verdict.unwrap_or_else(|| walk.signals.classify(sent, None));
    if let (Retry::Wait, None, Some(response)) = (verdict.retry, verdict.retry_after, &response) {
        verdict.retry_after = retry_after(response)?;
    }
    Ok((verdict, walk.signals.say_what(sent)))
}

/// Seconds that the response's headers say to wait.
fn retry_after(response: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    let Some(headers) = attribute(response, "headers")? else { return Ok(None) };
    for (name, factor) in [("retry-after-ms", 0.001), ("retry-after", 1.0)] {
        let value = harmless(response.py(), headers.call_method1("get", (name,)))?;
        if let Some(value) = value.and_then(|value| value.extract::<String>().ok())
            && let Ok(value) = value.trim().parse::<f64>()
            && value.is_finite()
            && value >= 0.0
        {
            return Ok(Some(value * factor));
        }
    }
    Ok(None)
}

/// The model's name, where exceptions carry it.
fn model_of(exception: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    for name in ["model", "model_name"] {
        if let Some(value) = attribute(exception, name)?
            && let Ok(value) = value.cast::<PyString>()
            && (1..=200).contains(&chars(value))
        {
            return Ok(Some(view(value).to_well_formed()));
        }
    }
    Ok(None)
}

/// Reads values into signals.
struct Walk {
    signals: Signals,
    values: usize,
    /// Whether the value at the top was an object of some class.
    plain_object: bool,
}

impl Walk {
    fn new(status: Option<u16>) -> Self {
        Self { signals: Signals::new(status), values: 0, plain_object: false }
    }

    /// Takes the status from the first of these attributes that is one; whether there is one.
    fn status_of(&mut self, object: &Bound<'_, PyAny>, names: &[&str]) -> PyResult<bool> {
        for name in names {
            if let Some(value) = attribute(object, name)?
                && value.is_instance_of::<PyInt>()
                && let Ok(status @ 100..600) = value.extract::<i64>()
            {
                self.signals.status(status);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn classes(&mut self, exception: &Bound<'_, PyAny>) -> PyResult<()> {
        for class in exception.get_type().mro().iter().take(MOST_BASES) {
            if let Ok(class) = class.cast::<PyType>()
                && let Some(name) = harmless(exception.py(), class.name())?
            {
                self.signals.class(&view(&name).to_well_formed());
            }
        }
        Ok(())
    }

    /// The body of a response of an HTTP library. Responses of models have a `text` too, but no status: it is what the
    /// model has written.
    fn response(&mut self, response: &Bound<'_, PyAny>) -> PyResult<()> {
        if !self.status_of(response, &["status_code", "status"])? {
            return Ok(());
        }
        for name in ["text", "content"] {
            if let Some(body) = attribute(response, name)?
                && (body.is_instance_of::<PyString>() || body.is_instance_of::<PyBytes>())
            {
                return self.value(Key::Says, &body, 0);
            }
        }
        Ok(())
    }

    fn value(&mut self, key: Key, value: &Bound<'_, PyAny>, depth: u8) -> PyResult<()> {
        self.values += 1;
        if depth > DEEPEST || self.values > MOST_VALUES || value.is_none() || key == Key::Other {
            return Ok(());
        }
        if let Ok(text) = value.cast::<PyString>() {
            let text = view(text).slice(0..MOST_BYTES).to_well_formed();
            self.signals.string(key, &text, depth);
        } else if value.is_instance_of::<PyBool>() {
        } else if value.is_instance_of::<PyInt>() {
            if let Ok(number) = value.extract::<i64>() {
                self.signals.integer(key, number);
            }
        } else if let Ok(number) = value.cast::<PyFloat>() {
            if key == Key::Delay {
                self.signals.retry_after(number.value());
            }
        } else if let Ok(bytes) = value.cast::<PyBytes>() {
            self.bytes(key, bytes.as_bytes(), depth);
        } else if let Ok(bytes) = value.cast::<PyByteArray>() {
            self.bytes(key, &bytes.to_vec(), depth);
        } else if !key.descends() {
        } else if let Ok(record) = value.cast::<PyDict>() {
            self.record(record, depth)?;
        } else if let Ok(list) = value.cast::<PyList>() {
            for index in 0..list.len().min(MOST_VALUES) {
                // other threads may shorten it meanwhile
                let Ok(item) = list.get_item(index) else { break };
                self.value(key, &item, depth + 1)?;
            }
        } else if let Ok(list) = value.cast::<PyTuple>() {
            for item in list.iter().take(MOST_VALUES) {
                self.value(key, &item, depth + 1)?;
            }
        } else if !value.is_instance_of::<PyBaseException>()
            && !value.is_instance_of::<PyType>()
            && let Some(fields) = attribute(value, "__dict__")?
            && let Ok(fields) = fields.cast::<PyDict>()
        {
            self.plain_object |= depth == 0;
            self.record(fields, depth)?;
        }
        Ok(())
    }

    fn bytes(&mut self, key: Key, bytes: &[u8], depth: u8) {
        let bytes = bytes.get(..MOST_BYTES).unwrap_or(bytes);
        self.signals.string(key, &String::from_utf8_lossy(bytes), depth);
    }

    fn record(&mut self, record: &Bound<'_, PyDict>, depth: u8) -> PyResult<()> {
        // a copy of what is in it: attributes of objects inside run foreign code
        for item in record.items().iter() {
            let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            let Ok(name) = name.cast::<PyString>() else { continue };
            if chars(name) <= 32 {
                self.value(Key::of(&view(name).as_well_formed()), &value, depth + 1)?;
            }
        }
        Ok(())
    }
}

/// An attribute that is there and can be read.
fn attribute<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let value = harmless(object.py(), object.getattr_opt(name))?;
    Ok(value.flatten().filter(|value| !value.is_none()))
}

/// What foreign code has given, unless it has raised. What is no `Exception` (a keyboard interrupt) goes on.
fn harmless<T>(py: Python<'_>, result: PyResult<T>) -> PyResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_instance_of::<PyException>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What an error of a provider means. Frozen, picklable.
#[pyclass(frozen, eq, module = "ctxfast._core")]
#[derive(Clone, PartialEq)]
pub(crate) struct ErrorInfo {
    verdict: Verdict,
    /// Name of the model, where the exception knows it.
    #[pyo3(get)]
    model: Option<String>,
}

impl ErrorInfo {
    fn new(verdict: Verdict, model: Option<String>) -> Self {
        Self { verdict, model }
    }
}

#[pymethods]
impl ErrorInfo {
    /// What is wrong:
    ///
    /// | kind | meaning |
    /// | --- | --- |
    /// | `context_overflow` | the prompt, or prompt and answer, do not fit the model's context window |
    /// | `payload_too_large` | too many bytes, or a text of too many characters |
    /// | `rate_limit` | too much in a time |
    /// | `output_cap` | more output was asked for than the model writes, or the answer was cut at its limit |
    /// | `media_limit` | images, pages or sound: too many or too large |
    /// | `invalid_history` | calls and results that do not go together, changed thinking: `validate` says where |
    /// | `quota` | no money or allowance left |
    /// | `content_filter` | the provider will not answer this |
    /// | `auth` | who is asking, and may they? |
    /// | `server` | the server's fault, or the network's |
    /// | `unknown` | none of these, or nothing to know it by |
    #[getter]
    fn kind(&self) -> &'static str {
        self.verdict.kind.name()
    }

    /// Tokens of the window that the provider named: the model's, or its server's, which can be smaller.
    #[getter]
    fn context_window(&self) -> Option<u64> {
        self.verdict.window
    }

    /// Tokens that the provider compared with the limit: prompt and output, where it counts both. It can be a lower
    /// bound.
    #[getter]
    fn requested_tokens(&self) -> Option<u64> {
        self.verdict.requested
    }

    /// Tokens of the prompt among them.
    #[getter]
    fn input_tokens(&self) -> Option<u64> {
        self.verdict.input
    }

    /// Tokens of the output that was asked for.
    #[getter]
    fn output_tokens(&self) -> Option<u64> {
        self.verdict.output
    }

    /// The limit that was passed, in tokens: the window, or how many in a time.
    #[getter]
    fn limit(&self) -> Option<u64> {
        self.verdict.limit
    }

    /// Whether a smaller prompt mends it. True for overflows and payloads, and for what a single request can pass:
    /// tokens per minute, number of images, prompts that cost more than is left.
    #[getter]
    fn shrink_helps(&self) -> bool {
        self.verdict.shrink_helps
    }

    /// When to try again: after the prompt was made smaller (`shrink`), later (`wait`), after something else in the
    /// request was changed (`change`: `max_tokens`, images, pairs), or not by itself (`no`).
    #[getter]
    fn retry(&self) -> &'static str {
        self.verdict.retry.name()
    }

    /// Seconds after which the provider says to come back.
    #[getter]
    fn retry_after(&self) -> Option<f64> {
        self.verdict.retry_after
    }

    /// Whether it may be an overflow all the same, for nothing was said (`400 status code (no body)`). Your own count
    /// of the request decides: pass it as `estimated_tokens`, with `context_window`.
    #[getter]
    fn maybe_overflow(&self) -> bool {
        self.verdict.maybe_overflow
    }

    /// Status of the HTTP response.
    #[getter]
    fn status(&self) -> Option<u16> {
        self.verdict.status
    }

    /// The error code or type that says most, in lower case.
    #[getter]
    fn code(&self) -> Option<&str> {
        self.verdict.code.as_deref()
    }

    /// What the provider said, at most 500 bytes of it.
    #[getter]
    fn message(&self) -> Option<&str> {
        self.verdict.message.as_deref()
    }

    /// All of it, fit for JSON.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("kind", self.kind())?;
        dict.set_item("context_window", self.verdict.window)?;
        dict.set_item("requested_tokens", self.verdict.requested)?;
        dict.set_item("input_tokens", self.verdict.input)?;
        dict.set_item("output_tokens", self.verdict.output)?;
        dict.set_item("limit", self.verdict.limit)?;
        dict.set_item("shrink_helps", self.verdict.shrink_helps)?;
        dict.set_item("retry", self.retry())?;
        dict.set_item("retry_after", self.verdict.retry_after)?;
        dict.set_item("maybe_overflow", self.verdict.maybe_overflow)?;
        dict.set_item("status", self.verdict.status)?;
        dict.set_item("code", &self.verdict.code)?;
        dict.set_item("message", &self.verdict.message)?;
        dict.set_item("model", &self.model)?;
        Ok(dict)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyDict>,))> {
        let restore = py.import("ctxfast._core")?.getattr("_restore_error_info")?;
        Ok((restore, (self.as_dict(py)?,)))
    }

    fn __repr__(&self) -> String {
        let mut text = format!("ErrorInfo(kind='{}'", self.kind());
        let numbers = [
            ("context_window", self.verdict.window),
            ("requested_tokens", self.verdict.requested),
            ("input_tokens", self.verdict.input),
            ("output_tokens", self.verdict.output),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                let _ = write!(text, ", {name}={number}"); // writing to a string cannot fail
            }
        }
        text + &format!(", retry='{}')", self.retry())
    }
}

/// Makes an `ErrorInfo` again from what pickle kept of it.
#[pyfunction]
#[pyo3(name = "_restore_error_info", signature = (fields: "dict[str, object]"))]
pub(crate) fn restore_error_info(fields: &Bound<'_, PyDict>) -> PyResult<ErrorInfo> {
    let get = |name: &str| fields.as_any().get_item(name);
    let unknown = |name: &str, value: &str| PyValueError::new_err(format!("{name}: unknown value '{value}'"));
    let (kind, retry): (String, String) = (get("kind")?.extract()?, get("retry")?.extract()?);
    Ok(ErrorInfo {
        verdict: Verdict {
            kind: Kind::ALL.into_iter().find(|it| it.name() == kind).ok_or_else(|| unknown("kind", &kind))?,
            window: get("context_window")?.extract()?,
            requested: get("requested_tokens")?.extract()?,
            input: get("input_tokens")?.extract()?,
            output: get("output_tokens")?.extract()?,
            limit: get("limit")?.extract()?,
            shrink_helps: get("shrink_helps")?.extract()?,
            retry: Retry::ALL
                .into_iter()
                .find(|it| it.name() == retry)
                .ok_or_else(|| unknown("retry", &retry))?,
            retry_after: get("retry_after")?.extract()?,
            maybe_overflow: get("maybe_overflow")?.extract()?,
            status: get("status")?.extract()?,
            code: get("code")?.extract()?,
            message: get("message")?.extract()?,
        },
        model: get("model")?.extract()?,
    })
}

//! What a provider would refuse in a list of messages.

use ctxfast::media::Hint;
use ctxfast::part::{Kind as Text, Role};
use ctxfast::transcript::Transcript;
use ctxfast::validate::{Code, Facts, Form, Problem as Found, form_of, validate as check};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::{At, Read};
use crate::memory::{chars, view};
use crate::read::json::Keys;
use crate::read::{self, Called, Items, Nobody, Visit};
use crate::structure::Noter;

/// What a provider would refuse, in the order of the messages; an empty list if nothing.
///
/// `form` is `"openai"` or `"anthropic"`; `"auto"` takes that of the first message that can only be of one, and OpenAI's
/// if there is none. With `provider="anthropic"` the rules of Anthropic's own that reach through a gateway hold for
/// OpenAI's form too: who speaks first, no empty messages.
///
/// The codes are stable:
///
/// | code | what is wrong | forms |
/// | --- | --- | --- |
/// | `orphan_result` | a result that answers no open call | both |
/// | `duplicate_result` | a second result of a call | both |
/// | `unanswered_call` | a call without a result, though the conversation went on (calls that are still running are fine) | both |
/// | `result_out_of_order` | the results of a message's calls do not come directly after it | both |
/// | `split_parallel_group` | some of them come directly after it, others later | both |
/// | `blank_id`, `blank_name` | a call or result without an id, a call without a name | both |
/// | `no_user_message` | nothing said by a user | both |
/// | `mixed_forms`, `unknown_role` | a message of the other form; a role that the form does not know | both |
/// | `duplicate_call_id` | the same id twice in one message | Anthropic |
/// | `first_not_user` | the first message is none of a user | Anthropic |
/// | `empty_message`, `empty_text` | nothing in a message; a text block without text | Anthropic |
/// | `result_after_text` | a tool result behind other blocks of its message | Anthropic |
/// | `thinking_without_signature` | a thinking block that cannot be sent back | Anthropic |
///
/// Linear in the number of messages. Raises `MessageTypeError` or `MessageValueError` for what is no message at all.
#[pyfunction]
#[pyo3(signature = (
    messages: "Sequence[object]",
    form: "Literal['auto', 'openai', 'anthropic']" = "auto",
    provider: "Literal['openai', 'anthropic'] | None" = None
))]
pub(crate) fn validate(
    messages: &Bound<'_, PyAny>,
    form: &str,
    provider: Option<&str>,
) -> PyResult<Vec<Problem>> {
    let mut inspector = Inspector::default();
    let inspect = |message| inspector.message(&message, &mut Nobody).map(drop);
    Items::of_messages(messages)?.each(inspect).at_key("messages")?;
    let (form, strict) = rules(form, provider, &inspector.facts)?;
    let found = inspector.check(form, strict);
    Ok(found.into_iter().map(|found| Problem::new(&inspector.transcript, found)).collect())
}

/// The form whose rules hold, and whether Anthropic's hold for any form.
pub(crate) fn rules(form: &str, provider: Option<&str>, facts: &[Facts]) -> PyResult<(Form, bool)> {
    let form = match form {
        "auto" => form_of(facts),
        "openai" => Form::OpenAi,
        "anthropic" => Form::Anthropic,
        other => {
            let message = format!("form: expected 'auto', 'openai' or 'anthropic', got '{other}'");
            return Err(PyValueError::new_err(message));
        }
    };
    match provider {
        None | Some("openai") => Ok((form, form == Form::Anthropic)),
        Some("anthropic") => Ok((form, true)),
        Some(other) => {
            let message = format!("provider: expected 'openai', 'anthropic' or None, got '{other}'");
            Err(PyValueError::new_err(message))
        }
    }
}

/// Something that a provider would refuse. Frozen, hashable.
#[pyclass(frozen, eq, hash, module = "ctxfast._core")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Problem {
    /// What is wrong: one of the stable codes of `validate`.
    #[pyo3(get)]
    code: &'static str,
    /// Index of the message.
    #[pyo3(get)]
    index: usize,
    /// The same as a sentence, with the id that it is about.
    #[pyo3(get)]
    detail: String,
}

#[pymethods]
impl Problem {
    fn __repr__(&self) -> String {
        format!("Problem(code='{}', index={}, detail={:?})", self.code, self.index, self.detail)
    }

    fn __str__(&self) -> String {
        format!("messages[{}]: {} ({})", self.index, self.detail, self.code)
    }
}

impl Problem {
    fn new(transcript: &Transcript, found: Found) -> Self {
        let id = found.id.map_or_else(String::new, |id| transcript.id_text(id));
        Self { code: found.code.name(), index: found.index, detail: detail(found.code, &id) }
    }
}

fn detail(code: Code, id: &str) -> String {
    match code {
        Code::OrphanResult => format!("the result with id {id:?} answers no open call"),
        Code::DuplicateResult => format!("a second result for the call with id {id:?}"),
        Code::UnansweredCall => {
            format!("the call with id {id:?} has no result, though the conversation went on")
        }
        Code::ResultOutOfOrder => format!("the result with id {id:?} does not come directly after its call"),
        Code::SplitParallelGroup => {
            format!(
                "the result with id {id:?} comes later than the results of the other calls of its message"
            )
        }
        Code::BlankId => "a call or a result without an id".to_owned(),
        Code::BlankName => "a call without a name".to_owned(),
        Code::DuplicateCallId => format!("two calls of one message have the id {id:?}"),
        Code::NoUserMessage => "no user says anything in the whole list".to_owned(),
        Code::FirstNotUser => "the first message must be one of a user".to_owned(),
        Code::EmptyMessage => "there is nothing in the message".to_owned(),
        Code::EmptyText => "a text block without text".to_owned(),
        Code::ResultAfterText => "tool results must come before other blocks of their message".to_owned(),
        Code::ThinkingWithoutSignature => {
            "a thinking block without its signature cannot be sent back".to_owned()
        }
        Code::MixedForms => "the message is of another form than the list".to_owned(),
        Code::UnknownRole => "the form has no such role".to_owned(),
    }
}

/// Notes what the table does not say.
#[derive(Default)]
pub(crate) struct Inspector {
    pub(crate) transcript: Transcript,
    pub(crate) facts: Vec<Facts>,
    pub(crate) roles: Vec<Role>,
}

/// In which forms the calls and results of a message are written: it can be both.
#[derive(Clone, Copy)]
pub(crate) struct Forms {
    pub(crate) openai: bool,
    pub(crate) anthropic: bool,
}

impl Inspector {
    /// Reads a message; its calls are told to somebody else, too.
    pub(crate) fn message<'py>(
        &mut self,
        message: &Bound<'py, PyAny>,
        also: &mut impl Visit<'py>,
    ) -> Read<Forms> {
        let noter = Noter::open(&mut self.transcript);
        let mut reading = Reading { noter, is_empty: true, openai: false, nameless_call: false, also };
        let shape = read::message(message, &mut reading)?;
        let Reading { noter, is_empty, openai, nameless_call, .. } = reading;
        noter.close(shape);
        let blocks = shape.blocks;
        let forms = Forms { openai: openai || shape.role == Role::Result, anthropic: blocks.anthropic };
        self.facts.push(Facts {
            form: match (forms.openai, forms.anthropic) {
                (true, _) => Some(Form::OpenAi),
                (false, true) => Some(Form::Anthropic),
                (false, false) => None,
            },
            empty: is_empty && !blocks.any,
            empty_text: blocks.empty_text,
            late_result: blocks.late_result,
            unsigned_thinking: blocks.unsigned_thinking,
            nameless_call,
        });
        self.roles.push(shape.role);
        Ok(forms)
    }

    /// All problems.
    pub(crate) fn check(&self, form: Form, strict: bool) -> Vec<Found> {
        check(&self.transcript, &self.facts, &self.roles, form, strict)
    }
}

/// Whether there is nothing in a message.
pub(crate) fn is_empty(message: &Bound<'_, PyAny>) -> Read<bool> {
    let mut inspector = Inspector::default();
    inspector.message(message, &mut Nobody)?;
    Ok(inspector.facts.iter().all(|facts| facts.empty))
}

/// Whether a name names nothing.
pub(crate) fn is_blank_name(called: &Called<'_, '_>) -> bool {
    let name = called.name.and_then(|name| name.cast::<PyString>().ok());
    name.is_none_or(|name| view(name).is_blank())
}

/// One message.
struct Reading<'t, 'a, V> {
    noter: Noter<'t>,
    is_empty: bool,
    openai: bool,
    nameless_call: bool,
    also: &'a mut V,
}

impl<'py, V: Visit<'py>> Visit<'py> for Reading<'_, '_, V> {
    fn text(&mut self, kind: Text, text: &Bound<'py, PyString>) -> Read<()> {
        self.is_empty &= kind == Text::Id || chars(text) == 0;
        Ok(())
    }

    fn json(&mut self, _: Text, _: &Bound<'py, PyAny>, _: Keys) -> Read<()> {
        self.is_empty = false;
        Ok(())
    }

    fn media(&mut self, _hint: Hint, _part: &Bound<'py, PyAny>) {
        self.is_empty = false;
    }

    fn call(&mut self, id: Option<&Bound<'py, PyString>>, called: Called<'_, 'py>) {
        self.is_empty = false;
        self.nameless_call |= is_blank_name(&called);
        self.noter.call(id, called);
        self.also.call(id, called);
    }

    fn result(&mut self, id: Option<&Bound<'py, PyString>>) {
        self.is_empty = false;
        self.noter.result(id);
    }

    fn tool_calls(&mut self) {
        self.openai = true;
    }
}

//! What pruning has done: the new list, and a report that later calls go on from.

use ctxfast::plan::{Block, Reason};
use ctxfast::tools::Tool;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::errors::parameter_type_error;
use crate::numbers::count;

/// A tool output that has been replaced. Frozen.
#[pyclass(frozen, eq, module = "ctxfast._core")]
#[derive(Clone, PartialEq)]
pub(crate) struct Edit {
    /// Index of its message.
    #[pyo3(get)]
    pub(crate) index: usize,
    /// Which of the message's tool results it is, from 0.
    #[pyo3(get)]
    pub(crate) place: usize,
    /// Id of the call that it answers; empty if it has none.
    #[pyo3(get)]
    pub(crate) call_id: String,
    /// Name of the tool; empty if it is not known.
    #[pyo3(get)]
    pub(crate) tool: String,
    pub(crate) kind: Tool,
    pub(crate) reason: Reason,
    /// Tokens of the output.
    #[pyo3(get)]
    pub(crate) before: u64,
    /// Tokens of the stub.
    #[pyo3(get)]
    pub(crate) after: u64,
    /// Whether it was replaced by this call, and not by an earlier one.
    #[pyo3(get)]
    pub(crate) new: bool,
    /// The text that stands there now.
    #[pyo3(get)]
    pub(crate) stub: String,
    /// Characters of the output.
    #[pyo3(get)]
    pub(crate) characters: usize,
    /// How the output began and ended: by this it is known again.
    #[pyo3(get)]
    pub(crate) sample: String,
    /// The id under which the output has been saved, if there was a store.
    #[pyo3(get)]
    pub(crate) stored: Option<String>,
}

#[pymethods]
impl Edit {
    /// What kind of tool it is: `read`, `edit`, `command`, `search`, `list`, `web`, `agent`, `other`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind.name()
    }

    /// Why: `aged`; `covered` by a later read; of a file that was `edited` later; an `error` that was made up for, or one
    /// of too many. Of `fit_messages` alone: `clamped`, only its ends stay.
    #[getter]
    fn reason(&self) -> &'static str {
        self.reason.name()
    }

    /// The same as plain data, fit for JSON.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("index", self.index)?;
        dict.set_item("place", self.place)?;
        dict.set_item("call_id", &self.call_id)?;
        dict.set_item("tool", &self.tool)?;
        dict.set_item("kind", self.kind.name())?;
        dict.set_item("reason", self.reason.name())?;
        dict.set_item("before", self.before)?;
        dict.set_item("after", self.after)?;
        dict.set_item("new", self.new)?;
        dict.set_item("stub", &self.stub)?;
        dict.set_item("characters", self.characters)?;
        dict.set_item("sample", &self.sample)?;
        dict.set_item("stored", &self.stored)?;
        Ok(dict)
    }

    /// That of which `as_dict` gave this. Raises `KeyError`, `TypeError` or `ValueError` for anything else.
    #[staticmethod]
    #[pyo3(signature = (data: "dict[str, Any]"))]
    fn from_dict(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let get = |key: &str| data.get_item(key);
        let size = |key: &str| count(&get(key)?, key);
        let kind: String = get("kind")?.extract()?;
        let reason: String = get("reason")?.extract()?;
        Ok(Self {
            index: size("index")?,
            place: size("place")?,
            call_id: get("call_id")?.extract()?,
            tool: get("tool")?.extract()?,
            kind: Tool::from_name(&kind).ok_or_else(|| unknown("kind", &kind))?,
            reason: Reason::from_name(&reason).ok_or_else(|| unknown("reason", &reason))?,
            before: size("before")? as u64,
            after: size("after")? as u64,
            new: get("new")?.extract()?,
            stub: get("stub")?.extract()?,
            characters: size("characters")?,
            sample: get("sample")?.extract()?,
            stored: get("stored")?.extract()?,
        })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let restore = py.get_type::<Self>().getattr("from_dict")?;
        Ok((restore, PyTuple::new(py, [self.as_dict(py)?])?))
    }

    fn __repr__(&self) -> String {
        format!(
            "Edit(index={}, call_id={:?}, tool={:?}, reason='{}', before={}, after={})",
            self.index,
            self.call_id,
            self.tool,
            self.reason.name(),
            self.before,
            self.after
        )
    }
}

#[cold]
fn unknown(key: &str, value: &str) -> PyErr {
    PyValueError::new_err(format!("{key}: no edit has {value:?}"))
}

/// What `prune_tool_outputs` has done, all sizes in tokens of its counter. Frozen, picklable; `as_dict` is plain data.
#[pyclass(frozen, eq, module = "ctxfast._core")]
#[derive(Clone, PartialEq)]
pub(crate) struct Report {
    /// Tokens of the list that came in, as the counter gives them for a list. (The edits, and what is written again, are
    /// the counts of parts, without what the counter adds to a total for safety.)
    #[pyo3(get)]
    pub(crate) before: u64,
    /// Tokens of the new list.
    #[pyo3(get)]
    pub(crate) after: u64,
    pub(crate) items: Vec<Edit>,
    /// Index of the first message that this call has changed: up to here the provider's cache holds. `None`: it holds
    /// whole.
    #[pyo3(get)]
    pub(crate) earliest_changed_index: Option<usize>,
    /// Tokens from there on that were in the last request and are written again.
    #[pyo3(get)]
    pub(crate) tokens_rewritten: u64,
    pub(crate) blocked_by: Option<Block>,
    pub(crate) reread_of_pruned: Vec<usize>,
}

#[pymethods]
impl Report {
    /// Whether the new list differs from the one that came in.
    #[getter]
    fn changed(&self) -> bool {
        !self.items.is_empty()
    }

    /// Tokens saved.
    #[getter]
    fn saved(&self) -> u64 {
        self.before.saturating_sub(self.after)
    }

    /// The outputs that are stubs in the new list, in its order; those that were stubs in the list that came in are not
    /// among them.
    #[getter]
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.items.iter().cloned())
    }

    /// If this call has replaced nothing: the rule that was in the way. `prune_threshold`: it is too little, or does not
    /// pay; `protected_turns`: without that guard there would be enough; `protected_tokens`, `protected_steps`: nothing is
    /// old enough; `kept`: all that is old stays by a rule; `trigger_tokens`. `None`: there is nothing.
    #[getter]
    fn blocked_by(&self) -> Option<&'static str> {
        self.blocked_by.map(Block::name)
    }

    /// Indices of messages of the newest step that read lines again of which every copy had been replaced: what pruning
    /// has cost.
    #[getter]
    fn reread_of_pruned<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.reread_of_pruned)
    }

    /// The report as plain data, fit for JSON.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("changed", self.changed())?;
        dict.set_item("before", self.before)?;
        dict.set_item("after", self.after)?;
        dict.set_item("saved", self.saved())?;
        let items: Vec<_> = self.items.iter().map(|item| item.as_dict(py)).collect::<PyResult<_>>()?;
        dict.set_item("items", items)?;
        dict.set_item("earliest_changed_index", self.earliest_changed_index)?;
        dict.set_item("tokens_rewritten", self.tokens_rewritten)?;
        dict.set_item("blocked_by", self.blocked_by())?;
        dict.set_item("reread_of_pruned", &self.reread_of_pruned)?;
        Ok(dict)
    }

    /// The report of which `as_dict` gave this. Raises `KeyError`, `TypeError` or `ValueError` for anything else.
    #[staticmethod]
    #[pyo3(signature = (data: "dict[str, Any]"))]
    fn from_dict(data: &Bound<'_, PyDict>) -> PyResult<Self> {
        let get = |key: &str| data.as_any().get_item(key);
        let size = |key: &str| count(&get(key)?, key);
        let blocked_by: Option<String> = get("blocked_by")?.extract()?;
        let block = |name: String| Block::from_name(&name).ok_or_else(|| unknown("blocked_by", &name));
        let first = get("earliest_changed_index")?;
        let index = |index: PyResult<Bound<'_, PyAny>>| count(&index?, "reread_of_pruned");
        Ok(Self {
            before: size("before")? as u64,
            after: size("after")? as u64,
            items: get("items")?.try_iter()?.map(|item| Edit::from_dict(&item?)).collect::<PyResult<_>>()?,
            earliest_changed_index: if first.is_none() {
                None
            } else {
                Some(size("earliest_changed_index")?)
            },
            tokens_rewritten: size("tokens_rewritten")? as u64,
            blocked_by: blocked_by.map(block).transpose()?,
            reread_of_pruned: get("reread_of_pruned")?.try_iter()?.map(index).collect::<PyResult<_>>()?,
        })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let restore = py.get_type::<Self>().getattr("from_dict")?;
        Ok((restore, PyTuple::new(py, [self.as_dict(py)?])?))
    }

    fn __repr__(&self) -> String {
        let first = self.earliest_changed_index.map_or_else(|| "None".to_owned(), |index| index.to_string());
        let block = self.blocked_by.map_or_else(|| "None".to_owned(), |block| format!("'{}'", block.name()));
        format!(
            "Report(before={}, after={}, items=<{} edits>, earliest_changed_index={first}, tokens_rewritten={}, \
             blocked_by={block})",
            self.before,
            self.after,
            self.items.len(),
            self.tokens_rewritten
        )
    }

    /// A table: what was replaced, by message.
    fn __str__(&self) -> String {
        let what = match (self.earliest_changed_index, self.blocked_by) {
            (Some(first), _) => {
                format!(
                    "changed from messages[{first}] on, {} tokens to be written again",
                    self.tokens_rewritten
                )
            }
            (None, Some(block)) => format!("nothing new: {}", block.name()),
            (None, None) => "nothing new".to_owned(),
        };
        let mut lines = vec![format!("{} of {} tokens saved, {what}", self.saved(), self.before)];
        if !self.items.is_empty() {
            lines.push(format!(
                "{:>7}  {:24}{:10}{:>10}{:>8}  call",
                "message", "tool", "reason", "before", "after"
            ));
        }
        lines.extend(self.items.iter().map(|item| {
            let tool: String = item.tool.chars().take(22).collect();
            let reason = item.reason.name();
            let (index, before, after, call) = (item.index, item.before, item.after, &item.call_id);
            format!("{index:>7}  {tool:24}{reason:10}{before:>10}{after:>8}  {call}").trim_end().to_owned()
        }));
        lines.join("\n")
    }
}

/// What `prune_tool_outputs` gives. Frozen.
#[pyclass(frozen, generic, module = "ctxfast._core")]
pub(crate) struct Pruned {
    pub(crate) messages: Py<PyList>,
    pub(crate) report: Py<Report>,
}

#[pymethods]
impl Pruned {
    /// A new list: the same messages, stubs in the place of old tool outputs. Untouched messages are the same objects.
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        self.messages.bind(py).clone()
    }

    /// What was replaced, and what that saves.
    #[getter]
    fn report(&self, py: Python<'_>) -> Py<Report> {
        self.report.clone_ref(py)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let (py, other) = (other.py(), other.get());
        Ok(self.report.get() == other.report.get() && self.messages.bind(py).eq(other.messages.bind(py))?)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let report = self.report.get().__repr__();
        format!("Pruned(messages=<{} messages>, report={report})", self.messages.bind(py).len())
    }

    fn __traverse__(&self, visit: pyo3::gc::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.messages)
    }
}

/// The report of an earlier call: itself, or what holds it.
pub(crate) fn earlier(previous: &Bound<'_, PyAny>) -> PyResult<Py<Report>> {
    if let Ok(pruned) = previous.cast::<Pruned>() {
        return Ok(pruned.get().report.clone_ref(previous.py()));
    }
    match previous.cast::<Report>() {
        Ok(report) => Ok(report.clone().unbind()),
        Err(_) => Err(parameter_type_error("previous", "the Report of an earlier call", previous)),
    }
}

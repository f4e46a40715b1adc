//! What mending a list has done: the new list, and a report.

use ctxfast::repair::Fix as Found;
use ctxfast::transcript::Transcript;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::numbers::count;

/// One thing that `repair` has mended, or could not. Frozen, hashable.
#[pyclass(frozen, eq, hash, module = "ctxfast._core")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Fix {
    /// What was wrong: a code of `validate` (or `strict_predecessor`).
    #[pyo3(get)]
    code: String,
    /// Index of the message in the list that came in.
    #[pyo3(get)]
    index: usize,
    /// Id of the call or result that it is about, as it was; empty if there is none.
    #[pyo3(get)]
    call_id: String,
    /// What was done: `dropped`, `moved`, `synthesised`, `renamed`, `converted`, `inserted`; or `left`, because it cannot
    /// be mended.
    #[pyo3(get)]
    action: String,
    /// The id that there is now, if it is another one.
    #[pyo3(get)]
    new_id: Option<String>,
}

#[pymethods]
impl Fix {
    fn __repr__(&self) -> String {
        let new_id = self.new_id.as_ref().map_or_else(|| "None".to_owned(), |id| format!("{id:?}"));
        format!(
            "Fix(code='{}', index={}, call_id={:?}, action='{}', new_id={new_id})",
            self.code, self.index, self.call_id, self.action
        )
    }

    fn __str__(&self) -> String {
        let id = if self.call_id.is_empty() { String::new() } else { format!(" {:?}", self.call_id) };
        let new_id = self.new_id.as_ref().map_or_else(String::new, |id| format!(" as {id:?}"));
        format!("messages[{}]: {}{id}{new_id} ({})", self.index, self.action, self.code)
    }
}

impl Fix {
    pub(crate) fn new(transcript: &Transcript, found: Found) -> Self {
        let Found { code, index, id, action, new_id } = found;
        let call_id = id.map_or_else(String::new, |id| transcript.id_text(id));
        Self { code: code.to_owned(), index, call_id, action: action.name().to_owned(), new_id }
    }

    fn is_change(&self) -> bool {
        self.action != "left"
    }

    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("code", &self.code)?;
        dict.set_item("index", self.index)?;
        dict.set_item("call_id", &self.call_id)?;
        dict.set_item("action", &self.action)?;
        dict.set_item("new_id", &self.new_id)?;
        Ok(dict)
    }

    fn from_dict(dict: &Bound<'_, PyAny>) -> PyResult<Self> {
        let get = |key: &str| dict.get_item(key);
        Ok(Self {
            code: get("code")?.extract()?,
            index: count(&get("index")?, "index")?,
            call_id: get("call_id")?.extract()?,
            action: get("action")?.extract()?,
            new_id: get("new_id")?.extract()?,
        })
    }
}

/// What `repair` has done. Frozen, picklable; prints as lines, `as_dict` is plain data.
#[pyclass(frozen, eq, module = "ctxfast._core")]
#[derive(Clone, PartialEq)]
pub(crate) struct RepairReport {
    pub(crate) items: Vec<Fix>,
}

#[pymethods]
impl RepairReport {
    /// Whether the new list differs from the one that came in.
    #[getter]
    fn changed(&self) -> bool {
        self.items.iter().any(Fix::is_change)
    }

    /// What was done, in the order of the messages that came in.
    #[getter]
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.items.iter().cloned())
    }

    /// The report as plain data, fit for JSON.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("changed", self.changed())?;
        let items: Vec<_> = self.items.iter().map(|item| item.as_dict(py)).collect::<PyResult<_>>()?;
        dict.set_item("items", items)?;
        Ok(dict)
    }

    /// The report of which `as_dict` gave this. Raises `KeyError`, `TypeError` or `ValueError` for anything else.
    #[staticmethod]
    #[pyo3(signature = (data: "dict[str, Any]"))]
    fn from_dict(data: &Bound<'_, PyDict>) -> PyResult<Self> {
        let items = data.as_any().get_item("items")?;
        Ok(Self { items: items.try_iter()?.map(|item| Fix::from_dict(&item?)).collect::<PyResult<_>>()? })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let restore = py.get_type::<Self>().getattr("from_dict")?;
        Ok((restore, PyTuple::new(py, [self.as_dict(py)?])?))
    }

    fn __repr__(&self) -> String {
        let changed = if self.changed() { "True" } else { "False" };
        format!("RepairReport(changed={changed}, items=<{} fixes>)", self.items.len())
    }

    fn __str__(&self) -> String {
        if self.items.is_empty() {
            return "nothing to repair".to_owned();
        }
        self.items.iter().map(Fix::__str__).collect::<Vec<_>>().join("\n")
    }
}

/// What `repair` gives. Frozen.
#[pyclass(frozen, generic, module = "ctxfast._core")]
pub(crate) struct Repaired {
    pub(crate) messages: Py<PyList>,
    pub(crate) report: Py<RepairReport>,
}

#[pymethods]
impl Repaired {
    /// A new list that a provider accepts. Untouched messages are the same objects.
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        self.messages.bind(py).clone()
    }

    /// What was done.
    #[getter]
    fn report(&self, py: Python<'_>) -> Py<RepairReport> {
        self.report.clone_ref(py)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let (py, other) = (other.py(), other.get());
        Ok(self.report.get() == other.report.get() && self.messages.bind(py).eq(other.messages.bind(py))?)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let report = self.report.get().__repr__();
        format!("Repaired(messages=<{} messages>, report={report})", self.messages.bind(py).len())
    }

    fn __traverse__(&self, visit: pyo3::gc::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.messages)
    }
}

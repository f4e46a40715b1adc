//! `TextLedger`: the total of a text that grows at its end.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ctxfast::exact::Running;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyString;

use crate::adders::is_long;
use crate::counter::TokenCounter;
use crate::memory::view;

/// Tokens of a text that grows at its end, as an answer that is streamed does.
///
/// `total()` is what the counter gives for all that was appended, joined. With an exact counter, what is final is counted
/// once and forgotten, so that appending a line takes as long as counting it; with others the parts are kept, and counted
/// together by each `total()`. Naive sums are wrong: "don" and "'t" have a token each, "don't" has one.
///
/// `counter` is a `TokenCounter`; without one it is `TokenCounter.default()`. `text` is how the text begins. Threads may
/// share a ledger. It cannot be pickled.
#[pyclass(frozen, module = "ctxfast._core")]
pub(crate) struct TextLedger {
    counter: Py<TokenCounter>,
    /// Never held while Python code runs.
    text: Mutex<Growing>,
}

enum Growing {
    Exact(Running),
    /// Parts, to be joined.
    Kept(Vec<Py<PyString>>),
}

#[pymethods]
impl TextLedger {
    #[new]
    #[pyo3(signature = (counter = None, text = None))]
    fn new(
        py: Python<'_>,
        counter: Option<&Bound<'_, TokenCounter>>,
        text: Option<&Bound<'_, PyString>>,
    ) -> PyResult<Self> {
        let counter = TokenCounter::or_default(py, counter)?;
        let growing = Growing::new(py, counter.get())?;
        let ledger = Self { counter, text: Mutex::new(growing) };
        if let Some(text) = text {
            ledger.append(text);
        }
        Ok(ledger)
    }

    /// Adds to the end of the text.
    fn append(&self, text: &Bound<'_, PyString>) {
        let (py, units) = (text.py(), view(text));
        match &mut *self.lock(py) {
            Growing::Kept(parts) => parts.push(text.clone().unbind()),
            // others may run meanwhile; who waits for the text lets go of the interpreter
            Growing::Exact(running) if is_long(units) => py.detach(|| running.append(units)),
            Growing::Exact(running) => running.append(units),
        }
    }

    /// Tokens of all of the text.
    fn total(&self, py: Python<'_>) -> PyResult<u64> {
        let parts: Vec<Py<PyString>> = match &*self.lock(py) {
            Growing::Exact(running) => return Ok(running.total()),
            Growing::Kept(parts) => parts.iter().map(|part| part.clone_ref(py)).collect(),
        };
        let joined = PyString::new(py, "").call_method1("join", (parts,))?.cast_into::<PyString>()?;
        self.counter.get().text(&joined)
    }

    /// Empties the text.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let empty = Growing::new(py, self.counter.get())?;
        let emptied = std::mem::replace(&mut *self.lock(py), empty);
        drop(emptied); // when nobody waits for it
        Ok(())
    }

    /// The counter.
    #[getter]
    fn counter(&self, py: Python<'_>) -> Py<TokenCounter> {
        self.counter.clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let counter = self.counter.bind(py).repr()?;
        Ok(format!("<TextLedger of {} tokens by {}>", self.total(py)?, counter.to_string_lossy()))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.counter)
    }
}

impl TextLedger {
    /// The text, for a moment.
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Growing> {
        self.text.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Growing {
    fn new(py: Python<'_>, counter: &TokenCounter) -> PyResult<Growing> {
        let exact = counter.exact_count(py)?;
        Ok(exact
            .map_or_else(|| Growing::Kept(Vec::new()), |exact| Growing::Exact(Running::new(exact.clone()))))
    }
}

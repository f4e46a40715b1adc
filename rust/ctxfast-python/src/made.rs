//! How a counter was made: the call that `repr` shows and pickle repeats.

use pyo3::PyTraverseError;
use pyo3::exceptions::PyValueError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::counter::TokenCounter;

/// A constructor of `TokenCounter` and what it was given.
pub(crate) struct MadeBy {
    constructor: &'static str,
    argument: Option<Py<PyAny>>,
    /// Those that are not the default.
    options: Vec<(&'static str, Py<PyAny>)>,
}

const CONSTRUCTORS: [&str; 10] = [
    "default",
    "flat",
    "picoclaw",
    "from_callable",
    "from_tokenizer",
    "estimator",
    "exact",
    "from_tiktoken_file",
    "from_tokenizer_json",
    "for_model",
];

impl MadeBy {
    pub(crate) const DEFAULT: Self = Self { constructor: "default", argument: None, options: Vec::new() };

    pub(crate) fn new(constructor: &'static str, argument: &Bound<'_, PyAny>) -> Self {
        Self { constructor, argument: Some(argument.clone().unbind()), options: Vec::new() }
    }

    /// An option, if it is given.
    pub(crate) fn with(mut self, name: &'static str, value: Option<Bound<'_, PyAny>>) -> Self {
        self.options.extend(value.map(|value| (name, value.unbind())));
        self
    }

    pub(crate) fn repr(&self, py: Python<'_>) -> PyResult<String> {
        let mut parts = Vec::new();
        if let Some(argument) = &self.argument {
            parts.push(argument.bind(py).repr()?.to_string_lossy().into_owned());
        }
        for (name, value) in &self.options {
            parts.push(format!("{name}={}", value.bind(py).repr()?.to_string_lossy()));
        }
        Ok(format!("TokenCounter.{}({})", self.constructor, parts.join(", ")))
    }

    /// What `_restore_counter` wants.
    pub(crate) fn arguments<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(&'static str, Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let options = PyDict::new(py);
        for (name, value) in &self.options {
            options.set_item(name, value)?;
        }
        Ok((self.constructor, PyTuple::new(py, &self.argument)?, options))
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.argument)?;
        self.options.iter().try_for_each(|(_, value)| visit.call(value))
    }
}

/// Makes a counter again from what pickle kept of it.
#[pyfunction]
#[pyo3(
    name = "_restore_counter",
    signature = (constructor, arguments: "tuple[object, ...]", options: "dict[str, object]")
)]
pub(crate) fn restore_counter<'py>(
    py: Python<'py>,
    constructor: &str,
    arguments: &Bound<'py, PyTuple>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    if !CONSTRUCTORS.contains(&constructor) {
        return Err(PyValueError::new_err(format!("no constructor `{constructor}` of TokenCounter")));
    }
    py.get_type::<TokenCounter>().getattr(constructor)?.call(arguments, Some(options))
}

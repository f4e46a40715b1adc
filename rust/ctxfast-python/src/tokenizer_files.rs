//! The files of tokenizers, and what of them a counter is made with.

use ctxfast::exact::{Exact, FileError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::errors::{parameter_type_error, type_name};

/// Bytes of a file, at most: the largest that is known has 20 MB.
const MOST: usize = 1 << 26;

/// A file that was read.
pub(crate) struct TokenizerFile<'py> {
    /// As `os.fspath` gives it.
    pub(crate) path: Bound<'py, PyString>,
    bytes: Bound<'py, PyBytes>,
}

impl<'py> TokenizerFile<'py> {
    /// Reads it, through Python's `open`: its errors are known and name the path.
    pub(crate) fn read(path: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = path.py();
        let path_error = || parameter_type_error("path", "a string or a path", path);
        let spelled = py.import("os")?.call_method1("fspath", (path,)).map_err(|_| path_error())?;
        let spelled = spelled.cast_into::<PyString>().map_err(|_| path_error())?;
        let file = py.import("io")?.call_method1("open", (&spelled, "rb"))?;
        let bytes = file.call_method1("read", (MOST + 1,));
        file.call_method0("close")?;
        let file = Self { path: spelled, bytes: bytes?.cast_into::<PyBytes>()? };
        if file.bytes.as_bytes().len() > MOST {
            return Err(file.error(&format!("expected at most {MOST} bytes, got more")));
        }
        Ok(file)
    }

    /// Builds a counter, without the interpreter's lock.
    pub(crate) fn build(
        &self,
        build: impl FnOnce(&[u8]) -> Result<Exact, FileError> + Send,
    ) -> PyResult<Exact> {
        let bytes = self.bytes.as_bytes();
        let result = self.path.py().detach(|| build(bytes));
        result.map_err(|error| self.error(&error.to_string()))
    }

    fn error(&self, problem: &str) -> PyErr {
        let path = self.path.to_string_lossy();
        let name = path.rsplit(['/', '\\']).next().unwrap_or(&path);
        PyValueError::new_err(format!("{name}: {problem}"))
    }
}

/// Whether special tokens are counted as such.
pub(crate) fn counts_special(special_tokens: &str) -> PyResult<bool> {
    match special_tokens {
        "text" => Ok(false),
        "control" => Ok(true),
        other => {
            Err(PyValueError::new_err(format!("special_tokens: expected 'text' or 'control', got '{other}'")))
        }
    }
}

/// The option as it is noted: nothing if it is the default.
pub(crate) fn noted(py: Python<'_>, counts_special: bool) -> Option<Bound<'_, PyAny>> {
    counts_special.then(|| PyString::new(py, "control").into_any())
}

/// Special tokens that the caller names: strings, or the keys of a mapping.
pub(crate) fn special_tokens<'py>(
    tokens: &Bound<'py, PyAny>,
) -> PyResult<(Vec<String>, Bound<'py, PyTuple>)> {
    let refuse =
        || parameter_type_error("special_tokens", "strings in a list, or as the keys of a mapping", tokens);
    if tokens.is_instance_of::<PyString>() {
        return Err(refuse());
    }
    let mut found = Vec::new();
    for token in tokens.try_iter().map_err(|_| refuse())? {
        let token = token?;
        let place = format!("special_tokens[{}]", found.len());
        let Ok(token) = token.cast::<PyString>() else {
            return Err(PyTypeError::new_err(format!(
                "{place}: expected a string, got {}",
                type_name(&token)
            )));
        };
        match token.extract::<String>() {
            Ok(token) if !token.is_empty() => found.push(token),
            _ => {
                let got = token.repr()?.to_string_lossy().into_owned();
                return Err(PyValueError::new_err(format!("{place}: expected a text, got {got}")));
            }
        }
    }
    let noted = PyTuple::new(tokens.py(), &found)?;
    Ok((found, noted))
}

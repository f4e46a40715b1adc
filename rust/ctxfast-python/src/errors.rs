//! What can go wrong while reading messages, and the exceptions of `ctxfast.errors` that say so.

use std::borrow::Cow;
use std::fmt::Write as _;

use ctxfast::stub::plural;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// A message that cannot be read, or an exception that Python code has raised.
#[derive(Debug)]
pub(crate) struct Error(Box<Cause>);

#[derive(Debug)]
enum Cause {
    Message(Problem),
    Python(PyErr),
}

/// What was expected, what came, and where, the innermost step first.
#[derive(Debug)]
struct Problem {
    class: &'static str,
    expected: Cow<'static, str>,
    got: String,
    path: Vec<Step>,
}

/// A step on the way to a value.
#[derive(Debug)]
pub(crate) enum Step {
    /// `messages`, `.content`
    Name(Cow<'static, str>),
    /// `[12]`
    Index(usize),
}

pub(crate) type Read<T> = Result<T, Error>;

impl Error {
    /// A value of the wrong type.
    #[cold]
    #[inline(never)]
    pub(crate) fn wrong_type(expected: &'static str, got: &Bound<'_, PyAny>) -> Self {
        Self::new("MessageTypeError", expected.into(), type_name(got))
    }

    /// A value of the right type that cannot be used.
    #[cold]
    pub(crate) fn wrong_value(expected: impl Into<Cow<'static, str>>, got: String) -> Self {
        Self::new("MessageValueError", expected.into(), got)
    }

    fn new(class: &'static str, expected: Cow<'static, str>, got: String) -> Self {
        Self(Box::new(Cause::Message(Problem { class, expected, got, path: Vec::new() })))
    }
}

/// The type of an object, as it is written in messages.
pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "an object".to_owned(), |name| format!("`{name}`"))
}

/// Adds where a problem is, from the inside out.
pub(crate) trait At: Sized {
    /// The problem is in this step.
    fn at(self, step: impl FnOnce() -> Step) -> Self;

    /// The problem is under this key.
    fn at_key(self, key: &'static str) -> Self {
        self.at(|| Step::Name(key.into()))
    }

    /// The problem is in this element.
    fn at_index(self, index: usize) -> Self {
        self.at(|| Step::Index(index))
    }
}

impl<T> At for Read<T> {
    #[inline]
    fn at(self, step: impl FnOnce() -> Step) -> Self {
        match self {
            Ok(value) => Ok(value),
            Err(error) => Err(error.inside(step)),
        }
    }
}

impl Error {
    #[cold]
    #[inline(never)]
    fn inside(mut self, step: impl FnOnce() -> Step) -> Self {
        if let Cause::Message(problem) = &mut *self.0 {
            problem.path.push(step());
        }
        self
    }
}

impl Error {
    /// Whether it is about a message, and no exception that somebody's code has raised.
    pub(crate) fn is_of_message(&self) -> bool {
        matches!(&*self.0, Cause::Message(_))
    }
}

impl From<PyErr> for Error {
    #[cold]
    fn from(error: PyErr) -> Self {
        Self(Box::new(Cause::Python(error)))
    }
}

impl From<Error> for PyErr {
    #[cold]
    fn from(error: Error) -> Self {
        match *error.0 {
            Cause::Python(error) => error,
            Cause::Message(problem) => Python::attach(|py| {
                let class = error_class(py, problem.class);
                class.map_or_else(
                    |error| error,
                    |class| Self::from_type(class, (problem.expected, problem.got, path(&problem.path))),
                )
            }),
        }
    }
}

/// `messages[12].content`
fn path(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps.iter().rev() {
        match step {
            Step::Name(name) if text.is_empty() => text.push_str(name),
            // writing to a string cannot fail
            Step::Name(name) => drop(write!(text, ".{name}")),
            Step::Index(index) => drop(write!(text, "[{index}]")),
        }
    }
    text
}

fn error_class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    Ok(py.import("ctxfast.errors")?.getattr(name)?.cast_into::<PyType>()?)
}

/// A budget that is no number of tokens.
#[cold]
pub(crate) fn budget_error(py: Python<'_>, message: String) -> PyErr {
    error_class(py, "BudgetError").map_or_else(|error| error, |class| PyErr::from_type(class, (message,)))
}

/// What must stay is larger than the budget. Numbers are tokens; `place` says where the largest thing is.
#[cold]
pub(crate) fn cannot_fit_error(
    py: Python<'_>,
    budget: u64,
    pinned: u64,
    needed: u64,
    place: &str,
    largest: u64,
) -> PyErr {
    let tokens = plural(usize::try_from(largest).unwrap_or(usize::MAX), "token", "tokens");
    let largest = format!("{place}: {tokens}");
    let arguments = (budget, pinned, needed, largest);
    error_class(py, "CannotFitError").map_or_else(|error| error, |class| PyErr::from_type(class, arguments))
}

/// A parameter of the wrong type.
#[cold]
pub(crate) fn parameter_type_error(name: &str, expected: &str, got: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("{name}: expected {expected}, got {}", type_name(got)))
}

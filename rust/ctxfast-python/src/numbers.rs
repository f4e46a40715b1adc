//! Numbers that callers pass: budgets in tokens, indices, counts.

use std::num::NonZero;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use crate::errors::{budget_error, parameter_type_error};

/// The least that a budget may be.
#[derive(Clone, Copy)]
pub(crate) enum Least {
    /// 0 means something: nothing but the empty text fits.
    Zero,
    /// 0 is a mistake, mostly an unknown window that was taken for a number.
    One,
}

/// A number of tokens: an int, or a float that is rounded down. No bool, NaN, infinity or negative number.
pub(crate) fn budget(value: &Bound<'_, PyAny>, name: &str, least: Least) -> PyResult<u64> {
    let py = value.py();
    let least = match least {
        Least::Zero => 0,
        Least::One => 1,
    };
    let refuse = || -> PyErr {
        let got =
            value.repr().map_or_else(|_| "an object".to_owned(), |repr| repr.to_string_lossy().into_owned());
        budget_error(py, format!("{name}: expected a number of tokens, {least} or more, got {got}"))
    };
    if value.is_instance_of::<PyBool>() {
        return Err(refuse());
    }
    if let Ok(number) = value.extract::<i64>() {
        // an int, or something that is as good as one: numpy's integers
        return u64::try_from(number).ok().filter(|&number| number >= least).ok_or_else(refuse);
    }
    if value.is_instance_of::<PyInt>() {
        return if value.gt(0)? { Ok(MOST) } else { Err(refuse()) };
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        let number = number.value();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rounded down on purpose"
        )]
        return if number.is_finite() && number >= 0.0 && number as u64 >= least {
            Ok((number as u64).min(MOST))
        } else {
            Err(refuse())
        };
    }
    Err(parameter_type_error(name, "a number of tokens", value))
}

/// Nothing has more tokens than this.
const MOST: u64 = i64::MAX as u64;

/// An index or a count: an int of any size, but no bool.
pub(crate) fn whole(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    if value.is_instance_of::<PyBool>() || !value.is_instance_of::<PyInt>() {
        return Err(parameter_type_error(name, "a whole number", value));
    }
    Ok(match value.extract::<i64>() {
        Ok(number) => number,
        Err(_) if value.gt(0)? => i64::MAX,
        Err(_) => i64::MIN,
    })
}

/// A count of things: 0 or more.
pub(crate) fn count(value: &Bound<'_, PyAny>, name: &str) -> PyResult<usize> {
    let number = whole(value, name)?;
    usize::try_from(number)
        .map_err(|_| PyValueError::new_err(format!("{name}: expected 0 or more, got {number}")))
}

/// A number of things of which there must be one.
pub(crate) fn some(value: &Bound<'_, PyAny>, name: &str) -> PyResult<NonZero<usize>> {
    let number = whole(value, name)?;
    usize::try_from(number)
        .ok()
        .and_then(NonZero::new)
        .ok_or_else(|| PyValueError::new_err(format!("{name}: expected 1 or more, got {number}")))
}

/// Tokens that are added for each message or part.
fn overhead(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    let number = whole(value, name)?;
    u64::try_from(number)
        .ok()
        .filter(|&number| number <= 1_000_000)
        .ok_or_else(|| PyValueError::new_err(format!("{name}: expected 0 to 1,000,000, got {number}")))
}

/// A price, or a number of requests: finite, 0 or more.
pub(crate) fn price(value: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    let number = if value.is_instance_of::<PyBool>() { None } else { value.extract::<f64>().ok() };
    match number {
        Some(number) if number.is_finite() && number >= 0.0 => Ok(number),
        Some(number) => {
            Err(PyValueError::new_err(format!("{name}: expected a finite number, 0 or more, got {number}")))
        }
        None => Err(parameter_type_error(name, "a number", value)),
    }
}

/// A parameter that is a number and has a default, which its name says.
macro_rules! parameter {
    ($(#[$doc:meta])* $name:ident($type:ty) = $default:literal, $read:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name(pub(crate) $type);

        impl $name {
            pub(crate) const DEFAULT: Self = Self($default);
        }

        impl FromPyObject<'_, '_> for $name {
            type Error = PyErr;

            fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
                $read(&*value).map(Self)
            }
        }
    };
}

parameter! {
    /// `budget` of the fresh tail, in tokens.
    TailBudget(u64) = 8_000, |value| budget(value, "budget", Least::One)
}
parameter! {
    /// `min_turns` of the fresh tail.
    MinTurns(usize) = 2, |value| count(value, "min_turns")
}
parameter! {
    /// `message_overhead` of a counter made from a function, in tokens.
    MessageOverhead(u64) = 4, |value| overhead(value, "message_overhead")
}
parameter! {
    /// `media_tokens` of a counter made from a function.
    MediaTokens(u64) = 256, |value| overhead(value, "media_tokens")
}
parameter! {
    /// `read` of cache prices.
    ReadPrice(f64) = 0.1, |value| price(value, "read")
}
parameter! {
    /// `write` of cache prices.
    WritePrice(f64) = 1.25, |value| price(value, "write")
}

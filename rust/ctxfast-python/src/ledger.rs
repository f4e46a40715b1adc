//! `TokenLedger`: the totals of a conversation that grows, kept without its messages.

use std::hash::RandomState;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ctxfast::ledger::{Entry, Known, Ledger, Mark};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyIndexError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyTuple;

use crate::counter::TokenCounter;
use crate::errors::{At, Read};
use crate::numbers::{Least, budget as read_budget, count, whole};
use crate::read::{self, Items};

/// Token totals of a conversation that grows: what was counted once is not counted again.
///
/// It holds a number for each message, and no message. Messages are counted when they come in, and the total is what the
/// counter gives for all of them. One that is edited later has to come in again: by `replace`, or by `resync`, which
/// finds it in the list.
///
/// `counter` is a `TokenCounter`; without one it is `TokenCounter.default()`. `messages` are the first ones. Threads may
/// share a ledger, and a counting function may use the ledger that it counts for; it has to give the same count for the
/// same text. What cannot be read raises `MessageTypeError` or `MessageValueError` and changes nothing. Can be pickled if
/// its counter can.
#[pyclass(frozen, module = "ctxfast._core")]
pub(crate) struct TokenLedger {
    counter: Py<TokenCounter>,
    /// of the marks by which messages are recognised
    seed: RandomState,
    /// Never held while Python code runs: what is to be counted is counted before.
    ledger: Mutex<Ledger>,
}

#[pymethods]
impl TokenLedger {
    #[new]
    #[pyo3(signature = (counter = None, messages: "Sequence[object] | None" = None))]
    fn new(
        py: Python<'_>,
        counter: Option<&Bound<'_, TokenCounter>>,
        messages: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let counter = TokenCounter::or_default(py, counter)?;
        let ledger = Self { counter, seed: RandomState::new(), ledger: Mutex::default() };
        if let Some(messages) = messages {
            ledger.extend(messages)?;
        }
        Ok(ledger)
    }

    /// Counts one more message, at the end.
    #[pyo3(signature = (message: "object"))]
    fn append(&self, message: &Bound<'_, PyAny>) -> PyResult<()> {
        let entry = self.entry(message)?;
        self.lock(message.py()).push(entry);
        Ok(())
    }

    /// Counts more messages, at the end; all of them, or none if one cannot be read.
    #[pyo3(signature = (messages: "Sequence[object]"))]
    fn extend(&self, messages: &Bound<'_, PyAny>) -> PyResult<()> {
        let (entries, _) = self.entries(messages, Known::default())?;
        self.lock(messages.py()).extend(&entries);
        Ok(())
    }

    /// Puts another message in place of the one at `index`, which may be negative, as in lists. Raises `IndexError`
    /// where there is none.
    #[pyo3(signature = (index: "int", message: "object"))]
    fn replace(&self, index: &Bound<'_, PyAny>, message: &Bound<'_, PyAny>) -> PyResult<()> {
        let index = whole(index, "index")?;
        let entry = self.entry(message)?;
        let mut ledger = self.lock(message.py());
        let place = place(&ledger, index)?;
        ledger.replace(place, entry);
        Ok(())
    }

    /// Keeps the first `length` messages, or all if there are fewer. Raises `ValueError` for a negative number.
    #[pyo3(signature = (length: "int"))]
    fn truncate(&self, length: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = length.py();
        let length = count(length, "length")?;
        self.lock(py).truncate(length);
        Ok(())
    }

    /// Tokens of all messages: what the counter gives for the list.
    fn total(&self, py: Python<'_>) -> u64 {
        self.total_of(&self.lock(py))
    }

    /// Tokens of the message at `index` by itself, without the safety that the total has. `index` may be negative, as in
    /// lists. Raises `IndexError` where there is none.
    #[pyo3(signature = (index: "int"))]
    fn tokens(&self, index: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = index.py();
        let index = whole(index, "index")?;
        let ledger = self.lock(py);
        let place = place(&ledger, index)?;
        Ok(ledger.entries().get(place).map_or(0, |entry| entry.tokens))
    }

    /// The index of the first message of the longest suffix that has at most `budget` tokens; `len(ledger)` if not even
    /// the newest message fits. Walks back from the end and stops at the budget.
    ///
    /// This is arithmetic and no place to cut: it may part a call from its result. `select_fresh_tail` does not.
    #[pyo3(signature = (budget: "float"))]
    fn tail_within(&self, budget: &Bound<'_, PyAny>) -> PyResult<usize> {
        let py = budget.py();
        let budget = read_budget(budget, "budget", Least::Zero)?;
        let most = self.counter.get().sum_within(budget);
        Ok(self.lock(py).start_within(most))
    }

    /// Makes the ledger equal to `messages`, whatever has happened to the list since, and returns how many of them were
    /// counted. All or nothing, as in `extend`; what other threads add meanwhile is lost.
    ///
    /// With an estimator or a function, a message that the ledger knows is not counted again, wherever it stood; one that
    /// was edited in place is. Messages are told apart by a hash of 64 bits of all that is counted, seeded anew in each
    /// process. It reads a text at most once, since Python keeps the hash of a string in the string. A ledger that comes
    /// from a pickle knows none. Flat counters are as fast as hashing: with them, all messages are counted.
    #[pyo3(signature = (messages: "Sequence[object]"))]
    fn resync(&self, messages: &Bound<'_, PyAny>) -> PyResult<usize> {
        let py = messages.py();
        let known = self.lock(py).entries().to_vec();
        let (entries, counted) = self.entries(messages, Known::new(known))?;
        *self.lock(py) = Ledger::from(entries);
        Ok(counted)
    }

    /// Another ledger with the same counter and counts.
    fn copy(&self, py: Python<'_>) -> Self {
        let ledger = self.lock(py).clone();
        Self { counter: self.counter.clone_ref(py), seed: self.seed.clone(), ledger: Mutex::new(ledger) }
    }

    fn __copy__(&self, py: Python<'_>) -> Self {
        self.copy(py)
    }

    /// The counter.
    #[getter]
    fn counter(&self, py: Python<'_>) -> Py<TokenCounter> {
        self.counter.clone_ref(py)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.lock(py).entries().len()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let counter = self.counter.bind(py).repr()?.to_string_lossy().into_owned();
        let ledger = self.lock(py);
        let (length, total) = (ledger.entries().len(), self.total_of(&ledger));
        Ok(format!("<TokenLedger of {length} messages, {total} tokens by {counter}>"))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        // without the marks: hashes of strings differ from process to process
        let tokens: Vec<u64> = self.lock(py).entries().iter().map(|entry| entry.tokens).collect();
        let arguments = (self.counter.bind(py), tokens).into_pyobject(py)?;
        Ok((py.import("ctxfast._core")?.getattr("_restore_ledger")?, arguments))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.counter)
    }
}

/// Makes a ledger again from what pickle kept of it.
#[pyfunction]
#[pyo3(name = "_restore_ledger", signature = (counter, tokens: "Sequence[int]"))]
pub(crate) fn restore_ledger(counter: Py<TokenCounter>, tokens: Vec<u64>) -> TokenLedger {
    let entries: Vec<Entry> = tokens.into_iter().map(|tokens| Entry { tokens, mark: None }).collect();
    TokenLedger { counter, seed: RandomState::new(), ledger: Mutex::new(entries.into()) }
}

impl TokenLedger {
    /// The counts, for a moment. A thread that has to wait lets go of the interpreter.
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Ledger> {
        self.ledger.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    fn total_of(&self, ledger: &Ledger) -> u64 {
        self.counter.get().total(ledger.sum())
    }

    /// What is kept of one message.
    fn entry(&self, message: &Bound<'_, PyAny>) -> Read<Entry> {
        let mark = self.mark(message).at_key("message")?;
        Ok(Entry { tokens: self.counter.get().message_tokens(message).at_key("message")?, mark })
    }

    /// What is kept of some messages, and how many of them were counted, since they are not among the known ones.
    fn entries(&self, messages: &Bound<'_, PyAny>, mut known: Known) -> Read<(Vec<Entry>, usize)> {
        let messages = Items::of_messages(messages)?;
        let counter = self.counter.get();
        let mut entries = Vec::with_capacity(messages.len());
        let mut fresh = 0;
        let read = |message| {
            let mark = self.mark(&message)?;
            let tokens = if let Some(tokens) = mark.and_then(|mark| known.tokens(entries.len(), mark)) {
                tokens
            } else {
                fresh += 1;
                counter.message_tokens(&message)?
            };
            entries.push(Entry { tokens, mark });
            Ok(())
        };
        messages.each(read).at_key("messages")?;
        Ok((entries, fresh))
    }

    /// The mark of a message, where that is worth its time. It is made before the message is counted: should a counting
    /// function change the message, the mark will not fit it any more.
    fn mark(&self, message: &Bound<'_, PyAny>) -> Read<Option<Mark>> {
        if self.counter.get().is_slow() { read::mark(message, &self.seed).map(Some) } else { Ok(None) }
    }
}

/// The place that an index means.
fn place(ledger: &Ledger, index: i64) -> PyResult<usize> {
    let length = ledger.entries().len();
    let from_start = if index < 0 { index.saturating_add_unsigned(length as u64) } else { index };
    usize::try_from(from_start).ok().filter(|&place| place < length).ok_or_else(|| {
        PyIndexError::new_err(format!("index: expected one of {length} messages, got {index}"))
    })
}

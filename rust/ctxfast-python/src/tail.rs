//! The fresh tail of a list of messages.

use std::cell::LazyCell;

use ctxfast::conversation::Conversation;
use ctxfast::part::Role;
use ctxfast::tail::{Limits, Tail, select};
use ctxfast::transcript::Transcript;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::counter::TokenCounter;
use crate::errors::{At, Error, Read, budget_error};
use crate::numbers::{Least, MinTurns, TailBudget, budget as read_budget};
use crate::read::{self, Items, user};
use crate::structure::Noter;
use crate::write::without_results;

/// The fresh tail's budget in tokens, for so many usable tokens: 25 %, at least 2,000 and at most 8,000, and never above
/// half of the usable context (small windows).
///
/// Usable is the context window less the reserve for output and a safety margin. Source of the bounds: PicoClaw and
/// OpenCode; `ctxfast.compat.CalculateFreshTailBudget` is PicoClaw's plain clamp.
#[pyfunction]
#[pyo3(signature = (usable_tokens: "float"))]
pub(crate) fn fresh_tail_budget(usable_tokens: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(ctxfast::budget::fresh_tail_budget(read_budget(usable_tokens, "usable_tokens", Least::One)?))
}

/// The newest messages that fit a budget, and the user messages that they need.
///
/// One budget, in this order: (1) the newest atom, always; (2) the task, which is the newest user message that says
/// something, and the head, the user message that opens the turn into which the cut falls, pinned in front if they lie
/// before the tail; (3) older atoms, whole, while everything together fits. If the head does not fit, the tail starts at
/// the next turn; inside the newest turn it is left out. Up to the start of the `min_turns`-th newest turn the limit is `max_tokens` (default: `budget`) instead of `budget`.
///
/// System messages at the start of the list stay in front and are not part of the budget. Messages are the same objects
/// in a new list; only of a pinned user message that also carries tool results the rest is a new dict.
///
/// The walk starts at the end and reads few more messages than it keeps, but for a glance back for the user message that
/// opened a long turn (a user message directly before tool results came in the middle of a step and opened none); only a
/// result without a call in the newest messages makes it read on until it knows. Messages that are not read are not
/// checked. `tokens` leaves out the system messages in front. Budgets are in tokens of `counter` (default:
/// `TokenCounter.default()`). Raises `BudgetError` for a budget below 1 or a `max_tokens` below the budget.
#[pyfunction]
#[pyo3(
    signature = (
        messages: "Sequence[object]",
        budget: "float" = TailBudget::DEFAULT,
        *,
        min_turns: "int" = MinTurns::DEFAULT,
        max_tokens: "float | None" = None,
        counter = None
    ),
    text_signature = "(messages, budget=8000, *, min_turns=2, max_tokens=None, counter=None)"
)]
pub(crate) fn select_fresh_tail<'py>(
    messages: &Bound<'py, PyAny>,
    budget: TailBudget,
    min_turns: MinTurns,
    max_tokens: Option<&Bound<'py, PyAny>>,
    counter: Option<&Bound<'py, TokenCounter>>,
) -> PyResult<FreshTail> {
    let py = messages.py();
    let (TailBudget(budget), MinTurns(min_turns)) = (budget, min_turns);
    let max_tokens = max_tokens.map_or(Ok(budget), |most| read_budget(most, "max_tokens", Least::One))?;
    if max_tokens < budget {
        let message = format!("max_tokens: expected at least the budget of {budget}, got {max_tokens}");
        return Err(budget_error(py, message));
    }
    let default = LazyCell::new(TokenCounter::default);
    let counter = counter.map_or_else(|| &*default, |counter| counter.get());

    let items = Items::of_messages(messages)?;
    let mut conversation = Messages { items: &items, count: items.len(), counter };
    let (budget, max_tokens) = (counter.sum_within(budget), counter.sum_within(max_tokens));
    let mut tail = select(&mut conversation, Limits { budget, max_tokens, min_turns })?;
    tail.tokens = counter.total(tail.tokens);
    let kept = kept(&items, conversation.count, &tail, py)?;
    Ok(FreshTail { tail, messages: kept.unbind() })
}

/// What `select_fresh_tail` has chosen. Frozen.
#[pyclass(frozen, generic, module = "ctxfast._core")]
pub(crate) struct FreshTail {
    tail: Tail,
    messages: Py<PyList>,
}

#[pymethods]
impl FreshTail {
    /// Index of the first message of the tail: everything from here on is kept word for word.
    #[getter]
    fn start(&self) -> usize {
        self.tail.start
    }

    /// Indices of user messages before the tail that are kept with it, ascending: the head and the task.
    #[getter]
    fn pinned<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.tail.pinned)
    }

    /// Tokens of the tail and the pinned messages.
    #[getter]
    fn tokens(&self) -> u64 {
        self.tail.tokens
    }

    /// Number of turns that the tail touches.
    #[getter]
    fn turns(&self) -> usize {
        self.tail.turns
    }

    /// Whether the tail starts inside a turn.
    #[getter]
    fn split_turn(&self) -> bool {
        self.tail.split_turn
    }

    /// Whether even the newest atom and the task have more tokens than they may.
    #[getter]
    fn over_budget(&self) -> bool {
        self.tail.over_budget
    }

    /// A list: the system messages at the start, the pinned messages, the tail.
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        self.messages.bind(py).clone()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let (py, other) = (other.py(), other.get());
        Ok(self.tail == other.tail && self.messages.bind(py).eq(other.messages.bind(py))?)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let Tail { start, pinned, tokens, turns, split_turn, over_budget, .. } = &self.tail;
        let flag = |value: &bool| if *value { "True" } else { "False" };
        let pinned: Vec<String> = pinned.iter().map(usize::to_string).collect();
        let comma = if pinned.len() == 1 { "," } else { "" };
        format!(
            "FreshTail(start={start}, pinned=({}{comma}), tokens={tokens}, turns={turns}, split_turn={}, over_budget={}, \
             messages=<{} messages>)",
            pinned.join(", "),
            flag(split_turn),
            flag(over_budget),
            self.messages.bind(py).len(),
        )
    }

    fn __traverse__(&self, visit: pyo3::gc::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.messages)
    }
}

/// Leading system messages, pinned ones, the tail.
fn kept<'py>(items: &Items<'_, 'py>, count: usize, tail: &Tail, py: Python<'py>) -> Read<Bound<'py, PyList>> {
    let front = PyList::empty(py);
    for index in 0..tail.leading.min(tail.start) {
        front.append(items.get(index)?)?;
    }
    for &index in &tail.pinned {
        let message = items.get(index)?;
        let (_, has_results) = user(&message).at_index(index).at_key("messages")?;
        front.append(if has_results { without_results(&message)?.into_any() } else { message })?;
    }
    let rest = match items {
        Items::List(list) => list.get_slice(tail.start, count),
        Items::Tuple(tuple) => tuple.get_slice(tail.start, count).to_list(),
    };
    if front.is_empty() {
        return Ok(rest);
    }
    front.set_slice(front.len(), front.len(), &rest)?;
    Ok(front)
}

/// The messages as the core asks for them.
struct Messages<'a, 'py> {
    items: &'a Items<'a, 'py>,
    count: usize,
    counter: &'a TokenCounter,
}

impl<'py> Messages<'_, 'py> {
    #[inline]
    fn with<T>(&self, index: usize, read: impl FnOnce(&Bound<'py, PyAny>) -> Read<T>) -> Read<T> {
        read(&self.items.get(index)?).at_index(index).at_key("messages")
    }
}

impl Conversation for Messages<'_, '_> {
    type Error = Error;

    fn count(&self) -> usize {
        self.count
    }

    #[inline]
    fn role(&mut self, index: usize) -> Read<Role> {
        self.with(index, read::role)
    }

    fn read(&mut self, index: usize, transcript: &mut Transcript) -> Read<u64> {
        self.with(index, |message| {
            let mut noter = Noter::open(transcript);
            let (tokens, shape) = self.counter.message_tokens_and(message, &mut noter)?;
            noter.close(shape);
            Ok(tokens)
        })
    }

    fn user(&mut self, index: usize) -> Read<(bool, bool)> {
        self.with(index, user)
    }

    fn pinned_tokens(&mut self, index: usize) -> Read<u64> {
        self.with(index, |message| {
            let (_, has_results) = user(message)?;
            if has_results {
                return self.counter.message_tokens(&without_results(message)?.into_any());
            }
            self.counter.message_tokens(message)
        })
    }
}

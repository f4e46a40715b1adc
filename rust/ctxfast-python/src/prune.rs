//! Old tool outputs as stubs: reads the list, lets the core decide, writes a new one.

use std::cell::LazyCell;

use ctxfast::plan::{Block, Plan};
use ctxfast::prune::{Timeline, plan};
use ctxfast::steps;
use ctxfast::transcript::Kind;
use pyo3::prelude::*;

use crate::counter::TokenCounter;
use crate::outputs::{List, Reader, Store};
use crate::policy::{Given, Policy, PricesOrNone};
use crate::pruned::{Pruned, Report, earlier};
use crate::read::Items;

/// Old tool outputs as stubs, everything else as it is: a new list, and a report of what was done.
///
/// A stub is one line of facts and up to three lines of what was there, at most 400 characters; it is always shorter
/// than the output, and smaller by `counter` (default: `TokenCounter.default()`). Calls, ids and all other messages are
/// never touched, so that the new list is as valid as the old one. A changed message that was no dict comes back as one.
/// What is a stub stays one: pruning twice changes nothing.
///
/// **Protected** are the outputs in the newest `protected_steps` steps (default 3; what the model has not seen yet in any
/// case), in the newest `protected_tokens` tokens of tool output (10,000; the output that crosses the border is not
/// protected, nor is any older one), and in the newest `protected_turns` turns (0; in most agent sessions two turns are
/// everything: `report.blocked_by` says when this guard was in the way). `policy`, a `ctxfast.policy.PrunePolicy`, has
/// more to say: kept tools and paths, errors, presets of other agents. What is given beside it goes before it.
///
/// **When.** `prune_threshold="auto"` replaces all that is not protected as soon as that pays: if it saves at least
/// 10,000 tokens (a tenth of `budget`, the usable tokens of the context window, if that is less), and if
/// `read * saved * horizon >= (write - read) * rest`, where `rest` are the tokens behind the first changed message that
/// remain and were in the last request, for these must be written into the provider's cache again. `prices` is a
/// `CachePrices` (default: `CachePrices()`, which are Anthropic's); `None`: there is no cache, every saving pays. They
/// matter to `"auto"` only. A number of tokens instead of `"auto"` replaces batches
/// that free so many each, counted from the start of the list: the same ones on every call, whatever is appended.
///
/// **Stable.** `"auto"` does not know what was decided before unless it is told: go on with the list that it gave, or pass
/// the full list again and the report of the last call as `previous`, whose stubs are put in first. A number needs
/// neither; with either, its batches are counted from what is no stub yet.
///
/// **Nothing is lost.** With a `store`, anything with a method `save(text) -> id`, each output is saved before it is
/// replaced (content that is no string as its JSON), and the stub names the id (one with a fixed text does not; it is in
/// the report). What `save` raises is raised: then nothing was replaced. A store that gives `None` instead of an id could
/// not save that output: the stub names none, and the edit's `stored` is `None`.
///
/// Reads that a later read covers, or whose file was edited since, join a batch from inside `protected_tokens`; they never
/// start one. With a `budget` at most a quarter of it is protected. All sizes are tokens of `counter`. Raises
/// `MessageTypeError` or `MessageValueError` for a message that cannot be read, `BudgetError`, `TypeError` or `ValueError`
/// for an argument that means nothing.
#[pyfunction]
#[pyo3(
    signature = (
        messages: "Sequence[object]",
        protected_turns: "int | None" = None,
        prune_threshold: "int | Literal['auto'] | None" = None,
        *,
        protected_tokens: "int | None" = None,
        protected_steps: "int | None" = None,
        budget: "float | None" = None,
        prices: "CachePrices | None" = PricesOrNone::Default,
        policy: "PrunePolicy | None" = None,
        previous: "Report | Pruned | None" = None,
        counter: "TokenCounter | None" = None,
        store: "SupportsSave | None" = None
    ),
    text_signature = "(messages, protected_turns=None, prune_threshold=None, *, protected_tokens=None, \
                      protected_steps=None, budget=None, prices=..., policy=None, previous=None, counter=None, \
                      store=None)"
)]
#[expect(clippy::too_many_arguments, reason = "the public signature")]
pub(crate) fn prune_tool_outputs<'py>(
    messages: &Bound<'py, PyAny>,
    protected_turns: Option<&Bound<'py, PyAny>>,
    prune_threshold: Option<&Bound<'py, PyAny>>,
    protected_tokens: Option<&Bound<'py, PyAny>>,
    protected_steps: Option<&Bound<'py, PyAny>>,
    budget: Option<&Bound<'py, PyAny>>,
    prices: PricesOrNone,
    policy: Option<&Bound<'py, PyAny>>,
    previous: Option<&Bound<'py, PyAny>>,
    counter: Option<&Bound<'py, TokenCounter>>,
    store: Option<&Bound<'py, PyAny>>,
) -> PyResult<Pruned> {
    let py = messages.py();
    let given = Given { protected_turns, prune_threshold, protected_tokens, protected_steps, budget, prices };
    let policy = Policy::new(policy, &given)?;
    let previous = previous.map(earlier).transpose()?;
    let store = store.map(Store::new).transpose()?;
    let default = LazyCell::new(TokenCounter::default);
    let counter = counter.map_or_else(|| &*default, |counter| counter.get());

    // a copy: nobody else changes it while counters and stores run
    let messages = Items::of_messages(messages)?.to_list();
    let items = Items::List(&messages);
    let (list, mut outputs, before) = List::read(&items, counter)?;
    let mut now = before.clone();
    let turns = if policy.rules.protected_turns > 0 {
        steps::starts(&list.transcript, Kind::User)
    } else {
        Vec::new()
    };
    let timeline = Timeline::new(&list.transcript, turns);
    let mut reader = Reader::new(&list, &items, counter, &policy, outputs.len());
    let mut edits = match &previous {
        Some(previous) => reader.apply_again(previous.get(), timeline.sent(), &mut outputs, &mut now)?,
        None => Vec::new(),
    };
    let Plan { replacements, mut blocked_by, rereads } =
        plan(&policy.rules, &timeline, &outputs, &now, &mut reader)?;
    let was_planned = !replacements.is_empty();
    for replacement in replacements {
        let output = replacement.output;
        edits.extend(reader.edit(replacement, &outputs, store.as_ref())?.map(|edit| (output, edit)));
    }
    edits.sort_unstable_by_key(|&(output, _)| output);
    if blocked_by.is_none() && was_planned && !edits.iter().any(|(_, edit)| edit.new) {
        blocked_by = Some(Block::Threshold); // ids have made the stubs too long
    }

    let after = reader.write(&messages, &mut edits, &before)?;
    let first = edits.iter().filter(|(_, edit)| edit.new).map(|(_, edit)| edit.index).min();
    let rewritten = first.and_then(|first| after.get(first..timeline.sent()));
    let report = Report {
        before: counter.total(before.iter().sum()),
        after: counter.total(after.iter().sum()),
        earliest_changed_index: first,
        tokens_rewritten: rewritten.map_or(0, |tokens| tokens.iter().sum()),
        blocked_by,
        reread_of_pruned: rereads
            .into_iter()
            .filter_map(|output| outputs.get(output))
            .map(|output| output.message)
            .collect(),
        items: edits.into_iter().map(|(_, edit)| edit).collect(),
    };
    Ok(Pruned { messages: messages.unbind(), report: Py::new(py, report)? })
}

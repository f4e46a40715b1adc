//! A list that fits: reads it, lets the core decide, writes a new one, and counts what was written.

use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::Range;

use ctxfast::fit::{Clamp, Fit, Limits, List as Table, User, keep_last as newest, plan};
use ctxfast::prune::{Output, Rules, Timeline};
use ctxfast::steps::{self, Atom};
use ctxfast::transcript::Kind;
use ctxfast::validate::Form;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::counter::TokenCounter;
use crate::errors::{Read, cannot_fit_error};
use crate::memory::view;
use crate::numbers::{Least, budget};
use crate::outputs::{List, Reader, Store};
use crate::policy::{Given, Policy, PricesOrNone};
use crate::pruned::Edit;
use crate::read::json;
use crate::read::{self, Items, fields};
use crate::repair::mended;
use crate::repaired::RepairReport;
use crate::write::{as_one, without_results};

/// How often a plan is made anew because what was written came out larger than it was expected to be.
const ATTEMPTS: usize = 8;
/// A measured number of tokens is rounded to so many parts of the budget, so that a plan does not change with each
/// measurement.
const MEASURED_PARTS: u64 = 20;
/// A provider's count of more than so many times the counter's is no error of the counter: it sees something else.
const MOST_OFF: u64 = 2;
/// The first user message is kept if it has at most this part of the budget.
const FIRST: u64 = 10;

/// What `fit_messages` asks for; `ctxfast.fitting` checks it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted<'py> {
    /// Tokens; `None`: not known, and then a list is only mended.
    max_tokens: Option<Bound<'py, PyAny>>,
    /// The counter's safety is not added: the budget has a margin of its own.
    exact: bool,
    system: Option<Bound<'py, PyAny>>,
    tools: Option<Bound<'py, PyAny>>,
    /// Tokens of the request as the provider counts it.
    used: Option<Bound<'py, PyAny>>,
    low_water: f64,
    pin_first: bool,
    prune: Option<Bound<'py, PyAny>>,
    store: Option<Bound<'py, PyAny>>,
}

/// A part of the list that is gone: messages from `start` to `stop`, what they are, their tokens, what a user said in
/// them, and the id under which they were saved.
type Dropped = (usize, usize, &'static str, u64, Py<PyString>, Option<String>);

/// Messages, repairs, tokens before and after, tokens of what stands beside the messages, edits, parts that are gone,
/// indices of pinned messages, and the index of the first message that is not the same.
type Fitted =
    (Py<PyList>, Py<RepairReport>, u64, u64, u64, Vec<Edit>, Vec<Dropped>, Vec<usize>, Option<usize>);

/// What `ctxfast.fitting.fit_messages` does.
#[pyfunction]
#[pyo3(name = "_fit")]
#[pyo3(signature = (
    messages: "Sequence[object]",
    wanted: "dict[str, Any]",
    form: "str",
    provider: "str | None",
    counter: "TokenCounter | None"
))]
pub(crate) fn fit(
    messages: &Bound<'_, PyAny>,
    wanted: Wanted<'_>,
    form: &str,
    provider: Option<&str>,
    counter: Option<&Bound<'_, TokenCounter>>,
) -> PyResult<Fitted> {
    let py = messages.py();
    let default = LazyCell::new(TokenCounter::default);
    let counter = counter.map_or_else(|| &*default, |counter| counter.get());
    let max_tokens = wanted.max_tokens.map(|most| budget(&most, "max_tokens", Least::One)).transpose()?;
    let used = wanted.used.map(|used| budget(&used, "used", Least::Zero)).transpose()?;
    let store = wanted.store.as_ref().map(Store::new).transpose()?;
    let (repaired, form) = mended(messages, form, provider, &HashSet::default())?;
    let messages = repaired.messages.into_bound(py);
    let beside = counter.system_sum(wanted.system.as_ref())? + counter.tools_sum(wanted.tools.as_ref())?;
    let Some(max_tokens) = max_tokens else {
        let sum = beside + counter.messages_sum(&messages, u64::MAX)?;
        let total = counter.total(sum);
        return Ok(same(messages, repaired.report, total, beside));
    };
    let measure = if wanted.exact { Measure::Exact } else { Measure::Safe };
    let most = measure.most(counter, max_tokens);
    let in_messages = counter.messages_sum(&messages, most)?;
    if used.is_none() && beside + in_messages <= most {
        return Ok(same(messages, repaired.report, measure.shown(counter, beside + in_messages), beside));
    }

    // whether it pays is not asked
    let given = Given { prices: PricesOrNone::Given(None), ..Given::default() };
    let mut policy = Policy::new(wanted.prune.as_ref(), &given)?;
    policy.rules.trigger = None;
    let items = Items::List(&messages);
    let (list, outputs, tokens) = List::read(&items, counter)?;
    let sum: u64 = tokens.iter().sum();
    let ways = used.map_or_else(|| vec![(measure, most)], |used| measured(used, beside + sum, max_tokens));
    let before = ways.first().map_or(0, |(measure, _)| measure.shown(counter, beside + sum));
    if before <= max_tokens {
        return Ok(same(messages, repaired.report, before, beside));
    }
    let fitting = Fitting::new(&messages, &list, form, tokens, outputs, counter)?;
    let fixed = beside + fitting.leading_tokens();
    let mut reader = Reader::new(&list, &items, counter, &policy, fitting.outputs.len());
    let mut refused = None;
    for (measure, most) in ways {
        let room = most.saturating_sub(fixed);
        let limits = Limits {
            room,
            low: share(room, wanted.low_water),
            first: wanted.pin_first.then_some(max_tokens / FIRST),
            steps: policy.rules.protected_steps.max(1),
            short: 0,
        };
        let protected_tokens = policy.rules.protected_tokens.min(room / 4);
        let rules = Rules { protected_tokens, ..policy.rules.clone() };
        let written = fitting.within(limits, &rules, &mut reader, store.as_ref())?;
        let shown = |sum| measure.shown(counter, sum);
        let after = shown(fixed + written.tokens);
        if after <= max_tokens {
            let tokens = (shown(beside + sum), after, beside);
            return Ok(fitting.result(written, repaired.report, tokens, store.as_ref())?);
        }
        refused = refused.or(Some(((shown(fixed + written.pinned_tokens), after), written)));
    }
    let ((pinned, needed), (mut place, mut largest)) = match refused {
        Some((numbers, written)) => (numbers, fitting.largest(&written)?),
        None => ((0, 0), (String::new(), 0)),
    };
    if beside > largest {
        (place, largest) = ("what stands beside the messages (system, tools)".to_owned(), beside);
    }
    Err(cannot_fit_error(py, max_tokens, pinned, needed, &place, largest))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of tokens, which are far below 2^53"
)]
fn share(tokens: u64, share: f64) -> u64 {
    (tokens as f64 * share) as u64
}

/// What `ctxfast.fitting.keep_last` does.
#[pyfunction]
#[pyo3(name = "_keep_last")]
#[pyo3(signature = (
    messages: "Sequence[object]",
    n_steps: "int",
    form: "str",
    provider: "str | None",
    counter: "TokenCounter | None",
    store: "SupportsSave | None"
))]
pub(crate) fn keep_last(
    messages: &Bound<'_, PyAny>,
    n_steps: usize,
    form: &str,
    provider: Option<&str>,
    counter: Option<&Bound<'_, TokenCounter>>,
    store: Option<&Bound<'_, PyAny>>,
) -> PyResult<Fitted> {
    let default = LazyCell::new(TokenCounter::default);
    let counter = counter.map_or_else(|| &*default, |counter| counter.get());
    let store = store.map(Store::new).transpose()?;
    let (repaired, form) = mended(messages, form, provider, &HashSet::default())?;
    let messages = repaired.messages.into_bound(messages.py());
    let items = Items::List(&messages);
    let (list, outputs, tokens) = List::read(&items, counter)?;
    let before = counter.total(tokens.iter().sum());
    let fitting = Fitting::new(&messages, &list, form, tokens, outputs, counter)?;
    let policy = Policy::default();
    let mut reader = Reader::new(&list, &items, counter, &policy, fitting.outputs.len());
    let written = fitting.write(newest(fitting.table(), n_steps), &mut reader, None)?;
    let after = counter.total(fitting.leading_tokens() + written.tokens);
    Ok(fitting.result(written, repaired.report, (before, after, 0), store.as_ref())?)
}

/// Nothing had to go.
fn same(messages: Bound<'_, PyList>, repairs: Py<RepairReport>, tokens: u64, beside: u64) -> Fitted {
    (messages.unbind(), repairs, tokens, tokens, beside, Vec::new(), Vec::new(), Vec::new(), None)
}

/// What a sum of counts is as a number of the budget.
#[derive(Clone, Copy)]
enum Measure {
    /// As the counter gives totals: raised for safety.
    Safe,
    /// Without that.
    Exact,
    /// What the provider counted and the counter does not see is added.
    Added(u64),
    /// Each token of the counter is so many of the provider's.
    Scaled { used: u64, sum: u64 },
}

impl Measure {
    /// The largest sum that is not above a limit.
    fn most(self, counter: &TokenCounter, limit: u64) -> u64 {
        match self {
            Measure::Exact => counter.exact_sum_within(limit),
            _ => counter.sum_within(limit),
        }
    }

    fn shown(self, counter: &TokenCounter, sum: u64) -> u64 {
        match self {
            Measure::Safe => counter.total(sum),
            Measure::Exact => counter.exact_total(sum),
            Measure::Added(tokens) => sum + tokens,
            Measure::Scaled { used, sum: all } => scaled(sum, used, all),
        }
    }
}

/// How a measured request can be compared with a budget, and the largest sum that is within it.
///
/// What the provider counts beside what the counter sees may all stay, which is careful. If nothing fits then, each token
/// of the counter is so many of the provider's.
fn measured(used: u64, sum: u64, max_tokens: u64) -> Vec<(Measure, u64)> {
    let part = (max_tokens / MEASURED_PARTS).max(1);
    let most = |most: u64| most - most % part;
    let all = u128::from(max_tokens) * u128::from(sum) / u128::from(used.max(1));
    let scaled = (Measure::Scaled { used, sum }, most(u64::try_from(all).unwrap_or(u64::MAX)));
    match used.checked_sub(sum) {
        Some(more) => {
            let added = (Measure::Added(more), most(max_tokens.saturating_sub(more)));
            if used > MOST_OFF.saturating_mul(sum) { vec![added] } else { vec![added, scaled] }
        }
        None => vec![scaled],
    }
}

/// `tokens * to / from`, rounded up.
fn scaled(tokens: u64, to: u64, from: u64) -> u64 {
    let scaled = (u128::from(tokens) * u128::from(to)).div_ceil(u128::from(from.max(1)));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// A list that is too large.
struct Fitting<'a, 'py> {
    counter: &'a TokenCounter,
    messages: &'a Bound<'py, PyList>,
    list: &'a List<'py>,
    /// System messages at the start.
    leading: usize,
    atoms: Vec<Atom>,
    tokens: Vec<u64>,
    users: Vec<User>,
    outputs: Vec<Output>,
    timeline: Timeline,
    form: Form,
}

/// What a new list begins with, behind the system messages.
struct Front<'py> {
    messages: Bound<'py, PyList>,
    tokens: u64,
    /// Index behind the last message that is in it.
    end: usize,
    /// The first message that was written as one with another.
    first_joined: Option<usize>,
}

/// A new list.
struct Written<'py> {
    messages: Bound<'py, PyList>,
    edits: Vec<Edit>,
    /// Where the messages begin that stay with all that follow.
    start: usize,
    pinned: Vec<usize>,
    /// The first message that was written as one with another.
    first_joined: Option<usize>,
    /// Tokens of all but the system messages at the start.
    tokens: u64,
    pinned_tokens: u64,
    /// Tokens of each message of the old list, with what has been done to it.
    now: Vec<u64>,
}

impl<'a, 'py> Fitting<'a, 'py> {
    fn new(
        messages: &'a Bound<'py, PyList>,
        list: &'a List<'py>,
        form: Form,
        tokens: Vec<u64>,
        outputs: Vec<Output>,
        counter: &'a TokenCounter,
    ) -> Read<Self> {
        let entries = list.transcript.entries();
        let leading = entries.iter().take_while(|entry| entry.kind == Kind::System).count();
        let atoms = steps::atoms(&list.transcript);
        let atoms: Vec<Atom> = atoms.into_iter().filter(|atom| atom.messages.start >= leading).collect();
        let turns = atoms.iter().filter(|atom| atom.kind == Kind::User).map(|atom| atom.messages.start);
        let timeline = Timeline::new(&list.transcript, turns.collect());
        let users = Vec::new();
        let mut fitting =
            Self { counter, messages, list, leading, atoms, tokens, users, outputs, timeline, form };
        for (message, (entry, &tokens)) in entries.iter().zip(&fitting.tokens).enumerate() {
            if message >= leading && entry.own_text {
                let tokens = if list.transcript.results_of(entry).is_empty() {
                    tokens
                } else {
                    counter.message_tokens(&fitting.own(messages, message)?)?
                };
                fitting.users.push(User { message, tokens });
            }
        }
        Ok(fitting)
    }

    fn leading_tokens(&self) -> u64 {
        self.tokens.get(..self.leading).unwrap_or_default().iter().sum()
    }

    fn table(&self) -> Table<'_> {
        Table {
            atoms: &self.atoms,
            tokens: &self.tokens,
            users: &self.users,
            outputs: &self.outputs,
            timeline: &self.timeline,
        }
    }

    /// A new list and what is said of it; tokens before, after, and beside the messages.
    fn result(
        &self,
        written: Written<'py>,
        repairs: Py<RepairReport>,
        (before, after, beside): (u64, u64, u64),
        store: Option<&Store<'py>>,
    ) -> Read<Fitted> {
        let dropped = self.dropped(&written, store)?;
        let first_gone = dropped.first().map(|part| part.0);
        let first_edited = written.edits.iter().map(|edit| edit.index).min();
        let first = [first_gone, first_edited, written.first_joined].into_iter().flatten().min();
        let Written { messages, edits, pinned, .. } = written;
        Ok((messages.unbind(), repairs, before, after, beside, edits, dropped, pinned, first))
    }

    /// The list within limits, or the least that was found, which is larger.
    fn within(
        &self,
        mut limits: Limits,
        rules: &Rules,
        reader: &mut Reader<'_, 'py>,
        store: Option<&Store<'py>>,
    ) -> Read<Written<'py>> {
        let table = self.table();
        let mut least: Option<Written<'py>> = None;
        for _ in 0..ATTEMPTS {
            let fit = plan(limits, table, rules, reader)?;
            let can_fit = fit.tokens <= limits.room.saturating_sub(limits.short);
            let written = self.write(fit, reader, store)?;
            let fits = written.tokens <= limits.room;
            limits.short += written.tokens.saturating_sub(limits.room);
            if fits || least.as_ref().is_none_or(|least| written.tokens < least.tokens) {
                least = Some(written);
            }
            if fits || !can_fit {
                break;
            }
        }
        match least {
            Some(least) => Ok(least),
            None => self.write(Fit::default(), reader, store),
        }
    }

    fn write(
        &self,
        fit: Fit,
        reader: &mut Reader<'_, 'py>,
        store: Option<&Store<'py>>,
    ) -> Read<Written<'py>> {
        let count = self.messages.len();
        let Fit { start, pinned, replacements, clamps, .. } = fit;
        let changed = self.messages.get_slice(0, count);
        let mut edits = Vec::new();
        for replacement in replacements {
            let output = replacement.output;
            edits.extend(reader.edit(replacement, &self.outputs, store)?.map(|edit| (output, edit)));
        }
        for Clamp { output, tokens } in clamps {
            edits.extend(reader.clamp(output, tokens, &self.outputs, store)?.map(|edit| (output, edit)));
        }
        edits.sort_unstable_by_key(|&(output, _)| output);
        let now = reader.write(&changed, &mut edits, &self.tokens)?;
        let front = self.front(&changed, start, &pinned)?;
        let rest = front.end.max(start);
        let suffix = changed.get_slice(rest, count);
        let suffix_tokens: u64 = now.get(rest..).unwrap_or_default().iter().sum();
        let messages = self.messages.get_slice(0, self.leading.min(start));
        messages.set_slice(messages.len(), messages.len(), &front.messages)?;
        messages.set_slice(messages.len(), messages.len(), &suffix)?;
        let task = self.users.last().filter(|task| task.message >= rest);
        Ok(Written {
            messages,
            edits: edits.into_iter().map(|(_, edit)| edit).collect(),
            start,
            pinned,
            first_joined: front.first_joined,
            tokens: front.tokens + suffix_tokens,
            pinned_tokens: front.tokens + task.map_or(0, |task| task.tokens),
            now,
        })
    }

    /// The pinned messages before `start`. Users' messages that have become neighbours are one message in Anthropic's
    /// form, also with the one at `start`.
    fn front(&self, messages: &Bound<'py, PyList>, start: usize, pinned: &[usize]) -> Read<Front<'py>> {
        let py = messages.py();
        let next_kind = self.list.transcript.entries().get(start).map(|entry| entry.kind);
        let last = pinned.last().copied();
        let is_joined = self.form == Form::Anthropic
            && next_kind == Some(Kind::User)
            && last.is_some_and(|last| last + 1 < start);
        let mut front: Vec<(Bound<'py, PyAny>, u64)> = Vec::new();
        let (mut before, mut first_joined) = (None, None);
        for index in pinned.iter().copied().chain(is_joined.then_some(start)) {
            let mut message = self.own(messages, index)?;
            let place = self.users.binary_search_by_key(&index, |user| user.message).ok();
            let mut tokens = place.and_then(|place| self.users.get(place)).map_or(0, |user| user.tokens);
            let was_neighbour = before.is_some_and(|before: usize| before + 1 == index);
            if self.form == Form::Anthropic
                && !was_neighbour
                && let Some((previous, _)) = front.pop()
            {
                message = as_one(&previous, &message)?;
                tokens = self.counter.message_tokens(&message)?;
                first_joined = first_joined.or(before);
            }
            front.push((message, tokens));
            before = Some(index);
        }
        let tokens = front.iter().map(|(_, tokens)| tokens).sum();
        let messages = PyList::new(py, front.into_iter().map(|(message, _)| message))?;
        Ok(Front { messages, tokens, end: before.map_or(0, |last| last + 1), first_joined })
    }

    /// A user's message: of one that also carries tool results the rest.
    fn own(&self, messages: &Bound<'py, PyList>, index: usize) -> Read<Bound<'py, PyAny>> {
        let message = messages.get_item(index)?;
        let entry = self.list.transcript.entries().get(index);
        if entry.is_some_and(|entry| !self.list.transcript.results_of(entry).is_empty()) {
            return Ok(without_results(&message)?.into_any());
        }
        Ok(message)
    }

    /// What is not in the new list.
    fn dropped(&self, written: &Written<'py>, store: Option<&Store<'py>>) -> Read<Vec<Dropped>> {
        let py = self.messages.py();
        let line_feed = PyString::new(py, "\n");
        let (mut dropped, mut users) = (Vec::new(), self.users.as_slice());
        for Atom { messages, kind } in &self.atoms {
            let Range { start, end } = messages.clone();
            if end > written.start {
                break;
            }
            let (here, later) = users.split_at(users.partition_point(|user| user.message < end));
            users = later;
            let is_pinned = |index: &usize| written.pinned.binary_search(index).is_ok();
            if *kind == Kind::User && is_pinned(&start) {
                continue;
            }
            let mut tokens: u64 = self.tokens.get(messages.clone()).unwrap_or_default().iter().sum();
            let said = PyList::empty(py);
            for user in here {
                if is_pinned(&user.message) {
                    tokens = tokens.saturating_sub(user.tokens);
                    continue;
                }
                let text = text_of(&self.own(self.messages, user.message)?)?;
                if !text.is_empty()? {
                    said.append(text)?;
                }
            }
            let stored = match store {
                Some(store) => store.save_if_text(json::text_of_messages(self.messages, start..end))?,
                None => None,
            };
            let kind = match kind {
                Kind::System => "system",
                Kind::User => "user",
                Kind::Step => "step",
                Kind::Stray | Kind::Other => "other",
            };
            let said = line_feed.call_method1(intern!(py, "join"), (said,))?;
            let said = said.cast_into::<PyString>().map_err(PyErr::from)?.unbind();
            dropped.push((start, end, kind, tokens, said, stored));
        }
        Ok(dropped)
    }

    /// The largest message of a new list: where it is, and its tokens.
    fn largest(&self, written: &Written<'py>) -> Read<(String, u64)> {
        let is_kept = |index: &usize| {
            *index < self.leading || *index >= written.start || written.pinned.binary_search(index).is_ok()
        };
        let kept = written.now.iter().copied().enumerate().filter(|(index, _)| is_kept(index));
        let Some((index, tokens)) = kept.max_by_key(|&(index, tokens)| (tokens, Reverse(index))) else {
            return Ok(("no message".to_owned(), 0));
        };
        let role = fields::get(&self.messages.get_item(index)?, intern!(self.messages.py(), "role"))?;
        let role = role.as_ref().and_then(|role| role.cast::<PyString>().ok());
        let role = role.map_or_else(String::new, |role| view(role).to_well_formed());
        Ok((format!("messages[{index}] ({role})"), tokens))
    }
}

/// What a message says.
fn text_of<'py>(message: &Bound<'py, PyAny>) -> Read<Bound<'py, PyString>> {
    let py = message.py();
    match fields::get(message, intern!(py, "content"))? {
        Some(content) => Ok(read::text_of(&content)?.0),
        None => Ok(PyString::new(py, "")),
    }
}

//! Mending a conversation that a provider would refuse: what the new list consists of, and why.
//!
//! All messages are of one form. Each is kept, cleaned of what must go, or dropped; results stand directly behind
//! their calls; calls that were interrupted get a result that says so. Pure, linear, on the compact table.

use std::collections::HashSet;

use crate::pairs::{End, Pairs};
use crate::part::Role;
use crate::transcript::{BLANK, Id, Kind, Transcript};
use crate::validate::{Code, Facts, Form};

/// What is known of a list.
#[derive(Clone, Copy, Debug)]
pub struct List<'t> {
    /// Its table.
    pub transcript: &'t Transcript,
    /// What [`crate::validate`] knows of each message.
    pub facts: &'t [Facts],
    /// Who speaks.
    pub roles: &'t [Role],
    /// Whether something is left of a message without calls, results, empty texts and thinking. Asked only of messages
    /// that have some of these.
    pub own: &'t [bool],
    /// For each call whether it has no name.
    pub nameless: &'t [bool],
    /// Where each message comes from: its index in reports and in new ids.
    pub sources: &'t [usize],
    /// The form of all messages.
    pub form: Form,
    /// Anthropic's rules of who speaks first and of empty messages hold.
    pub strict: bool,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is gone.
    Dropped,
    /// It stands elsewhere.
    Moved,
    /// It was made up.
    Synthesised,
    /// It has another id.
    Renamed,
    /// It was written in another form.
    Converted,
    /// It was put in.
    Inserted,
    /// Nothing: it cannot be mended.
    Left,
}

impl Action {
    /// Its stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Moved => "moved",
            Self::Synthesised => "synthesised",
            Self::Renamed => "renamed",
            Self::Converted => "converted",
            Self::Inserted => "inserted",
            Self::Left => "left",
        }
    }
}

/// One thing that was mended, or that could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What was wrong: a name of [`Code`], or `strict_predecessor`.
    pub code: &'static str,
    /// In which message.
    pub index: usize,
    /// The id of the call or result that it is about.
    pub id: Option<Id>,
    /// What was done.
    pub action: Action,
    /// The id that there is now, if it is another one.
    pub new_id: Option<String>,
}

impl Fix {
    fn new(code: Code, index: usize, action: Action) -> Self {
        Self { code: code.name(), index, id: None, action, new_id: None }
    }
}

/// A message of the new list. Calls and results are numbered as the table has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// The message itself.
    Keep(usize),
    /// The message without what must go, with its new ids.
    Clean(usize),
    /// What a message of results says besides.
    Own(usize),
    /// The message of a result. (`OpenAI`)
    Result(usize),
    /// A message for a call that was interrupted. (`OpenAI`)
    Synthetic(usize),
    /// The message of all results of a message's calls. (Anthropic)
    Results {
        /// Results that there are.
        results: Vec<usize>,
        /// Calls that were interrupted.
        calls: Vec<usize>,
        /// The message whose own parts stand behind them.
        own: Option<usize>,
    },
    /// A message of a user, so that one speaks first.
    Opening,
}

/// The new list.
#[derive(Debug, Default)]
pub struct Plan {
    /// Its messages.
    pub made: Vec<Made>,
    /// What was done, by message.
    pub fixes: Vec<Fix>,
    /// For each call the id that it gets, if it gets one.
    pub new_ids: Vec<Option<String>>,
    /// For each result the call that it answers. It gets its id.
    pub answered: Vec<Option<usize>>,
}

/// Makes the plan of a valid list.
#[must_use]
pub fn repair(list: List<'_>) -> Plan {
    let mut planner = Planner::new(list);
    planner.rename();
    planner.note_drops();
    planner.make();
    planner.open();
    let Planner { mut plan, .. } = planner;
    plan.fixes.sort_by_key(|fix| fix.index);
    plan
}

struct Planner<'t> {
    list: List<'t>,
    plan: Plan,
    /// For each call the result that answers it.
    answers: Vec<Option<usize>>,
    /// For each result its message.
    holders: Vec<usize>,
    /// Messages that go for lack of contents.
    dropped: Vec<bool>,
}

fn at<T: Copy + Default>(values: &[T], place: usize) -> T {
    values.get(place).copied().unwrap_or_default()
}

impl<'t> Planner<'t> {
    fn new(list: List<'t>) -> Self {
        let transcript = list.transcript;
        let answered = Pairs::of(transcript, End::OfPart).answered;
        let mut answers = vec![None; transcript.calls().len()];
        for (result, call) in answered.iter().enumerate() {
            if let Some(answer) = call.and_then(|call| answers.get_mut(call)) {
                *answer = Some(result);
            }
        }
        let mut holders = Vec::with_capacity(answered.len());
        for (index, entry) in transcript.entries().iter().enumerate() {
            holders.extend(transcript.results_of(entry).map(|_| index));
        }
        let plan = Plan { answered, new_ids: vec![None; answers.len()], ..Plan::default() };
        let mut planner = Self { list, plan, answers, holders, dropped: Vec::new() };
        planner.attach();
        planner.dropped = (0..transcript.entries().len()).map(|index| planner.is_dropped(index)).collect();
        planner
    }

    /// Gives results that answer nothing to the calls of the message that they directly follow, in order: if there are
    /// as many as calls without a result, and of each pair one has no id.
    fn attach(&mut self) {
        let entries = self.list.transcript.entries();
        for index in 0..entries.len() {
            let open: Vec<usize> =
                self.named_calls(index).filter(|&call| self.answer(call).is_none()).collect();
            if open.is_empty() {
                continue;
            }
            let mut results = Vec::new();
            for later in index + 1..entries.len() {
                if self.kind(later) != Kind::Stray {
                    break;
                }
                let answers_nothing = |&result: &usize| at(&self.plan.answered, result).is_none();
                results.extend(self.results(later).filter(answers_nothing));
                if entries.get(later).is_some_and(|entry| entry.own_text) {
                    break;
                }
            }
            let mut pairs = open.iter().zip(&results);
            let fit = |(&call, &result): (&usize, &usize)| {
                self.call_id(call) == BLANK || self.result_id(result) == BLANK
            };
            if open.len() != results.len() || !pairs.all(fit) {
                continue;
            }
            for (&call, &result) in open.iter().zip(&results) {
                if let (Some(answer), Some(answered)) =
                    (self.answers.get_mut(call), self.plan.answered.get_mut(result))
                {
                    (*answer, *answered) = (Some(result), Some(call));
                }
            }
        }
    }

    fn kind(&self, index: usize) -> Kind {
        self.list.transcript.entries().get(index).map_or(Kind::Other, |entry| entry.kind)
    }

    fn calls(&self, index: usize) -> std::ops::Range<usize> {
        let transcript = self.list.transcript;
        transcript.entries().get(index).map_or(0..0, |entry| transcript.calls_of(entry))
    }

    fn results(&self, index: usize) -> std::ops::Range<usize> {
        let transcript = self.list.transcript;
        transcript.entries().get(index).map_or(0..0, |entry| transcript.results_of(entry))
    }

    fn facts(&self, index: usize) -> Facts {
        at(self.list.facts, index)
    }

    fn owns(&self, index: usize) -> bool {
        at(self.list.own, index)
    }

    fn is_named(&self, call: usize) -> bool {
        !at(self.list.nameless, call)
    }

    /// The calls of a message that stay.
    fn named_calls(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        self.calls(index).filter(|&call| self.is_named(call))
    }

    fn answer(&self, call: usize) -> Option<usize> {
        at(&self.answers, call)
    }

    fn has_new_id(&self, call: usize) -> bool {
        self.plan.new_ids.get(call).is_some_and(Option::is_some)
    }

    /// Whether there is thinking that must go.
    fn unsigned(&self, index: usize) -> bool {
        self.list.form == Form::Anthropic && self.facts(index).unsigned_thinking
    }

    /// Whether there is an empty text that must go.
    fn empty_text(&self, index: usize) -> bool {
        let facts = self.facts(index);
        self.list.form == Form::Anthropic && facts.empty_text && !facts.empty
    }

    fn is_dropped(&self, index: usize) -> bool {
        if self.facts(index).empty {
            let is_last = index + 1 == self.list.transcript.entries().len();
            return self.list.strict && !(is_last && self.kind(index) == Kind::Step);
        }
        let loses = !self.calls(index).is_empty() || self.unsigned(index);
        loses
            && self.results(index).is_empty()
            && !self.owns(index)
            && self.named_calls(index).next().is_none()
    }

    fn fix(&mut self, code: Code, index: usize, action: Action) {
        self.plan.fixes.push(Fix::new(code, at(self.list.sources, index), action));
    }

    fn fix_id(&mut self, code: Code, index: usize, action: Action, id: Id) {
        let index = at(self.list.sources, index);
        self.plan.fixes.push(Fix { id: Some(id), ..Fix::new(code, index, action) });
    }

    fn call_id(&self, call: usize) -> Id {
        at(self.list.transcript.calls(), call)
    }

    fn result_id(&self, result: usize) -> Id {
        at(self.list.transcript.results(), result)
    }

    /// Gives ids to the calls that need one.
    fn rename(&mut self) {
        let transcript = self.list.transcript;
        let mut seen = vec![usize::MAX; transcript.id_count()];
        let mut renamed = Vec::new();
        for index in 0..transcript.entries().len() {
            for (place, call) in self.calls(index).enumerate() {
                if !self.is_named(call) {
                    continue;
                }
                let id = self.call_id(call);
                let before = seen.get_mut(id as usize).map(|seen| std::mem::replace(seen, index));
                if id == BLANK {
                    renamed.push((Code::BlankId, index, place, call));
                } else if self.list.form == Form::Anthropic && before == Some(index) {
                    renamed.push((Code::DuplicateCallId, index, place, call));
                }
            }
        }
        if !renamed.is_empty() {
            self.give_ids(renamed);
        }
        for result in 0..self.holders.len() {
            let (id, index) = (self.result_id(result), at(&self.holders, result));
            let Some(call) = at(&self.plan.answered, result) else { continue };
            let code = if id == BLANK {
                Code::BlankId
            } else if self.call_id(call) == BLANK {
                Code::OrphanResult
            } else {
                Code::DuplicateCallId
            };
            if self.is_named(call) && self.is_relabelled(result) {
                let given = self.plan.new_ids.get(call).cloned().flatten();
                let new_id = given.or_else(|| Some(transcript.id_text(self.call_id(call))));
                let index = at(self.list.sources, index);
                let fix = Fix::new(code, index, Action::Renamed);
                self.plan.fixes.push(Fix { id: Some(id), new_id, ..fix });
            }
        }
    }

    /// Whether a result gets another id: that of its call.
    fn is_relabelled(&self, result: usize) -> bool {
        let call = at(&self.plan.answered, result);
        call.is_some_and(|call| self.has_new_id(call) || self.call_id(call) != self.result_id(result))
    }

    /// Gives new ids to calls: of each what is wrong, its message, its place in it, its number.
    fn give_ids(&mut self, renamed: Vec<(Code, usize, usize, usize)>) {
        let transcript = self.list.transcript;
        let ids = transcript.calls().iter().chain(transcript.results());
        let mut taken: HashSet<String> = ids.map(|&id| transcript.id_text(id)).collect();
        for (code, index, place, call) in renamed {
            let source = at(self.list.sources, index);
            let stem = format!("call_{source}_{place}");
            let name = (0..=taken.len()) // one of so many is free
                .map(|n| if n == 0 { stem.clone() } else { format!("{stem}_{n}") })
                .find(|name| !taken.contains(name));
            let Some(name) = name else { continue };
            taken.insert(name.clone());
            let (id, new_id) = (Some(self.call_id(call)), Some(name.clone()));
            self.plan.fixes.push(Fix { id, new_id, ..Fix::new(code, source, Action::Renamed) });
            if let Some(new) = self.plan.new_ids.get_mut(call) {
                *new = Some(name);
            }
        }
    }

    /// Notes the calls and results that go.
    fn note_drops(&mut self) {
        let transcript = self.list.transcript;
        let mut caller = None;
        let mut callers = vec![None; transcript.id_count()];
        for index in 0..transcript.entries().len() {
            let mut some_stay = false;
            for result in self.results(index) {
                let id = self.result_id(result);
                match at(&self.plan.answered, result) {
                    Some(call) if self.is_named(call) => some_stay = true,
                    Some(_) => self.fix_id(Code::BlankName, index, Action::Dropped, id),
                    None => {
                        let again = caller.is_some() && at(&callers, id as usize) == caller;
                        let code = if again { Code::DuplicateResult } else { Code::OrphanResult };
                        self.fix_id(code, index, Action::Dropped, id);
                    }
                }
            }
            for call in self.calls(index) {
                let id = self.call_id(call);
                if let Some(caller) = callers.get_mut(id as usize) {
                    *caller = Some(index);
                }
                if !self.is_named(call) {
                    self.fix_id(Code::BlankName, index, Action::Dropped, id);
                }
            }
            if self.kind(index) == Kind::Step {
                caller = Some(index);
            }
            if self.list.form == Form::Anthropic && self.facts(index).late_result && some_stay {
                self.fix(Code::ResultAfterText, index, Action::Moved);
            }
        }
    }

    /// For each call whether it may stay without a result: it will still be running at the end of the new list.
    fn live(&self) -> Vec<bool> {
        let mut live = vec![false; self.answers.len()];
        let entries = self.list.transcript.entries();
        let Some(last) = entries.iter().rposition(|entry| entry.kind != Kind::Stray || entry.own_text) else {
            return live;
        };
        // the first message that says something besides can go with the results, others will be messages of a user
        let talking = (last + 1..entries.len()).filter(|&index| self.owns(index)).count();
        let has_results = self.named_calls(last).any(|call| self.answer(call).is_some());
        if talking > 1 || (talking == 1 && !has_results) {
            return live;
        }
        for index in (0..=last).rev() {
            let (mut is_caller, mut is_answered) = (false, false);
            for call in self.named_calls(index) {
                is_caller = true;
                is_answered |= self.answer(call).is_some();
            }
            if !is_caller || (is_answered && index != last) {
                break; // its results will stand between it and the next one
            }
            for call in self.named_calls(index) {
                if let Some(live) = live.get_mut(call) {
                    *live = self.answer(call).is_none();
                }
            }
        }
        live
    }

    fn make(&mut self) {
        let live = self.live();
        let count = self.list.transcript.entries().len();
        let mut ends = self.ends_of_results();
        let mut absorbed = None; // the newest message whose own parts went with results
        for index in 0..count {
            if self.empty_text(index) {
                self.fix(Code::EmptyText, index, Action::Dropped);
            }
            if self.unsigned(index) {
                self.fix(Code::ThinkingWithoutSignature, index, Action::Dropped);
            }
            if !self.results(index).is_empty() {
                if self.owns(index) && absorbed != Some(index) {
                    self.plan.made.push(Made::Own(index));
                }
                continue;
            }
            if at(&self.dropped, index) {
                self.fix(Code::EmptyMessage, index, Action::Dropped);
                continue;
            }
            let is_changed = self.calls(index).any(|call| !self.is_named(call) || self.has_new_id(call))
                || self.empty_text(index)
                || self.unsigned(index);
            self.plan.made.push(if is_changed { Made::Clean(index) } else { Made::Keep(index) });
            let mut results: Vec<usize> =
                self.named_calls(index).filter_map(|call| self.answer(call)).collect();
            results.sort_unstable();
            let missing: Vec<usize> = self
                .named_calls(index)
                .filter(|&call| self.answer(call).is_none() && !at(&live, call))
                .collect();
            let end = ends.get_mut(index).map_or(0, |end| *end);
            self.note_answers(index, end, &results, &missing);
            if self.list.form == Form::OpenAi {
                self.plan.made.extend(results.into_iter().map(Made::Result));
                self.plan.made.extend(missing.into_iter().map(Made::Synthetic));
            } else if !results.is_empty() || !missing.is_empty() {
                let own = self.next_talking(index);
                absorbed = own.or(absorbed);
                let made = self.message_of_results(results, missing, own);
                self.plan.made.push(made);
            }
        }
    }

    /// For each message the one behind the results that directly follow it, as [`crate::validate`] has it.
    fn ends_of_results(&self) -> Vec<usize> {
        let count = self.list.transcript.entries().len();
        if self.list.form == Form::Anthropic {
            return (0..count).map(|index| index + 2).collect();
        }
        let mut ends = vec![count; count];
        let mut end = count;
        for (index, slot) in ends.iter_mut().enumerate().rev() {
            *slot = end;
            if self.kind(index) != Kind::Stray {
                end = index;
            }
        }
        ends
    }

    /// Notes which results of a message's calls have to move, and which are made up.
    fn note_answers(&mut self, index: usize, end: usize, results: &[usize], missing: &[usize]) {
        let is_direct = |planner: &Self, result: usize| at(&planner.holders, result) < end;
        let is_split = results.iter().any(|&result| is_direct(self, result));
        for &result in results {
            if !is_direct(self, result) {
                let code = if is_split { Code::SplitParallelGroup } else { Code::ResultOutOfOrder };
                self.fix_id(code, at(&self.holders, result), Action::Moved, self.result_id(result));
            }
        }
        for &call in missing {
            let new_id = self.plan.new_ids.get(call).cloned().flatten();
            let index = at(self.list.sources, index);
            let fix = Fix::new(Code::UnansweredCall, index, Action::Synthesised);
            self.plan.fixes.push(Fix { id: Some(self.call_id(call)), new_id, ..fix });
        }
    }

    /// The message that will come next, if it is one of results with parts of its own: they go with the answers.
    fn next_talking(&self, index: usize) -> Option<usize> {
        for later in index + 1..self.list.transcript.entries().len() {
            let has_results = !self.results(later).is_empty();
            if has_results && self.owns(later) {
                return Some(later);
            }
            if !has_results && !at(&self.dropped, later) {
                return None;
            }
        }
        None
    }

    /// Anthropic's one message of results: an old one, if it is the same.
    fn message_of_results(&self, results: Vec<usize>, calls: Vec<usize>, own: Option<usize>) -> Made {
        let first = results.first().and_then(|&result| self.holders.get(result)).copied();
        if let Some(index) = own.or(first)
            && calls.is_empty()
            && results.iter().all(|&result| at(&self.holders, result) == index)
            && results.len() == self.results(index).len()
            && self.owns(index) == own.is_some()
            && !results.iter().any(|&result| self.is_relabelled(result))
            && !(self.facts(index).late_result || self.empty_text(index) || self.unsigned(index))
        {
            return Made::Keep(index);
        }
        Made::Results { results, calls, own }
    }

    /// Sees to it that a user speaks first, where that must be.
    fn open(&mut self) {
        let is_system = |made: &Made| match made {
            Made::Keep(index) | Made::Clean(index) => self.kind(*index) == Kind::System,
            _ => false,
        };
        let entry = |index: usize| self.list.transcript.entries().get(index);
        let says_something = |made: &Made| match *made {
            Made::Own(_) => true,
            Made::Keep(index) | Made::Clean(index) | Made::Results { own: Some(index), .. } => {
                entry(index).is_some_and(|entry| entry.own_text)
            }
            _ => false,
        };
        let first = self.plan.made.iter().position(|made| !is_system(made));
        let index = match first.and_then(|first| self.plan.made.get(first)) {
            Some(Made::Keep(index) | Made::Clean(index) | Made::Own(index)) => *index,
            _ => 0,
        };
        if !self.plan.made.iter().any(says_something) {
            self.fix(Code::NoUserMessage, index, Action::Left);
        } else if let Some(first) = first
            && self.list.strict
            && self.list.roles.get(index) != Some(&Role::User)
        {
            self.plan.made.insert(first, Made::Opening);
            self.fix(Code::FirstNotUser, index, Action::Inserted);
        }
    }
}

/// The code of what only [`sanitize`] drops.
const STRICT_PREDECESSOR: &str = "strict_predecessor";

/// Who speaks, as far as `PicoClaw` tells roles apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// `system`
    System,
    /// `user`
    User,
    /// `tool`
    Tool,
    /// Anybody else.
    Other,
}

/// `PicoClaw`'s own way to mend a list, which only drops: the messages that stay, and what was dropped.
///
/// First goes what stands behind the wrong message: results that no message with calls precedes, messages with calls
/// that follow neither a user nor a result, and system messages. Then messages with calls of which one has no id or no
/// directly following result, with all their results; and results that answer none of them, or again.
#[must_use]
pub fn sanitize(transcript: &Transcript, speakers: &[Speaker]) -> (Vec<usize>, Vec<Fix>) {
    let mut fixes = Vec::new();
    let mut drop = |index, code, id| {
        fixes.push(Fix { code, index, id, action: Action::Dropped, new_id: None });
    };
    let mut kept: Vec<(usize, Speaker)> = Vec::new();
    let mut talker_has_calls = false;
    for ((index, entry), &speaker) in transcript.entries().iter().enumerate().zip(speakers) {
        let has_calls = !transcript.calls_of(entry).is_empty();
        let follows = matches!(kept.last(), Some((_, Speaker::User | Speaker::Tool)));
        if speaker == Speaker::Tool && !talker_has_calls {
            let id = transcript.results().get(transcript.results_of(entry).start).copied();
            drop(index, Code::OrphanResult.name(), id);
        } else if speaker == Speaker::System || (has_calls && !follows) {
            drop(index, STRICT_PREDECESSOR, None);
        } else {
            kept.push((index, speaker));
            if speaker != Speaker::Tool {
                talker_has_calls = has_calls;
            }
        }
    }

    let mut result = Vec::with_capacity(kept.len());
    let mut called = vec![None; transcript.id_count()];
    let mut answered = vec![None; transcript.id_count()];
    let mut rest = kept.as_slice();
    while let Some((&(index, _), mut tail)) = rest.split_first() {
        let ids = |index: usize| {
            let entry = transcript.entries().get(index);
            let calls = entry.and_then(|entry| transcript.calls().get(transcript.calls_of(entry)));
            calls.unwrap_or_default()
        };
        if ids(index).is_empty() {
            result.push(index);
            rest = tail;
            continue;
        }
        for &id in ids(index) {
            if let Some(called) = called.get_mut(id as usize) {
                *called = Some(index);
            }
        }
        let mut block = vec![index];
        while let Some((&(message, Speaker::Tool), after)) = tail.split_first() {
            tail = after;
            let entry = transcript.entries().get(message);
            let results = entry.and_then(|entry| transcript.results().get(transcript.results_of(entry)));
            let id = results.and_then(<[Id]>::first).copied().unwrap_or(BLANK);
            let is_again = at(&answered, id as usize) == Some(index);
            if id == BLANK {
                drop(message, Code::BlankId.name(), Some(id));
            } else if is_again {
                drop(message, Code::DuplicateResult.name(), Some(id));
            } else if at(&called, id as usize) == Some(index) {
                block.push(message);
                if let Some(answered) = answered.get_mut(id as usize) {
                    *answered = Some(index);
                }
            } else {
                drop(message, Code::OrphanResult.name(), Some(id));
            }
        }
        let is_open = |id: &&Id| **id == BLANK || at(&answered, **id as usize) != Some(index);
        match ids(index).iter().find(is_open) {
            None => result.append(&mut block),
            Some(&id) => {
                let code = if id == BLANK { Code::BlankId } else { Code::UnansweredCall };
                for message in block {
                    drop(message, code.name(), Some(id));
                }
            }
        }
        rest = tail;
    }
    fixes.sort_by_key(|fix| fix.index);
    (result, fixes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::tests::transcript;
    use Made::{Keep, Opening, Own, Result as Answer, Synthetic};

    /// The plan of a conversation in short (see [`crate::steps`]); `nameless` numbers calls.
    fn plan(script: &str, form: Form, nameless: &[usize]) -> Plan {
        let table = transcript(script);
        let words: Vec<&str> = script.split_whitespace().collect();
        let roles: Vec<Role> = words
            .iter()
            .map(|word| match &word[..1] {
                "S" => Role::System,
                "A" => Role::Assistant,
                "T" if form == Form::OpenAi => Role::Result,
                _ => Role::User,
            })
            .collect();
        let nameless: Vec<bool> = (0..table.calls().len()).map(|call| nameless.contains(&call)).collect();
        repair(List {
            transcript: &table,
            facts: &vec![Facts::default(); words.len()],
            roles: &roles,
            own: &words.iter().map(|word| word.starts_with('M')).collect::<Vec<_>>(),
            nameless: &nameless,
            sources: &(0..words.len()).collect::<Vec<_>>(),
            form,
            strict: form == Form::Anthropic,
        })
    }

    fn results(results: &[usize], calls: &[usize], own: Option<usize>) -> Made {
        Made::Results { results: results.to_vec(), calls: calls.to_vec(), own }
    }

    #[test]
    fn results_move_to_their_calls_and_are_made_up() {
        let made = |script| plan(script, Form::OpenAi, &[]).made;
        assert_eq!(made("U Aab U Tb A"), [Keep(0), Keep(1), Answer(0), Synthetic(0), Keep(2), Keep(4)]);
        assert_eq!(made("Tz U Aa Ta Ta A"), [Keep(1), Keep(2), Answer(1), Keep(5)]);
        assert_eq!(made("U Aab Ta"), [Keep(0), Keep(1), Answer(0)]);
        assert_eq!(made("U Aab Ac Ta"), [Keep(0), Keep(1), Answer(0), Synthetic(1), Keep(2)]);
    }

    #[test]
    fn results_are_one_message_in_the_other_form() {
        let made = |script| plan(script, Form::Anthropic, &[]).made;
        assert_eq!(made("U Aab Ta Tb A"), [Keep(0), Keep(1), results(&[0, 1], &[], None), Keep(4)]);
        assert_eq!(made("U Aab Ma A"), [Keep(0), Keep(1), results(&[0], &[1], Some(2)), Keep(3)]);
        assert_eq!(
            made("U Aa U Ma A"),
            [Keep(0), Keep(1), results(&[0], &[], None), Keep(2), Own(3), Keep(4)]
        );
        assert_eq!(made("U Aa U Ta A"), [Keep(0), Keep(1), Keep(3), Keep(2), Keep(4)]);
        assert_eq!(made("A U"), [Opening, Keep(0), Keep(1)]);
    }

    #[test]
    fn calls_without_a_name_go_and_ids_are_given() {
        let gone = plan("U Aa Ta A", Form::OpenAi, &[0]);
        assert_eq!(gone.made, [Keep(0), Keep(3)]);
        let fixes: Vec<(&str, usize)> = gone.fixes.iter().map(|fix| (fix.code, fix.index)).collect();
        assert_eq!(fixes, [("blank_name", 1), ("empty_message", 1), ("blank_name", 2)]);
        let new = plan("U A_a Ta T_ A", Form::OpenAi, &[]);
        assert_eq!(new.new_ids, [Some("call_1_0".to_owned()), None]);
        let new = plan("U Aaa Taa A", Form::Anthropic, &[]);
        assert_eq!(new.new_ids, [None, Some("call_1_1".to_owned())]);
    }

    #[test]
    fn the_strict_way_drops_whole_rounds() {
        let kept = |script: &str| {
            let speakers: Vec<Speaker> = script
                .split_whitespace()
                .map(|word| match &word[..1] {
                    "S" => Speaker::System,
                    "U" => Speaker::User,
                    "T" => Speaker::Tool,
                    _ => Speaker::Other,
                })
                .collect();
            sanitize(&transcript(script), &speakers).0
        };
        assert_eq!(kept("S U Aab Tb Ta A"), [1, 2, 3, 4, 5]);
        assert_eq!(kept("U A Aa Ta A"), [0, 1, 4]);
        assert_eq!(kept("U Aa Ab Tb A"), [0, 4]);
        assert_eq!(kept("U Aa Tz T_ Ta Ta A"), [0, 1, 4, 6]);
        assert_eq!(kept("U A_a Ta A"), [0, 3]);
    }
}

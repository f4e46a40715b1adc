//! Which old tool outputs are replaced by stubs: what is protected, what is kept, when it pays.
//!
//! Nothing here reads a text. The plan sees sizes and places, and asks a [`Source`] about an output only when it needs
//! to know: a list in which nothing can be replaced costs no more than to count it.
//!
//! Everything is a function of the list alone. *When* an output ceased to be protected is expressed as the length that
//! the list must have for it, so that a threshold given as a number finds the same batches at every later call.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::plan::{Block, Facts, Plan, Reason, Replacement, Stub};
use crate::stub::Remark;
use crate::tools::Lines;

mod released;

pub use released::Timeline;
use released::{Guards, NEVER, released, step_old, turn_old};

/// Unresolved errors that stay whole, and the tokens that they may have together.
const ERRORS_WHOLE: usize = 10;
const ERROR_TOKENS: u64 = 4_000;
/// Outputs of the newest step that are looked at for what they read again.
const REREADS: usize = 16;
/// From so many lines on a read without an end may have been cut.
const CUT_LINES: usize = 1_000;
/// Later reads of a file that are looked at for one that covers an earlier read.
const LATER_READS: usize = 64;

/// What tokens cost, as shares of the price of an input token that is not cached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// reading a token from the cache
    pub read: f64,
    /// writing a token into the cache
    pub write: f64,
    /// requests to come; `None`: a share of the steps so far
    pub horizon: Option<f64>,
    /// The cache has expired: everything is written anew in any case.
    pub cold: bool,
}

/// When a batch is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// Once it pays.
    Pays,
    /// In steps of so many freed tokens, from the start of the list.
    Grid(u64),
    /// Once there are more tokens to clear than this.
    All(u64),
}

/// What happens to reads inside the zone of tokens that are covered by a later one, or whose file was edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Superseded {
    /// They join a batch.
    Join,
    /// They count towards one, too.
    Start,
    /// Nothing.
    Off,
}

/// Which errors stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepErrors {
    /// Those that nothing has made up for since.
    Open,
    /// All.
    All,
    /// None in particular.
    None,
}

/// The rules of one call, all sizes in tokens.
#[derive(Clone, Debug)]
pub struct Rules {
    /// newest turns whose outputs are protected
    pub protected_turns: usize,
    /// newest steps
    pub protected_steps: usize,
    /// newest tokens of output
    pub protected_tokens: u64,
    /// newest outputs
    pub protected_results: usize,
    /// when a batch is replaced
    pub threshold: Threshold,
    /// the list must have more than this
    pub trigger: Option<u64>,
    /// the least that a batch that pays saves
    pub min_batch: u64,
    /// requests to come for each step so far
    pub horizon_share: f64,
    /// the least that one output saves
    pub min_saved: u64,
    /// reads that are out of date
    pub superseded: Superseded,
    /// errors
    pub keep_errors: KeepErrors,
    /// The stub is one fixed text: no last line of an error can be in it.
    pub fixed_stub: bool,
    /// `None`: there is no cache
    pub prices: Option<Prices>,
}

/// A tool output, as far as its size and place go.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Index of its message.
    pub message: usize,
    /// Tokens of its content.
    pub tokens: u64,
    /// It is known to be a stub.
    pub replaced: bool,
}

/// Somebody who can read the outputs.
pub trait Source {
    /// Why an output could not be read.
    type Error;

    /// Whether an output has been replaced before.
    ///
    /// # Errors
    /// It cannot be read.
    fn is_stub(&mut self, output: usize) -> Result<bool, Self::Error>;

    /// What it is about.
    ///
    /// # Errors
    /// It cannot be read.
    fn facts(&mut self, output: usize) -> Result<Facts, Self::Error>;

    /// How many line feeds are in it.
    ///
    /// # Errors
    /// It cannot be read.
    fn line_feeds(&mut self, output: usize) -> Result<usize, Self::Error>;

    /// Whether it can be a read of a path at all; a cheap look.
    ///
    /// # Errors
    /// It cannot be read.
    fn may_read(&mut self, output: usize, path: &str) -> Result<bool, Self::Error>;

    /// What would replace it.
    ///
    /// # Errors
    /// It cannot be read.
    fn stub(&mut self, output: usize, facts: &Facts, remark: Option<Remark>) -> Result<Stub, Self::Error>;
}

/// Decides. `tokens` are those of all messages as they are now.
///
/// # Errors
/// The source could not read an output.
pub fn plan<S: Source>(
    rules: &Rules,
    timeline: &Timeline,
    outputs: &[Output],
    tokens: &[u64],
    source: &mut S,
) -> Result<Plan, S::Error> {
    Planner::new(rules, timeline, outputs, tokens, source).plan()
}

/// Decides where the list is too large: whether it pays is not asked. `relieve` is told which outputs can go with what
/// that saves, and for all outputs how long the list must be until it is no longer protected; it says at which lengths of
/// the list, ascending, all that was not protected went, and at which message the part begins that is still there.
///
/// # Errors
/// The source could not read an output.
pub fn plan_under_pressure<S: Source>(
    rules: &Rules,
    timeline: &Timeline,
    outputs: &[Output],
    tokens: &[u64],
    source: &mut S,
    relieve: impl FnOnce(&[(usize, u64)], &[usize]) -> (Vec<usize>, usize),
) -> Result<Vec<Replacement>, S::Error> {
    let mut planner = Planner::new(rules, timeline, outputs, tokens, source);
    planner.released = planner.release(Guards::All)?;
    let large = planner.large()?;
    let aged = released_of(&large, &planner.released);
    let starters = planner.starters(&aged, &aged)?;
    let (lengths, start) = relieve(&starters, &planner.released);
    // what is gone is not replaced
    let mut taken: Vec<bool> = outputs.iter().map(|output| output.message < start).collect();
    let (mut replacements, mut rest) = (Vec::new(), starters.as_slice());
    for time in lengths {
        let old = |&(number, _): &(usize, u64)| planner.released.get(number).is_some_and(|&at| at <= time);
        let (members, later) = rest.split_at(rest.partition_point(old));
        rest = later;
        if time > start {
            let batch = Batch { members: members.iter().map(|&(number, _)| number).collect(), time };
            planner.take_batch(&batch, &mut taken, &mut replacements)?;
        }
    }
    replacements.sort_unstable_by_key(|replacement| replacement.output);
    Ok(replacements)
}

/// Outputs that are replaced together, and how long the list was when that was decided.
struct Batch {
    members: Vec<usize>,
    time: usize,
}

/// What happened to files, and which errors there are.
#[derive(Default)]
struct Index {
    /// For each path the successful reads that are still there.
    reads: HashMap<String, Vec<(usize, Lines)>>,
    /// For each path the successful edits.
    edits: HashMap<String, Vec<usize>>,
    /// Errors that were not replaced.
    errors: Vec<Failed>,
}

/// An error.
struct Failed {
    output: usize,
    /// The message in which the same tool succeeds on the same target for the first time after it.
    success: usize,
}

struct Planner<'a, S> {
    rules: &'a Rules,
    timeline: &'a Timeline,
    outputs: &'a [Output],
    tokens: &'a [u64],
    source: &'a mut S,
    facts: Vec<Option<Rc<Facts>>>,
    released: Vec<usize>,
    /// Without the zone of tokens; made when it is first needed.
    unzoned: Option<Rc<Vec<usize>>>,
    index: Option<Rc<Index>>,
    /// Stubs that were made for a decision and are not used yet.
    plain: HashMap<usize, Stub>,
    /// Outputs of which a stub with a remark, or with none, saves too little.
    refused: HashSet<(usize, Option<Remark>)>,
}

impl<'a, S: Source> Planner<'a, S> {
    fn new(
        rules: &'a Rules,
        timeline: &'a Timeline,
        outputs: &'a [Output],
        tokens: &'a [u64],
        source: &'a mut S,
    ) -> Self {
        let facts = vec![None; outputs.len()];
        let (released, plain, refused) = (Vec::new(), HashMap::new(), HashSet::new());
        let (unzoned, index) = (None, None);
        Self { rules, timeline, outputs, tokens, source, facts, released, unzoned, index, plain, refused }
    }

    fn plan(&mut self) -> Result<Plan, S::Error> {
        let mut plan = Plan { rereads: self.rereads()?, ..Plan::default() };
        let least = self.rules.min_saved.max(1);
        if self.rules.trigger.is_some_and(|trigger| self.tokens.iter().sum::<u64>() <= trigger) {
            let is_large = |output: &Output| output.tokens >= least;
            plan.blocked_by = self.outputs.iter().any(is_large).then_some(Block::Trigger);
            return Ok(plan);
        }
        self.released = self.release(Guards::All)?;
        let n = self.tokens.len();
        let large = self.large()?;
        let aged = released_of(&large, &self.released);
        let reach = self.reach(&large, &aged)?;
        let mut starters = None;
        if self.enough(&reach) {
            let found = self.starters(&reach, &aged)?;
            let mut taken = vec![false; self.outputs.len()];
            for batch in self.batches(&found, n)? {
                self.take_batch(&batch, &mut taken, &mut plan.replacements)?;
            }
            starters = Some(found.len());
        }
        plan.replacements.sort_unstable_by_key(|replacement| replacement.output);
        if plan.replacements.is_empty() {
            plan.blocked_by = self.block(&large, &aged, starters)?;
        }
        Ok(plan)
    }

    /// Outputs that are large enough to be replaced, and are no stubs.
    fn large(&mut self) -> Result<Vec<usize>, S::Error> {
        let (least, mut large) = (self.rules.min_saved.max(1), Vec::new());
        for (number, output) in self.outputs.iter().enumerate() {
            if output.tokens >= least && !self.is_stub(number)? {
                large.push(number);
            }
        }
        Ok(large)
    }

    /// For each output how long the list must be until it is no longer protected.
    fn release(&mut self, guards: Guards) -> Result<Vec<usize>, S::Error> {
        let mut rooms: Vec<u64> = self.outputs.iter().map(|output| output.tokens).collect();
        // the presets with this threshold count only what could go; if it is too little, it need not be looked at
        if let Threshold::All(least) = self.rules.threshold
            && rooms.iter().sum::<u64>() > least
        {
            for (number, room) in rooms.iter_mut().enumerate() {
                let facts = self.facts(number)?;
                let message = self.output(number).message;
                let is_guarded =
                    guards != Guards::NoTurns && turn_old(self.rules, self.timeline, message) == NEVER;
                let stays = facts.failed && self.rules.keep_errors == KeepErrors::All;
                if facts.kept || is_guarded || stays {
                    *room = 0;
                }
            }
        }
        Ok(released(self.rules, self.timeline, self.outputs, &rooms, guards))
    }

    fn unzoned(&mut self) -> Result<Rc<Vec<usize>>, S::Error> {
        if self.unzoned.is_none() {
            self.unzoned = Some(Rc::new(self.release(Guards::NoZone)?));
        }
        Ok(self.unzoned.clone().unwrap_or_default())
    }

    /// Outputs that could count towards a batch.
    fn reach(&mut self, large: &[usize], aged: &[usize]) -> Result<Vec<usize>, S::Error> {
        if self.rules.superseded != Superseded::Start {
            return Ok(aged.to_vec());
        }
        Ok(released_of(large, &self.unzoned()?))
    }

    fn output(&self, number: usize) -> Output {
        self.outputs.get(number).copied().unwrap_or(Output { message: 0, tokens: 0, replaced: true })
    }

    fn is_stub(&mut self, number: usize) -> Result<bool, S::Error> {
        Ok(self.output(number).replaced || self.source.is_stub(number)?)
    }

    fn facts(&mut self, number: usize) -> Result<Rc<Facts>, S::Error> {
        if let Some(Some(facts)) = self.facts.get(number) {
            return Ok(Rc::clone(facts));
        }
        let facts = Rc::new(self.source.facts(number)?);
        if let Some(slot) = self.facts.get_mut(number) {
            *slot = Some(Rc::clone(&facts));
        }
        Ok(facts)
    }

    /// The stub of an output and what it saves, if that is enough.
    fn saving(&mut self, number: usize, remark: Option<Remark>) -> Result<Option<(Stub, u64)>, S::Error> {
        let least = self.rules.min_saved.max(1);
        if self.output(number).tokens < least || self.refused.contains(&(number, remark)) {
            return Ok(None);
        }
        let known = if remark.is_none() { self.plain.remove(&number) } else { None };
        let stub = if let Some(stub) = known {
            stub
        } else {
            let facts = self.facts(number)?;
            self.source.stub(number, &facts, remark)?
        };
        let saved = self.output(number).tokens.checked_sub(stub.tokens);
        let saved = saved.filter(|&saved| stub.shorter && saved >= least);
        if saved.is_none() {
            self.refused.insert((number, remark));
        }
        Ok(saved.map(|saved| (stub, saved)))
    }

    /// The same with a remark, or without it where it makes the stub too long.
    fn saving_with(
        &mut self,
        number: usize,
        remark: Option<Remark>,
    ) -> Result<Option<(Stub, u64)>, S::Error> {
        match remark {
            None => self.saving(number, None),
            Some(_) => match self.saving(number, remark)? {
                None => self.saving(number, None),
                enough => Ok(enough),
            },
        }
    }

    /// What replacing an output saves, if it counts towards a batch.
    fn start(&mut self, number: usize) -> Result<Option<u64>, S::Error> {
        let facts = self.facts(number)?;
        if facts.kept || (facts.failed && self.rules.keep_errors != KeepErrors::None) {
            return Ok(None);
        }
        let Some((stub, saved)) = self.saving(number, None)? else { return Ok(None) };
        self.plain.insert(number, stub);
        Ok(Some(saved))
    }

    /// Whether so many tokens of output can be enough for a batch, if stubs cost nothing.
    fn enough(&self, outputs: &[usize]) -> bool {
        let total: u64 = outputs.iter().map(|&number| self.output(number).tokens).sum();
        total > 0
            && match self.rules.threshold {
                Threshold::Pays => self.expiring().is_none() || total >= self.rules.min_batch,
                Threshold::Grid(step) => total >= step,
                Threshold::All(least) => total > least,
            }
    }

    /// The outputs that count towards a batch, and what replacing them saves; only the first one if no batch can pay.
    fn starters(&mut self, reach: &[usize], aged: &[usize]) -> Result<Vec<(usize, u64)>, S::Error> {
        let mut starters = Vec::new();
        for &number in aged {
            let Some(saved) = self.start(number)? else { continue };
            starters.push((number, saved));
            if starters.len() == 1 && self.rules.threshold == Threshold::Pays {
                // a batch begins here, saves at most all that can be saved, and leaves at least the rest: most batches
                // that do not pay are found out by this one stub
                let most = reach.iter().filter(|&&other| other >= number);
                let most: Vec<_> = most.map(|&other| (other, self.output(other).tokens)).collect();
                if !self.pays(&most) {
                    break;
                }
            }
        }
        Ok(starters)
    }

    /// The prices, if a changed prefix costs anything.
    fn expiring(&self) -> Option<Prices> {
        self.rules.prices.filter(|prices| !prices.cold)
    }

    /// What is replaced together: nothing if that does not pay.
    fn batches(&mut self, starters: &[(usize, u64)], n: usize) -> Result<Vec<Batch>, S::Error> {
        let members = || starters.iter().map(|&(number, _)| number).collect();
        let commits = match self.rules.threshold {
            Threshold::Grid(step) => return Ok(self.grid(starters, step.max(1))),
            Threshold::All(least) => {
                starters.iter().map(|&(number, _)| self.output(number).tokens).sum::<u64>() > least
            }
            Threshold::Pays => {
                let mut saved = starters.to_vec();
                if self.rules.superseded == Superseded::Start {
                    saved.extend(self.joiners(n)?);
                }
                self.pays(&saved)
            }
        };
        Ok(if commits { vec![Batch { members: members(), time: n }] } else { Vec::new() })
    }

    /// Whether a batch that saves so much pays for what must be written again behind it.
    fn pays(&self, saved: &[(usize, u64)]) -> bool {
        let total: u64 = saved.iter().map(|&(_, saved)| saved).sum();
        let Some(prices) = self.expiring() else { return total > 0 };
        let Some(first) = saved.iter().map(|&(number, _)| self.output(number).message).min() else {
            return false;
        };
        let sent = self.timeline.sent();
        let rest = self.tokens.get(first..sent).unwrap_or_default().iter().sum::<u64>();
        let stubbed = saved.iter().filter(|&&(number, _)| self.output(number).message < sent);
        let rest = rest.cast_signed() - stubbed.map(|&(_, saved)| saved.cast_signed()).sum::<i64>();
        #[expect(clippy::cast_precision_loss, reason = "tokens stay far below 2^53")]
        let (total_share, rest, steps) = (total as f64, rest as f64, self.timeline.responses.len() as f64);
        let horizon = prices.horizon.unwrap_or_else(|| (self.rules.horizon_share * steps).clamp(3.0, 40.0));
        total >= self.rules.min_batch
            && prices.read * total_share * horizon >= (prices.write - prices.read) * rest
    }

    /// One batch for each output at which the sum from the start crosses a multiple of `step`.
    fn grid(&self, starters: &[(usize, u64)], step: u64) -> Vec<Batch> {
        let (mut batches, mut total, mut members) = (Vec::new(), 0, Vec::new());
        for &(number, saved) in starters {
            members.push(number);
            let before = total;
            total += saved;
            if total / step > before / step {
                let time = self.released.get(number).copied().unwrap_or(NEVER);
                batches.push(Batch { members: std::mem::take(&mut members), time });
            }
        }
        batches
    }

    fn take_batch(
        &mut self,
        batch: &Batch,
        taken: &mut [bool],
        replacements: &mut Vec<Replacement>,
    ) -> Result<(), S::Error> {
        let mut chosen = batch.members.clone();
        chosen.extend(self.joiners(batch.time)?.into_iter().map(|(number, _)| number));
        // where a changed prefix costs something, old errors change no more of it than is changed already
        let waits = self.rules.threshold == Threshold::Pays && self.expiring().is_some();
        let first = chosen.iter().min().copied();
        let errors = self.errors(batch.time, taken)?;
        chosen.extend(errors.into_iter().filter(|&number| !waits || Some(number) > first));
        for number in chosen {
            if let Some(taken) = taken.get_mut(number)
                && !std::mem::replace(taken, true)
            {
                replacements.extend(self.take(number, batch.time)?);
            }
        }
        Ok(())
    }

    fn take(&mut self, number: usize, time: usize) -> Result<Option<Replacement>, S::Error> {
        let superseded = self.superseded(number, time, Edits::Any)?;
        let Some((stub, _)) = self.saving_with(number, superseded.map(|(remark, _)| remark))? else {
            return Ok(None);
        };
        let facts = self.facts(number)?;
        let reason = match superseded {
            _ if facts.failed => Reason::Error,
            Some((_, reason)) => reason,
            None => Reason::Aged,
        };
        Ok(Some(Replacement { output: number, reason, facts, stub }))
    }

    /// What happened to files, and the errors; made when it is first needed.
    fn index(&mut self) -> Result<Rc<Index>, S::Error> {
        if let Some(index) = &self.index {
            return Ok(Rc::clone(index));
        }
        let mut index = Index::default();
        for number in 0..self.outputs.len() {
            let facts = self.facts(number)?;
            if facts.failed {
                if self.rules.keep_errors == KeepErrors::Open && !self.is_stub(number)? {
                    index.errors.push(Failed { output: number, success: NEVER });
                }
                continue;
            }
            if let Some((path, lines)) = &facts.call.read
                && !self.is_stub(number)?
            {
                entry(&mut index.reads, path).push((number, *lines));
            }
            for path in &facts.call.edits {
                entry(&mut index.edits, path).push(number);
            }
        }
        if !index.errors.is_empty() {
            let (mut later, mut errors) = (HashMap::new(), index.errors.iter_mut().rev().peekable());
            for number in (0..self.outputs.len()).rev() {
                let facts = self.facts(number)?;
                let key = (facts.tool.clone(), facts.call.target());
                if let Some(error) = errors.next_if(|error| error.output == number) {
                    error.success = later.get(&key).copied().unwrap_or(NEVER);
                } else if !facts.failed {
                    later.insert(key, self.output(number).message);
                }
            }
        }
        Ok(Rc::clone(self.index.insert(Rc::new(index))))
    }

    /// Reads inside the zone that are superseded at that time, and what they save.
    fn joiners(&mut self, time: usize) -> Result<Vec<(usize, u64)>, S::Error> {
        let mut joiners = Vec::new();
        if self.rules.superseded == Superseded::Off {
            return Ok(joiners);
        }
        let start = self.released.partition_point(|&released| released <= time);
        let end = self.unzoned()?.partition_point(|&released| released <= time);
        for number in start..end {
            let facts = self.facts(number)?;
            if facts.call.read.is_none() || facts.failed || facts.kept || self.is_stub(number)? {
                continue;
            }
            if self.superseded(number, time, Edits::Settled)?.is_some() {
                let (remark, _) = self.superseded(number, time, Edits::Any)?.unzip();
                joiners.extend(self.saving_with(number, remark)?.map(|(_, saved)| (number, saved)));
            }
        }
        Ok(joiners)
    }

    /// Whether a later read covers a read at that time, or its file was edited.
    fn superseded(
        &mut self,
        number: usize,
        time: usize,
        edits: Edits,
    ) -> Result<Option<(Remark, Reason)>, S::Error> {
        if self.rules.superseded == Superseded::Off {
            return Ok(None);
        }
        let facts = self.facts(number)?;
        let Some((path, lines)) = &facts.call.read else { return Ok(None) };
        let index = self.index()?;
        let reads = index.reads.get(path).map_or(&[][..], Vec::as_slice);
        let later = reads.partition_point(|&(read, _)| read <= number);
        for &(later, span) in reads.get(later..).unwrap_or_default().iter().take(LATER_READS) {
            if self.output(later).message >= time {
                break;
            }
            if span.cover(*lines) && self.holds(later, span, number, *lines)? {
                return Ok(Some((Remark::ReadAgain, Reason::Covered)));
            }
        }
        let is_there = |number: usize| self.output(number).message < time;
        let made = index.edits.get(path).map_or(&[][..], Vec::as_slice);
        let newest = made.partition_point(|&edit| is_there(edit)).checked_sub(1);
        let newest = newest.and_then(|newest| made.get(newest)).filter(|&&edit| edit > number);
        let is_settled = |edit: usize| {
            edits == Edits::Any || step_old(self.rules, self.timeline, self.output(edit).message) <= time
        };
        Ok(newest.filter(|&&edit| is_settled(edit)).map(|_| (Remark::Edited, Reason::Edited)))
    }

    /// Whether a read can hold what an earlier one gave, as what was asked for would have it.
    ///
    /// One with less than half of the text says something else ("File unchanged"). One without an end that has a thousand
    /// lines may have been cut by the tool: it has the lines that it has.
    fn holds(&mut self, later: usize, span: Lines, earlier: usize, lines: Lines) -> Result<bool, S::Error> {
        let (whole, part) = (self.facts(later)?.characters, self.facts(earlier)?.characters);
        if whole.saturating_mul(2) < part {
            return Ok(false);
        }
        if span.last != Lines::END || whole < CUT_LINES {
            return Ok(true);
        }
        let feeds = self.source.line_feeds(later)?;
        if feeds + 1 < CUT_LINES {
            return Ok(true);
        }
        let end = |lines: Lines, feeds: usize| lines.first.saturating_add_unsigned(feeds as u64);
        let last = lines.last.min(end(lines, self.source.line_feeds(earlier)?));
        Ok(end(span, feeds) >= last)
    }

    /// Errors out of protection that were made up for at that time, or are too many to stay whole.
    fn errors(&mut self, time: usize, taken: &[bool]) -> Result<Vec<usize>, S::Error> {
        let mut going = Vec::new();
        if self.rules.keep_errors != KeepErrors::Open {
            return Ok(going);
        }
        let index = self.index()?;
        let (mut count, mut total) = (0, 0);
        let there = index.errors.partition_point(|error| self.output(error.output).message < time);
        for &Failed { output: number, success } in index.errors.get(..there).unwrap_or_default().iter().rev()
        {
            if taken.get(number) == Some(&true) {
                continue;
            }
            if success >= time {
                (count, total) = (count + 1, total + self.output(number).tokens);
                if self.rules.fixed_stub || (count <= ERRORS_WHOLE && total <= ERROR_TOKENS) {
                    continue;
                }
            }
            let is_old = self.released.get(number).is_some_and(|&released| released <= time);
            if is_old && !self.facts(number)?.kept {
                let (remark, _) = self.superseded(number, time, Edits::Any)?.unzip();
                going.extend(self.saving_with(number, remark)?.map(|_| number));
            }
        }
        Ok(going)
    }

    /// Which rule was in the way.
    fn block(
        &mut self,
        large: &[usize],
        aged: &[usize],
        starters: Option<usize>,
    ) -> Result<Option<Block>, S::Error> {
        if self.rules.protected_turns > 0 && !self.enough(aged) {
            let unguarded = self.release(Guards::NoTurns)?;
            if self.enough(&released_of(large, &unguarded)) {
                return Ok(Some(Block::ProtectedTurns));
            }
        }
        if !aged.is_empty() {
            return Ok(Some(if starters == Some(0) { Block::Kept } else { Block::Threshold }));
        }
        let block = if released_of(large, &self.unzoned()?).is_empty() {
            Block::ProtectedSteps
        } else if self.rules.protected_tokens == 0 {
            Block::Kept // which may take no room in the zone
        } else {
            Block::ProtectedTokens
        };
        Ok((!large.is_empty()).then_some(block))
    }

    /// Outputs of the newest step that read lines again of which every copy had been replaced.
    fn rereads(&mut self) -> Result<Vec<usize>, S::Error> {
        let newest = self.timeline.responses.last().copied().unwrap_or(self.tokens.len());
        let first = self.outputs.partition_point(|output| output.message < newest);
        let mut rereads = Vec::new();
        for number in (first..self.outputs.len()).take(REREADS) {
            let facts = self.facts(number)?;
            let Some((path, lines)) = &facts.call.read else { continue };
            if facts.failed || self.is_stub(number)? {
                continue;
            }
            let (mut copies, mut replaced) = (0, 0);
            for earlier in (0..first).rev() {
                if copies > replaced {
                    break;
                }
                if !self.source.may_read(earlier, path)? {
                    continue;
                }
                let old = self.facts(earlier)?;
                let is_copy = old
                    .call
                    .read
                    .as_ref()
                    .is_some_and(|(old, old_lines)| old == path && lines.overlap(*old_lines));
                if is_copy && !old.failed {
                    copies += 1;
                    replaced += usize::from(self.is_stub(earlier)?);
                }
            }
            if copies > 0 && copies == replaced {
                rereads.push(number);
            }
        }
        Ok(rereads)
    }
}

/// Those of some outputs that are no longer protected at some length of the list.
fn released_of(outputs: &[usize], times: &[usize]) -> Vec<usize> {
    let is_released = |number: &usize| times.get(*number).is_some_and(|&time| time != NEVER);
    outputs.iter().copied().filter(is_released).collect()
}

/// Which edits make a read outdated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edits {
    /// All.
    Any,
    /// None while the newest one is among the protected steps: a file that is being worked on keeps its only text.
    Settled,
}

fn entry<'m, T>(map: &'m mut HashMap<String, Vec<T>>, path: &str) -> &'m mut Vec<T> {
    if !map.contains_key(path) {
        map.insert(path.to_owned(), Vec::new());
    }
    map.entry(path.to_owned()).or_default()
}

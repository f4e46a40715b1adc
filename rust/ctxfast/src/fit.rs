//! Which part of a list stays when all of it is too large: old outputs go first, then the oldest messages, then the
//! ends of what is huge.
//!
//! The answer is a function of the list alone, and yet it is the same from call to call, so that the provider's cache
//! holds: the history is replayed. At each request that was made the list was as long as it was then; whenever it had
//! become too large, it was brought down to a low mark, and what had gone stayed away. A caller who passes the full
//! history each time gets a new prefix as seldom as one who goes on with the answer; the lists need not be the same, for
//! what was written has other sizes than what was planned.

use std::ops::Range;

use crate::plan::Replacement;
use crate::prune::{Output, Rules, Source, Timeline, plan_under_pressure};
use crate::steps::Atom;
use crate::transcript::Kind;

/// A result with more than this share of the room is huge: a quarter.
const HUGE: u64 = 4;
/// The fewest tokens that an output is cut to: a line that says so, and a little of both ends.
pub const LEAST_OUTPUT: u64 = 64;

/// What the messages behind the system messages at the start may have, in tokens.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// At most.
    pub room: u64,
    /// What they are brought down to once they have more.
    pub low: u64,
    /// The first user message stays if it has at most so many.
    pub first: Option<u64>,
    /// So many of the newest steps stay as long as cutting what is huge in them is enough.
    pub steps: usize,
    /// So much less room for the whole list: what an earlier plan was off by.
    pub short: u64,
}

/// A message of the user that says something.
#[derive(Clone, Copy, Debug)]
pub struct User {
    /// Its index.
    pub message: usize,
    /// Its tokens without tool results.
    pub tokens: u64,
}

/// A list.
#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    /// Its atoms, without system messages at the start.
    pub atoms: &'a [Atom],
    /// The tokens of each message.
    pub tokens: &'a [u64],
    /// The messages that can be the task, ascending.
    pub users: &'a [User],
    /// All tool outputs, ascending.
    pub outputs: &'a [Output],
    /// Its responses, for the protection of outputs.
    pub timeline: &'a Timeline,
}

/// An output that is to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clamp {
    /// Its number.
    pub output: usize,
    /// The most tokens that it may have.
    pub tokens: u64,
}

/// What stays.
#[derive(Debug, Default)]
pub struct Fit {
    /// Index of the first message that stays with all that follow it.
    pub start: usize,
    /// User messages before it that stay, ascending.
    pub pinned: Vec<usize>,
    /// Old outputs that are replaced.
    pub replacements: Vec<Replacement>,
    /// Outputs that are cut.
    pub clamps: Vec<Clamp>,
    /// What will be there, as far as it is known before it is written.
    pub tokens: u64,
}

/// Decides.
///
/// # Errors
/// The source could not read an output.
pub fn plan<S: Source>(
    limits: Limits,
    list: List<'_>,
    rules: &Rules,
    source: &mut S,
) -> Result<Fit, S::Error> {
    let mut fit = Fit::default();
    let relieve = |starters: &[(usize, u64)], released: &[usize]| {
        let mut replay = Replay::new(limits, list, starters, released);
        replay.run();
        fit = replay.fit();
        (replay.lengths, fit.start)
    };
    fit.replacements = plan_under_pressure(rules, list.timeline, list.outputs, list.tokens, source, relieve)?;
    let is_replaced = |output: usize| fit.replacements.binary_search_by_key(&output, |it| it.output).is_ok();
    fit.clamps.retain(|clamp| !is_replaced(clamp.output));
    Ok(fit)
}

/// The newest steps and all that follows the first of them, with the user messages that they need.
#[must_use]
pub fn keep_last(list: List<'_>, steps: usize) -> Fit {
    let limits = Limits { room: u64::MAX, low: u64::MAX, first: None, steps, short: 0 };
    let mut replay = Replay::new(limits, list, &[], &[]);
    replay.grow(list.tokens.len());
    replay.drop_all_before(replay.guarded(list.atoms.len().saturating_sub(1)));
    replay.fit()
}

/// The list as it grew.
struct Replay<'a> {
    limits: Limits,
    list: List<'a>,
    /// For each atom the user message that opened its turn, if it does not itself.
    heads: Vec<Option<usize>>,
    /// The atoms that are steps.
    steps: Vec<usize>,
    /// Outputs that can go, what that saves, and those that have not gone yet.
    starters: &'a [(usize, u64)],
    released: &'a [usize],
    /// Tokens of messages and of outputs, with what has been done to them.
    now: Vec<u64>,
    sizes: Vec<u64>,
    clamped: Vec<bool>,
    /// The first atom that is still there.
    atom: usize,
    /// How long the list is.
    end: usize,
    /// Tokens of what is still there, without pinned messages.
    sum: u64,
    /// Of the user messages only one is pinned: the task, or where that is still there the one that opened its turn.
    fewest: bool,
    /// At which lengths old outputs went.
    lengths: Vec<usize>,
}

impl<'a> Replay<'a> {
    fn new(limits: Limits, list: List<'a>, starters: &'a [(usize, u64)], released: &'a [usize]) -> Self {
        let mut heads = vec![None; list.atoms.len()];
        let mut opener = None;
        for (atom, head) in list.atoms.iter().zip(&mut heads) {
            if atom.kind == Kind::User {
                opener = list.users.binary_search_by_key(&atom.messages.start, |user| user.message).ok();
            } else {
                *head = opener;
            }
        }
        let mut next = None;
        for (atom, head) in list.atoms.iter().zip(&mut heads).rev() {
            if atom.kind == Kind::System {
                *head = next; // it goes with what follows it
            }
            next = *head;
        }
        let is_step = |&(_, atom): &(usize, &Atom)| atom.kind == Kind::Step;
        Self {
            limits,
            list,
            heads,
            steps: list.atoms.iter().enumerate().filter(is_step).map(|(place, _)| place).collect(),
            starters,
            released,
            now: list.tokens.to_vec(),
            sizes: list.outputs.iter().map(|output| output.tokens).collect(),
            clamped: vec![false; list.outputs.len()],
            atom: 0,
            end: list.atoms.first().map_or(list.tokens.len(), |atom| atom.messages.start),
            sum: 0,
            fewest: false,
            lengths: Vec::new(),
        }
    }

    /// Plays all requests, which were made where steps begin, and the one that is to come.
    fn run(&mut self) {
        let count = self.list.tokens.len();
        let steps = self.list.atoms.iter().filter(|atom| atom.kind == Kind::Step);
        for request in steps.map(|step| step.messages.start) {
            self.grow(request);
            self.relieve(self.limits.room);
        }
        self.grow(count);
        self.relieve(self.limits.room.saturating_sub(self.limits.short));
    }

    fn grow(&mut self, end: usize) {
        self.sum += self.now.get(self.end..end).unwrap_or_default().iter().sum::<u64>();
        self.end = end;
    }

    /// Makes room if there is too little.
    fn relieve(&mut self, room: u64) {
        if self.cost() <= room {
            return;
        }
        let low = self.limits.low.min(room);
        self.lengths.push(self.end);
        self.prune();
        if self.cost() <= low {
            return;
        }
        let newest = self.list.atoms.partition_point(|atom| atom.messages.start < self.end).saturating_sub(1);
        let guarded = self.guarded(newest);
        if self.cost_from(guarded) > room {
            let most = (room / HUGE).max(LEAST_OUTPUT);
            self.clamp(self.outputs_from(self.start_of(guarded)), most);
        }
        self.drop_before(guarded, low);
        if self.cost() > room {
            self.drop_before(newest, low);
        }
        if self.cost() > room {
            self.clamp_to(room, self.outputs_from(self.start_of(newest)));
        }
        self.fewest |= self.cost() > room;
    }

    /// The atom with which the newest steps begin that stay as long as it is possible.
    fn guarded(&self, newest: usize) -> usize {
        let there = self.steps.partition_point(|&step| step <= newest);
        let first = there.checked_sub(self.limits.steps).and_then(|first| self.steps.get(first));
        first.map_or(self.atom, |&first| first.max(self.atom))
    }

    /// Old outputs.
    fn prune(&mut self) {
        let start = self.start_of(self.atom);
        while let Some((&(number, saved), rest)) = self.starters.split_first()
            && self.released.get(number).is_some_and(|&length| length <= self.end)
        {
            self.starters = rest;
            if let Some(output) = self.list.outputs.get(number)
                && output.message >= start
            {
                self.shrink(number, output.tokens.saturating_sub(saved));
            }
        }
    }

    /// The oldest atoms before another one, until there are no more tokens than `low`.
    fn drop_before(&mut self, atom: usize, low: u64) {
        while self.atom < atom && self.cost() > low {
            self.drop_all_before(self.atom + 1);
        }
    }

    fn drop_all_before(&mut self, atom: usize) {
        let gone = self.start_of(self.atom)..self.start_of(atom);
        self.sum -= self.now.get(gone).unwrap_or_default().iter().sum::<u64>();
        self.atom = atom;
        self.fewest = false;
    }

    /// Outputs with more tokens than that.
    fn clamp(&mut self, outputs: Range<usize>, most: u64) {
        for number in outputs {
            if self.sizes.get(number).is_some_and(|&size| size > most) {
                self.shrink(number, most);
                if let Some(clamped) = self.clamped.get_mut(number) {
                    *clamped = true;
                }
            }
        }
    }

    /// The same for the largest number that is enough.
    fn clamp_to(&mut self, room: u64, outputs: Range<usize>) {
        let mut sizes = self.sizes.get(outputs.clone()).unwrap_or_default().to_vec();
        sizes.sort_unstable();
        let fixed = self.cost().saturating_sub(sizes.iter().sum());
        let mut left = room.saturating_sub(fixed);
        let mut most = 0;
        for (place, &size) in sizes.iter().enumerate() {
            most = left / (sizes.len() - place) as u64;
            if size > most {
                break;
            }
            left -= size;
        }
        self.clamp(outputs, most.max(LEAST_OUTPUT));
    }

    fn shrink(&mut self, number: usize, tokens: u64) {
        let Some(output) = self.list.outputs.get(number) else { return };
        if let (Some(size), Some(now)) = (self.sizes.get_mut(number), self.now.get_mut(output.message)) {
            let saved = size.saturating_sub(tokens).min(*now);
            *size -= saved;
            *now -= saved;
            self.sum -= saved;
        }
    }

    /// Outputs from a message on that are there already.
    fn outputs_from(&self, message: usize) -> Range<usize> {
        let before = |message| self.list.outputs.partition_point(|output| output.message < message);
        before(message)..before(self.end)
    }

    fn start_of(&self, atom: usize) -> usize {
        self.list.atoms.get(atom).map_or(self.end, |atom| atom.messages.start)
    }

    fn cost(&self) -> u64 {
        self.sum + self.pins(self.atom).iter().map(|user| user.tokens).sum::<u64>()
    }

    /// What would be left if all before an atom were gone.
    fn cost_from(&self, atom: usize) -> u64 {
        let rest = self.now.get(self.start_of(atom)..self.end).unwrap_or_default();
        let pinned = self.pins(atom);
        rest.iter().sum::<u64>() + pinned.iter().map(|user| user.tokens).sum::<u64>()
    }

    /// The user messages that stay although they are before an atom: the first one, if it is small; the one that opened
    /// the atom's turn; the task.
    fn pins(&self, atom: usize) -> Vec<User> {
        let start = self.start_of(atom);
        let users = self.list.users;
        let task = users.partition_point(|user| user.message < self.end).checked_sub(1);
        let first =
            users.first().filter(|user| self.limits.first.is_some_and(|most| user.tokens <= most)).map(|_| 0);
        let head = self.heads.get(atom).copied().flatten();
        let speaks_first = |place: &usize| users.get(*place).is_some_and(|task| task.message < start);
        let places = match task.filter(speaks_first) {
            task @ Some(_) if self.fewest => [None, None, task],
            _ if self.fewest => [None, head, None],
            _ => [first, head, task],
        };
        let mut pinned: Vec<User> = Vec::with_capacity(places.len());
        for user in places.into_iter().flatten().filter_map(|place| users.get(place)) {
            if user.message < start && pinned.last().is_none_or(|last| last.message < user.message) {
                pinned.push(*user);
            }
        }
        pinned
    }

    /// What is there now. Which old outputs are replaced is not known here.
    fn fit(&self) -> Fit {
        Fit {
            start: self.start_of(self.atom),
            pinned: self.pins(self.atom).into_iter().map(|user| user.message).collect(),
            replacements: Vec::new(),
            clamps: self.clamps(),
            tokens: self.cost(),
        }
    }

    fn clamps(&self) -> Vec<Clamp> {
        let start = self.start_of(self.atom);
        let outputs = self.list.outputs.iter().zip(self.sizes.iter().zip(&self.clamped)).enumerate();
        outputs
            .filter(|(_, (output, (_, clamped)))| **clamped && output.message >= start)
            .map(|(output, (_, (&tokens, _)))| Clamp { output, tokens })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::{atoms, tests::transcript};

    /// What a replay leaves of a conversation in short (see [`crate::steps`]): every message has 10 tokens, or what is
    /// given; results are nothing but output.
    fn left(
        script: &str,
        sizes: &[(usize, u64)],
        room: u64,
        first: u64,
    ) -> (usize, Vec<usize>, Vec<Clamp>, u64) {
        let table = transcript(script);
        let mut tokens = vec![10; table.entries().len()];
        for &(message, size) in sizes {
            tokens[message] = size;
        }
        let is_user = |&(_, entry): &(usize, &crate::transcript::Entry)| entry.own_text;
        let user = |(message, _)| User { message, tokens: tokens[message] };
        let users: Vec<User> = table.entries().iter().enumerate().filter(is_user).map(user).collect();
        let has_result = |message: &usize| !table.results_of(&table.entries()[*message]).is_empty();
        let output = |message| Output { message, tokens: tokens[message], replaced: false };
        let outputs: Vec<Output> = (0..tokens.len()).filter(has_result).map(output).collect();
        let list = List {
            atoms: &atoms(&table),
            tokens: &tokens,
            users: &users,
            outputs: &outputs,
            timeline: &Timeline::new(&table, Vec::new()),
        };
        let limits = Limits { room, low: room * 3 / 5, first: Some(first), steps: 2, short: 0 };
        let mut replay = Replay::new(limits, list, &[], &[]);
        replay.run();
        let fit = replay.fit();
        (fit.start, fit.pinned, fit.clamps, fit.tokens)
    }

    #[test]
    fn what_fits_stays() {
        assert_eq!(left("U Aa Ta A U Ab Tb", &[], 70, 10), (0, vec![], vec![], 70));
        assert_eq!(left("", &[], 0, 0), (0, vec![], vec![], 0));
    }

    #[test]
    fn oldest_atoms_go_and_the_opener_of_their_turn_stays() {
        // 130 tokens: down to 75 at most, of which the opener of the first turn has 10
        let sizes = [(1, 20), (2, 20)];
        assert_eq!(left("U Aa Ta Ab Tb Ac Tc U Ad Td A", &sizes, 125, 0), (5, vec![0], vec![], 70));
        // a whole turn goes
        assert_eq!(left("U Aa Ta Ab Tb U Ac Tc Ad Td A", &[], 99, 0), (5, vec![], vec![], 60));
        // a small first message stays, and then the low mark is not reached before the two newest steps
        assert_eq!(left("U Aa Ta Ab Tb U Ac Tc Ad Td A", &[], 99, 10), (6, vec![0, 5], vec![], 70));
    }

    #[test]
    fn the_answer_for_a_longer_list_goes_on_from_that_for_a_shorter_one() {
        let mut script = "U".to_owned();
        let mut starts = Vec::new();
        for _ in 0..60 {
            script += " Aa Ta";
            starts.push(left(&script, &[], 200, 0).0);
        }
        assert!(starts.is_sorted());
        starts.dedup();
        // 20 tokens a step, 80 of room: a new start each fifth step from the tenth one on
        assert_eq!(starts.len(), 12);
    }

    #[test]
    fn what_is_huge_is_cut_before_other_new_steps_go() {
        let (start, pinned, clamps, tokens) = left("U Aa Ta Ab Tb Ac Tc", &[(6, 5_000)], 1_000, 0);
        assert_eq!((start, pinned, tokens), (0, vec![], 10 + 50 + 250));
        assert_eq!(clamps, [Clamp { output: 2, tokens: 250 }]);
        // small rooms: an output is not cut to less than a line
        let (start, pinned, clamps, tokens) = left("U Aa Ta", &[(2, 5_000)], 40, 0);
        assert_eq!((start, pinned, tokens), (1, vec![0], 84));
        assert_eq!(clamps, [Clamp { output: 0, tokens: LEAST_OUTPUT }]);
    }

    #[test]
    fn results_of_one_step_share_the_room() {
        let sizes = [(2, 50), (3, 2_000), (4, 3_000), (5, 4_000), (6, 5_000), (7, 6_000)];
        let (_, _, clamps, tokens) = left("U Aabcdef Ta Tb Tc Td Te Tf", &sizes, 1_000, 0);
        let each = (1_000 - 10 - 10 - 50) / 5;
        assert_eq!(clamps.iter().map(|clamp| clamp.tokens).collect::<Vec<_>>(), [each; 5]);
        assert_eq!(tokens, 70 + 5 * each);
    }

    #[test]
    fn of_a_task_inside_a_step_the_text_is_enough() {
        // the user spoke beside the result: when that step is gone, the opener is not needed if there is no room for it
        assert_eq!(left("U Aa Ma Ab Tb", &[(0, 90)], 100, 0), (3, vec![2], vec![], 30));
    }

    #[test]
    fn the_newest_steps_and_what_they_need() {
        let table = transcript("S U Aa Ta A U Ab Tb A");
        let tokens = vec![10; 9];
        let users = [User { message: 1, tokens: 10 }, User { message: 5, tokens: 10 }];
        let atoms: Vec<Atom> = atoms(&table).into_iter().filter(|atom| atom.kind != Kind::System).collect();
        let timeline = Timeline::new(&table, Vec::new());
        let list = List { atoms: &atoms, tokens: &tokens, users: &users, outputs: &[], timeline: &timeline };
        let kept = |steps| {
            let fit = keep_last(list, steps);
            (fit.start, fit.pinned)
        };
        assert_eq!(kept(1), (8, vec![5]));
        assert_eq!(kept(2), (6, vec![5]));
        assert_eq!(kept(3), (4, vec![1]));
        assert_eq!(kept(9), (1, vec![]));
    }
}

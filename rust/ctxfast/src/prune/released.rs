//! Until when an output is protected: how long the list must be until it is in none of the newest steps, turns, outputs
//! and tokens. Lengths, not flags, so that what was decided in a shorter list can be found again in a longer one.

use super::{Output, Rules};
use crate::transcript::{Kind, Transcript};

/// Where the requests and the turns of a conversation begin.
#[derive(Debug)]
pub struct Timeline {
    /// The model's responses; messages of the model that stand directly one after the other are one.
    pub responses: Vec<usize>,
    /// Messages that open a turn.
    pub turns: Vec<usize>,
}

impl Timeline {
    /// The responses of a table; `turns` are asked for separately, for they need the pairs.
    #[must_use]
    pub fn new(transcript: &Transcript, turns: Vec<usize>) -> Self {
        let mut after_step = false;
        let mut responses = Vec::new();
        for (index, entry) in transcript.entries().iter().enumerate() {
            let is_step = entry.kind == Kind::Step;
            if is_step && !after_step {
                responses.push(index);
            }
            after_step = is_step;
        }
        Self { responses, turns }
    }

    /// How many messages were in the last request: those before the newest response.
    #[must_use]
    pub fn sent(&self) -> usize {
        self.responses.last().copied().unwrap_or(0)
    }
}

/// Which protections count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Guards {
    All,
    NoZone,
    NoTurns,
}

/// It takes a longer list than there is.
pub(super) const NEVER: usize = usize::MAX;

/// For each output how long the list must be until it is no longer protected. Ascending. `rooms` is what each takes of
/// the zone of tokens.
pub(super) fn released(
    rules: &Rules,
    timeline: &Timeline,
    outputs: &[Output],
    rooms: &[u64],
    guards: Guards,
) -> Vec<usize> {
    let mut released = Vec::with_capacity(outputs.len());
    let (mut end, mut sum) = (0, 0); // of the outputs from `number` on that fill the zone
    for (number, output) in outputs.iter().enumerate() {
        let mut time = step_old(rules, timeline, output.message);
        if guards != Guards::NoTurns {
            time = time.max(turn_old(rules, timeline, output.message));
        }
        let newer = outputs.get(number.saturating_add(rules.protected_results));
        time = time.max(newer.map_or(NEVER, |newer| newer.message + 1));
        while sum <= rules.protected_tokens
            && let Some(room) = rooms.get(end)
        {
            sum += room;
            end += 1;
        }
        if guards != Guards::NoZone {
            let last = end.checked_sub(1).and_then(|last| outputs.get(last));
            let left = last.filter(|_| sum > rules.protected_tokens).map_or(NEVER, |last| last.message + 1);
            time = time.max(left);
        }
        sum -= rooms.get(number).copied().unwrap_or(0);
        released.push(time);
    }
    released
}

/// How long the list must be until a message is older than the protected steps. (What the model has not seen yet is
/// always protected.)
pub(super) fn step_old(rules: &Rules, timeline: &Timeline, message: usize) -> usize {
    let later = timeline.responses.partition_point(|&response| response <= message);
    nth(&timeline.responses, later.saturating_add(rules.protected_steps.max(1) - 1))
}

/// How long the list must be until a message is older than the protected turns.
pub(super) fn turn_old(rules: &Rules, timeline: &Timeline, message: usize) -> usize {
    let Some(guard) = rules.protected_turns.checked_sub(1) else { return 0 };
    let later = timeline.turns.partition_point(|&turn| turn <= message);
    nth(&timeline.turns, later.saturating_add(guard))
}

/// How long the list must be for the position with that number to be in it.
fn nth(positions: &[usize], place: usize) -> usize {
    positions.get(place).map_or(NEVER, |position| position + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prune::{KeepErrors, Superseded, Threshold};
    use proptest::prelude::*;

    fn rules(turns: usize, steps: usize, tokens: u64, results: usize) -> Rules {
        Rules {
            protected_turns: turns,
            protected_steps: steps,
            protected_tokens: tokens,
            protected_results: results,
            threshold: Threshold::Pays,
            trigger: None,
            min_batch: 0,
            horizon_share: 0.2,
            min_saved: 0,
            superseded: Superseded::Join,
            keep_errors: KeepErrors::Open,
            fixed_stub: false,
            prices: None,
        }
    }

    /// Whether an output is protected in the first `length` messages, by counting.
    fn is_protected(
        rules: &Rules,
        timeline: &Timeline,
        outputs: &[Output],
        number: usize,
        length: usize,
    ) -> bool {
        let message = outputs[number].message;
        let count =
            |places: &[usize]| places.iter().filter(|&&place| place > message && place < length).count();
        let newer = |other: &&Output| other.message < length;
        let tokens: u64 = outputs[number..].iter().filter(newer).map(|output| output.tokens).sum();
        count(&timeline.responses) < rules.protected_steps.max(1)
            || count(&timeline.turns) < rules.protected_turns
            || outputs[number..].iter().filter(newer).count() <= rules.protected_results
            || tokens <= rules.protected_tokens
    }

    proptest! {
        #[test]
        fn lengths_are_where_protection_ends(
            kinds in prop::collection::vec((0..4_u8, 0..50_u64), 0..40),
            turns in 0..3_usize,
            steps in 0..4_usize,
            tokens in 0..120_u64,
            results in 0..4_usize,
        ) {
            let rules = rules(turns, steps, tokens, results);
            let mut timeline = Timeline { responses: Vec::new(), turns: Vec::new() };
            let mut outputs = Vec::new();
            for (message, &(kind, tokens)) in kinds.iter().enumerate() {
                match kind {
                    0 => timeline.turns.push(message),
                    1 => timeline.responses.push(message),
                    _ => outputs.push(Output { message, tokens, replaced: false }),
                }
            }
            let rooms: Vec<u64> = outputs.iter().map(|output| output.tokens).collect();
            let released = released(&rules, &timeline, &outputs, &rooms, Guards::All);
            prop_assert!(released.is_sorted());
            for (number, &time) in released.iter().enumerate() {
                let first = (outputs[number].message + 1..=kinds.len())
                    .find(|&length| !is_protected(&rules, &timeline, &outputs, number, length));
                prop_assert_eq!(first.unwrap_or(NEVER), time);
            }
        }
    }

    #[test]
    fn responses_that_stand_together_are_one() {
        let transcript = crate::steps::tests::transcript("U Aa Ab Ta Tb A U A");
        assert_eq!(Timeline::new(&transcript, Vec::new()).responses, [1, 5, 7]);
    }
}

//! Which result answers which call.
//!
//! Everything is positional and linear. Ids repeat across turns, can be blank or all the same in real logs, so there
//! is no set of ids: a result answers the **nearest earlier open call** with its id, and within one message equal ids
//! match in order. That is the matching of brackets, which is why a walk from the end ([`crate::backwards`]) finds the
//! same pairs as this one from the start.

use std::ops::Range;

use crate::transcript::{Id, Kind, Transcript};

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is answered in this message.
    In(usize),
    /// Its result is still to come: the list ends in calls with nothing but results after them.
    Running,
    /// It was interrupted.
    Never,
}

/// What the last message of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The newest one: its calls may still be running.
    OfList,
    /// One that others follow.
    OfPart,
}

/// Calls and results, numbered as the table has them ([`Transcript::calls_of`], [`Transcript::results_of`]).
#[derive(Debug)]
pub struct Pairs {
    /// For each call what became of it.
    pub answers: Vec<Answer>,
    /// For each result the call that it answers, if there is one.
    pub answered: Vec<Option<usize>>,
}

impl Pairs {
    /// Pairs the calls and results of a table.
    #[must_use]
    pub fn of(transcript: &Transcript, end: End) -> Self {
        let mut pairs = Self {
            answers: vec![Answer::Never; transcript.calls().len()],
            answered: vec![None; transcript.results().len()],
        };
        let mut open = OpenCalls {
            newest: vec![None; transcript.id_count()],
            older: vec![None; transcript.calls().len()],
        };
        for (index, entry) in transcript.entries().iter().enumerate() {
            for result in transcript.results_of(entry) {
                let call = transcript.results().get(result).and_then(|&id| open.pop(id));
                if let Some(answer) = call.and_then(|call| pairs.answers.get_mut(call)) {
                    *answer = Answer::In(index);
                }
                if let Some(answered) = pairs.answered.get_mut(result) {
                    *answered = call;
                }
            }
            for call in transcript.calls_of(entry).rev() {
                if let Some(&id) = transcript.calls().get(call) {
                    open.push(id, call);
                }
            }
        }
        if end == End::OfList {
            for entry in running_group(transcript)
                .and_then(|group| transcript.entries().get(group))
                .unwrap_or_default()
            {
                for answer in pairs.answers.get_mut(transcript.calls_of(entry)).unwrap_or_default() {
                    if *answer == Answer::Never {
                        *answer = Answer::Running;
                    }
                }
            }
        }
        pairs
    }
}

/// The newest messages with calls, one directly after the other, if nothing but results follows them: calls of these
/// that have no result are still running.
fn running_group(transcript: &Transcript) -> Option<Range<usize>> {
    let entries = transcript.entries();
    let last = entries.iter().rposition(|entry| entry.kind != Kind::Stray || entry.own_text)?;
    let with_calls =
        |&index: &usize| entries.get(index).is_some_and(|entry| !transcript.calls_of(entry).is_empty());
    let first = (0..=last).rev().take_while(with_calls).last()?;
    Some(first..last + 1)
}

/// A stack of open calls for each id.
struct OpenCalls {
    /// For each id the newest open call.
    newest: Vec<Option<usize>>,
    /// For each call the next older open call with its id.
    older: Vec<Option<usize>>,
}

impl OpenCalls {
    fn push(&mut self, id: Id, call: usize) {
        if let (Some(newest), Some(older)) = (self.newest.get_mut(id as usize), self.older.get_mut(call)) {
            *older = newest.replace(call);
        }
    }

    fn pop(&mut self, id: Id) -> Option<usize> {
        let newest = self.newest.get_mut(id as usize)?;
        let call = newest.take()?;
        *newest = self.older.get(call).copied().flatten();
        Some(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::tests::transcript;

    fn pairs(script: &str) -> (Vec<Answer>, Vec<Option<usize>>) {
        let pairs = Pairs::of(&transcript(script), End::OfList);
        (pairs.answers, pairs.answered)
    }

    #[test]
    fn the_nearest_open_call_is_answered_and_within_a_message_the_first() {
        use Answer::{In, Never, Running};
        assert_eq!(pairs("Axx Tx Tx"), (vec![In(1), In(2)], vec![Some(0), Some(1)]));
        assert_eq!(pairs("Ax Ax Tx U"), (vec![Never, In(2)], vec![Some(1)]));
        assert_eq!(pairs("Ax Tx Tx Ax Tx"), (vec![In(1), In(4)], vec![Some(0), None, Some(1)]));
        assert_eq!(pairs("Aab Ta"), (vec![In(1), Running], vec![Some(0)]));
        assert_eq!(pairs("Aab Ta U"), (vec![In(1), Never], vec![Some(0)]));
    }
}

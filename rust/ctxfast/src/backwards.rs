//! Atoms from the newest to the oldest, each message read once and none that is not needed.
//!
//! Walking backwards, results wait for their calls. Where nothing waits any more, an atom begins: the same atoms as
//! [`crate::steps::atoms`] finds, because pairing is a matching of brackets. Results whose call is nowhere are the one
//! case in which the walk has to go to the start of the list before it knows.

use std::ops::Range;

use crate::conversation::Conversation;
use crate::pairs::End;
use crate::part::Role;
use crate::steps::atoms_of;
use crate::transcript::{Kind, Transcript};

/// An atom with what it costs.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub(crate) start: usize,
    pub(crate) kind: Kind,
    pub(crate) own_text: bool,
    pub(crate) tokens: u64,
}

/// Atoms from the newest to the oldest.
pub(crate) struct Backwards {
    /// Where the walk ends.
    leading: usize,
    /// The message that was read last.
    position: usize,
    count: usize,
    /// The messages since the last finished atom, newest first, and their tokens.
    transcript: Transcript,
    tokens: Vec<u64>,
    /// Results that wait for their calls: for each id, and in all.
    waiting: Vec<u32>,
    waiting_in_all: usize,
    /// Atoms that are finished and not handed out, the newest last.
    ready: Vec<Counted>,
    /// Whether everything read so far is results, or the group of calls before them.
    ending: Ending,
}

/// Where the walk stands in relation to calls that may still be running.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Only results so far.
    Results,
    /// In the newest group of messages with calls.
    Group,
    /// Beyond.
    Over,
}

impl Backwards {
    pub(crate) fn new(leading: usize, count: usize) -> Self {
        Self {
            leading,
            position: count,
            count,
            transcript: Transcript::new(),
            tokens: Vec::new(),
            waiting: Vec::new(),
            waiting_in_all: 0,
            ready: Vec::new(),
            ending: Ending::Results,
        }
    }

    pub(crate) fn next<C: Conversation>(
        &mut self,
        conversation: &mut C,
    ) -> Result<Option<Counted>, C::Error> {
        while self.ready.is_empty() && self.position > self.leading {
            self.position -= 1;
            self.tokens.push(conversation.read(self.position, &mut self.transcript)?);
            self.settle();
            if self.waiting_in_all == 0 && !self.goes_on(conversation)? {
                self.finish();
            }
        }
        if self.ready.is_empty() && !self.transcript.entries().is_empty() {
            self.finish(); // results are left whose calls are nowhere
        }
        Ok(self.ready.pop())
    }

    /// Lets the calls of the message that was just read meet the results that wait, and its results wait.
    fn settle(&mut self) {
        self.waiting.resize(self.transcript.id_count(), 0);
        let Some(entry) = self.transcript.entries().last() else {
            return;
        };
        let calls = self.transcript.calls_of(entry);
        for &id in self.transcript.calls().get(calls.clone()).unwrap_or_default() {
            if let Some(waiting) = self.waiting.get_mut(id as usize).filter(|waiting| **waiting > 0) {
                *waiting -= 1;
                self.waiting_in_all -= 1;
            }
        }
        let results = self.transcript.results_of(entry);
        for &id in self.transcript.results().get(results).unwrap_or_default() {
            if let Some(waiting) = self.waiting.get_mut(id as usize) {
                *waiting += 1;
                self.waiting_in_all += 1;
            }
        }
        self.ending = match self.ending {
            Ending::Results if entry.kind == Kind::Stray && !entry.own_text => Ending::Results,
            Ending::Results | Ending::Group if !calls.is_empty() => Ending::Group,
            _ => Ending::Over,
        };
    }

    /// Whether the message before may belong to the same atom although no result waits for it.
    fn goes_on<C: Conversation>(&self, conversation: &mut C) -> Result<bool, C::Error> {
        let Some(kind) = self.transcript.entries().last().map(|entry| entry.kind) else {
            return Ok(false);
        };
        if self.position == self.leading {
            return Ok(false);
        }
        Ok(match kind {
            Kind::System => conversation.role(self.position - 1)? == Role::System,
            Kind::Step if self.ending == Ending::Group => {
                conversation.role(self.position - 1)? == Role::Assistant
            }
            _ => false,
        })
    }

    /// Turns the messages since the last finished atom into atoms.
    fn finish(&mut self) {
        let start = self.position;
        self.transcript.reverse();
        self.tokens.reverse();
        let entries = self.transcript.entries();
        let at_end = start + entries.len() == self.count;
        let mut ready = |messages: Range<usize>, kind| {
            self.ready.push(Counted {
                start: start + messages.start,
                kind,
                own_text: entries
                    .get(messages.clone())
                    .is_some_and(|part| part.iter().any(|entry| entry.own_text)),
                tokens: self.tokens.get(messages).map_or(0, |part| part.iter().sum()),
            });
        };
        if self.waiting_in_all > 0 || (at_end && entries.len() > 1) {
            // a result waited in vain, or calls may be running: the pairing decides
            let end = if at_end { End::OfList } else { End::OfPart };
            for atom in atoms_of(&self.transcript, end) {
                ready(atom.messages, atom.kind);
            }
        } else if let Some(first) = entries.first() {
            // something waited all the time: no cut inside is safe
            ready(0..entries.len(), first.kind);
        }
        self.transcript.clear();
        self.tokens.clear();
        self.waiting.clear();
        self.waiting_in_all = 0;
    }
}

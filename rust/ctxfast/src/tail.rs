//! The fresh tail: the newest messages that fit a budget, with the user messages that they need.
//!
//! The walk starts at the end and stops as soon as the answer is known, so a conversation of 100,000 messages costs
//! no more than one of 100. Only the user message that opened a long turn has to be looked for farther back, and for
//! that a glance at the roles is enough.
//!
//! Walking backwards, results wait for their calls. Where nothing waits any more, an atom begins: the same atoms as
//! [`crate::steps::atoms`] finds, because pairing is a matching of brackets. Results whose call is nowhere are the one
//! case in which the walk has to go to the start of the list before it knows.

use std::ops::Range;

use crate::part::Role;
use crate::steps::{End, atoms_of};
use crate::transcript::{Kind, Transcript};

/// A conversation as the walk needs it: random access to its messages.
pub trait Conversation {
    /// Why a message could not be read.
    type Error;

    /// Number of messages.
    fn count(&self) -> usize;

    /// The role of a message, at a glance.
    ///
    /// # Errors
    /// The message cannot be read.
    fn role(&mut self, index: usize) -> Result<Role, Self::Error>;

    /// Reads a message: appends it to `transcript` and returns its tokens.
    ///
    /// # Errors
    /// The message cannot be read.
    fn read(&mut self, index: usize, transcript: &mut Transcript) -> Result<u64, Self::Error>;

    /// Of a message with the role of a user: whether it has something of its own, and whether it holds tool results.
    ///
    /// # Errors
    /// The message cannot be read.
    fn user(&mut self, index: usize) -> Result<(bool, bool), Self::Error>;

    /// Tokens of a user message without its tool results.
    ///
    /// # Errors
    /// The message cannot be read.
    fn pinned_tokens(&mut self, index: usize) -> Result<u64, Self::Error>;
}

/// What the tail may cost, in tokens.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For any tail.
    pub budget: u64,
    /// For a tail of at most `min_turns` turns.
    pub max_tokens: u64,
    /// How many turns the second limit holds for.
    pub min_turns: usize,
}

/// What was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// System messages at the start of the list, which stay in front and are not counted.
    pub leading: usize,
    /// User messages before the tail that have to be kept with it, ascending: at most the head and the task.
    pub pinned: Vec<usize>,
    /// Index at which the tail starts.
    pub start: usize,
    /// Tokens of the tail and the pinned messages.
    pub tokens: u64,
    /// Turns that the tail touches.
    pub turns: usize,
    /// Whether the tail starts inside a turn.
    pub split_turn: bool,
    /// Whether even the least tail costs more than it may.
    pub over_budget: bool,
}

/// Selects the tail. In this order: the newest atom, always; the task (the newest real user message) and the head (the
/// user message that opens the turn into which the cut falls); then older atoms, whole, while everything together fits.
///
/// # Errors
/// A message cannot be read.
pub fn select<C: Conversation>(conversation: &mut C, limits: Limits) -> Result<Tail, C::Error> {
    let count = conversation.count();
    let mut leading = 0;
    while leading < count && conversation.role(leading)? == Role::System {
        leading += 1;
    }
    let mut walk = Backwards::new(leading, count);
    let mut users = Users { leading, head: Pin::Unknown, task: Pin::Unknown };
    let mut state = State { start: count, ..State::default() };
    let mut chosen = Tail { leading, start: count, ..Tail::default() };
    let mut first = true;
    while let Some(atom) = walk.next(conversation)? {
        state.add(&atom);
        let mut next = users.tail(conversation, &state)?;
        if first {
            if next.pinned.len() > 1 && next.tokens > limits.of(next.turns) {
                // the head does not fit beside the task
                next.pinned.remove(0);
                next.tokens = state.tokens + users.task.tokens();
                next.over_budget = next.tokens > limits.of(next.turns);
                return Ok(next);
            }
            next.over_budget = next.tokens > limits.of(next.turns);
        }
        if !first && next.tokens > limits.of(next.turns) {
            break;
        }
        chosen = next;
        if chosen.over_budget {
            break;
        }
        first = false;
    }
    Ok(chosen)
}

impl Limits {
    fn of(&self, turns: usize) -> u64 {
        if turns <= self.min_turns { self.max_tokens } else { self.budget }
    }
}

/// The tail as it grows.
#[derive(Debug, Default)]
struct State {
    start: usize,
    tokens: u64,
    /// Turns that begin in the tail.
    turns: usize,
    /// What the tail begins with, system messages aside.
    opener: Option<Kind>,
    /// Whether the newest real user message is in it.
    has_task: bool,
}

impl State {
    fn add(&mut self, atom: &Counted) {
        self.start = atom.start;
        self.tokens += atom.tokens;
        self.turns += usize::from(atom.kind == Kind::User);
        self.has_task |= atom.own_text;
        if atom.kind != Kind::System {
            self.opener = Some(atom.kind);
        }
    }
}

/// The user messages before the tail, found by looking back, each once.
struct Users {
    leading: usize,
    head: Pin,
    task: Pin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pin {
    Unknown,
    None,
    At { index: usize, has_results: bool, tokens: u64 },
}

impl Pin {
    fn tokens(self) -> u64 {
        if let Pin::At { tokens, .. } = self { tokens } else { 0 }
    }

    /// Whether what is known still holds for a tail that starts at `start`.
    fn holds(self, start: usize) -> bool {
        match self {
            Pin::Unknown => false,
            Pin::None => true,
            Pin::At { index, .. } => index < start,
        }
    }
}

impl Users {
    fn tail<C: Conversation>(&mut self, conversation: &mut C, state: &State) -> Result<Tail, C::Error> {
        let mut tail = Tail {
            leading: self.leading,
            start: state.start,
            tokens: state.tokens,
            turns: state.turns,
            ..Tail::default()
        };
        if !state.has_task && !self.task.holds(state.start) {
            self.task = self.look_back(conversation, state.start, Wanted::Any)?;
        }
        let task = if state.has_task { Pin::None } else { self.task };
        if state.opener != Some(Kind::User) {
            if !self.head.holds(state.start) {
                self.head = match task {
                    Pin::At { has_results: false, .. } => task,
                    Pin::At { index, .. } => self.look_back(conversation, index, Wanted::WithoutResults)?,
                    _ => self.look_back(conversation, state.start, Wanted::WithoutResults)?,
                };
            }
            if tail.pin(self.head) {
                tail.turns += 1;
                tail.split_turn = true;
            }
        }
        if task != self.head || tail.pinned.is_empty() {
            tail.pin(task);
        }
        Ok(tail)
    }

    /// The newest real user message before `start` that is wanted.
    fn look_back<C: Conversation>(
        &self,
        conversation: &mut C,
        start: usize,
        wanted: Wanted,
    ) -> Result<Pin, C::Error> {
        for index in (self.leading..start).rev() {
            if conversation.role(index)? == Role::User {
                let (own_text, has_results) = conversation.user(index)?;
                if own_text && (wanted == Wanted::Any || !has_results) {
                    return Ok(Pin::At { index, has_results, tokens: conversation.pinned_tokens(index)? });
                }
            }
        }
        Ok(Pin::None)
    }
}

/// Which user messages are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Any,
    WithoutResults,
}

impl Tail {
    /// Keeps a user message with the tail, if there is one.
    fn pin(&mut self, user: Pin) -> bool {
        let Pin::At { index, tokens, .. } = user else {
            return false;
        };
        self.pinned.push(index);
        self.tokens += tokens;
        true
    }
}

/// An atom with what it costs.
#[derive(Clone, Debug)]
struct Counted {
    start: usize,
    kind: Kind,
    own_text: bool,
    tokens: u64,
}

/// Atoms from the newest to the oldest.
struct Backwards {
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
    fn new(leading: usize, count: usize) -> Self {
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

    fn next<C: Conversation>(&mut self, conversation: &mut C) -> Result<Option<Counted>, C::Error> {
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
        let calls = self.transcript.calls(entry);
        for &id in calls {
            if let Some(waiting) = self.waiting.get_mut(id as usize).filter(|waiting| **waiting > 0) {
                *waiting -= 1;
                self.waiting_in_all -= 1;
            }
        }
        for &id in self.transcript.results(entry) {
            if let Some(waiting) = self.waiting.get_mut(id as usize) {
                *waiting += 1;
                self.waiting_in_all += 1;
            }
        }
        self.ending = match self.ending {
            Ending::Results if entry.kind == Kind::Stray => Ending::Results,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::{atoms, tests as script};
    use proptest::prelude::*;

    /// A conversation in the short form of the tests of [`crate::steps`]; every message has its place's weight.
    struct Script<'a> {
        words: Vec<&'a str>,
        read: usize,
    }

    impl Conversation for Script<'_> {
        type Error = std::convert::Infallible;

        fn count(&self) -> usize {
            self.words.len()
        }

        fn role(&mut self, index: usize) -> Result<Role, Self::Error> {
            Ok(match &self.words[index][..1] {
                "S" => Role::System,
                "U" | "M" => Role::User,
                "A" => Role::Assistant,
                "T" => Role::Result,
                _ => Role::Other,
            })
        }

        fn read(&mut self, index: usize, transcript: &mut Transcript) -> Result<u64, Self::Error> {
            self.read += 1;
            script::add(transcript, self.words[index]);
            Ok(10)
        }

        fn user(&mut self, index: usize) -> Result<(bool, bool), Self::Error> {
            Ok((true, self.words[index].len() > 1))
        }

        fn pinned_tokens(&mut self, _: usize) -> Result<u64, Self::Error> {
            Ok(10)
        }
    }

    fn tail(words: &str, budget: u64) -> (Tail, usize) {
        let mut conversation = Script { words: words.split_whitespace().collect(), read: 0 };
        let limits = Limits { budget, max_tokens: budget, min_turns: 2 };
        let tail = select(&mut conversation, limits).unwrap();
        (tail, conversation.read)
    }

    #[test]
    fn the_head_of_a_split_turn_is_pinned() {
        let (tail, _) = tail("S U Aa Ta Ab Tb A U Ac Tc", 60);
        assert_eq!(
            (tail.start, tail.pinned, tail.tokens, tail.turns, tail.split_turn),
            (6, vec![1], 50, 2, true)
        );
    }

    #[test]
    fn the_cut_moves_to_the_next_turn_if_the_head_does_not_fit() {
        let (tail, _) = tail("U Aa Ta Ab Tb A U Ac Tc", 40);
        assert_eq!((tail.start, tail.pinned, tail.split_turn), (6, vec![], false));
    }

    #[test]
    fn the_task_is_pinned_even_over_budget() {
        let (tail, _) = tail("U Aa Ta Ab Tb", 20);
        assert_eq!((tail.start, tail.pinned, tail.tokens, tail.over_budget), (3, vec![0], 30, true));
    }

    #[test]
    fn the_walk_stops_early() {
        let long = "U ".to_owned() + &"Ax Tx ".repeat(50_000);
        let (tail, read) = tail(&long, 100);
        assert_eq!((tail.start, tail.pinned, tail.tokens), (100_001 - 8, vec![0], 90));
        assert!(read < 20, "{read} messages read");
    }

    #[test]
    fn an_empty_conversation_and_one_of_system_messages() {
        assert_eq!(tail("", 10).0, Tail::default());
        assert_eq!(tail("S S", 10).0, Tail { leading: 2, start: 2, ..Tail::default() });
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn backwards_finds_the_atoms_that_forwards_finds(
            words in prop::collection::vec("S|U|A[ab_]{0,3}|T[ab_]{1,3}|M[ab]|O", 0..14)
        ) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let leading = words.iter().take_while(|word| **word == "S").count();
            let expected: Vec<_> = atoms(&script::transcript(&words.join(" ")))
                .into_iter()
                .filter(|atom| atom.messages.start >= leading)
                .map(|atom| (atom.messages.start, atom.kind))
                .rev()
                .collect();
            let count = words.len();
            let mut conversation = Script { words, read: 0 };
            let mut walk = Backwards::new(leading, count);
            let mut found = Vec::new();
            while let Some(atom) = walk.next(&mut conversation).unwrap() {
                found.push((atom.start, atom.kind));
            }
            prop_assert_eq!(found, expected);
        }
    }
}

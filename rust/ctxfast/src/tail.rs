//! The fresh tail: the newest messages that fit a budget, with the user messages that they need.
//!
//! The walk starts at the end and stops as soon as the answer is known, so a conversation of 100,000 messages costs
//! no more than one of 100. Only the user message that opened a long turn has to be looked for farther back, and for
//! that a glance at the roles is enough.

use crate::backwards::{Backwards, Counted};
use crate::conversation::Conversation;
use crate::part::Role;
use crate::transcript::Kind;

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

/// Selects the tail. In this order: the newest atom, always; the task (the newest real user message); the head (the user
/// message that opens the turn into which the cut falls), unless it does not fit; older atoms, whole, while everything
/// fits.
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
    let mut users = Users { leading, head: Pin::Unknown, task: Pin::Unknown, dropped: None };
    let mut state = State { start: count, ..State::default() };
    let mut chosen = Tail { leading, start: count, ..Tail::default() };
    let mut is_newest = true;
    while let Some(atom) = walk.next(conversation)? {
        state.add(&atom);
        let mut next = users.tail(conversation, &state)?;
        if is_newest {
            if next.tokens > limits.of(next.turns) && users.drop_head() {
                next = users.tail(conversation, &state)?;
            }
            next.over_budget = next.tokens > limits.of(next.turns);
        } else if next.tokens > limits.of(next.turns) {
            break;
        }
        is_newest = false;
        chosen = next;
        if chosen.over_budget {
            break;
        }
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
    /// A head that does not fit.
    dropped: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pin {
    Unknown,
    None,
    At { index: usize, opens_turn: bool, tokens: u64 },
}

impl Pin {
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
                    Pin::At { opens_turn: true, .. } => task,
                    Pin::At { index, .. } => {
                        self.continue_back(conversation, index, true, Wanted::OpensTurn)?
                    }
                    _ => self.look_back(conversation, state.start, Wanted::OpensTurn)?,
                };
            }
            if let Pin::At { index, .. } = self.head {
                tail.turns += 1;
                tail.split_turn = true;
                if self.dropped != Some(index) {
                    tail.pin(self.head);
                }
            }
        }
        if task != self.head || !tail.split_turn {
            tail.pin(task);
        }
        Ok(tail)
    }

    /// Leaves out the head, unless it is the task. Returns whether there is one to leave out.
    fn drop_head(&mut self) -> bool {
        let Pin::At { index, .. } = self.head else { return false };
        if self.head == self.task {
            return false;
        }
        self.dropped = Some(index);
        true
    }

    /// The newest real user message before `start` that is wanted.
    ///
    /// One that holds tool results, or stands directly before some, came in the middle of a step: it opens no turn.
    fn look_back<C: Conversation>(
        &self,
        conversation: &mut C,
        start: usize,
        wanted: Wanted,
    ) -> Result<Pin, C::Error> {
        let before_results = start < conversation.count() && holds_results(conversation, start)?;
        self.continue_back(conversation, start, before_results, wanted)
    }

    #[inline]
    fn continue_back<C: Conversation>(
        &self,
        conversation: &mut C,
        start: usize,
        mut before_results: bool,
        wanted: Wanted,
    ) -> Result<Pin, C::Error> {
        for index in (self.leading..start).rev() {
            match conversation.role(index)? {
                Role::Result => before_results = true,
                Role::User => {
                    let (own_text, has_results) = conversation.user(index)?;
                    before_results |= has_results;
                    let opens_turn = own_text && !before_results;
                    if opens_turn || (own_text && wanted == Wanted::Any) {
                        return Ok(Pin::At { index, opens_turn, tokens: conversation.pinned_tokens(index)? });
                    }
                }
                _ => before_results = false,
            }
        }
        Ok(Pin::None)
    }
}

fn holds_results<C: Conversation>(conversation: &mut C, index: usize) -> Result<bool, C::Error> {
    Ok(match conversation.role(index)? {
        Role::Result => true,
        Role::User => conversation.user(index)?.1,
        _ => false,
    })
}

/// Which user messages are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Any,
    OpensTurn,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::{atoms, tests as script};
    use crate::transcript::Transcript;
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

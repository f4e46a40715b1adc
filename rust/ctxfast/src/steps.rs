//! What belongs together: atoms, turns, steps and safe cuts. All of it linear, from the pairs of [`crate::pairs`].

use std::ops::Range;

use crate::pairs::{Answer, End, Pairs};
use crate::transcript::{Kind, Transcript};

/// A run of messages that is kept or dropped whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    /// Indices of its messages.
    pub messages: Range<usize>,
    /// The kind of its first message.
    pub kind: Kind,
}

/// For each index 0 to n: whether a cut there would part a call from its result.
///
/// The result of a call that is still running is still to come: it counts as standing at n.
fn inside_a_step(transcript: &Transcript, end: End) -> Vec<bool> {
    let n = transcript.entries().len();
    let pairs = Pairs::of(transcript, end);
    let mut reach = 0; // the farthest message that answers a call seen so far
    let mut inside = Vec::with_capacity(n + 1);
    for (index, entry) in transcript.entries().iter().enumerate() {
        inside.push(index > 0 && index <= reach);
        for answer in pairs.answers.get(transcript.calls_of(entry)).unwrap_or_default() {
            reach = match *answer {
                Answer::In(message) => reach.max(message),
                Answer::Running => n,
                Answer::Never => reach,
            };
        }
    }
    inside.push(n > 0 && n <= reach);
    inside
}

/// The conversation as atoms: a run of system messages, a user message, or a step, which is an assistant message with
/// everything up to its last result. Steps that overlap are one atom. Results whose call is nowhere go with the step
/// before them.
#[must_use]
pub fn atoms(transcript: &Transcript) -> Vec<Atom> {
    atoms_of(transcript, End::OfList)
}

/// Atoms of a conversation, or of a part of one that begins and ends between atoms.
pub(crate) fn atoms_of(transcript: &Transcript, end: End) -> Vec<Atom> {
    let mut atoms: Vec<Atom> = Vec::new();
    for (index, (entry, inside)) in
        transcript.entries().iter().zip(inside_a_step(transcript, end)).enumerate()
    {
        match atoms.last_mut() {
            Some(last) if inside || goes_with(entry.kind, last.kind) => last.messages.end = index + 1,
            _ => atoms.push(Atom { messages: index..index + 1, kind: entry.kind }),
        }
    }
    atoms
}

/// Whether a message joins the atom before it although no call connects them.
fn goes_with(kind: Kind, previous: Kind) -> bool {
    matches!((kind, previous), (Kind::System, Kind::System) | (Kind::Stray, Kind::Step | Kind::Stray))
}

/// Where atoms of one kind start.
#[must_use]
pub fn starts(transcript: &Transcript, kind: Kind) -> Vec<usize> {
    atoms(transcript).into_iter().filter(|atom| atom.kind == kind).map(|atom| atom.messages.start).collect()
}

/// All safe cuts, 0 to n.
#[must_use]
pub fn safe_cuts(transcript: &Transcript) -> Vec<usize> {
    let inside = inside_a_step(transcript, End::OfList);
    inside.into_iter().enumerate().filter(|&(_, inside)| !inside).map(|(index, _)| index).collect()
}

/// Of ascending `cuts`: the largest in 1 to `target`, else the next one below `n`, else 0.
#[must_use]
pub fn nearest_cut(cuts: impl IntoIterator<Item = usize>, target: usize, n: usize) -> usize {
    let mut before = 0;
    for cut in cuts {
        if cut <= target {
            before = cut;
        } else if before == 0 && cut < n {
            return cut;
        } else {
            break;
        }
    }
    before
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::text::Text;

    /// A conversation in short: `U` user, `S` system, `Aab` assistant with calls a and b, `Ta` result of a, `Mab` user
    /// message with results and text of its own, `_` a blank id.
    pub(crate) fn transcript(script: &str) -> Transcript {
        let mut transcript = Transcript::new();
        for word in script.split_whitespace() {
            add(&mut transcript, word);
        }
        transcript
    }

    pub(crate) fn add(transcript: &mut Transcript, word: &str) {
        let (role, ids) = word.split_at(1);
        transcript.open();
        for (place, id) in ids.char_indices() {
            let id = (id != '_').then(|| Text::from(&ids[place..=place]));
            if role == "A" { transcript.call(id) } else { transcript.result(id) }
        }
        let kind = match role {
            "S" => Kind::System,
            "U" => Kind::User,
            "A" => Kind::Step,
            "T" | "M" => Kind::Stray,
            _ => Kind::Other,
        };
        transcript.close(kind, role == "U" || role == "M");
    }

    /// Where atoms start, and n.
    fn borders(script: &str) -> Vec<usize> {
        let atoms = atoms(&transcript(script));
        let ends = atoms.last().map(|atom| atom.messages.end);
        atoms.iter().map(|atom| atom.messages.start).chain(ends).collect()
    }

    #[test]
    fn a_step_reaches_to_its_last_result() {
        assert_eq!(borders("S S U Aab Tb Ta A U"), [0, 2, 3, 6, 7, 8]);
        assert_eq!(safe_cuts(&transcript("U Aab Tb Ta A")), [0, 1, 4, 5]);
    }

    #[test]
    fn a_user_message_inside_a_step_belongs_to_it() {
        assert_eq!(borders("U Aa U Ta A"), [0, 1, 4, 5]);
        assert_eq!(borders("U Aa Ma Ab Tb"), [0, 1, 3, 5]);
        assert_eq!(starts(&transcript("U Aa Ma Ab Tb U"), Kind::User), [0, 5]);
    }

    #[test]
    fn steps_that_overlap_are_one_atom() {
        assert_eq!(borders("Aa Ab Tb Ta"), [0, 4]);
        assert_eq!(borders("Aa Ab Ta Tb"), [0, 4]);
    }

    #[test]
    fn equal_ids_pair_by_position() {
        assert_eq!(borders("Ax Tx Ax Tx Ax Tx"), [0, 2, 4, 6]);
        assert_eq!(borders("Ax Ax Tx Tx"), [0, 4]);
        assert_eq!(borders("A__ T_ T_ A_ T_"), [0, 3, 5]);
    }

    #[test]
    fn a_running_call_makes_the_end_unsafe() {
        assert_eq!(safe_cuts(&transcript("U Aab Ta")), [0, 1]);
        assert_eq!(safe_cuts(&transcript("U Aa")), [0, 1]);
        assert_eq!(safe_cuts(&transcript("U Aa Ab Tb")), [0, 1]);
        // the user has spoken since: the call was interrupted
        assert_eq!(safe_cuts(&transcript("U Aa U")), [0, 1, 2, 3]);
        // the model has gone on without it
        assert_eq!(safe_cuts(&transcript("U Aa Ab Tb Ac Tc")), [0, 1, 2, 4, 6]);
    }

    #[test]
    fn results_without_a_call_go_with_the_step_before() {
        assert_eq!(borders("Tx Ty U Aa Ta Ta A Tz"), [0, 2, 3, 6, 8]);
    }

    #[test]
    fn the_nearest_cut_is_never_the_end_unless_asked_for() {
        let cuts = safe_cuts(&transcript("Aab Ta Tb A"));
        assert_eq!(cuts, [0, 3, 4]);
        let nearest = |target| nearest_cut(cuts.iter().copied(), target, 4);
        assert_eq!([nearest(0), nearest(1), nearest(3), nearest(4), nearest(9)], [3, 3, 3, 4, 4]);
        assert_eq!(nearest_cut([0, 2], 1, 2), 0);
    }
}

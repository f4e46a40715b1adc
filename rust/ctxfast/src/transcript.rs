//! The compact table of a conversation: one small entry for each message, ids as numbers.

use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::DefaultHashBuilder;
use hashbrown::hash_table::{Entry as TableEntry, HashTable};

use crate::part::Role;
use crate::text::Text;

/// What an atom is that begins with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A system or developer message: a run of them is one atom.
    System,
    /// A user message without tool results: it opens a turn, unless it stands inside a step.
    User,
    /// An assistant message: it opens a step.
    Step,
    /// Tool results, perhaps with text of the user. They belong to a step, unless their calls are nowhere.
    Stray,
    /// Anything else.
    Other,
}

impl Kind {
    /// The kind of a message of a role.
    #[must_use]
    pub fn of(role: Role, has_results: bool) -> Self {
        match role {
            Role::System => Self::System,
            Role::Assistant => Self::Step,
            _ if has_results => Self::Stray,
            Role::User => Self::User,
            _ => Self::Other,
        }
    }
}

/// What the structure of a conversation needs to know of one message.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What an atom is that begins here.
    pub kind: Kind,
    /// A user message that says something, be it beside tool results: it can be the task.
    pub own_text: bool,
    calls: Range<usize>,
    results: Range<usize>,
}

/// The table. Messages are [opened](Transcript::open) one by one and then get their calls and results.
#[derive(Debug, Default)]
pub struct Transcript {
    entries: Vec<Entry>,
    calls: Vec<Id>,
    results: Vec<Id>,
    ids: Ids,
}

/// An id as a number. Equal ids have equal numbers.
pub type Id = u32;

/// Missing and blank ids are all this one.
pub const BLANK: Id = 0;

impl Transcript {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins the next message. Its kind can be set when it has been read whole.
    pub fn open(&mut self) {
        let (calls, results) = (self.calls.len(), self.results.len());
        self.entries.push(Entry {
            kind: Kind::Other,
            own_text: false,
            calls: calls..calls,
            results: results..results,
        });
    }

    /// A call of the newest message that waits for a result.
    pub fn call(&mut self, id: Option<Text<'_>>) {
        let id = self.ids.number(id);
        self.calls.push(id);
        if let Some(entry) = self.entries.last_mut() {
            entry.calls.end = self.calls.len();
        }
    }

    /// A result that the newest message holds.
    pub fn result(&mut self, id: Option<Text<'_>>) {
        let id = self.ids.number(id);
        self.results.push(id);
        if let Some(entry) = self.entries.last_mut() {
            entry.results.end = self.results.len();
        }
    }

    /// Closes the newest message: says what it is.
    pub fn close(&mut self, kind: Kind, own_text: bool) {
        if let Some(entry) = self.entries.last_mut() {
            entry.kind = kind;
            entry.own_text = own_text;
        }
    }

    /// Turns the order of the messages round, for those who read a conversation from its end.
    pub fn reverse(&mut self) {
        self.entries.reverse();
    }

    /// Forgets all messages and ids, keeps the memory.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.calls.clear();
        self.results.clear();
        self.ids.clear();
    }

    /// All messages.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The ids of all calls. In a table filled from the start they are in the order of the messages.
    #[must_use]
    pub fn calls(&self) -> &[Id] {
        &self.calls
    }

    /// The ids of all results.
    #[must_use]
    pub fn results(&self) -> &[Id] {
        &self.results
    }

    /// The calls of a message, in order, as places in [`Transcript::calls`].
    #[must_use]
    pub fn calls_of(&self, entry: &Entry) -> Range<usize> {
        entry.calls.clone()
    }

    /// The results in a message, in order, as places in [`Transcript::results`].
    #[must_use]
    pub fn results_of(&self, entry: &Entry) -> Range<usize> {
        entry.results.clone()
    }

    /// The text of an id; empty for the blank one.
    #[must_use]
    pub fn id_text(&self, id: Id) -> String {
        self.ids.text(id)
    }

    /// How many different ids there are, the blank one included.
    #[must_use]
    pub fn id_count(&self) -> usize {
        self.ids.len()
    }
}

/// Numbers for ids, from 1 on.
#[derive(Debug, Default)]
struct Ids {
    /// The keys of all ids, one after the other, and where each ends.
    keys: Vec<u8>,
    ends: Vec<usize>,
    /// Hashes and numbers by key, once there are more than a few.
    table: HashTable<(u64, Id)>,
    hasher: DefaultHashBuilder,
    key: Vec<u8>,
}

impl Ids {
    /// So many ids are looked through from the newest; a table for them would cost more than it saves.
    const FEW: usize = 8;

    fn number(&mut self, id: Option<Text<'_>>) -> Id {
        let Some(id) = id.filter(|id| !id.is_blank()) else { return BLANK };
        write_key(id, &mut self.key);
        let Self { keys, ends, table, hasher, key } = self;
        let last = ends.len();
        let number = number_at(last);
        if last < Self::FEW {
            if let Some(place) = (0..last).rev().find(|&place| key_at(keys, ends, place) == key) {
                return number_at(place);
            }
        } else {
            if table.is_empty() {
                for place in 0..last {
                    let hash = hasher.hash_one(key_at(keys, ends, place));
                    table.insert_unique(hash, (hash, number_at(place)), |&(hash, _)| hash);
                }
            }
            let hash = hasher.hash_one(key.as_slice());
            let is_key = |&(_, number): &(u64, Id)| key_at(keys, ends, number as usize - 1) == key;
            match table.entry(hash, is_key, |&(hash, _)| hash) {
                TableEntry::Occupied(known) => return known.get().1,
                TableEntry::Vacant(place) => drop(place.insert((hash, number))),
            }
        }
        keys.extend_from_slice(key);
        ends.push(keys.len());
        number
    }

    fn len(&self) -> usize {
        1 + self.ends.len()
    }

    fn text(&self, id: Id) -> String {
        let Some(place) = (id as usize).checked_sub(1) else { return String::new() };
        let Some((&wide, key)) = key_at(&self.keys, &self.ends, place).split_last() else {
            return String::new();
        };
        let char = |point| char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
        if wide == 0 {
            return key.iter().map(|&byte| char::from(byte)).collect();
        }
        key.chunks_exact(4)
            .map(|bytes| char(u32::from_le_bytes(bytes.try_into().unwrap_or_default())))
            .collect()
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.ends.clear();
        self.table.clear();
    }
}

fn key_at<'k>(keys: &'k [u8], ends: &[usize], place: usize) -> &'k [u8] {
    let start = place.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    ends.get(place).and_then(|&end| keys.get(start..end)).unwrap_or_default()
}

/// Bytes that are equal exactly for equal texts, however they are stored: Latin-1 where that is enough, else four
/// bytes a code point, and which of the two it is.
fn write_key(id: Text<'_>, key: &mut Vec<u8>) {
    key.clear();
    let mut wide = false;
    if let Text::Ucs1(units) = id {
        key.extend_from_slice(units);
    } else {
        id.each_point(|point| wide |= point > 0xff);
        id.each_point(|point| {
            let bytes = point.to_le_bytes();
            key.extend_from_slice(if wide { &bytes } else { bytes.get(..1).unwrap_or_default() });
        });
    }
    key.push(wide.into());
}

fn number_at(place: usize) -> Id {
    Id::try_from(place + 1).unwrap_or(Id::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ids_have_equal_numbers_however_many_there_are() {
        let mut ids = Ids::default();
        let names: Vec<String> = (0..100).map(|n| format!("call_{n}")).collect();
        let numbers: Vec<Id> = names.iter().map(|name| ids.number(Some(name.as_str().into()))).collect();
        assert_eq!(numbers, (1..=100).collect::<Vec<Id>>());
        assert_eq!(ids.number(Some(Text::Ucs1(b"call_7"))), 8);
        assert_eq!(ids.number(None), BLANK);
        assert_eq!(ids.number(Some(" \u{1f}\u{a0}".into())), BLANK);
        assert_eq!(ids.len(), 101);
        assert_eq!(ids.text(8), "call_7");
        assert_eq!(ids.text(BLANK), "");
    }

    #[test]
    fn storage_does_not_matter_and_contents_does() {
        let mut ids = Ids::default();
        let wide = ids.number(Some(Text::Ucs2(&[0x100])));
        assert_eq!(ids.number(Some("\u{100}".into())), wide);
        assert_eq!(ids.text(wide), "\u{100}");
        assert_ne!(ids.number(Some(Text::Ucs1(&[0, 1, 0, 0]))), wide);
        assert_eq!(ids.number(Some("é".into())), ids.number(Some(Text::Ucs1(&[0xe9]))));
    }
}

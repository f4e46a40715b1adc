//! The tokens of a conversation, message by message: totals without counting anything again.
//!
//! A [`Ledger`] holds a number and perhaps a [`Mark`] for each message, and the sum. It knows no message: what was
//! counted before is recognised by its mark, wherever it stands now. What a sum means against a budget (a bound, the
//! frame of a request) is the caller's.

use std::num::NonZeroU64;

use hashbrown::HashMap;

/// Stands for all that a counter sees of a message: messages with equal marks have equal tokens.
pub type Mark = NonZeroU64;

/// What is kept of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// what it costs
    pub tokens: u64,
    /// by what it is recognised; `None`: it is not
    pub mark: Option<Mark>,
}

/// The tokens of each message, and their sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    entries: Vec<Entry>,
    sum: u64,
}

impl From<Vec<Entry>> for Ledger {
    fn from(entries: Vec<Entry>) -> Self {
        let sum = sum(&entries);
        Self { entries, sum }
    }
}

impl Ledger {
    /// One more message at the end.
    pub fn push(&mut self, entry: Entry) {
        self.sum = self.sum.saturating_add(entry.tokens);
        self.entries.push(entry);
    }

    /// More messages at the end.
    pub fn extend(&mut self, entries: &[Entry]) {
        self.sum = self.sum.saturating_add(sum(entries));
        self.entries.extend_from_slice(entries);
    }

    /// Another message in place of one; `None`: there is none at this index.
    pub fn replace(&mut self, index: usize, entry: Entry) -> Option<()> {
        let old = self.entries.get_mut(index)?;
        self.sum = self.sum.saturating_sub(old.tokens).saturating_add(entry.tokens);
        *old = entry;
        Some(())
    }

    /// Keeps the first `length` messages; all, if there are fewer.
    pub fn truncate(&mut self, length: usize) {
        self.sum = self.sum.saturating_sub(sum(self.entries.get(length..).unwrap_or_default()));
        self.entries.truncate(length);
    }

    /// All messages, in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The tokens of all messages.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The index of the first message of the longest suffix that has at most `most` tokens. Walks back from the end and
    /// stops where it is too much.
    #[must_use]
    pub fn start_within(&self, most: u64) -> usize {
        if self.sum <= most {
            return 0;
        }
        let mut room = most;
        let fits = |entry: &&Entry| {
            let left = room.checked_sub(entry.tokens);
            room = left.unwrap_or(room);
            left.is_some()
        };
        self.entries.len() - self.entries.iter().rev().take_while(fits).count()
    }
}

fn sum(entries: &[Entry]) -> u64 {
    entries.iter().fold(0, |sum, entry| sum.saturating_add(entry.tokens))
}

/// What was counted before, to be recognised in a list that may have changed.
#[derive(Debug, Default)]
pub struct Known {
    entries: Vec<Entry>,
    by_mark: Option<HashMap<Mark, u64>>,
}

impl Known {
    /// These messages, in the order in which they stood.
    #[must_use]
    pub fn new(entries: Vec<Entry>) -> Self {
        Self { entries, by_mark: None }
    }

    /// The tokens of the message with this mark, if there was one. It is looked for at `index` first: most lists only
    /// grow.
    pub fn tokens(&mut self, index: usize, mark: Mark) -> Option<u64> {
        if let Some(entry) = self.entries.get(index)
            && entry.mark == Some(mark)
        {
            return Some(entry.tokens);
        }
        let marked = |entry: &Entry| entry.mark.map(|mark| (mark, entry.tokens));
        let by_mark = self.by_mark.get_or_insert_with(|| self.entries.iter().filter_map(marked).collect());
        by_mark.get(&mark).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Small numbers, so that sums meet budgets; few marks, each of which always has the same tokens.
    fn entries() -> impl Strategy<Value = Vec<Entry>> {
        let entry = (0_u64..9, any::<bool>()).prop_map(|(number, marked)| Entry {
            tokens: number / 2,
            mark: if marked { Mark::new(number) } else { None },
        });
        prop::collection::vec(entry, 0..9)
    }

    #[derive(Clone, Debug)]
    enum Change {
        Push(Entry),
        Extend(Vec<Entry>),
        Replace(usize, Entry),
        Truncate(usize),
    }

    fn change() -> impl Strategy<Value = Change> {
        let entry = || (0_u64..9).prop_map(|tokens| Entry { tokens, mark: None });
        prop_oneof![
            entry().prop_map(Change::Push),
            entries().prop_map(Change::Extend),
            (0_usize..12, entry()).prop_map(|(index, entry)| Change::Replace(index, entry)),
            (0_usize..12).prop_map(Change::Truncate),
        ]
    }

    /// The suffix rule to the letter: every suffix is added up.
    fn naive_start(entries: &[Entry], most: u64) -> usize {
        (0..=entries.len()).find(|&start| sum(&entries[start..]) <= most).unwrap()
    }

    #[test]
    fn an_empty_ledger() {
        let mut ledger = Ledger::default();
        assert_eq!((ledger.sum(), ledger.start_within(0), ledger.entries().len()), (0, 0, 0));
        assert_eq!(ledger.replace(0, Entry { tokens: 1, mark: None }), None);
        ledger.truncate(5);
        assert_eq!(ledger, Ledger::default());
    }

    #[test]
    fn a_message_without_tokens_fits_behind_one_that_does_not() {
        let entry = |tokens| Entry { tokens, mark: None };
        let ledger = Ledger::from(vec![entry(0), entry(5), entry(0), entry(0)]);
        assert_eq!(ledger.start_within(4), 2);
        assert_eq!(ledger.start_within(5), 0);
    }

    proptest! {
        #[test]
        fn totals_are_those_of_a_recount(changes in prop::collection::vec(change(), 0..12), most in 0_u64..60) {
            let mut ledger = Ledger::default();
            let mut model: Vec<Entry> = Vec::new();
            for change in changes {
                match change {
                    Change::Push(entry) => {
                        ledger.push(entry);
                        model.push(entry);
                    }
                    Change::Extend(entries) => {
                        ledger.extend(&entries);
                        model.extend(entries);
                    }
                    Change::Replace(index, entry) => {
                        let replaced = ledger.replace(index, entry);
                        prop_assert_eq!(replaced.is_some(), index < model.len());
                        if index < model.len() {
                            model[index] = entry;
                        }
                    }
                    Change::Truncate(length) => {
                        ledger.truncate(length);
                        model.truncate(length);
                    }
                }
                prop_assert_eq!(ledger.entries(), &model);
                prop_assert_eq!(ledger.sum(), sum(&model));
                prop_assert_eq!(ledger.start_within(most), naive_start(&model, most));
                prop_assert_eq!(&ledger, &Ledger::from(model.clone()));
            }
        }

        #[test]
        fn what_was_there_is_recognised_wherever_it_stands(old in entries(), new in entries()) {
            let mut known = Known::new(old.clone());
            for (index, entry) in new.iter().enumerate() {
                if let Some(mark) = entry.mark {
                    let expected = old.iter().find(|old| old.mark == Some(mark)).map(|old| old.tokens);
                    prop_assert_eq!(known.tokens(index, mark), expected);
                }
            }
        }
    }
}

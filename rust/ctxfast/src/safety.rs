//! How much estimates are raised, so that the true number is seldom larger.

use crate::estimate::Family;

/// How sure a count shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Safety {
    /// The middle: too low as often as too high.
    Middle,
    /// Totals of lists are raised by 3 %, single texts are the middle.
    Totals,
    /// Not too low for 95 of 100 documents.
    P95,
    /// Not too low for 99 of 100.
    P99,
}

/// `tokens * (1 + share) + root * sqrt(tokens)`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    share: f64,
    root: f64,
}

impl Margin {
    /// Nothing is added.
    pub const NONE: Margin = Margin { share: 0.0, root: 0.0 };

    /// Errors of documents are nearly independent, so those of a sum are small: of sums of 40 documents 95 in 100 were
    /// at most 1.0 to 1.9 % too low, by family.
    const OF_TOTALS: Margin = Margin { share: 0.03, root: 0.0 };

    /// Adds the margin, rounded up.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts are far below 2^53"
    )]
    pub fn add_to(self, tokens: u64) -> u64 {
        if self == Margin::NONE {
            return tokens;
        }
        let tokens = tokens as f64;
        (tokens + tokens * self.share + self.root * tokens.sqrt()).ceil() as u64
    }

    /// The largest number that is not above `limit` with the margin.
    #[must_use]
    pub fn most_within(self, limit: u64) -> u64 {
        if self == Margin::NONE {
            return limit;
        }
        let (mut low, mut high) = (0, limit);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.add_to(middle) <= limit {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }
}

impl Safety {
    /// The margin of a single text or message.
    #[must_use]
    pub fn of_one(self, family: Family) -> Margin {
        match self {
            Safety::Middle | Safety::Totals => Margin::NONE,
            Safety::P95 => of_documents(family).0,
            Safety::P99 => of_documents(family).1,
        }
    }

    /// The margin of the total of a list.
    #[must_use]
    pub fn of_total(self, family: Family) -> Margin {
        match self {
            Safety::Totals => Margin::OF_TOTALS,
            other => other.of_one(family),
        }
    }
}

/// Margins that held for 95 and for 99 of 100 documents: fitted on one half of 2,240 documents that the tables were not
/// fitted to, checked on the other (94 to 97 % and 98 to 100 % there). `claude_legacy` was not in that study and has the
/// margins of `claude_v3`, whose errors have the same spread.
fn of_documents(family: Family) -> (Margin, Margin) {
    let ((share_95, root_95), (share_99, root_99)) = match family {
        Family::O200k => ((0.043, 0.3), (0.074, 0.4)),
        Family::Cl100k => ((0.042, 0.4), (0.073, 0.5)),
        Family::ClaudeV3 | Family::ClaudeLegacy => ((0.067, 0.2), (0.087, 0.9)),
        Family::ClaudeV47 => ((0.065, 0.1), (0.082, 0.6)),
        Family::Llama3 => ((0.053, 0.2), (0.063, 0.8)),
        Family::Qwen3 => ((0.050, 0.2), (0.073, 0.5)),
        Family::DeepseekV3 => ((0.040, 0.4), (0.066, 0.7)),
        Family::Gemma3 => ((0.034, 0.3), (0.051, 0.6)),
        Family::MistralTekken => ((0.042, 0.3), (0.072, 0.4)),
    };
    (Margin { share: share_95, root: root_95 }, Margin { share: share_99, root: root_99 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Safety; 4] = [Safety::Middle, Safety::Totals, Safety::P95, Safety::P99];

    #[test]
    fn surer_is_more() {
        for family in Family::all() {
            let [middle, totals, p95, p99] = ALL.map(|safety| safety.of_total(family).add_to(100_000));
            assert_eq!((middle, totals), (100_000, 103_000));
            assert!(totals < p95 && p95 < p99 && p99 < 110_000, "{family:?}");
            let [middle, totals, p95, p99] = ALL.map(|safety| safety.of_one(family).add_to(100));
            assert_eq!((middle, totals), (100, 100));
            assert!(105 <= p95 && p95 < p99 && p99 < 120, "{family:?}");
        }
    }

    proptest! {
        #[test]
        fn most_within_is_the_largest(limit in prop_oneof![0..50_u64, any::<u32>().prop_map(u64::from), Just(u64::MAX >> 12)]) {
            for family in Family::all() {
                for margin in ALL.map(|safety| safety.of_total(family)) {
                    let most = margin.most_within(limit);
                    prop_assert!(margin.add_to(most) <= limit);
                    prop_assert!(margin.add_to(most + 1) > limit);
                }
            }
        }
    }
}

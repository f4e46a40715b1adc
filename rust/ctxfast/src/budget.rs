//! How many tokens the newest messages may have.

/// The fresh tail's share of the usable context: a quarter.
const SHARE: u64 = 4;
/// Smallest budget of a fresh tail, where half of the usable context allows it.
const LEAST: u64 = 2_000;
/// Largest budget of a fresh tail.
const MOST: u64 = 8_000;

/// The fresh tail's budget in tokens: 25 % of the usable context, at least 2,000 and at most 8,000, never above half
/// of it. (PicoClaw and OpenCode have the two bounds; that the lower one yields in small windows is ours.)
#[must_use]
pub fn fresh_tail_budget(usable: u64) -> u64 {
    (usable / SHARE).clamp(LEAST, MOST).min(usable / 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::fresh_tail_budget;

    #[test]
    fn clamps() {
        for (usable, budget) in
            [(1, 1), (1_000, 500), (4_000, 2_000), (8_004, 2_001), (31_999, 7_999), (1_000_000, 8_000)]
        {
            assert_eq!(fresh_tail_budget(usable), budget);
        }
    }
}

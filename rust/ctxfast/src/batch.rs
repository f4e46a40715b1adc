//! What many texts come to, one by one: counted on several threads if there is much to count.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

use crate::text::Text;

/// Characters that one thread takes at a time. A thread starts in some 20 microseconds, in which the fastest counter
/// reads 40,000 characters.
const SHARE: usize = 1 << 17;

/// Threads unless the caller says how many: those that the machine has, but no more than find a memory of an exact
/// counter.
const MOST: usize = 4;

/// `count` of each text, in their order, the same for any number of threads. The caller's thread works as well; a
/// text is never divided.
pub fn counts(
    texts: &[Text<'_>],
    threads: Option<NonZero<usize>>,
    count: impl Fn(Text<'_>) -> u64 + Sync,
) -> Vec<u64> {
    let mut counts = vec![0; texts.len()];
    let shares = shares(texts, &mut counts);
    let cores = || thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST));
    let threads = shares.len().min(threads.map_or_else(cores, NonZero::get));
    let shares = Mutex::new(shares.into_iter());
    let next = || shares.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((texts, counts)) = next() {
            for (&text, counted) in texts.iter().zip(counts) {
                *counted = count(text);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            if Builder::new().spawn_scoped(scope, work).is_err() {
                break; // no more to be had; those there are do it all
            }
        }
        work();
    });
    counts
}

/// Neighbours that together have `SHARE` characters or a little more, with the places of their counts.
fn shares<'a, 't>(
    mut texts: &'a [Text<'t>],
    mut counts: &'a mut [u64],
) -> Vec<(&'a [Text<'t>], &'a mut [u64])> {
    let mut shares = Vec::new();
    while !texts.is_empty() {
        let mut chars = 0;
        let enough = texts.iter().position(|text| {
            chars += text.chars();
            chars >= SHARE
        });
        let size = enough.map_or(texts.len(), |last| last + 1);
        let (own, later) = texts.split_at(size);
        let (places, others) = counts.split_at_mut(size);
        shares.push((own, places));
        (texts, counts) = (later, others);
    }
    shares
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn any_number_of_threads_gives_the_same() {
        let texts: Vec<String> = (0..300).map(|size| "x".repeat(size * size % 7_919 * 3)).collect();
        let views: Vec<Text<'_>> = texts.iter().map(|text| text.as_str().into()).collect();
        let expected: Vec<u64> = texts.iter().map(|text| text.len() as u64).collect();
        for threads in [None, NonZero::new(1), NonZero::new(2), NonZero::new(7), NonZero::new(1_000)] {
            assert_eq!(counts(&views, threads, |text| text.chars() as u64), expected);
            assert_eq!(counts(&views[..3], threads, |text| text.chars() as u64), expected[..3]);
            assert!(counts(&[], threads, |_| 1).is_empty());
        }
    }

    #[test]
    fn shares_are_all_texts_in_order_and_none_is_small_but_the_last() {
        let texts: Vec<String> = (0..500).map(|size| "x".repeat(size * 31 % 9_973)).collect();
        let views: Vec<Text<'_>> = texts.iter().map(|text| text.as_str().into()).collect();
        let mut places = vec![0; views.len()];
        let shares = shares(&views, &mut places);
        let sizes: Vec<usize> =
            shares.iter().map(|(own, _)| own.iter().map(|text| text.chars()).sum()).collect();
        assert!(
            sizes.len() > 5 && sizes.iter().rev().skip(1).all(|&size| (SHARE..SHARE + 9_973).contains(&size))
        );
        let joined: Vec<usize> =
            shares.iter().flat_map(|(own, _)| own.iter().map(|text| text.chars())).collect();
        assert_eq!(joined, texts.iter().map(String::len).collect::<Vec<_>>());
        assert!(shares.iter().all(|(own, places)| own.len() == places.len()));
    }

    #[test]
    fn a_long_list_is_counted_by_several() {
        let text = "x".repeat(SHARE);
        let views = vec![Text::from(text.as_str()); 64];
        let seen = Mutex::new(HashSet::new());
        let count = |_: Text<'_>| {
            seen.lock().unwrap().insert(thread::current().id());
            thread::sleep(std::time::Duration::from_millis(1));
            1
        };
        assert_eq!(counts(&views, NonZero::new(3), count), vec![1; 64]);
        assert!((2..=3).contains(&seen.lock().unwrap().len()));
    }
}

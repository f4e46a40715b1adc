//! Whether a text says the same short thing again and again, which a table of neighbours cannot see.

use crate::text::Text;

/// Characters of a text that is looked at: the estimate of a shorter one cannot be thousands of tokens off.
const LEAST: usize = 1_000;

/// Places that are looked at: in the middle of each quarter, so that a stretch of more than a quarter is seen.
const PLACES: usize = 4;

/// Characters of each.
const SAMPLE: usize = 64;

/// Characters of the longest thing that is said again. What is longer has the neighbours of ordinary text.
const LONGEST: usize = 16;

/// Whether a text of some length is nothing but repetition in one of the places that are looked at.
pub(super) fn repeats(text: Text<'_>) -> bool {
    match text {
        Text::Ucs1(units) => often(units),
        Text::Ucs2(units) => often(units),
        Text::Ucs4(units) => often(units),
        Text::Utf8(text) if text.is_ascii() => often(text.as_bytes()),
        Text::Utf8(text) => often(&text.chars().collect::<Vec<char>>()),
    }
}

fn often<T: Copy + Into<u32>>(units: &[T]) -> bool {
    if units.len() < LEAST {
        return false;
    }
    let place = |quarter| (units.len() - SAMPLE) * (2 * quarter + 1) / (2 * PLACES);
    let samples = (0..PLACES).filter_map(|quarter| units.get(place(quarter)..)?.first_chunk::<SAMPLE>());
    samples.map(|sample| sample.map(Into::into)).any(|sample| is_repetition(&sample))
}

/// Of one type of units: compiled once, it is not small.
fn is_repetition(sample: &[u32; SAMPLE]) -> bool {
    (1..=LONGEST).any(|period| sample.iter().zip(sample.iter().skip(period)).all(|(one, two)| one == two))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_things_that_are_said_again() {
        for unit in [
            "a",
            "\n",
            " ",
            "ab",
            "hello world ",
            "\u{e9}",
            "\u{4e2d}\u{56fd}",
            "\u{1f600}",
            "abcdefghijklmnop",
        ] {
            let text = unit.repeat(LEAST);
            let points: Vec<u32> = text.chars().map(u32::from).collect();
            assert!(repeats(Text::from(text.as_str())), "{unit}");
            assert!(repeats(Text::Ucs4(&points)), "{unit}");
            assert!(!repeats(Text::Ucs4(&points[..LEAST - 1])), "{unit}");
        }
        assert!(!repeats(Text::from("abcdefghijklmnopq".repeat(LEAST).as_str())));
    }

    #[test]
    fn a_quarter_is_enough_and_a_line_is_not() {
        let lines: Vec<String> =
            (0..99).map(|line| format!("    line {line} of {}\n", line * line)).collect();
        let lines = lines.concat();
        assert!(!repeats(Text::from(lines.as_str())));
        for unit in ["-", "ab"] {
            let some = |share: usize| unit.repeat(lines.len() * share / 100 / unit.len());
            for text in [format!("{}{lines}", some(34)), format!("{lines}{}", some(34))] {
                assert!(repeats(Text::from(text.as_str())));
            }
            for text in [format!("{}{lines}", some(10)), format!("{lines}{}", some(10))] {
                assert!(!repeats(Text::from(text.as_str())));
            }
        }
    }
}

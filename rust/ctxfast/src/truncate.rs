//! Where a long tool output is cut, and the line that stands in the gap.
//!
//! An output that is too long keeps its head, its tail or both, within limits of lines, bytes and characters: whole
//! lines where that keeps at least half of what there is room for, else a line is cut inside, never inside a grapheme
//! cluster. The text is read where it lies: once for its totals, and otherwise only near its ends.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::stub::plural;
use crate::text::{Text, naive::utf8_bytes};
use crate::tools::Tool;

/// How the line in the gap begins.
pub const MARK: &str = "[Tool output truncated: ";
/// Characters before a cut in which the start of its grapheme cluster is sought, and after it the end.
const NEAR: usize = 256;
/// Letters of which two are a flag.
const FLAGS: Range<u32> = 0x1_f1e6..0x1_f200;
const FEED: u32 = 0x0a;
const RETURN: u32 = 0x0d;

/// How much of a text may be kept, in three units; all of them count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Lines; a line that is cut counts. The line feed at the end of a text begins no line.
    pub lines: usize,
    /// Bytes of UTF-8; a lone surrogate has three.
    pub bytes: usize,
    /// Characters (code points).
    pub chars: usize,
}

impl Limits {
    /// No limit.
    pub const NONE: Self = Self { lines: usize::MAX, bytes: usize::MAX, chars: usize::MAX };

    /// So many hundredths of each, rounded down.
    fn share(self, percent: usize) -> Self {
        let share = |limit: usize| limit / 100 * percent + limit % 100 * percent / 100;
        Self { lines: share(self.lines), bytes: share(self.bytes), chars: share(self.chars) }
    }

    fn without(self, end: End) -> Self {
        Self {
            lines: self.lines.saturating_sub(if end.chars == 0 { 0 } else { end.lines }),
            bytes: self.bytes.saturating_sub(end.bytes),
            chars: self.chars.saturating_sub(end.chars),
        }
    }
}

/// How long a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Lines; a line feed at the end begins no further one, and the empty text has none.
    pub lines: usize,
    /// Bytes of UTF-8; a lone surrogate has three.
    pub bytes: usize,
    /// Characters (code points).
    pub chars: usize,
    /// Line feeds.
    feeds: usize,
}

impl Totals {
    /// Of a text: the one pass over all of it.
    #[must_use]
    pub fn of(text: Text<'_>) -> Self {
        let (chars, feeds) = (text.chars(), text.count(b'\n'));
        let is_open = text.points().next_back().is_some_and(|last| last != FEED);
        Self { lines: feeds + usize::from(is_open), bytes: text.utf8_bytes(), chars, feeds }
    }

    /// Of a text whose lines and bytes are known.
    #[must_use]
    pub fn known(text: Text<'_>, lines: usize, bytes: usize) -> Self {
        let is_open = text.points().next_back().is_some_and(|last| last != FEED);
        Self { lines, bytes, chars: text.chars(), feeds: lines.saturating_sub(usize::from(is_open)) }
    }

    /// Whether nothing has to be cut.
    #[must_use]
    pub fn fit(self, limits: Limits) -> bool {
        self.lines <= limits.lines && self.bytes <= limits.bytes && self.chars <= limits.chars
    }
}

/// Which ends of a long output are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The head.
    Head,
    /// The tail.
    Tail,
    /// Both, half and half.
    Halves,
    /// Both, 20 % head and 80 % tail: commands say at their end how they ended.
    MostlyTail,
}

impl Keep {
    /// What is kept of the outputs of a kind of tool.
    #[must_use]
    pub fn of(tool: Tool) -> Self {
        match tool {
            Tool::Command => Keep::MostlyTail,
            Tool::Read => Keep::Head,
            _ => Keep::Halves,
        }
    }

    /// The one end that matters most: what is kept where there is no room for a line between two.
    #[must_use]
    pub fn one_end(self) -> Self {
        match self {
            Keep::Head | Keep::Halves => Keep::Head,
            Keep::Tail | Keep::MostlyTail => Keep::Tail,
        }
    }

    /// Hundredths of the room that the head may have; what it leaves is the tail's.
    fn head_percent(self) -> usize {
        match self {
            Keep::Head => 100,
            Keep::Tail => 0,
            Keep::Halves => 50,
            Keep::MostlyTail => 20,
        }
    }
}

/// What is kept of a text, and what that leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Characters that are kept at the start. Where whole lines are kept they end before the last one's line break.
    pub head: usize,
    /// Characters that are kept at the end.
    pub tail: usize,
    /// Lines of which nothing is kept.
    pub omitted_lines: usize,
    /// Bytes of UTF-8 that are not kept.
    pub omitted_bytes: usize,
    /// The whole text.
    pub totals: Totals,
}

/// Where a text is cut that is longer than the limits; `None` if it is not.
#[must_use]
pub fn cut(text: Text<'_>, limits: Limits, keep: Keep) -> Option<Cut> {
    cut_known(text, Totals::of(text), limits, keep)
}

/// The same for a text whose totals are known.
#[must_use]
pub fn cut_known(text: Text<'_>, totals: Totals, limits: Limits, keep: Keep) -> Option<Cut> {
    if totals.fit(limits) {
        return None;
    }
    let head = head(text, totals.chars, limits.share(keep.head_percent()));
    let tail =
        if keep == Keep::Head { End::default() } else { tail(text, totals.chars, limits.without(head)) };
    let feeds = totals.feeds.saturating_sub(head.feeds + tail.feeds); // in the gap
    // a line is left out if it neither begins in the head nor ends in the tail, nor is the nothing after the last feed
    let shown = usize::from(head.chars > 0) + usize::from(tail.chars > 0 || totals.lines == totals.feeds);
    Some(Cut {
        head: head.chars,
        tail: tail.chars,
        omitted_lines: (feeds + 1).saturating_sub(shown),
        omitted_bytes: totals.bytes.saturating_sub(head.bytes + tail.bytes),
        totals,
    })
}

/// What is kept at one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct End {
    chars: usize,
    bytes: usize,
    lines: usize,
    feeds: usize,
}

impl End {
    /// Takes one more character, if there is room.
    fn take(&mut self, point: u32, limits: Limits) -> bool {
        let bytes = self.bytes.saturating_add(utf8_bytes(point));
        let fits = self.chars < limits.chars && bytes <= limits.bytes;
        if fits {
            self.chars += 1;
            self.bytes = bytes;
        }
        fits
    }

    /// Gives some characters back.
    fn without(self, text: Text<'_>, range: Range<usize>) -> Self {
        let (chars, back) = (range.len(), text.slice(range));
        let (bytes, feeds) = (back.utf8_bytes(), back.count(b'\n'));
        Self {
            chars: self.chars.saturating_sub(chars),
            bytes: self.bytes.saturating_sub(bytes),
            lines: self.lines.saturating_sub(feeds),
            feeds: self.feeds.saturating_sub(feeds),
        }
    }

    /// Whole lines if they are at least half of what there is room for.
    fn best(whole: Option<Self>, inside: impl FnOnce() -> Self, room: usize) -> Self {
        match whole {
            Some(whole) if whole.chars >= room.div_ceil(2) => whole,
            _ => inside(),
        }
    }
}

/// The longest head within limits that the text is longer than.
fn head(text: Text<'_>, chars: usize, limits: Limits) -> End {
    let (mut end, mut whole, mut last) = (End::default(), None, 0);
    if limits.lines == 0 {
        return end;
    }
    end.lines = 1;
    for point in text.points() {
        if point == FEED {
            let broken = usize::from(last == RETURN && end.chars > 0);
            whole = Some(End { chars: end.chars - broken, bytes: end.bytes - broken, ..end });
            if end.lines == limits.lines {
                break;
            }
        }
        if !end.take(point, limits) {
            break;
        }
        if point == FEED {
            end.lines += 1;
            end.feeds += 1;
        }
        last = point;
    }
    let inside = || end.without(text, boundary_before(text, chars, end.chars)..end.chars);
    End::best(whole, inside, end.chars)
}

/// The longest tail within limits that the text is longer than.
fn tail(text: Text<'_>, chars: usize, limits: Limits) -> End {
    let (mut end, mut whole) = (End::default(), None);
    if limits.lines == 0 {
        return end;
    }
    end.lines = 1;
    for point in text.points().rev() {
        let breaks = point == FEED && end.chars > 0; // at the end of the text it does not
        if breaks {
            whole = Some(end);
            if end.lines == limits.lines {
                break;
            }
        }
        if !end.take(point, limits) {
            break;
        }
        end.lines += usize::from(breaks);
        end.feeds += usize::from(point == FEED);
    }
    let start = chars.saturating_sub(end.chars);
    let inside = || end.without(text, start..boundary_after(text, chars, start));
    let end = End::best(whole, inside, end.chars);
    if end.chars == end.feeds { End::default() } else { end } // line feeds alone say nothing
}

/// The last boundary between grapheme clusters at a place or before it.
fn boundary_before(text: Text<'_>, chars: usize, place: usize) -> usize {
    if is_plain_boundary(text, chars, place) {
        return place;
    }
    let start = window_start(text, chars, place);
    let found = boundaries(text, start, place + 1).filter(|&boundary| boundary <= place).last();
    // what is longer than this is no cluster that anybody would see
    found.filter(|&found| found + NEAR > place).unwrap_or(place)
}

/// The first boundary between grapheme clusters at a place or behind it.
fn boundary_after(text: Text<'_>, chars: usize, place: usize) -> usize {
    if is_plain_boundary(text, chars, place) {
        return place;
    }
    let start = window_start(text, chars, place);
    let end = chars.min(place + NEAR);
    let found = boundaries(text, start, end).find(|&boundary| boundary >= place);
    found.unwrap_or(if end == chars { chars } else { place })
}

/// Whether it is easily seen that no cluster goes across a place: at both ends, and between ASCII characters.
fn is_plain_boundary(text: Text<'_>, chars: usize, place: usize) -> bool {
    let Some(before) = place.checked_sub(1).and_then(|before| text.at(before)) else { return true };
    let Some(after) = text.at(place).filter(|_| place < chars) else { return true };
    before < 0x80 && after < 0x80 && !(before == RETURN && after == FEED)
}

/// A boundary before a place, from which clusters can be told; where none is near, just a place in front.
fn window_start(text: Text<'_>, chars: usize, place: usize) -> usize {
    let first = place.saturating_sub(2 * NEAR);
    let plain = (first..place).rev().find(|&start| is_plain_boundary(text, chars, start));
    // of a long row of flags every second border is none
    let flags = || text.slice(0..first).points().rev().take_while(|point| FLAGS.contains(point)).count();
    plain.unwrap_or_else(|| first - flags() % 2)
}

/// Boundaries between the grapheme clusters of a part of a text: where each of them begins.
fn boundaries(text: Text<'_>, start: usize, end: usize) -> impl Iterator<Item = usize> {
    let part = text.slice(start..end).to_well_formed();
    let clusters: Vec<usize> = part.graphemes(true).map(|cluster| cluster.chars().count()).collect();
    clusters.into_iter().scan(start, |place, chars| Some(std::mem::replace(place, *place + chars)))
}

/// Whether all of an output has been saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved<'a> {
    /// Under an id.
    As(&'a str),
    /// It has not.
    Not,
}

/// The line that stands in the gap. It is fixed: the same cut gives the same text for ever.
#[must_use]
pub fn marker(omitted_lines: usize, omitted_bytes: usize, saved: Saved<'_>, hint: &str) -> String {
    let mut text = MARK.to_owned();
    if omitted_lines > 0 {
        text.push_str(&plural(omitted_lines, "line", "lines"));
        text.push_str(", ");
    }
    text.push_str(&plural(omitted_bytes, "byte", "bytes"));
    text.push_str(" omitted, ");
    match saved {
        Saved::As(id) => {
            text.push_str("saved as ");
            text.push_str(id);
        }
        Saved::Not => text.push_str("not saved"),
    }
    if !hint.is_empty() {
        text.push_str(". ");
        text.push_str(hint);
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Places between grapheme clusters, by looking at all of the text.
    fn all_boundaries(text: &[char]) -> Vec<usize> {
        let whole: String = text.iter().collect();
        let mut places = vec![0];
        places.extend(whole.graphemes(true).scan(0, |place, cluster| {
            *place += cluster.chars().count();
            Some(*place)
        }));
        places
    }

    fn bytes(text: &[char]) -> usize {
        text.iter().map(|char| char.len_utf8()).sum()
    }

    fn feeds(text: &[char]) -> usize {
        text.iter().filter(|&&char| char == '\n').count()
    }

    /// The naive twin of `head`: every place is tried.
    fn naive_head(text: &[char], limits: Limits) -> usize {
        let fits = |place: &usize| {
            let part = &text[..*place];
            feeds(part) < limits.lines && bytes(part) <= limits.bytes && part.len() <= limits.chars
        };
        let Some(most) = (0..=text.len()).filter(fits).max() else { return 0 };
        let ends = |&place: &usize| {
            text[place..].starts_with(&['\r', '\n'])
                || (text[place..].starts_with(&['\n']) && !text[..place].ends_with(&['\r']))
        };
        // a line is known to be whole when the place before its line feed is reached
        let known = |place: &usize| place + usize::from(text[*place] == '\r') <= most;
        let whole = (0..=most).filter(|&place| place < text.len()).filter(ends).filter(known).max();
        match whole {
            Some(whole) if 2 * whole >= most => whole,
            _ => all_boundaries(text).into_iter().filter(|&place| place <= most).max().unwrap(),
        }
    }

    /// The naive twin of `tail`.
    fn naive_tail(text: &[char], limits: Limits) -> usize {
        let last = text.len();
        let body = |place: usize| text[place..].strip_suffix(&['\n']).unwrap_or(&text[place..]);
        let fits = |place: &usize| {
            feeds(body(*place)) < limits.lines
                && bytes(&text[*place..]) <= limits.bytes
                && last - place <= limits.chars
        };
        let Some(first) = (0..=last).filter(fits).min() else { return 0 };
        let starts = |&place: &usize| place < last && text[..place].ends_with(&['\n']);
        let whole = (first..=last).filter(starts).min();
        let start = match whole {
            Some(whole) if 2 * (last - whole) >= last - first => whole,
            _ => all_boundaries(text).into_iter().find(|&place| place >= first).unwrap(),
        };
        if text[start..].iter().all(|&char| char == '\n') { 0 } else { last - start }
    }

    fn naive_cut(text: &[char], limits: Limits, keep: Keep) -> Option<Cut> {
        let open = usize::from(text.last().is_some_and(|&last| last != '\n'));
        let totals =
            Totals { lines: feeds(text) + open, bytes: bytes(text), chars: text.len(), feeds: feeds(text) };
        if totals.lines <= limits.lines && totals.bytes <= limits.bytes && totals.chars <= limits.chars {
            return None;
        }
        let share = |limit: usize| (limit as u128 * keep.head_percent() as u128 / 100).try_into().unwrap();
        let first =
            Limits { lines: share(limits.lines), bytes: share(limits.bytes), chars: share(limits.chars) };
        let head = naive_head(text, first);
        let rest = Limits {
            lines: limits.lines - if head == 0 { 0 } else { feeds(&text[..head]) + 1 },
            bytes: limits.bytes - bytes(&text[..head]),
            chars: limits.chars - head,
        };
        let tail = if keep == Keep::Head { 0 } else { naive_tail(text, rest) };
        assert!(head + tail < text.len());
        let gap = head..text.len() - tail;
        // a line is left out if nothing of it, nor of its line break, is kept; the head's last line is not
        let (mut omitted_lines, mut start) = (0, 0);
        for line in text.split_inclusive(|&char| char == '\n') {
            let end = start + line.len();
            let in_head = head > 0 && (start < head || (start == head && text[head - 1] != '\n'));
            omitted_lines += usize::from(!in_head && start >= gap.start && end <= gap.end);
            start = end;
        }
        // a head that ends with a line feed touches the line behind it
        if head > 0 && text[head - 1] == '\n' && omitted_lines > 0 {
            omitted_lines -= 1;
        }
        Some(Cut { head, tail, omitted_lines, omitted_bytes: bytes(&text[gap]), totals })
    }

    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[a-z ]{0,12}",
            2 => Just("\n".to_owned()),
            1 => Just("\r\n".to_owned()),
            1 => Just("\r".to_owned()),
            1 => Just("กี่ที่".to_owned()),
            1 => Just("👨\u{200d}👩\u{200d}👧\u{200d}👦".to_owned()),
            1 => Just("🇹🇭🇩🇪🇫🇷".to_owned()),
            1 => Just("e\u{301}\u{302}".to_owned()),
            1 => Just("汉字한국".to_owned()),
            1 => "\\PC{0,5}",
        ]
    }

    fn limit() -> impl Strategy<Value = usize> {
        prop_oneof![0..5_usize, 0..40_usize, 0..300_usize, Just(usize::MAX)]
    }

    proptest! {
        #[test]
        fn cuts_are_those_of_the_twin(
            pieces in prop::collection::vec(piece(), 0..40),
            (lines, most_bytes, chars) in (limit(), limit(), limit()),
            keep in prop::sample::select(&[Keep::Head, Keep::Tail, Keep::Halves, Keep::MostlyTail][..]),
        ) {
            let text = pieces.concat();
            let letters: Vec<char> = text.chars().collect();
            let points: Vec<u32> = text.chars().map(u32::from).collect();
            let limits = Limits { lines, bytes: most_bytes, chars };
            let expected = naive_cut(&letters, limits, keep);
            prop_assert_eq!(cut(Text::Utf8(&text), limits, keep), expected);
            prop_assert_eq!(cut(Text::Ucs4(&points), limits, keep), expected);
            let wide: Option<Vec<u16>> = points.iter().map(|&c| u16::try_from(c).ok()).collect();
            if let Some(wide) = wide {
                prop_assert_eq!(cut(Text::Ucs2(&wide), limits, keep), expected);
            }
            let Some(cut) = expected else { return Ok(()) };
            let places = all_boundaries(&letters);
            prop_assert!(places.contains(&cut.head) && places.contains(&(letters.len() - cut.tail)));
            let (head, tail) = (&letters[..cut.head], &letters[letters.len() - cut.tail..]);
            prop_assert!(bytes(head) + bytes(tail) <= most_bytes);
            prop_assert!(cut.head + cut.tail <= chars);
            let ends = usize::from(tail.ends_with(&['\n']));
            let shown = |part: &[char]| if part.is_empty() { 0 } else { feeds(part) + 1 };
            prop_assert!(shown(head) + shown(tail) - ends <= lines);
        }
    }

    #[test]
    fn one_giant_line_is_cut_inside() {
        let text = format!("HEAD{}TAIL", "x".repeat(3_000_000));
        let limits = Limits { bytes: 50_000, ..Limits::NONE };
        let found = cut(Text::Utf8(&text), limits, Keep::Halves).unwrap();
        assert_eq!((found.head, found.tail, found.omitted_lines), (25_000, 25_000, 0));
        assert_eq!(found.omitted_bytes, 2_950_008);
        let found = cut(Text::Ucs1(text.as_bytes()), limits, Keep::MostlyTail).unwrap();
        assert_eq!((found.head, found.tail), (10_000, 40_000));
    }

    #[test]
    fn whole_lines_are_kept() {
        let text = "0123456789\n".repeat(1_000);
        let lines = Limits { lines: 100, ..Limits::NONE };
        let found = cut(Text::Ucs1(text.as_bytes()), lines, Keep::MostlyTail).unwrap();
        assert_eq!((found.head, found.tail, found.omitted_lines), (20 * 11 - 1, 80 * 11, 900));
        let bytes = Limits { bytes: 115, ..Limits::NONE };
        let found = cut(Text::Ucs1(text.as_bytes()), bytes, Keep::Head).unwrap();
        assert_eq!((found.head, found.tail, found.omitted_lines), (10 * 11 - 1, 0, 990));
    }

    #[test]
    fn lone_surrogates_are_characters() {
        let points = [0xd83d; 30];
        let found = cut(Text::Ucs2(&points), Limits { bytes: 30, ..Limits::NONE }, Keep::Halves).unwrap();
        assert_eq!((found.head, found.tail, found.omitted_bytes), (5, 5, 60));
    }

    #[test]
    fn long_rows_of_flags_are_cut_between_flags() {
        let text = "🇹🇭".repeat(2_000);
        for chars in 1_500..1_510 {
            let limits = Limits { chars, ..Limits::NONE };
            let found = cut(Text::from(text.as_str()), limits, Keep::Halves).unwrap();
            assert_eq!((found.head % 2, found.tail % 2), (0, 0));
        }
    }

    #[test]
    fn a_cluster_without_end_is_cut() {
        let text = format!("a{}", "\u{301}".repeat(5_000));
        let limits = Limits { chars: 2_000, ..Limits::NONE };
        let found = cut(Text::from(text.as_str()), limits, Keep::Halves).unwrap();
        assert_eq!((found.head, found.tail), (1_000, 1_000));
    }

    #[test]
    fn the_marker_is_fixed() {
        assert_eq!(marker(0, 1, Saved::Not, ""), "[Tool output truncated: 1 byte omitted, not saved]");
        assert_eq!(
            marker(12_345, 678_901, Saved::As("bash-0123456789abcdef"), "Read it."),
            "[Tool output truncated: 12,345 lines, 678,901 bytes omitted, saved as bash-0123456789abcdef. Read it.]"
        );
    }
}

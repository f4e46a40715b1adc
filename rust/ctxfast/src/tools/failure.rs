//! Whether an output is that of a failure: exit codes, and how tools say it that have none.

use crate::text::Text;

/// Characters of a line that are looked at for an exit code.
const EDGE: usize = 200;
/// Lines of a header that are.
const HEAD: usize = 5;
/// How the header begins that Codex puts in front of an output.
pub(crate) const HEADERS: [&str; 3] = ["Chunk ID:", "Wall time:", "Exit code:"];
/// How outputs begin that are failures, though many harnesses have no flag for it.
const FAILURES: [&str; 14] = [
    "<tool_use_error>",
    "Error:",
    "ERROR:",
    "### Error",
    "Error executing",
    "Error calling",
    "apply_patch verification failed",
    "Could not find",
    "The user doesn't want to proceed",
    "No match",
    "No replacement was performed",
    "String to replace not found",
    "File has not been read yet",
    "File unchanged",
];

/// Whether the output of a tool that runs nothing begins like a failure.
#[must_use]
pub fn begins_as_failure(output: Text<'_>) -> bool {
    output.starts_with_any(&FAILURES)
}

/// Where an exit code may stand in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Anywhere.
    Anywhere,
    /// At its start, in so many words: the output is text of files, in which anything can stand.
    Alone,
}

/// The exit code that the first or the last line of an output names, or one of the first five if that is a header.
#[must_use]
pub fn exit_code(output: Text<'_>, place: Place) -> Option<i64> {
    let mut end = output.chars();
    while end > 0 && output.at(end - 1) == Some('\n'.into()) {
        end -= 1;
    }
    let output = output.slice(0..end);
    let head = if output.starts_with_any(&HEADERS) { HEAD } else { 1 };
    let mut first = output.lines().take(head).map(|line| line.slice(0..EDGE));
    let last = output.lines().next_back()?;
    let last = last.slice(last.chars().saturating_sub(EDGE)..usize::MAX);
    first.find_map(|line| code_in(line, place)).or_else(|| code_in(last, place))
}

/// The exit code that a line names.
pub(crate) fn code_in(line: Text<'_>, place: Place) -> Option<i64> {
    const ALONE: [&[u8]; 5] = [b"exit code", b"exit_code", b"exit status", b"exited with", b"process exited"];
    if let Text::Ucs1(units) = line {
        let mut places =
            memchr::memchr2_iter(b'x', b'X', units).filter_map(|place| units.get(place.checked_sub(1)?));
        if !places.any(|before| before.eq_ignore_ascii_case(&b'e')) {
            return None; // as of most lines
        }
    }
    let mut bytes = Vec::with_capacity(line.chars());
    // what is no ASCII matches nothing
    line.each_point(|point| {
        bytes.push(u8::try_from(point).ok().filter(u8::is_ascii).unwrap_or(0xff).to_ascii_lowercase());
    });
    let start = bytes.iter().take_while(|byte| b" [(<".contains(byte)).count();
    let line = bytes.get(start..).unwrap_or_default();
    if place == Place::Alone && !ALONE.iter().any(|words| line.starts_with(words)) {
        return None;
    }
    let (mut rest, mut is_start) = (line, true);
    while let Some(place) = find(rest, b"exit") {
        is_start &= place == 0;
        rest = rest.get(place + 4..).unwrap_or_default();
        let until = find(rest, b"exit").unwrap_or(rest.len());
        if let Some(code) = code_after(rest.get(..until).unwrap_or_default(), is_start) {
            return Some(code);
        }
        is_start = false;
    }
    None
}

fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window == word)
}

/// A number behind a few words, of which one is `code` or `status`; at the start of a line also behind no word at all.
fn code_after(text: &[u8], is_start: bool) -> Option<i64> {
    const MOST: usize = 30;
    for place in 0..=MOST {
        let byte = *text.get(place)?;
        let number = text.get(place + usize::from(byte == b'-')..).unwrap_or_default();
        let length = number.iter().take(9).take_while(|byte| byte.is_ascii_digit()).count();
        if length > 0 {
            let between = text.get(..place).unwrap_or_default();
            let is_code = find(between, b"code").is_some()
                || find(between, b"status").is_some()
                || (is_start && !between.iter().any(u8::is_ascii_lowercase));
            let code = str::from_utf8(number.get(..length)?).ok()?.parse::<i64>().ok()?;
            return is_code.then_some(if byte == b'-' { -code } else { code });
        }
        if !byte.is_ascii_lowercase() && !b" _:=\"'<>/-".contains(&byte) {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes() {
        for (output, code) in [
            ("ok\nexit code: 2", Some(2)),
            ("Exit code 1\nls: no such file", Some(1)),
            ("Process exited with code -9\n\n", Some(-9)),
            ("{\"output\":\"exit\",\"metadata\":{\"exit_code\":0}}", Some(0)),
            ("<exit_code>127</exit_code>", Some(127)),
            ("exited after 30 seconds", None),
            ("exit 3", Some(3)),
            ("[exit 3]", Some(3)),
            ("then exit 3", None),
            ("a\nexit code 1\nb", None),
            ("Chunk ID: 1\nWall time: 1\nProcess exited with code 3\nOutput:\nx", Some(3)),
            ("a\nb\nc\nd\ne\nexit code 1\nb", None),
            ("", None),
        ] {
            assert_eq!(exit_code(output.into(), Place::Anywhere), code, "{output}");
            let wide: Vec<u16> = output.encode_utf16().collect();
            assert_eq!(exit_code(Text::Ucs2(&wide), Place::Anywhere), code, "{output}");
        }
        assert_eq!(exit_code("#!/bin/sh\nexit 1".into(), Place::Alone), None);
        assert_eq!(exit_code("returns exit code 3".into(), Place::Alone), None);
        assert_eq!(exit_code("text\n[exit code 3]".into(), Place::Alone), Some(3));
    }
}

//! The short text that replaces an old tool output: one line of facts, and up to three lines of what was there.
//!
//! The text is fixed: the same output gives the same text for ever, for a changed one breaks the provider's cache. It
//! begins with [`MARK`] and never looks like a tool call.

use crate::text::Text;
use crate::tools::{Call, Lines, Tool, exit_code};

/// How a stub begins; that of PicoClaw's plan begins like this, too.
pub const MARK: &str = "[Tool output pruned";
/// The stub of OpenCode and Claude Code.
pub const FOREIGN: &str = "[Old tool result content cleared]";
/// Characters of a stub.
const MOST: usize = 400;
/// Characters of a line of what was there.
const WIDTH: usize = 80;
/// Characters of a path, a command, a pattern.
const SUBJECT: usize = 120;
/// Characters of a tool's name.
const NAME: usize = 40;
/// Characters of a line that are looked at.
const LOOK: usize = 200;
/// Lines in which an outline is sought.
const OUTLINE: usize = 200;
/// Lines in which an error is sought, from the end.
const NEWEST: usize = 20;
/// Lines of what was there.
const KEY_LINES: usize = 3;
const LIKE_A_CALL: [&str; 6] = ["<tool_call", "<function", "<invoke", "[tool_use", "\"name\":", "```"];
const ERRORS: [&[u8]; 6] = [b"error", b"fail", b"exception", b"fatal", b"panic", b"traceback"];
/// Ends of paths of files in which `#` begins no comment.
const HEADINGS: [&str; 5] = [".md", ".mdx", ".markdown", ".rst", ".txt"];
const DEFINITIONS: [&str; 26] = [
    "def ",
    "async def ",
    "class ",
    "fn ",
    "pub ",
    "impl ",
    "struct ",
    "enum ",
    "trait ",
    "mod ",
    "func ",
    "function ",
    "export ",
    "interface ",
    "type ",
    "module ",
    "package ",
    "public ",
    "private ",
    "namespace ",
    "CREATE ",
    "create table ",
    "const ",
    "abstract ",
    "protected ",
    "static ",
];

/// An output that is to be replaced.
#[derive(Clone, Copy, Debug)]
pub struct Old<'a> {
    /// Name of the tool.
    pub tool: &'a str,
    /// What its call was about.
    pub call: &'a Call,
    /// The text; parts are joined by line feeds.
    pub text: Text<'a>,
    /// Parts of its content that are no text.
    pub attachments: usize,
    /// Whether the tool reported an error.
    pub failed: bool,
}

/// What has become of a file since it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remark {
    /// All lines were read again.
    ReadAgain,
    /// It was changed.
    Edited,
}

/// Whether an output has been replaced before; `own` is the policy's fixed text.
#[must_use]
pub fn is_stub(text: Text<'_>, own: Option<&str>) -> bool {
    text.starts_with(MARK) || text.starts_with(FOREIGN) || own.is_some_and(|own| text.starts_with(own))
}

/// The text that replaces an output.
#[must_use]
pub fn stub(old: Old<'_>, remark: Option<Remark>) -> String {
    let points: Vec<u32>;
    let mut old = old;
    if let Text::Utf8(text) = old.text {
        points = text.chars().map(u32::from).collect(); // places in it are found at once
        old.text = Text::Ucs4(&points);
    }
    let mut stub = facts(old, remark);
    let mut used = stub.chars().count();
    for line in key_lines(old) {
        let shown = printable(line.slice(0..LOOK), WIDTH);
        let more = 1 + shown.chars().count();
        if more > 1 && !is_like_a_call(&shown) && used + more <= MOST {
            stub.push('\n');
            stub.push_str(&shown);
            used += more;
        }
    }
    stub
}

/// The stub with the id under which the output has been saved: the last fact. Lines for which there is no room go.
#[must_use]
pub fn with_id(stub: &str, id: &str) -> String {
    let mut lines = stub.split('\n');
    let facts = lines.next().unwrap_or_default();
    let facts = facts.strip_suffix(']').unwrap_or(facts);
    let mut result = format!("{facts}, saved as {}]", printable(id.into(), SUBJECT));
    let mut used = result.chars().count();
    for line in lines {
        used += 1 + line.chars().count();
        if used > MOST {
            break;
        }
        result.push('\n');
        result.push_str(line);
    }
    result
}

fn facts(old: Old<'_>, remark: Option<Remark>) -> String {
    let Old { call, text, .. } = old;
    let mut name = printable(old.tool.into(), NAME);
    if name.is_empty() || is_like_a_call(&name) {
        "tool".clone_into(&mut name);
    }
    let mut facts = format!("{MARK}: {name}");
    let subject = subject(call);
    if !subject.is_empty() && !is_like_a_call(&subject) {
        facts.push(' ');
        facts.push_str(&subject);
    }
    if let Some((_, lines)) = &call.read
        && *lines != Lines::ALL
    {
        let last = if lines.last == Lines::END { "the end".to_owned() } else { lines.last.to_string() };
        add(&mut facts, &format!("lines {} to {last}", lines.first));
    }
    let code = if matches!(call.kind, Tool::Command | Tool::Other) { exit_code(text) } else { None };
    if let Some(code) = code {
        add(&mut facts, &format!("exit code {code}"));
    } else if old.failed {
        add(&mut facts, "failed");
    }
    match call.kind {
        Tool::Search => add(&mut facts, &hits(text)),
        Tool::List => {
            let entries = text.lines().filter(|line| !is_blank(*line)).count();
            add(&mut facts, &plural(entries, "entry", "entries"));
        }
        _ => {
            let ends = text.chars().checked_sub(1).is_none_or(|last| text.at(last) == Some('\n'.into()));
            add(&mut facts, &plural(text.count(b'\n') + usize::from(!ends), "line", "lines"));
        }
    }
    add(&mut facts, &plural(text.chars(), "character", "characters"));
    if old.attachments > 0 {
        add(&mut facts, &plural(old.attachments, "attachment", "attachments"));
    }
    match remark {
        Some(Remark::ReadAgain) => add(&mut facts, "read again later"),
        Some(Remark::Edited) => add(&mut facts, "edited later"),
        None => {}
    }
    facts.push(']');
    facts
}

/// How many matches in how many files: lines of the form `file:12:`; or how many lines there are.
fn hits(text: Text<'_>) -> String {
    let (mut lines, mut places, mut files) = (0, 0, 0);
    let mut file = None;
    for line in text.lines().filter(|line| !is_blank(*line)) {
        lines += 1;
        let Some(colon) = line.find(b':') else { continue };
        if line.at(colon + 1).is_some_and(|point| ('0'.into()..=u32::from('9')).contains(&point)) {
            let name = line.slice(0..colon);
            places += 1;
            files += usize::from(!file.is_some_and(|file| name.same(file)));
            file = Some(name);
        }
    }
    if places > 0 {
        format!("{} in {}", plural(places, "match", "matches"), plural(files, "file", "files"))
    } else {
        plural(lines, "hit", "hits")
    }
}

fn add(facts: &mut String, fact: &str) {
    facts.push_str(", ");
    facts.push_str(fact);
}

/// What the call was about: a path, a command, a pattern, a URL.
fn subject(call: &Call) -> String {
    match (call.kind, &call.pattern, &call.path) {
        (Tool::Command, ..) => {
            let command = call.command.as_deref().unwrap_or_default();
            printable(command.split('\n').next().unwrap_or_default().into(), SUBJECT)
        }
        (Tool::Read | Tool::Edit, _, path) => {
            let mut subject = printable_end(path.as_deref().unwrap_or_default());
            if call.edits.len() > 1 {
                subject = format!("{subject} and {} more", call.edits.len() - 1);
            }
            subject
        }
        (_, Some(pattern), path) => {
            let mut subject = format!("\"{}\"", printable(pattern.as_str().into(), SUBJECT));
            if let Some(path) = path {
                subject = format!("{subject} in {}", printable_end(path));
            }
            subject
        }
        (_, None, Some(path)) => printable_end(path),
        (_, None, None) => {
            let other = call.other.as_deref().or(call.command.as_deref()).unwrap_or_default();
            printable(other.into(), SUBJECT)
        }
    }
}

/// Up to three lines of an output, by the kind of tool.
fn key_lines(old: Old<'_>) -> Vec<Text<'_>> {
    let first = |most| old.text.lines().filter(|line| !is_blank(*line)).take(most).collect();
    match (old.call.kind, &old.call.read) {
        _ if old.failed => last_lines(old.text),
        (Tool::Command, None) => last_lines(old.text),
        (_, Some((path, _))) => {
            let outline = outline(old.text, has_headings(path));
            if outline.is_empty() { first(1) } else { outline }
        }
        (Tool::Web, _) => {
            let outline = outline(old.text, true);
            if outline.is_empty() { first(1) } else { outline }
        }
        (Tool::Edit, _) => Vec::new(),
        (Tool::Other, _) => first(1),
        _ => first(KEY_LINES),
    }
}

fn has_headings(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    HEADINGS.iter().any(|end| path.ends_with(end))
}

/// The first headings or definitions that begin at the left margin.
fn outline(text: Text<'_>, headings: bool) -> Vec<Text<'_>> {
    text.lines()
        .take(OUTLINE)
        .map(|line| without_number(line.slice(0..LOOK)))
        .filter(|line| {
            let first = line.at(0).and_then(|point| u8::try_from(point).ok()).unwrap_or(0);
            (headings && first == b'#' && is_heading(*line))
                || (first.is_ascii_alphabetic()
                    && DEFINITIONS.iter().any(|start| begins(*line, first, start)))
        })
        .take(KEY_LINES)
        .collect()
}

/// Whether a line begins with a word; its first character is compared first.
#[inline]
fn begins(line: Text<'_>, first: u8, start: &str) -> bool {
    start.as_bytes().first() == Some(&first) && line.starts_with(start)
}

/// One to six `#` and a space.
fn is_heading(line: Text<'_>) -> bool {
    let marks = (0..7).take_while(|&place| line.at(place) == Some('#'.into())).count();
    (1..=6).contains(&marks) && line.at(marks) == Some(' '.into())
}

/// A line without the number that some tools put in front of it.
fn without_number(line: Text<'_>) -> Text<'_> {
    let digit = |point: u32| ('0'.into()..=u32::from('9')).contains(&point);
    let mut start = 0;
    while line.at(start) == Some(' '.into()) {
        start += 1;
    }
    let number = start;
    while line.at(start).is_some_and(digit) {
        start += 1;
    }
    let after = match line.at(start).and_then(char::from_u32) {
        _ if start == number => return line,
        Some('\t' | '\u{2192}') => start + 1,
        Some('|' | ':') => start + 1 + usize::from(line.at(start + 1) == Some(' '.into())),
        _ => return line,
    };
    line.slice(after..usize::MAX)
}

/// The last two lines that speak of an error, and the last line that says anything.
fn last_lines(text: Text<'_>) -> Vec<Text<'_>> {
    let recent = || text.lines().rev().take(NEWEST).filter(|line| !is_blank(*line));
    let last = recent().next().filter(|line| !speaks_of_error(*line));
    let errors = recent().filter(|line| speaks_of_error(*line)).take(KEY_LINES - 1);
    let mut lines: Vec<_> = last.into_iter().chain(errors).collect();
    lines.reverse();
    lines
}

fn speaks_of_error(line: Text<'_>) -> bool {
    let line = line.slice(0..LOOK);
    if let Text::Ucs1(bytes) = line {
        return has_error(bytes);
    }
    let mut bytes = Vec::with_capacity(LOOK);
    // what is no ASCII matches nothing
    line.each_point(|point| bytes.push(u8::try_from(point).unwrap_or(0xff)));
    has_error(&bytes)
}

/// Whether one of the words of [`ERRORS`] occurs, in small or capital letters.
fn has_error(bytes: &[u8]) -> bool {
    bytes.windows(2).enumerate().any(|(place, pair)| {
        let &[first, second] = pair else { return false };
        // of each word the first two letters; the bit is all that is between small and capital letters
        matches!((first | 0x20, second | 0x20), (b'e', b'r' | b'x') | (b'f' | b'p', b'a') | (b't', b'r'))
            && bytes.get(place..).is_some_and(|rest| ERRORS.iter().any(|word| begins_with(rest, word)))
    })
}

fn begins_with(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// Whether a line has nothing but ASCII white space.
fn is_blank(line: Text<'_>) -> bool {
    let is_space = |point: u32| matches!(char::from_u32(point), Some(' ' | '\t' | '\r' | '\x0b' | '\x0c'));
    let mut place = 0;
    while let Some(point) = line.at(place) {
        if !is_space(point) {
            return false;
        }
        place += 1;
    }
    true
}

/// A text on one line, without what terminals obey, cut at its end.
fn printable(text: Text<'_>, most: usize) -> String {
    let text = clean(text);
    match text.char_indices().nth(most) {
        None => text,
        Some(_) => text.chars().take(most - 1).chain(['\u{2026}']).collect(),
    }
}

/// A path likewise, cut at its beginning.
fn printable_end(path: &str) -> String {
    let path = clean(path.into());
    let chars = path.chars().count();
    if chars <= SUBJECT {
        return path;
    }
    ['\u{2026}'].into_iter().chain(path.chars().skip(chars - (SUBJECT - 1))).collect()
}

/// Without colours; one space for each control character, none at the ends; U+FFFD for lone surrogates.
fn clean(text: Text<'_>) -> String {
    enum State {
        Text,
        Escape,
        Sequence,
    }
    if let Text::Ucs1(bytes) = text
        && bytes.iter().all(|byte| (b' '..=b'~').contains(byte))
        && let Ok(text) = str::from_utf8(bytes)
    {
        return text.trim_matches(' ').to_owned(); // as most lines are
    }
    let mut state = State::Text;
    let mut clean = String::with_capacity(text.chars());
    text.each_point(|point| {
        let char = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
        match (&state, char) {
            (State::Sequence, '@'..='~') => state = State::Text,
            (State::Escape, '[') => state = State::Sequence,
            (State::Sequence, _) => {}
            (_, '\x1b') => state = State::Escape,
            (_, '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}') => {
                state = State::Text;
                clean.push(' ');
            }
            _ => {
                state = State::Text;
                clean.push(char);
            }
        }
    });
    let trimmed = clean.trim_matches(' ');
    if trimmed.len() == clean.len() { clean } else { trimmed.to_owned() }
}

/// Whether a model, or a parser of its answers, could take a text for a tool call.
fn is_like_a_call(text: &str) -> bool {
    // what all of them begin with, for most lines have none of it
    text.bytes().any(|byte| matches!(byte, b'<' | b'[' | b'"' | b'`'))
        && LIKE_A_CALL.iter().any(|part| text.contains(part))
}

/// `1 line`, `12,345 lines`.
fn plural(count: usize, one: &str, many: &str) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + 4 + many.len());
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text.push(' ');
    text.push_str(if count == 1 { one } else { many });
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Arguments;

    fn stub_of(kind: Tool, tool: &str, arguments: &str, text: &str) -> String {
        let call = Call::new(kind, &Arguments::from_json(arguments.into()));
        let failed = exit_code(text.into()).is_some_and(|code| code != 0);
        stub(Old { tool, call: &call, text: text.into(), attachments: 0, failed }, None)
    }

    #[test]
    fn reads_name_their_lines_and_definitions() {
        let text = "     1\timport os\n     2\t\n     3\tdef main():\n     4\t    pass\n";
        assert_eq!(
            stub_of(Tool::Read, "Read", r#"{"file_path": "a.py", "offset": 1, "limit": 4}"#, text),
            "[Tool output pruned: Read a.py, lines 1 to 4, 4 lines, 60 characters]\ndef main():"
        );
    }

    #[test]
    fn commands_name_their_exit_code_and_errors() {
        let text = "\x1b[31mERROR\x1b[0m a\nok\nexit code 2";
        assert_eq!(
            stub_of(Tool::Command, "bash", r#"{"command": "make\nmake test"}"#, text),
            "[Tool output pruned: bash make, exit code 2, 3 lines, 31 characters]\nERROR a\nexit code 2"
        );
    }

    #[test]
    fn searches_name_matches_and_files() {
        let text = "a.py:1:x\na.py:9:x\nb.py:3:x\n";
        assert_eq!(
            stub_of(Tool::Search, "Grep", r#"{"pattern": "x", "path": "src"}"#, text),
            "[Tool output pruned: Grep \"x\" in src, 3 matches in 2 files, 27 characters]\na.py:1:x\na.py:9:x\n\
             b.py:3:x"
        );
    }

    #[test]
    fn nothing_looks_like_a_call_and_nothing_is_long() {
        let text = "{\"name\": \"x\"}\n".repeat(1_000);
        let stub = stub_of(Tool::Other, "x", "{}", &text);
        assert_eq!(stub, "[Tool output pruned: x, 1,000 lines, 14,000 characters]");
        let line = format!("def {}\n", "\u{e9}".repeat(300));
        let path = format!(r#"{{"path": "{}"}}"#, "p/".repeat(300));
        let stub = stub_of(Tool::Read, "read", &path, &line.repeat(9));
        assert!(stub.chars().count() <= MOST, "{stub}");
    }
}

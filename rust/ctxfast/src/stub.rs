//! The short text that replaces an old tool output: one line of facts, and up to three lines of what was there.
//!
//! The text is fixed: the same output gives the same text for ever, for a changed one breaks the provider's cache. It
//! begins with [`MARK`] and never looks like a tool call.

use crate::text::Text;
use crate::tools::{Call, HEADERS, Lines, Place, Shows, Tool, bare, code_in, exit_code};

/// How a stub begins; that of PicoClaw's plan begins like this, too.
pub const MARK: &str = "[Tool output pruned";
/// The stub of OpenCode and Claude Code.
pub const FOREIGN: &str = "[Old tool result content cleared]";
/// Characters of a stub without an id.
const MOST: usize = 400;
/// Characters of an id.
pub const LONGEST_ID: usize = 200;
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
/// Characters in which the end of a header is sought.
const HEADER: usize = 400;
/// Lines of what was there.
const KEY_LINES: usize = 3;
const LIKE_A_CALL: [&str; 6] = ["<tool_call", "<function", "<invoke", "[tool_use", "\"name\":", "```"];
const ERRORS: [&[u8]; 6] = [b"error", b"fail", b"exception", b"fatal", b"panic", b"traceback"];
/// Ends of paths of files in which `#` begins no comment.
const HEADINGS: [&str; 5] = [".md", ".mdx", ".markdown", ".rst", ".txt"];
const DEFINITIONS: [&str; 24] = [
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
    "async function ",
    "export ",
    "interface ",
    "type ",
    "public ",
    "private ",
    "namespace ",
    "CREATE ",
    "create table ",
    "abstract ",
    "protected ",
    "static ",
];
/// How lines begin that say nothing of what they stand around.
const WRAPPERS: [&str; 22] = [
    "<path>",
    "<type>",
    "<content>",
    "<file>",
    "<system",
    "<output>",
    "<result>",
    "<task_result>",
    "<shellId",
    "</",
    "Shell cwd was reset",
    "(Current directory:",
    "task_id:",
    "agentId:",
    "```",
    "npm ERR!",
    "npm error",
    "ERR_PNPM",
    "error: script",
    "make: ***",
    "Exit status",
    "Node.js v",
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Remark {
    /// All lines were read again.
    ReadAgain,
    /// It was changed.
    Edited,
}

/// Whether an output has been replaced before; `own` is the policy's fixed text.
#[must_use]
pub fn is_stub(text: Text<'_>, own: Option<&str>) -> bool {
    (text.starts_with(MARK) && text.chars() <= MOST + LONGEST_ID)
        || text.same(FOREIGN.into())
        || own.is_some_and(|own| text.same(own.into()))
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
    let Old { call, text, .. } = old;
    let body = body(text);
    let code = call.exits().and_then(|place| exit_code(text, place));
    let mut stub = facts(old, body, code, remark);
    let mut used = stub.chars().count();
    for line in key_lines(old, body, code) {
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

/// An output without the header that Codex puts in front of it.
fn body(text: Text<'_>) -> Text<'_> {
    const END: &str = "\nOutput:\n";
    if !text.starts_with_any(&HEADERS) {
        return text;
    }
    let head = text.slice(0..HEADER);
    let ends = (0..head.chars()).find(|&place| head.slice(place..usize::MAX).starts_with(END));
    ends.map_or(text, |end| text.slice(end + END.len()..usize::MAX))
}

/// The stub with the id under which the output has been saved: the last fact. Lines for which there is no room go.
#[must_use]
pub fn with_id(stub: &str, id: &str) -> String {
    let mut lines = stub.split('\n');
    let facts = lines.next().unwrap_or_default();
    let facts = facts.strip_suffix(']').unwrap_or(facts);
    let mut result = format!("{facts}, saved as {id}]");
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

fn facts(old: Old<'_>, body: Text<'_>, code: Option<i64>, remark: Option<Remark>) -> String {
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
    let part = call.read.as_ref().map(|(_, lines)| *lines).filter(|lines| *lines != Lines::ALL);
    if let Some(lines) = part {
        let last = if lines.last == Lines::END { "the end".to_owned() } else { lines.last.to_string() };
        add(&mut facts, &format!("lines {} to {last}", lines.first));
    }
    if let Some(code) = code {
        add(&mut facts, &format!("exit code {code}"));
    } else if old.failed {
        add(&mut facts, "failed");
    }
    if call.kind == Tool::Search || call.shows == Some(Shows::Hits) {
        add(&mut facts, &hits(body));
    } else if call.kind == Tool::List {
        let entries = body.lines().filter(|line| !is_blank(*line) && !line.starts_with("("));
        add(&mut facts, &plural(entries.count(), "entry", "entries"));
    } else if part.is_none() {
        let ends = body.chars().checked_sub(1).is_none_or(|last| body.at(last) == Some('\n'.into()));
        add(&mut facts, &plural(body.count(b'\n') + usize::from(!ends), "line", "lines"));
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

/// How much a search has found: as it says itself, or by its lines.
fn hits(text: Text<'_>) -> String {
    let (mut lines, mut matches, mut files) = (0, 0, 0);
    let mut file = None;
    for line in text.lines().filter(|line| !is_blank(*line)) {
        if lines == 0
            && let Some(found) = found(line)
        {
            return found;
        }
        lines += 1;
        let Some(colon) = line.find(b':').filter(|&colon| colon > 0) else { continue };
        let name = line.slice(0..colon);
        if number_at(name, 0).is_some_and(|(_, end)| end == colon) {
            matches += 1; // of the one file that was searched
        } else if let Some((number, end)) = number_at(line, colon + 1).filter(|(_, end)| *end <= colon + 10) {
            match line.at(end) {
                None => matches += number, // it gives the number for each file
                Some(point) if point == u32::from(b':') => matches += 1,
                _ => continue,
            }
            files += usize::from(!file.is_some_and(|file| name.same(file)));
            file = Some(name);
        }
    }
    match (matches, files) {
        (0, _) => plural(lines, "hit", "hits"),
        (_, 0) => plural(matches, "match", "matches"),
        _ => format!("{} in {}", plural(matches, "match", "matches"), plural(files, "file", "files")),
    }
}

/// `Found 12 files`, at the start of a line.
fn found(line: Text<'_>) -> Option<String> {
    const FOUND: &str = "Found ";
    let (number, end) = number_at(line, FOUND.len()).filter(|_| line.starts_with(FOUND))?;
    if end > FOUND.len() + 9 || line.at(end) != Some(' '.into()) {
        return None;
    }
    let letter = |place: usize| {
        let char = line.at(place).and_then(char::from_u32)?;
        char.is_ascii_lowercase().then_some(char)
    };
    let word: String = (end + 1..=end + 20).map_while(letter).collect();
    (!word.is_empty()).then(|| plural(number, &word, &word))
}

/// The number that stands at a place, and where it ends.
fn number_at(text: Text<'_>, start: usize) -> Option<(usize, usize)> {
    let (mut number, mut end) = (0_usize, start);
    while let Some(digit) = text.at(end).and_then(char::from_u32).and_then(|char| char.to_digit(10)) {
        number = number.saturating_mul(10).saturating_add(digit as usize);
        end += 1;
    }
    (end > start).then_some((number, end))
}

fn add(facts: &mut String, fact: &str) {
    facts.push_str(", ");
    facts.push_str(fact);
}

/// What the call was about: a command, a path, a pattern, a URL, its first arguments.
fn subject(call: &Call) -> String {
    match (call.kind, &call.pattern, &call.path) {
        (Tool::Command, ..) => printable(bare(call.command.as_deref().unwrap_or_default()).1.into(), SUBJECT),
        (Tool::Read | Tool::Edit, _, path) => {
            let path = printable_end(path.as_deref().unwrap_or_default());
            match call.edits.len() {
                0 | 1 => path,
                edits => format!("{path} and {} more", edits - 1),
            }
        }
        (_, Some(pattern), path) => {
            let pattern = printable(pattern.as_str().into(), SUBJECT);
            match path {
                Some(path) => format!("\"{pattern}\" in {}", printable_end(path)),
                None => format!("\"{pattern}\""),
            }
        }
        (_, None, Some(path)) => printable_end(path),
        (_, None, None) => {
            let subject = [&call.other, &call.details, &call.command].into_iter().find_map(Option::as_deref);
            printable(subject.unwrap_or_default().into(), SUBJECT)
        }
    }
}

/// Up to three lines of an output, by the kind of tool.
fn key_lines<'a>(old: Old<'_>, body: Text<'a>, code: Option<i64>) -> Vec<Text<'a>> {
    let call = old.call;
    if old.failed || (call.kind == Tool::Command && call.read.is_none() && call.shows.is_none()) {
        return last_lines(body, old.failed || code != Some(0));
    }
    let telling = |most| body.lines().filter(|line| is_telling(*line)).take(most);
    if let Some((path, _)) = &call.read {
        let outline = outline(body, has_headings(path));
        let bare = |line: Text<'a>| without_number(line.slice(0..LOOK));
        return if outline.is_empty() { telling(1).map(bare).collect() } else { outline };
    }
    match (call.kind, &call.path) {
        (Tool::Web, _) => {
            let headings = headings(body);
            if headings.is_empty() { telling(1).collect() } else { headings }
        }
        (Tool::Edit, _) => Vec::new(),
        (Tool::Other, _) => telling(1).collect(),
        (Tool::Search | Tool::List, Some(path)) => {
            let folder = format!("{}/", path.trim_end_matches('/'));
            let length = folder.chars().count();
            let inside = |line: Text<'a>| {
                if line.starts_with(&folder) { line.slice(length..usize::MAX) } else { line }
            };
            telling(KEY_LINES).map(inside).collect()
        }
        _ => telling(KEY_LINES).collect(),
    }
}

fn has_headings(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    HEADINGS.iter().any(|end| path.ends_with(end))
}

/// The first headings or definitions at the left margin; if there are none, the first inside of something.
fn outline(text: Text<'_>, headings: bool) -> Vec<Text<'_>> {
    let lines = || text.lines().take(OUTLINE).map(|line| without_number(line.slice(0..LOOK)));
    let is_outline = |line: &Text<'_>| (headings && is_heading(*line)) || is_definition(*line);
    let margin: Vec<_> = lines().filter(is_outline).take(KEY_LINES).collect();
    if !margin.is_empty() {
        return margin;
    }
    lines().filter(|line| is_definition(without_indent(*line))).take(KEY_LINES).collect()
}

/// The first headings that stand in no code.
fn headings(text: Text<'_>) -> Vec<Text<'_>> {
    let mut in_code = false;
    let is_outside = |line: &Text<'_>| {
        in_code ^= line.starts_with("```");
        !in_code && is_heading(*line)
    };
    text.lines().take(OUTLINE).filter(is_outside).take(KEY_LINES).collect()
}

/// Whether a line begins like a definition, and is more than the opening of a list.
fn is_definition(line: Text<'_>) -> bool {
    let last = line.chars().checked_sub(1).and_then(|last| line.at(last));
    line.starts_with_any(&DEFINITIONS) && last != Some('('.into())
}

fn without_indent(line: Text<'_>) -> Text<'_> {
    let is_blank = |&place: &usize| line.at(place).is_some_and(|point| point == 0x20 || point == 0x09);
    let indent = (0..line.chars()).take_while(is_blank).count();
    line.slice(indent..usize::MAX)
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
        Some('|' | ':' | '.') => start + 1 + usize::from(line.at(start + 1) == Some(' '.into())),
        _ => return line,
    };
    line.slice(after..usize::MAX)
}

/// The last two lines that speak of an error, if there can be any, and the last line that says anything.
fn last_lines(text: Text<'_>, can_be_errors: bool) -> Vec<Text<'_>> {
    let most = if can_be_errors { KEY_LINES - 1 } else { 0 };
    let (mut last, mut errors) = (None, Vec::new());
    let says = |line: &Text<'_>| is_telling(*line) && code_in(line.slice(0..LOOK), Place::Anywhere).is_none();
    for (place, line) in text.lines().rev().take(NEWEST).filter(says).enumerate() {
        if errors.len() < most && speaks_of_error(line) {
            errors.push(line);
        } else if place == 0 {
            last = Some(line);
        }
        if errors.len() == most {
            break;
        }
    }
    errors.reverse();
    errors.extend(last);
    errors
}

/// Whether one of the words for errors occurs, but not in an option, and not to say that there are none.
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

fn has_error(bytes: &[u8]) -> bool {
    bytes.windows(2).enumerate().any(|(place, pair)| {
        let &[first, second] = pair else { return false };
        // of each word the first two letters; the bit is all that is between small and capital letters
        matches!((first | 0x20, second | 0x20), (b'e', b'r' | b'x') | (b'f' | b'p', b'a') | (b't', b'r'))
            && bytes.split_at_checked(place).is_some_and(|(before, rest)| {
                ERRORS.iter().any(|word| begins_with(rest, word)) && !is_denied(before)
            })
    })
}

/// Whether what stands before a word says that there is none, or makes it a part of an option.
fn is_denied(before: &[u8]) -> bool {
    match before {
        [.., b'-'] | [.., b'n' | b'N', b'o' | b'O', b' '] | [b'0', b' '] => true,
        [.., digit, b'0', b' '] => !digit.is_ascii_digit(),
        _ => false,
    }
}

/// Whether a line has two letters and does not only stand around something.
fn is_telling(line: Text<'_>) -> bool {
    let line = line.slice(0..LOOK);
    let is_letter = |&place: &usize| {
        line.at(place).is_some_and(|point| {
            point > 0x7f || u8::try_from(point).is_ok_and(|byte| byte.is_ascii_alphabetic())
        })
    };
    let start = without_indent(line);
    (0..line.chars()).filter(is_letter).take(2).count() == 2 && !start.starts_with_any(&WRAPPERS)
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
#[must_use]
pub fn plural(count: usize, one: &str, many: &str) -> String {
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
    use crate::tools::{Arguments, members_of};

    fn stub_of(kind: Tool, tool: &str, arguments: &str, text: &str) -> String {
        let call = Call::new(kind, &Arguments::from_json(arguments.into(), members_of(kind)));
        let failed = exit_code(text.into(), Place::Anywhere).is_some_and(|code| code != 0);
        stub(Old { tool, call: &call, text: text.into(), attachments: 0, failed }, None)
    }

    #[test]
    fn reads_name_their_lines_and_definitions() {
        let text = "     1\timport os\n     2\t\n     3\tdef main():\n     4\t    pass\n";
        assert_eq!(
            stub_of(Tool::Read, "Read", r#"{"file_path": "a.py", "offset": 1, "limit": 4}"#, text),
            "[Tool output pruned: Read a.py, lines 1 to 4, 60 characters]\ndef main():"
        );
    }

    #[test]
    fn commands_name_their_exit_code_and_errors() {
        let text = "\x1b[31mERROR\x1b[0m a\nok\nexit code 2";
        assert_eq!(
            stub_of(Tool::Command, "bash", r#"{"command": "make\nmake test"}"#, text),
            "[Tool output pruned: bash make make test, exit code 2, 3 lines, 31 characters]\nERROR a\nok"
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
    fn hits_are_counted_as_searches_write_them() {
        for (text, facts) in [
            ("12:a\n13-b\n14:c", "2 matches"),
            ("a.py:3\nb.py:4\n", "7 matches in 2 files"),
            ("Found 28 matches\na.py:\n  Line 3: x", "28 matches"),
            ("Found many", "1 hit"),
            ("a.py\nb.py", "2 hits"),
            ("a:1234567890:", "1 hit"),
            ("", "0 hits"),
        ] {
            assert_eq!(hits(text.into()), facts, "{text}");
        }
    }

    #[test]
    fn errors_are_none_that_did_not_happen() {
        for (line, speaks) in [
            ("TypeError: x", true),
            ("10 failed", true),
            ("0 failed, 3 passed", false),
            ("no errors", false),
            ("lint --error-on-warnings", false),
            ("0 errors, 2 failures", true),
        ] {
            assert_eq!(speaks_of_error(line.into()), speaks, "{line}");
        }
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

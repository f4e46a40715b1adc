//! What a tool call is about: which kind of tool, which file and lines, which command; and whether it failed.
//!
//! Names of tools and keys of arguments are those of the agents in use; a table of patterns sorts them, and the caller
//! extends it.

use crate::text::Text;

mod arguments;

pub use arguments::{Arguments, KEYS, Members, Value};

/// What a tool does, as far as its old outputs go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Shows a file, or some lines of it.
    Read,
    /// Changes files.
    Edit,
    /// Runs a command.
    Command,
    /// Searches files.
    Search,
    /// Lists files.
    List,
    /// Reads or searches the web.
    Web,
    /// Lets another agent work.
    Agent,
    /// Anything else.
    Other,
}

impl Tool {
    /// All kinds.
    pub const ALL: [Tool; 8] = [
        Tool::Read,
        Tool::Edit,
        Tool::Command,
        Tool::Search,
        Tool::List,
        Tool::Web,
        Tool::Agent,
        Tool::Other,
    ];

    /// The kind's name in policies and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Tool::Read => "read",
            Tool::Edit => "edit",
            Tool::Command => "command",
            Tool::Search => "search",
            Tool::List => "list",
            Tool::Web => "web",
            Tool::Agent => "agent",
            Tool::Other => "other",
        }
    }

    /// The kind with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Patterns of tools' names, small letters, and what kind of tool they are. The first that matches counts.
pub const KINDS: &[(&str, Tool)] = &[
    // agents
    ("task", Tool::Agent),
    ("agent", Tool::Agent),
    ("*subagent*", Tool::Agent),
    ("*sub_agent*", Tool::Agent),
    ("*spawn_agent*", Tool::Agent),
    ("*delegate*", Tool::Agent),
    ("new_task", Tool::Agent),
    // the web
    ("*web*fetch*", Tool::Web),
    ("*web*search*", Tool::Web),
    ("*google*search*", Tool::Web),
    ("fetch", Tool::Web),
    ("*fetch__*", Tool::Web),
    ("*fetch*url*", Tool::Web),
    ("*fetch*page*", Tool::Web),
    ("*read_web*", Tool::Web),
    ("*open_url*", Tool::Web),
    ("*browse_*", Tool::Web),
    ("*scrape*", Tool::Web),
    ("*crawl*", Tool::Web),
    // changing files
    ("edit", Tool::Edit),
    ("*edit_file*", Tool::Edit),
    ("*file_edit*", Tool::Edit),
    ("*multiedit*", Tool::Edit),
    ("*multi_edit*", Tool::Edit),
    ("notebookedit", Tool::Edit),
    ("write", Tool::Edit),
    ("*write_file*", Tool::Edit),
    ("*write_to_file*", Tool::Edit),
    ("*create_file*", Tool::Edit),
    ("create", Tool::Edit),
    ("*str_replace*", Tool::Edit),
    ("*apply_patch*", Tool::Edit),
    ("*applypatch*", Tool::Edit),
    ("*apply_diff*", Tool::Edit),
    ("patch", Tool::Edit),
    ("replace", Tool::Edit),
    ("*replace_in_file*", Tool::Edit),
    ("*insert_edit*", Tool::Edit),
    ("*update_file*", Tool::Edit),
    ("*delete_file*", Tool::Edit),
    ("*move_file*", Tool::Edit),
    // reading files
    ("read", Tool::Read),
    ("*read_file*", Tool::Read),
    ("*readfile*", Tool::Read),
    ("*read_text_file*", Tool::Read),
    ("*file_read*", Tool::Read),
    ("notebookread", Tool::Read),
    ("view", Tool::Read),
    ("*view_file*", Tool::Read),
    ("*open_file*", Tool::Read),
    ("*get_file", Tool::Read),
    ("*get_file_contents*", Tool::Read),
    ("*__read", Tool::Read),
    ("fs_read", Tool::Read),
    ("cat", Tool::Read),
    // listing files
    ("ls", Tool::List),
    ("list", Tool::List),
    ("*list_dir*", Tool::List),
    ("*listdir*", Tool::List),
    ("*list_files*", Tool::List),
    ("*directory_tree*", Tool::List),
    ("tree", Tool::List),
    ("*glob*", Tool::List),
    ("*find_file*", Tool::List),
    ("*find_by_name*", Tool::List),
    ("*file_search*", Tool::List),
    // searching
    ("*grep*", Tool::Search),
    ("rg", Tool::Search),
    ("search", Tool::Search),
    ("*search_file*", Tool::Search),
    ("*search_code*", Tool::Search),
    ("*code*search*", Tool::Search),
    ("*search_text*", Tool::Search),
    ("*text_search*", Tool::Search),
    ("*search_in*", Tool::Search),
    ("*search_for_pattern*", Tool::Search),
    ("*semantic_search*", Tool::Search),
    ("find", Tool::Search),
    // commands
    ("*bash*", Tool::Command),
    ("sh", Tool::Command),
    ("*shell*", Tool::Command),
    ("exec", Tool::Command),
    ("*exec_command*", Tool::Command),
    ("*execute_command*", Tool::Command),
    ("*run_command*", Tool::Command),
    ("*terminal*", Tool::Command),
    ("write_stdin", Tool::Command),
    ("cmd", Tool::Command),
    ("run", Tool::Command),
    ("python", Tool::Command),
    ("*ipython*", Tool::Command),
    ("*jupyter*", Tool::Command),
    ("*run_code*", Tool::Command),
];

/// A pattern of names, in which `*` is anything; the case of A to Z does not matter.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
}

impl Pattern {
    /// The pattern with this text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.to_ascii_lowercase() }
    }

    /// Whether it matches a whole name, given in small letters.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        matches(&self.text, name)
    }
}

/// Whether a pattern matches a whole name; both in small letters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    let Some((middle, end)) = rest.rsplit_once('*') else { return name.ends_with(rest) };
    for part in middle.split('*') {
        let Some(found) = name.find(part) else { return false };
        name = name.get(found + part.len()..).unwrap_or_default();
    }
    name.ends_with(end)
}

/// Tools, by kind or by name.
#[derive(Clone, Debug, Default)]
pub struct Names {
    kinds: Vec<Tool>,
    patterns: Vec<Pattern>,
}

impl Names {
    /// A list of kinds and patterns of names; a word that is a kind is both.
    #[must_use]
    pub fn new<'a>(entries: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names = Self::default();
        for entry in entries {
            names.kinds.extend(Tool::from_name(entry));
            names.patterns.push(Pattern::new(entry));
        }
        names
    }

    /// Whether a kind is on the list.
    #[must_use]
    pub fn has_kind(&self, kind: Tool) -> bool {
        self.kinds.contains(&kind)
    }

    /// Whether a name is on the list.
    #[must_use]
    pub fn has_name(&self, name: &str) -> bool {
        if self.patterns.is_empty() {
            return false;
        }
        let name = name.to_ascii_lowercase();
        self.patterns.iter().any(|pattern| pattern.matches(&name))
    }
}

/// Which kind of tool a name is.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    own: Vec<(Pattern, Tool)>,
}

impl Kinds {
    /// The table of the package, after what the caller knows.
    #[must_use]
    pub fn new(own: Vec<(Pattern, Tool)>) -> Self {
        Self { own }
    }

    /// The kind of the first pattern that matches.
    #[must_use]
    pub fn of(&self, name: &str) -> Tool {
        let name = name.to_ascii_lowercase();
        let own = self.own.iter().find(|(pattern, _)| pattern.matches(&name)).map(|&(_, kind)| kind);
        let known = || KINDS.iter().find(|(pattern, _)| matches(pattern, &name)).map(|&(_, kind)| kind);
        own.or_else(known).unwrap_or(Tool::Other)
    }
}

/// Lines of a file, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The first one.
    pub first: i64,
    /// The last one, or [`Lines::END`].
    pub last: i64,
}

impl Lines {
    /// The last line of a file, however long it is.
    pub const END: i64 = i32::MAX as i64;
    /// A whole file.
    pub const ALL: Lines = Lines { first: 1, last: Self::END };

    /// Whether all of the other lines are among these.
    #[must_use]
    pub fn cover(self, other: Lines) -> bool {
        self.first <= other.first && self.last >= other.last
    }

    /// Whether one of the other lines is among these.
    #[must_use]
    pub fn overlap(self, other: Lines) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// What a call is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What the tool does.
    pub kind: Tool,
    /// A file or a directory.
    pub path: Option<String>,
    /// The file that is read, and which lines of it.
    pub read: Option<(String, Lines)>,
    /// The files that are changed.
    pub edits: Vec<String>,
    /// The command that is run.
    pub command: Option<String>,
    /// What is searched.
    pub pattern: Option<String>,
    /// A URL or a description.
    pub other: Option<String>,
    /// The first arguments of a tool that we do not know.
    pub details: Option<String>,
    /// What a command shows, if it does nothing else.
    pub shows: Option<Shows>,
}

/// What a command shows that does nothing else, by the name of its first program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Files, names, a history.
    Lines,
    /// What a search has found.
    Hits,
}

/// Which members of the arguments of a kind of tool are wanted.
#[must_use]
pub fn members_of(kind: Tool) -> Members {
    match kind {
        Tool::Read | Tool::Edit | Tool::Command => Members::Known,
        _ => Members::All,
    }
}

impl Call {
    /// What a call of a kind of tool with these arguments is about.
    #[must_use]
    pub fn new(kind: Tool, arguments: &Arguments) -> Self {
        let mut kind = kind;
        let mut path = if kind == Tool::Command { None } else { arguments.text(arguments::PATH) };
        let mut command = arguments.command();
        if kind == Tool::Edit && command.as_deref() == Some("view") {
            kind = Tool::Read; // Anthropic's text editor
        } else if kind == Tool::Edit {
            command = None;
        }
        let read = match (kind, &path, &command) {
            (Tool::Read, Some(path), _) => Some((path.clone(), arguments.lines())),
            (Tool::Command, _, Some(command)) => shell_read(command),
            _ => None,
        };
        let shows = match (kind, &command) {
            (Tool::Command, Some(command)) => shown_by(bare(command).1),
            _ => None,
        };
        let mut edits = Vec::new();
        if kind == Tool::Edit {
            edits = match &path {
                Some(path) => vec![path.clone()],
                None => arguments.patch().map_or_else(Vec::new, |patch| patched(&patch)),
            };
            path = edits.first().cloned();
        }
        Self {
            kind,
            path,
            read,
            edits,
            command,
            pattern: arguments.text(arguments::PATTERN),
            other: arguments.text(arguments::OTHER),
            details: if members_of(kind) == Members::All { arguments.details() } else { None },
            shows,
        }
    }

    /// Where its output may name an exit code, if anywhere.
    #[must_use]
    pub fn exits(&self) -> Option<Place> {
        match self.kind {
            Tool::Command if self.read.is_some() || self.shows.is_some() => Some(Place::Alone),
            Tool::Command | Tool::Other => Some(Place::Anywhere),
            _ => None,
        }
    }

    /// What a later success of the same tool must be about to make up for an error: the path, or the first two words of
    /// the command.
    #[must_use]
    pub fn target(&self) -> Option<String> {
        if let (None, Some(command)) = (&self.path, &self.command) {
            return Some(words(bare(command).1).take(2).collect::<Vec<_>>().join(" "));
        }
        [&self.path, &self.pattern, &self.other, &self.details].into_iter().find_map(Clone::clone)
    }
}

/// The directory into which a command changes first, and the command without that, exports and variables.
pub(crate) fn bare(command: &str) -> (Option<&str>, &str) {
    const BLANK: [char; 2] = [' ', '\t'];
    let (mut folder, mut rest) = (None, command.trim_start_matches(SPACE));
    loop {
        let (is_folder, after) = match (rest.strip_prefix("cd"), rest.strip_prefix("export")) {
            (Some(after), _) => (true, after),
            (None, Some(after)) => (false, after),
            (None, None) => break,
        };
        let end = after.find(['&', '|', ';', '\n']);
        let parts = end.filter(|_| after.starts_with(BLANK)).and_then(|end| after.split_at_checked(end));
        let Some((argument, next)) =
            parts.and_then(|(argument, next)| Some((argument, next.strip_prefix("&&")?)))
        else {
            break;
        };
        if is_folder {
            folder = Some(argument.trim_matches(BLANK));
        }
        rest = next.trim_start_matches([' ', '\t', '\n']);
    }
    while let Some((name, value)) = rest.split_once('=') {
        let is_name = name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
            && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
        let end = value.find([' ', '\t', '\n', '\'', '"']);
        let next = end.filter(|_| is_name).and_then(|end| value.get(end..));
        let Some(next) = next.filter(|next| next.starts_with(BLANK)) else { break };
        rest = next.trim_start_matches(BLANK);
    }
    (folder, rest)
}

/// Whether a command shows something and does nothing else, by the name of its first program.
fn shown_by(command: &str) -> Option<Shows> {
    let mut names = words(command).filter(|word| !word.starts_with('-'));
    let (program, verb) = (names.next()?, names.next().unwrap_or_default());
    match program {
        "rg" | "grep" | "egrep" | "ag" | "ack" => Some(Shows::Hits),
        "cat" | "sed" | "nl" | "head" | "tail" | "ls" | "find" | "tree" | "wc" | "stat" | "du" | "which"
        | "pwd" => Some(Shows::Lines),
        "git" => match verb {
            "grep" => Some(Shows::Hits),
            "log" | "diff" | "show" | "status" | "branch" | "blame" | "ls-files" => Some(Shows::Lines),
            _ => None,
        },
        _ => None,
    }
}

/// ASCII white space.
const SPACE: [char; 6] = [' ', '\t', '\n', '\r', '\x0c', '\x0b'];

/// The words between ASCII white space.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(SPACE).filter(|word| !word.is_empty())
}

/// A whole number of at most nine digits.
fn digits(text: &str) -> Option<i64> {
    let is_short = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_short { text.parse().ok() } else { None }
}

/// The file and the lines that a plain `cat`, `nl -ba`, `head` or `sed -n` prints, also one behind the other.
fn shell_read(command: &str) -> Option<(String, Lines)> {
    let (folder, command) = bare(command);
    if command.contains([';', '&', '<', '>', '$', '`', '*', '?', '(', ')', '{', '}', '\\', '\n']) {
        return None;
    }
    let mut parts = command.split('|').map(|part| words(part).collect::<Vec<_>>());
    let (first, second, third) = (parts.next()?, parts.next(), parts.next());
    let whole = match first.as_slice() {
        ["cat", path] | ["cat", "-n", path] | ["nl", "-ba", path] => Some(*path),
        _ => None,
    };
    let (path, lines) = match (whole, second, third) {
        (Some(path), None, None) => (path, Lines::ALL),
        (Some(path), Some(selection), None) => (path, selected(&selection)?),
        (None, None, None) => {
            let (path, selection) = first.split_last()?;
            (*path, selected(selection)?)
        }
        _ => return None,
    };
    let path = path.trim_matches(QUOTES);
    if path.is_empty() || path.starts_with('-') {
        return None;
    }
    Some(match folder.filter(|_| !path.starts_with(['/', '~'])) {
        Some(folder) => (format!("{}/{path}", folder.trim_matches(QUOTES).trim_end_matches('/')), lines),
        None => (path.to_owned(), lines),
    })
}

const QUOTES: [char; 2] = ['\'', '"'];

/// The lines that `sed -n` or `head` lets through.
fn selected(words: &[&str]) -> Option<Lines> {
    match words {
        ["sed", "-n", span] => {
            let bare = match span.chars().next().filter(|char| QUOTES.contains(char)) {
                Some(quote) => span.strip_prefix(quote)?.strip_suffix(quote)?,
                None => span,
            };
            let (first, last) = bare.strip_suffix('p')?.split_once(',')?;
            Some(Lines { first: digits(first)?.max(1), last: digits(last)? })
        }
        ["head", "-n", count] => Some(Lines { first: 1, last: digits(count)? }),
        ["head", count] => Some(Lines { first: 1, last: digits(count.strip_prefix('-')?)? }),
        _ => None,
    }
}

/// The files that a patch in the form of `apply_patch` names.
fn patched(patch: &str) -> Vec<String> {
    const MARKS: [&str; 3] = ["*** Update File: ", "*** Add File: ", "*** Delete File: "];
    let file = |line: &str| MARKS.iter().find_map(|mark| line.strip_prefix(mark)).map(str::to_owned);
    let lines = patch.split('\n').map(|line| line.trim_end_matches('\r'));
    lines.filter_map(file).filter(|path| !path.is_empty()).collect()
}

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
    fn patterns() {
        for (pattern, name, is) in [
            ("read", "read", true),
            ("read", "reader", false),
            ("*read_file*", "mcp__fs__read_file", true),
            ("*web*fetch*", "webfetch", true),
            ("*web*fetch*", "fetch_web", false),
            ("*__read", "fs__read", true),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*", "", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(name), is, "{pattern} {name}");
        }
        assert_eq!(Kinds::default().of("Bash"), Tool::Command);
        assert_eq!(Kinds::default().of("TodoWrite"), Tool::Other);
        assert_eq!(Kinds::new(vec![(Pattern::new("Bash"), Tool::Read)]).of("bash"), Tool::Read);
    }

    #[test]
    fn plain_shell_reads() {
        let lines = |first, last| Some(("f".to_owned(), Lines { first, last }));
        assert_eq!(shell_read("cat f"), lines(1, Lines::END));
        assert_eq!(shell_read(" cat  -n 'f' "), lines(1, Lines::END));
        assert_eq!(shell_read("sed -n '10,20p' f"), lines(10, 20));
        assert_eq!(shell_read("sed -n 10,20p f"), lines(10, 20));
        assert_eq!(shell_read("head -n 5 f"), lines(1, 5));
        assert_eq!(shell_read("head -5 f"), lines(1, 5));
        assert_eq!(shell_read("nl -ba f | sed -n '10,20p'"), lines(10, 20));
        assert_eq!(shell_read("cd 'a/' && X=1 cat f").map(|(path, _)| path).as_deref(), Some("a/f"));
        assert_eq!(shell_read("cd a && cat /f").map(|(path, _)| path).as_deref(), Some("/f"));
        for command in [
            "cat f g",
            "cat f | wc",
            "head -3 f | cat",
            "cat f || cat g",
            "sed -n '1,2p f",
            "head f",
            "cat -x",
            "sed -n 1,2p",
            "",
        ] {
            assert_eq!(shell_read(command), None, "{command}");
        }
    }

    #[test]
    fn bare_commands() {
        for (command, folder, rest) in [
            (" cd /a/b && export X=1 && make test", Some("/a/b"), "make test"),
            ("A=1 B='x y' make", None, "B='x y' make"),
            ("A=1 B=2 make", None, "make"),
            ("cd a; make", None, "cd a; make"),
            ("cdx && make", None, "cdx && make"),
            ("cd a &&\n ls", Some("a"), "ls"),
            ("A=1", None, "A=1"),
        ] {
            assert_eq!(bare(command), (folder, rest), "{command}");
        }
        assert_eq!(shown_by("git --no-pager diff x"), Some(Shows::Lines));
        assert_eq!(shown_by("rg -n x"), Some(Shows::Hits));
        assert_eq!(shown_by("git commit"), None);
        assert_eq!(shown_by(""), None);
    }

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

    #[test]
    fn patches_name_their_files() {
        let patch = "*** Begin Patch\n*** Update File: a.py\r\n@@\n*** Add File: b.py\n*** Add File: \n";
        assert_eq!(patched(patch), ["a.py", "b.py"]);
    }
}

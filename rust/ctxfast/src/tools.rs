//! What a tool call is about: which kind of tool ([`names`]), which file and lines ([`shell`] for commands), and whether
//! it failed ([`failure`]).
//!
//! Names of tools and keys of arguments are those of the agents in use; a table of patterns sorts them, and the caller
//! extends it.

mod arguments;
mod failure;
mod names;
mod shell;

pub use arguments::{Arguments, KEYS, Members, Value};
pub(crate) use failure::{HEADERS, code_in};
pub use failure::{Place, begins_as_failure, exit_code};
pub use names::{KINDS, Kinds, Names, Pattern, Tool};
pub use shell::Shows;
pub(crate) use shell::bare;
use shell::{shell_read, shown_by, words};

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

/// A whole number of at most nine digits.
fn digits(text: &str) -> Option<i64> {
    let is_short = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_short { text.parse().ok() } else { None }
}

/// The files that a patch in the form of `apply_patch` names.
fn patched(patch: &str) -> Vec<String> {
    const MARKS: [&str; 3] = ["*** Update File: ", "*** Add File: ", "*** Delete File: "];
    let file = |line: &str| MARKS.iter().find_map(|mark| line.strip_prefix(mark)).map(str::to_owned);
    let lines = patch.split('\n').map(|line| line.trim_end_matches('\r'));
    lines.filter_map(file).filter(|path| !path.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_name_their_files() {
        let patch = "*** Begin Patch\n*** Update File: a.py\r\n@@\n*** Add File: b.py\n*** Add File: \n";
        assert_eq!(patched(patch), ["a.py", "b.py"]);
    }
}

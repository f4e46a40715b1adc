//! What kind of tool a name is: a table of patterns, which the caller extends.

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
}

//! What a shell command is about: which program, in which directory; and which file it shows, if it does nothing else.

use super::{Lines, digits};

/// What a command shows that does nothing else, by the name of its first program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Files, names, a history.
    Lines,
    /// What a search has found.
    Hits,
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
pub(super) fn shown_by(command: &str) -> Option<Shows> {
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
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(SPACE).filter(|word| !word.is_empty())
}

/// The file and the lines that a plain `cat`, `nl -ba`, `head` or `sed -n` prints, also one behind the other.
pub(super) fn shell_read(command: &str) -> Option<(String, Lines)> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}

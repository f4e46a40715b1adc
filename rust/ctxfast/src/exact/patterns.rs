//! Which split patterns are known: by name, and as the regular expressions of files.

use super::scan::Grammar;

/// A split pattern that is known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// GPT-4, GPT-3.5, as tiktoken has it: white space at the end of a text is one piece
    Cl100k,
    /// GPT-4o and later, MiniMax
    O200k,
    /// Llama 3, GLM 4: that of GPT-4 in its older form
    Llama3,
    /// Qwen 2 and 3: that of Llama 3 with single digits
    Qwen2,
    /// Mistral: that of GPT-4o with single digits and without contractions
    Tekken,
}

impl Split {
    /// All of them, in the order of their definition.
    pub const ALL: [Split; 5] = [Split::Cl100k, Split::O200k, Split::Llama3, Split::Qwen2, Split::Tekken];

    /// Its name, such as `llama3`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Split::Cl100k => "cl100k",
            Split::O200k => "o200k",
            Split::Llama3 => "llama3",
            Split::Qwen2 => "qwen2",
            Split::Tekken => "tekken",
        }
    }

    /// The pattern of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Split> {
        Split::ALL.into_iter().find(|split| split.name() == name)
    }

    pub(super) fn grammar(self) -> Grammar {
        match self {
            Split::Cl100k => Grammar::CL100K,
            Split::O200k => Grammar::O200K,
            Split::Llama3 => Grammar::LLAMA3,
            Split::Qwen2 => Grammar::QWEN2,
            Split::Tekken => Grammar::TEKKEN,
        }
    }

    /// That of a regular expression in a `tokenizer.json` or a `tekken.json`.
    ///
    /// Possessive quantifiers, as tiktoken writes them, are none of every engine, so their forms are not among these.
    pub(super) fn of_regex(regex: &str) -> Option<Split> {
        WRITTEN.iter().find(|(written, _)| *written == regex).map(|&(_, split)| split)
    }
}

const WRITTEN: [(&str, Split); 4] = [
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Split::Llama3,
    ),
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Split::Qwen2,
    ),
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Split::O200k,
    ),
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Split::Tekken,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_names() {
        for split in Split::ALL {
            assert_eq!(Split::named(split.name()), Some(split));
        }
        assert_eq!(Split::named("gpt2"), None);
        assert_eq!(Split::of_regex(r"\s+"), None);
    }
}

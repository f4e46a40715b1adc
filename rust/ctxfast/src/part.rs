//! What a piece of a message is: it decides the rate at which its text is counted.

/// The kinds of text in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What people and the model say: content, reasoning, refusals.
    Prose,
    /// What tools say.
    Output,
    /// `reasoning` where there is no `reasoning_content`, and what a message says in ways that we do not know; PicoClaw
    /// counts neither.
    Alias,
    /// Names and descriptions of tools.
    Name,
    /// Arguments of calls and schemas of tools.
    Arguments,
    /// Ids and types of calls and results.
    Id,
}

/// The role of a message, as far as the structure of a conversation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `system`, `developer`
    System,
    /// `user`
    User,
    /// `assistant`
    Assistant,
    /// `tool`, `function`: the message is one tool result
    Result,
    /// anything else
    Other,
}

impl Role {
    /// The role that a name stands for.
    #[inline]
    #[must_use]
    pub fn from_name(name: &[u8]) -> Self {
        // comparisons of whole words; a `match` compares byte by byte
        if name == b"tool" || name == b"function" {
            Self::Result
        } else if name == b"assistant" {
            Self::Assistant
        } else if name == b"user" {
            Self::User
        } else if name == b"system" || name == b"developer" {
            Self::System
        } else {
            Self::Other
        }
    }
}

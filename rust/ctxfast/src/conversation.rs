//! A conversation that is read message by message, from wherever it lies, and only as far as it is needed.

use crate::part::Role;
use crate::transcript::Transcript;

/// A conversation as the walk needs it: random access to its messages.
pub trait Conversation {
    /// Why a message could not be read.
    type Error;

    /// Number of messages.
    fn count(&self) -> usize;

    /// The role of a message, at a glance.
    ///
    /// # Errors
    /// The message cannot be read.
    fn role(&mut self, index: usize) -> Result<Role, Self::Error>;

    /// Reads a message: appends it to `transcript` and returns its tokens.
    ///
    /// # Errors
    /// The message cannot be read.
    fn read(&mut self, index: usize, transcript: &mut Transcript) -> Result<u64, Self::Error>;

    /// Of a message with the role of a user: whether it has something of its own, and whether it holds tool results.
    ///
    /// # Errors
    /// The message cannot be read.
    fn user(&mut self, index: usize) -> Result<(bool, bool), Self::Error>;

    /// Tokens of a user message without its tool results.
    ///
    /// # Errors
    /// The message cannot be read.
    fn pinned_tokens(&mut self, index: usize) -> Result<u64, Self::Error>;
}

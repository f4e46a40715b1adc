//! What is to be done with a list: which outputs are replaced, by what and why; or why nothing is.

use std::rc::Rc;

use crate::tools::Call;

/// What an output is about.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Name of the tool.
    pub tool: String,
    /// What the call was about.
    pub call: Call,
    /// The tool reported an error.
    pub failed: bool,
    /// Characters of the output.
    pub characters: usize,
    /// It stays by a rule.
    pub kept: bool,
}

/// What would replace an output.
#[derive(Clone, Debug)]
pub struct Stub {
    /// The text.
    pub text: String,
    /// Its tokens.
    pub tokens: u64,
    /// It is shorter than the output.
    pub shorter: bool,
}

/// Why an output is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is old.
    Aged,
    /// A later read has all of its lines.
    Covered,
    /// The file was changed later.
    Edited,
    /// An error that was made up for, or one of too many.
    Error,
    /// It is huge: only its ends stay.
    Clamped,
}

impl Reason {
    const ALL: [Reason; 5] = [Reason::Aged, Reason::Covered, Reason::Edited, Reason::Error, Reason::Clamped];

    /// The reason with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// The reason's name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Reason::Aged => "aged",
            Reason::Covered => "covered",
            Reason::Edited => "edited",
            Reason::Error => "error",
            Reason::Clamped => "clamped",
        }
    }
}

/// Which rule was in the way of a call that replaces nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Without that guard there would be enough.
    ProtectedTurns,
    /// All that is old is in the newest tokens of output.
    ProtectedTokens,
    /// There are outputs, but none that is older than the protected steps.
    ProtectedSteps,
    /// It is too little, or does not pay.
    Threshold,
    /// The list is too small.
    Trigger,
    /// All that could go stays by a rule.
    Kept,
}

impl Block {
    const ALL: [Block; 6] = [
        Block::ProtectedTurns,
        Block::ProtectedTokens,
        Block::ProtectedSteps,
        Block::Threshold,
        Block::Trigger,
        Block::Kept,
    ];

    /// The rule with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|block| block.name() == name)
    }

    /// The rule's name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Block::ProtectedTurns => "protected_turns",
            Block::ProtectedTokens => "protected_tokens",
            Block::ProtectedSteps => "protected_steps",
            Block::Threshold => "prune_threshold",
            Block::Trigger => "trigger_tokens",
            Block::Kept => "kept",
        }
    }
}

/// An output that is to be replaced.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// Its number.
    pub output: usize,
    /// Why.
    pub reason: Reason,
    /// What it is about.
    pub facts: Rc<Facts>,
    /// By what.
    pub stub: Stub,
}

/// What is to be done.
#[derive(Debug, Default)]
pub struct Plan {
    /// In the order of the outputs.
    pub replacements: Vec<Replacement>,
    /// If there are none: why.
    pub blocked_by: Option<Block>,
    /// Outputs of the newest step that read lines again of which every copy had been replaced.
    pub rereads: Vec<usize>,
}

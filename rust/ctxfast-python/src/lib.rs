//! The Python module `ctxfast._core`: the list of what it exports and nothing else.
//!
//! Data flows one way: [`read`] turns Python messages into text views and small tables, the crate `ctxfast` decides,
//! and the functions here hand the answer back ([`write`] where that is a new message).

mod adders;
mod convert;
mod counter;
mod errors;
mod fit;
mod ledger;
mod made;
mod memory;
mod mend;
mod model;
mod numbers;
mod outputs;
mod overflow;
mod policy;
mod prune;
mod pruned;
mod read;
mod repair;
mod repaired;
mod structure;
mod tail;
mod text_ledger;
mod tokenizer_files;
mod transcribe;
mod truncate;
mod validate;
mod write;

/// Counting, cutting and tail selection for lists of LLM messages. The public names are in `ctxfast`.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::counter::{TokenCounter, count_tokens, estimator_table};
    #[pymodule_export]
    use crate::fit::{fit, keep_last};
    #[pymodule_export]
    use crate::ledger::{TokenLedger, restore_ledger};
    #[pymodule_export]
    use crate::made::restore_counter;
    #[pymodule_export]
    use crate::model::image_tokens;
    #[pymodule_export]
    use crate::overflow::{ErrorInfo, classify_error, restore_error_info};
    #[pymodule_export]
    use crate::policy::{CachePrices, tool_kinds};
    #[pymodule_export]
    use crate::prune::prune_tool_outputs;
    #[pymodule_export]
    use crate::pruned::{Edit, Pruned, Report};
    #[pymodule_export]
    use crate::repair::{remove, repair};
    #[pymodule_export]
    use crate::repaired::{Fix, RepairReport, Repaired};
    #[pymodule_export]
    use crate::structure::{atoms, find_safe_cut, safe_cuts, step_starts, turn_starts};
    #[pymodule_export]
    use crate::tail::{FreshTail, fresh_tail_budget, select_fresh_tail};
    #[pymodule_export]
    use crate::text_ledger::TextLedger;
    #[pymodule_export]
    use crate::transcribe::transcribe;
    #[pymodule_export]
    use crate::truncate::{
        cut_text, join_ascii, kept_ends, output_hash, output_json, output_text, text_size, truncation_marker,
        write_output,
    };
    #[pymodule_export]
    use crate::validate::{Problem, validate};

    /// Version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// Whether the module was built with optimisation: figures from a build without are worth nothing.
    #[pymodule_export]
    const OPTIMISED: bool = !cfg!(debug_assertions);
}

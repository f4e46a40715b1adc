//! ctxfast keeps an LLM agent's conversation inside the model's context window.
//!
//! This crate knows text, messages and budgets. It knows no Python and does no I/O; the crate `ctxfast-python` reads
//! Python objects for it. Data flows one way:
//!
//! 1. **read**: somebody fills a [`Transcript`](transcript::Transcript), the compact table of a conversation, and
//!    weighs each [`Text`](text::Text) as it lies in memory;
//! 2. **plan**: pure functions on those small tables: what belongs together ([`steps`]), which newest part fits a
//!    budget ([`tail`]), what a provider would refuse ([`validate`]) and how that is mended ([`repair`]), which old tool
//!    outputs go ([`prune`], by what [`tools`] know of a call) and what stays of them
//!    ([`stub`]), where a long output is cut ([`truncate`]);
//! 3. **apply**: somebody writes the result back.
//!
//! What a text costs is asked of a counter: [`flat`], so many characters a token, or [`estimate`], by the characters
//! and their neighbours, for a family of tokenizers, or [`exact`], by the vocabularies that are public; [`batch`] counts
//! many texts at once. [`overheads`]
//! are what is sent beside texts, [`media`] knows images and sound by their headers, and [`safety`] raises what was
//! estimated.
//!
//! ```
//! use ctxfast::{flat::{Flat, Weight}, part::Kind, text::Text};
//!
//! let counter = Flat::PICOCLAW_4; // 4 characters per token, rounded up
//! let mut weight = Weight::default();
//! counter.weigh(Kind::Prose, Text::from("How many tokens is this?"), &mut weight);
//! assert_eq!(counter.tokens(&weight), 6);
//! ```

mod backwards;
pub mod batch;
pub mod budget;
pub mod conversation;
mod dispatch;
pub mod estimate;
pub mod exact;
pub mod fit;
pub mod flat;
pub mod json;
pub mod ledger;
pub mod media;
pub mod overflow;
pub mod overheads;
pub mod pairs;
pub mod part;
pub mod plan;
pub mod prune;
pub mod repair;
pub mod safety;
pub mod steps;
pub mod stub;
pub mod tail;
pub mod text;
pub mod tools;
pub mod transcript;
pub mod truncate;
pub mod validate;

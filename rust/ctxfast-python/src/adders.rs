//! How what a message holds adds up: units that are divided once, or tokens text by text.

use ctxfast::estimate::{Estimator, Family, UNITS_PER_TOKEN};
use ctxfast::exact::Exact;
use ctxfast::flat::{Flat, SYSTEM_PART_OVERHEAD, Weight};
use ctxfast::media::Hint;
use ctxfast::overheads::{MediaRule, Notation, Overheads};
use ctxfast::part::Kind;
use ctxfast::safety::{Margin, Safety};
use ctxfast::text::{Escapes, Text};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};

use crate::errors::{At, Read};
use crate::memory::{chars, view};
use crate::read::json::{self, Keys};
use crate::read::{self, Tool, Visit};

/// Texts of so many characters and more are estimated without the interpreter's lock.
const LONG: usize = 1 << 16;

/// The same where tokens are counted, which takes longer: a few microseconds, some fifty times what letting go of the lock
/// costs.
const LONG_EXACT: usize = 1 << 11;

/// Whether a text is counted exactly without the interpreter's lock.
pub(crate) fn is_long(text: Text<'_>) -> bool {
    text.chars() >= LONG_EXACT
}

/// Counts each text of a message by itself.
pub(crate) struct PerText {
    pub(crate) count: Count,
    pub(crate) safety: Safety,
    pub(crate) overheads: Overheads,
}

/// What counts a text.
#[derive(Debug)]
pub(crate) enum Count {
    /// `str -> int`
    Function(Py<PyAny>),
    Estimator(Family, Estimator),
    /// Its vocabulary is built when it first counts.
    Exact(Exact),
}

/// What is around the texts that were added.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    None,
    Message,
}

/// Somebody who adds up what a message holds.
pub(crate) trait Adder<'py> {
    fn content(&mut self, content: &Bound<'py, PyAny>) -> Read<()>;
    fn tokens(&self, frame: Frame) -> u64;
}

/// An adder that can say what was added since.
pub(crate) trait Meter {
    type Mark: Copy + Default;

    fn mark(&self) -> Self::Mark;
    fn tokens_since(&self, mark: Self::Mark) -> u64;
}

/// An adder that also notes what each tool output by itself has.
pub(crate) struct Metered<'o, A: Meter> {
    pub(crate) adder: A,
    mark: A::Mark,
    outputs: &'o mut Vec<u64>,
}

impl<'o, A: Meter> Metered<'o, A> {
    pub(crate) fn new(adder: A, outputs: &'o mut Vec<u64>) -> Self {
        Self { adder, mark: A::Mark::default(), outputs }
    }
}

impl<'py, A: Meter + Visit<'py>> Visit<'py> for Metered<'_, A> {
    #[inline]
    fn text(&mut self, kind: Kind, text: &Bound<'py, PyString>) -> Read<()> {
        self.adder.text(kind, text)
    }

    fn json(&mut self, kind: Kind, value: &Bound<'py, PyAny>, keys: Keys) -> Read<()> {
        self.adder.json(kind, value, keys)
    }

    fn media(&mut self, hint: Hint, part: &Bound<'py, PyAny>) {
        self.adder.media(hint, part);
    }

    #[inline]
    fn output_begins(&mut self) {
        self.adder.output_begins(); // its frame is no part of the output
        self.mark = self.adder.mark();
    }

    #[inline]
    fn output_ends(&mut self) {
        self.outputs.push(self.adder.tokens_since(self.mark));
    }

    fn content_begins(&mut self) {
        self.adder.content_begins();
    }

    fn alternative_begins(&mut self, parts: usize) {
        self.adder.alternative_begins(parts);
    }

    fn alternative_ends(&mut self) {
        self.adder.alternative_ends();
    }
}

/// Adds units, to be divided once.
pub(crate) struct FlatAdder<'c> {
    flat: &'c Flat,
    needs_only_length: bool,
    pub(crate) weight: Weight,
    before_content: Weight,
    content: Weight,
}

impl<'c> FlatAdder<'c> {
    #[inline]
    pub(crate) fn new(flat: &'c Flat) -> Self {
        Self {
            flat,
            needs_only_length: flat.needs_only_length(),
            weight: Weight::default(),
            before_content: Weight::default(),
            content: Weight::default(),
        }
    }
}

impl<'py> Adder<'py> for FlatAdder<'_> {
    fn content(&mut self, content: &Bound<'py, PyAny>) -> Read<()> {
        read::content(content, self)
    }

    #[inline]
    fn tokens(&self, frame: Frame) -> u64 {
        let mut weight = self.weight;
        if frame == Frame::Message {
            weight.prose += self.flat.message_overhead;
        }
        self.flat.tokens(&weight)
    }
}

impl Meter for FlatAdder<'_> {
    type Mark = Weight;

    #[inline]
    fn mark(&self) -> Weight {
        self.weight
    }

    #[inline]
    fn tokens_since(&self, mark: Weight) -> u64 {
        self.flat.tokens(&self.weight.since(mark))
    }
}

impl<'py> Visit<'py> for FlatAdder<'_> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a few instructions, called for every text of every message")]
    fn text(&mut self, kind: Kind, text: &Bound<'py, PyString>) -> Read<()> {
        if self.needs_only_length {
            Flat::weigh_chars(kind, chars(text), &mut self.weight);
        } else {
            self.flat.weigh(kind, view(text), &mut self.weight);
        }
        Ok(())
    }

    fn json(&mut self, kind: Kind, value: &Bound<'py, PyAny>, keys: Keys) -> Read<()> {
        if !self.flat.ignores(kind) {
            let (length, media) = json::length(value, keys, self.flat.escapes())?;
            self.flat.weigh_json(kind, length, &mut self.weight);
            self.weight.media += media as u64;
        }
        Ok(())
    }

    #[inline]
    fn media(&mut self, _hint: Hint, _part: &Bound<'py, PyAny>) {
        self.weight.media += 1;
    }

    #[inline]
    fn content_begins(&mut self) {
        self.before_content = self.weight;
    }

    fn alternative_begins(&mut self, parts: usize) {
        self.content = self.weight;
        // media parts of the content are sent in any case
        self.weight = Weight { media: self.weight.media, ..self.before_content };
        self.weight.prose += SYSTEM_PART_OVERHEAD * parts as u64;
    }

    fn alternative_ends(&mut self) {
        if self.content.units() >= self.weight.units() {
            self.weight = self.content;
        }
    }
}

/// Adds text by text, in parts of a token, to be rounded once.
pub(crate) struct PerTextAdder<'c> {
    per_text: &'c PerText,
    pub(crate) units: u64,
    before_content: u64,
    content: u64,
    /// Tokens of media and of frames of results.
    beside_texts: u64,
    /// Where more texts need not be counted.
    most: u64,
}

impl<'c> PerTextAdder<'c> {
    pub(crate) fn new(per_text: &'c PerText) -> Self {
        Self { per_text, units: 0, before_content: 0, content: 0, beside_texts: 0, most: u64::MAX }
    }

    /// One for whom more than `limit` tokens may be any number above it. Only exact counts gain from that.
    pub(crate) fn up_to(per_text: &'c PerText, limit: u64) -> Self {
        let most = if matches!(per_text.count, Count::Exact(_)) { limit } else { u64::MAX };
        Self { most, ..Self::new(per_text) }
    }

    /// Multiplies what texts have cost so far.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "positive, and far below 2^53"
    )]
    pub(crate) fn scale(&mut self, factor: f64) {
        self.units = (self.units as f64 * factor + 0.5).floor() as u64;
    }
}

impl<'py> Adder<'py> for PerTextAdder<'_> {
    fn content(&mut self, content: &Bound<'py, PyAny>) -> Read<()> {
        read::content(content, self)
    }

    fn tokens(&self, frame: Frame) -> u64 {
        let overhead = if frame == Frame::Message { self.per_text.overheads.message } else { 0 };
        self.per_text.tokens(self.units) + self.beside_texts + overhead
    }
}

impl Meter for PerTextAdder<'_> {
    type Mark = (u64, u64);

    fn mark(&self) -> (u64, u64) {
        (self.units, self.beside_texts)
    }

    fn tokens_since(&self, (units, beside_texts): (u64, u64)) -> u64 {
        self.per_text.tokens(self.units - units) + self.beside_texts - beside_texts
    }
}

impl<'py> Visit<'py> for PerTextAdder<'_> {
    fn text(&mut self, kind: Kind, text: &Bound<'py, PyString>) -> Read<()> {
        if kind == Kind::Id || chars(text) == 0 || self.units > self.most {
            return Ok(());
        }
        self.units += self.per_text.units_up_to(text, self.most - self.units)?;
        Ok(())
    }

    fn json(&mut self, kind: Kind, value: &Bound<'py, PyAny>, keys: Keys) -> Read<()> {
        let (text, media) = json::text(value, keys)?;
        for data in &media {
            self.media(Hint::Other, data);
        }
        self.text(kind, &text)
    }

    fn media(&mut self, hint: Hint, part: &Bound<'py, PyAny>) {
        self.beside_texts += match self.per_text.overheads.media {
            MediaRule::Fixed(tokens) => tokens,
            rule @ MediaRule::Shown { .. } => {
                let (media, detail) = read::media(hint, part);
                rule.tokens(media, detail)
            }
        };
    }

    fn output_begins(&mut self) {
        self.beside_texts += self.per_text.overheads.result;
    }

    fn content_begins(&mut self) {
        self.before_content = self.units;
    }

    fn alternative_begins(&mut self, _parts: usize) {
        self.content = self.units;
        self.units = self.before_content;
    }

    fn alternative_ends(&mut self) {
        self.units = self.units.max(self.content);
    }
}

/// Adds tool definitions: as JSON, or as the text of their declarations.
pub(crate) struct ToolAdder<'c> {
    adder: PerTextAdder<'c>,
    declarations: Vec<u8>,
}

impl<'c> ToolAdder<'c> {
    pub(crate) fn new(per_text: &'c PerText) -> Self {
        Self { adder: PerTextAdder::new(per_text), declarations: Vec::new() }
    }

    /// With the declarations, which are one text.
    pub(crate) fn finish(mut self, py: Python<'_>) -> Read<PerTextAdder<'c>> {
        let text = json::written(py, &self.declarations)?;
        self.adder.text(Kind::Arguments, &text)?;
        Ok(self.adder)
    }
}

impl<'py> Visit<'py> for ToolAdder<'_> {
    fn text(&mut self, kind: Kind, text: &Bound<'py, PyString>) -> Read<()> {
        self.adder.text(kind, text)
    }

    fn json(&mut self, kind: Kind, value: &Bound<'py, PyAny>, keys: Keys) -> Read<()> {
        self.adder.json(kind, value, keys)
    }

    fn tool(&mut self, tool: &Tool<'_, 'py>) -> Read<()> {
        let is_text = tool.schema.is_some_and(PyAnyMethods::is_instance_of::<PyString>);
        if self.adder.per_text.overheads.notation == Notation::Json
            || is_text
            || tool.key == "format" && tool.schema.is_some()
        {
            return self.adder.tool(tool);
        }
        if let Some(schema) = tool.schema {
            json::length(schema, Keys::All, Escapes::Json).at_key(tool.key)?; // or say what is wrong with it
        }
        read::declare(tool, &mut self.declarations)
    }
}

impl PerText {
    /// What a text costs, in parts of a token; with an exact counter, more than `limit` may be any number above it.
    fn units_up_to(&self, text: &Bound<'_, PyString>, limit: u64) -> Read<u64> {
        match &self.count {
            Count::Function(function) => call(function.bind(text.py()), text),
            Count::Estimator(_, estimator) => {
                let view = view(text);
                if view.chars() < LONG {
                    return Ok(estimator.units(view));
                }
                // others may run meanwhile: the text cannot change, and is kept alive by the caller
                Ok(text.py().detach(|| estimator.units(view)))
            }
            Count::Exact(exact) => exact_tokens(exact, text, limit),
        }
    }

    /// Tokens of a text by itself.
    pub(crate) fn text_tokens(&self, text: &Bound<'_, PyString>) -> Read<u64> {
        self.text_tokens_up_to(text, u64::MAX)
    }

    /// The same; more than `limit` may be any number above it.
    pub(crate) fn text_tokens_up_to(&self, text: &Bound<'_, PyString>, limit: u64) -> Read<u64> {
        Ok(self.tokens(self.units_up_to(text, limit)?))
    }

    /// Parts of a token to tokens; a half is rounded up.
    pub(crate) fn tokens(&self, units: u64) -> u64 {
        let scale = self.scale();
        (units + scale / 2) / scale
    }

    /// A count of one text or message, as safe as it shall be.
    pub(crate) fn one(&self) -> Margin {
        match &self.count {
            Count::Function(_) | Count::Exact(_) => Margin::NONE,
            Count::Estimator(family, _) => self.safety.of_one(*family),
        }
    }

    /// The same of a list.
    pub(crate) fn total(&self) -> Margin {
        match &self.count {
            Count::Function(_) | Count::Exact(_) => Margin::NONE,
            Count::Estimator(family, _) => self.safety.of_total(*family),
        }
    }

    /// How many parts a token has.
    pub(crate) fn scale(&self) -> u64 {
        match &self.count {
            Count::Function(_) | Count::Exact(_) => 1,
            Count::Estimator(..) => UNITS_PER_TOKEN.into(),
        }
    }
}

/// Has the vocabulary of a counter built, if nobody has used it before.
pub(crate) fn ready(py: Python<'_>, exact: &Exact) -> PyResult<()> {
    if exact.is_built() || py.detach(|| exact.build()) {
        return Ok(());
    }
    let name = exact.name();
    Err(PyRuntimeError::new_err(format!(
        "the vocabulary of {name} in this installation of ctxfast is damaged"
    )))
}

fn exact_tokens(exact: &Exact, text: &Bound<'_, PyString>, limit: u64) -> Read<u64> {
    ready(text.py(), exact)?;
    let view = view(text);
    if is_long(view) {
        // as above
        return Ok(text.py().detach(|| exact.count_up_to(view, limit)));
    }
    Ok(exact.count_up_to(view, limit))
}

fn call(function: &Bound<'_, PyAny>, text: &Bound<'_, PyString>) -> Read<u64> {
    let count = function.call1((text,))?;
    let refuse = |message: &str| -> PyResult<String> {
        Ok(format!("the counting function must {message}, got {}", count.repr()?))
    };
    if count.is_instance_of::<PyBool>() || !count.is_instance_of::<PyInt>() {
        return Err(PyTypeError::new_err(refuse("return an int")?).into());
    }
    match count.extract::<u32>() {
        Ok(number) => Ok(number.into()),
        Err(_) => Err(PyValueError::new_err(refuse("return 0 to 4,294,967,295 tokens")?).into()),
    }
}

//! What pruning protects and keeps, as the caller says it: `PrunePolicy` and `CachePrices` as numbers and flags.

use ctxfast::prune::{KeepErrors, Prices, Rules, Superseded, Threshold};
use ctxfast::tools::{KINDS, Kinds, Names, Pattern, Tool};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};

use crate::errors::parameter_type_error;
use crate::numbers::{Least, ReadPrice, WritePrice, budget, count, price};

/// What tokens cost, as shares of the price of an input token that is not cached. Frozen, hashable, picklable.
///
/// `read` and `write` are the prices of reading a token from the provider's cache and of writing it there; the defaults
/// are Anthropic's (OpenAI: `CachePrices(read=0.1, write=1.0)`). `horizon` is how many requests are still to come; `None`
/// takes 0.2 for each step so far, 3 at least and 40 at most. `cold` says that the cache has expired, so that everything
/// is written anew in any case: then any saving is taken. Raises `TypeError` or `ValueError` for what is no price.
#[pyclass(frozen, eq, module = "ctxfast._core")]
#[derive(Clone, PartialEq)]
pub(crate) struct CachePrices {
    prices: Prices,
}

#[pymethods]
impl CachePrices {
    #[new]
    #[pyo3(
        signature = (
            read: "float" = ReadPrice::DEFAULT,
            write: "float" = WritePrice::DEFAULT,
            horizon: "float | None" = None,
            cold: "bool" = false
        ),
        text_signature = "(read=0.1, write=1.25, horizon=None, cold=False)"
    )]
    fn new(
        read: ReadPrice,
        write: WritePrice,
        horizon: Option<&Bound<'_, PyAny>>,
        cold: bool,
    ) -> PyResult<Self> {
        let horizon = horizon.map(|horizon| price(horizon, "horizon")).transpose()?;
        Ok(Self { prices: Prices { read: read.0, write: write.0, horizon, cold } })
    }

    /// Price of reading a token from the cache.
    #[getter]
    fn read(&self) -> f64 {
        self.prices.read
    }

    /// Price of writing a token into the cache.
    #[getter]
    fn write(&self) -> f64 {
        self.prices.write
    }

    /// Requests to come; `None`: a share of the steps so far.
    #[getter]
    fn horizon(&self) -> Option<f64> {
        self.prices.horizon
    }

    /// Whether the cache has expired.
    #[getter]
    fn cold(&self) -> bool {
        self.prices.cold
    }

    fn __repr__(&self) -> String {
        let Prices { read, write, horizon, cold } = self.prices;
        let horizon = horizon.map_or_else(|| "None".to_owned(), |horizon| format!("{horizon:?}"));
        let cold = if cold { "True" } else { "False" };
        format!("CachePrices(read={read:?}, write={write:?}, horizon={horizon}, cold={cold})")
    }

    fn __hash__(&self) -> u64 {
        let Prices { read, write, horizon, cold } = self.prices;
        let all = [read, write, horizon.unwrap_or(-1.0), f64::from(u8::from(cold))];
        all.into_iter().fold(17, |hash: u64, part| hash.wrapping_mul(1_000_003) ^ (part + 0.0).to_bits())
    }

    fn __getnewargs__(&self) -> (f64, f64, Option<f64>, bool) {
        let Prices { read, write, horizon, cold } = self.prices;
        (read, write, horizon, cold)
    }
}

/// `prices`: the default is not `None`, which means that there is no cache.
#[derive(Default)]
pub(crate) enum PricesOrNone {
    #[default]
    Default,
    Given(Option<Prices>),
}

impl FromPyObject<'_, '_> for PricesOrNone {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if value.is_none() {
            return Ok(Self::Given(None));
        }
        match value.cast::<CachePrices>() {
            Ok(prices) => Ok(Self::Given(Some(prices.get().prices))),
            Err(_) => Err(parameter_type_error("prices", "CachePrices or None", &value)),
        }
    }
}

/// Patterns of tools' names (`*` is anything; the case of A to Z does not matter), and what kind of tool they are: the
/// first that matches counts.
#[pyfunction]
pub(crate) fn tool_kinds() -> Vec<(&'static str, &'static str)> {
    KINDS.iter().map(|(pattern, kind)| (*pattern, kind.name())).collect()
}

/// A policy, ready for use.
pub(crate) struct Policy {
    pub(crate) rules: Rules,
    /// Tools and paths that are kept.
    pub(crate) keep_tools: Names,
    pub(crate) keep_paths: Names,
    /// The only ones that are pruned.
    pub(crate) only_tools: Option<Names>,
    pub(crate) kinds: Kinds,
    /// The fixed text of stubs.
    pub(crate) stub: Option<String>,
}

/// What was given beside a policy; by default nothing.
#[derive(Default)]
pub(crate) struct Given<'a, 'py> {
    pub(crate) protected_turns: Option<&'a Bound<'py, PyAny>>,
    pub(crate) prune_threshold: Option<&'a Bound<'py, PyAny>>,
    pub(crate) protected_tokens: Option<&'a Bound<'py, PyAny>>,
    pub(crate) protected_steps: Option<&'a Bound<'py, PyAny>>,
    pub(crate) budget: Option<&'a Bound<'py, PyAny>>,
    pub(crate) prices: PricesOrNone,
}

impl Default for Policy {
    /// The defaults of `ctxfast.policy.PrunePolicy`; a test compares them.
    fn default() -> Self {
        Self {
            rules: Rules {
                protected_turns: 0,
                protected_steps: 3,
                protected_tokens: 10_000,
                protected_results: 0,
                threshold: Threshold::Pays,
                trigger: None,
                min_batch: 10_000,
                horizon_share: 0.2,
                min_saved: 200,
                superseded: Superseded::Join,
                keep_errors: KeepErrors::Open,
                fixed_stub: false,
                prices: Some(Prices { read: 0.1, write: 1.25, horizon: None, cold: false }),
            },
            keep_tools: Names::new([
                "agent",
                "list",
                "*decision*",
                "adr*",
                "*_adr*",
                "*ask*user*",
                "exitplanmode",
            ]),
            keep_paths: Names::new([
                "*decision*",
                "adr*",
                "*/adr/*",
                "*/adrs/*",
                "*/adr-*",
                "*/adr_*",
                "*/adr0*",
            ]),
            only_tools: None,
            kinds: Kinds::default(),
            stub: None,
        }
    }
}

impl Policy {
    /// A policy with what was given beside it.
    pub(crate) fn new(policy: Option<&Bound<'_, PyAny>>, given: &Given<'_, '_>) -> PyResult<Self> {
        let (mut result, batch) = match policy {
            Some(policy) => Self::read(policy)?,
            None => (Self::default(), Batch::Grid),
        };
        let rules = &mut result.rules;
        if let Some(turns) = given.protected_turns {
            rules.protected_turns = count(turns, "protected_turns")?;
        }
        if let Some(steps) = given.protected_steps {
            rules.protected_steps = count(steps, "protected_steps")?;
        }
        if let Some(tokens) = given.protected_tokens {
            rules.protected_tokens = count(tokens, "protected_tokens")? as u64;
        }
        if let Some(value) = given.prune_threshold {
            rules.threshold = threshold(value, batch)?;
        }
        if let PricesOrNone::Given(prices) = given.prices {
            rules.prices = prices;
        }
        if let Some(usable) = given.budget {
            let usable = budget(usable, "budget", Least::One)?;
            rules.protected_tokens = rules.protected_tokens.min(usable / 4);
            rules.min_batch = rules.min_batch.min(usable / 10);
        }
        Ok(result)
    }

    fn read(policy: &Bound<'_, PyAny>) -> PyResult<(Self, Batch)> {
        let class = policy.py().import("ctxfast.policy")?.getattr("PrunePolicy")?;
        if !policy.is_instance(&class)? {
            return Err(parameter_type_error("policy", "a PrunePolicy", policy));
        }
        let get = |name| policy.getattr(name);
        let size = |name| -> PyResult<usize> { count(&get(name)?, name) };
        let word = |name| -> PyResult<String> { get(name)?.extract() };
        let batch = if word("batch")? == "all" { Batch::All } else { Batch::Grid };
        let trigger = get("trigger_tokens")?;
        let stub: Option<String> = get("stub")?.extract()?;
        let rules = Rules {
            protected_turns: size("protected_turns")?,
            protected_steps: size("protected_steps")?,
            protected_tokens: size("protected_tokens")? as u64,
            protected_results: size("protected_results")?,
            threshold: threshold(&get("prune_threshold")?, batch)?,
            trigger: if trigger.is_none() { None } else { Some(count(&trigger, "trigger_tokens")? as u64) },
            min_batch: size("min_batch")? as u64,
            horizon_share: get("horizon_share")?.extract()?,
            min_saved: size("min_saved")? as u64,
            superseded: match word("superseded")?.as_str() {
                "start" => Superseded::Start,
                "off" => Superseded::Off,
                _ => Superseded::Join,
            },
            keep_errors: match word("keep_errors")?.as_str() {
                "all" => KeepErrors::All,
                "none" => KeepErrors::None,
                _ => KeepErrors::Open,
            },
            fixed_stub: stub.is_some(),
            ..Self::default().rules
        };
        let only = get("only_tools")?;
        let mut own = Vec::new();
        for entry in get("tools")?.try_iter()? {
            let (pattern, kind): (String, String) = entry?.extract()?;
            own.push((Pattern::new(&pattern), Tool::from_name(&kind).unwrap_or(Tool::Other)));
        }
        let read = Self {
            rules,
            keep_tools: names(&get("keep_tools")?)?,
            keep_paths: names(&get("keep_paths")?)?,
            only_tools: if only.is_none() { None } else { Some(names(&only)?) },
            kinds: Kinds::new(own),
            stub,
        };
        Ok((read, batch))
    }
}

fn names(patterns: &Bound<'_, PyAny>) -> PyResult<Names> {
    let patterns: Vec<String> = patterns.extract()?;
    Ok(Names::new(patterns.iter().map(String::as_str)))
}

/// What a threshold means that is a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Batch {
    Grid,
    All,
}

fn threshold(value: &Bound<'_, PyAny>, batch: Batch) -> PyResult<Threshold> {
    if let Ok(word) = value.cast::<PyString>() {
        if word == "auto" {
            return Ok(Threshold::Pays);
        }
        return Err(PyValueError::new_err(format!(
            "prune_threshold: expected 'auto' or a whole number, got {}",
            word.repr()?.to_string_lossy()
        )));
    }
    if value.is_instance_of::<PyBool>() || !value.is_instance_of::<PyInt>() {
        return Err(parameter_type_error("prune_threshold", "'auto' or a whole number", value));
    }
    let tokens = count(value, "prune_threshold")? as u64;
    Ok(if batch == Batch::All { Threshold::All(tokens) } else { Threshold::Grid(tokens) })
}

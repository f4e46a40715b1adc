//! What `ctxfast.models` knows of a model, as numbers.

use ctxfast::estimate::{Estimator, Family};
use ctxfast::exact::Encoding;
use ctxfast::overheads::{Detail, ImageRule, MediaRule, Notation, Overheads};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::counter::{encoding, family};
use crate::errors::parameter_type_error;

/// What a counter needs to know of a model.
pub(crate) struct Model {
    pub(crate) family: Family,
    pub(crate) estimator: Estimator,
    /// That of its texts, where they can be counted.
    pub(crate) encoding: Option<Encoding>,
    pub(crate) overheads: Overheads,
}

impl Model {
    /// Of a `ModelInfo`, or of the model with that name.
    pub(crate) fn read(model: &Bound<'_, PyAny>) -> PyResult<Model> {
        let models = model.py().import("ctxfast.models")?;
        let info = if model.is_instance_of::<PyString>() {
            let info = models.getattr("model_info")?.call1((model,))?;
            if !info.getattr("known")?.is_truthy()? {
                models.getattr("_warn_unknown")?.call1((&info,))?;
            }
            info
        } else if model.is_instance(&models.getattr("ModelInfo")?)? {
            model.clone()
        } else {
            return Err(parameter_type_error("model", "the name of a model or a ModelInfo", model));
        };
        let family = family(&info.getattr("family")?.extract::<String>()?)?;
        let scale = rate(&info, "scale")?;
        let named = info.getattr("encoding")?.extract::<Option<String>>()?;
        let encoding =
            named.map(|name| encoding(&name)).transpose()?.filter(|_| scale.to_bits() == 1_f64.to_bits());
        let (frame, tools) = (info.getattr("frame")?, info.getattr("tools")?);
        let overheads = Overheads {
            request: number(&frame, "per_request")?,
            message: number(&frame, "per_message")?,
            result: number(&frame, "per_result")?,
            tools: number(&tools, "per_request")?,
            tool: number(&tools, "per_tool")?,
            tool_text: rate(&tools, "schema_scale")?,
            notation: notation(&tools)?,
            media: MediaRule::Shown {
                image: image_rule(&info.getattr("images")?)?,
                pdf_page: number(&info, "pdf_page_tokens")?,
                audio_second: rate(&info, "audio_tokens_per_second")?,
            },
        };
        Ok(Model { family, estimator: Estimator::new(family).times(scale), encoding, overheads })
    }
}

/// Tokens of an image, by an `ImageRule`.
#[pyfunction]
#[pyo3(name = "_image_tokens", signature = (rule: "ImageRule", width, height, detail))]
pub(crate) fn image_tokens(rule: &Bound<'_, PyAny>, width: u64, height: u64, detail: &str) -> PyResult<u64> {
    Ok(image_rule(rule)?.tokens(width, height, Detail::named(detail.as_bytes())))
}

/// The rule of an `ImageRule`, which has checked its own numbers.
fn image_rule(rule: &Bound<'_, PyAny>) -> PyResult<ImageRule> {
    let number = |name| number(rule, name);
    let kind: String = rule.getattr("kind")?.extract()?;
    Ok(match kind.as_str() {
        "fixed" => ImageRule::Fixed(number("tokens")?),
        "tiles" => ImageRule::Tiles {
            max_side: number("max_side")?,
            short_side: number("short_side")?,
            tile: number("tile")?.max(1),
            base: number("base")?,
            per_tile: number("per_tile")?,
        },
        "patches" => {
            let max_patches = number("max_patches")?;
            ImageRule::Patches {
                patch: number("patch")?.max(1),
                max_side: number("max_side")?,
                max_patches,
                original_patches: match rule.getattr("original_patches")?.extract::<i32>()? {
                    0 => max_patches,
                    limit => limit.max(0).unsigned_abs().into(),
                },
                multiplier: rate(rule, "multiplier")?,
                whole: rule.getattr("whole_patches")?.extract()?,
                auto_is_original: rule.getattr("auto")?.extract::<String>()? == "original",
            }
        }
        "crops" => ImageRule::Crops {
            small_side: number("small_side")?,
            max_side: number("max_side")?,
            tile: number("tile")?,
            base: number("base")?,
        },
        other => return Err(PyValueError::new_err(format!("images.kind: no rule '{other}'"))),
    })
}

fn notation(tools: &Bound<'_, PyAny>) -> PyResult<Notation> {
    match tools.getattr("notation")?.extract::<String>()?.as_str() {
        "json" => Ok(Notation::Json),
        "typescript" => Ok(Notation::TypeScript),
        other => Err(PyValueError::new_err(format!("notation: expected json or typescript, got '{other}'"))),
    }
}

/// Of a class derived from those of `ctxfast.models`, the numbers may be unchecked.
fn number(object: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    match object.getattr(name)?.extract::<i64>()? {
        // far more than any model has, and small enough to multiply
        number @ 0..=1_000_000 => Ok(number.unsigned_abs()),
        number => Err(PyValueError::new_err(format!("{name}: expected 0 to 1,000,000, got {number}"))),
    }
}

fn rate(object: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    let rate: f64 = object.getattr(name)?.extract()?;
    if (0.0..=1_000.0).contains(&rate) {
        Ok(rate)
    } else {
        Err(PyValueError::new_err(format!("{name}: expected 0 to 1,000, got {rate:?}")))
    }
}

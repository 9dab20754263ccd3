//! The options of `inspect` from JavaScript, and its results.

use std::borrow::Cow;

use js_sys::{Float32Array, Reflect};
use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::error::bad_option;
use super::fields::Fields;
use super::logprobs::{Alternative, alternatives};
use crate::compute::Site;
use crate::error::{Error, Result};
use crate::sampling::MAX_LOGPROBS;
use crate::session::{Head, InspectOptions, Inspected};
use crate::tokenizer::Tokenizer;

/// The points in a block, by their names for users.
const SITES: [(&str, Site); 4] = [
    ("qkv", Site::Qkv),
    ("attention-out", Site::Output),
    ("gate", Site::GateUp),
    ("block", Site::Down),
];

/// The likeliest tokens after each, if the options do not say how many.
const TOP: u64 = 5;

pub(super) fn options(value: JsValue) -> Result<InspectOptions> {
    let mut fields = Fields::new("options", value)?;
    let what = fields.strings("what")?.unwrap_or_default();
    let at = fields.strings("at")?.unwrap_or_else(|| vec!["block".into()]);
    let number = |found: Option<u32>| found.unwrap_or(0) as usize;
    let head =
        Head { block: number(fields.u32("layer", 0)?), head: number(fields.u32("head", 0)?) };
    let top = fields.integer("top", 0..=MAX_LOGPROBS as u64)?.unwrap_or(TOP) as usize;
    fields.finish()?;
    let mut options = InspectOptions::default();
    for (n, name) in what.iter().enumerate() {
        match name.as_str() {
            "activations" => options.sites = sites(&at)?,
            "attention" => options.head = Some(head),
            "candidates" => options.top = Some(top),
            _ => {
                let why = "must be 'activations', 'attention' or 'candidates'";
                return Err(bad_option(&format!("what[{n}]"), why));
            }
        }
    }
    Ok(options)
}

/// The points with these names, in the order in which a block computes them.
fn sites(names: &[String]) -> Result<Vec<Site>> {
    if names.is_empty() {
        return Err(bad_option("at", "must not be empty"));
    }
    let is_known = |name: &String| SITES.iter().any(|site| site.0 == name);
    if let Some(n) = names.iter().position(|name| !is_known(name)) {
        let why = "must be 'qkv', 'attention-out', 'gate' or 'block'";
        return Err(bad_option(&format!("at[{n}]"), why));
    }
    let is_named = |site: &&(&str, Site)| names.iter().any(|name| name == site.0);
    Ok(SITES.iter().filter(is_named).map(|site| site.1).collect())
}

#[derive(Serialize)]
struct Inspection {
    tokens: Vec<Token>,
    #[serde(skip_serializing_if = "Option::is_none")]
    activations: Option<Vec<Activations>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attention: Option<Attention>,
}

#[derive(Serialize)]
struct Token {
    id: u32,
    text: String,
    special: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprob: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Vec<Alternative>>,
}

#[derive(Serialize)]
struct Activations {
    layer: usize,
    at: &'static str,
    min: f32,
    max: f32,
    rms: f32,
    #[serde(rename = "notFinite")]
    not_finite: usize,
}

#[derive(Serialize)]
struct Attention {
    layer: usize,
    head: usize,
}

/// The result of `inspect` for the prompt `ids`.
pub(super) fn result(
    tokenizer: &Tokenizer,
    ids: &[u32],
    options: &InspectOptions,
    found: &Inspected,
) -> Result<JsValue, JsValue> {
    let token = |n: usize| {
        let (id, before) = (ids[n], n.checked_sub(1));
        let text = |after, id| tokenizer.text_after(after, id).map(Cow::into_owned);
        let following = |next| text(Some(id), next);
        let next = found.candidates.get(n).map(|found| alternatives(&found.top, &following));
        Ok::<_, Error>(Token {
            id,
            text: text(before.map(|before| ids[before]), id)?,
            special: tokenizer.special_text(id).is_some(),
            logprob: before.and_then(|n| found.candidates.get(n)).map(|found| found.logprob),
            next: next.transpose()?,
        })
    };
    let name = |site| SITES.iter().find(|known| known.1 == site).map_or("", |known| known.0);
    let activations = found.activations.iter().map(|one| Activations {
        layer: one.block,
        at: name(one.site),
        min: one.min,
        max: one.max,
        rms: one.rms,
        not_finite: one.not_finite,
    });
    let inspection = Inspection {
        tokens: (0..ids.len()).map(token).collect::<Result<_>>()?,
        activations: (!options.sites.is_empty()).then(|| activations.collect()),
        attention: options.head.map(|Head { block, head }| Attention { layer: block, head }),
    };
    let object = serde_wasm_bindgen::to_value(&inspection)?;
    if options.head.is_some() {
        let attention = Reflect::get(&object, &"attention".into())?;
        let weights = Float32Array::from(found.attention.as_slice());
        Reflect::set(&attention, &"weights".into(), &weights)?;
    }
    Ok(object)
}

//! The texts and options of `embed` from JavaScript, and its results.

use js_sys::{Array, Float32Array, Object, Reflect, Uint32Array};
use wasm_bindgen::prelude::*;

use super::error::bad_option;
use super::fields::Fields;
use super::options::POOLINGS;
use crate::error::Result;
use crate::session::{EmbedOptions, EmbedText, Embedded, Purpose, TASKS};

/// The texts of an array of strings and `Uint32Array`s.
pub(super) fn texts(value: &JsValue) -> Result<Vec<EmbedText>> {
    if !Array::is_array(value) {
        return Err(bad_option("texts", "must be an array"));
    }
    let text = |(n, value): (usize, JsValue)| match (value.as_string(), value.dyn_ref()) {
        (Some(text), _) => Ok(EmbedText::Text(text)),
        (None, Some(ids)) => Ok(EmbedText::Ids(Uint32Array::to_vec(ids))),
        (None, None) => {
            Err(bad_option(&format!("texts[{n}]"), "must be a string or a Uint32Array of ids"))
        }
    };
    Array::from(value).iter().enumerate().map(text).collect()
}

pub(super) fn options(value: JsValue) -> Result<EmbedOptions> {
    let mut fields = Fields::new("options", value)?;
    let names: Vec<(&str, &str)> = TASKS.iter().map(|task| (task.0, task.0)).collect();
    let task = fields.one_of("task", &names)?.and_then(Purpose::task);
    let instruction = fields.string("instruction")?.map(Purpose::Instruction);
    let prefix = fields.string("prefix")?.map(Purpose::Prefix);
    let mut purposes = task.into_iter().chain(instruction).chain(prefix);
    let purpose = purposes.next().unwrap_or_default();
    if purposes.next().is_some() {
        return Err(bad_option("task", "only one of `task`, `instruction` and `prefix`"));
    }
    let options = EmbedOptions {
        purpose,
        pooling: fields.one_of("pooling", &POOLINGS)?,
        dimensions: fields.u32("dimensions", 1)?.map(|n| n as usize),
        truncate: fields.bool("truncate")?.unwrap_or(false),
        first: fields.u32("first", 0)?.unwrap_or(0) as usize,
    };
    fields.finish()?;
    Ok(options)
}

/// The result of `embed`: the values of all vectors, one vector after the other.
pub(super) fn result(found: &Embedded) -> Result<JsValue, JsValue> {
    let all = found.vectors.concat();
    let object = Object::new();
    for (name, value) in [
        ("values", Float32Array::from(all.as_slice()).into()),
        ("tokens", JsValue::from(found.tokens as u32)),
        ("cut", JsValue::from(found.cut.len() as u32)),
    ] {
        Reflect::set(&object, &name.into(), &value)?;
    }
    Ok(object.into())
}

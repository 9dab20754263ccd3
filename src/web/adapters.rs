//! The adapters of a model, by the numbers that JavaScript has of them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use js_sys::Array;
use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::error::bad_option;
use super::fields::Fields;
use crate::error::Result;
use crate::model::Adapter;

/// The adapters that were loaded and not freed.
#[derive(Default)]
pub(super) struct Loaded {
    all: RefCell<BTreeMap<u32, Arc<Adapter>>>,
    last: Cell<u32>,
}

/// Facts about an adapter.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Facts {
    id: u32,
    name: String,
    bytes: u64,
    ranks: [usize; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    alpha: Option<f32>,
    targets: Vec<&'static str>,
}

impl Loaded {
    /// Keeps an adapter, and gives its number and facts about it.
    pub(super) fn keep(&self, adapter: Arc<Adapter>) -> Facts {
        let id = self.last.get() + 1;
        self.last.set(id);
        let facts = Facts {
            id,
            name: adapter.name.clone(),
            bytes: adapter.bytes,
            ranks: adapter.ranks(),
            alpha: adapter.alpha,
            targets: adapter.targets(),
        };
        self.all.borrow_mut().insert(id, adapter);
        facts
    }

    /// Forgets an adapter. It is freed once it is not applied any more.
    pub(super) fn free(&self, id: u32) {
        self.all.borrow_mut().remove(&id);
    }

    /// The adapters and scales of an array of `{ id, scale }`.
    pub(super) fn chosen(&self, value: &JsValue) -> Result<Vec<(Arc<Adapter>, f32)>> {
        if !Array::is_array(value) {
            return Err(bad_option("adapters", "must be an array"));
        }
        let one = |(n, value): (usize, JsValue)| -> Result<(Arc<Adapter>, f32)> {
            let path = format!("adapters[{n}]");
            let mut fields = Fields::new(path.clone(), value)?;
            let id = fields.u32("id", 1)?;
            let finite = f64::from(f32::MIN)..=f64::from(f32::MAX);
            let scale = fields.number("scale", finite, "a finite number")?.unwrap_or(1.0);
            fields.finish()?;
            let adapter = id.and_then(|id| self.all.borrow().get(&id).cloned());
            let missing =
                || bad_option(&path, "is no adapter of this model, or it was disposed of");
            Ok((adapter.ok_or_else(missing)?, scale as f32))
        };
        Array::from(value).iter().enumerate().map(one).collect()
    }
}

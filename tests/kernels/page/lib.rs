//! The cases of the kernels for a browser, where `tests/web/kernel-cases.mjs` runs them.
#![cfg(target_arch = "wasm32")]
#![allow(clippy::unwrap_used, reason = "this is how cases fail")]

#[path = "../cases/mod.rs"]
mod cases;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;

use cases::device;
use serde::Serialize;
use tritloom::gpu::Subgroups;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// Hears why a case fails. The case itself ends in a trap, and its promise never settles.
    fn panicked(message: &str);
}

/// The most characters of a reason.
const MAX_MESSAGE: usize = 2000;

/// A case: the file that has it, and its name.
#[derive(Serialize)]
struct Case {
    file: &'static str,
    name: &'static str,
    #[serde(skip)]
    run: fn() -> Pin<Box<dyn Future<Output = ()>>>,
}

macro_rules! table {
    ($($file:ident: $($name:ident),*;)*) => {
        const CASES: &[Case] = &[$($(Case {
            file: stringify!($file),
            name: stringify!($name),
            run: || Box::pin(cases::$file::$name()),
        }),*),*];
    };
}
cases::with_cases!(table);

/// The adapter, as the kernels know it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Adapter {
    name: String,
    software: bool,
    /// Lanes of a subgroup, if there are subgroup operations.
    subgroups: Option<u32>,
    matrix_units: bool,
}

/// The end of a case that passed.
#[derive(Serialize)]
struct Outcome {
    /// The kernels that it recorded, with their variants.
    kernels: BTreeSet<String>,
    /// By kernel, its largest difference from the reference, divided by the tolerance.
    differences: BTreeMap<&'static str, f32>,
}

fn value(of: &impl Serialize) -> Result<JsValue, JsError> {
    Ok(of.serialize(&serde_wasm_bindgen::Serializer::json_compatible())?)
}

/// All cases, in order.
#[wasm_bindgen]
pub fn cases() -> Result<JsValue, JsError> {
    value(&CASES)
}

/// Opens the devices, which comes before all cases. Gives the adapter.
#[wasm_bindgen]
pub async fn open() -> Result<JsValue, JsError> {
    // Some messages have all values of two buffers.
    std::panic::set_hook(Box::new(|info| {
        panicked(&info.to_string().chars().take(MAX_MESSAGE).collect::<String>());
    }));
    device::open().await?;
    let gpu = device::device();
    value(&Adapter {
        name: gpu.adapter.clone(),
        software: gpu.software,
        subgroups: gpu.subgroups.map(|Subgroups(lanes)| lanes),
        matrix_units: gpu.matrix_units,
    })
}

/// Runs the case with this number.
#[wasm_bindgen]
pub async fn run(number: usize) -> Result<JsValue, JsError> {
    (CASES[number].run)().await;
    let device::Notes { labels: kernels, differences } = device::take_notes();
    value(&Outcome { kernels, differences })
}

/// The names of all kernels.
#[wasm_bindgen]
pub fn kernels() -> Vec<String> {
    tritloom::kernels::ALL.iter().map(|kernel| kernel.name.into()).collect()
}

//! The feature `subgroups`, which wgpu 30's web back end cannot ask for.

use wasm_bindgen::prelude::*;

// JavaScript, because it wraps a method of the browser's own: see subgroups.ts. What was granted
// needs no help: `gpu` asks the browser's device.
#[wasm_bindgen(raw_module = "./subgroups.js")]
extern "C" {
    #[wasm_bindgen(js_name = askForSubgroups)]
    fn ask_for_subgroups();
}

/// Makes `requestDevice` ask for subgroups, where the adapter has them, for devices that carry
/// the label of [`crate::gpu::Gpu`]. Calling it again changes nothing.
pub(super) fn ask() {
    ask_for_subgroups();
}

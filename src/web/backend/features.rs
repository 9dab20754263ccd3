//! Features that wgpu 30 cannot request from a browser.

use wasm_bindgen::prelude::*;

// This is JavaScript because it wraps a method of the browser: see features.ts. To find out what
// was granted, `gpu` asks the browser's device, which needs no JavaScript.
#[wasm_bindgen(raw_module = "./crate/features.js")]
extern "C" {
    #[wasm_bindgen(js_name = askForFeatures)]
    fn ask_for_features();
}

/// Makes `requestDevice` request subgroups and matrix units if the adapter has them, for devices with
/// the label of [`crate::gpu::Gpu`]. Calling it again changes nothing.
pub(super) fn ask() {
    ask_for_features();
}

//! The feature `subgroups`, which wgpu 30's web back end can neither ask for nor report.

use wasm_bindgen::prelude::*;

// JavaScript, because it wraps a method of the browser's own: see subgroups.ts.
#[wasm_bindgen(raw_module = "./subgroups.js")]
extern "C" {
    #[wasm_bindgen(js_name = askForSubgroups)]
    fn ask_for_subgroups();
    #[wasm_bindgen(js_name = subgroupsGranted)]
    fn subgroups_granted() -> bool;
}

/// Makes `requestDevice` ask for subgroups, where the adapter has them, for devices that carry
/// our label; gives the function that tells whether the last of those got them.
pub(super) fn ask() -> fn() -> bool {
    ask_for_subgroups();
    subgroups_granted
}

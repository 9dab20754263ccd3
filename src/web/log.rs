//! The console, and the handling of panics.

#![allow(unreachable_pub, reason = "wasm-bindgen exports only what is `pub`")]

use std::cell::RefCell;

use js_sys::Function;
use wasm_bindgen::prelude::*;

thread_local! {
    static ON_PANIC: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Writes a warning to the console.
pub(super) fn warn(message: &str) {
    web_sys::console::warn_1(&JsValue::from_str(&format!("tritloom: {message}")));
}

/// Makes a panic print its message to the console and call `callback` with it.
///
/// A panic ends the instance, so the promises that it was working on never settle. The callback has
/// to reject them.
#[wasm_bindgen(js_name = onPanic)]
pub fn on_panic(callback: Function) {
    ON_PANIC.with(|kept| *kept.borrow_mut() = Some(callback));
    std::panic::set_hook(Box::new(|info| {
        console_error_panic_hook::hook(info);
        let message = info.to_string();
        ON_PANIC.with(|kept| {
            if let Ok(kept) = kept.try_borrow()
                && let Some(callback) = kept.as_ref()
            {
                // An exception from the callback would hide the panic itself.
                let _ = callback.call1(&JsValue::NULL, &message.into());
            }
        });
    }));
}

/// Calls `callback` from inside the crate. In the stack that it finds, the crate has its name.
#[wasm_bindgen(js_name = callBack)]
pub fn call_back(callback: &Function) {
    // An exception of the package's own callback would be a bug, which no caller could handle.
    let _ = callback.call0(&JsValue::NULL);
}

//! Where the crate's own words go: the console; and what a panic does.

#![allow(unreachable_pub, reason = "wasm-bindgen exports only what is `pub`")]

use std::cell::RefCell;

use js_sys::Function;
use wasm_bindgen::prelude::*;

thread_local! {
    static ON_PANIC: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// A warning for whoever has the console open.
pub(super) fn warn(message: &str) {
    web_sys::console::warn_1(&JsValue::from_str(&format!("ternlight: {message}")));
}

/// Prints panics to the console and tells `callback` their message.
///
/// A panic aborts the instance, so the promises it was working on never settle: the callback is
/// there to reject them.
#[wasm_bindgen(js_name = onPanic)]
pub fn on_panic(callback: Function) {
    ON_PANIC.with(|slot| *slot.borrow_mut() = Some(callback));
    std::panic::set_hook(Box::new(|info| {
        console_error_panic_hook::hook(info);
        let message = info.to_string();
        ON_PANIC.with(|slot| {
            if let Ok(slot) = slot.try_borrow()
                && let Some(callback) = slot.as_ref()
            {
                // A callback that throws would hide the panic itself.
                let _ = callback.call1(&JsValue::NULL, &message.into());
            }
        });
    }));
}

//! Time: waiting for it to pass, and noticing that nothing happens.

use std::cell::Cell;
use std::rc::Rc;

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::AbortController;

#[wasm_bindgen]
extern "C" {
    // Globals of pages and workers alike.
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &Function, milliseconds: f64) -> JsValue;
    #[wasm_bindgen(js_name = setInterval)]
    fn set_interval(callback: &Function, milliseconds: f64) -> JsValue;
    #[wasm_bindgen(js_name = clearInterval)]
    fn clear_interval(id: &JsValue);
}

/// Resolves after so many milliseconds.
pub(super) async fn sleep(milliseconds: f64) {
    let promise = Promise::new(&mut |resolve, _| {
        set_timeout(&resolve, milliseconds);
    });
    // A timer's promise does not reject.
    let _ = JsFuture::from(promise).await;
}

/// Into how many of them a watchdog's patience is divided.
const TICKS: u32 = 4;

/// Aborts what has been awaited for too long. One timer serves all the waits of a response: one
/// for each piece would be thousands a second.
pub(super) struct Watchdog {
    /// Ticks since the present wait began, if one is on. Not time: where this thread was busy, bytes
    /// may have come that it has not seen yet.
    ticks: Rc<Cell<Option<u32>>>,
    stalled: Rc<Cell<bool>>,
    timer: JsValue,
    _closure: Closure<dyn Fn()>,
}

impl Watchdog {
    pub(super) fn new(controller: AbortController, patience: f64) -> Self {
        let (ticks, stalled) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(false)));
        let closure = Closure::<dyn Fn()>::new({
            let (ticks, stalled) = (Rc::clone(&ticks), Rc::clone(&stalled));
            move || match ticks.get() {
                Some(TICKS) => {
                    stalled.set(true);
                    controller.abort();
                }
                waiting => ticks.set(waiting.map(|ticks| ticks + 1)),
            }
        });
        let timer = set_interval(closure.as_ref().unchecked_ref(), patience / f64::from(TICKS));
        Self { ticks, stalled, timer, _closure: closure }
    }

    /// Awaits `promise` under watch.
    pub(super) async fn watch(&self, promise: Promise) -> Result<JsValue, JsValue> {
        self.ticks.set(Some(0));
        let result = JsFuture::from(promise).await;
        self.ticks.set(None);
        result
    }

    /// Whether it has come to that.
    pub(super) fn stalled(&self) -> bool {
        self.stalled.get()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        clear_interval(&self.timer);
    }
}

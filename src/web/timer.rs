//! Time: waiting, and noticing that nothing happens any more.

use std::cell::Cell;
use std::rc::Rc;

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::AbortController;

#[wasm_bindgen]
extern "C" {
    // Globals of pages and of workers.
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &Function, milliseconds: f64) -> JsValue;
    #[wasm_bindgen(js_name = setInterval)]
    fn set_interval(callback: &Function, milliseconds: f64) -> JsValue;
    #[wasm_bindgen(js_name = clearInterval)]
    fn clear_interval(id: &JsValue);
}

/// Resolves after this many milliseconds.
pub(super) async fn sleep(milliseconds: f64) {
    let promise = Promise::new(&mut |resolve, _| {
        set_timeout(&resolve, milliseconds);
    });
    // A timer's promise does not reject.
    let _ = JsFuture::from(promise).await;
}

/// The number of ticks in a watchdog's timeout.
const TICKS: u32 = 4;

/// Aborts a promise that takes too long. One timer serves all promises of a response. A timer for
/// each read would mean thousands of timers a second.
pub(super) struct Watchdog {
    /// Ticks since the present wait began; `None` between waits. It counts ticks instead of time,
    /// because bytes may have come that this thread has not seen yet while it was busy.
    ticks: Rc<Cell<Option<u32>>>,
    stalled: Rc<Cell<bool>>,
    timer: JsValue,
    _closure: Closure<dyn Fn()>,
}

impl Watchdog {
    /// Aborts `controller` when a wait takes more than `timeout` milliseconds.
    pub(super) fn new(controller: AbortController, timeout: f64) -> Self {
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
        let timer = set_interval(closure.as_ref().unchecked_ref(), timeout / f64::from(TICKS));
        Self { ticks, stalled, timer, _closure: closure }
    }

    /// Awaits `promise`, and aborts it if that takes too long.
    pub(super) async fn watch(&self, promise: Promise) -> Result<JsValue, JsValue> {
        self.ticks.set(Some(0));
        let result = JsFuture::from(promise).await;
        self.ticks.set(None);
        result
    }

    /// Whether a wait took too long.
    pub(super) fn stalled(&self) -> bool {
        self.stalled.get()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        clear_interval(&self.timer);
    }
}

//! Runs futures in this thread.
//!
//! A transaction of IndexedDB ends when the browser's microtasks are done and no request of it is left. Where threads
//! share memory, wasm-bindgen's own way wakes a future later than that. So a future with a transaction in it is
//! run here: it goes on in the microtask after the event that wakes it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use js_sys::Function;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = queueMicrotask)]
    fn queue_microtask(callback: &Function);
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// The tasks of this thread that wait, and the number of the next one.
#[derive(Default)]
struct Tasks {
    waiting: BTreeMap<u32, Task>,
    next: u32,
}

thread_local! {
    static TASKS: RefCell<Tasks> = RefCell::default();
}

/// The number of a task of the thread that wakes it. All its events come to that thread.
struct Number(u32);

impl Wake for Number {
    fn wake(self: Arc<Self>) {
        let number = self.0;
        let go_on = Closure::once_into_js(move || {
            // It may have been woken twice, and be at its end by now.
            let task = TASKS.with_borrow_mut(|tasks| tasks.waiting.remove(&number));
            if let Some(task) = task {
                run(number, task);
            }
        });
        queue_microtask(go_on.unchecked_ref());
    }
}

fn run(number: u32, mut task: Task) {
    let waker = Waker::from(Arc::new(Number(number)));
    if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        TASKS.with_borrow_mut(|tasks| tasks.waiting.insert(number, task));
    }
}

/// Runs a future to its end. It begins at once.
pub(super) fn spawn(future: impl Future<Output = ()> + 'static) {
    let number = TASKS.with_borrow_mut(|tasks| {
        tasks.next = tasks.next.wrapping_add(1);
        tasks.next
    });
    run(number, Box::pin(future));
}

//! Other tabs of the same site. One of them downloads a model. The others show its progress and
//! then read the stored file. A model that a tab uses is not deleted to make room. Without the
//! browser's locks, every tab downloads, and no tab knows which models the others use.

use std::rc::Rc;

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use js_sys::{Array, Function, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, BroadcastChannel, MessageEvent};

use super::progress::Reporter;

#[wasm_bindgen]
extern "C" {
    // web-sys has this only behind a compiler flag.
    type LockManager;
    #[wasm_bindgen(method, catch)]
    fn request(
        this: &LockManager,
        name: &str,
        options: &Object,
        callback: &Function,
    ) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn query(this: &LockManager) -> Result<Promise, JsValue>;
}

#[wasm_bindgen(raw_module = "./threads/disk.js")]
extern "C" {
    type Disk;
    #[wasm_bindgen(static_method_of = Disk)]
    fn locks() -> Option<LockManager>;
}

/// A right that concerns the model at an address. It ends when this is dropped, or when its tab
/// ends.
pub(super) struct Lock {
    /// Resolves the promise that keeps the browser's lock; `None` without locks.
    release: Option<Function>,
}

impl Lock {
    /// The right to download, if no other load has it.
    pub(super) async fn if_free(url: &str) -> Option<Self> {
        Self::at_once(&to_load(url)).await
    }

    /// The right to download, once no other load has it.
    pub(super) async fn wait(url: &str) -> Self {
        Self::asked(&to_load(url), "exclusive").await
    }

    /// The right to find the stored model at `url` as it is. Any number of loads have it at a time.
    /// It comes once the model is not being deleted.
    pub(super) async fn in_use(url: &str) -> Self {
        Self::asked(&to_use(url), "shared").await
    }

    /// The right to look for models to delete. It is needed for [`Lock::to_delete`]: if two loads
    /// looked at the same time, each would take the other for a use.
    pub(super) async fn to_make_room() -> Self {
        Self::asked("tritloom-room", "exclusive").await
    }

    /// The right to delete the stored model at `url`, if no tab loads or uses it. A load that begins
    /// meanwhile waits.
    pub(super) async fn to_delete(url: &str) -> Option<[Self; 2]> {
        // This comes first, because every load has it. One that has it already must not find the other
        // right taken, and believe that another tab downloads the model.
        let all_use = Self::at_once(&to_use(url)).await?;
        Some([all_use, Self::at_once(&to_load(url)).await?])
    }

    /// Whether any other load than the one that asks has found the stored model at `url`. The one
    /// that asks must have the right of [`Lock::in_use`].
    pub(super) async fn is_used_by_others(url: &str) -> bool {
        let Some(asked) = Disk::locks().and_then(|locks| locks.query().ok()) else { return false };
        let Ok(found) = JsFuture::from(asked).await else { return false };
        let get = |object: &JsValue, name: &str| {
            Reflect::get(object, &name.into()).unwrap_or(JsValue::UNDEFINED)
        };
        let (held, name) = (Array::from(&get(&found, "held")), to_use(url));
        held.iter().filter(|lock| get(lock, "name").as_string().as_ref() == Some(&name)).count() > 1
    }

    async fn at_once(name: &str) -> Option<Self> {
        request(name, "exclusive", true).await.unwrap_or(Some(Self { release: None }))
    }

    async fn asked(name: &str, mode: &str) -> Self {
        request(name, mode, false).await.flatten().unwrap_or(Self { release: None })
    }
}

fn to_load(url: &str) -> String {
    format!("tritloom-load {url}")
}

fn to_use(url: &str) -> String {
    format!("tritloom-use {url}")
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(release) = &self.release {
            // Resolving a promise does not throw.
            let _ = release.call0(&JsValue::NULL);
        }
    }
}

/// `None` if the page has no locks; `Some(None)` if another load has this one.
async fn request(name: &str, mode: &str, if_free: bool) -> Option<Option<Lock>> {
    let locks = Disk::locks()?;
    let options = Object::new();
    Reflect::set(&options, &"mode".into(), &mode.into()).ok()?;
    Reflect::set(&options, &"ifAvailable".into(), &if_free.into()).ok()?;
    let _waiting = if if_free { None } else { Some(Waiting::new(&options)?) };
    let (tell, told) = oneshot::channel();
    let callback = Closure::once_into_js(move |lock: JsValue| {
        if lock.is_null() {
            // This fails if the load was aborted, as below.
            let _ = tell.send(None);
            return Promise::resolve(&JsValue::UNDEFINED);
        }
        let mut release = None;
        let held = Promise::new(&mut |resolve, _| release = Some(resolve));
        // If the receiver is gone, the lock is dropped, which releases it.
        let _ = tell.send(Some(Lock { release }));
        held
    });
    let asked = locks.request(name, &options, callback.unchecked_ref()).ok()?;
    // The promise settles after the lock was released. If it settles before, there will be no lock:
    // a frame without storage has none.
    match select(told, JsFuture::from(asked)).await {
        Either::Left((told, _)) => told.ok(),
        Either::Right((_, mut told)) => told.try_recv().ok().flatten(),
    }
}

/// Ends a wait for a lock when it is dropped, because the load was aborted. It does not concern a
/// lock that has come.
struct Waiting(AbortController);

impl Waiting {
    /// For a request with these `options`, which must not be one that does not wait.
    fn new(options: &Object) -> Option<Self> {
        let controller = AbortController::new().ok()?;
        Reflect::set(options, &"signal".into(), &controller.signal()).ok()?;
        Some(Self(controller))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

const CHANNEL: &str = "tritloom-load";

/// Tells other tabs the progress of the download of `url`, until it is dropped.
pub(super) struct Announcement(Rc<Reporter>);

impl Announcement {
    pub(super) fn new(url: &str, reporter: &Rc<Reporter>) -> Self {
        if let Ok(channel) = BroadcastChannel::new(CHANNEL) {
            let (channel, url) = (Channel(channel), JsValue::from(url));
            reporter.follow(Some(Box::new(move |loaded, total| {
                let message = Array::of3(&url, &(loaded as f64).into(), &(total as f64).into());
                // Only a display depends on this message.
                let _ = channel.0.post_message(&message);
            })));
        }
        Self(Rc::clone(reporter))
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        self.0.follow(None);
    }
}

/// Shows the progress of another tab's download of `url`, until it is dropped.
pub(super) struct Following {
    _channel: Option<Channel>,
    _listener: Closure<dyn Fn(MessageEvent)>,
}

impl Following {
    pub(super) fn new(url: &str, reporter: &Rc<Reporter>) -> Self {
        let (url, reporter) = (url.to_owned(), Rc::clone(reporter));
        let listener = Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
            let data = event.data();
            let Some(message) = data.dyn_ref::<Array>() else { return };
            let number = |index| message.get(index).as_f64().filter(|number| *number >= 0.0);
            if message.get(0).as_string().is_some_and(|about| about == url)
                && let (Some(loaded), Some(total)) = (number(1), number(2))
            {
                reporter.set(loaded as u64, total as u64);
            }
        });
        let channel = BroadcastChannel::new(CHANNEL).ok().map(Channel);
        if let Some(channel) = &channel {
            channel.0.set_onmessage(Some(listener.as_ref().unchecked_ref()));
        }
        Self { _channel: channel, _listener: listener }
    }
}

/// Closes the channel when dropped: an open one keeps its listener alive.
struct Channel(BroadcastChannel);

impl Drop for Channel {
    fn drop(&mut self) {
        self.0.set_onmessage(None);
        self.0.close();
    }
}

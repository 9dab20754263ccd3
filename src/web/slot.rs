//! Where a model's session lies between calls, and how it comes back when its device is lost.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Function, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{AbortController, ReadableStream};

use super::abort::or_abort;
use super::open::open;
use super::options::{CacheMode, LoadOptions};
use super::progress::Meter;
use crate::error::{Error, Result};
use crate::session::{Memory, Session};

/// The session of a model, or what is left of it.
pub(super) struct Slot {
    /// `None` while a call has it.
    held: RefCell<Option<Held>>,
    origin: Origin,
    /// Aborted when the model is disposed of, which also ends a restoring under way.
    disposal: AbortController,
}

enum Held {
    Here(Box<Session>),
    /// The device is lost, and with it the weights.
    Lost(Memory),
}

/// What a model is loaded from, at first and whenever its device is lost.
struct Origin {
    source: JsValue,
    options: LoadOptions,
    /// Told of each loss, with `{ reason, message }`.
    on_lost: Function,
}

impl Slot {
    /// Loads a model.
    pub(super) async fn load(
        source: JsValue,
        mut options: LoadOptions,
        meter: &Rc<Meter>,
        on_lost: Function,
    ) -> Result<Self> {
        let session = open(&source, &options, meter).await?;
        // The model must come back as it is, whatever another device would allow.
        options.session.context = Some(session.info().context_length);
        if options.cache == CacheMode::Refresh {
            options.cache = CacheMode::Use;
        }
        let origin = Origin { source, options, on_lost };
        origin.watch(&session);
        let disposal =
            AbortController::new().map_err(|_| Error::Internal("no AbortController".into()))?;
        Ok(Self { held: RefCell::new(Some(Held::Here(Box::new(session)))), origin, disposal })
    }

    /// Fails when the model was disposed of.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_disposed() { Err(Error::Disposed) } else { Ok(()) }
    }

    pub(super) fn is_disposed(&self) -> bool {
        self.disposal.signal().aborted()
    }

    /// Frees the session, now or when the call that has it ends.
    pub(super) fn dispose(&self) {
        self.disposal.abort();
        self.held.take();
    }

    /// The session, on a new device if its own is lost.
    ///
    /// Errors: those of loading, after which the next call tries again.
    pub(super) async fn lease(&self) -> Result<Lease<'_>, JsValue> {
        self.check()?;
        let Some(held) = self.held.take() else {
            return Err(Error::Internal("a call of this model is still running".into()).into());
        };
        let mut lease = Lease { slot: self, held: Some(held.if_alive()) };
        if let Some(Held::Lost(memory)) = &lease.held {
            let restored = self.origin.load_again(memory);
            let restored = or_abort(Some(&self.disposal.signal()), restored).await;
            self.check()?;
            lease.held = Some(Held::Here(restored?));
        }
        Ok(lease)
    }
}

impl Held {
    /// The session unless its device is lost. What is left of that is small.
    fn if_alive(self) -> Self {
        match self {
            Self::Here(session) if session.gpu().is_lost() => Self::Lost(session.into_memory()),
            held => held,
        }
    }
}

impl Origin {
    async fn load_again(&self, memory: &Memory) -> Result<Box<Session>> {
        self.check()?;
        let mut session = open(&self.source, &self.options, &Meter::new(None)).await?;
        session.recall(memory)?;
        self.watch(&session);
        Ok(Box::new(session))
    }

    /// Whether the bytes may still be there.
    fn check(&self) -> Result<()> {
        if self.source.is_instance_of::<ReadableStream>() {
            let why =
                "the stream that the model was loaded from cannot be read again; load it anew";
            return Err(Error::DeviceLost(why.into()));
        }
        // It was not empty when the model was loaded from it.
        if self.source.dyn_ref::<Uint8Array>().is_some_and(|bytes| bytes.length() == 0) {
            let what = "the array that the model was loaded from".into();
            return Err(Error::Network { what, why: "it was detached".into() });
        }
        Ok(())
    }

    /// Tells of the loss of the session's device.
    fn watch(&self, session: &Session) {
        let (lost, on_lost) = (session.gpu().lost(), self.on_lost.clone());
        spawn_local(async move {
            // Fails for a device that is let go.
            let Ok(loss) = lost.await else { return };
            if let Ok(loss) = serde_wasm_bindgen::to_value(&loss) {
                // TypeScript of this package, which does not throw.
                let _ = on_lost.call1(&JsValue::NULL, &loss);
            }
        });
    }
}

/// The session while a call runs; it goes back when the call ends, also by being dropped.
pub(super) struct Lease<'a> {
    slot: &'a Slot,
    held: Option<Held>,
}

impl Lease<'_> {
    pub(super) fn session(&mut self) -> Result<&mut Session> {
        match &mut self.held {
            Some(Held::Here(session)) => Ok(session),
            _ => Err(Error::Internal("no session in a lease".into())),
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let held = self.held.take().filter(|_| !self.slot.is_disposed());
        self.slot.held.replace(held.map(Held::if_alive));
    }
}

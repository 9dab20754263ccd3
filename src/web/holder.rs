//! Holds the session of a model between calls, and restores it when its device was lost.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::{Either, select};
use futures_util::lock::{Mutex, MutexGuard};
use js_sys::{Function, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{AbortController, ReadableStream};

use super::abort::aborted;
use super::open::open;
use super::options::{CacheMode, LoadOptions};
use super::progress::Reporter;
use super::remote::Trace;
use crate::error::{Error, Result};
use crate::model::Adapter;
use crate::session::{Memory, Session};

/// The session of a model. After the loss of its device, the rest of it.
pub(super) struct Holder {
    /// Locked while a call uses it. An answer can be complete before its call is, because the call
    /// waits for steps in flight, and the KV cache grows. `None` after `dispose`.
    held: Mutex<Option<Held>>,
    origin: Origin,
    /// Aborted by `dispose`, which also ends a restore in progress.
    disposal: AbortController,
}

enum Held {
    Here(Box<Session>),
    /// The device is lost, and the weights with it.
    Lost(Memory),
}

/// The origin of the model, from which it is loaded at first and after each loss of its device.
struct Origin {
    source: JsValue,
    options: LoadOptions,
    /// Called after each loss with `{ reason, message }`.
    on_lost: Function,
    /// Protects the stored model from deletion, because it may be loaded again, and says of which
    /// version it has to be. Empty after `dispose`.
    trace: RefCell<Trace>,
}

impl Holder {
    /// Loads a model.
    pub(super) async fn load(
        source: JsValue,
        mut options: LoadOptions,
        reporter: &Rc<Reporter>,
        on_lost: Function,
    ) -> Result<Self> {
        let (session, trace) = open(&source, &options, reporter, &[]).await?;
        // A restored model must have the same context, even if its new device allows a longer one.
        options.session.engine.context = Some(session.info().context_length);
        if matches!(options.cache, CacheMode::Refresh | CacheMode::Revalidate) {
            options.cache = CacheMode::Use;
        }
        let origin = Origin { source, options, on_lost, trace: RefCell::new(trace) };
        origin.watch(&session);
        let disposal =
            AbortController::new().map_err(|_| Error::Internal("no AbortController".into()))?;
        Ok(Self { held: Mutex::new(Some(Held::Here(Box::new(session)))), origin, disposal })
    }

    /// Fails when the model was disposed of.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_disposed() { Err(Error::Disposed) } else { Ok(()) }
    }

    pub(super) fn is_disposed(&self) -> bool {
        self.disposal.signal().aborted()
    }

    /// Resolves when the model is disposed of.
    pub(super) async fn disposed(&self) {
        aborted(&self.disposal.signal()).await;
    }

    /// Compiles the kernels that the load has left for later, one at a time, while no call uses the
    /// session. No call waits for this. Ends when all are compiled, or when the session is gone.
    pub(super) async fn compile_rest(&self) {
        loop {
            let next = match &*self.held.lock().await {
                Some(Held::Here(session)) => session.compile_next(),
                _ => None,
            };
            let Some(next) = next else { return };
            next.await;
        }
    }

    /// Frees the session: now, or when the call that uses it ends. Answers end at once.
    pub(super) fn dispose(&self) {
        self.disposal.abort();
        self.origin.trace.take();
        if let Some(mut held) = self.held.try_lock() {
            held.take();
        }
    }

    /// The session, once no other call uses it. If its device was lost, it is restored on a new
    /// one.
    ///
    /// Errors: those of loading. The next call tries again.
    pub(super) async fn lease(&self) -> Result<Lease<'_>> {
        let mut lease = self.lock().await?;
        self.restore(&mut lease).await?;
        Ok(lease)
    }

    /// Applies adapters, and gives a hash of them. If the device was lost, the session is restored with these ones,
    /// so that a model whose adapters the new device cannot hold is not lost too.
    ///
    /// Errors: those of loading, and of [`Session::set_adapters`].
    pub(super) async fn set_adapters(&self, chosen: &[(Arc<Adapter>, f32)]) -> Result<Option<u64>> {
        let mut lease = self.lock().await?;
        if let Some(Held::Lost(memory)) = &mut *lease.held {
            memory.set_adapters(chosen)?;
        }
        let restored = self.restore(&mut lease).await;
        if let (Err(_), Some(Held::Lost(memory))) = (&restored, &mut *lease.held) {
            // As after any other failure, none is applied.
            memory.set_adapters(&[])?;
        }
        restored?;
        let session = lease.session()?;
        session.set_adapters(chosen).await?;
        Ok(session.adapters().hash())
    }

    /// A lease whose session may be lost, once no other call uses it.
    async fn lock(&self) -> Result<Lease<'_>> {
        let mut lease = Lease { holder: self, held: self.held.lock().await };
        self.check()?;
        lease.give_up_if_lost();
        Ok(lease)
    }

    async fn restore(&self, lease: &mut Lease<'_>) -> Result<()> {
        if let Some(Held::Lost(memory)) = &*lease.held {
            let (disposal, restored) = (self.disposal.signal(), self.origin.load_again(memory));
            let restored = match select(pin!(aborted(&disposal)), pin!(restored)).await {
                Either::Left(_) => return Err(Error::Disposed),
                Either::Right((restored, _)) => restored?,
            };
            self.check()?;
            *lease.held = Some(Held::Here(restored));
        }
        Ok(())
    }
}

impl Origin {
    async fn load_again(&self, memory: &Memory) -> Result<Box<Session>> {
        self.check()?;
        let reporter = Reporter::new(None);
        let versions = self.trace.borrow().versions.clone();
        let opened = open(&self.source, &self.options, &reporter, &versions).await;
        let (mut session, trace) = opened?;
        session.recall(memory).await?;
        self.trace.replace(trace);
        self.watch(&session);
        Ok(Box::new(session))
    }

    /// Fails if the bytes are known to be gone.
    fn check(&self) -> Result<()> {
        if self.source.is_instance_of::<ReadableStream>() {
            let why = "the model came from a stream, which cannot be read again; load it anew";
            return Err(Error::DeviceLost(why.into()));
        }
        // The array had bytes when the model was loaded from it.
        if self.source.dyn_ref::<Uint8Array>().is_some_and(|bytes| bytes.length() == 0) {
            return Err(Error::unreadable("the array of the model", "it was detached"));
        }
        Ok(())
    }

    /// Calls `on_lost` when the session's device is lost.
    fn watch(&self, session: &Session) {
        let (lost, on_lost) = (session.compute().lost(), self.on_lost.clone());
        spawn_local(async move {
            // This fails if the device is dropped without being lost.
            let Ok(loss) = lost.await else { return };
            if let Ok(loss) = serde_wasm_bindgen::to_value(&loss) {
                // `on_lost` is a function of the package's own TypeScript, which does not throw.
                let _ = on_lost.call1(&JsValue::NULL, &loss);
            }
        });
    }
}

/// The session while a call uses it. Dropping the lease gives it back to its holder.
pub(super) struct Lease<'a> {
    holder: &'a Holder,
    held: MutexGuard<'a, Option<Held>>,
}

impl Lease<'_> {
    pub(super) fn session(&mut self) -> Result<&mut Session> {
        match &mut *self.held {
            Some(Held::Here(session)) => Ok(session),
            _ => Err(Error::Internal("no session in a lease".into())),
        }
    }

    /// If the device is lost, keeps only the little of the session that is needed to restore it.
    fn give_up_if_lost(&mut self) {
        *self.held = match self.held.take() {
            Some(Held::Here(session)) if session.compute().is_lost() => {
                Some(Held::Lost(session.into_memory()))
            }
            held => held,
        };
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if self.holder.is_disposed() {
            self.held.take();
        } else {
            self.give_up_if_lost();
        }
    }
}

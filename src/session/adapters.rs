//! The adapters of a session.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

use super::loaded::{Memory, Session};
use crate::error::{Error, Result};
use crate::model::{Adapter, Adapters};
use crate::source::{Reader, Source};

impl Session {
    /// Reads an adapter (LoRA, in GGUF) for this model. [`Session::set_adapters`] applies it. It is freed
    /// once it is neither applied nor held by the caller.
    ///
    /// Errors: `bad-gguf` for a damaged file, `bad-adapter` for one that cannot be applied to this model,
    /// and those of the source.
    pub async fn load_adapter<S: Source>(
        &mut self,
        reader: &mut Reader<S>,
    ) -> Result<Arc<Adapter>> {
        let adapter = Adapter::read(reader, self.engine.config(), &self.table).await?;
        let adapter = Arc::new(adapter);
        self.own.retain(|own| own.strong_count() > 0);
        self.own.push(Arc::downgrade(&adapter));
        Ok(adapter)
    }

    /// Applies these adapters of [`Session::load_adapter`], each times its scale, and no others. A scale
    /// may be negative; 0 is off. Without adapters the results are the model's own, to the last bit. The
    /// keys and values of earlier texts are computed again when they are next needed.
    ///
    /// Errors: `bad-option` for a scale that is not finite and for an adapter of another session;
    /// `bad-adapter` for one that the engine cannot apply, `out-of-memory` and `device-lost`, after which
    /// none is applied.
    pub async fn set_adapters(&mut self, adapters: &[(Arc<Adapter>, f32)]) -> Result<()> {
        self.apply(chosen(&self.own, adapters)?).await
    }

    async fn apply(&mut self, adapters: Adapters) -> Result<()> {
        if adapters.hash() == self.adapters.hash() {
            // The same values of another file, whose caller may have let go of the first.
            self.adapters = adapters;
            return Ok(());
        }
        // Sequences may still count as running if a future was dropped.
        self.caches.release_all();
        self.caches.forget_values();
        self.prior = None;
        self.adapters = Adapters::default();
        self.engine.set_adapters(&adapters).await?;
        self.adapters = adapters;
        Ok(())
    }

    /// The adapters that are applied.
    pub fn adapters(&self) -> &Adapters {
        &self.adapters
    }

    /// Takes the adapters of an earlier session of the same file: the loaded ones (`own`), and those that were
    /// `applied`, which it applies again.
    pub(super) async fn take_adapters(
        &mut self,
        own: &[Weak<Adapter>],
        applied: &Adapters,
    ) -> Result<()> {
        self.own = own.to_vec();
        self.apply(applied.clone()).await
    }

    /// A hash of everything that keys and values depend on: the model, how it was loaded, and the
    /// adapters.
    pub(super) fn values_hash(&self) -> u64 {
        let Some(adapters) = self.adapters.hash() else { return self.saved_as };
        let mut hasher = DefaultHasher::new();
        (self.saved_as, adapters).hash(&mut hasher);
        hasher.finish()
    }
}

impl Memory {
    /// Makes the next session apply these adapters instead of those of the last one. So a model can be restored
    /// whose adapters the new device cannot hold.
    ///
    /// Errors: `bad-option`, as those of [`Session::set_adapters`].
    pub fn set_adapters(&mut self, adapters: &[(Arc<Adapter>, f32)]) -> Result<()> {
        self.adapters = chosen(&self.own, adapters)?;
        Ok(())
    }
}

/// The adapters that a caller chose among the model's `own`.
fn chosen(own: &[Weak<Adapter>], adapters: &[(Arc<Adapter>, f32)]) -> Result<Adapters> {
    let is_own = |one: &Arc<Adapter>| own.iter().any(|own| own.as_ptr() == Arc::as_ptr(one));
    if !adapters.iter().all(|(adapter, _)| is_own(adapter)) {
        let why = "an adapter was loaded for another model".into();
        return Err(Error::BadOption { name: "adapters".into(), why });
    }
    Adapters::new(adapters)
}

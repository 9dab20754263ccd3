//! Room for a file: how much the browser grants, and which other files of ours are deleted for it.

use js_sys::Reflect;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::StorageManager;

use super::database::Storage;
use crate::transfer::{StoredModel, eviction_order};
use crate::web::tabs::Lock;

/// The browser needs this share of the bytes for its own records.
const MARGIN: f64 = 0.01;

/// Whether the bytes of a file will fit into the storage.
pub(in crate::web) enum Room {
    /// The bytes will fit, as far as the browser knows, because these models have been deleted.
    Made(Vec<StoredModel>),
    /// The bytes would not fit, even if all other models were deleted. So nothing was deleted.
    Not {
        /// Bytes that would fit.
        possible: u64,
    },
}

impl Storage {
    /// Whether `needed` bytes will fit, as far as the browser knows, without deleting anything.
    pub(in crate::web) async fn fits(&self, needed: u64) -> bool {
        free().await.is_none_or(|free| free >= with_margin(needed))
    }

    /// Makes room for `needed` bytes of `url`. Deletes other models, the least recently used one
    /// first, but only if that is enough, and none that a tab is loading now.
    pub(in crate::web) async fn make_room(&self, url: &str, needed: u64) -> Room {
        match free().await {
            Some(free) => self.evict(free, url, with_margin(needed)).await,
            None => Room::Made(Vec::new()),
        }
    }

    /// Makes room after the browser has refused a write. Nothing is free then, even if the browser
    /// estimates otherwise: Chromium's estimate is of a quota that is always far away. Files that
    /// were deleted before still count as room, because browsers notice deletions late.
    pub(super) async fn make_room_when_full(&self, url: &str, needed: u64) -> Room {
        if self.freed.get() >= needed {
            return Room::Made(Vec::new());
        }
        self.evict(0.0, url, needed as f64).await
    }

    async fn evict(&self, mut free: f64, url: &str, needed: f64) -> Room {
        let mut evicted = Vec::new();
        if free >= needed {
            return Room::Made(evicted);
        }
        let others = eviction_order(self.list().await.unwrap_or_default(), url);
        // The locks are held until all files are deleted, so that a tab that starts to load one of
        // them waits.
        let mut locks = Vec::new();
        let mut idle = Vec::new();
        for model in others {
            if let Some(lock) = Lock::if_free(&model.url).await {
                locks.push(lock);
                idle.push(model);
            }
        }
        let possible = free + idle.iter().map(|model| model.bytes() as f64).sum::<f64>();
        if possible < needed {
            return Room::Not { possible: possible.max(0.0) as u64 };
        }
        for model in idle {
            if free >= needed {
                break;
            }
            let ids = model.files.iter().map(|file| file.id.clone()).collect();
            if self.discard(ids).await.is_ok() {
                free += model.bytes() as f64;
                evicted.push(model);
                self.freed.set(free as u64);
            }
        }
        Room::Made(evicted)
    }
}

fn with_margin(needed: u64) -> f64 {
    needed as f64 * (1.0 + MARGIN)
}

/// Bytes that the browser still grants this origin, if it says so.
async fn free() -> Option<f64> {
    let navigator = Reflect::get(&js_sys::global(), &"navigator".into()).ok()?;
    let storage = Reflect::get(&navigator, &"storage".into()).ok()?;
    // `navigator.storage` is absent outside of secure contexts.
    let storage: StorageManager = storage.is_object().then(|| storage.unchecked_into())?;
    let estimate = JsFuture::from(storage.estimate().ok()?).await.ok()?;
    let number = |name: &str| Reflect::get(&estimate, &name.into()).ok()?.as_f64();
    Some(number("quota")? - number("usage")?)
}

//! Room for a file: how much the browser grants, and which of our own files give way.

use js_sys::Reflect;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::StorageManager;

use super::Storage;
use crate::transfer::Manifest;
use crate::web::tabs::Lock;

/// What a browser's books take beside the bytes themselves.
const MARGIN: f64 = 0.01;

/// Whether bytes will fit.
pub(in crate::web) enum Room {
    /// They will, as far as the browser says, now that these files are gone.
    Made(Vec<Manifest>),
    /// They would not, with all other files gone either; so those are still there.
    Not {
        /// Bytes there could have been.
        possible: u64,
    },
}

impl Storage {
    /// Makes room for `needed` bytes of `url`. Of other addresses' files those go that were used
    /// longest ago, and only if that is enough; none that a tab is loading at this moment.
    pub(in crate::web) async fn make_room(&self, url: &str, needed: u64) -> Room {
        match free().await {
            Some(free) => self.make_room_beside(free, url, needed as f64 * (1.0 + MARGIN)).await,
            None => Room::Made(Vec::new()),
        }
    }

    /// The same when the browser has refused a write: nothing is free, whatever it said before.
    /// Chromium's estimate, for one, is of a quota that is always far away. But what has given way
    /// already is not asked for twice: browsers take a while to count it.
    pub(super) async fn make_room_when_full(&self, url: &str, needed: u64) -> Room {
        if self.made.get() >= needed {
            return Room::Made(Vec::new());
        }
        self.make_room_beside(0.0, url, needed as f64).await
    }

    async fn make_room_beside(&self, mut free: f64, url: &str, needed: f64) -> Room {
        let mut evicted = Vec::new();
        if free >= needed {
            return Room::Made(evicted);
        }
        let mut others = self.list().await.unwrap_or_default();
        others.retain(|file| file.url != url && file.bytes() > 0);
        others.sort_by(|a, b| a.used.total_cmp(&b.used));
        // Held until all are gone: a tab that begins to load one meanwhile waits.
        let mut locks = Vec::new();
        let mut idle = Vec::new();
        for file in others {
            if let Some(lock) = Lock::if_free(&file.url).await {
                locks.push(lock);
                idle.push(file);
            }
        }
        let possible = free + idle.iter().map(|file| file.bytes() as f64).sum::<f64>();
        if possible < needed {
            return Room::Not { possible: possible.max(0.0) as u64 };
        }
        for file in idle {
            if free >= needed {
                break;
            }
            if self.discard(&file.id).await.is_ok() {
                free += file.bytes() as f64;
                evicted.push(file);
                self.made.set(free as u64);
            }
        }
        Room::Made(evicted)
    }
}

/// Bytes that the browser still grants this origin, if it says.
async fn free() -> Option<f64> {
    let navigator = Reflect::get(&js_sys::global(), &"navigator".into()).ok()?;
    let storage = Reflect::get(&navigator, &"storage".into()).ok()?;
    // Absent outside of secure contexts.
    let storage: StorageManager = storage.is_object().then(|| storage.unchecked_into())?;
    let estimate = JsFuture::from(storage.estimate().ok()?).await.ok()?;
    let number = |name: &str| Reflect::get(&estimate, &name.into()).ok()?.as_f64();
    Some(number("quota")? - number("usage")?)
}

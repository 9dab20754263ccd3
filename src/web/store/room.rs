//! Room for a file: how much the browser grants, and which other files of ours are deleted for it.

use super::database::Storage;
use super::disk::free;
use crate::transfer::{StoredModel, eviction_order, model_urls, other_versions};
use crate::web::tabs::Lock;

/// The browser needs this share of the bytes for its own records.
const MARGIN: f64 = 0.01;

impl Storage {
    /// Whether `needed` bytes of the file of `url` with the record `id` can fit, as far as the
    /// browser knows, if others are deleted. This deletes none. `Err` has the number of bytes that
    /// can fit.
    pub(in crate::web) async fn may_fit(
        &self,
        url: &str,
        id: &str,
        needed: u64,
    ) -> Result<(), u64> {
        let needed = needed as f64 * (1.0 + MARGIN);
        let Some(mut possible) = free().await.filter(|free| *free < needed) else { return Ok(()) };
        possible += bytes(&self.idle(url, id).await.0);
        if possible < needed { Err(possible.max(0.0) as u64) } else { Ok(()) }
    }

    /// Makes room for `needed` bytes of the file of `url` with the record `id`, after the browser
    /// has refused a write. Deletes other models, the least recently used one first, and gives
    /// them. If they are not enough, also deletes other versions of the file. `None` if deleting
    /// all of them would not be enough. Then none is deleted.
    ///
    /// Nothing is free then, even if the browser estimates otherwise: Chromium's estimate is of a
    /// quota that is always far away. Files that were deleted before still count as room, because
    /// browsers notice deletions late.
    pub(super) async fn evict(&self, url: &str, id: &str, needed: u64) -> Option<Vec<StoredModel>> {
        let mut evicted = Vec::new();
        if self.freed.get() >= needed {
            return Some(evicted);
        }
        let (idle, _locks) = self.idle(url, id).await;
        if bytes(&idle) < needed as f64 {
            return None;
        }
        let mut freed = 0;
        for model in idle {
            if freed >= needed {
                break;
            }
            let ids = model.files.iter().map(|file| file.id.clone()).collect();
            if self.discard(ids).await.is_ok() {
                freed += model.bytes();
                self.freed.set(freed);
                // A new version replaces an old one in any case.
                if model.url != url {
                    evicted.push(model);
                }
            }
        }
        Some(evicted)
    }

    /// The models that may be deleted for the file of `url` with the record `id`, the least
    /// recently used one first, and at last other versions of the file. No tab loads or uses them.
    /// While the locks are held, a tab that starts to load one of them waits, and so does one that
    /// looks for room. A load of the file itself that begins now may find its bytes gone, and
    /// starts again.
    async fn idle(&self, url: &str, id: &str) -> (Vec<StoredModel>, Vec<Lock>) {
        let (mut idle, mut locks) = (Vec::new(), vec![Lock::to_make_room().await]);
        let files = self.list().await.unwrap_or_default();
        for model in eviction_order(files.clone(), url) {
            if let Some(both) = Lock::to_delete(&model.url).await {
                locks.extend(both);
                idle.push(model);
            }
        }
        if let (Some(versions), Some(model)) =
            (other_versions(files, url, id), model_urls(url).first())
            && !Lock::is_used_by_others(model).await
        {
            idle.push(versions);
        }
        (idle, locks)
    }
}

fn bytes(models: &[StoredModel]) -> f64 {
    models.iter().map(|model| model.bytes() as f64).sum()
}

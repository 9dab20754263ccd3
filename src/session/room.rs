//! Gives sequences room in the KV cache: the cache grows, or idle sequences give up their ranges.

use super::caches::{CacheId, Caches, Copied, Placed, Wanted};
use super::generation::Generation;
use super::loaded::{Session, bytes_per_position};
use crate::error::Result;

/// Bytes of KV cache that idle sequences may keep, or those of one context if that is more. If they
/// need more, the oldest one gives up its range, and the cache does not grow.
pub(super) const MAX_KEPT: u64 = 1 << 30;

/// Positions of the KV cache that should be free for the next sequence. The cache grows for them
/// while no call waits.
const AHEAD: usize = 512;

/// Bytes of KV cache that sequences which are generated together may take. A call that finds no
/// room waits.
pub(super) const MAX_SHARED: u64 = 3 << 30;

impl Session {
    /// Gives a prompt its range of the KV cache, if no running sequence needs it. The sequence's
    /// `filled` says how many of its tokens are in the cache. The cache may grow up to `bytes`.
    pub(super) async fn place(
        &mut self,
        ids: &[u32],
        wanted: Wanted,
        bytes: u64,
    ) -> Result<Option<CacheId>> {
        let place = |caches: &mut Caches, anyway| match anyway {
            false => caches.place(ids, wanted),
            true => caches.place_anyway(ids, wanted),
        };
        Ok(self.room(wanted, bytes, &place).await?.map(|placed| placed.id))
    }

    /// Like [`Session::place`], but no idle sequence gives up its range.
    pub(super) async fn place_beside(
        &mut self,
        ids: &[u32],
        wanted: Wanted,
        bytes: u64,
    ) -> Result<Option<CacheId>> {
        let place = |caches: &mut Caches, anyway| match anyway {
            false => caches.place(ids, wanted),
            true => None,
        };
        Ok(self.room(wanted, bytes, &place).await?.map(|placed| placed.id))
    }

    /// Adds `ids` to a sequence, and gives it room for more tokens. That may be in another range.
    /// Gives whether there was room.
    pub(super) async fn extend(&mut self, one: &Generation<'_>, ids: &[u32]) -> Result<bool> {
        let sequence = self.caches.running(one.sequence)?;
        sequence.filled = sequence.filled.min(sequence.tokens.len());
        sequence.tokens.extend(ids);
        let (id, wanted) = (one.sequence, one.wanted(sequence.tokens.len()));
        if sequence.room() >= wanted.least {
            return Ok(true);
        }
        let extend = |caches: &mut Caches, anyway| {
            let copies = match anyway {
                false => caches.extend(id, wanted),
                true => caches.extend_anyway(id, wanted),
            };
            Some(Placed { id, copies: copies? })
        };
        Ok(self.room(wanted, MAX_SHARED, &extend).await?.is_some())
    }

    /// Gives a sequence room by calling `give`. If there is none, the cache grows up to `bytes`. If
    /// it cannot grow, `give` is called with `true`, so that idle sequences give up their ranges.
    async fn room(
        &mut self,
        wanted: Wanted,
        bytes: u64,
        give: &dyn Fn(&mut Caches, bool) -> Option<Placed>,
    ) -> Result<Option<Placed>> {
        let mut placed = give(&mut self.caches, false);
        let most = self.positions_of(bytes);
        if placed.is_none() && self.engine.grow(wanted.most, most).await? {
            self.caches.grow(self.engine.positions());
            placed = give(&mut self.caches, false);
        }
        let placed = placed.or_else(|| give(&mut self.caches, true));
        for &Copied { from, to, n } in placed.iter().flat_map(|placed| &placed.copies) {
            self.engine.copy_cache(from, to, n);
        }
        Ok(placed)
    }

    /// Positions for which `bytes` of KV cache suffice.
    pub(super) fn positions_of(&self, bytes: u64) -> usize {
        (bytes / bytes_per_position(&*self.engine)) as usize
    }

    /// Lets the KV cache grow if it has little room for the next sequence. To be called while no
    /// call waits. If the device has once refused the memory, it does not try again.
    pub(super) async fn grow_ahead(&mut self) -> Result<()> {
        let wanted = AHEAD.min(self.traits.n_ctx);
        let most = self.positions_of(MAX_KEPT);
        if self.grows_ahead && self.caches.unused() < wanted {
            self.grows_ahead = self.engine.grow(wanted, most).await?;
            self.caches.grow(self.engine.positions());
        }
        Ok(())
    }
}

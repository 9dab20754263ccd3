//! The sequences whose keys and values the KV cache holds. Each has its own range of positions.
//!
//! A sequence keeps its range after its generation. So a sequence that continues it computes only
//! its new tokens. If there is no room, the least recently used sequence gives up its range.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use super::conversation::Conversation;
use crate::error::{Error, Result};

/// A new sequence takes the range of one that begins alike, if that one loses fewer tokens than
/// this. A copy would not be worth its memory.
const FEW_LOST: usize = 64;

/// The most sequences that are kept. The KV cache should not grow because a page asks one question
/// after another.
const MAX_SEQUENCES: usize = 8;

/// The name of a sequence in [`Caches`]. It is never used again for another sequence.
pub(super) type CacheId = u64;

/// A sequence and its range of the KV cache.
#[derive(Default)]
pub(super) struct Cached {
    /// The prompt, and the tokens chosen after it.
    pub(super) tokens: Vec<u32>,
    /// Positions of its range that are filled, or that the steps in flight will fill. They hold the
    /// keys and values of `tokens`. Behind them there may be those of tokens that were computed but
    /// not used.
    pub(super) filled: usize,
    /// How many of `tokens` belong to the prompt.
    pub(super) prompt: usize,
    /// The conversation with this prompt and answer, if it is a chat.
    pub(super) conversation: Option<Conversation>,
    /// Its positions in the KV cache. Empty if only the tokens are known.
    room: Range<usize>,
    /// Whether a generation uses it.
    busy: bool,
    /// When it was used last: the number of uses of any sequence up to then.
    used: u64,
}

/// All sequences that the KV cache holds.
#[derive(Default)]
pub(super) struct Caches {
    all: BTreeMap<CacheId, Cached>,
    /// Positions of the KV cache.
    positions: usize,
    /// In a deterministic session: tokens of a prompt's chunk. Only whole chunks are used again.
    grid: Option<usize>,
    uses: u64,
}

/// How many positions of the KV cache a sequence needs.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// The fewest positions that it can begin with.
    pub(super) least: usize,
    /// The most positions that it can use.
    pub(super) most: usize,
}

/// The range that a sequence was given.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placed {
    pub(super) id: CacheId,
    /// The keys and values to copy before the sequence is used, in this order.
    pub(super) copies: Vec<Copied>,
}

/// Positions to copy within the KV cache, in ascending order, because the ranges may overlap if
/// `to` is before `from`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Copied {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) n: usize,
}

impl Cached {
    /// Where its positions begin in the KV cache.
    pub(super) fn first(&self) -> usize {
        self.room.start
    }

    /// Positions of its range.
    pub(super) fn room(&self) -> usize {
        self.room.len()
    }

    /// How many of the first `ids` have their keys and values in it. The last of `ids` never
    /// counts, because its logits are needed.
    fn shared(&self, ids: &[u32], grid: Option<usize>) -> usize {
        let given = &self.tokens[..self.given(grid)];
        let same = given.iter().zip(ids).take_while(|(a, b)| a == b).count();
        on_grid(same.min(ids.len().saturating_sub(1)), grid)
    }

    /// How many of its tokens have keys and values that another sequence may use.
    fn given(&self, grid: Option<usize>) -> usize {
        match grid {
            None => self.valid(),
            Some(_) => on_grid(self.valid().min(self.prompt), grid),
        }
    }

    /// How many of its tokens have their keys and values.
    fn valid(&self) -> usize {
        self.filled.min(self.tokens.len())
    }
}

/// The last multiple of `grid` that is at most `n`.
fn on_grid(n: usize, grid: Option<usize>) -> usize {
    grid.map_or(n, |grid| n / grid * grid)
}

impl Caches {
    /// A KV cache of `positions`, without sequences. With a `grid`, only tokens are used again that
    /// were computed in a prompt's chunks of so many tokens.
    pub(super) fn new(positions: usize, grid: Option<usize>) -> Self {
        Self { positions, grid, ..Self::default() }
    }

    /// Must be called when the KV cache has grown.
    pub(super) fn grow(&mut self, positions: usize) {
        self.positions = positions;
    }

    /// Positions that belong to no sequence.
    pub(super) fn unused(&self) -> usize {
        self.positions - self.all.values().map(Cached::room).sum::<usize>()
    }

    /// Positions that belong to no running generation.
    fn not_busy(&self) -> usize {
        let busy = self.all.values().filter(|cached| cached.busy);
        self.positions - busy.map(Cached::room).sum::<usize>()
    }

    /// Forgets all sequences.
    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    /// Forgets the keys and values of all sequences. Their tokens stay known.
    pub(super) fn forget_values(&mut self) {
        for cached in self.all.values_mut() {
            (cached.filled, cached.room) = (0, 0..0);
        }
    }

    /// The sequence with this id, if it still has its range.
    pub(super) fn get(&mut self, id: CacheId) -> Option<&mut Cached> {
        self.all.get_mut(&id)
    }

    /// The sequence of a generation.
    ///
    /// Errors: `internal` if it was given up. That cannot be, because no sequence in use is given
    /// up.
    pub(super) fn running(&mut self, id: CacheId) -> Result<&mut Cached> {
        self.get(id).ok_or_else(given_up)
    }

    /// The sequence that was used last.
    pub(super) fn latest(&self) -> Option<&Cached> {
        self.all.values().max_by_key(|cached| cached.used)
    }

    /// Adds a sequence without room. Only its tokens are known.
    pub(super) fn remember(&mut self, tokens: Vec<u32>, conversation: Option<Conversation>) {
        let id = self.next_use();
        let sequence = Cached { tokens, conversation, used: id, ..Cached::default() };
        self.all.insert(id, sequence);
    }

    /// The conversations with their tokens, those of prompt and answer. The one that was used last
    /// comes first.
    pub(super) fn conversations(&self) -> impl DoubleEndedIterator<Item = (&Conversation, &[u32])> {
        let mut all: Vec<&Cached> = self.all.values().collect();
        all.sort_by_key(|cached| Reverse(cached.used));
        all.into_iter()
            .filter_map(|cached| Some((cached.conversation.as_ref()?, &cached.tokens[..])))
    }

    /// For the idle sequence that holds most of `ids`: where it begins in the KV cache, and how
    /// many it holds.
    pub(super) fn holding(&self, ids: &[u32]) -> Option<(usize, usize)> {
        self.best(ids).map(|(id, n)| (self.all[&id].first(), n))
    }

    /// Gives `ids` a range for a generation. It is the range of the sequence that has most of them,
    /// if that one loses few tokens. Otherwise it is a new range, into which the shared tokens have
    /// to be copied. Other sequences may move. `None` if there is no room. The sequence's `filled`
    /// says how many of `ids` the range holds.
    pub(super) fn place(&mut self, ids: &[u32], wanted: Wanted) -> Option<Placed> {
        if let Some(placed) = self.place_at_once(ids, wanted) {
            return Some(placed);
        }
        if self.unused() < wanted.least {
            return None;
        }
        let moves = self.compact();
        let placed = self.place_at_once(ids, wanted)?;
        Some(Placed { copies: [moves, placed.copies].concat(), ..placed })
    }

    /// Moves all sequences together, to the beginning. Running generations continue in their new
    /// ranges.
    fn compact(&mut self) -> Vec<Copied> {
        let mut sequences: Vec<_> =
            self.all.values_mut().filter(|sequence| sequence.room() > 0).collect();
        sequences.sort_by_key(|sequence| sequence.room.start);
        let mut copies = Vec::new();
        let mut end = 0;
        for sequence in sequences {
            let (from, to) = (sequence.room.start, end);
            end += sequence.room();
            sequence.room = to..end;
            if from != to && sequence.filled > 0 {
                copies.push(Copied { from, to, n: sequence.filled });
            }
        }
        copies
    }

    fn place_at_once(&mut self, ids: &[u32], wanted: Wanted) -> Option<Placed> {
        let best = self.best(ids);
        if let Some((id, shared)) = best
            && self.all[&id].given(self.grid) - shared < FEW_LOST
            && self.room_from(id) >= wanted.least
        {
            return Some(self.take(id, ids, shared, wanted.most));
        }
        let room = self.free(wanted)?;
        let new = self.next_use();
        let mut sequence = Cached { room: room.clone(), ..Cached::default() };
        let mut copies = Vec::new();
        if let Some((id, shared)) = best {
            copies.push(Copied { from: self.all[&id].room.start, to: room.start, n: shared });
            sequence.tokens = ids[..shared].to_vec();
            sequence.filled = shared;
            if self.all[&id].given(self.grid) - shared < FEW_LOST {
                self.all.remove(&id);
            }
        }
        self.all.insert(new, sequence);
        let filled = copies.first().map_or(0, |copied: &Copied| copied.n);
        Some(Placed { copies, ..self.take(new, ids, filled, wanted.most) })
    }

    /// Like [`Caches::place`], but idle sequences give up their ranges until there is room; `None`
    /// if running generations have the room. In that case idle sequences keep theirs.
    pub(super) fn place_anyway(&mut self, ids: &[u32], wanted: Wanted) -> Option<Placed> {
        if self.not_busy() < wanted.least {
            return None;
        }
        loop {
            if let Some(placed) = self.place(ids, wanted) {
                return Some(placed);
            }
            let best = self.best(ids);
            if let Some((id, shared)) = best
                && self.room_from(id) >= wanted.least
            {
                return Some(self.take(id, ids, shared, wanted.most));
            }
            let best = best.map(|(id, _)| id);
            let oldest = self.oldest(best)?;
            self.all.remove(&oldest);
        }
    }

    /// Gives a running sequence more room. It gets it in its range, or in another one, into which
    /// its keys and values have to be copied. Other sequences may move. `None` if there is no room.
    pub(super) fn extend(&mut self, id: CacheId, wanted: Wanted) -> Option<Vec<Copied>> {
        if let Some(copies) = self.extend_at_once(id, wanted) {
            return Some(copies);
        }
        let own = self.all.get(&id)?.room.clone();
        let is_last = self.all.values().all(|cached| cached.room.start <= own.start);
        let free = self.unused() + if is_last { own.len() } else { 0 };
        if free < wanted.least {
            return None;
        }
        let moves = self.compact();
        let copies = self.extend_at_once(id, wanted)?;
        Some([moves, copies].concat())
    }

    /// Like [`Caches::extend`], but idle sequences give up their ranges until there is room; `None`
    /// if running generations have the room. In that case idle sequences keep theirs.
    pub(super) fn extend_anyway(&mut self, id: CacheId, wanted: Wanted) -> Option<Vec<Copied>> {
        let own = self.all.get(&id)?.room.clone();
        let busy = self.all.values().filter(|cached| cached.busy);
        let after = busy.map(|cached| cached.room.start).filter(|&start| start > own.start).min();
        let most = match after {
            // It gets more where it is, or all elsewhere.
            Some(after) => self.not_busy().max(after - own.start),
            None => self.not_busy() + own.len(),
        };
        if most < wanted.least {
            return None;
        }
        loop {
            if let Some(copies) = self.extend(id, wanted) {
                return Some(copies);
            }
            let oldest = self.oldest(None)?;
            self.all.remove(&oldest);
        }
    }

    fn extend_at_once(&mut self, id: CacheId, wanted: Wanted) -> Option<Vec<Copied>> {
        let room = self.room_from(id);
        if room < wanted.least {
            let free = self.free(wanted)?;
            let cached = self.all.get_mut(&id)?;
            let copied = Copied { from: cached.room.start, to: free.start, n: cached.filled };
            cached.room = free.start..free.start + free.len().min(wanted.most);
            return Some(vec![copied]);
        }
        let cached = self.all.get_mut(&id)?;
        cached.room.end = cached.room.start + room.min(wanted.most);
        Some(Vec::new())
    }

    /// Must be called when the generation of a sequence has ended. The sequence keeps its filled
    /// positions.
    pub(super) fn release(&mut self, id: CacheId) {
        if let Some(cached) = self.all.get_mut(&id) {
            cached.busy = false;
            cached.room.end = cached.room.end.min(cached.room.start + cached.filled);
            if cached.room.is_empty() {
                self.all.remove(&id);
            }
        }
    }

    /// Ends all generations, also those whose future was dropped.
    pub(super) fn release_all(&mut self) {
        let busy = self.all.iter().filter(|(_, cached)| cached.busy).map(|(&id, _)| id);
        for id in busy.collect::<Vec<_>>() {
            self.release(id);
        }
    }

    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// The idle sequence that was least recently used. It is `last` only if there is no other.
    fn oldest(&self, last: Option<CacheId>) -> Option<CacheId> {
        let idle = self.all.iter().filter(|(_, cached)| !cached.busy);
        let oldest = idle.min_by_key(|(id, cached)| (Some(**id) == last, cached.used));
        oldest.map(|(&id, _)| id)
    }

    /// The idle sequence that holds most of `ids`, and how many it holds.
    fn best(&self, ids: &[u32]) -> Option<(CacheId, usize)> {
        let idle = self.all.iter().filter(|(_, cached)| !cached.busy);
        let shared = idle.map(|(&id, cached)| (id, cached.shared(ids, self.grid), cached.used));
        let best = shared.filter(|(_, n, _)| *n > 0).max_by_key(|(_, n, used)| (*n, *used));
        best.map(|(id, n, _)| (id, n))
    }

    /// Gives the range of `id` to `ids`. The range holds the first `shared` of them.
    fn take(&mut self, id: CacheId, ids: &[u32], shared: usize, most: usize) -> Placed {
        let (room, used) = (self.room_from(id), self.next_use());
        // A sequence without room has served its purpose once a prompt was made of it.
        let known = self.all.iter().filter(|(_, cached)| cached.room.is_empty());
        let same =
            |cached: &Cached| cached.tokens.iter().zip(ids).take_while(|(a, b)| a == b).count();
        let known = known.max_by_key(|(_, cached)| same(cached)).map(|(&id, _)| id);
        if let Some(known) = known {
            self.all.remove(&known);
        }
        if let Some(cached) = self.all.get_mut(&id) {
            cached.room.end = cached.room.start + room.min(most).max(shared);
            cached.filled = shared;
            cached.tokens = ids.to_vec();
            cached.prompt = ids.len();
            cached.conversation = None;
            cached.busy = true;
            cached.used = used;
        }
        if self.all.len() > MAX_SEQUENCES
            && let Some(oldest) = self.oldest(None)
        {
            self.all.remove(&oldest);
        }
        Placed { id, copies: Vec::new() }
    }

    /// Positions from the beginning of a sequence's range to the next sequence.
    fn room_from(&self, id: CacheId) -> usize {
        let start = self.all[&id].room.start;
        let others = self.all.iter().filter(|(other, cached)| **other != id && cached.room() > 0);
        let after = others.map(|(_, cached)| cached.room.start).filter(|&other| other >= start);
        after.min().unwrap_or(self.positions) - start
    }

    /// The first free range with all the room that is wanted. If there is none, the largest that
    /// suffices.
    fn free(&self, wanted: Wanted) -> Option<Range<usize>> {
        let mut rooms: Vec<_> = self.all.values().map(|cached| cached.room.clone()).collect();
        rooms.retain(|room| !room.is_empty());
        rooms.sort_by_key(|room| room.start);
        let starts = [0].into_iter().chain(rooms.iter().map(|room| room.end));
        let ends = rooms.iter().map(|room| room.start).chain([self.positions]);
        let mut free: Vec<_> = starts.zip(ends).map(|(start, end)| start..end).collect();
        free.retain(|free| free.len() >= wanted.least);
        let enough = free.iter().find(|free| free.len() >= wanted.most);
        enough.or_else(|| free.iter().max_by_key(|free| free.len())).cloned()
    }
}

/// The error for a sequence that lost its room although a generation uses it.
pub(super) fn given_up() -> Error {
    Error::Internal("a running sequence has no room in the KV cache".into())
}

#[cfg(test)]
mod tests;

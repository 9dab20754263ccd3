//! Makes a model compute for a session.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, ready};
use web_time::Instant;

use super::{Model, Row};
use crate::compute::{
    About, Choice, Choosing, Compute, Depth, KernelTime, Loss, NO_TOKEN, Pending, Pick, Profile,
    Seat, Site, Span, Steps, Tap, Traits,
};
use crate::error::{Error, Result};
use crate::model::{Adapters, Config};
use crate::sampling::{Logprobs, Mask, Sampling};

/// The most sequences of a step. Also the most tokens of a draft pass.
const SLOTS: usize = 8;

/// How a session uses a model best.
#[derive(Clone, Copy, Debug)]
pub struct HostTraits {
    /// Tokens of a chunk.
    pub chunk: usize,
    /// The most tokens of a pass of several sequences.
    pub pass: usize,
    /// How many steps may be in flight. More steps than one gain nothing. They let tests behave as a card
    /// does.
    pub depth: Depth,
    /// Whether generations draft by default.
    pub prompt_lookup: bool,
}

impl Default for HostTraits {
    fn default() -> Self {
        let depth = Depth { max_batches: 1, max_batch_steps: 1 };
        Self { chunk: 64, pass: SLOTS, depth, prompt_lookup: false }
    }
}

/// A model with the state of each sequence.
pub struct Host<M> {
    config: Config,
    model: RefCell<M>,
    traits: Traits,
    positions: usize,
    slots: Vec<RefCell<Slot>>,
    /// Where the sequence of the steps to come begins in the KV cache.
    first: Cell<usize>,
    /// The slot of the steps to come.
    slot: Cell<usize>,
    /// The residual streams after the tokens that were computed ahead.
    ahead: RefCell<Vec<Vec<f32>>>,
    bandwidth: Cell<Option<f64>>,
}

/// The state of a sequence that the choice of its tokens needs.
#[derive(Default)]
struct Slot {
    /// The token that was chosen last.
    token: u32,
    choosing: Choosing,
    /// The masks, if the choosing is masked: one for a step, or one for each token of a draft pass.
    masks: Vec<Mask>,
    /// How often the output has each token of the sequence: 0 if the prompt alone has it.
    times: BTreeMap<u32, f32>,
    /// Tokens that were counted before the steps. Steps count their own tokens.
    n_counted: usize,
}

/// The logits that a choice of a token takes.
enum Logits {
    All(Vec<f32>),
    /// None but the greatest, which this token has.
    Best(u32),
}

impl Slot {
    /// Whether the token with the greatest logit is chosen, and nothing else about the logits matters. `drafted`
    /// is whether it comes after a token of a draft pass.
    fn takes_best(&self, drafted: bool) -> bool {
        let choosing = &self.choosing;
        let is_best = drafted || choosing.pick() == Pick::Best;
        is_best && !choosing.adjusts() && choosing.logprobs.is_none()
    }

    /// Counts a token that a step computes.
    fn count(&mut self, id: u32, pos: usize) {
        if pos >= self.n_counted {
            *self.times.entry(id).or_default() += 1.0;
        }
    }

    /// Chooses the token after `n` tokens by the model's `logits`, adjusted by `times`. If it comes
    /// after a token of a draft pass, `drafted` is the number of that token, and the best token is
    /// chosen.
    fn choose(
        &self,
        logits: &Logits,
        times: &BTreeMap<u32, f32>,
        n: usize,
        drafted: Option<usize>,
    ) -> Choice {
        let logits = match logits {
            Logits::All(logits) => logits,
            Logits::Best(id) => return Choice::from(*id),
        };
        let Choosing { sampling, bias, logprobs, masked } = &self.choosing;
        let mut adjusted = logits.clone();
        bias.add_to(&mut adjusted);
        sampling.penalize_counted(&mut adjusted, times);
        if *masked {
            // Without its mask a step must not go unseen, so it has no token.
            let Some(mask) = self.masks.get(drafted.unwrap_or(0)) else {
                return Choice::from(NO_TOKEN);
            };
            mask.apply_to(&mut adjusted);
        }
        let sampling = match drafted {
            Some(_) => Sampling { temperature: 0.0, ..*sampling },
            None => *sampling,
        };
        match sampling.choose(&adjusted, n as u32) {
            None => Choice::from(NO_TOKEN),
            Some(id) => {
                let logprobs = logprobs.map(|n_top| Logprobs::new(logits, id, n_top));
                Choice { id, logprobs }
            }
        }
    }
}

impl<M: Model> Host<M> {
    /// The model with a KV cache of `n_ctx` positions.
    pub fn new(model: M, n_ctx: usize, traits: HostTraits) -> Self {
        let HostTraits { chunk, pass, depth, prompt_lookup } = traits;
        let chunk = chunk.min(n_ctx);
        Self {
            config: model.config().clone(),
            model: RefCell::new(model),
            traits: Traits {
                n_ctx,
                chunk,
                slots: SLOTS,
                pass,
                depth,
                prompt_lookup,
                shared_chunk: None,
            },
            positions: n_ctx,
            slots: (0..SLOTS).map(|_| RefCell::default()).collect(),
            first: Cell::default(),
            slot: Cell::default(),
            ahead: RefCell::default(),
            bandwidth: Cell::default(),
        }
    }

    /// Computes tokens as far as `site` of the block `block`. Gives the values there, for each.
    fn values(&self, rows: Vec<Row>, block: usize, site: Site) -> Vec<Vec<f32>> {
        self.model.borrow_mut().values(&self.known(rows), block, site)
    }

    /// The rows, with token 0 in place of those that are not in the vocabulary.
    fn known(&self, mut rows: Vec<Row>) -> Vec<Row> {
        for row in &mut rows {
            if row.id as usize >= self.config.n_vocab {
                row.id = 0;
            }
        }
        rows
    }

    /// Computes tokens. Gives the residual stream after the last block, for each.
    fn compute(&self, rows: Vec<Row>) -> Vec<Vec<f32>> {
        self.values(rows, self.config.n_layer - 1, Site::Down)
    }

    /// Computes tokens of the sequence in use.
    fn sequence(&self, pos: usize, ids: &[u32]) -> Vec<Vec<f32>> {
        self.compute(rows(self.first.get(), pos, ids).collect())
    }

    /// Computes tokens of several sequences.
    fn spans(&self, spans: &[Span<'_>]) -> Vec<Vec<f32>> {
        self.compute(rows_of(spans))
    }

    fn logits(&self, streams: &[Vec<f32>]) -> Vec<Vec<f32>> {
        self.model.borrow_mut().logits(streams)
    }

    /// The logits after each of `streams`, or the greatest alone, if the choices take the `best`.
    fn found(&self, streams: &[Vec<f32>], best: bool) -> Vec<Logits> {
        let found = if best { self.model.borrow_mut().best(streams) } else { None };
        match found {
            Some(ids) => ids.into_iter().map(Logits::Best).collect(),
            None => self.logits(streams).into_iter().map(Logits::All).collect(),
        }
    }

    /// Computes the token that was chosen last in the slot of each of `seats`.
    fn step(&self, seats: &[Seat]) -> Vec<Vec<f32>> {
        let row = |seat: &Seat| {
            let id = self.slots[seat.slot].borrow().token;
            Row { first: seat.first, pos: seat.pos, id }
        };
        self.compute(seats.iter().map(row).collect())
    }

    /// Chooses the tokens after those of [`Host::step`].
    fn choose_all(&self, seats: &[Seat], streams: &[Vec<f32>]) -> Vec<Choice> {
        let best = seats.iter().all(|seat| self.slots[seat.slot].borrow().takes_best(false));
        let logits = self.found(streams, best);
        let choose = |(seat, logits): (&Seat, Logits)| {
            let token = self.slots[seat.slot].borrow().token;
            self.choose_after(seat.slot, &logits, &[token], seat.pos)
        };
        seats.iter().zip(logits).map(choose).collect()
    }

    /// Chooses the token after `ids` in a slot, by the logits after them.
    fn choose_after(&self, slot: usize, logits: &Logits, ids: &[u32], pos: usize) -> Choice {
        let n = pos + ids.len();
        let mut slot = self.slots[slot].borrow_mut();
        if let Some(&last) = ids.last() {
            slot.count(last, n - 1);
        }
        let choice = slot.choose(logits, &slot.times, n, None);
        slot.token = choice.id;
        choice
    }

    /// The rate in GB/s at which memory is read, which is measured once.
    fn rate(&self) -> Result<f64> {
        let found = self.bandwidth.get().or_else(|| self.model.borrow_mut().bandwidth());
        self.bandwidth.set(found);
        found.ok_or_else(not_timed)
    }

    /// The times of the layers and of the LM head in a step of `n_tokens` after `pos`.
    fn timed(&self, pos: usize, n_tokens: usize, bandwidth: f64) -> Profile {
        let start = Instant::now();
        let last = self.sequence(pos, &vec![0; n_tokens]).pop();
        let between = Instant::now();
        self.choose_all(&[self.seat(pos + n_tokens - 1)], last.as_slice());
        let (layers, head) = (between - start, between.elapsed());
        let model = self.model.borrow();
        let part = |name: &str, time: Duration, bytes: u64| KernelTime {
            kernel: name.into(),
            calls: 1,
            microseconds: 1e6 * time.as_secs_f64(),
            bytes,
            ..KernelTime::default()
        };
        let layers = part("layers", layers, model.layer_bytes(pos + n_tokens - 1));
        Profile::new(bandwidth, vec![layers, part("lm_head", head, model.head_bytes())])
    }

    fn seat(&self, pos: usize) -> Seat {
        Seat { slot: self.slot.get(), first: self.first.get(), pos }
    }

    /// Computes the token of each slot and chooses the next one, `n` times.
    fn decode(&self, seats: &[Seat], n: usize) -> Vec<Vec<Choice>> {
        let mut chosen = vec![Vec::new(); seats.len()];
        for step in 0..n {
            let after = |seat: &Seat| Seat { pos: seat.pos + step, ..*seat };
            let seats: Vec<Seat> = seats.iter().map(after).collect();
            let choices = self.choose_all(&seats, &self.step(&seats));
            chosen.iter_mut().zip(choices).for_each(|(chosen, choice)| chosen.push(choice));
        }
        chosen
    }
}

fn rows(first: usize, pos: usize, ids: &[u32]) -> impl Iterator<Item = Row> {
    (pos..).zip(ids).map(move |(pos, &id)| Row { first, pos, id })
}

fn rows_of(spans: &[Span<'_>]) -> Vec<Row> {
    spans.iter().flat_map(|span| rows(span.first, span.pos, span.ids)).collect()
}

impl<M: Model> Steps for Host<M> {
    fn prefill_and_sample(&self, ids: &[u32], pos: usize, _begin: usize) -> Pending<Vec<Choice>> {
        let last = self.sequence(pos, ids).pop();
        let best = self.slots[self.slot.get()].borrow().takes_best(false);
        let choose = |logits: &Logits| self.choose_after(self.slot.get(), logits, ids, pos);
        Pending::ready(self.found(last.as_slice(), best).iter().map(choose).collect())
    }

    fn decode_and_sample(&self, pos: usize, n: usize) -> Pending<Vec<Choice>> {
        Pending::ready(self.decode(&[self.seat(pos)], n).concat())
    }

    fn decode_and_choose(
        &self,
        ids: &[u32],
        pos: usize,
        uncertain: &[u32],
    ) -> Pending<Vec<Choice>> {
        let best = self.slots[self.slot.get()].borrow().takes_best(true);
        let logits = self.found(&self.sequence(pos, ids), best);
        let slot = self.slots[self.slot.get()].borrow();
        let mut times = slot.times.clone();
        let mut count = |id: u32| *times.entry(id).or_default() += 1.0;
        uncertain.iter().for_each(|&id| count(id));
        let choices = logits.iter().zip(ids).enumerate().map(|(n, (logits, &id))| {
            *times.entry(id).or_default() += 1.0;
            slot.choose(logits, &times, pos + n + 1, Some(n))
        });
        Pending::ready(choices.collect())
    }

    fn write_masks(&self, slot: usize, masks: &[Mask]) -> Result<()> {
        Mask::words_of_all(masks, self.config.n_vocab)?;
        if masks.len() > SLOTS {
            return Err(Error::Internal(format!("{} masks at once", masks.len())));
        }
        self.slots[slot].borrow_mut().masks = masks.to_vec();
        Ok(())
    }

    fn max_draft_pass(&self, _pos: usize) -> usize {
        SLOTS
    }

    fn recount(&self, ids: &[u32], prompt: &[u32], output: &[u32]) {
        let mut slot = self.slots[self.slot.get()].borrow_mut();
        for &id in ids {
            let times = output.iter().filter(|&&other| other == id).count();
            if times > 0 || prompt.contains(&id) {
                slot.times.insert(id, times as f32);
            }
        }
    }
}

impl<M: Model> Compute for Host<M> {
    fn traits(&self) -> Traits {
        self.traits
    }

    fn about(&self) -> About {
        self.model.borrow().about()
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn is_lost(&self) -> bool {
        false
    }

    fn lost(&self) -> oneshot::Receiver<Loss> {
        // There is no device to lose: the receiver fails at once.
        oneshot::channel().1
    }

    fn positions(&self) -> usize {
        self.positions
    }

    fn cache_buffers(&self) -> usize {
        2 * self.config.n_layer
    }

    fn position_bytes(&self) -> usize {
        self.model.borrow().position_bytes()
    }

    fn grow(&mut self, more: usize, most: usize) -> LocalBoxFuture<'_, Result<bool>> {
        let larger = (self.positions + more.max(self.positions)).min(most);
        let has_room = self.positions + more <= most && self.model.get_mut().grow(larger);
        if has_room {
            self.positions = larger;
        }
        ready(Ok(has_room)).boxed_local()
    }

    fn set_adapters<'a>(&'a mut self, adapters: &'a Adapters) -> LocalBoxFuture<'a, Result<()>> {
        ready(self.model.get_mut().set_adapters(adapters)).boxed_local()
    }

    fn copy_cache(&self, from: usize, to: usize, n: usize) {
        self.model.borrow_mut().copy(from, to, n);
    }

    fn read_cache(&self, buffer: usize, first: usize, n: usize) -> Pending<Vec<u32>> {
        let words = self.model.borrow_mut().read(buffer, first, n);
        Pending::new(ready(words.ok_or_else(|| Error::Internal("no such position".into()))))
    }

    fn write_cache(&self, buffer: usize, first: usize, bytes: &[u8]) -> Pending<()> {
        self.model.borrow_mut().write(buffer, first, bytes);
        Pending::ready(())
    }

    fn use_cache(&self, first: usize) {
        self.first.set(first);
    }

    fn use_slot(&self, slot: usize) {
        self.slot.set(slot);
    }

    fn set_choosing(&self, choosing: &Choosing) {
        let mut slot = self.slots[self.slot.get()].borrow_mut();
        slot.choosing = choosing.clone();
        slot.masks.clear();
        slot.times.clear();
        slot.n_counted = 0;
    }

    fn compile_choosing(&self) -> LocalBoxFuture<'_, ()> {
        ready(()).boxed_local()
    }

    fn compile_next(&self) -> Option<LocalBoxFuture<'static, ()>> {
        None
    }

    fn count(&self, prompt: &[u32], output: &[u32]) {
        let mut slot = self.slots[self.slot.get()].borrow_mut();
        slot.times = prompt.iter().map(|&id| (id, 0.0)).collect();
        for &id in output {
            *slot.times.entry(id).or_default() += 1.0;
        }
        slot.n_counted = prompt.len() + output.len();
    }

    fn prefill(&self, ids: &[u32], pos: usize, _chunk: Range<usize>) -> Pending<()> {
        self.sequence(pos, ids);
        Pending::ready(())
    }

    fn prefill_and_read(&self, ids: &[u32], pos: usize, _begin: usize) -> Pending<Vec<f32>> {
        let last = self.sequence(pos, ids).pop();
        Pending::ready(self.logits(last.as_slice()).pop().unwrap_or_default())
    }

    fn put_token(&self, slot: usize, id: u32) {
        self.slots[slot].borrow_mut().token = id;
    }

    fn decode_batch(&self, seats: &[Seat], n: usize) -> Pending<Vec<Vec<Choice>>> {
        Pending::ready(self.decode(seats, n))
    }

    fn decode_ahead(&self, seats: &[Seat]) {
        self.ahead.replace(self.step(seats));
    }

    fn choose(&self, seats: &[Seat], rows: &[usize]) -> Pending<Vec<Vec<Choice>>> {
        let ahead = self.ahead.borrow();
        let streams: Vec<Vec<f32>> = rows.iter().map(|&row| ahead[row].clone()).collect();
        let seats: Vec<Seat> = rows.iter().map(|&row| seats[row]).collect();
        let choices = self.choose_all(&seats, &streams);
        Pending::ready(choices.into_iter().map(|choice| vec![choice]).collect())
    }

    fn pass(&self, spans: &[Span<'_>]) -> Pending<()> {
        if let Err(error) = Span::check_all(spans, self.traits.pass) {
            return failed(error);
        }
        self.spans(spans);
        Pending::ready(())
    }

    fn score(&self, spans: &[Span<'_>]) -> Pending<Vec<Vec<f32>>> {
        if let Err(error) = Span::check_all(spans, self.traits.pass) {
            return failed(error);
        }
        let mut logits = self.logits(&self.spans(spans)).into_iter();
        let scores = spans.iter().map(|span| {
            let of_span: Vec<_> = logits.by_ref().take(span.ids.len()).collect();
            let score = |(logits, id): (Vec<f32>, u32)| Logprobs::of_each(&logits, &[id])[0];
            of_span.into_iter().zip(span.scored()).map(score).collect()
        });
        Pending::ready(scores.collect())
    }

    fn tap(&self, spans: &[Span<'_>], chosen: &[usize], tap: Tap) -> Pending<Vec<Vec<f32>>> {
        let checked = Span::check_all(spans, self.traits.pass);
        if let Err(error) = checked.and_then(|()| tap.check(&self.config, spans, chosen)) {
            return failed(error);
        }
        let values = match tap {
            Tap::Product(block, site) => self.values(rows_of(spans), block, site),
            Tap::Queries(block) => {
                self.model.borrow_mut().queries(&self.known(rows_of(spans)), block)
            }
            Tap::Hidden => {
                let streams = self.spans(spans);
                self.model.borrow_mut().hidden(&streams)
            }
        };
        Pending::ready(chosen.iter().map(|&token| values[token].clone()).collect())
    }

    fn bandwidth(&self) -> LocalBoxFuture<'_, Result<f64>> {
        ready(self.rate()).boxed_local()
    }

    fn bytes_per_token(&self, pos: usize) -> u64 {
        let model = self.model.borrow();
        model.layer_bytes(pos) + model.head_bytes()
    }

    fn profile<'a>(
        &'a self,
        pos: usize,
        n_tokens: usize,
        choosing: &'a Choosing,
    ) -> LocalBoxFuture<'a, Result<Profile>> {
        self.set_choosing(choosing);
        ready(self.rate().map(|bandwidth| self.timed(pos, n_tokens, bandwidth))).boxed_local()
    }
}

fn failed<T: 'static>(error: Error) -> Pending<T> {
    Pending::new(ready(Err(error)))
}

fn not_timed() -> Error {
    Error::MissingFeature("the reference does not time itself".into())
}

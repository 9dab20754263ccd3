//! Makes the reference compute for a session, with slots, a KV cache that sequences share, and the
//! choice of tokens. It computes everything at once when it is submitted.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, ready};

use super::Layers;
use crate::compute::{
    About, Choice, Choosing, Compute, Depth, EngineOptions, KvType, Loss, NO_TOKEN, Opening,
    Pending, Profile, Progress, Seat, Span, Steps, Tap, Traits,
};
use crate::error::{Error, Result};
use crate::model::{Config, Weight};
use crate::sampling::{Logprobs, Mask, Sampling};
use crate::source::{Reader, Source};
use crate::ternary::Layout;

/// The most sequences of a step. Also the most tokens of a draft pass, and by default those of a pass
/// of several sequences.
const SLOTS: usize = 8;

/// Tokens of a chunk. Larger chunks would only make a page wait longer.
const CHUNK: usize = 64;

/// Opens the reference for a session. It computes on the CPU, and holds keys and values as f32.
#[derive(Clone, Copy, Debug)]
pub struct OnCpu {
    /// Tokens of a chunk.
    pub chunk: usize,
    /// How many steps may be in flight. More steps gain nothing here. They let tests behave as a
    /// card does.
    pub depth: Depth,
    /// Whether generations draft by default.
    pub prompt_lookup: bool,
    /// The most tokens of a pass of several sequences.
    pub pass: usize,
}

impl Default for OnCpu {
    fn default() -> Self {
        let depth = Depth { max_batches: 1, max_batch_steps: 1 };
        Self { chunk: CHUNK, depth, prompt_lookup: false, pass: SLOTS }
    }
}

impl Opening for OnCpu {
    type Opened = Self;

    fn open(self) -> impl Future<Output = Result<Self>> {
        ready(Ok(self))
    }

    async fn load<S: Source>(
        opened: Self,
        config: Config,
        table: &[Weight],
        reader: &mut Reader<S>,
        options: &EngineOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Box<dyn Compute>> {
        let n_ctx = options.context.unwrap_or(config.n_ctx);
        if !(1..=config.n_ctx).contains(&n_ctx) {
            let why = match n_ctx {
                0 => "must be at least 1".into(),
                n => format!("{n} tokens, but the model is made for {}", config.n_ctx),
            };
            return Err(Error::BadOption { name: "context".into(), why });
        }
        let layout = if options.i2s_arm { Layout::Arm } else { Layout::X86 };
        let layers = Layers::load(reader, config, table, layout, n_ctx, progress).await?;
        progress(Progress::Compile);
        let traits = Traits {
            n_ctx,
            chunk: opened.chunk.min(n_ctx),
            slots: SLOTS,
            pass: opened.pass,
            depth: opened.depth,
            prompt_lookup: opened.prompt_lookup,
        };
        Ok(Box::new(Computer {
            config: layers.config.clone(),
            sample: layers.sample,
            layers: RefCell::new(layers),
            traits,
            positions: n_ctx,
            slots: (0..SLOTS).map(|_| RefCell::default()).collect(),
            first: Cell::default(),
            slot: Cell::default(),
            ahead: RefCell::default(),
        }))
    }
}

/// The model with its KV cache, and the state of each sequence.
struct Computer {
    config: Config,
    sample: u64,
    layers: RefCell<Layers>,
    traits: Traits,
    positions: usize,
    slots: Vec<RefCell<Slot>>,
    /// Where the sequence of the steps to come begins in the KV cache.
    first: Cell<usize>,
    /// The slot of the steps to come.
    slot: Cell<usize>,
    /// The residual streams after the tokens that were computed ahead.
    ahead: RefCell<Vec<Vec<f32>>>,
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

impl Slot {
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
        logits: &[f32],
        times: &BTreeMap<u32, f32>,
        n: usize,
        drafted: Option<usize>,
    ) -> Choice {
        let Choosing { sampling, bias, logprobs, masked } = &self.choosing;
        let mut adjusted = logits.to_vec();
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

impl Computer {
    /// Computes tokens of a sequence. Gives the residual stream after the last block, for each
    /// token.
    fn compute(&self, first: usize, pos: usize, ids: &[u32]) -> Vec<Vec<f32>> {
        let mut layers = self.layers.borrow_mut();
        let known = |id: u32| if (id as usize) < self.config.n_vocab { id as usize } else { 0 };
        (pos..).zip(ids).map(|(pos, &id)| layers.step(known(id), first, pos)).collect()
    }

    fn logits(&self, x: &[f32]) -> Vec<f32> {
        self.layers.borrow().logits(x)
    }

    /// Computes `ids` and chooses the token after them in a slot. `counts` says whether the last of
    /// `ids` is counted.
    fn sample(&self, Seat { slot, first, pos }: Seat, ids: &[u32]) -> Choice {
        let x = self.compute(first, pos, ids).pop().unwrap_or_default();
        self.choose_after(slot, &x, ids, pos)
    }

    /// Chooses the token after `ids` in a slot, by the residual stream after them.
    fn choose_after(&self, slot: usize, x: &[f32], ids: &[u32], pos: usize) -> Choice {
        let (logits, n) = (self.logits(x), pos + ids.len());
        let mut slot = self.slots[slot].borrow_mut();
        if let Some(&last) = ids.last() {
            slot.count(last, n - 1);
        }
        let choice = slot.choose(&logits, &slot.times, n, None);
        slot.token = choice.id;
        choice
    }

    fn seat(&self, pos: usize) -> Seat {
        Seat { slot: self.slot.get(), first: self.first.get(), pos }
    }

    /// Computes the token of the slot and chooses the next one, `n` times.
    fn decode(&self, seat: Seat, n: usize) -> Vec<Choice> {
        (seat.pos..seat.pos + n)
            .map(|pos| {
                let token = self.slots[seat.slot].borrow().token;
                self.sample(Seat { pos, ..seat }, &[token])
            })
            .collect()
    }

    fn row(&self) -> usize {
        self.config.n_embd_kv()
    }
}

impl Steps for Computer {
    fn prefill_and_sample(&self, ids: &[u32], pos: usize) -> Pending<Vec<Choice>> {
        Pending::ready(vec![self.sample(self.seat(pos), ids)])
    }

    fn decode_and_sample(&self, pos: usize, n: usize) -> Pending<Vec<Choice>> {
        Pending::ready(self.decode(self.seat(pos), n))
    }

    fn decode_and_choose(
        &self,
        ids: &[u32],
        pos: usize,
        uncertain: &[u32],
    ) -> Pending<Vec<Choice>> {
        let streams = self.compute(self.first.get(), pos, ids);
        let slot = self.slots[self.slot.get()].borrow();
        let mut times = slot.times.clone();
        let mut count = |id: u32| *times.entry(id).or_default() += 1.0;
        uncertain.iter().for_each(|&id| count(id));
        let choices = streams.iter().zip(ids).enumerate().map(|(n, (x, &id))| {
            *times.entry(id).or_default() += 1.0;
            slot.choose(&self.logits(x), &times, pos + n + 1, Some(n))
        });
        Pending::ready(choices.collect())
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

impl Compute for Computer {
    fn traits(&self) -> Traits {
        self.traits
    }

    fn about(&self) -> About {
        About {
            adapter: "the CPU".into(),
            kv: KvType::F32,
            sample: self.sample,
            ..About::default()
        }
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
        self.row() * size_of::<f32>()
    }

    fn grow(&mut self, more: usize, most: usize) -> LocalBoxFuture<'_, Result<bool>> {
        let has_room = self.positions + more <= most;
        if has_room {
            self.positions = (self.positions + more.max(self.positions)).min(most);
        }
        ready(Ok(has_room)).boxed_local()
    }

    fn copy_cache(&self, from: usize, to: usize, n: usize) {
        let row = self.row();
        for values in self.layers.borrow_mut().cache_buffers() {
            // The memory of the cache grows with the positions in use.
            values.resize(values.len().max((from.max(to) + n) * row), 0.0);
            values.copy_within(from * row..(from + n) * row, to * row);
        }
    }

    fn read_cache(&self, buffer: usize, first: usize, n: usize) -> Pending<Vec<u32>> {
        let range = first * self.row()..(first + n) * self.row();
        let mut layers = self.layers.borrow_mut();
        let values = layers.cache_buffers().nth(buffer).and_then(|values| values.get(range));
        let words = values.map(|values| values.iter().map(|value| value.to_bits()).collect());
        Pending::new(ready(words.ok_or_else(|| Error::Internal("no such position".into()))))
    }

    fn write_cache(&self, buffer: usize, first: usize, bytes: &[u8]) -> Pending<()> {
        let at = first * self.row();
        let (words, _) = bytes.as_chunks();
        let mut layers = self.layers.borrow_mut();
        if let Some(values) = layers.cache_buffers().nth(buffer) {
            values.resize(values.len().max(at + words.len()), 0.0);
            for (value, word) in values[at..].iter_mut().zip(words) {
                *value = f32::from_le_bytes(*word);
            }
        }
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

    fn write_masks(&self, slot: usize, masks: &[Mask]) -> Result<()> {
        Mask::words_of_all(masks, self.config.n_vocab)?;
        if masks.len() > SLOTS {
            return Err(Error::Internal(format!("{} masks at once", masks.len())));
        }
        self.slots[slot].borrow_mut().masks = masks.to_vec();
        Ok(())
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

    fn prefill(&self, ids: &[u32], pos: usize, _end: usize) -> Pending<()> {
        self.compute(self.first.get(), pos, ids);
        Pending::ready(())
    }

    fn prefill_and_read(&self, ids: &[u32], pos: usize) -> Pending<Vec<f32>> {
        let x = self.compute(self.first.get(), pos, ids).pop().unwrap_or_default();
        Pending::ready(self.logits(&x))
    }

    fn put_token(&self, slot: usize, id: u32) {
        self.slots[slot].borrow_mut().token = id;
    }

    fn decode_batch(&self, seats: &[Seat], n: usize) -> Pending<Vec<Vec<Choice>>> {
        Pending::ready(seats.iter().map(|seat| self.decode(*seat, n)).collect())
    }

    fn decode_ahead(&self, seats: &[Seat]) {
        let stream = |seat: &Seat| {
            let token = self.slots[seat.slot].borrow().token;
            self.compute(seat.first, seat.pos, &[token]).pop().unwrap_or_default()
        };
        self.ahead.replace(seats.iter().map(stream).collect());
    }

    fn choose(&self, seats: &[Seat], rows: &[usize]) -> Pending<Vec<Vec<Choice>>> {
        let streams = self.ahead.borrow();
        let choose = |&row: &usize| {
            let Seat { slot, pos, .. } = seats[row];
            let token = self.slots[slot].borrow().token;
            vec![self.choose_after(slot, &streams[row], &[token], pos)]
        };
        Pending::ready(rows.iter().map(choose).collect())
    }

    fn pass(&self, spans: &[Span<'_>]) -> Pending<()> {
        if let Err(error) = Span::check_all(spans, self.traits.pass) {
            return failed(error);
        }
        for span in spans {
            self.compute(span.first, span.pos, span.ids);
        }
        Pending::ready(())
    }

    fn score(&self, spans: &[Span<'_>]) -> Pending<Vec<Vec<f32>>> {
        if let Err(error) = Span::check_all(spans, self.traits.pass) {
            return failed(error);
        }
        let scores = spans.iter().map(|span| {
            let streams = self.compute(span.first, span.pos, span.ids);
            let score = |(x, id): (&Vec<f32>, u32)| Logprobs::new(&self.logits(x), id, 0).logprob;
            streams.iter().zip(span.scored()).map(score).collect()
        });
        Pending::ready(scores.collect())
    }

    fn tap(&self, spans: &[Span<'_>], chosen: &[usize], tap: Tap) -> Pending<Vec<Vec<f32>>> {
        let checked = Span::check_all(spans, self.traits.pass);
        if let Err(error) = checked.and_then(|()| tap.check(&self.config, spans, chosen)) {
            return failed(error);
        }
        let mut layers = self.layers.borrow_mut();
        let mut values = Vec::new();
        for span in spans {
            for (pos, &id) in (span.pos..).zip(span.ids) {
                values.push(match tap {
                    Tap::Product(block, site) => {
                        layers.step_as_far_as(block, site, id as usize, span.first, pos)
                    }
                    Tap::Hidden => {
                        let x = layers.step(id as usize, span.first, pos);
                        layers.hidden(&x)
                    }
                });
            }
        }
        Pending::ready(chosen.iter().map(|&token| values[token].clone()).collect())
    }

    fn bandwidth(&self) -> LocalBoxFuture<'_, Result<f64>> {
        ready(Err(no_gpu())).boxed_local()
    }

    fn bytes_per_token(&self, _pos: usize) -> u64 {
        0
    }

    fn profile<'a>(
        &'a self,
        _pos: usize,
        _n_tokens: usize,
        _choosing: &'a Choosing,
    ) -> LocalBoxFuture<'a, Result<Profile>> {
        ready(Err(no_gpu())).boxed_local()
    }
}

fn failed<T: 'static>(error: Error) -> Pending<T> {
    Pending::new(ready(Err(error)))
}

fn no_gpu() -> Error {
    Error::MissingFeature("a GPU, which the reference does not use".into())
}

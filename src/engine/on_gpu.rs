//! A model on a GPU, and its steps.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use super::adapters::Deltas;
use super::bandwidth::bandwidth;
use super::block::SHORT;
use super::choices::{Choices, Chosen, Reading, Recorded, Sampled};
use super::lm_head::Candidates;
use super::plans::Plans;
use super::residency::Residency;
use super::stages::SlotPlans;
use super::state::{Slot, State};
use super::weights::Weights;
use crate::compute::{Choosing, KvType, Profile, Seat};
use crate::error::{Error, Result};
use crate::gpu::{Buffer, Gpu, MAX_BATCH_STEPS, Plan, Readback, Recorder, Step};
use crate::kernels::{N_RECORDS, Penalties, SamplingParams, vocab_blocks};
use crate::model::{Adapters, Config};
use crate::sampling::Mask;

/// A model on a GPU, with a KV cache that several sequences share. The engine does not know which
/// sequence is where in the cache. The caller knows it, and says it with [`Engine::use_cache`].
pub struct Engine {
    pub(super) gpu: Gpu,
    pub(super) config: Config,
    pub(super) state: State,
    pub(super) plans: Plans,
    /// Shared with the upload, which may go on while the engine is made.
    pub(super) weights: Rc<Weights>,
    /// The weights that stay on the GPU.
    pub(super) residency: Residency,
    pub(super) candidates: Option<Candidates>,
    pub(super) sample: u64,
    /// Where the sequence of later steps begins in the KV cache.
    pub(super) first: Cell<usize>,
    /// The memory's rate in GB/s, once it is measured.
    pub(super) bandwidth: Cell<Option<f64>>,
    /// How tokens are chosen in each slot.
    pub(super) choosing: Vec<RefCell<Choosing>>,
    /// The slot of later steps.
    pub(super) slot: Cell<usize>,
}

impl Engine {
    /// Compiles the kernels of the way to choose tokens that is set, several at a time. Without
    /// this call, steps would compile them one after the other.
    pub async fn compile_choosing(&self) {
        self.gpu.compile(self.to_token(&self.single(0))).await;
    }

    /// Compiles one more of the kernels that a load leaves for later: those of drafts, of several
    /// sequences at once, and of other ways to choose a token; `None` when none is left. Steps need
    /// not wait for it, because they compile missing kernels themselves.
    pub fn compile_next(&self) -> Option<impl Future<Output = ()> + use<>> {
        self.gpu.compile_next()
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// The model's sizes.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// A hash of some bytes of each tensor. Other weights have another one.
    pub fn sample(&self) -> u64 {
        self.sample
    }

    /// How it holds keys and values.
    pub fn kv(&self) -> KvType {
        self.state.partials.shape.kv
    }

    /// The most tokens of a sequence.
    pub fn n_ctx(&self) -> usize {
        self.state.n_ctx
    }

    /// Positions of the KV cache: at least [`Engine::n_ctx`]. Sequences share them.
    pub fn positions(&self) -> usize {
        self.state.cache.positions()
    }

    /// Makes later steps use the KV cache from `first` on: their position `pos` is number
    /// `first + pos` of it. Without a call, `first` is 0.
    pub fn use_cache(&self, first: usize) {
        self.first.set(first);
    }

    /// Makes the KV cache larger: twice as large, or by `more` positions if that is more, up to
    /// `most` positions. It keeps its contents. Gives whether it has `more` now. It has not if the
    /// device has no memory for them, the caller does not allow it, or a binding would not hold them.
    ///
    /// Errors: `device-lost`.
    pub async fn grow(&mut self, more: usize, most: usize) -> Result<bool> {
        let positions = self.positions();
        let most = most.min(self.state.cache.max_positions(&self.gpu));
        if positions + more > most {
            return Ok(false);
        }
        let larger = (positions + more.max(positions)).min(most);
        // In a page `usize` has 32 bits.
        let bytes = (self.cache_buffers() * self.position_bytes()) as u64 * larger as u64;
        if self.gpu.max_bytes.is_some_and(|max| self.gpu.allocated() + bytes > max) {
            return Ok(false);
        }
        if !self.state.cache.grow(&self.gpu, larger).await? {
            return Ok(false);
        }
        self.record_plans();
        Ok(true)
    }

    /// Applies these adapters, and no others, to the steps to come. If this fails, none is applied.
    ///
    /// Errors: `bad-adapter` for a pair on a matrix that the GPU cannot bind alone, `out-of-memory`,
    /// `device-lost`.
    pub async fn set_adapters(&mut self, adapters: &Adapters) -> Result<()> {
        if let Some(before) = self.state.deltas.take() {
            self.record_plans();
            before.free(&self.gpu);
        }
        if !adapters.is_empty() {
            let model = (&self.config, &*self.weights);
            let deltas =
                Deltas::upload(&self.gpu, model, (self.chunk(), self.state.few), adapters).await?;
            self.state.deltas = Some(deltas);
            self.record_plans();
        }
        Ok(())
    }

    fn record_plans(&mut self) {
        let mut recorder = Recorder::new(&self.gpu, &self.state.step);
        let candidates = self.candidates.as_ref();
        self.plans =
            Plans::record(&mut recorder, &self.config, &self.weights, &self.state, candidates);
    }

    /// Buffers of the KV cache: the keys of the first block, its values, and so on.
    pub fn cache_buffers(&self) -> usize {
        self.state.cache.n_buffers()
    }

    /// Bytes of a position in each buffer of the KV cache.
    pub fn position_bytes(&self) -> usize {
        self.state.cache.position_bytes()
    }

    /// Reads `n` positions of a buffer of the KV cache, from `first` on.
    pub fn read_cache(&self, buffer: usize, first: usize, n: usize) -> Readback<u32> {
        let words = self.position_bytes() / size_of::<u32>();
        self.read(&self.state.cache.buffer(buffer).range(first * words, n * words))
    }

    /// Writes positions of a buffer of the KV cache, from `first` on. `bytes` are whole positions,
    /// as they were read.
    pub fn write_cache(&self, buffer: usize, first: usize, bytes: &[u8]) {
        let all = self.state.cache.buffer(buffer).cast::<u8>();
        self.gpu.write(&all, first * self.position_bytes(), bytes);
    }

    /// Copies the keys and values of `n` positions of the KV cache.
    pub fn copy_cache(&self, from: usize, to: usize, n: usize) {
        self.state.cache.copy(&self.gpu, &self.state.scratch.cast(), [from, to], n);
    }

    /// The most tokens one call of [`Engine::prefill`] takes.
    pub fn chunk(&self) -> usize {
        self.state.chunk
    }

    /// The most tokens that [`Engine::decode_and_choose`] takes at `pos`; 0 if it cannot be called.
    pub fn few_at(&self, pos: usize) -> usize {
        self.state.few_at(pos)
    }

    /// The layers whose weights do not stay on the GPU.
    pub fn streamed_layers(&self) -> usize {
        self.residency.streamed()
    }

    /// A share of the room for tokens as large as that of the layers that are uploaded. See [`Traits::shared_chunk`].
    ///
    /// [`Traits::shared_chunk`]: crate::compute::Traits::shared_chunk
    pub(super) fn shared_chunk(&self) -> Option<usize> {
        let (some, all) = (self.streamed_layers(), self.config().n_layer);
        (some > 0).then(|| (self.chunk() * some / all).max(1))
    }

    /// Whether each pass uploads weights that do not stay on the GPU.
    pub(super) fn uploads(&self) -> bool {
        self.residency.has_bays()
    }

    /// The kernels in use with their variants. Each is listed once.
    pub fn kernels(&self) -> Vec<String> {
        let mut kernels: Vec<String> =
            self.plans.all().flat_map(Plan::labels).map(Into::into).collect();
        kernels.sort();
        kernels.dedup();
        kernels
    }

    /// The kernels of one decode step with their variants, in the order in which they run. The slot
    /// in use decides how the token is chosen.
    pub fn kernels_of_token(&self) -> Vec<&str> {
        self.to_token(&self.single(0)).into_iter().flat_map(Plan::labels).collect()
    }

    /// Dispatches of one greedy decode step.
    pub fn dispatches_per_token(&self) -> usize {
        self.greedy(1).iter().map(|plan| plan.len()).sum()
    }

    /// Makes later steps choose tokens in `slot`, below [`Engine::slots`]. Without a call, that is
    /// slot 0. Each slot has settings, counts, and the token that was chosen last in it.
    pub fn use_slot(&self, slot: usize) {
        self.slot.set(slot);
    }

    /// The most sequences of a step.
    pub fn slots(&self) -> usize {
        self.state.slots.len()
    }

    /// Sets how the next tokens are chosen in the slot. Without a call, they are chosen greedily.
    pub fn set_choosing(&self, choosing: &Choosing) {
        let (slot, cell) = self.slot();
        let Choosing { sampling, bias, logprobs, masked } = choosing;
        let params = SamplingParams::from(sampling).with_logprobs(logprobs.unwrap_or(0));
        self.gpu.write(&slot.sampling, 0, &[params]);
        self.gpu.write(&slot.penalties, 0, &[Penalties::new(sampling, 0).masked(*masked)]);
        let before = cell.replace(choosing.clone());
        if before.bias != *bias {
            let mut biases = vec![0.0; self.config.n_vocab];
            bias.add_to(&mut biases);
            self.gpu.write(&slot.biases, 0, &biases);
        }
    }

    /// Writes which tokens may be chosen in a slot. The first mask decides after a step, and mask
    /// number `n` after token `n` of a draft pass. Masks stay until others are written.
    ///
    /// Errors: `internal` for a mask of another vocabulary or without a token, and for more masks than
    /// tokens of a draft pass.
    pub fn write_masks(&self, slot: usize, masks: &[Mask]) -> Result<()> {
        let n_vocab = self.config.n_vocab;
        let slot = &self.state.slots[slot];
        let words: Vec<u32> = Mask::words_of_all(masks, n_vocab)?;
        if words.len() > slot.masks.len() {
            return Err(Error::Internal(format!("{} masks at once", masks.len())));
        }
        self.gpu.write(&slot.masks, 0, &words);
        Ok(())
    }

    /// Counts the tokens of a sequence for the penalties that are set. It is to be called before
    /// the first token is chosen by adjusted logits. The GPU counts the tokens that are chosen
    /// after that.
    pub fn count(&self, prompt: &[u32], output: &[u32]) {
        let (slot, choosing) = self.slot();
        let n_counted = prompt.len() + output.len();
        let choosing = choosing.borrow();
        let penalties = Penalties::new(&choosing.sampling, n_counted).masked(choosing.masked);
        let counts = Penalties::counts(self.config.n_vocab, prompt, output);
        self.gpu.write(&slot.penalties, 0, &[penalties]);
        self.gpu.write(&slot.counts, 0, &counts);
    }

    /// Counts `ids` again, in a sequence that has them already. They are those that a draft pass
    /// got right. The GPU has not counted them.
    pub fn recount(&self, ids: &[u32], prompt: &[u32], output: &[u32]) {
        let (slot, choosing) = self.slot();
        if !choosing.borrow().sampling.is_penalized() {
            return;
        }
        for &id in ids {
            self.gpu.write(&slot.counts, id as usize, &[Penalties::count(id, prompt, output)]);
        }
    }

    /// Puts tokens through the layers, filling the KV cache from `pos` on. The readback ends when they
    /// are done.
    ///
    /// They are all or some of the tokens of a chunk at the positions `chunk`, at most
    /// [`Engine::chunk`]. All calls for a chunk together give the results of one call, to the last bit,
    /// unless one of them has a single token.
    ///
    /// The caller has checked the ids, and that the chunk is within the context.
    pub fn prefill(&self, ids: &[u32], pos: usize, chunk: Range<usize>) -> Readback<u32> {
        let step = self.state.step_in_chunk(pos, ids.len(), (chunk.len(), chunk.end));
        let step = self.at(step, self.token_of(ids.len()));
        self.write_step(ids, &step);
        self.gpu.run_and_read(&[self.layers(step.n_tokens)], &step, &self.state.sampled, 1)
    }

    /// Like [`Engine::prefill`], for the last tokens of a chunk that began at `begin`, and chooses the
    /// token that follows.
    pub fn prefill_and_sample(&self, ids: &[u32], pos: usize, begin: usize) -> Chosen {
        let step = self.begin(ids, pos, begin);
        let (plans, slot) = (self.to_token(&step), self.slot().0);
        Chosen(match self.recorded(&step, 1) {
            None => {
                let sampled = slot.sampled.last(1);
                Reading::Ids(self.gpu.run_at_once_and_read(&plans, &step, &sampled, 1))
            }
            Some(recorded) => {
                let all = self.gpu.run_at_once_and_read(&plans, &step, &slot.records, N_RECORDS);
                Reading::Records { all, recorded }
            }
        })
    }

    /// Like [`Engine::prefill_and_sample`], but reads the logits `[n_vocab]` after the last token.
    pub fn prefill_and_read(&self, ids: &[u32], pos: usize, begin: usize) -> Readback<f32> {
        let step = self.begin(ids, pos, begin);
        let plans = [self.layers(step.n_tokens), &self.plans.logits];
        self.gpu.run_and_read(&plans, &step, &self.state.logits, self.config.n_vocab)
    }

    /// Puts the token that was chosen last, which is still on the GPU, through the layers at `pos`,
    /// and chooses the one that follows. Repeats this `n` times, at most [`MAX_BATCH_STEPS`].
    /// Several calls may be in flight.
    pub fn decode_and_sample(&self, pos: usize, n: usize) -> Chosen {
        debug_assert!((1..=MAX_BATCH_STEPS).contains(&n));
        let steps: Vec<Step> = (pos..pos + n).map(|pos| self.single(pos)).collect();
        self.gpu.write(&self.state.step, 0, &steps);
        let (plans, slot) = (self.to_token(&steps[0]), self.slot().0);
        let recorded = self.recorded(&steps[0], n);
        let steps = steps.into_iter().map(|step| (plans.iter().copied(), step));
        Chosen(match recorded {
            None => Reading::Ids(self.gpu.run_each_and_read(steps, &slot.sampled.last(n), n)),
            Some(recorded) => {
                let all = self.gpu.run_each_and_read(steps, &slot.records, N_RECORDS);
                Reading::Records { all, recorded }
            }
        })
    }

    /// Makes `id` the token of the slot, as if it had been chosen there last.
    pub fn put_token(&self, slot: usize, id: u32) {
        self.gpu.write(&self.state.tokens, self.state.token_of(slot), &[id]);
    }

    /// Like [`Engine::decode_and_sample`], for a sequence in each of `seats`, at most
    /// [`Engine::slots`]. Each sequence gets the tokens that it would get alone.
    pub fn decode_batch(&self, seats: &[Seat], n: usize) -> Sampled {
        debug_assert!((1..=MAX_BATCH_STEPS).contains(&n) && seats.len() <= self.slots());
        let all: Vec<usize> = (0..seats.len()).collect();
        let mut steps: Vec<(Vec<&Plan>, Step)> = Vec::new();
        for done in 0..n {
            let seats: Vec<Seat> =
                seats.iter().map(|seat| Seat { pos: seat.pos + done, ..*seat }).collect();
            let mut choosing = self.choosing_of(&seats, &all);
            choosing[0].0.insert(0, self.layers_of(&seats).0);
            steps.extend(choosing);
        }
        self.run_and_sample(steps, seats.iter(), n)
    }

    /// The first half of a step of [`Engine::decode_batch`]: puts the tokens that were chosen last
    /// through the layers. [`Engine::choose`] is the second half. The two give the bits of the whole
    /// step, as long as no other token goes through the layers between them.
    pub fn decode_ahead(&self, seats: &[Seat]) {
        let (layers, step) = self.layers_of(seats);
        self.gpu.write(&self.state.step, 0, &[step]);
        self.gpu.run(&[layers], &step);
    }

    /// Chooses the tokens that follow those of [`Engine::decode_ahead`], for the seats at `rows`.
    pub fn choose(&self, seats: &[Seat], rows: &[usize]) -> Sampled {
        let steps = self.choosing_of(seats, rows);
        self.run_and_sample(steps, rows.iter().map(|&row| &seats[row]), 1)
    }

    /// The plan that puts one token of each seat through the layers, and the step to run it with.
    fn layers_of(&self, seats: &[Seat]) -> (&Plan, Step) {
        match seats {
            [seat] => (self.layers(1), self.seated(seat, seat.pos)),
            _ => (&self.plans.few, self.rows_of(seats)),
        }
    }

    /// The plans after those of [`Engine::layers_of`], which choose a token for the seats at `rows`.
    fn choosing_of(&self, seats: &[Seat], rows: &[usize]) -> Vec<(Vec<&Plan>, Step)> {
        if let [seat] = seats {
            self.use_slot(seat.slot);
            let step = self.seated(seat, seat.pos);
            return vec![(self.to_token(&step).split_off(1), step)];
        }
        let Plans { few_logits, take_logits, slots, .. } = &self.plans;
        let take = |&row: &usize| {
            let seat = &seats[row];
            let chosen = slots[seat.slot].of_logits(&self.choosing[seat.slot].borrow());
            let plans = [take_logits].into_iter().chain(chosen).collect();
            (plans, Step { row: row as u32, ..self.seated(seat, seat.pos) })
        };
        let logits = (vec![few_logits], self.rows_of(seats));
        [logits].into_iter().chain(rows.iter().map(take)).collect()
    }

    /// A step with a token of each seat.
    fn rows_of(&self, seats: &[Seat]) -> Step {
        self.state.rows_step(seats.iter().map(|seat| self.seated(seat, seat.pos)))
    }

    /// Runs plans that choose `n` tokens for each of `seats`.
    fn run_and_sample<'a>(
        &self,
        steps: Vec<(Vec<&Plan>, Step)>,
        seats: impl Iterator<Item = &'a Seat>,
        n: usize,
    ) -> Sampled {
        let written: Vec<Step> = steps.iter().map(|(_, step)| *step).collect();
        self.gpu.write(&self.state.step, 0, &written);
        let sampled = &self.state.sampled;
        let all = self.gpu.run_each_and_read(steps, sampled, sampled.len());
        let recorded = |seat: &Seat| {
            let n_top = self.choosing[seat.slot].borrow().logprobs?;
            Some(Recorded { pos: seat.pos, n, n_top })
        };
        let slots: Vec<_> = seats.map(|seat| (seat.slot, recorded(seat))).collect();
        let has_records = slots.iter().any(|(_, recorded)| recorded.is_some());
        let records = has_records.then(|| self.read(&self.state.records));
        Sampled { all, records, slots, n }
    }

    /// Puts at most [`Engine::few_at`] tokens through the layers at `pos`, and chooses greedily
    /// after each. The results are those of single steps, to the last bit. Several calls may be in
    /// flight.
    ///
    /// `uncertain` are the tokens before them that are not counted yet, because the call that
    /// computes them is still in flight. They are at most as many as a call takes. The next token
    /// is chosen as if all of them were right. Once the caller knows which ones are, it calls
    /// [`Engine::recount`].
    pub fn decode_and_choose(&self, ids: &[u32], pos: usize, uncertain: &[u32]) -> Choices {
        let token = self.state.first_token();
        let step = self.at(self.state.few_step(pos, ids.len()), token);
        let step = Step { uncertain: uncertain.len() as u32, ..step };
        self.gpu.write(&self.state.tokens, token - uncertain.len(), uncertain);
        self.write_step(ids, &step);
        let (slot, choosing) = self.slot();
        let logprobs = choosing.borrow().logprobs;
        let Plans { few, few_logits, slots, .. } = &self.plans;
        let SlotPlans { best_of_each, logprobs_each, .. } = &slots[self.slot.get()];
        let plans = [few, few_logits, best_of_each, logprobs_each];
        let plans = if logprobs.is_some() { &plans[..] } else { &plans[..3] };
        let vocab_blocks = vocab_blocks(self.config.n_vocab);
        let len = ids.len() * vocab_blocks;
        let best = self.gpu.run_and_read(plans, &step, &self.state.few_best, len);
        let recorded = |n_top| (self.read(&slot.records), Recorded { pos, n: ids.len(), n_top });
        Choices { best, vocab_blocks, records: logprobs.map(recorded) }
    }

    /// The best rate of the memory, in GB/s, which is the rate of a kernel that only reads. The
    /// first call takes half a second, and up to 256 MiB for that time.
    pub async fn bandwidth(&self) -> Result<f64> {
        if let Some(measured) = self.bandwidth.get() {
            return Ok(measured);
        }
        let mut recorder = Recorder::new(&self.gpu, &self.state.step);
        let measured = bandwidth(&mut recorder, &self.weights).await?;
        self.bandwidth.set(Some(measured));
        Ok(measured)
    }

    /// Bytes that one greedy decode step with `pos` tokens in the cache has to read and write.
    pub fn bytes_per_token(&self, pos: usize) -> u64 {
        let step = self.state.step(pos, 1);
        self.greedy(step.n_tokens).iter().map(|plan| plan.bytes(&step)).sum()
    }

    /// The time of each kernel in one step of `n_tokens`, at most [`Engine::chunk`], with `pos`
    /// tokens in the cache. `choosing` says how its token is chosen. It stays set for later tokens.
    ///
    /// Errors: `missing-feature` without timestamp queries.
    pub async fn profile(
        &self,
        pos: usize,
        n_tokens: usize,
        choosing: &Choosing,
    ) -> Result<Profile> {
        self.set_choosing(choosing);
        let bandwidth = self.bandwidth().await?;
        let step = self.at(self.state.step(pos, n_tokens), self.token_of(n_tokens));
        self.gpu.write(&self.state.step, 0, &[step]);
        let kernels = self.gpu.profile(&self.to_token(&step), &step).await?;
        Ok(Profile::new(bandwidth, kernels))
    }

    /// The plans from tokens to the best one that follows.
    pub(super) fn greedy(&self, n_tokens: u32) -> Vec<&Plan> {
        self.to_token_as(n_tokens, &Choosing::default())
    }

    /// Where the log-probabilities of the next `n` steps are, if the slot's sequence asks for them.
    /// The steps write them by the position of their last token.
    pub(super) fn recorded(&self, first: &Step, n: usize) -> Option<Recorded> {
        let n_top = self.slot().1.borrow().logprobs?;
        Some(Recorded { pos: (first.pos + first.n_tokens - 1) as usize, n, n_top })
    }

    /// All values of `buffer`, once all submitted work is done.
    pub(super) fn read<T: bytemuck::Pod>(&self, buffer: &Buffer<T>) -> Readback<T> {
        self.gpu.run_and_read(&[], &Step::default(), buffer, buffer.len())
    }

    /// The plans from tokens to the one that follows, as the slot chooses it.
    pub(super) fn to_token(&self, step: &Step) -> Vec<&Plan> {
        self.to_token_as(step.n_tokens, &self.slot().1.borrow())
    }

    pub(super) fn to_token_as(&self, n_tokens: u32, choosing: &Choosing) -> Vec<&Plan> {
        let Plans { slots, logits, .. } = &self.plans;
        let slot = &slots[self.slot.get()];
        let is_adapted = self.state.deltas.as_ref().is_some_and(|deltas| deltas.head.is_some());
        let candidates = self.candidates.as_ref().filter(|_| !is_adapted);
        let choose = slot.of_hidden_state(choosing, candidates, logits);
        [self.layers(n_tokens)].into_iter().chain(choose).collect()
    }

    pub(super) fn layers(&self, n_tokens: u32) -> &Plan {
        match n_tokens as usize {
            1 => &self.plans.decode,
            ..=SHORT => &self.plans.short,
            _ => &self.plans.prefill,
        }
    }

    /// The slot of later steps, and how it chooses tokens.
    pub(super) fn slot(&self) -> (&Slot, &RefCell<Choosing>) {
        (&self.state.slots[self.slot.get()], &self.choosing[self.slot.get()])
    }

    /// Writes the step of tokens from `pos` on, the last of a chunk that began at `begin`.
    pub(super) fn begin(&self, ids: &[u32], pos: usize, begin: usize) -> Step {
        let end = pos + ids.len();
        let step = match ids {
            [_] => self.state.few_step(pos, 1),
            _ => self.state.step_in_chunk(pos, ids.len(), (end - begin, end)),
        };
        let step = self.at(step, self.token_of(ids.len()));
        self.write_step(ids, &step);
        step
    }

    /// The index at which the first of `n` tokens is put.
    pub(super) fn token_of(&self, n: usize) -> usize {
        match n {
            1 => self.state.token_of(self.slot.get()),
            _ => self.state.first_token(),
        }
    }

    /// A step of the token that was chosen last in the slot.
    pub(super) fn single(&self, pos: usize) -> Step {
        self.seated(&Seat { slot: self.slot.get(), first: self.first.get(), pos }, pos)
    }

    pub(super) fn seated(&self, seat: &Seat, pos: usize) -> Step {
        let (first, token) = (seat.first as u32, self.state.token_of(seat.slot) as u32);
        Step { first, token, ..self.state.step(pos, 1) }.with_rows()
    }

    /// The step, for the sequence that is in use, with its tokens from index `token` on.
    pub(super) fn at(&self, step: Step, token: usize) -> Step {
        Step { first: self.first.get() as u32, token: token as u32, ..step }.with_rows()
    }

    pub(super) fn write_step(&self, ids: &[u32], step: &Step) {
        self.gpu.write(&self.state.tokens, step.token as usize, ids);
        self.gpu.write(&self.state.step, 0, std::slice::from_ref(step));
    }
}

//! Passes of tokens of several sequences.
//!
//! A pass of at most [`Engine::slots`] tokens is one of rows: each token has its sequence and position
//! in the step. A larger pass is a chunk of a prompt whose tokens belong to several sequences: the
//! products take all tokens at once, and the kernels that need a position find it by the token's span.

use super::block::{SHORT, Width};
use super::on_gpu::Engine;
use crate::compute::{Site, Span};
use crate::error::{Error, Result};
use crate::gpu::{MAX_ROWS, Plan, Readback, Row, Step};
use crate::kernels::Record;

/// The log-probabilities that [`Engine::score`] computes. Several may be in flight.
pub struct Scored {
    /// A record for each token of the pass.
    records: Vec<Readback<Record>>,
    /// For each span: its number of tokens, and how many of them have a next token that is scored.
    spans: Vec<(usize, usize)>,
}

impl Scored {
    /// Waits for the log-probabilities of each span.
    ///
    /// Errors: `device-lost`.
    pub async fn take(self) -> Result<Vec<Vec<f32>>> {
        let mut records = Vec::new();
        for some in self.records {
            records.extend(some.take().await?);
        }
        let mut rows = &records[..];
        let of = |(tokens, scored): (usize, usize)| {
            let missing = || Error::Internal("a record is missing".into());
            let (own, rest) = rows.split_at_checked(tokens).ok_or_else(missing)?;
            rows = rest;
            Ok(own.iter().take(scored).map(|record| record.logprobs(0).logprob).collect())
        };
        self.spans.into_iter().map(of).collect()
    }
}

impl Engine {
    /// Puts tokens of several sequences through the layers, at most [`Engine::chunk`] together. Up to
    /// [`Engine::slots`] tokens have the results of single steps, to the last bit. With more, rounding may
    /// differ from that of [`Engine::prefill`].
    ///
    /// Errors: those of [`Span::check_all`].
    pub fn pass(&self, spans: &[Span<'_>]) -> Result<Readback<u32>> {
        Span::check_all(spans, self.chunk())?;
        self.run_pass(spans, None);
        Ok(self.gpu.run_and_read(&[], &Step::default(), &self.state.sampled, 1))
    }

    /// Like [`Engine::pass`], and scores the token that follows each of its tokens, if it is known.
    ///
    /// Errors: those of [`Span::check_all`].
    pub fn score(&self, spans: &[Span<'_>]) -> Result<Scored> {
        Span::check_all(spans, self.chunk())?;
        self.run_pass(spans, None);
        // If the next token is not known, any token will do: its score is not used.
        let next: Vec<u32> = spans
            .iter()
            .flat_map(|span| span.ids[1..].iter().copied().chain([span.next.unwrap_or(0)]))
            .collect();
        let Self { gpu, plans, state, config, .. } = self;
        // The LM head takes as many tokens at a time as there are slots.
        let of_some = |(n, next): (usize, &[u32])| {
            let values = next.len() * config.n_embd;
            if n > 0 {
                let at = n * self.slots() * config.n_embd;
                let (x, aside) = (&state.x, &state.few_last);
                gpu.copy([[(x, at), (aside, 0)], [(aside, 0), (x, 0)]], values);
            }
            let step = Step { n_tokens: next.len() as u32, ..Step::default() };
            gpu.write(&state.step, 0, &[step]);
            gpu.write(&state.scored, 0, next);
            let records = &state.slots[0].records;
            gpu.run_and_read(&[&plans.few_logits, &plans.scores], &step, records, next.len())
        };
        let records = next.chunks(self.slots()).enumerate().map(of_some).collect();
        let spans = spans.iter().map(|span| (span.ids.len(), span.scored().len())).collect();
        Ok(Scored { records, spans })
    }

    /// Runs a pass through all layers, or only up to `last`, a product of a block. Token number `n` of the
    /// pass then has its residual stream in row `n` of `x`. The caller has checked the spans.
    pub(super) fn run_pass(&self, spans: &[Span<'_>], last: Option<(usize, Site)>) {
        let n_tokens = spans.iter().map(|span| span.ids.len()).sum();
        let (width, layers) = match n_tokens {
            n if n <= self.slots() => (Width::Few, &self.plans.few),
            ..=SHORT => (Width::Short, &self.plans.short),
            _ => (Width::Chunk, &self.plans.prefill),
        };
        let plans: Vec<Plan> = match last {
            None => vec![layers.segments(0..usize::MAX)],
            Some((block, Site::Down)) => vec![layers.segments(0..block + 1)],
            Some((block, site)) => {
                vec![layers.segments(0..block), self.block_as_far_as(width, block, site)]
            }
        };
        let ids: Vec<u32> = spans.iter().flat_map(|span| span.ids).copied().collect();
        let steps = match width.has_rows() {
            true => vec![self.step_of_rows(spans)],
            false => self.steps_of_spans(spans, n_tokens),
        };
        self.gpu.write(&self.state.tokens, self.state.first_token(), &ids);
        self.gpu.write(&self.state.step, 0, &steps);
        self.gpu.run_spans(&plans, &steps);
    }

    /// The step of a pass of few tokens, with a row for each of them.
    fn step_of_rows(&self, spans: &[Span<'_>]) -> Step {
        let at = self.state.first_token() as u32;
        let tokens = spans
            .iter()
            .flat_map(|span| (0..span.ids.len()).map(|n| (span.first as u32, span.pos + n)));
        let rows = (at..).zip(tokens).map(|(token, (first, pos))| Step {
            first,
            token,
            ..self.state.step(pos, 1)
        });
        Step { token: at, ..self.state.rows_step(rows) }
    }

    /// The step of all tokens of a pass, and then steps whose rows are the spans. Each splits its context
    /// as a chunk of all these tokens would. If it has fewer splits than others, its further ones see
    /// nothing, which changes no bit.
    fn steps_of_spans(&self, spans: &[Span<'_>], n_tokens: usize) -> Vec<Step> {
        let token = self.state.first_token() as u32;
        let all = Step { n_tokens: n_tokens as u32, token, ..Step::default() };
        let mut steps = vec![all];
        let (mut row, mut n_splits) = (0, 0);
        for some in spans.chunks(MAX_ROWS) {
            let mut step = Step { token: token + row, row, ..Step::default() };
            for (&Span { first, pos, ids, .. }, place) in some.iter().zip(&mut step.rows) {
                let alone = self.state.step_in_chunk(pos, ids.len(), (n_tokens, pos + ids.len()));
                let (split_len, token) = (alone.split_len, token + row);
                *place = Row { pos: pos as u32, first: first as u32, split_len, token };
                n_splits = n_splits.max(alone.n_splits);
                row += ids.len() as u32;
            }
            step.n_tokens = row - step.row;
            steps.push(step);
        }
        steps.iter_mut().for_each(|step| step.n_splits = n_splits);
        steps
    }
}

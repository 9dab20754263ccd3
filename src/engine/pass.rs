//! Passes of tokens of several sequences.

use super::on_gpu::Engine;
use crate::compute::Span;
use crate::error::{Error, Result};
use crate::gpu::{Readback, Step};
use crate::kernels::Record;

/// The log-probabilities that [`Engine::score`] computes. Several may be in flight.
pub struct Scored {
    /// A record for each token of the pass.
    records: Readback<Record>,
    /// For each span: its number of tokens, and how many of them have a next token that is scored.
    spans: Vec<(usize, usize)>,
}

impl Scored {
    /// Waits for the log-probabilities of each span.
    ///
    /// Errors: `device-lost`.
    pub async fn take(self) -> Result<Vec<Vec<f32>>> {
        let records = self.records.take().await?;
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
    /// Puts tokens of several sequences through the layers, at most [`Engine::slots`] together. The
    /// results are those of single steps, to the last bit.
    ///
    /// Errors: those of [`Span::check_all`].
    pub fn pass(&self, spans: &[Span<'_>]) -> Result<Readback<u32>> {
        let step = self.write_pass(spans)?;
        Ok(self.gpu.run_and_read(&[&self.plans.few], &step, &self.state.sampled, 1))
    }

    /// Like [`Engine::pass`], and scores the token that follows each of its tokens, if it is known.
    ///
    /// Errors: those of [`Span::check_all`].
    pub fn score(&self, spans: &[Span<'_>]) -> Result<Scored> {
        let step = self.write_pass(spans)?;
        // If the next token is not known, any token will do: its score is not used.
        let next: Vec<u32> = spans
            .iter()
            .flat_map(|span| span.ids[1..].iter().copied().chain([span.next.unwrap_or(0)]))
            .collect();
        self.gpu.write(&self.state.scored, 0, &next);
        let plans = [&self.plans.few, &self.plans.few_logits, &self.plans.scores];
        let records = &self.state.slots[0].records;
        let records = self.gpu.run_and_read(&plans, &step, records, next.len());
        let spans = spans.iter().map(|span| (span.ids.len(), span.scored().len())).collect();
        Ok(Scored { records, spans })
    }

    /// Writes the step of a pass, and its tokens behind those of the slots.
    pub(super) fn write_pass(&self, spans: &[Span<'_>]) -> Result<Step> {
        Span::check_all(spans, self.slots())?;
        let at = self.state.first_token();
        let tokens = spans.iter().flat_map(|span| {
            span.ids.iter().enumerate().map(|(n, &id)| (span.first, span.pos + n, id))
        });
        let (mut ids, mut rows) = (Vec::new(), Vec::new());
        for (first, pos, id) in tokens {
            let token = (at + ids.len()) as u32;
            ids.push(id);
            rows.push(Step { first: first as u32, token, ..self.state.step(pos, 1) });
        }
        let step = Step { token: at as u32, ..self.state.rows_step(rows.into_iter()) };
        self.write_step(&ids, &step);
        Ok(step)
    }
}

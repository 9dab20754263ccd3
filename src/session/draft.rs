//! Draft passes: steps that check several drafted tokens at once.

use super::lookup::{self, Lookup};
use super::run::Run;
use crate::compute::{Choice, Pending};
use crate::error::Result;

/// Submit a draft pass behind at most this many steps: beyond that a draft is probably wrong.
const MAX_STEPS_BEFORE_DRAFT: usize = 4;

/// Decides when to draft, and what of it to accept.
pub(super) struct Drafter {
    /// `None`: never draft.
    lookup: Option<Lookup>,
    /// A pass that was submitted while the token before its first one was not known yet: it is
    /// useless if that token comes out otherwise.
    ahead: Option<DraftPass>,
}

/// A draft pass in flight.
struct DraftPass {
    /// The last token, and the tokens drafted after it. In a pass ahead the last token is drafted
    /// too.
    ids: Vec<u32>,
    choices: Pending<Vec<Choice>>,
}

impl Drafter {
    /// Drafts if `enabled`, and the model takes several tokens in a pass.
    pub(super) fn new(run: &Run<'_>, enabled: bool) -> Self {
        let drafts = enabled && run.model.max_draft_pass(0) > 1;
        Self { lookup: drafts.then(Lookup::default), ahead: None }
    }

    /// Must be called after each token; `tokens` end with it.
    pub(super) fn observe(&mut self, tokens: &[u32]) {
        if let Some(lookup) = &mut self.lookup {
            lookup.observe(tokens);
        }
    }

    /// Whether a draft is worth trying.
    pub(super) fn is_confident(&self) -> bool {
        self.lookup.as_ref().is_some_and(Lookup::is_confident)
    }

    /// Whether no draft is to be expected soon, so that steps can be submitted far ahead: a draft
    /// waits for all of them.
    pub(super) fn is_quiet(&self) -> bool {
        self.lookup.as_ref().is_none_or(Lookup::is_quiet)
    }

    /// Whether a draft pass is in flight.
    pub(super) fn has_pass_ahead(&self) -> bool {
        self.ahead.is_some()
    }

    /// Tokens in flight that nobody will need if the generation ends now.
    pub(super) fn tokens_ahead(&self) -> usize {
        self.ahead.as_ref().map_or(0, |pass| pass.ids.len())
    }

    /// Runs a draft pass, unless there is nothing to draft: the pass ahead, or a new one. No step
    /// may be in flight. Gives the drafted tokens that the model accepts and one more token, which
    /// it chose after them; nothing if no pass was run.
    pub(super) async fn draft(&mut self, run: &mut Run<'_>) -> Result<Vec<Choice>> {
        self.drop_mistaken(run);
        let Some(&last) = run.tokens.last() else { return Ok(Vec::new()) };
        let pass = match self.ahead.take() {
            Some(ahead) => ahead,
            None if !self.is_confident() => return Ok(Vec::new()),
            None => {
                let max_drafted = max_pass(run, *run.filled, 0).saturating_sub(1);
                let draft = lookup::draft(run.tokens, max_drafted);
                if draft.is_empty() {
                    return Ok(Vec::new());
                }
                submit(run, [&[last], &draft[..]].concat(), *run.filled, &[])
            }
        };
        self.submit_behind_pass(run, &pass);
        let mut chosen = pass.choices.take().await?;
        let drafted = &pass.ids[1..];
        let accepted = chosen.iter().zip(drafted).take_while(|(a, b)| a.id == **b).count();
        let all = accepted == drafted.len();
        if !all {
            self.ahead = None;
        }
        let right = &pass.ids[..=accepted];
        let text = [&run.tokens[..], &right[1..]].concat();
        let (prompt, output) = text.split_at(run.prompt);
        run.model.recount(right, prompt, output);
        *run.filled += accepted + 1;
        run.left -= accepted + 1;
        run.last_is_on_gpu = false;
        run.pace.pause();
        run.stats.accepted_tokens += accepted;
        if let Some(lookup) = &mut self.lookup {
            lookup.record_pass(accepted + 1, all);
        }
        chosen.truncate(accepted + 1);
        Ok(chosen)
    }

    /// Drops the pass ahead if its first token is not the one that the model chose.
    fn drop_mistaken(&mut self, run: &mut Run<'_>) {
        let mistaken = self.ahead.take_if(|pass| run.tokens.last() != Some(&pass.ids[0]));
        if let (Some(_), Some(lookup)) = (mistaken, &mut self.lookup) {
            lookup.record_pass(0, false);
            run.pace.pause();
        }
    }

    /// Submits the next pass behind `pass`, if that one will probably be accepted whole: until its
    /// result is here, the GPU would have nothing to do.
    fn submit_behind_pass(&mut self, run: &mut Run<'_>, pass: &DraftPass) {
        let last_was_accepted = self.lookup.as_ref().is_some_and(Lookup::accepts_whole_passes);
        if last_was_accepted && run.pace.has_room(1, lookup::STEPS_PER_PASS, lookup::STEPS_PER_PASS)
        {
            let pos = *run.filled + pass.ids.len();
            let expected = [&run.tokens[..], &pass.ids[1..]].concat();
            let ids = lookup::draft(&expected, max_pass(run, pos, pass.ids.len()));
            self.ahead = (ids.len() > 1).then(|| submit(run, ids, pos, &pass.ids));
        }
    }

    /// Submits a pass behind the `steps` in flight, in as many `batches`, if they are few and
    /// lookup can draft what they will choose.
    pub(super) fn submit_behind_steps(&mut self, run: &mut Run<'_>, batches: usize, steps: usize) {
        let has_room = run.pace.has_room(batches, steps, lookup::STEPS_PER_PASS);
        if self.ahead.is_some() || steps > MAX_STEPS_BEFORE_DRAFT || !has_room {
            return;
        }
        let pos = *run.filled;
        let max_tokens = max_pass(run, pos, 0);
        let expected = lookup::draft(run.tokens, steps - 1 + max_tokens);
        if max_tokens > 1 && !expected.is_empty() {
            self.ahead = Some(submit(run, expected[steps - 1..].to_vec(), pos, &[]));
            run.last_is_on_gpu = false;
        }
    }
}

/// Most tokens of a pass at `pos`, if `before` tokens of a pass before it are still to be accepted.
fn max_pass(run: &Run<'_>, pos: usize, before: usize) -> usize {
    run.model.max_draft_pass(pos).min(run.left.saturating_sub(before))
}

/// Submits a pass. `uncertain`: the tokens of the pass in flight before it; empty if there is none.
fn submit(run: &mut Run<'_>, ids: Vec<u32>, pos: usize, uncertain: &[u32]) -> DraftPass {
    run.stats.draft_passes += 1;
    run.stats.drafted_tokens += ids.len() - 1;
    DraftPass { choices: run.model.decode_and_choose(&ids, pos, uncertain), ids }
}

//! The generation loop: prefill, steps in flight, stop rules.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use serde::Serialize;
use web_time::Instant;

use super::Session;
use super::lookup::{self, Lookup};
use super::pace::Pace;
use super::stop::StopTexts;
use crate::engine::Choices;
use crate::error::{Error, Result};
use crate::gpu::Readback;
use crate::sampling::Sampling;
use crate::tokenizer::{TextStream, Tokenizer};

/// Steps under way that a pass is ordered behind: of more it is not likely that all are foreseen rightly.
const MAX_STEPS_BEFORE_DRAFT: usize = 4;

/// How to generate.
#[derive(Clone, Debug, Default)]
pub struct GenerateOptions {
    /// The most tokens to generate; `None` is as many as the context holds.
    pub max_tokens: Option<usize>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Texts that end the generation; they are not emitted.
    pub stop: Vec<String>,
    /// Whether greedy tokens may be foreseen from text that repeats itself, and several taken in one
    /// pass; `None` is where that pays.
    pub prompt_lookup: Option<bool>,
}

/// One generated token. `text` holds whole characters only and may be empty: a character can
/// take several tokens, and text that could begin a stop text is held back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Token {
    /// The token; `None` for text that was held back and comes at the end.
    pub id: Option<u32>,
    /// The text it adds.
    pub text: String,
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    /// A stop token or a stop text.
    Stop,
    /// `max_tokens`, or the context is full.
    Length,
    /// The caller stopped it.
    Abort,
}

/// What a generation took.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Tokens in the prompt.
    pub prompt_tokens: usize,
    /// Of them, tokens whose keys and values were still in the cache.
    pub reused_tokens: usize,
    /// Tokens generated, the stop token not counted.
    pub completion_tokens: usize,
    /// Tokens that were foreseen from text that repeats itself, and put through the model at once.
    pub drafted_tokens: usize,
    /// Of them, tokens that the model chose too.
    pub accepted_tokens: usize,
    /// Passes of several tokens each.
    pub draft_passes: usize,
    /// Tokens that were computed ahead, and not wanted when it ended.
    pub unused_tokens: usize,
    /// Milliseconds from the call to the first token.
    pub time_to_first_token: f64,
    /// Prompt tokens computed per second.
    pub prefill_tokens_per_second: f64,
    /// Tokens per second after the first.
    pub decode_tokens_per_second: f64,
    /// Why it ended.
    pub finish_reason: FinishReason,
}

impl Session {
    /// Generates from `prompt`, handing each token to `on_token` until it breaks.
    ///
    /// Tokens whose keys and values are still in the cache from the generation before are not
    /// computed again. Dropping the future stops the GPU work after the steps in flight; what was
    /// computed stays valid.
    ///
    /// Errors: `bad-option` (empty prompt, ids out of range, settings), `context-full`,
    /// `device-lost`.
    pub async fn generate(
        &mut self,
        prompt: &[u32],
        options: &GenerateOptions,
        on_token: &mut dyn FnMut(Token) -> ControlFlow<()>,
    ) -> Result<Stats> {
        options.sampling.check()?;
        let started = Instant::now();
        let reused = self.begin(prompt)?;
        // The last token needs no place in the cache.
        let room = self.engine.n_ctx() - prompt.len() + 1;
        let limit = options.max_tokens.unwrap_or(room).min(room);
        let mut stats = Stats {
            prompt_tokens: prompt.len(),
            reused_tokens: reused,
            completion_tokens: 0,
            drafted_tokens: 0,
            accepted_tokens: 0,
            draft_passes: 0,
            unused_tokens: 0,
            time_to_first_token: 0.0,
            prefill_tokens_per_second: 0.0,
            decode_tokens_per_second: 0.0,
            finish_reason: FinishReason::Length,
        };
        if limit == 0 {
            return Ok(stats);
        }

        self.engine.set_sampling(&options.sampling);
        self.prefill(prompt, reused).await?;
        let mut steps = Steps::new(self, prompt, limit, options);
        let mut output =
            Output { text: TextStream::default(), stop: StopTexts::new(&options.stop) };
        let mut first = None;
        while let Some(id) = steps.next(self).await? {
            if first.is_none() {
                first = Some(Instant::now());
                let (tokens, time) = (prompt.len() - reused, started.elapsed());
                self.chunks.took_at_most(tokens, time);
                stats.time_to_first_token = time.as_secs_f64() * 1e3;
                stats.prefill_tokens_per_second = rate(tokens, time.as_secs_f64());
            }
            if self.tokenizer.is_stop(id) {
                stats.finish_reason = FinishReason::Stop;
                break;
            }
            stats.completion_tokens += 1;
            let (text, stopped) = output.push(&self.tokenizer, id)?;
            if on_token(Token { id: Some(id), text }).is_break() {
                stats.finish_reason = FinishReason::Abort;
                break;
            }
            if stopped {
                stats.finish_reason = FinishReason::Stop;
                break;
            }
        }
        let Drafts { passes, drafted, accepted } = steps.drafts;
        (stats.draft_passes, stats.drafted_tokens, stats.accepted_tokens) =
            (passes, drafted, accepted);
        stats.unused_tokens = steps.under_way() + steps.confirmed.len();
        stats.unused_tokens += steps.ahead.map_or(0, |pass| pass.ids.len());
        let rest = output.finish();
        if !rest.is_empty() {
            let _ = on_token(Token { id: None, text: rest });
        }
        if let Some(first) = first {
            let after_it = stats.completion_tokens.saturating_sub(1);
            stats.decode_tokens_per_second = rate(after_it, first.elapsed().as_secs_f64());
        }
        Ok(stats)
    }
}

/// Tokens per second; 0 where the clock saw no time, which a browser may make coarse.
fn rate(tokens: usize, seconds: f64) -> f64 {
    if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 }
}

/// Steps on the GPU, some of them ahead of the token that is awaited: each takes the token that the
/// one before it chose straight from GPU memory. Or, where the text repeats itself, passes of several
/// tokens that are foreseen.
struct Steps {
    in_flight: VecDeque<Ordered>,
    /// Tokens that came together with others, and that were not asked for yet.
    confirmed: VecDeque<u32>,
    /// Tokens still to be ordered.
    left: usize,
    greedy: bool,
    /// Whether the last token is where the next step takes it from.
    on_gpu: bool,
    lookup: Option<Lookup>,
    /// A pass that was ordered before what is ahead of it had come back, so that its first token is foreseen too.
    ahead: Option<Pass>,
    drafts: Drafts,
}

/// A pass of several tokens. All but the first are foreseen, and if it was ordered ahead, that is too.
struct Pass {
    ids: Vec<u32>,
    chosen: Choices,
}

/// Steps that were handed to the GPU at once.
struct Ordered {
    steps: usize,
    tokens: Readback<u32>,
}

/// What came of foreseeing.
#[derive(Default)]
struct Drafts {
    passes: usize,
    drafted: usize,
    accepted: usize,
}

impl Steps {
    /// Submits the prompt's last chunk, whose step chooses the first token.
    fn new(session: &mut Session, prompt: &[u32], limit: usize, options: &GenerateOptions) -> Self {
        let greedy = options.sampling.is_greedy();
        let pos = session.filled;
        let first = session.engine.prefill_and_sample(&prompt[pos..], pos, greedy);
        session.filled = prompt.len();
        session.pace.pause();
        // On a CPU a pass of eight tokens costs as much as it saves.
        let looks_up = options.prompt_lookup.unwrap_or(!session.engine.gpu().software);
        Self {
            in_flight: VecDeque::from([Ordered { steps: 1, tokens: first }]),
            confirmed: VecDeque::new(),
            left: limit - 1,
            greedy,
            on_gpu: true,
            lookup: (looks_up && greedy && session.engine.few_at(0) > 1).then(Lookup::default),
            ahead: None,
            drafts: Drafts::default(),
        }
    }

    /// The next token, `None` when the limit is reached.
    async fn next(&mut self, session: &mut Session) -> Result<Option<u32>> {
        if self.confirmed.is_empty() && self.in_flight.is_empty() {
            let mistaken = self.ahead.take_if(|pass| Some(&pass.ids[0]) != session.tokens.last());
            if let (Some(_), Some(lookup)) = (mistaken, &mut self.lookup) {
                lookup.passed(0, false);
                session.pace.pause();
            }
            if self.ahead.is_some() || self.is_confident() {
                self.try_draft(session).await?;
            }
        }
        let id = match self.confirmed.pop_front() {
            Some(id) => id,
            None => match self.step(session).await? {
                Some(id) => id,
                None => return Ok(None),
            },
        };
        if id as usize >= session.info.vocab_size {
            return Err(Error::Internal("the model gave no number for any token".into()));
        }
        session.tokens.push(id);
        if let Some(lookup) = &mut self.lookup {
            lookup.saw(&session.tokens);
        }
        Ok(Some(id))
    }

    fn is_confident(&self) -> bool {
        self.lookup.as_ref().is_some_and(Lookup::is_confident)
    }

    /// Orders steps, as many as are to be under way, and waits for the first.
    async fn step(&mut self, session: &mut Session) -> Result<Option<u32>> {
        let drafts_next = self.is_confident() && !self.in_flight.is_empty();
        if drafts_next {
            self.order_after_steps(session);
        }
        let foreseen_lately = self.lookup.as_ref().is_some_and(|lookup| !lookup.is_quiet());
        let at_once = if foreseen_lately { 1 } else { session.pace.at_once() };
        while self.left > 0 && self.ahead.is_none() {
            let at_once = at_once.min(self.left);
            let (pos, last) = (session.filled, session.tokens.last());
            let ordered = match last {
                Some(&last) if !self.on_gpu => {
                    let tokens = session.engine.prefill_and_sample(&[last], pos, self.greedy);
                    Ordered { steps: 1, tokens }
                }
                _ if drafts_next || !self.has_room(&session.pace, at_once) => break,
                _ => {
                    let tokens = session.engine.decode_and_sample(pos, at_once, self.greedy);
                    Ordered { steps: at_once, tokens }
                }
            };
            self.on_gpu = true;
            session.filled += ordered.steps;
            self.left -= ordered.steps;
            self.in_flight.push_back(ordered);
        }
        let Some(Ordered { steps, tokens }) = self.in_flight.pop_front() else { return Ok(None) };
        self.confirmed.extend(tokens.take(session.engine.gpu()).await?);
        session.pace.came(Instant::now(), steps);
        Ok(self.confirmed.pop_front())
    }

    fn has_room(&self, pace: &Pace, at_once: usize) -> bool {
        pace.has_room(self.in_flight.len(), self.under_way(), at_once)
    }

    fn under_way(&self) -> usize {
        self.in_flight.iter().map(|ordered| ordered.steps).sum()
    }

    /// Puts the last token and those that are foreseen after it through the model, if that was not ordered
    /// already, and confirms what it chooses as long as that is what was foreseen, and one token more.
    async fn try_draft(&mut self, session: &mut Session) -> Result<()> {
        let pass = match (self.ahead.take(), session.tokens.last()) {
            (Some(ahead), _) => ahead,
            (None, Some(&last)) => {
                let most = self.most_in_pass(session, session.filled, 0).saturating_sub(1);
                let draft = lookup::draft(&session.tokens, most);
                if draft.is_empty() {
                    return Ok(());
                }
                self.order_pass(session, [&[last], &draft[..]].concat(), session.filled)
            }
            (None, None) => return Ok(()),
        };
        let is_sure = self.lookup.as_ref().is_some_and(Lookup::is_sure);
        if is_sure && session.pace.has_room(1, lookup::STEPS_OF_PASS, lookup::STEPS_OF_PASS) {
            // The wait for a pass is as long as the pass: the next is under way meanwhile.
            let pos = session.filled + pass.ids.len();
            let most = self.most_in_pass(session, pos, pass.ids.len());
            let foreseen = [&session.tokens[..], &pass.ids[1..]].concat();
            let ids = lookup::draft(&foreseen, most);
            self.ahead = (ids.len() > 1).then(|| self.order_pass(session, ids, pos));
        }
        let chosen = pass.chosen.take(session.engine.gpu()).await?;
        let right = chosen.iter().zip(&pass.ids[1..]).take_while(|(a, b)| a == b).count();
        let all = right + 1 == pass.ids.len();
        if !all {
            self.ahead = None;
        }
        self.confirmed.extend(&chosen[..=right]);
        session.filled += right + 1;
        self.left -= right + 1;
        self.on_gpu = false;
        session.pace.pause();
        self.drafts.accepted += right;
        if let Some(lookup) = &mut self.lookup {
            lookup.passed(right + 1, all);
        }
        Ok(())
    }

    /// Orders a pass behind the steps that are under way, if they are few and it can be foreseen what they
    /// will choose.
    fn order_after_steps(&mut self, session: &Session) {
        let (pos, lots, steps) = (session.filled, self.in_flight.len(), self.under_way());
        let has_room = session.pace.has_room(lots, steps, lookup::STEPS_OF_PASS);
        if self.ahead.is_some() || steps > MAX_STEPS_BEFORE_DRAFT || !has_room {
            return;
        }
        let most = self.most_in_pass(session, pos, 0);
        let foreseen = lookup::draft(&session.tokens, steps - 1 + most);
        if most > 1 && !foreseen.is_empty() {
            self.ahead = Some(self.order_pass(session, foreseen[steps - 1..].to_vec(), pos));
            self.on_gpu = false;
        }
    }

    /// The most tokens of a pass at `pos`, before which so many are foreseen.
    fn most_in_pass(&self, session: &Session, pos: usize, foreseen: usize) -> usize {
        session.engine.few_at(pos).min(self.left.saturating_sub(foreseen))
    }

    fn order_pass(&mut self, session: &Session, ids: Vec<u32>, pos: usize) -> Pass {
        self.drafts.passes += 1;
        self.drafts.drafted += ids.len() - 1;
        Pass { chosen: session.engine.decode_and_choose(&ids, pos), ids }
    }
}

/// Tokens to text, held back where a stop text may begin.
struct Output<'a> {
    text: TextStream,
    stop: StopTexts<'a>,
}

impl Output<'_> {
    /// The text that is certain after `id`, and whether a stop text is complete.
    fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<(String, bool)> {
        let text = self.text.push(tokenizer, id)?;
        Ok(self.stop.push(&text))
    }

    /// What was held back.
    fn finish(&mut self) -> String {
        let tail = self.text.finish();
        let (mut text, stopped) = self.stop.push(&tail);
        if !stopped {
            text.push_str(&self.stop.finish());
        }
        text
    }
}

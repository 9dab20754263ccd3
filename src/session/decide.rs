//! Decides questions about a text by the probabilities of their options.
//!
//! The text is computed once. Then come passes of many tokens: those of several questions, and
//! after these the options, each with the token before it, which scores the first of its own. For
//! these the KV cache has lanes: ranges that begin with the same text.

use std::ops::Range;

use serde::Serialize;
use web_time::Instant;

use super::asked::{Asked, Prior, Seated, groups, shared};
use super::caches::{CacheId, Wanted, given_up};
use super::loaded::Session;
use super::question::{Label, Question, QuestionKind, value};
use super::room::MAX_KEPT;
use super::score::Unscored;
use crate::chat::{Message, Role, Template};
use crate::compute::{MAX_SPANS, let_others_run};
use crate::error::{Error, Result};
use crate::tokenizer::{Part, Special};

/// The text in place of a text, if the options' probabilities without one are wanted.
const NO_TEXT: &str = "N/A";

/// How [`Session::decide`] asks, and what it makes of log-probabilities.
#[derive(Clone, Debug)]
pub struct DecideOptions {
    /// Facts that the model has to know for all questions. They come before the text.
    pub context: Option<String>,
    /// The measure by which options are compared.
    pub normalize: Normalize,
    /// Divides this measure, before it becomes probabilities.
    pub temperature: f64,
}

/// The measure by which options are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Normalize {
    /// The log-probability of the whole option.
    #[default]
    None,
    /// The log-probability for each of its tokens, so that long options are no worse for that.
    Length,
    /// How much more likely the text makes it: the same question is asked without a text too.
    Prior,
}

/// The decisions about a text.
#[derive(Clone, Debug)]
pub struct Decisions {
    /// A decision for each question, in order.
    pub decisions: Vec<Decision>,
    /// The statistics of all of them.
    pub stats: DecisionStats,
}

/// The decision of a question.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The options, in the order of the question.
    pub options: Vec<Decided>,
    /// The most probable of `options`; the first of equal ones.
    pub best: usize,
    /// The mean of a score's labels by their probabilities.
    pub expected_score: Option<f64>,
}

/// The probability of an option.
#[derive(Clone, Debug)]
pub struct Decided {
    /// Its label.
    pub label: String,
    /// Its share among all options. The shares of a question have the sum 1.
    pub probability: f64,
    /// The log-probability, by the model alone, that it answers with this option and then ends.
    pub logprob: f64,
}

/// The statistics of decisions.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionStats {
    /// Tokens of the text and of all questions: the text counts once.
    pub prompt_tokens: usize,
    /// How many of them were still in the KV cache.
    pub reused_tokens: usize,
    /// Tokens of options that were computed.
    pub option_tokens: usize,
    /// The passes after the text, each of tokens of several questions or options.
    pub passes: usize,
    /// Milliseconds from the call to its end.
    pub time: f64,
}

impl Default for DecideOptions {
    fn default() -> Self {
        Self { context: None, normalize: Normalize::None, temperature: 1.0 }
    }
}

impl Session {
    /// Decides `questions` about `text`: for each option, how likely the model is to answer with it
    /// and to end there. The questions are asked by the chat template if the model has one, else as
    /// a plain text.
    ///
    /// Errors: `bad-option`, `context-full`, `device-lost`; those of the template.
    pub async fn decide(
        &mut self,
        text: &str,
        questions: &[Question],
        options: &DecideOptions,
    ) -> Result<Decisions> {
        let started = Instant::now();
        check(text, questions, options)?;
        self.check_answers()?;
        let mut stats = DecisionStats::default();
        let prior = match options.normalize {
            Normalize::Prior => {
                let asked = self.ask_all(NO_TEXT, questions, options).await?;
                self.prior(asked, &mut stats).await?
            }
            _ => Vec::new(),
        };
        let asked = self.ask_all(text, questions, options).await?;
        let found = self.weigh(&asked, &mut stats).await?;
        let mut decisions = Vec::new();
        for (n, (question, found)) in questions.iter().zip(found).enumerate() {
            let worth = |option: usize| match options.normalize {
                Normalize::None => found[option],
                Normalize::Length => found[option] / asked[n].tokens(option) as f64,
                Normalize::Prior => found[option] - prior[n][option],
            };
            let worths = (0..found.len()).map(|option| worth(option) / options.temperature);
            decisions.push(Decision::new(question, &found, &worths.collect::<Vec<_>>())?);
        }
        stats.time = started.elapsed().as_secs_f64() * 1e3;
        Ok(Decisions { decisions, stats })
    }

    /// The tokens of `questions`. A call that stops this one may come in between.
    async fn ask_all(
        &self,
        text: &str,
        questions: &[Question],
        options: &DecideOptions,
    ) -> Result<Vec<Asked>> {
        let template =
            self.template().ok().map(|template| (template, template.end(&self.tokenizer)));
        let mut asked = Vec::new();
        for question in questions {
            let content = question.message(text, options.context.as_deref());
            let labels = question.labels();
            asked.push(match &template {
                Some((template, end)) => self.ask_in_chat(template, *end, content, &labels)?,
                None => self.ask_plainly(&content, &labels)?,
            });
            let_others_run().await;
        }
        Ok(asked)
    }

    /// The tokens of a question as a message to the model. `end` ends its answer.
    fn ask_in_chat(
        &self,
        template: &Template,
        end: Option<u32>,
        content: String,
        labels: &[Label],
    ) -> Result<Asked> {
        let message = Message::new(Role::User, content);
        let thinking = template.has_thinking().then_some(false);
        let prompt = template.prompt(&self.tokenizer, &[message], thinking)?;
        let prompt = template.encode_to_answer(&self.tokenizer, &prompt)?;
        self.asked(prompt, labels.iter().map(|one| one.label.clone()), end)
    }

    /// The tokens of a question as a text that goes on with the answer. A line break ends it.
    fn ask_plainly(&self, content: &str, labels: &[Label]) -> Result<Asked> {
        let bos = self.tokenizer.bos().filter(|_| self.tokenizer.add_bos());
        let prompt = self.tokenizer.encode_text(&format!("{content}\nAnswer:"))?;
        let prompt = bos.into_iter().chain(prompt).collect();
        self.asked(prompt, labels.iter().map(|one| format!(" {}\n", one.label)), None)
    }

    /// A question with the tokens of `prompt`, and the options that may follow it. The prompt is
    /// checked first, because it lists all options.
    fn asked(
        &self,
        prompt: Vec<u32>,
        options: impl Iterator<Item = String>,
        end: Option<u32>,
    ) -> Result<Asked> {
        self.check_prompt(&prompt)?;
        let mut asked = Asked { prompt, answers: Vec::new() };
        for option in options {
            let part = Part { text: &option, special: Special::None };
            let ids = self.tokenizer.encode_parts_after(&asked.prompt, &[part])?;
            let last = asked.prompt.last().copied();
            let answer: Vec<u32> = last.into_iter().chain(ids).chain(end).collect();
            let (prompt, context) = (asked.prompt.len() - 1 + answer.len(), self.traits.n_ctx);
            if prompt > context {
                return Err(Error::ContextFull { prompt, context });
            }
            if answer.len() < 2 {
                let why = format!("`{option}` has no token in this model's vocabulary");
                return Err(Error::BadOption { name: "options".into(), why });
            }
            asked.answers.push(answer);
        }
        Ok(asked)
    }

    /// The log-probabilities of options without a text. They are kept for the next text.
    async fn prior(
        &mut self,
        asked: Vec<Asked>,
        stats: &mut DecisionStats,
    ) -> Result<Vec<Vec<f64>>> {
        if let Some(prior) = self.prior.as_ref().filter(|prior| prior.asked == asked) {
            return Ok(prior.found.clone());
        }
        let found = self.weigh(&asked, stats).await?;
        self.prior = Some(Prior { asked, found: found.clone() });
        Ok(found)
    }

    /// The log-probability of each option of each question.
    async fn weigh(&mut self, asked: &[Asked], stats: &mut DecisionStats) -> Result<Vec<Vec<f64>>> {
        // Sequences may still count as running if a future was dropped.
        self.caches.release_all();
        let found = self.weigh_in_lanes(asked, stats).await;
        self.caches.release_all();
        found
    }

    async fn weigh_in_lanes(
        &mut self,
        asked: &[Asked],
        stats: &mut DecisionStats,
    ) -> Result<Vec<Vec<f64>>> {
        let Some(one) = asked.first() else { return Ok(Vec::new()) };
        let text = shared(asked);
        let len = asked.iter().map(Asked::len).max().unwrap_or_default();
        let options = asked.iter().map(|one| one.answers.len()).sum();
        let (id, lanes) = self.place_lanes(&one.prompt, len, options).await?;
        let sequence = self.caches.running(id)?;
        // The text alone stays in the cache.
        sequence.tokens.truncate(text);
        (sequence.prompt, sequence.filled) = (text, self.chunks.start(sequence.filled.min(text)));
        let first = sequence.first();
        stats.reused_tokens += sequence.filled;
        stats.prompt_tokens += text;
        self.compute_up_to(id, text).await?;
        let lane = |n: usize| first + n * len;
        for other in 1..lanes {
            self.copy(first, lane(other), 0..text);
        }

        let mut found: Vec<Vec<f64>> =
            asked.iter().map(|one| vec![0.0; one.answers.len()]).collect();
        for group in groups(asked, lanes) {
            let mut questions = Vec::new();
            for &Seated { n, at, .. } in &group {
                let ids = &asked[n].prompt[text..];
                questions.push(Unscored { first: lane(at), pos: text, ids });
                stats.prompt_tokens += ids.len();
            }
            stats.passes += self.compute_spans(questions).await?;
            for &Seated { n, at, width } in &group {
                let computed = text..asked[n].prompt.len() - 1;
                for other in at + 1..at + width {
                    self.copy(lane(at), lane(other), computed.clone());
                }
            }
            for round in 0.. {
                let (mut rest, mut of) = (Vec::new(), Vec::new());
                for &Seated { n, at, width } in &group {
                    let Asked { prompt, answers } = &asked[n];
                    let some = answers.iter().enumerate().skip(round * width).take(width);
                    for (lanes, (option, ids)) in some.enumerate() {
                        let (first, pos) = (lane(at + lanes), prompt.len() - 1);
                        rest.push(Unscored { first, pos, ids });
                        of.push((n, option));
                        stats.option_tokens += asked[n].tokens(option) - 1;
                    }
                }
                if of.is_empty() {
                    break;
                }
                let (scores, passes) = self.score_spans(rest).await?;
                stats.passes += passes;
                for ((n, option), scores) in of.into_iter().zip(scores) {
                    found[n][option] = scores.into_iter().map(f64::from).sum();
                }
            }
        }
        Ok(found)
    }

    /// A range of the KV cache for `prompt`, with lanes of `len` positions. The first lane holds
    /// those tokens that were in the cache. Gives the number of lanes, at most `most`.
    async fn place_lanes(
        &mut self,
        prompt: &[u32],
        len: usize,
        most: usize,
    ) -> Result<(CacheId, usize)> {
        let fitting = self.positions_of(MAX_KEPT) / len;
        let mut lanes = most.min(self.pass_tokens()).min(MAX_SPANS).min(fitting);
        while lanes > 1 {
            let wanted = Wanted { least: lanes * len, most: lanes * len };
            // Passes are not worth an idle sequence.
            if let Some(id) = self.place_beside(prompt, wanted, MAX_KEPT).await? {
                return Ok((id, lanes));
            }
            lanes -= lanes.div_ceil(4);
        }
        let placed = self.place(prompt, Wanted { least: len, most: len }, MAX_KEPT).await?;
        Ok((placed.ok_or_else(given_up)?, 1))
    }

    /// Copies positions of one lane to another.
    fn copy(&self, from: usize, to: usize, range: Range<usize>) {
        if !range.is_empty() {
            self.engine.copy_cache(from + range.start, to + range.start, range.len());
        }
    }
}

fn check(text: &str, questions: &[Question], options: &DecideOptions) -> Result<()> {
    let bad = |name: &str, why: &str| Err(Error::BadOption { name: name.into(), why: why.into() });
    if text.trim().is_empty() {
        return bad("text", "must not be empty");
    }
    if questions.is_empty() {
        return bad("questions", "must not be empty");
    }
    if !(options.temperature > 0.0 && options.temperature.is_finite()) {
        return bad("temperature", "must be a number above 0");
    }
    questions.iter().enumerate().try_for_each(|(n, one)| one.check(&format!("questions[{n}].")))
}

impl Decision {
    /// The decision of a question whose options have the log-probabilities `found`. `worths` are
    /// compared.
    fn new(question: &Question, found: &[f64], worths: &[f64]) -> Result<Self> {
        if worths.iter().any(|worth| !worth.is_finite()) {
            return Err(Error::Internal("no logit is a number".into()));
        }
        let greatest = worths.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shares: Vec<f64> = worths.iter().map(|worth| (worth - greatest).exp()).collect();
        let sum: f64 = shares.iter().sum();
        let options: Vec<Decided> = question
            .labels()
            .into_iter()
            .zip(shares.iter().zip(found))
            .map(|(Label { label, .. }, (share, &logprob))| Decided {
                label,
                probability: share / sum,
                logprob,
            })
            .collect();
        let best = worths.iter().position(|&worth| worth == greatest).unwrap_or_default();
        let score = |one: &Decided| value(&one.label).map(|value| value * one.probability);
        let expected_score = match question.kind {
            QuestionKind::Score => options.iter().map(score).sum(),
            _ => None,
        };
        Ok(Self { options, best, expected_score })
    }
}

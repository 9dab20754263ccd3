//! Embeds texts: each becomes one vector, so that texts with a like meaning have like vectors.
//!
//! Many texts share a pass, see [`Packing`]. Nothing pads them, and no text sees another.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use web_time::Instant;

use super::caches::{Wanted, given_up};
use super::loaded::Session;
use super::packing::{Packing, Placed};
use super::room::MAX_KEPT;
use crate::compute::{Pending, Span, Tap, let_others_run};
use crate::error::{Error, Result};
use crate::model::Pooling;

/// Passes in flight, so that the machine does not wait for the values of one to be read.
const IN_FLIGHT: usize = 2;

/// Texts that are encoded before other tasks run.
const ENCODED_AT_ONCE: usize = 32;

/// A text to embed.
#[derive(Clone, Debug, PartialEq)]
pub enum EmbedText {
    /// A text. Nothing in it becomes a special token.
    Text(String),
    /// Tokens as they are: nothing is put before or after them.
    Ids(Vec<u32>),
}

/// How [`Session::embed`] makes vectors.
#[derive(Clone, Debug, Default)]
pub struct EmbedOptions {
    /// The text that comes before each one.
    pub purpose: Purpose,
    /// How a text's vector is made of its tokens'; `None`: as the model was loaded.
    pub pooling: Option<Pooling>,
    /// The values that are kept of each vector, the first ones; `None`: all.
    pub dimensions: Option<usize>,
    /// Whether a text that is too long is cut. Otherwise it is an error.
    pub truncate: bool,
    /// The number of the first text in errors, for a caller that gives its texts in several calls.
    pub first: usize,
}

/// The use of the vectors. Models were trained with another beginning for queries than for documents.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Purpose {
    /// The text alone, as for documents.
    #[default]
    None,
    /// An instruction, one sentence that describes the task.
    Instruction(String),
    /// This text before each text.
    Prefix(String),
}

/// The tasks that have names, and the instructions that models were trained with. Documents have none.
pub const TASKS: [(&str, Option<&str>); 4] = [
    ("document", None),
    ("query", Some("Given a web search query, retrieve relevant passages that answer the query")),
    ("similarity", Some("Retrieve semantically similar text")),
    ("bitext", Some("Retrieve parallel sentences")),
];

/// The vectors of texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// A vector for each text, of length 1. If all values of a text are 0, its vector is 0 too.
    pub vectors: Vec<Vec<f32>>,
    /// How they were made. Vectors that were made differently cannot be compared.
    pub pooling: Pooling,
    /// Tokens of all texts, as they were computed.
    pub tokens: usize,
    /// The numbers of the texts that were cut.
    pub cut: Vec<usize>,
}

impl Purpose {
    /// The purpose of the task with this name in [`TASKS`].
    pub fn task(name: &str) -> Option<Self> {
        let (_, instruction) = TASKS.iter().find(|task| task.0 == name)?;
        Some(instruction.map_or(Self::None, |text| Self::Instruction(text.into())))
    }

    /// The text before each text. `spaced` says whether the model was trained with a space after `Query:`.
    fn prefix(&self, spaced: bool) -> Cow<'_, str> {
        match self {
            Self::None => Cow::Borrowed(""),
            Self::Prefix(prefix) => Cow::Borrowed(prefix),
            Self::Instruction(sentence) => {
                let space = if spaced { " " } else { "" };
                Cow::Owned(format!("Instruct: {sentence}\nQuery:{space}"))
            }
        }
    }
}

impl Session {
    /// The vectors of `texts`. `progress` is called with the number of texts that are done. A text has the
    /// same vector alone and among others, but for rounding; in a deterministic session, to the last bit.
    ///
    /// Errors: `bad-option` if neither the options nor the model say how to pool, for ids outside of the
    /// vocabulary, for no ids, and for wrong dimensions; `context-full` for a text that is too long;
    /// `internal` for a text whose values are not finite; `device-lost`. The error of a text names it,
    /// `texts[7]`. All texts are checked before one is computed.
    pub async fn embed(
        &mut self,
        texts: &[EmbedText],
        options: &EmbedOptions,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Embedded> {
        self.engine.check()?;
        let bad = |name: &str, why: String| Error::BadOption { name: name.into(), why };
        let pooling = options.pooling.or(self.pooling).ok_or_else(|| {
            let names = Pooling::NAMES.join("`, `");
            bad("pooling", format!("is missing, and the model's file names none: `{names}`"))
        })?;
        let n_embd = self.info.dimensions;
        let dimensions = options.dimensions.unwrap_or(n_embd);
        if !(1..=n_embd).contains(&dimensions) {
            return Err(bad("dimensions", format!("is {dimensions}, not 1 to {n_embd}")));
        }
        let (mut all, mut cut) = (Vec::with_capacity(texts.len()), Vec::new());
        for (n, text) in texts.iter().enumerate() {
            let (ids, is_cut) = self.embedded_ids(n, text, options)?;
            all.push(ids);
            cut.extend(is_cut.then_some(n));
            if n % ENCODED_AT_ONCE == ENCODED_AT_ONCE - 1 {
                let_others_run().await;
            }
        }
        // Sequences may still count as running if a future was dropped.
        self.caches.release_all();
        let vectors = self.embed_all(&all, (pooling, dimensions, options.first), progress).await;
        self.caches.release_all();
        let tokens = all.iter().map(Vec::len).sum();
        Ok(Embedded { vectors: vectors?, pooling, tokens, cut })
    }

    /// The tokens of text number `n`, and whether it was cut.
    fn embedded_ids(
        &self,
        n: usize,
        text: &EmbedText,
        options: &EmbedOptions,
    ) -> Result<(Vec<u32>, bool)> {
        let n = options.first.saturating_add(n);
        let bad = |why: String| Err(Error::BadOption { name: format!("texts[{n}]"), why });
        let (tokenizer, context) = (&self.tokenizer, self.traits.n_ctx);
        let too_long = |tokens| Err(Error::TextTooLong { text: n, tokens, context });
        let eos = tokenizer.eos().filter(|_| tokenizer.add_eos());
        let mut ids = match text {
            EmbedText::Ids(_) if options.purpose != Purpose::None => {
                return bad("tokens cannot have a task, an instruction or a prefix".into());
            }
            EmbedText::Ids(ids) if ids.is_empty() => return bad("there are no tokens".into()),
            EmbedText::Ids(ids) => {
                let n_vocab = self.info.vocab_size;
                if let Some(id) = ids.iter().find(|&&id| id as usize >= n_vocab) {
                    let last = n_vocab - 1;
                    return bad(format!("there is token {id}, but the vocabulary ends at {last}"));
                }
                ids.clone()
            }
            EmbedText::Text(text) => {
                let prefix =
                    options.purpose.prefix(self.engine.config().architecture.norms_inputs());
                let bos = tokenizer.bos().filter(|_| tokenizer.add_bos());
                let mut text = &text[..];
                // The memory and the time of a text that cannot fit have a limit.
                if let Some(bytes) = tokenizer.max_token_bytes()
                    && text.len() > context.saturating_mul(bytes)
                {
                    if !options.truncate {
                        return too_long(text.len().div_ceil(bytes));
                    }
                    // So far behind the context, another end changes no token within it.
                    let end = context.saturating_mul(bytes).saturating_mul(2);
                    text = &text[..text.floor_char_boundary(end)];
                }
                let ids = tokenizer.encode_text(&format!("{prefix}{text}"))?;
                bos.into_iter().chain(ids).chain(eos).collect()
            }
        };
        if ids.is_empty() {
            return bad("an empty text has no token in this model's vocabulary".into());
        }
        if ids.len() <= context {
            return Ok((ids, false));
        }
        if !options.truncate {
            return too_long(ids.len());
        }
        ids.truncate(context - eos.iter().len());
        ids.extend(eos);
        Ok((ids, true))
    }

    /// The vectors of texts of one token or more, each within the context. Errors call the first one `number`.
    async fn embed_all(
        &mut self,
        texts: &[Vec<u32>],
        (pooling, dimensions, number): (Pooling, usize, usize),
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<Vec<f32>>> {
        let mut vectors = vec![Vec::new(); texts.len()];
        let Some(longest) = texts.iter().map(Vec::len).max() else { return Ok(vectors) };
        let all: usize = texts.iter().map(Vec::len).sum();
        // An engine's passes are no longer than the context.
        let room = all.min(self.traits.pass).min(self.traits.n_ctx).max(longest);
        let placed = self.place(&[], Wanted { least: room, most: room }, MAX_KEPT).await?;
        let begin = self.caches.running(placed.ok_or_else(given_up)?)?.first();

        let mut packing = Packing::new(texts.iter().map(Vec::len), room);
        let mut in_flight = VecDeque::new();
        let (mut begun, mut done) = (BTreeMap::new(), 0);
        loop {
            let most = self.pass_tokens();
            let next = packing.next(most);
            let ends = next.is_none();
            if let Some(pass) = next {
                in_flight.push_back(self.submit_pass(texts, pass, (begin, most), pooling));
            }
            while in_flight.len() >= if ends { 1 } else { IN_FLIGHT }
                && let Some(Passing { pass, values, most, submitted }) = in_flight.pop_front()
            {
                let mut values = values.take().await?.into_iter();
                let row = pass.iter().map(|placed| placed.len).sum();
                self.chunks.pass_done((row, most), submitted, Instant::now());
                for placed in &pass {
                    let &Placed { text, pos, len, .. } = placed;
                    let sum: &mut Vec<f64> =
                        begun.entry(text).or_insert_with(|| vec![0.0; self.info.dimensions]);
                    let counted = pooled(placed, &texts[text], pooling).len();
                    for hidden in values.by_ref().take(counted) {
                        sum.iter_mut().zip(hidden).for_each(|(sum, x)| *sum += f64::from(x));
                    }
                    if pos + len == texts[text].len() {
                        vectors[text] = vector(&sum[..dimensions]).ok_or_else(|| {
                            let n = number.saturating_add(text);
                            Error::Internal(format!("the values of texts[{n}] are not finite"))
                        })?;
                        begun.remove(&text);
                        done += 1;
                    }
                }
                progress(done);
            }
            if ends {
                return Ok(vectors);
            }
        }
    }

    fn submit_pass(
        &self,
        texts: &[Vec<u32>],
        pass: Vec<Placed>,
        (begin, most): (usize, usize),
        pooling: Pooling,
    ) -> Passing {
        let submitted = Instant::now();
        let (mut spans, mut chosen, mut row) = (Vec::new(), Vec::new(), 0);
        for placed in &pass {
            let &Placed { text, first, pos, len } = placed;
            let ids = &texts[text];
            spans.push(Span { first: begin + first, pos, ids: &ids[pos..pos + len], next: None });
            chosen.extend(pooled(placed, ids, pooling).map(|token| row + token - pos));
            row += len;
        }
        let values = match chosen.is_empty() {
            // The middle of a long text has no token that counts.
            true => {
                let pending = self.engine.pass(&spans);
                Pending::new(async { pending.take().await.map(|()| Vec::new()) })
            }
            false => self.engine.tap(&spans, &chosen, Tap::Hidden),
        };
        Passing { pass, values, most, submitted }
    }
}

/// A pass in flight, with the hidden states of the tokens that count.
struct Passing {
    pass: Vec<Placed>,
    values: Pending<Vec<Vec<f32>>>,
    /// The tokens that it may have.
    most: usize,
    submitted: Instant,
}

/// The tokens of a pass whose hidden states are pooled, by their positions in the text.
fn pooled(placed: &Placed, ids: &[u32], pooling: Pooling) -> Range<usize> {
    let Placed { pos, len, .. } = *placed;
    let counted = match pooling {
        Pooling::Mean => 0..ids.len(),
        Pooling::Cls => 0..1,
        Pooling::Last => ids.len() - 1..ids.len(),
    };
    let (start, end) = (counted.start.max(pos), counted.end.min(pos + len));
    start..end.max(start)
}

/// A sum of hidden states as a vector of length 1. It points where their mean does. `None` if it is not
/// finite: its vector would be none, and stay in an index for ever.
fn vector(sum: &[f64]) -> Option<Vec<f32>> {
    let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
    let per = if length > 0.0 { 1.0 / length } else { 0.0 };
    length.is_finite().then(|| sum.iter().map(|x| (x * per) as f32).collect())
}

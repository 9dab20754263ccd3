//! The calls that wait for a session.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_channel::oneshot;
use futures_util::FutureExt;
use web_time::Instant;

use super::generate::GenerateOptions;
use super::output::Token;
use super::stats::{FinishReason, Stats};
use crate::chat::{Message, Role, Template, Tools};
use crate::error::{Error, Result};
use crate::tokenizer::Tokenizer;

/// The input of a generation.
#[derive(Clone, Debug)]
pub enum Prompt {
    /// These tokens.
    Ids(Vec<u32>),
    /// A conversation that ends with a message of the user, or with an answer that is to go on; see
    /// [`Session::chat_prompt`](super::loaded::Session::chat_prompt) and
    /// [`Session::begun_prompt`](super::loaded::Session::begun_prompt).
    Chat {
        /// Its messages up to the one that is answered.
        messages: Vec<Message>,
        /// The text with which the answer begins; it is not generated again.
        begun: Option<String>,
        /// Whether the model is to reason first; with `None`, its template decides.
        thinking: Option<bool>,
        /// The tools that the model may call. The options have to hold the calls to their format.
        tools: Option<Rc<Tools>>,
    },
}

impl Prompt {
    /// The text with which the answer begins.
    pub(super) fn begun(&self) -> &str {
        match self {
            Self::Chat { begun: Some(begun), .. } => begun,
            Self::Chat { begun: None, .. } | Self::Ids(_) => "",
        }
    }

    /// How many tokens it has, see [`Prompt::ids`].
    pub fn count(&self, template: Result<&Template>, tokenizer: &Tokenizer) -> Result<usize> {
        match self {
            Self::Ids(ids) => Ok(ids.len()),
            Self::Chat { .. } => Ok(self.ids(template, tokenizer)?.len()),
        }
    }

    /// Its tokens. In a session, a conversation may have others, because answers keep theirs. One that
    /// ends with an answer is taken as it is, although it prompts for nothing.
    ///
    /// Errors: those of the templates' prompts, and `bad-option` (`tools`) for tools with an answer
    /// that is begun.
    pub fn ids(&self, template: Result<&Template>, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
        self.check()?;
        let (messages, begun, thinking, tools) = match self {
            Self::Ids(ids) => return Ok(ids.clone()),
            Self::Chat { messages, begun, thinking, tools } => (messages, begun, *thinking, tools),
        };
        let template = template?;
        let is_answered = messages.last().is_some_and(|last| last.role == Role::Assistant);
        let prompt = match begun {
            None if is_answered => template.answered(tokenizer, messages, tools.as_deref())?,
            None => template.prompt_with(tokenizer, messages, tools.as_deref(), thinking)?,
            Some(begun) => template.prompt_begun(tokenizer, messages, begun, thinking)?,
        };
        template.encode(tokenizer, &prompt)
    }

    /// Refuses tools with an answer that is begun.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Self::Chat { begun: Some(_), tools: Some(_), .. } => {
                let why = "an answer that is begun cannot call tools".into();
                Err(Error::BadOption { name: "tools".into(), why })
            }
            _ => Ok(()),
        }
    }
}

/// Called with each token until it breaks.
pub type OnToken<'a> = Box<dyn FnMut(Token) -> ControlFlow<()> + 'a>;

/// A generation that a caller asks for.
pub(super) struct Call<'a> {
    pub(super) prompt: Prompt,
    pub(super) options: GenerateOptions,
    pub(super) on_token: OnToken<'a>,
    pub(super) caller: Caller,
}

/// The caller of a generation, as the session sees it.
pub(super) struct Caller {
    answer: oneshot::Sender<Result<Stats>>,
    is_stopped: Rc<Cell<bool>>,
    /// When it called.
    pub(super) called: Instant,
}

impl Caller {
    /// Whether it does not wait any more.
    pub(super) fn is_gone(&self) -> bool {
        self.answer.is_canceled()
    }

    /// Whether it wants no more tokens.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.get()
    }

    /// Ends its call.
    pub(super) fn answer(self, stats: Result<Stats>) {
        // This fails if the caller is gone.
        let _ = self.answer.send(stats);
    }
}

/// The answer to a call, to be awaited. If it is dropped, the call ends after the steps in flight.
///
/// Errors: those of the generation, and `disposed` if the session is dropped before the end.
pub struct Answer {
    stats: oneshot::Receiver<Result<Stats>>,
    is_stopped: Rc<Cell<bool>>,
}

impl Answer {
    /// Ends the call after the work that is awaited now. The answer then has its statistics, with
    /// [`FinishReason::Abort`](super::stats::FinishReason::Abort).
    pub fn stop(&self) {
        self.is_stopped.set(true);
    }
}

impl Future for Answer {
    type Output = Result<Stats>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.stats.poll_unpin(context).map(|answer| answer.unwrap_or(Err(Error::Disposed)))
    }
}

/// Calls in the order in which [`Session::serve`](super::loaded::Session::serve) takes them. More
/// calls may come while it runs.
#[derive(Default)]
pub struct Calls<'a> {
    waiting: RefCell<VecDeque<Call<'a>>>,
}

impl<'a> Calls<'a> {
    /// Adds a call. Its answer comes when the call has ended.
    pub fn push(&self, prompt: Prompt, options: GenerateOptions, on_token: OnToken<'a>) -> Answer {
        let (answer, stats) = oneshot::channel();
        let is_stopped = Rc::new(Cell::new(false));
        let caller = Caller { answer, is_stopped: Rc::clone(&is_stopped), called: Instant::now() };
        self.waiting.borrow_mut().push_back(Call { prompt, options, on_token, caller });
        Answer { stats, is_stopped }
    }

    /// Whether no call waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Drops the waiting calls.
    pub fn clear(&self) {
        self.waiting.borrow_mut().clear();
    }

    /// Takes the first call whose caller still waits.
    pub(super) fn pop(&self) -> Option<Call<'a>> {
        self.end_unwanted();
        self.waiting.borrow_mut().pop_front()
    }

    /// Ends the calls whose callers are gone or want no more tokens. Gives whether one was the first.
    pub(super) fn end_unwanted(&self) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let has_ended = |call: &Call<'_>| call.caller.is_gone() || call.caller.is_stopped();
        let was_first = waiting.front().is_some_and(has_ended);
        for call in std::mem::take(&mut *waiting) {
            if has_ended(&call) {
                let finish_reason = FinishReason::Abort;
                call.caller.answer(Ok(Stats { finish_reason, ..Stats::default() }));
            } else {
                waiting.push_back(call);
            }
        }
        was_first
    }

    /// Puts a call back for which there was no room.
    pub(super) fn put_back(&self, call: Call<'a>) {
        self.waiting.borrow_mut().push_front(call);
    }

    /// Ends the first call with an error, because it cannot get what it needs.
    pub fn fail(&self, error: Error) {
        if let Some(call) = self.pop() {
            call.caller.answer(Err(error));
        }
    }
}

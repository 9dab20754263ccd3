//! The calls that wait for a session.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::ControlFlow;

use futures_channel::oneshot;

use super::generate::GenerateOptions;
use super::output::Token;
use super::stats::Stats;
use crate::chat::Message;
use crate::error::Result;

/// The input of a generation.
#[derive(Clone, Debug)]
pub enum Prompt {
    /// These tokens.
    Ids(Vec<u32>),
    /// A conversation that ends with a message of the user; see
    /// [`Session::chat_prompt`](super::loaded::Session::chat_prompt).
    Chat {
        /// Its messages.
        messages: Vec<Message>,
        /// Whether the model is to reason first; with `None`, its template decides.
        thinking: Option<bool>,
    },
}

/// Called with each token until it breaks.
pub type OnToken<'a> = Box<dyn FnMut(Token) -> ControlFlow<()> + 'a>;

/// A generation that a caller asks for.
pub(super) struct Call<'a> {
    pub(super) prompt: Prompt,
    pub(super) options: GenerateOptions,
    pub(super) on_token: OnToken<'a>,
    pub(super) answer: oneshot::Sender<Result<Stats>>,
}

/// Calls in the order in which [`Session::serve`](super::loaded::Session::serve) takes them. More
/// calls may come while it runs.
#[derive(Default)]
pub struct Calls<'a> {
    waiting: RefCell<VecDeque<Call<'a>>>,
}

impl<'a> Calls<'a> {
    /// Adds a call. The receiver gets the statistics when the call has ended. A caller who drops
    /// the receiver ends the call after the steps in flight.
    pub fn push(
        &self,
        prompt: Prompt,
        options: GenerateOptions,
        on_token: OnToken<'a>,
    ) -> oneshot::Receiver<Result<Stats>> {
        let (answer, receiver) = oneshot::channel();
        self.waiting.borrow_mut().push_back(Call { prompt, options, on_token, answer });
        receiver
    }

    /// Whether no call waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Drops the waiting calls.
    pub fn clear(&self) {
        self.waiting.borrow_mut().clear();
    }

    /// Takes the first call whose receiver was not dropped.
    pub(super) fn pop(&self) -> Option<Call<'a>> {
        self.drop_canceled();
        self.waiting.borrow_mut().pop_front()
    }

    /// Drops the calls whose receivers were dropped. Gives whether one was the first.
    pub(super) fn drop_canceled(&self) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let was_first = waiting.front().is_some_and(|call| call.answer.is_canceled());
        waiting.retain(|call| !call.answer.is_canceled());
        was_first
    }

    /// Puts a call back for which there was no room.
    pub(super) fn put_back(&self, call: Call<'a>) {
        self.waiting.borrow_mut().push_front(call);
    }

    /// Ends the first call with an error, because it cannot get what it needs.
    pub fn fail(&self, error: crate::error::Error) {
        if let Some(call) = self.pop() {
            let _ = call.answer.send(Err(error));
        }
    }
}

//! The conversation in the KV cache.

use crate::chat::{self, Message, Role};
use crate::error::Result;
use crate::tokenizer::{TextStream, Tokenizer};

/// A conversation and the prompt it made.
pub(super) struct Conversation {
    messages: Vec<Message>,
    pub(super) prompt: Vec<u32>,
}

impl Conversation {
    /// The prompt of `messages`. If they go on from `before`, whose answer is in `tokens`, that
    /// answer is taken in the tokens it was given in: written anew, its text may be cut into others,
    /// and all that follows would have to be computed again.
    pub(super) fn new(
        tokenizer: &Tokenizer,
        messages: &[Message],
        before: Option<&Self>,
        tokens: &[u32],
    ) -> Result<Self> {
        let answered = before.and_then(|before| before.answered(tokenizer, messages, tokens));
        let prompt = match answered {
            Some((ids, rest)) => chat::continued(tokenizer, ids, rest)?,
            None => chat::prompt(tokenizer, messages)?,
        };
        Ok(Self { messages: messages.to_vec(), prompt })
    }

    /// The tokens up to this conversation's answer, if `messages` begin with both, and what follows.
    fn answered<'a>(
        &self,
        tokenizer: &Tokenizer,
        messages: &'a [Message],
        tokens: &'a [u32],
    ) -> Option<(&'a [u32], &'a [Message])> {
        let [answer, rest @ ..] = messages.strip_prefix(self.messages.as_slice())? else {
            return None;
        };
        let given = tokens.strip_prefix(self.prompt.as_slice())?;
        if answer.role != Role::Assistant {
            return None;
        }
        let mut stream = TextStream::new();
        let mut text = String::new();
        for (i, &id) in given.iter().enumerate() {
            text += &stream.push(tokenizer, id).ok()?;
            if text == answer.content {
                return Some((&tokens[..self.prompt.len() + i + 1], rest));
            }
        }
        None
    }
}

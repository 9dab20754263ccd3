//! The conversation in the KV cache.

use crate::chat::{self, Message, Role};
use crate::error::Result;
use crate::tokenizer::{TextStream, Tokenizer};

/// A conversation and its prompt.
#[derive(Clone)]
pub(super) struct Conversation {
    messages: Vec<Message>,
    pub(super) prompt: Vec<u32>,
    /// The answers in it that were generated here, in order.
    answers: Vec<Answer>,
}

/// The end of an answer.
#[derive(Clone)]
struct Answer {
    /// Messages up to the answer, including it.
    messages: usize,
    /// Tokens up to the end of the answer.
    tokens: usize,
}

impl Conversation {
    /// The prompt of `messages`. If they continue the conversation `before`, whose prompt and
    /// answer are `tokens`, its answers keep the tokens in which they were generated. Encoded
    /// again, an answer's text may get other tokens, and everything after it would be computed
    /// again.
    pub(super) fn new(
        tokenizer: &Tokenizer,
        messages: &[Message],
        before: Option<&Self>,
        tokens: &[u32],
    ) -> Result<Self> {
        let known = before.and_then(|before| before.known(tokenizer, messages, tokens));
        let (prompt, answers) = match known {
            Some((ids, answers, rest)) => (chat::continued(tokenizer, ids, rest)?, answers),
            None => (chat::prompt(tokenizer, messages)?, Vec::new()),
        };
        Ok(Self { messages: messages.to_vec(), prompt, answers })
    }

    /// The tokens up to the last answer that `messages` share with this conversation, all answers
    /// up to there, and the messages after it.
    fn known<'a>(
        &self,
        tokenizer: &Tokenizer,
        messages: &'a [Message],
        tokens: &'a [u32],
    ) -> Option<(&'a [u32], Vec<Answer>, &'a [Message])> {
        let prompt = tokens.get(..self.prompt.len()).filter(|prompt| *prompt == self.prompt)?;
        let mut answers = self.answers.clone();
        if let Some(tokens) = self.answered(tokenizer, messages, tokens) {
            let messages = self.messages.len() + 1;
            answers.push(Answer { messages, tokens: prompt.len() + tokens });
        } else {
            // The last turn failed or was taken back.
            let same = messages.iter().zip(&self.messages).take_while(|(a, b)| a == b).count();
            answers.retain(|answer| answer.messages <= same);
        }
        answers.retain(|answer| answer.messages < messages.len());
        let last = answers.last()?;
        let (ids, rest) = (&tokens[..last.tokens], &messages[last.messages..]);
        Some((ids, answers, rest))
    }

    /// How many of `tokens` after the prompt are the answer in `messages`; `None` if their text does
    /// not begin with that answer.
    fn answered(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        tokens: &[u32],
    ) -> Option<usize> {
        let [answer, ..] = messages.strip_prefix(self.messages.as_slice())? else {
            return None;
        };
        if answer.role != Role::Assistant {
            return None;
        }
        let (prompt, given) = tokens.split_at_checked(self.prompt.len())?;
        let mut stream = TextStream::after(prompt);
        let mut text = String::new();
        for (i, &id) in given.iter().enumerate() {
            text += &stream.push(tokenizer, id).ok()?;
            if text == answer.content {
                return Some(i + 1);
            }
        }
        None
    }
}

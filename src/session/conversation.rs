//! The prompt of a conversation, in which earlier answers keep their tokens.

use crate::chat::{Channel, Message, Prompt, Role, Template};
use crate::error::Result;
use crate::tokenizer::{TextStream, Tokenizer};

/// A conversation and its prompt.
#[derive(Clone)]
pub(super) struct Conversation {
    messages: Vec<Message>,
    /// The prompt as text.
    pub(super) text: Prompt,
    /// The tokens of the prompt.
    pub(super) prompt: Vec<u32>,
    /// The answers in it that were generated here, in order.
    pub(super) answers: Vec<PastAnswer>,
}

/// The end of an answer.
#[derive(Clone, Copy)]
pub(super) struct PastAnswer {
    /// Bytes of the prompt's text up to the end of the answer.
    pub(super) bytes: usize,
    /// Tokens up to the end of the answer.
    pub(super) tokens: usize,
}

impl Conversation {
    /// The prompt of `messages`. If it continues the conversation `before`, whose prompt and answer
    /// are `tokens`, its answers keep the tokens in which they were generated. If an answer were
    /// encoded again, it might get other tokens, and everything after it would be computed again.
    ///
    /// The prompts' texts decide whether one continues the other. A template may write an earlier
    /// answer in another way than it was generated, such as without its reasoning. Then the prompts
    /// share only the text before that answer.
    pub(super) fn new(
        tokenizer: &Tokenizer,
        template: &Template,
        messages: &[Message],
        thinking: Option<bool>,
        before: Option<(&Self, &[u32])>,
    ) -> Result<Self> {
        let text = template.prompt(tokenizer, messages, thinking)?;
        let answers = match before {
            Some((before, tokens)) => before.shared(tokenizer, messages, &text, tokens),
            None => Vec::new(),
        };
        let prompt = match (answers.last(), before) {
            (Some(last), Some((_, tokens))) => {
                let before = &tokens[..last.tokens];
                let rest = template.encode_after(tokenizer, before, &text, last.bytes)?;
                [before, &rest].concat()
            }
            _ => template.encode(tokenizer, &text)?,
        };
        Ok(Self { messages: messages.to_vec(), text, prompt, answers })
    }

    /// How many of the first `messages` this conversation also has.
    pub(super) fn shared_messages(&self, messages: &[Message]) -> usize {
        self.messages.iter().zip(messages).take_while(|(a, b)| a == b).count()
    }

    /// How the answer begins; `None` if the model decides.
    pub(super) fn begins(&self) -> Option<Channel> {
        self.text.begins
    }

    /// The generated answers that the new prompt shares with this conversation.
    fn shared(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        text: &Prompt,
        tokens: &[u32],
    ) -> Vec<PastAnswer> {
        if !tokens.starts_with(&self.prompt) {
            return Vec::new();
        }
        let shares = |bytes| text.marked.shares(&self.text.marked, bytes);
        let mut answers = self.answers.clone();
        answers.retain(|answer| shares(answer.bytes));
        let prompt = self.text.marked.text().len();
        if shares(prompt)
            && let Some((answer, n)) = self.answered(tokenizer, messages, tokens)
        {
            let rest = &text.marked.text()[prompt..];
            // If a template trims answers, the trimmed text means the generated answer.
            let content = [answer, answer.trim()].into_iter().find(|text| rest.starts_with(text));
            let end = content.map(|content| (prompt + content.len(), self.prompt.len() + n));
            answers.extend(end.map(|(bytes, tokens)| PastAnswer { bytes, tokens }));
        }
        answers
    }

    /// The answer in `messages`, and how many of the tokens after the prompt it has; `None` if the
    /// text of `messages` does not begin with the prompt and that answer.
    fn answered<'a>(
        &self,
        tokenizer: &Tokenizer,
        messages: &'a [Message],
        tokens: &[u32],
    ) -> Option<(&'a str, usize)> {
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
                return Some((&answer.content, i + 1));
            }
        }
        None
    }
}

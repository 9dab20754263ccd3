//! The prompt of a conversation, in which earlier answers keep their tokens.

use std::rc::Rc;

use super::output::Output;
use crate::chat::{
    CallFormat, CallReader, Channel, Channels, Message, Prompt, Role, Template, Tools,
};
use crate::compute::Choice;
use crate::error::Result;
use crate::tokenizer::{Part, Special, TextStream, Tokenizer};

/// A request to a model.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) messages: &'a [Message],
    /// The text with which the answer begins.
    pub(super) begun: Option<&'a str>,
    /// The tools that it may call.
    pub(super) tools: Option<&'a Rc<Tools>>,
    /// Whether it is to reason first; with `None`, its template decides.
    pub(super) thinking: Option<bool>,
}

impl<'a> Asking<'a> {
    /// The answer to `messages`.
    pub(super) fn of(messages: &'a [Message]) -> Self {
        Self { messages, begun: None, tools: None, thinking: None }
    }
}

/// A conversation and its prompt.
#[derive(Clone)]
pub(super) struct Conversation {
    messages: Vec<Message>,
    /// How the model writes calls, and the tools that it may call.
    format: &'static CallFormat,
    tools: Option<Rc<Tools>>,
    /// The text with which the answer begins, if the prompt has that too.
    begun: Option<String>,
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
    /// The prompt of what is asked, and of the beginning of the answer to it if there is one. If
    /// it continues the conversation `before`, whose prompt and answer are `tokens`, its answers
    /// keep the tokens in which they were generated. If an answer were encoded again, it might get
    /// other tokens, and everything after it would be computed again.
    ///
    /// The prompts' texts decide whether one continues the other. A template may write an earlier
    /// answer in another way than it was generated, such as without its reasoning. Then the prompts
    /// share only the text before that answer.
    pub(super) fn new(
        tokenizer: &Tokenizer,
        template: &Template,
        Asking { messages, begun, tools, thinking }: Asking<'_>,
        before: Option<(&Self, &[u32])>,
    ) -> Result<Self> {
        let text = match begun {
            None => {
                let tools = tools.map(|tools| &**tools);
                template.prompt_with(tokenizer, messages, tools, thinking)?
            }
            Some(begun) => template.prompt_begun(tokenizer, messages, begun, thinking)?,
        };
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
        Ok(Self {
            messages: messages.to_vec(),
            format: template.calls(),
            tools: tools.cloned(),
            begun: begun.map(Into::into),
            text,
            prompt,
            answers,
        })
    }

    /// The tools that the model may call.
    pub(super) fn tools(&self) -> Option<&Rc<Tools>> {
        self.tools.as_ref()
    }

    /// Reads the calls of the answer, if there are tools. An answer that was begun has none, because
    /// nothing would hold the rest of a call to its schema.
    pub(super) fn calls(&self) -> Option<CallReader> {
        let tools = self.tools.as_ref().filter(|_| self.begun.is_none())?;
        Some(CallReader::new(self.format, tools))
    }

    /// The prompt in which the answer to `messages` goes on that was generated after this one, up
    /// to the text `begun`. `tokens` are this prompt and that answer. The answer keeps them, those
    /// of its reasoning too. `begun` may end within a token, as an answer does that a stop text
    /// has ended. `None` if another answer was generated.
    pub(super) fn going_on(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        begun: &str,
        tokens: &[u32],
    ) -> Option<Self> {
        let given = tokens.strip_prefix(self.prompt.as_slice())?;
        let rest = begun.strip_prefix(self.begun.as_deref().unwrap_or_default())?;
        if self.messages != messages {
            return None;
        }
        let mut output = Output::new(tokenizer, &self.prompt, self.channels(), &[]);
        let mut reasons = false;
        // The bytes of the answer so far. The tokens after the prompt that are kept, and their bytes.
        let (mut len, mut kept, mut bytes) = (0, 0, 0);
        'tokens: for (i, &id) in given.iter().enumerate() {
            if bytes == rest.len() {
                break;
            }
            for token in output.push(tokenizer, Choice::from(id)).ok()?.0 {
                if token.channel == Channel::Reasoning {
                    reasons = true;
                    continue;
                }
                let left = &rest[len..];
                if !left.starts_with(&token.text) {
                    if token.text.starts_with(left) {
                        break 'tokens;
                    }
                    return None;
                }
                len += token.text.len();
            }
            if len > bytes && output.is_whole() {
                (kept, bytes) = (i + 1, len);
            }
        }
        if kept == 0 && !rest.is_empty() {
            return None;
        }
        let mut prompt = [&self.prompt, &given[..kept]].concat();
        let part = Part { text: &rest[bytes..], special: Special::None };
        prompt.extend(tokenizer.encode_parts_after(&prompt, &[part]).ok()?);
        let mut text = self.text.clone();
        if reasons {
            // A later prompt is without the reasoning. This keeps it from taking these tokens.
            text.marked.push(Channels::OPEN, false);
        }
        text.marked.push(rest, false);
        text.begins = Some(Channel::Answer);
        Some(Self { begun: Some(begun.into()), text, prompt, ..self.clone() })
    }

    /// How many of the first `messages` this conversation also has.
    pub(super) fn shared_messages(&self, messages: &[Message]) -> usize {
        self.messages.iter().zip(messages).take_while(|(a, b)| a == b).count()
    }

    /// Whether `messages` begin with all messages of this conversation.
    pub(super) fn is_continued_by(&self, messages: &[Message]) -> bool {
        self.shared_messages(messages) == self.messages.len()
    }

    /// How the answer begins; `None` if the model decides.
    pub(super) fn begins(&self) -> Option<Channel> {
        self.text.begins
    }

    /// The channels of the text after the prompt.
    pub(super) fn channels(&self) -> Channels {
        match self.text.begins {
            _ if self.begun.is_some() => Channels::answer(),
            Some(Channel::Reasoning) => Channels::reasoning(),
            _ => Channels::new(),
        }
    }

    /// The same for an answer that a constraint decides from its first token on. `thinks` says that
    /// the model reasons first, although the prompt does not begin that.
    pub(super) fn constrained_channels(&self, thinks: bool) -> Channels {
        match self.text.begins {
            Some(Channel::Reasoning) => Channels::reasoning().exact(),
            None if thinks => Channels::new().exact(),
            // Markers in the answer are for the constraint.
            _ => Channels::answer(),
        }
    }

    /// Whether the next of `messages` is the answer that was generated after this prompt. `tokens`
    /// are the prompt and that answer.
    pub(super) fn is_answered(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        tokens: &[u32],
    ) -> bool {
        self.answered(tokenizer, messages, tokens).is_some()
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
            let written = [&*answer, answer.trim_end(), answer.trim()];
            let content = written.into_iter().find(|text| rest.starts_with(text));
            let end = content.map(|content| (prompt + content.len(), self.prompt.len() + n));
            answers.extend(end.map(|(bytes, tokens)| PastAnswer { bytes, tokens }));
        }
        answers
    }

    /// The answer in `messages` from the prompt's end on, with its calls, and how many of the
    /// tokens after the prompt it has; `None` if the text of `messages` does not begin with the
    /// prompt and that answer.
    fn answered(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        tokens: &[u32],
    ) -> Option<(String, usize)> {
        let [answer, ..] = messages.strip_prefix(self.messages.as_slice())? else {
            return None;
        };
        if answer.role != Role::Assistant {
            return None;
        }
        let answer = self.format.written(answer);
        let rest = answer.strip_prefix(self.begun.as_deref().unwrap_or_default())?;
        let (prompt, given) = tokens.split_at_checked(self.prompt.len())?;
        let mut stream = TextStream::after(prompt);
        let mut text = String::new();
        for (i, &id) in given.iter().enumerate() {
            text += &stream.push(tokenizer, id).ok()?;
            if text == rest {
                return Some((text, i + 1));
            }
        }
        None
    }
}

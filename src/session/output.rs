//! The output of the generated tokens: text by channel, up to a stop text.

use serde::Serialize;

use super::stop::StopTexts;
use crate::chat::{Channel, Channels};
use crate::compute::Choice;
use crate::error::Result;
use crate::sampling::Logprobs;
use crate::tokenizer::{TextStream, Tokenizer};

/// One generated token. `text` holds whole characters only and may be empty. A character can take
/// several tokens, and text that could begin a stop text is held back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Token {
    /// The token's id; `None` for text that was held back until the end.
    pub id: Option<u32>,
    /// The text that the token adds.
    pub text: String,
    /// The channel of the text: reasoning or answer.
    pub channel: Channel,
    /// How likely the token was, if the caller asked for it and the model chose the token.
    pub logprobs: Option<Logprobs>,
    /// If there are `logprobs`: the token before it, because the token's bytes depend on it.
    pub after: Option<u32>,
}

impl Token {
    fn new(id: Option<u32>, text: String, channel: Channel) -> Self {
        Self { id, text, channel, logprobs: None, after: None }
    }
}

/// Makes text of tokens. It holds back text in which a stop text or the end of the reasoning may
/// begin.
pub(super) struct Output {
    text: TextStream,
    channels: Channels,
    /// The tokens `<think>` and `</think>`, if the vocabulary has them. If they are control tokens,
    /// they have no text.
    open: Option<u32>,
    close: Option<u32>,
    /// Finds stop texts in the answer. In the reasoning they do not count.
    stop: StopTexts,
    /// The number of tokens after `<think>`.
    reasoned: usize,
}

impl Output {
    /// The output after `prompt`.
    pub(super) fn new(
        tokenizer: &Tokenizer,
        prompt: &[u32],
        channels: Channels,
        stop: &[String],
    ) -> Self {
        Self {
            text: TextStream::after(prompt),
            channels,
            open: tokenizer.special(Channels::OPEN),
            close: tokenizer.special(Channels::CLOSE),
            stop: StopTexts::new(stop),
            reasoned: 0,
        }
    }

    /// Adds the chosen token. Gives the text that is certain now, and whether a stop text is
    /// complete. The last of the tokens is the chosen one itself. If there is one before it, it has
    /// text of the other channel.
    pub(super) fn push(
        &mut self,
        tokenizer: &Tokenizer,
        choice: Choice,
    ) -> Result<(Vec<Token>, bool)> {
        let Choice { id, logprobs } = choice;
        let before = self.channels.channel();
        let last = logprobs.as_ref().and(self.text.last());
        let mut text = self.text.push(tokenizer, id)?;
        if text.is_empty() && Some(id) == self.open {
            text += Channels::OPEN;
        }
        if text.is_empty() && Some(id) == self.close && before == Channel::Reasoning {
            text += Channels::CLOSE;
        }
        let (reasoning, answer) = self.channels.push(&text);
        let (answer, stopped) = self.stop.push(&answer);
        let after = self.channels.channel();
        if before == Channel::Reasoning && after == Channel::Reasoning {
            self.reasoned += 1;
        }
        let own =
            |text, channel| Token { logprobs, after: last, ..Token::new(Some(id), text, channel) };
        let tokens = if answer.is_empty() && (before, after) != (Channel::Answer, Channel::Answer) {
            // Tokens of markers belong to the reasoning.
            vec![own(reasoning, Channel::Reasoning)]
        } else if reasoning.is_empty() {
            vec![own(answer, Channel::Answer)]
        } else {
            vec![Token::new(None, reasoning, Channel::Reasoning), own(answer, Channel::Answer)]
        };
        Ok((tokens, stopped))
    }

    /// Whether the tokens so far end with a whole character.
    pub(super) fn is_whole(&self) -> bool {
        self.text.is_whole()
    }

    /// The channel of the next token, if it is known.
    pub(super) fn channel(&self) -> Channel {
        self.channels.channel()
    }

    /// How many tokens of reasoning are left of a budget. An answer has no limit, and neither has
    /// reasoning without a budget.
    pub(super) fn left_of(&self, budget: Option<usize>) -> usize {
        match (self.channels.channel(), budget) {
            (Channel::Reasoning, Some(budget)) => budget.saturating_sub(self.reasoned),
            _ => usize::MAX,
        }
    }

    /// Ends the reasoning with tokens that the model has not chosen.
    pub(super) fn close(&mut self, ids: &[u32]) -> Vec<Token> {
        let cut = self.text.finish();
        let (mut rest, _) = self.channels.push(&cut);
        rest += &self.channels.close();
        let told = |id, text| Token::new(id, text, Channel::Reasoning);
        let rest = (!rest.is_empty()).then(|| told(None, rest));
        rest.into_iter().chain(ids.iter().map(|&id| told(Some(id), String::new()))).collect()
    }

    /// Ends the text. Gives the text that was held back.
    pub(super) fn finish(&mut self) -> Vec<Token> {
        let tail = self.text.finish();
        let (mut reasoning, mut answer) = self.channels.push(&tail);
        match self.channels.finish() {
            (Channel::Reasoning, rest) => reasoning += &rest,
            (Channel::Answer, rest) => answer += &rest,
        }
        let (mut answer, stopped) = self.stop.push(&answer);
        if !stopped {
            answer += &self.stop.finish();
        }
        let texts = [(reasoning, Channel::Reasoning), (answer, Channel::Answer)];
        let told = |(text, channel)| Token::new(None, text, channel);
        texts.into_iter().filter(|(text, _)| !text.is_empty()).map(told).collect()
    }
}

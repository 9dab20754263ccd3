//! The output of the generated tokens: text by channel, up to a stop text.

use serde::Serialize;

use super::stop::StopTexts;
use crate::chat::{CallEvent, CallReader, Channel, Channels};
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
    /// The part of a call of a tool that this is, if it is one. The text is then some of the call's
    /// arguments.
    pub call: Option<CallPart>,
}

/// A part of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallPart {
    /// Which call it is: 0 for the first one of the answer.
    pub index: usize,
    /// The name of the tool, where the call begins.
    pub name: Option<String>,
    /// Whether the call is whole here.
    pub ends: bool,
}

impl Token {
    fn new(id: Option<u32>, text: String, channel: Channel) -> Self {
        Self { id, text, channel, logprobs: None, after: None, call: None }
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
    /// Finds the calls in the answer, if there are tools.
    calls: Option<CallReader>,
    /// The tokens with which calls begin and end, if the vocabulary has them.
    markers: Vec<(u32, &'static str)>,
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
            calls: None,
            markers: Vec::new(),
        }
    }

    /// Lets `calls` find the calls in the answer.
    pub(super) fn read_calls(&mut self, tokenizer: &Tokenizer, calls: Option<CallReader>) {
        let format = calls.as_ref().map(CallReader::format);
        let markers = format.into_iter().flat_map(|format| [format.begin, format.end]);
        self.markers = markers.filter_map(|text| Some((tokenizer.special(text)?, text))).collect();
        self.calls = calls;
    }

    /// Whether the answer ends with calls.
    pub(super) fn has_calls(&self) -> bool {
        self.calls.as_ref().is_some_and(CallReader::is_complete)
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
        // Control tokens have no text.
        if let Some((_, marker)) = self.markers.iter().find(|(marker, _)| *marker == id)
            && text.is_empty()
        {
            text += marker;
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
        } else {
            let reasoning =
                (!reasoning.is_empty()).then(|| Token::new(None, reasoning, Channel::Reasoning));
            let mut tokens: Vec<Token> = reasoning.into_iter().chain(self.answer(answer)).collect();
            // The last one is the token itself.
            if let Some(Token { text, channel, call, .. }) = tokens.pop() {
                tokens.push(Token { call, ..own(text, channel) });
            }
            tokens
        };
        Ok((tokens, stopped))
    }

    /// The text of an answer, apart from its calls. At least one, which may be empty.
    fn answer(&mut self, text: String) -> Vec<Token> {
        let Some(calls) = &mut self.calls else {
            return vec![Token::new(None, text, Channel::Answer)];
        };
        let mut begun = calls.begun();
        let events = calls.push(&text);
        if events.is_empty() {
            return vec![Token::new(None, String::new(), Channel::Answer)];
        }
        tokens_of(events, &mut begun)
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
        let mut tokens = vec![Token::new(None, reasoning, Channel::Reasoning)];
        tokens.extend(self.answer(answer));
        if let Some(calls) = &mut self.calls {
            let mut begun = calls.begun();
            tokens.extend(tokens_of(calls.finish(), &mut begun));
        }
        tokens.retain(|token| !token.text.is_empty() || token.call.is_some());
        tokens
    }
}

/// The tokens for parts of an answer in which `begun` calls have begun before.
fn tokens_of(events: Vec<CallEvent>, begun: &mut usize) -> Vec<Token> {
    let token = |event| {
        let (text, name, ends) = match event {
            CallEvent::Text(text) => return Token::new(None, text, Channel::Answer),
            CallEvent::Begins(name) => {
                *begun += 1;
                (String::new(), Some(name), false)
            }
            CallEvent::Arguments(text) => (text, None, false),
            CallEvent::Ends => (String::new(), None, true),
        };
        let call = CallPart { index: begun.saturating_sub(1), name, ends };
        Token { call: Some(call), ..Token::new(None, text, Channel::Answer) }
    };
    events.into_iter().map(token).collect()
}

//! A model's chat template, and the prompts it makes.

use std::borrow::Cow;
use std::str::FromStr;

use super::channels::{Channel, Channels};
use super::frames::{self, Frame};
use super::guard::guarded;
use super::literals;
use super::origin::{Marked, mark};
use super::record::record;
use super::render::{Inputs, check};
use super::{Message, Role};
use crate::error::{Error, Result};
use crate::gguf::Metadata;
use crate::tokenizer::{Part, Special, Tokenizer};

/// Which template a model is to be used with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TemplateChoice {
    /// The file's own if it has one that works, else a built-in one.
    #[default]
    Auto,
    /// The file's own.
    File,
    /// A built-in one.
    Builtin,
    /// This Jinja text.
    Given(String),
}

impl FromStr for TemplateChoice {
    type Err = std::convert::Infallible;

    /// `file`, `builtin` or a Jinja text.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "file" => Self::File,
            "builtin" => Self::Builtin,
            text => Self::Given(text.into()),
        })
    }
}

/// Makes prompts of conversations.
#[derive(Debug)]
pub struct Template {
    /// The template's text after [`guarded`] has added its checks.
    source: String,
    name: String,
    /// The built-in frame, if it is one.
    frame: Option<&'static Frame>,
    /// Whether it reads `enable_thinking`.
    thinking: bool,
    bos: Option<String>,
    eos: Option<String>,
}

/// A prompt before it is tokenized.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// Its text, and the ranges of it that the template wrote.
    pub marked: Marked,
    /// How the answer begins: with its reasoning if the text ends with `<think>`, and without if it
    /// ends with `</think>` or reasoning is off. `None`: the model decides.
    pub begins: Option<Channel>,
}

impl Template {
    /// The template of a model; `None` if it has none.
    ///
    /// Errors: `bad-template`; `bad-option` (`template`) if there is no such template.
    pub fn new(
        metadata: &Metadata,
        tokenizer: &Tokenizer,
        choice: &TemplateChoice,
    ) -> Result<Option<Self>> {
        let missing =
            |why: &str| Err(Error::BadOption { name: "template".into(), why: why.into() });
        let in_file = || metadata.text("tokenizer.chat_template");
        let frame = || frames::find(metadata, tokenizer);
        let architecture = metadata.text("general.architecture")?.unwrap_or_default();
        let (source, frame) = match choice {
            TemplateChoice::Given(text) => (Some(text.clone().into()), None),
            TemplateChoice::File => match in_file()? {
                Some(text) => (Some(text.to_owned().into()), None),
                None => return missing("the file has none"),
            },
            TemplateChoice::Builtin => match frame()? {
                Some(frame) => (None, Some(frame)),
                None => return missing("no built-in one fits this model"),
            },
            TemplateChoice::Auto => match in_file()? {
                Some(text) if !frames::is_wrong_in_file(architecture) => {
                    (Some(text.to_owned().into()), None)
                }
                _ => match frame()? {
                    Some(frame) => (None, Some(frame)),
                    None => return Ok(None),
                },
            },
        };
        let name = match (frame, choice) {
            (Some(frame), _) => format!("builtin: {}", frame.name),
            (None, TemplateChoice::Given(_)) => "given".into(),
            (None, _) => "file".into(),
        };
        let source: Cow<'static, str> =
            source.unwrap_or(Cow::Borrowed(frame.map_or("", |frame| frame.source)));
        let source = guarded(&source)?;
        check(&source)?;
        let reads = |name: &str| {
            literals::tags(&source).iter().any(|tag| source[tag.code.clone()].contains(name))
        };
        let thinking = reads("enable_thinking");
        let named = |name: &str| token_text(metadata, name);
        Ok(Some(Self { source, name, frame, thinking, bos: named("bos")?, eos: named("eos")? }))
    }

    /// Where it comes from: `file`, `builtin: NAME` or `given`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the built-in one, if it is one.
    pub fn builtin(&self) -> Option<&'static str> {
        self.frame.map(|frame| frame.name)
    }

    /// Whether it knows `enable_thinking`, the switch of reasoning.
    pub fn has_thinking(&self) -> bool {
        self.thinking
    }

    /// The inputs of a conversation that is to be continued.
    pub fn inputs(&self, messages: &[Message], thinking: Option<bool>) -> Inputs {
        let message = |message: &Message| {
            let role = message.role.as_str().into();
            record([("role", role), ("content", message.content.as_str().into())])
        };
        Inputs {
            messages: messages.iter().map(message).collect(),
            thinking,
            add_generation_prompt: true,
            bos: self.bos.clone(),
            eos: self.eos.clone(),
            ..Inputs::default()
        }
    }

    /// Renders any inputs.
    ///
    /// Errors: `bad-template`; `bad-option` (`messages`) if the template refuses the conversation.
    pub fn render(&self, inputs: &Inputs) -> Result<Marked> {
        mark(&self.source, inputs)
    }

    /// The prompt for the answer to the last of `messages`. `thinking` says whether the model is to
    /// reason first, if the template has a switch for that.
    ///
    /// Errors: those of [`Template::render`]; `bad-option` (`prompt`) if there is nothing to
    /// answer, (`thinking`) if the template has no such switch; `unsupported-model` if the
    /// vocabulary lacks a special token that the built-in template needs.
    pub fn prompt(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        thinking: Option<bool>,
    ) -> Result<Prompt> {
        let empty = |why: &str| Err(Error::BadOption { name: "prompt".into(), why: why.into() });
        match messages.last() {
            None => return empty("the conversation is empty"),
            Some(last) if last.content.trim().is_empty() => {
                return empty("there is nothing to answer");
            }
            Some(_) => {}
        }
        if let Some(frame) = self.frame {
            let lacks = |what: &str| {
                let why = format!("no {what} token, so no chat; prompt it with raw text");
                Err(Error::UnsupportedModel(why))
            };
            if frame.needs_bos && tokenizer.bos().is_none() {
                return lacks("beginning-of-text");
            }
            if let Some(text) = frame.needs.iter().find(|text| tokenizer.special(text).is_none()) {
                return lacks(&format!("`{text}`"));
            }
        }
        let marked = self.render(&self.inputs(messages, thinking))?;
        let text = marked.text().trim_end();
        let ends_with = |marker: &str| {
            let start = text.len().saturating_sub(marker.len());
            text.ends_with(marker) && marked.is_written(&(start..text.len()))
        };
        let begins = match () {
            () if ends_with(Channels::OPEN) => Some(Channel::Reasoning),
            () if ends_with(Channels::CLOSE) || thinking == Some(false) => Some(Channel::Answer),
            () => None,
        };
        let begins_reasoning = begins == Some(Channel::Reasoning);
        let cannot = |why: &str| Err(Error::BadOption { name: "thinking".into(), why: why.into() });
        match thinking {
            Some(true) if !self.thinking && !begins_reasoning => {
                cannot("this model's template has no such switch")
            }
            Some(false) if begins_reasoning => cannot("this model always reasons"),
            _ => Ok(Prompt { marked, begins }),
        }
    }

    /// The tokens of a conversation, ready for the answer.
    ///
    /// Errors: those of [`Template::prompt`].
    pub fn tokens(&self, tokenizer: &Tokenizer, messages: &[Message]) -> Result<Vec<u32>> {
        self.encode(tokenizer, &self.prompt(tokenizer, messages, None)?)
    }

    /// The tokens of a prompt. A beginning-of-text token comes first if the model wants one and the
    /// template has not written it.
    pub fn encode(&self, tokenizer: &Tokenizer, prompt: &Prompt) -> Result<Vec<u32>> {
        Ok(self.begun(tokenizer, self.encode_after(tokenizer, &[], prompt, 0)?))
    }

    /// The tokens of a prompt with the text of an answer, which has no reasoning before it.
    pub fn encode_answered(
        &self,
        tokenizer: &Tokenizer,
        prompt: &Prompt,
        answer: &str,
    ) -> Result<Vec<u32>> {
        let mut parts: Vec<Part<'_>> = prompt.marked.parts(0).map(part).collect();
        if prompt.begins == Some(Channel::Reasoning) {
            parts.push(part((Channels::CUT, true)));
        }
        parts.push(part((answer, false)));
        Ok(self.begun(tokenizer, tokenizer.encode_parts(&parts)?))
    }

    /// The token that ends an answer: the one that the template writes after it, else the
    /// end-of-text token.
    pub fn end(&self, tokenizer: &Tokenizer) -> Option<u32> {
        let said = |role| Message { role, content: "a".into() };
        let messages = [said(Role::User), said(Role::Assistant)];
        let inputs = Inputs { add_generation_prompt: false, ..self.inputs(&messages, None) };
        let written = self.render(&inputs).ok().and_then(|marked| {
            let parts: Vec<Part<'_>> = marked.parts(0).map(part).collect();
            let ids = tokenizer.encode_parts(&parts).ok()?;
            ids.into_iter().rfind(|&id| tokenizer.is_stop(id))
        });
        written.or(tokenizer.eos())
    }

    /// Puts the beginning-of-text token before `ids`, if it has to be there and is not.
    fn begun(&self, tokenizer: &Tokenizer, ids: Vec<u32>) -> Vec<u32> {
        let wanted = self.frame.is_some_and(|frame| frame.needs_bos) || tokenizer.add_bos();
        let bos = tokenizer.bos().filter(|bos| wanted && ids.first() != Some(bos));
        bos.into_iter().chain(ids).collect()
    }

    /// The tokens of a prompt from byte `start` of its text on. `before` are the tokens of the text
    /// before `start`.
    pub fn encode_after(
        &self,
        tokenizer: &Tokenizer,
        before: &[u32],
        prompt: &Prompt,
        start: usize,
    ) -> Result<Vec<u32>> {
        let parts: Vec<Part<'_>> = prompt.marked.parts(start).map(part).collect();
        tokenizer.encode_parts_after(before, &parts)
    }
}

/// A part of a prompt for the tokenizer. Only what the template wrote may have special tokens.
fn part((text, written): (&str, bool)) -> Part<'_> {
    Part { text, special: if written { Special::All } else { Special::None } }
}

/// The error of a conversation with a model that has no template.
pub fn no_template() -> Error {
    let why = "it has no chat template, and no built-in one fits; prompt it with raw text, or give \
               the option `template`";
    Error::UnsupportedModel(why.into())
}

/// The text of a token that the metadata names: `bos` or `eos`.
fn token_text(metadata: &Metadata, name: &str) -> Result<Option<String>> {
    let Some(id) = metadata.integer(&format!("tokenizer.ggml.{name}_token_id"))? else {
        return Ok(None);
    };
    let tokens = metadata.strings("tokenizer.ggml.tokens")?;
    let text = tokens.and_then(|tokens| tokens.get(usize::try_from(id).ok()?));
    Ok(text.map(|text| String::from_utf8_lossy(text).into_owned()))
}

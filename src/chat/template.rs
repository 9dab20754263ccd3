//! A model's chat template, and the prompts it makes.

use std::borrow::Cow;
use std::str::FromStr;

use super::channels::{Channel, Channels};
use super::frames::{self, Frame};
use super::guard::guarded;
use super::literals;
use super::origin::{Marked, mark};
use super::render::{Budget, Inputs, check};
use super::tools::{self, CallFormat, Tools};
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
    /// How the model writes calls of tools.
    calls: &'static CallFormat,
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
        let calls = CallFormat::of(&source, reads("tools"));
        let (bos, eos) = (token_text(metadata, "bos")?, token_text(metadata, "eos")?);
        Ok(Some(Self { source, name, frame, thinking, calls, bos, eos }))
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

    /// The format in which the model writes calls of tools.
    pub fn calls(&self) -> &'static CallFormat {
        self.calls
    }

    /// The inputs of a conversation that is to be continued, and of the tools that the model may
    /// call.
    pub fn inputs(
        &self,
        messages: &[Message],
        tools: Option<&Tools>,
        thinking: Option<bool>,
    ) -> Inputs {
        let (messages, tools) = tools::messages(self.calls, messages, tools);
        Inputs {
            messages,
            tools,
            thinking,
            add_generation_prompt: true,
            bos: self.bos.clone(),
            eos: self.eos.clone(),
        }
    }

    /// Renders any inputs.
    ///
    /// Errors: `bad-template`; `bad-option` (`messages`) if the template refuses the conversation.
    pub fn render(&self, inputs: &Inputs) -> Result<Marked> {
        mark(&self.source, inputs, &mut Budget::new(inputs))
    }

    /// [`Template::prompt_with`] without tools.
    pub fn prompt(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        thinking: Option<bool>,
    ) -> Result<Prompt> {
        self.prompt_with(tokenizer, messages, None, thinking)
    }

    /// The prompt for the answer to the last of `messages`, in which the model may call `tools`.
    /// `thinking` says whether it is to reason first, if the template has a switch for that.
    ///
    /// Errors: those of [`Template::render`]; `bad-option` (`prompt`) if there is nothing to
    /// answer, (`thinking`) if the template has no such switch, and with the message if there is no
    /// call to a result; `unsupported-model` if the vocabulary lacks a special token that the
    /// built-in template needs.
    pub fn prompt_with(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        tools: Option<&Tools>,
        thinking: Option<bool>,
    ) -> Result<Prompt> {
        let inputs = self.inputs(messages, tools, thinking);
        let mut budget = Budget::new(&inputs);
        let prompt = self.unchecked(tokenizer, messages, &inputs, &mut budget)?;
        let begins_reasoning = prompt.begins == Some(Channel::Reasoning);
        let cannot = |why: &str| Err(Error::BadOption { name: "thinking".into(), why: why.into() });
        match thinking {
            Some(true) if !self.thinking && !begins_reasoning => {
                cannot("this model's template has no such switch")
            }
            Some(false) if begins_reasoning => cannot("this model always reasons"),
            _ => Ok(prompt),
        }
    }

    /// A conversation that ends with an answer, as the template writes it. Nothing is to be answered.
    ///
    /// Errors: those of [`Template::prompt`], but the last message may have no text.
    pub fn answered(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        tools: Option<&Tools>,
    ) -> Result<Prompt> {
        tools::check(messages)?;
        self.check_special(tokenizer)?;
        let inputs = Inputs { add_generation_prompt: false, ..self.inputs(messages, tools, None) };
        Ok(Prompt { marked: self.render(&inputs)?, begins: None })
    }

    /// The prompt for the rest of an answer that begins with the text `begun`. There is no
    /// reasoning before it: the template leaves it out if it can, else it ends at once.
    ///
    /// Errors: those of [`Template::prompt`] for `messages`; `bad-option`: (`prefix`) if `begun` is
    /// empty or the template writes no beginning of an answer, (`thinking`) if reasoning is wanted.
    pub fn prompt_begun(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        begun: &str,
        thinking: Option<bool>,
    ) -> Result<Prompt> {
        let bad =
            |name: &str, why: &str| Err(Error::BadOption { name: name.into(), why: why.into() });
        if begun.is_empty() {
            return bad("prefix", "an answer that is begun must not be empty");
        }
        if thinking == Some(true) {
            return bad("thinking", "an answer that is begun has no reasoning before it");
        }
        let thinking = self.thinking.then_some(false);
        let inputs = self.inputs(messages, None, thinking);
        let mut budget = Budget::new(&inputs);
        let mut prompt = self.unchecked(tokenizer, messages, &inputs, &mut budget)?;
        let text = prompt.marked.text();
        let Some(between) = self.before_answer(inputs, text, begun, &mut budget) else {
            let why = "this model's chat template does not write what comes before an answer";
            return bad("prefix", why);
        };
        prompt.marked.push(&between, true);
        if prompt.begins.replace(Channel::Answer) == Some(Channel::Reasoning) {
            prompt.marked.push(Channels::CUT, true);
        }
        prompt.marked.push(begun, false);
        Ok(prompt)
    }

    /// The white space between `prompt` and the answer `begun`; `None` if no answer can follow. One
    /// can if the template has written something for its sake, or if it writes a given answer
    /// right behind the same text.
    fn before_answer(
        &self,
        mut inputs: Inputs,
        prompt: &str,
        begun: &str,
        budget: &mut Budget,
    ) -> Option<String> {
        inputs.add_generation_prompt = false;
        let unanswered = budget.render(&self.source, &inputs);
        // A template may refuse a conversation without an answer.
        if unanswered.map_or(true, |unanswered| unanswered != prompt) {
            return Some(String::new());
        }
        inputs.messages.push(tools::said(Role::Assistant, begun));
        let answered = budget.render(&self.source, &inputs).ok()?;
        let rest = answered.strip_prefix(prompt)?;
        if rest.starts_with(begun) {
            return Some(String::new());
        }
        let said = rest.trim_start();
        said.starts_with(begun.trim()).then(|| rest[..rest.len() - said.len()].into())
    }

    /// The prompt for the answer to the last of `messages`, which `inputs` have too, however the
    /// template has taken their `thinking`.
    fn unchecked(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        inputs: &Inputs,
        budget: &mut Budget,
    ) -> Result<Prompt> {
        let empty = |why: &str| Err(Error::BadOption { name: "prompt".into(), why: why.into() });
        match messages.last() {
            None => return empty("the conversation is empty"),
            // A tool may give nothing back.
            Some(last) if last.role != Role::Tool && last.content.trim().is_empty() => {
                return empty("there is nothing to answer");
            }
            Some(_) => tools::check(messages)?,
        }
        self.check_special(tokenizer)?;
        let marked = mark(&self.source, inputs, budget)?;
        let text = marked.text().trim_end();
        let ends_with = |marker: &str| {
            let start = text.len().saturating_sub(marker.len());
            text.ends_with(marker) && marked.is_written(&(start..text.len()))
        };
        let begins = match () {
            () if ends_with(Channels::OPEN) => Some(Channel::Reasoning),
            () if ends_with(Channels::CLOSE) || inputs.thinking == Some(false) => {
                Some(Channel::Answer)
            }
            () => None,
        };
        Ok(Prompt { marked, begins })
    }

    /// Refuses a vocabulary that lacks a special token of the built-in template.
    fn check_special(&self, tokenizer: &Tokenizer) -> Result<()> {
        let Some(frame) = self.frame else { return Ok(()) };
        let lacks = |what: &str| {
            let why = format!("no {what} token, so no chat; prompt it with raw text");
            Err(Error::UnsupportedModel(why))
        };
        if frame.needs_bos && tokenizer.bos().is_none() {
            return lacks("beginning-of-text");
        }
        match frame.needs.iter().find(|text| tokenizer.special(text).is_none()) {
            Some(text) => lacks(&format!("`{text}`")),
            None => Ok(()),
        }
    }

    /// The tokens of a conversation, ready for the answer.
    ///
    /// Errors: those of [`Template::prompt`].
    pub fn tokens(&self, tokenizer: &Tokenizer, messages: &[Message]) -> Result<Vec<u32>> {
        self.encode(tokenizer, &self.prompt(tokenizer, messages, None)?)
    }

    /// The tokens of a conversation whose answer begins with the text `begun`, ready for its rest.
    ///
    /// Errors: those of [`Template::prompt_begun`].
    pub fn tokens_begun(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        begun: &str,
    ) -> Result<Vec<u32>> {
        self.encode(tokenizer, &self.prompt_begun(tokenizer, messages, begun, None)?)
    }

    /// The tokens of a prompt. A beginning-of-text token comes first if the model wants one and the
    /// template has not written it.
    pub fn encode(&self, tokenizer: &Tokenizer, prompt: &Prompt) -> Result<Vec<u32>> {
        Ok(self.begun(tokenizer, self.encode_after(tokenizer, &[], prompt, 0)?))
    }

    /// The tokens of a prompt up to its answer, which has no reasoning before it.
    pub fn encode_to_answer(&self, tokenizer: &Tokenizer, prompt: &Prompt) -> Result<Vec<u32>> {
        let mut parts: Vec<Part<'_>> = prompt.marked.parts(0).map(part).collect();
        if prompt.begins == Some(Channel::Reasoning) {
            parts.push(part((Channels::CUT, true)));
        }
        Ok(self.begun(tokenizer, tokenizer.encode_parts(&parts)?))
    }

    /// The token that ends an answer: the one that the template writes after it, else the
    /// end-of-text token.
    pub fn end(&self, tokenizer: &Tokenizer) -> Option<u32> {
        let messages = [Role::User, Role::Assistant].map(|role| Message::new(role, "a"));
        let inputs = Inputs { add_generation_prompt: false, ..self.inputs(&messages, None, None) };
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

//! The class behind the package's `BitNet`: one loaded model.
//!
//! A `JsValue` argument is checked here, so that a wrong one becomes a `bad-option`. wasm-bindgen
//! would convert it silently.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use js_sys::{Float32Array, Function, Uint8Array, Uint32Array};
use serde::Serialize;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{AbortSignal, Blob};

use super::abort::{aborted, or_abort};
use super::adapters;
use super::backend::with_events;
use super::blob::{BlobSource, Gathering};
use super::decide::{self, Asked};
use super::embed;
use super::error::bad_option;
use super::fields::{Fields, boolean, integer};
use super::grammar::{self, Grammar};
use super::holder::Holder;
use super::inspect;
use super::logprobs::Logprobs;
use super::options::{self, GenerateOptions, LoadOptions};
use super::progress::Reporter;
use super::prompt::{self, Input};
use super::remote;
use super::tools::Calling;
use crate::chat::{Template, ToolChoice, no_template};
use crate::error::Error;
use crate::session::{Calls, Channel, Constraints, FinishReason, Info, Prompt, Stats, Token};
use crate::source::Reader;
use crate::tokenizer::Tokenizer;

/// A loaded model.
///
/// Several calls of `generate` may run at a time, or one of `logits` or `profile`. The package's
/// TypeScript queues them. Other calls can be made meanwhile.
#[wasm_bindgen]
pub struct WasmModel {
    /// `None` after `dispose`. JavaScript may keep the class longer.
    model: RefCell<Option<Rc<Loaded>>>,
}

struct Loaded {
    holder: Holder,
    /// The waiting calls of `generate`.
    calls: Calls<'static>,
    adapters: adapters::Loaded,
    /// Whether a task is answering them.
    serving: Cell<bool>,
    /// Whether a task is compiling the kernels that the load has left for later.
    compiling: Cell<bool>,
    tokenizer: Rc<Tokenizer>,
    template: Option<Rc<Template>>,
    info: Info,
}

#[wasm_bindgen]
impl WasmModel {
    /// Loads a model. If `signal` aborts, fails with its reason.
    ///
    /// `on_lost` is called each time the model loses its device. The next call restores the model.
    pub async fn load(
        #[wasm_bindgen(unchecked_param_type = "Exclude<api.Source, URL> | Blob[]")] source: JsValue,
        #[wasm_bindgen(unchecked_param_type = "LoadOptions")] options: JsValue,
        #[wasm_bindgen(unchecked_param_type = "((progress: api.Progress) => void) | undefined")]
        on_progress: Option<Function>,
        #[wasm_bindgen(unchecked_param_type = "(loss: api.DeviceLoss) => void")] on_lost: Function,
        signal: Option<AbortSignal>,
    ) -> Result<WasmModel, JsValue> {
        let reporter = Reporter::new(on_progress);
        let holder = or_abort(signal.as_ref(), async {
            Holder::load(source, LoadOptions::parse(options)?, &reporter, on_lost).await
        })
        .await?;
        let mut lease = holder.lease().await?;
        let session = lease.session()?;
        let (tokenizer, info) = (Rc::clone(session.tokenizer()), session.info().clone());
        let template = session.template().ok().map(Rc::clone);
        drop(lease);
        let (calls, adapters, serving, compiling) = Default::default();
        let model = Rc::new(Loaded {
            holder,
            calls,
            adapters,
            serving,
            compiling,
            tokenizer,
            template,
            info,
        });
        model.compile_rest();
        Ok(Self { model: RefCell::new(Some(model)) })
    }

    /// The addresses of all files of the model whose first one is at `url`; none if it is in one
    /// file. `compared` says whether the load compares its hash.
    pub fn volumes(url: &str, compared: bool) -> Result<Vec<String>, JsValue> {
        Ok(remote::volumes(url, compared)?)
    }

    /// Facts about the model, and how it runs.
    #[wasm_bindgen(unchecked_return_type = "api.ModelInfo")]
    pub fn info(&self) -> Result<JsValue, JsValue> {
        to_js(&self.model()?.info)
    }

    /// Generates text, calls `on_token(id, text, meaning, logprobs)` for each token, and returns
    /// the statistics. The meaning is true for the answer, false for the reasoning before it, and
    /// an object for a part of a call. `logprobs` has the fields that the option of this name asks
    /// for.
    ///
    /// If `signal` aborts, the generation ends with the finish reason `abort`. The answer is held to
    /// `grammar`, or its calls are if there are tools.
    #[wasm_bindgen(unchecked_return_type = "api.Stats")]
    pub async fn generate(
        &self,
        #[wasm_bindgen(unchecked_param_type = "api.Input")] input: JsValue,
        #[wasm_bindgen(unchecked_param_type = "GenerateOptions")] options: JsValue,
        #[wasm_bindgen(
            unchecked_param_type = "(id: number | undefined, text: string, meaning: boolean | CallPart, logprobs?: Logprobs) => void"
        )]
        on_token: Function,
        signal: Option<AbortSignal>,
        grammar: Option<Grammar>,
    ) -> Result<JsValue, JsValue> {
        let model = self.model()?;
        let mut options = GenerateOptions::parse(options)?;
        let n_vocab = model.tokenizer.n_vocab();
        let option = if options.calling.is_some() { "tools" } else { "responseFormat" };
        let held = grammar.map(|grammar| grammar::constraints(grammar, option, n_vocab));
        options.session.constraints = match (held, &options.calling, &model.template) {
            (Some(held), Some(calling), Some(template)) if calling.choice == ToolChoice::Auto => {
                Some(Constraints::once_called(&model.tokenizer, template.calls(), held))
            }
            (held, ..) => held,
        };
        let prompt = Input::parse(&model.tokenizer, &input, options.raw, options.special)?
            .prompt(options.thinking, options.calling)?;
        let asked = prompt.clone();
        let (begun, thrown) = (Rc::new(Cell::new(false)), Rc::new(RefCell::new(None)));
        let tell = {
            let (model, signal) = (Rc::clone(&model), signal.clone());
            let (begun, thrown) = (Rc::clone(&begun), Rc::clone(&thrown));
            let stopped = {
                let model = Rc::clone(&model);
                move || {
                    model.holder.is_disposed() || signal.as_ref().is_some_and(AbortSignal::aborted)
                }
            };
            move |token: Token| {
                begun.set(true);
                let id = token.id.map_or(JsValue::UNDEFINED, JsValue::from);
                let meaning = match &token.call {
                    Some(part) => to_js(part),
                    None => Ok((token.channel != Channel::Reasoning).into()),
                };
                let logprobs = Logprobs::of(&model.tokenizer, &token).map_err(JsValue::from);
                let logprobs = logprobs.and_then(|logprobs| match logprobs {
                    Some(logprobs) => to_js(&logprobs),
                    None => Ok(JsValue::UNDEFINED),
                });
                let called = logprobs.and_then(|logprobs| {
                    let (text, meaning) = (token.text.into(), meaning?);
                    on_token.call4(&JsValue::NULL, &id, &text, &meaning, &logprobs)
                });
                match called {
                    Err(error) => {
                        *thrown.borrow_mut() = Some(error);
                        ControlFlow::Break(())
                    }
                    Ok(_) if stopped() => ControlFlow::Break(()),
                    Ok(_) => ControlFlow::Continue(()),
                }
            }
        };
        let answer = model.calls.push(prompt, options.session, Box::new(tell));
        model.serve();
        let answer = match &signal {
            None => answer.await,
            Some(signal) => match select(pin!(aborted(signal)), answer).await {
                Either::Right((stats, _)) => stats,
                Either::Left(((), answer)) if begun.get() => {
                    answer.stop();
                    answer.await
                }
                // The call waits, or its prompt is still being computed. That may take long, so the
                // call is dropped.
                Either::Left(_) => {
                    Ok(aborted_before_the_first_token(model.count(&asked).unwrap_or_default()))
                }
            },
        };
        model.holder.check()?;
        let stats = answer?;
        match thrown.take() {
            Some(thrown) => Err(thrown),
            None => to_js(&stats),
        }
    }

    /// The tokens of a text, without a begin-of-text token. `special` says that it may contain
    /// special tokens. Otherwise all of it is text.
    pub fn tokenize(
        &self,
        #[wasm_bindgen(unchecked_param_type = "string")] text: JsValue,
        #[wasm_bindgen(unchecked_param_type = "boolean")] special: JsValue,
    ) -> Result<Uint32Array, JsValue> {
        let model = self.model()?;
        let text = text.as_string().ok_or_else(|| bad_option("text", "must be a string"))?;
        let ids = if boolean("special", &special)? {
            model.tokenizer.encode_with_special(&text)?
        } else {
            model.tokenizer.encode_text(&text)?
        };
        Ok(Uint32Array::from(ids.as_slice()))
    }

    /// The format of calls of the tools in `options`, for the module of grammars; `None` if these
    /// give the model no tools. Other options than those that concern tools are not looked at.
    #[wasm_bindgen(js_name = callFormat)]
    pub fn call_format(
        &self,
        #[wasm_bindgen(unchecked_param_type = "GenerateOptions")] options: JsValue,
    ) -> Result<Option<String>, JsValue> {
        let model = self.model()?;
        let Some(calling) = Calling::parse(&mut Fields::new("options", options)?)? else {
            return Ok(None);
        };
        let template = model.template()?;
        Ok(Some(calling.grammar(template.calls())?))
    }

    /// The vocabulary, as the module of grammars reads it.
    pub fn vocabulary(&self) -> Result<Uint8Array, JsValue> {
        Ok(Uint8Array::from(self.model()?.tokenizer.packed().as_slice()))
    }

    /// The tokens of a part of an answer, for the module of grammars. Empty if it cannot be encoded.
    #[wasm_bindgen(js_name = encodeWithin)]
    pub fn encode_within(&self, text: &str) -> Result<Uint32Array, JsValue> {
        let ids = self.model()?.tokenizer.encode_within(text).unwrap_or_default();
        Ok(Uint32Array::from(ids.as_slice()))
    }

    /// The text of tokens.
    pub fn detokenize(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Uint32Array")] ids: JsValue,
    ) -> Result<String, JsValue> {
        let model = self.model()?;
        Ok(model.tokenizer.decode(&prompt::ids(&ids, model.info.vocab_size)?)?)
    }

    /// The number of tokens of a text, or of a conversation in the model's template, with the tools
    /// in `options`.
    #[wasm_bindgen(js_name = countTokens)]
    pub fn count_tokens(
        &self,
        #[wasm_bindgen(unchecked_param_type = "string | readonly api.Message[]")] input: JsValue,
        #[wasm_bindgen(unchecked_param_type = "CountOptions")] options: JsValue,
    ) -> Result<u32, JsValue> {
        let model = self.model()?;
        let calling = options::counting(options)?;
        let input = match input.as_string() {
            Some(text) => Input::Ids(model.tokenizer.encode_text(&text)?),
            None => Input::messages_or_ids(&model.tokenizer, "input", &input)?,
        };
        Ok(model.count(&input.prompt(None, calling)?)? as u32)
    }

    /// The logits after the last of `ids`, one for each token of the vocabulary.
    pub async fn logits(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Uint32Array")] ids: JsValue,
    ) -> Result<Float32Array, JsValue> {
        let model = self.model()?;
        let ids = prompt::ids(&ids, model.info.vocab_size)?;
        let mut lease = model.holder.lease().await?;
        let logits = with_events(lease.session()?.logits(&ids)).await?;
        drop(lease);
        model.holder.check()?;
        Ok(Float32Array::from(logits.as_slice()))
    }

    /// Decides questions about a text. If `signal` aborts, fails with its reason.
    #[wasm_bindgen(unchecked_return_type = "api.Decisions")]
    pub async fn decide(
        &self,
        #[wasm_bindgen(unchecked_param_type = "string")] text: JsValue,
        #[wasm_bindgen(unchecked_param_type = "DecideOptions")] options: JsValue,
        signal: Option<AbortSignal>,
    ) -> Result<JsValue, JsValue> {
        let model = self.model()?;
        let text = text.as_string().ok_or_else(|| bad_option("text", "must be a string"))?;
        let Asked { questions, options } = Asked::parse(options)?;
        let found = or_abort(signal.as_ref(), async {
            let mut lease = model.holder.lease().await?;
            with_events(lease.session()?.decide(&text, &questions, &options)).await
        })
        .await?;
        model.holder.check()?;
        decide::result(&found)
    }

    /// The vectors of texts. `on_progress` is called with the number of texts that are done. If `signal`
    /// aborts, fails with its reason.
    #[wasm_bindgen(unchecked_return_type = "Embedded")]
    pub async fn embed(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly (string | Uint32Array)[]")] texts: JsValue,
        #[wasm_bindgen(unchecked_param_type = "EmbedOptions")] options: JsValue,
        #[wasm_bindgen(unchecked_param_type = "(done: number) => void")] on_progress: Function,
        signal: Option<AbortSignal>,
    ) -> Result<JsValue, JsValue> {
        let model = self.model()?;
        let (texts, options) = (embed::texts(&texts)?, embed::options(options)?);
        // The caller's function catches what it throws.
        let mut progress = |done: usize| {
            let _ = on_progress.call1(&JsValue::NULL, &(done as u32).into());
        };
        let found = or_abort(signal.as_ref(), async {
            let mut lease = model.holder.lease().await?;
            let work = with_events(lease.session()?.embed(&texts, &options, &mut progress));
            // Otherwise `dispose` would free nothing until these texts were computed.
            match select(pin!(model.holder.disposed()), pin!(work)).await {
                Either::Left(_) => Err(Error::Disposed),
                Either::Right((found, _)) => found,
            }
        })
        .await?;
        model.holder.check()?;
        embed::result(&found)
    }

    /// Reads what the model computes for a prompt: a text as it is, a conversation or tokens. `on_progress` is called with
    /// the share that is done. If `signal` aborts, fails with its reason.
    #[wasm_bindgen(unchecked_return_type = "api.Inspection")]
    pub async fn inspect(
        &self,
        #[wasm_bindgen(unchecked_param_type = "api.Input")] input: JsValue,
        #[wasm_bindgen(unchecked_param_type = "InspectOptions")] options: JsValue,
        #[wasm_bindgen(unchecked_param_type = "(share: number) => void")] on_progress: Function,
        signal: Option<AbortSignal>,
    ) -> Result<JsValue, JsValue> {
        let model = self.model()?;
        let options = inspect::options(options)?;
        let input = match input.as_string() {
            Some(text) => Input::Ids(prompt::raw_text(&model.tokenizer, &text, false)?),
            None => Input::messages_or_ids(&model.tokenizer, "prompt", &input)?,
        };
        let ids = input.prompt(None, None)?.ids(model.template(), &model.tokenizer)?;
        // The caller's function catches what it throws.
        let mut progress = |share: f64| {
            let _ = on_progress.call1(&JsValue::NULL, &share.into());
        };
        let found = or_abort(signal.as_ref(), async {
            let mut lease = model.holder.lease().await?;
            let work = with_events(lease.session()?.inspect(&ids, &options, &mut progress));
            match select(pin!(model.holder.disposed()), pin!(work)).await {
                Either::Left(_) => Err(Error::Disposed),
                Either::Right((found, _)) => found,
            }
        })
        .await?;
        model.holder.check()?;
        inspect::result(&model.tokenizer, &ids, &options, &found)
    }

    /// Reads an adapter for this model. Gives its number and facts about it.
    #[wasm_bindgen(js_name = loadAdapter, unchecked_return_type = "AdapterFacts")]
    pub async fn load_adapter(&self, file: Blob) -> Result<JsValue, JsValue> {
        let model = self.model()?;
        let mut reader = Reader::new(BlobSource::new(file));
        let mut lease = model.holder.lease().await?;
        let adapter = with_events(lease.session()?.load_adapter(&mut reader)).await?;
        drop(lease);
        model.holder.check()?;
        to_js(&model.adapters.keep(adapter))
    }

    /// Applies the adapters of an array of `{ id, scale }`, and no others. Gives a hash of them and their scales,
    /// which is empty without any.
    #[wasm_bindgen(js_name = setAdapters)]
    pub async fn set_adapters(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly { id: number, scale: number }[]")]
        chosen: JsValue,
    ) -> Result<String, JsValue> {
        let model = self.model()?;
        let chosen = model.adapters.chosen(&chosen)?;
        let hash = with_events(model.holder.set_adapters(&chosen)).await?;
        model.holder.check()?;
        Ok(hash.map_or_else(String::new, |hash| format!("{hash:016x}")))
    }

    /// Forgets an adapter.
    #[wasm_bindgen(js_name = freeAdapter)]
    pub fn free_adapter(&self, id: u32) -> Result<(), JsValue> {
        self.model()?.adapters.free(id);
        Ok(())
    }

    /// The conversation of `messages` with its keys and values from the KV cache, and `note`, as
    /// bytes.
    #[wasm_bindgen(js_name = saveChat)]
    pub async fn save_chat(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly api.Message[]")] messages: JsValue,
        note: String,
    ) -> Result<Blob, JsValue> {
        let model = self.model()?;
        let (messages, _) = prompt::messages(&messages)?;
        let mut saved = Gathering::default();
        let mut write = |bytes: &[u8]| saved.push(&Uint8Array::from(bytes));
        let mut lease = model.holder.lease().await?;
        with_events(lease.session()?.save(&messages, &note, &mut write)).await?;
        drop(lease);
        model.holder.check()?;
        Ok(saved.finish()?)
    }

    /// Makes the KV cache hold a conversation that was saved. Gives its note.
    #[wasm_bindgen(js_name = restoreChat)]
    pub async fn restore_chat(&self, saved: Blob) -> Result<String, JsValue> {
        let model = self.model()?;
        let mut source = BlobSource::new(saved);
        let mut lease = model.holder.lease().await?;
        let note = with_events(lease.session()?.restore(&mut source)).await?;
        drop(lease);
        model.holder.check()?;
        Ok(note)
    }

    /// The time of each kernel in one step of `tokens` tokens after `position` tokens, and the
    /// memory's best rate. `options` say how its token is chosen.
    #[wasm_bindgen(unchecked_return_type = "api.Profile")]
    pub async fn profile(
        &self,
        #[wasm_bindgen(unchecked_param_type = "number")] position: JsValue,
        #[wasm_bindgen(unchecked_param_type = "number")] tokens: JsValue,
        #[wasm_bindgen(unchecked_param_type = "api.ProfileOptions")] options: JsValue,
    ) -> Result<JsValue, JsValue> {
        let model = self.model()?;
        let position = integer("position", &position)? as usize;
        let tokens = integer("tokens", &tokens)? as usize;
        let choosing = options::profile(options)?;
        let profile =
            model.holder.lease().await?.session()?.profile(position, tokens, &choosing).await?;
        model.holder.check()?;
        to_js(&profile)
    }

    /// Frees the model's memory: now, or when the running call has ended.
    pub fn dispose(&self) {
        if let Some(model) = self.model.take() {
            model.holder.dispose();
        }
    }
}

impl WasmModel {
    fn model(&self) -> Result<Rc<Loaded>, Error> {
        self.model.borrow().clone().ok_or(Error::Disposed)
    }
}

impl Loaded {
    /// Answers the waiting calls, unless a task is doing that. If the device was lost, the model is
    /// restored first, which may take as long as loading.
    fn serve(self: &Rc<Self>) {
        if self.serving.replace(true) {
            return;
        }
        let model = Rc::clone(self);
        spawn_local(async move {
            let calls = &model.calls;
            while !calls.is_empty() {
                match model.holder.lease().await {
                    // The running calls get the error.
                    Ok(mut lease) => match lease.session() {
                        // Without `select`, `dispose` would free nothing until the prompts in work
                        // were computed.
                        Ok(session) => {
                            let serving = pin!(with_events(session.serve(calls)));
                            drop(select(pin!(model.holder.disposed()), serving).await);
                        }
                        Err(error) => calls.fail(error),
                    },
                    Err(error) => calls.fail(error),
                }
            }
            model.serving.set(false);
            // The model may have been restored, which leaves kernels for later as a load does.
            model.compile_rest();
        });
    }

    /// Compiles the kernels that the load has left for later, unless a task is doing that.
    fn compile_rest(self: &Rc<Self>) {
        if self.compiling.replace(true) {
            return;
        }
        let model = Rc::clone(self);
        spawn_local(async move {
            model.holder.compile_rest().await;
            model.compiling.set(false);
        });
    }

    /// The chat template. Errors: those of [`Session::template`](crate::session::Session::template).
    fn template(&self) -> Result<&Template, Error> {
        let missing = || match self.info.embeds {
            true => Error::EmbeddingModel { name: self.info.name.clone() },
            false => no_template(),
        };
        self.template.as_deref().ok_or_else(missing)
    }

    fn count(&self, prompt: &Prompt) -> Result<usize, Error> {
        prompt.count(self.template(), &self.tokenizer)
    }
}

fn to_js(value: &impl Serialize) -> Result<JsValue, JsValue> {
    Ok(serde_wasm_bindgen::to_value(value)?)
}

fn aborted_before_the_first_token(prompt_tokens: usize) -> Stats {
    Stats { prompt_tokens, finish_reason: FinishReason::Abort, ..Stats::default() }
}

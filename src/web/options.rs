//! Options from JavaScript. An unknown name or a value that is not allowed is a `bad-option`.

use std::rc::Rc;

use js_sys::{Array, Object};
use wasm_bindgen::prelude::*;

use super::backend::Wishes;
use super::error::bad_option;
use super::fields::Fields;
use super::tools::Calling;
use crate::compute::{Choosing, EngineOptions, KvType};
use crate::error::Result;
use crate::model::Pooling;
use crate::sampling::{LogitBias, MAX_BIAS, MAX_LOGPROBS, Sampling};
use crate::session::{self, LmHead};
use crate::tokenizer::Rules;
use crate::transfer::Integrity;

/// The default of `stallTimeout`. It is longer than a server takes to find a file, and shorter than
/// a visitor is willing to wait.
const STALL_TIMEOUT: f64 = 15_000.0;

/// The most threads of the CPU.
const MAX_THREADS: u64 = 1024;

/// The largest integer that JavaScript can tell from its neighbours.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Where the bytes of a URL may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheMode {
    /// From this device if it is stored, else from the network. Then it is stored.
    Use,
    /// Like `Use`, but the server is asked first. A stored file is used only if the server has no
    /// other version.
    Revalidate,
    /// From the network. The download replaces the stored file.
    Refresh,
    /// From this device only.
    Only,
    /// From the network. The download is not stored.
    Off,
}

/// The names of poolings.
pub(super) const POOLINGS: [(&str, Pooling); 3] =
    [("mean", Pooling::Mean), ("cls", Pooling::Cls), ("last", Pooling::Last)];

/// The options of `BitNet.load` that the crate handles.
pub(super) struct LoadOptions {
    pub(super) cache: CacheMode,
    pub(super) integrity: Option<Integrity>,
    /// Milliseconds without a byte after which a request is repeated.
    pub(super) stall_timeout: f64,
    pub(super) wishes: Wishes,
    pub(super) session: session::LoadOptions,
}

impl LoadOptions {
    pub(super) fn parse(value: JsValue) -> Result<Self> {
        let mut fields = Fields::new("options", value)?;
        let cache = [
            ("use", CacheMode::Use),
            ("revalidate", CacheMode::Revalidate),
            ("refresh", CacheMode::Refresh),
            ("only", CacheMode::Only),
            ("off", CacheMode::Off),
        ];
        let lm_heads = [("auto", LmHead::Auto), ("f16", LmHead::F16), ("int8", LmHead::Int8)];
        let strict = fields.bool("strict")?.unwrap_or(false);
        let milliseconds = "a number of milliseconds from 1 to 1000000000";
        let options = Self {
            stall_timeout: fields
                .number("stallTimeout", 1.0..=1e9, milliseconds)?
                .unwrap_or(STALL_TIMEOUT),
            cache: fields.one_of("cache", &cache)?.unwrap_or(CacheMode::Use),
            integrity: match fields.string("integrity")? {
                Some(text) => Some(text.parse()?),
                None => None,
            },
            wishes: Wishes {
                threads: fields.integer("threads", 1..=MAX_THREADS)?.map(|n| n as usize),
                strict,
                ..gpu(fields.value("gpu")?)?
            },
            session: session::LoadOptions {
                engine: EngineOptions {
                    context: fields.u32("context", 1)?.map(|n| n as usize),
                    kv: fields.one_of("kv", &KvType::ALL)?.unwrap_or_default(),
                    lm_head: fields.one_of("lmHead", &lm_heads)?.unwrap_or(LmHead::Auto),
                    i2s_arm: fields
                        .one_of("i2sLayout", &[("x86", false), ("arm", true)])?
                        .unwrap_or(false),
                    float_activations: fields
                        .one_of("activations", &[("auto", false), ("f32", true)])?
                        .unwrap_or(false),
                    deterministic: fields.bool("deterministic")?.unwrap_or(false),
                },
                tokenizer: fields
                    .one_of("tokenizer", &[("strict", Rules::Strict), ("closest", Rules::Closest)])?
                    .unwrap_or_default(),
                // Every text is a valid choice, so parsing cannot fail.
                template: fields
                    .string("template")?
                    .and_then(|text| text.parse().ok())
                    .unwrap_or_default(),
                pooling: fields.one_of("pooling", &POOLINGS)?,
                strict,
            },
        };
        fields.finish()?;
        Ok(options)
    }
}

fn gpu(value: JsValue) -> Result<Wishes> {
    let mut fields = Fields::new("gpu", value)?;
    let preferences = [("low-power", "low-power"), ("high-performance", "high-performance")];
    let mut limits = Fields::new("gpu.limits", fields.value("limits")?)?;
    let mut features = Fields::new("gpu.features", fields.value("features")?)?;
    let wishes = Wishes {
        power_preference: fields.one_of("powerPreference", &preferences)?,
        max_bytes: fields.integer("maxBytes", 0..=MAX_SAFE_INTEGER)?,
        max_storage_buffer_binding_size: limits
            .integer("maxStorageBufferBindingSize", 0..=MAX_SAFE_INTEGER)?,
        max_buffer_size: limits.integer("maxBufferSize", 0..=MAX_SAFE_INTEGER)?,
        subgroups: features.bool("subgroups")?,
        software: features.bool("software")?,
        packed_dot: features.bool("packedDot")?,
        matrix_units: features.bool("matrixUnits")?,
        ..Wishes::default()
    };
    limits.finish()?;
    features.finish()?;
    fields.finish()?;
    Ok(wishes)
}

/// The options of `generate` that the crate handles.
pub(super) struct GenerateOptions {
    pub(super) session: session::GenerateOptions,
    /// Whether the model reasons first; with `None`, its template decides.
    pub(super) thinking: Option<bool>,
    /// The tools that the model may call.
    pub(super) calling: Option<Calling>,
    /// Whether a string is the prompt itself, and not a user's message.
    pub(super) raw: bool,
    /// Whether a raw string may contain special tokens.
    pub(super) special: bool,
}

impl GenerateOptions {
    pub(super) fn parse(value: JsValue) -> Result<Self> {
        let mut fields = Fields::new("options", value)?;
        let Choosing { sampling, bias, logprobs, .. } = choosing(&mut fields)?;
        let options = Self {
            session: session::GenerateOptions {
                max_tokens: fields.u32("maxTokens", 1)?.map(|n| n as usize),
                sampling,
                logit_bias: bias,
                logprobs,
                stop: fields.strings("stop")?.unwrap_or_default(),
                prompt_lookup: fields.bool("promptLookup")?,
                max_thinking_tokens: fields.u32("maxThinkingTokens", 1)?.map(|n| n as usize),
                constraints: None,
            },
            thinking: fields.bool("thinking")?,
            calling: Calling::parse(&mut fields)?,
            raw: fields.bool("raw")?.unwrap_or(false),
            special: fields.bool("special")?.unwrap_or(false),
        };
        if options.session.stop.iter().any(String::is_empty) {
            return Err(bad_option("stop", "must not contain an empty string"));
        }
        if options.special && !options.raw {
            return Err(bad_option(
                "special",
                "needs `raw: true`: in a chat, no text becomes a special token",
            ));
        }
        fields.finish()?;
        Ok(options)
    }
}

/// The options of `countTokens`.
pub(super) fn counting(value: JsValue) -> Result<Option<Calling>> {
    let mut fields = Fields::new("options", value)?;
    let calling = Calling::parse(&mut fields)?;
    fields.finish()?;
    Ok(calling)
}

/// The options of `profile`.
pub(super) fn profile(value: JsValue) -> Result<Choosing> {
    let mut fields = Fields::new("options", value)?;
    let choosing = choosing(&mut fields)?;
    fields.finish()?;
    Ok(choosing)
}

/// The options that decide how tokens are chosen.
fn choosing(fields: &mut Fields) -> Result<Choosing> {
    let default = Sampling::default();
    let max_f32 = f64::from(f32::MAX);
    let two = "a number from -2 to 2";
    let sampling = Sampling {
        temperature: fields
            .number("temperature", 0.0..=f64::MAX, "a number, 0 or more")?
            .map_or(default.temperature, |value| value.min(max_f32) as f32),
        top_k: fields.u32("topK", 0)?.unwrap_or(default.top_k),
        top_p: fields
            .number("topP", f64::MIN_POSITIVE..=1.0, "a number above 0 and at most 1")?
            .map_or(default.top_p, |value| (value as f32).max(f32::MIN_POSITIVE)),
        min_p: fields
            .number("minP", 0.0..=1.0, "a number from 0 to 1")?
            .map_or(default.min_p, |value| value as f32),
        // Without the option `seed`, every call draws another text.
        seed: fields
            .u32("seed", 0)?
            .unwrap_or_else(|| (js_sys::Math::random() * f64::from(u32::MAX)) as u32),
        repeat_penalty: fields
            .number("repeatPenalty", f64::MIN_POSITIVE..=f64::MAX, "a number above 0")?
            .map_or(default.repeat_penalty, |value| {
                value.clamp(f64::from(f32::MIN_POSITIVE), max_f32) as f32
            }),
        presence_penalty: fields
            .number("presencePenalty", -2.0..=2.0, two)?
            .map_or(default.presence_penalty, |value| value as f32),
        frequency_penalty: fields
            .number("frequencyPenalty", -2.0..=2.0, two)?
            .map_or(default.frequency_penalty, |value| value as f32),
    };
    sampling.check()?;
    let bias = Rc::new(logit_bias(fields)?);
    let logprobs = fields.integer("logprobs", 0..=MAX_LOGPROBS as u64)?.map(|n| n as usize);
    Ok(Choosing { sampling, bias, logprobs, masked: false })
}

/// The option `logitBias`: an object with a number for each id.
fn logit_bias(fields: &mut Fields) -> Result<LogitBias> {
    let object = fields.value("logitBias")?;
    let why = format!(
        "must be an object with a number from -{MAX_BIAS} to {MAX_BIAS} for each id of a token"
    );
    let range = -f64::from(MAX_BIAS)..=f64::from(MAX_BIAS);
    let entries = match object {
        object if object.is_undefined() => return Ok(LogitBias::default()),
        object if object.is_object() && !Array::is_array(&object) => {
            Object::entries(object.unchecked_ref::<Object>())
        }
        _ => return Err(bad_option("logitBias", why)),
    };
    let bias = |entry: JsValue| {
        let entry = Array::from(&entry);
        let id = entry.get(0).as_string()?.parse().ok()?;
        Some((id, entry.get(1).as_f64().filter(|bias| range.contains(bias))? as f32))
    };
    let biases: Option<LogitBias> = entries.iter().map(bias).collect();
    biases.ok_or_else(|| bad_option("logitBias", why))
}

//! Options from JavaScript: every name known, every value of its type, or `bad-option`.

use js_sys::{Array, Object, Reflect};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::prelude::*;

use super::error::{bad_option, text};
use super::integrity::Integrity;
use crate::error::Result;
use crate::gpu::{FeatureCaps, GpuOptions, LimitCaps};
use crate::sampling::Sampling;
use crate::session::{self, LmHead};

/// Longer than a server takes to find a file, shorter than a visitor takes to give up.
const STALL_TIMEOUT: f64 = 15_000.0;

/// Where a URL may be loaded from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CacheMode {
    /// From this device if it is stored here, else from the network, and stored.
    #[default]
    Use,
    /// From the network, and stored anew.
    Refresh,
    /// From this device or not at all.
    Only,
    /// From the network, and not stored.
    Off,
}

/// The options of `BitNet.load` that are Rust's.
pub(super) struct LoadOptions {
    pub(super) cache: CacheMode,
    pub(super) integrity: Option<Integrity>,
    /// Milliseconds without a byte after which a request is made again.
    pub(super) patience: f64,
    pub(super) gpu: GpuOptions,
    pub(super) session: session::LoadOptions,
}

impl LoadOptions {
    pub(super) fn parse(value: JsValue) -> Result<Self> {
        let mut object = Fields::new("options", value)?;
        let context: Option<u32> = object.take("context")?;
        if context == Some(0) {
            return Err(bad_option("context", "must be 1 or more"));
        }
        let patience = object.take("stallTimeout")?.unwrap_or(STALL_TIMEOUT);
        if !(1.0..=1e9).contains(&patience) {
            return Err(bad_option("stallTimeout", "must be milliseconds, at least 1"));
        }
        let options = Self {
            patience,
            cache: object.take("cache")?.unwrap_or_default(),
            integrity: match object.take::<String>("integrity")? {
                Some(text) => Some(text.parse()?),
                None => None,
            },
            gpu: gpu(object.value("gpu"))?,
            session: session::LoadOptions {
                context: context.map(|n| n as usize),
                kv_f32: object.one_of("kv", &["f16", "f32"])? == 1,
                head: match object.one_of("head", &["auto", "f16", "int8"])? {
                    1 => LmHead::F16,
                    2 => LmHead::Int8,
                    _ => LmHead::Auto,
                },
                i2s_arm: object.one_of("i2sLayout", &["x86", "arm"])? == 1,
            },
        };
        object.finish()?;
        Ok(options)
    }
}

fn gpu(value: JsValue) -> Result<GpuOptions> {
    let mut object = Fields::new("gpu", value)?;
    let preferences = ["", "low-power", "high-performance"];
    let preference = object.one_of("powerPreference", &preferences)?;
    let mut limits = Fields::new("gpu.limits", object.value("limits"))?;
    let mut features = Fields::new("gpu.features", object.value("features"))?;
    let options = GpuOptions {
        power_preference: (preference > 0).then(|| preferences[preference].into()),
        limits: LimitCaps {
            max_storage_buffer_binding_size: limits.take("maxStorageBufferBindingSize")?,
            max_buffer_size: limits.take("maxBufferSize")?,
        },
        features: FeatureCaps {
            subgroups: features.take("subgroups")?,
            software: features.take("software")?,
            packed_dot: features.take("packedDot")?,
        },
    };
    limits.finish()?;
    features.finish()?;
    object.finish()?;
    Ok(options)
}

/// The options of `generate` that are Rust's.
pub(super) struct GenerateOptions {
    pub(super) session: session::GenerateOptions,
    /// A string is the prompt itself, not a user's turn.
    pub(super) raw: bool,
    /// Special tokens are recognised in a raw string.
    pub(super) special: bool,
}

impl GenerateOptions {
    pub(super) fn parse(value: JsValue) -> Result<Self> {
        let mut object = Fields::new("options", value)?;
        for name in ["repeatPenalty", "presencePenalty", "frequencyPenalty", "logprobs"] {
            if !object.value(name).is_undefined() {
                return Err(bad_option(name, "not supported yet"));
            }
        }
        let default = Sampling::default();
        let temperature = object.take("temperature")?.unwrap_or(default.temperature);
        let seed: Option<u32> = object.take("seed")?;
        let sampling = Sampling {
            temperature,
            top_k: object.take("topK")?.unwrap_or(default.top_k),
            top_p: object.take("topP")?.unwrap_or(default.top_p),
            min_p: object.take("minP")?.unwrap_or(default.min_p),
            // Who draws and names no seed wants another text each time.
            seed: seed.unwrap_or_else(|| (js_sys::Math::random() * f64::from(u32::MAX)) as u32),
        };
        sampling.check()?;
        let max_tokens: Option<u32> = object.take("maxTokens")?;
        if max_tokens == Some(0) {
            return Err(bad_option("maxTokens", "must be 1 or more"));
        }
        let stop: Vec<String> = object.take("stop")?.unwrap_or_default();
        if stop.iter().any(String::is_empty) {
            return Err(bad_option("stop", "an empty text stops everything"));
        }
        let options = Self {
            session: session::GenerateOptions {
                max_tokens: max_tokens.map(|n| n as usize),
                sampling,
                stop,
                prompt_lookup: object.take("promptLookup")?,
            },
            raw: object.take("raw")?.unwrap_or(false),
            special: object.take("special")?.unwrap_or(false),
        };
        if options.special && !options.raw {
            return Err(bad_option(
                "special",
                "needs `raw: true`: a chat's text has no special tokens",
            ));
        }
        object.finish()?;
        Ok(options)
    }
}

/// The fields of a JavaScript object, each taken by name; what is left over is an error.
///
/// serde-wasm-bindgen cannot do this alone: it asks an object for the fields it knows, so that
/// `deny_unknown_fields` sees nothing, and its errors do not name the field.
struct Fields {
    path: &'static str,
    value: JsValue,
    known: Vec<&'static str>,
}

impl Fields {
    fn new(path: &'static str, value: JsValue) -> Result<Self> {
        if value.is_undefined() || (value.is_object() && !Array::is_array(&value)) {
            Ok(Self { path, value, known: Vec::new() })
        } else {
            Err(bad_option(path, "must be an object"))
        }
    }

    /// The field as it is; `undefined` if it is absent.
    fn value(&mut self, name: &'static str) -> JsValue {
        self.known.push(name);
        if self.value.is_undefined() {
            return JsValue::UNDEFINED;
        }
        Reflect::get(&self.value, &name.into()).unwrap_or(JsValue::UNDEFINED)
    }

    fn take<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<Option<T>> {
        let value = self.value(name);
        if value.is_undefined() {
            return Ok(None);
        }
        serde_wasm_bindgen::from_value(value)
            .map(Some)
            .map_err(|error| bad_option(&self.name(name), text(&error.into())))
    }

    /// The index of a string among `names`; 0 if the field is absent.
    fn one_of(&mut self, name: &'static str, names: &[&str]) -> Result<usize> {
        let value = self.value(name);
        if value.is_undefined() {
            return Ok(0);
        }
        let index = value.as_string().and_then(|text| names.iter().position(|name| *name == text));
        index.filter(|index| !names[*index].is_empty()).ok_or_else(|| {
            let names: Vec<_> = names.iter().filter(|name| !name.is_empty()).collect();
            bad_option(&self.name(name), format!("must be one of {names:?}"))
        })
    }

    fn finish(self) -> Result<()> {
        if self.value.is_undefined() {
            return Ok(());
        }
        let keys = Object::keys(self.value.unchecked_ref::<Object>());
        match keys.iter().find_map(|key| {
            let key = key.as_string()?;
            (!self.known.contains(&key.as_str())).then_some(key)
        }) {
            Some(key) => Err(bad_option(&self.name(&key), "no such option")),
            None => Ok(()),
        }
    }

    fn name(&self, name: &str) -> String {
        if self.path == "options" { name.into() } else { format!("{}.{name}", self.path) }
    }
}

//! Reads `config.json`: the architecture, its sizes, and how its weights are stored.

use serde_json::{Map, Value as Json, json};

use tritloom::gguf::Value;
use tritloom::model::{Architecture, Config};
use tritloom::{Error, Result};

use super::object::Object;
use super::safetensors::short;

/// A class of models in Hugging Face's transformers, or in a folder's own code.
struct Class {
    /// The first of `architectures` in config.json.
    name: &'static str,
    /// Its architectures in GGUF, by `hidden_act`.
    architectures: &'static [(&'static str, &'static str)],
    /// Whether its weights are masters even if no `quantization_config` says so. Masters are floats
    /// that the model rounds to ternary in each pass.
    masters: bool,
    /// Whether old files leave out keys whose default has never changed.
    old: bool,
    /// Whether heads are as wide as `hidden_size / num_attention_heads` if the file does not say
    /// it.
    plain_heads: bool,
    /// The value of `tie_word_embeddings` if the file does not say it.
    tied: Option<bool>,
    /// Whether the file has factors for the embedding, the residual stream and the logits.
    scales: bool,
    /// The kinds of `rope_scaling` that it may have.
    ropes: &'static [&'static str],
    /// Keys that change nothing.
    harmless: &'static [&'static str],
}

const LLAMA: Class = Class {
    name: "LlamaForCausalLM",
    architectures: &[("silu", "llama")],
    masters: false,
    old: true,
    plain_heads: true,
    tied: Some(false),
    scales: false,
    ropes: &["default", "linear", "yarn", "llama3"],
    harmless: &[],
};

const CLASSES: &[Class] = &[
    // BitNet 2B-4T.
    Class {
        name: "BitNetForCausalLM",
        architectures: &[("relu2", "bitnet-b1.58"), ("silu", "bitnet")],
        old: false,
        ropes: &["default", "linear", "yarn"],
        ..LLAMA
    },
    // 1bitLLM's reproductions, with code of their own.
    Class {
        name: "BitnetForCausalLM",
        architectures: &[("silu", "bitnet")],
        masters: true,
        ropes: &["default", "linear"],
        ..LLAMA
    },
    LLAMA,
    Class {
        name: "Qwen3ForCausalLM",
        architectures: &[("silu", "qwen3")],
        old: false,
        plain_heads: false,
        ropes: &["default", "linear", "yarn"],
        // These keys mean nothing while `use_sliding_window` is false.
        harmless: &["sliding_window", "max_window_layers"],
        ..LLAMA
    },
    // The same without an LM head, as embedding models are.
    Class {
        name: "Qwen3Model",
        architectures: &[("silu", "qwen3")],
        old: false,
        plain_heads: false,
        tied: Some(true),
        ropes: &["default", "linear", "yarn"],
        harmless: &["sliding_window", "max_window_layers"],
        ..LLAMA
    },
    Class {
        name: "MiniCPMForCausalLM",
        architectures: &[("silu", "minicpm")],
        tied: None,
        scales: true,
        ropes: &["default", "longrope"],
        ..LLAMA
    },
];

/// Keys that change nothing in any class.
const HARMLESS: &[&str] = &[
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "auto_map",
    "dtype",
    "initializer_range",
    "is_llama_config",
    "model_type",
    "torch_dtype",
    "transformers_version",
    "use_cache",
];

/// How the matrices of the blocks are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Storage {
    /// Whether floats are masters, which the model rounds to ternary in each pass. Other floats
    /// must be ternary as they are.
    pub(super) masters: bool,
    /// Whether products are multiplied by the `weight_scale` of codes (`true`) or divided by it;
    /// `None` if the file does not speak of codes.
    pub(super) multiplies: Option<bool>,
}

impl Storage {
    /// Whether the model was trained with activations of 8 bits. All models that say how their
    /// weights are stored were trained so.
    pub(super) fn rounds_activations(self) -> bool {
        self.masters || self.multiplies.is_some()
    }
}

/// Everything about a model that can be known before its tensors are read.
pub(super) struct Description {
    pub(super) architecture: &'static Architecture,
    pub(super) storage: Storage,
    /// Whether the embedding is the LM head too.
    pub(super) tied: bool,
    /// Width of a head.
    pub(super) head_dim: u64,
    /// Rows of the embedding.
    pub(super) n_vocab: u64,
    /// Metadata, without the tokenizer's.
    pub(super) metadata: Vec<(String, Value)>,
    /// Tensors of GGUF whose values are numbers in config.json.
    pub(super) tensors: Vec<(&'static str, Vec<f32>)>,
}

/// Reads config.json.
///
/// Errors: `unsupported-model`, which names the key. The key is missing or unknown, or its value
/// would make the model compute something else.
///
/// `normed` says that the checkpoint has norms of inputs. Such a model rounds its weights in each pass.
pub(super) fn model(map: Map<String, Json>, name: &str, normed: bool) -> Result<Description> {
    let config = Object::new("config.json", map);
    let class = class(&config)?;
    let act = config.require("hidden_act", Object::text)?;
    let Some((_, gguf)) = class.architectures.iter().find(|(known, _)| *known == act) else {
        return unsupported(format!("`hidden_act` is {:?} in a {}", short(act), class.name));
    };
    let architecture = Architecture::named(gguf)
        .ok_or_else(|| Error::Internal(format!("no architecture `{gguf}`")))?;
    let architecture = match normed {
        true => architecture.with_normed_inputs().unwrap_or(architecture),
        false => architecture,
    };
    let tied = match (config.boolean("tie_word_embeddings")?, class.tied) {
        (Some(tied), _) | (None, Some(tied)) => tied,
        (None, None) => return unsupported("config.json has no `tie_word_embeddings`".into()),
    };
    if architecture.always_tied && !tied {
        return unsupported(format!(
            "`tie_word_embeddings` is false, but a `{gguf}` model's embedding is its LM head"
        ));
    }
    let mut sizes = Sizes { prefix: gguf, metadata: Vec::new() };
    let text = |text: &str| Value::String(text.into());
    sizes.metadata.push(("general.architecture".into(), text(gguf)));
    sizes.metadata.push(("general.name".into(), text(name)));
    let width = config.require("hidden_size", Object::integer)?;
    let n_head = config.require("num_attention_heads", Object::integer)?;
    let n_head_kv = match config.integer("num_key_value_heads")? {
        None if class.old => n_head,
        None => config.require("num_key_value_heads", Object::integer)?,
        Some(n) => n,
    };
    let n_layer = config.require("num_hidden_layers", Object::integer)?;
    let n_ctx = config.require("max_position_embeddings", Object::integer)?;
    let n_vocab = config.require("vocab_size", Object::integer)?;
    let head_dim = match config.integer("head_dim")? {
        Some(head_dim) => head_dim,
        None if class.plain_heads && n_head > 0 && width.is_multiple_of(n_head) => width / n_head,
        None => config.require("head_dim", Object::integer)?,
    };
    // Lists of these lengths are made later, so they must not be too long.
    for (key, value, max) in
        [("vocab_size", n_vocab, Config::MAX_VOCAB), ("head_dim", head_dim, Config::MAX_HEAD_DIM)]
    {
        if value > max as u64 {
            return unsupported(format!("config.json says {value} for `{key}`, more than {max}"));
        }
    }
    sizes.integer("vocab_size", n_vocab)?;
    sizes.integer("context_length", n_ctx)?;
    sizes.integer("embedding_length", width)?;
    sizes.integer("block_count", n_layer)?;
    sizes.integer("feed_forward_length", config.require("intermediate_size", Object::integer)?)?;
    sizes.integer("attention.head_count", n_head)?;
    sizes.integer("attention.head_count_kv", n_head_kv)?;
    sizes.integer("attention.key_length", head_dim)?;
    sizes.integer("attention.value_length", head_dim)?;
    sizes.integer("rope.dimension_count", head_dim)?;
    let eps = config.require("rms_norm_eps", Object::number)?;
    sizes.float("attention.layer_norm_rms_epsilon", eps);
    if class.scales {
        let number = |key| config.require(key, Object::number);
        sizes.float("embedding_scale", number("scale_emb")?);
        sizes.float("residual_scale", number("scale_depth")? / (n_layer as f64).sqrt());
        sizes.float("logit_scale", width as f64 / number("dim_model_base")?);
    }
    let tensors = rope(&config, class, &mut sizes, n_ctx, head_dim)?;
    let mut storage = storage(&config, class)?;
    storage.masters |= architecture.norms_inputs();
    for (key, usual) in [
        ("attention_bias", json!(false)),
        ("mlp_bias", json!(false)),
        ("rope_interleaved", json!(false)),
        ("use_sliding_window", json!(false)),
        ("partial_rotary_factor", json!(1.0)),
        ("pretraining_tp", json!(1)),
        ("input_bits", json!(8)),
        ("weight_bits", json!(1)),
    ] {
        config.expect(key, &usual)?;
    }
    layer_types(&config)?;
    // The tokenizer's reader reads these.
    for key in ["bos_token_id", "eos_token_id", "pad_token_id"] {
        config.get(key);
    }
    config.finish(&[HARMLESS, class.harmless].concat())?;
    let metadata = sizes.metadata;
    Ok(Description { architecture, storage, tied, head_dim, n_vocab, metadata, tensors })
}

fn class(config: &Object) -> Result<&'static Class> {
    let classes = config.require("architectures", |config, key| Ok(config.get(key)))?;
    let name = classes.get(0).and_then(Json::as_str).unwrap_or_default();
    CLASSES.iter().find(|class| class.name == name).ok_or_else(|| {
        let known: Vec<_> = CLASSES.iter().map(|class| format!("`{}`", class.name)).collect();
        let known = known.join(", ");
        let found = short(&classes.to_string());
        Error::UnsupportedModel(format!("`architectures` is {found}; this program knows {known}"))
    })
}

/// Refuses layers with another kind of attention than the usual one.
fn layer_types(config: &Object) -> Result<()> {
    let Some(types) = config.get("layer_types") else { return Ok(()) };
    let usual = |kinds: &Vec<Json>| kinds.iter().all(|kind| kind == "full_attention");
    match types.as_array().is_some_and(usual) {
        true => Ok(()),
        false => {
            let types = short(&types.to_string());
            unsupported(format!("`layer_types` in config.json is {types}"))
        }
    }
}

/// How RoPE's frequencies are changed. Old files say it in `rope_scaling` and `rope_theta`, new ones
/// in `rope_parameters`.
fn rope(
    config: &Object,
    class: &Class,
    sizes: &mut Sizes,
    n_ctx: u64,
    head_dim: u64,
) -> Result<Vec<(&'static str, Vec<f32>)>> {
    let parameters = config.object("rope_parameters")?;
    let scaling = config.object("rope_scaling")?;
    if parameters.is_some() && scaling.is_some() {
        return unsupported("config.json has `rope_scaling` and `rope_parameters`".into());
    }
    let within = match &parameters {
        Some(parameters) => parameters.number("rope_theta")?,
        None => None,
    };
    let theta = match (config.number("rope_theta")?, within) {
        (Some(theta), None) | (None, Some(theta)) => theta,
        (Some(one), Some(other)) if one == other => one,
        (None, None) if class.old => 10000.0,
        _ => return unsupported("config.json does not have one `rope_theta`".into()),
    };
    sizes.float("rope.freq_base", theta);
    let Some(scaling) = parameters.or(scaling) else { return Ok(Vec::new()) };
    let kind = match (scaling.text("rope_type")?, scaling.text("type")?) {
        (Some(kind), None) | (None, Some(kind)) => kind,
        (Some(one), Some(other)) if one == other => one,
        _ => return unsupported("`rope_scaling` in config.json has no one type".into()),
    };
    if !class.ropes.contains(&kind) {
        return unsupported(format!("RoPE of the type `{}` in a {}", short(kind), class.name));
    }
    let original = || scaling.require("original_max_position_embeddings", Object::integer);
    // In GGUF a factor of 0 means 1.
    let factor = || match scaling.require("factor", Object::number)? {
        factor if factor >= 1.0 => Ok(factor),
        factor => {
            unsupported(format!("`factor` of RoPE in config.json is {factor}, not 1 or more"))
        }
    };
    let text = |text: &str| Value::String(text.into());
    let mut tensors = Vec::new();
    match kind {
        "linear" => {
            sizes.set("rope.scaling.type", text("linear"));
            sizes.float("rope.scaling.factor", factor()?);
        }
        "yarn" => {
            let factor = factor()?;
            sizes.set("rope.scaling.type", text("yarn"));
            sizes.float("rope.scaling.factor", factor);
            sizes.integer("rope.scaling.original_context_length", original()?)?;
            // The values with which GGUF's readers compute.
            scaling.expect("beta_fast", &json!(32))?;
            scaling.expect("beta_slow", &json!(1))?;
            scaling.expect("truncate", &json!(true))?;
            if let Some(magnitude) = scaling.number("attention_factor")? {
                let usual = 1.0 + 0.1 * factor.ln();
                sizes.float("rope.scaling.attn_factor", magnitude / usual);
            }
        }
        "llama3" => {
            let number = |key| scaling.require(key, Object::number);
            let (low, high) = (number("low_freq_factor")?, number("high_freq_factor")?);
            let divisors = llama_3_divisors(theta, head_dim, factor()?, low, high, original()?);
            tensors.push(("rope_freqs.weight", divisors));
        }
        "longrope" => {
            // Another context would need a magnitude. No file with one was available for
            // comparison.
            if original()? != n_ctx {
                return unsupported(format!(
                    "longrope whose `original_max_position_embeddings` is {}, and \
                     `max_position_embeddings` {n_ctx}",
                    original()?
                ));
            }
            sizes.set("rope.scaling.type", text("longrope"));
            sizes.integer("rope.scaling.original_context_length", n_ctx)?;
            for (key, tensor) in [
                ("short_factor", "rope_factors_short.weight"),
                ("long_factor", "rope_factors_long.weight"),
            ] {
                tensors.push((tensor, scaling.require(key, Object::numbers)?));
            }
        }
        _ => {}
    }
    scaling.finish(&[])?;
    let divides = |value: &f32| value.is_finite() && *value > 0.0;
    if !tensors.iter().all(|(_, values)| values.iter().all(divides)) {
        return unsupported("`rope_scaling` in config.json divides by what is not positive".into());
    }
    Ok(tensors)
}

/// The divisors of RoPE's frequencies in Llama 3.1: `factor` for low frequencies, 1 for high ones,
/// and a ramp between them.
fn llama_3_divisors(
    theta: f64,
    head_dim: u64,
    factor: f64,
    low: f64,
    high: f64,
    original: u64,
) -> Vec<f32> {
    let divisor = |i: u64| {
        let frequency = theta.powf(-2.0 * i as f64 / head_dim as f64);
        // The number of rotations of the pair over the original context.
        let rotations = original as f64 * frequency / (2.0 * std::f64::consts::PI);
        let kept = ((rotations - low) / (high - low)).clamp(0.0, 1.0);
        (1.0 / ((1.0 - kept) / factor + kept)) as f32
    };
    (0..head_dim / 2).map(divisor).collect()
}

/// How the weights are stored. `quantization_config` says it, or else the class.
fn storage(config: &Object, class: &Class) -> Result<Storage> {
    let Some(quantization) = config.object("quantization_config")? else {
        return Ok(Storage { masters: class.masters, multiplies: None });
    };
    quantization.expect("quant_method", &json!("bitnet"))?;
    // With it, the input of every product would be normed.
    quantization.expect("use_rms_norm", &json!(false))?;
    if let Some(modules) = quantization.get("modules_to_not_convert") {
        let usual = |modules: &Vec<Json>| {
            modules.iter().all(|module| module == "lm_head" || module == "model.embed_tokens")
        };
        if !modules.as_array().is_some_and(usual) {
            let modules = short(&modules.to_string());
            return unsupported(format!("`modules_to_not_convert` is {modules}"));
        }
    }
    let multiplies = match quantization.text("linear_class")?.unwrap_or("bitlinear") {
        "bitlinear" => false,
        "autobitlinear" => true,
        other => return unsupported(format!("`linear_class` is `{}`", short(other))),
    };
    let masters = match quantization.text("quantization_mode")?.unwrap_or("offline") {
        "offline" => false,
        "online" => true,
        other => return unsupported(format!("`quantization_mode` is `{}`", short(other))),
    };
    quantization.finish(&["rms_norm_eps"])?;
    Ok(Storage { masters, multiplies: Some(multiplies) })
}

/// The metadata of the architecture.
struct Sizes {
    prefix: &'static str,
    metadata: Vec<(String, Value)>,
}

impl Sizes {
    fn set(&mut self, name: &str, value: Value) {
        self.metadata.push((format!("{}.{name}", self.prefix), value));
    }

    fn integer(&mut self, name: &str, value: u64) -> Result<()> {
        let Ok(small) = u32::try_from(value) else {
            return unsupported(format!("config.json says {value} for `{name}`"));
        };
        self.set(name, Value::U32(small));
        Ok(())
    }

    fn float(&mut self, name: &str, value: f64) {
        self.set(name, Value::F32(value as f32));
    }
}

fn unsupported<T>(why: String) -> Result<T> {
    Err(Error::UnsupportedModel(why))
}

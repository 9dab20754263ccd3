//! The names of tensors in checkpoints.

use tritloom::model::{Architecture, Role};

/// The meaning of a checkpoint's tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meaning {
    /// The weights of a role in a block. The block is 0 for roles that a model has only once.
    Weight(Role, usize),
    /// The scale of these weights.
    Scale(Role, usize),
    /// A table that follows from config.json.
    Derived,
}

/// The names of tensors that a model has only once, without `model.` and `.weight`.
const ONCE: &[(&str, Role)] =
    &[("embed_tokens", Role::TokenEmbd), ("norm", Role::OutputNorm), ("lm_head", Role::Output)];

/// The names of tensors of a block, without `model.layers.N.` and `.weight`.
const BLOCK: &[(&str, Role)] = &[
    ("input_layernorm", Role::AttnNorm),
    ("self_attn.q_proj", Role::AttnQ),
    ("self_attn.k_proj", Role::AttnK),
    ("self_attn.v_proj", Role::AttnV),
    ("self_attn.q_norm", Role::AttnQNorm),
    ("self_attn.k_norm", Role::AttnKNorm),
    ("self_attn.q_proj.norm", Role::AttnQNormIn),
    ("self_attn.k_proj.norm", Role::AttnKNormIn),
    ("self_attn.v_proj.norm", Role::AttnVNormIn),
    ("self_attn.o_proj.norm", Role::AttnOutputNormIn),
    ("self_attn.attn_sub_norm", Role::AttnSubNorm),
    // 1bitLLM's name.
    ("self_attn.inner_attn_ln", Role::AttnSubNorm),
    ("self_attn.o_proj", Role::AttnOutput),
    ("post_attention_layernorm", Role::FfnNorm),
    ("mlp.gate_proj", Role::FfnGate),
    ("mlp.up_proj", Role::FfnUp),
    ("mlp.gate_proj.norm", Role::FfnGateNormIn),
    ("mlp.up_proj.norm", Role::FfnUpNormIn),
    ("mlp.down_proj.norm", Role::FfnDownNormIn),
    ("mlp.ffn_sub_norm", Role::FfnSubNorm),
    // 1bitLLM's name.
    ("mlp.ffn_layernorm", Role::FfnSubNorm),
    ("mlp.down_proj", Role::FfnDown),
];

/// Norms that only some architectures have.
const SOME: &[Role] = &[
    Role::AttnQNorm,
    Role::AttnKNorm,
    Role::AttnQNormIn,
    Role::AttnKNormIn,
    Role::AttnVNormIn,
    Role::AttnSubNorm,
    Role::AttnOutputNormIn,
    Role::FfnGateNormIn,
    Role::FfnUpNormIn,
    Role::FfnSubNorm,
    Role::FfnDownNormIn,
];

/// Whether this is a norm of the input of one matrix, which only BitNet's embedding models have.
pub(super) fn is_norm_of_input(name: &str) -> bool {
    name.ends_with(".q_proj.norm.weight")
}

/// The meaning of the tensor `name` in a model of this architecture; `None` if it has no such
/// tensor.
pub(super) fn meaning(name: &str, architecture: &Architecture) -> Option<Meaning> {
    // A model without an LM head may leave out the first word.
    let name = name.strip_prefix("model.").unwrap_or(name);
    let (table, rest, block) = match name.strip_prefix("layers.") {
        None => (ONCE, name, 0),
        Some(rest) => {
            let (number, rest) = rest.split_once('.')?;
            let block: usize = number.parse().ok()?;
            // `+1` and `01` are parsed as numbers too.
            (block.to_string() == number).then_some(())?;
            (BLOCK, rest, block)
        }
    };
    if rest == "self_attn.rotary_emb.inv_freq" {
        return Some(Meaning::Derived);
    }
    let (rest, is_scale) = match rest.strip_suffix(".weight_scale") {
        Some(rest) => (rest, true),
        None => (rest.strip_suffix(".weight")?, false),
    };
    let &(_, role) = table.iter().find(|(known, _)| *known == rest)?;
    if SOME.contains(&role) && !architecture.has(role) {
        return None;
    }
    Some(if is_scale { Meaning::Scale(role, block) } else { Meaning::Weight(role, block) })
}

/// The name in GGUF.
pub(super) fn gguf(role: Role, block: usize) -> String {
    match BLOCK.iter().any(|(_, known)| *known == role) {
        true => format!("blk.{block}.{}.weight", role.name()),
        false => format!("{}.weight", role.name()),
    }
}

/// The name in checkpoints of the tensor that GGUF calls `name`.
pub(super) fn hugging_face(name: &str) -> Option<String> {
    let find = |table: &[(&'static str, Role)], name: &str| {
        table.iter().find(|(_, role)| role.name() == name).map(|(known, _)| *known)
    };
    let name = name.strip_suffix(".weight")?;
    match name.strip_prefix("blk.") {
        None => {
            let once = find(ONCE, name)?;
            let model = if once == "lm_head" { "" } else { "model." };
            Some(format!("{model}{once}.weight"))
        }
        Some(rest) => {
            let (block, name) = rest.split_once('.')?;
            Some(format!("model.layers.{block}.{}.weight", find(BLOCK, name)?))
        }
    }
}

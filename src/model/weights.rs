//! The tensors that a model needs: their names, shapes and types.

use std::collections::HashMap;

use half::{bf16, f16};

use crate::error::{Error, Result};
use crate::gguf::{Gguf, TensorInfo, TensorType};
use crate::model::Config;
use crate::ternary;

/// What a tensor is for. Roles are named as in GGUF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The embedding `[n_embd, n_vocab]`, which is the LM head too.
    TokenEmbd,
    /// The last norm `[n_embd]`.
    OutputNorm,
    /// The norm before attention `[n_embd]`.
    AttnNorm,
    /// Queries `[n_embd, n_head * head_dim]`.
    AttnQ,
    /// Keys `[n_embd, n_head_kv * head_dim]`.
    AttnK,
    /// Values `[n_embd, n_head_kv * head_dim]`.
    AttnV,
    /// The norm of the results of all heads `[n_head * head_dim]`.
    AttnSubNorm,
    /// From the results of all heads to the residual stream `[n_head * head_dim, n_embd]`.
    AttnOutput,
    /// The norm before the feed-forward network `[n_embd]`.
    FfnNorm,
    /// Gate `[n_embd, n_ff]`.
    FfnGate,
    /// Up `[n_embd, n_ff]`.
    FfnUp,
    /// The norm before down `[n_ff]`.
    FfnSubNorm,
    /// Down `[n_ff, n_embd]`.
    FfnDown,
}

impl Role {
    /// The tensors that a model has once.
    pub const GLOBAL: &[Self] = &[Self::TokenEmbd, Self::OutputNorm];

    /// The tensors that each block has.
    pub const BLOCK: &[Self] = &[
        Self::AttnNorm,
        Self::AttnQ,
        Self::AttnK,
        Self::AttnV,
        Self::AttnSubNorm,
        Self::AttnOutput,
        Self::FfnNorm,
        Self::FfnGate,
        Self::FfnUp,
        Self::FfnSubNorm,
        Self::FfnDown,
    ];

    /// The name in GGUF without `blk.N.` and `.weight`.
    pub fn name(self) -> &'static str {
        match self {
            Self::TokenEmbd => "token_embd",
            Self::OutputNorm => "output_norm",
            Self::AttnNorm => "attn_norm",
            Self::AttnQ => "attn_q",
            Self::AttnK => "attn_k",
            Self::AttnV => "attn_v",
            Self::AttnSubNorm => "attn_sub_norm",
            Self::AttnOutput => "attn_output",
            Self::FfnNorm => "ffn_norm",
            Self::FfnGate => "ffn_gate",
            Self::FfnUp => "ffn_up",
            Self::FfnSubNorm => "ffn_sub_norm",
            Self::FfnDown => "ffn_down",
        }
    }

    /// Elements in each dimension, the fastest first.
    pub fn shape(self, config: &Config) -> Vec<u64> {
        let Config { n_vocab, n_embd, n_ff, .. } = *config;
        let n_embd_kv = config.n_embd_kv();
        let shape = match self {
            Self::TokenEmbd => vec![n_embd, n_vocab],
            Self::OutputNorm | Self::AttnNorm | Self::AttnSubNorm | Self::FfnNorm => vec![n_embd],
            Self::AttnQ | Self::AttnOutput => vec![n_embd, n_embd],
            Self::AttnK | Self::AttnV => vec![n_embd, n_embd_kv],
            Self::FfnGate | Self::FfnUp => vec![n_embd, n_ff],
            Self::FfnSubNorm => vec![n_ff],
            Self::FfnDown => vec![n_ff, n_embd],
        };
        shape.into_iter().map(|n| n as u64).collect()
    }

    /// The types that a tensor of this role may have, the usual one first.
    pub fn types(self) -> &'static [TensorType] {
        match self {
            Self::TokenEmbd => &[TensorType::F16, TensorType::F32, TensorType::Bf16],
            _ if self.is_ternary() => &[TensorType::I2S],
            _ => &[TensorType::F32],
        }
    }

    /// Whether this is a ternary matrix.
    pub fn is_ternary(self) -> bool {
        matches!(
            self,
            Self::AttnQ
                | Self::AttnK
                | Self::AttnV
                | Self::AttnOutput
                | Self::FfnGate
                | Self::FfnUp
                | Self::FfnDown
        )
    }
}

/// A tensor that the model needs, found in the file.
#[derive(Clone, Debug)]
pub struct Weight {
    /// What it is for.
    pub role: Role,
    /// The transformer block; 0 for the roles that a model has once.
    pub block: usize,
    /// The tensor in the file.
    pub tensor: TensorInfo,
}

impl Weight {
    /// Elements in a row.
    pub fn columns(&self) -> usize {
        self.tensor.ne[0] as usize
    }

    /// Rows of a matrix, 1 for a norm.
    pub fn rows(&self) -> usize {
        self.tensor.ne.get(1).map_or(1, |&rows| rows as usize)
    }

    /// Refuses code 3 in `codes`, which begin `at` bytes after the tensor's beginning.
    pub fn check_codes(&self, codes: &[u8], at: u64) -> Result<()> {
        ternary::check_codes(codes).map_err(|index| {
            let name = &self.tensor.name;
            let offset = self.tensor.offset + at + index as u64;
            Error::BadGguf(format!("tensor `{name}` has the unused code 3 (at byte {offset})"))
        })
    }

    /// The elements of a tensor of floats. Infinities and NaN are refused.
    pub fn floats(&self, bytes: &[u8]) -> Result<Vec<f32>> {
        let (pairs, _) = bytes.as_chunks::<2>();
        let floats: Vec<f32> = match self.tensor.ty {
            TensorType::F16 => pairs.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect(),
            TensorType::Bf16 => pairs.iter().map(|b| bf16::from_le_bytes(*b).to_f32()).collect(),
            TensorType::F32 => {
                bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
            }
            other => return Err(Error::Internal(format!("{other} read as floats"))),
        };
        match floats.iter().position(|float| !float.is_finite()) {
            None => Ok(floats),
            Some(index) => {
                let name = &self.tensor.name;
                Err(Error::BadGguf(format!("element {index} of tensor `{name}` is not a number")))
            }
        }
    }

    /// The scale, from the last 32 bytes of an I2_S tensor.
    pub fn scale(&self, tail: &[u8]) -> Result<f32> {
        ternary::scale(tail).ok_or_else(|| {
            let name = &self.tensor.name;
            Error::BadGguf(format!("tensor `{name}` has a scale that is not a number"))
        })
    }
}

/// Finds every tensor that the model needs and checks its shape and type. They are in the order of
/// the file.
///
/// Errors: `missing-tensor`, `tensor-shape`, and `unsupported-model` for a tensor that the model
/// would not use.
pub fn weights(config: &Config, gguf: &Gguf) -> Result<Vec<Weight>> {
    let mut tensors: HashMap<&str, &TensorInfo> =
        gguf.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
    let mut weights = Vec::new();
    let mut find = |role: Role, block: usize, name: String| {
        let tensor = tensors.remove(name.as_str()).ok_or(Error::MissingTensor { name })?;
        check(role, config, tensor)?;
        weights.push(Weight { role, block, tensor: tensor.clone() });
        Ok(())
    };
    for &role in Role::GLOBAL {
        find(role, 0, format!("{}.weight", role.name()))?;
    }
    for block in 0..config.n_layer {
        for &role in Role::BLOCK {
            find(role, block, format!("blk.{block}.{}.weight", role.name()))?;
        }
    }

    // The LM head of these models is the embedding. The first upload of 2B-4T has a copy of it as a
    // tensor of its own, which bitnet.cpp ignores too.
    if let Some(output) = tensors.remove("output.weight") {
        check(Role::TokenEmbd, config, output)?;
    }
    // A bias or a scale that is not applied would make the text wrong, and nobody would know why.
    if let Some(extra) = gguf.tensors.iter().find(|t| tensors.contains_key(t.name.as_str())) {
        return Err(Error::UnsupportedModel(format!(
            "the file has a tensor `{}`, which a `{}` model of {} blocks does not use",
            extra.name,
            config.architecture.as_str(),
            config.n_layer
        )));
    }
    weights.sort_by_key(|weight| weight.tensor.offset);
    Ok(weights)
}

fn check(role: Role, config: &Config, tensor: &TensorInfo) -> Result<()> {
    let (types, shape) = (role.types(), role.shape(config));
    if matches!(tensor.ty, TensorType::Tl1 | TensorType::Tl2) {
        return Err(Error::UnsupportedModel(format!(
            "tensor `{}` is {}, whose order depends on the CPU that wrote the file; use the I2_S \
             file of the model",
            tensor.name, tensor.ty
        )));
    }
    if tensor.ne == shape && types.contains(&tensor.ty) {
        return Ok(());
    }
    let types: Vec<String> = types.iter().map(TensorType::to_string).collect();
    Err(Error::TensorShape {
        name: tensor.name.clone(),
        found: tensor.to_string(),
        expected: format!("{} {shape:?}", types.join(" or ")),
    })
}

//! The tensors that a model needs: their names, shapes and types.

use std::collections::HashMap;

use half::{bf16, f16};

use super::architecture::Architecture;
use super::config::Config;
use super::role::{Kind, Role};
use super::rope::RopeScaling;
use crate::blocks::{self, BlockType, Fault, block_type};
use crate::error::{Error, Result};
use crate::gguf::{Gguf, TensorInfo, TensorType};
use crate::ternary;

impl Role {
    /// Elements in each dimension, the fastest first.
    pub fn shape(self, config: &Config) -> Vec<u64> {
        let Config { n_vocab, n_embd, n_ff, head_dim, .. } = *config;
        let (n_embd_q, n_embd_kv) = (config.n_embd_q(), config.n_embd_kv());
        let shape = match self {
            Self::TokenEmbd | Self::Output => vec![n_embd, n_vocab],
            Self::OutputNorm | Self::AttnNorm | Self::FfnNorm => vec![n_embd],
            Self::RopeFreqs | Self::RopeFactorsShort | Self::RopeFactorsLong => vec![head_dim / 2],
            Self::AttnQNorm | Self::AttnKNorm => vec![head_dim],
            Self::AttnQNormIn | Self::AttnKNormIn | Self::AttnVNormIn => vec![n_embd],
            Self::AttnSubNorm | Self::AttnOutputNormIn => vec![n_embd_q],
            Self::AttnQ => vec![n_embd, n_embd_q],
            Self::AttnK | Self::AttnV => vec![n_embd, n_embd_kv],
            Self::AttnOutput => vec![n_embd_q, n_embd],
            Self::FfnGate | Self::FfnUp => vec![n_embd, n_ff],
            Self::FfnGateNormIn | Self::FfnUpNormIn => vec![n_embd],
            Self::FfnSubNorm | Self::FfnDownNormIn => vec![n_ff],
            Self::FfnDown => vec![n_ff, n_embd],
        };
        shape.into_iter().map(|n| n as u64).collect()
    }
}

impl Kind {
    /// The types that a tensor of this kind may have, the usual ones first.
    pub fn types(self) -> Vec<TensorType> {
        let floats = [TensorType::F16, TensorType::F32, TensorType::Bf16];
        let blocks = blocks::TABLE.iter().map(|block| block.ty);
        match self {
            Self::Vocabulary => floats.into_iter().chain(blocks).collect(),
            Self::Matrix => {
                // Where rows do not divide by the blocks of a ternary type, llama.cpp falls back to
                // a type of four bits.
                let fits = |ty: &TensorType| {
                    *ty == TensorType::Q4_0 || block_type(*ty).is_some_and(BlockType::is_ternary)
                };
                [TensorType::I2S].into_iter().chain(blocks.filter(fits)).collect()
            }
            Self::Vector => floats.to_vec(),
        }
    }
}

/// A tensor that the model needs, found in the file.
#[derive(Clone, Debug)]
pub struct Weight {
    /// Its role in the model.
    pub role: Role,
    /// The index of the transformer block; 0 for the roles that a model has only once.
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
            other => match block_type(other) {
                Some(block) => block.values(bytes).map_err(|fault| self.fault(0, fault))?,
                None => return Err(Error::Internal(format!("{other} read as floats"))),
            },
        };
        match floats.iter().position(|float| !float.is_finite()) {
            None => Ok(floats),
            Some(index) => {
                let name = &self.tensor.name;
                Err(Error::BadGguf(format!("element {index} of tensor `{name}` is not finite")))
            }
        }
    }

    /// The values of a tensor that divides RoPE's frequencies. Each must be above 0.
    pub fn divisors(&self, bytes: &[u8]) -> Result<Vec<f32>> {
        let values = self.floats(bytes)?;
        match values.iter().position(|&value| value <= 0.0) {
            None => Ok(values),
            Some(index) => {
                let (name, value) = (&self.tensor.name, values[index]);
                Err(Error::BadGguf(format!("element {index} of tensor `{name}` is {value}")))
            }
        }
    }

    /// The error for a fault in blocks that begin `at` bytes after the tensor's beginning.
    pub fn fault(&self, at: u64, fault: Fault) -> Error {
        let name = &self.tensor.name;
        let within = block_type(self.tensor.ty).map_or(0, |block| block.offset_of(fault) as u64);
        let offset = self.tensor.offset + at + within;
        Error::BadGguf(match fault {
            Fault::Code(_) => {
                format!("tensor `{name}` has the unused code 3 (in the block at byte {offset})")
            }
            Fault::Scale(_) => {
                format!("tensor `{name}` has a scale that is not finite (at byte {offset})")
            }
        })
    }

    /// The scale, from the last 32 bytes of an I2_S tensor.
    pub fn scale(&self, tail: &[u8]) -> Result<f32> {
        ternary::scale(tail).ok_or_else(|| {
            let name = &self.tensor.name;
            Error::BadGguf(format!("tensor `{name}` has a scale that is not finite"))
        })
    }
}

/// Finds every tensor that the model needs and checks its shape and type. Gives them in the order
/// of the file.
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
    let Architecture { norms, rope_factors, always_tied, .. } = *config.architecture;
    for role in [Role::TokenEmbd, Role::OutputNorm] {
        find(role, 0, format!("{}.weight", role.name()))?;
    }
    for block in 0..config.n_layer {
        for &role in Role::BLOCK.iter().chain(norms) {
            find(role, block, format!("blk.{block}.{}.weight", role.name()))?;
        }
    }
    let optional = [Role::Output].iter().chain(rope_factors);
    for &role in optional {
        let name = format!("{}.weight", role.name());
        if let Some(tensor) = tensors.remove(name.as_str()) {
            check(role, config, tensor)?;
            // The first upload of 2B-4T has a copy of its embedding as output. bitnet.cpp ignores
            // it too.
            if role != Role::Output || !always_tied {
                weights.push(Weight { role, block: 0, tensor: tensor.clone() });
            }
        }
    }
    check_rope_factors(config, &weights)?;
    check_stacks(&weights)?;
    // A bias or a scale that is not applied would make the text wrong without any error.
    if let Some(extra) = gguf.tensors.iter().find(|t| tensors.contains_key(t.name.as_str())) {
        return Err(Error::UnsupportedModel(format!(
            "the file has a tensor `{}`, which a `{}` model of {} blocks does not use",
            extra.name, config.architecture.name, config.n_layer
        )));
    }
    weights.sort_by_key(|weight| weight.tensor.offset);
    Ok(weights)
}

/// Refuses a file that has the factors for short contexts without those for long ones, or the other
/// way round.
fn check_rope_factors(config: &Config, weights: &[Weight]) -> Result<()> {
    let has = |role| weights.iter().any(|weight| weight.role == role);
    let declared = matches!(config.rope.scaling, RopeScaling::LongRope { .. });
    let (short, long) = (has(Role::RopeFactorsShort), has(Role::RopeFactorsLong));
    for (role, here) in [(Role::RopeFactorsShort, short), (Role::RopeFactorsLong, long)] {
        if !here && (declared || short || long) {
            return Err(Error::MissingTensor { name: format!("{}.weight", role.name()) });
        }
    }
    if short && !declared {
        return Err(Error::UnsupportedModel(
            "the file has factors for RoPE, but its `rope.scaling.type` is not `longrope`".into(),
        ));
    }
    Ok(())
}

/// Refuses matrices that cannot share their input. Matrices with the same input are stacked on the
/// GPU, so their types must agree. All matrices must take their inputs alike: I2_S takes int8 with
/// a scale for each token, other types do not.
fn check_stacks(weights: &[Weight]) -> Result<()> {
    let mut types = HashMap::new();
    let mut matrices = weights.iter().filter(|weight| weight.role.kind() == Kind::Matrix);
    let is_i2s = |weight: &Weight| weight.tensor.ty == TensorType::I2S;
    let first = matrices.next().is_some_and(is_i2s);
    if let Some(Weight { tensor, .. }) = matrices.find(|weight| is_i2s(weight) != first) {
        return Err(Error::UnsupportedModel(format!(
            "tensor `{}` is {}: I2_S beside other types in the matrices of a model",
            tensor.name, tensor.ty
        )));
    }
    for Weight { role, block, tensor } in weights {
        let stack = match role {
            Role::AttnQ | Role::AttnK | Role::AttnV => Role::AttnQ,
            Role::FfnGate | Role::FfnUp => Role::FfnGate,
            _ => continue,
        };
        let ty = *types.entry((stack, *block)).or_insert(tensor.ty);
        if ty != tensor.ty {
            return Err(Error::TensorShape {
                name: tensor.name.clone(),
                found: tensor.to_string(),
                expected: format!("{ty}, as the matrices beside it"),
            });
        }
    }
    Ok(())
}

fn check(role: Role, config: &Config, tensor: &TensorInfo) -> Result<()> {
    let (types, shape) = (role.kind().types(), role.shape(config));
    if matches!(tensor.ty, TensorType::Tl1 | TensorType::Tl2) {
        return Err(Error::UnsupportedModel(format!(
            "tensor `{}` is {}, whose order depends on the CPU that wrote the file; use the I2_S \
             file of the model",
            tensor.name, tensor.ty
        )));
    }
    // More rows than tokens are allowed: they pad the vocabulary.
    let padded = role.kind() == Kind::Vocabulary
        && matches!(tensor.ne[..], [columns, rows] if columns == shape[0] && rows >= shape[1]);
    if (tensor.ne == shape || padded) && types.contains(&tensor.ty) {
        return Ok(());
    }
    let types: Vec<String> = types.iter().map(TensorType::to_string).collect();
    Err(Error::TensorShape {
        name: tensor.name.clone(),
        found: tensor.to_string(),
        expected: format!("{} {shape:?}", types.join(" or ")),
    })
}

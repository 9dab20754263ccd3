//! The tensors of a model with random weights.

use std::io::{self, Write};
use std::ops::RangeInclusive;

use half::f16;

use tritloom::Result;
use tritloom::blocks::{BlockType, block_type};
use tritloom::gguf::{TensorEntry, TensorType};
use tritloom::model::{Config, Kind, Role, RopeScaling};
use tritloom::ternary::{self, Layout};

use super::{Sizes, row_bytes};

/// The scale of a [`Fill::Shift`] matrix. It is so large that the shifted values outweigh the
/// values that the residual stream has before.
const SHIFT_SCALE: f32 = 8.0;

/// The standard deviations that an embedding can get. Within this range no value is infinite as an
/// f16, because [`Noise::normal`] gives none beyond six deviations, and few values are 0.
pub(crate) const DEVIATIONS: RangeInclusive<f32> = 1e-4..=1e4;

/// A tensor and the rule that fills it.
pub(super) struct Tensor {
    name: String,
    ty: TensorType,
    /// Elements in each dimension, the fastest first.
    ne: Vec<usize>,
    /// The bytes of all rows together.
    len: usize,
    fill: Fill,
}

/// The contents of a tensor.
#[derive(Clone, Copy, PartialEq)]
enum Fill {
    /// A norm: values near 1.
    Norm,
    /// Divisors of RoPE's frequencies. The first is 1, and each is larger by this much than the one
    /// before.
    Divisors(f32),
    /// Rows of the vocabulary. Values that are not ternary are up to `size`. The last rows belong
    /// to the `special` tokens.
    Rows { size: f32, special: usize },
    /// Like `Rows`, but F16 values of a normal distribution.
    Normal { deviation: f32, special: usize },
    /// Like `Rows`. The first row is noise. Each further row is the row before it, rotated by one
    /// value. When the rotation has come full circle, a new row of noise starts.
    Rotated { special: usize },
    /// A matrix of random values.
    Noise,
    /// I2_S: the product with this matrix is the input itself, rotated by this many positions.
    Shift(usize),
    /// I2_S: noise with a scale of 0.
    Zero,
}

/// The tensors of a block, in the order of bitnet.cpp's converter. A model has only the norms of
/// its architecture.
const BLOCK: [Role; 20] = [
    Role::AttnNorm,
    Role::FfnDown,
    Role::FfnGate,
    Role::FfnUp,
    Role::FfnNorm,
    Role::AttnSubNorm,
    Role::AttnK,
    Role::AttnOutput,
    Role::AttnQ,
    Role::AttnV,
    Role::FfnSubNorm,
    Role::AttnQNorm,
    Role::AttnKNorm,
    Role::AttnQNormIn,
    Role::AttnKNormIn,
    Role::AttnVNormIn,
    Role::AttnOutputNormIn,
    Role::FfnGateNormIn,
    Role::FfnUpNormIn,
    Role::FfnDownNormIn,
];

/// All tensors, in the order of the file.
pub(super) fn tensors(sizes: &Sizes, config: &Config) -> Result<Vec<Tensor>> {
    let special = sizes.vocabulary.special.len();
    let tensor = |prefix: &str, role: Role| {
        let ne: Vec<usize> = role.shape(config).into_iter().map(|n| n as usize).collect();
        let (ty, fill) = match (role, role.kind()) {
            (Role::TokenEmbd, _) => {
                let size = config.embedding_scale.recip();
                (sizes.embedding, Fill::Rows { size, special })
            }
            // Chosen so that logits are around 1.
            (_, Kind::Vocabulary) => {
                let size = (3.0 / config.n_embd as f32).sqrt();
                (sizes.head.unwrap_or(sizes.embedding), Fill::Rows { size, special })
            }
            (_, Kind::Matrix) => (sizes.body, Fill::Noise),
            (Role::RopeFactorsShort, _) => (TensorType::F32, Fill::Divisors(0.0)),
            (Role::RopeFactorsLong, _) => (TensorType::F32, Fill::Divisors(0.25)),
            (_, Kind::Vector) => (TensorType::F32, Fill::Norm),
        };
        let len = match ty {
            TensorType::I2S => ne.iter().product::<usize>() / 4 + ternary::TAIL,
            _ => row_bytes(ty, ne[0])? * ne.get(1).unwrap_or(&1),
        };
        Ok(Tensor { name: format!("{prefix}{}.weight", role.name()), ty, ne, len, fill })
    };
    let mut all = vec![tensor("", Role::TokenEmbd)?, tensor("", Role::OutputNorm)?];
    if sizes.head.is_some() {
        all.push(tensor("", Role::Output)?);
    }
    if matches!(sizes.rope_scaling, RopeScaling::LongRope { .. }) {
        all.push(tensor("", Role::RopeFactorsLong)?);
        all.push(tensor("", Role::RopeFactorsShort)?);
    }
    let needed = |role: &Role| {
        let usual = [Role::AttnNorm, Role::FfnNorm].contains(role) || role.kind() == Kind::Matrix;
        usual || config.architecture.has(*role)
    };
    for block in 0..config.n_layer {
        for role in BLOCK.into_iter().filter(needed) {
            all.push(tensor(&format!("blk.{block}."), role)?);
        }
    }
    Ok(all)
}

/// The tensors of an adapter with pairs of this `rank` on all matrices of all blocks.
pub(super) fn adapter_tensors(config: &Config, rank: usize) -> Vec<Tensor> {
    let half = |name: String, ne: [usize; 2], size: f32| Tensor {
        name,
        ty: TensorType::F16,
        ne: ne.into(),
        len: 2 * ne[0] * ne[1],
        fill: Fill::Rows { size, special: 0 },
    };
    let pair = |block: usize, role: Role| {
        let [columns, rows] = [0, 1].map(|n| role.shape(config)[n] as usize);
        let name = format!("blk.{block}.{}.weight", role.name());
        // The products of the first half are around 1, and those of both a tenth of the matrix's.
        let [of_a, of_b] = [columns, 100 * rank].map(|n| (3.0 / n as f32).sqrt());
        [
            half(format!("{name}.lora_a"), [columns, rank], of_a),
            half(format!("{name}.lora_b"), [rank, rows], of_b),
        ]
    };
    let matrices = || BLOCK.into_iter().filter(|role| role.kind() == Kind::Matrix);
    let of_block = |block: usize| matrices().flat_map(move |role| pair(block, role));
    (0..config.n_layer).flat_map(of_block).collect()
}

impl Tensor {
    /// Makes this the tensor of a model that counts.
    ///
    /// Each row of the embedding is the row before it, rotated by one value. In the first block
    /// gate and up copy their input, so that their product is the cube of every value above 0;
    /// down puts the cubes where the next token's row has them. All other blocks add nothing.
    pub(super) fn count(&mut self) {
        let in_block = self.name.strip_prefix("blk.").and_then(|name| name.split_once('.'));
        self.fill = match (in_block, self.fill) {
            (None, Fill::Rows { special, .. }) => Fill::Rotated { special },
            (Some(("0", "ffn_gate.weight" | "ffn_up.weight")), _) => Fill::Shift(0),
            (Some(("0", "ffn_down.weight")), _) => Fill::Shift(1),
            (Some((_, "attn_output.weight" | "ffn_down.weight")), _) => Fill::Zero,
            (_, fill) => fill,
        };
    }

    /// Gives this tensor values of a normal distribution, if it has rows of the vocabulary.
    pub(super) fn deviate(&mut self, deviation: f32) {
        if let Fill::Rows { special, .. } = self.fill {
            self.fill = Fill::Normal { deviation, special };
        }
    }

    /// Its row of the tensor table.
    pub(super) fn entry(&self) -> TensorEntry {
        TensorEntry {
            name: self.name.clone(),
            ne: self.ne.iter().map(|&n| n as u64).collect(),
            type_id: self.ty.id(),
            len: self.len as u64,
        }
    }

    /// Writes the tensor row by row.
    pub(super) fn write(&self, noise: &mut Noise, out: &mut impl Write) -> io::Result<()> {
        let columns = self.ne[0];
        // Two thirds of the codes are not 0. With this scale the output is as large as the input.
        let unit = (columns as f32 * 2.0 / 3.0).sqrt().recip();
        let rows = self.ne.get(1).copied().unwrap_or(1);
        let mut bytes = Vec::new();
        let mut values = Vec::new();
        for row in 0..rows {
            bytes.clear();
            match self.fill {
                Fill::Norm => {
                    let norm = (0..columns).map(|_| 1.0 + 0.1 * noise.value());
                    bytes.extend(norm.flat_map(f32::to_le_bytes));
                }
                Fill::Divisors(more) => {
                    let divisors = (0..columns).map(|i| 1.0 + more * i as f32);
                    bytes.extend(divisors.flat_map(f32::to_le_bytes));
                }
                Fill::Rotated { special } => {
                    if row % columns > 0 {
                        values.rotate_right(1);
                    } else {
                        values = (0..columns).map(|_| noise.value()).collect();
                    }
                    push_halves(&values, loudness(row, rows, special), &mut bytes);
                }
                Fill::Normal { deviation, special } => {
                    values = (0..columns).map(|_| noise.normal()).collect();
                    push_halves(&values, deviation * loudness(row, rows, special), &mut bytes);
                }
                Fill::Rows { size, special } => {
                    let loudness = loudness(row, rows, special);
                    let scale = loudness * if is_ternary(self.ty) { unit } else { size };
                    self.push_noise(noise, scale, &mut bytes)?;
                }
                Fill::Noise | Fill::Zero => self.push_noise(noise, unit, &mut bytes)?,
                Fill::Shift(by) => {
                    let width = columns.min(rows);
                    let mut values = vec![0; columns];
                    if row < width {
                        values[(row + width - by) % width] = 1;
                    }
                    bytes = ternary::pack(&values, Layout::X86);
                }
            }
            out.write_all(&bytes)?;
        }
        if self.ty == TensorType::I2S {
            let scale = match self.fill {
                Fill::Shift(_) => SHIFT_SCALE,
                Fill::Zero => 0.0,
                _ => unit,
            };
            let mut tail = [0; ternary::TAIL];
            tail[..4].copy_from_slice(&scale.to_le_bytes());
            out.write_all(&tail)?;
        }
        Ok(())
    }

    /// Appends a row of noise: ternary codes times scales near `scale`, or values up to `scale`. As
    /// in real models, no two scales are equal.
    ///
    /// Errors: a type for which there is no rule.
    fn push_noise(&self, noise: &mut Noise, scale: f32, bytes: &mut Vec<u8>) -> io::Result<()> {
        let columns = self.ne[0];
        match self.ty {
            TensorType::I2S => bytes.extend((0..columns / 4).map(|_| noise.codes())),
            TensorType::Q1_0 => (0..columns / 128).for_each(|_| {
                bytes.extend(noise.near(scale));
                bytes.extend((0..2).flat_map(|_| noise.next().to_le_bytes()));
            }),
            TensorType::Q2_0 => (0..columns / 64).for_each(|_| {
                bytes.extend(noise.near(scale));
                bytes.extend((0..16).map(|_| noise.codes()));
            }),
            TensorType::Tq2_0 => (0..columns / 256).for_each(|_| {
                bytes.extend((0..64).map(|_| noise.codes()));
                bytes.extend(noise.near(scale));
            }),
            // Codes from -128 to 127.
            TensorType::Q8_0 => (0..columns / 32).for_each(|_| {
                bytes.extend(noise.near(scale / 128.0));
                bytes.extend((0..4).flat_map(|_| noise.next().to_le_bytes()));
            }),
            // Codes from -32 to 31. A block has a scale, and factors of some 112 for its groups.
            TensorType::Q6K => (0..columns / 256).for_each(|_| {
                bytes.extend((0..24).flat_map(|_| noise.next().to_le_bytes()));
                bytes.extend((0..16).map(|_| (112.0 + 15.0 * noise.value()) as u8));
                bytes.extend(noise.near(scale / (32.0 * 112.0)));
            }),
            TensorType::F16 => {
                let values: Vec<f32> = (0..columns).map(|_| noise.value()).collect();
                push_halves(&values, scale, bytes);
            }
            other => {
                let why = format!("random values of {other} cannot be written");
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
        }
        Ok(())
    }
}

/// The factor of a row. Special tokens get small logits, so that none of them ends a timed
/// generation.
fn loudness(row: usize, rows: usize, special: usize) -> f32 {
    if row + special < rows { 1.0 } else { 0.01 }
}

fn is_ternary(ty: TensorType) -> bool {
    block_type(ty).is_some_and(BlockType::is_ternary)
}

fn push_halves(values: &[f32], scale: f32, bytes: &mut Vec<u8>) {
    let halves = values.iter().map(|value| f16::from_f32(scale * value));
    bytes.extend(halves.flat_map(f16::to_le_bytes));
}

/// xorshift64, which gives the same numbers in every run.
pub(super) struct Noise(u64);

impl Noise {
    pub(super) fn new() -> Self {
        Self(0x2545_f491_4f6c_dd1d)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A value in [-1, 1).
    fn value(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// A value of a normal distribution with a standard deviation of 1, by the method of Box and
    /// Muller.
    fn normal(&mut self) -> f32 {
        // In (0, 1]. With its smallest value the root below is 5.9.
        let chance = ((self.next() >> 39) + 1) as f32 / (1 << 25) as f32;
        let turned = std::f32::consts::PI * self.value();
        (-2.0 * chance.ln()).sqrt() * turned.cos()
    }

    /// Four ternary codes.
    fn codes(&mut self) -> u8 {
        let digits = (self.next() >> 32) as u32;
        (0..4).fold(0, |byte, i| byte << 2 | (((digits >> (8 * i)) & 255) * 3 / 256) as u8)
    }

    /// An f16 near `scale`.
    fn near(&mut self, scale: f32) -> [u8; 2] {
        f16::from_f32(scale * (1.0 + 0.1 * self.value())).to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_without_a_rule_is_refused() {
        let mut tensor = Tensor {
            name: "output.weight".into(),
            ty: TensorType::Q4_0,
            ne: vec![32, 1],
            len: 18,
            fill: Fill::Noise,
        };
        let error = tensor.write(&mut Noise::new(), &mut Vec::new()).expect_err("no rule");
        assert_eq!(error.to_string(), "random values of Q4_0 cannot be written");
        tensor.ty = TensorType::F16;
        let mut bytes = Vec::new();
        tensor.write(&mut Noise::new(), &mut bytes).expect("a rule");
        assert_eq!(bytes.len(), 64);
    }
}

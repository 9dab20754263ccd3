//! The tensors of a model with random weights.

use std::io::{self, Write};

use half::f16;

use ternlight::gguf::TensorEntry;
use ternlight::gguf::type_id::{F16, F32, I2_S};
use ternlight::ternary::{self, Layout};

use super::{SPECIAL, Sizes};

/// The scale of a [`Fill::Shift`] matrix: large enough that the shifted values outweigh what the
/// residual stream holds already.
const SHIFT_SCALE: f32 = 8.0;

/// A tensor and the rule that fills it.
pub(super) struct Tensor {
    pub(super) name: String,
    ty: u32,
    ne: Vec<usize>,
    fill: Fill,
}

/// What a tensor holds.
#[derive(Clone, Copy, PartialEq)]
enum Fill {
    Noise,
    /// One row of noise; each row after it is the row before, rotated by one value. A new row of
    /// noise starts when the rotation has come full circle.
    Rotated,
    /// Ternary: copies each value, shifted by this many positions.
    Shift(usize),
    /// Noise with a scale of 0.
    Zero,
}

/// All tensors, in the order in which bitnet.cpp's converter writes them.
pub(super) fn tensors(sizes: &Sizes) -> Vec<Tensor> {
    let (n_embd, n_ff) = (sizes.n_embd, sizes.n_ff);
    let n_kv = n_embd / sizes.n_head * sizes.n_head_kv;
    let tensor = |name: String, ty, ne: &[usize]| Tensor {
        name: format!("{name}.weight"),
        ty,
        ne: ne.to_vec(),
        fill: Fill::Noise,
    };
    let mut all = vec![
        tensor("token_embd".into(), F16, &[n_embd, sizes.n_vocab]),
        tensor("output_norm".into(), F32, &[n_embd]),
    ];
    for block in 0..sizes.n_layer {
        let tensors: [(&str, u32, &[usize]); 11] = [
            ("attn_norm", F32, &[n_embd]),
            ("ffn_down", I2_S, &[n_ff, n_embd]),
            ("ffn_gate", I2_S, &[n_embd, n_ff]),
            ("ffn_up", I2_S, &[n_embd, n_ff]),
            ("ffn_norm", F32, &[n_embd]),
            ("attn_sub_norm", F32, &[n_embd]),
            ("attn_k", I2_S, &[n_embd, n_kv]),
            ("attn_output", I2_S, &[n_embd, n_embd]),
            ("attn_q", I2_S, &[n_embd, n_embd]),
            ("attn_v", I2_S, &[n_embd, n_kv]),
            ("ffn_sub_norm", F32, &[n_ff]),
        ];
        all.extend(tensors.map(|(name, ty, ne)| tensor(format!("blk.{block}.{name}"), ty, ne)));
    }
    all
}

impl Tensor {
    /// Makes this the tensor of a model that counts.
    ///
    /// Each row of the embedding is the row before it, rotated by one value. In the first block
    /// gate and up copy their input, so that their product is the cube of every value above 0;
    /// down puts the cubes where the next token's row has them. All other blocks add nothing.
    pub(super) fn count(&mut self) {
        let in_block = self.name.strip_prefix("blk.").and_then(|name| name.split_once('.'));
        self.fill = match in_block {
            None if self.ty == F16 => Fill::Rotated,
            Some(("0", "ffn_gate.weight" | "ffn_up.weight")) => Fill::Shift(0),
            Some(("0", "ffn_down.weight")) => Fill::Shift(1),
            Some((_, "attn_output.weight" | "ffn_down.weight")) => Fill::Zero,
            _ => Fill::Noise,
        };
    }

    /// Its row of the tensor table.
    pub(super) fn entry(&self) -> TensorEntry {
        let elements: usize = self.ne.iter().product();
        let len = match self.ty {
            F32 => 4 * elements,
            F16 => 2 * elements,
            _ => elements / 4 + ternary::TAIL,
        };
        TensorEntry {
            name: self.name.clone(),
            ne: self.ne.iter().map(|&n| n as u64).collect(),
            type_id: self.ty,
            len: len as u64,
        }
    }

    pub(super) fn write(&self, noise: &mut Noise, out: &mut impl Write) -> io::Result<()> {
        match self.ty {
            F32 => self.write_norm(noise, out),
            F16 => self.write_embedding(noise, out),
            _ => self.write_ternary(noise, out),
        }
    }

    fn write_norm(&self, noise: &mut Noise, out: &mut impl Write) -> io::Result<()> {
        for _ in 0..self.ne[0] {
            out.write_all(&(1.0 + 0.1 * noise.value()).to_le_bytes())?;
        }
        Ok(())
    }

    fn write_embedding(&self, noise: &mut Noise, out: &mut impl Write) -> io::Result<()> {
        let mut values = Vec::new();
        for row in 0..self.ne[1] {
            if self.fill == Fill::Rotated && row % self.ne[0] > 0 {
                values.rotate_right(1);
            } else {
                values = (0..self.ne[0]).map(|_| noise.value()).collect();
            }
            // Special tokens get small logits, so that none ends a timed generation.
            let size = if row + SPECIAL.len() < self.ne[1] { 1.0 } else { 0.01 };
            let halves = values.iter().map(|value| f16::from_f32(size * value));
            out.write_all(&halves.flat_map(f16::to_le_bytes).collect::<Vec<u8>>())?;
        }
        Ok(())
    }

    fn write_ternary(&self, noise: &mut Noise, out: &mut impl Write) -> io::Result<()> {
        let scale = match self.fill {
            Fill::Shift(by) => {
                self.write_shift(by, out)?;
                SHIFT_SCALE
            }
            fill => {
                let bytes = self.ne.iter().product::<usize>() / 4;
                let codes: Vec<u8> = (0..bytes).map(|_| noise.codes()).collect();
                out.write_all(&codes)?;
                // Two thirds of the codes are not 0: the output is as large as the input.
                let unit = (self.ne[0] as f32 * 2.0 / 3.0).sqrt().recip();
                if fill == Fill::Zero { 0.0 } else { unit }
            }
        };
        let mut tail = [0; ternary::TAIL];
        tail[..4].copy_from_slice(&scale.to_le_bytes());
        out.write_all(&tail)
    }

    /// The codes of a matrix that copies each value, shifted by `by` positions.
    fn write_shift(&self, by: usize, out: &mut impl Write) -> io::Result<()> {
        let width = self.ne[0].min(self.ne[1]);
        for row in 0..self.ne[1] {
            let mut values = vec![0; self.ne[0]];
            if row < width {
                values[(row + width - by) % width] = 1;
            }
            out.write_all(&ternary::pack(&values, Layout::X86))?;
        }
        Ok(())
    }
}

/// xorshift64: the same numbers in every run.
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

    /// In [-1, 1).
    fn value(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// Four ternary codes.
    fn codes(&mut self) -> u8 {
        let digits = (self.next() >> 32) as u32;
        (0..4).fold(0, |byte, i| byte << 2 | (((digits >> (8 * i)) & 255) * 3 / 256) as u8)
    }
}

//! Matrices: from the floats or codes of a checkpoint to ternary codes and their scales.

use half::f16;

use tritloom::ternary::{self, Layout};
use tritloom::{Error, Result};

use super::Ternary;
use super::checkpoint::Checkpoint;
use super::config::Storage;
use super::safetensors::{Dtype, Tensor};

/// A value is off if it is further than this share of the scale from -1, 0 or 1 times the scale.
/// Rounding to bf16 moves a value by at most as much, so in a ternary checkpoint none is off. With
/// a scale for every 64 values, 97.6 % of the values of a normal distribution are off.
const TOLERANCE: f32 = 1.0 / 256.0;

/// Elements that share a scale in Q2_0. For floats too, a scale is found for as many.
pub(super) const GROUP: usize = 64;

/// The least scale of masters, as in training.
const MIN_SCALE: f64 = 1e-5;

/// The greatest scale. No trained matrix has values of this size. A greater scale was meant to be
/// divided by, not multiplied with, or the other way round.
const MAX_SCALE: f32 = 16.0;

/// Elements that are read at a time.
const SLICE: u64 = 1 << 20;

/// A matrix of a checkpoint.
pub(super) struct Matrix<'a> {
    pub(super) tensor: &'a Tensor,
    pub(super) scale: Option<&'a Tensor>,
    /// The width of a head if the rows have to be permuted. In a checkpoint, RoPE rotates rows `i`
    /// and `i + head_dim / 2` of a head together. They become rows `2i` and `2i + 1`.
    pub(super) permuted: Option<u64>,
}

/// How the codes and scales of a matrix are found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found {
    /// Floats are divided by this scale and rounded.
    Masters(f32),
    /// Four codes in a byte, with this scale.
    Packed(f32),
    /// Floats that are a factor times ternary values. `one` is the scale of all values, if they
    /// have only one.
    Floats { factor: f32, one: Option<f32> },
}

/// How many values of floats that should be ternary there are, and how many of them are off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Off {
    pub(super) off: u64,
    pub(super) all: u64,
}

impl Off {
    /// The share of the values that are off, for people.
    pub(super) fn share(self) -> String {
        let percent = self.off as f64 * 100.0 / self.all.max(1) as f64;
        format!("{percent:.1} % ({} of {})", self.off, self.all)
    }
}

/// Rows of a matrix.
pub(super) struct Rows {
    /// The code of each value: -1, 0 or 1.
    pub(super) codes: Vec<i8>,
    /// One scale for each [`GROUP`], or one for all.
    scales: Vec<f32>,
}

impl Matrix<'_> {
    /// `[rows, columns]`. Four rows are packed into one.
    pub(super) fn shape(&self) -> Result<[u64; 2]> {
        let [rows, columns] = self.tensor.shape[..] else {
            return Err(self.shape_error("a matrix"));
        };
        let per_byte = if self.tensor.dtype == Dtype::U8 { 4 } else { 1 };
        match rows.checked_mul(per_byte) {
            Some(rows) if rows > 0 && columns > 0 => Ok([rows, columns]),
            _ => Err(self.shape_error("a matrix that is not empty")),
        }
    }

    fn shape_error(&self, expected: &str) -> Error {
        Error::TensorShape {
            name: self.tensor.name.clone(),
            found: self.tensor.to_string(),
            expected: expected.into(),
        }
    }

    /// Reads the matrix once, to find its scale and whether it is ternary.
    pub(super) fn survey(
        &self,
        checkpoint: &Checkpoint,
        storage: Storage,
        off: &mut Off,
    ) -> Result<Found> {
        let name = &self.tensor.name;
        let scale = self.scale.map(|scale| checkpoint.scalar(scale)).transpose()?;
        let is_packed = self.tensor.dtype == Dtype::U8;
        let factor = match (scale, storage.multiplies) {
            (None, _) if is_packed => {
                return Err(Error::MissingTensor { name: format!("{name}_scale") });
            }
            (None, _) => 1.0,
            (Some(_), _) if storage.masters && !is_packed => {
                return unsupported(format!(
                    "`{name}` has a `weight_scale`, but config.json says that the model rounds its \
                     weights in each pass"
                ));
            }
            (Some(scale), Some(true)) => scale,
            (Some(scale), Some(false)) => 1.0 / scale,
            (Some(_), None) => {
                return unsupported(format!(
                    "`{name}` has a `weight_scale`, but config.json has no `quantization_config`, \
                     which says whether it multiplies or divides"
                ));
            }
        };
        if !(factor.is_finite() && factor > 0.0) {
            return unsupported(format!("`weight_scale` of `{name}` is {}", scale.unwrap_or(0.0)));
        }
        if is_packed {
            self.survey_packed(checkpoint)?;
            return Ok(Found::Packed(self.plausible(factor)?));
        }
        if storage.masters {
            let mut sum = 0.0;
            self.slices(|first, end| {
                let values = checkpoint.floats(self.tensor, first..end)?;
                sum += values.iter().map(|x| f64::from(x.abs())).sum::<f64>();
                Ok(())
            })?;
            let [rows, columns] = self.shape()?;
            let mean = sum / (rows as f64 * columns as f64);
            return Ok(Found::Masters(mean.max(MIN_SCALE) as f32));
        }
        let (mut least, mut most) = (f32::INFINITY, 0.0f32);
        self.slices(|first, end| {
            let values = checkpoint.floats(self.tensor, first..end)?;
            off.all += values.len() as u64;
            for group in values.chunks(GROUP) {
                let scale = group_scale(group);
                let is_off = |x: &&f32| {
                    let ratio = x.abs() / scale;
                    ratio > TOLERANCE && ratio < 1.0 - TOLERANCE
                };
                if scale > 0.0 {
                    off.off += group.iter().filter(is_off).count() as u64;
                    (least, most) = (least.min(scale), most.max(scale));
                }
            }
            Ok(())
        })?;
        let most = self.plausible(most * factor)? / factor;
        // Without a value that is not 0, the scale does not matter.
        let one = most == 0.0 || most - least <= TOLERANCE * most;
        Ok(Found::Floats { factor, one: one.then_some(most * factor) })
    }

    /// Refuses a matrix that has code 3, which stands for no value.
    fn survey_packed(&self, checkpoint: &Checkpoint) -> Result<()> {
        let [rows, columns] = self.shape()?;
        let len = rows / 4 * columns;
        for first in (0..len).step_by(SLICE as usize) {
            let bytes = checkpoint.bytes(self.tensor, first..len.min(first + SLICE))?;
            ternary::check_codes(&bytes).map_err(|index| {
                let (name, at) = (&self.tensor.name, first + index as u64);
                Error::UnsupportedModel(format!("byte {at} of tensor `{name}` has the code 3"))
            })?;
        }
        Ok(())
    }

    fn plausible(&self, scale: f32) -> Result<f32> {
        if scale <= MAX_SCALE {
            return Ok(scale);
        }
        unsupported(format!(
            "the values of `{}` would be -{scale}, 0 and {scale}, larger than any that are \
             trained; `linear_class` in config.json says whether `weight_scale` multiplies \
             (`autobitlinear`) or divides (`bitlinear`)",
            self.tensor.name
        ))
    }

    /// Calls `slice(first, end)` for ranges of elements. Each is of whole groups.
    fn slices(&self, mut slice: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        let [rows, columns] = self.shape()?;
        let all = rows.saturating_mul(columns);
        (0..all).step_by(SLICE as usize).try_for_each(|first| slice(first, all.min(first + SLICE)))
    }

    /// How many rows are read at a time.
    pub(super) fn rows_at_a_time(&self) -> Result<u64> {
        let [_, columns] = self.shape()?;
        let rows = (SLICE / columns).max(1);
        Ok(match self.permuted {
            Some(head_dim) => rows.next_multiple_of(head_dim),
            None => rows,
        })
    }

    /// Rows `first..end`, in the order of GGUF. `first` is a multiple of
    /// [`Matrix::rows_at_a_time`].
    pub(super) fn rows(
        &self,
        checkpoint: &Checkpoint,
        found: Found,
        first: u64,
        end: u64,
    ) -> Result<Rows> {
        let [_, columns] = self.shape()?;
        let floats = || checkpoint.floats(self.tensor, first * columns..end * columns);
        let rows = match found {
            Found::Packed(scale) => {
                Rows { codes: self.packed(checkpoint, first, end)?, scales: vec![scale] }
            }
            Found::Masters(scale) => {
                let code = |x: f32| {
                    (f64::from(x) / f64::from(scale)).round_ties_even().clamp(-1.0, 1.0) as i8
                };
                let codes = floats()?.into_iter().map(code).collect();
                Rows { codes, scales: vec![scale] }
            }
            Found::Floats { factor, one } => {
                let values = floats()?;
                let (mut codes, mut scales) = (Vec::with_capacity(values.len()), Vec::new());
                for group in values.chunks(GROUP) {
                    let scale = group_scale(group);
                    let code = |x: &f32| if x.abs() * 2.0 < scale { 0 } else { x.signum() as i8 };
                    codes.extend(group.iter().map(|x| if scale > 0.0 { code(x) } else { 0 }));
                    scales.push(scale * factor);
                }
                Rows { codes, scales: one.map_or(scales, |scale| vec![scale]) }
            }
        };
        Ok(match self.permuted {
            None => rows,
            Some(head_dim) => rows.permuted(columns as usize, head_dim as usize),
        })
    }

    /// Unpacks rows: bits `2i` and `2i + 1` of row `r` are row `r + i * rows / 4`.
    fn packed(&self, checkpoint: &Checkpoint, first: u64, end: u64) -> Result<Vec<i8>> {
        let [rows, columns] = self.shape()?;
        let quarter = rows / 4;
        let mut codes = Vec::with_capacity(((end - first) * columns) as usize);
        let mut row = first;
        while row < end {
            let (field, from) = (row / quarter, row % quarter);
            let to = quarter.min(from + end - row);
            let bytes = checkpoint.bytes(self.tensor, from * columns..to * columns)?;
            codes.extend(bytes.iter().map(|byte| (byte >> (2 * field) & 3) as i8 - 1));
            row += to - from;
        }
        Ok(codes)
    }
}

/// The scale of a group, which is its largest absolute value.
fn group_scale(group: &[f32]) -> f32 {
    group.iter().fold(0.0, |max, x| max.max(x.abs()))
}

/// The rows of whole heads in the order of [`Matrix::permuted`].
pub(super) fn permuted<T: Copy>(values: &[T], columns: usize, head_dim: usize) -> Vec<T> {
    let half = head_dim / 2;
    let rows = |head: &[T]| {
        let row = |i: usize| head[i * columns..][..columns].to_vec();
        (0..half).flat_map(|i| [row(i), row(i + half)]).flatten().collect::<Vec<T>>()
    };
    values.chunks((columns * head_dim).max(1)).flat_map(rows).collect()
}

impl Rows {
    fn permuted(self, columns: usize, head_dim: usize) -> Self {
        let scales = match self.scales.len() {
            1 => self.scales,
            _ => permuted(&self.scales, columns / GROUP, head_dim),
        };
        Self { codes: permuted(&self.codes, columns, head_dim), scales }
    }

    /// The rows as GGUF has them, without the bytes that follow the last row.
    ///
    /// Errors: a scale that the type cannot hold.
    pub(super) fn encode(&self, ternary: Ternary) -> Result<Vec<u8>, f32> {
        match ternary {
            Ternary::I2S => Ok(ternary::pack(&self.codes, Layout::X86)),
            Ternary::Q2_0 => {
                let mut blocks = Vec::with_capacity(self.codes.len() / GROUP * 18);
                for (index, codes) in self.codes.chunks(GROUP).enumerate() {
                    let scale = self.scales.get(index).unwrap_or(&self.scales[0]);
                    let d = f16::from_f32(*scale);
                    if !(d.is_normal() || *scale == 0.0) {
                        return Err(*scale);
                    }
                    blocks.extend(d.to_le_bytes());
                    blocks.extend(codes.chunks(4).map(|four| {
                        (0..)
                            .zip(four)
                            .fold(0, |byte, (i, code)| byte | ((code + 1) as u8) << (2 * i))
                    }));
                }
                Ok(blocks)
            }
        }
    }
}

fn unsupported<T>(why: String) -> Result<T> {
    Err(Error::UnsupportedModel(why))
}

//! The contents of a tensor of a file: how often it has each ternary value, its scales, its values.

use std::ops::Range;

use half::{bf16, f16};
use serde::Serialize;

use crate::blocks::{BlockType, Fault, block_type};
use crate::error::{Error, Result};
use crate::gguf::{TensorInfo, TensorType};
use crate::source::{Reader, Source};
use crate::ternary::{self, Layout};

/// Bytes that are read at a time, rounded to whole blocks.
const SLICE: usize = 1 << 20;

/// The most values that [`rows`] gives.
const MAX_VALUES: u64 = 1 << 24;

/// Elements of I2_S whose codes are together in either layout.
const I2S_ELEMENTS: u64 = 128;

/// The codes and the scales of a tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// How many elements are -1, 0 and +1, in types that have only these values. All 0 in others.
    pub counts: [u64; 3],
    /// The scales. A ternary value stands for itself times the scale of its group.
    pub scales: Option<Spread>,
    /// The offsets, in types that have them.
    pub offsets: Option<Spread>,
}

/// Some numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// The least.
    pub min: f32,
    /// The greatest.
    pub max: f32,
    /// Their mean.
    pub mean: f64,
}

impl Contents {
    /// The bits of information of a ternary element, if each were drawn by the shares of -1, 0 and +1 alone: at most
    /// log2(3). `None` of types with other values.
    pub fn entropy(&self) -> Option<f64> {
        let all: u64 = self.counts.iter().sum();
        let bits = |&count: &u64| {
            let share = count as f64 / all as f64;
            if count == 0 { 0.0 } else { -share * share.log2() }
        };
        (all > 0).then(|| self.counts.iter().map(bits).sum())
    }

    /// Counts -1 and +1 in words of 32 codes of 1 bit. The order of the codes does not matter.
    fn count_bits(&mut self, words: &[u32]) {
        let plus: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
        self.counts[0] += 32 * words.len() as u64 - plus;
        self.counts[2] += plus;
    }

    /// Counts the codes -1, 0 and +1 in words of 16 codes. The order of the codes does not matter.
    fn count(&mut self, words: impl Iterator<Item = u32>) {
        for word in words {
            let ones = |word: u32| u64::from((word & 0x5555_5555).count_ones());
            let (zero, plus) = (ones(word), ones(word >> 1));
            let minus = 16 - zero - plus;
            self.counts.iter_mut().zip([minus, zero, plus]).for_each(|(all, count)| *all += count);
        }
    }

    /// Adds scales and offsets.
    fn extend(&mut self, scales: &[f32], offsets: &[f32]) {
        for (spread, values) in [(&mut self.scales, scales), (&mut self.offsets, offsets)] {
            for &value in values {
                let Spread { count, min, max, mean } =
                    spread.unwrap_or(Spread { count: 0, min: value, max: value, mean: 0.0 });
                let count = count + 1;
                let mean = mean + (f64::from(value) - mean) / count as f64;
                *spread = Some(Spread { count, min: min.min(value), max: max.max(value), mean });
            }
        }
    }
}

/// Reads a whole tensor whose type has scales; `None` for other types.
///
/// Errors: `bad-gguf` for a code that no value has and for a scale that is not finite, and those of the source.
pub async fn contents<S: Source>(
    reader: &mut Reader<S>,
    tensor: &TensorInfo,
) -> Result<Option<Contents>> {
    let mut contents = Contents::default();
    let end = tensor.offset + tensor.len;
    if let Some(row) = block_type(tensor.ty) {
        let (mut words, mut scales, mut offsets) = (vec![], vec![], vec![]);
        for range in slices(tensor.offset..end, row.bytes) {
            let bytes = reader.read(range.clone()).await?;
            words.clear();
            scales.clear();
            offsets.clear();
            row.repack(&bytes, &mut words, &mut scales, &mut offsets)
                .map_err(|fault| of_block(tensor, row, range.start, fault))?;
            contents.extend(&scales, &offsets);
            // Codes of 1 and 2 bits stand for -1, 0 and +1 times the scale.
            match row.bits {
                1 => contents.count_bits(&words),
                2 => contents.count(words.iter().copied()),
                _ => {}
            }
        }
    } else if tensor.ty == TensorType::I2S {
        let tail = end - ternary::TAIL as u64;
        for range in slices(tensor.offset..tail, size_of::<u32>()) {
            let bytes = reader.read(range.clone()).await?;
            check_codes(tensor, &bytes, range.start)?;
            contents.count(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)));
        }
        contents.extend(&[scale(reader, tensor).await?], &[]);
    } else {
        return Ok(None);
    }
    Ok(Some(contents))
}

/// The values `[rows, columns]` of rows of a tensor, whose I2_S codes are in the order of `layout`.
///
/// Errors: `bad-option` for rows that it does not have, for more than 16777216 values, and for a type that this crate does
/// not compute with; `bad-gguf` as [`contents`]; and those of the source.
pub async fn rows<S: Source>(
    reader: &mut Reader<S>,
    tensor: &TensorInfo,
    rows: Range<u64>,
    layout: Layout,
) -> Result<Vec<f32>> {
    let bad = |name: &str, why| Err(Error::BadOption { name: name.into(), why });
    let columns = tensor.ne.first().copied().unwrap_or(0);
    let all = tensor.elements().checked_div(columns).unwrap_or(0);
    if rows.start >= rows.end || rows.end > all {
        let why = format!("are {} to {}, but the tensor has {all}", rows.start, rows.end);
        return bad("rows", why);
    }
    if (rows.end - rows.start).saturating_mul(columns) > MAX_VALUES {
        return bad("rows", format!("have more than {MAX_VALUES} values"));
    }
    let elements = rows.start * columns..rows.end * columns;
    let of_bytes =
        |each: u64| tensor.offset + elements.start * each..tensor.offset + elements.end * each;
    if let Some(row) = block_type(tensor.ty) {
        // A row is whole blocks.
        let at = |element: u64| tensor.offset + element / row.elements as u64 * row.bytes as u64;
        let start = at(elements.start);
        let bytes = reader.read(start..at(elements.end)).await?;
        return row.values(&bytes).map_err(|fault| of_block(tensor, row, start, fault));
    }
    match tensor.ty {
        TensorType::F32 => {
            let bytes = reader.read(of_bytes(4)).await?;
            Ok(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
        }
        TensorType::F16 => {
            let bytes = reader.read(of_bytes(2)).await?;
            Ok(bytes.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect())
        }
        TensorType::Bf16 => {
            let bytes = reader.read(of_bytes(2)).await?;
            Ok(bytes.as_chunks().0.iter().map(|b| bf16::from_le_bytes(*b).to_f32()).collect())
        }
        TensorType::I2S => {
            let first = elements.start / I2S_ELEMENTS * I2S_ELEMENTS;
            let last = elements.end.next_multiple_of(I2S_ELEMENTS).min(tensor.elements());
            let start = tensor.offset + first / 4;
            let bytes = reader.read(start..tensor.offset + last / 4).await?;
            check_codes(tensor, &bytes, start)?;
            let codes = ternary::unpack(&bytes, layout);
            let scale = scale(reader, tensor).await?;
            let skipped = (elements.start - first) as usize;
            let wanted = (elements.end - elements.start) as usize;
            Ok(codes
                .iter()
                .skip(skipped)
                .take(wanted)
                .map(|&code| f32::from(code) * scale)
                .collect())
        }
        other => {
            bad("tensor", format!("`{}` has the type {other}, which cannot be read", tensor.name))
        }
    }
}

/// The scale of a tensor of I2_S.
async fn scale<S: Source>(reader: &mut Reader<S>, tensor: &TensorInfo) -> Result<f32> {
    let end = tensor.offset + tensor.len;
    let tail = end - ternary::TAIL as u64;
    ternary::scale(&reader.read(tail..end).await?).ok_or_else(|| bad_scale(tensor, tail))
}

fn check_codes(tensor: &TensorInfo, codes: &[u8], start: u64) -> Result<()> {
    ternary::check_codes(codes).map_err(|index| bad_code(tensor, start + index as u64))
}

/// The error for a fault in blocks that begin at byte `start` of the file.
fn of_block(tensor: &TensorInfo, row: &BlockType, start: u64, fault: Fault) -> Error {
    let at = start + row.offset_of(fault) as u64;
    match fault {
        Fault::Code(_) => bad_code(tensor, at),
        Fault::Scale(_) => bad_scale(tensor, at),
    }
}

fn bad_code(tensor: &TensorInfo, at: u64) -> Error {
    Error::BadGguf(format!("tensor `{}` has the unused code 3 (at byte {at})", tensor.name))
}

fn bad_scale(tensor: &TensorInfo, at: u64) -> Error {
    Error::BadGguf(format!(
        "tensor `{}` has a scale that is not a number (at byte {at})",
        tensor.name
    ))
}

/// Cuts a range into slices of whole blocks.
fn slices(range: Range<u64>, block: usize) -> impl Iterator<Item = Range<u64>> {
    let step = SLICE.next_multiple_of(block);
    let end = range.end;
    range.step_by(step).map(move |start| start..end.min(start + step as u64))
}

//! Weights in blocks: a block holds the codes of a few elements and the scales that they share.
//!
//! [`TABLE`] has a row for each type of ggml that this crate computes with, but for I2_S, which has
//! no blocks and is in [`crate::ternary`]. `decode.rs` alone knows the bytes of a block. It yields
//! the codes in the GPU's order, which `codes.rs` describes.

mod codes;
mod decode;
mod finite;
pub mod quantize;

pub use codes::{pack, unpack};
pub use finite::are_finite;

use crate::gguf::TensorType;

/// How a type holds its values: `scale * (code - zero) - offset`.
///
/// Elements follow one another in groups, which share a scale. Blocks only matter in the file: a
/// block is one or more whole groups.
#[derive(Debug)]
pub struct BlockType {
    /// The type in the file.
    pub ty: TensorType,
    /// Elements of a block.
    pub elements: usize,
    /// Bytes of a block in the file.
    pub bytes: usize,
    /// Bits of a code on the GPU: 1, 2, 4 or 8.
    pub bits: u32,
    /// Elements that share a scale.
    pub group: usize,
    /// The code of the value 0.
    pub zero: i32,
    /// The scales of a block, by group.
    pub scales: BlockScales,
    /// Appends the codes of whole blocks in the GPU's order.
    codes: fn(&[u8], &mut Vec<u32>),
}

/// How the blocks of a type hold the scale of each group, with the function that reads the scales
/// of whole blocks.
#[derive(Clone, Copy, Debug)]
pub enum BlockScales {
    /// The scale is an f16. The function appends the scales.
    F16(fn(&[u8], &mut Vec<f32>)),
    /// The scale is the product of the block's f16 and an int8 factor. The function appends the f16
    /// of each block, and the factors.
    Factors(fn(&[u8], &mut Vec<f32>, &mut Vec<i8>)),
    /// A scale and an offset, each the product of an f16 and an integer. The function appends the
    /// scales and the offsets.
    WithOffsets(fn(&[u8], &mut Vec<f32>, &mut Vec<f32>)),
}

/// A fault in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The element with this index has a code that no value has.
    Code(usize),
    /// The scale or the offset of the group with this index is infinite or no number.
    Scale(usize),
}

/// The type's row of the table; `None` if the type has no blocks or is not supported.
pub fn block_type(ty: TensorType) -> Option<&'static BlockType> {
    TABLE.iter().find(|row| row.ty == ty)
}

/// Every type, in the order of the numbers they have in files.
pub static TABLE: &[BlockType] = &[
    BlockType {
        ty: TensorType::Q4_0,
        elements: 32,
        bytes: 18,
        bits: 4,
        group: 32,
        zero: 8,
        scales: BlockScales::F16(decode::f16_at::<0, 18>),
        codes: decode::q4_0,
    },
    BlockType {
        ty: TensorType::Q8_0,
        elements: 32,
        bytes: 34,
        bits: 8,
        group: 32,
        zero: 128,
        scales: BlockScales::F16(decode::f16_at::<0, 34>),
        codes: decode::q8_0,
    },
    BlockType {
        ty: TensorType::Q4K,
        elements: 256,
        bytes: 144,
        bits: 4,
        group: 32,
        zero: 0,
        scales: BlockScales::WithOffsets(decode::q4_k_scales),
        codes: decode::q4_k,
    },
    BlockType {
        ty: TensorType::Q6K,
        elements: 256,
        bytes: 210,
        bits: 8,
        group: 16,
        zero: 128,
        scales: BlockScales::Factors(decode::q6_k_scales),
        codes: decode::q6_k,
    },
    BlockType {
        ty: TensorType::Tq1_0,
        elements: 256,
        bytes: 54,
        bits: 2,
        group: 256,
        zero: 1,
        scales: BlockScales::F16(decode::f16_at::<52, 54>),
        codes: decode::tq1_0,
    },
    BlockType {
        ty: TensorType::Tq2_0,
        elements: 256,
        bytes: 66,
        bits: 2,
        group: 256,
        zero: 1,
        scales: BlockScales::F16(decode::f16_at::<64, 66>),
        codes: decode::tq2_0,
    },
    BlockType {
        ty: TensorType::Q1_0,
        elements: 128,
        bytes: 18,
        bits: 1,
        group: 128,
        zero: 1,
        scales: BlockScales::F16(decode::f16_at::<0, 18>),
        codes: decode::q1_0,
    },
    BlockType {
        ty: TensorType::Q2_0,
        elements: 64,
        bytes: 18,
        bits: 2,
        group: 64,
        zero: 1,
        scales: BlockScales::F16(decode::f16_at::<0, 18>),
        codes: decode::q2_0::<18>,
    },
    BlockType {
        ty: TensorType::Q2_0Of128,
        elements: 128,
        bytes: 34,
        bits: 2,
        group: 128,
        zero: 1,
        scales: BlockScales::F16(decode::f16_at::<0, 34>),
        codes: decode::q2_0::<34>,
    },
    BlockType {
        ty: TensorType::Pq2_0,
        elements: 128,
        bytes: 34,
        bits: 2,
        group: 128,
        zero: 1,
        scales: BlockScales::F16(decode::f16_at::<0, 34>),
        codes: decode::q2_0::<34>,
    },
];

impl BlockType {
    /// Whether the values are -1, 0 and +1 times a scale, or only two of these three.
    pub fn is_ternary(&self) -> bool {
        self.bits <= 2
    }

    /// Appends the codes of `blocks` in the GPU's order (see [`pack`]), and a scale for each group.
    /// Types with offsets append an offset for each group too.
    ///
    /// Errors: the first code that no value has, or else the first scale that is not finite. The
    /// contents appended so far are of no use then.
    ///
    /// Panics if the last block is not whole.
    pub fn repack(
        &self,
        blocks: &[u8],
        words: &mut Vec<u32>,
        scales: &mut Vec<f32>,
        offsets: &mut Vec<f32>,
    ) -> Result<(), Fault> {
        assert!(blocks.len().is_multiple_of(self.bytes), "{} of {} bytes", self.ty, blocks.len());
        let begin = (words.len(), scales.len(), offsets.len());
        (self.codes)(blocks, words);
        match self.scales {
            BlockScales::F16(read) => read(blocks, scales),
            BlockScales::Factors(read) => {
                let (mut of_blocks, mut factors) = (Vec::new(), Vec::new());
                read(blocks, &mut of_blocks, &mut factors);
                let groups = factors.chunks_exact(self.elements / self.group).zip(of_blocks);
                scales.extend(groups.flat_map(|(factors, of_block)| {
                    factors.iter().map(move |&factor| of_block * f32::from(factor))
                }));
            }
            BlockScales::WithOffsets(read) => read(blocks, scales, offsets),
        }
        if self.bits == 2
            && let Some(element) = codes::find_3(&words[begin.0..])
        {
            return Err(Fault::Code(element));
        }
        let bad = |new: &[f32]| new.iter().position(|scale| !scale.is_finite());
        match bad(&scales[begin.1..]).or_else(|| bad(&offsets[begin.2..])) {
            Some(group) => Err(Fault::Scale(group)),
            None => Ok(()),
        }
    }

    /// Refuses blocks with a code or a scale that no value has.
    ///
    /// Errors and panics: as [`BlockType::repack`].
    pub fn check(&self, blocks: &[u8]) -> Result<(), Fault> {
        let (mut words, mut scales, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
        self.repack(blocks, &mut words, &mut scales, &mut offsets)
    }

    /// Like [`BlockType::repack`], with a code for each element.
    pub fn unpack(
        &self,
        blocks: &[u8],
        codes: &mut Vec<u8>,
        scales: &mut Vec<f32>,
        offsets: &mut Vec<f32>,
    ) -> Result<(), Fault> {
        let mut words = Vec::new();
        self.repack(blocks, &mut words, scales, offsets)?;
        unpack(self.bits, &words, codes);
        Ok(())
    }

    /// The values of `blocks`, for the reference.
    ///
    /// Errors and panics: as [`BlockType::repack`].
    pub fn values(&self, blocks: &[u8]) -> Result<Vec<f32>, Fault> {
        let (mut codes, mut scales, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
        self.unpack(blocks, &mut codes, &mut scales, &mut offsets)?;
        offsets.resize(scales.len(), 0.0);
        let groups = codes.chunks_exact(self.group).zip(scales.iter().zip(&offsets));
        let value = |code: u8, (scale, offset): (&f32, &f32)| {
            scale * (i32::from(code) - self.zero) as f32 - offset
        };
        Ok(groups
            .flat_map(|(codes, group)| codes.iter().map(move |&code| value(code, group)))
            .collect())
    }

    /// The offset of the block with the fault, in the bytes that were unpacked.
    pub fn offset_of(&self, fault: Fault) -> usize {
        let element = match fault {
            Fault::Code(element) => element,
            Fault::Scale(group) => group * self.group,
        };
        element / self.elements * self.bytes
    }
}

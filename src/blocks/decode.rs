//! The blocks of each type, byte by byte.
//!
//! They are read four bytes at a time: a word of the file often holds the same bits of four
//! consecutive elements. Nothing depends on a code's value, so that gigabytes pass quickly. The
//! layouts are those of ggml's `ggml-common.h` and `dequantize_row_*`; Q2_0 of 128 and PQ2_0 are
//! those of PrismML's fork.

use half::f16;

use super::codes::{from_natural, interleave};

/// Two bits of each byte.
const TWO: u32 = 0x0303_0303;
/// Four bits of each byte.
const FOUR: u32 = 0x0f0f_0f0f;

fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let (words, _) = bytes.as_chunks::<4>();
    std::array::from_fn(|i| u32::from_le_bytes(words[i]))
}

fn f16_of(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}

/// The scale of each block of `BYTES` bytes. It is an f16 at offset `AT`.
pub(super) fn f16_at<const AT: usize, const BYTES: usize>(blocks: &[u8], scales: &mut Vec<f32>) {
    scales.extend(blocks.as_chunks::<BYTES>().0.iter().map(|block| f16_of(block, AT)));
}

/// Q2_0: a scale, then a byte for every 4 elements.
pub(super) fn q2_0<const BYTES: usize>(blocks: &[u8], out: &mut Vec<u32>) {
    for block in blocks.as_chunks::<BYTES>().0 {
        let (codes, _) = block[2..].as_chunks::<4>();
        out.extend(codes.iter().map(|word| from_natural(u32::from_le_bytes(*word))));
    }
}

/// Q1_0: a scale, then a byte for every 8 elements. A bit of 0 is −1, a bit of 1 is +1.
pub(super) fn q1_0(blocks: &[u8], out: &mut Vec<u32>) {
    // Bit i goes to bit 8 i.
    let spread = |nibble: u32| (nibble * 0x0020_4081) & 0x0101_0101;
    for block in blocks.as_chunks::<18>().0 {
        let natural: [u32; 4] = words(&block[2..]);
        out.extend(
            natural.map(|bits| (0..8).fold(0, |word, i| word | spread(bits >> (4 * i) & 15) << i)),
        );
    }
}

/// TQ2_0: two halves of 128 elements in 32 bytes each. Byte m of a half has elements m, 32 + m, 64
/// + m and 96 + m. Then a scale.
pub(super) fn tq2_0(blocks: &[u8], out: &mut Vec<u32>) {
    for block in blocks.as_chunks::<66>().0 {
        for half in block.as_chunks::<32>().0 {
            let codes: [u32; 8] = words(half);
            // Word 2l + h has elements 32l + 16h and following.
            out.extend::<[u32; 8]>(std::array::from_fn(|word| {
                let (l, h) = (word / 2, word % 2);
                (0..4).fold(0, |out, i| out | (codes[4 * h + i] >> (2 * l) & TWO) << (2 * i))
            }));
        }
    }
}

/// TQ1_0: 32 bytes with 5 elements each, 16 bytes with 5, 4 bytes with 4. Then a scale.
pub(super) fn tq1_0(blocks: &[u8], out: &mut Vec<u32>) {
    const EVEN: u32 = 0x00ff_00ff;
    const DIGIT: u32 = 0x0003_0003;
    for block in blocks.as_chunks::<54>().0 {
        let bytes: [u32; 13] = words(block);
        let mut fours = [0; 64];
        // Unpacks word `word` of the block. Each of `rounds` takes one digit of each of its four
        // bytes, which is a four. The first four has the index `first`, and each later one an index
        // that is greater by `step`.
        let mut digits = |word: usize, first: usize, rounds: usize, step: usize| {
            // A byte is a fraction in base 3. Times 3, its whole part is the next digit, and the
            // rest stays in the lower 8 bits. Two of the four bytes at a time leave room for the
            // whole part.
            let (mut even, mut odd) = (bytes[word] & EVEN, bytes[word] >> 8 & EVEN);
            for round in 0..rounds {
                (even, odd) = (3 * even, 3 * odd);
                fours[first + round * step] = even >> 8 & DIGIT | odd & DIGIT << 8;
                (even, odd) = (even & EVEN, odd & EVEN);
            }
        };
        (0..8).for_each(|m| digits(m, m, 5, 8));
        (0..4).for_each(|m| digits(8 + m, 40 + m, 5, 4));
        digits(12, 60, 4, 1);
        interleave(2, &fours, out);
    }
}

/// Q4_0: a scale, then 16 bytes. Byte j has element j in its lower half, element 16 + j in its
/// upper.
pub(super) fn q4_0(blocks: &[u8], out: &mut Vec<u32>) {
    for block in blocks.as_chunks::<18>().0 {
        let codes: [u32; 4] = words(&block[2..]);
        halves(codes, out);
    }
}

/// Q4_K: scales, then four times 32 bytes. Byte j has element j in its lower half, element 32 + j
/// in its upper.
pub(super) fn q4_k(blocks: &[u8], out: &mut Vec<u32>) {
    for block in blocks.as_chunks::<144>().0 {
        for quarter in block[16..].as_chunks::<32>().0 {
            let codes: [u32; 8] = words(quarter);
            halves(codes, out);
        }
    }
}

/// The lower nibbles of all bytes, then the upper ones.
fn halves<const N: usize>(codes: [u32; N], out: &mut Vec<u32>) {
    interleave(4, &codes.map(|word| word & FOUR), out);
    interleave(4, &codes.map(|word| word >> 4 & FOUR), out);
}

/// The scales and offsets of Q4_K: each of eight groups has a 6-bit factor of `d` for its scale and
/// one of `dmin` for its offset.
pub(super) fn q4_k_scales(blocks: &[u8], scales: &mut Vec<f32>, offsets: &mut Vec<f32>) {
    for block in blocks.as_chunks::<144>().0 {
        let (d, dmin) = (f16_of(block, 0), f16_of(block, 2));
        let [low, middle, high]: [u32; 3] = words(&block[4..]);
        // The factors of the lower four groups leave two bits of each byte free. These bits hold
        // the upper two bits of each factor of the upper four groups.
        let free = |word: u32| (word >> 6 & TWO) << 4;
        let of_scales = [low & 0x3f3f_3f3f, high & FOUR | free(low)];
        let of_offsets = [middle & 0x3f3f_3f3f, high >> 4 & FOUR | free(middle)];
        let bytes = |words: [u32; 2]| words.map(u32::to_le_bytes).into_iter().flatten();
        scales.extend(bytes(of_scales).map(|factor| d * f32::from(factor)));
        offsets.extend(bytes(of_offsets).map(|factor| dmin * f32::from(factor)));
    }
}

/// Q6_K: two halves of 128 elements. Each has four bits of its elements in 64 bytes, and two bits
/// in 32 further ones. Then 16 scales of 8 bits, and their common factor.
pub(super) fn q6_k(blocks: &[u8], out: &mut Vec<u32>) {
    for block in blocks.as_chunks::<210>().0 {
        for half in 0..2 {
            let lower: [u32; 16] = words(&block[64 * half..]);
            let upper: [u32; 8] = words(&block[128 + 32 * half..]);
            out.extend::<[u32; 32]>(std::array::from_fn(|four| {
                let (quarter, m) = (four / 8, four % 8);
                let lower = lower[8 * (quarter % 2) + m] >> (4 * (quarter / 2)) & FOUR;
                let upper = upper[m] >> (2 * quarter) & TWO;
                // In the file 32 stands for zero; here it is 128, as in Q8_0.
                (lower | upper << 4) + 96 * 0x0101_0101
            }));
        }
    }
}

pub(super) fn q6_k_scales(blocks: &[u8], of_blocks: &mut Vec<f32>, factors: &mut Vec<i8>) {
    for block in blocks.as_chunks::<210>().0 {
        of_blocks.push(f16_of(block, 208));
        factors.extend(block[192..208].iter().map(|&factor| factor as i8));
    }
}

/// Q8_0: a scale, then a signed byte for each element.
pub(super) fn q8_0(blocks: &[u8], out: &mut Vec<u32>) {
    for block in blocks.as_chunks::<34>().0 {
        let (codes, _) = block[2..].as_chunks::<4>();
        out.extend(codes.iter().map(|word| u32::from_le_bytes(*word) ^ 0x8080_8080));
    }
}

//! Types with blocks, compared with values that ggml and PrismML's fork of it made.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and tell")]

mod support;

use std::fs;

use half::f16;
use support::{File, Random, Tensor, f16_offsets, floats, path, random_blocks};
use tritloom::blocks::{BlockScales, BlockType, Fault, TABLE, block_type, pack, quantize, unpack};
use tritloom::contents::{contents, rows};
use tritloom::gguf::{Gguf, TensorInfo, TensorType};
use tritloom::native::block_on;
use tritloom::source::Reader;
use tritloom::ternary::Layout;

/// The types, each with its vectors. The older Q2_0 has the bytes of PQ2_0.
const VECTORS: &[(TensorType, &str)] = &[
    (TensorType::Q4_0, "Q4_0"),
    (TensorType::Q8_0, "Q8_0"),
    (TensorType::Q4K, "Q4_K"),
    (TensorType::Q6K, "Q6_K"),
    (TensorType::Tq1_0, "TQ1_0"),
    (TensorType::Tq2_0, "TQ2_0"),
    (TensorType::Q1_0, "Q1_0"),
    (TensorType::Q2_0, "Q2_0"),
    (TensorType::Q2_0Of128, "PQ2_0"),
    (TensorType::Pq2_0, "PQ2_0"),
];

fn vector(name: &str) -> (Vec<u8>, Vec<f32>) {
    let bytes = fs::read(path(&format!("tests/data/quant/{name}.bin"))).unwrap();
    (bytes, floats(&format!("tests/data/quant/{name}.f32")))
}

/// Replaces code 3 in blocks of Q2_0, which ggml reads as twice the scale, by code 2. Returns the
/// elements that had it.
fn replace_3(row: &BlockType, blocks: &mut [u8]) -> Vec<usize> {
    let mut replaced = Vec::new();
    for (b, block) in blocks.chunks_mut(row.bytes).enumerate() {
        for e in 0..row.elements {
            let (byte, shift) = (&mut block[2 + e / 4], 2 * (e % 4));
            if *byte >> shift & 3 == 3 {
                *byte ^= 1 << shift;
                replaced.push(row.elements * b + e);
            }
        }
    }
    replaced
}

/// The value of an element, one at a time, as the specification of its type reads.
fn value(row: &BlockType, block: &[u8], e: usize) -> f32 {
    let d = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
    let ternary = |d: f32, code: u8| d * (f32::from(code) - 1.0);
    match row.ty {
        TensorType::Q1_0 => d(0) * if block[2 + e / 8] >> (e % 8) & 1 == 1 { 1.0 } else { -1.0 },
        TensorType::Q2_0 | TensorType::Q2_0Of128 | TensorType::Pq2_0 => {
            ternary(d(0), block[2 + e / 4] >> (2 * (e % 4)) & 3)
        }
        TensorType::Tq2_0 => {
            let (g, l, m) = (e / 128, e / 32 % 4, e % 32);
            ternary(d(64), block[32 * g + m] >> (2 * l) & 3)
        }
        TensorType::Tq1_0 => {
            let (byte, round) = match e {
                0..160 => (e % 32, e / 32),
                160..240 => (32 + (e - 160) % 16, (e - 160) / 16),
                _ => (48 + (e - 240) % 4, (e - 240) / 4),
            };
            let q = block[byte].wrapping_mul(3u8.pow(round as u32));
            ternary(d(52), ((u16::from(q) * 3) >> 8) as u8)
        }
        TensorType::Q4_0 => {
            let nibble = block[2 + e % 16] >> (4 * (e / 16)) & 15;
            d(0) * (f32::from(nibble) - 8.0)
        }
        TensorType::Q8_0 => d(0) * f32::from(block[2 + e] as i8),
        TensorType::Q4K => {
            let (k, j) = (&block[4..16], e / 32);
            let (scale, min) = if j < 4 {
                (k[j] & 63, k[j + 4] & 63)
            } else {
                (k[j + 4] & 15 | k[j - 4] >> 6 << 4, k[j + 4] >> 4 | k[j] >> 6 << 4)
            };
            let nibble = block[16 + 32 * (e / 64) + e % 32] >> (4 * (e / 32 % 2)) & 15;
            d(0) * f32::from(scale) * f32::from(nibble) - d(2) * f32::from(min)
        }
        TensorType::Q6K => {
            let (h, l, quarter) = (e / 128, e % 32, e / 32 % 4);
            let low = block[64 * h + l + 32 * (quarter % 2)] >> (4 * (quarter / 2)) & 15;
            let high = block[128 + 32 * h + l] >> (2 * quarter) & 3;
            let scale = block[192 + 8 * h + l / 16 + 2 * quarter] as i8;
            d(208) * f32::from(scale) * (f32::from(low | high << 4) - 32.0)
        }
        other => panic!("{other}"),
    }
}

fn expected(row: &BlockType, blocks: &[u8]) -> Vec<f32> {
    let blocks = blocks.chunks(row.bytes);
    blocks.flat_map(|block| (0..row.elements).map(|e| value(row, block, e))).collect()
}

/// Sixteen random blocks whose scales are `scales` in turn.
fn blocks_of(row: &BlockType, scales: &[f16]) -> Vec<u8> {
    let mut scales = scales.iter().copied().cycle();
    random_blocks(row, 16, &mut Random(row.bytes as u64), |_| scales.next().unwrap())
}

#[test]
fn every_type_of_the_table_has_vectors() {
    assert_eq!(VECTORS.len(), TABLE.len());
    for row in TABLE {
        assert!(VECTORS.iter().any(|(ty, _)| *ty == row.ty), "{}", row.ty);
        assert_eq!(row.elements % row.group, 0, "{}", row.ty);
        assert_eq!(block_type(row.ty).unwrap().bytes, row.bytes);
    }
    assert!(block_type(TensorType::I2S).is_none());
    assert!(block_type(TensorType::Other("Q5_K")).is_none());
}

#[test]
fn blocks_have_the_values_that_other_programs_give_them() {
    for &(ty, name) in VECTORS {
        let row = block_type(ty).unwrap();
        let (mut blocks, expected) = vector(name);
        let is_q2_0 = ["Q2_0", "PQ2_0"].contains(&name);
        // The vectors have every code in every block.
        let replaced = if is_q2_0 { replace_3(row, &mut blocks) } else { vec![] };
        assert_eq!(replaced.len() > 100, is_q2_0);
        let values = row.values(&blocks).unwrap();
        assert_eq!(values.len(), expected.len(), "{ty}");
        for (e, (value, expected)) in values.iter().zip(&expected).enumerate() {
            // Code 3 was +2, and is +1 now.
            let value = if replaced.contains(&e) { 2.0 * value } else { *value };
            assert_eq!(value, *expected, "{ty}, element {e}");
        }
    }
}

/// Also of blocks that no quantiser makes: every byte, and scales that are 0, subnormal or negative.
#[test]
fn blocks_have_the_values_of_their_specification() {
    let scales = [0.0, -0.0, 5.96e-8, -3.0e-7, 6.1e-5, 1.0, -0.37, 65504.0].map(f16::from_f32);
    for &(ty, _) in VECTORS {
        let row = block_type(ty).unwrap();
        let blocks = blocks_of(row, &scales);
        let (mut codes, mut group_scales, mut offsets) = (vec![], vec![], vec![]);
        row.unpack(&blocks, &mut codes, &mut group_scales, &mut offsets).unwrap();
        let elements = 16 * row.elements;
        assert_eq!((codes.len(), group_scales.len()), (elements, elements / row.group), "{ty}");
        let has_offsets = matches!(row.scales, BlockScales::WithOffsets(_));
        assert_eq!(offsets.len(), if has_offsets { group_scales.len() } else { 0 }, "{ty}");
        // A code of 1 bit is 0 or 2.
        let most = [0, 2, 3, 0, 15, 0, 0, 0, 255][row.bits as usize];
        assert!(codes.iter().all(|&code| code <= most && (row.bits != 1 || code != 1)), "{ty}");
        let f16s = |scale: &f32| f16::from_f32(*scale).to_f32() == *scale;
        let are_f16 = matches!(row.scales, BlockScales::F16(_));
        assert_eq!(group_scales.iter().all(f16s), are_f16, "{ty}");
        assert_eq!(row.values(&blocks).unwrap(), expected(row, &blocks), "{ty}");
    }
}

/// Every byte of TQ1_0 stands for five codes, also the 13 bytes that no quantiser writes.
#[test]
fn tq1_0_wraps_at_8_bits() {
    let row = block_type(TensorType::Tq1_0).unwrap();
    for byte in 0..=255 {
        let mut block = [byte; 54];
        block[52..].copy_from_slice(&f16::ONE.to_le_bytes());
        let values = row.values(&block).unwrap();
        assert_eq!(values, expected(row, &block), "{byte}");
        assert!(values.iter().all(|value| [-1.0, 0.0, 1.0].contains(value)), "{byte}");
    }
}

#[test]
fn codes_are_appended_in_the_order_of_the_gpu() {
    for &(ty, _) in VECTORS {
        let row = block_type(ty).unwrap();
        let blocks = blocks_of(row, &[f16::ONE]);
        let (mut codes, mut words) = (vec![], vec![7]);
        row.unpack(&blocks, &mut codes, &mut vec![], &mut vec![]).unwrap();
        row.repack(&blocks, &mut words, &mut vec![1.0], &mut vec![]).unwrap();
        assert_eq!(words.remove(0), 7);
        assert_eq!(words, pack(row.bits, &codes), "{ty}");
        let each = 32 / row.bits as usize;
        for (e, &code) in codes.iter().enumerate() {
            let (word, e) = (words[e / each], e % each);
            let field = word >> (8 * (e % 4)) >> (row.bits as usize * (e / 4));
            let field = field & ((1 << row.bits) - 1);
            assert_eq!(if row.bits == 1 { 2 * field } else { field }, u32::from(code), "{ty}");
        }
        let mut back = vec![];
        unpack(row.bits, &words, &mut back);
        assert_eq!(back, codes, "{ty}");
    }
}

#[test]
fn a_code_that_no_value_has_is_refused_with_its_offset() {
    for &(ty, at) in &[
        (TensorType::Q2_0, 2),
        (TensorType::Q2_0Of128, 2),
        (TensorType::Pq2_0, 2),
        (TensorType::Tq2_0, 0),
    ] {
        let row = block_type(ty).unwrap();
        let good = blocks_of(row, &[f16::ONE]);
        for byte in [0, 1, 5, row.bytes - 3] {
            for field in 0..4 {
                let mut blocks = good.clone();
                let index = 3 * row.bytes + at + byte;
                blocks[index] |= 3 << (2 * field);
                let element = match ty {
                    TensorType::Tq2_0 => byte / 32 * 128 + 32 * field + byte % 32,
                    _ => 4 * byte + field,
                };
                let fault = row.values(&blocks).unwrap_err();
                assert_eq!(fault, Fault::Code(3 * row.elements + element), "{ty}");
                assert_eq!(row.offset_of(fault), 3 * row.bytes, "{ty}");
            }
        }
    }
    // The vectors have such codes: llama.cpp reads them as twice the scale.
    let row = block_type(TensorType::Q2_0).unwrap();
    assert!(matches!(row.values(&vector("Q2_0").0), Err(Fault::Code(_))));
}

#[test]
fn a_scale_that_is_not_finite_is_refused_with_its_offset() {
    for &(ty, _) in VECTORS {
        let row = block_type(ty).unwrap();
        for scale in [f16::INFINITY, f16::NEG_INFINITY, f16::NAN] {
            for &at in f16_offsets(ty) {
                let mut blocks = blocks_of(row, &[f16::ONE]);
                blocks[5 * row.bytes + at..][..2].copy_from_slice(&scale.to_le_bytes());
                let fault = row.values(&blocks).unwrap_err();
                assert_eq!(fault, Fault::Scale(5 * row.elements / row.group), "{ty} {scale}");
                assert_eq!(row.offset_of(fault), 5 * row.bytes, "{ty}");
            }
        }
    }
}

/// The blocks are those of ggml's own quantisers, for values of every kind: like an embedding's, all
/// zero, all equal, half a step between two codes, far below the least scale, with outliers.
#[test]
fn quantised_blocks_are_ggmls() {
    let values = floats("tests/data/quant/quantize.f32");
    for (ty, quantize) in QUANTIZERS {
        let expected = fs::read(path(&format!("tests/data/quant/quantize.{ty}.bin"))).unwrap();
        let row = block_type(*ty).unwrap();
        let mut found = vec![];
        quantize(&values, &mut found).unwrap();
        assert_eq!(found.len(), expected.len());
        for (index, (found, expected)) in
            found.chunks(row.bytes).zip(expected.chunks(row.bytes)).enumerate()
        {
            assert_eq!(found, expected, "{ty}, block {index}");
        }
    }
}

type Quantize = fn(&[f32], &mut Vec<u8>) -> Result<(), usize>;

const QUANTIZERS: &[(TensorType, Quantize)] =
    &[(TensorType::Q8_0, quantize::q8_0), (TensorType::Q6K, quantize::q6_k)];

/// Within half a step of the scale, which is rounded to f16. In Q6_K a scale is rounded to 8 bits
/// too, and the one with the least error may leave the largest value a step short.
#[test]
fn quantised_values_are_near_the_original_ones() {
    let mut random = Random(5);
    let values: Vec<f32> = (0..64 * 256).map(|_| random.float() - random.float()).collect();
    for ((ty, quantize), bound) in QUANTIZERS.iter().zip([0.5 / 127.0 + 1.0 / 2048.0, 1.5 / 32.0]) {
        let row = block_type(*ty).unwrap();
        let mut blocks = vec![];
        quantize(&values, &mut blocks).unwrap();
        let found = row.values(&blocks).unwrap();
        let (mut squares, mut errors) = (0.0, 0.0);
        for (found, values) in found.chunks(row.group).zip(values.chunks(row.group)) {
            let max = values.iter().fold(0.0f32, |max, x| max.max(x.abs()));
            for (found, value) in found.iter().zip(values) {
                assert!((found - value).abs() <= bound * max, "{ty}: {value} became {found}");
                squares += value * value;
                errors += (found - value) * (found - value);
            }
        }
        let rms = (errors / squares).sqrt();
        println!("{ty}: error {rms} of the values' size");
        assert!(rms < if row.bytes == 34 { 0.006 } else { 0.02 }, "{ty}: {rms}");
    }
}

#[test]
fn what_does_not_fit_into_a_block_is_refused() {
    for (ty, quantize) in QUANTIZERS {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e38] {
            let mut values = vec![0.1; 1024];
            values[777] = bad;
            let elements = block_type(*ty).unwrap().elements;
            // A scale that is too large is its whole block's.
            let index = if bad == 3e38 { 777 / elements * elements } else { 777 };
            assert_eq!(quantize(&values, &mut vec![]), Err(index), "{ty} {bad}");
        }
    }
}

/// Files of one tensor of each type.
#[test]
fn a_tensor_of_a_file_has_the_counts_scales_and_rows_of_its_values() {
    let open = |ty: TensorType, columns: usize, rows: usize, bytes: Vec<u8>| {
        let mut file = File::empty();
        let ne = vec![columns as u64, rows as u64];
        file.tensors.push(Tensor { name: "t".into(), ne, type_id: ty.id(), bytes });
        let file = file.build();
        let gguf = block_on(Gguf::read(&mut Reader::new(&file[..]))).unwrap();
        (file, gguf.tensors[0].clone())
    };
    let rows_of = |file: &[u8], tensor: &TensorInfo, range, layout| {
        block_on(rows(&mut Reader::new(file), tensor, range, layout))
    };
    for row in TABLE {
        let blocks = blocks_of(row, &[f16::from_f32(0.5), f16::from_f32(-0.25)]);
        let expected = expected(row, &blocks);
        // Sixteen blocks in four rows.
        let columns = 4 * row.elements;
        let (file, tensor) = open(row.ty, columns, 4, blocks);
        assert_eq!(tensor.ty, row.ty);
        let found = rows_of(&file, &tensor, 1..3, Layout::X86).unwrap();
        assert_eq!(found, expected[columns..3 * columns], "{}", row.ty);
        let found = block_on(contents(&mut Reader::new(&file[..]), &tensor)).unwrap().unwrap();
        if row.is_ternary() {
            let groups = expected.len() / row.group;
            assert_eq!(found.scales.unwrap().count as usize, groups, "{}", row.ty);
            let zeros = expected.iter().filter(|&&value| value == 0.0).count() as u64;
            assert_eq!(found.counts[1], zeros, "{}", row.ty);
            assert_eq!(found.counts.iter().sum::<u64>() as usize, expected.len());
        } else {
            assert_eq!((found.counts, found.entropy()), ([0; 3], None));
        }
        let refused = rows_of(&file, &tensor, 1..5, Layout::X86).unwrap_err();
        assert_eq!(refused.code(), "bad-option");
    }

    // I2_S has one scale for all rows.
    for (name, layout) in [("I2_S", Layout::X86), ("I2_S_arm64", Layout::Arm)] {
        let (bytes, expected) = vector(name);
        let n_rows = expected.len() / 128;
        let (file, tensor) = open(TensorType::I2S, 128, n_rows, bytes);
        let found = rows_of(&file, &tensor, 1..4, layout).unwrap();
        assert_eq!(found, expected[128..4 * 128], "{name}");
        let found = block_on(contents(&mut Reader::new(&file[..]), &tensor)).unwrap().unwrap();
        let count =
            |wanted: fn(&f32) -> bool| expected.iter().filter(|value| wanted(value)).count() as u64;
        let counts = [count(|x| *x < 0.0), count(|x| *x == 0.0), count(|x| *x > 0.0)];
        assert_eq!(found.counts, counts, "{name}");
        let shares = counts.map(|count| count as f64 / expected.len() as f64);
        let entropy: f64 = shares.iter().map(|share| -share * share.log2()).sum();
        assert!((found.entropy().unwrap() - entropy).abs() < 1e-12);
        let spread = found.scales.unwrap();
        let scale = expected.iter().copied().fold(0.0, f32::max);
        assert_eq!((spread.count, spread.min, spread.max), (1, scale, scale), "{name}");
    }
    for (ty, name) in [(TensorType::F16, "F16"), (TensorType::Bf16, "BF16")] {
        let (bytes, expected) = vector(name);
        let (file, tensor) = open(ty, 16, expected.len() / 16, bytes);
        let found = rows_of(&file, &tensor, 2..3, Layout::X86).unwrap();
        assert_eq!(found, expected[32..48], "{name}");
        assert_eq!(block_on(contents(&mut Reader::new(&file[..]), &tensor)).unwrap(), None);
    }
}

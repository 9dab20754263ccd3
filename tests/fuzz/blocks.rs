//! Target: the blocks of every weight type, and their quantisers.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tritloom::blocks::{Fault, TABLE, pack, quantize, unpack};

use crate::run::{Input, Limits, fuzz};

/// A byte that chooses the type, then its blocks.
fn inputs() -> impl Strategy<Value = Input> {
    let byte = prop_oneof![2 => any::<u8>(), 1 => select(vec![0, 0x55, 0x7b, 0x7c, 0xfc, 0xff])];
    vec(byte, 0..2000).prop_map(Input)
}

fn target(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let row = &TABLE[usize::from(first) % TABLE.len()];
    let blocks = &bytes[..bytes.len() / row.bytes * row.bytes];
    let n = blocks.len() / row.bytes * row.elements;
    let (mut words, mut scales, mut offsets) = (vec![], vec![], vec![]);
    match row.repack(blocks, &mut words, &mut scales, &mut offsets) {
        Ok(()) => {
            let values = row.values(blocks).unwrap();
            assert_eq!((values.len(), scales.len()), (n, n / row.group));
            assert!(values.iter().all(|value| value.is_finite()));
            let mut codes = vec![];
            unpack(row.bits, &words, &mut codes);
            assert_eq!((codes.len(), pack(row.bits, &codes)), (n, words));
        }
        Err(fault) => {
            assert!(row.offset_of(fault) < blocks.len());
            match fault {
                Fault::Code(element) => assert!(element < n && row.bits == 2),
                Fault::Scale(group) => assert!(group < n / row.group),
            }
        }
    }

    let floats = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    let mut floats: Vec<f32> = floats.collect();
    floats.truncate(floats.len() / 256 * 256);
    for (quantize, name) in
        [(quantize::q8_0 as fn(&_, &mut _) -> _, "Q8_0"), (quantize::q6_k, "Q6_K")]
    {
        let row = TABLE.iter().find(|row| row.ty.to_string() == name).unwrap();
        let mut blocks: Vec<u8> = vec![];
        match quantize(&floats[..], &mut blocks) {
            Ok(()) => assert_eq!(row.values(&blocks).unwrap().len(), floats.len()),
            Err(index) => assert!(index < floats.len()),
        }
    }
}

#[test]
fn blocks() {
    fuzz("blocks", &Limits { memory: 64 << 10, memory_per_byte: 128 }, inputs(), target);
}

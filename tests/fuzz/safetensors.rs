//! Target: the header of a safetensors file.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::convert::{SECONDS, safetensors as reader};
use crate::gguf::{damage, number, spoil};
use crate::run::{Input, Limits, fuzz_for};

/// A tensor's description, right or wrong, and how many bytes it adds to the data.
fn tensor() -> impl Strategy<Value = (String, Value, Option<(u64, u64)>, usize)> {
    let dtype = select(vec!["F32", "BF16", "F16", "U8", "I64", "F8_E4M3", "F4", ""]);
    let small = vec(0..9u64, 0..3);
    let shape = prop_oneof![6 => small, 1 => vec(number(), 0..10)];
    let name = prop_oneof![
        4 => "[ab]",
        2 => "model\\.layers\\.[0-9]\\.[a-z_.]{0,20}",
        1 => ".{0,300}",
        1 => Just("__metadata__".to_owned()),
    ];
    let offsets = prop::option::weighted(0.1, (number(), number()));
    (name, dtype, shape, offsets).prop_map(|(name, dtype, shape, offsets)| {
        let size = match dtype {
            "F32" => 4,
            "BF16" | "F16" => 2,
            "I64" => 8,
            _ => 1,
        };
        let elements = shape.iter().fold(1u64, |n, &dim| n.saturating_mul(dim));
        let len = elements.saturating_mul(size).min(4096) as usize;
        (name, json!({"dtype": dtype, "shape": shape}), offsets, len)
    })
}

fn inputs() -> impl Strategy<Value = Input> {
    let len = prop::option::weighted(0.1, number());
    let damaged = prop::option::weighted(0.3, damage());
    let extra = prop::option::weighted(0.2, (any::<Index>(), ".{0,20}"));
    (vec(tensor(), 0..8), len, damaged, extra).prop_map(|(tensors, len, damaged, extra)| {
        // Written by hand: an object of serde_json cannot have a key twice.
        let (mut entries, mut data) = (Vec::new(), 0);
        for (name, mut info, offsets, bytes) in tensors {
            let (from, to) = offsets.unwrap_or((data, data + bytes as u64));
            info["data_offsets"] = json!([from, to]);
            entries.push(format!("{}:{info}", Value::String(name)));
            data += bytes as u64;
        }
        let mut json = format!("{{{}}}", entries.join(","));
        if let Some((at, extra)) = extra {
            let at = at.index(json.len() + 1);
            let at = (0..=at).rev().find(|&at| json.is_char_boundary(at)).unwrap_or(0);
            json.insert_str(at, &extra);
        }
        let len = len.unwrap_or(json.len() as u64);
        let mut bytes = [&len.to_le_bytes()[..], json.as_bytes()].concat();
        bytes.resize(bytes.len() + data as usize, 0);
        damaged.iter().for_each(|damage| spoil(&mut bytes, damage));
        Input(bytes)
    })
}

fn target(bytes: &[u8]) {
    let Some((prefix, rest)) = bytes.split_first_chunk() else { return };
    let file_len = bytes.len() as u64;
    let tensors = reader::json_len(*prefix, file_len).and_then(|len| {
        let json = rest.get(..len as usize).unwrap();
        reader::parse(json, file_len)
    });
    match tensors {
        // A file must not be able to fill the console.
        Err(why) => assert!(!why.is_empty() && why.len() < 4096, "{} bytes", why.len()),
        Ok(tensors) => {
            for pair in tensors.windows(2) {
                assert_eq!(pair[0].range.end, pair[1].range.start);
            }
            for tensor in &tensors {
                let elements: u64 = tensor.shape.iter().product();
                let len = tensor.range.end - tensor.range.start;
                assert_eq!(len, elements * tensor.dtype.size(), "{tensor}");
                assert!(tensor.range.end <= file_len);
            }
        }
    }
}

#[test]
fn safetensors() {
    let limits = Limits { memory: 1 << 20, memory_per_byte: 64 };
    fuzz_for(SECONDS, "safetensors", &limits, inputs(), target);
}

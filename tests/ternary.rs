//! Ternary codes, compared with the bytes of the original C quantiser and with bitnet.cpp's
//! products.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and tell")]

mod support;

use std::fs;

use support::{Random, floats, json, path};
use tritloom::reference::ops;
use tritloom::ternary::{Layout, TAIL, check_codes, pack, repack_arm, scale, unpack};

fn vector(name: &str) -> (Vec<u8>, f32) {
    let mut bytes = fs::read(path(&format!("tests/data/quant/{name}.bin"))).unwrap();
    let tail = bytes.split_off(bytes.len() - TAIL);
    (bytes, scale(&tail).unwrap())
}

#[test]
fn both_layouts_unpack_to_the_original_values() {
    for (name, layout) in [("I2_S", Layout::X86), ("I2_S_arm64", Layout::Arm)] {
        let (codes, scale) = vector(name);
        let expected = floats(&format!("tests/data/quant/{name}.f32"));
        let values = unpack(&codes, layout);
        let dense: Vec<f32> = values.iter().map(|&value| f32::from(value) * scale).collect();
        assert_eq!(dense, expected, "{name}");
        assert_eq!(pack(&values, layout), codes, "{name}");
    }
}

#[test]
fn arm_codes_are_rewritten_in_place() {
    let (mut codes, _) = vector("I2_S_arm64");
    let values = unpack(&codes, Layout::Arm);
    repack_arm(&mut codes);
    assert_eq!(unpack(&codes, Layout::X86), values);

    // Block by block gives the same: slices of a stream need not be whole rows.
    let mut random = Random(3);
    let values: Vec<i8> = (0..128 * 5).map(|_| random.below(3) as i8 - 1).collect();
    let mut codes = pack(&values, Layout::Arm);
    codes.chunks_mut(32).for_each(repack_arm);
    assert_eq!(codes, pack(&values, Layout::X86));
}

#[test]
fn code_3_is_found_wherever_it_is() {
    let values: Vec<i8> = (0..1024).map(|i| (i % 3) as i8 - 1).collect();
    let good = pack(&values, Layout::X86);
    for len in [0, 1, 7, 8, 9, 255, 256] {
        assert_eq!(check_codes(&good[..len]), Ok(()));
        for at in (0..len).step_by(5) {
            for shift in [0, 2, 4, 6] {
                let mut bad = good[..len].to_vec();
                bad[at] |= 3 << shift;
                assert_eq!(check_codes(&bad), Err(at), "{len} {at} {shift}");
            }
        }
    }
    // Two adjacent bits of different fields are not a 3: 0b01_10.
    assert_eq!(check_codes(&[0b0110_0110; 16]), Ok(()));
}

#[test]
fn a_scale_is_a_number() {
    assert_eq!(scale(&0.5f32.to_le_bytes()), Some(0.5));
    assert_eq!(scale(&f32::NAN.to_le_bytes()), None);
    assert_eq!(scale(&f32::NEG_INFINITY.to_le_bytes()), None);
    assert_eq!(scale(&[0; 3]), None);
}

/// int8 activations and products equal bitnet.cpp's to the last bit. The third token is all zero.
#[test]
fn products_are_bitnet_cpps() {
    let sizes = &json("tests/data/quant/manifest.json")["matmul"];
    let (k, n) = (sizes["k"].as_u64().unwrap() as usize, sizes["n"].as_u64().unwrap() as usize);
    let (codes, scale) = vector("I2_S");
    let codes = unpack(&codes, Layout::X86);
    let expected_q = fs::read(path("tests/data/quant/matmul_q.i8")).unwrap();
    let expected = floats("tests/data/quant/matmul_y.f32");
    let x = floats("tests/data/quant/matmul_x.f32");
    assert_eq!((codes.len(), x.len(), expected.len()), (n * k, 3 * k, 3 * n));
    for (token, x) in x.chunks(k).enumerate() {
        let (q, s) = ops::quantize(x);
        let bytes: Vec<u8> = q.iter().map(|&q| q as u8).collect();
        assert_eq!(bytes, expected_q[token * k..][..k], "token {token}");
        let sums = ops::matvec_ternary(&codes, k, &q);
        let y: Vec<f32> = sums.iter().map(|&sum| sum as f32 / s * scale).collect();
        assert_eq!(y, expected[token * n..][..n], "token {token}");
    }
}

#[test]
fn activations_round_half_to_even() {
    let (q, s) = ops::quantize(&[127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -127.0, 126.6]);
    assert_eq!(s, 1.0);
    assert_eq!(q, [127, 0, 2, 2, 0, -2, -127, 127]);
    let (q, s) = ops::quantize(&[0.0; 4]);
    assert_eq!((q, s), (vec![0; 4], (127.0 / 1e-5) as f32));
}

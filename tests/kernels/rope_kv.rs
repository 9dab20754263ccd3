//! `rope_kv` rotates queries and keys and fills the cache.

use half::f16;
use ternlight::gpu::Gpu;
use ternlight::kernels::{AttentionShape, KvCache};
use ternlight::reference::ops;

use crate::device::{assert_close, device, read, run, step};
use crate::support::Random;

pub(crate) const BASE: f32 = 500_000.0;

/// The words of the cache before the kernel runs.
pub(crate) const BEFORE: u32 = 0x1234_5678;

/// cos and sin of every position's angles, `[n_ctx, head_dim / 2]`.
pub(crate) fn rope_table(n_ctx: usize, head_dim: usize) -> Vec<[f32; 2]> {
    let angle =
        |pos: usize, i: usize| pos as f64 * f64::from(BASE).powf(-2.0 * i as f64 / head_dim as f64);
    (0..n_ctx)
        .flat_map(|pos| (0..head_dim / 2).map(move |i| angle(pos, i)))
        .map(|angle| [angle.cos() as f32, angle.sin() as f32])
        .collect()
}

fn check(gpu: &Gpu, shape: &AttentionShape, pos: usize, n_tokens: usize, n_ctx: usize) {
    let &AttentionShape { n_head, n_head_kv, head_dim, kv_f16 } = shape;
    let (n_q, n_kv) = (n_head * head_dim, n_head_kv * head_dim);
    let mut random = Random(7 + pos as u64);
    let mut qkv: Vec<f32> =
        (0..n_tokens * (n_q + 2 * n_kv)).map(|_| 2.0 * random.float() - 1.0).collect();
    // An outlier in each of q, k and v, and a row of zeros.
    (qkv[1], qkv[n_q + 2], qkv[n_q + n_kv + 3]) = (-900.0, 700.0, 60_000.0);
    if n_tokens > 1 {
        qkv[n_q + 2 * n_kv..2 * (n_q + 2 * n_kv)].fill(0.0);
    }

    let words = shape.cache_bytes(n_ctx) / 4;
    let before = || gpu.upload("cache", &vec![BEFORE; words]);
    let cache = KvCache { shape: *shape, keys: before(), values: before() };
    let q = gpu.upload("q", &vec![f32::NAN; n_tokens * n_q]);
    let d_qkv = gpu.upload("qkv", &qkv);
    let d_table = gpu.upload("rope_table", &rope_table(n_ctx, head_dim));
    run(gpu, &step(pos, n_tokens), |p| p.rope_kv(&d_qkv, &d_table, &q, &cache));

    let what = format!("{shape:?} at {pos}");
    let (q, k, v) = (read(gpu, &q), read(gpu, &cache.keys), read(gpu, &cache.values));
    let per_position = words / n_ctx;
    for (token, row) in qkv.chunks(n_q + 2 * n_kv).enumerate() {
        let at = pos + token;
        let mut expected_q = row[..n_q].to_vec();
        let mut expected_k = row[n_q..n_q + n_kv].to_vec();
        ops::rope_neox(&mut expected_q, head_dim, at, BASE);
        ops::rope_neox(&mut expected_k, head_dim, at, BASE);
        expected_q.iter_mut().for_each(|q| *q /= (head_dim as f32).sqrt());
        // The error is relative to the larger value of a pair, so an outlier widens its partner's
        // tolerance.
        assert_close(&what, &q[token * n_q..][..n_q], &expected_q, 4e-7, |i| {
            pair(&expected_q, head_dim, i)
        });
        // A conversion to f16 may round to either neighbour.
        let relative = if kv_f16 { 1.0 / 1024.0 } else { 4e-7 };
        let found = values(&k[at * per_position..][..per_position], kv_f16);
        assert_close(&what, &found, &expected_k, relative, |i| pair(&expected_k, head_dim, i));
        let found = values(&v[at * per_position..][..per_position], kv_f16);
        let expected_v = &row[n_q + n_kv..];
        let relative = if kv_f16 { 1.0 / 1024.0 } else { 0.0 };
        // Below f16's smallest normal number, the distance between numbers is constant.
        assert_close(&what, &found, expected_v, relative, |i| expected_v[i].abs().max(6.2e-5));
    }
    let written = pos * per_position..(pos + n_tokens) * per_position;
    for cache in [&k, &v] {
        let untouched = (0..words).filter(|i| !written.contains(i));
        assert!({ untouched }.all(|i| cache[i] == BEFORE), "{what}: wrote to another position");
    }
}

/// The size of the pair that contains value `i`.
pub(crate) fn pair(x: &[f32], head_dim: usize, i: usize) -> f32 {
    let (head, at) = (i / head_dim * head_dim, i % head_dim);
    x[i].abs() + x[head + (at + head_dim / 2) % head_dim].abs()
}

pub(crate) fn values(words: &[u32], kv_f16: bool) -> Vec<f32> {
    if kv_f16 {
        let half = |bits: u32| f16::from_bits(bits as u16).to_f32();
        return words.iter().flat_map(|&w| [half(w), half(w >> 16)]).collect();
    }
    words.iter().map(|&w| f32::from_bits(w)).collect()
}

#[test]
fn rope_kv_rotates_and_stores() {
    for (n_head, n_head_kv, head_dim) in [(1, 1, 64), (4, 2, 64), (20, 5, 128), (3, 1, 96)] {
        for kv_f16 in [true, false] {
            let shape = AttentionShape { n_head, n_head_kv, head_dim, kv_f16 };
            for (pos, n_tokens, n_ctx) in [(0, 1, 1), (0, 3, 5), (5, 4, 16), (1000, 1, 1001)] {
                check(device(), &shape, pos, n_tokens, n_ctx);
            }
        }
    }
}

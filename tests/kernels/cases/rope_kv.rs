//! `rope_kv` rotates queries and keys and fills the cache. `norm_rope_kv` norms the heads first.

use half::f16;
use tritloom::gpu::{Gpu, Row, Step};
use tritloom::kernels::{AttentionShape, KvCache, KvType, Norm};
use tritloom::reference::ops;

use super::device::{assert_close, device, read, run, step};
use super::random::Random;
use super::rms_norm::hard_weight;

const BASE: f64 = 500_000.0;

/// The words of the cache before the kernel runs.
pub(crate) const BEFORE: u32 = 0x1234_5678;

/// cos and sin of a position's angles, `[head_dim / 2]`.
pub(crate) fn rope(pos: usize, head_dim: usize) -> Vec<[f64; 2]> {
    let angle = |i: usize| pos as f64 * BASE.powf(-2.0 * i as f64 / head_dim as f64);
    (0..head_dim / 2).map(|i| [angle(i).cos(), angle(i).sin()]).collect()
}

/// The same of every position, `[n_ctx, head_dim / 2]`.
pub(crate) fn rope_table(n_ctx: usize, head_dim: usize) -> Vec<[f32; 2]> {
    let rope = |pos: usize| rope(pos, head_dim).into_iter();
    (0..n_ctx).flat_map(rope).map(|pair| pair.map(|value| value as f32)).collect()
}

/// With `norms`, `norm_rope_kv`.
async fn check(
    gpu: &Gpu,
    shape: &AttentionShape,
    norms: bool,
    pos: usize,
    n_tokens: usize,
    n_ctx: usize,
) {
    let &AttentionShape { n_head, n_head_kv, head_dim, .. } = shape;
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
    let weights = [(); 2].map(|()| hard_weight(head_dim, &mut random));
    let norms_of_both = Norm { weight: gpu.upload("weights", &weights.concat()), eps: 1e-6 };
    // The rest of the cache, before this sequence, belongs to another one.
    let first = n_ctx - pos - n_tokens;
    let step = Step { first: first as u32, ..step(pos, n_tokens) }.with_rows();
    run(gpu, &step, |p| match norms {
        true => p.norm_rope_kv(&d_qkv, &norms_of_both, &d_table, &q, &cache, false),
        false => p.rope_kv(&d_qkv, &d_table, &q, &cache, false),
    });

    let kernel = if norms { "norm_rope_kv" } else { "rope_kv" };
    let what = format!("{shape:?} at {pos}");
    let (q, k, v) =
        (read(gpu, &q).await, read(gpu, &cache.keys).await, read(gpu, &cache.values).await);
    let per_position = words / n_ctx;
    for (token, row) in qkv.chunks(n_q + 2 * n_kv).enumerate() {
        let (at, stored) = (pos + token, first + pos + token);
        let mut expected_q = row[..n_q].to_vec();
        let mut expected_k = row[n_q..n_q + n_kv].to_vec();
        if norms {
            expected_q = ops::rms_norm(&expected_q, &weights[0], 1e-6);
            expected_k = ops::rms_norm(&expected_k, &weights[1], 1e-6);
        }
        ops::rope_halves(&mut expected_q, &rope(at, head_dim));
        ops::rope_halves(&mut expected_k, &rope(at, head_dim));
        expected_q.iter_mut().for_each(|q| *q /= (head_dim as f32).sqrt());
        // The error is relative to the larger value of a pair, so an outlier widens its partner's
        // tolerance.
        // A norm adds a sum of squares and three roundings.
        let exact = if norms { 2e-6 } else { 4e-7 };
        assert_close((kernel, &what), &q[token * n_q..][..n_q], &expected_q, exact, |i| {
            pair(&expected_q, head_dim, i)
        });
        let found = values(&k[stored * per_position..][..per_position], shape);
        let size = |i: usize| {
            exact * pair(&expected_k, head_dim, i) + rounding(&expected_k, shape, true, i)
        };
        assert_close((kernel, &what), &found, &expected_k, 1.0, size);
        let found = values(&v[stored * per_position..][..per_position], shape);
        let expected_v = &row[n_q + n_kv..];
        assert_close((kernel, &what), &found, expected_v, 1.0, |i| {
            rounding(expected_v, shape, false, i)
        });
    }
    let written = (first + pos) * per_position..n_ctx * per_position;
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

/// How far value `i` of `x` may be off because it is stored, where it was `rotated` with its partner
/// or as it was.
pub(crate) fn rounding(x: &[f32], shape: &AttentionShape, rotated: bool, i: usize) -> f32 {
    let head_dim = shape.head_dim;
    match shape.kv {
        KvType::F32 => 0.0,
        // A conversion to f16 may round to either neighbour. Below f16's smallest normal number,
        // the distance between numbers is constant.
        KvType::F16 => {
            let size = if rotated { pair(x, head_dim, i) } else { x[i].abs() };
            size.max(6.2e-5) / 1024.0
        }
        // Half of a step. There are 127 to the head's largest value.
        KvType::Int8 => {
            let head = &x[i / head_dim * head_dim..][..head_dim];
            head.iter().fold(0f32, |max, v| max.max(v.abs())) / 253.9
        }
    }
}

/// The values of a row of the cache.
pub(crate) fn values(words: &[u32], shape: &AttentionShape) -> Vec<f32> {
    let AttentionShape { n_head_kv, head_dim, .. } = *shape;
    match shape.kv {
        KvType::F32 => words.iter().map(|&w| f32::from_bits(w)).collect(),
        KvType::F16 => {
            let half = |bits: u32| f16::from_bits(bits as u16).to_f32();
            words.iter().flat_map(|&w| [half(w), half(w >> 16)]).collect()
        }
        KvType::Int8 => {
            let (codes, scales) = words.split_at(n_head_kv * head_dim / 4);
            let codes =
                codes.iter().flat_map(|w| w.to_le_bytes()).map(|code| f32::from(code as i8));
            codes.enumerate().map(|(i, code)| code * f32::from_bits(scales[i / head_dim])).collect()
        }
    }
}

pub(crate) async fn heads_are_rotated_and_stored() {
    for (n_head, n_head_kv, head_dim) in
        [(1, 1, 64), (4, 2, 64), (20, 5, 128), (3, 1, 96), (2, 1, 256)]
    {
        for (_, kv) in KvType::ALL {
            let shape = AttentionShape { n_head, n_head_kv, head_dim, kv };
            for (pos, n_tokens, n_ctx) in [(0, 1, 1), (0, 3, 5), (5, 4, 16), (1000, 1, 1001)] {
                check(device(), &shape, false, pos, n_tokens, n_ctx).await;
                check(device(), &shape, true, pos, n_tokens, n_ctx).await;
            }
        }
    }
}

/// Each row of a step goes to its own position in its own range of the cache.
pub(crate) async fn texts_in_rows_are_stored_in_their_ranges() {
    let gpu = device();
    let shape = AttentionShape { n_head: 2, n_head_kv: 1, head_dim: 64, kv: KvType::F32 };
    let (n_ctx, n_qkv) = (16, 4 * 64);
    let mut random = Random(5);
    let qkv: Vec<f32> = (0..2 * n_qkv).map(|_| 2.0 * random.float() - 1.0).collect();
    let table = gpu.upload("rope_table", &rope_table(n_ctx, 64));
    let norms = Norm { weight: gpu.upload("weights", &[1.5; 128]), eps: 1e-6 };
    let row = |pos, first| Row { pos, first, ..Row::default() };
    let alone = |row: Row| {
        Step { pos: row.pos, first: row.first, n_tokens: 1, ..Step::default() }.with_rows()
    };
    let rows = [row(9, 0), row(3, 11)];
    let mut all = Step { n_tokens: 2, ..Step::default() };
    all.rows[..2].copy_from_slice(&rows);
    for has_norms in [false, true] {
        let store = async |step: &Step, qkv: &[f32]| {
            let cache = || gpu.upload("cache", &vec![BEFORE; shape.cache_bytes(n_ctx) / 4]);
            let cache = KvCache { shape, keys: cache(), values: cache() };
            let q = gpu.upload("q", &vec![f32::NAN; qkv.len() / 2]);
            let qkv = gpu.upload("qkv", qkv);
            run(gpu, step, |p| match has_norms {
                true => p.norm_rope_kv(&qkv, &norms, &table, &q, &cache, true),
                false => p.rope_kv(&qkv, &table, &q, &cache, true),
            });
            (
                read(gpu, &q).await,
                [read(gpu, &cache.keys).await, read(gpu, &cache.values).await].concat(),
            )
        };
        let (q, stored) = store(&all, &qkv).await;
        let mut singles = Vec::new();
        for (row, qkv) in rows.iter().zip(qkv.chunks(n_qkv)) {
            singles.push(store(&alone(*row), qkv).await);
        }
        assert_eq!(q, [&singles[0].0[..], &singles[1].0].concat());
        let both = singles[0].1.iter().zip(&singles[1].1);
        let expected: Vec<u32> = both.map(|(a, b)| if *a == BEFORE { *b } else { *a }).collect();
        assert_eq!(stored, expected);
    }
}

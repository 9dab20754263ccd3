//! Each operation of the model is one function.
//!
//! Sums are f64, so any difference from a GPU kernel is the kernel's error. Tensors are flat
//! slices. Shapes name the fastest dimension last: `[rows][columns]`.

use std::f64::consts::PI;

use half::f16;

use crate::model::Activation;

/// Computes `x / sqrt(mean(x²) + eps) * weight` for each row of `weight.len()` values.
pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32) -> Vec<f32> {
    let mut y = Vec::with_capacity(x.len());
    for row in x.chunks_exact(weight.len()) {
        let squares: f64 = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let scale = 1.0 / (squares / row.len() as f64 + f64::from(eps)).sqrt();
        y.extend(
            row.iter().zip(weight).map(|(&x, &w)| (f64::from(x) * scale * f64::from(w)) as f32),
        );
    }
    y
}

/// Quantises a row to int8: `q = round(x * s)`, with ties to even. Returns `q` and
/// `s = 127 / max|x|`.
///
/// If `max|x|` is below 1e-5, `s` is `127 / 1e-5`, as in bitnet.cpp.
pub fn quantize(x: &[f32]) -> (Vec<i8>, f32) {
    let absmax = x.iter().fold(1e-5, |max, &x| f64::from(x.abs()).max(max));
    let s = (127.0 / absmax) as f32;
    (x.iter().map(|&x| (x * s).round_ties_even().clamp(-128.0, 127.0) as i8).collect(), s)
}

/// Multiplies `codes` `[rows][k]`, which are −1, 0 or 1, by `q` `[k]`. The result `[rows]` is
/// exact.
pub fn matvec_ternary(codes: &[i8], k: usize, q: &[i8]) -> Vec<i32> {
    let dot = |row: &[i8]| row.iter().zip(q).map(|(&c, &q)| i32::from(c) * i32::from(q)).sum();
    codes.chunks_exact(k).map(dot).collect()
}

/// Rotates each head of `x` by `rope` `[head_dim / 2]`, which are cos and sin of each pair's angle.
/// Elements `i` and `i + head_dim / 2` are a pair (as in NeoX).
pub fn rope_halves(x: &mut [f32], rope: &[[f64; 2]]) {
    for head in x.chunks_exact_mut(2 * rope.len()) {
        let (first, second) = head.split_at_mut(rope.len());
        for ((a, b), rope) in first.iter_mut().zip(second).zip(rope) {
            rotate(a, b, rope);
        }
    }
}

/// Like [`rope_halves`], but elements `2i` and `2i + 1` are a pair.
pub fn rope_neighbours(x: &mut [f32], rope: &[[f64; 2]]) {
    for head in x.chunks_exact_mut(2 * rope.len()) {
        for ([a, b], rope) in head.as_chunks_mut().0.iter_mut().zip(rope) {
            rotate(a, b, rope);
        }
    }
}

fn rotate(a: &mut f32, b: &mut f32, [cos, sin]: &[f64; 2]) {
    let (x, y) = (f64::from(*a), f64::from(*b));
    *a = (x * cos - y * sin) as f32;
    *b = (y * cos + x * sin) as f32;
}

/// Computes `softmax(q·k / sqrt(head_dim)) · v` for each head of one token, over all positions.
///
/// `q` is `[n_head * head_dim]`, `k` and `v` are `[n_past][n_head_kv * head_dim]`. A head uses the
/// keys and values of KV head `head / (n_head / n_head_kv)`.
pub fn attention(
    q: &[f32],
    k: &[f32],
    v: &[f32],
    n_head: usize,
    n_head_kv: usize,
    head_dim: usize,
) -> Vec<f32> {
    let n_embd_kv = n_head_kv * head_dim;
    let mut out = Vec::with_capacity(q.len());
    for (head, q) in q.chunks_exact(head_dim).enumerate() {
        let at = head / (n_head / n_head_kv) * head_dim;
        let scale = 1.0 / (head_dim as f64).sqrt();
        let scores: Vec<f64> =
            k.chunks_exact(n_embd_kv).map(|k| dot(q, &k[at..at + head_dim]) * scale).collect();
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
        let total: f64 = weights.iter().sum();
        let mut sum = vec![0.0; head_dim];
        for (weight, v) in weights.iter().zip(v.chunks_exact(n_embd_kv)) {
            for (sum, &v) in sum.iter_mut().zip(&v[at..at + head_dim]) {
                *sum += weight * f64::from(v);
            }
        }
        out.extend(sum.iter().map(|sum| (sum / total) as f32));
    }
    out
}

/// Computes `activation(gate) * up`.
pub fn gated(activation: Activation, gate: &[f32], up: &[f32]) -> Vec<f32> {
    let activate = |x: f64| match activation {
        Activation::Relu2 => x.max(0.0) * x.max(0.0),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Gelu => {
            let inner = (2.0 / PI).sqrt() * (x + 0.044715 * x * x * x);
            0.5 * x * (1.0 + inner.tanh())
        }
    };
    let gated = |(&gate, &up): (&f32, &f32)| (activate(gate.into()) * f64::from(up)) as f32;
    gate.iter().zip(up).map(gated).collect()
}

/// Multiplies `w` `[rows][k]` by `x` `[k]`.
pub fn matvec_f32(w: &[f32], k: usize, x: &[f32]) -> Vec<f32> {
    w.chunks_exact(k).map(|row| dot(row, x) as f32).collect()
}

/// Like [`matvec_f32`], with `w` as the bits of f16.
pub fn matvec_f16(w: &[u16], k: usize, x: &[f32]) -> Vec<f32> {
    let wide = |row: &[u16]| row.iter().map(|&w| f16::from_bits(w).to_f32()).collect::<Vec<_>>();
    w.chunks_exact(k).map(|row| dot(&wide(row), x) as f32).collect()
}

/// Keeps eight sums, because the compiler does not vectorise a single one.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for i in 0..8 {
            sums[i] += f64::from(a[i]) * f64::from(b[i]);
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(&a, &b)| f64::from(a) * f64::from(b));
    sums.into_iter().chain(rest).sum()
}

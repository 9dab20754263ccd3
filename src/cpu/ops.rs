//! The operations between products, in f32. [`crate::reference::ops`] has the same in f64.

use std::f32::consts::{LOG2_E, PI};

use crate::model::{Activation, RopePairs};

/// Adds as many sums side by side as the compiler needs to use vectors.
const LANES: usize = 16;

/// `y = x / sqrt(mean(x²) + eps) * weight`, for each row of `weight.len()` values.
pub(super) fn rms_norm(x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
    let n = weight.len();
    for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)) {
        let scale = rms_scale(x, eps);
        for ((y, x), weight) in y.iter_mut().zip(x).zip(weight) {
            *y = x * scale * weight;
        }
    }
}

/// Like [`rms_norm`], in place.
pub(super) fn rms_norm_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    for x in x.chunks_exact_mut(weight.len()) {
        let scale = rms_scale(x, eps);
        x.iter_mut().zip(weight).for_each(|(x, weight)| *x = *x * scale * weight);
    }
}

fn rms_scale(x: &[f32], eps: f32) -> f32 {
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in chunks {
        for i in 0..LANES {
            sums[i] += chunk[i] * chunk[i];
        }
    }
    let squares: f32 = sums.iter().sum::<f32>() + rest.iter().map(|x| x * x).sum::<f32>();
    1.0 / (squares / x.len() as f32 + eps).sqrt()
}

/// `x += scale * y`.
pub(super) fn add(x: &mut [f32], y: &[f32], scale: f32) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += scale * y);
}

/// Rotates each head of `x` by `rope` `[head_dim / 2]`, which are cos and sin of each pair's angle.
pub(super) fn rotate(x: &mut [f32], rope: &[[f32; 2]], pairs: RopePairs) {
    for head in x.chunks_exact_mut(2 * rope.len()) {
        match pairs {
            RopePairs::Halves => {
                let (first, second) = head.split_at_mut(rope.len());
                for ((a, b), [cos, sin]) in first.iter_mut().zip(second).zip(rope) {
                    (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
                }
            }
            RopePairs::Neighbours => {
                for ([a, b], [cos, sin]) in head.as_chunks_mut().0.iter_mut().zip(rope) {
                    (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
                }
            }
        }
    }
}

/// `up *= activation(gate)`.
#[inline(always)]
pub(super) fn gate(activation: Activation, gate: &[f32], up: &mut [f32]) {
    let pairs = up.iter_mut().zip(gate);
    match activation {
        Activation::Relu2 => pairs.for_each(|(up, gate)| *up *= gate.max(0.0) * gate.max(0.0)),
        Activation::Silu => pairs.for_each(|(up, gate)| *up *= gate / (1.0 + exp(-gate))),
        Activation::Gelu => pairs.for_each(|(up, x)| {
            let inner = (2.0 / PI).sqrt() * (x + 0.044715 * x * x * x);
            *up *= 0.5 * x * (1.0 + inner.tanh());
        }),
    }
}

/// e to the power of `x`. It is 0 far below, very large far above, and NaN for NaN. The compiler can
/// make vectors of it, which it cannot of the standard library's.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    /// If this is added to a small float, the lowest bits of the sum are the nearest integer.
    const ROUNDER: f32 = 12_582_912.0;
    /// ln 2 as a sum. The first has few bits, so that its multiples are exact.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    // Beyond these, 2 to the power of `n` is no normal f32.
    let x = x.clamp(-87.0, 88.0);
    let rounded = x * LOG2_E + ROUNDER;
    let n = rounded - ROUNDER;
    let r = x - n * LN_2[0] - n * LN_2[1];
    // The polynomial is Cephes' `expf`.
    let mut p = 1.987_569_1e-4;
    for c in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = p * r + c;
    }
    let power = (rounded.to_bits() << 23).wrapping_add(127 << 23);
    (p * r * r + r + 1.0) * f32::from_bits(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_that_of_the_standard_library() {
        for i in -86_000..88_000 {
            let x = i as f32 / 1000.0 + 1e-4;
            let expected = f64::from(x).exp();
            let off = (f64::from(exp(x)) / expected - 1.0).abs();
            assert!(off < 3e-7, "{x}: {off:e}");
        }
        assert!(exp(f32::NEG_INFINITY) < 1e-37);
        assert!(exp(f32::NAN).is_nan());
        assert!(exp(1e30) > 1e38);
        assert_eq!(exp(0.0), 1.0);
    }
}

//! Floats into blocks, as ggml's `quantize_row_*_ref` makes them, bit for bit.

use half::f16;

/// A group whose largest value is below this is all zero.
const MIN_GROUP: f32 = 1e-15;

/// Appends blocks of Q8_0. The largest value of a block is exactly 127 scales, before the scale is
/// rounded to f16.
///
/// Errors: the index of the first value that is not finite, or too large for a scale of f16.
///
/// Panics if the values are not whole blocks. So do all functions here.
pub fn q8_0(values: &[f32], out: &mut Vec<u8>) -> Result<(), usize> {
    blocks::<32>(values, |values| {
        let max = values.iter().fold(0.0f32, |max, x| max.max(x.abs()));
        let d = max / 127.0;
        let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
        out.extend(f16::from_f32(d).to_le_bytes());
        out.extend(values.iter().map(|x| (x * inverse).round() as i8 as u8));
        f16::from_f32(d)
    })
}

/// Appends blocks of Q6_K. Each group of 16 gets the best of 19 scales.
///
/// Errors: as [`q8_0`].
pub fn q6_k(values: &[f32], out: &mut Vec<u8>) -> Result<(), usize> {
    blocks::<256>(values, |values| {
        let (groups, _) = values.as_chunks::<16>();
        let mut codes = [0; 256];
        let mut scales = [0.0; 16];
        for ((group, scale), codes) in groups.iter().zip(&mut scales).zip(codes.chunks_mut(16)) {
            *scale = best_scale(group, codes);
        }
        if !scales.iter().all(|scale| scale.is_finite()) {
            // The sum of the squares overflowed.
            return f16::INFINITY;
        }
        let largest =
            scales.iter().fold(0.0f32, |max, s| if s.abs() > max.abs() { *s } else { max });
        if largest.abs() < MIN_GROUP {
            out.extend([0; 210]);
            return f16::ZERO;
        }
        let inverse = -128.0 / largest;
        let d = f16::from_f32(1.0 / inverse);
        let factors = scales.map(|scale| nearest(inverse * scale).min(127) as i8);
        // The scales are rounded now, so the codes are computed anew.
        for ((group, factor), codes) in groups.iter().zip(factors).zip(codes.chunks_mut(16)) {
            let scale = d.to_f32() * f32::from(factor);
            if scale != 0.0 {
                codes.iter_mut().zip(group).for_each(|(code, x)| *code = code_of(x / scale));
            }
        }
        let halves = codes.as_chunks::<128>().0;
        for half in halves {
            let pair = |l: usize| half[l] & 15 | (half[l + 64] & 15) << 4;
            out.extend((0..64).map(pair));
        }
        for half in halves {
            let upper = |l: usize| {
                (0..4).fold(0, |byte, quarter| byte | half[l + 32 * quarter] >> 4 << (2 * quarter))
            };
            out.extend((0..32).map(upper));
        }
        out.extend(factors.map(|factor| factor as u8));
        out.extend(d.to_le_bytes());
        d
    })
}

/// Calls `block` for every `N` values. `block` returns the scale that they got.
fn blocks<const N: usize>(
    values: &[f32],
    mut block: impl FnMut(&[f32; N]) -> f16,
) -> Result<(), usize> {
    let (whole, rest) = values.as_chunks::<N>();
    assert!(rest.is_empty(), "{} values, not blocks of {N}", values.len());
    for (index, values) in whole.iter().enumerate() {
        if let Some(bad) = values.iter().position(|value| !value.is_finite()) {
            return Err(index * N + bad);
        }
        if !block(values).is_finite() {
            return Err(index * N);
        }
    }
    Ok(())
}

/// The scale with the least error. Errors of large values count more. Writes a code for each value,
/// where 32 stands for zero.
fn best_scale(values: &[f32; 16], codes: &mut [u8]) -> f32 {
    let largest = values.iter().fold(0.0f32, |max, x| if x.abs() > max.abs() { *x } else { max });
    if largest.abs() < MIN_GROUP {
        codes.fill(0);
        return 0.0;
    }
    // For the codes that `inverse` gives: the scale that suits them best, and how good it is.
    let fit = |inverse: f32| {
        values.iter().fold((0.0f32, 0.0f32), |(products, squares), x| {
            let (code, weight) = (f32::from(code_of(inverse * x)) - 32.0, x * x);
            (products + weight * x * code, squares + weight * code * code)
        })
    };
    let mut write = |inverse: f32| {
        codes.iter_mut().zip(values).for_each(|(code, x)| *code = code_of(inverse * x));
    };
    let first = -32.0 / largest;
    write(first);
    let (products, squares) = fit(first);
    let mut scale = if squares == 0.0 { 0.0 } else { products / squares };
    let mut best = scale * products;
    for step in (-9..=9).filter(|step| *step != 0) {
        let inverse = -(32.0 + 0.1 * step as f32) / largest;
        let (products, squares) = fit(inverse);
        if squares > 0.0 && products * products > best * squares {
            write(inverse);
            scale = products / squares;
            best = scale * products;
        }
    }
    scale
}

/// The code of a value that was divided by its scale.
fn code_of(scaled: f32) -> u8 {
    (nearest(scaled).clamp(-32, 31) + 32) as u8
}

fn nearest(x: f32) -> i32 {
    x.round_ties_even() as i32
}

//! Attention of one token: the heads that share a head of keys and values.

use super::cache::CacheShape;
use super::machine::{Run, Simd, unroll};
use super::ops::exp;
use crate::compute::KvType;

/// Positions whose values are added in one go, so that they stay in the first cache of the CPU.
const POSITIONS: usize = 64;

/// Heads whose scores are there at the same time.
pub(super) const SCORES: usize = 4;

/// The attention of the heads of one token that share a head of keys and values.
pub(super) struct Attention<'a> {
    pub(super) shape: CacheShape,
    /// The head of keys and values.
    pub(super) head_kv: usize,
    /// The rows of the sequence, up to the token's own.
    pub(super) keys: &'a [u8],
    /// As `keys`.
    pub(super) values: &'a [u8],
    /// The queries `[heads][head_dim]`, rotated.
    pub(super) q: &'a [f32],
    /// Room for the scores of [`SCORES`] heads, or of all if they are fewer.
    pub(super) scores: &'a mut [f32],
    /// The results `[heads][head_dim]`.
    pub(super) out: &'a mut [f32],
}

impl Run for Attention<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        match self.shape.kv {
            KvType::F16 => attend::<S, F16>(s, self),
            KvType::F32 => attend::<S, F32>(s, self),
            KvType::Int8 => attend::<S, Int8>(s, self),
        }
    }
}

/// How the cache holds eight values.
trait Held {
    const BYTES: usize;
    const HAS_SCALES: bool;

    fn eight<S: Simd>(s: S, bytes: &[u8]) -> S::Floats;
}

struct F16;
struct F32;
struct Int8;

impl Held for F16 {
    const BYTES: usize = 2;
    const HAS_SCALES: bool = false;

    #[inline(always)]
    fn eight<S: Simd>(s: S, bytes: &[u8]) -> S::Floats {
        bytes.first_chunk().map_or(s.zeros(), |bytes| s.any_f16s(bytes))
    }
}

impl Held for F32 {
    const BYTES: usize = 4;
    const HAS_SCALES: bool = false;

    #[inline(always)]
    fn eight<S: Simd>(s: S, bytes: &[u8]) -> S::Floats {
        let mut floats = [0.0; 8];
        for (float, bytes) in floats.iter_mut().zip(bytes.as_chunks().0) {
            *float = f32::from_le_bytes(*bytes);
        }
        s.floats(&floats)
    }
}

impl Held for Int8 {
    const BYTES: usize = 1;
    const HAS_SCALES: bool = true;

    #[inline(always)]
    fn eight<S: Simd>(s: S, bytes: &[u8]) -> S::Floats {
        bytes.first_chunk().map_or(s.zeros(), |bytes| s.i8s(bytes))
    }
}

#[inline(always)]
fn attend<S: Simd, H: Held>(s: S, job: Attention<'_>) {
    let Attention { shape, head_kv, keys, values, q, scores, out } = job;
    let dim = shape.head_dim;
    let rows = Rows { shape, head_kv };
    for (q, out) in q.chunks(SCORES * dim).zip(out.chunks_mut(SCORES * dim)) {
        match q.len() / dim {
            1 => attend_heads::<S, H, 1>(s, rows, keys, values, q, scores, out),
            2 => attend_heads::<S, H, 2>(s, rows, keys, values, q, scores, out),
            3 => attend_heads::<S, H, 3>(s, rows, keys, values, q, scores, out),
            _ => attend_heads::<S, H, 4>(s, rows, keys, values, q, scores, out),
        }
    }
}

#[derive(Clone, Copy)]
struct Rows {
    shape: CacheShape,
    head_kv: usize,
}

impl Rows {
    /// The values of the head in a row.
    #[inline(always)]
    fn head<'a, H: Held>(&self, row: &'a [u8]) -> &'a [u8] {
        let bytes = self.shape.head_dim * H::BYTES;
        &row[self.head_kv * bytes..][..bytes]
    }

    /// The scale of the head in a row.
    #[inline(always)]
    fn scale<H: Held>(&self, row: &[u8]) -> f32 {
        if !H::HAS_SCALES {
            return 1.0;
        }
        let at = self.shape.n_head_kv * self.shape.head_dim + 4 * self.head_kv;
        row[at..].first_chunk().map_or(1.0, |bytes| f32::from_le_bytes(*bytes))
    }
}

/// Attends with `N` heads.
#[inline(always)]
fn attend_heads<S: Simd, H: Held, const N: usize>(
    s: S,
    rows: Rows,
    keys: &[u8],
    values: &[u8],
    q: &[f32],
    scores: &mut [f32],
    out: &mut [f32],
) {
    let (dim, row_bytes) = (rows.shape.head_dim, rows.shape.row_bytes());
    let n = keys.len() / row_bytes;
    let scale = 1.0 / (dim as f32).sqrt();
    // [N][n]
    let weights = &mut scores[..N * n];
    for (position, row) in keys.chunks_exact(row_bytes).enumerate() {
        let mut sums = [s.zeros(); N];
        let head = rows.head::<H>(row);
        for (i, eight) in head.chunks_exact(8 * H::BYTES).enumerate() {
            let k = H::eight(s, eight);
            unroll!(h in N => {
                if let Some(q) = q[h * dim + 8 * i..].first_chunk() {
                    sums[h] = s.mul_add(k, s.floats(q), sums[h]);
                }
            });
        }
        let scale = scale * rows.scale::<H>(row);
        unroll!(h in N => {
            weights[h * n + position] = s.total(sums[h]) * scale;
        });
    }
    let mut totals = [0.0; N];
    for (weights, total) in weights.chunks_exact_mut(n).zip(&mut totals) {
        *total = softmax(weights);
    }
    if H::HAS_SCALES {
        for (position, row) in values.chunks_exact(row_bytes).enumerate() {
            let scale = rows.scale::<H>(row);
            unroll!(h in N => {
                weights[h * n + position] *= scale;
            });
        }
    }
    out.fill(0.0);
    for (block, values) in values.chunks(POSITIONS * row_bytes).enumerate() {
        let first = block * POSITIONS;
        // Two vectors of each head at a time.
        for at in (0..dim).step_by(16) {
            let both = at + 8 < dim;
            let mut sums = [[s.zeros(); 2]; N];
            for (position, row) in values.chunks_exact(row_bytes).enumerate() {
                let head = &rows.head::<H>(row)[at * H::BYTES..];
                let first_v = H::eight(s, head);
                let second_v = if both { H::eight(s, &head[8 * H::BYTES..]) } else { s.zeros() };
                unroll!(h in N => {
                    let weight = s.all(weights[h * n + first + position]);
                    sums[h][0] = s.mul_add(first_v, weight, sums[h][0]);
                    sums[h][1] = s.mul_add(second_v, weight, sums[h][1]);
                });
            }
            unroll!(h in N => {
                for half in 0..if both { 2 } else { 1 } {
                    if let Some(out) = out[h * dim + at + 8 * half..].first_chunk_mut() {
                        let sum = s.add(s.floats(out), sums[h][half]);
                        s.store(sum, out);
                    }
                }
            });
        }
    }
    for (out, total) in out.chunks_exact_mut(dim).zip(totals) {
        out.iter_mut().for_each(|out| *out /= total);
    }
}

/// Makes weights of scores. Gives their sum.
#[inline(always)]
fn softmax(scores: &mut [f32]) -> f32 {
    let (chunks, rest) = scores.as_chunks_mut::<8>();
    let mut greatest = [f32::NEG_INFINITY; 8];
    for chunk in chunks.iter() {
        unroll!(i in 8 => {
            greatest[i] = greatest[i].max(chunk[i]);
        });
    }
    let greatest = greatest.iter().chain(rest.iter()).fold(f32::NEG_INFINITY, |a, &b| a.max(b));
    let mut sums = [0.0; 8];
    for chunk in chunks {
        unroll!(i in 8 => {
            chunk[i] = exp(chunk[i] - greatest);
            sums[i] += chunk[i];
        });
    }
    let mut total: f32 = sums.iter().sum();
    for score in rest {
        *score = exp(*score - greatest);
        total += *score;
    }
    total
}

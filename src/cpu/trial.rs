//! The test that attention and the activation pass before they are used: they compute hard inputs
//! nearly as plain Rust does.

use super::attention::Attention;
use super::cache::CacheShape;
use super::machine::InstructionSet;
use super::product::Gate;
use super::random::Random;
use crate::model::Activation;

/// One position, and as many as need a second round.
const POSITIONS: [usize; 2] = [1, 67];

/// The most that a result may be off, as a share of the largest one. The sets round differently.
const ALLOWED: f32 = 1e-4;

/// Whether the results of `set` are those of plain Rust, for the cache of a model.
pub(super) fn is_right(set: InstructionSet, shape: CacheShape) -> bool {
    set == InstructionSet::SCALAR
        || POSITIONS.iter().all(|&n| {
            (1..=4).all(|heads| {
                let of = |set| attention(set, shape, n, heads);
                are_close(&of(set), &of(InstructionSet::SCALAR))
            })
        }) && [Activation::Relu2, Activation::Silu, Activation::Gelu].into_iter().all(
            |activation| {
                are_close(&gate(set, activation), &gate(InstructionSet::SCALAR, activation))
            },
        )
}

/// Whether this thread computes with instructions what it does without.
#[cfg(all(target_arch = "wasm32", feature = "threads"))]
pub fn is_right_here() -> bool {
    use super::formats::kernel_of;
    use crate::compute::KvType;
    use crate::gguf::TensorType;

    let shape = CacheShape { kv: KvType::F16, n_head_kv: 1, head_dim: 64 };
    // The load has tested the others, which a browser may get wrong in every thread.
    let set = InstructionSet::SIMD128;
    is_right(set, shape)
        && kernel_of(TensorType::I2S).is_some_and(|kernel| kernel.choose(&[set]) == set)
}

fn are_close(found: &[f32], expected: &[f32]) -> bool {
    let largest = expected.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    // Not so if one is NaN.
    found.iter().zip(expected).all(|(x, y)| (x - y).abs() <= ALLOWED * largest)
}

/// The results of `heads` queries, which attend to `n` positions with the last head of each.
fn attention(set: InstructionSet, shape: CacheShape, n: usize, heads: usize) -> Vec<f32> {
    let mut random = Random(1);
    let mut values = |n: usize| (0..n).map(|_| hard(&mut random)).collect::<Vec<f32>>();
    let q = values(heads * shape.head_dim);
    let mut rows = || {
        let mut rows = vec![0; n * shape.row_bytes()];
        for row in rows.chunks_exact_mut(shape.row_bytes()) {
            shape.write_row(&values(shape.n_head_kv * shape.head_dim), row);
        }
        rows
    };
    let (keys, values) = (rows(), rows());
    let mut out = vec![0.0; q.len()];
    let (head_kv, scores) = (shape.n_head_kv - 1, &mut *vec![0.0; heads * n]);
    let (keys, values, q) = (&*keys, &*values, &*q);
    set.run(Attention { shape, head_kv, keys, values, q, scores, out: &mut out });
    out
}

/// Values around 1 of either sign, zeros, and a few that are subnormal as f16.
fn hard(random: &mut Random) -> f32 {
    let value = random.next() as f32 / 4_194_304.0 - 2.0;
    match random.next() % 16 {
        0 => 0.0,
        1 => value * 1e-6,
        _ => value,
    }
}

fn gate(set: InstructionSet, activation: Activation) -> Vec<f32> {
    let gates: Vec<f32> = (-50..53).map(|x| x as f32 * 0.37).collect();
    let mut out: Vec<f32> = (0..103).map(|x| 1.0 + (x % 7) as f32).collect();
    set.run(Gate { activation, gates: &gates, out: &mut out });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::KvType;

    #[test]
    fn attention_with_every_instruction_set_is_right() {
        for (n_head_kv, head_dim) in [(1, 8), (2, 24), (3, 64), (2, 128)] {
            for (_, kv) in KvType::ALL {
                let shape = CacheShape { kv, n_head_kv, head_dim };
                for set in InstructionSet::available() {
                    assert!(is_right(set, shape), "{kv:?}, {head_dim} with {}", set.name());
                }
            }
        }
    }

    #[test]
    fn other_results_are_not_close() {
        assert!(are_close(&[1.0, 2.0], &[1.00001, 2.0]));
        for wrong in [[1.0, f32::NAN], [1.0, 2.001], [f32::INFINITY, 2.0]] {
            assert!(!are_close(&wrong, &[1.0, 2.0]));
        }
    }
}

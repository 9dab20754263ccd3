//! Products of stored weights with int8 activations: [`TABLE`] has a row for each type of weights.
//!
//! A kernel computes a row of the matrix for up to four tokens at once, so that it unpacks each code
//! once. It is written for any instruction set. A token's result does not depend on the others.

mod dense;
mod packed;
mod ternary;
mod trial;

use std::marker::PhantomData;

pub(crate) use trial::random_rows;

use super::input::{Input, Order, Token};
use super::machine::{InstructionSet, Run, Simd, unroll};
use crate::blocks::BlockType;
use crate::gguf::TensorType;

/// The most tokens that a kernel computes at once.
pub(crate) const TILE: usize = 4;

/// Rows of a matrix, and the tokens to multiply them with.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    /// Whole rows, as in the file.
    pub(crate) weights: &'a [u8],
    /// Bytes of a row.
    pub(crate) row_bytes: usize,
    /// Multiplies every product.
    pub(crate) factor: f32,
    /// The input of each token.
    pub(crate) inputs: &'a [Input],
}

/// A type of weights.
pub(crate) trait Format {
    const TYPE: TensorType;
    const ORDER: Order;
    /// Whether rows are the upper bytes of split values.
    const UPPER: bool = false;

    /// The products of a row with `N` tokens.
    fn row<S: Simd, const N: usize>(s: S, row: &[u8], x: &[Token<'_, S::Stored>; N]) -> [f32; N];
}

/// A type's row of the table.
pub(crate) struct Kernel {
    /// The type.
    pub(crate) ty: TensorType,
    /// The inputs that it takes.
    pub(crate) order: Order,
    /// Whether its rows are the upper bytes of split values.
    upper: bool,
    product: fn(InstructionSet, &Job<'_>, &mut [f32]),
}

/// Every type.
static TABLE: [Kernel; 14] = [
    kernel::<ternary::I2S>(),
    kernel::<ternary::Tq1_0>(),
    kernel::<ternary::Tq2_0>(),
    kernel::<ternary::Q1_0>(),
    kernel::<ternary::Q2_0>(),
    kernel::<ternary::Q2_0Of128>(),
    kernel::<ternary::Pq2_0>(),
    kernel::<packed::Q4_0>(),
    kernel::<packed::Q4K>(),
    kernel::<packed::Q6K>(),
    kernel::<packed::Q8_0>(),
    kernel::<dense::F16>(),
    kernel::<dense::Bf16>(),
    kernel::<dense::F32>(),
];

/// The kernel of an F16 matrix that is split, for the upper bytes alone.
pub(crate) static UPPER: Kernel = kernel::<dense::Upper>();

const fn kernel<F: Format>() -> Kernel {
    Kernel {
        ty: F::TYPE,
        order: F::ORDER,
        upper: F::UPPER,
        product: |set, job, out| set.run(Rows::<F> { job, out, format: PhantomData }),
    }
}

/// The kernel of a type; `None` if no model has the type.
pub(crate) fn kernel_of(ty: TensorType) -> Option<&'static Kernel> {
    TABLE.iter().find(|kernel| kernel.ty == ty)
}

/// The types of the table.
pub(crate) fn types() -> impl Iterator<Item = TensorType> {
    TABLE.iter().map(|kernel| kernel.ty)
}

impl Kernel {
    /// Computes `job` with these instructions, which prepared its inputs too. `out` is
    /// `[tokens][rows]`.
    pub(crate) fn product(&self, set: InstructionSet, job: &Job<'_>, out: &mut [f32]) {
        (self.product)(set, job, out);
    }

    /// The first of `sets` that computes what plain Rust does.
    pub(crate) fn choose(&self, sets: &[InstructionSet]) -> InstructionSet {
        InstructionSet::first_of(sets, |set| trial::is_right(self, set))
    }
}

/// Computes `job` with weights in blocks as floats, and with inputs of floats.
pub(crate) fn product_of_floats(
    set: InstructionSet,
    block: &BlockType,
    job: &Job<'_>,
    out: &mut [f32],
) {
    let rows = job.weights.len() / job.row_bytes;
    let mut products = vec![0.0; job.inputs.len()];
    for (n, row) in job.weights.chunks_exact(job.row_bytes).enumerate() {
        // They were checked when they were loaded.
        let values = block.values(row).unwrap_or_default();
        let weights: &[u8] = bytemuck::cast_slice(&values);
        let job = Job { weights, row_bytes: weights.len(), ..*job };
        set.run(Rows::<dense::F32> { job: &job, out: &mut products, format: PhantomData });
        products.iter().enumerate().for_each(|(token, y)| out[token * rows + n] = *y);
    }
}

/// A product, for any instruction set.
struct Rows<'a, F> {
    job: &'a Job<'a>,
    out: &'a mut [f32],
    format: PhantomData<F>,
}

impl<F: Format> Run for Rows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { job, out, .. } = self;
        let rows = job.weights.len() / job.row_bytes;
        for (inputs, out) in job.inputs.chunks(TILE).zip(out.chunks_mut(TILE * rows.max(1))) {
            match inputs {
                [a] => tile::<S, F, 1>(s, job, [a], out),
                [a, b] => tile::<S, F, 2>(s, job, [a, b], out),
                [a, b, c] => tile::<S, F, 3>(s, job, [a, b, c], out),
                [a, b, c, d] => tile::<S, F, 4>(s, job, [a, b, c, d], out),
                _ => {}
            }
        }
    }
}

/// Computes all rows for `N` tokens.
#[inline(always)]
fn tile<S: Simd, F: Format, const N: usize>(
    s: S,
    job: &Job<'_>,
    inputs: [&Input; N],
    out: &mut [f32],
) {
    let rows = job.weights.len() / job.row_bytes;
    let tokens = inputs.map(Input::token::<S>);
    for (n, row) in job.weights.chunks_exact(job.row_bytes).enumerate() {
        let products = F::row::<S, N>(s, row, &tokens);
        unroll!(i in N => {
            out[i * rows + n] = products[i] * job.factor;
        });
    }
}

/// The inputs of a token in units that have `M` vectors, `A` scales and `B` negated sums.
#[derive(Clone, Copy)]
struct Units<'a, Q, const M: usize, const A: usize, const B: usize> {
    q: &'a [[Q; M]],
    scales: &'a [[f32; A]],
    negated: &'a [[f32; B]],
}

/// The first `n` units of each token. All slices have just that length, so that the compiler sees that
/// a unit is within all of them.
#[inline(always)]
fn units<'a, Q: Copy, const N: usize, const M: usize, const A: usize, const B: usize>(
    x: &[Token<'a, Q>; N],
    n: usize,
) -> [Units<'a, Q, M, A, B>; N] {
    let mut units = [Units { q: &[], scales: &[], negated: &[] }; N];
    unroll!(i in N => {
        units[i] = Units {
            q: first(x[i].q, n),
            scales: first(x[i].scales, n),
            negated: first(x[i].negated, n),
        };
    });
    units
}

/// The first `n` arrays of `M`.
#[inline(always)]
fn first<T, const M: usize>(values: &[T], n: usize) -> &[[T; M]] {
    &values.as_chunks().0[..n]
}

/// The sums of every lane of each token.
#[inline(always)]
fn totals<S: Simd, const N: usize>(s: S, sums: [S::Floats; N]) -> [f32; N] {
    let mut totals = [0.0; N];
    unroll!(i in N => {
        totals[i] = s.total(sums[i]);
    });
    totals
}

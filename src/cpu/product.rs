//! A matrix in memory, and products whose rows are split over threads.

use std::borrow::Cow;
use std::ops::Range;

use super::formats::{Job, Kernel, product_of_floats};
use super::input::{Input, Order};
use super::machine::{InstructionSet, Run, Simd};
use super::ops;
use super::pool::{Pool, each};
use super::split::{JoinRow, Split};
use crate::blocks::{BlockType, block_type};
use crate::compute::MAX_SPLIT_COLUMNS;
use crate::model::Activation;

/// Rows of a block's matrix that one thread computes at a time.
const ROWS: usize = 32;

/// The same of a matrix with a row for each token of the vocabulary.
const VOCABULARY_ROWS: usize = 256;

/// The most rows of a block's matrix that count as such.
const MANY: usize = 1 << 15;

/// Inputs that a row of a matrix that is split is multiplied with at a time.
const INPUTS: usize = 16;

/// A matrix as it is in the file.
pub(super) struct Matrix {
    pub(super) kernel: &'static Kernel,
    pub(super) set: InstructionSet,
    pub(super) rows: usize,
    pub(super) bytes: Vec<u8>,
    /// Multiplies every product.
    pub(super) factor: f32,
    /// Whether inputs stay floats, in a matrix of blocks.
    pub(super) of_floats: bool,
    /// How an F16 matrix is split. Its bytes are then all upper bytes, and all lower ones after them.
    pub(super) split: Option<Split>,
}

impl Matrix {
    /// Bytes of a row.
    pub(super) fn row_bytes(&self) -> usize {
        self.bytes.len() / self.rows.max(1)
    }

    /// Bytes of row `index`, as in the file.
    pub(super) fn row(&self, index: usize) -> Cow<'_, [u8]> {
        let len = self.row_bytes();
        match &self.split {
            None => Cow::Borrowed(&self.bytes[index * len..][..len]),
            Some(_) => {
                let mut row = vec![0; len];
                self.join(index, &mut row);
                Cow::Owned(row)
            }
        }
    }

    /// All upper bytes, and all lower ones, of a matrix that is split.
    pub(super) fn halves(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at(self.bytes.len() / 2)
    }

    /// Bytes that the choice of a greedy token reads: of a matrix that is split, the upper ones, and the lower ones of a
    /// single row.
    pub(super) fn greedy_bytes(&self) -> usize {
        match self.split {
            None => self.bytes.len(),
            Some(_) => (self.bytes.len() + self.row_bytes()) / 2,
        }
    }

    /// Writes row `index` as it was before the split.
    fn join(&self, index: usize, row: &mut [u8]) {
        let of_row = index * row.len() / 2..(index + 1) * row.len() / 2;
        let (upper, lower) = self.halves();
        self.set.run(JoinRow { upper: &upper[of_row.clone()], lower: &lower[of_row], row });
    }

    /// Makes `input` of the values `x`.
    pub(super) fn prepare(&self, input: &mut Input, x: &[f32]) {
        let order = if self.of_floats { Order::Floats } else { self.kernel.order };
        input.prepare(order, self.set, x);
    }

    fn block(&self) -> Option<&'static BlockType> {
        if self.of_floats { block_type(self.kernel.ty) } else { None }
    }

    pub(super) fn part_rows(&self) -> usize {
        if self.rows < MANY { ROWS } else { VOCABULARY_ROWS }
    }

    /// Multiplies rows of a matrix that is split with each input. `out` is `[inputs][rows]`.
    pub(super) fn multiply_split(&self, rows: Range<usize>, inputs: &[Input], out: &mut [f32]) {
        // On the stack: a job allocates nothing.
        let row = &mut [0; 2 * MAX_SPLIT_COLUMNS][..self.row_bytes()];
        let mut products = [0.0; INPUTS];
        let n = rows.len();
        for (at, index) in rows.enumerate() {
            self.join(index, row);
            for (inputs, out) in inputs.chunks(INPUTS).zip(out.chunks_mut(INPUTS * n)) {
                let products = &mut products[..inputs.len()];
                let job = Job { weights: row, row_bytes: row.len(), factor: self.factor, inputs };
                self.kernel.product(self.set, &job, products);
                out[at..].iter_mut().step_by(n).zip(products).for_each(|(to, y)| *to = *y);
            }
        }
    }

    /// Multiplies `rows` with each input. `out` is `[inputs][rows]`.
    fn multiply(&self, rows: Range<usize>, inputs: &[Input], out: &mut [f32]) {
        let row_bytes = self.row_bytes();
        if self.split.is_some() {
            return self.multiply_split(rows, inputs, out);
        }
        let weights = &self.bytes[rows.start * row_bytes..rows.end * row_bytes];
        let job = Job { weights, row_bytes, factor: self.factor, inputs };
        match self.block() {
            Some(block) => product_of_floats(self.set, block, &job, out),
            None => self.kernel.product(self.set, &job, out),
        }
    }
}

/// The results of a product, in parts of several rows: `[parts][tokens][rows of the part]`.
#[derive(Default)]
pub(super) struct Products {
    values: Vec<f32>,
    tokens: usize,
    part_rows: usize,
}

impl Products {
    fn resize(&mut self, matrix: &Matrix, tokens: usize) {
        self.values.resize(matrix.rows * tokens, 0.0);
        (self.tokens, self.part_rows) = (tokens, matrix.part_rows());
    }

    /// The parts, and the rows of each.
    fn parts(&mut self) -> impl Iterator<Item = (Range<usize>, &mut [f32])> {
        let (tokens, each) = (self.tokens, self.part_rows);
        self.values.chunks_mut(each * tokens).enumerate().map(move |(part, values)| {
            let first = part * each;
            (first..first + values.len() / tokens, values)
        })
    }

    /// The results of a token.
    pub(super) fn of_token(&self, token: usize) -> impl Iterator<Item = &[f32]> {
        self.values.chunks(self.part_rows * self.tokens).map(move |part| {
            let rows = part.len() / self.tokens;
            &part[token * rows..][..rows]
        })
    }

    /// The number of tokens.
    pub(super) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Adds the results of another matrix with as many rows.
    pub(super) fn add(&mut self, other: &Self) {
        debug_assert!(self.values.len() == other.values.len());
        ops::add(&mut self.values, &other.values, 1.0);
    }

    /// Copies the results of a token.
    pub(super) fn take(&self, token: usize, to: &mut Vec<f32>) {
        to.clear();
        self.of_token(token).for_each(|rows| to.extend_from_slice(rows));
    }
}

/// Multiplies `inputs` with each of the matrices.
pub(super) fn multiply<const N: usize>(
    pool: &dyn Pool,
    matrices: [&Matrix; N],
    inputs: &[Input],
    products: [&mut Products; N],
) {
    let mut parts = Vec::new();
    for (matrix, products) in matrices.into_iter().zip(products) {
        products.resize(matrix, inputs.len());
        parts.extend(products.parts().map(|(rows, out)| (matrix, rows, out)));
    }
    each(pool, &mut parts, |_, (matrix, rows, out)| matrix.multiply(rows.clone(), inputs, out));
}

/// Multiplies `inputs` with gate and up, and gives the gated activation, computed with `set`, as the
/// second of `products`. The first has what gate gives.
pub(super) fn multiply_gated(
    pool: &dyn Pool,
    [gate, up]: [&Matrix; 2],
    (activation, set): (Activation, InstructionSet),
    inputs: &[Input],
    [gates, products]: [&mut Products; 2],
) {
    gates.resize(gate, inputs.len());
    products.resize(up, inputs.len());
    let mut parts: Vec<_> = gates.parts().zip(products.parts()).collect();
    each(pool, &mut parts, |_, ((rows, gates), (_, out))| {
        gate.multiply(rows.clone(), inputs, gates);
        up.multiply(rows.clone(), inputs, out);
        set.run(Gate { activation, gates, out });
    });
}

/// Multiplies `up` by the activations of `gate`, computed with `set`. Both are products of as many rows.
pub(super) fn gate(
    pool: &dyn Pool,
    gate: &Products,
    (activation, set): (Activation, InstructionSet),
    up: &mut Products,
) {
    let mut rest = &gate.values[..];
    let mut parts: Vec<_> = up
        .parts()
        .map(|(_, out)| {
            let (gates, others) = rest.split_at(out.len());
            rest = others;
            (gates, out)
        })
        .collect();
    each(pool, &mut parts, |_, (gates, out)| set.run(Gate { activation, gates, out }));
}

/// Multiplies `out` by the activations of `gates`.
pub(super) struct Gate<'a> {
    pub(super) activation: Activation,
    pub(super) gates: &'a [f32],
    pub(super) out: &'a mut [f32],
}

impl Run for Gate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        ops::gate(self.activation, self.gates, self.out);
    }
}

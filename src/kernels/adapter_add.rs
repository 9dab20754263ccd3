use super::adapter_thin::Batch;
use super::weight::Product;
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Kernel, Recorder};
use crate::one_variant;

/// The second matrices of an adapter's pairs, on matrices of a model that share their input.
pub struct Wide {
    /// The rows of each matrix of the model, up to three.
    pub rows: Vec<usize>,
    /// Values of a row, a multiple of 8: the ranks of all pairs on the matrix that has most.
    pub rank: usize,
    /// `[rows of all, rank]` of f16.
    pub b: Buffer<u32>,
}

/// The addition that pairs make to products.
#[derive(Clone, Copy)]
pub struct Added<'a> {
    /// The second matrices.
    pub wide: &'a Wide,
    /// The products of the first matrices `[n_tokens, matrices, rank]`.
    pub u: &'a Buffer<f32>,
}

pub(super) const KERNEL: Kernel = Kernel {
    name: "adapter_add",
    bindings: &[
        ("step", Access::Step),
        ("b", Access::Read),
        ("u", Access::Read),
        ("v", Access::Read),
        ("y", Access::Write),
    ],
    variants: one_variant!("shared/step", "shared/adapter_delta", "shared/gated", "adapter_add"),
    example: || consts(6912, Product::EXAMPLE, Batch::Many, wide_consts(&[6912, 6912], 16)),
};

/// The constants of second matrices.
pub(super) fn wide_consts(rows: &[usize], rank: usize) -> Vec<Const> {
    let begin = |part: usize| rows[..part.min(rows.len())].iter().sum();
    vec![
        Const::size("RANK", rank),
        Const::size("PARTS", rows.len()),
        Const::size("SECOND", begin(1)),
        Const::size("THIRD", begin(2)),
    ]
}

fn consts(rows: usize, product: Product, batch: Batch, wide: Vec<Const>) -> Vec<Const> {
    let own = vec![Const::U32("WORKGROUP", WORKGROUP), Const::size("ROWS", rows)];
    [own, batch.consts(), product.consts(), wide].concat()
}

impl Wide {
    pub(super) fn consts(&self) -> Vec<Const> {
        wide_consts(&self.rows, self.rank)
    }
}

impl Recorder<'_> {
    /// `y` `[n_tokens, rows]` = the results `v` of a product for every token, and what pairs add to them. They
    /// are used as `product` says. `v` is `[n_tokens, rows]`, or `[n_tokens, 2, rows]` with gate and up.
    pub fn adapter_add(
        &mut self,
        added: Added<'_>,
        v: &Buffer<f32>,
        y: &Buffer<f32>,
        product: Product,
        batch: Batch,
    ) {
        let Added { wide, u } = added;
        let rows = wide.rows.iter().sum::<usize>() / product.matrices();
        let groups = rows.div_ceil(WORKGROUP as usize);
        self.dispatch(
            &KERNEL,
            &consts(rows, product, batch, wide.consts()),
            &[&wide.b, u, v, y],
            batch.workgroups(groups),
        );
    }
}

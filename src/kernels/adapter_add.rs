use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

/// The first matrices of an adapter's pairs, on matrices of a model that share their input.
pub struct Thin {
    /// Values of a row, a multiple of 32.
    pub k: usize,
    /// `[rows, k]` of f16.
    pub a: Buffer<u32>,
    /// The factor of each row's products, `[rows]`.
    pub factor: Buffer<f32>,
}

/// The second matrices of the same pairs.
pub struct Wide {
    /// The rows of each matrix of the model, up to three.
    pub rows: Vec<usize>,
    /// Values of a row, a multiple of 8: the ranks of all pairs on the matrix that has most.
    pub rank: usize,
    /// `[rows of all, rank]` of f16.
    pub b: Buffer<u32>,
}

pub(super) const KERNEL: Kernel = Kernel {
    name: "adapter_add",
    bindings: &[
        ("step", Access::Step),
        ("b", Access::Read),
        ("u", Access::Read),
        ("y", Access::Write),
    ],
    variants: one_variant!("shared/step", "adapter_add"),
    example: || consts(&[2560, 640, 640], 16),
};

fn consts(rows: &[usize], rank: usize) -> Vec<Const> {
    let all = rows.iter().sum();
    let begin = |matrix: usize| rows[..matrix.min(rows.len())].iter().sum();
    vec![
        Const::U32("WORKGROUP", WORKGROUP),
        Const::size("ROWS", all),
        Const::size("RANK", rank),
        Const::size("MATRICES", rows.len()),
        Const::size("SECOND", begin(1)),
        Const::size("THIRD", begin(2)),
    ]
}

impl Recorder<'_> {
    /// Adds to every token of `y` `[n_tokens, rows]` the product of the second matrices of an adapter's
    /// pairs with `u` `[n_tokens, matrices, rank]`.
    pub fn adapter_add(&mut self, wide: &Wide, u: &Buffer<f32>, y: &Buffer<f32>) {
        let groups = wide.rows.iter().sum::<usize>().div_ceil(WORKGROUP as usize);
        self.dispatch(
            &KERNEL,
            &consts(&wide.rows, wide.rank),
            &[&wide.b, u, y],
            [Extent::Fixed(groups as u32), Extent::Tokens(1), Extent::Fixed(1)],
        );
    }
}

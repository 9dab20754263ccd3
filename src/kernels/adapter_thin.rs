use super::adapter_add::Thin;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "adapter_thin",
    bindings: &[
        ("a", Access::Read),
        ("factor", Access::Read),
        ("x", Access::Read),
        ("u", Access::Write),
    ],
    variants: lanes_variants!("group"; "adapter_thin"),
    example: || consts(2560, 48),
};

/// Threads of a workgroup, which has one row.
const WORKGROUP: u32 = 64;

fn consts(k: usize, rows: usize) -> Vec<Const> {
    vec![Const::U32("WORKGROUP", WORKGROUP), Const::size("K", k), Const::size("ROWS", rows)]
}

impl Recorder<'_> {
    /// `u` `[n_tokens, rows]` = the product of the first matrices of an adapter's pairs with every token of
    /// `x` `[n_tokens, k]`, each row times its factor.
    pub fn adapter_thin(&mut self, thin: &Thin, x: &Buffer<f32>, u: &Buffer<f32>) {
        let rows = thin.factor.len();
        self.dispatch(
            &KERNEL,
            &consts(thin.k, rows),
            &[&thin.a, &thin.factor, x, u],
            [Extent::Fixed(rows as u32), Extent::Tokens(1), Extent::Fixed(1)],
        );
    }
}

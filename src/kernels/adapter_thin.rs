use super::rows::{norm_consts, weight_or};
use super::weight::Norm;
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::lanes_variants;

/// The first matrices of an adapter's pairs, on matrices of a model that share their input.
pub struct Thin {
    /// Values of a row, a multiple of 4.
    pub k: usize,
    /// `[rows, k]` of f16. The rows are a multiple of 4.
    pub a: Buffer<u32>,
    /// The factor of each row's products, `[rows]`.
    pub factor: Buffer<f32>,
}

/// The tokens of a step that the kernels of adapters compute. The bits of a token are always the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// The last one, as the first row of the result.
    Last,
    /// All of a step of few tokens.
    Few,
    /// All of a chunk: a workgroup takes several, and reads the matrices once for them.
    Many,
}

pub(super) const KERNEL: Kernel = Kernel {
    name: "adapter_thin",
    bindings: &[
        ("step", Access::Step),
        ("a", Access::Read),
        ("factor", Access::Read),
        ("x", Access::Read),
        ("norm_weight", Access::Read),
        ("u", Access::Write),
    ],
    variants: lanes_variants!("lanes";
        "shared/step",
        "shared/norm_weight",
        "shared/adapter_rows",
        "adapter_thin"
    ),
    example: || consts(2560, 48, Some(1e-5), Batch::Many),
};

/// Rows of a workgroup.
const ROWS: usize = 4;

/// The constants of the kernels of thin matrices.
pub(super) fn consts(k: usize, rows: usize, eps: Option<f32>, batch: Batch) -> Vec<Const> {
    let own = vec![
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("LANES", WORKGROUP),
        Const::size("K", k),
        Const::size("ROWS", rows),
    ];
    [own, batch.consts(), norm_consts(eps)].concat()
}

impl Batch {
    /// Tokens of a workgroup.
    const fn at_once(self) -> u32 {
        match self {
            Self::Last | Self::Few => 1,
            Self::Many => 8,
        }
    }

    pub(super) fn consts(self) -> Vec<Const> {
        vec![Const::U32("TOKENS", self.at_once()), Const::Bool("LAST", self == Self::Last)]
    }

    /// These workgroups for every token, or for those that one takes at once.
    pub(super) fn workgroups(self, groups: usize) -> [Extent; 3] {
        let tokens = match self {
            Self::Last => Extent::Fixed(1),
            Self::Few | Self::Many => Extent::Tokens(self.at_once()),
        };
        [Extent::Fixed(groups as u32), tokens, Extent::Fixed(1)]
    }
}

impl Thin {
    pub(super) fn rows(&self) -> usize {
        self.factor.len()
    }

    pub(super) fn workgroups(&self, batch: Batch) -> [Extent; 3] {
        batch.workgroups(self.rows().div_ceil(ROWS))
    }
}

impl Recorder<'_> {
    /// `u` `[n_tokens, rows]` = the product of the first matrices of an adapter's pairs with every token of
    /// `x` `[n_tokens, k]`, which is normed if there is a `norm`. Each row is times its factor.
    pub fn adapter_thin(
        &mut self,
        thin: &Thin,
        x: &Buffer<f32>,
        norm: Option<&Norm>,
        u: &Buffer<f32>,
        batch: Batch,
    ) {
        let weight = weight_or(norm, x);
        self.dispatch(
            &KERNEL,
            &consts(thin.k, thin.rows(), norm.map(|norm| norm.eps), batch),
            &[&thin.a, &thin.factor, x, &weight, u],
            thin.workgroups(batch),
        );
    }
}

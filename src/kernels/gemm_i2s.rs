use super::rows::{ShardRows, TernaryProduct, ternary_consts};
use super::weight::{Product, Quantized, Ternary};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

/// Rows of one workgroup's tile. Each thread computes four rows of four tokens.
const TILE_ROWS: u32 = 64;
const TILE_TOKENS: u32 = 32;
const WORKGROUP: u32 = TILE_ROWS / 4 * (TILE_TOKENS / 4);

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemm_i2s",
    bindings: &[
        ("step", Access::Step),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("q", Access::Read),
        ("q_scale", Access::Read),
        ("y", Access::Write),
    ],
    variants: one_variant!(
        "shared/step",
        "shared/dot4",
        "shared/gated",
        "shared/ternary",
        "shared/ternary_product",
        "shared/ternary_tiles",
        "gemm_i2s"
    ),
    example: || {
        let rows = ShardRows { k: 2560, all: 6912, shard: 0..6912 };
        [ternary_consts(&rows, Product::EXAMPLE, true), consts()].concat()
    },
};

fn consts() -> Vec<Const> {
    vec![
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("TILE_ROWS", TILE_ROWS),
        Const::U32("TILE_TOKENS", TILE_TOKENS),
    ]
}

impl Recorder<'_> {
    /// The product of `w` with every token of `x`, on tiles in workgroup memory. `y` is
    /// `[n_tokens, rows]`.
    pub fn gemm_i2s(&mut self, w: &Ternary, x: &Quantized, y: &Buffer<f32>, product: Product) {
        TernaryProduct {
            kernel: &KERNEL,
            w,
            product,
            rows_per_workgroup: TILE_ROWS as usize,
            tokens: Extent::Tokens(TILE_TOKENS),
            consts: consts(),
            instead: Vec::new(),
            buffers: &[&x.q, &x.scale, y],
        }
        .record(self);
    }
}

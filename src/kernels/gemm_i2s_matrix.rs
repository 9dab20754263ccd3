use super::rows::{ShardRows, TernaryProduct, ternary_consts};
use super::weight::{Product, Quantized, Ternary};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, MATRIX_MEMORY, Recorder, Variant};
use crate::wgsl;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemm_i2s_matrix",
    bindings: &[
        ("step", Access::Step),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("q", Access::Read),
        ("q_scale", Access::Read),
        ("y", Access::Write),
    ],
    variants: &[
        Variant {
            name: "",
            subgroups: true,
            matrix_units: true,
            wgsl: wgsl!(
                "shared/step",
                "shared/gated",
                "shared/ternary_product",
                "shared/ternary_tiles",
                "shared/matrix_units",
                "gemm_i2s_matrix"
            ),
        },
        // The variant for tests.
        #[cfg(not(target_arch = "wasm32"))]
        Variant {
            name: "emulated",
            subgroups: true,
            matrix_units: false,
            wgsl: wgsl!(
                "shared/step",
                "shared/gated",
                "shared/ternary_product",
                "shared/ternary_tiles",
                "shared/matrix_units_emulated",
                "gemm_i2s_matrix"
            ),
        },
    ],
    example: || {
        let rows = ShardRows { k: 2560, all: 6912, shard: 0..6912 };
        [ternary_consts(&rows, Product::EXAMPLE, true), consts().into()].concat()
    },
};

/// Rows of a workgroup's tile, and tokens of it.
const TILE: u32 = 128;

// For each row 128 codes, and for each token 128 activations. Each is a byte, and 16 bytes come
// between one row or token and the next.
const _: () = assert!(2 * TILE * (128 + 16) <= MATRIX_MEMORY);

fn consts() -> [Const; 3] {
    [Const::U32("WORKGROUP", 256), Const::U32("TILE_ROWS", TILE), Const::U32("TILE_TOKENS", TILE)]
}

impl Recorder<'_> {
    /// Like [`Recorder::gemm_i2s`], with the adapter's matrix units, which the device must have.
    pub fn gemm_i2s_matrix(
        &mut self,
        w: &Ternary,
        x: &Quantized,
        y: &Buffer<f32>,
        product: Product,
    ) {
        TernaryProduct {
            kernel: &KERNEL,
            w,
            product,
            rows_per_workgroup: TILE as usize,
            tokens: Extent::Tokens(TILE),
            consts: consts().into(),
            instead: Vec::new(),
            buffers: &[&x.q, &x.scale, y],
        }
        .record(self);
    }
}

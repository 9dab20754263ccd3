use super::rows::{ShardRows, TernaryProduct, ternary_consts};
use super::{Product, Quantized, Ternary};
use crate::gpu::{Access, Buffer, Const, Extent, Gpu, Kernel, Recorder, Variant};
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
        // For tests.
        #[cfg(not(target_arch = "wasm32"))]
        Variant {
            name: "emulated",
            subgroups: false,
            matrix_units: false,
            wgsl: wgsl!(
                "shared/step",
                "shared/dot4",
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
        [ternary_consts(&rows, Product::EXAMPLE, true), MatrixTile::Small.consts()].concat()
    },
};

/// Rows of a matrix for which large tiles still fill a card with workgroups.
const MANY_ROWS: usize = 8192;

/// What a workgroup computes at a time with matrix units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixTile {
    /// 64 rows by 64 tokens: any adapter has the workgroup memory.
    Small,
    /// 128 rows by 128 tokens, which read each value half as often.
    Large,
}

impl MatrixTile {
    /// Every size.
    pub const ALL: [Self; 2] = [Self::Small, Self::Large];

    /// The better one for `w`.
    pub fn of(w: &Ternary, gpu: &Gpu) -> Self {
        let is_large = w.rows * w.matrices >= MANY_ROWS && Self::Large.fits(gpu);
        if is_large { Self::Large } else { Self::Small }
    }

    /// Whether the workgroup memory of the device holds it.
    pub fn fits(self, gpu: &Gpu) -> bool {
        // Rows of four more words, so that neighbours are in different banks.
        2 * self.side() * (16 * self.block() + 16) <= gpu.workgroup_memory
    }

    /// Rows, and tokens.
    const fn side(self) -> u32 {
        match self {
            Self::Small => 64,
            Self::Large => 128,
        }
    }

    /// Words of codes that a row has in the tile at a time.
    const fn block(self) -> u32 {
        match self {
            Self::Small => 4,
            Self::Large => 8,
        }
    }

    /// What the shader knows of it.
    pub fn consts(self) -> Vec<Const> {
        let (down, across) = match self {
            Self::Small => (2, 2),
            Self::Large => (4, 2),
        };
        vec![
            Const::U32("WORKGROUP", 32 * down * across),
            Const::U32("TILE_ROWS", self.side()),
            Const::U32("TILE_TOKENS", self.side()),
            Const::U32("BLOCK", self.block()),
            Const::U32("DOWN", down),
            Const::U32("ACROSS", across),
        ]
    }
}

impl Recorder<'_> {
    /// Like [`Recorder::gemm_i2s`], with the adapter's matrix units. The device must have them, and
    /// the tile must fit.
    pub fn gemm_i2s_matrix(
        &mut self,
        w: &Ternary,
        x: &Quantized,
        y: &Buffer<f32>,
        product: Product,
        tile: MatrixTile,
    ) {
        TernaryProduct {
            kernel: &KERNEL,
            w,
            product,
            rows_per_workgroup: tile.side() as usize,
            tokens: Extent::Tokens(tile.side()),
            consts: tile.consts(),
            buffers: &[&x.q, &x.scale, y],
        }
        .record(self);
    }
}

use super::packed::{Packed, QuantizedGroups, example_matrix, packed_consts};
use super::rows::ShardRows;
use super::weight::Product;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

/// Rows of one workgroup's tile. Each thread computes four rows of four tokens.
const TILE_ROWS: u32 = 64;
const TILE_TOKENS: u32 = 32;
const WORKGROUP: u32 = TILE_ROWS / 4 * (TILE_TOKENS / 4);

/// Words of 2-bit codes in a block. A word has 16 columns.
const BLOCK: usize = 8;
/// The words of a block if the tokens fill one tile or less. A card then waits for memory, and it
/// waits less often if it loads more at a time. With these blocks the tiles fill the 16 KiB of
/// workgroup memory that every adapter has.
const LONG_BLOCK: usize = 16;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemm_packed",
    bindings: &[
        ("step", Access::Step),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("q", Access::Read),
        ("q_scale", Access::Read),
        ("q_factor", Access::Read),
        ("y", Access::Write),
    ],
    variants: one_variant!(
        "shared/step",
        "shared/dot4",
        "shared/gated",
        "shared/packed",
        "shared/groups",
        "gemm_packed"
    ),
    example: || {
        let (rows, w) = example_matrix(2);
        consts(&rows, &w, Product::EXAMPLE, true, LONG_BLOCK)
    },
};

fn consts(
    rows: &ShardRows,
    w: &Packed,
    product: Product,
    packed_dot: bool,
    block: usize,
) -> Vec<Const> {
    let own = vec![
        Const::size("BLOCK", block),
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("TILE_ROWS", TILE_ROWS),
        Const::U32("TILE_TOKENS", TILE_TOKENS),
    ];
    [packed_consts(rows, w, product, packed_dot), own].concat()
}

impl Packed {
    /// Whether [`Recorder::gemm_packed`] takes the matrix. It takes codes of 1 or 2 bits, and rows
    /// of whole tiles.
    pub fn fits_tiles(&self) -> bool {
        self.format.is_ternary() && self.k.is_multiple_of(16 * BLOCK)
    }
}

impl Recorder<'_> {
    /// The product of `w` with every token of `x`, on tiles in workgroup memory. `y` is
    /// `[n_tokens, rows]`. [`Packed::fits_tiles`] must accept `w`. `short` says that the tokens
    /// fill one tile or less.
    pub fn gemm_packed(
        &mut self,
        w: &Packed,
        x: &QuantizedGroups,
        y: &Buffer<f32>,
        product: Product,
        short: bool,
    ) {
        debug_assert!(w.fits_tiles());
        let long = short && w.k.is_multiple_of(16 * LONG_BLOCK);
        let block = if long { LONG_BLOCK } else { BLOCK };
        let packed_dot = self.tuning().has_packed_dot();
        for shard in &w.shards {
            let rows = ShardRows { k: w.k, all: w.rows, shard: shard.rows.clone() };
            let tiles = (rows.shard.len() * w.matrices).div_ceil(TILE_ROWS as usize);
            self.dispatch(
                &KERNEL,
                &consts(&rows, w, product, packed_dot, block),
                &[&shard.codes, &shard.scales, &x.q, &x.scale, &x.factor, y],
                [Extent::Fixed(tiles as u32), Extent::Tokens(TILE_TOKENS), Extent::Fixed(1)],
            );
        }
    }
}

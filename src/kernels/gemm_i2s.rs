use super::{Product, Quantized, Ternary};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Step};
use crate::one_variant;

/// Rows and tokens of one workgroup's tile, as in the shader.
const TILE_ROWS: usize = 64;
const TILE_TOKENS: u32 = 32;

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
    variants: one_variant!("shared/step", "shared/ternary", "gemm_i2s"),
    example: &consts(true, 2560, 6912, 0, 6912, Product::Relu2Glu),
};

const fn consts(
    packed_dot: bool,
    k: usize,
    all_rows: usize,
    first_row: usize,
    rows: usize,
    product: Product,
) -> [Const; 7] {
    [
        Const::Bool("PACKED_DOT", packed_dot),
        Const::U32("K", k as u32),
        Const::U32("ALL_ROWS", all_rows as u32),
        Const::U32("FIRST_ROW", first_row as u32),
        Const::U32("N_ROWS", rows as u32),
        Const::U32("PARTS", if matches!(product, Product::Relu2Glu) { 2 } else { 1 }),
        Const::Bool("ADD", matches!(product, Product::Add)),
    ]
}

/// The product of `w` with every token of `x`, put into `y` `[n_tokens, rows]` as `product` says.
pub fn gemm_i2s(
    recorder: &mut Recorder,
    plan: &mut Plan,
    step: &Buffer<Step>,
    w: &Ternary,
    x: &Quantized,
    y: &Buffer<f32>,
    product: Product,
) {
    for shard in &w.shards {
        let tiles = (shard.rows.len() * w.parts).div_ceil(TILE_ROWS);
        recorder.dispatch(
            plan,
            &KERNEL,
            &consts(
                recorder.gpu().has_packed_dot(),
                w.k,
                w.rows,
                shard.rows.start,
                shard.rows.len(),
                product,
            ),
            &[step, &shard.buffer, &w.scale, &x.q, &x.scale, y],
            [Extent::Fixed(tiles as u32), Extent::Tokens(TILE_TOKENS), Extent::Fixed(1)],
        );
    }
}

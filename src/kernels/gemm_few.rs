use super::{FEW, Product, Quantized, Ternary};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Step};
use crate::lanes_variants;

/// Threads in a workgroup: fewer than elsewhere, because each makes four rows, and small matrices have
/// hardly as many workgroups as a card takes at once.
const WORKGROUP: u32 = 128;

/// Rows that the lanes of a row make together, gate and up counted both.
const ROWS: usize = 4;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemm_few",
    bindings: &[
        ("step", Access::Step),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("q", Access::Read),
        ("q_scale", Access::Read),
        ("y", Access::Write),
    ],
    variants: lanes_variants!("lanes"; "shared/step", "shared/ternary", "gemm_few"),
    example: &consts(true, 32, 2560, 6912, 0, 6912, Product::Relu2Glu),
};

const fn consts(
    packed_dot: bool,
    lanes: u32,
    k: usize,
    all_rows: usize,
    first_row: usize,
    rows: usize,
    product: Product,
) -> [Const; 9] {
    [
        Const::Bool("PACKED_DOT", packed_dot),
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("LANES", lanes),
        Const::U32("K", k as u32),
        Const::U32("ALL_ROWS", all_rows as u32),
        Const::U32("FIRST_ROW", first_row as u32),
        Const::U32("N_ROWS", rows as u32),
        Const::U32("PARTS", if matches!(product, Product::Relu2Glu) { 2 } else { 1 }),
        Const::Bool("ADD", matches!(product, Product::Add)),
    ]
}

/// The product of `w` with every token of `x`, [`FEW`] at a time, put into `y` `[n_tokens, rows]` as `product`
/// says.
#[allow(clippy::too_many_arguments, reason = "one for each binding")]
pub fn gemm_few(
    recorder: &mut Recorder,
    plan: &mut Plan,
    step: &Buffer<Step>,
    w: &Ternary,
    x: &Quantized,
    y: &Buffer<f32>,
    product: Product,
) {
    // Each stores one token.
    let lanes = recorder.gpu().lanes_per_row().max(FEW as u32);
    let rows_at_once = ROWS / w.parts * (WORKGROUP / lanes) as usize;
    for shard in &w.shards {
        recorder.dispatch(
            plan,
            &KERNEL,
            &consts(
                recorder.gpu().has_packed_dot(),
                lanes,
                w.k,
                w.rows,
                shard.rows.start,
                shard.rows.len(),
                product,
            ),
            &[step, &shard.buffer, &w.scale, &x.q, &x.scale, y],
            [
                Extent::Fixed(shard.rows.len().div_ceil(rows_at_once) as u32),
                Extent::Tokens(FEW as u32),
                Extent::Fixed(1),
            ],
        );
    }
}

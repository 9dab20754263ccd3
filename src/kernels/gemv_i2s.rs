use super::{Product, Quantized, Ternary, WORKGROUP};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder, Step};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemv_i2s",
    bindings: &[
        ("step", Access::Step),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("q", Access::Read),
        ("q_scale", Access::Read),
        ("y", Access::Write),
    ],
    variants: lanes_variants!("lanes"; "shared/step", "shared/ternary", "gemv_i2s"),
    example: &consts(true, 32, 4, 2560, 6912, 0, 6912, Product::Relu2Glu),
};

#[allow(clippy::too_many_arguments, reason = "one for each constant")]
const fn consts(
    packed_dot: bool,
    lanes: u32,
    batch: u32,
    k: usize,
    all_rows: usize,
    first_row: usize,
    rows: usize,
    product: Product,
) -> [Const; 10] {
    [
        Const::Bool("PACKED_DOT", packed_dot),
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("LANES", lanes),
        Const::U32("BATCH", batch),
        Const::U32("K", k as u32),
        Const::U32("ALL_ROWS", all_rows as u32),
        Const::U32("FIRST_ROW", first_row as u32),
        Const::U32("N_ROWS", rows as u32),
        Const::U32("PARTS", if matches!(product, Product::Relu2Glu) { 2 } else { 1 }),
        Const::Bool("ADD", matches!(product, Product::Add)),
    ]
}

/// The product of `w` with every token of `x`, `batch` (1 or 4) at a time, put into `y`
/// `[n_tokens, rows]` as `product` says.
#[allow(clippy::too_many_arguments, reason = "one for each binding")]
pub fn gemv_i2s(
    recorder: &mut Recorder,
    plan: &mut Plan,
    step: &Buffer<Step>,
    batch: u32,
    w: &Ternary,
    x: &Quantized,
    y: &Buffer<f32>,
    product: Product,
) {
    let lanes = recorder.gpu().lanes_per_row();
    for shard in &w.shards {
        let rows_at_once = (WORKGROUP / lanes) as usize / w.parts;
        recorder.dispatch(
            plan,
            &KERNEL,
            &consts(
                recorder.gpu().has_packed_dot(),
                lanes,
                batch,
                w.k,
                w.rows,
                shard.rows.start,
                shard.rows.len(),
                product,
            ),
            &[step, &shard.buffer, &w.scale, &x.q, &x.scale, y],
            [
                Extent::Fixed(shard.rows.len().div_ceil(rows_at_once) as u32),
                Extent::Tokens(batch),
                Extent::Fixed(1),
            ],
        );
    }
}

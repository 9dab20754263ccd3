use super::{Product, RowGroups, Ternary};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "norm_gemv",
    bindings: &[
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("x", Access::Read),
        ("norm_weight", Access::Read),
        ("y", Access::Write),
    ],
    variants: lanes_variants!(
        "shared/ternary",
        "shared/quantize",
        "shared/normed_rows",
        "norm_gemv"
    ),
    example: &consts(
        RowGroups { workgroup: 256, lanes: 16, each: 2 },
        2560,
        6912,
        0,
        6912,
        Product::Relu2Glu,
        1e-5,
    ),
};

const fn consts(
    groups: RowGroups,
    k: usize,
    all_rows: usize,
    first_row: usize,
    rows: usize,
    product: Product,
    eps: f32,
) -> [Const; 11] {
    [
        Const::U32("WORKGROUP", groups.workgroup),
        Const::U32("LANES", groups.lanes),
        Const::U32("EACH", groups.each),
        Const::U32("K", k as u32),
        Const::U32("ALL_ROWS", all_rows as u32),
        Const::U32("FIRST_ROW", first_row as u32),
        Const::U32("N_ROWS", rows as u32),
        Const::U32("PARTS", if matches!(product, Product::Relu2Glu) { 2 } else { 1 }),
        Const::Bool("ADD", matches!(product, Product::Add)),
        Const::Bool("PREFETCH", true),
        Const::F32("EPS", eps),
    ]
}

/// The product of `w` with the norm of one token's `x` `[k]`, quantised, put into `y` `[rows]` as
/// `product` says.
#[allow(clippy::too_many_arguments, reason = "one for each binding")]
pub fn norm_gemv(
    recorder: &mut Recorder,
    plan: &mut Plan,
    w: &Ternary,
    x: &Buffer<f32>,
    norm_weight: &Buffer<f32>,
    y: &Buffer<f32>,
    product: Product,
    eps: f32,
) {
    let groups = match product {
        Product::Relu2Glu => RowGroups::tuned("GU", 256, 16, 2),
        _ => RowGroups::tuned("DOWN", 256, 16, 1),
    };
    for shard in &w.shards {
        let rows = shard.rows.len() * w.parts;
        recorder.dispatch(
            plan,
            &KERNEL,
            &groups.consts(consts(
                groups,
                w.k,
                w.rows,
                shard.rows.start,
                shard.rows.len(),
                product,
                eps,
            )),
            &[&shard.buffer, &w.scale, x, norm_weight, y],
            [Extent::Fixed(groups.workgroups(rows)), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}

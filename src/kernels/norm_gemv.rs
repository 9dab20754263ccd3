use super::{Product, RowGroups, Ternary, WORKGROUP};
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
    variants: lanes_variants!("lanes", "group";
        "shared/ternary",
        "shared/quantize",
        "shared/normed_input",
        "shared/normed_rows",
        "norm_gemv"
    ),
    example: &consts(true, 2560, 6912, 0, 6912, Product::Relu2Glu, 1e-5),
};

const fn consts(
    packed_dot: bool,
    k: usize,
    all_rows: usize,
    first_row: usize,
    rows: usize,
    product: Product,
    eps: f32,
) -> [Const; 11] {
    let groups = row_groups(product);
    [
        Const::Bool("PACKED_DOT", packed_dot),
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("LANES", groups.lanes),
        Const::U32("EACH", groups.each),
        Const::U32("K", k as u32),
        Const::U32("ALL_ROWS", all_rows as u32),
        Const::U32("FIRST_ROW", first_row as u32),
        Const::U32("N_ROWS", rows as u32),
        Const::U32("PARTS", if matches!(product, Product::Relu2Glu) { 2 } else { 1 }),
        Const::Bool("ADD", matches!(product, Product::Add)),
        Const::F32("EPS", eps),
    ]
}

const fn row_groups(product: Product) -> RowGroups {
    match product {
        Product::Relu2Glu => RowGroups { lanes: 8, each: 2 },
        Product::Store | Product::Add => RowGroups { lanes: 16, each: 2 },
    }
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
    let groups = row_groups(product);
    for shard in &w.shards {
        let rows = shard.rows.len() * w.parts;
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
                eps,
            ),
            &[&shard.buffer, &w.scale, x, norm_weight, y],
            [Extent::Fixed(groups.workgroups(rows)), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}

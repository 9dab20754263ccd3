use super::attention::{AttentionShape, KvCache};
use super::step_rows::StepRows;
use super::weight::Norm;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

/// Threads for a head. Each takes two pairs of a head of 256.
pub(super) const WORKGROUP: u32 = 64;

pub(super) const KERNEL: Kernel = Kernel {
    name: "norm_rope_kv",
    bindings: &[
        ("step", Access::Step),
        ("qkv", Access::Read),
        ("head_norms", Access::Read),
        ("rope_table", Access::Read),
        ("q", Access::Write),
        ("k_cache", Access::Write),
        ("v_cache", Access::Write),
    ],
    variants: one_variant!(
        "shared/step",
        "shared/rows",
        "shared/rope_kv",
        "shared/kv_row",
        "shared/quantize_group",
        "shared/store_head",
        // Not the version with subgroups: these may have fewer than eight lanes.
        "shared/eights_workgroup",
        "shared/rotated_head",
        "norm_rope_kv"
    ),
    example: || consts(&AttentionShape::EXAMPLE, 1e-6, StepRows::Tokens),
};

fn consts(shape: &AttentionShape, eps: f32, rows: StepRows) -> Vec<Const> {
    let own = vec![Const::U32("WORKGROUP", WORKGROUP), Const::F32("EPS", eps)];
    [shape.consts(), rows.consts().into(), own].concat()
}

impl Recorder<'_> {
    /// Like [`Recorder::rope_kv`], but norms each head of q and k before it rotates it. `norms`
    /// `[2, head_dim]` are the weights for q and for k.
    pub fn norm_rope_kv(
        &mut self,
        qkv: &Buffer<f32>,
        norms: &Norm,
        rope_table: &Buffer<[f32; 2]>,
        q: &Buffer<f32>,
        cache: &KvCache,
        rows: bool,
    ) {
        let KvCache { shape, keys, values } = cache;
        let heads = (shape.n_head + 2 * shape.n_head_kv) as u32;
        let workgroups = [Extent::Fixed(heads), Extent::Tokens(1), Extent::Fixed(1)];
        self.dispatch(
            &KERNEL,
            &consts(shape, norms.eps, StepRows::of_tokens(rows)),
            &[qkv, &norms.weight, rope_table, q, keys, values],
            workgroups,
        );
        if !rows {
            self.of_spans(&KERNEL, consts(shape, norms.eps, StepRows::Spans), workgroups);
        }
    }
}

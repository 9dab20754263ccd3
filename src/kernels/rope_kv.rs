use super::attention::{AttentionShape, KvCache};
use super::norm_rope_kv::WORKGROUP;
use super::step_rows::StepRows;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "rope_kv",
    bindings: &[
        ("step", Access::Step),
        ("qkv", Access::Read),
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
        "rope_kv"
    ),
    example: || consts(&AttentionShape::EXAMPLE, StepRows::Tokens),
};

fn consts(shape: &AttentionShape, rows: StepRows) -> Vec<Const> {
    let own = vec![Const::U32("WORKGROUP", WORKGROUP)];
    [shape.consts(), rows.consts().into(), own].concat()
}

impl Recorder<'_> {
    /// Rotates q and k of `qkv` `[n_tokens, n_q + 2 n_kv]` by position (RoPE with NeoX pairs).
    /// `rope_table` `[n_ctx, head_dim / 2]` holds cos and sin. q is divided by `sqrt(head_dim)` and
    /// goes to `q`. k and v go to `cache`. `rows` says whether the step has rows.
    pub fn rope_kv(
        &mut self,
        qkv: &Buffer<f32>,
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
            &consts(shape, StepRows::of_tokens(rows)),
            &[qkv, rope_table, q, keys, values],
            workgroups,
        );
        if !rows {
            self.of_spans(&KERNEL, consts(shape, StepRows::Spans), workgroups);
        }
    }
}

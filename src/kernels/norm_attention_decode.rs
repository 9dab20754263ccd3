use super::attention::{AttentionShape, KvCache, Partials};
use super::attention_decode::{SHORT_WORK, Work, consts, is_short, work, workgroups};
use super::weight::Norm;
use crate::compute::KvType;
use crate::gpu::{Access, Bound, Buffer, Const, Gpu, Kernel, Recorder, Subgroups, Used, Variant};
use crate::wgsl;

pub(super) const KERNEL: Kernel = Kernel {
    name: "norm_attention_decode",
    bindings: &[
        ("step", Access::Step),
        ("qkv", Access::Read),
        ("head_norms", Access::Read),
        ("rope_table", Access::Read),
        ("k_cache", Access::Write),
        ("v_cache", Access::Write),
        ("partial_sums", Access::Write),
        ("partial_max_total", Access::Write),
    ],
    // Without subgroups it would need more workgroup memory than the 16 KiB that every adapter has.
    variants: &[Variant {
        name: "subgroup",
        subgroups: true,
        matrix_units: false,
        wgsl: wgsl!(
            "shared/lanes_subgroup",
            "shared/group_subgroup",
            "shared/eights_subgroup",
            "shared/step",
            "shared/kv_row",
            "shared/kv_values",
            "shared/cached_value",
            "shared/quantize_group",
            "shared/attention_of_few",
            "norm_attention_decode"
        ),
    }],
    example: || normed_consts(&AttentionShape::EXAMPLE, work(&AttentionShape::EXAMPLE), 1e-6),
};

fn normed_consts(shape: &AttentionShape, work: Work, eps: f32) -> Vec<Const> {
    [consts(shape, work), vec![Const::F32("EPS", eps)]].concat()
}

impl AttentionShape {
    /// Whether [`Recorder::norm_attention_decode`] takes heads of this shape on `gpu`. It does not
    /// take int8, because a scale needs all values of a head. Eight lanes sum squares together.
    pub fn norms_in_attention(&self, gpu: &Gpu) -> bool {
        let lanes = gpu.subgroups.map_or(0, |Subgroups(lanes)| lanes);
        lanes >= 8 && [64, 128].contains(&self.head_dim) && self.kv != KvType::Int8
    }
}

impl Recorder<'_> {
    /// Does the work of [`Recorder::norm_rope_kv`] and [`Recorder::attention_decode`] for a single
    /// token, whose `qkv` is `[n_q + 2 n_kv]`. [`AttentionShape::norms_in_attention`] must accept
    /// the heads.
    pub fn norm_attention_decode(
        &mut self,
        qkv: &Buffer<f32>,
        norms: &Norm,
        rope_table: &Buffer<[f32; 2]>,
        cache: &KvCache,
        out: &Partials,
    ) {
        let shape = &cache.shape;
        let filled = Used::Filled(shape.cache_bytes(1) as u64);
        let [keys, values] =
            [&cache.keys, &cache.values].map(|buffer| buffer.clone().using(filled));
        let buffers: [&dyn Bound; 7] =
            [qkv, &norms.weight, rope_table, &keys, &values, &out.sums, &out.max_total];
        let as_consts = |work| normed_consts(shape, work, norms.eps);
        let work = work(shape);
        self.dispatch(&KERNEL, &as_consts(work), &buffers, workgroups(shape, work));
        let short = workgroups(shape, SHORT_WORK);
        self.instead(is_short, &KERNEL, &as_consts(SHORT_WORK), short);
    }
}

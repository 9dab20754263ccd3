use super::gemv_lm_head::row_groups;
use super::rows::{LmHeadRows, ShardRows, dense_consts};
use super::weight::{Dense, DenseType};
use crate::gpu::{Access, Buffer, Kernel, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemv_lm_head_split",
    bindings: &[
        ("embd", Access::Read),
        ("shifts", Access::Read),
        ("x", Access::Read),
        ("logits", Access::Write),
    ],
    variants: lanes_variants!(
        "lanes"; "shared/split_f16",
        "shared/f16_products",
        "gemv_lm_head_split",
        "shared/split_row",
        "shared/gemv_rows"
    ),
    example: || {
        let rows = ShardRows { k: 2560, all: 128_256, shard: 0..1000 };
        [dense_consts(&rows, DenseType::F16Split, 0), row_groups(32).consts()].concat()
    },
};

impl Recorder<'_> {
    /// `logits = embd x` from an embedding that `split_f16` has split into bytes. It gives the bits
    /// that [`Recorder::gemv_lm_head`] gives from the f16.
    pub fn gemv_lm_head_split(&mut self, embd: &Dense, x: &Buffer<f32>, logits: &Buffer<f32>) {
        debug_assert_eq!(embd.ty, DenseType::F16Split);
        let groups = row_groups(self.tuning().lanes);
        LmHeadRows {
            kernel: &KERNEL,
            embd,
            together: 1,
            rows_per_workgroup: groups.rows(),
            consts: groups.consts(),
            buffers: &[&embd.shifts, x, logits],
        }
        .record(self);
    }
}

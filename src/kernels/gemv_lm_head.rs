use super::rows::{LmHeadRows, RowGroups, ShardRows, dense_consts};
use super::weight::{Dense, DenseType};
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Kernel, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemv_lm_head",
    bindings: &[("embd", Access::Read), ("x", Access::Read), ("logits", Access::Write)],
    variants: lanes_variants!("lanes"; "shared/f16_products", "gemv_lm_head", "shared/gemv_rows"),
    example: || {
        let rows = ShardRows { k: 2560, all: 128_256, shard: 0..1000 };
        [dense_consts(&rows, DenseType::F16, 0), row_groups(32).consts()].concat()
    },
};

pub(super) fn row_groups(lanes: u32) -> RowGroups {
    RowGroups { workgroup: WORKGROUP, lanes, each: 1 }
}

impl Recorder<'_> {
    /// `logits = embd x`, the LM head on an embedding of f16 or f32.
    pub fn gemv_lm_head(&mut self, embd: &Dense, x: &Buffer<f32>, logits: &Buffer<f32>) {
        debug_assert_ne!(embd.ty, DenseType::F16Split, "gemv_lm_head_split takes that");
        let groups = row_groups(self.tuning().lanes);
        LmHeadRows {
            kernel: &KERNEL,
            embd,
            together: 1,
            rows_per_workgroup: groups.rows(),
            consts: groups.consts(),
            buffers: &[x, logits],
        }
        .record(self);
    }
}

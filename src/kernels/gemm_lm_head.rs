use super::rows::{LmHeadRows, RowGroups, ShardRows, dense_consts};
use super::weight::{Dense, DenseType};
use super::workgroups::{FEW, WORKGROUP};
use crate::gpu::{Access, Buffer, Const, Kernel, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemm_lm_head",
    bindings: &[
        ("embd", Access::Read),
        ("shifts", Access::Read),
        ("x", Access::Read),
        ("logits", Access::Write),
    ],
    variants: lanes_variants!("lanes"; "shared/split_f16", "shared/f16_products", "gemm_lm_head"),
    example: || {
        let rows = ShardRows { k: 2560, all: 128_256, shard: 0..1000 };
        let groups = RowGroups { workgroup: WORKGROUP, lanes: 32, each: 4 };
        [dense_consts(&rows, DenseType::F16Split, 0), consts(groups)].concat()
    },
};

fn consts(groups: RowGroups) -> Vec<Const> {
    [groups.consts(), vec![Const::size("FEW", FEW)]].concat()
}

impl Recorder<'_> {
    /// `logits = embd x` for up to [`FEW`] tokens, `x` `[FEW, k]` and `logits` `[FEW, rows]`. For
    /// each token it gives the bits that [`Recorder::gemv_lm_head`] gives.
    pub fn gemm_lm_head(&mut self, embd: &Dense, x: &Buffer<f32>, logits: &Buffer<f32>) {
        let tuning = self.tuning();
        let groups =
            RowGroups { workgroup: WORKGROUP, lanes: tuning.lanes, each: tuning.lm_head_rows };
        LmHeadRows {
            kernel: &KERNEL,
            embd,
            together: 1,
            rows_per_workgroup: groups.rows(),
            consts: consts(groups),
            buffers: &[&embd.shifts, x, logits],
        }
        .record(self);
    }
}

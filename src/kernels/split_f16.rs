use super::rows::{LmHeadRows, RowGroups, ShardRows, dense_consts};
use super::weight::{Dense, DenseType};
use crate::compute::{MAX_SPLIT_COLUMNS, SLACK};
use crate::gpu::{Access, Buffer, Const, Kernel, Recorder};
use crate::lanes_variants;

/// Fewer lanes than other kernels have, because their sums take workgroup memory too.
const WORKGROUP: u32 = 128;

/// A workgroup splits one row, which it holds in workgroup memory.
const ROW_GROUPS: RowGroups = RowGroups { workgroup: WORKGROUP, lanes: WORKGROUP, each: 1 };

pub(super) const KERNEL: Kernel = Kernel {
    name: "split_f16",
    bindings: &[("embd", Access::Write), ("shifts", Access::Write), ("error", Access::Write)],
    variants: lanes_variants!("lanes"; "shared/split_f16", "split_f16"),
    example: || {
        let rows = ShardRows { k: MAX_SPLIT_COLUMNS, all: 128_256, shard: 64..164 };
        [dense_consts(&rows, DenseType::F16, 0), consts()].concat()
    },
};

fn consts() -> Vec<Const> {
    [ROW_GROUPS.consts(), vec![Const::F32("SLACK", SLACK)]].concat()
}

impl Recorder<'_> {
    /// Splits the f16 of `embd` into bytes in place. Its rows have at most [`MAX_SPLIT_COLUMNS`]
    /// values. `error[row] * |x|` bounds the error of `gemv_upper` with the result.
    ///
    /// Run the plan once, after the values have come. Plans that are recorded from now on take
    /// `embd` as [`DenseType::F16Split`].
    pub fn split_f16(&mut self, embd: &mut Dense, error: &Buffer<f32>) {
        debug_assert_eq!(embd.ty, DenseType::F16);
        debug_assert!(embd.k <= MAX_SPLIT_COLUMNS);
        LmHeadRows {
            kernel: &KERNEL,
            embd,
            together: 1,
            rows_per_workgroup: ROW_GROUPS.rows(),
            consts: consts(),
            buffers: &[&embd.shifts, error],
        }
        .record(self);
        embd.ty = DenseType::F16Split;
    }
}

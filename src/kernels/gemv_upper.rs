use super::rows::{LmHeadRows, RowGroups, ShardRows, dense_consts, shard_consts, workgroups};
use super::selection::SamplingParams;
use super::weight::{Dense, DenseType};
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Gpu, Kernel, Recorder, Used};
use crate::lanes_variants;

/// Rows of one workgroup, at least.
const MIN_ROWS: usize = 128;

/// Shards of one dispatch: as many as there are bindings for.
const TOGETHER: usize = 3;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemv_upper",
    bindings: &[
        ("embd", Access::Read),
        ("sampling", Access::Uniform),
        ("step", Access::Step),
        ("shifts", Access::Read),
        ("x", Access::Read),
        ("error", Access::Read),
        ("approx", Access::Write),
        ("leads", Access::Write),
        ("embd_1", Access::Read),
        ("embd_2", Access::Read),
    ],
    variants: lanes_variants!("lanes";
        "shared/step",
        "shared/sampling",
        "shared/noise",
        "shared/split_f16",
        "shared/best",
        "shared/shards",
        "gemv_upper"
    ),
    example: || {
        let rows = ShardRows { k: 2560, all: 128_256, shard: 0..1000 };
        let shards = shard_consts(&[0..600, 600..1000]);
        [dense_consts(&rows, DenseType::F16Split, 0), shards, consts(32, true)].concat()
    },
};

/// The rows that a workgroup computes at a time.
fn row_groups(lanes: u32) -> RowGroups {
    RowGroups { workgroup: WORKGROUP, lanes, each: 4 }
}

/// Row groups of a workgroup, computed one after the other.
fn repeats(lanes: u32) -> usize {
    MIN_ROWS.div_ceil(row_groups(lanes).rows())
}

fn rows_per_workgroup(lanes: u32) -> usize {
    repeats(lanes) * row_groups(lanes).rows()
}

fn consts(lanes: u32, ranked: bool) -> Vec<Const> {
    let own = vec![Const::size("REPEATS", repeats(lanes)), Const::Bool("RANKED", ranked)];
    [row_groups(lanes).consts(), own].concat()
}

/// The workgroups that compute the approximate logits of `embd`. Each gives a lead.
pub fn leads(gpu: &Gpu, embd: &Dense) -> usize {
    workgroups(&embd.shards, rows_per_workgroup(gpu.tuning.lanes))
}

/// What the search for the best token among approximate logits shares between its kernels.
pub struct Approximation {
    /// `[rows]`: by how much the upper bytes alone put a row's logit off, relative to the norm of
    /// the hidden state. `split_f16` computes it.
    pub error: Buffer<f32>,
    /// `[rows]`: the approximate logits or ranks. If adjusted,
    /// `[rows, ADJUSTED_WORDS]`: ranks, with what changes a logit.
    pub approx: Buffer<f32>,
    /// `[leads()]`: the greatest approximate value of each workgroup, and its row's error.
    pub leads: Buffer<[f32; 2]>,
    /// Whether `penalize_upper` has written the ranks and the leads: with biases and penalties.
    pub adjusted: bool,
}

impl Recorder<'_> {
    /// `out.approx` = `embd x`, or their ranks if `ranked`, as far as the upper bytes of `embd` say,
    /// and `out.leads`, by `out.error`. A token's rank is its logit, or when drawing the logit divided
    /// by the temperature, with Gumbel noise.
    pub fn gemv_upper(
        &mut self,
        sampling: &Buffer<SamplingParams>,
        embd: &Dense,
        x: &Buffer<f32>,
        out: &Approximation,
        ranked: bool,
    ) {
        debug_assert_eq!(embd.ty, DenseType::F16Split);
        let lanes = self.tuning().lanes;
        LmHeadRows {
            kernel: &KERNEL,
            embd,
            together: TOGETHER,
            rows_per_workgroup: rows_per_workgroup(lanes),
            consts: consts(lanes, ranked),
            buffers: &[sampling, &embd.shifts, x, &out.error, &out.approx, &out.leads],
        }
        .record_using(self, |shard| Used::Fixed(shard.buffer.bytes() / 2));
    }
}

use super::rows::{LmHeadRows, RowGroups, ShardRows, dense_consts, shard_consts, workgroups};
use super::selection::SamplingParams;
use super::weight::{Dense, DenseType};
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Gpu, Kernel, Recorder, Used};
use crate::lanes_variants;

/// The fewest rows of one workgroup.
const MIN_ROWS: usize = 128;

/// The most shards of one dispatch. It has bindings for so many.
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

/// Groups of rows that a workgroup computes one after the other.
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

/// The number of workgroups that compute the approximate logits of `embd`. Each gives a lead.
pub fn leads(gpu: &Gpu, embd: &Dense) -> usize {
    workgroups(&embd.shards, rows_per_workgroup(gpu.tuning.lanes))
}

/// The buffers that the kernels of the search among approximate logits share.
pub struct Approximation {
    /// `[rows]`: how far the upper bytes alone may put a row's logit off, as a multiple of the norm
    /// of the hidden state. `split_f16` computes it.
    pub error: Buffer<f32>,
    /// `[rows]`: the approximate logits or ranks. If adjusted, `[rows, ADJUSTED_WORDS]`: ranks,
    /// with the values that change a logit.
    pub approx: Buffer<f32>,
    /// `[leads()]`: the greatest approximate value of each workgroup, and the error of its row.
    pub leads: Buffer<[f32; 2]>,
    /// Whether ranks and leads include biases and penalties. `penalize_upper` has written them in
    /// this case.
    pub adjusted: bool,
}

impl Recorder<'_> {
    /// `out.approx` = `embd x` from the upper bytes of `embd` alone, or the ranks of these if
    /// `ranked`. Also finds `out.leads`, with the errors of `out.error`. A token's rank is its
    /// logit. In a draw it is the logit divided by the temperature, plus Gumbel noise.
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

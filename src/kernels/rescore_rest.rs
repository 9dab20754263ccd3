use super::rescore::{TOGETHER, VOCAB_BLOCK, row_groups};
use super::rescore_kept::Rescored;
use super::rows::{LmHeadRows, ShardRows, dense_consts, shard_consts};
use super::selection::bin_consts;
use super::selection::{SamplingParams, Selection};
use super::weight::{Dense, DenseType};
use crate::gpu::{Access, Buffer, Const, Kernel, Recorder, Used};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "rescore_rest",
    bindings: &[
        ("embd", Access::Read),
        ("sampling", Access::Uniform),
        ("shifts", Access::Read),
        ("x", Access::Read),
        ("rest", Access::Read),
        ("greatest", Access::Read),
        ("logits", Access::Write),
        ("bins", Access::Write),
        ("embd_1", Access::Read),
    ],
    variants: lanes_variants!("lanes";
        "shared/sampling",
        "shared/keys",
        "shared/selection",
        "shared/greatest",
        "shared/missing",
        "shared/split_f16",
        "shared/f16_products",
        "shared/split_row",
        "shared/shards",
        "shared/candidates",
        "rescore_rest"
    ),
    example: || {
        let rows = ShardRows { k: 2560, all: 128_256, shard: 0..1000 };
        let shards = shard_consts(&[0..600, 600..1000]);
        [dense_consts(&rows, DenseType::F16Split, 0), shards, consts(32, 128_256, 501)].concat()
    },
};

fn consts(lanes: u32, n_vocab: usize, n_greatest: usize) -> Vec<Const> {
    let own = [Const::size("VOCAB_BLOCK", VOCAB_BLOCK), Const::size("N_GREATEST", n_greatest)];
    [row_groups(lanes).consts(), bin_consts(n_vocab), own.into()].concat()
}

impl Recorder<'_> {
    /// If [`Recorder::sample_check`] has found that they are needed, computes the `logits` `[rows]`
    /// that [`Recorder::rescore_kept`] has left out, and adds them to the bins of `selection`.
    pub fn rescore_rest(
        &mut self,
        sampling: &Buffer<SamplingParams>,
        embd: &Dense,
        x: &Buffer<f32>,
        logits: &Buffer<f32>,
        selection: &Selection,
        rescored: &Rescored,
    ) {
        debug_assert_eq!(embd.ty, DenseType::F16Split);
        let Rescored { greatest, rest, .. } = rescored;
        LmHeadRows {
            kernel: &KERNEL,
            embd,
            together: TOGETHER,
            rows_per_workgroup: VOCAB_BLOCK,
            consts: consts(self.tuning().lanes, embd.rows, greatest.len()),
            buffers: &[sampling, &embd.shifts, x, rest, greatest, logits, &selection.bins],
        }
        // In most steps it reads nothing.
        .record_using(self, |_| Used::Fixed(0));
    }
}

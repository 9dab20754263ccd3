use super::selection;
use super::selection::{SamplingParams, Selection};
use super::workgroups::vocab_blocks;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "sample_sift",
    bindings: &[
        ("sampling", Access::Uniform),
        ("step", Access::Step),
        ("logits", Access::Read),
        ("greatest", Access::Read),
        ("bins", Access::Read),
        ("best", Access::Write),
        ("n_undecided", Access::Write),
        ("undecided", Access::Write),
        ("border", Access::Write),
    ],
    variants: one_variant!(
        "shared/step",
        "shared/sampling",
        "shared/noise",
        "shared/keys",
        "shared/selection",
        "shared/perturbed",
        "shared/greatest",
        "shared/border",
        "shared/bin_sums",
        "shared/best",
        "sample_sift"
    ),
    example: || consts(128_256, vocab_blocks(128_256)),
};

fn consts(n_vocab: usize, n_greatest: usize) -> Vec<Const> {
    [selection::consts(n_vocab), vec![Const::size("N_GREATEST", n_greatest)]].concat()
}

impl Recorder<'_> {
    /// `best` `[vocab_blocks]` = the best token of each block of `logits` `[n_vocab]`, among the
    /// tokens that top-k, top-p and min-p certainly accept. Lists the tokens that they may accept,
    /// for `sample_decide`. `sample_bins` must have run, with the same `greatest`.
    pub fn sample_sift(
        &mut self,
        sampling: &Buffer<SamplingParams>,
        logits: &Buffer<f32>,
        greatest: &Buffer<u32>,
        selection: &Selection,
        best: &Buffer<[u32; 2]>,
    ) {
        let Selection { bins, n_undecided, undecided, border, .. } = selection;
        self.dispatch(
            &KERNEL,
            &consts(logits.len(), greatest.len()),
            &[sampling, logits, greatest, bins, best, n_undecided, undecided, border],
            [Extent::Fixed(vocab_blocks(logits.len()) as u32), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}

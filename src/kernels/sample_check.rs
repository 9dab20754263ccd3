use super::rescore_kept::Rescored;
use super::selection;
use super::selection::{SamplingParams, Selection};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "sample_check",
    bindings: &[
        ("sampling", Access::Uniform),
        ("greatest", Access::Read),
        ("bins", Access::Read),
        ("rest", Access::Write),
    ],
    variants: one_variant!(
        "shared/sampling",
        "shared/keys",
        "shared/selection",
        "shared/greatest",
        "shared/bin_sums",
        "shared/sum",
        "sample_check"
    ),
    example: || consts(128_256, 501),
};

fn consts(n_vocab: usize, n_greatest: usize) -> Vec<Const> {
    [selection::consts(n_vocab), vec![Const::size("N_GREATEST", n_greatest)]].concat()
}

impl Recorder<'_> {
    /// Finds out whether top-p alone needs the logits that [`Recorder::rescore_kept`] has left out.
    /// `sample_bins` has sorted the others.
    pub fn sample_check(
        &mut self,
        sampling: &Buffer<SamplingParams>,
        selection: &Selection,
        rescored: &Rescored,
    ) {
        let Selection { bins, undecided, .. } = selection;
        let Rescored { greatest, blocks, rest } = rescored;
        self.dispatch(
            &KERNEL,
            &consts(undecided.len(), greatest.len()),
            &[sampling, blocks, bins, rest],
            [Extent::Fixed(1); 3],
        );
    }
}

use super::selection;
use super::selection::{SamplingParams, Selection};
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

pub(super) const KERNEL: Kernel = Kernel {
    name: "sample_decide",
    bindings: &[
        ("sampling", Access::Uniform),
        ("step", Access::Step),
        ("border", Access::Read),
        ("n_undecided", Access::Write),
        ("undecided", Access::Read),
        ("best", Access::Read),
        ("tokens", Access::Write),
        ("sampled", Access::Write),
        ("cut", Access::Write),
        ("bins", Access::Write),
    ],
    variants: one_variant!(
        "shared/step",
        "shared/sampling",
        "shared/noise",
        "shared/keys",
        "shared/selection",
        "shared/perturbed",
        "shared/border",
        "shared/best",
        "shared/commit",
        "sample_decide"
    ),
    example: || consts(128_256, 4),
};

fn consts(n_vocab: usize, n_sampled: usize) -> Vec<Const> {
    [selection::consts(n_vocab), vec![Const::size("N_SAMPLED", n_sampled)]].concat()
}

impl Recorder<'_> {
    /// `tokens[0]` = the best of all tokens that top-k, top-p and min-p accept. They are those of
    /// `best`, and some of those that `sample_sift` has listed. It is
    /// [`NO_TOKEN`](crate::compute::NO_TOKEN) if no logit is a number. It is appended to `sampled`,
    /// which loses its first token. Empties `selection` for the next token.
    pub fn sample_decide(
        &mut self,
        sampling: &Buffer<SamplingParams>,
        selection: &Selection,
        best: &Buffer<[u32; 2]>,
        tokens: &Buffer<u32>,
        sampled: &Buffer<u32>,
    ) {
        let Selection { bins, border, n_undecided, undecided, cut, .. } = selection;
        self.dispatch(
            &KERNEL,
            &consts(undecided.len(), sampled.len()),
            &[sampling, border, n_undecided, undecided, best, tokens, sampled, cut, bins],
            [Extent::Fixed(1); 3],
        );
    }
}

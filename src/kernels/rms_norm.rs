use super::weight::Norm;
use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder, Used};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "rms_norm",
    bindings: &[
        ("step", Access::Step),
        ("x", Access::Read),
        ("weight", Access::Read),
        ("y", Access::Write),
    ],
    variants: lanes_variants!("group"; "shared/step", "rms_norm"),
    example: || consts(2560, 1e-5, false),
};

fn consts(n: usize, eps: f32, all_tokens: bool) -> Vec<Const> {
    vec![
        Const::U32("WORKGROUP", WORKGROUP),
        Const::size("N", n),
        Const::F32("EPS", eps),
        Const::Bool("ALL_TOKENS", all_tokens),
    ]
}

impl Recorder<'_> {
    /// `y` `[n]` = the norm of the last token of `x` `[n_tokens, n]`.
    pub fn rms_norm(&mut self, x: &Buffer<f32>, norm: &Norm, y: &Buffer<f32>) {
        let last = x.clone().using(Used::Fixed(norm.weight.bytes()));
        self.rms_norms(&last, norm, y, false);
    }

    /// `y` `[n_tokens, n]` = the norm of every token of `x` `[n_tokens, n]`.
    pub fn rms_norm_of_all(&mut self, x: &Buffer<f32>, norm: &Norm, y: &Buffer<f32>) {
        self.rms_norms(x, norm, y, true);
    }

    fn rms_norms(&mut self, x: &Buffer<f32>, norm: &Norm, y: &Buffer<f32>, all_tokens: bool) {
        let tokens = if all_tokens { Extent::Tokens(1) } else { Extent::Fixed(1) };
        self.dispatch(
            &KERNEL,
            &consts(norm.weight.len(), norm.eps, all_tokens),
            &[x, &norm.weight, y],
            [tokens, Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}

use super::packed::Stream;
use super::weight::Norm;
use super::workgroups::{WORKGROUP, in_a_row};
use crate::gpu::{Access, Buffer, Const, Kernel, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "stream_of_last",
    bindings: &[
        ("step", Access::Step),
        ("x", Access::Read),
        ("norm_weight", Access::Read),
        ("stream", Access::Write),
    ],
    variants: lanes_variants!("eights";
        "shared/step",
        "shared/groups",
        "shared/quantize_group",
        "shared/quantize_eights",
        "shared/put_in_stream",
        "stream_of_last"
    ),
    example: || consts(2048),
};

fn consts(k: usize) -> Vec<Const> {
    vec![Const::U32("WORKGROUP", WORKGROUP), Const::size("K", k)]
}

impl Recorder<'_> {
    /// `stream` = the last token of `x` `[n_tokens, k]`, as the input of `norm`, which comes next.
    /// [`Recorder::stream_packed`] writes the same for the stream that it adds to. `k` is a
    /// multiple of
    /// 32. The device must have at least [`MIN_LANES`](super::packed::MIN_LANES) lanes for a row.
    pub fn stream_of_last(&mut self, x: &Buffer<f32>, norm: &Norm, stream: &Stream) {
        let k = norm.weight.len();
        self.dispatch(
            &KERNEL,
            &consts(k),
            &[x, &norm.weight, &stream.words],
            in_a_row((k / 4).div_ceil(WORKGROUP as usize)),
        );
    }
}

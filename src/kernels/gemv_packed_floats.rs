use super::packed::{Packed, PackedProduct, example};
use super::weight::Product;
use crate::gpu::{Access, Buffer, Kernel, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemv_packed_floats",
    bindings: &[
        ("step", Access::Step),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("x", Access::Read),
        ("y", Access::Write),
    ],
    variants: lanes_variants!("lanes";
        "shared/step",
        "shared/gated",
        "shared/packed",
        "shared/rows_of_tokens",
        "shared/packed_rows",
        "gemv_packed_floats"
    ),
    example,
};

impl Recorder<'_> {
    /// The product of `w` with the first row of `x` `[n_tokens, k]`. If there are `several` tokens,
    /// with the row of each. `y` is `[n_tokens, rows]`.
    pub fn gemv_packed_floats(
        &mut self,
        w: &Packed,
        x: &Buffer<f32>,
        y: &Buffer<f32>,
        product: Product,
        several: bool,
    ) {
        PackedProduct { kernel: &KERNEL, w, product, several, buffers: &[x, y] }.record(self);
    }
}

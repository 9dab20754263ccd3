use super::packed::{Packed, PackedProduct, QuantizedGroups, example};
use super::weight::Product;
use crate::gpu::{Access, Buffer, Kernel, Recorder};
use crate::lanes_variants;

pub(super) const KERNEL: Kernel = Kernel {
    name: "gemv_packed",
    bindings: &[
        ("step", Access::Step),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("q", Access::Read),
        ("q_scale", Access::Read),
        ("q_factor", Access::Read),
        ("y", Access::Write),
    ],
    variants: lanes_variants!("lanes";
        "shared/step",
        "shared/dot4",
        "shared/gated",
        "shared/packed", "shared/groups",
        "shared/packed_dot",
        "shared/rows_of_tokens",
        "shared/packed_rows",
        "gemv_packed"
    ),
    example,
};

impl Recorder<'_> {
    /// The product of `w` with the first row of `x`. If there are `several` tokens, with the row of
    /// each. `y` is `[n_tokens, rows]`.
    pub fn gemv_packed(
        &mut self,
        w: &Packed,
        x: &QuantizedGroups,
        y: &Buffer<f32>,
        product: Product,
        several: bool,
    ) {
        PackedProduct {
            kernel: &KERNEL,
            w,
            product,
            several,
            buffers: &[&x.q, &x.scale, &x.factor, y],
        }
        .record(self);
    }
}

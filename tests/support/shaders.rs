//! The source of every kernel in every variant, for the tests that compile them all.

use ternlight::gpu::{Const, Dialect, Kernel, Subgroups, Variant};
use ternlight::kernels::{ALL, MAX_NORMED_COLUMNS, MAX_ROPE_COLUMNS};

/// One text to compile.
pub(crate) struct Shader {
    /// The kernel it is for.
    pub(crate) kernel: &'static Kernel,
    /// Kernel, variant and the constants that differ from the kernel's example.
    pub(crate) name: String,
    /// Whether the device must have subgroup operations.
    pub(crate) subgroups: bool,
    /// The WGSL.
    pub(crate) source: String,
}

/// Every variant of every kernel with its example's constants, and with those that switch between
/// ways to compute one by one the other way.
pub(crate) fn shaders(dialect: Dialect) -> Vec<Shader> {
    let mut all = Vec::new();
    for kernel in ALL {
        for variant in kernel.variants {
            for consts in alternatives(kernel) {
                all.extend(sizes(variant).iter().map(|&subgroups| Shader {
                    kernel,
                    name: name(kernel, variant, subgroups, &consts),
                    subgroups: variant.subgroups,
                    source: variant.source(dialect, subgroups, &consts),
                }));
            }
        }
    }
    all
}

/// The sizes of subgroup there are: 4 on SwiftShader, 8 on llvmpipe, up to 128 elsewhere.
fn sizes(variant: &Variant) -> &'static [Option<Subgroups>] {
    const SIZES: [Option<Subgroups>; 3] =
        [Some(Subgroups(4)), Some(Subgroups(32)), Some(Subgroups(128))];
    if variant.subgroups { &SIZES } else { &[None] }
}

/// The example, and again with each constant that switches between ways to compute the other way, and with
/// the longest rows of those that are held in workgroup memory.
fn alternatives(kernel: &Kernel) -> Vec<Vec<Const>> {
    let example = kernel.example;
    let mut all = vec![example.to_vec()];
    for (i, constant) in example.iter().enumerate() {
        let other = match *constant {
            Const::Bool(name, value) => Const::Bool(name, !value),
            Const::U32("PARTS", value) => Const::U32("PARTS", 3 - value),
            Const::U32("BATCH", value) => Const::U32("BATCH", 9 - value),
            Const::U32("LANES", 32) => Const::U32("LANES", 1),
            Const::U32("K", _) => match kernel.name {
                "norm_gemv" | "merge_norm_gemv" => Const::U32("K", MAX_NORMED_COLUMNS as u32),
                "norm_gemv_rope_kv" => Const::U32("K", MAX_ROPE_COLUMNS as u32),
                _ => continue,
            },
            _ => continue,
        };
        let mut consts = example.to_vec();
        consts[i] = other;
        all.push(consts);
    }
    all
}

fn name(
    kernel: &Kernel,
    variant: &Variant,
    subgroups: Option<Subgroups>,
    consts: &[Const],
) -> String {
    let mut name = kernel.name.to_owned();
    if !variant.name.is_empty() {
        name += &format!("/{}", variant.name);
    }
    if let Some(Subgroups(lanes)) = subgroups {
        name += &format!(" of {lanes}");
    }
    for (constant, example) in consts.iter().zip(kernel.example) {
        if constant != example {
            name += &format!(" {constant:?}");
        }
    }
    name
}

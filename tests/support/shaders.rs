//! The source of every kernel in every variant, for the tests that compile them all.

use ternlight::gpu::{Const, Dialect, Kernel, Subgroups, Variant};
use ternlight::kernels::{ALL, FEW, MAX_NORMED_COLUMNS, MAX_ROPE_COLUMNS};

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

/// Every variant of every kernel, with the constants of its example and with the alternatives to
/// these.
pub(crate) fn shaders(dialect: Dialect) -> Vec<Shader> {
    let mut all = Vec::new();
    for kernel in ALL {
        for variant in kernel.variants {
            for consts in alternatives(kernel, variant) {
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

/// The example; again with each constant that switches between ways to compute the other way; and
/// with the longest rows of those that are held in workgroup memory.
fn alternatives(kernel: &Kernel, variant: &Variant) -> Vec<Vec<Const>> {
    let example = (kernel.example)();
    let workgroup = example.iter().find_map(|constant| match *constant {
        Const::U32("WORKGROUP", lanes) => Some(lanes),
        _ => None,
    });
    let mut all = vec![example.clone()];
    // Kernels are also given constants that they do not use.
    let used = example.iter().filter(|constant| variant.wgsl.contains(constant.name()));
    for constant in used {
        let others = match *constant {
            Const::Bool(name, value) => vec![Const::Bool(name, !value)],
            Const::U32("MATRICES", value) => vec![Const::U32("MATRICES", 3 - value)],
            Const::U32("TOKENS", 4) => vec![Const::U32("TOKENS", 1)],
            Const::U32("LANES", 32) => {
                let fewest = if kernel.name == "gemm_few" { FEW as u32 } else { 1 };
                let slots = workgroup.unwrap_or_default() / fewest;
                vec![Const::U32("LANES", fewest), Const::U32("SLOTS", slots)]
            }
            Const::U32("K", _) => match kernel.name {
                "norm_gemv" | "merge_norm_gemv" => vec![Const::size("K", MAX_NORMED_COLUMNS)],
                "norm_gemv_rope_kv" => vec![Const::size("K", MAX_ROPE_COLUMNS)],
                _ => continue,
            },
            _ => continue,
        };
        let replaced = |constant: &Const| {
            let other = others.iter().find(|other| other.name() == constant.name());
            *other.unwrap_or(constant)
        };
        all.push(example.iter().map(replaced).collect());
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
    for (constant, example) in consts.iter().zip(&(kernel.example)()) {
        if constant != example {
            name += &format!(" {constant:?}");
        }
    }
    name
}

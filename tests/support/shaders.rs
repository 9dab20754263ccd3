//! The source of every variant of every kernel, for the tests that compile them.

use tritloom::gpu::{Const, Dialect, Kernel, Subgroups, Tuning, Variant};
use tritloom::kernels::{
    ALL, AttentionShape, FEW, KvType, MIN_LANES, long_row_consts, max_normed_columns,
    max_rope_columns,
};

/// One shader to compile.
pub(crate) struct Shader {
    /// Its kernel.
    pub(crate) kernel: &'static Kernel,
    /// The names of kernel and variant, and the constants that differ from the kernel's example.
    pub(crate) name: String,
    /// Whether the device must have subgroup operations.
    pub(crate) subgroups: bool,
    /// Whether the device must have matrix units.
    pub(crate) matrix_units: bool,
    /// The WGSL.
    pub(crate) source: String,
}

/// Every variant of every kernel, with the constants of its example and with each alternative. naga
/// does not know matrix units.
pub(crate) fn shaders(dialect: Dialect) -> Vec<Shader> {
    let mut all = Vec::new();
    for kernel in ALL {
        let is_known = |v: &&Variant| dialect == Dialect::Browser || !v.matrix_units;
        for variant in kernel.variants.iter().filter(is_known) {
            for &subgroups in sizes(variant) {
                let alternatives = alternatives(kernel, variant, subgroups);
                all.extend(alternatives.iter().map(|consts| Shader {
                    kernel,
                    name: name(kernel, variant, subgroups, consts),
                    subgroups: variant.subgroups,
                    matrix_units: variant.matrix_units,
                    source: variant.source(dialect, subgroups, consts),
                }));
            }
        }
    }
    all
}

/// Sizes of subgroups. SwiftShader has 4, llvmpipe 8, and others up to 128.
fn sizes(variant: &Variant) -> &'static [Option<Subgroups>] {
    const SIZES: [Option<Subgroups>; 3] =
        [Some(Subgroups(4)), Some(Subgroups(32)), Some(Subgroups(128))];
    match variant {
        Variant { matrix_units: true, .. } => &SIZES[1..2],
        Variant { subgroups: true, .. } => &SIZES,
        _ => &[None],
    }
}

/// The constants of the example, then variations of it. Each changes one constant that selects a
/// way to compute, or takes the longest rows that workgroup memory holds.
fn alternatives(
    kernel: &Kernel,
    variant: &Variant,
    subgroups: Option<Subgroups>,
) -> Vec<Vec<Const>> {
    let example = (kernel.example)();
    let workgroup = example.iter().find_map(|constant| match *constant {
        Const::U32("WORKGROUP", lanes) => Some(lanes),
        _ => None,
    });
    let mut all = vec![example.clone()];
    // Some constants are given to kernels that do not use them.
    let uses = |name| variant.wgsl.iter().any(|file| file.contains(name));
    let used = example.iter().filter(|constant| uses(constant.name()));
    for constant in used {
        // Each alternative is a list of constants that belong together.
        let others = match *constant {
            Const::Bool(name, value) => vec![vec![Const::Bool(name, !value)]],
            Const::U32("MATRICES", value) => vec![vec![Const::U32("MATRICES", 3 - value)]],
            Const::U32("BITS", 2) => {
                vec![vec![Const::U32("BITS", 1), Const::U32("GROUP", 128)]]
            }
            Const::U32("TOKENS", 4) => vec![vec![Const::U32("TOKENS", 1)]],
            // 32 rows in a workgroup.
            Const::U32("LANES", 32) if kernel.name.ends_with("stream_packed") => vec![vec![
                Const::U32("LANES", MIN_LANES),
                Const::U32("TEAMS", workgroup.unwrap_or_default() / MIN_LANES),
                Const::U32("EACH", 1),
            ]],
            Const::U32("LANES", 32) => {
                let fewest = if kernel.name == "gemm_few" { FEW as u32 } else { 1 };
                let teams = workgroup.unwrap_or_default() / fewest;
                vec![vec![Const::U32("LANES", fewest), Const::U32("TEAMS", teams)]]
            }
            Const::U32("K", _) => {
                // Every device has as many threads.
                let tuning = Tuning::card(subgroups, 256);
                let k = match kernel.name {
                    "norm_gemv" | "merge_norm_gemv" => max_normed_columns(&tuning, subgroups),
                    "norm_gemv_rope_kv" => max_rope_columns(&tuning, subgroups),
                    _ => continue,
                };
                vec![long_row_consts(&tuning, k)]
            }
            Const::U32("KV_BITS", _) => KvType::ALL
                .into_iter()
                .filter(|&(_, kv)| kernel.name != "norm_gemv_rope_kv" || kv != KvType::Int8)
                .map(|(_, kv)| {
                    AttentionShape { kv, ..AttentionShape::EXAMPLE }.cache_consts().into()
                })
                .filter(|consts: &Vec<Const>| !consts.contains(constant))
                .collect(),
            _ => continue,
        };
        all.extend(others.iter().map(|others| replaced(&example, others)));
    }
    all
}

/// `consts`, with those of `others` instead of the ones of the same name.
pub(crate) fn replaced(consts: &[Const], others: &[Const]) -> Vec<Const> {
    let replaced = |constant: &Const| {
        let other = others.iter().find(|other| other.name() == constant.name());
        *other.unwrap_or(constant)
    };
    consts.iter().map(replaced).collect()
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

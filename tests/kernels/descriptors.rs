//! Each descriptor in Rust is compared with the shader that naga parses.

use std::fs::read_to_string;
use std::mem::offset_of;

use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, Module, StorageAccess, TypeInner};
use tritloom::gpu::{Access, Dialect, Step, Subgroups, Tuning, strip};
use tritloom::kernels::{
    ALL, SamplingParams, long_row_consts, max_normed_columns, max_rope_columns,
};
use tritloom::sampling::Sampling;

use crate::shaders::{Shader, replaced, shaders};
use crate::support::path;

/// The bindings are in the descriptor's order. `main` is a compute shader within the limits that
/// every WebGPU adapter has.
#[test]
fn descriptors_match_shaders() {
    let all = shaders(Dialect::Native);
    assert!(ALL.iter().all(|kernel| all.iter().any(|shader| shader.kernel.name == kernel.name)));
    for shader in all {
        let (module, info) = parse(&shader);
        let name = &shader.name;
        let found = bindings(&module);
        let found: Vec<_> = found.iter().map(|(name, access)| (name.as_str(), *access)).collect();
        assert_eq!(found, shader.kernel.bindings, "{name}");

        assert_eq!(module.entry_points.len(), 1, "{name}");
        let main = &module.entry_points[0];
        assert_eq!((main.name.as_str(), main.stage), ("main", naga::ShaderStage::Compute));
        assert!(main.workgroup_size.iter().product::<u32>() <= 256, "{name}");
        assert!(workgroup_bytes(&module, &info) <= 16 << 10, "{name}");
        let is_storage = |access: Access| matches!(access, Access::Read | Access::Write);
        let storage = shader.kernel.bindings.iter().filter(|(_, access)| is_storage(*access));
        assert!(storage.count() <= 8, "{name}");
        assert_eq!(uses_subgroups(&shader), shader.subgroups, "{name}");
    }
}

/// Rows of the greatest length fit into the workgroup memory that every adapter has, and longer ones
/// do not.
#[test]
fn the_longest_rows_fill_workgroup_memory() {
    type Columns = fn(&Tuning, Option<Subgroups>) -> usize;
    let kernels: [(&str, Columns); 3] = [
        ("norm_gemv", max_normed_columns),
        ("merge_norm_gemv", max_normed_columns),
        ("norm_gemv_rope_kv", max_rope_columns),
    ];
    for (name, max_columns) in kernels {
        let kernel = ALL.iter().find(|kernel| kernel.name == name).unwrap();
        for lanes in [None, Some(4), Some(8), Some(32), Some(128)] {
            let subgroups = lanes.map(Subgroups);
            let variant = kernel.variant(subgroups, false);
            for threads in [256, 512] {
                let tuning = Tuning::card(subgroups, threads);
                let most = max_columns(&tuning, subgroups);
                for k in [most, most + 128] {
                    let consts = replaced(&(kernel.example)(), &long_row_consts(&tuning, k));
                    let shader = Shader {
                        kernel,
                        name: format!("{name}, {k} columns, {lanes:?} of {threads} threads"),
                        subgroups: variant.subgroups,
                        matrix_units: false,
                        source: variant.source(Dialect::Native, subgroups, &consts),
                    };
                    let (module, info) = parse(&shader);
                    let fits = workgroup_bytes(&module, &info) <= 16 << 10;
                    assert_eq!(fits, k == most, "{}", shader.name);
                }
            }
        }
    }
}

/// A shader file with a kernel's name has a module of that name. The kernels without one are put together
/// from `shaders/products`.
#[test]
fn every_shader_has_a_kernel_of_its_name() {
    let mut files: Vec<String> = std::fs::read_dir(path("shaders"))
        .unwrap()
        .filter_map(|entry| {
            entry.unwrap().file_name().to_str()?.strip_suffix(".wgsl").map(Into::into)
        })
        .collect();
    files.sort();
    let (named, products): (Vec<_>, Vec<_>) = ALL
        .iter()
        .map(|kernel| kernel.name)
        .partition(|name| path(&format!("src/kernels/{name}.rs")).exists());
    assert_eq!(files, named);
    assert_eq!(products.len(), 10, "{products:?}");
}

/// Kernels whose cases share a file.
const FAMILIES: [(&str, &[&str]); 11] = [
    (
        "adapters",
        &[
            "adapter_add",
            "adapter_thin",
            "adapter_thin_merged",
            "merge_norm_gemv_adapted",
            "norm_gemv_adapted",
        ],
    ),
    (
        "attention",
        &[
            "attention",
            "attention_decode",
            "attention_merge",
            "attention_prefill",
            "merge_quantize",
            "merge_splits",
            "norm_attention_decode",
        ],
    ),
    ("fused_products", &["merge_norm_gemv", "norm_gemv", "norm_gemv_rope_kv"]),
    (
        "greedy_lm_head",
        &["gemv_lm_head_split", "gemv_upper", "penalize_upper", "rescore", "split_f16"],
    ),
    ("logprobs", &["logprob_blocks", "logprob_record"]),
    (
        "packed_products",
        &[
            "embed_packed",
            "embed_stream",
            "gemm_packed",
            "gemv_packed",
            "gemv_packed_floats",
            "merge_stream_packed",
            "norm_gated_packed",
            "norm_gemv_heads_packed",
            "norm_gemv_packed",
            "quantize_groups",
            "rms_norm_quantize_groups",
            "stream_of_last",
            "stream_packed",
        ],
    ),
    ("rescore_kept", &["rescore_kept", "rescore_rest", "sample_check"]),
    ("rms_norm", &["quantize_rows", "rms_norm", "rms_norm_quantize"]),
    ("rope_kv", &["norm_rope_kv", "rope_kv"]),
    (
        "sampler",
        &[
            "sample_best",
            "sample_bins",
            "sample_commit",
            "sample_decide",
            "sample_max",
            "sample_sift",
        ],
    ),
    ("ternary_products", &["gemm_few", "gemm_i2s", "gemm_i2s_matrix", "gemv_i2s"]),
];

#[test]
fn every_kernel_has_cases_in_the_file_of_its_name_or_family() {
    for kernel in ALL {
        let name = kernel.name;
        let family = FAMILIES.iter().find(|(_, members)| members.contains(&name));
        let file = family.map_or(name, |(family, _)| family);
        let text = read_to_string(path(&format!("tests/kernels/cases/{file}.rs")));
        let text = text.unwrap_or_else(|error| panic!("tests/kernels/cases/{file}.rs: {error}"));
        assert!(text.contains(&format!(".{name}(")), "{file} does not run {name}");
    }
}

/// A number that Rust and WGSL must agree on is a constant of the kernel's descriptor. A shader
/// must not declare the constant again, and a comment must not repeat its value.
#[test]
fn shared_numbers_are_constants_of_the_descriptors() {
    for shader in shaders(Dialect::Native) {
        let given = (shader.kernel.example)();
        for constant in given {
            let declared = format!("const {}:", constant.name());
            assert_eq!(shader.source.matches(&declared).count(), 1, "{}: {declared}", shader.name);
        }
    }
    for entry in std::fs::read_dir(path("src/kernels")).unwrap() {
        let file = entry.unwrap().path();
        let text = read_to_string(&file).unwrap();
        assert!(!text.contains("as in the shader"), "{}", file.display());
    }
}

/// Comments and indentation are for readers of the files. A page does not download them.
#[test]
fn shaders_have_no_comments_and_no_indentation() {
    let file = "const HALF: f32 = 1f / 2f; // Ω\n\nfn f() {\n    // Why.\n    g(HALF);\n}\n";
    let mut bare = [0; 64];
    let len = strip(file, &mut bare);
    let expected = "const HALF: f32 = 1f / 2f; \n\nfn f() {\n\ng(HALF);\n}\n";
    assert_eq!(std::str::from_utf8(&bare[..len]), Ok(expected));
    assert_eq!(strip(file, &mut []), len);
    let file = "// Sums.\n// For each TYPE of f32, vec2i\nfn sum_TYPE() -> TYPE {} // TYPE\n";
    let len = strip(file, &mut bare);
    let expected = "\n\nfn sum_f32() -> f32 {} \n\nfn sum_vec2i() -> vec2i {} \n";
    assert_eq!(std::str::from_utf8(&bare[..len]), Ok(expected));
    for Shader { name, source, .. } in shaders(Dialect::Native) {
        let is_bare = |line: &str| !line.starts_with(' ') && !line.contains("//");
        assert!(source.lines().all(is_bare), "{name}");
    }
}

/// Browsers add a counter to each loop that they cannot prove to end. The counter keeps drivers
/// from unrolling the loop. Chromium can prove that a loop ends if it counts up by one to a
/// constant or a `let`.
#[test]
fn browsers_can_prove_that_loops_end() {
    let mut seen = 0;
    for Shader { name, source, .. } in shaders(Dialect::Browser) {
        let mut function = String::new(); // its text so far
        for line in source.lines() {
            if line.starts_with("fn ") {
                function.clear();
            }
            function.push_str(line);
            let line = line.trim();
            if !["for ", "while ", "loop "].iter().any(|word| line.starts_with(word)) {
                continue;
            }
            let header = line.strip_prefix("for (var ").unwrap_or_else(|| panic!("{name}: {line}"));
            let clauses: Vec<&str> = header.split("; ").collect();
            let index = clauses[0].split(" = ").next().unwrap();
            let bound = clauses[1].strip_prefix(&format!("{index} < "));
            let bound = bound.unwrap_or_else(|| panic!("{name}: {line}"));
            // Constants are in capitals; the name of a type is not, nor this function of a constant.
            let small = ["countTrailingZeros", "_f32", "_i32"];
            let bare = small.iter().fold(bound.to_owned(), |bare, word| bare.replace(word, ""));
            let is_constant = bare.chars().all(|c| c == 'u' || !c.is_lowercase());
            let is_let = function.contains(&format!("let {bound} = "));
            assert!(is_constant || is_let, "{name}: {line}");
            assert_eq!(clauses[2], format!("{index}++) {{"), "{name}");
            seen += 1;
        }
    }
    assert!(seen > 100);
}

/// In a browser, a variant with subgroup operations must enable them. Natively it must not: naga
/// rejects the directive.
#[test]
fn subgroups_are_enabled_in_browsers_only() {
    let browser = shaders(Dialect::Browser).into_iter().filter(|shader| !shader.matrix_units);
    for (native, browser) in shaders(Dialect::Native).iter().zip(browser) {
        let expected = if native.subgroups { "enable subgroups;\n" } else { "" };
        assert_eq!(browser.source, format!("{expected}{}", native.source), "{}", native.name);
    }
}

/// Chromium has matrix units and subgroups only where both are enabled.
#[test]
fn matrix_units_are_enabled() {
    let mut shaders = shaders(Dialect::Browser);
    shaders.retain(|shader| shader.matrix_units);
    let enabled = "enable chromium_experimental_subgroup_matrix;\nenable subgroups;\n";
    assert!(!shaders.is_empty());
    assert!(shaders.iter().all(|shader| shader.source.starts_with(enabled)));
}

#[test]
fn the_step_is_laid_out_as_the_shaders_read_it() {
    let expected = [
        ("pos", offset_of!(Step, pos)),
        ("n_tokens", offset_of!(Step, n_tokens)),
        ("n_splits", offset_of!(Step, n_splits)),
        ("split_len", offset_of!(Step, split_len)),
        ("first", offset_of!(Step, first)),
        ("token", offset_of!(Step, token)),
        ("row", offset_of!(Step, row)),
        ("uncertain", offset_of!(Step, uncertain)),
        ("rows", offset_of!(Step, rows)),
    ];
    let mut seen = 0;
    for shader in shaders(Dialect::Native) {
        if let Some((members, size)) = uniform(&parse(&shader).0, "step") {
            let found: Vec<_> = members.iter().map(|(n, at)| (n.as_str(), *at)).collect();
            assert_eq!(found, expected, "{}", shader.name);
            assert_eq!(size, size_of::<Step>(), "{}", shader.name);
            seen += 1;
        }
    }
    assert!(seen > 0);
}

/// The fields of [`SamplingParams`] are private, so the test finds each by its value.
#[test]
fn the_sampling_settings_are_laid_out_as_the_shaders_read_them() {
    let sampling = Sampling {
        temperature: 0.25,
        top_k: 40,
        top_p: 0.5,
        min_p: 0.125,
        seed: 7,
        ..Sampling::default()
    };
    let params = SamplingParams::from(&sampling).with_logprobs(5);
    let words: &[u32] = bytemuck::cast_slice(std::slice::from_ref(&params));
    let expected = [
        ("inverse_temperature", 4f32.to_bits()),
        ("top_k", 40),
        ("top_p", 0.5f32.to_bits()),
        ("reach", (8f32.ln() / 4.0).to_bits()),
        ("seed", 7),
        ("bins_per_logit", 128f32.to_bits()),
        ("all_bins", (1023f32 / 128.0).to_bits()),
        ("n_top", 5),
    ];
    let mut seen = 0;
    for shader in shaders(Dialect::Native) {
        if let Some((members, size)) = uniform(&parse(&shader).0, "sampling") {
            let found: Vec<_> = members.iter().map(|(n, at)| (n.as_str(), words[at / 4])).collect();
            assert_eq!(found[..expected.len()], expected, "{}", shader.name);
            assert_eq!(size, size_of::<SamplingParams>(), "{}", shader.name);
            seen += 1;
        }
    }
    assert!(seen > 0);
    let greedy = SamplingParams::from(&Sampling::default());
    let words: &[u32] = bytemuck::cast_slice(std::slice::from_ref(&greedy));
    assert_eq!(words[0], 0, "greedy must have the inverse temperature 0");
}

fn parse(shader: &Shader) -> (Module, ModuleInfo) {
    let Shader { name, source, .. } = shader;
    let module = naga::front::wgsl::parse_str(source)
        .unwrap_or_else(|error| panic!("{name}: {}", error.emit_to_string(source)));
    let info = Validator::new(ValidationFlags::all(), Capabilities::all())
        .validate(&module)
        .unwrap_or_else(|error| panic!("{name}: {}", error.emit_to_string(source)));
    (module, info)
}

fn bindings(module: &Module) -> Vec<(String, Access)> {
    let mut bindings: Vec<_> = module
        .global_variables
        .iter()
        .filter_map(|(_, variable)| {
            let binding = variable.binding?;
            assert_eq!(binding.group, 0, "{:?}", variable.name);
            let name = variable.name.clone().unwrap();
            let access = match variable.space {
                AddressSpace::Uniform if name == "step" => Access::Step,
                AddressSpace::Uniform => Access::Uniform,
                AddressSpace::Storage { access } if access.contains(StorageAccess::STORE) => {
                    Access::Write
                }
                _ => Access::Read,
            };
            Some((binding.binding, name, access))
        })
        .collect();
    bindings.sort_by_key(|(index, ..)| *index);
    // Recorders number the bindings without gaps.
    assert!(bindings.iter().zip(0..).all(|(binding, i)| binding.0 == i));
    bindings.into_iter().map(|(_, name, access)| (name, access)).collect()
}

/// The members of a uniform block with their offsets, and its size.
fn uniform(module: &Module, name: &str) -> Option<(Vec<(String, usize)>, usize)> {
    let (_, variable) = module.global_variables.iter().find(|(_, variable)| {
        variable.name.as_deref() == Some(name) && variable.space == AddressSpace::Uniform
    })?;
    let TypeInner::Struct { members, span } = &module.types[variable.ty].inner else {
        panic!("{name} is no struct")
    };
    let members = members.iter().map(|m| (m.name.clone().unwrap(), m.offset as usize)).collect();
    Some((members, *span as usize))
}

/// The bytes of workgroup memory that `main` uses, as WebGPU counts them.
fn workgroup_bytes(module: &Module, info: &ModuleInfo) -> u32 {
    module
        .global_variables
        .iter()
        .filter(|(_, variable)| variable.space == AddressSpace::WorkGroup)
        .filter(|(handle, _)| !info.get_entry_point(0)[*handle].is_empty())
        .map(|(_, variable)| module.types[variable.ty].inner.size(module.to_ctx()))
        .map(|bytes| bytes.next_multiple_of(16))
        .sum()
}

fn uses_subgroups(shader: &Shader) -> bool {
    shader.source.contains("subgroupShuffle")
        || shader.source.contains("subgroupAdd")
        || shader.source.contains("subgroupMax")
        || shader.source.contains("subgroup_id")
}

//! The products of one token. Each is put together from three parts of `shaders/products/`: a prologue
//! makes the input, a format multiplies rows with it, and an epilogue does something with the results. A
//! kernel is a row of the table at the end of this file.
//!
//! | part | declares | calls |
//! |---|---|---|
//! | format | `w`, `w_scale`, `products(lane, rows)`, `FACTOR` | its prologues' functions, see the file |
//! | prologue | its inputs, from `PROLOGUE_AT` on | |
//! | epilogue | `main`, its outputs, from `EPILOGUE_AT` on | `products` |
//!
//! `products` returns the products with `EACH` rows of the shard, and every lane of a team of `LANES` gets
//! them. They are still to be multiplied by `FACTOR`. A prologue belongs to a format, because each format
//! has its own kind of activations: rows with one scale, or groups with a scale each. An epilogue takes the
//! products of any format.
//!
//! These kernels keep a text of their own:
//!
//! - `gemv_i2s`, `gemv_packed` and `gemv_packed_floats` compute several tokens too, and read each weight once
//!   for all of them. A product of this table has one token, and its prologue keeps it in workgroup memory.
//!   The packed ones also have codes of 4 and 8 bits, and inputs that are not rounded.
//! - `gemv_lm_head` and `gemv_lm_head_split` multiply floats with floats: there is no int8 input that a
//!   prologue could make. Each of their many workgroups would have to norm the hidden state again.
//! - `gemv_upper` reads upper bytes alone, of up to three shards. It finds the best of each workgroup, and
//!   bounds its error, so its rows belong to workgroups in another way.
//! - `norm_attention_decode` has no matrix: it is attention, which takes the results of a product.

use super::product_consts as consts;
use crate::gpu::{Access, Binding, Kernel, Variant};
use crate::wgsl;

/// A part of a product's shader.
struct Part {
    /// Its bindings, in this order.
    bindings: &'static [Binding],
    /// Whether it reads the step.
    step: bool,
    /// The reductions that it calls.
    reductions: &'static [Reduction],
    /// Its text, and the shared ones that it calls.
    wgsl: &'static [&'static str],
}

/// A reduction, which has a text with subgroup operations and one without.
struct Reduction {
    subgroup: &'static [&'static str],
    workgroup: &'static [&'static str],
}

const LANES: Reduction = Reduction {
    subgroup: wgsl!("shared/lanes_subgroup"),
    workgroup: wgsl!("shared/lanes_workgroup"),
};

const GROUP: Reduction = Reduction {
    subgroup: wgsl!("shared/group_subgroup"),
    workgroup: wgsl!("shared/group_workgroup"),
};

const EIGHTS: Reduction = Reduction {
    subgroup: wgsl!("shared/eights_subgroup"),
    workgroup: wgsl!("shared/eights_workgroup"),
};

/// The bindings of every format.
const MATRIX: &[Binding] = &[("w", Access::Read), ("w_scale", Access::Read)];

/// Rows with a scale each, times a row of int8.
const TERNARY: Part = Part {
    bindings: MATRIX,
    step: false,
    reductions: &[LANES, GROUP],
    wgsl: wgsl!(
        "products/ternary",
        "shared/dot4",
        "shared/ternary",
        "shared/ternary_product",
        "shared/quantize",
        "shared/normed_input"
    ),
};

/// Rows of codes of 1 or 2 bits with a scale for each group, times groups of int8.
const PACKED: Part = Part {
    bindings: MATRIX,
    step: false,
    reductions: &[LANES],
    wgsl: wgsl!(
        "products/packed",
        "shared/dot4",
        "shared/packed",
        "shared/packed_dot",
        "shared/groups"
    ),
};

/// For [`TERNARY`]: a row of floats, normed or as it is.
const ROW: Part = Part {
    bindings: &[("x", Access::Read), ("norm_weight", Access::Read)],
    step: false,
    reductions: &[],
    wgsl: wgsl!("products/row", "shared/norm_weight"),
};

/// For [`TERNARY`]: the outputs of attention, normed or as they are.
const MERGED_ROW: Part = Part {
    bindings: &[
        ("partial_sums", Access::Read),
        ("partial_max_total", Access::Read),
        ("norm_weight", Access::Read),
    ],
    step: true,
    reductions: &[],
    wgsl: wgsl!(
        "products/merged_row",
        "shared/merged",
        "shared/merged_input",
        "shared/norm_weight"
    ),
};

/// For [`PACKED`]: the input as given.
const GIVEN: Part = Part {
    bindings: &[("q", Access::Read), ("q_scale", Access::Read)],
    step: false,
    reductions: &[],
    wgsl: wgsl!("products/given", "products/staged"),
};

/// For [`PACKED`]: the norm of the residual stream.
const NORM: Part = Part {
    bindings: &[("stream", Access::Read)],
    step: false,
    reductions: &[GROUP],
    wgsl: wgsl!("products/norm", "products/staged"),
};

/// For [`PACKED`]: the outputs of attention.
const MERGE: Part = Part {
    bindings: &[("partial_sums", Access::Read), ("partial_max_total", Access::Read)],
    step: true,
    reductions: &[EIGHTS],
    wgsl: wgsl!(
        "products/merge",
        "shared/merged",
        "shared/quantize_group",
        "shared/quantize_eights"
    ),
};

/// The step, where a part reads it.
const STEP: &[&str] = wgsl!("shared/step", "products/step");

/// Stores the rows as floats, adds them, or gates them.
const ROWS: Part = Part {
    bindings: &[("y", Access::Write)],
    step: false,
    reductions: &[],
    wgsl: wgsl!("products/rows", "shared/gated"),
};

/// As [`ROWS`], with what the pairs of adapters add to each row.
const ADAPTED_ROWS: Part = Part {
    bindings: &[("b", Access::Read), ("u", Access::Read), ("y", Access::Write)],
    step: false,
    reductions: &[],
    wgsl: wgsl!("products/adapted_rows", "shared/adapter_delta", "shared/gated"),
};

/// Rotates pairs of a head and fills the cache.
const PAIRS: Part = Part {
    bindings: &[
        ("rope_table", Access::Read),
        ("queries", Access::Write),
        ("k_cache", Access::Write),
        ("v_cache", Access::Write),
    ],
    step: true,
    reductions: &[],
    wgsl: wgsl!("products/pairs", "shared/rope_kv", "shared/kv_row"),
};

/// Norms and rotates whole heads and fills the cache.
const HEADS: Part = Part {
    bindings: &[
        ("head_norms", Access::Read),
        ("rope_table", Access::Read),
        ("q", Access::Write),
        ("k_cache", Access::Write),
        ("v_cache", Access::Write),
    ],
    step: true,
    reductions: &[EIGHTS],
    wgsl: wgsl!(
        "products/heads",
        "shared/rows",
        "shared/rope_kv",
        "shared/kv_row",
        "shared/quantize_group",
        "shared/store_head",
        "shared/rotated_head"
    ),
};

/// Gates the rows and quantises them.
const GATE: Part = Part {
    bindings: &[("y", Access::Write), ("y_scale", Access::Write)],
    step: false,
    reductions: &[EIGHTS],
    wgsl: wgsl!(
        "products/gate",
        "shared/gated",
        "shared/quantize_group",
        "shared/quantize_eights",
        "shared/quantize_results"
    ),
};

/// Adds the rows to the residual stream and makes the input of the next norm.
const STREAM: Part = Part {
    bindings: &[("norm_weight", Access::Read), ("x", Access::Write), ("stream", Access::Write)],
    step: false,
    reductions: &[EIGHTS],
    wgsl: wgsl!(
        "products/stream",
        "shared/quantize_group",
        "shared/quantize_eights",
        "shared/quantize_results",
        "shared/put_in_stream"
    ),
};

/// Texts of a product, at most.
const MAX_TEXTS: usize = 32;

/// Bindings of a product, at most.
const MAX_BINDINGS: usize = 10;

/// The first `used` entries of `all`.
struct List<T, const N: usize> {
    all: [T; N],
    used: usize,
}

impl<T: Copy, const N: usize> List<T, N> {
    const fn push(&mut self, one: T) {
        self.all[self.used] = one;
        self.used += 1;
    }
}

/// The parts of a product: prologue, format, epilogue.
type Parts = [&'static Part; 3];

const fn reads_step([prologue, format, epilogue]: Parts) -> bool {
    prologue.step || format.step || epilogue.step
}

/// Matrix, inputs, outputs, and the step at last.
const fn bindings(parts: Parts) -> List<Binding, MAX_BINDINGS> {
    let [prologue, format, epilogue] = parts;
    let mut list = List { all: [("", Access::Read); MAX_BINDINGS], used: 0 };
    let lists = [format.bindings, prologue.bindings, epilogue.bindings];
    let mut n = 0;
    while n < lists.len() {
        let mut i = 0;
        while i < lists[n].len() {
            list.push(lists[n][i]);
            i += 1;
        }
        n += 1;
    }
    if reads_step(parts) {
        list.push(("step", Access::Step));
    }
    list
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len()
}

/// Adds those of `texts` that are not in the list.
const fn add(
    mut list: List<&'static str, MAX_TEXTS>,
    texts: &'static [&'static str],
) -> List<&'static str, MAX_TEXTS> {
    let mut i = 0;
    while i < texts.len() {
        let mut at = 0;
        while at < list.used && !is_same(list.all[at], texts[i]) {
            at += 1;
        }
        if at == list.used {
            list.push(texts[i]);
        }
        i += 1;
    }
    list
}

macro_rules! at {
    ($name:literal: $($binding:literal)*) => {
        [$(concat!("const ", $name, ": u32 = ", $binding, "u;\n")),*]
    };
}

/// The declarations that say at which binding a part begins, by that binding.
const PROLOGUE_AT: [&str; MAX_BINDINGS] = at!("PROLOGUE_AT": 0 1 2 3 4 5 6 7 8 9);
const EPILOGUE_AT: [&str; MAX_BINDINGS] = at!("EPILOGUE_AT": 0 1 2 3 4 5 6 7 8 9);
const STEP_AT: [&str; MAX_BINDINGS] = at!("STEP_AT": 0 1 2 3 4 5 6 7 8 9);

const fn texts(parts: Parts, subgroups: bool) -> List<&'static str, MAX_TEXTS> {
    let [prologue, format, epilogue] = parts;
    let mut list = List { all: [""; MAX_TEXTS], used: 0 };
    let prologue_at = format.bindings.len();
    let epilogue_at = prologue_at + prologue.bindings.len();
    list.push(PROLOGUE_AT[prologue_at]);
    list.push(EPILOGUE_AT[epilogue_at]);
    if reads_step(parts) {
        list.push(STEP_AT[epilogue_at + epilogue.bindings.len()]);
        list = add(list, STEP);
    }
    let mut n = 0;
    while n < parts.len() {
        let Part { reductions, wgsl, .. } = parts[n];
        let mut i = 0;
        while i < reductions.len() {
            let Reduction { subgroup, workgroup } = &reductions[i];
            list = add(list, if subgroups { subgroup } else { workgroup });
            i += 1;
        }
        list = add(list, wgsl);
        n += 1;
    }
    list
}

macro_rules! products {
    ($($(#[doc = $doc:literal])* $kernel:ident $name:literal:
        $prologue:ident, $format:ident, $epilogue:ident, $example:ident;)*) => {
        $(
            $(#[doc = $doc])*
            pub(super) const $kernel: Kernel = {
                const PARTS: Parts = [&$prologue, &$format, &$epilogue];
                static BINDINGS: List<Binding, MAX_BINDINGS> = bindings(PARTS);
                static SUBGROUP: List<&str, MAX_TEXTS> = texts(PARTS, true);
                static WORKGROUP: List<&str, MAX_TEXTS> = texts(PARTS, false);
                Kernel {
                    name: $name,
                    bindings: BINDINGS.all.split_at(BINDINGS.used).0,
                    variants: &[
                        Variant {
                            name: "subgroup",
                            subgroups: true,
                            matrix_units: false,
                            wgsl: SUBGROUP.all.split_at(SUBGROUP.used).0,
                        },
                        Variant {
                            name: "workgroup",
                            subgroups: false,
                            matrix_units: false,
                            wgsl: WORKGROUP.all.split_at(WORKGROUP.used).0,
                        },
                    ],
                    example: consts::$example,
                }
            };
        )*

        /// All of them.
        pub(super) const TABLE: &[&Kernel] = &[$(&$kernel),*];
    };
}

products! {
    // kernel               name                       prologue    format   epilogue      example
    NORM_GEMV               "norm_gemv":               ROW,        TERNARY, ROWS,         row_example;
    NORM_GEMV_ROPE_KV       "norm_gemv_rope_kv":       ROW,        TERNARY, PAIRS,        row_pairs_example;
    MERGE_NORM_GEMV         "merge_norm_gemv":         MERGED_ROW, TERNARY, ROWS,         merged_row_example;
    NORM_GEMV_PACKED        "norm_gemv_packed":        NORM,       PACKED,  ROWS,         norm_rows_example;
    NORM_GATED_PACKED       "norm_gated_packed":       NORM,       PACKED,  GATE,         norm_gate_example;
    NORM_GEMV_HEADS_PACKED  "norm_gemv_heads_packed":  NORM,       PACKED,  HEADS,        norm_heads_example;
    STREAM_PACKED           "stream_packed":           GIVEN,      PACKED,  STREAM,       given_example;
    MERGE_STREAM_PACKED     "merge_stream_packed":     MERGE,      PACKED,  STREAM,       merge_example;
    NORM_GEMV_ADAPTED       "norm_gemv_adapted":       ROW,        TERNARY, ADAPTED_ROWS, adapted_row_example;
    MERGE_NORM_GEMV_ADAPTED "merge_norm_gemv_adapted": MERGED_ROW, TERNARY, ADAPTED_ROWS, adapted_merged_row_example;
}

//! The sizes and tensors of a model: the quirks of real files, and what is refused.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and tell")]

mod support;

use std::collections::BTreeSet;

use support::families::OF_EACH_ARCHITECTURE;
use support::{
    BF16, F16, F32, File, I2_S, Kv, N_LAYER, Random, Tensor, assert_error, floats, path, read, tiny,
};
use tritloom::blocks::TABLE;
use tritloom::gguf::type_id::{Q1_0, Q2_0, Q4_0, Q4_K, Q6_K, Q8_0};
use tritloom::gguf::{TensorInfo, TensorType};
use tritloom::model::{ARCHITECTURES, Config, Pooling, Role, RopeScaling, Weight, weights};
use tritloom::native::block_on;
use tritloom::reference::Reference;
use tritloom::source::Reader;
use tritloom::{Error, Result};

fn config(file: &File) -> Result<Config> {
    Config::from_gguf(&read(&file.build()).unwrap())
}

fn table(file: &File) -> Result<Vec<Weight>> {
    let gguf = read(&file.build()).unwrap();
    weights::weights(&Config::from_gguf(&gguf)?, &gguf)
}

fn load(file: &File) -> Result<Reference> {
    block_on(Reference::load(&mut Reader::new(file.build().as_slice())))
}

/// Gives a tensor another shape and type.
fn replace(file: &mut File, index: usize, ne: &[u64], type_id: u32) {
    let name = file.tensors[index].name.clone();
    file.add(&name, ne, type_id, &mut Random(3));
    file.tensors.swap_remove(index);
}

fn arch(name: &str) -> String {
    format!("bitnet-b1.58.{name}")
}

#[test]
fn optional_keys_have_their_defaults() {
    let mut file = tiny();
    for name in ["rope.dimension_count", "rope.freq_base", "attention.head_count_kv"] {
        file.remove(&arch(name));
    }
    file.remove("general.name");
    let config = config(&file).unwrap();
    assert_eq!(config.n_head_kv, config.n_head);
    assert_eq!((config.rope.base, config.head_dim, config.n_vocab), (10000.0, 64, 264));
    assert_eq!(config.name, "");
}

#[test]
fn neutral_settings_are_accepted() {
    let mut file = tiny();
    file.set(&arch("rope.scaling.type"), Kv::Str("linear".into()));
    file.set(&arch("rope.scaling.factor"), Kv::F32(1.0));
    file.set(&arch("attention.key_length"), Kv::U32(64));
    file.set(&arch("attention.value_length"), Kv::U32(64));
    file.set(&arch("attention.causal"), Kv::Bool(true));
    file.set(&arch("vocab_size"), Kv::U32(264));
    file.set("split.count", Kv::U32(1));
    config(&file).unwrap();
}

#[test]
fn every_assumption_is_checked() {
    for (key, value, facts) in [
        ("embedding_length", Kv::U32(0), &["embedding_length` is 0"][..]),
        ("embedding_length", Kv::U32(144), &["64", "72 wide"]),
        ("embedding_length", Kv::U32(131072), &["131072"]),
        ("feed_forward_length", Kv::U32(8650), &["8650", "32"]),
        ("feed_forward_length", Kv::U32(65536), &["65536"]),
        ("block_count", Kv::U32(0), &["block_count` is 0"]),
        ("block_count", Kv::U32(100_000), &["100000"]),
        ("block_count", Kv::I32(-1), &["-1"]),
        ("block_count", Kv::Str("two".into()), &["two"]),
        ("block_count", Kv::I32s(vec![11]), &["[11]"]),
        ("context_length", Kv::U64(1 << 40), &["context_length"]),
        ("attention.head_count", Kv::U32(0), &["head_count` is 0"]),
        ("attention.head_count", Kv::U32(3), &["3 heads", "128"]),
        ("attention.head_count", Kv::U32(128), &["1 wide"]),
        ("attention.head_count_kv", Kv::U32(0), &["head_count_kv` is 0"]),
        ("attention.head_count_kv", Kv::U32(3), &["3 KV heads", "2 heads"]),
        ("attention.head_count_kv", Kv::I32s(vec![1; 11]), &["head_count_kv"]),
        ("rope.dimension_count", Kv::U32(32), &["32", "64"]),
        ("attention.key_length", Kv::U32(128), &["128 wide"]),
        ("attention.value_length", Kv::U32(128), &["value_length", "128"]),
        ("attention.layer_norm_rms_epsilon", Kv::F32(0.0), &["epsilon` is 0"]),
        ("attention.layer_norm_rms_epsilon", Kv::F32(f32::NAN), &["NaN"]),
        ("rope.freq_base", Kv::F32(-1.0), &["-1"]),
        ("rope.freq_base", Kv::F32(f32::INFINITY), &["inf"]),
        ("rope.scaling.type", Kv::Str("ntk".into()), &["`ntk`"]),
        ("rope.scaling.factor", Kv::F32(0.5), &["factor` is 0.5"]),
        ("rope.scaling.factor", Kv::F32(f32::NAN), &["factor` is NaN"]),
        ("rope.scaling.attn_factor", Kv::F32(0.0), &["attn_factor` is 0"]),
        ("rope.scaling.original_context_length", Kv::U32(0), &["original_context_length` is 0"]),
        ("embedding_scale", Kv::F32(12.0), &["embedding_scale` is 12"]),
        ("residual_scale", Kv::F32(0.5), &["residual_scale` is 0.5"]),
        ("logit_scale", Kv::F32(16.0), &["logit_scale` is 16"]),
        ("attention.causal", Kv::Bool(false), &["causal"]),
        ("attention.sliding_window", Kv::U32(512), &["sliding_window"]),
        ("expert_count", Kv::U32(8), &["expert_count"]),
        ("vocab_size", Kv::U32(265), &["265", "264"]),
    ] {
        let mut file = tiny();
        file.set(&arch(key), value);
        assert_error(config(&file), "unsupported-model", facts);
    }
    for key in ["embedding_length", "block_count", "attention.layer_norm_rms_epsilon"] {
        let mut file = tiny();
        file.remove(&arch(key));
        assert_error(config(&file), "unsupported-model", &[&arch(key)]);
    }
    let mut file = tiny();
    file.set("prism.hadamard.block", Kv::U32(64));
    assert_error(config(&file), "unsupported-model", &["`prism.hadamard.block`", "rotated"]);
    let mut file = tiny();
    file.set("split.count", Kv::U32(2));
    assert_error(config(&file), "unsupported-model", &["split"]);
    assert_error(config(&File::empty()), "unsupported-model", &["`general.architecture`"]);
}

#[test]
fn sizes_that_32_bits_cannot_hold_are_refused() {
    let mut file = tiny();
    file.set(&arch("embedding_length"), Kv::U32(32768));
    file.set(&arch("rope.dimension_count"), Kv::U32(16384));
    file.set(&arch("feed_forward_length"), Kv::U32(32768));
    assert_error(config(&file), "unsupported-model", &["32768 x 32768"]);
    let mut other = tiny();
    other.remove("tokenizer.ggml.tokens").set(&arch("vocab_size"), Kv::U32(65536));
    other.set(&arch("embedding_length"), Kv::U32(32768));
    other.set(&arch("rope.dimension_count"), Kv::U32(16384));
    assert_error(config(&other), "unsupported-model", &["an embedding of 65536 x 32768"]);
    file.set(&arch("feed_forward_length"), Kv::U32(128));
    assert_error(config(&file), "unsupported-model", &["query matrix", "32768 x 32768"]);
    file.set(&arch("embedding_length"), Kv::U32(16384));
    file.set(&arch("rope.dimension_count"), Kv::U32(8192));
    file.set(&arch("context_length"), Kv::U32(131_072));
    assert_error(config(&file), "unsupported-model", &["KV cache", "131072 x 8192"]);
}

#[test]
fn other_architectures_are_refused_by_name() {
    for name in ["gpt2", "qwen35", "bitnet-b1.58.x"] {
        let mut file = tiny();
        file.rename(name);
        assert_error(config(&file), "unsupported-model", &[&format!("`{name}`")]);
    }
}

/// The keys that the official 2B-4T file lacks, its wrong values, and its odd order.
#[test]
fn the_official_files_quirks_are_accepted() {
    let plain = load(&tiny()).unwrap().forward(&[1, 2, 3]).unwrap();

    let mut official = tiny();
    official.remove("tokenizer.ggml.pre");
    official.set("tokenizer.chat_template", Kv::Str("BITNETAssistant: {{ nonsense".into()));
    // Blocks in the order of their names: 0, 1, 10, 2, …
    official.tensors.sort_by(|a, b| a.name.cmp(&b.name));
    let order: Vec<usize> = table(&official).unwrap().iter().map(|w| w.block).collect();
    assert!(order.windows(2).any(|pair| pair == [10, 2]), "{order:?}");
    assert_eq!(load(&official).unwrap().forward(&[1, 2, 3]).unwrap(), plain);

    // The first upload has another architecture name, and a copy of the embedding as LM head.
    let mut first = tiny();
    first.rename("bitnet-25");
    let copy = Tensor { name: "output.weight".into(), ..first.tensor("token_embd.weight").clone() };
    first.tensors.push(copy);
    assert_eq!(config(&first).unwrap().architecture.name, "bitnet-25");
    assert!(table(&first).unwrap().iter().all(|w| w.tensor.name != "output.weight"));
    assert_eq!(load(&first).unwrap().forward(&[1, 2, 3]).unwrap(), plain);
}

#[test]
fn the_table_is_complete_and_in_the_files_order() {
    let table = table(&tiny()).unwrap();
    assert_eq!(table.len(), 2 + 11 * N_LAYER as usize);
    assert!(table.is_sorted_by_key(|weight| weight.tensor.offset));
    let down = table.iter().find(|w| (w.role, w.block) == (Role::FfnDown, 10)).unwrap();
    assert_eq!(down.tensor.name, "blk.10.ffn_down.weight");
    assert_eq!((down.rows(), down.columns()), (128, 256));
    assert_eq!(down.tensor.len, 128 * 256 / 4 + 32);
}

#[test]
fn embeddings_may_be_of_three_types() {
    for type_id in [F16, F32, BF16] {
        let mut file = tiny();
        file.tensors.remove(0);
        file.add("token_embd.weight", &[128, 264], type_id, &mut Random(5));
        let logits = load(&file).unwrap().forward(&[1]).unwrap();
        assert!(logits[0].iter().all(|logit| logit.is_finite()));
    }
}

/// Such rows pad the vocabulary. Some files count them in `vocab_size`.
#[test]
fn an_embedding_may_have_more_rows_than_tokens() {
    let expected = load(&tiny()).unwrap().forward(&[1, 2, 3]).unwrap();
    let mut file = tiny();
    let tensor = file.tensor("token_embd.weight");
    tensor.ne[1] = 320;
    tensor.bytes.resize(320 * 128 * 2, 0x7b);
    for vocab_size in [264, 320] {
        file.set(&arch("vocab_size"), Kv::U32(vocab_size));
        let mut model = load(&file).unwrap();
        assert_eq!(model.config.n_vocab, 264);
        assert_eq!(model.forward(&[1, 2, 3]).unwrap(), expected);
    }
}

#[test]
fn floats_of_16_bits_have_the_values_of_another_implementation() {
    for (name, ty) in [("F16", TensorType::F16), ("BF16", TensorType::Bf16)] {
        let bytes = std::fs::read(path(&format!("tests/data/quant/{name}.bin"))).unwrap();
        let tensor = TensorInfo {
            name: "token_embd.weight".into(),
            ne: vec![512],
            ty,
            offset: 0,
            len: bytes.len() as u64,
        };
        let weight = Weight { role: Role::TokenEmbd, block: 0, tensor };
        let expected = floats(&format!("tests/data/quant/{name}.f32"));
        assert_eq!(expected.len(), 512);
        assert_eq!(weight.floats(&bytes).unwrap(), expected, "{name}");
    }
}

#[test]
fn missing_tensors_are_named() {
    for name in ["token_embd.weight", "output_norm.weight", "blk.10.attn_sub_norm.weight"] {
        let mut file = tiny();
        file.tensors.retain(|tensor| tensor.name != name);
        match table(&file) {
            Err(Error::MissingTensor { name: missing }) => assert_eq!(missing, name),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn misshapen_tensors_are_named() {
    for (name, ne, type_id, facts) in [
        ("blk.3.attn_k.weight", &[128, 128][..], I2_S, &["I2_S [128, 128]", "[128, 64]"][..]),
        ("blk.3.ffn_down.weight", &[128, 256], I2_S, &["[128, 256]", "[256, 128]"]),
        ("blk.3.attn_q.weight", &[128, 128], F16, &["F16 [128, 128]", "I2_S or"]),
        ("blk.3.attn_norm.weight", &[64], F32, &["F32 [64]", "[128]"]),
        ("blk.3.attn_norm.weight", &[128], I2_S, &["I2_S [128]", "F32"]),
        (
            "token_embd.weight",
            &[128, 263],
            F16,
            &["[128, 263]", "[128, 264]", "F16 or F32 or BF16"],
        ),
        ("token_embd.weight", &[128, 264, 1], F16, &["[128, 264, 1]"]),
    ] {
        let mut file = tiny();
        let index = file.tensors.iter().position(|tensor| tensor.name == name).unwrap();
        replace(&mut file, index, ne, type_id);
        let facts = [&[name], facts].concat();
        assert_error(table(&file), "tensor-shape", &facts);
    }
}

#[test]
fn types_of_other_cpus_are_explained() {
    let mut file = tiny();
    file.tensor("blk.0.attn_q.weight").type_id = 38;
    assert_error(
        table(&file),
        "unsupported-model",
        &["`blk.0.attn_q.weight`", "TL1", "use the I2_S file"],
    );
}

/// A model's matrices are all of I2_S or all of blocks, and those of a stack are of one type.
#[test]
fn mixed_matrices_are_refused() {
    let retyped = |mut file: File, of: &str, type_id: u32| {
        for index in 0..file.tensors.len() {
            let Tensor { name, ne, .. } = file.tensors[index].clone();
            if ne.len() == 2 && name.contains(of) {
                replace(&mut file, index, &ne, type_id);
            }
        }
        file
    };
    let blocks = retyped(retyped(tiny(), ".attn", Q4_0), ".ffn", Q1_0);
    table(&blocks).unwrap();
    let facts = ["blk.0.attn_k.weight", "Q1_0", "Q4_0"];
    assert_error(table(&retyped(blocks, "blk.0.attn_k", Q1_0)), "tensor-shape", &facts);
    let facts = ["ffn_down.weight`", "Q4_0", "I2_S beside"];
    assert_error(table(&retyped(tiny(), ".ffn_down", Q4_0)), "unsupported-model", &facts);
}

#[test]
fn tensors_that_are_not_used_are_refused() {
    for name in ["blk.0.attn_q.bias", "blk.0.attn_q.scale", "rope_freqs.weight", "blk.11.x.weight"]
    {
        let mut file = tiny();
        file.add(name, &[32], F32, &mut Random(4));
        assert_error(table(&file), "unsupported-model", &[&format!("`{name}`")]);
    }
    for (model, others) in [
        ("bitnet-i2_s", &["rope_freqs", "blk.0.attn_q_norm", "rope_factors_short"][..]),
        ("llama-tq2_0", &["blk.0.attn_q_norm", "blk.0.attn_sub_norm", "rope_factors_long"]),
        ("minicpm-tq2_0", &["rope_freqs", "blk.0.attn_k_norm", "blk.0.ffn_sub_norm"]),
        ("qwen3-q2_0", &["rope_freqs", "blk.0.ffn_sub_norm", "rope_factors_short"]),
    ] {
        let names = others.iter().map(|name| format!("{name}.weight"));
        for name in names.chain(["blk.0.attn_q.bias".into()]) {
            let mut file = File::family(model);
            file.add(&name, &[32], F32, &mut Random(4));
            assert_error(table(&file), "unsupported-model", &[&format!("`{name}`")]);
        }
    }
}

/// Every tensor of every family is missing, then has a row or an element too few, then is of each
/// type that it may not have.
#[test]
fn every_tensor_of_every_family_is_checked() {
    const OF_VECTORS: [u32; 2] = [Q8_0, Q2_0];
    const OF_MATRICES: [u32; 6] = [F32, F16, BF16, Q8_0, Q4_K, Q6_K];
    let (mut seen, mut names) = (BTreeSet::new(), BTreeSet::new());
    // Without this norm its file is one of another architecture.
    let embedding = File::of("tests/data/embed/bitnet-embd-i2_s.gguf");
    let tells = "blk.0.attn_q_norm_in.weight";
    for whole in OF_EACH_ARCHITECTURE.map(File::family).into_iter().chain([embedding]) {
        table(&whole).unwrap();
        names.insert(config(&whole).unwrap().architecture.name);
        for (index, Tensor { name, ne, type_id, .. }) in whole.tensors.iter().enumerate() {
            // Without an LM head, the embedding is it.
            if name != "output.weight" && name != tells {
                let mut file = whole.clone();
                file.tensors.remove(index);
                assert_error(table(&file), "missing-tensor", &[name]);
            }
            let changed = |ne: &[u64], type_id: u32| {
                let mut file = whole.clone();
                replace(&mut file, index, ne, type_id);
                table(&file)
            };
            let mut short = ne.clone();
            *short.last_mut().unwrap() -= 1;
            let one_dimensional = ne.len() == 1;
            let type_id = if one_dimensional { F32 } else { *type_id };
            assert_error(changed(&short, type_id), "tensor-shape", &[name, &format!("{short:?}")]);

            let wrong = match &**name {
                _ if one_dimensional => &OF_VECTORS[..],
                "token_embd.weight" | "output.weight" => &[I2_S],
                _ => &OF_MATRICES,
            };
            for &type_id in wrong {
                // A tensor whose rows are no whole blocks is none of this type.
                let block = TABLE.iter().find(|row| row.ty.id() == type_id);
                let block = block.map_or(if type_id == I2_S { 128 } else { 1 }, |b| b.elements);
                if !ne[0].is_multiple_of(block as u64) {
                    continue;
                }
                assert_error(changed(ne, type_id), "tensor-shape", &[name, &format!("{ne:?}")]);
                seen.insert((one_dimensional, type_id));
            }
        }
    }
    // Another name of `bitnet-b1.58`.
    names.insert("bitnet-25");
    assert_eq!(names.len(), ARCHITECTURES.len(), "{names:?}");
    assert_eq!(seen.len(), OF_VECTORS.len() + OF_MATRICES.len() + 1, "{seen:?}");
}

/// llama's divisors of RoPE's frequencies are the one tensor that none of the files has.
#[test]
fn the_divisors_of_llama_are_checked() {
    let with = |ne: &[u64], type_id| {
        let mut file = File::family("llama-tq2_0");
        file.add("rope_freqs.weight", ne, type_id, &mut Random(4));
        table(&file)
    };
    let head_dim = Config::from_gguf(&read(&File::family("llama-tq2_0").build()).unwrap());
    let pairs = head_dim.unwrap().head_dim as u64 / 2;
    with(&[pairs], F32).unwrap();
    for (ne, type_id) in [(pairs - 1, F32), (2 * pairs, F32), (pairs, Q8_0)] {
        let facts = ["`rope_freqs.weight`", &*format!("needs F16 or F32 or BF16 [{pairs}]")];
        assert_error(with(&[ne], type_id), "tensor-shape", &facts);
    }
}

#[test]
fn every_familys_keys_are_required_and_in_range() {
    let common = [
        "attention.head_count",
        "attention.layer_norm_rms_epsilon",
        "block_count",
        "context_length",
        "embedding_length",
        "feed_forward_length",
    ];
    let scales = ["embedding_scale", "logit_scale", "residual_scale"];
    for model in OF_EACH_ARCHITECTURE {
        let whole = File::family(model);
        let name = config(&whole).unwrap().architecture.name;
        let scales = if name == "minicpm" { &scales[..] } else { &[] };
        for key in common.iter().chain(scales) {
            let key = format!("{name}.{key}");
            let mut file = whole.clone();
            file.remove(&key);
            assert_error(config(&file), "unsupported-model", &[&key]);
            file.set(&key, Kv::Str("x".into()));
            assert_error(config(&file), "unsupported-model", &[&key]);
        }
        for key in scales {
            let key = format!("{name}.{key}");
            for bad in [0.0, -1.0, f32::NAN, f32::INFINITY] {
                let mut file = whole.clone();
                file.set(&key, Kv::F32(bad));
                assert_error(config(&file), "unsupported-model", &[&key, &bad.to_string()]);
            }
        }
    }
}

/// The scaling of RoPE that a file says, after these changes to its keys.
fn scaling(model: &str, keys: &[(&str, Kv)]) -> Result<RopeScaling> {
    let mut file = File::family(model);
    let (architecture, _) = model.split_once('-').unwrap();
    for (key, value) in keys {
        file.set(&format!("{architecture}.rope.{key}"), value.clone());
    }
    config(&file).map(|config| config.rope.scaling)
}

#[test]
fn frequencies_are_divided_by_the_factor_of_either_key() {
    let kind = |kind: &str| ("scaling.type", Kv::Str(kind.into()));
    let factor = |factor| ("scaling.factor", Kv::F32(factor));
    let old = |factor| ("scale_linear", Kv::F32(factor));
    for (keys, expected) in [
        (&[kind("linear"), factor(4.0)][..], 4.0),
        (&[factor(2.5)], 2.5),
        (&[old(8.0)], 8.0),
        (&[factor(2.0), old(8.0)], 2.0),
        // 0 says that there is no factor.
        (&[factor(0.0)], 1.0),
        (&[old(0.0)], 1.0),
        (&[kind("none"), factor(4.0)], 1.0),
        (&[], 1.0),
    ] {
        let found = scaling("llama-tq2_0", keys).unwrap();
        assert_eq!(found, RopeScaling::Linear { factor: expected }, "{keys:?}");
    }
    for bad in [-1.0, 0.999, f32::NAN, f32::INFINITY] {
        for (key, value) in [factor(bad), old(bad)] {
            let facts = [&*format!("llama.rope.{key}"), &bad.to_string()];
            assert_error(scaling("llama-tq2_0", &[(key, value)]), "unsupported-model", &facts);
        }
    }
}

#[test]
fn settings_of_yarn_that_would_compute_something_else_are_refused() {
    let model = "qwen3-yarn-q2_0";
    let usual = scaling(model, &[]).unwrap();
    assert!(matches!(usual, RopeScaling::Yarn { .. }), "{usual:?}");
    let refused = |key: &str, bad: f32| {
        let facts = [&*format!("`qwen3.rope.{key}`"), &bad.to_string()];
        assert_error(scaling(model, &[(key, Kv::F32(bad))]), "unsupported-model", &facts);
    };
    for (key, neutral) in [
        ("scaling.yarn_ext_factor", 1.0),
        ("scaling.yarn_attn_factor", 1.0),
        ("scaling.yarn_beta_fast", 32.0),
        ("scaling.yarn_beta_slow", 1.0),
        ("scaling.yarn_log_multiplier", 0.0),
    ] {
        assert_eq!(scaling(model, &[(key, Kv::F32(neutral))]).unwrap(), usual, "{key}");
        for bad in [neutral + 0.5, -1.0, f32::NAN, f32::INFINITY] {
            refused(key, bad);
        }
    }
    // The ramp divides by the logarithm of the base.
    for base in [1.0, 0.5] {
        refused("freq_base", base);
    }
    for factor in [0.5, -4.0, f32::NAN, f32::INFINITY] {
        refused("scaling.factor", factor);
    }
    let original = ("scaling.original_context_length", Kv::U32(0));
    let facts = ["original_context_length` is 0"];
    assert_error(scaling(model, &[original]), "unsupported-model", &facts);
}

#[test]
fn longrope_has_both_tensors_of_factors_and_they_have_longrope() {
    let factors = ["rope_factors_short.weight", "rope_factors_long.weight"];
    let key = "minicpm.rope.scaling.type";
    let without = |names: &[&str]| {
        let mut file = File::family("minicpm-tq2_0");
        file.tensors.retain(|tensor| !names.contains(&&*tensor.name));
        file
    };
    assert_error(table(&without(&factors)), "missing-tensor", &factors[..1]);
    for kind in [Some("linear"), Some("none"), Some("yarn"), None] {
        let other = |mut file: File| {
            match kind {
                Some(kind) => file.set(key, Kv::Str(kind.into())),
                None => file.remove(key),
            };
            table(&file)
        };
        assert_error(other(without(&[])), "unsupported-model", &["`rope.scaling.type`"]);
        for name in factors {
            assert_error(other(without(&[name])), "missing-tensor", &[name]);
        }
        other(without(&factors)).unwrap();
    }
}

/// Each divides a frequency, whichever of two tensors the context takes.
#[test]
fn divisors_of_frequencies_are_positive_numbers() {
    for (model, name) in [
        ("llama-tq2_0", "rope_freqs.weight"),
        ("minicpm-tq2_0", "rope_factors_short.weight"),
        ("minicpm-tq2_0", "rope_factors_long.weight"),
    ] {
        let mut file = File::family(model);
        if model == "llama-tq2_0" {
            file.add(name, &[32], F32, &mut Random(4));
        }
        load(&file).unwrap();
        for bad in [0.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            file.tensor(name).bytes[12..16].copy_from_slice(&bad.to_le_bytes());
            assert_error(load(&file), "bad-gguf", &[&format!("element 3 of tensor `{name}`")]);
        }
    }
}

#[test]
fn values_that_are_no_numbers_are_refused() {
    let mut file = tiny();
    file.tensor("blk.4.ffn_up.weight").bytes[777] |= 0b0011_0000;
    assert_error(load(&file), "bad-gguf", &["`blk.4.ffn_up.weight`", "code 3"]);

    for bad in [f32::NAN, f32::INFINITY] {
        let mut file = tiny();
        let bytes = &mut file.tensor("blk.4.ffn_up.weight").bytes;
        let at = bytes.len() - 32;
        bytes[at..at + 4].copy_from_slice(&bad.to_le_bytes());
        assert_error(load(&file), "bad-gguf", &["`blk.4.ffn_up.weight`", "scale"]);

        let mut file = tiny();
        file.tensor("blk.4.ffn_norm.weight").bytes[8..12].copy_from_slice(&bad.to_le_bytes());
        assert_error(load(&file), "bad-gguf", &["`blk.4.ffn_norm.weight`", "element 2"]);
    }
}

/// Each matrix of a block has its norm, in all blocks or in none.
#[test]
fn norms_of_inputs_are_all_there_or_none() {
    let whole = File::of("tests/data/embed/bitnet-embd-i2_s.gguf");
    assert!(config(&whole).unwrap().architecture.norms_inputs());
    let norms = |file: &File| -> Vec<String> {
        let names = file.tensors.iter().map(|tensor| tensor.name.clone());
        names.filter(|name| name.contains("_norm_in")).collect()
    };
    assert_eq!(norms(&whole).len(), 14);
    for name in norms(&whole) {
        let mut file = whole.clone();
        file.tensors.retain(|tensor| tensor.name != name);
        // The first one says that there are others.
        match &*name {
            "blk.0.attn_q_norm_in.weight" => {
                assert_error(table(&file), "unsupported-model", &["_norm_in.weight"]);
            }
            _ => assert_error(table(&file), "missing-tensor", &[&name]),
        }
    }
    let mut none = whole.clone();
    none.tensors.retain(|tensor| !tensor.name.contains("_norm_in"));
    table(&none).unwrap();
    assert!(!config(&none).unwrap().architecture.norms_inputs());
}

#[test]
fn a_pooling_that_is_unknown_is_refused() {
    let mut file = File::of("tests/data/embed/bitnet-embd-i2_s.gguf");
    for (value, pooling) in [
        (Kv::I32(-1), None),
        (Kv::U32(0), None),
        (Kv::U32(1), Some(Pooling::Mean)),
        (Kv::I32(2), Some(Pooling::Cls)),
        (Kv::U32(3), Some(Pooling::Last)),
    ] {
        file.set("qwen3.pooling_type", value);
        assert_eq!(config(&file).unwrap().pooling, pooling);
    }
    for value in [Kv::U32(4), Kv::I32(-2), Kv::Str("mean".into())] {
        file.set("qwen3.pooling_type", value);
        assert_error(config(&file), "unsupported-model", &["`qwen3.pooling_type`"]);
    }
}

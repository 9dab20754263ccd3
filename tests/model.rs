//! The sizes and tensors of a model: the quirks of real files, and what is refused.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and tell")]

mod support;

use support::{
    BF16, F16, F32, File, I2_S, Kv, N_LAYER, Random, Tensor, assert_error, floats, path, read, tiny,
};
use ternlight::gguf::{TensorInfo, TensorType};
use ternlight::model::{Config, Role, Weight, weights};
use ternlight::native::block_on;
use ternlight::reference::Reference;
use ternlight::source::Reader;
use ternlight::{Error, Result};

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

/// They pad the vocabulary. Some files count them in `vocab_size`.
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
        file.add(name, ne, type_id, &mut Random(3));
        file.tensors.swap_remove(index);
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
    /// The numbers of two types, and the weights in their blocks of 18 bytes.
    const Q4_0: (u32, usize) = (2, 32);
    const Q1_0: (u32, usize) = (41, 128);
    // Blocks of zeros are valid.
    let retyped = |mut file: File, of: &str, (type_id, block): (u32, usize)| {
        for tensor in file.tensors.iter_mut().filter(|t| t.ne.len() == 2 && t.name.contains(of)) {
            let elements = tensor.ne.iter().product::<u64>() as usize;
            (tensor.type_id, tensor.bytes) = (type_id, vec![0; elements / block * 18]);
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

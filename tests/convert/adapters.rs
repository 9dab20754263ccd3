//! Folders of PEFT become adapters.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use tritloom::gguf::Value as Metadata;
use tritloom::model::Config;

use crate::support::path;
use crate::{Folder, Tensors, decoded, header, safetensors, values};

/// The names of matrices, in GGUF and in the folder.
const MATRICES: [(&str, &str); 7] = [
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

const QWEN3: &str = "tests/data/models/qwen3-q2_0.gguf";
const LLAMA: &str = "tests/data/models/llama-tq2_0.gguf";

/// As PEFT writes it for a rank and an alpha, with the keys that change nothing.
fn config(rank: usize, alpha: f64) -> Value {
    json!({
        "alora_invocation_tokens": null, "alpha_pattern": {}, "auto_mapping": null,
        "base_model_name_or_path": "a/model", "bias": "none", "fan_in_fan_out": false,
        "inference_mode": true, "init_lora_weights": true, "layers_pattern": null,
        "layers_to_transform": null, "loftq_config": {}, "lora_alpha": alpha, "lora_bias": false,
        "lora_dropout": 0.05, "modules_to_save": null, "peft_type": "LORA", "r": rank,
        "rank_pattern": {}, "revision": null, "target_modules": ["q_proj"], "task_type": "CAUSAL_LM",
        "use_dora": false, "use_rslora": false
    })
}

fn folder(test: &str, config: &Value, tensors: &Tensors) -> Folder {
    let path = path("target/tmp/convert").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("adapter_config.json"), config.to_string()).unwrap();
    fs::write(path.join("adapter_model.safetensors"), safetensors(tensors)).unwrap();
    Folder(path)
}

fn tensor(shape: [usize; 2], values: impl Iterator<Item = f32>) -> (String, Vec<usize>, Vec<u8>) {
    let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
    assert_eq!(bytes.len(), 4 * shape[0] * shape[1]);
    ("F32".into(), shape.into(), bytes)
}

/// A pair of rank 2 on `module`, with `n_in` columns and `n_out` rows.
fn pair(module: &str, n_in: usize, n_out: usize) -> Tensors {
    let name = |half: &str| format!("base_model.model.model.{module}.lora_{half}.weight");
    let a = tensor([2, n_in], (0..2 * n_in).map(|i| i as f32 / 64.0));
    let b = tensor([n_out, 2], (0..2 * n_out).map(|i| i as f32 / 64.0));
    [(name("A"), a), (name("B"), b)].into()
}

fn base(file: &str) -> [String; 2] {
    ["--base".into(), path(file).display().to_string()]
}

fn converted(folder: &Folder, file: &str) -> std::path::PathBuf {
    folder.converted(&base(file).each_ref().map(String::as_str))
}

#[track_caller]
fn refused(folder: &Folder, file: &str, code: &str, facts: &[&str]) {
    folder.refused(&base(file).each_ref().map(String::as_str), code, facts);
}

/// The values of an adapter that another program wrote, under PEFT's names, come out as they were.
#[test]
fn a_folder_of_peft_becomes_the_adapter_of_its_values() {
    let original = path("tests/data/lora/qwen3-r8.gguf");
    let gguf = header(&original);
    let mut tensors = Tensors::new();
    for (name, (_, values)) in decoded(&original) {
        let shape: Vec<usize> =
            gguf.tensor(&name).unwrap().ne.iter().rev().map(|&n| n as usize).collect();
        let (block, rest) = name.strip_prefix("blk.").unwrap().split_once('.').unwrap();
        let (role, half) = rest.split_once(".weight.lora_").unwrap();
        let (_, module) = MATRICES.iter().find(|(known, _)| *known == role).unwrap();
        let half = half.to_uppercase();
        let name = format!("base_model.model.model.layers.{block}.{module}.lora_{half}.weight");
        tensors.insert(name, tensor([shape[0], shape[1]], values.into_iter()));
    }
    let Some(Metadata::F32(alpha)) = gguf.metadata.get("adapter.lora.alpha") else { panic!() };
    let out = converted(&folder("peft", &config(8, (*alpha).into()), &tensors), QWEN3);
    let only_values = |all: BTreeMap<String, (_, Vec<f32>)>| -> BTreeMap<String, Vec<f32>> {
        all.into_iter().map(|(name, (_, values))| (name, values)).collect()
    };
    assert_eq!(only_values(decoded(&out)), only_values(decoded(&original)));
    let written = header(&out);
    for key in ["general.type", "general.architecture", "adapter.type", "adapter.lora.alpha"] {
        assert_eq!(written.metadata.get(key), gguf.metadata.get(key), "{key}");
    }
}

/// In a folder, RoPE rotates the rows `i` and `i + head_dim / 2` of a head together. In a file of `llama`
/// these are neighbours. The embedding's first half is turned.
#[test]
fn heads_are_permuted_and_the_embedding_is_turned() {
    let config_of_model = Config::from_gguf(&header(&path(LLAMA))).unwrap();
    let Config { n_embd, head_dim, n_vocab, .. } = config_of_model;
    let n_q = config_of_model.n_embd_q();
    let mut tensors = pair("layers.1.self_attn.q_proj", n_embd, n_q);
    tensors.extend(pair("layers.1.self_attn.v_proj", n_embd, config_of_model.n_embd_kv()));
    let embedding =
        |half: &str| format!("base_model.model.model.embed_tokens.lora_embedding_{half}");
    let of_a = |i: usize| (i % n_vocab) as f32 + (i / n_vocab * 1000) as f32;
    tensors.insert(embedding("A"), tensor([2, n_vocab], (0..2 * n_vocab).map(of_a)));
    tensors.insert(embedding("B"), tensor([n_embd, 2], (0..2 * n_embd).map(|i| i as f32)));
    let out = decoded(&converted(&folder("peft-heads", &config(2, 4.0), &tensors), LLAMA));
    let found = |name: &str| out[name].1.clone();
    let original = |module: &str| {
        let (dtype, _, bytes) =
            &tensors[&format!("base_model.model.model.layers.1.{module}.lora_B.weight")];
        values(dtype, bytes)
    };
    let (q, in_folder) = (found("blk.1.attn_q.weight.lora_b"), original("self_attn.q_proj"));
    for row in 0..n_q {
        let (head, within) = (row / head_dim * head_dim, row % head_dim);
        let of_folder = head + within / 2 + within % 2 * head_dim / 2;
        assert_eq!(q[2 * row..][..2], in_folder[2 * of_folder..][..2], "row {row}");
    }
    assert_eq!(found("blk.1.attn_v.weight.lora_b"), original("self_attn.v_proj"));
    let turned: Vec<f32> =
        (0..n_vocab).flat_map(|token| [token as f32, token as f32 + 1000.0]).collect();
    assert_eq!(found("token_embd.weight.lora_a"), turned);
}

/// rsLoRA divides by the root of the rank.
#[test]
fn the_factor_of_rslora_becomes_alpha() {
    let n_embd = Config::from_gguf(&header(&path(LLAMA))).unwrap().n_embd;
    let mut config = config(2, 4.0);
    config["use_rslora"] = json!(true);
    let tensors = pair("layers.0.self_attn.o_proj", n_embd, n_embd);
    let out = header(&converted(&folder("peft-root", &config, &tensors), LLAMA));
    let alpha = (4.0 * 2f64.sqrt()) as f32;
    assert_eq!(out.metadata.get("adapter.lora.alpha"), Some(&Metadata::F32(alpha)));
}

#[test]
fn what_gguf_cannot_say_is_refused() {
    let n_embd = Config::from_gguf(&header(&path(LLAMA))).unwrap().n_embd;
    let tensors = pair("layers.0.self_attn.o_proj", n_embd, n_embd);
    let good = folder("peft-refused", &config(2, 4.0), &tensors);
    good.refused(&[], "bad-option", &["base"]);
    for (key, value) in [
        ("use_dora", json!(true)),
        ("bias", json!("all")),
        ("alpha_pattern", json!({"q_proj": 3})),
        ("modules_to_save", json!(["lm_head"])),
        ("peft_type", json!("IA3")),
        ("init_lora_weights", json!("pissa")),
        ("lora_alpha", json!(0)),
        ("lora_alpha", json!("8")),
        ("use_something_new", json!(true)),
    ] {
        let mut config = config(2, 4.0);
        config[key] = value;
        refused(&folder("peft-refused", &config, &tensors), LLAMA, "unsupported-model", &[key]);
    }
    let with = |name: &str, like: &str| {
        let mut more = tensors.clone();
        let value =
            more[&format!("base_model.model.model.layers.0.self_attn.o_proj.{like}")].clone();
        more.insert(format!("base_model.model.{name}"), value);
        folder("peft-refused", &config(2, 4.0), &more)
    };
    for name in ["model.layers.0.self_attn.o_proj.lora_magnitude_vector", "lm_head.weight"] {
        refused(&with(name, "lora_A.weight"), LLAMA, "unsupported-model", &[name]);
    }
    let missing = with("model.layers.0.mlp.up_proj.lora_A.weight", "lora_A.weight");
    refused(&missing, LLAMA, "bad-adapter", &["blk.0.ffn_up.weight", "lora_b"]);
    let heads = with("model.layers.0.self_attn.q_proj.lora_B.weight", "lora_A.weight");
    refused(&heads, LLAMA, "tensor-shape", &["q_proj", "heads"]);
    let narrow =
        folder("peft-refused", &config(2, 4.0), &pair("layers.0.mlp.down_proj", 3, n_embd));
    refused(&narrow, LLAMA, "bad-adapter", &["blk.0.ffn_down.weight.lora_a"]);
    let deep = folder("peft-refused", &config(2, 4.0), &pair("layers.9.mlp.up_proj", n_embd, 3));
    refused(&deep, LLAMA, "bad-adapter", &["blk.9.ffn_up.weight"]);
    let mut infinite = pair("layers.0.self_attn.o_proj", n_embd, n_embd);
    for (_, _, bytes) in infinite.values_mut() {
        bytes[..4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    }
    let infinite = folder("peft-refused", &config(2, 4.0), &infinite);
    refused(&infinite, LLAMA, "unsupported-model", &["o_proj", "not finite"]);
}

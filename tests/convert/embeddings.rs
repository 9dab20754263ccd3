//! A folder of BitNet's embedding model becomes a file with the vectors of another program.

use std::fs;

use serde_json::json;
use tritloom::gguf::TensorType;
use tritloom::model::Config;
use tritloom::native::{FileSource, block_on};
use tritloom::reference::OnReference;
use tritloom::session::{EmbedOptions, EmbedText, LoadOptions, Session};
use tritloom::source::Reader;
use tritloom::ternary::{self, Layout, TAIL};

use crate::support::{self, File, floats};
use crate::{Folder, Tensors, header};

/// The names of a layer's tensors, in the file and in the folder.
const OF_LAYER: [(&str, &str); 18] = [
    ("attn_norm", "input_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("attn_q_norm", "self_attn.q_norm"),
    ("attn_k_norm", "self_attn.k_norm"),
    ("attn_q_norm_in", "self_attn.q_proj.norm"),
    ("attn_k_norm_in", "self_attn.k_proj.norm"),
    ("attn_v_norm_in", "self_attn.v_proj.norm"),
    ("attn_output_norm_in", "self_attn.o_proj.norm"),
    ("ffn_norm", "post_attention_layernorm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
    ("ffn_gate_norm_in", "mlp.gate_proj.norm"),
    ("ffn_up_norm_in", "mlp.up_proj.norm"),
    ("ffn_down_norm_in", "mlp.down_proj.norm"),
];

fn name_in_folder(name: &str) -> String {
    let name = name.strip_suffix(".weight").unwrap();
    match name.strip_prefix("blk.") {
        None if name == "token_embd" => "embed_tokens.weight".into(),
        None => "norm.weight".into(),
        Some(rest) => {
            let (block, role) = rest.split_once('.').unwrap();
            let (_, found) = OF_LAYER.iter().find(|(known, _)| *known == role).unwrap();
            format!("layers.{block}.{found}.weight")
        }
    }
}

/// Weights before they are rounded: their mean size is `scale`, and they round to `codes`.
fn masters(codes: &[i8], scale: f32) -> Vec<f32> {
    let share = codes.iter().filter(|code| **code != 0).count() as f32 / codes.len() as f32;
    // Zeros are a quarter of the scale, of both signs.
    let large = (scale - (1.0 - share) * 0.25 * scale) / share;
    let value = |(i, &code): (usize, &i8)| match code {
        0 if i % 2 == 0 => 0.25 * scale,
        0 => -0.25 * scale,
        code => f32::from(code) * large,
    };
    codes.iter().enumerate().map(value).collect()
}

/// The model of the test data as its authors would publish it: BitNet's model without the word `model.`.
fn folder(test: &str) -> Folder {
    let folder = Folder::new(test, "qwen3");
    let file = File::of("tests/data/embed/bitnet-embd-i2_s.gguf");
    let mut tensors = Tensors::new();
    for tensor in &file.tensors {
        let shape: Vec<usize> = tensor.ne.iter().rev().map(|&n| n as usize).collect();
        let (dtype, bytes) = if tensor.type_id == TensorType::I2S.id() {
            let (codes, tail) = tensor.bytes.split_at(tensor.bytes.len() - TAIL);
            let scale = f32::from_le_bytes(tail[..4].try_into().unwrap());
            let values = masters(&ternary::unpack(codes, Layout::X86), scale);
            ("F32", values.iter().flat_map(|value| value.to_le_bytes()).collect())
        } else {
            ("F16", tensor.bytes.clone())
        };
        tensors.insert(name_in_folder(&tensor.name), (dtype.into(), shape, bytes));
    }
    folder.edit_tensors(|all| *all = tensors);
    folder.edit_json("config.json", |config| {
        let config = config.as_object_mut().unwrap();
        for (key, value) in [
            ("architectures", json!(["Qwen3Model"])),
            ("head_dim", json!(128)),
            ("hidden_size", json!(256)),
            ("intermediate_size", json!(512)),
            ("num_attention_heads", json!(4)),
            ("num_key_value_heads", json!(2)),
            ("rope_scaling", json!(null)),
            ("rope_theta", json!(1_000_000)),
            ("vocab_size", json!(291)),
        ] {
            config.insert(key.into(), value);
        }
    });
    folder
}

fn pooling(folder: &Folder, modes: serde_json::Value) {
    let modules = json!([
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
    ]);
    fs::write(folder.0.join("modules.json"), modules.to_string()).unwrap();
    fs::create_dir_all(folder.0.join("1_Pooling")).unwrap();
    fs::write(folder.0.join("1_Pooling/config.json"), modes.to_string()).unwrap();
}

#[test]
fn a_folder_of_bitnets_embedding_model_has_its_vectors() {
    let folder = folder("embeddings");
    pooling(
        &folder,
        json!({
            "word_embedding_dimension": 256, "pooling_mode_mean_tokens": false,
            "pooling_mode_lasttoken": true
        }),
    );
    let out = folder.converted(&[]);
    let gguf = header(&out);
    assert!(Config::from_gguf(&gguf).unwrap().architecture.norms_inputs());
    let metadata = &gguf.metadata;
    assert_eq!(metadata.boolean("tokenizer.ggml.add_eos_token").unwrap(), Some(true));
    let eos = metadata.integer("tokenizer.ggml.eos_token_id").unwrap().unwrap();
    let tokens = metadata.strings("tokenizer.ggml.tokens").unwrap().unwrap();
    assert_eq!(tokens.get(eos as usize).unwrap(), b"<|endoftext|>");

    let mut reader = Reader::new(FileSource::open(&out).unwrap());
    let load = LoadOptions::default();
    let mut session =
        block_on(Session::load(OnReference::default(), &mut reader, &load, &mut |_| {})).unwrap();
    assert_eq!(session.info().pooling, Some("last"));
    let sequences: Vec<Vec<u32>> =
        serde_json::from_value(support::json("tests/data/embed/tokens.json")["sequences"].clone())
            .unwrap();
    let texts: Vec<EmbedText> = sequences.into_iter().map(EmbedText::Ids).collect();
    let options = EmbedOptions::default();
    let found = block_on(session.embed(&texts, &options, &mut |_| {})).unwrap().vectors.concat();
    let expected = floats("tests/data/embed/bitnet-embd-i2_s.last.int8.f32");
    for (found, expected) in found.iter().zip(&expected) {
        // The scale of a matrix comes out of a mean, and a rounding may tip.
        assert!((found - expected).abs() < 2e-3, "{found} {expected}");
    }
}

#[test]
fn the_pooling_is_the_folders_or_that_of_the_option() {
    let folder = folder("pooling");
    let found =
        |args: &[&str]| Config::from_gguf(&header(&folder.converted(args))).unwrap().pooling;
    assert_eq!(found(&[]).map(|pooling| pooling.name()), None);
    assert_eq!(found(&["--pooling", "mean"]).map(|pooling| pooling.name()), Some("mean"));
    for (key, name) in [("mean_tokens", "mean"), ("cls_token", "cls"), ("lasttoken", "last")] {
        pooling(&folder, json!({format!("pooling_mode_{key}"): true}));
        assert_eq!(found(&[]).map(|pooling| pooling.name()), Some(name));
        assert_eq!(found(&["--pooling", "cls"]).map(|pooling| pooling.name()), Some("cls"));
    }
    // Newer folders have one text.
    for (mode, name) in [("mean", "mean"), ("cls", "cls"), ("lasttoken", "last")] {
        pooling(&folder, json!({"pooling_mode": mode, "include_prompt": true}));
        assert_eq!(found(&[]).map(|pooling| pooling.name()), Some(name));
    }
    for (mode, said) in [(json!("max"), "\"max\""), (json!(["mean", "cls"]), "[\"mean\",\"cls\"]")]
    {
        pooling(&folder, json!({"pooling_mode": mode}));
        folder.refused(&[], "unsupported-model", &["pooling", said]);
    }
    pooling(&folder, json!({"pooling_mode_max_tokens": true}));
    folder.refused(&[], "unsupported-model", &["pooling_mode_max_tokens"]);
    pooling(&folder, json!({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true}));
    folder.refused(&[], "unsupported-model", &["pooling_mode_cls_token"]);
    let elsewhere = json!([{"path": "../other", "type": "x.Pooling"}]).to_string();
    fs::write(folder.0.join("modules.json"), elsewhere).unwrap();
    folder.refused(&[], "unsupported-model", &["../other"]);
    // The folder itself, whose config.json says nothing of it.
    let here = json!([{"path": "", "type": "x.Pooling"}]).to_string();
    fs::write(folder.0.join("modules.json"), here).unwrap();
    assert_eq!(found(&[]).map(|pooling| pooling.name()), None);
}

#[test]
fn a_norm_that_is_missing_is_named() {
    let folder = folder("missing-norm");
    folder.edit_tensors(|tensors| {
        tensors.remove("layers.1.mlp.up_proj.norm.weight");
    });
    folder.refused(&[], "missing-tensor", &["layers.1.mlp.up_proj.norm.weight"]);
}

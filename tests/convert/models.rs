//! Converted files: their logits, and their metadata.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::json;
use tritloom::gguf::{Gguf, TensorType};
use tritloom::model::{Config, RopeScaling};
use tritloom::native::{FileSource, block_on};
use tritloom::reference::Reference;
use tritloom::source::Reader;
use tritloom::tokenizer::Tokenizer;

use crate::support::families::distance;
use crate::support::{self, floats};
use crate::{Folder, Tensors, decoded, header, pack, read_tensors, ternarised, values};

fn tokens() -> Vec<u32> {
    serde_json::from_value(support::json("tests/data/convert/tokens.json")).unwrap()
}

/// Each folder computes what transformers computes from it.
///
/// The two differ by the roundings of f32. With these weights no activation rounds to another
/// integer because of them.
#[test]
fn converted_models_compute_what_transformers_computes() {
    let limit = 1e-5;
    for (name, args, expected) in [
        ("bitnet", &[][..], "bitnet"),
        ("llama", &[], "llama"),
        ("llama", &["--type", "q2_0"], "llama.float"),
        ("qwen3", &[], "qwen3"),
        ("minicpm", &[], "minicpm"),
    ] {
        let out = Folder::new(&format!("logits-{expected}"), name).converted(args);
        let source = FileSource::open(&out).unwrap();
        let mut model = block_on(Reference::load(&mut Reader::new(source))).unwrap();
        let found = model.forward(&tokens()).unwrap().concat();
        let expected = floats(&format!("tests/data/convert/{expected}.f32"));
        let off = distance(&found, &expected);
        println!("{name} {args:?}: {off:.2e}");
        assert!(off < limit, "{name} {args:?}: {off}");
    }
}

/// Old folders call the type by another name.
#[test]
fn linear_scaling_is_what_readers_divide_by() {
    for key in ["type", "rope_type"] {
        let folder = Folder::new("linear", "llama");
        folder.edit_json("config.json", |config| {
            config["rope_scaling"] = json!({key: "linear", "factor": 4.0});
        });
        let gguf = header(&folder.converted(&[]));
        let scaling = Config::from_gguf(&gguf).unwrap().rope.scaling;
        assert_eq!(scaling, RopeScaling::Linear { factor: 4.0 }, "{key}");
        assert!(gguf.tensor("rope_freqs.weight").is_none());
    }
}

#[test]
fn inspect_says_that_converted_models_run() {
    for name in ["bitnet", "llama", "qwen3", "minicpm"] {
        let out = Folder::new(&format!("inspect-{name}"), name).converted(&[]);
        let shown =
            Command::new(env!("CARGO_BIN_EXE_tritloom")).arg("inspect").arg(out).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.ends_with("tritloom runs this model\n"), "{shown}");
    }
}

/// The names of a layer's matrices, in the folder and in the file.
const MATRICES: [(&str, &str); 7] = [
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
];

/// Calls `check(folder's name, file's values, folder's tensor)` for each matrix.
fn each_matrix(
    tensors: &Tensors,
    found: &BTreeMap<String, (TensorType, Vec<f32>)>,
    mut check: impl FnMut(&str, &[f32], &(String, Vec<usize>, Vec<u8>)),
) {
    for layer in 0..2 {
        for (theirs, ours) in MATRICES {
            let name = format!("model.layers.{layer}.{theirs}.weight");
            let (_, values) = &found[&format!("blk.{layer}.{ours}.weight")];
            check(&name, values, &tensors[&name]);
        }
    }
}

#[test]
fn masters_are_rounded_by_their_absolute_mean() {
    let folder = Folder::new("masters", "bitnet");
    let tensors = read_tensors(&folder.0.join("model.safetensors"));
    let found = decoded(&folder.converted(&[]));
    each_matrix(&tensors, &found, |name, found, (dtype, _, bytes)| {
        let (scale, codes) = ternarised(&values(dtype, bytes));
        let expected: Vec<f32> = codes.iter().map(|code| code * scale).collect();
        assert_eq!(found, expected, "{name}");
    });
    let (_, norm) = &found["blk.1.ffn_sub_norm.weight"];
    let (dtype, _, bytes) = &tensors["model.layers.1.mlp.ffn_sub_norm.weight"];
    assert_eq!(*norm, values(dtype, bytes));
    let (ty, embedding) = &found["token_embd.weight"];
    let (dtype, _, bytes) = &tensors["model.embed_tokens.weight"];
    assert_eq!(*ty, TensorType::F16);
    for (found, expected) in embedding.iter().zip(values(dtype, bytes)) {
        assert!((found - expected).abs() <= 2f32.powi(-25), "{found} {expected}");
    }
}

/// In a `llama` file, rows 2i and 2i + 1 of a head are those that rotate together.
#[test]
fn ternary_floats_stay_as_they_are_but_for_the_order_of_rows() {
    for (name, head_dim) in [("qwen3", None), ("minicpm", Some(32))] {
        let folder = Folder::new(&format!("floats-{name}"), name);
        let files = ["model.safetensors", "weights.safetensors"].map(|file| folder.0.join(file));
        let tensors = read_tensors(files.iter().find(|file| file.exists()).unwrap());
        let found = decoded(&folder.converted(&[]));
        each_matrix(&tensors, &found, |name, found, (dtype, shape, bytes)| {
            let (values, columns) = (values(dtype, bytes), shape[1]);
            let rotates = name.contains("q_proj") || name.contains("k_proj");
            for (row, found) in found.chunks(columns).enumerate() {
                let from = match head_dim.filter(|_| rotates) {
                    None => row,
                    Some(dim) => row / dim * dim + row % dim / 2 + row % 2 * (dim / 2),
                };
                assert_eq!(found, &values[from * columns..][..columns], "{name}, row {row}");
            }
        });
    }
}

/// Packed weights whose products are multiplied by the scale, and those that are divided by it,
/// are the same weights as the masters they were made of.
#[test]
fn packed_weights_are_unpacked_with_either_kind_of_scale() {
    let masters = decoded(&Folder::new("packed-masters", "bitnet").converted(&[]));
    for (linear_class, inverse) in [("autobitlinear", false), ("bitlinear", true)] {
        let folder = Folder::new(&format!("packed-{linear_class}"), "bitnet");
        folder.edit_json("config.json", |config| {
            config["quantization_config"]["linear_class"] = json!(linear_class);
            config["quantization_config"]["quantization_mode"] = json!("offline");
        });
        folder.edit_tensors(|tensors| pack(tensors, inverse));
        let found = decoded(&folder.converted(&[]));
        assert_eq!(found.len(), masters.len());
        for (name, (ty, values)) in &found {
            let (expected_ty, expected) = &masters[name];
            assert_eq!(ty, expected_ty);
            for (a, b) in values.iter().zip(expected) {
                // The inverse of an inverse can be off by the last bit.
                assert!((a - b).abs() <= b.abs() * 2e-7, "{name}: {a} {b}");
            }
        }
    }
}

/// 1bitLLM's folders have names of their own, an old config.json, and say in their class that the
/// weights are masters.
#[test]
fn the_reproductions_of_bitnet_have_other_names() {
    let expected = decoded(&Folder::new("reproduction-of", "bitnet").converted(&[]));
    let folder = Folder::new("reproduction", "bitnet");
    folder.edit_json("config.json", |config| {
        let edits = json!({"architectures": ["BitnetForCausalLM"], "hidden_act": "silu",
            "quantization_config": null, "rope_parameters": null, "rope_theta": 10000.0,
            "input_bits": 8, "weight_bits": 1});
        config.as_object_mut().unwrap().extend(edits.as_object().unwrap().clone());
    });
    folder.edit_tensors(|tensors| {
        let old = std::mem::take(tensors);
        tensors.extend(old.into_iter().map(|(name, tensor)| {
            let name = name.replace("self_attn.attn_sub_norm", "self_attn.inner_attn_ln");
            (name.replace("mlp.ffn_sub_norm", "mlp.ffn_layernorm"), tensor)
        }));
        let table = ("F32".into(), vec![16], vec![0; 64]);
        tensors.insert("model.layers.0.self_attn.rotary_emb.inv_freq".into(), table);
    });
    let out = folder.converted(&[]);
    assert_eq!(header(&out).metadata.text("general.architecture").unwrap(), Some("bitnet"));
    assert_eq!(decoded(&out), expected);
    // Both names of a norm.
    folder.edit_tensors(|tensors| {
        let norm = tensors["model.layers.0.mlp.ffn_layernorm.weight"].clone();
        tensors.insert("model.layers.0.mlp.ffn_sub_norm.weight".into(), norm);
    });
    folder.refused(&[], "unsupported-model", &["ffn_layernorm", "ffn_sub_norm", "the same"]);
    folder.edit_json("config.json", |config| config["weight_bits"] = json!(2));
    folder.refused(&[], "unsupported-model", &["weight_bits", "2"]);
}

#[test]
fn what_the_folder_says_of_tokens_is_in_the_file() {
    let text = |gguf: &Gguf, key: &str| gguf.metadata.text(key).unwrap().map(str::to_owned);
    let id = |gguf: &Gguf, name: &str| {
        gguf.metadata.integer(&format!("tokenizer.ggml.{name}_token_id")).unwrap()
    };
    let adds_bos =
        |gguf: &Gguf| gguf.metadata.boolean("tokenizer.ggml.add_bos_token").unwrap().unwrap();
    let convert = |name: &str| header(&Folder::new(&format!("says-{name}"), name).converted(&[]));

    let bitnet = convert("bitnet");
    assert_eq!(text(&bitnet, "general.architecture").unwrap(), "bitnet-b1.58");
    assert_eq!(text(&bitnet, "general.name").unwrap(), "says-bitnet");
    assert_eq!(text(&bitnet, "tokenizer.ggml.pre").unwrap(), "llama-bpe");
    assert!(text(&bitnet, "tokenizer.chat_template").unwrap().contains("<|eot_id|>"));
    // The ends of a text: the tokenizer's, then what generation_config.json has beyond it.
    assert_eq!((id(&bitnet, "bos"), id(&bitnet, "eos")), (Some(263), Some(264)));
    assert_eq!((id(&bitnet, "eot"), id(&bitnet, "eom")), (Some(265), None));
    assert!(adds_bos(&bitnet));
    // Rows of the embedding without a token.
    let tokens = bitnet.metadata.strings("tokenizer.ggml.tokens").unwrap().unwrap();
    assert_eq!((tokens.len(), tokens.get(287).unwrap()), (288, &b"[PAD287]"[..]));
    let types = bitnet.metadata.numbers("tokenizer.ggml.token_type").unwrap().unwrap();
    let types: Vec<_> = types.iter().filter_map(|kind| kind.integer()).collect();
    assert_eq!(types[262..268], [1, 3, 3, 3, 4, 5]);

    let llama = convert("llama");
    // A file of its own comes first.
    assert!(text(&llama, "tokenizer.chat_template").unwrap().starts_with("{{ bos_token }}"));
    assert_eq!((id(&llama, "eos"), id(&llama, "eot")), (Some(265), Some(264)));
    assert!(llama.tensor("rope_freqs.weight").is_some());

    let qwen3 = convert("qwen3");
    assert_eq!(text(&qwen3, "tokenizer.ggml.pre").unwrap(), "qwen2");
    assert_eq!(text(&qwen3, "tokenizer.chat_template").unwrap(), "{{ messages }}");
    assert_eq!(text(&qwen3, "qwen3.rope.scaling.type").unwrap(), "yarn");
    assert_eq!(id(&qwen3, "padding"), Some(263));
    assert!(!adds_bos(&qwen3));

    let minicpm = convert("minicpm");
    assert_eq!(text(&minicpm, "tokenizer.ggml.model").unwrap(), "llama");
    assert_eq!(id(&minicpm, "unknown"), Some(0));
    assert!(adds_bos(&minicpm));
    let tokenizer = Tokenizer::from_metadata(&minicpm.metadata).unwrap();
    // "▁ab" is two tokens in two ways, and scores better than "aa".
    assert_eq!(tokenizer.encode("aab ab").unwrap(), [262, 263, 264]);
}

#[test]
fn the_embedding_gets_the_type_that_is_asked_for() {
    let folder = Folder::new("embedding", "llama");
    for (option, ty) in [("f16", TensorType::F16), ("q8_0", TensorType::Q8_0)] {
        let gguf = header(&folder.converted(&["--embedding", option]));
        for name in ["token_embd.weight", "output.weight"] {
            assert_eq!(gguf.tensor(name).unwrap().ty, ty);
        }
    }
    let facts = ["model.embed_tokens.weight", "BF16 [288, 128]", "Q6_K", "256"];
    folder.refused(&["--embedding", "q6_k"], "tensor-shape", &facts);
}

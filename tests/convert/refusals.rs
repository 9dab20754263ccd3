//! Folders that are refused, of which no file is left behind.

use std::fs;

use half::bf16;
use serde_json::{Value, json};
use tritloom::gguf::TensorType;

use crate::support::path;
use crate::{Folder, Tensors, assert_refused, convert, decoded, pack, ternarised, values};

/// The refusal of each configuration names the key.
#[test]
fn configurations_that_compute_something_else_are_refused() {
    let refused = |name: &str, pointer: &str, value: Value, facts: &[&str]| {
        let folder = Folder::new("configurations", name);
        folder.edit_json("config.json", |config| {
            let (object, key) = pointer.rsplit_once('/').unwrap();
            config.pointer_mut(object).unwrap()[key] = value;
        });
        folder.refused(&[], "unsupported-model", facts);
    };
    for (key, value) in [
        ("attention_bias", json!(true)),
        ("mlp_bias", json!(true)),
        ("partial_rotary_factor", json!(0.5)),
        ("pretraining_tp", json!(2)),
        ("hidden_act", json!("gelu")),
        ("architectures", json!(["MambaForCausalLM"])),
        ("sliding_window", json!(4096)),
        ("layer_types", json!(["sliding_attention"])),
        ("num_experts", json!(8)),
        ("rope_theta", Value::String("many".into())),
        ("hidden_size", json!(-1)),
        ("vocab_size", json!(1u64 << 40)),
        ("rms_norm_eps", Value::Null),
        ("tie_word_embeddings", json!("no")),
        ("rope_parameters", json!({"rope_type": "default"})),
    ] {
        refused("llama", &format!("/{key}"), value, &[key]);
    }
    refused("llama", "/rope_scaling/rope_type", json!("dynamic"), &["dynamic"]);
    refused("llama", "/rope_scaling/mscale", json!(1), &["rope_scaling", "mscale"]);
    refused("llama", "/rope_scaling/factor", Value::Null, &["factor"]);
    refused("qwen3", "/rope_scaling/beta_fast", json!(16), &["beta_fast", "16"]);
    refused("qwen3", "/use_sliding_window", json!(true), &["use_sliding_window"]);
    refused("qwen3", "/head_dim", Value::Null, &["head_dim"]);
    refused("bitnet", "/tie_word_embeddings", json!(false), &["tie_word_embeddings"]);
    refused("bitnet", "/num_key_value_heads", Value::Null, &["num_key_value_heads"]);
    refused("minicpm", "/tie_word_embeddings", Value::Null, &["tie_word_embeddings"]);
    refused("minicpm", "/scale_depth", Value::Null, &["scale_depth"]);
    refused("minicpm", "/max_position_embeddings", json!(512), &["longrope", "512"]);
    refused("minicpm", "/rope_scaling/long_factor", json!([1, "x"]), &["long_factor"]);
    for (key, value) in [
        ("quant_method", json!("gptq")),
        ("linear_class", json!("other")),
        ("quantization_mode", json!("sometimes")),
        ("use_rms_norm", json!(true)),
        ("modules_to_not_convert", json!(["lm_head", "model.layers.0"])),
        ("group_size", json!(32)),
    ] {
        refused("bitnet", &format!("/quantization_config/{key}"), value, &[key]);
    }
    refused("minicpm", "/rope_scaling/short_factor", json!([0.0]), &["not positive"]);
    for (kind, factor) in [("linear", 0.0), ("linear", 0.5), ("llama3", 0.0), ("llama3", -1.0)] {
        let rope = json!({
            "rope_type": kind, "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64
        });
        let facts = ["`factor`", &factor.to_string(), "1 or more"];
        refused("llama", "/rope_scaling", rope, &facts);
    }
    refused("qwen3", "/rope_scaling/factor", json!(0), &["`factor`", "1 or more"]);
    refused("llama", "/head_dim", json!(1 << 13), &["8192", "`head_dim`"]);
    refused("llama", "/vocab_size", json!((1 << 22) + 1), &["4194305", "`vocab_size`"]);
    // The longrope of a short list is seen by the file's own reader.
    let folder = Folder::new("configurations", "minicpm");
    folder.edit_json("config.json", |config| config["rope_scaling"]["long_factor"] = json!([1.0]));
    folder.refused(&[], "tensor-shape", &["rope_factors_long"]);
}

#[test]
fn weights_that_do_not_fit_are_refused_by_name() {
    let q = "model.layers.1.self_attn.q_proj.weight";
    let refused = |name: &str, code: &str, facts: &[&str], edit: &dyn Fn(&mut Tensors)| {
        Folder::new("weights", name).edit_tensors(edit).refused(&[], code, facts);
    };
    refused("qwen3", "missing-tensor", &[q], &|tensors| drop(tensors.remove(q)));
    refused("qwen3", "missing-tensor", &["model.norm.weight"], &|tensors| {
        drop(tensors.remove("model.norm.weight"));
    });
    for name in [
        "model.layers.0.self_attn.q_proj.bias",
        "model.layers.0.mlp.experts.0.up_proj.weight",
        "model.layers.0.self_attn.attn_sub_norm.weight",
        "model.layers.01.self_attn.q_proj.weight",
        "visual.patch.weight",
    ] {
        refused("qwen3", "unsupported-model", &[name], &|tensors| {
            tensors.insert(name.into(), ("BF16".into(), vec![2], vec![0; 4]));
        });
    }
    let reshape = |shape: &'static [usize]| {
        move |tensors: &mut Tensors| {
            let (_, old, bytes) = tensors.get_mut(q).unwrap();
            bytes.resize(shape.iter().product::<usize>() * 2, 0);
            *old = shape.to_vec();
        }
    };
    refused("qwen3", "tensor-shape", &[q, "BF16 [64, 64]", "[128, 64]"], &reshape(&[64, 64]));
    refused("qwen3", "tensor-shape", &[q, "[8192]"], &reshape(&[8192]));
    refused("qwen3", "tensor-shape", &[q, "[0, 64]"], &reshape(&[0, 64]));
    refused("qwen3", "tensor-shape", &[q, "multiple of 64"], &reshape(&[128, 32]));
    refused("qwen3", "unsupported-model", &[q, "I32"], &|tensors| {
        let (dtype, _, bytes) = tensors.get_mut(q).unwrap();
        *dtype = "I32".into();
        bytes.resize(128 * 64 * 4, 0);
    });
    refused("qwen3", "unsupported-model", &["element 5", q, "not finite"], &|tensors| {
        tensors.get_mut(q).unwrap().2[10..12].copy_from_slice(&bf16::NAN.to_le_bytes());
    });
    let norm = "model.norm.weight";
    refused("qwen3", "unsupported-model", &["element 0", norm], &|tensors| {
        tensors.get_mut(norm).unwrap().2[..2].copy_from_slice(&bf16::INFINITY.to_le_bytes());
    });
    // Rows of 192 are not whole blocks of I2_S.
    let down = ["model.layers.0.mlp.down_proj.weight", "128", "--type q2_0"];
    let folder = Folder::new("weights", "qwen3");
    folder.refused(&["--type", "i2_s"], "tensor-shape", &down[1..]);

    let packed = |inverse: bool| {
        let folder = Folder::new("weights", "bitnet");
        folder.edit_json("config.json", |config| {
            config["quantization_config"]["quantization_mode"] = json!("offline");
        });
        folder.edit_tensors(|tensors| pack(tensors, inverse));
        folder
    };
    let scale = format!("{q}_scale");
    let edit = |edit: &dyn Fn(&mut Tensors), code: &str, facts: &[&str]| {
        packed(false).edit_tensors(edit).refused(&[], code, facts);
    };
    edit(&|tensors| drop(tensors.remove(&scale)), "missing-tensor", &[&scale]);
    edit(&|tensors| drop(tensors.remove(q)), "unsupported-model", &[&scale]);
    for (value, fact) in [(0f32, "is 0"), (f32::NAN, "not finite"), (-1.0, "is -1")] {
        let set = |tensors: &mut Tensors| {
            tensors.get_mut(&scale).unwrap().2 = value.to_le_bytes().into();
        };
        edit(&set, "unsupported-model", &[fact]);
    }
    edit(
        &|tensors| {
            *tensors.get_mut(&scale).unwrap() = ("F32".into(), vec![2], vec![0; 8]);
        },
        "tensor-shape",
        &[&scale],
    );
    let three = |tensors: &mut Tensors| tensors.get_mut(q).unwrap().2[77] |= 3;
    edit(&three, "unsupported-model", &["byte 77", q, "code 3"]);
    // The other polarity: 1 / 0.04 as a multiplier.
    packed(true).refused(&[], "unsupported-model", &["linear_class", "bitlinear"]);
    packed(false)
        .edit_json("config.json", |config| config["quantization_config"] = Value::Null)
        .refused(&[], "unsupported-model", &["weight_scale", "quantization_config"]);
}

/// Masters of a folder that does not say that they are, and a model that is not ternary at all.
#[test]
fn weights_that_are_not_ternary_are_refused_with_their_share() {
    let folder = Folder::new("not-ternary", "bitnet");
    folder.edit_json("config.json", |config| config["quantization_config"] = Value::Null);
    let out = folder.out();
    let done = convert(&folder.0, &out, &[]);
    let facts = ["not ternary", "of all matrices are off", "1/256", "online"];
    assert_refused(&done, "unsupported-model", &facts);
    println!("{}", String::from_utf8_lossy(&done.stderr));

    // One weight of one matrix.
    let up = "model.layers.0.mlp.up_proj.weight";
    let folder = Folder::new("not-ternary", "qwen3");
    folder.edit_tensors(|tensors| {
        let bytes = &mut tensors.get_mut(up).unwrap().2;
        bytes[4..6].copy_from_slice(&bf16::from_f32(0.01).to_le_bytes());
    });
    folder.refused(&[], "unsupported-model", &["not ternary", "(1 of 12288)", up]);

    // A scale for every 64 weights does not fit a type with one for all.
    let folder = Folder::new("not-ternary", "bitnet");
    folder.edit_json("config.json", |config| config["quantization_config"] = Value::Null);
    folder.edit_tensors(|tensors| {
        for (_, (dtype, _, bytes)) in tensors.iter_mut().filter(|(name, _)| name.contains("_proj"))
        {
            let (_, codes) = ternarised(&values(dtype, bytes));
            let scaled = codes.iter().enumerate().map(|(i, code)| {
                let scale = if i / 64 % 2 == 0 { 0.5 } else { 0.25 };
                bf16::from_f32(code * scale)
            });
            *bytes = scaled.flat_map(bf16::to_le_bytes).collect();
        }
    });
    let facts = ["several scales", "self_attn.k_proj", "--type q2_0"];
    folder.refused(&["--type", "i2_s"], "unsupported-model", &facts);
    let found = decoded(&folder.converted(&[]));
    let (ty, values) = &found["blk.0.attn_q.weight"];
    assert_eq!(*ty, TensorType::Q2_0);
    assert!(values[..64].iter().all(|x| [0.0, 0.5].contains(&x.abs())));
    assert!(values[64..128].iter().all(|x| [0.0, 0.25].contains(&x.abs())));
}

#[test]
fn missing_and_damaged_files_are_named() {
    let shard = "model-00002-of-00002.safetensors";
    let index = "model.safetensors.index.json";
    let llama = || Folder::new("files", "llama");
    for name in [shard, "config.json", "tokenizer.json"] {
        llama().remove(name).refused(&[], "io", &[name]);
    }
    llama().remove(index).refused(&[], "io", &["2 safetensors files", index]);
    Folder::new("files", "qwen3").remove("model.safetensors").refused(
        &[],
        "io",
        &["model.safetensors"],
    );
    for name in ["config.json", "tokenizer.json", "tokenizer_config.json", index] {
        let folder = llama();
        fs::write(folder.0.join(name), "{ \"a\": ").unwrap();
        folder.refused(&[], "io", &[name, "line 1"]);
    }
    let q = "model.layers.1.self_attn.q_proj.weight";
    let elsewhere =
        |file: &'static str| move |index: &mut Value| index["weight_map"][q] = json!(file);
    llama().edit_json(index, elsewhere("model-00001-of-00002.safetensors")).refused(
        &[],
        "io",
        &["model-00001-of-00002", q],
    );
    llama().edit_json(index, elsewhere("../other.safetensors")).refused(&[], "io", &["../other"]);
    llama().edit_json(index, elsewhere("/etc/passwd")).refused(&[], "io", &["/etc/passwd"]);
    // A file cut off, and one that is twice there.
    let folder = llama();
    let bytes = fs::read(folder.0.join(shard)).unwrap();
    fs::write(folder.0.join(shard), &bytes[..bytes.len() - 1]).unwrap();
    folder.refused(&[], "io", &[shard]);
    fs::write(
        folder.0.join(shard),
        fs::read(folder.0.join("model-00001-of-00002.safetensors")).unwrap(),
    )
    .unwrap();
    folder.refused(&[], "io", &[shard, "also in"]);
    let folder = Folder(path("target/tmp/convert/nowhere"));
    folder.refused(&[], "io", &["config.json"]);
}

#[test]
fn a_file_is_overwritten_only_with_force_and_never_the_model() {
    let folder = Folder::new("force", "minicpm");
    let out = folder.out();
    fs::write(&out, "mine").unwrap();
    let done = convert(&folder.0, &out, &[]);
    assert_refused(&done, "bad-option", &["exists", "--force"]);
    assert_eq!(fs::read(&out).unwrap(), b"mine");
    assert!(convert(&folder.0, &out, &["--force"]).status.success());
    assert!(fs::read(&out).unwrap().starts_with(b"GGUF"));
    let weights = folder.0.join("weights.safetensors");
    let done = convert(&folder.0, &weights, &["--force"]);
    assert_refused(&done, "bad-option", &["the model itself"]);
    assert!(weights.exists());
    let done = convert(&folder.0, &folder.0.join("none/out.gguf"), &[]);
    assert_refused(&done, "io", &["could not write"]);
}

/// A value that only shows while the file is written: it is not left half.
#[test]
fn a_file_that_cannot_be_finished_is_removed() {
    let folder = Folder::new("unfinished", "qwen3");
    folder.edit_tensors(|tensors| {
        let bytes = &mut tensors.get_mut("model.embed_tokens.weight").unwrap().2;
        let end = bytes.len();
        bytes[end - 2..].copy_from_slice(&bf16::from_f32(1e6).to_le_bytes());
    });
    let facts = ["element 18431", "model.embed_tokens.weight", "too large"];
    folder.refused(&[], "unsupported-model", &facts);
}

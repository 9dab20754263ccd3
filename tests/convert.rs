//! `ternlight convert`: folders from Hugging Face become files that compute the same.
//!
//! The folders are in `tests/data/convert`, with the logits that transformers gives for them.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and report")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use half::{bf16, f16};
use serde_json::{Value, json};
use support::families::distance;
use support::{floats, path};
use ternlight::blocks::block_type;
use ternlight::gguf::{Gguf, TensorType};
use ternlight::native::{FileSource, block_on};
use ternlight::reference::Reference;
use ternlight::source::Reader;
use ternlight::ternary::{self, Layout};
use ternlight::tokenizer::Tokenizer;

/// Tensors of a safetensors file: type, shape and bytes.
type Tensors = BTreeMap<String, (String, Vec<usize>, Vec<u8>)>;

/// A folder of a test's own, a copy of one in `tests/data/convert`.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str, copied: &str) -> Self {
        let folder = path("target/tmp/convert").join(test);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for entry in fs::read_dir(path("tests/data/convert").join(copied)).unwrap() {
            let file = entry.unwrap().path();
            fs::write(folder.join(file.file_name().unwrap()), fs::read(&file).unwrap()).unwrap();
        }
        Self(folder)
    }

    fn edit_json(&self, name: &str, edit: impl FnOnce(&mut Value)) -> &Self {
        let text = fs::read_to_string(self.0.join(name)).unwrap();
        let mut value = serde_json::from_str(&text).unwrap();
        edit(&mut value);
        fs::write(self.0.join(name), value.to_string()).unwrap();
        self
    }

    fn edit_tensors(&self, edit: impl FnOnce(&mut Tensors)) -> &Self {
        let file = self.0.join("model.safetensors");
        let mut tensors = read_tensors(&file);
        edit(&mut tensors);
        fs::write(file, safetensors(&tensors)).unwrap();
        self
    }

    fn remove(&self, name: &str) -> &Self {
        fs::remove_file(self.0.join(name)).unwrap();
        self
    }

    /// Where the test's file will be. It is not there yet.
    fn out(&self) -> PathBuf {
        let out = self.0.with_extension("gguf");
        let _ = fs::remove_file(&out);
        out
    }

    /// Converts the folder.
    #[track_caller]
    fn converted(&self, args: &[&str]) -> PathBuf {
        let out = self.out();
        let done = convert(&self.0, &out, args);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        out
    }

    /// Asserts that the folder is refused, and that no file is left.
    #[track_caller]
    fn refused(&self, args: &[&str], code: &str, facts: &[&str]) {
        let out = self.out();
        let done = convert(&self.0, &out, args);
        assert_refused(&done, code, facts);
        assert!(!out.exists(), "a file is left");
    }
}

#[track_caller]
fn assert_refused(done: &Output, code: &str, facts: &[&str]) {
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{stderr}");
    for fact in [&[&*format!("error[{code}]: ")], facts].concat() {
        assert!(stderr.contains(fact), "{stderr:?} does not name {fact:?}");
    }
    assert!(!stderr.contains("panicked") && !stderr.contains("internal"), "{stderr}");
}

fn convert(folder: &Path, out: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ternlight"));
    command.arg("convert").arg(folder).arg(out).args(args).output().unwrap()
}

fn read_tensors(file: &Path) -> Tensors {
    let bytes = fs::read(file).unwrap();
    let (len, rest) = bytes.split_first_chunk::<8>().unwrap();
    let (json, data) = rest.split_at(u64::from_le_bytes(*len) as usize);
    let mut header: serde_json::Map<String, Value> = serde_json::from_slice(json).unwrap();
    header.remove("__metadata__");
    header
        .into_iter()
        .map(|(name, info)| {
            let [from, to]: [usize; 2] =
                serde_json::from_value(info["data_offsets"].clone()).unwrap();
            let shape = serde_json::from_value(info["shape"].clone()).unwrap();
            let dtype = info["dtype"].as_str().unwrap().to_owned();
            (name, (dtype, shape, data[from..to].to_vec()))
        })
        .collect()
}

fn safetensors(tensors: &Tensors) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, (dtype, shape, bytes)) in tensors {
        let from = data.len();
        data.extend(bytes);
        let info = json!({"dtype": dtype, "shape": shape, "data_offsets": [from, data.len()]});
        header.insert(name.clone(), info);
    }
    let header = Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}

fn values(dtype: &str, bytes: &[u8]) -> Vec<f32> {
    let pairs = bytes.as_chunks::<2>().0;
    match dtype {
        "BF16" => pairs.iter().map(|b| bf16::from_le_bytes(*b).to_f32()).collect(),
        "F16" => pairs.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect(),
        "F32" => bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        other => panic!("{other}"),
    }
}

fn header(file: &Path) -> Gguf {
    block_on(Gguf::read(&mut Reader::new(FileSource::open(file).unwrap()))).unwrap()
}

/// Every tensor of a GGUF file: its type and its values.
fn decoded(file: &Path) -> BTreeMap<String, (TensorType, Vec<f32>)> {
    let bytes = fs::read(file).unwrap();
    let decode = |tensor: &ternlight::gguf::TensorInfo| {
        let bytes = &bytes[tensor.offset as usize..][..tensor.len as usize];
        match tensor.ty {
            TensorType::F32 => values("F32", bytes),
            TensorType::F16 => values("F16", bytes),
            TensorType::I2S => {
                let (codes, tail) = bytes.split_at(bytes.len() - ternary::TAIL);
                let scale = ternary::scale(tail).unwrap();
                let codes = ternary::unpack(codes, Layout::X86);
                codes.into_iter().map(|code| f32::from(code) * scale).collect()
            }
            ty => block_type(ty).unwrap().values(bytes).unwrap(),
        }
    };
    let tensors = header(file).tensors;
    tensors.iter().map(|tensor| (tensor.name.clone(), (tensor.ty, decode(tensor)))).collect()
}

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

#[test]
fn inspect_says_that_converted_models_run() {
    for name in ["bitnet", "llama", "qwen3", "minicpm"] {
        let out = Folder::new(&format!("inspect-{name}"), name).converted(&[]);
        let shown =
            Command::new(env!("CARGO_BIN_EXE_ternlight")).arg("inspect").arg(out).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.ends_with("ternlight runs this model\n"), "{shown}");
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

/// The absolute mean, and the codes of weights that are rounded by it.
fn ternarised(weights: &[f32]) -> (f32, Vec<f32>) {
    let sum: f64 = weights.iter().map(|x| f64::from(x.abs())).sum();
    let mean = (sum / weights.len() as f64) as f32;
    (mean, weights.iter().map(|x| (x / mean).round_ties_even().clamp(-1.0, 1.0)).collect())
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

/// Makes packed weights of masters.
fn pack(tensors: &mut Tensors, inverse: bool) {
    let names: Vec<String> =
        tensors.keys().filter(|name| name.contains("_proj.")).cloned().collect();
    assert_eq!(names.len(), 14);
    for name in names {
        let (dtype, shape, bytes) = tensors[&name].clone();
        let (scale, codes) = ternarised(&values(&dtype, &bytes));
        let (rows, columns) = (shape[0], shape[1]);
        let byte = |at: usize| {
            (0..4).fold(0, |byte, i| {
                byte | ((codes[at + i * rows / 4 * columns] + 1.0) as u8) << (2 * i)
            })
        };
        let packed = (0..rows / 4 * columns).map(byte).collect();
        let scale = if inverse { 1.0 / scale } else { scale };
        tensors
            .insert(format!("{name}_scale"), ("F32".into(), vec![1], scale.to_le_bytes().into()));
        tensors.insert(name, ("U8".into(), vec![rows / 4, columns], packed));
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

/// The pre-tokenizers as Hugging Face's files have them, and their names in `rules.json`.
fn pre_tokenizers() -> Vec<(&'static str, Value)> {
    let bytes =
        |regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "use_regex": regex});
    let split = |regex: &str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
    let inverted = |regex: &str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Removed", "invert": true});
    let punctuation = json!({"type": "Punctuation", "behavior": "Contiguous"});
    let digits = json!({"type": "Digits", "individual_digits": true});
    let llama_3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    let qwen_2 = llama_3.replace("{1,3}", "");
    let sequence = |steps: &[Value]| json!({"type": "Sequence", "pretokenizers": steps});
    vec![
        ("llama-bpe", sequence(&[split(llama_3), bytes(false)])),
        ("llama-bpe", sequence(&[inverted(llama_3), bytes(false)])),
        ("qwen2", sequence(&[split(&qwen_2), bytes(false)])),
        ("gpt-2", bytes(true)),
        ("falcon", sequence(&[punctuation.clone(), bytes(true), split("[0-9][0-9][0-9]")])),
        ("falcon3", sequence(&[punctuation.clone(), bytes(true), split("[0-9]")])),
        ("falcon3", sequence(&[punctuation, bytes(true), digits, split("[0-9][0-9][0-9]")])),
    ]
}

/// tokenizer.json of a vocabulary in `rules.json`.
fn tokenizer_json(data: &Value, merges: Vec<Value>) -> Value {
    let texts = data["tokens"].as_array().unwrap();
    let types: Vec<i64> = serde_json::from_value(data["types"].clone()).unwrap();
    let (mut vocab, mut added) = (serde_json::Map::new(), Vec::new());
    let mut unknown = Value::Null;
    for (id, (text, kind)) in texts.iter().zip(types).enumerate() {
        match kind {
            1 | 6 => drop(vocab.insert(text.as_str().unwrap().into(), json!(id))),
            5 => {}
            _ => added.push(json!({"id": id, "content": text, "special": kind != 4})),
        }
        if kind == 2 {
            unknown = text.clone();
            vocab.insert(text.as_str().unwrap().into(), json!(id));
        }
    }
    json!({"added_tokens": added,
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "unk_token": unknown}})
}

/// Compares a converted tokenizer with the tokens in `rules.json`.
fn check_tokens(name: &str, folder: &Folder, rules: &Value) {
    let gguf = header(&folder.converted(&[]));
    let tokenizer = Tokenizer::from_metadata(&gguf.metadata).unwrap();
    let ids = |value: &Value| -> Vec<u32> { serde_json::from_value(value.clone()).unwrap() };
    let plain = rules["plain"].as_array().unwrap();
    assert!(plain.len() > 100);
    for vector in plain {
        let text = vector["text"].as_str().unwrap();
        assert_eq!(tokenizer.encode_text(text).unwrap(), ids(&vector["ids"]), "{name}: {text:?}");
    }
    for vector in rules["special"].as_array().unwrap() {
        let text = vector["text"].as_str().unwrap();
        let found = tokenizer.encode_with_special(text).unwrap();
        assert_eq!(found, ids(&vector["all"]), "{name}: {text:?}");
    }
}

/// A folder of a model whose embedding has `rows` rows, without options of the tokenizer.
fn with_vocabulary(test: &str, rows: usize) -> Folder {
    let folder = Folder::new(test, "qwen3");
    folder.remove("tokenizer_config.json");
    folder.edit_json("config.json", |config| {
        config["vocab_size"] = json!(rows);
        config["bos_token_id"] = Value::Null;
        config["eos_token_id"] = Value::Null;
    });
    folder.edit_tensors(|tensors| {
        let (_, shape, bytes) = tensors.get_mut("model.embed_tokens.weight").unwrap();
        shape[0] = rows;
        bytes.resize(rows * 64 * 2, 0);
    });
    folder
}

#[test]
fn byte_level_tokenizers_give_the_tokens_of_hugging_face() {
    let data = &support::json("tests/data/tokenizer/rules.json")["bpe"];
    let rows = data["tokens"].as_array().unwrap().len();
    let mut file = tokenizer_json(data, data["merges"].as_array().unwrap().clone());
    for (name, pre) in pre_tokenizers() {
        file["pre_tokenizer"] = pre;
        file["normalizer"] = if name == "qwen2" { json!({"type": "NFC"}) } else { Value::Null };
        file["model"]["ignore_merges"] = json!(name == "llama-bpe");
        let folder = with_vocabulary("byte-level", rows);
        fs::write(folder.0.join("tokenizer.json"), file.to_string()).unwrap();
        let rules = data["rules"].as_array().unwrap();
        let rules = rules.iter().find(|rules| rules["pre"] == name).unwrap();
        check_tokens(name, &folder, rules);
    }
}

/// The merges that transformers makes of Sentencepiece's scores: all ways to split each token, the
/// best scores first.
fn merges(data: &Value) -> Vec<Value> {
    let texts: Vec<String> = serde_json::from_value(data["tokens"].clone()).unwrap();
    let types: Vec<i64> = serde_json::from_value(data["types"].clone()).unwrap();
    let scores: Vec<f32> = serde_json::from_value(data["scores"].clone()).unwrap();
    let normal: BTreeMap<&str, f32> =
        (0..texts.len()).filter(|&id| types[id] == 1).map(|id| (&*texts[id], scores[id])).collect();
    let mut merges = Vec::new();
    for (text, score) in &normal {
        for (at, _) in text.char_indices().skip(1) {
            let (left, right) = text.split_at(at);
            if normal.contains_key(left) && normal.contains_key(right) {
                merges.push((*score, left, right));
            }
        }
    }
    merges.sort_by(|(a, left, right), (b, other_left, other_right)| {
        let lengths = |left: &str, right: &str| (left.chars().count(), right.chars().count());
        b.total_cmp(a).then(lengths(other_left, other_right).cmp(&lengths(left, right)))
    });
    merges.into_iter().map(|(_, left, right)| json!([left, right])).collect()
}

#[test]
fn sentencepieces_tokenizers_give_its_tokens() {
    let data = &support::json("tests/data/tokenizer/rules.json")["spm"];
    let rows = data["tokens"].as_array().unwrap().len();
    let mut file = tokenizer_json(data, merges(data));
    file["model"]["byte_fallback"] = json!(true);
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
    let prepend = json!({"type": "Prepend", "prepend": "▁"});
    let metaspace = |scheme: &str| json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": false});
    let sequence = |steps: &[&Value]| json!({"type": "Sequence", "normalizers": steps});
    for (prefix, normalizer, pre_tokenizer) in [
        (true, sequence(&[&prepend, &replace]), Value::Null),
        (false, replace.clone(), Value::Null),
        (true, Value::Null, metaspace("always")),
        (false, Value::Null, metaspace("never")),
    ] {
        file["normalizer"] = normalizer;
        file["pre_tokenizer"] = pre_tokenizer;
        let folder = with_vocabulary("sentencepiece", rows);
        fs::write(folder.0.join("tokenizer.json"), file.to_string()).unwrap();
        let rules = data["rules"].as_array().unwrap();
        let rules = rules.iter().find(|rules| rules["prefix"] == prefix).unwrap();
        check_tokens(&format!("prefix {prefix}"), &folder, rules);
    }

    // Merges that only some ways to split a token have.
    let merges = file["model"]["merges"].as_array_mut().unwrap();
    let removed = merges.pop().unwrap();
    let token = format!("{}{}", removed[0].as_str().unwrap(), removed[1].as_str().unwrap());
    let folder = with_vocabulary("sentencepiece", rows);
    fs::write(folder.0.join("tokenizer.json"), file.to_string()).unwrap();
    folder.refused(&[], "unsupported-model", &[&format!("{token:?}"), "not the BPE"]);
}

#[test]
fn tokenizers_that_gguf_has_no_name_for_are_refused() {
    let edit = |edit: &dyn Fn(&mut Value), facts: &[&str]| {
        let folder = Folder::new("tokenizers", "qwen3");
        folder.edit_json("tokenizer.json", edit);
        folder.refused(&[], "unsupported-model", facts);
    };
    let set = |path: &'static str, value: Value, facts: &[&str]| {
        edit(&|file| *file.pointer_mut(path).unwrap() = value.clone(), facts);
    };
    let regex = "/pre_tokenizer/pretokenizers/0/pattern/Regex";
    set(regex, json!(r"\w+|\s+"), &["pre_tokenizer", r"\\w+|\\s+"]);
    set("/pre_tokenizer/pretokenizers/0/behavior", json!("Removed"), &["pre_tokenizer"]);
    set("/pre_tokenizer/pretokenizers/1/add_prefix_space", json!(true), &["pre_tokenizer"]);
    set("/pre_tokenizer/pretokenizers/1/type", json!("Whitespace"), &["byte"]);
    set("/normalizer", json!({"type": "NFKC"}), &["normalizer", "NFKC"]);
    set("/normalizer", Value::Null, &["qwen2", "NFC"]);
    set("/model/ignore_merges", json!(true), &["qwen2", "ignore_merges"]);
    set("/model/type", json!("Unigram"), &["Unigram"]);
    set("/model/end_of_word_suffix", json!("</w>"), &["end_of_word_suffix"]);
    set("/model/merges/0", json!("h"), &["not two tokens"]);
    set("/model/merges/0", json!(["h", "Q Q"]), &["not two tokens"]);
    set("/model/merges/0", json!(["h", "nowhere"]), &["nowhere"]);
    set("/added_tokens/0/id", json!(288), &["288"]);
    set("/added_tokens/0/id", json!(3), &["token 3"]);
    set("/added_tokens/0/content", json!("h"), &["\"h\"", "two ids"]);
    set("/added_tokens/0/rstrip", json!(true), &["<|endoftext|>", "spaces"]);
    set("/post_processor/processors/0/type", json!("RobertaProcessing"), &["RobertaProcessing"]);
    let eos = json!([{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<|endoftext|>"}}]);
    let adds_eos = json!({"type": "TemplateProcessing", "single": eos});
    set("/post_processor/processors/0", adds_eos, &["post-processor", "<|endoftext|>"]);
    edit(&|file| file["model"]["vocab"] = json!({}), &["no tokens"]);
    edit(&|file| drop(file["model"]["vocab"].as_object_mut().unwrap().remove("a")), &["0x61"]);

    let option = |key: &str, value: Value, facts: &[&str]| {
        let folder = Folder::new("tokenizers", "qwen3");
        folder.edit_json("tokenizer_config.json", |options| options[key] = value);
        folder.refused(&[], "unsupported-model", facts);
    };
    option("eos_token", json!("<nothing>"), &["eos_token", "<nothing>"]);
    option("add_eos_token", json!(true), &["add_eos_token"]);
    option("chat_template", json!([{"name": "tools", "template": ""}]), &["default"]);
    let folder = Folder::new("tokenizers", "qwen3");
    fs::write(folder.0.join("generation_config.json"), r#"{"eos_token_id": [1, 2, 3]}"#).unwrap();
    folder.refused(&[], "unsupported-model", &["4 tokens"]);
}

/// Each is refused by the name of its key.
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
    refused("llama", "/rope_scaling/factor", json!(0), &["not positive"]);
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

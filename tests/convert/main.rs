//! `tritloom convert`: folders from Hugging Face become files that compute the same.
//!
//! The folders are in `tests/data/convert`, with the logits that transformers gives for them.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and report")]

#[path = "../support/mod.rs"]
mod support;

mod adapters;
mod embeddings;
mod models;
mod refusals;
mod tokenizers;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use half::{bf16, f16};
use serde_json::{Value, json};
use support::path;
use tritloom::blocks::block_type;
use tritloom::gguf::{Gguf, TensorType};
use tritloom::native::{FileSource, block_on};
use tritloom::source::Reader;
use tritloom::ternary::{self, Layout};

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
    let mut command = Command::new(env!("CARGO_BIN_EXE_tritloom"));
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
    let decode = |tensor: &tritloom::gguf::TensorInfo| {
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

/// The absolute mean, and the codes of weights that are rounded by it.
fn ternarised(weights: &[f32]) -> (f32, Vec<f32>) {
    let sum: f64 = weights.iter().map(|x| f64::from(x.abs())).sum();
    let mean = (sum / weights.len() as f64) as f32;
    (mean, weights.iter().map(|x| (x / mean).round_ties_even().clamp(-1.0, 1.0)).collect())
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

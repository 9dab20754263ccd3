//! `tritloom requantize`: a smaller embedding, and nothing else changed.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and report")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::{BF16, F16, F32, File, Kv, Random, path, read, tiny};
use tritloom::blocks::{block_type, quantize};
use tritloom::gguf::{TensorType, type_id};

const EMBEDDING: &str = "token_embd.weight";

/// A path of a test's own, where no file is yet.
fn fresh(name: &str) -> PathBuf {
    let path = path("target/tmp").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(&path);
    path
}

fn written(name: &str, file: &File) -> PathBuf {
    let path = fresh(name);
    fs::write(&path, file.build()).unwrap();
    path
}

fn requantize(input: &Path, output: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tritloom"));
    command.arg("requantize").arg(input).arg(output).args(args).output().unwrap()
}

/// Fails unless the command did, and left no file.
#[track_caller]
fn assert_fails(output: Output, left: &Path, code: &str, facts: &[&str]) {
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for fact in [&[&*format!("error[{code}]: ")], facts].concat() {
        assert!(stderr.contains(fact), "{stderr:?} does not name {fact:?}");
    }
    assert!(!left.exists(), "{} is left", left.display());
}

/// A model whose embedding has rows of 256.
fn model(type_id: u32, with_head: bool) -> File {
    let mut file = tiny();
    file.tensors.remove(0);
    let mut random = Random(9);
    file.add(EMBEDDING, &[256, 40], type_id, &mut random);
    if with_head {
        file.add("output.weight", &[256, 41], type_id, &mut random);
    }
    // Not the last of the file.
    file.add("after", &[3], F32, &mut random);
    file
}

fn values(type_id: u32, bytes: &[u8]) -> Vec<f32> {
    let pairs = bytes.as_chunks::<2>().0;
    match type_id {
        F16 => pairs.iter().map(|b| half::f16::from_le_bytes(*b).to_f32()).collect(),
        BF16 => pairs.iter().map(|b| half::bf16::from_le_bytes(*b).to_f32()).collect(),
        _ => bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
    }
}

#[test]
fn only_the_embedding_and_the_head_change() {
    type Quantize = fn(&[f32], &mut Vec<u8>) -> Result<(), usize>;
    let types: [(&str, TensorType, Quantize); 2] =
        [("q8_0", TensorType::Q8_0, quantize::q8_0), ("q6_k", TensorType::Q6K, quantize::q6_k)];
    for (option, ty, quantize) in types {
        for (type_id, with_head) in [(F16, false), (F32, true), (BF16, true)] {
            let before = model(type_id, with_head);
            let input = written(&format!("requantize-{option}-{type_id}.gguf"), &before);
            let output = fresh(&format!("requantized-{option}-{type_id}.gguf"));
            let done = requantize(&input, &output, &["--embedding", option]);
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            let told = String::from_utf8(done.stdout).unwrap();
            assert!(told.contains(EMBEDDING) && told.contains(&ty.to_string()), "{told}");

            let bytes = fs::read(&output).unwrap();
            let (found, original) = (read(&bytes).unwrap(), read(&before.build()).unwrap());
            assert!(found.metadata.iter().eq(original.metadata.iter()));
            assert_eq!(found.tensors.len(), before.tensors.len());
            for (tensor, before) in found.tensors.iter().zip(&before.tensors) {
                let range = tensor.offset as usize..(tensor.offset + tensor.len) as usize;
                assert_eq!((&tensor.name, &tensor.ne), (&before.name, &before.ne));
                let mut expected = before.bytes.clone();
                if [EMBEDDING, "output.weight"].contains(&tensor.name.as_str()) {
                    assert_eq!(tensor.ty, ty);
                    expected.clear();
                    quantize(&values(type_id, &before.bytes), &mut expected).unwrap();
                }
                assert_eq!(bytes[range], expected, "{}", tensor.name);
            }
        }
    }
}

#[test]
fn an_embedding_in_blocks_is_read_too() {
    let mut q8_0 = model(F32, false);
    let tensor = q8_0.tensor(EMBEDDING);
    let mut blocks = vec![];
    quantize::q8_0(&values(F32, &tensor.bytes), &mut blocks).unwrap();
    (tensor.type_id, tensor.bytes) = (type_id::Q8_0, blocks);
    let input = written("requantize-blocks.gguf", &q8_0);
    let output = fresh("requantized-blocks.gguf");
    let done = requantize(&input, &output, &["--embedding", "q6_k"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let bytes = fs::read(&output).unwrap();
    let found = read(&bytes).unwrap().tensor(EMBEDDING).unwrap().clone();
    let values = block_type(TensorType::Q8_0).unwrap().values(&q8_0.tensor(EMBEDDING).bytes);
    let mut expected = vec![];
    quantize::q6_k(&values.unwrap(), &mut expected).unwrap();
    assert_eq!(bytes[found.offset as usize..][..found.len as usize], expected);

    // If a tensor would not become smaller, it stays as it is.
    let again = fresh("requantized-again.gguf");
    let refused = requantize(&output, &again, &["--embedding", "q8_0"]);
    assert_fails(refused, &again, "bad-option", &["`embedding`", "Q8_0", "nothing to do"]);
}

#[test]
fn the_volumes_of_a_model_become_one_file() {
    let whole = model(F16, false);
    let volumes = whole.split(&[5, 60]);
    let names: Vec<_> = (1..=3)
        .zip(&volumes)
        .map(|(n, volume)| written(&format!("requantize-0000{n}-of-00003.gguf"), volume))
        .collect();
    let (output, expected) = (fresh("requantized-volumes.gguf"), fresh("requantized-whole.gguf"));
    let input = written("requantize-whole.gguf", &whole);
    for (input, output) in [(&names[0], &output), (&input, &expected)] {
        let done = requantize(input, output, &["--embedding", "q8_0"]);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    assert!(fs::read(output).unwrap() == fs::read(expected).unwrap());
}

#[test]
fn an_existing_file_is_overwritten_only_with_force() {
    let input = written("requantize-force.gguf", &model(F16, false));
    let output = fresh("requantized-force.gguf");
    let args = ["--embedding", "q8_0"];
    assert!(requantize(&input, &output, &args).status.success());
    let first = fs::read(&output).unwrap();
    fs::write(&output, "something else").unwrap();
    let refused = requantize(&input, &output, &args);
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("bad-option") && stderr.contains("--force"), "{stderr}");
    assert_eq!(fs::read(&output).unwrap(), b"something else");
    assert!(requantize(&input, &output, &["--embedding", "q8_0", "--force"]).status.success());
    assert_eq!(fs::read(&output).unwrap(), first);

    let before = fs::read(&input).unwrap();
    let itself = requantize(&input, &input, &["--embedding", "q8_0", "--force"]);
    let stderr = String::from_utf8(itself.stderr).unwrap();
    assert!(stderr.contains("bad-option") && stderr.contains("the model itself"), "{stderr}");
    assert_eq!(fs::read(&input).unwrap(), before);
}

#[test]
fn a_failure_leaves_no_file() {
    let output = fresh("requantized-bad.gguf");
    let args = ["--embedding", "q6_k"];
    let fails = |name: &str, file: &File, code: &str, facts: &[&str]| {
        let input = written(&format!("requantize-{name}.gguf"), file);
        assert_fails(requantize(&input, &output, &args), &output, code, facts);
    };
    for (name, bad) in [("nan", half::f16::NAN), ("infinity", half::f16::INFINITY)] {
        let mut file = model(F16, false);
        file.tensor(EMBEDDING).bytes[2 * 9000..][..2].copy_from_slice(&bad.to_le_bytes());
        fails(name, &file, "bad-gguf", &["element 9000", EMBEDDING]);
    }
    // Rows of 128 are no blocks of 256.
    fails("rows", &tiny(), "tensor-shape", &[EMBEDDING, "[128, 264]", "256"]);
    let mut file = model(F16, false);
    file.tensor(EMBEDDING).type_id = type_id::I2_S;
    let bytes = 256 * 40 / 4 + 32;
    file.tensor(EMBEDDING).bytes.truncate(bytes);
    fails("i2s", &file, "tensor-shape", &[EMBEDDING, "I2_S"]);
    let mut file = model(F16, false);
    file.tensors.retain(|tensor| tensor.name != EMBEDDING);
    fails("absent", &file, "missing-tensor", &[EMBEDDING]);
    let missing = requantize(&fresh("no-such.gguf"), &output, &args);
    assert_fails(missing, &output, "io", &["no-such.gguf"]);
    let mut file = model(F16, false);
    file.set("general.alignment", Kv::U32(3));
    fails("alignment", &file, "bad-gguf", &["general.alignment"]);
    // A device is no file to remove.
    let input = written("requantize-full.gguf", &model(F16, false));
    let full = PathBuf::from("/dev/full");
    let failed = requantize(&input, &full, &["--embedding", "q8_0", "--force"]);
    let stderr = String::from_utf8(failed.stderr).unwrap();
    assert!(stderr.contains("could not write /dev/full"), "{stderr}");
    assert!(full.exists());
}

//! Files that the command line writes run on the GPU as on the reference.

use std::fs;
use std::process::Command;

use tritloom::native::block_on;
use tritloom::reference::Reference;
use tritloom::session::KvType;

use crate::setup::Setup;
use crate::support::families::distance;
use crate::support::{json, open, path};

/// Runs a command with these arguments and, as the last, the file that it is to write.
fn written(name: &str, args: &[&str]) -> String {
    let name = format!("target/tmp/engine-{}-{name}.gguf", std::process::id());
    let mut command = Command::new(env!("CARGO_BIN_EXE_tritloom"));
    let done = command.current_dir(path("")).args(args).arg(&name).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    name
}

/// With float activations and an f32 cache, and, of I2_S, with int8 activations as in training.
#[test]
fn converted_and_requantized_files_compute_what_the_reference_computes() {
    let ids: Vec<u32> = serde_json::from_value(json("tests/data/convert/tokens.json")).unwrap();
    let mut bad = Vec::new();
    for (name, args) in [
        ("bitnet", &["convert", "tests/data/convert/bitnet"][..]),
        ("llama", &["convert", "--type", "q2_0", "tests/data/convert/llama"]),
        ("qwen3", &["convert", "--embedding", "q8_0", "tests/data/convert/qwen3"]),
        ("minicpm", &["convert", "tests/data/convert/minicpm"]),
        ("q6_k", &["requantize", "--embedding", "q6_k", "tests/data/models/minicpm-tq2_0.gguf"]),
    ] {
        let file = written(name, args);
        let bytes = fs::read(path(&file)).unwrap();
        let expected = block_on(Reference::load(&mut open(&file))).unwrap().forward(&ids).unwrap();
        fs::remove_file(path(&file)).unwrap();
        let mut session =
            Setup::default().float_activations().kv(KvType::F32).load(&bytes).unwrap();
        let found: Vec<f32> =
            (1..=ids.len()).flat_map(|n| block_on(session.logits(&ids[..n])).unwrap()).collect();
        let off = distance(&found, &expected.concat());
        if off > 1e-4 {
            bad.push(format!("{name}: {off:.2e}"));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

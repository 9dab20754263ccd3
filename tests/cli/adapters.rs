//! Adapters of the commands that compute.

use std::fs;

use crate::{assert_fails, assert_wrong_usage, target, text};

/// An adapter for the bundled model.
fn adapter(name: &str, rank: &str) -> String {
    let file = target(name);
    assert_eq!(text(&["random", "--shape", "tiny", "--adapter-rank", rank, "--force", &file]), "");
    file
}

#[test]
fn each_command_applies_adapters_with_their_scales() {
    let file = adapter("adapter=4.gguf", "4");
    let [off, one, most] = ["0", "1", "30"].map(|scale| format!("{file}={scale}"));
    let on_cpu = ["--backend", "cpu"];
    let generate = ["--raw", "--max-tokens", "12", "Once upon a time"];
    let decide = ["decide", "--question", "Is it about a cat?", "A cat sat."];
    let embed = ["embed", "--model", "models/tiny-stories.gguf", "--pooling", "mean", "A cat sat."];
    let with = |command: &[&str], adapter: &str| {
        text(&[command, &on_cpu, &["--adapter", adapter]].concat())
    };
    for command in [&generate[..], &decide, &embed] {
        let alone = text(&[command, &on_cpu].concat());
        assert_eq!(with(command, &off), alone);
        assert_ne!(with(command, &most), alone, "{command:?}");
    }
    // Without a scale it is 1; a path may have an equals sign.
    assert_eq!(with(&embed, &file), with(&embed, &one));
    assert_ne!(with(&embed, &file), with(&embed, &off));
}

#[test]
fn adapters_that_do_not_fit_are_refused() {
    let run = ["--backend", "cpu", "--max-tokens", "1", "Hi", "--adapter"];
    let fails = |adapter: &str, code: &str, facts: &[&str]| {
        assert_fails(&[&run[..], &[adapter]].concat(), code, facts);
    };
    fails("missing.gguf", "io", &["missing.gguf"]);
    fails("models/tiny-stories.gguf", "bad-adapter", &["general.type"]);
    fails("tests/data/lora/qwen3-r8.gguf", "bad-adapter", &["qwen3"]);
    let file = adapter("adapter-scale.gguf", "2");
    fails(&format!("{file}=NaN"), "bad-option", &["scale"]);
}

#[test]
fn a_random_adapter_has_a_rank_and_excludes_what_is_about_models() {
    let file = adapter("adapter-rank.gguf", "3");
    let bytes = fs::read(&file).unwrap();
    adapter("adapter-rank.gguf", "3");
    assert!(fs::read(&file).unwrap() == bytes, "the second file differs from the first");
    let random = ["random", "--shape", "tiny", &file, "--adapter-rank"];
    assert_fails(&[&random[..], &["3"]].concat(), "bad-option", &["--force"]);
    for rank in ["0", "513", "many"] {
        assert_wrong_usage(&[&random[..], &[rank]].concat(), &["adapter-rank"]);
    }
    assert_wrong_usage(&[&random[..], &["3", "--counting"]].concat(), &["--counting"]);
}

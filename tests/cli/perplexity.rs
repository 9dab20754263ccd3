//! `tritloom perplexity`.

use crate::{assert_fails, file, text};

/// The number after `perplexity `, and the text after it.
fn perplexity(args: &[&str]) -> (f64, String) {
    let shown = text(&[&["perplexity"], args].concat());
    let (number, rest) = shown.strip_prefix("perplexity ").unwrap().split_once(' ').unwrap();
    (number.parse().unwrap(), rest.into())
}

#[test]
fn perplexity_is_the_same_on_gpu_and_cpu() {
    let story = file("story.txt", b"Once upon a time, there was a little cat. It was very happy.");
    let windows = ["--context", "8", "--stride", "3"];
    let args = [&[&*story], &windows[..]].concat();
    let (gpu, shown) = perplexity(&[&args[..], &["--backend", "webgpu"]].concat());
    assert!(shown.starts_with("+/- "), "{shown}");
    let line = shown.lines().nth(1).unwrap();
    let (scored, all) = line.split_once(" tokens scored").unwrap();
    let (scored, of) = scored.split_once(" of ").unwrap();
    // All but the first.
    assert_eq!(scored.parse::<usize>().unwrap() + 1, of.parse::<usize>().unwrap());
    assert_eq!(all, ", in windows of 8, stride 3");
    let (cpu, _) = perplexity(&[&args[..], &["--backend", "cpu"]].concat());
    assert!((gpu / cpu - 1.0).abs() < 0.02, "{gpu}, {cpu}");
    // The model tells stories: it knows how they begin, and more so with all that came before.
    let (whole, _) = perplexity(&[&*story, "--backend", "cpu"]);
    assert!(1.0 < whole && whole < cpu && cpu < 100.0, "{whole}, {cpu}");
    let noise = file("noise.txt", b"zebra, of 71 (the) is an xylem. ;; Qu'un");
    assert!(perplexity(&[&noise, "--backend", "cpu"]).0 > 100.0);
}

#[test]
fn perplexity_refuses_bad_texts_and_windows() {
    let fails = |args: &[&str], code: &str, facts: &[&str]| {
        assert_fails(&[&["perplexity"], args].concat(), code, facts);
    };
    let good = file("good.txt", b"Once upon a time");
    fails(&[&file("empty.txt", b"")], "bad-option", &["text", "is empty"]);
    fails(&[&file("latin-1.txt", b"Once \xe9")], "bad-option", &["not UTF-8 (at byte 5)"]);
    fails(&["no/such.txt"], "io", &["no/such.txt"]);
    fails(&[&good, "--context", "1"], "bad-option", &["context"]);
    fails(&[&good, "--context", "1025"], "bad-option", &["context", "1024"]);
    fails(&[&good, "--context", "8", "--stride", "9"], "bad-option", &["stride", "8"]);
    // This model begins no text with a token of its own.
    let short = ["--model", "tests/data/models/qwen3-q2_0.gguf"];
    let one = file("one.txt", b"a");
    fails(&[&[&*one], &short[..]].concat(), "bad-option", &["text", "at least 2"]);
}

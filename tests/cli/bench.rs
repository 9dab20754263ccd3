//! `tritloom bench`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::tiny;
use crate::{file, target, text, tritloom};

#[test]
fn bench_reports_figures_with_bytes_and_a_soak() {
    let model = file("bench.gguf", &tiny().build());
    let lengths = ["--decode", "8,99", "--tokens", "4"];
    let times =
        ["--runs", "2", "--loads", "1", "--sampling", "--profile", "--soak", "100", "--json"];
    let adapter = ["--adapter-rank", "4"];
    let bench = ["bench", "--model", &model, "--backend", "webgpu"];
    let report = text(&[&bench, &lengths[..], &times[..], &adapter].concat());
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let figures = report["figures"].as_array().unwrap();
    let whats: Vec<_> = figures.iter().map(|figure| figure["what"].as_str().unwrap()).collect();
    // There is no figure for 99 tokens: they do not fit into the context of 64. Of the usual prompts
    // that of 16 does.
    let expected = [
        "load from a file",
        "last byte to ready",
        "last byte to first token, 16-token prompt",
        "time to first token, 16-token prompt",
        "prefill, 16-token prompt",
        "decode, 8 tokens of context",
        "decode, 8 tokens of context, temperature",
        "decode, 8 tokens of context, top-k and top-p",
        "decode, 8 tokens of context, top-p",
        "decode, 8 tokens of context, min-p",
        "time to first token, 16-token prompt, adapter of rank 4",
        "prefill, 16-token prompt, adapter of rank 4",
        "decode, 8 tokens of context, adapter of rank 4",
        "decode, 8 tokens of context, adapter of rank 4, temperature",
        "decode, 8 tokens of context, adapter of rank 4, top-k and top-p",
        "decode, 8 tokens of context, adapter of rank 4, top-p",
        "decode, 8 tokens of context, adapter of rank 4, min-p",
        "abort to its answer",
        "abort to another answer's first token",
    ];
    assert_eq!(whats, expected);
    for figure in figures {
        let [least, median, most] = ["least", "median", "most"].map(|name| number(&figure[name]));
        // A drawn answer may end with its first token, and then has no rate.
        let is_drawn = figure["what"].as_str().unwrap().starts_with("decode, 8 tokens of context,");
        assert!(0.0 < least || is_drawn, "{figure}");
        assert!(least <= median && median <= most, "{figure}");
    }
    let runs: Vec<_> = figures.iter().map(|figure| figure["runs"].as_u64().unwrap()).collect();
    let mut expected = vec![2; whats.len()];
    expected[..3].fill(1);
    assert_eq!(runs, expected);
    assert!(report["leftOut"].as_array().unwrap().is_empty());
    let decode = &figures[5];
    let rate = number(&decode["median"]) * number(&decode["bytesPerToken"]) / 1e9;
    let share = rate / number(&report["bandwidth"]);
    assert!((number(&decode["share"]) - share).abs() <= 1e-6 * share, "{decode}");

    let profiles = report["profiles"].as_array().unwrap();
    let drawn: Vec<_> = profiles.iter().map(|step| step["drawn"].as_str().unwrap_or("")).collect();
    // Those of a token, then that of a prompt.
    assert_eq!(drawn, ["", "temperature", "top-k and top-p", "top-p", "min-p", ""]);

    let soak = &report["soak"];
    assert_eq!(soak["tokens"], 100);
    assert!(number(&soak["chats"]) > 1.0, "{soak}");
    let rates = soak["rates"].as_array().unwrap();
    assert!(rates.len() == 2 && rates.iter().all(|rate| number(rate) > 0.0), "{soak}");
    assert!(number(&soak["gpuBytesAfter"]) <= number(&soak["gpuBytesBefore"]) + 256.0, "{soak}");
}

#[test]
fn bench_reports_the_figures_that_it_leaves_out_for_time() {
    let model = file("bench-patience.gguf", &tiny().build());
    let args = ["--decode", "8", "--prefill", "16,32", "--tokens", "4", "--patience", "0"];
    let gpu = [
        "--context",
        "40",
        "--kv",
        "int8",
        "--no-subgroups",
        "--packed-dot",
        "false",
        "--max-binding",
        "65536",
    ];
    let report = text(&[&["bench", "--model", &model, "--json"], &args[..], &gpu].concat());
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let kernels = report["info"]["kernels"].as_array().unwrap();
    assert!(kernels.iter().all(|name| !name.as_str().unwrap().ends_with("/subgroup")), "{report}");
    assert_eq!(report["info"]["kv"], "int8");
    assert_eq!(report["info"]["contextLength"], 40);
    let figures = report["figures"].as_array().unwrap();
    // Loading and aborting are measured once in any case.
    assert_eq!(figures.len(), 5);
    assert!(figures.iter().all(|figure| figure["runs"] == 1), "{report}");
    let left_out = report["leftOut"].as_array().unwrap();
    let whats: Vec<_> = left_out.iter().map(|one| one["what"].as_str().unwrap()).collect();
    let lengths = [16, 32].map(|len| format!("time to first token, {len}-token prompt"));
    assert_eq!(whats, [&*lengths[0], &lengths[1], "decode, 8 tokens of context"]);
    let seconds = |at: usize| left_out[at]["seconds"].as_f64().unwrap();
    assert!(seconds(0) > 0.0 && (seconds(1) - 2.0 * seconds(0)).abs() < 1e-9, "{report}");
}

/// A model that counts copies a prompt that counts, so all drafted tokens are right. If some tokens
/// of the prompt are changed, the drafted tokens between them are right.
#[test]
fn bench_reports_the_gain_of_prompt_lookup_on_a_copied_text() {
    let model = &target("counting.gguf");
    let args = ["random", "--shape", "tiny", "--layers", "2", "--counting", "--force", model];
    assert_eq!(text(&args), "");
    let lengths = ["--decode", "16", "--prefill", "16", "--tokens", "48"];
    let times = ["--runs", "1", "--loads", "1", "--lookup", "--json"];
    let report = text(&[&["bench", "--model", model], &lengths[..], &times[..]].concat());
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["info"]["name"], "random, counting");
    let lookups = report["lookups"].as_array().unwrap();
    assert_eq!(lookups.len(), 2);
    for lookup in lookups {
        let number = |name: &str| lookup[name].as_f64().unwrap();
        let rate = |kind: &str| lookup[kind]["median"].as_f64().unwrap();
        assert_eq!((number("promptTokens"), number("tokens")), (80.0, 48.0));
        let gain = rate("lookup") / rate("plain");
        assert!(gain > 0.0 && (number("gain") - gain).abs() <= 1e-9 * gain, "{lookup}");
        let each = number("acceptedTokens") / number("draftPasses");
        assert!((number("acceptedPerPass") - each).abs() < 1e-9, "{lookup}");
    }
    let [whole, changed] = [&lookups[0], &lookups[1]];
    assert!(whole["changed"].is_null());
    // After three tokens the repetition is noticed. Then come passes of eight tokens; the last one
    // is shorter.
    assert_eq!([&whole["draftPasses"], &whole["draftedTokens"]], [6, 39]);
    assert_eq!(whole["acceptedTokens"], whole["draftedTokens"]);
    assert_eq!(changed["changed"], 20);
    let [drafted, accepted] =
        ["draftedTokens", "acceptedTokens"].map(|name| changed[name].as_u64());
    assert!(Some(8) < accepted && accepted < drafted, "{changed}");
}

#[cfg(unix)]
#[test]
fn bench_removes_its_model_when_it_is_interrupted() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("interrupted");
    fs::create_dir_all(&folder).unwrap();
    let files = || fs::read_dir(&folder).unwrap().count();
    for signal in ["-INT", "-TERM"] {
        let args = ["bench", "--shape", "tiny", "--soak", "100000"];
        let mut command = tritloom(&args);
        let mut child = command.env("TMPDIR", &folder).stderr(Stdio::piped()).spawn().unwrap();
        // Kept open, so that it can go on writing.
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // At this point it has written its model and loads it.
        assert!(lines.any(|line| line.unwrap() == "measuring: load 1 of 3"));
        assert_eq!(files(), 1);
        // The shell's own `kill`: not every system has a program of this name.
        let kill = format!("kill {signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(files(), 0);
    }
}

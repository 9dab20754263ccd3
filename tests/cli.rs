//! The command line, as a user runs it.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and tell")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use support::{File, Kv, json, path, tiny};

fn ternlight(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ternlight"));
    command.args(args).current_dir(path(""));
    command
}

fn run(args: &[&str]) -> Output {
    ternlight(args).output().unwrap()
}

#[track_caller]
fn text(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Asserts exit code 1, `error[code]: ` with every fact on stderr, and nothing on stdout.
#[track_caller]
fn assert_fails(args: &[&str], code: &str, facts: &[&str]) {
    let output = run(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
    for fact in [&[&*format!("error[{code}]: ")], facts].concat() {
        assert!(stderr.contains(fact), "{args:?}: {stderr:?} does not name {fact:?}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(output.stdout.is_empty(), "{args:?}");
}

/// A file that lasts as long as the target folder.
fn file(name: &str, bytes: &[u8]) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

fn golden(name: &str) -> serde_json::Value {
    let goldens = json("models/tiny-stories.goldens.json");
    let prompts = goldens["prompts"].as_array().unwrap();
    prompts.iter().find(|prompt| prompt["name"] == name).unwrap().clone()
}

const SHORT: &[&str] = &["--cpu", "--max-tokens", "8"];

#[test]
fn the_cpu_answers_as_the_goldens_do() {
    let golden = golden("who");
    let question = golden["turns"][0][1].as_str().unwrap();
    assert!(golden["greedy_stopped"].as_bool().unwrap());
    let answer = text(&["--cpu", question]);
    assert_eq!(answer, format!("{}\n", golden["greedy_text"].as_str().unwrap()));
}

#[test]
fn the_gpu_answers_as_the_goldens_do() {
    let golden = golden("who");
    let question = golden["turns"][0][1].as_str().unwrap();
    let answer = text(&[question]);
    assert_eq!(answer, format!("{}\n", golden["greedy_text"].as_str().unwrap()));
}

#[test]
fn raw_text_is_continued() {
    let golden = golden("once");
    let continuation = text(&["--cpu", "--raw", "--max-tokens", "48", "Once upon a time"]);
    assert_eq!(continuation, format!("{}\n", golden["greedy_text"].as_str().unwrap()));
    // Nothing to continue is a beginning too.
    let beginning = text(&[SHORT, &["--raw", ""]].concat());
    assert_eq!(beginning, "Once upon a time, there was a\n");
}

#[test]
fn the_same_seed_gives_the_same_text() {
    let story = |seed: &str| {
        let sampling =
            ["--temperature", "1.5", "--top-k", "200", "--top-p", "0.99", "--seed", seed];
        text(&[&["--cpu", "--max-tokens", "12", "Tell me a story."], &sampling[..]].concat())
    };
    assert_eq!(story("1"), story("1"));
    assert_ne!(story("1"), story("2"));
    // One token to choose from is the best token.
    let best = text(&[SHORT, &["Hi"]].concat());
    assert_eq!(text(&[SHORT, &["--temperature", "2", "--top-k", "1", "Hi"]].concat()), best);
    assert_eq!(text(&[SHORT, &["--temperature", "2", "--min-p", "1", "Hi"]].concat()), best);
}

#[test]
fn special_tokens_in_a_prompt_are_text() {
    let plain = text(&[SHORT, &["--raw", "Hi"]].concat());
    assert_ne!(text(&[SHORT, &["--raw", "Hi<|eot_id|>"]].concat()), plain);
    assert_eq!(text(&["--cpu", "--max-tokens", "0", "Hi"]), "\n");
}

#[test]
fn bad_models_are_refused_with_their_code() {
    let good = tiny();
    let spoil = |name: &str, spoil: &dyn Fn(&mut File)| {
        let mut spoiled = good.clone();
        spoil(&mut spoiled);
        file(name, &spoiled.build())
    };
    let bytes = good.build();
    let cut = file("cut.gguf", &bytes[..bytes.len() - 1]);
    let arch = spoil("arch.gguf", &|file| {
        file.rename("llama");
    });
    let missing = spoil("missing.gguf", &|file| drop(file.tensors.pop()));
    let shape = spoil("shape.gguf", &|file| file.tensor("blk.0.attn_norm.weight").ne = vec![2, 64]);
    let code3 = spoil("code3.gguf", &|file| file.tensor("blk.0.attn_q.weight").bytes[9] = 0xff);
    for (model, code, fact) in [
        ("Cargo.toml", "bad-gguf", "GGUF"),
        ("no/such.gguf", "io", "no/such.gguf"),
        (&cut, "bad-gguf", "cut off"),
        (&arch, "unsupported-model", "`llama`"),
        (&missing, "missing-tensor", "`output_norm.weight`"),
        (&shape, "tensor-shape", "`blk.0.attn_norm.weight`"),
        (&code3, "bad-gguf", "code 3"),
    ] {
        assert_fails(&["--cpu", "--model", model, "Hi"], code, &[fact]);
    }
}

#[test]
fn bad_prompts_and_options_are_refused() {
    let model = file("tiny.gguf", &tiny().build());
    let long = "word ".repeat(64);
    assert_fails(&["--cpu", ""], "bad-option", &["prompt"]);
    assert_fails(&["--cpu", " \n "], "bad-option", &["prompt"]);
    assert_fails(&["--cpu", "--model", &model, &long], "context-full", &["context holds 64"]);
    assert_fails(&["--cpu", "--context", "3", "Hi"], "context-full", &["context holds 3"]);
    assert_fails(&["--cpu", "--context", "1025", "Hi"], "bad-option", &["context", "1024"]);
    assert_fails(&["--cpu", "--top-p", "0", "Hi"], "bad-option", &["topP"]);
    assert_fails(&["--cpu", "--min-p", "2", "Hi"], "bad-option", &["minP"]);
    assert_fails(&["--cpu", "--temperature", "nan", "Hi"], "bad-option", &["temperature"]);
}

/// A text that fills the context ends there.
#[test]
fn the_context_ends_a_text() {
    let model = file("small.gguf", &tiny().build());
    text(&["--cpu", "--model", &model, "--temperature", "5", "Hi"]);
    assert!(!text(&["--cpu", "--context", "12", "--raw", "Once upon a time"]).trim().is_empty());
}

#[test]
fn wrong_usage_exits_with_2() {
    for args in [&[][..], &["--no-such", "Hi"], &["--seed", "x", "Hi"], &["Hi", "there"]] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("--help"), "{args:?}");
    }
    assert!(text(&["--help"]).contains("--min-p"));
    assert!(text(&["--version"]).starts_with("ternlight "));
}

#[test]
fn a_reader_that_leaves_stops_the_text() {
    let mut child = ternlight(&["--cpu", "Tell me a story about a brave cat"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 4]).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn inspect_shows_what_is_in_a_file() {
    let shown = text(&["inspect", "models/tiny-stories.gguf"]);
    for line in [
        "GGUF 3, 90 tensors, data at 152352",
        "general.architecture = \"bitnet-b1.58\"",
        "bitnet-b1.58.rope.freq_base = 10000",
        "token_embd.weight                F16 [512, 4096], 4194304 bytes",
        "ternlight runs this model",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "no line {line:?} in\n{shown}");
    }
    // The counts of the goldens: 87280, 87747 and 87117 of 262144.
    let row = shown.lines().find(|line| line.starts_with("blk.0.attn_q.weight")).unwrap();
    assert!(row.ends_with("-1 33.3 %, 0 33.5 %, +1 33.2 %"), "{row}");
    assert!(shown.contains("all ternary weights: -1 33.0 %, 0 33.8 %, +1 33.2 %"));

    let mut other = File::empty();
    other.set("general.architecture", Kv::Str("llama".into()));
    let shown = text(&["inspect", &file("other.gguf", &other.build())]);
    assert!(shown.contains("does not run this model: unsupported model: architecture `llama`"));
}

#[test]
fn bench_reports_figures_with_bytes_and_a_soak() {
    let model = file("bench.gguf", &tiny().build());
    let lengths = ["--decode", "8,99", "--prefill", "16", "--tokens", "4"];
    let times = ["--runs", "2", "--loads", "1", "--soak", "100", "--json"];
    let report = text(&[&["bench", "--model", &model], &lengths[..], &times[..]].concat());
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let figures = report["figures"].as_array().unwrap();
    let whats: Vec<_> = figures.iter().map(|figure| figure["what"].as_str().unwrap()).collect();
    // 99 tokens do not fit into the context of 64.
    let expected = [
        "load from a file",
        "last byte to ready",
        "last byte to first token, 16-token prompt",
        "time to first token, 16-token prompt",
        "prefill, 16-token prompt",
        "decode, 8 tokens of context",
        "abort to its answer",
        "abort to another answer's first token",
    ];
    assert_eq!(whats, expected);
    for figure in figures {
        let [least, median, most] = ["least", "median", "most"].map(|name| number(&figure[name]));
        assert!(0.0 < least && least <= median && median <= most, "{figure}");
    }
    let runs: Vec<_> = figures.iter().map(|figure| figure["runs"].as_u64().unwrap()).collect();
    assert_eq!(runs, [1, 1, 1, 2, 2, 2, 2, 2]);
    assert!(report["leftOut"].as_array().unwrap().is_empty());
    let decode = &figures[5];
    let rate = number(&decode["median"]) * number(&decode["bytesPerToken"]) / 1e9;
    let share = rate / number(&report["bandwidth"]);
    assert!((number(&decode["share"]) - share).abs() <= 1e-6 * share, "{decode}");

    let soak = &report["soak"];
    assert_eq!(soak["tokens"], 100);
    assert!(number(&soak["chats"]) > 1.0, "{soak}");
    let rates = soak["rates"].as_array().unwrap();
    assert!(rates.len() == 2 && rates.iter().all(|rate| number(rate) > 0.0), "{soak}");
    assert!(number(&soak["gpuBytesAfter"]) <= number(&soak["gpuBytesBefore"]) + 256.0, "{soak}");
    for wrong in ["--runs", "--loads"] {
        assert_eq!(run(&["bench", wrong, "0"]).status.code(), Some(2));
    }
}

#[test]
fn bench_leaves_out_what_takes_too_long_and_says_so() {
    let model = file("bench-patience.gguf", &tiny().build());
    let args = ["--decode", "8", "--prefill", "16,32", "--tokens", "4", "--patience", "0"];
    let report = text(&[&["bench", "--model", &model, "--json"], &args[..]].concat());
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let figures = report["figures"].as_array().unwrap();
    // What there is of loading and stopping is taken once.
    assert_eq!(figures.len(), 5);
    assert!(figures.iter().all(|figure| figure["runs"] == 1), "{report}");
    let left_out = report["leftOut"].as_array().unwrap();
    let whats: Vec<_> = left_out.iter().map(|one| one["what"].as_str().unwrap()).collect();
    let lengths = [16, 32].map(|len| format!("time to first token, {len}-token prompt"));
    assert_eq!(whats, [&*lengths[0], &lengths[1], "decode, 8 tokens of context"]);
    let seconds = |at: usize| left_out[at]["seconds"].as_f64().unwrap();
    assert!(seconds(0) > 0.0 && (seconds(1) - 2.0 * seconds(0)).abs() < 1e-9, "{report}");
}

#[cfg(unix)]
#[test]
fn bench_removes_its_model_when_it_is_interrupted() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("interrupted");
    fs::create_dir_all(&folder).unwrap();
    let files = || fs::read_dir(&folder).unwrap().count();
    for signal in ["-INT", "-TERM"] {
        let args = ["bench", "--shape", "tiny", "--soak", "100000"];
        let mut command = ternlight(&args);
        let mut child = command.env("TMPDIR", &folder).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        // It loads the model that it has written.
        assert!(stderr.lines().any(|line| line.unwrap() == "measuring: load 1 of 3"));
        assert_eq!(files(), 1);
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(files(), 0);
    }
}

/// A model that counts copies a text that counts: prompt lookup foresees all of it, and of a text with
/// other tokens in it what lies between them.
#[test]
fn bench_reports_what_prompt_lookup_gains_on_a_copied_text() {
    let model = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("counting.gguf");
    let model = model.to_str().unwrap();
    assert_eq!(text(&["random", "--shape", "tiny", "--layers", "2", "--counting", model]), "");
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
    // Three tokens until it is noticed, then passes of eight tokens, the last of what is left.
    assert_eq!([&whole["draftPasses"], &whole["draftedTokens"]], [6, 39]);
    assert_eq!(whole["acceptedTokens"], whole["draftedTokens"]);
    assert_eq!(changed["changed"], 20);
    let [drafted, accepted] =
        ["draftedTokens", "acceptedTokens"].map(|name| changed[name].as_u64());
    assert!(Some(8) < accepted && accepted < drafted, "{changed}");
}

#[test]
fn inspect_refuses_bad_files() {
    assert_fails(&["inspect", "Cargo.toml"], "bad-gguf", &["GGUF"]);
    assert_fails(&["inspect", "src"], "io", &["src"]);
    for name in ["bad_i2s_short", "bad_ntensors_huge", "bad_short0"] {
        let path = format!("tests/data/hostile/{name}.gguf");
        assert_fails(&["inspect", &path], "bad-gguf", &[]);
    }
    let mut spoiled = tiny();
    spoiled.tensor("blk.2.ffn_up.weight").bytes[5] |= 0b11;
    let spoiled = file("inspect-code3.gguf", &spoiled.build());
    assert_fails(&["inspect", &spoiled], "bad-gguf", &["`blk.2.ffn_up.weight`", "code 3"]);
}

//! Runs the command line as a user does.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and report")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use support::{File, Kv, Tensor, json, path, tiny};
use ternlight::gguf::type_id::Q2_0;

fn ternlight(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ternlight"));
    command.args(args).current_dir(path(""));
    command
}

fn run(args: &[&str]) -> Output {
    ternlight(args).output().unwrap()
}

/// Runs the program with `input` piped to its standard input.
fn run_with_input(args: &[&str], input: &[u8]) -> Output {
    let mut command = ternlight(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that refuses its arguments ends without reading its input.
    let written = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    assert!(written.is_ok() || !output.status.success(), "{written:?}");
    output
}

#[track_caller]
fn text(args: &[&str]) -> String {
    text_of(args, run(args))
}

#[track_caller]
fn text_of(args: &[&str], output: Output) -> String {
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Asserts exit code 1, `error[code]: ` and all facts on stderr, and nothing on stdout.
#[track_caller]
fn assert_fails(args: &[&str], code: &str, facts: &[&str]) {
    assert_failed(args, run(args), code, facts);
}

#[track_caller]
fn assert_failed(args: &[&str], output: Output, code: &str, facts: &[&str]) {
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
    for fact in [&[&*format!("error[{code}]: ")], facts].concat() {
        assert!(stderr.contains(fact), "{args:?}: {stderr:?} does not name {fact:?}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(output.stdout.is_empty(), "{args:?}");
}

/// Asserts exit code 2, all facts on stderr, and nothing on stdout.
#[track_caller]
fn assert_wrong_usage(args: &[&str], facts: &[&str]) {
    let output = run(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    for fact in facts {
        assert!(stderr.contains(fact), "{args:?}: {stderr:?} does not name {fact:?}");
    }
    assert!(output.stdout.is_empty(), "{args:?}");
}

/// A path in the target folder.
fn target(name: &str) -> String {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name).to_str().unwrap().to_owned()
}

/// Writes a file to the target folder. Returns its path.
fn file(name: &str, bytes: &[u8]) -> String {
    let path = target(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn golden(name: &str) -> serde_json::Value {
    let goldens = json("models/tiny-stories.goldens.json");
    let prompts = goldens["prompts"].as_array().unwrap();
    prompts.iter().find(|prompt| prompt["name"] == name).unwrap().clone()
}

const SHORT: &[&str] = &["--cpu", "--max-tokens", "8"];

#[test]
fn the_cpu_gives_the_golden_answer() {
    let golden = golden("who");
    let question = golden["turns"][0][1].as_str().unwrap();
    assert!(golden["greedy_stopped"].as_bool().unwrap());
    let answer = text(&["--cpu", question]);
    assert_eq!(answer, format!("{}\n", golden["greedy_text"].as_str().unwrap()));
}

#[test]
fn the_gpu_gives_the_golden_answer() {
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
    // An empty text can be continued too.
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
    // A choice among one token takes the best one.
    let best = text(&[SHORT, &["Hi"]].concat());
    assert_eq!(text(&[SHORT, &["--temperature", "2", "--top-k", "1", "Hi"]].concat()), best);
    assert_eq!(text(&[SHORT, &["--temperature", "2", "--min-p", "1", "Hi"]].concat()), best);
}

#[test]
fn penalties_change_the_text_on_the_gpu_as_on_the_cpu() {
    let story = |more: &[&str]| text(&[&["--max-tokens", "24", "Tell me a story."], more].concat());
    let all = ["--repeat-penalty", "1.3", "--presence-penalty", "1", "--frequency-penalty", "0.5"];
    let found = story(&all);
    assert_eq!(found, story(&[&all[..], &["--cpu"]].concat()));
    assert_ne!(found, story(&[]));
}

#[test]
fn special_tokens_in_a_prompt_are_text() {
    let plain = text(&[SHORT, &["--raw", "Hi"]].concat());
    assert_ne!(text(&[SHORT, &["--raw", "Hi<|eot_id|>"]].concat()), plain);
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
        ("no/such.gguf", "io", "could not read no/such.gguf"),
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
fn an_unknown_tokenizer_is_refused_unless_the_closest_is_asked_for() {
    let mut unknown = tiny();
    unknown.set("tokenizer.ggml.pre", Kv::Str("unknown".into()));
    let model = file("tokenizer.gguf", &unknown.build());
    let args = ["--model", &model, "--max-tokens", "2", "Hi"];
    assert_fails(&args, "unsupported-model", &["`unknown`", "tokenizer: closest"]);
    let output = run(&[&["--tokenizer", "closest"], &args[..]].concat());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert!(
        stderr.contains("note: pre-tokenizer `unknown`; `default` is used instead"),
        "{stderr}"
    );
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
    assert_fails(&["--cpu", "--repeat-penalty", "0", "Hi"], "bad-option", &["repeatPenalty"]);
    assert_fails(&["--cpu", "--temperature", "nan", "Hi"], "bad-option", &["temperature"]);
}

/// A text ends when the context is full.
#[test]
fn the_context_ends_a_text() {
    let model = file("small.gguf", &tiny().build());
    text(&["--cpu", "--model", &model, "--temperature", "5", "Hi"]);
    assert!(!text(&["--cpu", "--context", "12", "--raw", "Once upon a time"]).trim().is_empty());
}

/// The build gives the package the crate's version, so its template must not name another.
#[test]
fn crate_package_and_changelog_have_one_version() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(text(&["--version"]), format!("ternlight {version}\n"));
    assert_eq!(json("pkg-template/package.json")["version"], "0.0.0");
    let changes = fs::read_to_string(path("CHANGELOG.md")).unwrap();
    let (_, newest) = changes.split_once("\n## ").unwrap();
    let newest = newest.lines().take(4).collect::<Vec<_>>().join("\n");
    assert!(newest.contains(version), "CHANGELOG.md does not begin with {version}:\n{newest}");
}

#[test]
fn wrong_usage_exits_with_2() {
    for args in [&[][..], &["--no-such", "Hi"], &["--seed", "x", "Hi"], &["Hi", "there"]] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("--help"), "{args:?}");
    }
    assert!(text(&["--help"]).contains("--min-p"));
}

/// The message names the option and says what it must be, even for numbers below 0.
#[test]
fn numbers_out_of_range_are_refused_by_name() {
    for (args, option, rule) in [
        (&["--max-tokens", "0", "Hi"][..], "--max-tokens", "1 or more"),
        (&["--max-tokens", "-1", "Hi"], "--max-tokens", "1 or more"),
        (&["--max-tokens", "1.5", "Hi"], "--max-tokens", "1 or more"),
        (&["--context", "0", "Hi"], "--context", "1 or more"),
        (&["--context", "-8", "Hi"], "--context", "1 or more"),
        (&["--top-k", "-1", "Hi"], "--top-k", "from 0 to 4294967295"),
        (&["--seed", "-1", "Hi"], "--seed", "from 0 to 4294967295"),
        (&["--seed", "4294967296", "Hi"], "--seed", "from 0 to 4294967295"),
        (&["random", "--layers", "0", "x.gguf"], "--layers", "from 1 to 1024"),
        (&["random", "--layers", "-1", "x.gguf"], "--layers", "from 1 to 1024"),
        (&["random", "--layers", "1025", "x.gguf"], "--layers", "from 1 to 1024"),
        (&["bench", "--runs", "0"], "--runs", "1 or more"),
        (&["bench", "--loads", "-1"], "--loads", "1 or more"),
        (&["bench", "--tokens", "0"], "--tokens", "1 or more"),
        (&["bench", "--decode", "16,-1"], "--decode", "1 or more"),
        (&["bench", "--prefill", "0"], "--prefill", "1 or more"),
        (&["bench", "--soak", "-1"], "--soak", "1 or more"),
        (&["bench", "--patience", "-1"], "--patience", "0 or more"),
    ] {
        assert_wrong_usage(args, &[option, rule]);
    }
    assert_fails(&["--cpu", "--temperature", "-1", "Hi"], "bad-option", &["temperature"]);
    assert_fails(&["--cpu", "--top-p", "-0.5", "Hi"], "bad-option", &["topP"]);
    assert_fails(&["--cpu", "--min-p", "-1", "Hi"], "bad-option", &["minP"]);
    // A prompt may be a negative number.
    assert_eq!(
        text(&[SHORT, &["--raw", "-1"]].concat()),
        text(&[SHORT, &["--raw", "--", "-1"]].concat())
    );
}

#[test]
fn options_that_the_cpu_cannot_honour_are_refused() {
    for option in [
        &["--prompt-lookup", "true"],
        &["--prompt-lookup", "false"],
        &["--head", "f16"],
        &["--kv", "int8"],
        &["--tokenizer", "closest"],
    ] {
        assert_wrong_usage(&[&["--cpu", "Hi"], &option[..]].concat(), &["--cpu", option[0]]);
    }
}

#[test]
fn a_dash_or_a_pipe_reads_the_prompt_from_standard_input() {
    let expected = text(&[SHORT, &["Who are you?"]].concat());
    assert_eq!(text_of(SHORT, run_with_input(SHORT, b"Who are you?\n")), expected);
    let dash = [SHORT, &["-"]].concat();
    assert_eq!(text_of(&dash, run_with_input(&dash, b"Who are you?")), expected);
    // The last line break comes from the shell. It is not part of the prompt.
    let raw = [SHORT, &["--raw", "-"]].concat();
    let expected = text(&[SHORT, &["--raw", "Once upon a time"]].concat());
    for input in ["Once upon a time\n", "Once upon a time\r\n"] {
        assert_eq!(text_of(&raw, run_with_input(&raw, input.as_bytes())), expected);
    }
    // A prompt on the command line wins against a pipe.
    let both = [SHORT, &["--raw", "Once upon a time"]].concat();
    assert_eq!(text_of(&both, run_with_input(&both, b"Who are you?")), expected);

    assert_failed(&dash, run_with_input(&dash, b""), "bad-option", &["prompt"]);
    let failed = run_with_input(&dash, b"caf\xe9");
    assert_failed(&dash, failed, "io", &["could not read", "standard input", "UTF-8"]);
}

/// The file must not be opened: opening a pipe would wait for a writer.
#[cfg(unix)]
#[test]
fn a_model_from_a_pipe_is_refused() {
    let pipe = target("model.pipe");
    let _ = fs::remove_file(&pipe);
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for args in [&["--cpu", "--model", &pipe, "Hi"][..], &["inspect", &pipe]] {
        assert_fails(args, "io", &[&pipe, "regular file"]);
    }
    let args = ["inspect", "/dev/stdin"];
    assert_failed(&args, run_with_input(&args, b"GGUF"), "io", &["/dev/stdin", "regular file"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_write_that_fails_is_an_error() {
    for args in [&[SHORT, &["Hi"]].concat()[..], &["inspect", "models/tiny-stories.gguf"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = ternlight(args).stdout(full).output().unwrap();
        assert_failed(args, output, "io", &["could not write standard output"]);
    }
    let random = ["random", "--shape", "tiny", "--layers", "1", "--force", "/dev/full"];
    assert_fails(&random, "io", &["could not write /dev/full"]);
    let random = ["random", "--shape", "tiny", "--layers", "1", "no/such/folder.gguf"];
    assert_fails(&random, "io", &["could not write no/such/folder.gguf"]);
}

#[test]
fn random_overwrites_a_file_only_with_force() {
    let model = target("random.gguf");
    let args = ["random", "--shape", "tiny", "--layers", "1", &model];
    let _ = fs::remove_file(&model);
    assert_eq!(text(&args), "");
    let written = fs::read(&model).unwrap();
    fs::write(&model, "something else").unwrap();
    assert_fails(&args, "bad-option", &[&model, "--force"]);
    assert_eq!(fs::read(&model).unwrap(), b"something else");
    assert_eq!(text(&[&args[..], &["--force"]].concat()), "");
    assert!(fs::read(&model).unwrap() == written, "the second file differs from the first");
    let shown = text(&["inspect", &model]);
    assert!(shown.contains("bitnet-b1.58.block_count = 1"), "{shown}");
    assert!(shown.contains("ternlight runs this model"), "{shown}");
}

/// Two shapes with types of their own, whole. The headers of all are tested beside the program.
#[test]
fn random_models_of_other_types_are_whole() {
    for (shape, row) in [
        ("bonsai-1.7b", "token_embd.weight                Q2_0 [2048, 151669], 87361344"),
        ("bitcpm-0.5b", "blk.0.ffn_down.weight            TQ2_0 [4096, 1024], 1081344 bytes"),
    ] {
        let model = target(&format!("random-{shape}.gguf"));
        assert_eq!(text(&["random", "--shape", shape, "--layers", "1", "--force", &model]), "");
        let shown = text(&["inspect", &model]);
        fs::remove_file(&model).unwrap();
        let row = shown.lines().find(|line| line.starts_with(row)).unwrap_or(&shown);
        assert!(row.contains("  scales 0.0"), "{row}");
        assert!(row.ends_with("-1 33.6 %, 0 33.2 %, +1 33.2 %"), "{row}");
        assert!(shown.ends_with("ternlight runs this model\n"), "{shown}");
    }
    let model = target("random-embedding.gguf");
    for (embedding, row) in [("q8_0", "Q8_0"), ("q6_k", "Q6_K"), ("f16", "F16")] {
        let shape = ["--shape", "tiny", "--layers", "1", "--embedding", embedding];
        assert_eq!(text(&[&["random"], &shape[..], &["--force", &model]].concat()), "");
        let shown = text(&["inspect", &model]);
        assert!(shown.contains(&format!("{row} [512, 4096]")), "{shown}");
        assert!(shown.ends_with("ternlight runs this model\n"), "{shown}");
    }
}

#[test]
fn only_the_shapes_of_bitnet_count() {
    let shape = ["--shape", "bonsai-4b"];
    let random = [&["random", "--counting"], &shape[..], &["x.gguf"]].concat();
    assert_fails(&random, "bad-option", &["counting", "`2b4t`"]);
    let bench = [&["bench", "--lookup"], &shape[..]].concat();
    assert_fails(&bench, "bad-option", &["lookup", "`2b4t`"]);
    let small = ["random", "--shape", "tiny", "--embedding", "q8_0", "--counting", "x.gguf"];
    assert_fails(&small, "bad-option", &["counting", "F16"]);
}

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
    let (gpu, shown) = perplexity(&args);
    assert!(shown.starts_with("+/- "), "{shown}");
    let line = shown.lines().nth(1).unwrap();
    let (scored, all) = line.split_once(" tokens scored").unwrap();
    let (scored, of) = scored.split_once(" of ").unwrap();
    // All but the first.
    assert_eq!(scored.parse::<usize>().unwrap() + 1, of.parse::<usize>().unwrap());
    assert_eq!(all, ", in windows of 8, stride 3");
    let (cpu, _) = perplexity(&[&args[..], &["--cpu"]].concat());
    assert!((gpu / cpu - 1.0).abs() < 0.02, "{gpu}, {cpu}");
    // The model tells stories: it knows how they begin, and more so with all that came before.
    let (whole, _) = perplexity(&[&*story, "--cpu"]);
    assert!(1.0 < whole && whole < cpu && cpu < 100.0, "{whole}, {cpu}");
    let noise = file("noise.txt", b"zebra, of 71 (the) is an xylem. ;; Qu'un");
    assert!(perplexity(&[&noise, "--cpu"]).0 > 100.0);
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
    let both = ["perplexity", &good, "--cpu", "--float-activations"];
    assert_wrong_usage(&both, &["--cpu", "--float-activations"]);
}

#[test]
fn a_closed_pipe_stops_the_text() {
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
fn inspect_shows_the_content_of_a_file() {
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

    assert!(row.contains("  scale 0."), "{row}");

    // Types in blocks too. Two blocks of 64 have the same codes as one of 128, so the same shares.
    let shown = text(&["inspect", "tests/data/models/qwen3-yarn-q2_0.gguf"]);
    let older = text(&["inspect", "tests/data/models/qwen3-yarn-q2_0-legacy-g128.gguf"]);
    let row = |shown: &str| {
        shown.lines().find(|line| line.starts_with("blk.0.attn_q.weight")).unwrap().to_owned()
    };
    let (row, older) = (row(&shown), row(&older));
    assert!(row.contains("Q2_0 [256, 256], 18432 bytes  scales 0."), "{row}");
    assert!(older.contains("Q2_0 (of 128) [256, 256], 17408 bytes  scales 0."), "{older}");
    assert_eq!(row.split_once("scales").unwrap().1, older.split_once("scales").unwrap().1);

    let mut other = File::empty();
    other.set("general.architecture", Kv::Str("gpt2".into()));
    let shown = text(&["inspect", &file("other.gguf", &other.build())]);
    assert!(shown.contains("does not run this model: unsupported model: architecture `gpt2`"));
}

#[test]
fn bench_reports_figures_with_bytes_and_a_soak() {
    let model = file("bench.gguf", &tiny().build());
    let lengths = ["--decode", "8,99", "--prefill", "16", "--tokens", "4"];
    let times = ["--runs", "2", "--loads", "1", "--sampling", "--soak", "100", "--json"];
    let report = text(&[&["bench", "--model", &model], &lengths[..], &times[..]].concat());
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let figures = report["figures"].as_array().unwrap();
    let whats: Vec<_> = figures.iter().map(|figure| figure["what"].as_str().unwrap()).collect();
    // There is no figure for 99 tokens: they do not fit into the context of 64.
    let expected = [
        "load from a file",
        "last byte to ready",
        "last byte to first token, 16-token prompt",
        "time to first token, 16-token prompt",
        "prefill, 16-token prompt",
        "decode, 8 tokens of context",
        "decode, 8 tokens of context, temperature",
        "decode, 8 tokens of context, top-k and top-p",
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
    assert_eq!(runs, [1, 1, 1, 2, 2, 2, 2, 2, 2, 2]);
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
}

#[test]
fn bench_reports_the_figures_that_it_leaves_out_for_time() {
    let model = file("bench-patience.gguf", &tiny().build());
    let args = ["--decode", "8", "--prefill", "16,32", "--tokens", "4", "--patience", "0"];
    let gpu = ["--kv", "int8", "--no-subgroups", "--packed-dot", "false", "--max-binding", "65536"];
    let report = text(&[&["bench", "--model", &model, "--json"], &args[..], &gpu].concat());
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let kernels = report["info"]["kernels"].as_array().unwrap();
    assert!(kernels.iter().all(|name| !name.as_str().unwrap().ends_with("/subgroup")), "{report}");
    assert_eq!(report["info"]["kv"], "int8");
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
        // At this point it has written its model and loads it.
        assert!(stderr.lines().any(|line| line.unwrap() == "measuring: load 1 of 3"));
        assert_eq!(files(), 1);
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(files(), 0);
    }
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

    // In types with blocks, with the offset of the block.
    let mut blocks = File::empty();
    blocks.tensors.push(Tensor {
        name: "t".into(),
        ne: vec![128, 32],
        type_id: Q2_0,
        bytes: [[0; 18]; 64].concat(),
    });
    for (byte, value, what) in [(7, 0b1100, "code 3"), (1, 0x7c, "a scale that is not a number")] {
        let mut spoiled = blocks.clone();
        spoiled.tensors[0].bytes[18 * 9 + byte] = value;
        let bytes = spoiled.build();
        let at = bytes.len() - 64 * 18 + 9 * 18;
        let spoiled = file(&format!("inspect-block-{byte}.gguf"), &bytes);
        assert_fails(
            &["inspect", &spoiled],
            "bad-gguf",
            &["`t`", what, &format!("(at byte {at})")],
        );
    }
}

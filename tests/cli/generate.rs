//! Answers, with every way to choose their tokens, and prompts and models that are refused.

use crate::support::{File, Kv, json, tiny};
use crate::{SHORT, assert_fails, assert_wrong_usage, file, run, text, text_of};

fn golden(name: &str) -> serde_json::Value {
    let goldens = json("models/tiny-stories.goldens.json");
    let prompts = goldens["prompts"].as_array().unwrap();
    prompts.iter().find(|prompt| prompt["name"] == name).unwrap().clone()
}

#[test]
fn the_cpu_gives_the_golden_answer() {
    let golden = golden("who");
    let question = golden["turns"][0][1].as_str().unwrap();
    assert!(golden["greedy_stopped"].as_bool().unwrap());
    let answer = text(&["--backend", "cpu", question]);
    assert_eq!(answer, format!("{}\n", golden["greedy_text"].as_str().unwrap()));
}

#[test]
fn the_gpu_gives_the_golden_answer() {
    let golden = golden("who");
    let question = golden["turns"][0][1].as_str().unwrap();
    let answer = text(&["--backend", "webgpu", question]);
    assert_eq!(answer, format!("{}\n", golden["greedy_text"].as_str().unwrap()));
}

/// The adapter of the tests is a CPU, so there is no GPU to choose.
#[test]
fn without_a_gpu_the_cpu_computes_and_says_so() {
    let args = ["--max-tokens", "2", "--backend", "auto", "Hi"];
    let output = run(&args);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("note: the CPU computes: no GPU adapter"), "{errors}");
    assert_fails(&[&args[..], &["--strict"]].concat(), "no-adapter", &[]);
    assert_eq!(run(&["--backend", "cpu", "--threads", "2", "--max-tokens", "2", "Hi"]).stderr, b"");
}

#[test]
fn raw_text_is_continued() {
    let golden = golden("once");
    let continuation =
        text(&["--backend", "cpu", "--raw", "--max-tokens", "48", "Once upon a time"]);
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
        text(
            &[&["--backend", "cpu", "--max-tokens", "12", "Tell me a story."], &sampling[..]]
                .concat(),
        )
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
    let on = |backend| story(&[&all[..], &["--backend", backend]].concat());
    let found = on("webgpu");
    assert_eq!(found, on("cpu"));
    assert_ne!(found, story(&[]));
}

#[test]
fn special_tokens_in_a_prompt_are_text() {
    let plain = text(&[SHORT, &["--raw", "Hi"]].concat());
    assert_ne!(text(&[SHORT, &["--raw", "Hi<|eot_id|>"]].concat()), plain);
}

/// A text ends when the context is full.
#[test]
fn the_context_ends_a_text() {
    let model = file("small.gguf", &tiny().build());
    text(&["--backend", "cpu", "--model", &model, "--temperature", "5", "Hi"]);
    assert!(
        !text(&["--backend", "cpu", "--context", "12", "--raw", "Once upon a time"])
            .trim()
            .is_empty()
    );
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
        assert_fails(&["--backend", "cpu", "--model", model, "Hi"], code, &[fact]);
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
    assert_fails(&["--backend", "cpu", ""], "bad-option", &["prompt"]);
    assert_fails(&["--backend", "cpu", " \n "], "bad-option", &["prompt"]);
    assert_fails(
        &["--backend", "cpu", "--model", &model, &long],
        "context-full",
        &["context holds 64"],
    );
    assert_fails(
        &["--backend", "cpu", "--context", "3", "Hi"],
        "context-full",
        &["context holds 3"],
    );
    assert_fails(
        &["--backend", "cpu", "--context", "1025", "Hi"],
        "bad-option",
        &["context", "1024"],
    );
    assert_fails(&["--backend", "cpu", "--top-p", "0", "Hi"], "bad-option", &["topP"]);
    assert_fails(&["--backend", "cpu", "--min-p", "2", "Hi"], "bad-option", &["minP"]);
    assert_fails(
        &["--backend", "cpu", "--repeat-penalty", "0", "Hi"],
        "bad-option",
        &["repeatPenalty"],
    );
    assert_fails(
        &["--backend", "cpu", "--temperature", "nan", "Hi"],
        "bad-option",
        &["temperature"],
    );
}

#[test]
fn answers_keep_to_a_format() {
    let model = ["--backend", "cpu", "--model", "tests/data/golden/golden.gguf"];
    let said = |more: &[&str]| text(&[&model[..], more, &["Who are you?"]].concat());
    let schema = file(
        "schema.json",
        br#"{"type": "array", "items": {"enum": ["sun", 7]}, "minItems": 1, "maxItems": 3}"#,
    );
    let answer: Vec<serde_json::Value> =
        serde_json::from_str(&said(&["--schema", &schema])).unwrap();
    assert!((1..=3).contains(&answer.len()) && answer.iter().all(|one| *one == "sun" || *one == 7));
    let answer = said(&["--regex", "(?:ab|cd){2}-[0-9]{3}"]);
    let (words, digits) = answer.trim_end().split_once('-').unwrap();
    assert!(["abab", "abcd", "cdab", "cdcd"].contains(&words) && digits.len() == 3, "{answer}");

    // One token is no object.
    let args = [&model[..], &["--json", "--max-tokens", "1", "Who are you?"]].concat();
    let output = run(&args);
    let note = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(text_of(&args, output).starts_with('{'));
    assert!(note.contains("note: the answer is not complete"), "{note}");

    let wrong = file("wrong-schema.json", br#"{"properties": {"a": {"uniqueItems": true}}}"#);
    let args = [&model[..], &["--schema", &wrong, "Who?"]].concat();
    assert_fails(&args, "bad-option", &["`/properties/a/uniqueItems` of the schema"]);
    assert_wrong_usage(&["--schema", &schema, "--json", "Who?"], &["cannot be used with"]);
}

/// Each call is a line of JSON, whose arguments are valid by the schema.
#[test]
fn calls_of_tools_are_printed_as_lines_of_json() {
    let tools = serde_json::json!([{ "type": "function", "function": {
        "name": "look", "description": "Looks.", "parameters": {
            "type": "object", "properties": { "at": { "enum": ["sun", "moon"] } }, "required": ["at"],
            "additionalProperties": false,
        },
    } }]);
    let tools = file("tools.json", tools.to_string().as_bytes());
    let model = "tests/data/golden/golden.gguf";
    let args = |choice| {
        [
            "--backend",
            "cpu",
            "--model",
            model,
            "--max-tokens",
            "90",
            "--tools",
            &tools,
            "--tool-choice",
            choice,
        ]
        .map(String::from)
    };
    for choice in ["required", "look"] {
        let args = args(choice);
        let args: Vec<&str> = args.iter().map(|arg| &**arg).chain(["Who are you?"]).collect();
        let said = text(&args);
        let call: serde_json::Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
        assert_eq!(call["name"], "look", "{said}");
        assert!(["sun", "moon"].contains(&call["arguments"]["at"].as_str().unwrap()), "{said}");
    }
    let args = args("listen");
    let args: Vec<&str> = args.iter().map(|arg| &**arg).chain(["Who?"]).collect();
    assert_fails(&args, "bad-option", &["`toolChoice`", "listen"]);
    let wrong = file("no-tools.json", b"{}");
    let args = ["--backend", "cpu", "--model", model, "--tools", &wrong, "Who?"];
    assert_fails(&args, "bad-option", &["`tools`", "array"]);
    assert_wrong_usage(&["--tools", &tools, "--json", "Who?"], &["cannot be used with"]);
}

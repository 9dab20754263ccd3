//! `tritloom decide`.

use crate::{assert_fails, run_with_input, text, text_of};

const MODEL: [&str; 5] =
    ["decide", "--backend", "cpu", "--model", "tests/data/models/qwen3-q2_0.gguf"];

/// The rows of a decision: a probability, and what has it.
fn rows(shown: &str) -> Vec<(f64, String)> {
    let row = |line: &str| {
        let (number, label) = line.split_once("  ")?;
        Some((number.parse().ok()?, label.to_owned()))
    };
    shown.lines().filter_map(row).collect()
}

#[test]
fn each_option_has_its_probability() {
    let ask = |args: &[&str]| text(&[&MODEL[..], args].concat());
    let boolean = ask(&["It rained.", "--question", "Is it?"]);
    let found = rows(&boolean);
    assert_eq!(found.iter().map(|(_, label)| &label[..]).collect::<Vec<_>>(), ["yes", "no"]);
    assert!((found[0].0 + found[1].0 - 1.0).abs() < 2e-4, "{boolean}");
    assert_eq!(boolean.lines().count(), 2);

    let piped = [&MODEL[..], &["--question", "Is it?"]].concat();
    assert_eq!(text_of(&piped, run_with_input(&piped, b"It rained.\n")), boolean);

    let score =
        ["It rained.", "--question", "How?", "--score", "--option", "-1", "--option", "2=wet"];
    let shown =
        ask(&[&score[..], &["--context", "x", "--normalize", "length", "--temperature", "2"]]
            .concat());
    let found = rows(&shown);
    let mean: f64 =
        shown.lines().find_map(|line| line.strip_prefix("score ")?.parse().ok()).unwrap();
    assert!((mean - (2.0 * found[1].0 - found[0].0)).abs() < 1e-3, "{shown}");
    assert_eq!(found[1].1, "2");
}

#[test]
fn what_cannot_be_decided_is_refused() {
    let fails = |args: &[&str], name: &str| {
        assert_fails(&[&MODEL[..], args].concat(), "bad-option", &[name]);
    };
    fails(&["x", "--question", " "], "`question`");
    fails(&["x", "--question", "Which?", "--option", "a"], "`options`");
    fails(
        &["x", "--question", "How?", "--score", "--option", "1", "--option", "b"],
        "`options[1]`",
    );
    fails(&["x", "--question", "Is it?", "--temperature", "-1"], "`temperature`");
    fails(&[" ", "--question", "Is it?"], "`text`");
}

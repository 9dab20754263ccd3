//! `tritloom embed`.

use crate::{assert_fails, run_with_input, text, text_of};

const MODEL: [&str; 5] =
    ["embed", "--backend", "cpu", "--model", "tests/data/embed/bitnet-embd-i2_s.gguf"];

fn vectors(shown: &str) -> Vec<Vec<f32>> {
    shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_text_has_a_line() {
    let embed = |args: &[&str]| vectors(&text(&[&MODEL[..], args].concat()));
    let found = embed(&["hello world", ""]);
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [256, 256]);
    let piped = text_of(&MODEL, run_with_input(&MODEL, b"hello world\n\n"));
    assert_eq!(vectors(&piped), found);

    let query = embed(&["hello", "--task", "query", "--pooling", "mean", "--dimensions", "8"]);
    assert_eq!(query[0].len(), 8);
    let asked = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ";
    let prefixed = ["hello", "--prefix", asked, "--pooling", "mean", "--dimensions", "8"];
    assert_eq!(embed(&prefixed), query);
    // The lines before a call with a wrong text are printed, and its error names its line.
    let long = "hello ".repeat(100);
    let lines = [&["a"; 299][..], &[&*long]].concat().join("\n");
    let output = run_with_input(&[&MODEL[..], &["--context", "16"]].concat(), lines.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("texts[299]"));
    assert_eq!(vectors(&String::from_utf8(output.stdout).unwrap()).len(), 256);
    let cut = embed(&[&long, "--context", "16", "--truncate"]);
    assert_ne!(cut, embed(&[&long]));
}

#[test]
fn what_cannot_be_embedded_is_refused() {
    let fails = |args: &[&str], code: &str, fact: &str| {
        assert_fails(&[&MODEL[..], args].concat(), code, &[fact]);
    };
    fails(&["hello", "--dimensions", "257"], "bad-option", "`dimensions`");
    fails(&["hello hello hello", "--context", "4"], "context-full", "4");
    let answers = ["embed", "--backend", "cpu", "--model", "models/tiny-stories.gguf", "hello"];
    assert_fails(&answers, "bad-option", &["`pooling`"]);
    let asked = ["--backend", "cpu", "--model", MODEL[4], "--raw", "hello"];
    assert_fails(&asked, "embedding-model", &["`embed`"]);
    // A chat is refused for this and not for want of a template.
    assert_fails(&[&asked[..4], &["hello"]].concat(), "embedding-model", &["`embed`"]);
}

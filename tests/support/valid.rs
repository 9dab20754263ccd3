//! Whether answers are valid by JSON schemas, as Ajv reads these: it shares no code with the grammars.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::path;

/// Asserts that each text is JSON that is valid by its schema, in draft 2020-12 or in that of its
/// `$schema`.
pub(crate) fn assert_valid(answers: &[(Value, String)]) {
    let mut command = Command::new("node");
    let command = command.arg(path("tests/support/ajv.mjs"));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Node, which `npm test` needs too");
    let mut stdin = child.stdin.take().unwrap();
    let lines: Vec<String> =
        answers.iter().map(|answer| serde_json::to_string(answer).unwrap()).collect();
    stdin.write_all(lines.join("\n").as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "tests/support/ajv.mjs failed; `npm test` installs Ajv: {said}"
    );
    assert_eq!(said, format!("{} valid\n", answers.len()));
}

//! Runs the command line as a user does.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and report")]

#[path = "../support/mod.rs"]
mod support;

mod adapters;
mod bench;
mod decide;
mod embed;
mod generate;
mod inspect;
mod perplexity;
mod pipes;
mod random;
mod usage;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use support::path;

pub(crate) fn tritloom(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tritloom"));
    command.args(args).current_dir(path(""));
    command
}

/// Runs the program to its end.
pub(crate) fn run(args: &[&str]) -> Output {
    tritloom(args).output().unwrap()
}

/// Runs the program with `input` piped to its standard input.
pub(crate) fn run_with_input(args: &[&str], input: &[u8]) -> Output {
    let mut command = tritloom(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that refuses its arguments ends without reading its input.
    let written = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    assert!(written.is_ok() || !output.status.success(), "{written:?}");
    output
}

#[track_caller]
pub(crate) fn text(args: &[&str]) -> String {
    text_of(args, run(args))
}

#[track_caller]
pub(crate) fn text_of(args: &[&str], output: Output) -> String {
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Asserts exit code 1, `error[code]: ` and all facts on stderr, and nothing on stdout.
#[track_caller]
pub(crate) fn assert_fails(args: &[&str], code: &str, facts: &[&str]) {
    assert_failed(args, run(args), code, facts);
}

#[track_caller]
pub(crate) fn assert_failed(args: &[&str], output: Output, code: &str, facts: &[&str]) {
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
pub(crate) fn assert_wrong_usage(args: &[&str], facts: &[&str]) {
    let output = run(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    for fact in facts {
        assert!(stderr.contains(fact), "{args:?}: {stderr:?} does not name {fact:?}");
    }
    assert!(output.stdout.is_empty(), "{args:?}");
}

/// A path in the target folder.
pub(crate) fn target(name: &str) -> String {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name).to_str().unwrap().to_owned()
}

/// Writes a file to the target folder. Returns its path.
pub(crate) fn file(name: &str, bytes: &[u8]) -> String {
    let path = target(name);
    fs::write(&path, bytes).unwrap();
    path
}

pub(crate) const SHORT: &[&str] = &["--backend", "cpu", "--max-tokens", "8"];

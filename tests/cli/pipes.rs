//! Standard input and output: pipes, files that are none, and writes that fail.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use crate::{SHORT, assert_failed, assert_fails, run_with_input, target, text, text_of, tritloom};

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
    for args in [&["--backend", "cpu", "--model", &pipe, "Hi"][..], &["inspect", &pipe]] {
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
        let output = tritloom(args).stdout(full).output().unwrap();
        assert_failed(args, output, "io", &["could not write standard output"]);
    }
    let random = ["random", "--shape", "tiny", "--layers", "1", "--force", "/dev/full"];
    assert_fails(&random, "io", &["could not write /dev/full"]);
    let random = ["random", "--shape", "tiny", "--layers", "1", "no/such/folder.gguf"];
    assert_fails(&random, "io", &["could not write no/such/folder.gguf"]);
}

#[test]
fn a_closed_pipe_stops_the_text() {
    let mut child = tritloom(&["--backend", "cpu", "Tell me a story about a brave cat"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 4]).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

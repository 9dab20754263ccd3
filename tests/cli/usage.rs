//! Arguments that are wrong by themselves, and what the program says of itself.

use std::fs;

use crate::support::{json, path};
use crate::{SHORT, assert_fails, assert_wrong_usage, run, text};

/// The build gives the package the crate's version, so its template must not name another.
#[test]
fn crate_package_and_changelog_have_one_version() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(text(&["--version"]), format!("tritloom {version}\n"));
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
    assert_fails(
        &["--backend", "cpu", "--temperature", "-1", "Hi"],
        "bad-option",
        &["temperature"],
    );
    assert_fails(&["--backend", "cpu", "--top-p", "-0.5", "Hi"], "bad-option", &["topP"]);
    assert_fails(&["--backend", "cpu", "--min-p", "-1", "Hi"], "bad-option", &["minP"]);
    // A prompt may be a negative number.
    assert_eq!(
        text(&[SHORT, &["--raw", "-1"]].concat()),
        text(&[SHORT, &["--raw", "--", "-1"]].concat())
    );
}

#[test]
fn options_of_the_cpu_are_checked() {
    for (option, rule) in [
        (["--backend", "tpu"], "webgpu"),
        (["--threads", "0"], "1 or more"),
        (["--instructions", "mmx"], "scalar"),
    ] {
        assert_wrong_usage(&[&option[..], &["Hi"]].concat(), &[option[0], rule]);
    }
}

//! Subgroups of other sizes than this machine's. llvmpipe's have as many lanes as its vectors have
//! floats, and the environment says how wide these are. It is read once, so each size takes a process of
//! its own. These tests take over ten seconds.

use std::env;
use std::process::Command;

use tritloom::gpu::Subgroups;

use crate::families::beginnings;
use crate::setup::{Setup, check_families};
use crate::support::families::Expected;

/// The environment variable in which a process is told how many lanes to expect.
const LANES: &str = "EXPECTED_LANES";

fn setup() -> Setup {
    Setup::default().like_a_card()
}

#[test]
fn each_architecture_has_its_logits() {
    let lanes = setup().open().subgroups.map(|Subgroups(lanes)| lanes.to_string());
    if let Ok(expected) = env::var(LANES) {
        assert_eq!(lanes, Some(expected));
    }
    check_families(beginnings(), setup, Expected::of_int8);
}

#[test]
fn with_4_lanes_and_with_16_too() {
    if !setup().open().adapter.contains("llvmpipe") {
        return; // no other driver can be told
    }
    for lanes in [4, 16] {
        let bits = 32 * lanes;
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "lanes::each_architecture_has_its_logits"])
            .env("LP_NATIVE_VECTOR_WIDTH", bits.to_string())
            .env(LANES, lanes.to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && said.contains("1 passed"), "{lanes} lanes: {said}");
    }
}

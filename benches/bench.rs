//! `cargo bench -- --shape 2b4t`: the command line's own `bench`, with the same options.

use std::env::args_os;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    // cargo passes `--bench` to every benchmark.
    let options = args_os().skip(1).filter(|option| option != "--bench");
    match Command::new(env!("CARGO_BIN_EXE_tritloom")).arg("bench").args(options).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

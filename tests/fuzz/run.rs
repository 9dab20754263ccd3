//! Runs a target for a given time.

use std::cell::Cell;
use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use tritloom::Error;

use crate::allocation::most_held;
use crate::support::path;

/// The longest that one input may take. A target that takes longer is stuck, not slow.
const MAX_TIME: Duration = Duration::from_secs(5);

/// Cases between two looks at the clock.
const CASES: u32 = 64;

/// Bytes given to a target.
#[derive(Clone)]
pub(crate) struct Input(pub(crate) Vec<u8>);

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// Several files as one input, each after its length in four bytes.
pub(crate) fn join(files: impl IntoIterator<Item = Vec<u8>>) -> Input {
    let with_len = |file: Vec<u8>| [&(file.len() as u32).to_le_bytes()[..], &file].concat();
    Input(files.into_iter().flat_map(with_len).collect())
}

/// The files of an input.
pub(crate) fn split(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut files = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk() {
        let (file, rest) = rest.split_at(rest.len().min(u32::from_le_bytes(*len) as usize));
        files.push(file);
        bytes = rest;
    }
    files
}

/// The limits of a target.
pub(crate) struct Limits {
    /// Bytes held at once for any input.
    pub(crate) memory: usize,
    /// Further bytes for each byte of the input.
    pub(crate) memory_per_byte: usize,
}

/// Tries every file in `tests/data/fuzz/NAME`, then random `inputs`.
pub(crate) fn fuzz(
    name: &str,
    limits: &Limits,
    inputs: impl Strategy<Value = Input>,
    target: impl Fn(&[u8]),
) {
    fuzz_for(1.0, name, limits, inputs, target);
}

/// The same, for `seconds` unless `FUZZ_SECONDS` is set.
pub(crate) fn fuzz_for(
    seconds: f64,
    name: &str,
    limits: &Limits,
    inputs: impl Strategy<Value = Input>,
    target: impl Fn(&[u8]),
) {
    let seconds = std::env::var("FUZZ_SECONDS").map_or(seconds, |text| text.parse().unwrap());
    let check = |input: &[u8]| {
        let started = Instant::now();
        let ((), held) = most_held(|| target(input));
        let allowed = limits.memory + limits.memory_per_byte * input.len();
        assert!(held <= allowed, "{} bytes of input took {held} bytes", input.len());
        let took = started.elapsed();
        assert!(took < MAX_TIME, "{} bytes of input took {took:?}", input.len());
    };
    let corpus = path("tests/data/fuzz").join(name);
    for entry in fs::read_dir(&corpus).unwrap() {
        let file = entry.unwrap().path();
        println!("{}", file.display());
        check(&fs::read(&file).unwrap());
    }

    let config = Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_time: 60_000,
        ..Config::default()
    };
    // A runner cannot be used again after its cases: this one only seeds the others.
    let mut seeds = TestRunner::new(config.clone());
    let (started, executions) = (Instant::now(), Cell::new(0));
    while started.elapsed().as_secs_f64() < seconds {
        let mut runner = TestRunner::new_with_rng(config.clone(), seeds.new_rng());
        let outcome = runner.run(&inputs, |input| {
            executions.set(executions.get() + 1);
            check(&input.0);
            Ok::<_, TestCaseError>(())
        });
        match outcome {
            Ok(()) => {}
            Err(TestError::Fail(why, input)) => {
                let file = keep(name, &input.0);
                panic!("{name}: {why}; the input is in {file}");
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    println!("{name}: {} inputs in {:.0} s", executions.get(), started.elapsed().as_secs_f64());
}

fn keep(name: &str, input: &[u8]) -> String {
    let folder = path("target/fuzz");
    fs::create_dir_all(&folder).unwrap();
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let file = folder.join(format!("{name}-{:016x}", hasher.finish()));
    fs::write(&file, input).unwrap();
    file.display().to_string()
}

/// Fails unless the error is one that a caller can act on.
pub(crate) fn assert_named(error: &Error) {
    assert!(Error::CODES.contains(&error.code()), "{error:?}");
    assert!(!matches!(error, Error::Internal(_)), "{error}");
    let message = error.to_string();
    // A file must not be able to fill the console.
    assert!(message.len() < 4096, "a message of {} bytes", message.len());
}

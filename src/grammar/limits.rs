//! The limits of a grammar's time and memory.

use std::panic::{AssertUnwindSafe, catch_unwind};

use llguidance::api::ParserLimits;

/// llguidance's limits, with less memory.
pub(crate) fn limits() -> ParserLimits {
    ParserLimits { max_lexer_states: 100_000, verbose_errors: false, ..ParserLimits::default() }
}

/// Runs `f`. A panic becomes an error. On WebAssembly a panic ends the module instead.
pub(crate) fn without_panics<T>(f: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| Err("llguidance panicked".into()))
}

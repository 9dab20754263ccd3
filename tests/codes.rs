//! The error codes are the same in the crate, in its list of codes, and in the package's types.

use tritloom::Error;

const ERROR: &str = include_str!("../src/error.rs");
const TYPES: &str = include_str!("../pkg-template/types.ts");

/// The codes of errors that only the package's TypeScript makes.
const OF_TYPESCRIPT: [&str; 3] = ["incomplete", "index-damaged", "index-mismatch"];

#[test]
fn types_ts_lists_exactly_the_codes() {
    let mut expected = [&codes()[..], &OF_TYPESCRIPT].concat();
    expected.sort_unstable();
    // The union ends with the blank line after it.
    assert_eq!(strings(between(TYPES, "export type ErrorCode =", "\n\n"), '\''), expected);
}

#[test]
fn the_list_has_exactly_the_codes_that_errors_give() {
    assert_eq!(strings(between(ERROR, "pub fn code(&self)", "\n    }\n"), '"'), codes());
}

fn codes() -> Vec<&'static str> {
    let mut codes = Error::CODES.to_vec();
    codes.sort_unstable();
    codes
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let rest = text.split_once(start).expect(start).1;
    rest.split_once(end).expect("its end").0
}

/// The strings in `text`, sorted.
fn strings(text: &str, quote: char) -> Vec<&str> {
    let mut strings: Vec<&str> = text.split(quote).skip(1).step_by(2).collect();
    strings.sort_unstable();
    strings
}

//! The package's list of error codes is the crate's.

use ternlight::Error;

const TYPES: &str = include_str!("../pkg-template/types.ts");

#[test]
fn types_ts_lists_exactly_the_codes() {
    let list = TYPES.split_once("export type ErrorCode =").expect("`ErrorCode` in types.ts").1;
    // The union ends with the blank line after it.
    let (list, _) = list.split_once("\n\n").expect("the end of `ErrorCode`");
    let mut listed: Vec<&str> = list.split('\'').skip(1).step_by(2).collect();
    listed.sort_unstable();
    let mut codes = Error::CODES.to_vec();
    codes.sort_unstable();
    assert_eq!(listed, codes);
}

//! Whether a grammar should close an answer that reaches its limit: it could, but what it puts in is
//! not the model's.

use serde_json::Value;
use tritloom_grammar::{Follow, Matcher};

use crate::schema;

const RECORD: &str = r#"{"type":"object","properties":{"name":{"type":"string","maxLength":20},
    "age":{"type":"integer","minimum":0,"maximum":120},"city":{"type":"string","maxLength":20},
    "member":{"type":"boolean"}},"required":["name","age","city","member"],
    "additionalProperties":false}"#;

const ANSWERS: [&str; 3] = [
    r#"{"name":"Mia","age":7,"city":"Rome","member":true}"#,
    r#"{"name":"Benjamin Alexander","age":34,"city":"Kraków","member":false}"#,
    r#"{"name":"Jo","age":101,"city":"San Francisco","member":true}"#,
];

/// Goes on in the shortest way: what ends a value comes before what begins or continues one.
fn close(matcher: &mut Matcher) -> Vec<u8> {
    let mut text = Vec::new();
    loop {
        let ids = match matcher.follow().unwrap() {
            Follow::Nothing => return text,
            Follow::These(ids) => ids,
            Follow::OneOf(mask) => {
                let allows = |byte: &u8| mask[*byte as usize / 32] >> (byte % 32) & 1 == 1;
                let next = b"\"}]0ft".iter().copied().chain(0..=255).find(|byte| allows(byte));
                let next = next.expect("an open value goes on with some byte");
                matcher.take(u32::from(next)).unwrap();
                vec![u32::from(next)]
            }
        };
        text.extend(ids.into_iter().flat_map(crate::bytes));
    }
}

/// Records that are cut off after each of their bytes, and closed.
#[test]
fn most_records_that_are_closed_have_values_that_the_model_did_not_give() {
    let grammar = schema(RECORD).unwrap();
    let (mut cut, mut invented) = (0, 0);
    for answer in ANSWERS {
        let whole: Value = serde_json::from_str(answer).unwrap();
        for end in (1..answer.len()).filter(|&end| answer.is_char_boundary(end)) {
            let mut matcher = grammar.matcher();
            answer[..end].bytes().for_each(|byte| matcher.take(u32::from(byte)).unwrap());
            let rest = String::from_utf8(close(&mut matcher)).unwrap();
            let closed: Value = serde_json::from_str(&format!("{}{rest}", &answer[..end])).unwrap();
            cut += 1;
            // A value that is cut short is not counted, only those that had not begun.
            let begun = |key: &str| {
                let value = format!("\"{key}\":");
                answer[..end].contains(&value) && !answer[..end].ends_with(&value)
            };
            let added = closed.as_object().unwrap().keys().filter(|key| !begun(key)).count();
            invented += usize::from(added > 0);
            assert_eq!(closed.as_object().unwrap().len(), whole.as_object().unwrap().len());
        }
    }
    println!("{invented} of {cut} closed records have values that the model did not give");
    assert!(4 * invented > 3 * cut, "{invented} of {cut}");
}

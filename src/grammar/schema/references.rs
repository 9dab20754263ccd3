//! References within a schema.

use serde_json::Value;

/// The part of `root` to which a `$ref` points, with its JSON pointer; `None` if there is none.
///
/// Errors: the reason why such references are not supported.
pub(super) fn target<'a>(
    root: &'a Value,
    reference: &str,
) -> Result<Option<(String, &'a Value)>, &'static str> {
    let Some(fragment) = reference.strip_prefix('#') else {
        return Err(
            "leads out of the schema: only references such as `#/$defs/name` are supported",
        );
    };
    if !fragment.is_empty() && !fragment.starts_with('/') {
        return Err("names an anchor: only references such as `#/$defs/name` are supported");
    }
    let Some(pointer) = percent_decoded(fragment) else { return Ok(None) };
    // `#/` is the key "", but some write it for the whole.
    let pointer = if pointer == "/" && root.get("").is_none() { String::new() } else { pointer };
    Ok(root.pointer(&pointer).map(|target| (pointer, target)))
}

fn percent_decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

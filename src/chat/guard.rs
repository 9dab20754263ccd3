//! Keeps the values of a template shallow, and makes it pay for what it reads.
//!
//! minijinja limits time and memory. But a list within a list within a list takes stack when it is
//! dropped or shown, and there is no limit to that. A namespace within itself does the same.
//! WebAssembly has little stack, and an overflow ends the program. In a loop, a template could make
//! a value deeper and deeper by binding it to a name, so every bound value is checked. All else can
//! only be as deep as the template's text, so the depth of the text is checked. `meter` adds the
//! prices of operators.

use minijinja::value::ValueKind;
use minijinja::{Error as JinjaError, ErrorKind, State, Value};

use super::{literals, meter};
use crate::error::{Error, Result};

/// The most bytes of a template. The longest that are in use have some 20 000.
const MAX_BYTES: usize = 1 << 18;
/// The most brackets within one another, in one tag.
const MAX_BRACKETS: usize = 16;
/// The most characters of a tag, without strings: `1 + 1 + 1` goes deep without brackets.
const MAX_LENGTH: usize = 2000;
/// The most blocks within one another.
const MAX_BLOCKS: usize = 24;
/// The most lists and maps within one another, in a value that has a name.
const MAX_DEPTH: usize = 32;

/// The names of the functions that check values. No template knows them.
pub(super) const BOUNDED: &str = "__bounded";
pub(super) const BOUNDED_FIELD: &str = "__bounded_field";

/// Puts a check around every value that the template binds with `set`, and a price on what its
/// operators read.
///
/// Errors: `bad-template` if its text is too long, goes too deep or cannot be read.
pub(super) fn guarded(source: &str) -> Result<String> {
    if source.len() > MAX_BYTES {
        let why = format!("{} bytes, at most {MAX_BYTES} are allowed", source.len());
        return Err(Error::BadTemplate(why));
    }
    let deep = |what: &str| Err(Error::BadTemplate(format!("{what} within one another")));
    let mut guarded = String::with_capacity(source.len() + 64);
    let (mut at, mut blocks) = (0, 0_usize);
    for tag in literals::tags(source) {
        if tag.depth > MAX_BRACKETS {
            return deep("too many brackets");
        }
        if tag.length > MAX_LENGTH {
            return Err(Error::BadTemplate("a tag is too long".into()));
        }
        let code = &source[tag.code.clone()];
        let word = if tag.is_statement { first_word(code) } else { "" };
        if let ("set", Some(equals)) = (word, tag.equals) {
            let target = &source[tag.code.start..equals];
            let check = if target.contains('.') { BOUNDED_FIELD } else { BOUNDED };
            guarded += &source[at..tag.code.start];
            guarded += &meter::metered(target, true)?;
            let value = meter::metered(&source[equals + 1..tag.code.end], false)?;
            guarded += &format!("= {check}(({value}))");
            at = tag.code.end;
            continue;
        }
        guarded += &source[at..tag.code.start];
        guarded += &meter::metered(code, tag.is_statement)?;
        at = tag.code.end;
        match word {
            "set" | "for" | "if" | "with" | "macro" | "call" | "filter" | "autoescape" => {
                blocks += 1;
                if blocks > MAX_BLOCKS {
                    return deep("too many blocks");
                }
            }
            word if word.starts_with("end") => blocks = blocks.saturating_sub(1),
            _ => {}
        }
    }
    Ok(guarded + &source[at..])
}

/// The name of a statement: `set` in `set(x) = 1`.
fn first_word(code: &str) -> &str {
    let code = code.trim_start();
    let end = code.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &code[..end.unwrap_or(code.len())]
}

/// Gives the value back. Fails if it is too deep.
pub(super) fn bounded(state: &State<'_, '_>, value: Value) -> Result<Value, JinjaError> {
    check(state, &value, 0, true)?;
    Ok(value)
}

/// Like [`bounded`], for a value that becomes a field of a namespace. It could be that namespace.
pub(super) fn bounded_field(state: &State<'_, '_>, value: Value) -> Result<Value, JinjaError> {
    check(state, &value, 0, false)?;
    Ok(value)
}

fn check(
    state: &State<'_, '_>,
    value: &Value,
    depth: usize,
    namespaces: bool,
) -> Result<(), JinjaError> {
    let refuse = |why: &'static str| Err(JinjaError::new(ErrorKind::InvalidOperation, why));
    if depth > MAX_DEPTH {
        return refuse("lists and maps are nested too deeply");
    }
    let is_map = match value.kind() {
        ValueKind::Map => true,
        ValueKind::Seq | ValueKind::Iterable => false,
        _ => return Ok(()),
    };
    let is_namespace =
        value.as_object().is_some_and(|object| object.type_name().ends_with("::Namespace"));
    if is_namespace && (!namespaces || depth > 0) {
        return refuse("a namespace cannot be within a value");
    }
    for item in value.try_iter()? {
        state.consume_fuel(1)?;
        if is_map {
            check(state, &value.get_item(&item)?, depth + 1, namespaces)?;
        }
        check(state, &item, depth + 1, namespaces)?;
    }
    Ok(())
}

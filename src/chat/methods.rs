//! Python's methods of strings and dicts, which templates are written for.
//!
//! Each takes fuel for the bytes that it reads and makes, before it does so. So no template can
//! fill the memory or take long.

use std::borrow::Cow;
use std::collections::HashSet;
use std::slice;

use minijinja::value::{Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};

/// Bytes that one unit of fuel pays for. minijinja counts so too.
pub(super) const BYTES_PER_FUEL: usize = 64;

/// Takes fuel for reading the strings among `values`.
pub(super) fn read(state: &State<'_, '_>, values: &[Value]) -> Result<(), Error> {
    let bytes = values.iter().filter_map(Value::as_str).map(str::len).sum::<usize>();
    state.consume_fuel((bytes / BYTES_PER_FUEL) as u64)
}

/// Takes fuel for visiting the items of the lists and maps among `values`, and their strings.
pub(super) fn visit(state: &State<'_, '_>, values: &[Value]) -> Result<(), Error> {
    read(state, values)?;
    let lists = values.iter().filter(|value| value.as_object().is_some());
    state.consume_fuel(lists.filter_map(Value::len).sum::<usize>() as u64)
}

/// Takes fuel for all that is within `values`. Showing or comparing them reads it all.
pub(super) fn read_all(state: &State<'_, '_>, values: &[Value]) -> Result<(), Error> {
    read(state, values)?;
    for value in values {
        let is_map = match value.kind() {
            ValueKind::Map => true,
            ValueKind::Seq | ValueKind::Iterable => false,
            _ => continue,
        };
        for item in value.try_iter()? {
            state.consume_fuel(1)?;
            if is_map {
                read_all(state, &[value.get_item(&item)?])?;
            }
            read_all(state, &[item])?;
        }
    }
    Ok(())
}

/// Calls a method that minijinja does not have.
pub(super) fn call(
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    read(state, args)?;
    match (value.as_str(), value.kind()) {
        (Some(text), _) => of_text(state, text, method, args),
        (None, ValueKind::Map) => of_map(state, value, method, args),
        _ => Err(ErrorKind::UnknownMethod.into()),
    }
}

/// Jinja's filter `trim`.
pub(super) fn trim(text: Cow<'_, str>, chars: Option<Cow<'_, str>>) -> String {
    strip(&text, chars.as_deref(), true, true).to_owned()
}

fn of_text(
    state: &State<'_, '_>,
    text: &str,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let fuel = |bytes: usize| state.consume_fuel((bytes / BYTES_PER_FUEL) as u64);
    let all = |test: fn(char) -> bool| {
        from_args::<()>(args)?;
        Ok(Value::from(!text.is_empty() && text.chars().all(test)))
    };
    let whole = |change: fn(&str) -> String| {
        from_args::<()>(args)?;
        fuel(text.len())?;
        Ok(Value::from(change(text)))
    };
    match method {
        "strip" | "lstrip" | "rstrip" => {
            let (chars,): (Option<&str>,) = from_args(args)?;
            Ok(strip(text, chars, method != "rstrip", method != "lstrip").into())
        }
        "startswith" => any_of(state, args, |start| text.starts_with(start)),
        "endswith" => any_of(state, args, |end| text.ends_with(end)),
        "removeprefix" => {
            let (start,): (&str,) = from_args(args)?;
            Ok(text.strip_prefix(start).unwrap_or(text).into())
        }
        "removesuffix" => {
            let (end,): (&str,) = from_args(args)?;
            Ok(text.strip_suffix(end).unwrap_or(text).into())
        }
        "split" => {
            let (separator, most): (Option<&str>, Option<i64>) = from_args(args)?;
            let parts = split(text, separator, most)?;
            fuel(parts.len() * BYTES_PER_FUEL + text.len())?;
            Ok(parts.into_iter().map(Value::from).collect())
        }
        "splitlines" => {
            from_args::<()>(args)?;
            fuel(text.len() * BYTES_PER_FUEL)?;
            Ok(lines(text).into_iter().map(Value::from).collect())
        }
        "replace" => {
            let (old, new, most): (&str, &str, Option<i64>) = from_args(args)?;
            let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
            let found = text.matches(old).count().min(most);
            fuel(found.saturating_mul(new.len()).saturating_add(text.len()))?;
            Ok(text.replacen(old, new, most).into())
        }
        "join" => {
            let (items,): (&Value,) = from_args(args)?;
            let mut joined = String::new();
            for (n, item) in items.try_iter()?.enumerate() {
                let item = item.as_str().ok_or_else(|| wrong("join takes strings"))?;
                fuel(text.len() + item.len() + BYTES_PER_FUEL)?;
                joined += if n == 0 { "" } else { text };
                joined += item;
            }
            Ok(joined.into())
        }
        "find" => {
            let (part,): (&str,) = from_args(args)?;
            Ok(position(text, text.find(part)))
        }
        "rfind" => {
            let (part,): (&str,) = from_args(args)?;
            Ok(position(text, text.rfind(part)))
        }
        "count" => {
            let (part,): (&str,) = from_args(args)?;
            Ok(text.matches(part).count().into())
        }
        "upper" => whole(str::to_uppercase),
        "lower" => whole(str::to_lowercase),
        "title" => whole(title),
        "capitalize" => whole(capitalize),
        "isspace" => all(is_space),
        "isdigit" | "isnumeric" => all(char::is_numeric),
        "isalpha" => all(char::is_alphabetic),
        "isalnum" => all(char::is_alphanumeric),
        "islower" => all(|c| !c.is_uppercase()),
        "isupper" => all(|c| !c.is_lowercase()),
        _ => Err(ErrorKind::UnknownMethod.into()),
    }
}

fn of_map(
    state: &State<'_, '_>,
    map: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    if method == "get" {
        let (key, default): (&Value, Option<Value>) = from_args(args)?;
        read_all(state, slice::from_ref(key))?;
        let found = map.get_item(key)?;
        return Ok(if found.is_undefined() { default.unwrap_or(().into()) } else { found });
    }
    from_args::<()>(args)?;
    visit(state, slice::from_ref(map))?;
    let item = |key: Value| -> Result<Value, Error> {
        Ok(match method {
            "keys" => key,
            "values" => map.get_item(&key)?,
            "items" => {
                let value = map.get_item(&key)?;
                Tuple::from([key, value]).into()
            }
            _ => return Err(ErrorKind::UnknownMethod.into()),
        })
    };
    let items: Vec<Value> = map.try_iter()?.map(item).collect::<Result<_, _>>()?;
    Ok(items.into())
}

/// Python's white space: Unicode's, and four separators of ASCII.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn strip<'a>(text: &'a str, chars: Option<&str>, start: bool, end: bool) -> &'a str {
    // A set, because both the text and `chars` may have a million characters.
    let chars: Option<HashSet<char>> = chars.map(|chars| chars.chars().collect());
    let strips = |c: char| chars.as_ref().map_or_else(|| is_space(c), |chars| chars.contains(&c));
    let text = if start { text.trim_start_matches(strips) } else { text };
    if end { text.trim_end_matches(strips) } else { text }
}

/// Whether `test` holds for the argument, or for any item if it is a list.
fn any_of(
    state: &State<'_, '_>,
    args: &[Value],
    test: impl Fn(&str) -> bool,
) -> Result<Value, Error> {
    let (what,): (&Value,) = from_args(args)?;
    let test = |value: &Value| value.as_str().map(&test).ok_or_else(|| wrong("takes strings"));
    if what.as_str().is_some() {
        return Ok(test(what)?.into());
    }
    for item in what.try_iter()? {
        state.consume_fuel(1)?;
        read(state, slice::from_ref(&item))?;
        if test(&item)? {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

fn split<'a>(
    text: &'a str,
    separator: Option<&str>,
    most: Option<i64>,
) -> Result<Vec<&'a str>, Error> {
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    match separator {
        Some("") => Err(wrong("split needs a separator that is not empty")),
        Some(separator) => Ok(text.splitn(most.saturating_add(1), separator).collect()),
        None => {
            let mut parts = Vec::new();
            let mut rest = text.trim_start_matches(is_space);
            while !rest.is_empty() {
                if parts.len() == most {
                    parts.push(rest.trim_end_matches(is_space));
                    break;
                }
                let end = rest.find(is_space).unwrap_or(rest.len());
                parts.push(&rest[..end]);
                rest = rest[end..].trim_start_matches(is_space);
            }
            Ok(parts)
        }
    }
}

/// Python's `splitlines`. It knows more line ends than other programs.
fn lines(text: &str) -> Vec<&str> {
    let ends = |c: char| matches!(c, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find(ends) {
        lines.push(&rest[..end]);
        let after = &rest[end..];
        let width = after.chars().next().map_or(0, char::len_utf8);
        rest = after.strip_prefix("\r\n").unwrap_or(&after[width..]);
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

/// The number of characters before byte `at`; -1 for `None`.
fn position(text: &str, at: Option<usize>) -> Value {
    at.map_or(-1, |at| text[..at].chars().count() as i64).into()
}

/// Python's `title`: makes the first letter of each word upper-case. Anything but a letter
/// separates words.
fn title(text: &str) -> String {
    let mut titled = String::with_capacity(text.len());
    let mut within = false;
    for c in text.chars() {
        if within {
            titled.extend(c.to_lowercase());
        } else {
            titled.extend(title_case(c));
        }
        within = c.is_alphabetic();
    }
    titled
}

/// A letter as it is written at the beginning of a word: `Ss` for `ß`.
fn title_case(c: char) -> impl Iterator<Item = char> {
    let mut upper = c.to_uppercase();
    upper.next().into_iter().chain(upper.flat_map(char::to_lowercase))
}

fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(title_case);
    first.chain(chars.as_str().to_lowercase().chars()).collect()
}

fn wrong(why: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, why)
}

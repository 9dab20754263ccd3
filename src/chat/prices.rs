//! The functions that take fuel for their argument and give it back. No template knows them.

use std::slice;

use minijinja::value::ValueKind;
use minijinja::{Environment, Error as JinjaError, State, Value};

use super::methods;

/// Pays for all that is within a value.
pub(super) const READ: &str = "__read";
/// Pays for the items of a list, or the characters of a text.
pub(super) const VISITED: &str = "__visited";
/// Makes a list of a slice or a product. A slice that begins late takes long each time that it is used,
/// and a product of a product of a product takes stack.
pub(super) const LISTED: &str = "__listed";
/// `value[key]`.
pub(super) const ITEM: &str = "__item";

/// Adds the functions that the calls name, and a price for showing a list.
pub(super) fn install(environment: &mut Environment<'static>) {
    environment.add_function(READ, read);
    environment.add_function(VISITED, visited);
    environment.add_function(LISTED, listed);
    environment.add_function(ITEM, item);
    environment.set_formatter(|output, state, value| {
        read(state, value.clone())?;
        minijinja::escape_formatter(output, state, value)
    });
}

// minijinja itself takes fuel for the text of a value that a function gives back, so these do not.

fn read(state: &State<'_, '_>, value: Value) -> Result<Value, JinjaError> {
    if value.as_object().is_some() {
        methods::read_all(state, slice::from_ref(&value))?;
    }
    Ok(value)
}

fn visited(state: &State<'_, '_>, value: Value) -> Result<Value, JinjaError> {
    if value.as_object().is_some() {
        methods::visit(state, slice::from_ref(&value))?;
    }
    Ok(value)
}

fn listed(state: &State<'_, '_>, value: Value) -> Result<Value, JinjaError> {
    if value.kind() != ValueKind::Iterable {
        return Ok(value);
    }
    let paid = |item| state.consume_fuel(1).map(|()| item);
    value.try_iter()?.map(paid).collect::<Result<Vec<Value>, _>>().map(Value::from)
}

fn item(state: &State<'_, '_>, value: &Value, key: &Value) -> Result<Value, JinjaError> {
    methods::read(state, slice::from_ref(value))?;
    methods::read_all(state, slice::from_ref(key))?;
    if let (ValueKind::Iterable, Some(n)) = (value.kind(), key.as_i64()) {
        let len = value.len().unwrap_or(usize::MAX) as u64;
        state.consume_fuel(n.unsigned_abs().min(len))?;
    }
    value.get_item(key)
}

//! The filters, tests and functions of Jinja that chat templates use. minijinja has more, but each
//! adds to the bytes that a page downloads. None of these puts a list into a list, so a chain of
//! them cannot make a deep value. `guard` relies on that.

use std::borrow::Cow;

use minijinja::value::{Kwargs, Rest, Tuple, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters, functions, tests};

use super::record::record;
use super::{clock, json, methods};

/// A test of one value.
type Test = fn(&Value) -> bool;
/// A comparison of two values.
type Comparison = fn(&Value, &Value) -> bool;
/// Takes fuel for reading the arguments.
type Meter = fn(&State<'_, '_>, &[Value]) -> Result<(), Error>;

const TESTS: &[(&str, Test)] = &[
    ("defined", tests::is_defined),
    ("undefined", tests::is_undefined),
    ("none", tests::is_none),
    ("string", tests::is_string),
    ("mapping", tests::is_mapping),
    ("sequence", tests::is_sequence),
    ("iterable", tests::is_iterable),
    ("number", tests::is_number),
    ("integer", tests::is_integer),
    ("float", tests::is_float),
    ("boolean", tests::is_boolean),
    ("true", tests::is_true),
    ("false", tests::is_false),
    ("odd", |value| value.as_i64().is_some_and(|number| number % 2 != 0)),
    ("even", |value| value.as_i64().is_some_and(|number| number % 2 == 0)),
];

const COMPARISONS: &[(&str, Comparison)] = &[
    ("eq", tests::is_eq),
    ("equalto", tests::is_eq),
    ("==", tests::is_eq),
    ("ne", tests::is_ne),
    ("!=", tests::is_ne),
    ("sameas", tests::is_eq),
    ("lt", tests::is_lt),
    ("gt", tests::is_gt),
];

/// Filters of text. Python's strings have a method of the same name for each.
const OF_TEXT: &[&str] = &["upper", "lower", "title", "capitalize"];

/// Adds all of these filters, tests and functions to an empty environment.
pub(super) fn install(environment: &mut Environment<'static>) {
    for &(name, test) in TESTS {
        environment.add_test(name, test);
    }
    for &(name, comparison) in COMPARISONS {
        environment.add_test(name, metered(methods::read_all, Value::from_function(comparison)));
    }
    environment.add_test("in", metered(methods::read_all, Value::from_function(tests::is_in)));

    for &name in OF_TEXT {
        let filter = move |state: &mut State<'_, '_>, text: Cow<'_, str>| {
            methods::call(state, &Value::from(text), name, &[])
        };
        environment.add_filter(name, filter);
    }
    let mut filter = |name, meter, filter| environment.add_filter(name, metered(meter, filter));
    filter("trim", methods::read, Value::from_function(methods::trim));
    filter("indent", methods::read, Value::from_function(indent));
    filter("items", methods::visit, Value::from_function(items));
    filter("replace", methods::read, Value::from_function(filters::replace));
    filter("join", methods::read_all, Value::from_function(filters::join));
    filter("length", methods::read, Value::from_function(filters::length));
    filter("count", methods::read, Value::from_function(filters::length));
    filter("last", methods::visit, Value::from_function(filters::last));
    filter("string", methods::read_all, Value::from_function(filters::string));
    filter("int", methods::read, Value::from_function(filters::int));
    filter("reverse", methods::visit, Value::from_function(filters::reverse));
    environment.add_filter("tojson", json::to_json);
    environment.add_filter("default", filters::default);
    environment.add_filter("d", filters::default);
    environment.add_filter("first", filters::first);
    environment.add_filter("list", filters::list);
    environment.add_filter("map", filters::map);
    environment.add_filter("select", filters::select);
    environment.add_filter("reject", filters::reject);
    environment.add_filter("selectattr", filters::selectattr);
    environment.add_filter("rejectattr", filters::rejectattr);
    // Prompts need no escapes.
    environment.add_filter("safe", |value: Value| value);

    environment.add_function("namespace", functions::namespace);
    environment.add_function("range", range);
    environment.add_function("dict", dict);
    environment.add_function("strftime_now", |state: &State<'_, '_>, format: &Value| {
        methods::read(state, std::slice::from_ref(format))?;
        let wrong = || Error::new(ErrorKind::InvalidOperation, "strftime_now takes a string");
        format.as_str().map(clock::now).ok_or_else(wrong)
    });
}

/// Makes a filter or a test pay for what it reads, before it reads it. minijinja charges for the
/// text of a tag's filter. It does not charge for arguments, nor for what `map` and `select` call.
fn metered(
    meter: Meter,
    function: Value,
) -> impl Fn(&mut State<'_, '_>, Rest<Value>) -> Result<Value, Error> {
    move |state, values| {
        meter(state, &values)?;
        function.call(state, &values)
    }
}

/// Jinja's `range`. minijinja's own overflows at large numbers, which no template needs.
fn range(lower: i32, upper: Option<i32>, step: Option<i32>) -> Result<Value, Error> {
    let wide = |number: i32| number as isize;
    functions::range(wide(lower), upper.map(wide), step.map(wide))
}

/// Jinja's `dict` with named fields.
fn dict(fields: Kwargs) -> Result<Value, Error> {
    let names: Vec<String> = fields.args().map(String::from).collect();
    let field = |name: String| Ok((name.clone(), fields.get::<Value>(&name)?));
    let fields: Vec<(String, Value)> =
        names.into_iter().map(field).collect::<Result<_, Error>>()?;
    Ok(record(fields))
}

/// Jinja's `items`: the pairs of a map.
fn items(map: &Value) -> Result<Value, Error> {
    if map.kind() != ValueKind::Map {
        return Err(Error::new(ErrorKind::InvalidOperation, "items takes a map"));
    }
    let pair = |key: Value| -> Result<Value, Error> {
        let value = map.get_item(&key)?;
        Ok(Tuple::from([key, value]).into())
    };
    let pairs: Vec<Value> = map.try_iter()?.map(pair).collect::<Result<_, _>>()?;
    Ok(pairs.into())
}

/// Jinja's `indent`. It moves all lines to the right, except the first and blank ones.
fn indent(
    state: &State<'_, '_>,
    text: Cow<'_, str>,
    width: Option<usize>,
    first: Option<bool>,
    options: Kwargs,
) -> Result<String, Error> {
    let width = match width {
        Some(width) => width,
        None => options.get::<Option<usize>>("width")?.unwrap_or(4),
    };
    let first = match first {
        Some(first) => first,
        None => options.get::<Option<bool>>("first")?.unwrap_or(false),
    };
    let blank = options.get::<Option<bool>>("blank")?.unwrap_or(false);
    options.assert_all_used()?;
    let lines = text.matches('\n').count() + 1;
    state.consume_fuel((lines.saturating_mul(width) / methods::BYTES_PER_FUEL) as u64)?;
    let space = " ".repeat(width);
    let indented = |(n, line): (usize, &str)| {
        let moves = if n == 0 { first } else { blank || !line.is_empty() };
        if moves { format!("{space}{line}") } else { line.into() }
    };
    Ok(text.split('\n').enumerate().map(indented).collect::<Vec<_>>().join("\n"))
}

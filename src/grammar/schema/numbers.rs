//! Bounds of numbers.

use serde_json::{Map, Number, Value};

use super::at::At;
use crate::error::Error;

/// The largest number of an answer. Without a bound, its digits or its exponent could say a number
/// that no program reads.
pub(super) const MAX: f64 = 1e18;

/// The largest integer of an answer, `Number.MAX_SAFE_INTEGER`.
const MAX_INTEGER: f64 = 9_007_199_254_740_991.0;

/// The least number greater than 0 of an answer that must be greater than 0.
const LEAST: f64 = 1e-30;

/// The largest product of two `multipleOf`, which llguidance computes in 32 bits, and the largest
/// `multipleOf`, to which it adds a digit in 32 bits.
const MAX_PRODUCT: u64 = u32::MAX as u64;
const MAX_MULTIPLE: u64 = 100_000_000;

/// Characters of a bound at most. llguidance writes a regular expression with brackets for each.
const MAX_DIGITS: usize = 60;

const KEYS: [&str; 5] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

/// Whether a schema has a keyword of numbers.
pub(super) fn has_any(schema: &Map<String, Value>) -> bool {
    KEYS.iter().any(|key| schema.contains_key(*key))
}

/// Writes the bounds of `schema`, all of them inclusive. Digits behind the last that a program
/// keeps can round a number up to an exclusive bound.
pub(super) fn write(
    schema: &Map<String, Value>,
    only_integers: bool,
    at: &At<'_>,
    plain: &mut Map<String, Value>,
) -> Result<(), Error> {
    let number = |key: &str| match schema.get(key) {
        None | Some(Value::Bool(_)) => Ok(None),
        Some(value) => match value.as_f64().filter(|number| number.is_finite()) {
            Some(number) => Ok(Some(number)),
            None => at.key(key).refuse("must be a number"),
        },
    };
    // In draft 4 an exclusive bound is a word for the other.
    let is_exclusive = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    for key in ["minimum", "maximum", "multipleOf"] {
        if schema.get(key).is_some_and(Value::is_boolean) {
            return at.key(key).refuse("must be a number");
        }
    }
    let mut least = number("minimum")?;
    let mut most = number("maximum")?;
    let mut above = number("exclusiveMinimum")?;
    let mut below = number("exclusiveMaximum")?;
    if is_exclusive("exclusiveMinimum") {
        above = least.take();
    }
    if is_exclusive("exclusiveMaximum") {
        below = most.take();
    }
    let step = number("multipleOf")?;
    let limit = match step {
        _ if only_integers => MAX_INTEGER,
        // A double must hold every digit of a multiple.
        Some(step) => scale(step).map_or(MAX_INTEGER, |scale| (MAX_INTEGER / scale).floor()),
        None => MAX,
    };
    let least = [least, above.map(|bound| next(bound, only_integers)), Some(-limit)];
    let most = [most, below.map(|bound| -next(-bound, only_integers)), Some(limit)];
    let least = least.into_iter().flatten().fold(f64::NEG_INFINITY, f64::max);
    let most = most.into_iter().flatten().fold(f64::INFINITY, f64::min);
    for (key, bound) in [("minimum", least), ("maximum", most)] {
        if bound.abs() > limit {
            return at
                .refuse(format!("has a {key} of more than {limit:e}, which is not supported"));
        }
        if bound.to_string().len() > MAX_DIGITS {
            return at.refuse(format!("has a {key} of more than {MAX_DIGITS} digits"));
        }
        plain.insert(key.into(), value(bound));
    }
    if let Some(step) = step {
        if step <= 0.0 {
            return at.key("multipleOf").refuse("must be greater than 0");
        }
        plain.insert("multipleOf".into(), value(step));
    }
    Ok(())
}

/// The least number greater than `bound`.
fn next(bound: f64, only_integers: bool) -> f64 {
    match bound {
        bound if only_integers => bound.floor() + 1.0,
        0.0 => LEAST,
        bound => bound.next_up(),
    }
}

fn value(number: f64) -> Value {
    match number {
        number if number.fract() == 0.0 && number.abs() <= MAX_INTEGER => (number as i64).into(),
        number => Number::from_f64(number).map_or(Value::Null, Value::Number),
    }
}

/// The power of ten that makes `step` whole.
fn scale(step: f64) -> Option<f64> {
    let mut scales = [1.0, 10.0, 100.0, 1000.0, 1e4, 1e5, 1e6].into_iter();
    scales.find(|scale| (step * scale).fract() == 0.0)
}

/// Whether the least common multiple of these can be computed in 32 bits.
pub(super) fn fit_together(multiples: &[f64]) -> bool {
    let scales: Option<Vec<f64>> = multiples.iter().map(|step| scale(*step)).collect();
    let Some(scales) = scales else { return false };
    let scale = scales.into_iter().fold(1.0, f64::max);
    let mut whole: Vec<u64> = multiples.iter().map(|step| (step * scale) as u64).collect();
    whole.sort_unstable();
    match whole[..] {
        [.., second, first] => first <= MAX_MULTIPLE && first.saturating_mul(second) <= MAX_PRODUCT,
        [first] => first <= MAX_MULTIPLE,
        [] => true,
    }
}

/// Whether a double holds this number.
pub(super) fn is_exact(number: &Number) -> bool {
    let integer = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
    match (integer, number.as_f64()) {
        (Some(integer), Some(double)) => double as i128 == integer,
        (None, Some(double)) => double.is_finite(),
        _ => false,
    }
}

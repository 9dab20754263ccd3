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

/// Digits behind the point of a number at most: llguidance computes with them in 32 bits. And digits
/// that every double holds.
const MAX_DECIMALS: usize = 8;
const DIGITS_OF_DOUBLE: usize = 15;

/// The largest `multipleOf`, with its decimals as digits. llguidance has a state for each remainder. It
/// looks at all of them before an answer begins, which takes a second for each 100 000.
pub(super) const MAX_MULTIPLE: u64 = 10_000;

/// Characters of a bound at most. llguidance writes a regular expression with brackets for each.
const MAX_DIGITS: usize = 60;

const KEYS: [&str; 5] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

/// Whether a schema has a keyword of numbers.
pub(super) fn has_any(schema: &Map<String, Value>) -> bool {
    KEYS.iter().any(|key| schema.contains_key(*key))
}

/// The bounds that a schema gives.
struct Bounds {
    minimum: Option<f64>,
    maximum: Option<f64>,
    /// Exclusive ones.
    above: Option<f64>,
    below: Option<f64>,
    step: Option<f64>,
}

impl Bounds {
    fn read(schema: &Map<String, Value>, at: &At<'_>) -> Result<Self, Error> {
        // In draft 4 an exclusive bound is a word for the other.
        let is_word = |key: &str| {
            key.starts_with("exclusive") && schema.get(key).is_some_and(Value::is_boolean)
        };
        let number = |key: &str| match schema.get(key) {
            None => Ok(None),
            Some(_) if is_word(key) => Ok(None),
            Some(value) => match value.as_f64().filter(|number| number.is_finite()) {
                Some(number) => Ok(Some(number)),
                None => at.key(key).refuse("must be a number"),
            },
        };
        let mut bounds = Self {
            minimum: number("minimum")?,
            maximum: number("maximum")?,
            above: number("exclusiveMinimum")?,
            below: number("exclusiveMaximum")?,
            step: number("multipleOf")?,
        };
        if schema.get("exclusiveMinimum") == Some(&Value::Bool(true)) {
            bounds.above = bounds.minimum.take();
        }
        if schema.get("exclusiveMaximum") == Some(&Value::Bool(true)) {
            bounds.below = bounds.maximum.take();
        }
        match bounds.step {
            Some(step) if step <= 0.0 => at.key("multipleOf").refuse("must be greater than 0"),
            _ => Ok(bounds),
        }
    }

    /// How many digits behind the point all numbers may have, so that a double tells each from the
    /// bounds; `None` if the bounds need more.
    fn digits(&self) -> Option<usize> {
        let exclusive = [self.above, self.below].into_iter().flatten();
        let before_point = |bound: f64| bound.abs().trunc().to_string().len();
        let before_point = exclusive.map(before_point).max().unwrap_or(0);
        let digits = DIGITS_OF_DOUBLE.checked_sub(before_point)?.min(MAX_DECIMALS);
        let all = [self.minimum, self.maximum, self.above, self.below].into_iter().flatten();
        let decimals = |bound: f64| bound.to_string().split_once('.').map_or(0, |(_, d)| d.len());
        (digits > 0 && all.map(decimals).max().unwrap_or(0) <= digits).then_some(digits)
    }
}

/// Writes the bounds of the numbers of `schema`. `is_intersected` says that another schema may hold
/// for the same numbers.
///
/// llguidance decides by the digits alone. Digits that a double does not hold could round a number up
/// to an exclusive bound. So numbers have few digits, or the bounds are the doubles beside them.
pub(super) fn write(
    schema: &Map<String, Value>,
    only_integers: bool,
    is_intersected: bool,
    at: &At<'_>,
    plain: &mut Map<String, Value>,
) -> Result<(), Error> {
    let Bounds { mut minimum, mut maximum, mut above, mut below, mut step } =
        Bounds::read(schema, at)?;
    let limit = match step {
        _ if only_integers => MAX_INTEGER,
        // A double must hold every digit of a multiple.
        Some(step) => scale(step).map_or(MAX_INTEGER, |scale| (MAX_INTEGER / scale).floor()),
        None => MAX,
    };
    let digits = Bounds { minimum, maximum, above, below, step }.digits();
    match digits.filter(|_| step.is_none() && !only_integers && !is_intersected) {
        Some(digits) => step = Some(10_f64.powi(-(digits as i32))),
        None => {
            let next = |bound: f64| next(bound, only_integers);
            let larger = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
            minimum = larger(minimum, above.take().map(next));
            let negative = |bound: f64| -bound;
            let below = below.take().map(negative).map(next);
            maximum = larger(maximum.map(negative), below).map(negative);
        }
    }
    minimum = Some(minimum.map_or(-limit, |bound| bound.max(-limit)));
    maximum = Some(maximum.map_or(limit, |bound| bound.min(limit)));
    above = above.filter(|bound| *bound >= -limit);
    below = below.filter(|bound| *bound <= limit);
    for (key, bound) in [
        ("minimum", minimum),
        ("maximum", maximum),
        ("exclusiveMinimum", above),
        ("exclusiveMaximum", below),
    ] {
        let Some(bound) = bound else { continue };
        if bound.abs() > limit {
            let why = format!("has a bound of more than {limit:e}, which is not supported");
            return at.refuse(why);
        }
        if bound.to_string().len() > MAX_DIGITS {
            return at.refuse(format!("has a bound of more than {MAX_DIGITS} digits"));
        }
        plain.insert(key.into(), value(bound));
    }
    if let Some(step) = step {
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

/// Whether the least common multiple of these is not too large.
pub(super) fn fit_together(multiples: &[f64]) -> bool {
    let scales: Option<Vec<f64>> = multiples.iter().map(|step| scale(*step)).collect();
    let Some(scales) = scales else { return false };
    let scale = scales.into_iter().fold(1.0, f64::max);
    let mut whole = multiples.iter().map(|step| (step * scale) as u64);
    let common = |a: u64, b: u64| {
        let least = a / greatest_divisor(a, b) * b;
        (least <= MAX_MULTIPLE).then_some(least)
    };
    whole.try_fold(1, |least, next| common(least, next.min(MAX_MULTIPLE + 1))).is_some()
}

fn greatest_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
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

//! Parsers of option values. clap names the option in front of their messages.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The parser of a whole number within `range`.
pub(crate) fn whole_number<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    within("a whole number", range)
}

/// The parser of a number within `range`.
pub(crate) fn number(
    range: RangeInclusive<f32>,
) -> impl Fn(&str) -> Result<f32, String> + Clone + Send + Sync + 'static {
    within("a number", range)
}

fn within<T>(
    what: &'static str,
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        text.parse()
            .ok()
            .filter(|number| range.contains(number))
            .ok_or_else(|| format!("must be {what} from {} to {}", range.start(), range.end()))
    }
}

/// The parser of a whole number of things, at least one of them.
pub(crate) fn one_or_more(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("must be a whole number, 1 or more".into()),
        Ok(number) => Ok(number),
    }
}

/// The parser of a whole number of things.
pub(crate) fn zero_or_more(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "must be a whole number, 0 or more".into())
}

/// The parser of a token's id and its bias.
pub(crate) fn logit_bias(text: &str) -> Result<(u32, f32), String> {
    let pair =
        text.split_once('=').and_then(|(id, bias)| Some((id.parse().ok()?, bias.parse().ok()?)));
    pair.ok_or_else(|| "must be the id of a token and a number, such as 42=-100".into())
}

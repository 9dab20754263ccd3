//! The formats of strings.

/// Formats that llguidance has regular expressions for.
const KNOWN: [&str; 7] = ["duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"];

/// What a format asks of a string.
pub(super) enum Format {
    /// llguidance knows it by this name.
    Known(&'static str),
    /// A regular expression.
    Pattern(String),
}

/// Days that are in the calendar: 29 February is in leap years only.
const DATE: &str = "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])\
    |(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))\
    |(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";

/// Times without leap seconds, which few programs read.
const TIME: &str = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+\-](?:[01][0-9]|2[0-3]):[0-5][0-9])";

impl Format {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "date" => Self::Pattern(format!("^{DATE}$")),
            "time" => Self::Pattern(format!("^{TIME}$")),
            "date-time" => Self::Pattern(format!("^{DATE}T{TIME}$")),
            _ => Self::Known(KNOWN.iter().find(|known| **known == name)?),
        })
    }

    /// The names of all formats, for people.
    pub(super) fn names() -> String {
        format!("date, date-time, time, {}", KNOWN.join(", "))
    }
}

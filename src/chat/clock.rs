//! Python's `strftime` for templates that write today's date.

use web_time::{SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The time now, in UTC, in Python's format.
pub(super) fn now(format: &str) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    strftime(since.as_secs(), format)
}

/// The time `seconds` after the beginning of 1970. An unknown code stays as it is.
fn strftime(seconds: u64, format: &str) -> String {
    let (days, seconds) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let month_name = MONTHS[month as usize - 1];
    let day_name = DAYS[((days + 4) % 7) as usize];
    let mut text = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some('d') => text += &format!("{day:02}"),
            Some('m') => text += &format!("{month:02}"),
            Some('Y') => text += &year.to_string(),
            Some('y') => text += &format!("{:02}", year % 100),
            Some('b') => text += &month_name[..3],
            Some('B') => text += month_name,
            Some('a') => text += &day_name[..3],
            Some('A') => text += day_name,
            Some('H') => text += &format!("{hour:02}"),
            Some('I') => text += &format!("{:02}", (hour + 11) % 12 + 1),
            Some('p') => text += if hour < 12 { "AM" } else { "PM" },
            Some('M') => text += &format!("{minute:02}"),
            Some('S') => text += &format!("{second:02}"),
            Some('%') => text.push('%'),
            other => {
                text.push('%');
                text.extend(other);
            }
        }
    }
    text
}

/// Year, month and day of the day `days` after the first of 1970. Source: "chrono-Compatible
/// Low-Level Date Algorithms" by Howard Hinnant, `civil_from_days`.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::strftime;

    /// The expected texts are those of Python's `datetime.fromtimestamp(seconds, UTC)`.
    #[test]
    fn dates_are_pythons() {
        let format = "%A %a %d %B %b %m %Y %y %H %I %p %M %S %% %q";
        for (seconds, expected) in [
            (0, "Thursday Thu 01 January Jan 01 1970 70 00 12 AM 00 00 % %q"),
            (951_782_399, "Monday Mon 28 February Feb 02 2000 00 23 11 PM 59 59 % %q"),
            (951_827_696, "Tuesday Tue 29 February Feb 02 2000 00 12 12 PM 34 56 % %q"),
            (4_107_542_400, "Monday Mon 01 March Mar 03 2100 00 00 12 AM 00 00 % %q"),
        ] {
            assert_eq!(strftime(seconds, format), expected);
        }
        assert_eq!(strftime(0, "%"), "%");
    }
}

//! A moment in words: `2026-12-31` or `2026-12-31T18:00:00Z`, in UTC (RFC 3339).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::clock;

/// What is no date.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is no date: write 2026-12-31 or 2026-12-31T18:00Z (UTC)")]
pub struct MomentError(String);

/// A second since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

const DAY: u64 = 86_400;
/// The last year that has four digits.
const LAST_YEAR: u64 = 9999;

impl Moment {
    /// This second.
    pub fn now() -> Self {
        Self(clock::unix_seconds())
    }

    /// This second since 1970.
    pub const fn of_unix_seconds(seconds: u64) -> Self {
        Self(seconds)
    }

    /// The time from an earlier one to this; zero, if that is not earlier.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(self.0.saturating_sub(earlier.0))
    }

    /// Date and time, however round they are.
    pub fn in_full(self) -> String {
        let (date, time) = (Date::of(self.0 / DAY), self.0 % DAY);
        format!("{date}T{:02}:{:02}:{:02}Z", time / 3600, time / 60 % 60, time % 60)
    }
}

/// A day of the Gregorian calendar.
struct Date {
    year: u64,
    month: u64,
    day: u64,
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
}

const fn days_of_year(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

const fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Date {
    /// The day that is so many days after the first of 1970.
    fn of(mut days: u64) -> Self {
        let (mut year, mut month) = (1970, 1);
        while year < LAST_YEAR && days >= days_of_year(year) {
            days -= days_of_year(year);
            year += 1;
        }
        while month < 12 && days >= days_of_month(year, month) {
            days -= days_of_month(year, month);
            month += 1;
        }
        Self { year, month, day: days.min(30) + 1 }
    }

    /// Days since the first of 1970.
    fn days(&self) -> u64 {
        let years: u64 = (1970..self.year).map(days_of_year).sum();
        let months: u64 = (1..self.month).map(|month| days_of_month(self.year, month)).sum();
        years + months + self.day - 1
    }

    fn parse(text: &str) -> Option<Self> {
        let [year, month, day] = numbers(text, '-', [4, 2, 2])?;
        let is_date =
            (1970..=LAST_YEAR).contains(&year) && (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
        is_date.then_some(Self { year, month, day })
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// Numbers of so many digits each, and nothing else.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[u64; N]> {
    let mut parts = text.split(between);
    let mut numbers = [0; N];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

/// Seconds after midnight: `18:00` or `18:00:00`.
fn time_of_day(text: &str) -> Option<u64> {
    let [hours, minutes, seconds] =
        numbers(text, ':', [2, 2, 2]).or_else(|| numbers(text, ':', [2, 2]).map(|[hours, minutes]| [hours, minutes, 0]))?;
    (hours < 24 && minutes < 60 && seconds < 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

impl FromStr for Moment {
    type Err = MomentError;

    fn from_str(text: &str) -> Result<Self, MomentError> {
        let parse = || {
            let (date, time) = match text.split_once('T') {
                Some((date, time)) => (date, time_of_day(time.strip_suffix('Z')?)?),
                None => (text, 0),
            };
            Some(Self(Date::parse(date)?.days() * DAY + time))
        };
        parse().ok_or_else(|| MomentError(text.to_owned()))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(DAY) { Date::of(self.0 / DAY).fmt(f) } else { f.write_str(&self.in_full()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_seconds_are_the_same_moments() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("2000-02-29", 951_782_400),
            ("2026-12-31", 1_798_675_200),
            ("2026-12-31T18:00:01Z", 1_798_740_001),
            ("2100-03-01", 4_107_542_400),
        ] {
            assert_eq!(text.parse(), Ok(Moment(seconds)), "{text}");
            assert_eq!(Moment(seconds).to_string(), text);
        }
        assert_eq!("2026-12-31T18:00Z".parse::<Moment>().unwrap().in_full(), "2026-12-31T18:00:00Z");
        assert_eq!(Moment(0).in_full(), "1970-01-01T00:00:00Z");
        assert!(!Moment(u64::MAX).to_string().is_empty());
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2026-00-01",
            "2026-1-1",
            "31.12.2026",
            "2026-12-31T24:00Z",
            "2026-12-31T18:00",
            "2026-12-31 18:00Z",
            "+026-12-31",
            "1969-12-31",
            "2026-12-31T1:00Z",
            "2026-12-31T18:00:00:00Z",
        ] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }
}

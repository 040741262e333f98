//! A limit that depends on the time of day: `08:00-18:00=100M,otherwise=1G`.
//!
//! Windows are in local time, from a minute on until another, over midnight too; of several that a minute is in the first counts. `otherwise` is what holds in none of them, without it nothing does. A rate is a [`Limit`], or
//! `none`. A limit alone holds at all times.

use std::str::FromStr;

use haul_units::BitRate;
use thiserror::Error;

use crate::clock;
use crate::limit::{Limit, LimitError};
use crate::system::local_minute;

/// Most windows: more than anybody has shifts.
const MAX_WINDOWS: usize = 48;
/// Minutes of a day.
const DAY: u16 = 24 * 60;

/// What is no limit by hours.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HoursError {
    /// A rate in it is none.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A window in it is none.
    #[error("`{0}` is no window: write 08:00-18:00=100M, or otherwise=1G")]
    Window(String),
    /// `otherwise` twice, or more windows than can be meant.
    #[error("`otherwise` counts once, and {MAX_WINDOWS} windows are enough")]
    TooMany,
}

/// A limit on the rate at each time of the day.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LimitByHours {
    windows: Vec<Window>,
    otherwise: Option<BitRate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    /// Minutes since midnight; the end is not in it, and before the start where midnight is.
    from: u16,
    until: u16,
    rate: Option<BitRate>,
}

impl Window {
    const fn has(&self, minute: u16) -> bool {
        if self.from < self.until {
            self.from <= minute && minute < self.until
        } else {
            self.from <= minute || minute < self.until
        }
    }
}

impl LimitByHours {
    /// The same at all times.
    pub const fn always(rate: Option<BitRate>) -> Self {
        Self { windows: Vec::new(), otherwise: rate }
    }

    /// What holds at so many minutes since midnight; none: no limit.
    pub fn at(&self, minute: u16) -> Option<BitRate> {
        self.windows.iter().find(|window| window.has(minute)).map_or(self.otherwise, |window| window.rate)
    }

    /// What holds at this moment, in local time.
    pub fn now(&self) -> Option<BitRate> {
        self.at(if self.changes() { minute_of_day(clock::unix_seconds()) } else { 0 })
    }

    /// Whether it depends on the time.
    pub const fn changes(&self) -> bool {
        !self.windows.is_empty()
    }
}

/// The time of day at a place: minutes since midnight at so many seconds since 1970, by the machine's zone or `TZ`.
pub fn minute_of_day(unix_seconds: u64) -> u16 {
    let minute = local_minute(unix_seconds).unwrap_or((unix_seconds / 60) as i64);
    minute.rem_euclid(DAY.into()) as u16
}

impl FromStr for LimitByHours {
    type Err = HoursError;

    fn from_str(text: &str) -> Result<Self, HoursError> {
        if !text.contains('=') {
            return Ok(Self::always(Some(text.parse::<Limit>()?.0)));
        }
        let (mut windows, mut otherwise) = (Vec::new(), None);
        for part in text.split(',').map(str::trim) {
            let wrong = || HoursError::Window(part.to_owned());
            let (when, rate) = part.split_once('=').ok_or_else(wrong)?;
            let rate = match rate.trim() {
                "none" => None,
                rate => Some(rate.parse::<Limit>()?.0),
            };
            if when.trim() == "otherwise" {
                if otherwise.replace(rate).is_some() {
                    return Err(HoursError::TooMany);
                }
                continue;
            }
            let (from, until) = when.split_once('-').ok_or_else(wrong)?;
            let window = Window { from: time(from).ok_or_else(wrong)?, until: time(until).ok_or_else(wrong)?, rate };
            if window.from == window.until || window.from == DAY {
                return Err(wrong());
            }
            windows.push(window);
        }
        if windows.len() > MAX_WINDOWS {
            return Err(HoursError::TooMany);
        }
        Ok(Self { windows, otherwise: otherwise.flatten() })
    }
}

/// Minutes since midnight of `18:00`; `24:00` is the end of a day.
fn time(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |text: &str| text.parse::<u16>().ok().filter(|_| text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit()));
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (minutes < 60 && hours * 60 + minutes <= DAY).then_some(hours * 60 + minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, times: &[&str]) -> Vec<Option<u64>> {
        let hours: LimitByHours = text.parse().expect("a limit");
        times.iter().map(|text| hours.at(time(text).expect("a time")).map(|rate| rate.as_bps() / 1_000_000)).collect()
    }

    #[test]
    fn the_first_window_that_has_the_minute_counts() {
        let day = "08:00-18:00=100M, 12:00-13:00=5M,otherwise=1G";
        assert_eq!(at(day, &["07:59", "08:00", "12:30", "17:59", "18:00"]), [1000, 100, 100, 100, 1000].map(Some));
        let night = "22:00-06:00=none,06:00-07:30=50M,otherwise=2000";
        assert_eq!(
            at(night, &["21:59", "22:00", "00:00", "05:59", "06:00", "07:30"]),
            [Some(2), None, None, None, Some(50), Some(2)]
        );
        assert_eq!(at("18:00-24:00=1M", &["17:59", "18:00", "23:59", "00:00"]), [None, Some(1), Some(1), None]);
        assert_eq!(at("8000", &["00:00", "12:00"]), [Some(8), Some(8)]);
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "",
            "fast",
            "8:00-18:00=1M",
            "08:00=1M",
            "08:00-08:00=1M",
            "24:00-08:00=1M",
            "08:00-25:00=1M",
            "08:60-09:00=1M",
            "08:00-18:00=0",
            "08:00-18:00=1M,",
            "otherwise=1M,otherwise=2M",
            "08:00-18:00=1M;otherwise=2M",
            "+8:00-18:00=1M",
        ] {
            assert!(text.parse::<LimitByHours>().is_err(), "{text}");
        }
        let many = vec!["08:00-18:00=1M"; MAX_WINDOWS + 1].join(",");
        assert_eq!(many.parse::<LimitByHours>(), Err(HoursError::TooMany));
    }

    /// Zones differ by hours and quarters of them; whichever holds here, a minute later it is a minute later, and a day later as late.
    #[test]
    fn a_day_has_its_minutes() {
        let noon = 1_790_000_000;
        assert!(minute_of_day(noon) < DAY && minute_of_day(u64::MAX) < DAY);
        assert_eq!((minute_of_day(noon) + 1) % DAY, minute_of_day(noon + 60));
        assert_eq!(minute_of_day(noon), minute_of_day(noon + 86_400));
    }
}

//! From values to places, and where ticks are.

use super::chart::{Axis, Scale};

/// An axis with its ends.
#[derive(Debug, Clone)]
pub(super) struct Ruler {
    scale: Scale,
    from: f64,
    to: f64,
}

/// A mark on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    /// Its place, from 0 to 1.
    pub at: f64,
    /// What stands beside it; empty: a fine line only.
    pub label: String,
}

impl Ruler {
    /// Long enough for all values, which have been checked.
    pub fn new(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = match axis.scale {
            Scale::LogAndZero => values.filter(|&value| value > 0.0).collect(),
            _ => values.collect(),
        };
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // All zero, on an axis with a place for it.
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let (from, to) = match axis.scale {
            Scale::Linear => linear_ends(low, high, axis.from, axis.to),
            Scale::Log | Scale::LogAndZero => log_ends(low, high, axis.from.filter(|&from| from > 0.0), axis.to),
        };
        Self { scale: axis.scale, from, to }
    }

    /// The place of a value: 0 at the beginning, 1 at the end; beyond them outside.
    pub fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Log => self.decades(value),
            Scale::LogAndZero if value <= 0.0 => ZERO_PLACE,
            Scale::LogAndZero => LOG_BEGINS + (1.0 - LOG_BEGINS) * self.decades(value),
        }
    }

    fn decades(&self, value: f64) -> f64 {
        (value.log10() - self.from.log10()) / (self.to.log10() - self.from.log10())
    }

    /// Where zero of bars is: they stand on the axis, whatever its beginning.
    pub fn base(&self) -> f64 {
        match self.scale {
            Scale::Linear => self.place(0.0).clamp(0.0, 1.0),
            _ => 0.0,
        }
    }

    /// The marks, at most about `most` of them with a label.
    pub fn ticks(&self, most: usize) -> Vec<Tick> {
        match self.scale {
            Scale::Linear => self.linear_ticks(most),
            Scale::Log => self.log_ticks(most),
            Scale::LogAndZero => {
                let zero = Tick { at: ZERO_PLACE, label: "0".to_owned() };
                std::iter::once(zero).chain(self.log_ticks(most)).collect()
            }
        }
    }

    fn linear_ticks(&self, most: usize) -> Vec<Tick> {
        let step = round_step((self.to - self.from) / most as f64);
        let (first, last) = ((self.from / step).ceil() as i64, (self.to / step + 1e-9).floor() as i64);
        // As many as the step itself has: 0.025 has three.
        let decimals = (0..12).find(|&decimals| {
            let shifted = step * 10f64.powi(decimals);
            (shifted - shifted.round()).abs() < 1e-6 * shifted
        });
        let decimals = decimals.unwrap_or(12) as usize;
        (first..=last)
            .map(|n| n as f64 * step)
            .map(|value| Tick { at: self.place(value), label: number(value, decimals) })
            .collect()
    }

    fn log_ticks(&self, most: usize) -> Vec<Tick> {
        let (first, last) = (self.from.log10().floor() as i32, self.to.log10().ceil() as i32);
        let decades = (self.to / self.from).log10();
        let every = (decades / most as f64).ceil().max(1.0) as i32;
        // Within few decades the steps between them have labels too.
        let labelled: &[u32] = if decades * 3.0 <= most as f64 { &[1, 2, 5] } else { &[1] };
        let mut ticks = Vec::new();
        for decade in first..=last {
            for digit in 1..=9 {
                let value = f64::from(digit) * 10f64.powi(decade);
                if value < self.from * (1.0 - 1e-9) || value > self.to * (1.0 + 1e-9) {
                    continue;
                }
                let has_label = labelled.contains(&digit) && (decade - first) % every == 0;
                let label = if has_label { number(value, (-decade).max(0) as usize) } else { String::new() };
                ticks.push(Tick { at: self.place(value), label });
            }
        }
        ticks
    }
}

/// From zero where the data allow it, to a round number above them.
fn linear_ends(low: f64, high: f64, from: Option<f64>, to: Option<f64>) -> (f64, f64) {
    let begin = from.unwrap_or(low.min(0.0));
    let highest = high.max(begin);
    let room = if highest > begin { (highest - begin) * 1.04 } else { 1.0 };
    let step = round_step(room / 6.0);
    let from = from.unwrap_or((begin / step).floor() * step);
    (from, to.filter(|&to| to > from).unwrap_or(from + ((begin + room - from) / step).ceil() * step))
}

/// From a digit times a power of ten to another.
fn log_ends(low: f64, high: f64, from: Option<f64>, to: Option<f64>) -> (f64, f64) {
    let decade = |value: f64| 10f64.powf(value.log10().floor());
    let from = from.unwrap_or_else(|| (low / decade(low) * (1.0 + 1e-9)).floor().max(1.0) * decade(low));
    let to = to.unwrap_or_else(|| (high / decade(high) * (1.0 - 1e-9)).ceil() * decade(high));
    if to > from * 1.01 { (from, to) } else { (from / 2.0, from * 2.0) }
}

/// The next of 1, 2, 2.5, 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let decade = 10f64.powf(step.log10().floor());
    let digits = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|digit| digit * decade >= step * (1.0 - 1e-9));
    digits.unwrap_or(10.0) * decade
}

/// A number as people write it: `0.25`, `1,500`.
pub(super) fn number(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let text = if text == "-0" { "0" } else { text };
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("\u{2212}", digits));
    let (whole, part) = digits.split_once('.').map_or((digits, String::new()), |(whole, part)| (whole, format!(".{part}")));
    let groups: Vec<String> = if whole.len() > 4 {
        let bytes: Vec<char> = whole.chars().rev().collect();
        bytes.chunks(3).rev().map(|group| group.iter().rev().collect()).collect()
    } else {
        vec![whole.to_owned()]
    };
    format!("{sign}{}{part}", groups.join(","))
}

/// Zero stands at the left end, the powers of ten begin a little farther.
const ZERO_PLACE: f64 = 0.03;
const LOG_BEGINS: f64 = 0.14;

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64], most: usize) -> Vec<String> {
        let ticks = Ruler::new(axis, values.iter().copied()).ticks(most);
        ticks.into_iter().map(|tick| tick.label).filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn linear_axes_begin_at_zero_and_end_at_a_round_number() {
        assert_eq!(labels(&Axis::linear("", ""), &[3.0, 9.4], 6), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(&Axis::linear("", ""), &[0.0, 0.12], 6), ["0", "0.025", "0.05", "0.075", "0.1", "0.125"]);
        assert_eq!(labels(&Axis::linear("", ""), &[-5.0, 5.0], 4), ["\u{2212}5", "0", "5"]);
        assert_eq!(labels(&Axis::linear("", "").range(1.0, 3.0), &[7.0], 4), ["1", "1.5", "2", "2.5", "3"]);
    }

    #[test]
    fn logarithmic_axes_have_their_powers_of_ten() {
        assert_eq!(labels(&Axis::log("", ""), &[0.001, 9.5], 6), ["0.001", "0.01", "0.1", "1", "10"]);
        assert_eq!(labels(&Axis::log("", ""), &[20.0, 900.0], 8), ["20", "50", "100", "200", "500"]);
        assert_eq!(labels(&Axis::log_and_zero("", ""), &[0.0, 0.01, 10.0], 6), ["0", "0.01", "0.1", "1", "10"]);
    }

    #[test]
    fn one_value_has_an_axis_too() {
        for (axis, value) in [(Axis::linear("", ""), 0.0), (Axis::linear("", ""), 7.0), (Axis::log("", ""), 7.0)] {
            let ruler = Ruler::new(&axis, [value].into_iter());
            assert!((0.0..=1.0).contains(&ruler.place(value)), "{ruler:?}");
            assert!(ruler.ticks(6).len() > 1, "{ruler:?}");
        }
    }

    #[test]
    fn places_are_where_they_belong() {
        let ruler = Ruler::new(&Axis::log("", "").range(1.0, 100.0), [5.0].into_iter());
        assert!((ruler.place(10.0) - 0.5).abs() < 1e-9);
        let zero = Ruler::new(&Axis::log_and_zero("", "").range(1.0, 100.0), [0.0, 5.0].into_iter());
        assert!(zero.place(0.0) < zero.place(1.0) && (zero.place(100.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(number(1500.0, 0), "1500");
        assert_eq!(number(-12500.5, 1), "\u{2212}12,500.5");
        assert_eq!(number(0.250, 3), "0.25");
        assert_eq!(number(-0.0, 2), "0");
    }
}

//! Completion times of many short flows, in a few figures.

use super::found::Short;

/// Of completion times, in milliseconds; what never ended counts as infinite.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// All of them, the shortest first.
    pub times_ms: Vec<f64>,
    /// Of those that ended.
    pub mean_ms: f64,
    /// The same.
    pub sd_ms: f64,
    /// How many did not end.
    pub never: usize,
}

impl Summary {
    /// Of these flows.
    pub fn of(shorts: &[Short]) -> Self {
        let ms = |short: &Short| short.took.map_or(f64::INFINITY, |took| took.as_secs_f64() * 1e3);
        let mut times_ms: Vec<f64> = shorts.iter().map(ms).collect();
        times_ms.sort_by(f64::total_cmp);
        let ended = times_ms.partition_point(|time| time.is_finite());
        let (count, of) = (ended.max(1) as f64, &times_ms[..ended]);
        let mean_ms = of.iter().sum::<f64>() / count;
        let sd_ms = (of.iter().map(|time| (time - mean_ms).powi(2)).sum::<f64>() / count).sqrt();
        Self { never: times_ms.len() - ended, mean_ms, sd_ms, times_ms }
    }

    /// Of those that ended.
    pub fn ended_ms(&self) -> &[f64] {
        &self.times_ms[..self.times_ms.len() - self.never]
    }

    /// The time that this part of all did not exceed.
    pub fn quantile_ms(&self, part: f64) -> f64 {
        let rank = ((self.times_ms.len() as f64 * part).ceil() as usize).max(1) - 1;
        self.times_ms.get(rank).copied().unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haul_units::Bytes;

    use super::*;

    #[test]
    fn what_never_ended_is_in_the_ranks_and_not_in_the_mean() {
        let short = |ms: Option<u64>| Short { size: Bytes(1), took: ms.map(Duration::from_millis), resent_pkts: 0, timeouts: 0 };
        let summary = Summary::of(&[short(Some(30)), short(None), short(Some(10)), short(Some(20))]);
        assert_eq!((summary.ended_ms(), summary.never), (&[10.0, 20.0, 30.0][..], 1));
        assert!((summary.mean_ms - 20.0).abs() < 1e-9 && (summary.quantile_ms(0.5) - 20.0).abs() < 1e-9);
        assert!(summary.quantile_ms(1.0).is_infinite());
    }
}

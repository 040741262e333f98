//! How busy a machine is with other things, before anything is known of what it carries.

/// What a machine says of itself, before it has work of this job: later its own work is a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Processes that run or wait to, on average over the last minute.
    pub running: f64,
    /// Its processors; 0 where it does not tell.
    pub processors: u32,
}

impl Load {
    /// Which part of a processor one more gets, where all who want one get the same: 0..=1, and 1 where nothing is known.
    pub(crate) fn share(self) -> f64 {
        let wanted = self.running.max(0.0) + 1.0;
        if self.processors == 0 || !wanted.is_finite() { 1.0 } else { (f64::from(self.processors) / wanted).min(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_more_gets_what_all_get() {
        // In hundredths.
        let share = |running, processors| (Load { running, processors }.share() * 100.0).round() as u32;
        assert_eq!([share(0.0, 1), share(3.0, 4), share(1.0, 1), share(7.0, 2)], [100, 100, 50, 25]);
        assert_eq!([share(50.0, 0), share(-3.0, 1), share(f64::NAN, 2), share(f64::INFINITY, 2)], [100; 4]);
    }
}

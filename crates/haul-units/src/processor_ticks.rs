//! Time of all processors of a machine, as Linux counts it.

/// What all processors of a machine have done since it started, in the kernel's ticks (proc_stat(5)). It says something in pairs: what was done between two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessorTicks {
    idle: u64,
    stolen: u64,
    all: u64,
}

impl ProcessorTicks {
    /// From the text of `/proc/stat`, whose first line is `cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST GUEST_NICE`; the last two are within the first two, and
    /// old kernels end earlier.
    ///
    /// ```
    /// use haul_units::ProcessorTicks;
    ///
    /// let before = ProcessorTicks::parse("cpu  100 0 50 800 50 0 0 0 70 0\n").unwrap();
    /// let after = ProcessorTicks::parse("cpu  160 0 60 815 55 0 0 10 99 0\n").unwrap();
    /// assert_eq!(after.taken_since(before), Some(0.8));
    /// assert_eq!(after.stolen_since(before), Some(0.1));
    /// ```
    pub fn parse(stat: &str) -> Option<Self> {
        let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
        let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).take(8).collect();
        let or_none = |at: usize| ticks.get(at).copied().unwrap_or(0);
        let idle = ticks.get(3)?.saturating_add(or_none(4));
        Some(Self { idle, stolen: or_none(7), all: ticks.iter().fold(0, |sum, &time| sum.saturating_add(time)) })
    }

    /// The part of the time since `earlier` in which there was something to do: by whatever program, by the kernel, or by another machine on the same host. None where no tick has passed.
    pub fn taken_since(self, earlier: Self) -> Option<f64> {
        self.part_since(earlier, |ticks| ticks.idle).map(|idle| 1.0 - idle)
    }

    /// The part that the host of a virtual machine kept for others while there was work for it here.
    pub fn stolen_since(self, earlier: Self) -> Option<f64> {
        self.part_since(earlier, |ticks| ticks.stolen)
    }

    fn part_since(self, earlier: Self, of: fn(Self) -> u64) -> Option<f64> {
        let all = self.all.checked_sub(earlier.all).filter(|all| *all > 0)?;
        Some(of(self).saturating_sub(of(earlier)).min(all) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_what_is_not_idle() {
        let ticks = |stat: &str| ProcessorTicks::parse(stat).expect("ticks");
        let before = ticks("cpu  100 0 50 800 50 0 0 0 70 0\ncpu0 1 1 1 1\n");
        assert_eq!(before, ProcessorTicks { idle: 850, stolen: 0, all: 1000 });
        // Stolen time is taken too; a guest's is in the user's.
        let after = ticks("cpu  160 0 60 815 55 0 0 10 99 0\n");
        assert_eq!((after.taken_since(before), after.stolen_since(before)), (Some(0.8), Some(0.1)));
        assert_eq!((before.taken_since(before), before.taken_since(after)), (None, None), "no time has passed");
    }

    #[test]
    fn what_is_not_such_a_text_is_refused() {
        assert_eq!(["intr 5", "cpu  1 2", "cpu  1 2 x 4", ""].map(ProcessorTicks::parse), [None; 4]);
        assert_eq!(ProcessorTicks::parse("cpu  1 2 3 4"), Some(ProcessorTicks { idle: 4, stolen: 0, all: 10 }), "before 2.6");
    }
}

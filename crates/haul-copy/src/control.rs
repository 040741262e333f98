//! A copy that takes orders while it runs: how it does, how fast it may go and in which mode, wait, go on, end.
//!
//! What it may send follows the time of day ([`LimitByHours`]) until an order says otherwise.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haul::ControllerChoice;
use haul_control::{Controlled, Order, Status};
use haul_files::Wishes;
use haul_peer::{LimitByHours, minute_of_day};
use haul_units::BitRate;

use crate::clock;
use crate::tally::Tally;

/// What its user holds of a copy.
pub struct CopyControl {
    what: String,
    began: u64,
    tally: Arc<Tally>,
    wanted: Mutex<Wanted>,
    /// The time of day, in minutes since midnight.
    minute: Box<dyn Fn() -> u16 + Send + Sync>,
    stop: Box<dyn Fn() + Send + Sync>,
}

#[derive(Debug, Clone)]
struct Wanted {
    limit: LimitByHours,
    /// Whether somebody has given it while the copy runs.
    is_told: bool,
    paused: bool,
    mode: Option<ControllerChoice>,
}

/// What was wanted when it was last looked at.
#[derive(Debug, Clone, Copy)]
pub struct Seen(Wishes, Option<ControllerChoice>);

impl CopyControl {
    /// Of a copy that was called with `what` and begins with this limit; `mode` is none where the other side sends, and `stop` asks it to end.
    pub fn new(
        what: String,
        tally: Arc<Tally>,
        limit: LimitByHours,
        mode: Option<ControllerChoice>,
        stop: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let wanted = Mutex::new(Wanted { limit, is_told: false, paused: false, mode });
        let minute = Box::new(|| minute_of_day(clock::unix_seconds()));
        Self { what, began: clock::unix_seconds(), tally, wanted, minute, stop: Box::new(stop) }
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limit_of(&self, wanted: &Wanted) -> Option<BitRate> {
        // The time of day costs a call of the system's library, and this is asked before each block.
        let minute = if wanted.limit.changes() { (self.minute)() } else { 0 };
        wanted.limit.at(minute)
    }

    /// What is wanted at this moment, for the engine.
    pub fn wishes(&self) -> Wishes {
        let wanted = self.wanted();
        Wishes { limit: self.limit_of(&wanted), paused: wanted.paused }
    }

    /// The mode in which this side is to send; none, if it does not.
    pub fn mode(&self) -> Option<ControllerChoice> {
        self.wanted().mode
    }

    /// What is wanted now, to be looked at again with [`news`](Self::news).
    pub fn seen(&self) -> Seen {
        Seen(self.wishes(), self.mode())
    }

    /// What has changed since it was last looked at, in words: nobody should wonder why a copy is slow or stands still.
    pub fn news(&self, seen: &mut Seen) -> Vec<String> {
        let now = self.seen();
        let Seen(before, mode) = std::mem::replace(seen, now);
        let mut news = Vec::new();
        if before.paused != now.0.paused {
            news.push(if now.0.paused { "haul ctl: paused" } else { "haul ctl: goes on" }.to_owned());
        }
        if before.limit != now.0.limit {
            let whose = if self.wanted().is_told { "haul ctl" } else { "at this time of day" };
            let limit = now.0.limit.map_or_else(|| "no limit".to_owned(), |limit| format!("limit {limit}"));
            news.push(format!("{whose}: {limit}"));
        }
        if let Some(now) = now.1.filter(|now| mode != Some(*now)) {
            news.push(format!("haul ctl: mode {now}"));
        }
        news
    }
}

impl Controlled for CopyControl {
    fn handle(&self, order: Order) -> Status {
        let (mut wanted, mut refused) = (self.wanted(), None);
        match order {
            Order::Status => {}
            Order::Limit { bps } => {
                (wanted.limit, wanted.is_told) = (LimitByHours::always(bps.map(BitRate::from_bps)), true);
            }
            Order::Mode { name } => match (&mut wanted.mode, name.as_str().parse()) {
                (Some(mode), Ok(asked)) => *mode = asked,
                (None, _) => refused = Some("it fetches, and the mode is the other side's".into()),
                (_, Err(_)) => refused = Some("it knows no such mode".into()),
            },
            Order::Pause => wanted.paused = true,
            Order::Resume => wanted.paused = false,
            Order::Stop => {
                // One that waits could not end.
                wanted.paused = false;
                (self.stop)();
            }
        }
        let counts = self.tally.counts();
        Status {
            pid: std::process::id(),
            command: "cp".into(),
            what: self.what.as_str().into(),
            began: self.began,
            files: counts.arrived_files,
            bytes: counts.arrived.as_u64(),
            total: counts.found.as_u64(),
            limit_bps: self.limit_of(&wanted).map(BitRate::as_bps),
            mode: wanted.mode.map(|mode| mode.to_string().as_str().into()),
            paused: wanted.paused,
            refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU16, Ordering};

    use super::*;

    fn control(limit: &str, mode: Option<ControllerChoice>) -> (CopyControl, Arc<AtomicU16>) {
        let clock = Arc::new(AtomicU16::new(0));
        let minute = Arc::clone(&clock);
        let limit = limit.parse().expect("a limit");
        let control = CopyControl::new("cp a b".into(), Arc::new(Tally::new(false)), limit, mode, || {});
        (CopyControl { minute: Box::new(move || minute.load(Ordering::SeqCst)), ..control }, clock)
    }

    #[test]
    fn the_limit_follows_the_time_of_day_until_somebody_says_otherwise() {
        let (control, clock) = control("08:00-18:00=100M,otherwise=1G", None);
        let mut seen = control.seen();
        let mbps = |control: &CopyControl| control.wishes().limit.map(|limit| limit.as_bps() / 1_000_000);
        for (hour, limit, said) in [
            (7, 1000, &[][..]),
            (8, 100, &["at this time of day: limit 100 Mbit/s"]),
            (17, 100, &[]),
            (18, 1000, &["at this time of day: limit 1.00 Gbit/s"]),
        ] {
            clock.store(hour * 60, Ordering::SeqCst);
            assert_eq!(
                (mbps(&control), control.news(&mut seen)),
                (Some(limit), said.iter().map(|&said| said.into()).collect()),
                "{hour}"
            );
            assert_eq!(control.handle(Order::Status).limit_bps, Some(limit * 1_000_000));
        }
        control.handle(Order::Limit { bps: None });
        assert_eq!(control.news(&mut seen), ["haul ctl: no limit"]);
        clock.store(9 * 60, Ordering::SeqCst);
        assert_eq!((mbps(&control), control.news(&mut seen).len()), (None, 0), "an order holds until the next one");
    }

    #[test]
    fn who_sends_has_a_mode_and_who_does_not_has_none() {
        let (sends, _) = control("1G", Some(ControllerChoice::default()));
        let mut seen = sends.seen();
        for name in ["modest", "no such mode"] {
            let status = sends.handle(Order::Mode { name: name.into() });
            assert_eq!(status.mode.map(|mode| mode.as_str().to_owned()).as_deref(), Some("modest"));
            assert_eq!(status.refused.is_some(), name != "modest", "{:?}", status.refused);
        }
        assert_eq!((sends.mode(), sends.news(&mut seen)), ("modest".parse().ok(), vec!["haul ctl: mode modest".to_owned()]));
        let (fetches, _) = control("1G", None);
        assert_eq!((fetches.handle(Order::Mode { name: "modest".into() }).mode, fetches.mode()), (None, None));
    }
}

//! Trains that a path's own socket has no room for, so that a full interface holds up its own path and no other one; and those that a carrier has no room for.
//!
//! A client with a socket for each path never waits in the system for room. The train waits here, the connection gives the path no more data meanwhile, and the send thread tries again
//! each millisecond: what a socket's buffer holds lasts longer than that. After a second the train counts as lost, as where one socket is waited for.
//! What a carrier has no room for waits as long as a carrier may stand still: lost, it would be missed only then, for nothing else is lost there.

use std::net::IpAddr;
use std::time::Duration;

use haul_proto::{PATHS_MAX, Transmit};
use haul_units::Time;

use super::carriers::{STANDSTILL, is_carried};

/// The trains of one connection, by path.
#[derive(Default)]
pub(super) struct Held {
    trains: [Option<Train>; PATHS_MAX as usize],
}

/// A train that waits.
pub(super) struct Train {
    pub(super) transmit: Transmit,
    pub(super) from: Option<IpAddr>,
    pub(super) bytes: Vec<u8>,
    since: Time,
    next: Time,
}

impl Held {
    /// There was no room for this train at `now`. When to try again; `None` where another train of the path waits already: then this one is lost.
    pub(super) fn hold(&mut self, now: Time, transmit: Transmit, from: Option<IpAddr>, train: &[u8]) -> Option<Time> {
        let place = self.trains.get_mut(usize::from(transmit.path)).filter(|place| place.is_none())?;
        let bytes = train.get(..transmit.len)?.to_vec();
        let next = now + PAUSE;
        *place = Some(Train { transmit, from, bytes, since: now, next });
        Some(next)
    }

    /// A train that is to be tried again.
    pub(super) fn take_due(&mut self, now: Time) -> Option<Train> {
        self.trains.iter_mut().find(|place| place.as_ref().is_some_and(|train| train.next <= now))?.take()
    }

    /// There was no room for it again. When it is next tried; `None`: it has waited long enough.
    pub(super) fn hold_again(&mut self, now: Time, train: Train) -> Option<Time> {
        let patience = if is_carried(train.transmit.remote) { STANDSTILL } else { PATIENCE };
        if now.since(train.since) > patience {
            return None;
        }
        let next = now + PAUSE;
        *self.trains.get_mut(usize::from(train.transmit.path))? = Some(Train { next, ..train });
        Some(next)
    }

    /// When the next one is to be tried again.
    pub(super) fn next(&self) -> Time {
        self.trains.iter().flatten().map(|train| train.next).min().unwrap_or(Time::NEVER)
    }
}

const PAUSE: Duration = Duration::from_millis(1);
/// As haul-udp waits for room.
const PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use haul_proto::Ecn;

    use super::*;

    #[test]
    fn a_train_waits_a_second_and_holds_up_no_other_path() {
        let transmit = |path| Transmit { path, remote: ([10, 0, 0, 1], 7).into(), len: 3, segment: 3, ecn: Ecn::NotEct };
        let (mut held, mut now) = (Held::default(), Time::ZERO);
        assert_eq!(held.next(), Time::NEVER);
        let next = held.hold(now, transmit(1), None, b"abcd").unwrap();
        assert!(held.hold(now, transmit(1), None, b"efgh").is_none() && held.take_due(now).is_none());
        assert!(held.hold(now, transmit(2), None, b"efgh").is_some() && held.next() == next);
        let mut tries = 0;
        while held.next() != Time::NEVER {
            now = held.next();
            while let Some(train) = held.take_due(now) {
                if train.transmit.path == 1 {
                    assert_eq!(train.bytes, b"abc");
                    tries += 1;
                    held.hold_again(now, train);
                }
            }
        }
        assert!((900..1100).contains(&tries) && now.since(Time::ZERO) > PATIENCE, "{tries}");
    }
}

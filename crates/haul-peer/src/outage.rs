//! When nothing comes from the other side any more: told once when it begins, once when it ends, with the time left.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use haul::{CloseReason, Connection, ConnectionError};

use crate::tell::{Outage, Tell};

/// A peer that has nothing to say is heard of every 5 s (`TransportConfig::keep_alive`), and this much more it may take on the way at the least.
const STALLED: Duration = Duration::from_secs(5);
const ON_THE_WAY: Duration = Duration::from_secs(1);
/// How often a connection is looked at whose user has nothing that looks.
const LOOK: Duration = Duration::from_millis(500);

/// Whether nothing has come for longer than a peer that is there lets pass.
pub fn is_stalled(silence: Duration, rtt: Duration) -> bool {
    silence >= STALLED + ON_THE_WAY.max(rtt * 2)
}

/// Whether the peer has gone without a word, as a daemon does that is restarted.
pub fn is_gone(connection: &Connection) -> bool {
    matches!(connection.end(), Some(ConnectionError::Ended(CloseReason::Reset | CloseReason::TimedOut(_))))
}

/// Follows the silence of one connection.
#[derive(Debug, Default)]
pub struct Silence {
    lasted: Option<Duration>,
}

impl Silence {
    /// Looks at it; returns what is to be told.
    pub fn look(&mut self, silence: Duration, timeout: Duration, rtt: Duration) -> Option<Outage> {
        match (self.lasted, is_stalled(silence, rtt)) {
            (None, true) => {
                self.lasted = Some(silence);
                Some(Outage::Begun { silence, left: timeout.saturating_sub(silence) })
            }
            (Some(_), true) => {
                self.lasted = Some(silence);
                None
            }
            (Some(lasted), false) => {
                self.lasted = None;
                Some(Outage::Ended { lasted })
            }
            (None, false) => None,
        }
    }
}

/// A thread that tells of outages, until this is dropped or the connection ends.
pub struct OutageWatch {
    _stop: mpsc::Sender<()>,
}

impl OutageWatch {
    /// Begins.
    pub fn start(connection: Connection, tell: Arc<dyn Tell>) -> Self {
        let (stop, stopped) = mpsc::channel();
        thread::spawn(move || {
            let mut silence = Silence::default();
            while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) && connection.end().is_none() {
                let stats = connection.stats();
                if let Some(outage) = silence.look(stats.silence, stats.idle_timeout, stats.rtt) {
                    tell.outage(outage);
                }
            }
        });
        Self { _stop: stop }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_twice() {
        let (mut watch, rtt, timeout) = (Silence::default(), Duration::from_millis(50), Duration::from_secs(90));
        let mut told = Vec::new();
        // Silence as it is seen second by second: a keep-alive's pause, an outage of 40 s, its end.
        for silence in [0, 3, 5, 0, 5, 6, 7, 20, 40, 0, 1] {
            told.extend(watch.look(Duration::from_secs(silence), timeout, rtt));
        }
        let seconds = Duration::from_secs;
        assert_eq!(told, [Outage::Begun { silence: seconds(6), left: seconds(84) }, Outage::Ended { lasted: seconds(40) }]);
        // Far away everything takes longer.
        assert!(!is_stalled(seconds(10), seconds(3)) && is_stalled(seconds(11), seconds(3)));
    }
}

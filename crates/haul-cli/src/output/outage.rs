//! When nothing comes from the other side any more: said once when it begins, once when it ends, with the time left.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use haul::Connection;

use super::lines::short_duration;
use super::terminal;

/// A peer that has nothing to say is heard of every 5 s (`TransportConfig::keep_alive`), and this much more it may take on the way at the least.
const STALLED: Duration = Duration::from_secs(5);
const ON_THE_WAY: Duration = Duration::from_secs(1);
/// How often a connection is looked at whose command has nothing that looks.
const LOOK: Duration = Duration::from_millis(500);

/// What is to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// Nothing has come for `silence`; in `left` the connection is given up.
    Begun {
        /// So far.
        silence: Duration,
        /// From now on.
        left: Duration,
    },
    /// The other side is heard again.
    Ended {
        /// How long nothing came.
        lasted: Duration,
    },
}

impl Said {
    /// In a sentence.
    pub fn words(self) -> String {
        match self {
            Self::Begun { silence, left } => format!(
                "nothing has come from the other side for {}: the network may be down; waiting for {} more",
                short_duration(silence),
                short_duration(left)
            ),
            Self::Ended { lasted } => format!("the other side is heard again, after {}", short_duration(lasted)),
        }
    }
}

/// Whether nothing has come for longer than a peer that is there lets pass.
pub fn is_stalled(silence: Duration, rtt: Duration) -> bool {
    silence >= STALLED + ON_THE_WAY.max(rtt * 2)
}

/// Follows the silence of one connection.
#[derive(Debug, Default)]
pub struct Outage {
    lasted: Option<Duration>,
}

impl Outage {
    /// Looks at it; returns what is to be said.
    pub fn look(&mut self, silence: Duration, timeout: Duration, rtt: Duration) -> Option<Said> {
        match (self.lasted, is_stalled(silence, rtt)) {
            (None, true) => {
                self.lasted = Some(silence);
                Some(Said::Begun { silence, left: timeout.saturating_sub(silence) })
            }
            (Some(_), true) => {
                self.lasted = Some(silence);
                None
            }
            (Some(lasted), false) => {
                self.lasted = None;
                Some(Said::Ended { lasted })
            }
            (None, false) => None,
        }
    }
}

/// A thread that says it on standard error, until this is dropped or the connection ends.
pub struct OutageWatch {
    _stop: mpsc::Sender<()>,
}

impl OutageWatch {
    /// Begins.
    pub fn start(connection: Connection) -> Self {
        let (stop, stopped) = mpsc::channel();
        thread::spawn(move || {
            let mut outage = Outage::default();
            while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) && connection.end().is_none() {
                let stats = connection.stats();
                if let Some(said) = outage.look(stats.silence, stats.idle_timeout, stats.rtt) {
                    terminal::err(&said.words());
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
        let (mut outage, rtt, timeout) = (Outage::default(), Duration::from_millis(50), Duration::from_secs(90));
        let mut said = Vec::new();
        // Silence as it is seen second by second: a keep-alive's pause, an outage of 40 s, its end.
        for silence in [0, 3, 5, 0, 5, 6, 7, 20, 40, 0, 1] {
            said.extend(outage.look(Duration::from_secs(silence), timeout, rtt));
        }
        let seconds = Duration::from_secs;
        assert_eq!(said, [Said::Begun { silence: seconds(6), left: seconds(84) }, Said::Ended { lasted: seconds(40) }]);
        assert!(said[0].words().contains("for 6 s") && said[0].words().contains("1:24 more"), "{}", said[0].words());
        // Far away everything takes longer.
        assert!(!is_stalled(seconds(10), seconds(3)) && is_stalled(seconds(11), seconds(3)));
    }
}

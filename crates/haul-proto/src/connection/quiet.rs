//! A client to which data came, and comes no more, asks once whether the server still knows where it is.
//!
//! A client that only receives has nothing to send but reports of what comes. If its address changes (another network, a NAT that has forgotten it) then nothing comes,
//! nothing is reported, and the server goes on sending to where the client was. One ping from the new address is enough for the server to follow; recovery sends
//! it again until it is answered. It costs one packet at each end of a flow of data.

use std::time::Duration;

use haul_units::Time;

use super::{Connection, Phase};
use crate::path::Path;
use crate::streams::Side;

/// Whether the other end has fallen silent in the midst of its data.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    /// When data last came, if nobody has asked since.
    data_at: Option<Time>,
}

impl Quiet {
    /// Data came.
    pub(super) const fn on_data(&mut self, now: Time) {
        self.data_at = Some(now);
    }
}

impl Connection {
    /// When to ask.
    pub(super) fn quiet_due(&self) -> Time {
        let waiting = self.quiet.data_at.filter(|_| self.side == Side::Client && self.phase == Phase::Established);
        waiting.map_or(Time::NEVER, |_| self.heard_at + self.patience())
    }

    /// Asks, if it is time to, on every path that is proved.
    pub(super) fn ask_if_quiet(&mut self, now: Time) {
        if now < self.quiet_due() {
            return;
        }
        self.quiet.data_at = None;
        for path in self.paths.iter_mut().filter(|path| path.peer.is_proved()) {
            path.ping_due = true;
        }
    }

    /// A gap of that length in a flow of data is not the sender's recovery, which has sent again by then.
    fn patience(&self) -> Duration {
        let probe = self.paths.iter().filter(|path| path.peer.is_proved()).map(Path::probe_timeout).max();
        (probe.unwrap_or_default() * 2).clamp(SHORTEST, LONGEST)
    }
}

/// So that pauses of an application on a short path are not all answered by a ping.
const SHORTEST: Duration = Duration::from_millis(250);
/// With a round trip for the challenge and one for the data this is well below the two seconds in which a copy is to go on.
const LONGEST: Duration = Duration::from_secs(1);

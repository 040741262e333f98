//! The end of a connection: closed here, closed by the peer, lost, or broken.

use std::time::Duration;

use haul_units::{PeerText, Time};

use super::{CloseReason, Connection, Event, Phase, ProtocolViolation};
use crate::streams::Receiver;
use crate::wire::Frame;

/// Codes of a close that the transport itself sends lie from here on; an application's lie below.
const TRANSPORT_CODES: u64 = 1 << 32;

/// The code with which a server closes connections of clients that it has not admitted.
pub(super) const CODE_NOT_ADMITTED: u64 = TRANSPORT_CODES - 1;

/// A close that is being told.
#[derive(Debug)]
pub(super) struct Closing {
    pub(super) frame: Frame,
    /// Numbers of the paths on which to tell it (again): on all of them, for the main one may just have broken.
    pub(super) due: std::ops::Range<usize>,
    /// What has come since: whoever sends it need not know of the close.
    heard: u32,
}

impl Connection {
    /// Closes the connection: the peer is told `code` and `reason`, what is in flight is not waited for.
    pub fn close(&mut self, now: Time, code: u64, reason: &[u8]) {
        let code = code.min(TRANSPORT_CODES - 1);
        self.start_closing(now, code, reason, CloseReason::Local);
    }

    /// The peer broke the protocol.
    pub(super) fn fail(&mut self, now: Time, violation: ProtocolViolation) {
        let reason = violation.to_string();
        self.start_closing(now, TRANSPORT_CODES, reason.as_bytes(), CloseReason::Violation(violation));
    }

    pub(super) fn start_closing(&mut self, now: Time, code: u64, reason: &[u8], why: CloseReason) {
        if self.is_closed() {
            return;
        }
        if self.phase == Phase::Handshaking {
            self.phase = Phase::Drained;
            self.events.push_back(Event::Closed(why));
            self.events.push_back(Event::Drained);
            return;
        }
        let reason = reason[..reason.len().min(Frame::MAX_REASON_BYTES)].to_vec();
        self.close = Some(Closing { frame: Frame::Close { code, reason }, due: 0..self.paths.len(), heard: 0 });
        self.phase = Phase::Closing(now + self.drain_time());
        self.over(why);
    }

    pub(super) fn on_peer_close(&mut self, now: Time, code: u64, reason: &[u8]) {
        if self.is_closed() {
            return;
        }
        let reason = PeerText::from_bytes(reason);
        let why = if code >= TRANSPORT_CODES { CloseReason::Accused(reason) } else { CloseReason::Peer { code, reason } };
        self.phase = Phase::Draining(now + self.drain_time());
        self.over(why);
    }

    pub(super) fn on_peer_lost(&mut self, now: Time) {
        self.phase = Phase::Draining(now);
        self.over(CloseReason::Reset);
    }

    pub(super) fn on_idle_timeout(&mut self, now: Time) {
        self.phase = Phase::Draining(now);
        self.over(CloseReason::TimedOut(self.idle_timeout));
    }

    /// Nothing more is delivered: sinks hear of it, buffers go.
    fn over(&mut self, why: CloseReason) {
        for (_, stream) in self.streams.iter_mut() {
            if let Some(Receiver::Placed(half)) = &mut stream.receive {
                half.give_up(0);
            }
        }
        self.events.push_back(Event::Closed(why));
    }

    /// While closing, packets of the peer's get the close again, ever fewer of them. // RFC 9000 10.2.1
    pub(super) fn tell_close_again(&mut self) {
        if let Some(close) = self.close.as_mut() {
            close.heard = close.heard.saturating_add(1);
            if close.heard.is_power_of_two() {
                close.due = 0..self.paths.len();
            }
        }
    }

    /// How long late packets are expected. // RFC 9000 10.2: three times the probe timeout
    pub(super) fn drain_time(&self) -> Duration {
        let longest = self.paths.iter().filter(|path| path.peer.is_open()).map(|path| path.probe_timeout() * 3).max();
        longest.unwrap_or(Duration::from_secs(1)).min(Duration::from_secs(3))
    }
}

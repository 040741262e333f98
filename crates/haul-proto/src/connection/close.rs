//! The end of a connection: closed here, closed by the peer, lost, or broken.

use std::time::Duration;

use haul_units::{PeerText, Time};

use super::{Connection, Event, Phase};
use crate::handshake::HandshakeError;
use crate::streams::{Receiver, StreamViolation};
use crate::wire::{DecodeError, Frame};

/// Codes of a close that the transport itself sends lie from here on; an application's lie below.
const TRANSPORT_CODES: u64 = 1 << 32;

/// The code with which a server closes connections of clients that it has not admitted.
pub(super) const CODE_NOT_ADMITTED: u64 = TRANSPORT_CODES - 1;

/// Why a connection is over.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CloseReason {
    /// This side closed it.
    #[error("closed by this side")]
    Local,
    /// The peer's application closed it.
    #[error("closed by the peer (code {code}){}{reason}", if reason.is_empty() { "" } else { ": " })]
    Peer {
        /// The application's code.
        code: u64,
        /// For people.
        reason: PeerText,
    },
    /// The handshake failed.
    #[error(transparent)]
    Handshake(HandshakeError),
    /// Nothing came from the peer for so long.
    #[error("nothing heard from the peer for {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The peer has lost the connection: it has restarted.
    #[error("the peer no longer knows this connection: it has restarted")]
    Reset,
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Violation(ProtocolViolation),
    /// The client was not admitted in time, or had to give its place up to another one.
    #[error("the client was not admitted in time")]
    NotAdmitted,
    /// The peer's transport says that we broke the protocol.
    #[error("the peer reports a broken protocol: {0}")]
    Accused(PeerText),
}

/// How a peer broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolViolation {
    /// A control packet that cannot be read.
    #[error(transparent)]
    Frame(#[from] DecodeError),
    /// Misuse of a stream.
    #[error(transparent)]
    Stream(#[from] StreamViolation),
    /// More data than the connection's credit.
    #[error("sent beyond the connection's credit")]
    BeyondCredit,
    /// An acknowledgement of a packet that was never sent.
    #[error("acknowledged a packet that was never sent")]
    AckOfUnsent,
    /// An acknowledgement of a packet number that was left out to see whether that is noticed.
    #[error("acknowledged packets that it cannot have received")]
    AckOfSkipped,
    /// So many packets failed to authenticate that going on is not safe.
    #[error("too many forged packets")]
    TooManyForgeries,
}

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

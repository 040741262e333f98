//! A server's connection before the application has admitted its client.
//!
//! A client that has not been admitted in time is gone. Where the handshake says nothing about it ([`crate::AdmittedBy::Application`]) it is *confined* meanwhile: it has
//! credit for [`STRANGER_MEMORY`], one bidirectional stream, and the path of its handshake, on which nothing is measured.

use haul_units::{Bytes, Time};

use super::close::CODE_NOT_ADMITTED;
use super::{CloseReason, Connection, Phase};
use crate::config::TransportConfig;
use crate::streams::{Receiver, StreamKind};

/// What a confined client may send: a request of any application fits.
pub(crate) const STRANGER_MEMORY: Bytes = Bytes::kib(32);

/// A client that is not admitted.
#[derive(Debug)]
pub(super) struct Stranger {
    /// It is gone then.
    until: Time,
    /// What it gets with its admission, where it is confined.
    confined: Option<Entitled>,
}

impl Stranger {
    pub(super) const fn is_confined(&self) -> bool {
        self.confined.is_some()
    }
}

/// What a configuration grants.
#[derive(Debug, Clone, Copy)]
struct Entitled {
    memory: Bytes,
    stream_window: Bytes,
    filler: bool,
}

/// The configuration for a connection whose client is a stranger.
pub(crate) fn confined(config: &TransportConfig) -> TransportConfig {
    TransportConfig {
        memory: STRANGER_MEMORY.min(config.memory),
        stream_window: STRANGER_MEMORY.min(config.stream_window),
        filler: false,
        ..config.clone()
    }
}

impl Connection {
    /// A server's connection begins with a client that is confined until it has been admitted, and gone if it is not by then; `granted` is what it will have.
    pub(crate) fn confine(&mut self, until: Time, granted: &TransportConfig) {
        let TransportConfig { memory, stream_window, filler, .. } = *granted;
        self.stranger = Some(Stranger { until, confined: Some(Entitled { memory, stream_window, filler }) });
        self.streams.confine();
    }

    /// The client may do what the configuration says, but must be admitted until then. A driver says so of connections that wait to be accepted.
    pub fn expect_admission(&mut self, until: Time) {
        self.stranger.get_or_insert(Stranger { until, confined: None });
    }

    /// Whether the application has admitted the client, or need not.
    pub const fn is_admitted(&self) -> bool {
        self.stranger.is_none()
    }

    /// Whether the client may use next to nothing until it is admitted.
    pub(crate) fn is_confined(&self) -> bool {
        self.stranger.as_ref().is_some_and(Stranger::is_confined)
    }

    /// Whether the application should hear of the client: a confined one has to open its stream first.
    pub fn is_presentable(&self) -> bool {
        !self.is_confined() || self.streams.has_waiting(StreamKind::Bidirectional)
    }

    /// The application admits the client: from now on it may use what the configuration says, or this memory.
    pub fn admit(&mut self, memory: Option<Bytes>) {
        let Some(stranger) = self.stranger.take() else { return };
        if self.is_closed() {
            return;
        }
        if let Some(entitled) = stranger.confined {
            self.config.stream_window = entitled.stream_window;
            self.config.filler = entitled.filler;
            self.set_memory(memory.unwrap_or(entitled.memory));
            self.credit.widen();
            self.control.extend(self.streams.release(self.config.limits()));
            self.widen_first_streams();
            self.renew_credit();
        } else if let Some(memory) = memory {
            self.set_memory(memory);
        }
    }

    /// The streams that are there already get the windows of those to come.
    fn widen_first_streams(&mut self) {
        let window = self.config.limits().stream_window;
        for (id, stream) in self.streams.iter_mut() {
            if let Some(Receiver::Ordered(half)) = &mut stream.receive {
                half.widen(window);
                let bound = self.credit.stream_bound(half.held());
                if let Some(max) = half.renew_credit(bound) {
                    self.control.push_back(crate::wire::Frame::MaxStreamData { stream: id, max });
                }
            }
        }
    }

    /// Another stranger needs the place.
    pub fn evict(&mut self, now: Time) {
        self.dismiss(now, b"the server has too many clients that it does not know yet: try again later");
    }

    /// When a client that has not been admitted is gone.
    pub(super) fn admission_timer(&self) -> Time {
        self.stranger.as_ref().map_or(Time::NEVER, |stranger| stranger.until)
    }

    /// Says so once and forgets it: a stranger that stays away costs nothing.
    pub(super) fn dismiss(&mut self, now: Time, reason: &[u8]) {
        if self.stranger.take().is_none() || self.is_closed() {
            return;
        }
        self.start_closing(now, CODE_NOT_ADMITTED, reason, CloseReason::NotAdmitted);
        if matches!(self.phase, Phase::Closing(_)) {
            self.phase = Phase::Closing(now);
        }
    }
}

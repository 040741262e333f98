//! Streams of ordered bytes.
//!
//! Each direction is behind a lock of its own that is held while something is polled, never while a thread waits: one may send while another receives, and a third
//! may close.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use haul::{RecvStream, SendStream};

use crate::failure::{Code, Failure, Outcome, wrong_state};
use crate::waiting::{Gate, Patience};

/// Both directions, one or none of which may be there.
pub struct Stream {
    sending: Mutex<Sending>,
    receiving: Mutex<Receiving>,
}

enum Sending {
    /// It comes from the peer.
    Absent,
    Open(SendStream),
    /// By haul_shutdown(): what was sent is still on its way.
    Ended(SendStream),
    /// Reset, or closed.
    Over,
}

enum Receiving {
    /// It goes to the peer.
    Absent,
    Open {
        stream: RecvStream,
        /// A byte that readiness has taken.
        held: Option<u8>,
    },
    /// Everything was read, or cannot be.
    Over(Outcome<()>),
}

impl Stream {
    pub fn both(send: SendStream, receive: RecvStream) -> Self {
        Self::new(Sending::Open(send), Receiving::Open { stream: receive, held: None })
    }

    pub fn sending(send: SendStream) -> Self {
        Self::new(Sending::Open(send), Receiving::Absent)
    }

    pub fn receiving(receive: RecvStream) -> Self {
        Self::new(Sending::Absent, Receiving::Open { stream: receive, held: None })
    }

    fn new(sending: Sending, receiving: Receiving) -> Self {
        Self { sending: Mutex::new(sending), receiving: Mutex::new(receiving) }
    }

    fn sender(&self) -> MutexGuard<'_, Sending> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receiver(&self) -> MutexGuard<'_, Receiving> {
        self.receiving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends all of `data`; fewer if patience ends before.
    pub fn send(&self, gate: &Gate, patience: Patience, data: &[u8]) -> Outcome<usize> {
        let mut sent = 0;
        while let Some(left) = data.get(sent..).filter(|left| !left.is_empty()) {
            match gate.wait(patience, |cx| self.poll_send(cx, left)) {
                Ok(written) => sent += written,
                Err(failure) if sent > 0 && matches!(failure.code, Code::Again | Code::TimedOut) => break,
                Err(failure) => return Err(failure),
            }
        }
        Ok(sent)
    }

    fn poll_send(&self, cx: &mut Context<'_>, data: &[u8]) -> Poll<Outcome<usize>> {
        match &mut *self.sender() {
            Sending::Open(stream) => stream.poll_write(cx, data).map_err(Into::into),
            other => Poll::Ready(Err(other.refuses())),
        }
    }

    /// Ready when sending would not wait.
    pub fn poll_sendable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut *self.sender() {
            Sending::Open(stream) => stream.poll_writable(cx).map(drop),
            Sending::Absent => Poll::Pending,
            Sending::Ended(_) | Sending::Over => Poll::Ready(()),
        }
    }

    pub fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<Outcome<usize>> {
        self.receiver().poll(cx, buffer)
    }

    /// Ready when receiving would not wait. It may take a byte to know.
    pub fn poll_receivable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut receiving = self.receiver();
        match &*receiving {
            Receiving::Absent => return Poll::Pending,
            Receiving::Open { held: Some(_), .. } | Receiving::Over(_) => return Poll::Ready(()),
            Receiving::Open { .. } => {}
        }
        let mut byte = [0];
        let result = receiving.poll(cx, &mut byte);
        if let (Poll::Ready(Ok(1)), Receiving::Open { held, .. }) = (&result, &mut *receiving) {
            *held = byte.first().copied();
        }
        result.map(drop)
    }

    pub fn finish(&self) -> Outcome<()> {
        let mut sending = self.sender();
        match std::mem::replace(&mut *sending, Sending::Over) {
            Sending::Open(mut stream) => {
                let result = stream.finish();
                *sending = Sending::Ended(stream);
                Ok(result?)
            }
            // Twice is as good as once.
            ended @ Sending::Ended(_) => {
                *sending = ended;
                Ok(())
            }
            other => {
                let refusal = other.refuses();
                *sending = other;
                Err(refusal)
            }
        }
    }

    pub fn poll_flushed(&self, cx: &mut Context<'_>) -> Poll<Outcome<()>> {
        match &mut *self.sender() {
            Sending::Ended(stream) => stream.poll_acknowledged(cx).map_err(Into::into),
            Sending::Open(_) => Poll::Ready(Err(wrong_state("end the stream by haul_shutdown(.., HAUL_SHUT_WR) first"))),
            other => Poll::Ready(Err(other.refuses())),
        }
    }

    pub fn reset(&self, code: u64) -> Outcome<()> {
        let mut sending = self.sender();
        match &mut *sending {
            Sending::Open(stream) | Sending::Ended(stream) => stream.reset(code),
            other => return Err(other.refuses()),
        }
        *sending = Sending::Over;
        Ok(())
    }

    pub fn stop(&self, code: u64) -> Outcome<()> {
        let mut receiving = self.receiver();
        match &mut *receiving {
            Receiving::Open { stream, .. } => stream.stop(code),
            Receiving::Over(_) => return Ok(()),
            Receiving::Absent => return Err(wrong_state("this side only sends on this stream")),
        }
        *receiving = Receiving::Over(Ok(()));
        Ok(())
    }

    pub fn set_priority(&self, priority: u8) -> Outcome<()> {
        match &mut *self.sender() {
            Sending::Open(stream) | Sending::Ended(stream) => {
                stream.set_priority(priority);
                Ok(())
            }
            other => Err(other.refuses()),
        }
    }

    /// What dropping does in Rust: what was not ended is reset, what was not read is stopped.
    pub fn close(&self) {
        *self.sender() = Sending::Over;
        *self.receiver() = Receiving::Over(Ok(()));
    }
}

impl Receiving {
    fn poll(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<Outcome<usize>> {
        let (stream, held) = match self {
            Self::Open { stream, held } => (stream, held),
            Self::Over(end) => return Poll::Ready(end.clone().map(|()| 0)),
            Self::Absent => return Poll::Ready(Err(wrong_state("this side only sends on this stream"))),
        };
        let mut taken = 0;
        if let (Some(byte), Some(first)) = (held.take(), buffer.first_mut()) {
            *first = byte;
            taken = 1;
        }
        let room = buffer.get_mut(taken..).unwrap_or_default();
        if room.is_empty() {
            return Poll::Ready(Ok(taken));
        }
        match stream.poll_read(cx, room) {
            Poll::Ready(Ok(read @ 1..)) => Poll::Ready(Ok(taken + read)),
            Poll::Pending if taken == 0 => Poll::Pending,
            Poll::Pending => Poll::Ready(Ok(taken)),
            // An end that comes with a byte before it is told at the next call.
            Poll::Ready(result) => {
                let end = result.map(drop).map_err(Into::into);
                *self = Self::Over(end.clone());
                Poll::Ready(if taken > 0 { Ok(taken) } else { end.map(|()| 0) })
            }
        }
    }
}

impl Sending {
    fn refuses(&self) -> Failure {
        wrong_state(match self {
            Self::Absent => "this side only receives on this stream",
            Self::Open(_) | Self::Ended(_) => "the stream was ended by haul_shutdown()",
            Self::Over => "the stream was reset",
        })
    }
}

//! Connections: being made, made, and the streams that the peer opens on them.

use std::ffi::c_int;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use haul::{ConnectError, Connection};

use super::blocks::{Receiver, Sender};
use super::stream::Stream;
use crate::failure::{Failure, Outcome, invalid, wrong_state};

/// A connection, or an attempt.
pub struct Conn {
    made: OnceLock<Connection>,
    making: Mutex<Making>,
    /// What readiness has taken and nobody accepted yet, by the kind of stream.
    held: [Mutex<Option<Incoming>>; 3],
}

/// A stream of any kind, opened by either side.
pub enum Incoming {
    Stream(Stream),
    Sender(Sender),
    Receiver(Receiver),
}

enum Making {
    Under(Pin<Box<dyn Future<Output = Result<Connection, ConnectError>> + Send>>),
    Failed(Failure),
    Made,
}

/// Kinds of streams: HAUL_BIDI, HAUL_UNI, HAUL_BLOCKS.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Bidi,
    Uni,
    Blocks,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Bidi, Self::Uni, Self::Blocks];

    pub fn of(number: c_int) -> Outcome<Self> {
        let kind = usize::try_from(number).ok().and_then(|at| Self::ALL.get(at));
        kind.copied().ok_or_else(|| invalid(format!("{number} is no kind of stream: HAUL_BIDI, HAUL_UNI or HAUL_BLOCKS")))
    }
}

impl Conn {
    pub fn making(attempt: impl Future<Output = Result<Connection, ConnectError>> + Send + 'static) -> Self {
        Self { made: OnceLock::new(), making: Mutex::new(Making::Under(Box::pin(attempt))), held: Default::default() }
    }

    pub fn made_already(connection: Connection) -> Self {
        Self { made: connection.into(), making: Mutex::new(Making::Made), held: Default::default() }
    }

    /// The connection, if it is made.
    pub fn made(&self) -> Outcome<&Connection> {
        match self.made.get() {
            Some(connection) => Ok(connection),
            // What has been decided meanwhile counts, and who waits for it is told all the same.
            None => match self.poll_made(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => result,
                Poll::Pending => {
                    Err(wrong_state("the connection is still being made: wait for HAUL_OUT and call haul_connect_finish()"))
                }
            },
        }
    }

    /// Ready when the attempt is decided.
    pub fn poll_made(&self, cx: &mut Context<'_>) -> Poll<Outcome<&Connection>> {
        if let Some(connection) = self.made.get() {
            return Poll::Ready(Ok(connection));
        }
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let result = match &mut *making {
            Making::Under(attempt) => match attempt.as_mut().poll(cx) {
                Poll::Ready(result) => result.map_err(Failure::from),
                Poll::Pending => return Poll::Pending,
            },
            Making::Failed(failure) => return Poll::Ready(Err(failure.clone())),
            Making::Made => return Poll::Ready(self.made.get().ok_or_else(|| wrong_state("the attempt was given up"))),
        };
        Poll::Ready(match result {
            Ok(connection) => {
                *making = Making::Made;
                Ok(self.made.get_or_init(|| connection))
            }
            Err(failure) => {
                *making = Making::Failed(failure.clone());
                Err(failure)
            }
        })
    }

    pub fn poll_open(&self, kind: Kind, cx: &mut Context<'_>) -> Poll<Outcome<Incoming>> {
        let connection = self.made()?;
        match kind {
            Kind::Bidi => {
                pin!(connection.open_bi_async()).poll(cx).map_ok(|(send, recv)| Incoming::Stream(Stream::both(send, recv)))
            }
            Kind::Uni => pin!(connection.open_uni_async()).poll(cx).map_ok(|send| Incoming::Stream(Stream::sending(send))),
            Kind::Blocks => pin!(connection.open_blocks_async()).poll(cx).map_ok(|sender| Incoming::Sender(Sender::new(sender))),
        }
        .map_err(Into::into)
    }

    pub fn poll_accept(&self, kind: Kind, cx: &mut Context<'_>) -> Poll<Outcome<Incoming>> {
        match self.held(kind).take() {
            Some(stream) => Poll::Ready(Ok(stream)),
            None => self.poll_new(kind, cx),
        }
    }

    fn poll_new(&self, kind: Kind, cx: &mut Context<'_>) -> Poll<Outcome<Incoming>> {
        let connection = self.made()?;
        match kind {
            Kind::Bidi => {
                pin!(connection.accept_bi_async()).poll(cx).map_ok(|(send, recv)| Incoming::Stream(Stream::both(send, recv)))
            }
            Kind::Uni => pin!(connection.accept_uni_async()).poll(cx).map_ok(|recv| Incoming::Stream(Stream::receiving(recv))),
            Kind::Blocks => {
                pin!(connection.accept_blocks_async()).poll(cx).map_ok(|receiver| Incoming::Receiver(Receiver::new(receiver)))
            }
        }
        .map_err(Into::into)
    }

    fn held(&self, kind: Kind) -> MutexGuard<'_, Option<Incoming>> {
        let [bidi, uni, blocks] = &self.held;
        let held = match kind {
            Kind::Bidi => bidi,
            Kind::Uni => uni,
            Kind::Blocks => blocks,
        };
        held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready when a stream of any kind can be accepted, or none ever will be.
    pub fn poll_acceptable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut ready = Poll::Pending;
        for kind in Kind::ALL {
            let mut held = self.held(kind);
            if held.is_none() {
                match self.poll_new(kind, cx) {
                    Poll::Ready(Ok(stream)) => *held = Some(stream),
                    // Failures are those of the connection, and no others.
                    Poll::Ready(Err(_)) => {}
                    Poll::Pending => continue,
                }
            }
            ready = Poll::Ready(());
        }
        ready
    }

    /// Ready with the reason when the connection is over.
    pub fn poll_over(&self, cx: &mut Context<'_>) -> Poll<Failure> {
        match self.poll_made(cx) {
            Poll::Ready(Ok(connection)) => pin!(connection.closed_async()).poll(cx).map(Into::into),
            Poll::Ready(Err(failure)) => Poll::Ready(failure),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Ends it at once.
    pub fn close(&self, code: u64, reason: &str) {
        if self.made.get().is_none() {
            // An attempt that is dropped is given up.
            *self.making.lock().unwrap_or_else(PoisonError::into_inner) = Making::Made;
        }
        if let Some(connection) = self.made.get().filter(|connection| connection.end().is_none()) {
            connection.close(code, reason);
        }
    }
}

//! This program's ends of the streams, whose errors say so: what fails here is not the peer's doing.

use std::io::{self, Read, Write};

use thiserror::Error;

use super::outlet::Outlet;

/// What failed on this side.
#[derive(Debug, Error)]
#[error("{what}: {source}")]
pub(super) struct OwnEnd {
    what: &'static str,
    source: io::Error,
}

impl OwnEnd {
    /// Whether an error is of this side.
    pub(super) fn is_in(error: &io::Error) -> bool {
        error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Self>)
    }

    fn of(what: &'static str) -> impl FnOnce(io::Error) -> io::Error {
        move |source| io::Error::new(source.kind(), Self { what, source })
    }
}

/// What is to be sent.
pub(super) struct Source<R>(pub R);

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(OwnEnd::of("reading what is to be sent"))
    }
}

/// Where what has come goes.
pub(super) struct Drain<W>(pub W);

impl<W: Outlet> Write for Drain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(OwnEnd::of("writing what has come"))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(OwnEnd::of("writing what has come"))
    }
}

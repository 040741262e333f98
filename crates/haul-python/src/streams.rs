//! Streams of ordered bytes. A call of one direction waits for the one before it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use haul::StreamError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::buffer::View;
use crate::errors::OrRaise;
use crate::waiting::{Pending, wait};

/// The half that is written to.
#[pyclass(frozen, module = "haul._haul")]
pub struct SendStream(Arc<Mutex<haul::SendStream>>);

/// The half that is read from.
#[pyclass(frozen, module = "haul._haul")]
pub struct RecvStream(Arc<Mutex<haul::RecvStream>>);

/// Bytes that one read for asyncio has room for, at most: it is asked for before anybody knows how much there is.
const MAX_READ: usize = 1 << 20;

impl SendStream {
    pub fn new(stream: haul::SendStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }
}

impl RecvStream {
    pub fn new(stream: haul::RecvStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }
}

#[pymethods]
impl SendStream {
    /// The stream's number: the same on both sides.
    #[getter]
    fn id(&self, py: Python<'_>) -> u32 {
        py.detach(|| lock(&self.0).id().0)
    }

    /// Writes all of it; returns how much that was.
    #[pyo3(signature = (data, timeout=None))]
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<usize> {
        View::reading(data)?.during(py, |view| {
            let (bytes, mut written) = (&**view, 0);
            wait(py, timeout, |cx| poll_write_all(&mut lock(&self.0), cx, bytes, &mut written))?;
            Ok(bytes.len())
        })
    }

    fn write_pending(&self, data: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let (view, stream) = (View::reading(data)?, Arc::clone(&self.0));
        let mut written = 0;
        let writing =
            std::future::poll_fn(move |cx| poll_write_all(&mut lock(&stream), cx, &view, &mut written).map_ok(|()| view.len()));
        Ok(Pending::new(writing, |py, len| Ok(len.into_pyobject(py)?.into_any().unbind())))
    }

    /// No more will be written.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| lock(&self.0).finish()).or_raise(py)
    }

    /// Waits until the peer's transport has everything; after `finish`.
    #[pyo3(signature = (timeout=None))]
    fn wait_acknowledged(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        wait(py, timeout, |cx| lock(&self.0).poll_acknowledged(cx))
    }

    fn wait_acknowledged_pending(&self) -> Pending {
        let stream = Arc::clone(&self.0);
        Pending::new(std::future::poll_fn(move |cx| lock(&stream).poll_acknowledged(cx)), |py, ()| Ok(py.None()))
    }

    /// Gives up: the peer's reader gets an error with this code.
    #[pyo3(signature = (code=0))]
    fn reset(&self, py: Python<'_>, code: u64) {
        py.detach(|| lock(&self.0).reset(code));
    }

    /// Who goes first among streams with something to send: 0 to 255, 128 from the start.
    fn set_priority(&self, py: Python<'_>, priority: u8) {
        py.detach(|| lock(&self.0).set_priority(priority));
    }
}

#[pymethods]
impl RecvStream {
    /// The stream's number: the same on both sides.
    #[getter]
    fn id(&self, py: Python<'_>) -> u32 {
        py.detach(|| lock(&self.0).id().0)
    }

    /// Reads into a buffer what there is, at least one byte; 0 is the end.
    #[pyo3(signature = (buffer, timeout=None))]
    fn readinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<usize> {
        View::writing(buffer)?.during(py, |view| {
            let room = view.bytes_mut();
            wait(py, timeout, |cx| lock(&self.0).poll_read(cx, room))
        })
    }

    fn readinto_pending(&self, buffer: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let (mut view, stream) = (View::writing(buffer)?, Arc::clone(&self.0));
        let reading = std::future::poll_fn(move |cx| lock(&stream).poll_read(cx, view.bytes_mut()));
        Ok(Pending::new(reading, |py, len| Ok(len.into_pyobject(py)?.into_any().unbind())))
    }

    /// Reads up to so many bytes; none are the end.
    fn read_pending(&self, most: usize) -> Pending {
        let stream = Arc::clone(&self.0);
        let mut room = vec![0; most.clamp(1, MAX_READ)];
        let reading = std::future::poll_fn(move |cx| {
            lock(&stream).poll_read(cx, &mut room).map_ok(|len| {
                room.truncate(len);
                std::mem::take(&mut room)
            })
        });
        Pending::new(reading, |py, bytes| Ok(PyBytes::new(py, &bytes).into_any().unbind()))
    }

    /// Reads no more; the peer's writer gets an error with this code.
    #[pyo3(signature = (code=0))]
    fn stop(&self, py: Python<'_>, code: u64) {
        py.detach(|| lock(&self.0).stop(code));
    }
}

fn poll_write_all(
    stream: &mut haul::SendStream,
    cx: &mut Context<'_>,
    data: &[u8],
    written: &mut usize,
) -> Poll<Result<(), StreamError>> {
    while let Some(rest) = data.get(*written..).filter(|rest| !rest.is_empty()) {
        match stream.poll_write(cx, rest) {
            Poll::Ready(Ok(more)) => *written += more,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
    }
    Poll::Ready(Ok(()))
}

fn lock<T>(stream: &Mutex<T>) -> MutexGuard<'_, T> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}

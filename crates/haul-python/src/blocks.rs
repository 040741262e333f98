//! Streams of blocks: bulk data that arrives in any order, each block where haul has put it together.

use std::future::poll_fn;

use pyo3::prelude::*;

use crate::buffer;
use crate::waiting::{Pending, wait, wait_future};

/// Sends blocks.
#[pyclass(frozen, module = "haul._haul")]
pub struct BlockSender(pub haul::BlockSender);

/// Takes blocks.
#[pyclass(frozen, module = "haul._haul")]
pub struct BlockReceiver(pub haul::BlockReceiver);

#[pymethods]
impl BlockSender {
    /// Sends a block and returns its index; waits while as much is on its way as the connection can use.
    #[pyo3(signature = (data, timeout=None))]
    fn send(&self, py: Python<'_>, data: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<u64> {
        let mut block = Some(buffer::to_send(data, || py.detach(|| self.0.buffer()))?);
        wait(py, timeout, |cx| self.0.poll_send(cx, &mut block))
    }

    fn send_pending(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let mut block = Some(buffer::to_send(data, || py.detach(|| self.0.buffer()))?);
        let sender = self.0.clone();
        let sending = poll_fn(move |cx| sender.poll_send(cx, &mut block));
        Ok(Pending::new(sending, |py, index| Ok(index.into_pyobject(py)?.into_any().unbind())))
    }

    /// Ends the stream and waits until the peer's transport has all blocks.
    #[pyo3(signature = (timeout=None))]
    fn finish(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        wait_future(py, timeout, self.0.finish_async())
    }

    fn finish_pending(&self) -> Pending {
        let sender = self.0.clone();
        Pending::new(async move { sender.finish_async().await }, |py, ()| Ok(py.None()))
    }

    /// Gives up: the peer's receiver gets an error with this code.
    #[pyo3(signature = (code=0))]
    fn reset(&self, py: Python<'_>, code: u64) {
        py.detach(|| self.0.reset(code));
    }

    /// Who goes first among streams with something to send: 0 to 255, 128 from the start.
    fn set_priority(&self, py: Python<'_>, priority: u8) {
        py.detach(|| self.0.set_priority(priority));
    }
}

#[pymethods]
impl BlockReceiver {
    /// A block, whichever is complete next: its index and what has its bytes; none at the end.
    #[pyo3(signature = (timeout=None))]
    fn recv<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Option<(u64, Bound<'py, PyAny>)>> {
        match wait(py, timeout, |cx| self.0.poll_recv(cx))? {
            Some(block) => Ok(Some((block.index(), buffer::lend(py, Box::new(block))?))),
            None => Ok(None),
        }
    }

    fn recv_pending(&self) -> Pending {
        let receiver = self.0.clone();
        Pending::new(poll_fn(move |cx| receiver.poll_recv(cx)), |py, block| match block {
            Some(block) => Ok((block.index(), buffer::lend(py, Box::new(block))?).into_pyobject(py)?.into_any().unbind()),
            None => Ok(py.None()),
        })
    }

    /// Bytes that have arrived, those of incomplete blocks included.
    #[getter]
    fn received(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.0.received())
    }
}

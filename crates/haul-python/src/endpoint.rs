//! Sockets and connections. Each call that waits is there twice: with a time to wait, and as a [`Pending`] for asyncio.

use std::net::{IpAddr, SocketAddr};

use haul::{ClientConfig, ConnectError, ConnectionError, PeerTrust, ServerConfig};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::blocks::{BlockReceiver, BlockSender};
use crate::errors::{Failure, OrRaise};
use crate::keys::{self, Identity};
use crate::settings;
use crate::streams::{RecvStream, SendStream};
use crate::waiting::{Pending, wait_future};

/// A UDP socket that connections are made on.
#[pyclass(frozen, module = "haul._haul")]
pub struct Endpoint(haul::Endpoint);

/// An encrypted connection.
#[pyclass(frozen, module = "haul._haul")]
pub struct Connection(pub haul::Connection);

/// A host and a port, as Python's sockets have them.
type Address = (String, u16);

#[pymethods]
impl Endpoint {
    /// Bound to a numeric address; with an identity it accepts connections too.
    #[new]
    #[pyo3(signature = (address, identity=None, trust=None, protocols=Vec::new(), settings=None))]
    fn new(
        py: Python<'_>,
        address: Address,
        identity: Option<&Identity>,
        trust: Option<&Bound<'_, PyAny>>,
        protocols: Vec<Vec<u8>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let address = numeric(&address).or_raise(py)?;
        let transport = settings::transport(settings)?;
        let trust = keys::trust_of(trust)?;
        let made = match identity {
            None => py.detach(|| haul::Endpoint::bind(address)),
            Some(identity) => {
                let config = ServerConfig { protocols, transport, ..ServerConfig::new(identity.0.clone(), trust) };
                py.detach(|| haul::Endpoint::listen(address, config))
            }
        };
        made.map(Self).or_raise(py)
    }

    /// The address bound to.
    #[getter]
    fn address(&self) -> Address {
        spelled(self.0.local_addr())
    }

    #[pyo3(signature = (address, timeout, trust=None, identity=None, protocols=Vec::new(), settings=None))]
    fn connect(
        &self,
        py: Python<'_>,
        address: Address,
        timeout: f64,
        trust: Option<&Bound<'_, PyAny>>,
        identity: Option<&Identity>,
        protocols: Vec<Vec<u8>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Connection> {
        wait_future(py, None, self.connecting(py, &address, timeout, trust, identity, protocols, settings)?).map(Connection)
    }

    #[pyo3(signature = (address, timeout, trust=None, identity=None, protocols=Vec::new(), settings=None))]
    fn connect_pending(
        &self,
        py: Python<'_>,
        address: Address,
        timeout: f64,
        trust: Option<&Bound<'_, PyAny>>,
        identity: Option<&Identity>,
        protocols: Vec<Vec<u8>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pending> {
        Ok(Pending::new(self.connecting(py, &address, timeout, trust, identity, protocols, settings)?, given(Connection)))
    }

    /// Waits for a client.
    #[pyo3(signature = (timeout=None))]
    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Connection> {
        wait_future(py, timeout, self.0.accept_async()).map(Connection)
    }

    fn accept_pending(&self) -> Pending {
        let endpoint = self.0.clone();
        Pending::new(async move { endpoint.accept_async().await }, given(Connection))
    }

    /// Closes all its connections and accepts no more.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

impl Endpoint {
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn connecting(
        &self,
        py: Python<'_>,
        address: &Address,
        timeout_s: f64,
        trust: Option<&Bound<'_, PyAny>>,
        identity: Option<&Identity>,
        protocols: Vec<Vec<u8>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<impl Future<Output = Result<haul::Connection, ConnectError>> + Send + 'static> {
        let address = numeric(address).or_raise(py)?;
        let connect_timeout = std::time::Duration::try_from_secs_f64(timeout_s)
            .map_err(|_| Failure::usage(format_args!("{timeout_s}: not a time in seconds")).into_py_err(py))?;
        let config = ClientConfig {
            identity: identity.map(|identity| identity.0.clone()),
            protocols,
            transport: settings::transport(settings)?,
            connect_timeout,
            ..ClientConfig::new(trust.map_or(Ok(PeerTrust::Anyone), |trust| keys::trust_of(Some(trust)))?)
        };
        Ok(py.detach(|| self.0.connect_async(address, config)))
    }
}

#[pymethods]
impl Connection {
    #[pyo3(signature = (timeout=None))]
    fn open_bi(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<(SendStream, RecvStream)> {
        wait_future(py, timeout, self.0.open_bi_async()).map(halves)
    }

    fn open_bi_pending(&self) -> Pending {
        let connection = self.0.clone();
        Pending::new(async move { connection.open_bi_async().await }, |py, both| {
            Ok(halves(both).into_pyobject(py)?.into_any().unbind())
        })
    }

    #[pyo3(signature = (timeout=None))]
    fn open_uni(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<SendStream> {
        wait_future(py, timeout, self.0.open_uni_async()).map(SendStream::new)
    }

    fn open_uni_pending(&self) -> Pending {
        let connection = self.0.clone();
        Pending::new(async move { connection.open_uni_async().await }, given(SendStream::new))
    }

    #[pyo3(signature = (timeout=None))]
    fn accept_bi(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<(SendStream, RecvStream)> {
        wait_future(py, timeout, self.0.accept_bi_async()).map(halves)
    }

    fn accept_bi_pending(&self) -> Pending {
        let connection = self.0.clone();
        Pending::new(async move { connection.accept_bi_async().await }, |py, both| {
            Ok(halves(both).into_pyobject(py)?.into_any().unbind())
        })
    }

    #[pyo3(signature = (timeout=None))]
    fn accept_uni(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<RecvStream> {
        wait_future(py, timeout, self.0.accept_uni_async()).map(RecvStream::new)
    }

    fn accept_uni_pending(&self) -> Pending {
        let connection = self.0.clone();
        Pending::new(async move { connection.accept_uni_async().await }, given(RecvStream::new))
    }

    #[pyo3(signature = (timeout=None))]
    fn open_blocks(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<BlockSender> {
        wait_future(py, timeout, self.0.open_blocks_async()).map(BlockSender)
    }

    fn open_blocks_pending(&self) -> Pending {
        let connection = self.0.clone();
        Pending::new(async move { connection.open_blocks_async().await }, given(BlockSender))
    }

    #[pyo3(signature = (timeout=None))]
    fn accept_blocks(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<BlockReceiver> {
        wait_future(py, timeout, self.0.accept_blocks_async()).map(BlockReceiver)
    }

    fn accept_blocks_pending(&self) -> Pending {
        let connection = self.0.clone();
        Pending::new(async move { connection.accept_blocks_async().await }, given(BlockReceiver))
    }

    /// Where the peer is at present.
    #[getter]
    fn peer_address(&self, py: Python<'_>) -> Address {
        spelled(py.detach(|| self.0.remote_addr()))
    }

    /// The fingerprint of the peer's key; none for an anonymous client.
    #[getter]
    fn peer_key(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.0.peer_key()).map(|key| key.fingerprint().to_string())
    }

    /// The application protocol agreed on.
    #[getter]
    fn protocol(&self, py: Python<'_>) -> Option<Vec<u8>> {
        py.detach(|| self.0.protocol())
    }

    /// Closes it at once, with a code and a reason for the peer.
    #[pyo3(signature = (code=0, reason=""))]
    fn close(&self, py: Python<'_>, code: u64, reason: &str) {
        py.detach(|| self.0.close(code, reason));
    }

    /// Waits until it is over, and says why.
    #[pyo3(signature = (timeout=None))]
    fn closed(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<String> {
        wait_future(py, timeout, async { Ok::<_, ConnectionError>(self.0.closed_async().await.to_string()) })
    }

    fn closed_pending(&self) -> Pending {
        let connection = self.0.clone();
        let closed = async move { Ok::<_, ConnectionError>(connection.closed_async().await.to_string()) };
        Pending::new(closed, |py, words| Ok(words.into_pyobject(py)?.into_any().unbind()))
    }

    /// Whether it is over.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        py.detach(|| self.0.end()).is_some()
    }

    /// Limits the rate at which this side sends; none lifts the limit.
    #[pyo3(signature = (limit=None))]
    fn set_limit(&self, py: Python<'_>, limit: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let limit = limit.map(|limit| settings::rate("limit", limit)).transpose()?;
        py.detach(|| self.0.set_rate_limit(limit));
        Ok(())
    }

    /// What the transport has measured and counted; times in seconds, rates in bit/s.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.0.stats());
        let told = PyDict::new(py);
        told.set_item("rtt", stats.rtt.as_secs_f64())?;
        told.set_item("min_rtt", stats.min_rtt.as_secs_f64())?;
        told.set_item("queue_delay", stats.queue_delay.as_secs_f64())?;
        told.set_item("delivery_rate", stats.delivery_rate.as_bps())?;
        told.set_item("pacing_rate", stats.pacing_rate.as_bps())?;
        told.set_item("window", stats.window.as_u64())?;
        told.set_item("in_flight", stats.in_flight.as_u64())?;
        told.set_item("packet_size", stats.packet_size.as_u64())?;
        told.set_item("sent_packets", stats.sent_pkts)?;
        told.set_item("received_packets", stats.received_pkts)?;
        told.set_item("lost_packets", stats.lost_pkts)?;
        told.set_item("loss", stats.loss.as_f64())?;
        told.set_item("sent", stats.sent.as_u64())?;
        told.set_item("retransmitted", stats.retransmitted.as_u64())?;
        told.set_item("acknowledged", stats.acknowledged.as_u64())?;
        told.set_item("received", stats.received.as_u64())?;
        told.set_item("silence", stats.silence.as_secs_f64())?;
        told.set_item("streams", stats.streams)?;
        told.set_item("paths", stats.paths)?;
        Ok(told)
    }
}

fn halves((send, receive): (haul::SendStream, haul::RecvStream)) -> (SendStream, RecvStream) {
    (SendStream::new(send), RecvStream::new(receive))
}

/// A value of the library as an object.
fn given<T, C: Into<PyClassInitializer<C>> + pyo3::PyClass>(
    make: impl Fn(T) -> C,
) -> impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> {
    move |py, value| Ok(Py::new(py, make(value))?.into_any())
}

fn numeric((host, port): &Address) -> Result<SocketAddr, Failure> {
    let ip: IpAddr = host.parse().map_err(|_| Failure::usage(format_args!("{host}: not a numeric address")))?;
    Ok(SocketAddr::new(ip, *port))
}

fn spelled(address: SocketAddr) -> Address {
    (address.ip().to_string(), address.port())
}

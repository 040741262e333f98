//! `haul.proxy`: TCP connections carried over haul, both ends of it, in threads that run until they are told to end.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use haul_peer::{DaemonHost, Host, Operand, StateDir, chain};
use haul_tunnel::proxy::{Client, Event, LocalForward, Observer, PROTOCOL, Server, ServerSettings};
use haul_units::Cancel;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Failure, OrRaise};
use crate::keys::{Identity, parse_fingerprint};
use crate::reach;
use crate::waiting::in_thread;

/// One end of a proxy.
#[pyclass(frozen, module = "haul._haul")]
pub struct Proxy {
    shared: Arc<Shared>,
    cancel: Cancel,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ports: Vec<u16>,
    ended: Option<Result<(), Failure>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self, result: Result<(), Failure>) {
        self.lock().ended = Some(result);
        self.changed.notify_all();
    }
}

impl Observer for Shared {
    fn event(&self, event: Event<'_>) {
        if let Event::Listening { address, .. } = event {
            let port: Option<u16> = address.to_string().rsplit(':').next().and_then(|port| port.parse().ok());
            self.lock().ports.extend(port);
            self.changed.notify_all();
        }
    }
}

#[pymethods]
impl Proxy {
    /// A port of this host from which TCP connections go to `target`, `host:port` as the server sees it. `server` is `user@host:`, by ssh, or `host:port` with the fingerprint `key`.
    #[staticmethod]
    #[pyo3(signature = (listen, target, server, key, kwargs))]
    fn connect(
        py: Python<'_>,
        listen: &str,
        target: &str,
        server: &str,
        key: Option<&str>,
        kwargs: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let (connector, _, _) = reach::connector(kwargs, PROTOCOL)?;
        let cancel = connector.cancel.clone();
        let host = if let Some(key) = key {
            Host::Open(DaemonHost::parse(server).or_raise(py)?, Some(parse_fingerprint(key).or_raise(py)?))
        } else {
            let Operand::Ssh(host, _) = Operand::parse(server.as_ref()).or_raise(py)? else {
                let message = format!("{server}: neither a host for ssh nor one with a key");
                return Err(Failure::usage(message).into_py_err(py));
            };
            Host::Ssh(host)
        };
        let target = target.parse().map_err(Failure::usage).or_raise(py)?;
        let forward = LocalForward::to(listen.parse().map_err(Failure::usage).or_raise(py)?, target);
        let shared = Arc::<Shared>::default();
        let client = Client { observer: shared.clone(), ..Client::new(connector, host, vec![forward]) };
        let runs = Arc::clone(&shared);
        thread::Builder::new().name("haul-proxy".into()).spawn(move || {
            runs.ended(client.run().map_err(|error| Failure::new("NetworkError", chain(&error))));
        })?;
        let proxy = Self { shared, cancel };
        proxy.listening(py)?;
        Ok(proxy)
    }

    /// A server that carries to the targets `allow`, such as `127.0.0.1:80` or `*:*`: for the keys that the directory `authorized` lets in, or without one for everybody.
    #[staticmethod]
    fn serve(
        py: Python<'_>,
        address: &str,
        port: u16,
        identity: &Identity,
        allow: Vec<String>,
        authorized: Option<PathBuf>,
    ) -> PyResult<Self> {
        let authorized = authorized.map(|dir| StateDir::find(Some(&dir)).map_err(|error| Failure::new("LocalError", error)));
        let authorized = authorized.transpose().or_raise(py)?;
        let address: IpAddr =
            address.parse().map_err(|_| Failure::usage(format_args!("{address}: not a numeric address"))).or_raise(py)?;
        let allow: Result<Vec<_>, _> = allow.iter().map(|target| target.parse().map_err(Failure::usage)).collect();
        let settings = ServerSettings {
            address: Some(address),
            port,
            allow: allow.or_raise(py)?,
            ..ServerSettings::new(identity.0.clone(), authorized, Vec::new())
        };
        let server = Server::bind(settings).map_err(|error| Failure::new("LocalError", chain(&error))).or_raise(py)?;
        let (shared, cancel) = (Arc::<Shared>::default(), Cancel::new());
        shared.lock().ports.push(server.local_addr().port());
        let (runs, stop) = (Arc::clone(&shared), cancel.clone());
        thread::Builder::new().name("haul-proxy".into()).spawn(move || {
            runs.ended(server.run(&stop).map_err(|error| Failure::new("NetworkError", chain(&error))));
        })?;
        Ok(Self { shared, cancel })
    }

    /// The port that it listens on: TCP of a client, UDP of a server.
    #[getter]
    fn port(&self) -> u16 {
        self.shared.lock().ports.first().copied().unwrap_or(0)
    }

    /// Whether it runs no longer; an exception where it failed.
    fn is_over(&self, py: Python<'_>) -> PyResult<bool> {
        match py.detach(|| self.shared.lock().ended.clone()) {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            // Told to end, it may call that a failure.
            Some(Err(_)) if self.cancel.is_cancelled() => Ok(true),
            Some(Err(failure)) => Err(failure.into_py_err(py)),
        }
    }

    /// Ends it, and waits for that, for a few seconds.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            self.cancel.cancel();
            let wait = self.shared.changed.wait_timeout_while(self.shared.lock(), PATIENCE, |state| state.ended.is_none());
            drop(wait);
        });
    }
}

impl Proxy {
    /// Waits until the port is open, or it has failed.
    fn listening(&self, py: Python<'_>) -> PyResult<()> {
        let shared = Arc::clone(&self.shared);
        in_thread(py, &self.cancel, move || {
            let ready = |state: &mut State| state.ports.is_empty() && state.ended.is_none();
            drop(shared.changed.wait_while(shared.lock(), ready));
        })?;
        // Not under its lock: making an exception runs Python, and another thread may wait for the lock.
        let ended = py.detach(|| self.shared.lock().ended.clone());
        ended.unwrap_or(Ok(())).or_raise(py)
    }
}

/// How long an end may take.
const PATIENCE: Duration = Duration::from_secs(5);

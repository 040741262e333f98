//! Endpoints: what is set before they are bound, and connecting and accepting on them.

use std::future::Future as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use haul::{ClientConfig, Connection, Endpoint, Fingerprint, Identity, PeerTrust, ServerConfig, TransportConfig};

use super::connection::Conn;
use crate::failure::{Outcome, wrong_state};
use crate::signals;

/// An endpoint, perhaps not bound yet.
#[derive(Default)]
pub struct Place {
    bound: OnceLock<Endpoint>,
    settings: Mutex<Settings>,
    /// A connection that readiness has taken and nobody accepted yet.
    held: Mutex<Option<Connection>>,
}

/// What listening and connecting take.
pub struct Settings {
    pub identity: Option<Identity>,
    pub trust: Trust,
    pub protocols: Vec<Vec<u8>>,
    pub transport: TransportConfig,
    /// As it was said: a client and a server have defaults of their own.
    pub connect_timeout: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        let ClientConfig { transport, .. } = ClientConfig::new(PeerTrust::Anyone);
        Self { identity: None, trust: Trust::default(), protocols: Vec::new(), transport, connect_timeout: None }
    }
}

impl Settings {
    /// How long a handshake of ours may take.
    pub fn connect_timeout_of_clients(&self) -> Duration {
        self.connect_timeout.unwrap_or_else(|| ClientConfig::new(PeerTrust::Anyone).connect_timeout)
    }
}

/// Whom to trust, as it was said so far.
#[derive(Default)]
pub struct Trust {
    pub anyone: bool,
    pub pinned: Vec<Fingerprint>,
    pub decide: Option<Arc<dyn Fn(Fingerprint) -> bool + Send + Sync>>,
}

impl Trust {
    fn to_peer_trust(&self) -> Outcome<PeerTrust> {
        let (pinned, decide) = (self.pinned.clone(), self.decide.clone());
        match (self.anyone, decide) {
            (true, _) => Ok(PeerTrust::Anyone),
            (false, Some(decide)) => Ok(PeerTrust::Callback(Arc::new(move |key| {
                let fingerprint = key.fingerprint();
                pinned.contains(&fingerprint) || decide(fingerprint)
            }))),
            (false, None) if pinned.is_empty() => {
                Err(wrong_state("nobody is trusted: call haul_trust_fingerprint(), haul_trust_anyone() or haul_trust_callback()"))
            }
            (false, None) => Ok(PeerTrust::Pinned(pinned)),
        }
    }
}

impl Place {
    pub fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn bound(&self) -> Outcome<&Endpoint> {
        self.bound
            .get()
            .ok_or_else(|| wrong_state("the endpoint is not bound: call haul_listen(), haul_bind() or haul_connect()"))
    }

    pub fn bind(&self, settings: &Settings, address: SocketAddr, listens: bool) -> Outcome<()> {
        if let Some(endpoint) = self.bound.get() {
            return Err(wrong_state(format!("the endpoint is bound already, to {}", endpoint.local_addr())));
        }
        let endpoint = if listens {
            let identity = settings.identity.clone();
            let identity = identity.ok_or_else(|| wrong_state("who listens needs a key: call haul_set_identity()"))?;
            let mut config = ServerConfig::new(identity, settings.trust.to_peer_trust()?);
            config.protocols.clone_from(&settings.protocols);
            config.transport = settings.transport.clone();
            config.admission.deadline = settings.connect_timeout.unwrap_or(config.admission.deadline);
            signals::blocked(|| Endpoint::listen(address, config))?
        } else {
            signals::blocked(|| Endpoint::bind(address))?
        };
        // The settings' lock is held: nobody else binds.
        let _ = self.bound.set(endpoint);
        Ok(())
    }

    /// Begins a connection.
    pub fn connect(&self, to: SocketAddr) -> Outcome<Conn> {
        let settings = self.settings();
        let mut config = ClientConfig::new(settings.trust.to_peer_trust()?);
        config.identity.clone_from(&settings.identity);
        config.protocols.clone_from(&settings.protocols);
        config.transport = settings.transport.clone();
        config.connect_timeout = settings.connect_timeout.unwrap_or(config.connect_timeout);
        if self.bound.get().is_none() {
            let any = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            self.bind(&settings, SocketAddr::new(any, 0), false)?;
        }
        let endpoint = self.bound()?;
        Ok(Conn::making(signals::blocked(|| endpoint.connect_async(to, config))))
    }

    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<Outcome<Connection>> {
        match self.held().take() {
            Some(connection) => Poll::Ready(Ok(connection)),
            None => self.poll_new(cx),
        }
    }

    /// Ready when a connection can be accepted, or nothing ever can.
    pub fn poll_acceptable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut held = self.held();
        if held.is_none() {
            match self.poll_new(cx) {
                Poll::Ready(Ok(connection)) => *held = Some(connection),
                Poll::Ready(Err(_)) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    fn poll_new(&self, cx: &mut Context<'_>) -> Poll<Outcome<Connection>> {
        let endpoint = self.bound()?;
        // Who is admitted gets a thread.
        signals::blocked(|| pin!(endpoint.accept_async()).poll(cx)).map_err(Into::into)
    }

    fn held(&self) -> MutexGuard<'_, Option<Connection>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

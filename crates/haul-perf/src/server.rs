//! A server that lets anyone measure, many at once.
//!
//! Its key is made at the start; clients may pin it. Whoever comes may only measure, within bounds of time, clients and memory.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haul::{
    AcceptError, BindError, BitRate, Bytes, Connection, Endpoint, Fingerprint, Identity, PeerTrust, ServerConfig, TransportConfig,
};
use haul_peer::{Family, GuestMemory, Guests, Limits, Refusal, keys, serve_apart};
use haul_units::Cancel;

use super::data_port::DataPort;
use super::plan::MAX_STREAMS;
use super::roles::Told;
use super::session::{Bounds, Measured, ServeError, serve};
use super::wire::{Ask, CLOSE_ABORTED, PROTOCOL};

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// How a [`Server`] is to be; the defaults are those of `haul perf -s`.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Where it listens; without it, on every address of the family.
    pub bind: Option<IpAddr>,
    /// Which addresses it listens on where none is named; both families unless it is said.
    pub family: Family,
    /// UDP port, and TCP port of the same number; any free one for 0, the default.
    pub port: u16,
    /// The longest measurement; an hour unless it is said.
    pub longest: Duration,
    /// What is sent to each client at most; no bound unless it is said, and then nobody is sent anything at a fixed rate.
    pub rate: Option<BitRate>,
    /// Clients at once; 32 unless it is said.
    pub clients: usize,
    /// Clients at once from one address; 32 unless it is said.
    pub clients_of_address: usize,
    /// Window for each client at most; memory is bounded by three of it. Unless it is said, up to 1 GiB, so that all together take a quarter of the machine's memory.
    pub memory: Option<Bytes>,
    /// Whether it ends when one client has been served.
    pub one_off: bool,
    /// As in [`Bounds::describe`].
    pub describe: Option<fn(&Told) -> String>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            bind: None,
            family: Family::default(),
            port: 0,
            longest: Duration::from_secs(3600),
            rate: None,
            clients: 32,
            clients_of_address: 32,
            memory: None,
            one_off: false,
            describe: None,
        }
    }
}

impl ServerSettings {
    fn guest_memory(&self) -> GuestMemory {
        self.memory.map_or_else(|| GuestMemory::part_of_machine(4), GuestMemory::Each)
    }
}

/// What happens to a client.
#[derive(Debug)]
pub enum Visit<'a> {
    /// It has asked for this, and is served.
    Asked(&'a Ask),
    /// There is no place for it.
    TurnedAway(&'a Refusal),
    /// It has measured this.
    Measured(&'a Measured),
    /// It was not served to the end.
    Failed(&'a ServeError),
}

/// Hears of the clients of a [`Server`], in a thread of each.
pub trait Visits: Send + Sync {
    /// The client with this number, counted from 1, which comes from this address.
    fn visit(&self, number: u64, from: SocketAddr, visit: &Visit<'_>);
}

/// Nobody hears of them.
impl Visits for () {
    fn visit(&self, _number: u64, _from: SocketAddr, _visit: &Visit<'_>) {}
}

/// The socket of a server has failed.
#[derive(Debug, thiserror::Error)]
#[error("the socket failed: {0}")]
pub struct ServerError(#[source] AcceptError);

/// A server that listens.
pub struct Server {
    endpoint: Endpoint,
    key: Fingerprint,
    bounds: Bounds,
    /// Why there is no TCP port of the same number.
    no_tcp: Option<io::Error>,
    guests: Guests,
    one_off: bool,
}

impl Server {
    /// Listens, with a new key.
    pub fn listen(settings: &ServerSettings) -> Result<Self, BindError> {
        let identity = Identity::generate();
        let key = identity.public_key().fingerprint();
        let config = ServerConfig {
            protocols: vec![PROTOCOL.to_vec()],
            admission: keys::admission(true),
            transport: TransportConfig {
                // A stream is all that most clients have: it may use all that its client gets.
                stream_window: settings.memory.unwrap_or(Bytes::gib(1)),
                max_streams: u32::from(MAX_STREAMS) + 2,
                ..TransportConfig::default()
            },
            ..ServerConfig::new(identity, PeerTrust::Anyone)
        };
        let on = |ip: IpAddr| Endpoint::listen(SocketAddr::new(ip, settings.port), config.clone());
        let endpoint = settings.bind.map_or_else(|| settings.family.listen(on), on)?;
        let address = endpoint.local_addr();
        let (data_port, no_tcp) = match DataPort::open(address, address.port()..=address.port()) {
            Ok(data_port) => (Some(data_port), None),
            Err(error) => (None, Some(error)),
        };
        let bounds = Bounds {
            longest: settings.longest,
            rate: settings.rate,
            strangers: true,
            data_port,
            tcp_ports: 0..=0,
            describe: settings.describe,
        };
        let guests = Guests::new(
            Limits { clients: settings.clients, of_key: usize::MAX, of_address: settings.clients_of_address },
            settings.guest_memory(),
        );
        Ok(Self { endpoint, key, bounds, no_tcp, guests, one_off: settings.one_off })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// The fingerprint of its key.
    pub const fn key(&self) -> Fingerprint {
        self.key
    }

    /// Why it takes TCP on ports of their own, if it does: the one with its number cannot be had.
    pub const fn no_tcp(&self) -> Option<&io::Error> {
        self.no_tcp.as_ref()
    }

    /// What its user should know about the system's socket buffers.
    pub fn buffer_warning(&self) -> Option<String> {
        self.endpoint.buffer_warning()
    }

    /// Serves whoever comes, each in a thread of its own, until `cancel` is cancelled. Then it returns within 100 ms and closes all connections.
    pub fn run(self, cancel: &Cancel, visits: Arc<dyn Visits>) -> Result<(), ServerError> {
        let visitors = Visitors {
            bounds: Arc::new(self.bounds),
            served: Arc::default(),
            guests: self.guests,
            visits,
            cancel: cancel.clone(),
        };
        let mut number = 0;
        let enough = || self.one_off && visitors.served.load(Ordering::Acquire) > 0;
        while !cancel.is_cancelled() && !enough() {
            if let Some(connection) = self.endpoint.accept_stranger_timeout(LOOK).map_err(ServerError)? {
                number += 1;
                visitors.welcome(number, connection);
            }
        }
        self.endpoint.close();
        Ok(())
    }
}

/// Those who are there.
struct Visitors {
    bounds: Arc<Bounds>,
    served: Arc<AtomicUsize>,
    guests: Guests,
    visits: Arc<dyn Visits>,
    cancel: Cancel,
}

impl Visitors {
    /// Serves a client in a thread of its own.
    fn welcome(&self, number: u64, connection: Connection) {
        let (served, bounds) = (Arc::clone(&self.served), Arc::clone(&self.bounds));
        let (visits, guests, cancel) = (Arc::clone(&self.visits), self.guests.clone(), self.cancel.clone());
        serve_apart(&connection.clone(), CLOSE_ABORTED, move || {
            let from = connection.remote_addr();
            let tell = |visit: &Visit<'_>| visits.visit(number, from, visit);
            let mut place = None;
            let measured = serve(&connection, &bounds, &cancel, |ask| {
                place = Some(guests.admit(&connection).inspect_err(|refusal| tell(&Visit::TurnedAway(refusal)))?);
                tell(&Visit::Asked(ask));
                Ok(())
            });
            match &measured {
                Ok(measured) => tell(&Visit::Measured(measured)),
                Err(error) => tell(&Visit::Failed(error)),
            }
            if place.is_some() {
                served.fetch_add(1, Ordering::AcqRel);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clients_together_have_a_quarter_of_the_machine() {
        let machine = std::fs::read_to_string("/proc/meminfo").expect("what the machine has");
        let kib: u64 = machine.split_whitespace().nth(1).and_then(|total| total.parse().ok()).expect("MemTotal, in KiB");
        let settings = ServerSettings::default();
        for clients in [1, settings.clients, 1000] {
            // Each has three of its window.
            let window = settings.guest_memory().window(clients).unwrap_or_default();
            assert!(window <= Bytes::gib(1) && window.as_u64() * 3 * clients as u64 <= (kib << 10) / 4, "{clients}: {window}");
        }
        let told = ServerSettings { memory: Some(Bytes::mib(5)), ..ServerSettings::default() };
        assert_eq!(told.guest_memory().window(1000), Some(Bytes::mib(5)));
    }
}

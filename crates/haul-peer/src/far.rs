//! The far side of a connection through ssh: it listens for the one client that its greeting names.
//!
//! It ends when the near side does: whoever watches the near side's end (ssh closes standard input) calls [`FarSide::end`]. Where ssh's own connection was lost and the near side is
//! heard all the same, it goes on: an address can change under both, and only one of them follows.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use data_encoding::BASE64;
use haul::carrier::Carrier;
use haul::{
    BindError, Bytes, Connection, ControllerChoice, Endpoint, Fingerprint, Identity, PeerTrust, ServerConfig, TransportConfig,
};
use haul_units::{Cancel, PeerText};
use thiserror::Error;

use crate::carried_far;
use crate::clock;
use crate::ports::PortRange;
use crate::reach::{KEEP_ALIVE, is_heard};
use crate::relay;
use crate::ssh::{BOOTSTRAP, ClientHello, RemoteHello};
use crate::unwinding::serve_apart;

/// How long it waits for a connection before it gives up.
const NOBODY: Duration = Duration::from_secs(30);
/// How often it looks at the time.
const LOOK: Duration = Duration::from_secs(1);
/// How long what is served may take to save its state once the near side has gone.
const FAREWELL: Duration = Duration::from_secs(10);
/// Guests of a client that are known at once: each needs to be known until it has connected, and one that comes too late is invited again.
const MOST_GUESTS: usize = 256;
/// Silences after which a client may ask this side to give the connection up.
const DEAD_AFTER_S: RangeInclusive<u64> = 8..=3600;

/// Why a far side cannot serve the one that has called it.
#[derive(Debug, Error)]
pub enum FarSideError {
    /// Both sides are to be of one version.
    #[error("the haul that called is of another version: it is version {theirs}, this one {}", env!("CARGO_PKG_VERSION"))]
    OtherVersion {
        /// The version that has called.
        theirs: PeerText,
    },
    /// There is no such fingerprint.
    #[error("the haul that called is of another version: its key cannot be understood")]
    UnclearKey,
    /// A later version may know more of them.
    #[error("its congestion control is not known here: {source}")]
    UnknownControl {
        /// Why.
        source: <ControllerChoice as std::str::FromStr>::Err,
    },
    /// Its first port is none, or comes after its last one.
    #[error("no such range of ports")]
    NoSuchPorts,
    /// No port could be listened on.
    #[error("no UDP port to listen on: {source}")]
    NoPort {
        /// Why.
        source: BindError,
        /// Whether the near side has named ports.
        ports_named: bool,
    },
}

/// A far side that listens. Clones are the same one.
#[derive(Clone)]
pub struct FarSide(Arc<Inner>);

struct Inner {
    endpoint: Endpoint,
    ports: RangeInclusive<u16>,
    cancel: Cancel,
    /// Connections that are being served.
    busy: AtomicUsize,
    served: AtomicBool,
    connections: Mutex<Vec<Connection>>,
    invited: Arc<Invited>,
    /// What may come on ssh's channel.
    channel: Option<Carrier>,
    /// No lane is taken any more.
    over: Cancel,
}

/// Whose handshake is completed: the client's, and of those whom it has named the latest.
struct Invited {
    client: Fingerprint,
    guests: Mutex<VecDeque<Fingerprint>>,
}

impl Invited {
    fn has(&self, key: Fingerprint) -> bool {
        key == self.client || self.guests.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }

    fn add(&self, key: Fingerprint) {
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        if guests.len() == MOST_GUESTS {
            guests.pop_front();
        }
        guests.push_back(key);
    }
}

impl FarSide {
    /// Listens for who says this, with one of these application protocols; what comes back is to be told to it. `ssh_connection` is `SSH_CONNECTION`
    /// as sshd sets it.
    pub fn listen(
        hello: &ClientHello,
        protocols: &[&[u8]],
        ssh_connection: Option<&str>,
    ) -> Result<(Self, RemoteHello), FarSideError> {
        let (client, transport) = Self::terms(hello)?;
        let identity = Identity::generate();
        let server = identity.public_key().fingerprint();
        let invited = Arc::new(Invited { client, guests: Mutex::default() });
        let trust = {
            let invited = Arc::clone(&invited);
            PeerTrust::Callback(Arc::new(move |key| invited.has(key.fingerprint())))
        };
        let config = ServerConfig {
            protocols: protocols.iter().map(|protocol| protocol.to_vec()).collect(),
            transport,
            ..ServerConfig::new(identity, trust)
        };
        let ports = ports(hello)?;
        let bound = hello.family.listen(|ip| Endpoint::listen_in(ip, ports.clone(), config.clone()));
        let endpoint = bound.map_err(|source| FarSideError::NoPort { source, ports_named: hello.udp_ports.is_some() })?;
        let opening = hello.opening.as_ref().and_then(|opening| BASE64.decode(opening.as_bytes()).ok());
        let (client, here) = ssh_addresses(ssh_connection);
        let over = Cancel::new();
        // The fingerprint of a key that nobody has is as good a secret as any.
        let name = Identity::generate().public_key().fingerprint();
        let open = |name| carried_far::open_port(&endpoint, ports.clone(), client, name, over.clone());
        let tcp = name.as_bytes().first_chunk().filter(|_| hello.carries).and_then(|name| open(*name));
        let channel = hello.carries.then(|| endpoint.carry(client.map(|ip| SocketAddr::new(ip, 0))).1);
        let told = RemoteHello {
            version: env!("CARGO_PKG_VERSION").into(),
            port: endpoint.local_addr().port(),
            server: server.to_string().into(),
            token: BASE64.encode(&endpoint.admission_token()).into(),
            addresses: here.into_iter().collect(),
            advice: endpoint.buffer_warning().map(Into::into),
            answer: opening.and_then(|opening| answer(&endpoint, &opening, client)),
            tcp,
            channel: channel.is_some(),
            meets: hello.meets && channel.is_some(),
            start_us: None,
        };
        if let Some(channel) = channel.as_ref().filter(|_| hello.meets) {
            relay::attend(&endpoint, channel.clone(), over.clone());
        }
        let inner = Inner {
            endpoint,
            ports,
            cancel: Cancel::new(),
            busy: AtomicUsize::new(0),
            served: AtomicBool::new(false),
            connections: Mutex::default(),
            invited,
            channel,
            over,
        };
        Ok((Self(Arc::new(inner)), told))
    }

    /// The key of whoever says this, and how it wants the connection to behave, within bounds.
    pub fn terms(hello: &ClientHello) -> Result<(Fingerprint, TransportConfig), FarSideError> {
        if hello.bootstrap != BOOTSTRAP {
            return Err(FarSideError::OtherVersion { theirs: hello.version.clone() });
        }
        let client: Fingerprint = hello.client.parse().map_err(|_| FarSideError::UnclearKey)?;
        let controller = hello.controller.as_deref().map(str::parse::<ControllerChoice>).transpose();
        let controller = controller.map_err(|source| FarSideError::UnknownControl { source })?.unwrap_or_default();
        Ok((client, transport(hello, controller)))
    }

    /// The ports that the near side allows; 0 to 0 is any.
    pub fn ports(&self) -> RangeInclusive<u16> {
        self.0.ports.clone()
    }

    /// Serves the client's connections, each in a thread of its own, until one was what it had come for, and says whether that happened. `serve_one` says it of one connection: a client that
    /// tries several addresses at once leaves those that lose the race without a word. What it is given is cancelled by [`end`](Self::end).
    pub fn serve(&self, serve_one: impl Fn(Connection, &Cancel) -> bool + Send + Sync + 'static) -> bool {
        let serve_one = Arc::new(serve_one);
        let started = clock::now();
        while let Ok(accepted) = self.0.endpoint.accept_timeout(LOOK) {
            if let Some(connection) = accepted {
                let mut connections = self.connections();
                connections.retain(|connection| connection.end().is_none());
                connections.push(connection.clone());
                drop(connections);
                self.0.busy.fetch_add(1, Ordering::SeqCst);
                let (busy, serve_one) = (Busy(self.clone()), Arc::clone(&serve_one));
                serve_apart(&connection.clone(), CLOSE_FAULT, move || {
                    let Busy(Self(far)) = &busy;
                    if serve_one(connection, &far.cancel) {
                        far.served.store(true, Ordering::SeqCst);
                        // There is only one to serve: this ends the loop.
                        far.endpoint.close();
                    }
                });
            } else if self.0.busy.load(Ordering::SeqCst) == 0 && clock::now() - started > NOBODY {
                return false;
            }
        }
        self.0.served.load(Ordering::SeqCst)
    }

    /// Reads the near side's end of the channel until it ends, and carries by it if the near side wants that. `has_greeting`: the greeting's line stands on it first.
    pub fn follow(&self, mut input: impl Read + Send + 'static, output: impl Write + Send + 'static, has_greeting: bool) {
        match &self.0.channel {
            Some(carrier) if !has_greeting || carried_far::skip_line(&mut input).is_ok() => {
                carried_far::follow(carrier, input, output);
            }
            _ => drop(io::copy(&mut input, &mut io::sink())),
        }
    }

    /// Lets somebody besides the client connect.
    pub fn admit(&self, key: Fingerprint) {
        self.0.invited.add(key);
    }

    /// Whether a connection is of the client itself, and not of somebody whom it has named.
    pub fn is_of_client(&self, connection: &Connection) -> bool {
        connection.peer_key().is_some_and(|key| key.fingerprint() == self.0.invited.client)
    }

    /// The near side's ssh has ended: stops what is served, in order if there is time. Where `was_cut_off`, ssh itself is gone, perhaps without the near side's
    /// knowledge: then the near side is heard out first.
    pub fn end(&self, was_cut_off: bool) {
        while was_cut_off && self.connections().iter().any(is_heard) {
            thread::park_timeout(LOOK / 4);
        }
        self.0.over.cancel();
        self.0.cancel.cancel();
        let deadline = clock::now() + FAREWELL;
        while self.0.busy.load(Ordering::SeqCst) > 0 && clock::now() < deadline {
            thread::park_timeout(Duration::from_millis(10));
        }
        self.0.endpoint.close();
    }

    fn connections(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.0.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The code of a connection that is served no longer, through a fault of this program; that of a session given up, in every protocol of haul.
const CLOSE_FAULT: u64 = 1;

/// A thread that serves, counted until it ends, however it does.
struct Busy(FarSide);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How the connection behaves, as the client asks for it, within bounds.
fn transport(hello: &ClientHello, controller: ControllerChoice) -> TransportConfig {
    let usual = TransportConfig::default();
    let silence = |seconds| Duration::from_secs(u64::from(seconds).clamp(*DEAD_AFTER_S.start(), *DEAD_AFTER_S.end()));
    TransportConfig {
        keep_alive: Some(KEEP_ALIVE),
        controller,
        remembered: hello.remembered.and_then(|saved| saved.learned()),
        filler: hello.filler,
        idle_timeout: hello.dead_after_s.map_or(usual.idle_timeout, silence),
        stream_window: hello.stream_window.map_or(usual.stream_window, Bytes),
        ..usual
    }
}

/// The ports that may be listened on; 0 is any.
fn ports(hello: &ClientHello) -> Result<RangeInclusive<u16>, FarSideError> {
    let ports = hello.udp_ports.map(|(first, last)| PortRange::new(first, last).ok_or(FarSideError::NoSuchPorts));
    Ok(ports.transpose()?.map_or(0..=0, PortRange::range))
}

/// The handshake's answer for the client. Without one it asks over UDP, and is told there what is wrong.
fn answer(endpoint: &Endpoint, opening: &[u8], client: Option<IpAddr>) -> Option<String> {
    let answer = endpoint.answer(opening, client).inspect_err(|error| tracing::debug!(%error, "the handshake goes over UDP"));
    Some(BASE64.encode(&answer.ok()?))
}

/// `SSH_CONNECTION`: the first word is the address that ssh was called from (TCP has proved it), the third the one that it reached.
fn ssh_addresses(connection: Option<&str>) -> (Option<IpAddr>, Option<IpAddr>) {
    let word = |nth| connection?.split_whitespace().nth(nth)?.parse().ok();
    (word(0), word(2))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    fn hello(more: &str) -> ClientHello {
        let key = Identity::generate().public_key().fingerprint();
        let line = format!(r#"{{"bootstrap":1,"version":"9","client":"{key}"{more}}}"#);
        ClientHello::from_line(line.as_bytes()).expect("a greeting")
    }

    fn refused(hello: &ClientHello) -> FarSideError {
        FarSide::listen(hello, &[b"test"], None).err().expect("refused")
    }

    #[test]
    fn the_addresses_that_ssh_was_called_from_and_reached() {
        let (near, far) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        assert_eq!(ssh_addresses(Some("192.0.2.1 50000 192.0.2.2 22")), (Some(near), Some(far)));
        let here = Some(IpAddr::V6(Ipv6Addr::LOCALHOST));
        assert_eq!(ssh_addresses(Some("::1 50000 ::1 22")), (here, here));
        assert_eq!(ssh_addresses(Some("garbage")), (None, None));
        assert_eq!(ssh_addresses(None), (None, None));
    }

    #[test]
    fn a_greeting_that_makes_no_sense_is_refused_for_its_reason() {
        assert!(matches!(refused(&ClientHello { bootstrap: 2, ..hello("") }), FarSideError::OtherVersion { .. }));
        assert!(matches!(refused(&ClientHello { client: "me".into(), ..hello("") }), FarSideError::UnclearKey));
        assert!(matches!(refused(&hello(r#","controller":"teleport""#)), FarSideError::UnknownControl { .. }));
        assert!(matches!(refused(&hello(r#","udp_ports":[9,3]"#)), FarSideError::NoSuchPorts));
        let taken = std::net::UdpSocket::bind("0.0.0.0:0").expect("a port");
        let port = taken.local_addr().expect("its address").port();
        let error = refused(&hello(&format!(r#","family":"ipv4","udp_ports":[{port},{port}]"#)));
        assert!(matches!(error, FarSideError::NoPort { ports_named: true, .. }), "{error}");
    }

    #[test]
    fn what_a_client_asks_for_has_bounds() {
        let asked = hello(r#","dead_after_s":1,"remembered":{"bandwidth_bps":0,"min_rtt_us":0}"#);
        let transport = transport(&asked, ControllerChoice::default());
        assert_eq!((transport.idle_timeout, transport.remembered), (Duration::from_secs(8), None));
    }

    #[test]
    fn guests_are_known_until_many_others_have_come() {
        let key = || Identity::generate().public_key().fingerprint();
        let (client, first) = (key(), key());
        let invited = Invited { client, guests: Mutex::default() };
        assert!(!invited.has(first));
        invited.add(first);
        for _ in 1..MOST_GUESTS {
            invited.add(key());
        }
        assert!(invited.has(first) && invited.has(client));
        invited.add(key());
        assert!(!invited.has(first) && invited.has(client));
    }

    #[test]
    fn the_far_side_is_as_it_says_it_is() {
        let (far, told) = FarSide::listen(&hello(""), &[b"test"], Some("127.0.0.1 5 127.0.0.1 22")).expect("listens");
        assert_eq!((told.port, told.addresses), (far.0.endpoint.local_addr().port(), vec![IpAddr::from([127, 0, 0, 1])]));
        far.end(true);
        assert!(!far.serve(|_, _| true), "nobody came before the end");
    }
}

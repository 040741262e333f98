//! A UDP socket that connections are made on.

use std::fmt;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use haul_carrier::Carrier;
use haul_proto::{ClientConfig, ServerConfig};

use crate::clock;
use crate::connection::Connection;
use crate::driver::{Aside, Handle, Ports, Shared, State, Wanted};
use crate::error::{AcceptError, BindError, ConnectError};
use crate::opening::Opening;
use crate::waiting::{block_on, block_until};
use haul_udp::Options;

/// A UDP socket with the thread that receives from it. Cheap to clone; all clones are one endpoint.
///
/// Connections keep their endpoint alive: when the last clone and the last connection are gone, its threads end.
///
/// ```
/// use haul::{ClientConfig, Endpoint, Identity, PeerTrust, ServerConfig};
/// use std::io::{Read, Write};
///
/// let identity = Identity::generate();
/// let fingerprint = identity.public_key().fingerprint();
/// let server = Endpoint::listen("127.0.0.1:0".parse()?, ServerConfig::new(identity, PeerTrust::Anyone))?;
/// let addr = server.local_addr();
///
/// let serving = std::thread::spawn(move || -> std::io::Result<()> {
///     let connection = server.accept().map_err(std::io::Error::other)?;
///     let (mut send, mut receive) = connection.accept_bi()?;
///     let mut question = String::new();
///     receive.read_to_string(&mut question)?;
///     send.write_all(question.to_uppercase().as_bytes())?;
///     send.finish()?;
///     Ok(send.wait_acknowledged()?)
/// });
///
/// let endpoint = Endpoint::bind("127.0.0.1:0".parse()?)?;
/// let connection = endpoint.connect(addr, ClientConfig::new(PeerTrust::Pinned(vec![fingerprint])))?;
/// let (mut send, mut receive) = connection.open_bi()?;
/// send.write_all(b"hello")?;
/// send.finish()?;
/// let mut answer = String::new();
/// receive.read_to_string(&mut answer)?;
/// assert_eq!(answer, "HELLO");
/// serving.join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Endpoint {
    handle: Arc<Handle>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("local_addr", &self.local_addr()).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint that connects only. Port 0 takes any free one; `[::]` serves IPv4 and IPv6.
    pub fn bind(addr: SocketAddr) -> Result<Self, BindError> {
        Self::start(&Ports::One(addr), Options::default(), None)
    }

    /// An endpoint that connects and accepts.
    pub fn listen(addr: SocketAddr, config: ServerConfig) -> Result<Self, BindError> {
        Self::start(&Ports::One(addr), Options::default(), Some(config))
    }

    /// As [`Endpoint::bind`], on the first free port of a range: for firewalls that let only these through.
    pub fn bind_in(ip: IpAddr, ports: RangeInclusive<u16>) -> Result<Self, BindError> {
        Self::start(&Ports::Range(ip, ports), Options::default(), None)
    }

    /// As [`Endpoint::listen`], on the first free port of a range.
    pub fn listen_in(ip: IpAddr, ports: RangeInclusive<u16>, config: ServerConfig) -> Result<Self, BindError> {
        Self::start(&Ports::Range(ip, ports), Options::default(), Some(config))
    }

    /// An endpoint with socket options of one's own, for measurements; with a server configuration it accepts too.
    pub fn with_options(addr: SocketAddr, options: Options, server: Option<ServerConfig>) -> Result<Self, BindError> {
        Self::start(&Ports::One(addr), options, server)
    }

    fn start(ports: &Ports, options: Options, server: Option<ServerConfig>) -> Result<Self, BindError> {
        Ok(Self { handle: Arc::new(Handle::start(ports, options, server)?) })
    }

    fn shared(&self) -> &Arc<Shared> {
        self.handle.shared()
    }

    /// The address bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared().socket.local_addr()
    }

    /// A secret that lets its holder connect once without the round trip that proves its address, within about a minute. To be handed over on a
    /// channel that is already secure: see [`ClientConfig::admission`].
    pub fn admission_token(&self) -> Vec<u8> {
        self.shared().admission_token()
    }

    /// A way around UDP, and the address that stands for it here: to be given to [`Endpoint::connect`] or [`Endpoint::connect_opened`], or to [`Connection::redirect`]; a server learns it from what comes. It
    /// carries nothing before it has a lane. `peer` is where the other end is, as far as that is known: what [`Connection::remote_addr`] then says.
    pub fn carry(&self, peer: Option<SocketAddr>) -> (SocketAddr, Carrier) {
        self.handle.carry(peer)
    }

    /// Whether a connection that is complete goes by the carrier of this address.
    pub fn is_used(&self, carried: SocketAddr) -> bool {
        let goes_there = |state: &mut State| state.connected && state.closed.is_none() && state.connection.remote() == carried;
        self.shared().all_links().iter().any(|link| link.look(goes_there))
    }

    /// Ends a carrier, and forgets its address.
    pub fn drop_carrier(&self, carried: SocketAddr) {
        self.shared().carriers.drop_one(carried);
    }

    /// Datagrams that begin with this mark, sent from this port and received here beside the connections, for instance to learn from a server where a NAT has put the port. No packet of a connection
    /// may begin like it: the mark's first byte is 64 to 127. Whoever wanted some before gets no more.
    pub fn aside(&self, mark: [u8; 8]) -> Aside {
        Aside::of(self.shared(), mark)
    }

    /// What to tell the user if the system grants smaller socket buffers than high speed needs: says which setting to change.
    pub fn buffer_warning(&self) -> Option<String> {
        self.shared().socket.buffers().warning()
    }

    /// Connects and waits until the handshake is complete, at most [`ClientConfig::connect_timeout`].
    pub fn connect(&self, addr: SocketAddr, config: ClientConfig) -> Result<Connection, ConnectError> {
        block_on(self.connect_async(addr, config))
    }

    /// As [`Endpoint::connect`], for any async executor. Dropping the future gives the attempt up.
    pub fn connect_async(
        &self,
        addr: SocketAddr,
        config: ClientConfig,
    ) -> impl Future<Output = Result<Connection, ConnectError>> + Send + use<> {
        let (start, handle) = (clock::now(), self.handle.clone());
        let started = self.handle.connect(addr, config).map(|link| Connection::new(link, handle));
        async move {
            let connection = started?;
            let link = connection.link();
            poll_fn(|cx| {
                link.poll(cx, Wanted::Connected, |state, now| match &state.closed {
                    Some(error) => Poll::Ready(Err(ConnectError::from_end(error.clone(), addr, now.since(start)))),
                    None if state.connected => Poll::Ready(Ok(())),
                    None => Poll::Pending,
                })
            })
            .await?;
            Ok(connection)
        }
    }

    /// A connection that was opened over another channel and has its answer ([`Opening::on_answer`]): complete, what is written leaves at once. The
    /// server is at one of `addrs`, the likeliest first, and is asked at the others if it does not answer soon; they want a socket of their family, and
    /// one bound to `[::]` has both. If it is not heard within [`ClientConfig::connect_timeout`] the connection ends with
    /// [`crate::ConnectionError::is_unanswered`].
    pub fn connect_opened(&self, addrs: &[SocketAddr], opening: Opening) -> Result<Connection, ConnectError> {
        let link = self.handle.connect_opened(addrs, opening.into_inner())?;
        Ok(Connection::new(link, self.handle.clone()))
    }

    /// Answers a client's [`Opening`], which came over another channel; the answer goes back there, and the connection comes to
    /// [`Endpoint::accept`] once the client has sent something. A connection that nobody takes up is given up after 10 s. `client`: where the client is, if that channel shows it as a TCP
    /// connection does; from another address it gets three times what it sent, and the rest a round trip later, when it has answered there.
    pub fn answer(&self, opening: &[u8], client: Option<IpAddr>) -> Result<Vec<u8>, AcceptError> {
        self.shared().answer(opening, client)
    }

    /// Waits for a connection, and admits its client.
    pub fn accept(&self) -> Result<Connection, AcceptError> {
        block_on(self.accept_async())
    }

    /// Waits for a connection for a while; `None` if there was none.
    pub fn accept_timeout(&self, timeout: Duration) -> Result<Option<Connection>, AcceptError> {
        block_until(self.accept_async(), clock::now() + timeout).transpose()
    }

    /// As [`Endpoint::accept`], for any async executor.
    pub async fn accept_async(&self) -> Result<Connection, AcceptError> {
        let connection = self.accept_stranger_async().await?;
        connection.admit(None);
        Ok(connection)
    }

    /// As [`Endpoint::accept_stranger_timeout`], as long as it takes.
    pub fn accept_stranger(&self) -> Result<Connection, AcceptError> {
        block_on(self.accept_stranger_async())
    }

    /// Waits for a connection for a while, and does not admit its client: it is gone if [`Connection::admit`] does not do so in time
    /// ([`crate::Admission::deadline`]). For servers that want to hear first what a client has to say.
    pub fn accept_stranger_timeout(&self, timeout: Duration) -> Result<Option<Connection>, AcceptError> {
        block_until(self.accept_stranger_async(), clock::now() + timeout).transpose()
    }

    /// As [`Endpoint::accept_stranger_timeout`], for any async executor and as long as it takes.
    pub async fn accept_stranger_async(&self) -> Result<Connection, AcceptError> {
        let link = poll_fn(|cx| self.shared().poll_accept(cx)).await?;
        Ok(Connection::new(link, self.handle.clone()))
    }

    /// Clients at present that have not been admitted, those in their handshake included.
    pub fn strangers(&self) -> usize {
        self.shared().strangers()
    }

    /// Closes all its connections and accepts no more.
    pub fn close(&self) {
        self.shared().close();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::thread;

    use haul_proto::identity::{Identity, PeerTrust};

    use super::*;

    #[test]
    fn a_client_remembers_how_far_its_servers_network_is() {
        let identity = Identity::generate();
        let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
        let server = Endpoint::listen("127.0.0.1:0".parse().unwrap(), ServerConfig::new(identity, PeerTrust::Anyone)).unwrap();
        let client = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (addr, elsewhere) = (server.local_addr(), "192.0.2.1".parse().unwrap());
        assert_eq!(client.shared().familiar().rtt(addr.ip()), None);
        let serving = thread::spawn(move || {
            let connection = server.accept().unwrap();
            let (mut send, _receive) = connection.accept_bi().unwrap();
            send.write_all(b"here").unwrap();
            send.finish().unwrap();
            send.wait_acknowledged().unwrap();
            server
        });
        let connection = client.connect(addr, ClientConfig::new(trust)).unwrap();
        let (mut send, mut receive) = connection.open_bi().unwrap();
        send.write_all(b"?").unwrap();
        let mut answer = String::new();
        receive.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "here");
        // Whoever has read an answer has heard of the end of the handshake before.
        let familiar = client.shared().familiar().clone();
        assert!(familiar.rtt(addr.ip()).is_some_and(|rtt| !rtt.is_zero()) && familiar.rtt(elsewhere).is_none(), "{familiar:?}");
        let server = serving.join().unwrap();
        assert_eq!(server.shared().familiar().rtt(addr.ip()), None, "a server repeats no hellos");
    }
}

//! The demultiplexer of one socket: which datagram belongs to which connection, and what strangers get.
//!
//! A stranger costs nothing: no state and no TLS before a valid cookie or admission token, and no answer longer than what it sent. A packet for a connection that is gone
//! gets a stateless reset, so that its sender learns soon that we have restarted.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use haul_strangers::{GivenTokens, KeptTokens, RETURN_LIFETIME, Strangers};
use haul_units::Time;

use crate::ConnectionId;
use crate::config::{ClientConfig, ServerConfig};
use crate::connection::{Arrival, Connection, Origin, confined};
use crate::crypto::Secret;
use crate::handshake::wire::is_handshake;
use crate::handshake::{
    Accept, Acceptor, ClientParams, ClientTls, CookieJar, Handshake, HandshakeError, ParsedInitial, Proof, ServerParams,
    ServerTls, TlsConfigError, feature,
};
use crate::opening::{BeginError, Opening};
use crate::reset::{Met, PeerTokens, ResetKey, ResetLimit};
use crate::rng::Rng;
use crate::strangers::AdmittedBy;
use crate::streams::Side;
use crate::wire::{RESET_BYTES, data_destination, encode_reset, parse_reset};

/// How long an admission token is good for.
const ADMISSION_LIFETIME: Duration = Duration::from_secs(60);

/// What an endpoint is made of.
#[derive(Debug)]
pub struct EndpointConfig {
    /// Random bytes that nobody else knows: whatever must not be foreseen comes from them, each use by a label of its own (HKDF).
    pub seed: [u8; 32],
    /// To accept connections.
    pub server: Option<ServerConfig>,
}

/// Why an opening was not answered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AnswerError {
    /// The endpoint is one that connects only.
    #[error("endpoint does not accept connections")]
    NotListening,
    /// The opening does not begin a handshake.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}

/// What to do with a datagram.
#[derive(Debug)]
pub enum Handled {
    /// Hand it to that connection.
    Connection(ConnectionId),
    /// A new connection, which has had the datagram already.
    New(ConnectionId, Box<Connection>),
    /// Send this back to where it came from.
    Respond(Vec<u8>),
    /// Nothing.
    Ignore,
}

struct Server {
    config: ServerConfig,
    tls: ServerTls,
    /// The tokens with which clients may return; none where they may not.
    given: Option<GivenTokens>,
}

/// The demultiplexer.
pub struct Endpoint {
    acceptor: Acceptor,
    reset_key: ResetKey,
    reset_limit: ResetLimit,
    server: Option<Server>,
    rng: Rng,
    /// Connections alive, and for those of strangers where they come from.
    connections: HashMap<ConnectionId, Option<(SocketAddr, u64)>>,
    /// Connections of strangers, by address and the client's number of the attempt.
    attempts: HashMap<(SocketAddr, u64), ConnectionId>,
    /// The tokens with which peers may reset connections.
    tokens: PeerTokens,
    /// The admission tokens that were given out; none where there were none.
    invited: Option<GivenTokens>,
    /// Those with which this side returns to servers.
    kept: KeptTokens,
    strangers: Strangers<ConnectionId>,
    /// Those who have had to give their place to others, to be told.
    evicted: Option<ConnectionId>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("connections", &self.connections.len()).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint without connections.
    pub fn new(config: EndpointConfig) -> Result<Self, TlsConfigError> {
        let secret = Secret::new(config.seed);
        let reset_key = config.server.as_ref().and_then(|server| server.reset_key.clone());
        let admission = config.server.as_ref().map(|server| server.admission).unwrap_or_default();
        let server = config
            .server
            .map(|config| {
                ServerTls::new(&config.identity, &config.trust, config.protocols.clone()).map(|tls| Server {
                    given: config.admission.lets_return.then(GivenTokens::default),
                    config,
                    tls,
                })
            })
            .transpose()?;
        Ok(Self {
            acceptor: Acceptor::new(CookieJar::new(secret.child(b"haul cookies").bytes())),
            reset_key: reset_key.unwrap_or_else(|| ResetKey::from_secret(&secret.child(b"haul resets"))),
            reset_limit: ResetLimit::new(&secret.child(b"haul reset limit")),
            server,
            rng: Rng::new(secret.child(b"haul numbers").bytes()),
            connections: HashMap::new(),
            attempts: HashMap::new(),
            tokens: PeerTokens::new(&secret.child(b"haul peers' tokens")),
            invited: None,
            kept: KeptTokens::default(),
            strangers: Strangers::new(admission.places, admission.places_of_source),
            evicted: None,
        })
    }

    /// A token that lets its holder begin one connection without the round trip of a cookie, from any address, for a minute.
    pub fn admission_token(&mut self, now: Time) -> Vec<u8> {
        let id = self.invited.get_or_insert_default().give();
        self.acceptor.cookies().admit(now + ADMISSION_LIFETIME, id).to_vec()
    }

    /// Begins a connection.
    pub fn connect(
        &mut self,
        now: Time,
        remote: SocketAddr,
        config: ClientConfig,
    ) -> Result<(ConnectionId, Connection), BeginError> {
        let tls = ClientTls::new(config.identity.as_ref(), &config.trust, config.protocols)?;
        let local = self.new_id();
        let params = Connection::params(&config.transport, self.reset_key.token(local));
        let params = ClientParams {
            admission: config.admission.or_else(|| self.kept.take(remote).map(|token| token.to_vec())),
            timeout: config.connect_timeout,
            expected_rtt: config.transport.expected_rtt.or_else(|| config.transport.remembered.map(|learned| learned.min_rtt)),
            ..ClientParams::new(tls, params, local.0, self.rng.next_u64())
        };
        let handshake = Handshake::client(now, params)?;
        let remote = Some(remote);
        let arrival = Arrival { side: Side::Client, local, remote, config: config.transport, seed: self.rng.next_seed() };
        self.connections.insert(local, None);
        Ok((local, Connection::new(now, arrival, handshake)))
    }

    /// A connection that was opened another way and has its answer ([`Opening::on_answer`]). The server is at one of these addresses, the likeliest first; it is asked at the others if it
    /// does not answer soon, and has [`ClientConfig::connect_timeout`] from now on to be heard.
    pub fn connect_opened(
        &mut self,
        now: Time,
        remotes: &[SocketAddr],
        opening: Opening,
    ) -> Result<(ConnectionId, Connection), BeginError> {
        let Opening { local, config, mut handshake } = opening;
        if !handshake.is_complete() {
            return Err(BeginError::NotAnswered);
        }
        if self.connections.contains_key(&local) {
            return Err(BeginError::NumberTaken);
        }
        if remotes.is_empty() {
            return Err(BeginError::NoAddress);
        }
        handshake.begin_asking(now, config.connect_timeout);
        let arrival = Arrival { side: Side::Client, local, remote: None, config: config.transport, seed: self.rng.next_seed() };
        let connection = Connection::opened(now, arrival, remotes, handshake);
        self.connections.insert(local, None);
        self.on_connected(local, connection.met());
        Ok((local, connection))
    }

    /// Answers a client's opening that came another way: the connection, to be fed what comes for it, and what to carry back. It sends nothing before
    /// the client has shown, from whatever address, that it has the answer, and is over if it does not do so in time. `client`: where the client has shown on that other way
    /// that it is (TCP's handshake does). Any other address gets no more than three times what came from it, until it has answered a challenge.
    pub fn answer(
        &mut self,
        now: Time,
        opening: &[u8],
        client: Option<IpAddr>,
    ) -> Result<(ConnectionId, Connection, Vec<u8>), AnswerError> {
        let local = self.new_id();
        let seed = self.rng.next_seed();
        let server = self.server.as_ref().ok_or(AnswerError::NotListening)?;
        let params = Connection::params(&server.config.transport, self.reset_key.token(local));
        let timeout = server.config.admission.deadline;
        let params = ServerParams { timeout, ..ServerParams::new(server.tls.clone(), params, local.0) };
        let (handshake, answer) = Handshake::carried(now, params, opening)?;
        let arrival = Arrival { side: Side::Server, local, remote: None, config: server.config.transport.clone(), seed };
        self.connections.insert(local, None);
        let mut connection = Connection::new(now, arrival, handshake);
        if let Some(client) = client {
            connection.vouch_for(client);
        }
        Ok((local, connection, answer))
    }

    /// A datagram that is not a data-phase packet of a connection known to the caller.
    pub fn handle(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) -> Handled {
        if is_handshake(datagram) {
            return self.handle_handshake(now, from, datagram);
        }
        if let Some((_, token)) = parse_reset(datagram) {
            return self.tokens.find(&token).map_or(Handled::Ignore, Handled::Connection);
        }
        match data_destination(datagram) {
            Some(id) if self.connections.contains_key(&id) => Handled::Connection(id),
            // Shorter than what it answers, so two endpoints cannot go on resetting each other.
            Some(id) if datagram.len() > RESET_BYTES && self.reset_limit.allow(now, from) => {
                Handled::Respond(encode_reset(id, &self.reset_key.token(id)).to_vec())
            }
            _ => Handled::Ignore,
        }
    }

    fn handle_handshake(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) -> Handled {
        if let Some(id) = crate::handshake::wire::Invariant::decode(datagram).map(|it| ConnectionId(it.destination_cid))
            && id != ConnectionId(0)
        {
            return if self.connections.contains_key(&id) { Handled::Connection(id) } else { Handled::Ignore };
        }
        let Some(Server { given, .. }) = self.server.as_mut() else { return Handled::Ignore };
        let (attempts, invited) = (&self.attempts, &mut self.invited);
        let is_good = |initial: &ParsedInitial| {
            let (tokens, id) = match initial.proof {
                Proof::Return { id, .. } => (given, id),
                Proof::Invitation { id } => (invited, id),
                Proof::Address { .. } => return true,
            };
            attempts.contains_key(&(from, initial.attempt)) || tokens.as_mut().is_some_and(|tokens| tokens.spend(id))
        };
        match self.acceptor.handle(now, from, datagram, is_good) {
            Accept::Respond(answer) => Handled::Respond(answer),
            Accept::Ignore => Handled::Ignore,
            Accept::Begin(initial) => match self.attempts.get(&(from, initial.attempt)) {
                Some(&id) => Handled::Connection(id),
                None => self.begin(now, from, &initial, datagram),
            },
        }
    }

    fn begin(&mut self, now: Time, from: SocketAddr, initial: &ParsedInitial, datagram: &mut [u8]) -> Handled {
        let local = self.new_id();
        let seed = self.rng.next_seed();
        let Some(Server { config: ServerConfig { transport: granted, admission, .. }, tls, given }) = self.server.as_mut() else {
            return Handled::Ignore;
        };
        let is_confined = admission.by == AdmittedBy::Application;
        let config = if is_confined { confined(granted) } else { granted.clone() };
        let mut params = Connection::params(&config, self.reset_key.token(local));
        if is_confined {
            params.features |= feature::CONFINED;
        }
        if let Proof::Address { age: rtt } | Proof::Return { rtt, .. } = initial.proof {
            let token = |id| self.acceptor.cookies().let_return(now + RETURN_LIFETIME, id, rtt, from.ip());
            params.return_token = given.as_mut().map(|given| token(given.give()));
        }
        let params = ServerParams { timeout: admission.deadline, ..ServerParams::new(tls.clone(), params, local.0) };
        let Ok(handshake) = Handshake::server(now, params, initial) else {
            return Handled::Ignore;
        };
        let arrival = Arrival { side: Side::Server, local, remote: Some(from), config, seed };
        let mut connection = Connection::new(now, arrival, handshake);
        if is_confined {
            connection.confine(now + admission.deadline, granted);
        }
        let len = datagram.len();
        connection.handle_train(now, Origin::just_now(now, from), datagram, len);
        self.connections.insert(local, Some((from, initial.attempt)));
        self.attempts.insert((from, initial.attempt), local);
        // Whoever was invited is one too: others have seen its token pass.
        self.evicted = self.strangers.enter(from, local);
        Handled::New(local, Box::new(connection))
    }

    /// Who has to give its place to the connection that [`Self::handle`] has just begun: [`Connection::evict`] it.
    pub fn take_evicted(&mut self) -> Option<ConnectionId> {
        self.evicted.take()
    }

    /// The application has admitted a connection's client.
    pub fn on_admitted(&mut self, id: ConnectionId) {
        self.strangers.leave(id);
    }

    /// Clients that have not been admitted, at present.
    pub fn strangers(&self) -> usize {
        self.strangers.len()
    }

    /// A connection is established: its peer may reset it, and has told how to return.
    pub fn on_connected(&mut self, id: ConnectionId, met: Met) {
        if let Some(token) = met.reset_token {
            self.tokens.insert(&token, id);
        }
        if let Some((server, token)) = met.way_back {
            self.kept.keep(server, token);
        }
        if self.server.as_ref().is_some_and(|server| server.config.admission.by == AdmittedBy::Trust) {
            self.strangers.leave(id);
        }
    }

    /// A connection is over ([`crate::Event::Drained`]).
    pub fn forget(&mut self, id: ConnectionId) {
        if let Some(Some(attempt)) = self.connections.remove(&id) {
            self.attempts.remove(&attempt);
        }
        self.tokens.forget(id);
        self.strangers.leave(id);
    }

    /// A number that names no connection: random, so that nobody off the path can guess it.
    fn new_id(&mut self) -> ConnectionId {
        loop {
            let id = ConnectionId(self.rng.next_u64() as u32);
            if id.0 != 0 && !self.connections.contains_key(&id) {
                return id;
            }
        }
    }
}

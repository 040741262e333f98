//! What the clones of an endpoint and its connections hold together: it starts the threads.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use haul_carrier::Carrier;
use haul_proto::{ClientConfig, Connection, ConnectionId, Opening, PATHS_MAX, ServerConfig, TransportConfig};
use haul_udp::{Options, Socket};
use haul_units::Bytes;

use super::link::{Link, Sockets};
use super::ports::Ports;
use super::shared::Shared;
use super::ways::Ways;
use super::{announcing, following, inward, porter, receiving, sending, watching};
use crate::clock;
use crate::error::{BindError, ConnectError};

/// An endpoint; dropped, it ends with the last of its connections.
pub(crate) struct Handle {
    shared: Arc<Shared>,
    /// Where the sockets of further paths are bound, and how.
    further: Ports,
    options: Options,
}

impl Handle {
    /// Binds the socket and starts the receive thread.
    pub(crate) fn start(ports: &Ports, options: Options, server: Option<ServerConfig>) -> Result<Self, BindError> {
        let shared = Arc::new(Shared::new(ports.bind(options)?, server)?);
        receiving::spawn(shared.clone(), shared.socket.clone()).map_err(BindError::Thread)?;
        watching::spawn(&shared).map_err(BindError::Thread)?;
        if shared.accepts() {
            porter::spawn(shared.clone()).map_err(BindError::Thread)?;
        }
        if let Some(warning) = shared.socket.buffers().warning() {
            tracing::debug!("{warning}");
        }
        Ok(Self { shared, further: ports.further(), options })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// A carrier, and the address that it has here.
    pub(crate) fn carry(&self, peer: Option<SocketAddr>) -> (SocketAddr, Carrier) {
        inward::carry(&self.shared, peer)
    }

    /// Starts a connection; its handshake goes on in the threads.
    pub(crate) fn connect(&self, to: SocketAddr, mut config: ClientConfig) -> Result<Arc<Link>, ConnectError> {
        let sockets = self.prepare(&mut vec![to], &mut config.transport)?;
        config.transport.expected_rtt = config.transport.expected_rtt.or_else(|| self.shared.familiar().rtt(to.ip()));
        let (id, connection) = self.shared.demultiplexer().connect(clock::now(), to, config)?;
        self.run(id, connection, sockets).map_err(ConnectError::Thread)
    }

    /// Starts a connection that has been opened another way.
    pub(crate) fn connect_opened(&self, to: &[SocketAddr], mut opening: Opening) -> Result<Arc<Link>, ConnectError> {
        let mut to = to.to_vec();
        let sockets = self.prepare(&mut to, &mut opening.config_mut().transport)?;
        let (id, connection) = self.shared.demultiplexer().connect_opened(clock::now(), &to, opening)?;
        self.run(id, connection, sockets).map_err(ConnectError::Thread)
    }

    /// What a client's connection needs here: sockets for its further paths, and someone to take what comes.
    fn prepare(&self, to: &mut Vec<SocketAddr>, transport: &mut TransportConfig) -> Result<Sockets, ConnectError> {
        if let Some(&addr) = to.iter().find(|addr| addr.port() == 0 || addr.ip().is_unspecified()) {
            return Err(ConnectError::InvalidAddress { addr });
        }
        if !(1..=PATHS_MAX).contains(&transport.paths) {
            return Err(ConnectError::Paths { asked: transport.paths });
        }
        if !transport.via.is_empty() {
            // The further ones are opened as interfaces come.
            transport.paths = 1;
            return Ways::open(&transport.via, to, self.options).map(Sockets::Ways);
        }
        let further = self.further_sockets(transport.paths - 1);
        transport.paths = 1 + further.len() as u8;
        Ok(Sockets::Ports(further))
    }

    /// Sockets for a client's further paths. Where the system has no more, there are fewer paths.
    fn further_sockets(&self, wanted: u8) -> Vec<Arc<Socket>> {
        let bind = |_| match self.further.bind(self.options) {
            Ok(socket) => Some(Arc::new(socket)),
            Err(error) => {
                tracing::warn!(%error, "no socket for another path");
                None
            }
        };
        (0..wanted).map_while(bind).collect()
    }

    /// Gives a connection that we begin its threads.
    fn run(&self, id: ConnectionId, connection: Connection, sockets: Sockets) -> io::Result<Arc<Link>> {
        let link = self.shared.link_for(id, connection, sockets.clone());
        link.set_has_thread(true);
        self.shared.add(link.clone());
        let receivers = match sockets {
            Sockets::Ports(further) => further.into_iter().try_for_each(|socket| receiving::spawn(self.shared.clone(), socket)),
            Sockets::Ways(ways) => following::spawn(&self.shared, &link, &ways),
        };
        if let Err(error) = receivers.and_then(|()| sending::spawn(self.shared.clone(), link.clone())) {
            link.stop_further_sockets();
            self.shared.remove(id);
            return Err(error);
        }
        Ok(link)
    }

    /// The application admits the client of an incoming connection: it gets a send thread.
    pub(crate) fn admit(&self, link: &Arc<Link>, memory: Option<Bytes>) {
        let admitted = link.act(|state, _| {
            let is_stranger = !state.connection.is_admitted();
            state.connection.admit(memory);
            if is_stranger {
                state.queues.set_memory(state.connection.memory());
                link.set_has_thread(true);
            }
            is_stranger
        });
        if !admitted {
            return;
        }
        announcing::announce(&self.shared, link);
        if let Err(error) = sending::spawn(self.shared.clone(), link.clone()) {
            tracing::warn!(%error, "no thread for a connection");
            link.set_has_thread(false);
            self.shared.calls.call(link.id);
        }
        self.shared.demultiplexer().on_admitted(link.id);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

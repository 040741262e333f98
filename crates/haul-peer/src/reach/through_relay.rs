//! A pair of a relay's, asked for on a connection with the daemon that is one.

use std::error::Error;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use haul::{Endpoint, TransportConfig};
use thiserror::Error;

use super::meeting::{Pair, RelayWay};
use super::{Connected, Connector, Host, ReachError};
use crate::carriage::Carriage;
use crate::greeting::{Refusal, from_line, to_line};
use crate::operand::DaemonHost;
use crate::relay::{PROTOCOL, RelayAsk, RelayReply};
use crate::ssh::{Family, SshOptions};
use crate::tell::Nobody;

/// How long a relay may take to grant a pair, its name to be resolved included.
const PATIENCE: Duration = Duration::from_secs(8);

/// Why a relay has granted no pair.
#[derive(Debug, Error)]
enum NotGranted {
    /// There is no connection with it.
    #[error(transparent)]
    Unreached(#[from] ReachError),
    /// It does not want to.
    #[error("it refuses: {0}")]
    Refused(Refusal),
    /// It has a protocol of its own, or a later one.
    #[error("it does not relay: its version of haul knows no relay")]
    NoRelay,
    /// It says nothing for too long.
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Silent,
    /// What it says makes no sense.
    #[error("its answer cannot be understood")]
    Unclear,
    /// The connection broke.
    #[error("{0}")]
    Broken(#[source] io::Error),
}

impl Connector {
    /// The way by the relay that the user has named.
    pub(super) fn by_relay(&self, endpoint: &Endpoint) -> Option<RelayWay> {
        let by = self.ssh.relay.clone()?;
        let family = if endpoint.local_addr().is_ipv4() { Family::Ipv4 } else { self.ssh.family };
        let connector = Self {
            service: PROTOCOL,
            ssh: SshOptions { family, carriage: Carriage::Udp, quiet: true, ..SshOptions::default() },
            udp_port: None,
            transport: TransportConfig::default(),
            data: None,
            tells_outages: false,
            tell: Arc::new(Nobody),
            ..self.clone()
        };
        let to = by.clone();
        let ask = move || connector.pair_of(&to).map_err(|error| -> Box<dyn Error + Send + Sync> { error.into() });
        Some(RelayWay::new(by, endpoint.aside(haul_relay::MARK), Box::new(ask)))
    }

    fn pair_of(&self, relay: &DaemonHost) -> Result<Pair, NotGranted> {
        let (tell, told) = mpsc::channel();
        let (connector, relay) = (self.clone(), relay.clone());
        thread::spawn(move || {
            let _ = tell.send(connector.connect(&Host::Daemon(relay)).map_err(NotGranted::from).and_then(ask));
        });
        told.recv_timeout(PATIENCE).map_err(|_| NotGranted::Silent)?
    }
}

fn ask(connected: Connected) -> Result<Pair, NotGranted> {
    let asked = || -> io::Result<_> {
        let (mut send, mut receive) = connected.connection.open_bi()?;
        send.write_all(&to_line(&RelayAsk::new()))?;
        Ok((from_line(&mut receive)?, send, receive))
    };
    let (reply, send, receive) = asked().map_err(|error| match connected.cause() {
        Some(cause) => NotGranted::Unreached(cause),
        None if connected.connection.end().is_some_and(|end| end.is_other_protocol()) => NotGranted::NoRelay,
        None if error.kind() == io::ErrorKind::InvalidData => NotGranted::Unclear,
        None => NotGranted::Broken(error),
    })?;
    let grant = match reply {
        RelayReply::Granted(grant) => grant,
        RelayReply::Refused(refusal) => return Err(NotGranted::Refused(refusal)),
    };
    let (ours, theirs) = grant.tickets().ok_or(NotGranted::Unclear)?;
    let relay = SocketAddr::new(connected.connection.remote_addr().ip(), grant.port);
    // The pair is there as long as the connection.
    Ok(Pair { relay, ours, theirs, kept: Box::new((connected, send, receive)) })
}

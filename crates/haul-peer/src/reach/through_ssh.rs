//! To a host behind ssh.
//!
//! ssh logs in and starts `haul remote`; its two lines carry the handshake too, so that the connection is there when the far side's line is, and what is written leaves at once. Whether
//! UDP comes through is known a round trip later: if nothing is heard, whoever uses the connection sees it end ([`Connected::explained`]). Where
//! the line brings no answer to the handshake, it is done over UDP, in a race of the addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use data_encoding::BASE64;
use haul::{ClientConfig, Connection, ControllerChoice, Endpoint, Fingerprint, Identity, Opening, TransportConfig};

use super::lifeline::{KEEP_ALIVE, Routes};
use super::{Connected, Connector, Judge, Listener, Lost, ReachError, race, unanswered};
use crate::memory::SavedPath;
use crate::operand::SshHost;
use crate::ports::PortRange;
use crate::ssh::{BOOTSTRAP, ClientHello, RemoteHello, SshCommand, SshError, SshSession, candidates, resolve, ssh_names};

impl Connector {
    pub(super) fn through_ssh(&self, host: &SshHost) -> Result<Connected, ReachError> {
        let command = SshCommand::new(&self.ssh, host);
        let identity = Identity::generate();
        let client = identity.public_key().fingerprint();
        // Known when ssh has brought it.
        let server = Arc::new(OnceLock::new());
        let judge = Judge::new({
            let server = Arc::clone(&server);
            move |key| server.get() == Some(&key)
        });
        let mut config = ClientConfig { identity: Some(identity), ..self.config(&judge) };
        config.transport.keep_alive = Some(KEEP_ALIVE);
        let opening = Opening::new(config.clone()).map_err(|error| ReachError::Opening { source: error.into() })?;
        // While ssh logs in.
        let resolved = thread::spawn({
            let (command, given, data) = (command.clone(), host.host.to_string_lossy().into_owned(), self.data.clone());
            move || data.map_or_else(|| resolve(&ssh_names(&command, &given)), |data| resolve(&data))
        });
        let (ssh, remote) = self.log_in(&command, host, &self.hello(client, &opening))?;
        let unclear = || SshError::Unclear { host: host.to_string() };
        let key: Fingerprint = remote.server.parse().map_err(|_| unclear())?;
        server.get_or_init(|| key);
        let admission = BASE64.decode(remote.token.as_bytes()).map_err(|_| unclear())?;
        let opening = answered(opening, &remote, &ssh);
        let resolved = resolved.join().unwrap_or_default();
        let reported = if self.data.is_none() { &remote.addresses[..] } else { &[] };
        let addresses = candidates(&resolved, reported, remote.port, self.family());
        let what = format!("{}:{}", host.host.display(), remote.port);
        let listener = Listener::FarSide { ports_named: self.udp_port.is_some() };
        let no_answer = unanswered(what.clone(), &addresses, listener);
        let is_carried = opening.is_some();
        let met = match opening {
            Some(opening) => meet(&addresses, self.bind, opening),
            None => race(&addresses, self.bind, &ClientConfig { admission: Some(admission), ..config }, &self.cancel),
        };
        let (connection, endpoint) = met.map_err(|lost| match lost {
            _ if judge.refused().is_some() => ReachError::SomebodyElse { host: what },
            Lost::NoAddress => ReachError::NoAddress { host: host.to_string() },
            Lost::NoAnswer => ReachError::NoAnswer(no_answer.clone()),
            Lost::Interrupted => ReachError::Interrupted,
            Lost::Other(error) => ReachError::Connect { host: what, source: error.into() },
        })?;
        tracing::debug!(%host, carried = is_carried, "connected");
        let mut advice: Vec<String> = endpoint.buffer_warning().into_iter().collect();
        advice.extend(remote.advice.map(|advice| format!("on {host}: {advice}")));
        let no_answer = is_carried.then_some(no_answer);
        Ok(Connected {
            connection,
            advice,
            endpoint,
            outages: None,
            ssh: Some(Arc::new(Mutex::new(ssh))),
            routes: Routes::to(&addresses),
            no_answer,
            key_refused: None,
        })
    }

    /// Starts ssh; once more where this host got another address meanwhile, as one does that changes the network.
    fn log_in(&self, command: &SshCommand, host: &SshHost, hello: &ClientHello) -> Result<(SshSession, RemoteHello), SshError> {
        let start = || SshSession::start(command, &host.to_string(), hello, &*self.tell, &self.cancel);
        match start() {
            Err(SshError::CutOff { .. }) => {
                tracing::debug!(%host, "this host's address has changed: ssh is started again");
                start()
            }
            started => started,
        }
    }

    fn hello(&self, client: Fingerprint, opening: &Opening) -> ClientHello {
        let (controller, window) = (self.transport.controller, self.transport.stream_window);
        ClientHello {
            bootstrap: BOOTSTRAP,
            version: env!("CARGO_PKG_VERSION").into(),
            client: client.to_string().into(),
            family: self.family(),
            udp_ports: self.udp_port.map(PortRange::ends),
            controller: (controller != ControllerChoice::default()).then(|| controller.to_string().into()),
            stream_window: (window != TransportConfig::default().stream_window).then_some(window.as_u64()),
            dead_after_s: (self.transport.idle_timeout != TransportConfig::default().idle_timeout)
                .then(|| u32::try_from(self.transport.idle_timeout.as_secs()).unwrap_or(u32::MAX)),
            filler: self.transport.filler,
            remembered: self.transport.remembered.map(SavedPath::from),
            opening: Some(BASE64.encode(&opening.bytes())),
        }
    }
}

/// The opening with the far side's answer, if that brought a good one.
fn answered(mut opening: Opening, remote: &RemoteHello, ssh: &SshSession) -> Option<Opening> {
    let answer = BASE64.decode(remote.answer.as_ref()?.as_bytes()).ok()?;
    let answered = opening.on_answer(&answer, ssh.rtt());
    answered.inspect_err(|error| tracing::debug!(%error, "the handshake goes over UDP")).ok()?;
    Some(opening)
}

/// Goes on over UDP with a connection that is opened already.
fn meet(addresses: &[SocketAddr], bind: Option<IpAddr>, opening: Opening) -> Result<(Connection, Endpoint), Lost> {
    let first = addresses.first().ok_or(Lost::NoAddress)?.ip();
    // One socket for both families, where the machine has both.
    let both = addresses.iter().any(SocketAddr::is_ipv6).then_some(Ipv6Addr::UNSPECIFIED.into());
    let own = if first.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let bound = |ip: IpAddr| Endpoint::bind(SocketAddr::new(ip, 0)).ok();
    let endpoint = match bind {
        Some(ip) => bound(ip),
        None => both.and_then(bound).or_else(|| bound(own)),
    };
    // A machine without this family cannot bind: as far from an answer as a silent peer.
    let endpoint = endpoint.ok_or(Lost::NoAnswer)?;
    let local = endpoint.local_addr().ip();
    let reached = |address: &&SocketAddr| local == IpAddr::from(Ipv6Addr::UNSPECIFIED) || local.is_ipv4() == address.is_ipv4();
    let addresses: Vec<_> = addresses.iter().filter(reached).copied().collect();
    if addresses.is_empty() {
        return Err(Lost::NoAnswer);
    }
    let connection = endpoint.connect_opened(&addresses, opening).map_err(Lost::Other)?;
    Ok((connection, endpoint))
}

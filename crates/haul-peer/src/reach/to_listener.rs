//! To a listener that has a port of its own: over UDP, or over TCP on the port of the same number.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use haul::{ClientConfig, ConnectError, Connection, Endpoint};
use haul_units::Cancel;

use super::around::TcpWay;
use super::watched::Watched;
use super::ways::{SILENT_AT_REST, Ways};
use super::{Connector, Lost, NO_ANSWER, race};
use crate::carriage::{Carriage, Carrying, GoesOver, NoUdp};
use crate::operand::DaemonHost;
use crate::ports::PortRange;
use crate::tell::{Nobody, Tell};

/// A connection, and who looks after it.
pub(super) type Met = (Connection, Endpoint, Option<Watched>);

/// Without an answer over UDP for so long, TCP is tried beside it.
const BEFORE_TCP: Duration = Duration::from_millis(1500);

impl Connector {
    /// A connection with who listens at one of these addresses.
    pub(super) fn to_listener(&self, host: &DaemonHost, addresses: &[SocketAddr], config: &ClientConfig) -> Result<Met, Lost> {
        match self.ssh.carriage {
            _ if addresses.is_empty() => Err(Lost::NoAddress),
            Carriage::Udp => race(addresses, self.bind, config, &self.cancel).map(unwatched),
            Carriage::Ssh => {
                Err(Lost::NoWay(std::io::Error::new(std::io::ErrorKind::Unsupported, "there is no ssh to a listener")))
            }
            Carriage::Tcp => {
                let (endpoint, way) = self.way_over_tcp(addresses)?;
                way.open(NO_ANSWER).map_err(Lost::NoWay)?;
                self.over_tcp(host, endpoint, way, config)
            }
            Carriage::Auto => self.over_either(host, addresses, config),
        }
    }

    fn over_either(&self, host: &DaemonHost, addresses: &[SocketAddr], config: &ClientConfig) -> Result<Met, Lost> {
        let Ok((endpoint, way)) = self.way_over_tcp(addresses) else {
            return race(addresses, self.bind, config, &self.cancel).map(unwatched);
        };
        // Ends the wait for UDP as soon as a lane is open.
        let enough = Cancel::new();
        let (also, over) = (enough.clone(), Cancel::new());
        let _hook = self.cancel.on_cancel(move || also.cancel());
        let opening = thread::spawn({
            let (enough, over) = (enough.clone(), over.clone());
            move || {
                thread::park_timeout(BEFORE_TCP);
                if over.is_cancelled() {
                    return None;
                }
                way.open(NO_ANSWER).ok()?;
                enough.cancel();
                Some(way)
            }
        });
        let raced = race(addresses, self.bind, config, &enough);
        let is_silent = matches!(raced, Err(Lost::NoAnswer | Lost::Interrupted)) && !self.cancel.is_cancelled();
        over.cancel();
        opening.thread().unpark();
        if !is_silent {
            let (connection, endpoint) = raced?;
            // For when UDP falls silent in the middle.
            let way = TcpWay::to(&endpoint, addresses.to_vec(), self.bind);
            let watched = self.look_after(host, &connection, addresses, way, Carrying::Udp);
            return Ok((connection, endpoint, Some(watched)));
        }
        let Some(way) = opening.join().unwrap_or_default() else { return Err(Lost::NoAnswer) };
        let over =
            GoesOver { host: host.to_string(), to: Carrying::Tcp, why: NoUdp::Silent, ports: only(host.port), relay: None };
        let connected = self.over_tcp(host, endpoint, way, config)?;
        self.told().goes_over(&over);
        Ok(connected)
    }

    fn over_tcp(&self, host: &DaemonHost, endpoint: Endpoint, way: TcpWay, config: &ClientConfig) -> Result<Met, Lost> {
        let connection = endpoint.connect(way.at, config.clone()).map_err(|error| match error {
            ConnectError::TimedOut { .. } => Lost::NoAnswer,
            error => Lost::Other(error),
        })?;
        let addresses = way.to.clone();
        let watched = self.look_after(host, &connection, &addresses, way, Carrying::Tcp);
        Ok((connection, endpoint, Some(watched)))
    }

    fn look_after(
        &self,
        host: &DaemonHost,
        connection: &Connection,
        udp: &[SocketAddr],
        way: TcpWay,
        begins_over: Carrying,
    ) -> Watched {
        let ways = Ways {
            connection: connection.clone(),
            ssh: Weak::new(),
            udp: if self.ssh.carriage == Carriage::Auto { udp.to_vec() } else { Vec::new() },
            tcp: Some(way),
            channel: None,
            logins: None,
            relay: None,
            host: host.to_string(),
            ports: only(host.port),
            rtt: None,
            tell: self.told(),
            cancel: self.cancel.clone(),
            silent: SILENT_AT_REST,
        };
        ways.watch(begins_over)
    }

    /// Who hears what carries the connection.
    pub(super) fn told(&self) -> Arc<dyn Tell> {
        if self.ssh.quiet { Arc::new(Nobody) } else { Arc::clone(&self.tell) }
    }

    fn way_over_tcp(&self, addresses: &[SocketAddr]) -> Result<(Endpoint, TcpWay), Lost> {
        let any: IpAddr =
            if addresses.iter().all(SocketAddr::is_ipv6) { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let endpoint = Endpoint::bind(SocketAddr::new(self.bind.unwrap_or(any), 0)).map_err(|_| Lost::NoAnswer)?;
        let way = TcpWay::to(&endpoint, addresses.to_vec(), self.bind);
        Ok((endpoint, way))
    }
}

fn unwatched((connection, endpoint): (Connection, Endpoint)) -> Met {
    (connection, endpoint, None)
}

fn only(port: u16) -> PortRange {
    PortRange::new(port, port).unwrap_or(PortRange::ALL)
}

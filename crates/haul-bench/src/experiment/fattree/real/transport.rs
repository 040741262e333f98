//! Flows of haul's transport, in this process: an endpoint for each, as a program would have it.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use haul::{BindError, ClientConfig, Connection, Endpoint, Identity, PeerTrust, ServerConfig, TransportConfig};
use haul_cc::ControllerChoice;
use haul_units::Bytes;

use super::ledger::{Ledger, send};
use super::way::Sent;

/// An endpoint of a host that takes flows; its threads are where the calling thread is.
pub fn listen(address: Ipv4Addr, port: u16) -> Result<Endpoint, BindError> {
    let config = ServerConfig {
        transport: transport(ControllerChoice::Fair, 1),
        ..ServerConfig::new(Identity::generate(), PeerTrust::Anyone)
    };
    Endpoint::listen(SocketAddrV4::new(address, port).into(), config)
}

/// The next connection; none when nobody receives any more, and all connections of the endpoint end with that.
pub fn accept(endpoint: &Endpoint, ledger: &Ledger) -> Option<Connection> {
    while !ledger.is_closed() {
        match endpoint.accept_timeout(GLANCE) {
            Ok(None) => {}
            Ok(Some(connection)) => return Some(connection),
            Err(_) => break,
        }
    }
    endpoint.close();
    None
}

/// Reads the one stream of a connection.
pub fn receive(connection: &Connection, ledger: &Ledger) -> io::Result<()> {
    let stream = connection.accept_uni()?;
    ledger.receive(stream)
}

/// Sends a flow from the host in whose namespace the calling thread is, and stays until it has arrived or the run is over.
pub fn flow(
    (from, to): (Ipv4Addr, SocketAddrV4),
    (mode, paths): (ControllerChoice, u8),
    flow: usize,
    size: Option<Bytes>,
    ledger: &Ledger,
) -> io::Result<Sent> {
    let endpoint = Endpoint::bind(SocketAddrV4::new(from, 0).into()).map_err(io::Error::other)?;
    let trust = ClientConfig::new(PeerTrust::Anyone);
    let config = ClientConfig { transport: transport(mode, paths), connect_timeout: PATIENCE, ..trust };
    let connection = endpoint.connect(to.into(), config).map_err(io::Error::other)?;
    let mut stream = connection.open_uni()?;
    send(flow, size, ledger, |piece| stream.write(piece))?;
    if size.is_some() {
        stream.finish()?;
        ledger.wait(flow);
    }
    let stats = connection.stats();
    let by_subflow = connection.paths().iter().map(|path| path.sent).collect();
    connection.close(0, "over");
    Ok(Sent { by_subflow, resent_pkts: stats.lost_pkts, timeouts: stats.probe_timeouts })
}

fn transport(controller: ControllerChoice, paths: u8) -> TransportConfig {
    // Nothing larger passes here: it need not be tried.
    TransportConfig { controller, paths, max_packet: ETHERNET, memory: MEMORY, ..TransportConfig::default() }
}

/// UDP payload of a packet of 1500 bytes.
const ETHERNET: u16 = 1472;
/// Far more than such a path holds.
const MEMORY: Bytes = Bytes::mib(16);
/// A handshake whose packets are lost, and that waits for full buffers.
const PATIENCE: Duration = Duration::from_secs(20);
const GLANCE: Duration = Duration::from_millis(100);

//! TCP ports to listen on.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, lookup_host};

use super::error::TcpListenError;
use super::forward::{Bind, Listen};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// What a port is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Programs connect to it.
    Plain,
    /// The system hands over what goes to other hosts.
    Transparent,
}

/// Listens. On more than one address where that takes more than one socket; all have the same port.
pub async fn open(listen: &Listen, kind: Kind) -> Result<Vec<TcpListener>, TcpListenError> {
    let (mut listeners, mut port, mut failed) = (Vec::new(), listen.port, None);
    for address in addresses(&listen.bind).await? {
        match bind(SocketAddr::new(address, port), kind) {
            Ok(listener) => {
                // The first one chooses where any will do.
                port = listener.local_addr().map_or(port, |address| address.port());
                listeners.push(listener);
            }
            // A machine without one of the families listens on the other.
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(source) if listeners.is_empty() || is_taken(&source) => {
            Err(TcpListenError::Bind { listen: listen.clone(), transparent: kind == Kind::Transparent, source })
        }
        _ => Ok(listeners),
    }
}

async fn addresses(bind: &Bind) -> Result<Vec<IpAddr>, TcpListenError> {
    match bind {
        Bind::Unsaid | Bind::Loopback => Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]),
        Bind::All => Ok(vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()]),
        Bind::On(name) => {
            let found = lookup_host((name.as_str(), 0)).await;
            let found = found.map_err(|source| TcpListenError::Name { name: name.to_string(), source })?;
            Ok(found.map(|address| address.ip()).collect())
        }
    }
}

fn bind(address: SocketAddr, kind: Kind) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    // On Windows that would let another program have the port as well, and nothing has to be waited out there.
    if cfg!(unix) {
        socket.set_reuse_address(true)?;
    }
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if kind == Kind::Transparent {
        make_transparent(&socket, address)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Lets the socket take connections to addresses that are not this host's.
#[cfg(target_os = "linux")]
fn make_transparent(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    if address.is_ipv4() { socket.set_ip_transparent_v4(true) } else { socket.set_ip_transparent_v6(true) }
}

#[cfg(not(target_os = "linux"))]
fn make_transparent(_: &Socket, _: SocketAddr) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

//! TCP ports to listen on.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, lookup_host};

use super::forward::{Bind, Listen};
use crate::exit::Failure;

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
pub async fn open(listen: &Listen, kind: Kind) -> Result<Vec<TcpListener>, Failure> {
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
        Some(error) if listeners.is_empty() || is_taken(&error) => Err(refused(listen, kind, &error)),
        _ => Ok(listeners),
    }
}

async fn addresses(bind: &Bind) -> Result<Vec<IpAddr>, Failure> {
    match bind {
        Bind::Unsaid | Bind::Loopback => Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]),
        Bind::All => Ok(vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()]),
        Bind::On(name) => {
            let found = lookup_host((name.as_str(), 0)).await.map_err(|error| Failure::new(format!("{name}: {error}")))?;
            Ok(found.map(|address| address.ip()).collect())
        }
    }
}

fn bind(address: SocketAddr, kind: Kind) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
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
    if address.is_ipv4() {
        return socket.set_ip_transparent_v4(true);
    }
    use std::os::fd::AsRawFd as _;
    let on: libc::c_int = 1;
    // SAFETY: the option takes an int, and both pointer and length are those of one.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_IPV6,
            libc::IPV6_TRANSPARENT,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
fn make_transparent(_: &Socket, _: SocketAddr) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

fn refused(listen: &Listen, kind: Kind, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot listen on {listen}: {error}"));
    match error.kind() {
        io::ErrorKind::AddrInUse => failure.hint("another program has the port: end it, or name another port"),
        io::ErrorKind::PermissionDenied if kind == Kind::Transparent => {
            failure.hint("a transparent proxy needs root, or the capability CAP_NET_ADMIN or CAP_NET_RAW")
        }
        io::ErrorKind::PermissionDenied => failure.hint("ports below 1024 are for root: name a higher one"),
        io::ErrorKind::AddrNotAvailable => failure.hint("this host does not have the address"),
        _ => failure,
    }
}

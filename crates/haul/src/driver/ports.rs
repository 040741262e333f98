//! Where an endpoint's sockets are bound.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use haul_udp::{Options, Socket};

use crate::error::BindError;

/// Where an endpoint is bound.
pub(crate) enum Ports {
    /// This address.
    One(SocketAddr),
    /// The first free port of a range.
    Range(IpAddr, RangeInclusive<u16>),
}

impl Ports {
    /// Where further sockets of the same endpoint go: to any port of the same address, or to another one of the range.
    pub(super) fn further(&self) -> Self {
        match self {
            Self::One(addr) => Self::One(SocketAddr::new(addr.ip(), 0)),
            Self::Range(ip, range) => Self::Range(*ip, range.clone()),
        }
    }

    /// A socket there.
    pub(super) fn bind(&self, options: Options) -> Result<Socket, BindError> {
        match self {
            Self::One(addr) => Socket::bind(*addr, options).map_err(|source| BindError::Address { addr: *addr, source }),
            Self::Range(ip, range) => {
                for port in range.clone() {
                    match Socket::bind(SocketAddr::new(*ip, port), options) {
                        Ok(socket) => return Ok(socket),
                        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                        Err(source) => return Err(BindError::Address { addr: SocketAddr::new(*ip, port), source }),
                    }
                }
                Err(BindError::NoFreePort { ip: *ip, first: *range.start(), last: *range.end() })
            }
        }
    }
}

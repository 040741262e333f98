//! What a connection that was made through ssh owes to ssh once it is there: nothing, as long as its peer is heard.
//!
//! ssh's own connection dies with the address of this host (Wi-Fi to cable), or at a firewall that forgets it; haul's follows. So the end of ssh alone ends nothing. But
//! where the far side's process was killed, ssh ends too and nobody is heard any more: then there is nothing to wait for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haul::Connection;

use crate::ssh::SshSession;

/// Over ssh a peer that rests is heard this often: where ssh is gone, whether the other process is there is seen by nothing else, and whoever gives a killed command again should not wait for long.
pub const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// A peer that is there is heard in this time: of three keep-alives in a row one arrives, or the one after an address has changed, and a long path takes a second.
const SILENT: Duration = Duration::from_secs(4);

/// Whether the peer of a connection has been heard of late.
pub fn is_heard(connection: &Connection) -> bool {
    connection.end().is_none() && !is_silent(connection)
}

/// Whether the peer of a connection, which may be over, was last heard so long ago that it may be gone.
pub(super) fn is_silent(connection: &Connection) -> bool {
    connection.stats().silence >= SILENT
}

/// Tells whether there is still somebody to wait for.
pub struct Lifeline {
    pub(super) connection: Connection,
    pub(super) ssh: Option<Arc<Mutex<SshSession>>>,
}

impl Lifeline {
    /// False once ssh has ended, and nothing has been heard since for so long that nobody is there.
    pub fn holds(&self) -> bool {
        let Some(ssh) = &self.ssh else { return true };
        let ended = ssh.lock().unwrap_or_else(PoisonError::into_inner).ended_for();
        ended.is_none_or(|ended| ended < SILENT) || is_heard(&self.connection)
    }

    /// Whether the connection was made through ssh, and ssh has ended: a sign that nobody is there, and no proof.
    pub fn ssh_has_ended(&self) -> bool {
        self.ssh.as_ref().is_some_and(|ssh| ssh.lock().unwrap_or_else(PoisonError::into_inner).ended_for().is_some())
    }
}

/// By which addresses of this host the peer's are reached.
#[derive(Debug, Default)]
pub(super) struct Routes(Vec<(IpAddr, IpAddr)>);

impl Routes {
    pub(super) fn to(peers: &[SocketAddr]) -> Self {
        Self(peers.iter().filter_map(|peer| Some((peer.ip(), own_address(*peer)?))).collect())
    }

    /// Whether this host has no longer the address by which it reached `peer`: whatever TCP connections it had there are dead, and do not know it yet.
    pub(super) fn has_changed(&self, peer: SocketAddr) -> bool {
        let before = self.0.iter().find(|(to, _)| *to == peer.ip()).map(|(_, own)| *own);
        before.is_some_and(|before| own_address(peer) != Some(before))
    }
}

/// The address from which this host sends to another one; nothing is sent.
pub fn own_address(to: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = if to.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.connect(to).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_that_stays_has_not_changed() {
        let peer: SocketAddr = "127.0.0.1:9".parse().expect("an address");
        let routes = Routes::to(&[peer]);
        assert!(!routes.has_changed(peer));
        assert!(!routes.has_changed("127.0.0.2:9".parse().expect("an address")), "never looked at");
        assert!(Routes(vec![(peer.ip(), "192.0.2.1".parse().expect("an address"))]).has_changed(peer));
    }
}

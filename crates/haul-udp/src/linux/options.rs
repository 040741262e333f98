//! What a socket is asked to do and to tell.

use std::io;
use std::os::fd::AsRawFd;

use libc::{c_int, c_void};

use crate::system::{Options, System};

impl System {
    pub(crate) fn set_system_options(&self, options: Options) -> io::Result<()> {
        self.set_ipv4(libc::IP_RECVTOS, 1)?;
        self.set_ipv4(libc::IP_PKTINFO, 1)?;
        if self.ipv6 {
            self.set(libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
            self.set(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
        }
        // No fragments, and no kernel opinion about the path MTU: the transport probes for itself (RFC 8899).
        self.set_mtu_discovery(libc::IP_PMTUDISC_PROBE, libc::IPV6_PMTUDISC_PROBE)?;
        if options.receive_offload
            && let Err(error) = self.set(libc::SOL_UDP, libc::UDP_GRO, 1)
        {
            tracing::debug!(%error, "no receive offload");
        }
        // Who takes trains late, because it sleeps or because others have the processors, still knows when they came.
        if let Err(error) = self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1) {
            tracing::debug!(%error, "no times of arrival");
        }
        Ok(())
    }

    pub(crate) fn allow_fragmentation(&self) -> io::Result<()> {
        self.set_mtu_discovery(libc::IP_PMTUDISC_WANT, libc::IPV6_PMTUDISC_WANT)
    }

    fn set_mtu_discovery(&self, ipv4: c_int, ipv6: c_int) -> io::Result<()> {
        self.set_ipv4(libc::IP_MTU_DISCOVER, ipv4)?;
        if self.ipv6 { self.set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, ipv6) } else { Ok(()) }
    }

    /// DEVIATION: an IPv6 socket takes the IPv4 options for its IPv4-mapped peers; where IPv4 is off they may be refused.
    fn set_ipv4(&self, option: c_int, value: c_int) -> io::Result<()> {
        match self.set(libc::IPPROTO_IP, option, value) {
            Err(_) if self.ipv6 => Ok(()),
            result => result,
        }
    }

    fn set(&self, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
        set_option(&self.inner, level, option, value)
    }

    /// Shutting down the receiving half ends a blocked `recvmmsg`, also on an unconnected socket (which answers ENOTCONN all the same).
    pub(crate) fn wake_receiver(&self) {
        let _ = self.inner.shutdown(std::net::Shutdown::Read);
    }

    pub(super) fn fd(&self) -> c_int {
        self.inner.as_raw_fd()
    }
}

/// Sets an integer option.
pub(crate) fn set_option(socket: &socket2::Socket, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let size = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the value lives for the call and has the size given.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast::<c_void>(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::Socket;

    fn option(socket: &Socket, level: c_int, option: c_int) -> c_int {
        let (mut value, mut size) = (-1, size_of::<c_int>() as libc::socklen_t);
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: the value lives for the call and has the size given.
        let result = unsafe { libc::getsockopt(fd, level, option, (&raw mut value).cast::<c_void>(), &raw mut size) };
        assert_eq!(result, 0);
        value
    }

    #[test]
    fn fragmentation_is_forbidden_until_it_is_allowed() {
        let v4 = Socket::bind("127.0.0.1:0".parse().expect("an address"), Options::default()).expect("binds");
        let v6 = Socket::bind("[::1]:0".parse().expect("an address"), Options::default()).expect("binds");
        let discovery = || {
            let v4 = option(&v4, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER);
            (v4, option(&v6, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER))
        };
        assert_eq!(discovery(), (libc::IP_PMTUDISC_PROBE, libc::IPV6_PMTUDISC_PROBE));
        for socket in [&v4, &v6] {
            socket.allow_fragmentation().expect("allowed");
        }
        assert_eq!(discovery(), (libc::IP_PMTUDISC_WANT, libc::IPV6_PMTUDISC_WANT));
    }
}

//! Addresses as the kernel writes them (ip(7), ipv6(7)). The other way is socket2's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::ptr;

use libc::c_int;

/// The canonical form of an address that the kernel has written.
pub(super) fn read(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match c_int::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which of the types this storage holds.
            let name = unsafe { &*ptr::from_ref(name).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(name.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(name.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let name = unsafe { &*ptr::from_ref(name).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(name.sin6_addr.s6_addr);
            let port = u16::from_be(name.sin6_port);
            Some(match ip.to_ipv4_mapped() {
                Some(v4) => SocketAddr::new(IpAddr::V4(v4), port),
                None => SocketAddrV6::new(ip, port, 0, name.sin6_scope_id).into(),
            })
        }
        _ => None,
    }
}

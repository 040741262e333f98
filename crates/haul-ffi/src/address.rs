//! Socket addresses, as C has them.

use std::mem::offset_of;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use libc::{sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

use crate::failure::{Outcome, invalid};
use crate::pointers::bytes;

/// The address at `address`.
///
/// # Safety
/// `address` is null or has `length` readable bytes.
pub unsafe fn read(address: *const sockaddr, length: socklen_t) -> Outcome<SocketAddr> {
    // SAFETY: the caller's promise.
    let given = unsafe { bytes(address.cast(), length as usize) }?;
    let family = given.get(offset_of!(sockaddr, sa_family)..).and_then(|bytes| bytes.first_chunk().copied());
    let family = family.map(sa_family_t::from_ne_bytes).map(i32::from);
    match family {
        Some(libc::AF_INET) if given.len() >= size_of::<sockaddr_in>() => {
            // SAFETY: there are as many bytes, and any are an address; they need not be aligned.
            let from = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(from.sin_addr.s_addr));
            Ok(SocketAddr::from((ip, u16::from_be(from.sin_port))))
        }
        Some(libc::AF_INET6) if given.len() >= size_of::<sockaddr_in6>() => {
            // SAFETY: as above.
            let from = unsafe { address.cast::<sockaddr_in6>().read_unaligned() };
            let (ip, port) = (Ipv6Addr::from(from.sin6_addr.s6_addr), u16::from_be(from.sin6_port));
            Ok(SocketAddrV6::new(ip, port, from.sin6_flowinfo, from.sin6_scope_id).into())
        }
        Some(libc::AF_INET | libc::AF_INET6) => Err(invalid(format!("an address of {length} bytes: too few for its family"))),
        Some(family) => Err(invalid(format!("address family {family}: AF_INET or AF_INET6 is wanted"))),
        None => Err(invalid(format!("an address of {length} bytes: no family in it"))),
    }
}

/// Writes an address as accept(2) does: as much as there is room for, and its full length.
///
/// # Safety
/// `length` is null or can be written; if so, `address` has as many writable bytes as it says.
pub unsafe fn write(from: SocketAddr, address: *mut sockaddr, length: *mut socklen_t) -> Outcome<()> {
    if address.is_null() || length.is_null() {
        return Err(invalid("a null pointer where room for an address and its length is wanted"));
    }
    match from {
        SocketAddr::V4(from) => {
            // SAFETY: an address of nothing but zeros is one.
            let mut to: sockaddr_in = unsafe { std::mem::zeroed() };
            to.sin_family = libc::AF_INET as sa_family_t;
            to.sin_port = from.port().to_be();
            to.sin_addr.s_addr = u32::from(*from.ip()).to_be();
            // SAFETY: the caller's promise.
            unsafe { put(&to, address, length) }
        }
        SocketAddr::V6(from) => {
            // SAFETY: as above.
            let mut to: sockaddr_in6 = unsafe { std::mem::zeroed() };
            to.sin6_family = libc::AF_INET6 as sa_family_t;
            to.sin6_port = from.port().to_be();
            to.sin6_addr.s6_addr = from.ip().octets();
            (to.sin6_flowinfo, to.sin6_scope_id) = (from.flowinfo(), from.scope_id());
            // SAFETY: the caller's promise.
            unsafe { put(&to, address, length) }
        }
    }
    Ok(())
}

/// # Safety
/// As [`write`], and neither is null.
unsafe fn put<T>(from: &T, address: *mut sockaddr, length: *mut socklen_t) {
    // SAFETY: no more bytes are written than there is room for, and read than `from` has.
    unsafe {
        let room = length.read() as usize;
        std::ptr::copy_nonoverlapping((&raw const *from).cast::<u8>(), address.cast(), room.min(size_of::<T>()));
        length.write(size_of::<T>() as socklen_t);
    }
}

//! The interfaces of this machine, and word of every change of them.

use std::ffi::CStr;
use std::io;
use std::mem::zeroed;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libc::c_int;

use crate::interface::Interface;

/// Those there are now, with their addresses.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut list = std::ptr::null_mut();
    // SAFETY: the call fills the pointer, or fails.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut next = list;
    // SAFETY: `next` is null or an entry of the list, which lives until it is freed below.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: the name of an entry is a string that ends in zero.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        let known = interfaces.iter().position(|interface| interface.name.as_bytes() == name.to_bytes());
        let at = known.unwrap_or_else(|| {
            let has = |flag: c_int| entry.ifa_flags & flag as libc::c_uint != 0;
            // SAFETY: as above.
            let index = unsafe { libc::if_nametoindex(entry.ifa_name) };
            interfaces.push(Interface {
                name: name.to_string_lossy().into_owned(),
                index,
                is_up: has(libc::IFF_UP) && has(libc::IFF_RUNNING),
                is_loopback: has(libc::IFF_LOOPBACK),
                addresses: Vec::new(),
            });
            interfaces.len() - 1
        });
        // SAFETY: the address of an entry is null or a socket address of the family that it names.
        let address = unsafe { address_at(entry.ifa_addr) };
        interfaces[at].addresses.extend(address);
    }
    // SAFETY: the list is that of the call above, and nothing points into it any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(interfaces)
}

/// # Safety
///
/// Null, or a socket address of the family that it names.
unsafe fn address_at(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: not null, and every socket address begins with its family.
    match c_int::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: the family says so; the kernel's lists align it for any.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(IpAddr::V4(u32::from_be(address.sin_addr.s_addr).into()))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(IpAddr::V6(address.sin6_addr.s6_addr.into()))
        }
        _ => None,
    }
}

/// Wakes a thread when an interface or an address comes, changes or goes. Source: rtnetlink(7).
#[derive(Debug)]
pub struct InterfaceWatch {
    netlink: OwnedFd,
    /// An eventfd.
    bell: OwnedFd,
}

impl InterfaceWatch {
    /// From now on.
    pub fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: plain numbers; the result is checked.
        let netlink = owned(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
        // SAFETY: all zero is a valid sockaddr_nl.
        let mut address: libc::sockaddr_nl = unsafe { zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups = (libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR) as u32;
        let size = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: the address lives for the call and has the size given.
        if unsafe { libc::bind(netlink.as_raw_fd(), (&raw const address).cast(), size) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: plain numbers; the result is checked.
        let bell = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        Ok(Self { netlink, bell })
    }

    /// Waits until something has changed, somebody has called [`Self::wake`], or so much time has passed.
    pub fn wait(&self, patience: Duration) {
        let poll = |fd: &OwnedFd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut fds = [poll(&self.netlink), poll(&self.bell)];
        let patience = c_int::try_from(patience.as_millis()).unwrap_or(c_int::MAX);
        // SAFETY: two valid pollfds.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, patience) };
        // What it says is not read: the state itself is looked at. So messages that found no room are no loss either.
        fds.iter().filter(|fd| fd.revents != 0).for_each(|fd| drain(fd.fd));
    }

    /// Ends a wait, this one or the next.
    pub fn wake(&self) {
        let one = 1u64;
        // SAFETY: eight bytes that live for the call. A counter that is full wakes too.
        unsafe { libc::write(self.bell.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }
}

fn owned(fd: c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just made, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn drain(fd: c_int) {
    let mut room = [0u8; 8192];
    loop {
        // SAFETY: the buffer lives for the call and has the size given.
        let read = unsafe { libc::read(fd, room.as_mut_ptr().cast(), room.len()) };
        // ENOBUFS says that messages were lost, once.
        let overrun = read < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOBUFS);
        if read <= 0 && !overrun {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn loopback_is_there_with_its_address() {
        let interfaces = interfaces().expect("a list");
        let loopback = interfaces.iter().find(|interface| interface.is_loopback).expect("loopback");
        assert!(loopback.index > 0 && loopback.addresses.contains(&Ipv4Addr::LOCALHOST.into()), "{loopback:?}");
        let mut names: Vec<_> = interfaces.iter().map(|interface| &interface.name).collect();
        names.dedup();
        assert_eq!(names.len(), interfaces.len(), "each once");
    }

    #[test]
    fn a_call_ends_a_wait() {
        let watch = InterfaceWatch::open().expect("a netlink socket");
        watch.wake();
        watch.wait(Duration::from_secs(3600));
        watch.wait(Duration::ZERO);
    }
}

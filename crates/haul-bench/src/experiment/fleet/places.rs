//! Where things are in a run on real sockets.

use std::net::Ipv4Addr;

/// Where the disk is; every host sees it.
pub const DISK: &str = "/run/netns/bench";
/// Where each server sees its own part of it.
pub const HERE: &str = "/run/netns/bench/here";
/// Where the client puts what it fetches.
pub const ARRIVED: &str = "/run/netns/bench/arrived";
pub const FTP_PORT: u16 = 2811;

/// A server's address.
pub fn address(server: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 80, 0, server as u8 + 1)
}

//! What each of several paths carried, as the client saw it.

use std::net::IpAddr;
use std::time::Duration;

use haul::Connection;
use haul_units::{BitRate, Bytes};
use serde::Serialize;

/// One of the paths of a connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OnePath {
    /// Its number.
    pub path: u8,
    /// By which interface it leaves, where that was asked for.
    pub interface: Option<String>,
    /// The address that it leaves from, where that was asked for.
    pub address: Option<IpAddr>,
    /// What it is for: `normal`, `backup`, `metered`.
    pub class: Option<String>,
    /// The other end answers there.
    pub usable: bool,
    /// UDP payload sent.
    pub sent_bytes: u64,
    /// UDP payload received.
    pub received_bytes: u64,
    /// What was acknowledged or received, whichever is more, a second.
    pub rate_bps: u64,
    /// Round-trip time.
    pub rtt_us: u64,
    /// Packets taken for lost, of what was sent.
    pub lost_pkts: u64,
    /// The part of what was sent that was lost.
    pub loss: f64,
}

/// Each path of a connection of several, or whose ways were named, over a copy of that time; else nothing.
pub fn each_path(connection: &Connection, elapsed: Duration) -> Vec<OnePath> {
    let (paths, ways) = (connection.paths(), connection.path_ways());
    if paths.len() < 2 && ways.is_empty() {
        return Vec::new();
    }
    let one = |path: &haul::PathStats| {
        let way = ways.get(usize::from(path.id));
        let carried = path.acknowledged.max(path.received);
        OnePath {
            path: path.id,
            interface: way.map(|way| way.interface.clone()),
            address: way.map(|way| way.address),
            class: way.map(|way| way.class.to_string()),
            usable: path.usable,
            sent_bytes: path.sent.as_u64(),
            received_bytes: path.received.as_u64(),
            rate_bps: if elapsed.is_zero() { 0 } else { BitRate::of(Bytes(carried.as_u64()), elapsed).as_bps() },
            rtt_us: u64::try_from(path.rtt.as_micros()).unwrap_or(u64::MAX),
            lost_pkts: path.lost_pkts,
            loss: path.loss.as_f64(),
        }
    };
    paths.iter().map(one).collect()
}

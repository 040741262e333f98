//! Where programs run, and who watches.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

use haul_lab::emulator::StartError;
use haul_lab::{Side, WanSpec};
use haul_units::Bytes;
use rustix::process::Pid;

use super::measurement::Measurement;
use super::plan::Cell;

/// Makes WANs.
pub trait Sites {
    /// One that is up until the value is dropped, and all programs on it are killed then, or when this process is.
    fn up(&self, spec: &WanSpec) -> Result<Box<dyn Site>, StartError>;
}

/// Two hosts with a WAN between them, and mounts of their own that they share.
pub trait Site {
    /// A program on a host, not started yet.
    fn command(&self, side: Side, program: &OsStr) -> Command;

    /// The same on one of several hosts of its side, counted from 0.
    fn command_on(&self, side: Side, _host: usize, program: &OsStr) -> Command {
        self.command(side, program)
    }

    /// A host's address.
    fn address(&self, side: Side) -> IpAddr;

    /// IP bytes that have come through to side b so far.
    fn delivered(&self) -> Option<Bytes>;

    /// The process that is the WAN between the hosts, where there is one.
    fn process(&self) -> Option<Pid> {
        None
    }
}

/// Both ends on host a, over its loopback.
pub struct Loopback(pub Box<dyn Site>);

impl Site for Loopback {
    fn command(&self, _side: Side, program: &OsStr) -> Command {
        self.0.command(Side::A, program)
    }

    fn address(&self, _side: Side) -> IpAddr {
        Ipv4Addr::LOCALHOST.into()
    }

    fn delivered(&self) -> Option<Bytes> {
        None
    }
}

/// Watches a grid being measured.
pub trait Observer {
    /// A turn begins.
    fn begins(&mut self, cell: &Cell);

    /// A turn is over.
    fn measured(&mut self, cell: &Cell, measurement: &Measurement);

    /// Whether to go on; where not, the turn under way is given up and the results so far are returned.
    fn go_on(&self) -> bool;
}

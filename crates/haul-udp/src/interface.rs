//! Interfaces of this machine.

use std::net::IpAddr;
#[cfg(not(target_os = "linux"))]
use std::{io, time::Duration};

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number: one that is plugged in again has another.
    pub index: u32,
    /// It is up and has a carrier.
    pub is_up: bool,
    /// It leads nowhere but here.
    pub is_loopback: bool,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// Those there are now; on Linux alone.
#[cfg(not(target_os = "linux"))]
pub fn interfaces() -> io::Result<Vec<Interface>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Wakes a thread when an interface or an address comes, changes or goes; on Linux alone.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub struct InterfaceWatch(());

#[cfg(not(target_os = "linux"))]
impl InterfaceWatch {
    /// From now on.
    pub fn open() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// There is none to wait with.
    pub fn wait(&self, _: Duration) {}

    /// There is none to wake.
    pub fn wake(&self) {}
}

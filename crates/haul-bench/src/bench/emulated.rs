//! WANs for the bench: emulators that end with this process.

use std::cell::Cell;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

use haul_lab::emulator::{Commands, Emulator, Life, Order, StartError};
use haul_lab::{Side, WanSpec};
use haul_units::Bytes;
use rustix::process::Pid;

use super::site::{Site, Sites};

/// Starts one emulator after the other.
#[derive(Debug)]
pub struct Emulators {
    commands: Commands,
    started: Cell<u32>,
}

/// One that is up.
#[derive(Debug)]
struct Emulated {
    emulator: Option<Emulator>,
}

impl Emulators {
    /// Emulators that are this program, called in this way.
    pub fn new(commands: Commands) -> Self {
        Self { commands, started: Cell::new(0) }
    }
}

impl Sites for Emulators {
    fn up(&self, spec: &WanSpec) -> Result<Box<dyn Site>, StartError> {
        self.started.set(self.started.get() + 1);
        let name = format!("bench-{}-{}", std::process::id(), self.started.get());
        let order = Order { name, wan: spec.clone(), life: Life::WithThisProcess };
        let emulator = Emulator::start(&order, self.commands)?;
        Ok(Box::new(Emulated { emulator: Some(emulator) }))
    }
}

impl Site for Emulated {
    fn command(&self, side: Side, program: &OsStr) -> Command {
        let host = if side == Side::A { "a" } else { "b" };
        // There is one until this value is dropped.
        self.emulator.as_ref().map_or_else(|| Command::new("false"), |emulator| emulator.command(host, program))
    }

    fn command_on(&self, side: Side, host: usize, program: &OsStr) -> Command {
        let Some(emulator) = &self.emulator else { return self.command(side, program) };
        let letter = if side == Side::A { 'a' } else { 'b' };
        emulator.command(&format!("{letter}{}", host + 1), program)
    }

    fn address(&self, side: Side) -> IpAddr {
        let half = if side == Side::A { 0 } else { 128 };
        Ipv4Addr::new(10, 80, half, 1).into()
    }

    fn delivered(&self) -> Option<Bytes> {
        let status = self.emulator.as_ref()?.wan().status().ok()?;
        Some(Bytes(status.directions.first()?.delivered_bytes))
    }

    fn process(&self) -> Option<Pid> {
        self.emulator.as_ref().map(Emulator::pid)
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        if let Some(emulator) = self.emulator.take() {
            emulator.end();
        }
    }
}

//! Modes of the kernel's TCP.

use std::fs::File;
use std::process::Command;
use std::time::Duration;

use crate::{Running, haul_binary};

/// They are this test's while it has this, and no other test of this machine changes them; all is taken back at the end.
pub struct Modes {
    _turn: File,
}

impl Modes {
    /// None where this machine has none, which is said, and an error in CI.
    pub fn alone() -> Option<Self> {
        Some(Self { _turn: skip::kernel_tcp_turn(haul_tcp::obstacle())? })
    }

    /// Runs `haul tcp` with these arguments.
    pub fn haul(args: &[&str]) {
        let mut command = Command::new(haul_binary());
        command.arg("tcp").args(args);
        Running::start(command).wait(Duration::from_secs(60)).expect(0);
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        Self::haul(&["off"]);
    }
}

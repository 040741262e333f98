//! Commands of this program that the emulator calls.

use haul_lab::emulator::Commands;

/// How this program is called to be an emulator, and to run another program on a host.
pub const COMMANDS: Commands = Commands { emulate: &["lab", "wan", "emulate"], exec: &["lab", "wan", "exec"] };

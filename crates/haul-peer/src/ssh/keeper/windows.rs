//! A program ends when its input does.

use std::os::windows::process::CommandExt as _;
use std::process::Command;

/// Ctrl-C at this program's console is not for that one.
pub(super) fn leave(command: &mut Command) {
    /// `CREATE_NEW_PROCESS_GROUP`
    const APART: u32 = 0x200;
    command.creation_flags(APART);
}

/// What is read here to its end need not be ended.
pub(super) const fn tie(_command: &mut Command) {}

//! What only one test of the machine may do at a time.

use std::fmt::Display;
use std::fs::{self, File};

use rustix::fs::{FlockOperation, flock};

use crate::skip;

/// The turn of a test that changes how the kernel's TCP behaves, which all of the machine sees: waited for, and held until it is dropped. None where `possible` says that
/// it cannot be changed; that is said.
#[track_caller]
pub fn kernel_tcp_turn(possible: Result<(), impl Display>) -> Option<File> {
    if let Err(why) = possible {
        skip(why);
        return None;
    }
    fs::create_dir_all("/run/haul").expect("a directory");
    let turn = File::create("/run/haul/test.lock").expect("a file");
    flock(&turn, FlockOperation::LockExclusive).expect("a turn");
    Some(turn)
}

//! The real binary, as a user runs it: over loopback with a daemon, and through a stand-in for ssh that runs the far side on this machine.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod audit;
mod bootstrap;
mod compress;
mod config;
mod ctl;
mod daemon;
mod decode;
mod display;
mod experiments;
mod generated;
mod interrupt;
mod kept;
mod limits;
mod mirror;
mod operations;
mod outage;
mod peer_text;
mod rights;
mod ssh;
mod support;
mod trace;
mod usage;

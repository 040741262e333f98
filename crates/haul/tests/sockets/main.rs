//! The library over real sockets on loopback: these tests read clocks and wait for the network.

mod aside;
mod blocks;
mod cancel;
#[cfg(unix)]
mod carriers;
mod controllers;
mod endings;
mod handshake;
mod network;
mod opening;
mod paths;
mod relay;
mod strangers;
mod streams;
mod support;
mod ways;

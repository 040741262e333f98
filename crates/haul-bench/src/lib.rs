//! Measuring over the emulated WAN of `haul-lab`: haul beside other tools, and the figures of the field, reproduced.
//!
//! | module | idea |
//! |---|---|
//! | [`bench`] | rows of paths and work, the tools that take turns, what arrived, and whether haul reached its goals |
//! | [`experiment`] | each reproduces a figure, in simulation and on real sockets, and says what came out |
//! | [`plot`] | charts as SVG and PNG |
//!
//! A crate beside the emulator because tests of the transport need only that: neither the drivers of other people's tools, nor fonts, nor pixels.

pub mod bench;
pub mod experiment;
pub mod plot;

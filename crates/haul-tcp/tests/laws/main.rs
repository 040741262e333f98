//! The laws as pure functions: against their papers, and the modes at one bottleneck in virtual time. No kernel is needed, and no root.

#[path = "../chance/mod.rs"]
mod chance;
mod coupled;
mod named;
mod path;
mod sharing;
mod shim;

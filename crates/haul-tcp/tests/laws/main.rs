//! The laws as pure functions: against their papers, and the modes at one bottleneck in virtual time. No kernel is needed, and no root.

mod coupled;
mod named;
mod path;
mod sharing;
mod shim;

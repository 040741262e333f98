//! A tree in memory that fails on request: for tests of haul-files' engine, and of whatever else uses a [`Store`](haul_files::Store).
//!
//! It fails at a chosen operation ([`Ram::fail`]), has only so much room ([`Ram::limit`]), is killed at a chosen moment ([`Ram::kill_after`]), and forgets what a machine may forget that loses its
//! power ([`Ram::lose_power`]): content that was not synced is zeros, names that were not synced are as they were before, the journal ends anywhere.
//! A clone is the same store. Paths are components with `/` between; links are not followed. Its clock is a counter.
//!
//! [`memory`] is the transport for such tests.

mod kept;
pub mod memory;
mod node;
mod ram;
mod stage;
mod store;

pub use ram::{Operation, Ram, RamDir, RamFile};
pub use stage::RamStage;

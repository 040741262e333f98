//! Blocks on their way in: put together, kept until they are taken, and counted.
//!
//! A stream of blocks is a placed stream of the transport: block `i` lies at offset `i * MAX_BLOCK`, and its last packet carries the end
//! mark. The transport decrypts each packet straight to its place in the block's buffer; buffers go round and are not cleared in between.
//!
//! ```text
//!   transport --slot, commit--> BlockSink: Assembly by Assembly --complete--> Queue --> BlockReceiver
//!                                   |                                           |
//!                                   +----------------- BlockMemory -------------+    of all streams of a connection, as is Queues, the registry;
//!                                                                                  Spares: of all connections of the process
//! ```

mod assembly;
mod completed;
mod memory;
mod queue;
mod queues;
mod sink;
mod spares;

pub use assembly::MAX_BLOCK;
pub(crate) use queue::{Complete, End, Queue};
pub(crate) use queues::Queues;
pub(crate) use spares::Spares;

#[cfg(test)]
mod tests;

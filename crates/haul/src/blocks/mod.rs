//! Streams of blocks: messages of up to [`MAX_BLOCK`] that arrive in any order, each as soon as it is complete.
//!
//! A stream of blocks is a placed stream of the transport: block `i` lies at offset `i * MAX_BLOCK`, and its last packet carries the end
//! mark. The transport decrypts each packet straight to its place in the block's buffer; buffers go round and are not cleared in between.
//! The sender's buffers are encrypted from in place and come back to it when their block is acknowledged.

mod assembly;
mod completed;
mod memory;
mod queue;
mod receive;
mod send;
mod sink;

pub(crate) use queue::Queues;
pub use receive::{Block, BlockReceiver};
pub use send::BlockSender;

/// The largest block in bytes.
pub const MAX_BLOCK: usize = 2 << 20;

#[cfg(test)]
mod tests;

//! Streams of blocks: messages of up to [`MAX_BLOCK`](crate::MAX_BLOCK) that arrive in any order, each as soon as it is complete.
//!
//! The sender's buffers are encrypted from in place and come back to it when their block is acknowledged; how blocks are put together on the other side
//! is `arriving`'s business.

mod receive;
mod send;

pub use receive::{Block, BlockReceiver};
pub use send::{BlockSender, SendBlock};

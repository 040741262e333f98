//! Blocks made smaller on their way, where the link is what is waited for.
//!
//! ```text
//!   block -- Judge: is the link waited for? -- Packer: does this one gain? --> packed block ==> unpack --> block
//!                     no                           no                             '-- at most so long, or malformed
//!                      '----------------------------'----- as it is ==>
//! ```
//!
//! A block is compressed as it is, hashes and all: what is hashed and compared stays its content. Who unpacks is told the length, and takes no more memory than that, whatever the compressed bytes say. The algorithm is Zstandard (RFC 8878).
//! When a block is packed is decided by [`Judge`], without a clock or a connection.

mod judge;
mod packed;

pub use judge::{Judge, Look};
pub use packed::{MalformedPack, Packer, is_packed, unpack};

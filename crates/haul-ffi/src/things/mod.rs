//! What handles name, one kind a file: each knows the transport, and neither the table nor C.

mod blocks;
mod connection;
mod endpoint;
mod file;
mod job;
mod stream;

pub use blocks::{Contents, Receiver, Sender, TheBlock};
pub use connection::{Conn, Incoming, Kind};
pub use endpoint::{Place, Settings};
pub use file::{Part, ProgressFn, Transferred, receive_blocks, receive_ordered, send_blocks, send_ordered};
pub use job::{HaulCopyProgress, HaulCopyResult, HaulFleetServer, Job, ProblemFn, ServerFn, TellFn, Watcher, WouldFn};
pub use stream::Stream;

//! The threads that move packets, and the state they share with the public handles.
//!
//! ```text
//!            socket --recvmmsg--> receive thread (one a socket) ----handle_train----+
//!                                                                                  v
//!   Endpoint, Connection, streams --open, write, read, ..--> Link: Mutex<Connection> --poll_train--> send thread --seal, sendmsg--> socket
//! ```
//! An endpoint has one socket; a client's connection has one more for each further path.
//! A connection lives in a [`Link`], under one lock that is taken per train, never per packet. The send thread of the link sleeps
//! until the connection's timeout; whoever gives the connection something to send while it sleeps wakes it. The receive thread sends what
//! its input caused (acknowledgements mostly) itself if the send thread sleeps: that saves the wake-up. Nothing is sealed or sent under the lock.
//!
//! Where UDP does not pass, a carrier (`carriers.rs`) stands in the socket's place: its lanes' threads receive, and trains for its address go to its queue.
//!
//! A connection that was accepted by the endpoint gets its send thread when the application admits its client; until then one thread, the porter, looks after all of
//! them, so that strangers cost none.
//!
//! Threads end when nobody holds the endpoint or a connection of it, and its connections are over.

mod announcing;
mod answers;
mod aside;
mod calls;
mod carriers;
mod ecn;
mod following;
mod handle;
mod held;
mod inward;
mod link;
mod marks;
mod naps;
mod open;
mod porter;
mod ports;
mod receiving;
mod reports;
mod sending;
mod shared;
mod state;
mod timers;
mod watching;
mod ways;

pub use aside::Aside;
pub(crate) use carriers::is_carried;
pub(crate) use handle::Handle;
pub(crate) use link::Link;
pub(crate) use open::Open;
pub(crate) use ports::Ports;
pub(crate) use shared::Shared;
pub(crate) use state::{State, Wanted};
pub use ways::PathWay;

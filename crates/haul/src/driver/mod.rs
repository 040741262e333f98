//! The threads that move packets, and the state they share with the public handles.
//!
//! ```text
//!            socket --recvmmsg--> receive thread (one a socket) ----handle_train----+
//!                                                                                  v
//!   Endpoint, Connection, streams --open, write, read, ..--> Link: Mutex<Connection> --poll_transmit--> send thread --sendmsg--> socket
//! ```
//! An endpoint has one socket; a client's connection has one more for each further path.
//! A connection lives in a [`Link`], under one lock that is taken per train, never per packet. The send thread of the link sleeps
//! until the connection's timeout; whoever gives the connection something to send while it sleeps wakes it. The receive thread sends what
//! its input caused (acknowledgements mostly) itself if the send thread sleeps: that saves the wake-up. Nothing is sent under the lock.
//!
//! A connection that was accepted by the endpoint gets its send thread when the application admits its client; until then one thread, the porter, looks after all of
//! them, so that strangers cost none.
//!
//! Threads end when nobody holds the endpoint or a connection of it, and its connections are over.

mod link;
mod porter;
mod receiving;
mod sending;
mod shared;

pub(crate) use link::{Link, State, Wanted};
pub(crate) use shared::{Ports, Shared};

use haul_proto::Ecn;

/// The codepoint of the IP header (RFC 3168 5).
const fn ecn_to_bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b00,
        Ecn::Ect1 => 0b01,
        Ecn::Ect0 => 0b10,
        Ecn::Ce => 0b11,
    }
}

const fn ecn_from_bits(bits: u8) -> Ecn {
    match bits & 0b11 {
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        0b11 => Ecn::Ce,
        _ => Ecn::NotEct,
    }
}

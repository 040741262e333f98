//! Trains of datagrams over byte streams, where UDP does not pass: over TCP connections, or over the pipes of a program such as ssh.
//!
//! ```text
//!   transport --train--> queue --+--> lane (a byte stream, and the threads that write and read it) --+--> deliver
//!                     (bounded)  +--> lane ----------------------------------------------------------+
//! ```
//! A [`Carrier`] stands where a UDP socket would: what is sent through it are the transport's own packets, sealed as they are for UDP. So keys, streams, credit and the end of a connection are the same whatever
//! carries it, a connection can go over from one to the other in the midst of its work, and who reads a stream on the way learns what he learns of UDP. It has one or more *lanes*; whichever has room takes the next
//! train, so several TCP connections share what one does not manage, and a lane that stands still holds up no more than what it has.
//!
//! - **Nothing is promised**, as with UDP: what a lane had when it broke is lost, and the transport sends it again. Between lanes trains overtake each other.
//! - **Memory** is bounded whatever the peer does: the queue holds some trains, then [`Carrier::send`] waits, and says so where that is in vain; a lane that reads holds two frames.
//! - **A hostile peer** gains nothing: a frame is a length and a segment size that must fit each other ([`Frames`]), the rest is for the transport to open. A lane with anything else is cut.
//! - **TCP** ([`tcp`]): a lane is a lane once both ends have said so; who does not know the carrier's name is cut off unheard.

mod carrier;
mod clock;
mod frames;
mod lane;
pub mod tcp;

pub use carrier::{Carrier, Handed, Side};
pub use frames::{Frame, Frames, MAX_SAID_BYTES, MAX_SEGMENTS, MAX_TRAIN_BYTES, MalformedFrame};
pub use lane::Lane;

#[cfg(test)]
mod tests;

//! Datagrams in trains: the layer between the transport and the system's UDP socket.
//!
//! A *train* is a run of datagrams of one size (the last may be shorter) that lie one after the other in one buffer and go to one
//! address. On Linux one `sendmsg` hands a whole train to the kernel (UDP_SEGMENT) and one `recvmmsg` takes several whole trains
//! (UDP_GRO). Where the system or the interface refuses the offload, the socket notices it on the first refused train and sends single
//! datagrams from then on; callers see no difference. On Windows a train goes out whole where
//! the system takes it (UDP_SEND_MSG_SIZE); on other systems every datagram travels alone.
//!
//! ```
//! use haul_udp::{Batch, Options, Outgoing, Sent, Socket};
//!
//! let (a, b) = (Socket::bind("127.0.0.1:0".parse()?, Options::default())?, Socket::bind("127.0.0.1:0".parse()?, Options::default())?);
//! // 40 datagrams of 1200 bytes and one of 5, by one system call.
//! let train = vec![7; 40 * 1200 + 5];
//! let sent = a.send(&Outgoing { to: b.local_addr(), from: None, ecn: 0, train: &train, segment_bytes: 1200 })?;
//! assert!(matches!(sent, Sent::Taken));
//!
//! let mut batch = Batch::new(8);
//! let mut datagrams = 0;
//! while datagrams < 41 {
//!     b.receive(&mut batch)?;
//!     for received in batch.trains() {
//!         datagrams += received.train.chunks(received.segment_bytes).count();
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! `examples/trains.rs` shows how many trains that was.
//!
//! - **Addresses** given out are canonical: a socket bound to `[::]` serves IPv4 too, and its IPv4 peers show as IPv4.
//! - **Errors** are those of the socket itself. What one train meets (no route, too large, no room) is its [`Sent`]; what an earlier datagram met
//!   and the system tells a receiver is passed over.
//! - **Ending**: [`Socket::stop`] ends a [`Socket::receive`] of another thread.
//! - **Interfaces**: [`Socket::bind_via`] leaves from one of them; [`interfaces`] lists them, [`InterfaceWatch`] tells when that changes.
//! - **Memory**: [`Batch`] is allocated once. Nothing is allocated or copied for a train or a packet.
//!
//! Here are all of haul's system calls for datagrams, and the unsafe code that they take.

mod buffers;
mod interface;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;
mod socket;
mod system;
mod train;

pub use buffers::BufferSizes;
pub use interface::Interface;
#[cfg(not(target_os = "linux"))]
pub use interface::{InterfaceWatch, interfaces};
#[cfg(target_os = "linux")]
pub use linux::Batch;
#[cfg(target_os = "linux")]
pub use linux::{InterfaceWatch, interfaces};
#[cfg(not(target_os = "linux"))]
pub use portable::Batch;
pub use socket::Socket;
pub use system::Options;
pub use train::{MAX_TRAIN_BYTES, MAX_TRAIN_SEGMENTS, Outgoing, Received, SLOT_BYTES, Sent};

#[cfg(test)]
mod tests;

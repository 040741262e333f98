//! Reliable, encrypted transport over UDP for long fat networks: a socket library in user land.
//!
//! An [`Endpoint`] is a UDP socket; a [`Connection`] is an encrypted association with a peer, whose key it has checked; streams run in it.
//! [`SendStream`] and [`RecvStream`] are ordered bytes and implement `Write` and `Read`; [`BlockSender`] and [`BlockReceiver`] carry bulk
//! data as blocks that arrive in any order, so that a lost packet delays one block and not the stream. Every call that waits has an
//! async twin that runs on any executor.
//!
//! Nothing needs to be configured for speed: window, pacing rate, credit and packet size are found by measurement. See [`Endpoint`] for
//! a complete example, the [`guide`] for trust, closing, memory and cancel safety, and here for blocks:
//!
//! ```
//! use haul::{ClientConfig, Endpoint, Identity, PeerTrust, ServerConfig};
//!
//! let identity = Identity::generate();
//! let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
//! let server = Endpoint::listen("127.0.0.1:0".parse()?, ServerConfig::new(identity, PeerTrust::Anyone))?;
//! let endpoint = Endpoint::bind("127.0.0.1:0".parse()?)?;
//! let connection = endpoint.connect(server.local_addr(), ClientConfig::new(trust))?;
//!
//! let sender = connection.open_blocks()?;
//! for i in 0..3u8 {
//!     let mut block = sender.buffer();
//!     block.resize(100_000, i);
//!     sender.send(block)?;
//! }
//! let receiver = server.accept()?.accept_blocks()?;
//! sender.finish()?;
//! let mut total = 0;
//! while let Some(block) = receiver.recv()? {
//!     assert!(block.iter().all(|&byte| u64::from(byte) == block.index()));
//!     total += block.len();
//! }
//! assert_eq!(total, 300_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arriving;
mod blocks;
mod clock;
mod connection;
pub mod diagnose;
mod driver;
mod endpoint;
mod error;
pub mod guide;
mod opening;
mod stream;
mod waiting;

pub use arriving::MAX_BLOCK;
pub use blocks::{Block, BlockReceiver, BlockSender, SendBlock};
pub use connection::Connection;
pub use driver::{Aside, PathWay};
pub use endpoint::Endpoint;
pub use error::{AcceptError, BindError, ConnectError, ConnectionError, StreamError};
pub use opening::Opening;
pub use stream::{RecvStream, SendStream};
pub use waiting::{block_on, thread_waker};

/// What carries a connection over TCP or through a program's pipes where UDP does not pass: see [`Endpoint::carry`].
pub use haul_carrier as carrier;

/// The layer between the transport and the system's UDP sockets, for tools that measure below the transport; applications need [`Endpoint`] only.
pub use haul_udp as udp;

/// Memory that several blocks share, and the application with them.
pub use bytes::Bytes as SharedBytes;

pub use haul_cc::{ControllerChoice, Learned, Snapshot};
pub use haul_proto::handshake::HandshakeError;
pub use haul_proto::identity::{Fingerprint, Identity, IdentityError, PeerTrust, PublicKey};
pub use haul_proto::{
    Admission, AdmittedBy, Announced, BlockData, Class, ClientConfig, CloseReason, Distribution, Distributions, PATHS_MAX,
    Pacing, PathStats, ResetKey, Scheduler, ServerConfig, Sink, SinkFactory, Standing, Stats, StreamId, TransportConfig, Via,
    Waits,
};
pub use haul_units::{BitRate, Bytes, Ratio};

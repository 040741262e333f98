//! What to know before one builds on haul.
//!
//! The programs in `examples/` are the other half: `echo` (ordered streams), `blocks` (bulk data), `sink` (bytes straight to their place). Each runs on its own:
//! `cargo run -p haul --example echo`.
//!
//! # Which part for what
//!
//! | for | take |
//! |---|---|
//! | questions and answers, control messages, anything in order | [`Connection::open_bi`], [`Connection::open_uni`]: `Read` and `Write` |
//! | bulk data | [`Connection::open_blocks`]: blocks of up to 2 MiB, each usable as soon as it is there |
//! | bulk data whose place is known when it arrives | [`Sink`], set in [`TransportConfig::sinks`] |
//! | a handshake that costs no round trip, where another channel is there already | [`Opening`] |
//!
//! An [`Endpoint`] is a socket and may have many connections; a [`Connection`] has streams by the thousand, which cost little and hold up nobody else. One
//! connection fills the path: several side by side are no faster, and take more than their share of it.
//!
//! # Trust
//!
//! A connection is always encrypted. Whether it is with the right peer is for [`PeerTrust`] to say, on both sides:
//!
//! - A client wants [`PeerTrust::Pinned`] with a fingerprint that it got over a channel it trusts, such as ssh or a file that an administrator wrote; or a
//!   [`PeerTrust::Callback`] that looks it up. With [`PeerTrust::Anyone`] somebody in the middle can read everything.
//! - A server that serves anybody takes [`PeerTrust::Anyone`] and learns a key from [`Connection::peer_key`] if the client shows one. Such a server decides
//!   after it has heard the client: [`AdmittedBy::Application`], [`Endpoint::accept_stranger_timeout`], [`Connection::admit`]. Until then a client has credit for
//!   32 KiB and no thread.
//! - What comes from the peer is still the peer's word. Offsets in a [`Sink`], lengths in a message and text for a terminal want checks, whoever sent them.
//!
//! # Closing
//!
//! [`Connection::close`], and dropping the last handle, end the connection at once: what the peer has not acknowledged by then may be lost, in both directions.
//! So one side has the last word, and the other closes when it has read it:
//!
//! - Whoever **sends** last calls [`SendStream::finish`] and [`SendStream::wait_acknowledged`], or [`BlockSender::finish`], and keeps the connection until then. Acknowledged means that the
//!   peer's transport has the bytes. That its application has done something with them, only the application can say: let it answer.
//! - Whoever **reads** last closes, with a code and a reason; the other finds them in [`Connection::closed`] and in the errors of its streams. What had arrived
//!   before can still be read.
//! - A [`SendStream`] that is dropped without `finish` is reset, so that half a message is never taken for a whole one. A [`RecvStream`] or [`BlockReceiver`] that is dropped before
//!   its end tells the peer to stop.
//!
//! A peer that disappears is noticed after [`TransportConfig::idle_timeout`] (90 s, so that an outage of a minute is survived); one whose process was killed and whose endpoint is
//! started again with the same [`ServerConfig::reset_key`], within a round trip.
//!
//! ```
//! # use haul::{ClientConfig, ConnectionError, CloseReason, Endpoint, Identity, PeerTrust, ServerConfig};
//! # use std::io::{Read, Write};
//! # let identity = Identity::generate();
//! # let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
//! # let server = Endpoint::listen("127.0.0.1:0".parse()?, ServerConfig::new(identity, PeerTrust::Anyone))?;
//! # let endpoint = Endpoint::bind("127.0.0.1:0".parse()?)?;
//! # let near = endpoint.connect(server.local_addr(), ClientConfig::new(trust))?;
//! // The sender has the last word and waits; the reader closes.
//! let mut send = near.open_uni()?;
//! send.write_all(b"all of it")?;
//! send.finish()?;
//!
//! let far = server.accept()?;
//! let mut text = String::new();
//! far.accept_uni()?.read_to_string(&mut text)?;
//! assert_eq!(text, "all of it");
//!
//! send.wait_acknowledged()?;
//! far.close(0, "read");
//! assert!(matches!(near.closed(), ConnectionError::Ended(CloseReason::Peer { code: 0, .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Memory and credit
//!
//! [`TransportConfig::memory`] bounds what a connection buffers, in each direction: 1 GiB by default, two bandwidth-delay products of 10 Gbit/s at 400 ms. Most paths use a
//! small part of it. A server of many clients sets it lower, or for each client by [`Connection::admit`] and [`Connection::set_memory`]: too little limits the rate to memory
//! divided by the round-trip time, and nothing else.
//!
//! - **Sending**: `write` and [`BlockSender::send`] take what the path can use, and wait then. Nothing grows without bound on a slow path.
//! - **Receiving**: a peer may send as much as it has credit for, and credit comes back as the application reads bytes, drops a [`Block`], or says that its sinks have
//!   consumed ([`Connection::sinks_consumed`]). An application that keeps blocks stops its sender, by and by: that is how back-pressure reaches it.
//! - **Ordered streams** have a window each ([`TransportConfig::stream_window`]), so a reader that stands still stops its own writer and nobody else's.
//! - A [`Sink`] brings its own memory. What the peer can make it hold is [`TransportConfig::max_streams`] times what it takes for one stream.
//! - Buffers go round: [`BlockSender::buffer`] gives one whose block has been acknowledged, and a [`Block`] that is dropped makes room for the next.
//!
//! # Waiting, async and cancel safety
//!
//! Every call that waits has a twin that ends in `_async` and runs on any executor; the two are the same code. A blocked call ends early when the connection does, so
//! [`Connection::close`] from another thread sets free whoever waits. A future can be dropped at any time:
//!
//! | dropped before it is ready | then |
//! |---|---|
//! | [`BlockSender::send_async`] | nothing of the block was sent; it is dropped too, unless [`SendBlock::take_block`] has fetched it |
//! | [`BlockSender::finish_async`], [`SendStream::wait_acknowledged_async`] | the stream is finished all the same; call it again to wait on |
//! | [`BlockReceiver::recv_async`] | no block was taken |
//! | [`SendStream::write_async`], [`RecvStream::read_async`] | nothing was written, nothing read |
//! | [`SendStream::write_all_async`] | **some may have been written**: reset the stream, or write by `write_async` |
//! | `open_*_async`, `accept_*_async` | no stream was opened, none taken: it is there for the next call |
//! | [`Endpoint::accept_async`] | no connection was taken |
//! | [`Endpoint::connect_async`] | the attempt is given up |
//!
//! # Errors
//!
//! There is an enum for each thing that can fail, sorted by who is at fault: [`BindError`], [`ConnectError`], [`AcceptError`], [`ConnectionError`], [`StreamError`], each with its cause
//! as `source`. The two last turn into `std::io::Error`, which `Read` and `Write` give. After a [`StreamError::Connection`] the connection is over, and the others concern that one stream.
//!
//! # Threads
//!
//! An endpoint has a receive thread, each connection a send thread, and clients that are not admitted share one. They sleep while there is nothing to do, and end
//! when the last handle is gone. Handles may be used from any thread.

#![expect(unused_imports, reason = "what the text above names")]

use crate::{
    AcceptError, AdmittedBy, BindError, Block, BlockReceiver, BlockSender, ConnectError, Connection, ConnectionError, Endpoint,
    Opening, PeerTrust, RecvStream, SendBlock, SendStream, ServerConfig, Sink, StreamError, TransportConfig,
};

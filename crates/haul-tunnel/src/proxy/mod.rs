//! TCP connections across one haul connection.
//!
//! ```text
//!   program -- TCP --> near ==== one stream a connection ==== far -- TCP --> target
//!
//!   client, server       the two ends of the haul connection: who asks, and who is asked
//!   listeners, near      ports to listen on; from a TCP connection to a stream
//!   far, dial, policy    from a stream to a TCP connection, where it may go
//!   relay                the bytes
//!   session, wire        what is said
//!   socks                what a SOCKS5 client says
//!   forward              how ssh writes ports and their targets
//!   hub, observer        what all connections of a side share, and who hears of them
//! ```
//!
//! Either side can be near or far: the asking side's [`remote`](Client::remote) ports are on the side that is asked. Each TCP connection is a task; no thread waits for one.

mod client;
mod descriptors;
mod dial;
mod error;
mod far;
mod forward;
mod hub;
mod listeners;
mod near;
mod observer;
mod policy;
mod relay;
mod server;
mod session;
mod socks;
mod wire;

use std::time::Duration;

use haul::{BitRate, Bytes, ControllerChoice, TransportConfig};

pub use self::client::{Client, LocalForward};
pub use self::error::{ClientError, ServeError, TcpListenError, ThreadsError};
pub use self::forward::{Bind, Forward, ForwardError, Listen, RemoteForward};
pub use self::listeners::Kind;
pub use self::near::Duty;
pub use self::observer::{Event, Observer, Silent};
pub use self::relay::{Cut, Moved};
pub use self::server::{Server, ServerSettings, serve_account};
pub use self::session::CLOSE_DONE;
pub use self::wire::{Aim, PROTOCOL, Refused};

/// Bytes that a stream may send ahead of a reader that has taken nothing yet: a thousand of them fit the memory, and one that is read grows.
const STREAM_WINDOW: Bytes = Bytes::mib(1);

/// How the connection of a proxy behaves. `rate_limit` is for what this side sends; `idle_timeout` is the silence after which the connection is given up, of both sides the shorter one counts.
pub fn transport(controller: ControllerChoice, rate_limit: Option<BitRate>, idle_timeout: Duration) -> TransportConfig {
    TransportConfig {
        controller,
        rate_limit,
        idle_timeout,
        stream_window: STREAM_WINDOW,
        // Nobody knows when somebody comes, nor how much they bring.
        filler: true,
        ..TransportConfig::default()
    }
}

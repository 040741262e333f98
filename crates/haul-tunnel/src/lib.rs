//! What other programs have to say to each other, carried across a long network by haul.
//!
//! - [`program`]: the standard streams of two programs, or of one here and a command over there, become one: pipes between hosts, remote commands, what rsync and git need.
//! - [`proxy`]: TCP connections to a port here go on from there, thousands of them over one haul connection; either side may have the ports.
//! - `rsync`: rsync with another remote shell.
//!
//! [`haul_peer::Connector`] makes the connection: through ssh, which has [`program::serve_account`] or [`proxy::serve_account`] started over there by `haul remote`, or to a
//! [`program::Listener`] or [`proxy::Server`] that checks keys.
//!
//! # The smallest program
//!
//! Port 8080 here is port 80 of `web`, as `host` sees it:
//!
//! ```no_run
//! use haul_peer::{Connector, Host, SshHost};
//! use haul_tunnel::proxy::{Client, LocalForward, PROTOCOL};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = Host::Ssh(SshHost::parse("user@host".as_ref())?);
//! let forward = LocalForward::to("8080".parse()?, "web:80".parse()?);
//! Client::new(Connector::new(PROTOCOL), host, vec![forward]).run()?;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/forward.rs` forwards a port through a host that ssh reaches.
//!
//! # What is told meanwhile
//!
//! Nothing is printed. A proxy tells its [`Observer`](proxy::Observer) of ports, of the other side's coming and going, and of each connection; a command's standard error goes to whatever the caller names. What
//! only somebody who looks for a fault wants to know is logged by `tracing`. Words of the other side are [`PeerText`](haul_units::PeerText), fit to be shown; the streams that are carried, standard error
//! among them, are the programs' own bytes.
//!
//! # Errors
//!
//! An enum for each operation: [`TunnelError`](program::TunnelError) and [`ListenError`](program::ListenError), [`ClientError`](proxy::ClientError), [`TcpListenError`](proxy::TcpListenError) and
//! [`ServeError`](proxy::ServeError). `Unreached` is about the way there, `Refused` is the other side's decision in its own words, the others are about this side or about the connection. A TCP connection that
//! cannot be made is no error of the proxy: its client sees a reset, and the observer hears of a [`Refused`](proxy::Refused).
//!
//! # Cancellation
//!
//! Whatever waits ends soon after a [`Cancel`](haul_units::Cancel) is cancelled: the connector's own on the asking side, that of the call on the other. Connections that are cut then are reset, never ended: nobody
//! takes half of something for all of it.

mod clock;
pub mod program;
pub mod proxy;
mod reset;
#[cfg(unix)]
pub mod rsync;
mod visits;

pub use visits::{Visit, Visitor, Visits};

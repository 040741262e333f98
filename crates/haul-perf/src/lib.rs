//! A path measured from memory to memory, as iperf3 does it, over haul or over the kernel's TCP; the library of `haul perf`.
//!
//! ```text
//!   client                                     server
//!   Plan -> measure  -- connection of haul -->  Server, for anyone; serve, for whom one knows
//!             |                                   |
//!           roles                               roles          a role = a flow (threads that move data) + a meter (reads its counters)
//!             |  <---- intervals, totals ------   |
//!          Outcome -> Document
//! ```
//!
//! # The smallest program
//!
//! A [`Plan`] says what is sent, which way and for how long. A [`Server`] lets anyone measure; the client connects to it with the transport's own means, or with
//! [`haul_peer::Connector`] to a host that ssh reaches, and asks for [`PROTOCOL`]. [`measure`] does the rest:
//!
//! ```
//! use std::sync::Arc;
//! use haul::{ClientConfig, Endpoint, PeerTrust};
//! use haul_perf::{Amount, Direction, Plan, Role, Server, ServerSettings, measure};
//! use haul_units::Cancel;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::listen(&ServerSettings { bind: Some([127, 0, 0, 1].into()), ..ServerSettings::default() })?;
//! let (address, key, stop) = (server.address(), server.key(), Cancel::new());
//! let ended = stop.clone();
//! let serving = std::thread::spawn(move || server.run(&ended, Arc::new(())));
//!
//! let trust = PeerTrust::Pinned(vec![key]);
//! let config = ClientConfig { protocols: vec![haul_perf::PROTOCOL.to_vec()], ..ClientConfig::new(trust) };
//! let connection = Endpoint::bind("127.0.0.1:0".parse()?)?.connect(address, config)?;
//! let plan = Plan { amount: Amount::Bytes(100_000), ..Plan::default() };
//! let outcome = measure(&connection, &plan, &Cancel::new(), &mut |_: &haul_perf::Both| ())?;
//! assert_eq!(outcome.total(Direction::Up, Role::Receiver).map(|total| total.bytes[0]), Some(100_000));
//! stop.cancel();
//! serving.join().expect("no panic")?;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/measure.rs` measures to an ssh host, and prints each interval as it comes.
//!
//! # Results
//!
//! Both ends count; the receiver's bytes are the result. A [`Listener`] hears of each interval when both have told theirs ([`Both`]); at the end there is an [`Outcome`] with
//! [`Total`]s of each direction and role, pings without load and under it, and processor time. All of it is data with [`serde`]. A [`Document`] is the same in iperf3's JSON:
//! what `haul perf --json` prints. [`text`] is the same for people, in iperf3's layout.
//!
//! # Errors
//!
//! [`MeasureError`] is why there are no results. What goes wrong while there are some is in [`Outcome::first_error`]. On a server, [`ServeError`] is why a
//! client was not served to the end; a plan that is out of [`Bounds`] is refused in words ([`PlanRefused`], sent as a [`haul_peer::Refusal`]), and the client gets them
//! as [`MeasureError::Refused`].
//!
//! # Stopping
//!
//! Everything that waits takes a [`haul_units::Cancel`]. A client that is cancelled ends its roles, hears the server's part and has an [`Outcome`] of what was measured until
//! then; a server closes its connections.
//!
//! # A mesh
//!
//! [`mesh`] measures every ordered pair of a list of hosts, haul against TCP, by running `haul perf` on them through ssh.

mod client;
mod clock;
mod data_port;
mod document;
mod flow;
mod kernel;
pub mod mesh;
mod meter;
mod plan;
mod results;
mod roles;
mod sample;
mod server;
mod session;
mod spread;
mod system;
pub mod text;
mod wire;

pub use client::{Client, Gone, Listener, MeasureError, measure};
pub use data_port::DataPort;
pub use document::{
    About, Connected, ConnectingTo, Counters, CpuUtilization, Details, DirectionLatency, Document, End, Gauges, HaulStart,
    IntervalRecord, Latency, OnePath, OverTime, Paths, Percentiles, Rates, Start, StreamEnds, StreamInterval, StreamTotal,
    SumInterval, SumTotal, TestStart, Timestamp, TotalRates, Waiting, WaitsUs, pretty,
};
pub use flow::CongestionError;
pub use plan::{Amount, Direction, MAX_STREAMS, MAX_TIME, MIN_INTERVAL, Plan, PlanError, Role, TcpPlan, Ways};
pub use results::{Both, Done, Interval, Outcome, Pings, Total};
pub use roles::Told;
pub use sample::{CpuUse, PartSample, PathSample, micros};
pub use server::{Server, ServerError, ServerSettings, Visit, Visits};
pub use session::{Bounds, Measured, PlanRefused, ServeError, refuse, serve};
pub use spread::{Class, Spread, Spreads};
pub use system::system_info;
pub use wire::{Ask, CLOSE_ABORTED, CLOSE_DONE, PROTOCOL, Welcome};

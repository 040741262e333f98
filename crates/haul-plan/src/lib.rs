//! Which server sends which part of which file, and which gets which: decisions alone.
//!
//! [`Plan`] decides for a download, [`Placement`] for an upload. They have no clock, no socket and no thread. Whoever drives one says what has happened
//! (`handle_*`, with the time) and does what it is told (`poll_*`). A run replays from the same events.
//!
//! Servers *pull*: one that will soon have nothing to send is given more. Large files are cut into ranges, long while much is left, short towards the
//! end; several servers send ranges of one file where each has a replica of it. A server with nothing left takes the end of what the slowest one still has to
//! send, and what cannot be taken any more is sent a second time, where that will be sooner: the first to arrive counts. A server that falls
//! silent, dies or lacks a file loses its ranges to others. Nothing is counted twice.
//!
//! ```
//! use haul_plan::{Catalogue, Order, Plan, Policy, ServerProfile, Settings};
//! use haul_units::{Bytes, Time};
//! use std::time::Duration;
//!
//! let mut catalogue = Catalogue::new();
//! let (a, b) = (catalogue.add_server(), catalogue.add_server());
//! let file = catalogue.add_file(Bytes::mib(100), &[a, b])?;
//! let mut plan = Plan::new(catalogue, Settings::default());
//! let profile = ServerProfile::at(Duration::from_millis(100));
//! plan.handle_up(a, profile, Time::ZERO);
//! plan.handle_up(b, profile, Time::ZERO);
//!
//! // What each server is told to send; here it arrives at once.
//! while let Some(order) = plan.poll_order(Time::ZERO) {
//!     let Order::Send { piece, range, .. } = order else { continue };
//!     plan.handle_arrived(piece, range, Time::ZERO);
//! }
//! assert!(plan.is_done() && plan.is_complete(file));
//! # Ok::<(), haul_plan::CatalogueError>(())
//! ```
//!
//! Before a server has been measured it is taken for one of 1 Gbit/s, or for what one process more would get of that on a machine as busy as it says it is ([`Load`]). From the first measurement on only what comes
//! from it counts.
//!
//! The plan counts payload of files in bytes and believes what it is told: checking content, and naming a replica that is wrong
//! ([`Plan::handle_unfit`]), is the driver's part.

mod catalogue;
mod load;
mod placement;
mod plan;
pub mod simulated;

pub use catalogue::{Catalogue, CatalogueError, FileId, ServerId};
pub use load::Load;
pub use placement::{MAX_REPLICAS, Placement, PlacementPolicy, PlacementSettings, Task};
pub use plan::{Event, Order, PieceId, Plan, Policy, ServerProfile, ServerStatus, Settings, Status, Why};

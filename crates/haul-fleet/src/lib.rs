//! One client, many storage servers: which server sends which part of which file, and when.
//!
//! [`Plan`] is that decision, and nothing else: it has no clock, no socket and no thread. Whoever drives it says what has happened
//! (`handle_*`, with the time) and does what it is told (`poll_*`). A run replays from the same events.
//!
//! Servers *pull*: one that will soon have nothing to send is given more. Large files are cut into ranges, long while much is left, short towards the
//! end; several servers send ranges of one file where each has a replica of it. A server with nothing left takes the end of what the slowest one still has to
//! send, and what cannot be taken any more is sent a second time, where that will be sooner: the first to arrive counts. A server that falls
//! silent, dies or lacks a file loses its ranges to others. Nothing is counted twice.
//!
//! ```
//! use haul_fleet::{Catalogue, Order, Plan, Policy, ServerProfile, Settings};
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
//! # Ok::<(), haul_fleet::CatalogueError>(())
//! ```
//!
//! [`start`] makes members of a list of hosts, [`get`] and [`put`] do one job with them. A [`Session`] keeps members for many jobs, of this process or of several.
//!
//! The plan counts payload of files in bytes and believes what it is told: checking content, and naming a replica that is wrong
//! ([`Plan::handle_unfit`]), is the driver's part.

mod catalogue;
mod clock;
mod coverage;
mod get;
mod log;
mod member;
mod observe;
mod placement;
mod plan;
mod put;
mod report;
mod service;
mod session;
pub mod simulated;
mod start;
mod status;

pub use catalogue::{Catalogue, CatalogueError, FileId, ServerId};
pub use get::{GetError, GetJob, ReplicasBy, get};
pub use log::{JobLog, JobTitle, LogError};
pub use member::Member;
pub use observe::{JobEvent, JobObserver, JobReport, MemberReport, MemberState, MemberView, Snapshot, Unwatched};
pub use placement::{MAX_REPLICAS, Placement, PlacementPolicy, PlacementSettings, Task};
pub use plan::{Event, Order, PieceId, Plan, Policy, ServerProfile, ServerStatus, Settings, Status, Why};
pub use put::{PutError, PutJob, put};
pub use report::{ClientPoint, JobRecord, LogReport, MemberPoint, MemberRecord, ReportError, Span};
pub use service::{Service, Welcome};
pub use session::{
    Claim, Door, FleetName, Gone, JoinError, Pending, Session, SessionError, SessionReport, SessionStatus, Setup, UpFleet, claim,
    up,
};
pub use start::{
    Absent, AbsentError, Fleet, HostSpec, HostsError, Invitation, Launcher, MAX_HOSTS, StartError, StartSpec, Summons, Way,
    WayError, lead, start,
};
pub use status::{MemberStatus, status};

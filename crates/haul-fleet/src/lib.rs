//! One client, many storage servers: jobs that fetch from all of them, or put to all of them.
//!
//! [`start`] makes members of a list of hosts, [`get`] and [`put`] do one job with them. A [`Session`] keeps members for many jobs, of this process or of several. Who sends or gets what is
//! decided by a plan of its own crate, `haul_plan`, without clock, socket or thread; here is what follows it.

mod at_once;
mod clock;
mod get;
mod limit;
mod log;
mod member;
mod observe;
mod put;
mod report;
mod service;
mod session;
mod start;
mod status;
pub mod told;

pub use get::{Begin, GetError, GetJob, Here, ReplicasBy, get};
pub use haul_plan::{MAX_REPLICAS, PlacementPolicy, Policy, ServerId, Settings, Why};
pub use limit::JobLimit;
pub use log::{JobLog, JobTitle, LogError};
pub use member::{Bringing, Member, Members};
pub use observe::{JobEvent, JobObserver, JobReport, MemberReport, MemberState, MemberView, Snapshot, Unwatched};
pub use put::{PutError, PutJob, put};
pub use report::{ClientPoint, JobRecord, LogReport, MemberPoint, MemberRecord, ReportError, Span};
pub use service::{Service, Welcome};
/// For the fuzz target of what is said over the socket of a fleet that is kept.
#[doc(hidden)]
pub use session::messages;
pub use session::{
    Claim, FleetName, Gone, JoinError, KeeperSocket, Pending, Session, SessionError, SessionReport, SessionStatus, Setup,
    UpFleet, claim, up,
};
pub use start::{
    Absent, AbsentError, Coming, Fleet, HostSpec, HostsError, Invitation, Launcher, MAX_HOSTS, StartError, StartSpec, Summons,
    Way, WayError, lead, start, start_bringing,
};
pub use status::{MemberStatus, status};

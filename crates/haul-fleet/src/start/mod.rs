//! From a list of hosts to members that are connected: each started by its way, those that do not come named and left out.
//!
//! ```text
//!   ssh-direct      client --ssh--> each host            the client dials each, as a copy does
//!   daemon          client --------> each host           the same, to what runs there already
//!   ssh             client --ssh--> first host --ssh--> the others        \
//!   mpirun, srun    client [--ssh--> a host] --mpirun, srun--> all       / members call the client back, or listen (`dial_out`)
//! ```

mod callers;
mod coming;
mod direct;
mod error;
mod far;
mod fleet;
mod gather;
mod hosts;
mod lead;
mod messages;
mod named;
mod spec;

pub(crate) use self::callers::{Callers, dial, dialling};
pub use self::coming::Coming;
pub use self::error::{AbsentError, StartError};
pub use self::fleet::{Absent, Fleet, start, start_bringing};
pub use self::hosts::{HostSpec, HostsError, MAX_HOSTS};
pub use self::lead::lead;
pub use self::messages::{Invitation, Summons};
pub use self::spec::{Launcher, StartSpec, Way, WayError};

//! What C calls, by the groups of haul.h.

mod blocks;
mod connection;
mod copy;
mod endpoint;
mod file;
mod fleet;
mod identity;
mod library;
mod lifetime;
mod options;
mod perf;
mod readiness;
mod statistics;
mod stream;

pub use blocks::HaulBlock;
pub use copy::HaulCopyRequest;
pub use fleet::{HaulFleetJob, HaulFleetMember, HaulFleetRequest};
pub use perf::{HaulPerfInterval, HaulPerfRequest, HaulPerfResult};
pub use readiness::HaulPollfd;
pub use statistics::HaulStatistics;

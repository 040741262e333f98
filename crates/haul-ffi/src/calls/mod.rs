//! What C calls, by the groups of haul.h.

mod blocks;
mod connection;
mod copy;
mod endpoint;
mod file;
mod identity;
mod library;
mod lifetime;
mod options;
mod readiness;
mod statistics;
mod stream;

pub use blocks::HaulBlock;
pub use copy::HaulCopyRequest;
pub use readiness::HaulPollfd;
pub use statistics::HaulStatistics;

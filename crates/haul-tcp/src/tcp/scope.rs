//! Which connections a rule is about.

use std::path::PathBuf;

use haul_units::Network;

use crate::kernel::netns::Namespace;

/// Whose connections are meant.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// To and from these; without any, all.
    pub networks: Vec<Network>,
    /// Of this network namespace; without one, that of this process.
    pub namespace: Option<Namespace>,
    /// Of the programs in this cgroup.
    pub cgroup: Option<PathBuf>,
}

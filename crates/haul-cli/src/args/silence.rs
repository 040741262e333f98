//! How long an outage may last, for every command that connects.

use std::time::Duration;

use clap::Args;

/// As the transport has it (`TransportConfig::idle_timeout`): longer than a router takes to start again, a telephone to find another cell or a line to be dialled, and shorter than
/// people wait for something that does not come back.
const DEFAULT_SECONDS: u64 = 90;

/// The silence after which a connection is given up.
#[derive(Debug, Clone, Copy, Args)]
pub struct SilenceArgs {
    /// Give the connection up when nothing has come from the other side for so long; of both sides the shorter time counts
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_SECONDS, value_parser = clap::value_parser!(u64).range(8..=3600))]
    dead_after: u64,
}

impl SilenceArgs {
    /// That time.
    pub const fn timeout(self) -> Duration {
        Duration::from_secs(self.dead_after)
    }
}

impl Default for SilenceArgs {
    fn default() -> Self {
        Self { dead_after: DEFAULT_SECONDS }
    }
}

#[cfg(test)]
mod tests {
    use haul::TransportConfig;

    use super::*;

    #[test]
    fn every_command_waits_as_long_as_the_transport() {
        assert_eq!(SilenceArgs::default().timeout(), TransportConfig::default().idle_timeout);
    }
}

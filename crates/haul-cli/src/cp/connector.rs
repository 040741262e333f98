//! The way to a host that the arguments name.

use std::sync::Arc;

use haul::TransportConfig;
use haul_copy::PROTOCOL;
use haul_peer::Connector;

use crate::args::CpArgs;
use crate::interrupt;
use crate::meanwhile::User;

/// For copies.
pub fn connector(args: &CpArgs) -> Connector {
    Connector {
        service: PROTOCOL,
        ssh: args.ssh.options(args.quiet, args.verbose > 1),
        udp_port: args.udp_port,
        state: args.state.clone(),
        transport: TransportConfig {
            controller: args.mode,
            rate_limit: args.limit.map(|limit| limit.0),
            paths: args.paths,
            idle_timeout: args.silence(),
            ..TransportConfig::default()
        },
        bind: None,
        data: None,
        // A copy tells of them with its progress.
        tells_outages: false,
        tell: Arc::new(User),
        cancel: interrupt::cancel().clone(),
    }
}

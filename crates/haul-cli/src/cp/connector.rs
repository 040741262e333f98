//! The way to a host that the arguments name.

use std::sync::Arc;

use haul::TransportConfig;
use haul_copy::PROTOCOL;
use haul_peer::{Connector, SshOptions};

use crate::args::{CpArgs, carriage_by};
use crate::exit::Failure;
use crate::meanwhile::User;
use crate::{bootstrap, interrupt};

/// For copies.
pub fn connector(args: &CpArgs) -> Result<Connector, Failure> {
    let bootstrap = bootstrap::asked(&args.bootstrap)?;
    let ssh = args.ssh_options();
    Ok(Connector {
        service: PROTOCOL,
        ssh: SshOptions { bootstrap, carriage: carriage_by(&args.via, ssh.carriage), ..ssh },
        udp_port: args.udp_port,
        state: args.state.clone(),
        transport: TransportConfig {
            controller: args.mode,
            rate_limit: args.limit().now(),
            paths: args.paths,
            via: args.via.clone(),
            idle_timeout: args.silence(),
            ..TransportConfig::default()
        },
        bind: None,
        data: None,
        // A copy tells of them with its progress.
        tells_outages: false,
        tell: Arc::new(User),
        cancel: interrupt::cancel().clone(),
    })
}

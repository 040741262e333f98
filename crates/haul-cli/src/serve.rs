//! `haul serve`: the daemon.
//!
//! SIGTERM and SIGINT end it; SIGHUP has it read roots again.

use haul_serve::{RelaySettings, Settings};
use tracing::warn;

use crate::args::ServeArgs;
use crate::exit::{Exit, Failure};
use crate::{interrupt, logging, system};

/// Runs the command.
pub fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    logging::start(logging::Audience::Operator, args.verbose, args.quiet);
    interrupt::watch_daemon();
    if args.user.is_none() && system::is_root() {
        warn!("runs as root: whatever goes wrong, goes wrong as root; --user NAME becomes another user");
    }
    haul_serve::serve(settings(args), interrupt::cancel(), &interrupt::reload_requested)?;
    Ok(Exit::Done)
}

fn settings(args: &ServeArgs) -> Settings {
    Settings {
        roots: args.roots.clone(),
        roots_file: args.roots_file.clone(),
        listen: args.listen,
        addresses: args.announced(),
        state: args.state.clone(),
        user: args.user.clone(),
        limit: args.limit.map(|limit| limit.0),
        audit: args.audit.to(),
        relay: args.relay.map(|whom| RelaySettings {
            whom,
            port: args.relay_port,
            pairs: args.relay_pairs.into(),
            rate: args.relay_limit.map(|limit| limit.0),
        }),
        describe: Some(haul_perf::text::server_line),
        ..Settings::new(args.guests.places(args.max_clients))
    }
}

//! `haul perf mesh`: every ordered pair of a list of hosts, haul against TCP; the matrix printed, and written as files.

use haul_perf::mesh::{
    self, FilesError, MeshListener, MeshSettings, Pair, PairError, ResultFiles, Site, StartError, megabits, sites, table,
};

use crate::args::{MeshArgs, TcpMode};
use crate::exit::{Exit, Failure};
use crate::{interrupt, output};

/// Runs the command.
pub fn run(args: &MeshArgs) -> Result<Exit, Failure> {
    let sites = sites(&args.hosts)?;
    let settings = MeshSettings {
        time: args.time,
        omit: args.omit,
        interval: args.every(),
        parallel: args.parallel,
        mode: args.mode,
        tcp_mode: args.tcp_mode.as_ref().map(TcpMode::kernel_name),
        congestion: args.congestion.clone(),
        server_port: args.server_port,
        at_once: args.at_once,
        ssh: args.ssh_args().options(false, false),
    };
    settings.check()?;
    let results = ResultFiles::free(&args.out)?;
    let matrix = mesh::measure(&sites, &settings, interrupt::cancel(), &Progress);
    let measured = matrix.measured_pairs();
    if measured == 0 {
        results.remove();
    } else {
        results.write(&matrix, |path| output::print_line(&format!("wrote {}", path.display())))?;
    }
    output::out_lines(&table(&matrix));
    output::print_out("");
    let all = sites.len() * (sites.len() - 1);
    Ok(match measured {
        _ if interrupt::requested() => Exit::Interrupted,
        0 => Exit::Failed,
        some if some < all => Exit::Partial,
        _ => Exit::Done,
    })
}

/// A line for each pair, and for each site that is not reached.
struct Progress;

impl MeshListener for Progress {
    fn no_server(&self, site: &Site, why: &StartError) {
        output::print_error(&format!("{}: {why}", site.name));
    }

    fn tried(&self, from: &Site, to: &Site, measured: &Result<Pair, PairError>, left: usize) {
        let what = match measured {
            Ok(pair) => format!("{:.2} ({} / {} Mbit/s)", pair.ratio(), megabits(pair.haul.rate), megabits(pair.tcp.rate)),
            Err(why) => format!("x ({why})"),
        };
        output::print_line(&format!("{} to {}: {what}, {left} left", from.name, to.name));
    }
}

impl From<FilesError> for Failure {
    fn from(error: FilesError) -> Self {
        Self::new(error).hint("name another place with --out PREFIX")
    }
}

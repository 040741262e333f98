//! `haul perf mesh`: every ordered pair of a list of hosts, haul against TCP; the matrix printed, and written as files.

mod table;

use std::fs;

use haul_perf::mesh::{self, Matrix, MeshListener, MeshSettings, Pair, PairError, Site, StartError, megabits, sites};

use crate::args::MeshArgs;
use crate::exit::{Exit, Failure};
use crate::perf::json::pretty;
use crate::{interrupt, output};

/// Runs the command.
pub fn run(args: &MeshArgs) -> Result<Exit, Failure> {
    let sites = sites(&args.hosts)?;
    let settings = MeshSettings {
        time: args.time,
        omit: args.omit,
        interval: args.interval,
        parallel: args.parallel,
        mode: args.mode,
        congestion: args.congestion.clone(),
        server_port: args.server_port,
        at_once: args.at_once,
        ssh: args.ssh.options(false, false),
    };
    let matrix = mesh::measure(&sites, &settings, interrupt::cancel(), &Progress);
    write_files(&matrix, args)?;
    output::out_lines(&table::text(&matrix));
    output::print_out("");
    let all = sites.len() * (sites.len() - 1);
    Ok(match matrix.measured() {
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

fn write_files(matrix: &Matrix, args: &MeshArgs) -> Result<(), Failure> {
    let json = pretty(&matrix.document()) + "\n";
    for (ending, content) in [("csv", matrix.csv()), ("json", json), ("html", matrix.page())] {
        let mut path = args.out.clone().into_os_string();
        path.push(format!(".{ending}"));
        fs::write(&path, content)
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())).hint("name another place with --out PREFIX"))?;
        output::print_line(&format!("wrote {}", path.display()));
    }
    Ok(())
}

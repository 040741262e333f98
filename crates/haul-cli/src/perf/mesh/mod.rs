//! `haul perf mesh`: every ordered pair of a list of hosts, haul against TCP; the matrix printed, and written as files.

mod table;

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use haul_perf::mesh::{self, Matrix, MeshListener, MeshSettings, Pair, PairError, Site, StartError, megabits, sites};

use crate::args::MeshArgs;
use crate::exit::{Exit, Failure};
use crate::perf::json::pretty;
use crate::{interrupt, output};

/// Runs the command.
pub fn run(args: &MeshArgs) -> Result<Exit, Failure> {
    let sites = sites(&args.hosts)?;
    let results = Results::free(&args.out).map_err(|error| unwritten(&args.out, &error))?;
    let settings = MeshSettings {
        time: args.time,
        omit: args.omit,
        interval: args.every(),
        parallel: args.parallel,
        mode: args.mode,
        tcp_mode: args.tcp_mode.as_ref().map(haul_tcp::Choice::kernel_name),
        congestion: args.congestion.clone(),
        server_port: args.server_port,
        at_once: args.at_once,
        ssh: args.ssh_args().options(false, false),
    };
    let matrix = mesh::measure(&sites, &settings, interrupt::cancel(), &Progress);
    results.write(&matrix)?;
    output::out_lines(&table::text(&matrix));
    output::print_out("");
    let all = sites.len() * (sites.len() - 1);
    Ok(match matrix.measured_pairs() {
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

/// The files of the results: those of an earlier mesh are never written over.
struct Results(Vec<(PathBuf, File)>);

impl Results {
    /// PREFIX.csv, .json and .html, or PREFIX-2 and so on where there is one of them. They are made before anything is measured: what cannot be written is known then.
    fn free(prefix: &Path) -> io::Result<Self> {
        let paths = |number: u32| {
            ENDINGS.map(|ending| {
                let mut path = prefix.as_os_str().to_owned();
                path.push(if number == 1 { format!(".{ending}") } else { format!("-{number}.{ending}") });
                PathBuf::from(path)
            })
        };
        let free = (1..10_000).map(paths).find(|paths| paths.iter().all(|path| path.symlink_metadata().is_err()));
        let open = |path: PathBuf| File::create_new(&path).map(|file| (path, file));
        free.into_iter().flatten().map(open).collect::<io::Result<_>>().map(Self)
    }

    fn write(self, matrix: &Matrix) -> Result<(), Failure> {
        let contents = [matrix.csv(), pretty(&matrix.document()) + "\n", matrix.page()];
        for ((path, mut file), content) in self.0.into_iter().zip(contents) {
            file.write_all(content.as_bytes()).map_err(|error| unwritten(&path, &error))?;
            output::print_line(&format!("wrote {}", path.display()));
        }
        Ok(())
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display())).hint("name another place with --out PREFIX")
}

const ENDINGS: [&str; 3] = ["csv", "json", "html"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_never_written_over() {
        let dir = tempfile::tempdir().expect("a directory");
        let prefix = dir.path().join("mesh");
        std::fs::write(prefix.with_extension("json"), "measured for hours").expect("room");
        let names = |results: Results| -> Vec<String> {
            results.0.iter().map(|(path, _)| path.file_name().expect("a name").to_string_lossy().into_owned()).collect()
        };
        let results = Results::free(&prefix).expect("room");
        assert_eq!(names(results), ["mesh-2.csv", "mesh-2.json", "mesh-2.html"]);
        assert_eq!(std::fs::read_to_string(prefix.with_extension("json")).expect("there"), "measured for hours");
        assert!(!prefix.with_extension("csv").exists(), "what was not used is left");
        assert!(Results::free(&dir.path().join("nowhere/mesh")).is_err());
    }
}

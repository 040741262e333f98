//! Measures the engine alone: copies a path to an empty directory through the in-memory transport, and prints what the threads waited for.
//!
//! `cargo run --release --example copy_in_memory -- SOURCE DESTINATION [--no-verify] [--preserve]`

use std::path::PathBuf;

use haul_files::{Access, Cancel, CopyError, Options, PushJob, Report, Silent, Verify, push, serve};
use haul_ramstore::memory::{Conditions, pair};

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(source), Some(destination)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: copy_in_memory SOURCE DESTINATION [--no-verify] [--preserve]");
        std::process::exit(2);
    };
    let flags: Vec<_> = arguments.collect();
    let given = |flag: &str| flags.iter().any(|given| given == flag);
    let verify = if given("--no-verify") { Verify::Off } else { Verify::Arrival };
    let options = Options { recursive: true, verify, preserve: given("--preserve"), ..Options::default() };
    match copy(source.into(), destination.into(), options) {
        Ok(report) => println!(
            "{} files, {} in {:?}\nsender   {:?}\nreceiver {:?}",
            report.files, report.bytes, report.elapsed, report.sender, report.receiver
        ),
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(2);
        }
    }
}

/// Both sides of a copy, in two threads.
pub fn copy(source: PathBuf, destination: PathBuf, options: Options) -> Result<Report, CopyError> {
    let job = PushJob { options, ..PushJob::new([source], destination) };
    let (here, there) = pair(Conditions::default());
    std::thread::scope(|scope| {
        scope.spawn(|| serve(there, &Access::Account { home: "/".into() }, &Silent, &Cancel::new()));
        push(here, &job, &Silent, &Cancel::new())
    })
}

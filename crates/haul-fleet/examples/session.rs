//! The calls of a session, one after another: starts servers by ssh, fetches two sources at the same time, sends what came to all servers, shows how they are, and ends them.
//!
//! `cargo run --example session -- HOSTS SOURCE SOURCE TARGET [SSH_CONFIG]`

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use haul_files::Options;
use haul_fleet::{GetJob, HostSpec, PutJob, Setup, Unwatched};
use haul_peer::{Nobody, SshOptions, Tell};
use haul_units::Cancel;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [hosts, first, second, target, config @ ..] = &words[..] else {
        return Err("usage: session HOSTS SOURCE SOURCE TARGET [SSH_CONFIG]".into());
    };
    let (target, cancel) = (PathBuf::from(target), Cancel::new());
    std::fs::create_dir_all(&target)?;

    let mut setup = Setup::initiate(HostSpec::list(hosts)?);
    setup.set_dir(target.join("logs"));
    setup.spec.ssh = SshOptions { config: config.first().map(Into::into), ..SshOptions::default() };
    let nobody: Arc<dyn Tell> = Arc::new(Nobody);
    let (session, absent) = setup.start(&nobody, &cancel)?;
    for absent in absent {
        println!("{}: {}", absent.name, absent.why);
    }

    let options = Options { recursive: true, ..Options::default() };
    let get = |source: &String| GetJob { options, ..GetJob::new(vec![source.into()], target.join("got")) };
    std::fs::create_dir_all(target.join("got"))?;
    for done in session.download_many(&[get(first), get(second)], &cancel) {
        let done = done?;
        println!("fetched {} files, {}", done.job.files.files, done.job.files.bytes);
    }
    let replicas = session.status(&cancel)?.members.len();
    let put = PutJob { options, replicas, ..PutJob::new(vec![target.join("got")], "sent") };
    let done = session.upload(&put, &Unwatched, &cancel)?;
    println!("sent {} files to {replicas} servers, {} problems", done.job.files.files, done.job.files.problem_count);

    for member in session.status(&cancel)?.members {
        let report = member.report?;
        println!(
            "{}: load {:.2}, {:?} free",
            member.name,
            report.machine.load1,
            report.places.first().map(|place| place.free_bytes)
        );
    }
    session.stop(&cancel)?;
    Ok(())
}

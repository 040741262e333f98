//! Copies a tree to a host that ssh reaches and where `haul` is installed, as `haul cp -r` does: `copy_tree SOURCE [USER@]HOST:PATH [SSH_CONFIG]`

use std::error::Error;
use std::path::PathBuf;

use haul_copy::{ClientSession, Job, PROTOCOL};
use haul_files::{PushJob, Silent};
use haul_peer::{Connector, Host, Operand, SshOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1);
    let (Some(source), Some(target)) = (words.next(), words.next()) else {
        return Err("usage: copy_tree SOURCE [USER@]HOST:PATH [SSH_CONFIG]".into());
    };
    let Operand::Ssh(host, path) = Operand::parse(&target)? else { return Err("write the target as HOST:PATH".into()) };
    let ssh = SshOptions { config: words.next().map(Into::into), ..SshOptions::default() };
    let connector = Connector { ssh, ..Connector::new(PROTOCOL) };
    let connected = connector.connect(&Host::Ssh(host))?;

    let job = Job::Push(PushJob::new([PathBuf::from(source)], path));
    let copied = ClientSession::new(connected.connection.clone(), &job).run(&job, None, &Silent, &connector.cancel);
    // Where nothing came over UDP at all, the copy could only see its connection end.
    let report = copied.map_err(|error| connected.cause().map_or_else(|| Box::<dyn Error>::from(error), Into::into))?;
    connected.end();
    println!("{} files, {} in {:.1?}, {} problems", report.files, report.bytes, report.elapsed, report.problem_count);
    Ok(())
}

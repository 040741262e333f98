//! GridFTP by Debian's Globus programs: parallel streams in clear text, and no login: what it takes for logging in is not in its time.

use super::disk::{Copier, DISK, shell, source};
use super::setup::Bench;
use crate::bench::duel::{Listens, MeasureError, wait_until_listening};
use crate::bench::files;
use crate::bench::plan::FileSet;
use crate::bench::process::Running;
use crate::bench::tool::Tool;
use haul_lab::Side;
use haul_units::BitRate;

/// Starts the server and makes the command.
pub fn set_up(bench: &Bench<'_>, files: FileSet) -> Result<Copier, MeasureError> {
    let (far, near) = (bench.site.address(Side::B).to_string(), bench.site.address(Side::A).to_string());
    // The server looks up the name of its machine, which need not be known to anybody.
    let names = format!("cd {DISK}; {{ cat /etc/hosts; echo {far} $(hostname); }} >hosts; mount --bind hosts /etc/hosts");
    shell(bench, &names).map_err(|why| MeasureError::Script { who: "mount", why })?;
    let program = bench.programs.find("globus-gridftp-server").unwrap_or_else(|| "globus-gridftp-server".into());
    let mut server = bench.site.command(Side::B, "env".as_ref());
    server.arg(format!("GLOBUS_HOSTNAME={far}")).arg(program);
    server.args(["-control-interface", &far, "-data-interface", &far, "-p", &PORT.to_string()]);
    server.args(["-aa", "-anonymous-user", "root", "-home-dir", "/", "-auth-level", "0"]);
    let mut server = Running::start(server).map_err(|error| MeasureError::Start { what: "the GridFTP server", error })?;
    wait_until_listening(bench.site, &mut server, Listens::Tcp(PORT))?;
    let fast = bench.cell.path.link().is_none_or(|link| link.rate > BitRate::gbps(2));
    let streams = if fast { "16" } else { "8" };
    let mut client = bench.site.command(Side::A, "env".as_ref());
    client.arg(format!("GLOBUS_HOSTNAME={near}")).args(["globus-url-copy", "-fast"]);
    let (from, to) = (source(files), format!("{DISK}/arrived/{}", files::top(files)));
    if files.count == 1 {
        client.args(["-p", streams, &format!("file://{from}"), &format!("ftp://{far}:{PORT}{to}")]);
    } else {
        // Small files profit from several at once, and from requests that do not wait for each other.
        client.args(["-cc", streams, "-pp", "-r", "-cd", &format!("file://{from}/"), &format!("ftp://{far}:{PORT}{to}/")]);
    }
    let tcp = if bench.cell.tool == Tool::GridftpBbr { "BBR" } else { "CUBIC" };
    let note = format!("no login, clear text, TCP {tcp} with rmem and wmem up to 2 GiB");
    Ok(Copier { server, client, note })
}

const PORT: u16 = 2811;

//! `haul cp` to a daemon: the two know each other's keys, nobody logs in.

use haul_lab::Side;

use super::disk::{Copier, DISK, PARTS, shell, source};
use super::setup::Bench;
use crate::bench::duel::{Listens, MeasureError, wait_until_listening};
use crate::bench::plan::FileSet;
use crate::bench::process::Running;

/// Starts `haul serve` and makes the command.
pub fn set_up(bench: &Bench<'_>, files: FileSet) -> Result<Copier, MeasureError> {
    let (haul, far) = (bench.programs.haul().to_string_lossy(), format!("{}:{PORT}", bench.site.address(Side::B)));
    // What both keep stays on the disk: no run is to know of another one.
    let (near, state) = (format!("XDG_CONFIG_HOME={DISK}/near XDG_STATE_HOME={DISK}/near"), format!("{DISK}/far-state"));
    let keys = format!(
        "{haul} key authorize $({near} {haul} key show) --name bench --state {state} >{DISK}/keys
        {near} {haul} key trust {far} $({haul} key show --state {state}) >>{DISK}/keys"
    );
    shell(bench, &keys).map_err(|why| MeasureError::Script { who: "haul key", why })?;
    let mut server = bench.site.command(Side::B, bench.programs.haul().as_os_str());
    server.args(["serve", "--root", &format!("arrived={DISK}/arrived:rw"), "--listen", &far, "--state", &state]);
    let mut server = Running::start(server).map_err(|error| MeasureError::Start { what: "haul serve", error })?;
    wait_until_listening(bench.site, &mut server, Listens::Udp(PORT))?;
    let mut client = bench.site.command(Side::A, "env".as_ref());
    client.args(near.split(' ')).args([&*haul, "cp", &format!("--trace={PARTS}")]);
    if files.count > 1 {
        client.arg("-r");
    }
    client.arg(source(files)).arg(format!("haul://{far}/arrived/"));
    Ok(Copier { server, client, note: "no login; encrypted".to_owned() })
}

const PORT: u16 = 7700;

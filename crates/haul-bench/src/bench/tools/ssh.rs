//! What copies over ssh: scp, sftp, rsync, tar and `haul cp`, to an sshd of its own with keys made for one measurement.

use std::process::Command;

use haul_lab::Side;

use super::disk::{Copier, DISK, PARTS, shell, source};
use super::setup::Bench;
use crate::bench::duel::{Listens, MeasureError, wait_until_listening};
use crate::bench::files;
use crate::bench::plan::FileSet;
use crate::bench::process::Running;
use crate::bench::ssh_setup::SshSetup;
use crate::bench::tool::Tool;

/// Starts sshd and makes the command.
pub fn set_up(bench: &Bench<'_>, files: FileSet) -> Result<Copier, MeasureError> {
    let address = bench.site.address(Side::B).to_string();
    let sshd = SshSetup {
        dir: DISK,
        port: PORT,
        known_as: &format!("[{address}]:{PORT}"),
        server: &[
            format!("ListenAddress {address}"),
            // An empty home: what this machine's owner has a login do is in the time of no tool.
            format!("SetEnv HOME={DISK}/far-home XDG_CONFIG_HOME={DISK}/far-config XDG_STATE_HOME={DISK}/far-state"),
        ],
        client: &[("far", format!("HostName {address}\nCiphers aes128-gcm@openssh.com"))],
    };
    let script = format!("mkdir -p {DISK}/far-home {DISK}/far-config {DISK}/far-state\n{}", sshd.script());
    shell(bench, &script).map_err(|why| MeasureError::Script { who: "ssh-keygen", why })?;
    // It calls itself again for each session, by its full path.
    let sshd = bench.programs.find("sshd").unwrap_or_else(|| "/usr/sbin/sshd".into());
    let mut server = bench.site.command(Side::B, sshd.as_os_str());
    server.args(["-D", "-e", "-f", &format!("{DISK}/sshd_config")]);
    let mut server = Running::start(server).map_err(|error| MeasureError::Start { what: "sshd", error })?;
    wait_until_listening(bench.site, &mut server, Listens::Tcp(PORT))?;
    let client = client(bench, files);
    let note =
        "logging in included; OpenSSH with aes128-gcm, no compression, TCP CUBIC with rmem and wmem up to 2 GiB".to_owned();
    Ok(Copier { server, client, note })
}

/// The command that copies.
pub fn client(bench: &Bench<'_>, files: FileSet) -> Command {
    let words = words(bench, files);
    let mut client = bench.site.command(Side::A, words[0].as_ref());
    client.args(&words[1..]);
    client
}

fn words(bench: &Bench<'_>, files: FileSet) -> Vec<String> {
    let (config, arrived, source, top) =
        (format!("{DISK}/ssh_config"), format!("{DISK}/arrived/"), source(files), files::top(files));
    let far = format!("far:{arrived}");
    let is_tree = files.count > 1;
    let recursive: &[&str] = if is_tree { &["-r"] } else { &[] };
    let words = |words: &[&[&str]]| words.concat().into_iter().map(str::to_owned).collect();
    let piped = |pipe: String| words(&[&["bash", "-o", "pipefail", "-c", &pipe]]);
    match bench.cell.tool {
        Tool::HaulCp | Tool::HaulCpAgain | Tool::HaulCpTcp | Tool::HaulCpSsh => {
            let haul = bench.programs.haul().to_string_lossy();
            // What it keeps about hosts stays on the disk: no run is to know of another one.
            let homes = ["CONFIG", "STATE"].map(|what| format!("XDG_{what}_HOME={DISK}/near"));
            let how: &[&str] = match bench.cell.tool {
                Tool::HaulCpAgain => &["--mode", "quickstart"],
                Tool::HaulCpTcp => &["--transport", "tcp"],
                Tool::HaulCpSsh => &["--transport", "ssh"],
                _ => &[],
            };
            let trace = format!("--trace={PARTS}");
            words(&[
                &["env", &homes[0], &homes[1], &haul, "cp", "-F", &config, "--remote-haul", &haul, &trace],
                how,
                recursive,
                &[&source, &far],
            ])
        }
        // By itself it has as many connections as the processors of the host say, and 1 MiB asked for on each.
        Tool::Mscp => words(&[&["mscp", "-q", "-F", &config, "-n", "8", "-a", "256", &source, &far]]),
        Tool::Rsync => {
            let shell = format!("ssh -F {config}");
            words(&[&["rsync", "-a", "--whole-file", "--inplace", "-e", &shell, &source, &far]])
        }
        Tool::Tar => piped(format!("tar -C {DISK}/source -cf - {top} | ssh -F {config} far tar -C {arrived} -xf -")),
        Tool::Sftp => {
            let put = if is_tree { "put -R" } else { "put" };
            piped(format!("echo '{put} {source} {arrived}' | sftp -q -F {config} -B 261120 -R 1024 -b - far"))
        }
        _ => words(&[&["scp", "-q", "-F", &config], recursive, &[&source, &far]]),
    }
}

const PORT: u16 = 2222;

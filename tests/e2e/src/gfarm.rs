//! A real Gfarm by `scripts/gfarm.sh`, with all that it has in memory: a metadata server and three storage servers on the loopback addresses of a host, or a storage server on each of several sites.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::lab::Lab;
use crate::net::{Host, is_orphan};
use crate::sites::Sites;
use crate::sshd::{GFARM_CONFIG, gfarm_dir};

/// The same in every namespace, but different for the two hosts: the servers have sockets in /tmp, which all share.
const NEAR_PORT: u16 = 20601;
const FAR_PORT: u16 = 20701;
const SITES_PORT: u16 = 20801;
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/gfarm.sh");

/// The servers; they end with this value.
pub struct Gfarm<'a> {
    host: &'a Host,
    dir: PathBuf,
}

impl<'a> Gfarm<'a> {
    /// Starts it on the host that one logs in to; nothing where Gfarm is not installed: then the test says so and ends.
    pub fn on_far(lab: &'a Lab) -> Option<Self> {
        Self::start(&lab.far, gfarm_dir(lab.scratch()), FAR_PORT)
    }

    /// The same on the host where the copies begin.
    pub fn on_near(lab: &'a Lab) -> Option<Self> {
        Self::start(&lab.near, gfarm_dir(lab.scratch()).with_extension("near"), NEAR_PORT)
    }

    /// The metadata server on the hub, and a storage server on each of the first sites, which have its configuration in their environment. The storage server of a site is named by its address.
    pub fn on_sites(sites: &'a Sites, number: usize) -> Option<Self> {
        let gfarm = Self::prepare(sites.hub(), gfarm_dir(sites.scratch()))?;
        gfarm.script("meta", &[&SITES_PORT.to_string(), &sites.hub_address(1).to_string()]);
        for site in 1..=number {
            let config = gfarm_dir(&sites.scratch().join(format!("site{site}"))).join(GFARM_CONFIG);
            fs::create_dir_all(config.parent().expect("a directory")).expect("a directory for a configuration");
            std::os::unix::fs::symlink(gfarm.config(), config).expect("a configuration");
            let host = sites.site(site);
            gfarm.script("register", &[&host.address]);
            gfarm.script_on(host, "start", &[&host.address]);
        }
        Some(gfarm)
    }

    fn start(host: &'a Host, dir: PathBuf, port: u16) -> Option<Self> {
        let gfarm = Self::prepare(host, dir)?;
        gfarm.script("up", &[&port.to_string()]);
        Some(gfarm)
    }

    fn prepare(host: &'a Host, dir: PathBuf) -> Option<Self> {
        let found = Command::new("sh").args(["-c", "PATH=$PATH:/usr/sbin command -v gfmd gfsd gfkey"]).output();
        if !found.is_ok_and(|found| found.status.success()) {
            skip::skip("Gfarm is not installed (make setup)");
            return None;
        }
        sweep(dir.parent().unwrap_or(&dir));
        Some(Self { host, dir })
    }

    /// What `GFARM_CONFIG_FILE` must say.
    pub fn config(&self) -> PathBuf {
        self.dir.join(GFARM_CONFIG)
    }

    /// Kills a storage server, by the last number of its loopback address or by the address of its site, with all that it does.
    pub fn kill(&self, n: &str) {
        self.script("kill", &[n]);
    }

    /// Starts it again.
    pub fn restart(&self, n: u8) {
        self.script("start", &[&n.to_string()]);
    }

    /// Starts the storage server of a site again.
    pub fn restart_on(&self, site: &Host) {
        self.script_on(site, "start", &[&site.address]);
    }

    /// Brings a file to `n` of the storage servers; they have it when this returns.
    pub fn spread(&self, path: &str, n: usize) {
        self.script("spread", &[path, &n.to_string()]);
    }

    /// Runs one of Gfarm's own programs, and gives what it printed.
    #[track_caller]
    pub fn program(&self, name: &str, arguments: &[&str]) -> String {
        let output = self.host.command(name).args(arguments).env("GFARM_CONFIG_FILE", self.config()).output();
        printed(name, &output.expect("starting a program of Gfarm"))
    }

    #[track_caller]
    fn script(&self, verb: &str, more: &[&str]) {
        self.script_on(self.host, verb, more);
    }

    #[track_caller]
    fn script_on(&self, host: &Host, verb: &str, more: &[&str]) {
        let output = host.command(SCRIPT).arg(verb).arg(&self.dir).args(more).output();
        printed(verb, &output.expect("starting scripts/gfarm.sh"));
    }
}

impl Drop for Gfarm<'_> {
    fn drop(&mut self) {
        let _ = self.host.command(SCRIPT).arg("down").arg(&self.dir).output();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Removes what tests that were killed have left; their servers went with their hosts' names, or do no harm.
fn sweep(memory: &Path) {
    let entries = fs::read_dir(memory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_orphan(&entry.file_name().to_string_lossy())) {
        let _ = fs::remove_dir_all(entry.path());
    }
}

#[track_caller]
fn printed(what: &str, output: &Output) -> String {
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

//! The two sites, the daemon at the far one, and what is watched there.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::{Host, Random, Running, Sites, Tmpfs, eventually, tree};
use haul_lab::LinkOptions;
use haul_units::BitRate;
use hostile::{Crowd, Listener, Manner, Readings, Sources};
use rustix::process::{Resource, Rlimit, Signal, kill_process, prlimit};

use crate::journal::Journal;

const NEAR: usize = 1;
const FAR: usize = 2;
const PORT: u16 = 7700;
/// Longer than any timer of haul's: after it, whatever has not ended hangs.
const PATIENCE: Duration = Duration::from_secs(150);
/// By then a daemon has ended that was asked to.
const FAREWELL: Duration = Duration::from_secs(30);
/// A file and a directory that are not haul's.
const LITTER: [&str; 2] = ["photos", "theirs"];
/// ssh, whose remote command may have $FILES files open. `-G` only asks what ssh would do.
const LIMITING_SSH: &str = r#"#!/bin/sh
for word; do [ "$word" = -G ] && exec ssh "$@"; done
count=$# after=0
for word; do
    case $after in 0) [ "$word" = -- ] && after=1;; 1) after=2;; 2) word="ulimit -n $FILES; $word" after=3;; esac
    set -- "$@" "$word"
done
shift "$count"
exec ssh "$@"
"#;
/// A daemon at rest, whatever it has been through.
const THREADS_AT_REST: u64 = 16;
const DESCRIPTORS_AT_REST: u64 = 48;
const RSS_AT_REST_BYTES: u64 = 512 << 20;

/// Where copies happen.
pub struct Field {
    sites: Sites,
    daemon: Option<Running>,
    disk: Option<Tmpfs>,
    /// The last digit of the near site's address.
    near_last: u8,
    crowd: Option<Crowd>,
    /// Names in the scratch directory when nothing has been copied.
    furniture: Vec<String>,
    /// Directories of the round under way.
    round: Option<PathBuf>,
    /// What the far site's processes may have open.
    files: Files,
}

/// How many descriptors a process may have.
pub type Files = Option<u64>;

impl Field {
    /// Two sites, keys exchanged, the daemon up.
    pub fn lay_out(journal: &Journal) -> Option<Self> {
        let link = usual_link(BitRate::mbps(200), Duration::from_millis(20), journal.seed());
        let sites = Sites::open(&[link.clone(), LinkOptions { seed: link.seed + 2, ..link }])?;
        fs::create_dir(sites.scratch().join("exported")).expect("making the exported root");
        let mut field =
            Self { sites, daemon: None, disk: None, near_last: 1, crowd: None, furniture: Vec::new(), round: None, files: None };
        let (ours, theirs) = (field.own_key(NEAR), field.own_key(FAR));
        let far = field.far().address.clone();
        field.key(FAR, &["authorize", &ours, "--name", "near"]);
        field.key(NEAR, &["trust", &far, &theirs]);
        field.start_daemon();
        let ssh = field.limiting_ssh();
        fs::write(&ssh, LIMITING_SSH).expect("writing a script");
        fs::set_permissions(&ssh, Permissions::from_mode(0o755)).expect("making it a program");
        field.furniture = tree::names(field.sites.scratch());
        Some(field)
    }

    fn key(&self, site: usize, args: &[&str]) -> String {
        let mut command = self.sites.haul(self.sites.site(site));
        command.arg("key").args(args);
        let finished = Running::start(command).wait(Duration::from_secs(30)).expect(0);
        String::from_utf8_lossy(&finished.stdout).into_owned()
    }

    fn own_key(&self, site: usize) -> String {
        let shown = self.key(site, &["show"]);
        shown.split_whitespace().find(|word| word.starts_with("SHA256:")).expect("a fingerprint").to_owned()
    }

    /// The site that `haul cp` runs at.
    pub fn near(&self) -> &Host {
        self.sites.site(NEAR)
    }

    /// The site with the sshd and the daemon.
    pub fn far(&self) -> &Host {
        self.sites.site(FAR)
    }

    /// Starts the daemon, if it does not run.
    pub fn start_daemon(&mut self) {
        if self.daemon.as_mut().is_some_and(Running::runs) {
            return;
        }
        let mut root = OsString::from("data=");
        root.push(self.exported());
        // Without `owners` a daemon keeps some bits of modes to itself, and the trees would not be the same.
        root.push(":rw,owners");
        let mut command = self.sites.haul(self.far());
        command.args(["serve", "--root"]).arg(root).args(["--listen", &self.daemon_address().to_string()]);
        let daemon = Running::start(command);
        if let Some(files) = self.files {
            let limit = Rlimit { current: Some(files), maximum: Some(files) };
            prlimit(Some(daemon.pid()), Resource::Nofile, limit).expect("limiting a child");
        }
        self.daemon = Some(daemon);
        let listens = || {
            let output = self.far().command("ss").args(["-Hlun", &format!("sport = :{PORT}")]).output();
            output.is_ok_and(|output| !output.stdout.is_empty())
        };
        assert!(eventually(Duration::from_secs(20), listens), "the daemon does not listen");
    }

    /// Ends the daemon by a signal and starts it again at once.
    pub fn restart_daemon(&mut self, signal: Signal) {
        if let Some(daemon) = self.daemon.take() {
            daemon.signal(signal);
            let finished = daemon.wait(FAREWELL);
            assert!(!finished.stderr.contains("panicked at"), "{finished}");
        }
        self.start_daemon();
    }

    /// From here on the daemon, and what copies start through ssh, may have so many files open.
    pub fn limit_files(&mut self, files: Files) {
        if self.files != files {
            self.files = files;
            self.restart_daemon(Signal::TERM);
        }
    }

    /// What is called in the place of ssh, so that the far side has the limit from its beginning.
    fn limiting_ssh(&self) -> PathBuf {
        self.sites.scratch().join("limiting-ssh")
    }

    /// Puts a file and a directory into the stages of the round under way.
    pub fn litter(&self) {
        for stage in self.stages() {
            let _ = fs::write(stage.join(LITTER[0]), "of somebody else");
            let _ = fs::create_dir(stage.join(LITTER[1]));
        }
    }

    /// Removes what [`Field::litter`] has put there; returns the stages that had any. Panics if anything else is in a stage whose copy is done.
    pub fn sweep(&self) -> Vec<PathBuf> {
        let stages = self.stages();
        for stage in &stages {
            let left = tree::names(stage);
            // Without any it would be gone.
            let is_theirs = !left.is_empty() && left.iter().all(|name| LITTER.contains(&name.as_str()));
            assert!(is_theirs, "left in {}: {left:?}", stage.display());
            fs::remove_dir_all(stage).expect("removing a stage");
        }
        stages
    }

    fn stages(&self) -> Vec<PathBuf> {
        let Some(target) = self.round.as_ref().map(|round| round.join("target")).filter(|target| target.exists()) else {
            return Vec::new();
        };
        let stages = tree::names(&target).into_iter().filter(|name| name.starts_with(".haul-"));
        stages.map(|name| target.join(name)).collect()
    }

    fn daemon_address(&self) -> SocketAddr {
        SocketAddr::new(self.far().address.parse().expect("an address"), PORT)
    }

    /// What the daemon exports as `data`.
    pub fn exported(&self) -> PathBuf {
        self.sites.scratch().join("exported")
    }

    /// The operand of a path at the far site, through ssh or below what the daemon exports.
    pub fn operand(&self, path: &Path, daemon: bool) -> OsString {
        if daemon {
            let below = path.strip_prefix(self.exported()).expect("below what is exported");
            let mut operand = OsString::from(format!("haul://{}/data/", self.far().address));
            operand.push(below);
            return operand;
        }
        let mut operand = OsString::from(format!("site{FAR}:"));
        operand.push(path);
        operand
    }

    /// `haul cp` at the near site.
    pub fn copy(&self, from: &OsString, to: &OsString) -> Running {
        let mut command: Command = self.sites.haul(self.near());
        command.arg("cp").arg("-F").arg(self.sites.ssh_config()).args(["-rp", "--json"]);
        if let Some(files) = self.files {
            command.env("FILES", files.to_string()).arg("-S").arg(self.limiting_ssh());
        }
        command.arg(from).arg(to);
        Running::start(command)
    }

    /// New directories for a round: where the source is made, and where it goes to.
    pub fn places(&mut self, number: u64, small_disk: Option<u64>) -> (PathBuf, PathBuf) {
        let round = self.exported().join(format!("round{number}"));
        let source = round.join("source");
        fs::create_dir_all(&source).expect("making directories");
        let target = match small_disk {
            Some(bytes) => {
                let disk = Tmpfs::mount(&round, &bytes.to_string());
                let target = disk.path().join("target");
                self.disk = Some(disk);
                target
            }
            None => round.join("target"),
        };
        fs::create_dir_all(&target).expect("making directories");
        self.round = Some(round);
        (source, target)
    }

    /// Makes the small disk large.
    pub fn enlarge_disk(&self) {
        if let Some(disk) = &self.disk {
            disk.resize("1g");
        }
    }

    /// Removes the directories of a round.
    pub fn clear(&mut self) {
        self.disk = None;
        if let Some(round) = self.round.take() {
            fs::remove_dir_all(&round).unwrap_or_else(|error| panic!("{}: {error}", round.display()));
        }
    }

    /// Gives both links other properties.
    pub fn relink(&mut self, link: &LinkOptions) {
        self.sites.relink(NEAR, link.clone());
        self.sites.relink(FAR, LinkOptions { seed: link.seed.wrapping_add(2), ..link.clone() });
    }

    /// IP bytes that both hosts have sent into their links so far.
    pub fn offered_bytes(&self) -> u64 {
        self.sites.offered_bytes(FAR)
    }

    /// Gives the near site another address.
    pub fn renumber(&mut self) {
        self.near_last = if self.near_last >= 200 { 2 } else { self.near_last + 1 };
        self.sites.renumber(NEAR, self.near_last);
    }

    /// Limits packets at the hub.
    pub fn set_mtu(&self, mtu: u16) {
        self.sites.set_mtu(FAR, mtu);
    }

    /// Random datagrams for the daemon's port, from the hub.
    pub fn flood(&self, count: u64, random: &mut Random) {
        let to = self.daemon_address();
        let socket = self.sites.hub().run(|| UdpSocket::bind("0.0.0.0:0")).expect("binding");
        for _ in 0..count {
            let length = random.within(1..1400) as usize;
            let _ = socket.send_to(&random.bytes(length), to);
        }
    }

    /// Strangers at the daemon, from the hub.
    pub fn invite_strangers(&mut self, count: usize) {
        let (to, from) = (self.daemon_address(), self.sites.hub_address(FAR));
        let gather = || Crowd::gather(to, Listener::Serve.protocol(), Manner::Halfway, &[(Sources::At(from), count)]);
        self.crowd = Some(self.sites.hub().run(gather));
    }

    /// Sends them away.
    pub fn dismiss_strangers(&mut self) {
        self.crowd = None;
    }

    /// All as it was: the link, the packet size, the daemon, nobody strange.
    pub fn heal(&mut self, link: &LinkOptions) {
        self.crowd = None;
        self.relink(link);
        self.set_mtu(1500);
        self.start_daemon();
    }

    /// Panics unless everything that a copy makes is gone again, and the daemon is at rest.
    pub fn assert_nothing_left(&mut self, journal: &Journal) {
        let left = || {
            let of = |host: &Host, words: &[&str]| host.processes(words);
            [
                of(self.near(), &["haul cp"]),
                of(self.near(), &["ssh", "-F"]),
                of(self.far(), &["haul remote"]),
                of(self.far(), &["haul cp"]),
            ]
            .concat()
        };
        assert!(eventually(PATIENCE, || left().is_empty()), "processes left behind: {:?}", left());
        assert_eq!(tree::names(self.sites.scratch()), self.furniture, "left behind in the scratch directory");
        let Some(daemon) = self.daemon.as_mut() else { return };
        assert!(daemon.runs(), "the daemon has ended");
        let pid = daemon.pid();
        let read = || Readings::of(pid.as_raw_nonzero().get() as u32);
        let rests = || read().threads <= THREADS_AT_REST && read().descriptors <= DESCRIPTORS_AT_REST;
        assert!(eventually(PATIENCE, rests), "the daemon does not come to rest: {:?}", read());
        let readings = read();
        journal.note(&format!(
            "daemon at rest: {} MiB, {} threads, {} descriptors",
            readings.rss_bytes >> 20,
            readings.threads,
            readings.descriptors
        ));
        assert!(readings.rss_bytes < RSS_AT_REST_BYTES, "the daemon holds {} MiB", readings.rss_bytes >> 20);
    }

    /// Puts what a failed round was about where nothing removes it.
    pub fn keep_evidence(&mut self, journal: &Journal) -> PathBuf {
        let kept = std::env::temp_dir().join(format!("torture-evidence-{}-{}", journal.seed(), std::process::id()));
        let _ = fs::create_dir_all(&kept);
        let _ = fs::write(kept.join("journal"), journal.text());
        if let Some(daemon) = self.daemon.take() {
            daemon.signal(Signal::TERM);
            if eventually(Duration::from_secs(15), || Readings::of(daemon.pid().as_raw_nonzero().get() as u32).threads == 0) {
                let _ = fs::write(kept.join("daemon"), daemon.wait(Duration::from_secs(5)).to_string());
            }
        }
        for name in ["site1/sshd.log", "site2/sshd.log"] {
            let _ = fs::copy(self.sites.scratch().join(name), kept.join(name.replace('/', "-")));
        }
        if let Some(round) = &self.round {
            // By cp(1), not by what is tested.
            let _ = Command::new("cp").args(["-a", "--sparse=always"]).arg(round).arg(kept.join("round")).status();
        }
        kept
    }
}

/// A signal for what matches on a host; returns how many got it.
pub fn signal_on(host: &Host, words: &[&str], signal: Signal) -> u64 {
    let pids = host.processes(words);
    for pid in &pids {
        let _ = kill_process(*pid, signal);
    }
    pids.len() as u64
}

/// A link without anything wrong.
pub fn usual_link(rate: BitRate, rtt: Duration, seed: u64) -> LinkOptions {
    LinkOptions { rate, rtt, seed: seed | 1, ..LinkOptions::default() }
}

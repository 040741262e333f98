//! Two sites: the clients at one, the daemons at the other; strangers come from the hub between.

use std::collections::VecDeque;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::{Host, Random, Running, Sites, eventually, haul_binary, pause};
use haul_lab::LinkOptions;
use haul_units::{BitRate, Ratio};
use hostile::{Crowd, Listener, Manner, Readings, Sources};
use rustix::process::Signal;

use super::{Plan, becomes};
use crate::field::usual_link;
use crate::journal::Journal;

const NEAR: usize = 1;
const FAR: usize = 2;
/// Ports of the daemon that lives, and of the one that is killed.
const STEADY: u16 = 7700;
const OTHER: u16 = 7701;
/// The daemons' own link has at least ten times what the clients share, so that garbage takes nothing away on it.
const DAEMONS_RATE: BitRate = BitRate::gbps(1);
const RTT: Duration = Duration::from_millis(20);
/// A daemon at rest, whatever it has been through.
const THREADS_AT_REST: u64 = 16;
const DESCRIPTORS_AT_REST: u64 = 48;

pub struct Ground {
    sites: Sites,
    steady: Running,
    other: Option<Running>,
    link: LinkOptions,
    crowds: Vec<Crowd>,
    garbage: UdpSocket,
    /// What daemons said that were killed, the last of them.
    said: VecDeque<String>,
}

impl Ground {
    pub fn lay_out(plan: &Plan, journal: &Journal) -> Option<Self> {
        let link = usual_link(plan.rate, RTT / 2, journal.seed());
        let sites = Sites::open(&[link.clone(), usual_link(DAEMONS_RATE, RTT / 2, journal.seed() + 2)])?;
        fs::create_dir(sites.scratch().join("exported")).expect("making the exported root");
        let garbage = sites.hub().run(|| UdpSocket::bind("0.0.0.0:0")).expect("binding");
        let daemon_key = key(sites.haul(sites.site(FAR)), &["show"]);
        for client in 0..plan.clients {
            let (home, port) = (home(sites.scratch(), client), port_of(client));
            fs::create_dir_all(&home).expect("making a client's home");
            fs::create_dir(sites.scratch().join("exported").join(client.to_string())).expect("making a client's place");
            let ours = || sites.haul(sites.site(NEAR));
            let own = key(at_home(ours(), &home), &["show"]);
            key(sites.haul(sites.site(FAR)), &["authorize", &own, "--name", &format!("client{client}")]);
            key(at_home(ours(), &home), &["trust", &format!("{}:{port}", sites.site(FAR).address), &daemon_key]);
        }
        let (steady, other) = (start_daemon(&sites, STEADY), start_daemon(&sites, OTHER));
        Some(Self { sites, steady, other: Some(other), link, crowds: Vec::new(), garbage, said: VecDeque::new() })
    }

    /// The process whose memory is watched.
    pub fn steady(&self) -> u32 {
        self.steady.pid().as_raw_nonzero().get() as u32
    }

    /// The scratch directory.
    pub fn scratch(&self) -> &Path {
        self.sites.scratch()
    }

    /// Where clients run.
    pub fn near(&self) -> Host {
        let near = self.sites.site(NEAR);
        Host { namespace: near.namespace.clone(), address: near.address.clone(), address6: near.address6.clone() }
    }

    /// IP bytes of the clients and to them that came through their link so far; nobody else's go over it.
    pub fn carried_bytes(&self) -> u64 {
        self.sites.delivered_bytes(NEAR)
    }

    /// The operand of a client's place at its daemon.
    pub fn url(&self, client: usize) -> String {
        format!("haul://{}:{}/data/{client}", self.sites.site(FAR).address, port_of(client))
    }

    /// Strangers at the steady daemon: half of them stop halfway through the handshake, half go through it and are turned away.
    pub fn invite(&mut self, count: usize) {
        let (to, from) = (self.address(STEADY), Sources::At(self.sites.hub_address(FAR)));
        for manner in [Manner::Halfway, Manner::Silent] {
            let gather = || Crowd::gather(to, Listener::Serve.protocol(), manner, &[(from, count / 2)]);
            self.crowds.push(self.sites.hub().run(gather));
        }
    }

    /// How many have tried.
    pub fn strangers_that_tried(&self) -> usize {
        self.crowds.iter().map(Crowd::tried).sum()
    }

    /// Sends them away.
    pub fn dismiss(&mut self) {
        self.crowds.clear();
    }

    /// Random datagrams for the steady daemon; returns how many.
    pub fn throw_garbage(&self, count: u64, random: &mut Random) -> u64 {
        for _ in 0..count {
            let length = random.within(1..1400) as usize;
            let _ = self.garbage.send_to(&random.bytes(length), self.address(STEADY));
        }
        count
    }

    /// Nothing passes between clients and daemons for so long.
    pub fn outage(&mut self, time: Duration) {
        self.sites.relink(NEAR, LinkOptions { loss: Ratio::ONE, ..self.link.clone() });
        pause(time);
        self.heal();
    }

    /// The link as it was.
    pub fn heal(&mut self) {
        self.sites.relink(NEAR, self.link.clone());
    }

    /// Kills the daemon that is there for that, and starts it again at once.
    pub fn restart_the_other(&mut self) {
        if let Some(daemon) = self.other.take() {
            daemon.signal(Signal::KILL);
            self.said.push_back(daemon.wait(Duration::from_secs(10)).stderr);
            self.said.truncate(2);
        }
        self.other = Some(start_daemon(&self.sites, OTHER));
    }

    /// Panics unless everything is gone that copies make, and the daemon rests; what it holds then.
    pub fn assert_nothing_left(&mut self) -> Readings {
        self.crowds.clear();
        becomes("clients left behind", || self.sites.site(NEAR).processes(&["haul cp"]).is_empty());
        let stages = || hidden(self.sites.scratch());
        becomes("stages left behind", || stages().is_empty());
        assert!(self.steady.runs(), "the daemon has ended: {}", self.last_words());
        let steady = self.steady();
        let rests = || {
            let readings = Readings::of(steady);
            readings.threads <= THREADS_AT_REST && readings.descriptors <= DESCRIPTORS_AT_REST
        };
        assert!(eventually(super::PATIENCE, rests), "the daemon does not come to rest: {:?}", Readings::of(steady));
        Readings::of(steady)
    }

    /// What the daemons that were killed said at last.
    pub fn last_words(&self) -> String {
        self.said.iter().flat_map(|said| said.lines().rev().take(20)).collect::<Vec<_>>().join("\n")
    }

    fn address(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.sites.site(FAR).address.parse().expect("an address"), port)
    }
}

/// Where a client keeps its key and its trees.
pub fn home(scratch: &Path, client: usize) -> PathBuf {
    scratch.join("clients").join(client.to_string())
}

/// The program, as this client.
pub fn at_home(mut command: Command, home: &Path) -> Command {
    command.env("XDG_CONFIG_HOME", home.join("config")).env("XDG_STATE_HOME", home.join("config")).env("HOME", home);
    command
}

/// The program on a host.
pub fn haul_on(host: &Host) -> Command {
    let mut command = host.command(haul_binary());
    command.env("RUST_BACKTRACE", "1");
    command
}

/// One client of five is of the daemon that is killed.
fn port_of(client: usize) -> u16 {
    if client % 5 == 4 { OTHER } else { STEADY }
}

fn start_daemon(sites: &Sites, port: u16) -> Running {
    let far = sites.site(FAR);
    let mut command = sites.haul(far);
    let root = format!("data={}:rw", sites.scratch().join("exported").display());
    command.args(["serve", "-q", "--root", &root, "--listen", &format!("{}:{port}", far.address)]);
    let daemon = Running::start(command);
    let listens = || {
        let output = far.command("ss").args(["-Hlun", &format!("sport = :{port}")]).output();
        output.is_ok_and(|output| !output.stdout.is_empty())
    };
    becomes("a daemon does not listen", listens);
    daemon
}

fn key(mut command: Command, args: &[&str]) -> String {
    command.arg("key").args(args);
    let finished = Running::start(command).wait(Duration::from_secs(30)).expect(0);
    String::from_utf8_lossy(&finished.stdout)
        .split_whitespace()
        .find(|word| word.starts_with("SHA256:"))
        .unwrap_or_default()
        .to_owned()
}

/// What copies under way have: directories called `.haul-` and something.
fn hidden(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.join("exported"), root.join("clients")];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(".haul-") {
                found.push(entry.path());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
        }
    }
    found
}

//! Two hosts, each behind a NAT of its own, and a public host that both reach.
//!
//! ```text
//!   near 192.168.1.2 -- 192.168.1.1 NAT 203.0.113.1 --.                      .-- 198.51.100.1 NAT 192.168.2.1 -- 192.168.2.2 far (sshd)
//!                                                      internet (routes only)
//!                                                              |
//!                                                     192.0.2.2 public (haul serve)
//! ```
//! Port 2222 of the far host's NAT is forwarded to its sshd; nothing else gets in at either, but answers to what has left.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::clock::eventually;
use crate::net::{Host, PREFIX, add, ip, must, remove, set_in};
use crate::program::{Finished, Running};
use crate::room::Room;
use crate::sshd::{PORT as SSH, Sshd};

/// Where the daemon listens; its relay takes the next port.
const DAEMON: u16 = 7700;
/// Longest time that any copy of these tests may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Which port a NAT gives to what leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nat {
    /// The one that it has left from, as long as nobody else has it.
    Same,
    /// Another one, the same for all that it sends to.
    Cone,
    /// Another one, the same for all that it sends to, and what comes to that port is let in whoever has sent it. Of what is behind it these alone send UDP: [`FULL_PORTS`].
    Full,
    /// Another one for each that it sends to.
    Symmetric,
}

/// The ports of UDP behind a [`Nat::Full`].
pub const FULL_PORTS: std::ops::Range<u16> = 60_000..60_020;
/// What it makes of the first of them, the second, and so on.
const FULL_OUTSIDE: u16 = 15_000;

/// The network; it vanishes with this value.
pub struct Nats {
    sshd: Sshd,
    /// On the public host, where the far one is reached by way of it.
    jump: Option<Sshd>,
    /// Behind the first NAT.
    pub near: Host,
    /// Behind the second one, with an sshd.
    pub far: Host,
    /// Whom both reach.
    pub public: Host,
    boxes: [Host; 2],
    internet: String,
    config: PathBuf,
    places: Cell<u32>,
    room: Room,
}

/// What is behind a NAT, what is before it, and who else is there.
const OUTSIDE: [&str; 2] = ["203.0.113", "198.51.100"];

impl Nats {
    /// The near host behind the one, the far one behind the other; nothing where namespaces cannot be made.
    pub fn open(near: Nat, far: Nat) -> Option<Self> {
        let room = Room::open()?;
        let name = |role: &str| format!("{PREFIX}{}-{role}", room.id());
        let host = |role: &str, address: &str, address6: &str| Host {
            namespace: name(role),
            address: address.to_owned(),
            address6: address6.to_owned(),
        };
        let inside = [host("near", "192.168.1.2", "fd77:1::2"), host("far", "192.168.2.2", "fd77:2::2")];
        let boxes = [0, 1].map(|side| host(["nat-near", "nat-far"][side], &format!("{}.1", OUTSIDE[side]), "::"));
        let (public, internet) = (host("public", "192.0.2.2", "::"), name("internet"));
        for namespace in inside.iter().chain(&boxes).chain([&public]).map(|host| &host.namespace).chain([&internet]) {
            add(namespace);
        }
        for namespace in boxes.iter().map(|host| &host.namespace).chain([&internet]) {
            set_in(namespace, "net/ipv4/ip_forward", "1");
        }
        line([&public.namespace, "wan", "192.0.2.2"], [&internet, "public", "192.0.2.1"]);
        for (side, kind) in [near, far].into_iter().enumerate() {
            let (number, outside) = (side + 1, OUTSIDE[side]);
            let gate = format!("192.168.{number}.1");
            line([&inside[side].namespace, "wan", &inside[side].address], [&boxes[side].namespace, "lan", &gate]);
            line(
                [&boxes[side].namespace, "wan", &boxes[side].address],
                [&internet, ["to-near", "to-far"][side], &format!("{outside}.254")],
            );
            ip(&["-n", &inside[side].namespace, "route", "add", "default", "via", &gate]);
            ip(&["-n", &boxes[side].namespace, "route", "add", "default", "via", &format!("{outside}.254")]);
            ip(&[
                "-n",
                &inside[side].namespace,
                "address",
                "add",
                &format!("{}/64", inside[side].address6),
                "dev",
                "lo",
                "nodad",
            ]);
            translate(&boxes[side], kind, &inside[side]);
        }
        ip(&["-n", &public.namespace, "route", "add", "default", "via", "192.0.2.1"]);
        let [near, far] = inside;
        let sshd = Sshd::start(&far, room.path(), &room.search_path(), None);
        let config = room.path().join("ssh_config_from_outside");
        let of_far = format!(
            "Host far\n HostName {}\n HostKeyAlias [{}]:{SSH}\nInclude {}\n",
            boxes[1].address,
            far.address,
            sshd.client_config.display()
        );
        fs::write(&config, of_far).expect("writing ssh_config");
        Some(Self { sshd, jump: None, near, far, public, boxes, internet, config, places: Cell::new(0), room })
    }

    /// The NAT before the near host, and that before the far one.
    pub const fn boxes(&self) -> &[Host; 2] {
        &self.boxes
    }

    /// A new empty directory, which all hosts see.
    pub fn place(&self, name: &str) -> PathBuf {
        self.places.set(self.places.get() + 1);
        let place = self.room.path().join(format!("{}-{name}", self.places.get())).join(name);
        fs::create_dir_all(&place).expect("making a directory");
        place
    }

    /// The configuration of ssh by which the near host reaches `far`.
    pub fn ssh_config(&self) -> &std::path::Path {
        &self.config
    }

    /// `haul` on a host.
    pub fn haul(&self, host: &Host, words: &[&str]) -> Command {
        let mut command = self.room.haul(host);
        command.args(words);
        command
    }

    /// Has `far` reached by way of the public host, on which an sshd of its own runs from now on: what the far side sees of who logs in is that host.
    pub fn jump_by_public(&mut self) {
        let dir = self.room.path().join("jump");
        fs::create_dir_all(&dir).expect("a directory");
        let public = Host { address6: "::1".to_owned(), ..self.public.clone() };
        let jump = Sshd::start(&public, &dir, &self.room.search_path(), None);
        let text = fs::read_to_string(&jump.client_config).expect("its configuration").replace("Host far6\n", "Host jump6\n");
        let text = text.replace("Host far\n", "Host jump\n");
        let before = fs::read_to_string(&self.config).expect("ours");
        fs::write(&self.config, format!("Host far\n ProxyJump jump\n{before}{text}")).expect("writing ssh_config");
        self.jump = Some(jump);
    }

    /// `haul WHAT` (and what follows that) on the near host, with `far:` to be reached through ssh.
    pub fn haul_to_far(&self, what: &[&str], args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = self.haul(&self.near, what);
        command.arg("-F").arg(&self.config).args(args);
        command
    }

    /// Runs `haul cp` on the near host to its end.
    pub fn run_cp(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Finished {
        Running::start(self.haul_to_far(&["cp"], args)).wait(PATIENCE)
    }

    /// `haul key` on a host, and what it printed.
    pub fn key(&self, host: &Host, words: &[&str]) -> String {
        let finished = Running::start(self.haul(host, &[&["key"], words].concat())).wait(PATIENCE).expect(0);
        String::from_utf8_lossy(&finished.stdout).into_owned()
    }

    /// The fingerprint of a host's key.
    pub fn own_key(&self, host: &Host) -> String {
        let shown = self.key(host, &["show"]);
        let found = shown.split_whitespace().find(|word| word.starts_with("SHA256:"));
        found.unwrap_or_else(|| panic!("no fingerprint in {shown}")).to_owned()
    }

    /// Starts `haul serve` with these words on the public host, and has the near host trust it.
    pub fn serve(&self, words: &[&str]) -> Serving {
        let theirs = self.own_key(&self.public);
        self.own_key(&self.near);
        self.key(&self.near, &["trust", &self.public.address, &theirs]);
        let listen = format!("{}:{DAEMON}", self.public.address);
        let running = Running::start(self.haul(&self.public, &[&["serve", "--listen", &listen], words].concat()));
        let listens = || {
            let output = self.public.command("ss").args(["-Hlun", &format!("sport = :{DAEMON}")]).output();
            output.is_ok_and(|output| !output.stdout.is_empty())
        };
        assert!(eventually(Duration::from_secs(10), listens), "haul serve does not listen");
        Serving(Some(running))
    }

    /// Lets the near host's key in at the public one, for what the options say.
    pub fn authorize_near(&self, options: &[&str]) {
        let ours = self.own_key(&self.near);
        self.key(&self.public, &[&["authorize", &ours, "--name", "near"], options].concat());
    }

    /// Has the UDP counted that comes to the relay's port, and that leaves it.
    pub fn count(&self) {
        for (hook, end) in [("input", "dport"), ("output", "sport")] {
            self.public.firewall(hook, &format!("udp {end} {} counter;", DAEMON + 1));
        }
    }

    /// Bytes that have come to the relay's port and that have left it, since [`Self::count`].
    pub fn counted_bytes(&self) -> [u64; 2] {
        let counted = self.public.counted_bytes();
        [0, 1].map(|hook| counted.get(hook).copied().unwrap_or_default())
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = (&self.sshd, &self.jump);
        let hosts = [&self.near, &self.far, &self.public, &self.boxes[0], &self.boxes[1]];
        for namespace in hosts.map(|host| &host.namespace).into_iter().chain([&self.internet]) {
            remove(namespace);
        }
    }
}

/// A daemon on the public host; ends with this value.
pub struct Serving(Option<Running>);

impl Serving {
    /// Ends it without a word, as a machine that loses its power.
    pub fn kill(mut self) {
        if let Some(running) = self.0.take() {
            running.signal(Signal::KILL);
            running.wait(Duration::from_secs(20));
        }
    }

    /// Ends it, and returns what it said.
    pub fn stop(mut self) -> Finished {
        let running = self.0.take().expect("it was started");
        running.signal(Signal::TERM);
        running.wait(Duration::from_secs(20))
    }
}

/// A line between two namespaces, each with a device and an address.
fn line(one: [&str; 3], other: [&str; 3]) {
    ip(&["link", "add", one[1], "netns", one[0], "type", "veth", "peer", "name", other[1], "netns", other[0]]);
    for [namespace, device, address] in [one, other] {
        ip(&["-n", namespace, "address", "add", &format!("{address}/24"), "dev", device]);
        ip(&["-n", namespace, "link", "set", device, "up"]);
    }
}

/// What the kernel keeps of one sender it gives the same port everywhere, unless that is to be random; a range that no sender's port is in has it give another one than the sender's.
fn translate(nat: &Host, kind: Nat, inside: &Host) {
    let (out, into) = match kind {
        Nat::Same => (String::new(), String::new()),
        Nat::Cone => ("oifname wan meta l4proto udp masquerade to :10000-19999;".to_owned(), String::new()),
        Nat::Symmetric => ("oifname wan meta l4proto udp masquerade to :10000-19999 fully-random;".to_owned(), String::new()),
        Nat::Full => {
            let (first, last) = (FULL_PORTS.start, FULL_PORTS.end - 1);
            set_in(&inside.namespace, "net/ipv4/ip_local_port_range", &format!("{first} {last}"));
            let ports = || FULL_PORTS.zip(FULL_OUTSIDE..);
            let out = |(port, outside)| format!("oifname wan udp sport {port} masquerade to :{outside};");
            let into = |(port, outside)| format!("iifname wan udp dport {outside} dnat to {}:{port};", inside.address);
            (ports().map(out).collect(), ports().map(into).collect())
        }
    };
    let rules = format!(
        "table ip nat {{ \
           chain out {{ type nat hook postrouting priority 100; {out} oifname wan masquerade; }}; \
           chain into {{ type nat hook prerouting priority -100; iifname wan tcp dport {SSH} dnat to {}; {into} }}; \
         }}; \
         table ip filter {{ chain into {{ type filter hook input priority 0; iifname wan ct state new drop; }}; }}",
        inside.address
    );
    must(nat.command("nft").arg(&rules));
}

//! Network namespaces: two hosts and a router between them.
//!
//! Names carry the process id of the test, so that what a killed run left behind can be told from what a living one uses.

use std::cell::RefCell;
use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use haul_units::BitRate;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// What the names of namespaces and scratch directories begin with; the process id follows.
pub const PREFIX: &str = "haul-e2e-";
const NETNS_DIR: &str = "/run/netns";
/// What programs in a namespace see in place of files below /etc (ip-netns(8)).
const NETNS_FILES_DIR: &str = "/etc/netns";

/// A host: a network namespace and the address under which the others know it.
#[derive(Debug, Clone)]
pub struct Host {
    /// Name of the namespace.
    pub namespace: String,
    /// Its IPv4 address.
    pub address: String,
    /// Its IPv6 address.
    pub address6: String,
}

/// The two hosts and the router; they vanish with this value.
#[derive(Debug)]
pub struct Net {
    pub near: Host,
    pub far: Host,
    between: String,
    /// What [`Net::limit`] was told.
    rate: RefCell<Option<String>>,
}

impl Net {
    /// Makes the namespaces, the links and the routes.
    pub fn make(id: &str) -> Self {
        let namespace = |role: &str| format!("{PREFIX}{id}-{role}");
        let host = |role: &str, net: u8| Host {
            namespace: namespace(role),
            address: format!("10.77.{net}.2"),
            address6: format!("fd77:{net}::2"),
        };
        let net = Self { near: host("near", 1), far: host("far", 2), between: namespace("between"), rate: RefCell::default() };
        for name in [&net.near.namespace, &net.far.namespace, &net.between] {
            add(name);
            set_in(name, "net/ipv6/conf/all/keep_addr_on_down", "1");
        }
        set_in(&net.between, "net/ipv4/ip_forward", "1");
        set_in(&net.between, "net/ipv6/conf/all/forwarding", "1");
        net.connect(&net.near, 1, "to-near");
        net.connect(&net.far, 2, "to-far");
        net
    }

    fn connect(&self, host: &Host, net: u8, router_end: &str) {
        let (there, here) = (&host.namespace, &self.between);
        ip(&["link", "add", "wan", "netns", there, "type", "veth", "peer", "name", router_end, "netns", here]);
        for (namespace, device, last) in [(there, "wan", 2), (here, router_end, 1)] {
            ip(&["-n", namespace, "address", "add", &format!("10.77.{net}.{last}/24"), "dev", device]);
            ip(&["-n", namespace, "address", "add", &format!("fd77:{net}::{last}/64"), "dev", device, "nodad"]);
            ip(&["-n", namespace, "link", "set", device, "up"]);
        }
        ip(&["-n", there, "route", "add", "default", "via", &format!("10.77.{net}.1")]);
        ip(&["-n", there, "-6", "route", "add", "default", "via", &format!("fd77:{net}::1")]);
    }

    /// Limits the rate of both directions, so that a copy lasts long enough to be disturbed.
    pub fn limit(&self, rate: &str) {
        self.rate.replace(Some(rate.to_owned()));
        for device in ["to-near", "to-far"] {
            self.limit_device(device);
        }
    }

    fn limit_device(&self, device: &str) {
        let Some(rate) = &*self.rate.borrow() else { return };
        let limit = format!("-n {} qdisc replace dev {device} root tbf rate {rate} burst 256k limit 1m", self.between);
        must(Command::new("tc").args(limit.split(' ')));
    }

    /// Takes the link to the far host down.
    pub fn cut(&self) {
        ip(&["-n", &self.between, "link", "set", "to-far", "down"]);
    }

    /// Brings it up again.
    pub fn mend(&self) {
        ip(&["-n", &self.between, "link", "set", "to-far", "up"]);
    }

    /// Gives the near host a second link to the router, `wan2`, and each of the two this rate in both directions, by a queue of its own.
    pub fn second_link(&self, rate: &str) {
        let (there, here) = (&self.near.namespace, &self.between);
        ip(&["link", "add", "wan2", "netns", there, "type", "veth", "peer", "name", "to-wan2", "netns", here]);
        for (namespace, device, last) in [(there, "wan2", 2), (here, "to-wan2", 1)] {
            ip(&["-n", namespace, "address", "add", &format!("10.77.{SECOND_LINK}.{last}/24"), "dev", device]);
            ip(&["-n", namespace, "link", "set", device, "up"]);
        }
        let gateway = format!("10.77.{SECOND_LINK}.1");
        ip(&["-n", there, "route", "add", "default", "via", &gateway, "dev", "wan2", "metric", "200"]);
        for name in ["all", "wan", "wan2"] {
            // Strictly checked, what comes by the link that the routing table would not take is dropped.
            set_in(there, &format!("net/ipv4/conf/{name}/rp_filter"), "2");
        }
        for (namespace, device) in [(there, "wan"), (there, "wan2"), (here, "to-near"), (here, "to-wan2")] {
            shape(namespace, device, rate);
        }
    }

    /// Gives the two hosts a link of their own, `direct` at both ends, and it and the one through the router this rate in both directions. There is no route from one link to the other: on the direct one nobody
    /// is at an address of the other, and the far host has 10.77.9.2 there or, with IPv6, fd77:9::2 alone.
    pub fn direct_link(&self, rate: &str, is_ipv6: bool) {
        let (near, far) = (&self.near.namespace, &self.far.namespace);
        ip(&["link", "add", "direct", "netns", near, "type", "veth", "peer", "name", "direct", "netns", far]);
        for (namespace, last) in [(near, 1), (far, 2)] {
            // Linux answers for any address of the host, whichever link it is asked on; routers between the two would not.
            set_in(namespace, "net/ipv4/conf/all/arp_ignore", "1");
            let address = if is_ipv6 { format!("fd77:9::{last}/64") } else { format!("10.77.9.{last}/24") };
            let nodad: &[&str] = if is_ipv6 { &["nodad"] } else { &[] };
            ip(&[&["-n", namespace, "address", "add", &address, "dev", "direct"], nodad].concat());
            ip(&["-n", namespace, "link", "set", "direct", "up"]);
            for device in ["direct", "wan"] {
                shape(namespace, device, rate);
            }
        }
        shape(&self.between, "to-near", rate);
    }

    /// Takes the far host's IPv4 address on the hosts' own link away, or puts it there again.
    pub fn address_far_direct(&self, is_there: bool) {
        let does = if is_there { "add" } else { "delete" };
        ip(&["-n", &self.far.namespace, "address", does, "10.77.9.2/24", "dev", "direct"]);
    }

    /// Bytes that have passed the hosts' own link.
    pub fn bytes_over_direct(&self) -> u64 {
        bytes_over(&self.near.namespace, "direct")
    }

    /// Pulls the cable of one of the near host's two links, or plugs it in.
    pub fn plug(&self, link: usize, is_plugged: bool) {
        let device = ["to-near", "to-wan2"][link];
        ip(&["-n", &self.between, "link", "set", device, if is_plugged { "up" } else { "down" }]);
    }

    /// Has the near host's own device of one of its two links send no more than this, and hold what its sockets have room for.
    pub fn choke(&self, link: usize, rate: &str) {
        let device = ["wan", "wan2"][link];
        let limit = format!("-n {} qdisc replace dev {device} root tbf rate {rate} burst 64k limit 1g", self.near.namespace);
        must(Command::new("tc").args(limit.split(' ')));
    }

    /// Bytes that have passed one of the near host's two links.
    pub fn bytes_over(&self, link: usize) -> u64 {
        bytes_over(&self.between, ["to-near", "to-wan2"][link])
    }

    /// Drops every UDP datagram on its way, and tells nobody.
    pub fn block_udp(&self) {
        self.block_udp_from("to-near");
        self.block_udp_from("to-far");
    }

    /// Drops every UDP datagram that comes to the router by one of its devices.
    pub fn block_udp_from(&self, device: &str) {
        ip(&["-n", &self.between, "rule", "add", "iif", device, "ipproto", "udp", "blackhole"]);
    }

    /// Lets no packet pass that is longer, and tells nobody: who finds that out has looked by himself. The kernel's TCP does so only if it is told to (`tcp_mtu_probing`), as it is here, for ssh.
    pub fn black_hole(&self, mtu: u16) {
        for device in ["to-near", "to-far"] {
            ip(&["-n", &self.between, "link", "set", device, "mtu", &mtu.to_string()]);
        }
        let silent = "icmp type destination-unreachable drop; icmpv6 type packet-too-big drop;";
        self.router().firewall("output", silent);
        for host in [&self.near, &self.far] {
            set_in(&host.namespace, "net/ipv4/tcp_mtu_probing", "1");
        }
    }

    /// What is between the hosts, for firewalls.
    pub fn router(&self) -> Host {
        Host { namespace: self.between.clone(), address: "10.77.1.1".to_owned(), address6: "fd77:1::1".to_owned() }
    }

    /// Gives the near host another address in the place of the one it had.
    pub fn renumber_near(&mut self) {
        let last: u8 = self.near.address.rsplit('.').next().and_then(|last| last.parse().ok()).expect("an IPv4 address");
        let (old, new) = (self.near.address.clone(), format!("10.77.1.{}", last + 1));
        ip(&["-n", &self.near.namespace, "address", "del", &format!("{old}/24"), "dev", "wan"]);
        ip(&["-n", &self.near.namespace, "address", "add", &format!("{new}/24"), "dev", "wan"]);
        // With the only address of the network its routes went too.
        ip(&["-n", &self.near.namespace, "route", "replace", "default", "via", "10.77.1.1"]);
        self.near.address = new;
    }

    /// Takes the near host off its network and puts it on another one, by another device: what a laptop does that leaves the Wi-Fi for a cable.
    /// Connections of its old address are neither reset nor answered.
    pub fn replug_near(&mut self, plugged: u8) {
        let (there, here) = (self.near.namespace.clone(), self.between.clone());
        let (old, new) = (device_of(plugged), device_of(plugged + 1));
        ip(&["-n", &there, "link", "set", &old, "down"]);
        ip(&["-n", &there, "address", "flush", "dev", &old]);
        let router_end = format!("to-{new}");
        ip(&["link", "add", &new, "netns", &there, "type", "veth", "peer", "name", &router_end, "netns", &here]);
        let net = FIRST_CABLE + plugged;
        for (namespace, device, last) in [(&there, &new, 2), (&here, &router_end, 1)] {
            ip(&["-n", namespace, "address", "add", &format!("10.77.{net}.{last}/24"), "dev", device]);
            ip(&["-n", namespace, "link", "set", device, "up"]);
        }
        ip(&["-n", &there, "route", "replace", "default", "via", &format!("10.77.{net}.1")]);
        self.limit_device(&router_end);
        self.near.address = format!("10.77.{net}.2");
    }

    /// Bytes that left the router towards both hosts.
    pub fn bytes_carried(&self) -> u64 {
        let output = ip_output(&["-n", &self.between, "-s", "-j", "link", "show"]);
        let links: serde_json::Value = serde_json::from_str(&output).expect("ip -j prints JSON");
        let carried = |link: &serde_json::Value| link["stats64"]["tx"]["bytes"].as_u64().unwrap_or(0);
        links.as_array().into_iter().flatten().filter(|link| link["ifname"] != "lo").map(carried).sum()
    }
}

/// The near host's device after so many changes.
fn device_of(plugged: u8) -> String {
    if plugged == 0 { "wan".to_owned() } else { format!("cable{plugged}") }
}

/// Number of the network of the near host's second link.
const SECOND_LINK: u8 = 30;
/// Number of the first network that the near host can be plugged into.
const FIRST_CABLE: u8 = 3;

impl Drop for Net {
    fn drop(&mut self) {
        for name in [&self.near.namespace, &self.far.namespace, &self.between] {
            remove(name);
        }
    }
}

impl Host {
    /// A command that runs on this host.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace]).arg(program);
        command
    }

    /// A firewall: what follows an input, output or forward hook. One for each hook.
    pub fn firewall(&self, hook: &str, rules: &str) {
        let table = format!("table inet {hook}_block {{ chain c {{ type filter hook {hook} priority 0; {rules} }}; }}");
        must(self.command("nft").arg(&table));
    }

    /// What the counters of its firewall have counted, in bytes.
    pub fn counted_bytes(&self) -> Vec<u64> {
        let rules = must(self.command("nft").args(["list", "ruleset"]));
        let counted = |rest: &str| rest.split_once(" bytes ")?.1.split_whitespace().next()?.parse().ok();
        rules.split("counter packets").skip(1).filter_map(counted).collect()
    }

    /// Runs `work` on a thread whose sockets belong to this host.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let enter_and_work = || {
            let namespace = fs::File::open(Path::new(NETNS_DIR).join(&self.namespace)).expect("the namespace of a host");
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("setns");
            work()
        };
        std::thread::scope(|scope| scope.spawn(enter_and_work).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Processes on this host whose command line contains all of `words`.
    pub fn processes(&self, words: &[&str]) -> Vec<Pid> {
        let matches = |pid: &Pid| {
            let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            words.iter().all(|word| line.contains(word))
        };
        pids(&self.namespace).into_iter().filter(matches).collect()
    }
}

/// Removes what earlier runs left behind that nobody cleaned up: the process that their names carry is gone.
pub fn sweep() {
    let Ok(entries) = fs::read_dir(NETNS_DIR) else { return };
    for name in entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        if is_orphan(&name) {
            remove(&name);
        }
    }
}

/// Whether a name carries the process id of a test that is gone.
pub fn is_orphan(name: &str) -> bool {
    let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse().ok()).and_then(Pid::from_raw);
    owner.is_some_and(|pid| test_kill_process(pid).is_err())
}

/// Makes a namespace with its loopback interface up, where names are asked of nobody.
pub fn add(namespace: &str) {
    ip(&["netns", "add", namespace]);
    ip(&["-n", namespace, "link", "set", "lo", "up"]);
    ask_nobody(namespace);
}

/// `ip netns exec` shows programs of a namespace this file in place of the machine's, whose name server is out of reach, so that each question would take seconds.
pub fn ask_nobody(namespace: &str) {
    let dir = Path::new(NETNS_FILES_DIR).join(namespace);
    fs::create_dir_all(&dir).expect("a directory below /etc/netns");
    fs::write(dir.join("resolv.conf"), "nameserver 127.0.0.1\n").expect("a resolv.conf");
}

/// Bytes that have passed a device, both ways.
pub fn bytes_over(namespace: &str, device: &str) -> u64 {
    let output = ip_output(&["-n", namespace, "-s", "-j", "link", "show", "dev", device]);
    let links: serde_json::Value = serde_json::from_str(&output).expect("ip -j prints JSON");
    let passed = |way: &str| links[0]["stats64"][way]["bytes"].as_u64().unwrap_or(0);
    passed("tx") + passed("rx")
}

/// Lets a device send so much and no more, with a queue for a tenth of a second at 20 Mbit/s.
pub fn shape(namespace: &str, device: &str, rate: &str) {
    let limit = format!("-n {namespace} qdisc replace dev {device} root tbf rate {rate} burst 64k limit 256k");
    must(Command::new("tc").args(limit.split(' ')));
}

/// Has a device send like a line of this rate of IP bytes in full packets, with a queue of 20 ms.
pub fn line(namespace: &str, device: &str, rate: BitRate, mtu: u16) {
    // The bucket counts Ethernet's header too.
    let frames = BitRate::from_bps(rate.as_bps() * (u64::from(mtu) + 14) / u64::from(mtu));
    // Two super-packets, or what falls due while the kernel's timer is late.
    let burst = frames.bytes_in(Duration::from_millis(1)).as_u64().max(128 << 10);
    let queue = frames.bytes_in(Duration::from_millis(20)).as_u64().max(2 * burst);
    let bps = frames.as_bps();
    let limit = format!("-n {namespace} qdisc replace dev {device} root tbf rate {bps}bit burst {burst} limit {queue}");
    must(Command::new("tc").args(limit.split(' ')));
}

/// Ends what runs in a namespace and removes it. Must not panic: it runs while a test does.
pub fn remove(namespace: &str) {
    if !Path::new(NETNS_DIR).join(namespace).exists() {
        return;
    }
    for pid in pids(namespace) {
        let _ = kill_process(pid, Signal::KILL);
    }
    let _ = Command::new("ip").args(["netns", "del", namespace]).stderr(Stdio::null()).status();
    let _ = fs::remove_dir_all(Path::new(NETNS_FILES_DIR).join(namespace));
}

fn pids(namespace: &str) -> Vec<Pid> {
    let output = Command::new("ip").args(["netns", "pids", namespace]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).filter_map(Pid::from_raw).collect()
}

pub fn set_in(namespace: &str, name: &str, value: &str) {
    let script = format!("echo {value} > /proc/sys/{name}");
    must(Command::new("ip").args(["netns", "exec", namespace, "sh", "-c", &script]));
}

pub fn ip(args: &[&str]) {
    ip_output(args);
}

fn ip_output(args: &[&str]) -> String {
    must(Command::new("ip").args(args))
}

pub fn must(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}: {stderr}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

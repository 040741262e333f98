//! Several sites around a hub, each behind a link of its own that the lab's emulator plays, with an sshd on each.
//!
//! ```text
//!   site 1 (10.90.1.1) ---- emulated link ---- edge 1 --\
//!   site 2 (10.90.2.1) ---- emulated link ---- edge 2 --- hub: sees all of them
//!   ..                                                 /
//! ```
//! The round trip between two sites is the sum of those of their links. For programs that cannot live beside the emulator's devices (libgfarm crashes where a host has a tunnel) there are sites on
//! Ethernet, whose links have a rate and no delay.

use std::fs;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haul_lab::{LinkOptions, Wan, WanSpec};
use haul_units::BitRate;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::net::{Host, PREFIX, add, ask_nobody, bytes_over, ip, line, must, remove, set_in, shape};
use crate::room::Room;
use crate::sshd::{PORT, Sshd};
use crate::tmpfs::SharedMounts;

/// Sites, their links and the hub; all vanish with this value.
pub struct Sites {
    hosts: Vec<(Host, Sshd)>,
    hub: Host,
    wans: Vec<Wan>,
    inner: Vec<String>,
    /// Ends before the scratch directory does.
    _mounts: SharedMounts,
    room: Room,
}

impl Sites {
    /// One site for each link, or nothing where namespaces cannot be made: then the test says so and ends.
    pub fn open(links: &[LinkOptions]) -> Option<Self> {
        Self::open_with(links, 1500)
    }

    /// The same for packets of this length at most.
    pub fn open_with(links: &[LinkOptions], mtu: u16) -> Option<Self> {
        let mut made = Self::without_sites()?;
        for (index, link) in links.iter().enumerate() {
            made.add(index + 1, link, mtu);
            made.set_mtu(index + 1, mtu);
        }
        fs::write(made.ssh_config(), made.config()).expect("writing ssh_config");
        Some(made)
    }

    /// Sites whose links to the hub are Ethernet of this rate (`40mbit`), both ways; they have no IPv6.
    pub fn on_ethernet(number: usize, rate: &str) -> Option<Self> {
        let mut made = Self::without_sites()?;
        for site in 1..=number {
            made.add_on_ethernet(site, 1500, &|namespace, device| shape(namespace, device, rate));
        }
        fs::write(made.ssh_config(), made.config()).expect("writing ssh_config");
        Some(made)
    }

    /// The same with a line of its own rate for each, which counts IP bytes as the emulator's links do, in packets of this length at most.
    pub fn on_lines(rates: &[BitRate], mtu: u16) -> Option<Self> {
        let mut made = Self::without_sites()?;
        for (index, rate) in rates.iter().enumerate() {
            made.add_on_ethernet(index + 1, mtu, &|namespace, device| line(namespace, device, *rate, mtu));
        }
        fs::write(made.ssh_config(), made.config()).expect("writing ssh_config");
        Some(made)
    }

    fn without_sites() -> Option<Self> {
        let room = Room::open()?;
        let id = room.id().to_owned();
        let hub = Host { namespace: format!("{PREFIX}{id}-hub"), address: "10.91.1.1".into(), address6: String::new() };
        add(&hub.namespace);
        set_in(&hub.namespace, "net/ipv4/ip_forward", "1");
        let mounts = SharedMounts::below(room.path());
        Some(Self { hosts: Vec::new(), hub, wans: Vec::new(), inner: Vec::new(), _mounts: mounts, room })
    }

    fn add_on_ethernet(&mut self, number: usize, mtu: u16, shape: &dyn Fn(&str, &str)) {
        let name = format!("{PREFIX}{}-site{number}", self.room.id());
        let (hub, port) = (self.hub.namespace.clone(), format!("site{number}"));
        add(&name);
        ip(&["-n", &name, "link", "add", "eth0", "type", "veth", "peer", "name", &port, "netns", &hub]);
        for (namespace, device, last) in [(&name, "eth0", 1), (&hub, port.as_str(), 2)] {
            ip(&["-n", namespace, "address", "add", &format!("10.90.{number}.{last}/24"), "dev", device]);
            ip(&["-n", namespace, "link", "set", "dev", device, "mtu", &mtu.to_string(), "up"]);
            shape(namespace, device);
        }
        ip(&["-n", &hub, "address", "add", &format!("10.91.{number}.1/32"), "dev", &port]);
        ip(&["-n", &name, "route", "add", "default", "via", &format!("10.90.{number}.2")]);
        self.host(number, name, "127.0.0.1".to_owned(), None);
    }

    fn add(&mut self, number: usize, link: &LinkOptions, mtu: u16) {
        let wan = Wan::up(WanSpec { link: link.clone(), mtu, ..WanSpec::default() }).expect("an emulated link");
        let name = format!("{PREFIX}{}-site{number}", self.room.id());
        let (site, edge) = (wan.host("a").expect("host a"), wan.host("b").expect("host b"));
        ask_nobody(&name);
        inside(site, || {
            attach(&name);
            ip(&["address", "add", &format!("10.90.{number}.1/32"), "dev", "wan0"]);
            ip(&["address", "add", &format!("fd90:{number}::1/128"), "dev", "wan0", "nodad"]);
            ip(&["route", "replace", "default", "dev", "wan0", "src", &format!("10.90.{number}.1")]);
        });
        let (hub, port) = (self.hub.namespace.clone(), format!("site{number}"));
        inside(edge, || {
            ip(&["link", "add", "hub", "type", "veth", "peer", "name", &port, "netns", &hub]);
            ip(&["address", "add", &format!("10.91.{number}.2/24"), "dev", "hub"]);
            ip(&["link", "set", "hub", "up"]);
            ip(&["route", "add", "default", "via", &format!("10.91.{number}.1"), "onlink", "dev", "hub"]);
            ip(&["route", "add", &format!("10.90.{number}.0/24"), "dev", "wan0"]);
            fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("forwarding");
        });
        ip(&["-n", &hub, "address", "add", &format!("10.91.{number}.1/24"), "dev", &port]);
        ip(&["-n", &hub, "link", "set", &port, "up"]);
        ip(&["-n", &hub, "route", "add", &format!("10.90.{number}.0/24"), "via", &format!("10.91.{number}.2")]);
        self.host(number, name, format!("fd90:{number}::1"), Some(&format!("site{number}")));
        self.wans.push(wan);
    }

    /// Starts what a site has.
    fn host(&mut self, number: usize, namespace: String, address6: String, name: Option<&str>) {
        let host = Host { namespace, address: format!("10.90.{number}.1"), address6 };
        let dir = self.scratch().join(format!("site{number}"));
        fs::create_dir_all(&dir).expect("a directory for sshd");
        let sshd = Sshd::start(&host, &dir, &self.room.search_path(), name);
        self.hosts.push((host, sshd));
    }

    /// A site; the first is 1.
    pub fn site(&self, number: usize) -> &Host {
        &self.hosts[number - 1].0
    }

    /// A host behind a site, which is its gateway to everywhere: 10.92.N.2 and fd92:N::2, on the site's device `lan0`.
    pub fn behind(&mut self, number: usize) -> Host {
        let gateway = self.site(number).namespace.clone();
        let inner = format!("{PREFIX}{}-inner{number}", self.room.id());
        add(&inner);
        self.inner.push(inner.clone());
        ip(&["link", "add", "lan0", "netns", &gateway, "type", "veth", "peer", "name", "eth0", "netns", &inner]);
        for (namespace, device, last) in [(&gateway, "lan0", 1), (&inner, "eth0", 2)] {
            ip(&["-n", namespace, "address", "add", &format!("10.92.{number}.{last}/24"), "dev", device]);
            ip(&["-n", namespace, "address", "add", &format!("fd92:{number}::{last}/64"), "dev", device, "nodad"]);
            ip(&["-n", namespace, "link", "set", device, "up"]);
        }
        ip(&["-n", &inner, "route", "add", "default", "via", &format!("10.92.{number}.1")]);
        ip(&["-n", &inner, "-6", "route", "add", "default", "via", &format!("fd92:{number}::1")]);
        set_in(&gateway, "net/ipv4/ip_forward", "1");
        Host { namespace: inner, address: format!("10.92.{number}.2"), address6: format!("fd92:{number}::2") }
    }

    /// Gives the link of a site other properties, while it is in use.
    pub fn relink(&mut self, number: usize, link: LinkOptions) {
        self.wans[number - 1].set(link);
    }

    /// Bytes of frames that have passed the link of a site on Ethernet so far, both ways.
    pub fn passed_bytes(&self, number: usize) -> u64 {
        bytes_over(&self.hub.namespace, &format!("site{number}"))
    }

    /// IP bytes handed to the link of a site so far, both ways.
    pub fn offered_bytes(&self, number: usize) -> u64 {
        self.wans[number - 1].stats().iter().flatten().map(|direction| direction.offered.as_u64()).sum()
    }

    /// IP bytes that came through the link of a site so far, both ways.
    pub fn delivered_bytes(&self, number: usize) -> u64 {
        self.wans[number - 1].stats().iter().flatten().map(|direction| direction.delivered.as_u64()).sum()
    }

    /// Gives a site the address 10.90.N.LAST in the place of the one it had. Its sshd stays behind; connections of the old address are dead.
    pub fn renumber(&mut self, number: usize, last: u8) {
        let host = &mut self.hosts[number - 1].0;
        let (old, new) = (host.address.clone(), format!("10.90.{number}.{last}"));
        ip(&["-n", &host.namespace, "address", "add", &format!("{new}/32"), "dev", "wan0"]);
        ip(&["-n", &host.namespace, "route", "replace", "default", "dev", "wan0", "src", &new]);
        ip(&["-n", &host.namespace, "address", "del", &format!("{old}/32"), "dev", "wan0"]);
        host.address = new;
    }

    /// The longest packet that passes between the hub and a site. Both routers say so to who sends a longer one: if only the hub's end of the line knew, what is too long for
    /// it would vanish without a word, and the TCP of every ssh with it.
    pub fn set_mtu(&self, number: usize, mtu: u16) {
        let edge = self.wans[number - 1].host("b").expect("host b");
        inside(edge, || ip(&["link", "set", "hub", "mtu", &mtu.to_string()]));
        ip(&["-n", &self.hub.namespace, "link", "set", &format!("site{number}"), "mtu", &mtu.to_string()]);
    }

    /// The hub's address towards a site.
    pub fn hub_address(&self, number: usize) -> IpAddr {
        IpAddr::from([10, 91, number as u8, 1])
    }

    /// The hub: it reaches every site, by short links.
    pub fn hub(&self) -> &Host {
        &self.hub
    }

    /// The scratch directory.
    pub fn scratch(&self) -> &Path {
        self.room.path()
    }

    /// The configuration of ssh under which `site1`, `site2`, .. can be reached from anywhere.
    pub fn ssh_config(&self) -> PathBuf {
        self.scratch().join("ssh_config")
    }

    /// `haul` on a host, with a configuration directory of its own.
    pub fn haul(&self, host: &Host) -> Command {
        self.room.haul(host)
    }

    fn config(&self) -> String {
        let host = |(index, (host, _)): (usize, &(Host, Sshd))| {
            let (number, dir) = (index + 1, self.scratch().join(format!("site{}", index + 1)));
            format!(
                "Host site{number}\n HostName {}\n Port {PORT}\n User root\n IdentityFile {dir}/user_key\n IdentitiesOnly yes\n \
                 UserKnownHostsFile {dir}/known_hosts\n GlobalKnownHostsFile /dev/null\n StrictHostKeyChecking yes\n BatchMode yes\n ConnectTimeout 5\n",
                host.address,
                dir = dir.display()
            )
        };
        self.hosts.iter().enumerate().map(host).collect()
    }
}

impl Drop for Sites {
    fn drop(&mut self) {
        for namespace in self.hosts.iter().map(|(host, _)| &host.namespace).chain(&self.inner) {
            remove(namespace);
        }
        remove(&self.hub.namespace);
    }
}

/// Gives the namespace of this thread a name.
fn attach(name: &str) {
    let mut holder = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().expect("a process in the namespace");
    must(Command::new("ip").args(["netns", "attach", name, &holder.id().to_string()]));
    let _ = holder.kill();
    let _ = holder.wait();
}

/// Runs `work` on a thread in the namespace of an emulated host.
fn inside(host: &haul_lab::Host, work: impl FnOnce() + Send) {
    let namespace = host.as_fd();
    let enter_and_work = || {
        move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network)).expect("setns");
        work();
    };
    std::thread::scope(|scope| scope.spawn(enter_and_work).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

//! Hosts, their devices, and the directions between them.
//!
//! ```text
//!   a (or a1, a2, ..)   wan0 10.80.0.1  fd80::1:1   --- link 0 ---   wan0 10.80.128.1  fd80::2:1   b (or b1, b2, ..)
//!                       wan1 10.81.0.1  fd81::1:1   --- link 1 ---   wan1 10.81.128.1  fd81::2:1
//! ```
//!
//! All hosts of a side share each link, as behind one router.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use haul_netdev::iproute::{ip_batch, ip6_batch, tc_batch};
use haul_netdev::{Device, DeviceError, Layer};
use haul_units::{BitRate, Bytes};
use serde::{Deserialize, Serialize};

use crate::control::DirectionStats;
use crate::direction::Direction;
use crate::namespace::{Namespace, NamespaceError, set, value};
use crate::options::LinkOptions;
use crate::tun::TunPorts;

/// What to build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WanSpec {
    /// The link between the sides.
    pub link: LinkOptions,
    /// Links like it, each with its own queue; 1 to 16.
    pub links: u8,
    /// Links beside these, each as it is; 16 in all.
    #[serde(default)]
    pub beside: Vec<LinkOptions>,
    /// Hosts on side a, and on side b; 1 to 64 each.
    pub hosts: [u8; 2],
    /// Rates at which the hosts of side a send, in turn, as behind lines of their own before the link; those beyond the end send at the link's.
    #[serde(default)]
    pub access: Vec<BitRate>,
    /// Largest IP packet, 576 bytes or more.
    pub mtu: u16,
    /// TCP congestion control of the hosts, if not the machine's.
    pub tcp: Option<String>,
    /// The most that a TCP connection of the hosts keeps in its send buffer, if not 2 GiB.
    #[serde(default)]
    pub send_buffer: Option<Bytes>,
}

impl Default for WanSpec {
    /// One host on each side, one link, packets of 1500 bytes.
    fn default() -> Self {
        Self {
            link: LinkOptions::default(),
            links: 1,
            beside: Vec::new(),
            hosts: [1, 1],
            access: Vec::new(),
            mtu: 1500,
            tcp: None,
            send_buffer: None,
        }
    }
}

impl WanSpec {
    /// How many links there are.
    pub fn count(&self) -> usize {
        usize::from(self.links) + self.beside.len()
    }

    /// What a link is like.
    pub fn options_of(&self, link: usize) -> LinkOptions {
        let beside = link.checked_sub(self.links.into()).and_then(|beside| self.beside.get(beside));
        seeded(beside.unwrap_or(&self.link), link)
    }
}

/// The sides of a WAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Where `a` is.
    A,
    /// Where `b` is.
    B,
}

/// A host: a network namespace with a device on each link.
#[derive(Debug)]
pub struct Host {
    /// `a`, or `a1` where there are several.
    pub name: String,
    /// Where it is.
    pub side: Side,
    /// Its addresses on each link.
    pub addresses: Vec<Address>,
    namespace: Namespace,
    /// The namespace's counts of its devices.
    counts: File,
}

/// The addresses of a host on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// IPv4.
    pub v4: Ipv4Addr,
    /// IPv6, where packets are long enough for it.
    pub v6: Ipv6Addr,
}

/// A WAN that is up; it goes with this value.
#[derive(Debug)]
pub struct Wan {
    spec: WanSpec,
    hosts: Vec<Host>,
    /// Of each link: from a to b, from b to a.
    links: Vec<[Direction; 2]>,
}

/// Why there is no WAN.
#[derive(Debug, thiserror::Error)]
pub enum WanError {
    /// A namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A device.
    #[error(transparent)]
    Tun(#[from] DeviceError),
    /// The kernel does not have this congestion control.
    #[error("this kernel has no TCP congestion control `{name}`; it has: {available}")]
    NoSuchTcp {
        /// What was asked for.
        name: String,
        /// What there is.
        available: String,
    },
    /// No thread, no event, no handle.
    #[error("cannot start the emulator: {0}")]
    Start(#[from] io::Error),
}

impl Wan {
    /// Makes the hosts and starts the emulation.
    pub fn up(spec: WanSpec) -> Result<Self, WanError> {
        let mut made = Vec::new();
        for (side, count) in [(Side::A, spec.hosts[0]), (Side::B, spec.hosts[1])] {
            for index in 0..count {
                made.push(make_host(&spec, side, index, count)?);
            }
        }
        let links = (0..spec.count()).map(|link| start_link(&spec, link, &made)).collect::<Result<_, WanError>>()?;
        Ok(Self { spec, hosts: made.into_iter().map(|(host, _)| host).collect(), links })
    }

    /// What it is like at this point.
    pub fn spec(&self) -> &WanSpec {
        &self.spec
    }

    /// All hosts, side a first.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The host of a name; `a` is also the first of several on its side.
    pub fn host(&self, name: &str) -> Option<&Host> {
        let first = self.hosts.iter().find(|host| host.name == name || host.name.strip_suffix('1') == Some(name));
        self.hosts.iter().find(|host| host.name == name).or(first)
    }

    /// Gives all links but those beside other properties.
    pub fn set(&mut self, link: LinkOptions) {
        for (number, directions) in self.links.iter().enumerate().take(self.spec.links.into()) {
            for (direction, config) in directions.iter().zip(seeded(&link, number).links()) {
                direction.set(config);
            }
        }
        self.spec.link = link;
    }

    /// Of each link: from a to b, from b to a.
    pub fn stats(&self) -> Vec<[DirectionStats; 2]> {
        self.links.iter().map(|directions| [directions[0].stats(), directions[1].stats()]).collect()
    }
}

impl Host {
    /// Packets that the kernel could not hand to the emulator, because too many were waiting.
    pub fn device_drops(&mut self) -> u64 {
        let mut text = String::new();
        if self.counts.rewind().is_err() || self.counts.read_to_string(&mut text).is_err() {
            return 0;
        }
        let devices = text.lines().filter_map(|line| line.trim().strip_prefix("wan"));
        // After the name: eight counts of receiving, then of sending: bytes, packets, errors, drops.
        devices.filter_map(|line| line.split_whitespace().nth(12)?.parse::<u64>().ok()).sum()
    }
}

impl Wan {
    /// See [`Host::device_drops`], over all hosts of a side.
    pub fn device_drops(&mut self, side: Side) -> u64 {
        self.hosts.iter_mut().filter(|host| host.side == side).map(Host::device_drops).sum()
    }
}

impl Host {
    /// Moves the calling thread there, for good; threads that it starts are there too.
    pub fn enter(&self) -> Result<(), NamespaceError> {
        self.namespace.enter()
    }
}

impl AsFd for Host {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }
}

impl Address {
    fn of(side: Side, index: u8, link: usize) -> Self {
        let (net, number) = (80 + link as u8, index + 1);
        let (half, side) = if side == Side::A { (0, 1) } else { (128, 2) };
        let prefix = 0xfd00 | (net / 10 * 16 + net % 10) as u16;
        Self { v4: Ipv4Addr::new(10, net, half, number), v6: Ipv6Addr::new(prefix, 0, 0, 0, 0, 0, side, u16::from(number)) }
    }
}

fn make_host(spec: &WanSpec, side: Side, index: u8, count: u8) -> Result<(Host, Vec<Device>), WanError> {
    let letter = if side == Side::A { "a" } else { "b" };
    let name = if count == 1 { letter.to_owned() } else { format!("{letter}{}", index + 1) };
    let addresses: Vec<_> = (0..spec.count()).map(|link| Address::of(side, index, link)).collect();
    let (namespace, (tuns, counts)) = Namespace::make(|| {
        settings(spec);
        let tuns = (0..spec.count())
            .map(|link| Device::create(&format!("wan{link}"), Layer::SuperPackets))
            .collect::<Result<Vec<_>, _>>()?;
        let lines: String = addresses.iter().enumerate().map(|(link, address)| device_lines(spec, link, *address)).collect();
        ip_batch(&format!("link set lo up\n{lines}")).map_err(NamespaceError::from)?;
        if let Some(rate) = spec.access.get(usize::from(index)).filter(|_| side == Side::A) {
            let queue = rate.bytes_in(spec.link.rtt).as_u64().max(LEAST_ACCESS_QUEUE);
            let shaped = (0..spec.count()).map(|link| {
                let bps = rate.as_bps();
                format!("qdisc replace dev wan{link} root tbf rate {bps}bit burst {ACCESS_BURST} limit {queue}\n")
            });
            tc_batch(&shaped.collect::<String>()).map_err(NamespaceError::from)?;
        }
        if let Some(tcp) = &spec.tcp {
            congestion_control(tcp, spec, &addresses)?;
        }
        Ok::<_, WanError>((tuns, File::open("/proc/thread-self/net/dev")?))
    })?;
    Ok((Host { name, side, addresses, namespace, counts }, tuns))
}

fn device_lines(spec: &WanSpec, link: usize, address: Address) -> String {
    let (mtu, Address { v4, v6 }) = (spec.mtu, address);
    let v6 = if mtu >= SMALLEST_IPV6_MTU { format!("address add {v6}/64 dev wan{link} nodad\n") } else { String::new() };
    format!("link set wan{link} mtu {mtu} txqueuelen {QUEUE_PKTS} up\naddress add {v4}/16 dev wan{link}\n{v6}")
}

/// What the hosts of a WAN need, in the namespace of this thread.
fn settings(spec: &WanSpec) {
    let send_buffer = spec.send_buffer.map_or(MOST_BUFFER, |bytes| bytes.as_u64().clamp(FIRST_BUFFER, MOST_BUFFER));
    for (variable, value) in [
        // Nothing that the user did not send is to cross the links.
        ("ipv6/conf/default/accept_ra", "0"),
        ("ipv6/conf/default/router_solicitations", "0"),
        ("ipv6/conf/default/addr_gen_mode", "1"),
        // Windows of a path with 10 Gbit/s and a second.
        ("ipv4/tcp_rmem", "4096 131072 2147483647"),
        ("ipv4/tcp_wmem", &format!("4096 {FIRST_BUFFER} {send_buffer}")),
        ("core/rmem_max", "2147483647"),
        ("core/wmem_max", "2147483647"),
        // A transfer starts like the first one, whatever came before it.
        ("ipv4/tcp_no_metrics_save", "1"),
        ("ipv4/ping_group_range", "0 2147483647"),
    ] {
        set(variable, value);
    }
}

/// Makes this the TCP congestion control of a host, in the namespace of this thread.
///
/// What the machine does not allow everybody cannot be the default of a namespace other than the first; the routes of a namespace may name it all
/// the same (ip-route(8), `congctl`). So nothing of the machine has to be changed, which a kill could leave changed.
fn congestion_control(name: &str, spec: &WanSpec, addresses: &[Address]) -> Result<(), WanError> {
    let available = value("ipv4/tcp_available_congestion_control").unwrap_or_default();
    if !available.split_whitespace().any(|known| known == name) {
        return Err(WanError::NoSuchTcp { name: name.to_owned(), available });
    }
    set("ipv4/tcp_congestion_control", name);
    if value("ipv4/tcp_congestion_control").as_deref() == Some(name) {
        return Ok(());
    }
    let (mut v4_lines, mut v6_lines) = (String::new(), String::new());
    for (link, Address { v4, v6 }) in addresses.iter().enumerate() {
        let (v4_net, v6_net) =
            (Ipv4Addr::from_bits(v4.to_bits() & !0xffff), Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)));
        let _ = writeln!(v4_lines, "route change {v4_net}/16 dev wan{link} proto kernel scope link src {v4} congctl {name}");
        let _ = writeln!(v6_lines, "route change {v6_net}/64 dev wan{link} proto kernel metric 256 congctl {name}");
    }
    let v6 = || if spec.mtu >= SMALLEST_IPV6_MTU { ip6_batch(&v6_lines) } else { Ok(()) };
    Ok(ip_batch(&v4_lines).and_then(|()| v6()).map_err(NamespaceError::from)?)
}

fn start_link(spec: &WanSpec, link: usize, hosts: &[(Host, Vec<Device>)]) -> Result<[Direction; 2], WanError> {
    let side = |side: Side| hosts.iter().filter(move |(host, _)| host.side == side);
    let tuns = |of: Side| side(of).filter_map(|(_, tuns)| Some(tuns.get(link)?.try_clone())).collect::<io::Result<Vec<_>>>();
    let routes = |to: Side| {
        let of = |(output, (host, _)): (usize, &(Host, _))| {
            let address = host.addresses[link];
            [(IpAddr::V4(address.v4), output as u32), (IpAddr::V6(address.v6), output as u32)]
        };
        side(to).enumerate().flat_map(of).collect::<Vec<_>>()
    };
    let [there, back] = spec.options_of(link).links();
    let there = Direction::start("a to b", there, TunPorts::new(tuns(Side::A)?, tuns(Side::B)?, routes(Side::B)))?;
    let back = Direction::start("b to a", back, TunPorts::new(tuns(Side::B)?, tuns(Side::A)?, routes(Side::A)))?;
    Ok([there, back])
}

/// Links between the same hosts have different chances.
fn seeded(options: &LinkOptions, link: usize) -> LinkOptions {
    LinkOptions { seed: options.seed.wrapping_add(2 * link as u64), ..options.clone() }
}

/// IPv6 needs packets of 1280 bytes (RFC 8200 5).
const SMALLEST_IPV6_MTU: u16 = 1280;
/// What the kernel takes at most for a buffer of TCP.
const MOST_BUFFER: u64 = i32::MAX as u64;
/// What the kernel takes for one to begin with here.
const FIRST_BUFFER: u64 = 131_072;

/// What leaves a host's own line at once, in bytes: a super-packet of 64 KB, and what falls due in a tick of 4 ms at 100 Mbit/s.
const ACCESS_BURST: u64 = 128 << 10;
/// The queue of a host's own line holds one round trip, and at least this, in bytes: four super-packets.
const LEAST_ACCESS_QUEUE: u64 = 256 << 10;

/// Packets and super-packets that wait for the emulator before the kernel drops them: for when something else has the processor.
const QUEUE_PKTS: u32 = 16384;

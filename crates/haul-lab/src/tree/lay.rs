//! Laying a tree: its namespaces, the lines between them, and what their devices have carried.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::FileExt as _;

use haul_netdev::iproute::{IprouteError, ip_batch, tc_batch};
use haul_units::{BitRate, Bytes};

use super::TreeSpec;
use super::lines::{configuring, making, settings, shaping};
use super::plan::{Kind, Node, Plan};
use crate::namespace::{Namespace, NamespaceError, set, value};

/// A tree that is there as long as this value, and as long as a thread or a program is in one of its namespaces.
#[derive(Debug)]
pub struct Tree {
    hosts: Vec<TreeHost>,
    /// Held, so that they stay.
    _switches: Vec<Namespace>,
    /// Counts of the devices of each switch of the core.
    core: Vec<File>,
    core_rate: BitRate,
}

/// A host of a tree.
#[derive(Debug)]
pub struct TreeHost {
    /// Its one address.
    pub address: Ipv4Addr,
    /// Where its threads and programs are.
    pub namespace: Namespace,
}

/// Why there is no tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// Not this one.
    #[error("a switch of {0} ports: an even number of 2 to 16 makes a tree")]
    Ports(u8),
    /// No namespaces, or not as they were to be.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// This kernel does not have it, or refuses.
    #[error("net.{} cannot be set to {wanted}", variable.replace('/', "."))]
    Setting {
        /// Below `/proc/sys/net`.
        variable: &'static str,
        /// To what it was to be set.
        wanted: String,
    },
    /// The counts of devices cannot be opened.
    #[error("cannot open the counts of a switch: {0}")]
    Counts(#[from] io::Error),
}

impl From<IprouteError> for TreeError {
    fn from(error: IprouteError) -> Self {
        NamespaceError::from(error).into()
    }
}

impl Tree {
    /// What a host's end of its line is called.
    pub const HOST_DEVICE: &str = "line0";

    /// Lays it. Needs root.
    pub fn lay(spec: &TreeSpec) -> Result<Self, TreeError> {
        if !spec.ports.is_multiple_of(2) || !(2..=16).contains(&spec.ports) {
            return Err(TreeError::Ports(spec.ports));
        }
        let plan = Plan::of(spec);
        let mut made = Vec::new();
        for (number, node) in plan.nodes.iter().enumerate() {
            made.push(make(spec, number, node)?);
        }
        let pid = std::process::id();
        let place = |number: usize| format!("/proc/{pid}/fd/{}", made[number].0.as_fd().as_raw_fd());
        for ((namespace, _), node) in made.iter().zip(&plan.nodes) {
            let lines = making(&plan, node, place);
            if !lines.is_empty() {
                namespace.within(|| ip_batch(&lines))??;
            }
        }
        for ((namespace, _), node) in made.iter().zip(&plan.nodes) {
            namespace.within(|| ip_batch(&configuring(&plan, node)).and_then(|()| tc_batch(&shaping(spec, node))))??;
        }
        let (mut hosts, mut switches, mut core) = (Vec::new(), Vec::new(), Vec::new());
        for ((namespace, counts), node) in made.into_iter().zip(&plan.nodes) {
            match node.kind {
                Kind::Host => hosts.push(TreeHost { address: node.ends[0].address, namespace }),
                _ => switches.push(namespace),
            }
            core.extend((node.kind == Kind::Core).then_some(counts));
        }
        let lines = core.len() as u64 * u64::from(spec.ports);
        let core_rate = BitRate::from_bps(spec.core.as_bps() * lines * 2);
        Ok(Self { hosts, _switches: switches, core, core_rate })
    }

    /// Pod by pod, and in a pod edge by edge.
    pub fn hosts(&self) -> &[TreeHost] {
        &self.hosts
    }

    /// What all lines of the core carry together at most, both ways.
    pub const fn core_rate(&self) -> BitRate {
        self.core_rate
    }

    /// What each switch of the core has received and sent so far, with Ethernet's headers.
    pub fn core_carried(&self) -> Vec<[Bytes; 2]> {
        self.core.iter().map(carried).collect()
    }
}

/// A namespace with its settings, and the counts of the devices that it will have.
fn make(spec: &TreeSpec, number: usize, node: &Node) -> Result<(Namespace, File), TreeError> {
    Namespace::make(|| {
        // Nothing that nobody sent is to cross the lines.
        set("ipv6/conf/all/disable_ipv6", "1");
        set("ipv6/conf/default/disable_ipv6", "1");
        for (variable, wanted) in settings(spec, number, node.kind) {
            set(variable, &wanted);
            if value(variable).as_deref() != Some(&wanted) {
                return Err(TreeError::Setting { variable, wanted });
            }
        }
        Ok(File::open("/proc/thread-self/net/dev")?)
    })
}

/// Received and sent on the lines of a namespace.
fn carried(counts: &File) -> [Bytes; 2] {
    let (mut text, mut room) = (Vec::new(), [0; 4096]);
    // From its beginning, whoever else reads it.
    while let Ok(count @ 1..) = counts.read_at(&mut room, text.len() as u64) {
        text.extend_from_slice(&room[..count]);
    }
    sums(&String::from_utf8_lossy(&text))
}

/// Of `/proc/net/dev`: after a device's name come eight counts of receiving, bytes first, then those of sending.
fn sums(text: &str) -> [Bytes; 2] {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("line")?.split_once(':'));
    let counts = lines.map(|(_, counts)| {
        let number = |at: usize| counts.split_whitespace().nth(at).and_then(|count| count.parse().ok()).unwrap_or(0);
        [number(0), number(8)]
    });
    let [received, sent] = counts.fold([0, 0], |sum, count: [u64; 2]| [sum[0] + count[0], sum[1] + count[1]]);
    [Bytes(received), Bytes(sent)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_lines_are_added_up_and_those_of_loopback_are_not() {
        let text = "Inter-|   Receive                                                |  Transmit\n\
             \x20face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n\
             \x20   lo:    7000      10    0    0    0     0          0         0     7000      10    0    0    0     0       0          0\n\
             \x20line0:    1000      10    0    0    0     0          0         0      200       2    0    0    0     0       0          0\n\
             \x20line1:      30       1    0    0    0     0          0         0        4       1    0    0    0     0       0          0\n";
        assert_eq!(sums(text), [Bytes(1030), Bytes(204)]);
    }

    #[test]
    fn an_odd_number_of_ports_makes_no_tree() {
        assert!(matches!(Tree::lay(&TreeSpec::tried(5)), Err(TreeError::Ports(5))));
    }
}

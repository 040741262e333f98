//! Which nodes, lines, addresses and routes a FatTree has.
//!
//! Addresses tell where they are, and the two ends of a line are the two of a network of 31 bits (RFC 3021). Pods, edges, hosts and so on count from 0 here, and the second
//! byte is the pod's number and one:
//!
//! | line | lower end | upper end |
//! |---|---|---|
//! | host h, edge e | 10.pod.e.(2h + 2) | and one |
//! | edge e, aggregation a | 10.pod.(64 + e).(2a + 2) | and one |
//! | aggregation a, its core j | 10.pod.(128 + a).(2j + 2) | and one |
//!
//! Core switch a k/2 + j is the j-th of the aggregation switches a of all pods. Down there is one route: to a line, an edge's hosts, or a pod; up there are k/2.

use std::net::Ipv4Addr;

use haul_units::BitRate;

use super::TreeSpec;

/// All nodes: hosts in their order, then edges, aggregation, core.
#[derive(Debug)]
pub struct Plan {
    pub nodes: Vec<Node>,
}

/// A namespace.
#[derive(Debug)]
pub struct Node {
    pub kind: Kind,
    pub ends: Vec<End>,
    pub routes: Vec<Route>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Host,
    Edge,
    Aggregation,
    Core,
}

/// An end of a line.
#[derive(Debug, Clone)]
pub struct End {
    pub device: String,
    pub address: Ipv4Addr,
    pub rate: BitRate,
    /// The node and the end of it at the other end.
    pub peer: (usize, usize),
    /// Whether this node makes the line: the lower one does.
    pub makes: bool,
}

/// Where packets go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Network and length; of length 0 everything else.
    pub to: (Ipv4Addr, u8),
    /// The ends of this node by which they may leave.
    pub by: Vec<usize>,
}

impl Plan {
    pub fn of(spec: &TreeSpec) -> Self {
        let half = usize::from(spec.ports / 2);
        let shape = Shape { half, pods: half * 2 };
        let kinds = [
            (Kind::Host, shape.pods * half * half),
            (Kind::Edge, shape.pods * half),
            (Kind::Aggregation, shape.pods * half),
            (Kind::Core, half * half),
        ];
        let nodes = kinds.into_iter().flat_map(|(kind, count)| (0..count).map(move |_| Node::new(kind))).collect();
        let mut plan = Self { nodes };
        for pod in 0..shape.pods {
            for edge in 0..half {
                for host in 0..half {
                    plan.join((shape.host(pod, edge, host), shape.edge(pod, edge)), spec.host, address(pod, edge, host));
                }
            }
            for edge in 0..half {
                for aggregation in 0..half {
                    let nodes = (shape.edge(pod, edge), shape.aggregation(pod, aggregation));
                    plan.join(nodes, spec.aggregation, address(pod, EDGES + edge, aggregation));
                }
            }
            for aggregation in 0..half {
                for core in 0..half {
                    let nodes = (shape.aggregation(pod, aggregation), shape.core(aggregation, core));
                    plan.join(nodes, spec.core, address(pod, AGGREGATIONS + aggregation, core));
                }
            }
        }
        plan.route();
        plan
    }

    /// Those of a kind, with their numbers.
    #[cfg(test)]
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter(move |(_, node)| node.kind == kind)
    }

    /// Lays a line from a lower node to an upper one.
    fn join(&mut self, (lower, upper): (usize, usize), rate: BitRate, address: Ipv4Addr) {
        let places = (self.nodes[lower].ends.len(), self.nodes[upper].ends.len());
        let up = End { device: device(places.0), address, rate, peer: (upper, places.1), makes: true };
        let above = Ipv4Addr::from_bits(address.to_bits() + 1);
        let down = End { device: device(places.1), address: above, peer: (lower, places.0), makes: false, ..up.clone() };
        self.nodes[lower].ends.push(up);
        self.nodes[upper].ends.push(down);
    }

    fn route(&mut self) {
        for number in 0..self.nodes.len() {
            let node = &self.nodes[number];
            // What leads down, each to what is below; a host's line is a network that its edge is in.
            let below = |(end, it): (usize, &End)| {
                let [_, pod, third, _] = self.nodes[it.peer.0].ends[it.peer.1].address.octets();
                let to = match node.kind {
                    Kind::Host | Kind::Edge => return None,
                    Kind::Aggregation => (Ipv4Addr::new(10, pod, third - EDGES as u8, 0), 24),
                    Kind::Core => (Ipv4Addr::new(10, pod, 0, 0), 16),
                };
                (!it.makes).then(|| Route { to, by: vec![end] })
            };
            let mut routes: Vec<Route> = node.ends.iter().enumerate().filter_map(below).collect();
            let up: Vec<usize> = (0..node.ends.len()).filter(|end| node.ends[*end].makes).collect();
            if !up.is_empty() {
                routes.push(Route { to: (Ipv4Addr::UNSPECIFIED, 0), by: up });
            }
            self.nodes[number].routes = routes;
        }
    }
}

impl Node {
    const fn new(kind: Kind) -> Self {
        Self { kind, ends: Vec::new(), routes: Vec::new() }
    }
}

/// Where nodes are among all.
struct Shape {
    half: usize,
    pods: usize,
}

impl Shape {
    const fn host(&self, pod: usize, edge: usize, host: usize) -> usize {
        (pod * self.half + edge) * self.half + host
    }

    const fn edge(&self, pod: usize, edge: usize) -> usize {
        self.pods * self.half * self.half + pod * self.half + edge
    }

    const fn aggregation(&self, pod: usize, aggregation: usize) -> usize {
        self.edge(self.pods, 0) + pod * self.half + aggregation
    }

    const fn core(&self, aggregation: usize, core: usize) -> usize {
        self.aggregation(self.pods, 0) + aggregation * self.half + core
    }
}

/// What a node's end of a line is called.
fn device(end: usize) -> String {
    format!("line{end}")
}

/// Of the lower end of a line.
const fn address(pod: usize, third: usize, line: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, pod as u8 + 1, third as u8, (line * 2 + 2) as u8)
}

/// The third byte of the addresses between edge and aggregation, and of those between aggregation and core, begins here.
const EDGES: usize = 64;
const AGGREGATIONS: usize = 128;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn plan(ports: u8) -> Plan {
        Plan::of(&TreeSpec::tried(ports))
    }

    fn contains((network, length): (Ipv4Addr, u8), address: Ipv4Addr) -> bool {
        let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
        address.to_bits() & mask == network.to_bits() & mask
    }

    /// The ends by which a node sends to an address, as a kernel decides it: its lines first, then the longest network.
    fn next(node: &Node, to: Ipv4Addr) -> Vec<usize> {
        if let Some(end) = node.ends.iter().position(|end| contains((end.address, 31), to)) {
            return vec![end];
        }
        let fitting = node.routes.iter().filter(|route| contains(route.to, to));
        fitting.max_by_key(|route| route.to.1).map(|route| route.by.clone()).unwrap_or_default()
    }

    /// All ways from a node to an address, each as the nodes on it.
    fn ways(plan: &Plan, from: usize, to: Ipv4Addr) -> Vec<Vec<usize>> {
        let node = &plan.nodes[from];
        if node.ends.iter().any(|end| end.address == to) {
            return vec![vec![from]];
        }
        let onwards = next(node, to).into_iter().flat_map(|end| ways(plan, node.ends[end].peer.0, to));
        onwards.map(|way| [vec![from], way].concat()).collect()
    }

    #[test]
    fn a_tree_of_four_ports_has_36_nodes_and_48_lines() {
        let plan = plan(4);
        let count = |kind| plan.of_kind(kind).count();
        assert_eq!([Kind::Host, Kind::Edge, Kind::Aggregation, Kind::Core].map(count), [16, 8, 8, 4]);
        assert_eq!(plan.nodes.iter().flat_map(|node| &node.ends).filter(|end| end.makes).count(), 48);
        for node in &plan.nodes {
            assert_eq!(node.ends.len(), if node.kind == Kind::Host { 1 } else { 4 }, "{node:?}");
        }
    }

    #[test]
    fn every_address_is_there_once_and_both_ends_of_a_line_are_in_its_network() {
        for ports in [2, 4, 8, 16] {
            let plan = plan(ports);
            let ends: Vec<&End> = plan.nodes.iter().flat_map(|node| &node.ends).collect();
            let addresses: BTreeSet<Ipv4Addr> = ends.iter().map(|end| end.address).collect();
            assert_eq!(addresses.len(), ends.len());
            for end in ends {
                let peer = &plan.nodes[end.peer.0].ends[end.peer.1];
                assert!(contains((peer.address, 31), end.address) && peer.rate == end.rate && peer.makes != end.makes);
                assert_eq!(&plan.nodes[peer.peer.0].ends[peer.peer.1].address, &end.address);
            }
        }
    }

    #[test]
    fn every_pair_of_hosts_has_its_equal_paths() {
        for ports in [2, 4, 8] {
            let (plan, half) = (plan(ports), usize::from(ports) / 2);
            let hosts: Vec<Ipv4Addr> = plan.of_kind(Kind::Host).map(|(_, host)| host.ends[0].address).collect();
            for (from, here) in hosts.iter().enumerate() {
                for there in hosts.iter().filter(|there| *there != here) {
                    let ways = ways(&plan, from, *there);
                    let ([_, pod, edge, _], [_, to_pod, to_edge, _]) = (here.octets(), there.octets());
                    let (count, nodes) = match (pod == to_pod, edge == to_edge) {
                        (true, true) => (1, 3),
                        (true, false) => (half, 5),
                        (false, _) => (half * half, 7),
                    };
                    let different: BTreeSet<&Vec<usize>> = ways.iter().collect();
                    assert_eq!((ways.len(), different.len()), (count, count), "{here} to {there}");
                    assert!(ways.iter().all(|way| way.len() == nodes), "{here} to {there}: {ways:?}");
                    // The highest switch of each is another one.
                    let tops: BTreeSet<usize> = ways.iter().map(|way| way[nodes / 2]).collect();
                    assert_eq!(tops.len(), count, "{here} to {there}: {ways:?}");
                }
            }
        }
    }

    #[test]
    fn rates_are_those_of_the_layer() {
        let plan = plan(4);
        for node in &plan.nodes {
            let rates: BTreeSet<u64> = node.ends.iter().map(|end| end.rate.as_bps() / 1_000_000).collect();
            let wanted: &[u64] = match node.kind {
                Kind::Host => &[10],
                Kind::Edge => &[10, 20],
                Kind::Aggregation => &[20, 40],
                Kind::Core => &[40],
            };
            assert_eq!(rates.into_iter().collect::<Vec<_>>(), wanted);
        }
    }
}

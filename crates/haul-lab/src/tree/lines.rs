//! What iproute2 is told of a node, and what is set in it.

use std::fmt::Write as _;

use haul_units::{BitRate, Bytes};

use super::TreeSpec;
use super::plan::{Kind, Node, Plan};

/// Variables below `/proc/sys/net`, with what they must be.
pub fn settings(spec: &TreeSpec, number: usize, kind: Kind) -> Vec<(&'static str, String)> {
    let mut settings = vec![("ipv4/conf/all/rp_filter", "0".to_owned()), ("ipv4/conf/default/rp_filter", "0".to_owned())];
    if kind == Kind::Host {
        settings.extend([
            ("ipv4/tcp_rto_min_us", spec.least_timeout.as_micros().to_string()),
            // A connection starts like the first one, whatever came before it.
            ("ipv4/tcp_no_metrics_save", "1".to_owned()),
        ]);
    } else {
        settings.extend([
            ("ipv4/ip_forward", "1".to_owned()),
            // By fields of the packet, whatever its sender's kernel has noted: policy 1 takes the hash that a socket of this machine gave its packets, the same at each switch.
            ("ipv4/fib_multipath_hash_policy", "3".to_owned()),
            ("ipv4/fib_multipath_hash_fields", HASHED.to_string()),
            ("ipv4/fib_multipath_hash_seed", hash_seed(spec.seed, number).to_string()),
        ]);
    }
    settings
}

/// A seed for each switch; 0 would be the machine's, the same in all of them.
fn hash_seed(seed: u64, number: usize) -> u32 {
    // SplitMix64 (Steele, Lea, Flood, 2014): neighbouring numbers give unlike ones.
    let mut mixed = seed.wrapping_add((number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) as u32).max(1)
}

/// For `ip`: the lines that this node makes; `namespace` tells where another node's is to be found.
pub fn making(plan: &Plan, node: &Node, namespace: impl Fn(usize) -> String) -> String {
    let mut lines = String::new();
    for end in node.ends.iter().filter(|end| end.makes) {
        let peer = &plan.nodes[end.peer.0].ends[end.peer.1];
        let place = namespace(end.peer.0);
        let _ = writeln!(lines, "link add {} type veth peer name {} netns {place}", end.device, peer.device);
    }
    lines
}

/// For `ip`, when all lines are made: devices up, addresses, routes.
pub fn configuring(plan: &Plan, node: &Node) -> String {
    let mut lines = "link set lo up\n".to_owned();
    for end in &node.ends {
        let _ = writeln!(lines, "link set dev {} gso_max_segs 1", end.device);
        let _ = writeln!(lines, "link set dev {} up", end.device);
        let _ = writeln!(lines, "address add {}/31 dev {}", end.address, end.device);
    }
    for route in &node.routes {
        let _ = match route.to {
            (_, 0) => write!(lines, "route add default"),
            (network, length) => write!(lines, "route add {network}/{length}"),
        };
        for &by in &route.by {
            let end = &node.ends[by];
            let gateway = plan.nodes[end.peer.0].ends[end.peer.1].address;
            let each = if route.by.len() > 1 { " nexthop" } else { "" };
            let _ = write!(lines, "{each} via {gateway} dev {}", end.device);
        }
        lines.push('\n');
    }
    lines
}

/// For `tc`: rate and buffer of each end.
pub fn shaping(spec: &TreeSpec, node: &Node) -> String {
    let mut lines = String::new();
    for end in &node.ends {
        let (rate, burst, buffer) = bucket(end.rate, spec.buffer);
        let device = &end.device;
        let _ = writeln!(lines, "qdisc replace dev {device} root tbf rate {}bit burst {burst} limit {buffer}", rate.as_bps());
    }
    lines
}

/// Rate, depth and buffer of a token bucket, which counts Ethernet's header with each packet.
fn bucket(rate: BitRate, buffer: Bytes) -> (BitRate, u64, u64) {
    let with_header = |bytes: u64| bytes * FRAME / PACKET;
    let rate = BitRate::from_bps(with_header(rate.as_bps()));
    // What falls due while a timer is late must fit, or it is lost to the rate; two packets, so that one always does.
    let burst = (rate.bytes_in(LATE).as_u64()).max(2 * FRAME);
    (rate, burst, with_header(buffer.as_u64()))
}

/// Both addresses, the protocol, both ports (linux/ip_fib.h): connections of two hosts take different paths.
const HASHED: u32 = 0x01 | 0x02 | 0x04 | 0x10 | 0x20;
/// A full IP packet, and what a token bucket takes it for.
const PACKET: u64 = 1500;
const FRAME: u64 = 1514;
/// A timer of the kernel is late by a tenth of that on a machine that is not busy.
const LATE: std::time::Duration = std::time::Duration::from_micros(500);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SPEC: TreeSpec = TreeSpec::tried(4);

    fn first(kind: Kind, lines: impl Fn(&Plan, &Node) -> String) -> String {
        let plan = Plan::of(&SPEC);
        let (_, node) = plan.of_kind(kind).next().expect("there are all kinds");
        lines(&plan, node)
    }

    #[test]
    fn a_switch_of_the_aggregation_routes_down_by_edge_and_up_by_equal_paths() {
        let lines = first(Kind::Aggregation, configuring);
        let routes: Vec<&str> = lines.lines().filter(|line| line.starts_with("route")).collect();
        assert_eq!(
            routes,
            [
                "route add 10.1.0.0/24 via 10.1.64.2 dev line0",
                "route add 10.1.1.0/24 via 10.1.65.2 dev line1",
                "route add default nexthop via 10.1.128.3 dev line2 nexthop via 10.1.128.5 dev line3",
            ]
        );
    }

    #[test]
    fn hosts_and_cores_have_the_routes_that_they_need_and_no_more() {
        let routes = |kind| {
            let lines = first(kind, configuring);
            lines.lines().filter(|line| line.starts_with("route")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(routes(Kind::Host), ["route add default via 10.1.0.3 dev line0"]);
        assert_eq!(routes(Kind::Edge), ["route add default nexthop via 10.1.64.3 dev line2 nexthop via 10.1.64.5 dev line3"]);
        assert_eq!(routes(Kind::Core)[3], "route add 10.4.0.0/16 via 10.4.128.2 dev line3");
    }

    #[test]
    fn the_lower_node_makes_the_line() {
        let place = |node: usize| format!("/somewhere/{node}");
        assert_eq!(
            first(Kind::Host, |plan, node| making(plan, node, place)),
            "link add line0 type veth peer name line0 netns /somewhere/16\n"
        );
        assert_eq!(first(Kind::Core, |plan, node| making(plan, node, place)), "");
        assert_eq!(first(Kind::Edge, |plan, node| making(plan, node, place)).lines().count(), 2);
    }

    #[test]
    fn a_bucket_has_the_rate_of_ip_bytes() {
        let line = first(Kind::Host, |_, node| shaping(&SPEC, node));
        assert_eq!(line, "qdisc replace dev line0 root tbf rate 10093333bit burst 3028 limit 100933\n");
        // 1500 bytes of IP in 1514: 10 Mbit/s of the one are so much of the other.
        assert_eq!(first(Kind::Edge, |_, node| shaping(&SPEC, node)).lines().count(), 4);
    }

    #[test]
    fn each_switch_chooses_in_its_own_way_and_another_seed_changes_all() {
        let seeds: BTreeSet<u32> = (1..=2).flat_map(|seed| (16..36).map(move |number| hash_seed(seed, number))).collect();
        assert_eq!(seeds.len(), 40);
        assert!(!seeds.contains(&0));
        let of = |kind| settings(&SPEC, 20, kind).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert!(of(Kind::Core).contains(&"ipv4/fib_multipath_hash_seed") && !of(Kind::Host).contains(&"ipv4/ip_forward"));
    }
}

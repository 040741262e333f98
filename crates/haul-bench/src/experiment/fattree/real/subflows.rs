//! What hosts are told so that a connection of the kernel's MPTCP has four subflows.
//!
//! Who receives announces three ports besides the one that was connected to, and who sends opens a subflow to each. Both know a limit of three more. A host
//! has one setting for all its connections: where the sender of one also receives by MPTCP, and the receiver also sends, both announce and open, and a subflow that
//! both ends of a connection open at once, as its last, is refused by both. Such a connection may have three.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use haul_lab::{NamespaceError, Tree, setting};
use haul_netdev::iproute::{IprouteError, ip_batch};
use haul_scenarios::fattree::Traffic;

use super::way::Way;

#[derive(Debug, thiserror::Error)]
pub enum SubflowsError {
    #[error("this kernel has no MPTCP, or it is off (net.mptcp.enabled)")]
    None,
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    #[error("MPTCP cannot be set up: {0}")]
    Iproute(#[from] IprouteError),
}

/// Where flows go by MPTCP; `ways` are those of the flows without end, and of the others.
pub fn prepare(tree: &Tree, traffic: &Traffic, ways: [Option<Way>; 2]) -> Result<(), SubflowsError> {
    let (long, short) = traffic.flows.split_at(traffic.long);
    let of = |flows: &[_], way: Option<Way>| if way == Some(Way::Mptcp) { flows.to_vec() } else { Vec::new() };
    let flows = [of(long, ways[0]), of(short, ways[1])].concat();
    let senders: BTreeSet<usize> = flows.iter().map(|flow| flow.from).collect();
    let receivers: BTreeSet<usize> = flows.iter().map(|flow| flow.to).collect();
    for number in senders.union(&receivers) {
        let host = &tree.hosts()[*number];
        let lines = lines(host.address, senders.contains(number), receivers.contains(number));
        host.namespace.within(|| {
            if setting("mptcp/enabled").as_deref() != Some("1") {
                return Err(SubflowsError::None);
            }
            Ok(ip_batch(&lines)?)
        })??;
    }
    Ok(())
}

/// For `ip`, on a host.
fn lines(address: Ipv4Addr, sends: bool, receives: bool) -> String {
    let accepted = if sends { MORE } else { 0 };
    let mut lines = format!("mptcp limits set subflow {MORE} add_addr_accepted {accepted}\n");
    for port in FIRST_PORT..FIRST_PORT + if receives { MORE } else { 0 } {
        let _ = writeln!(lines, "mptcp endpoint add {address} dev {} port {port} signal", Tree::HOST_DEVICE);
    }
    lines
}

/// Subflows besides the first.
const MORE: u16 = 3;
/// Where these are taken.
const FIRST_PORT: u16 = 5801;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_receives_announces_and_who_sends_opens() {
        let [sender, receiver] =
            [(true, false), (false, true)].map(|(sends, receives)| lines(Ipv4Addr::new(10, 1, 0, 2), sends, receives));
        assert_eq!(sender, "mptcp limits set subflow 3 add_addr_accepted 3\n");
        assert!(receiver.starts_with("mptcp limits set subflow 3 add_addr_accepted 0\n"), "{receiver}");
        assert_eq!(receiver.lines().last(), Some("mptcp endpoint add 10.1.0.2 dev line0 port 5803 signal"));
        assert_eq!(receiver.lines().count(), 4);
    }
}

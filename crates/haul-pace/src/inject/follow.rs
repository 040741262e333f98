//! The target-rate estimator on a real host: what the windows of TCP's connections ask for, asked of the kernel again and again, beside the thread that must not wait.
//!
//! Source: sock_diag(7). The shortest round trip is the kernel's own minimum (`target.rs` says why it is that one).

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haul_netdev::ethernet::on_line;
use haul_netdev::netlink::{DUMP, Netlink, attributes};
use haul_units::{BitRate, Bytes, Cancel, Network};
use rustix::net::netlink::SOCK_DIAG;

use super::pause::pause;
use crate::of_window;

/// What the connections of a class ask for together, in bits a second; 0: nobody sends.
pub type Target = Arc<AtomicU64>;

/// Asks until it is cancelled, in the network namespace of the calling thread.
pub fn follow(targets: Vec<(Network, Target)>, cancel: Cancel) -> io::Result<()> {
    let mut kernel = Netlink::open(Some(SOCK_DIAG))?;
    let body = move || {
        while !cancel.is_cancelled() {
            // A kernel that does not answer for once is asked again: what was last known holds.
            if let Ok(connections) = connections(&mut kernel) {
                tell(&targets, &connections);
            }
            pause(EVERY);
        }
    };
    std::thread::Builder::new().name("haul-target".to_owned()).spawn(body).map(drop)
}

/// Adds up what the connections ask for, each in the class of the longest network that holds its peer.
fn tell(targets: &[(Network, Target)], connections: &[Sending]) {
    let of = |peer: IpAddr| {
        let holding = targets.iter().enumerate().filter(|(_, (network, _))| network.holds(peer));
        holding.max_by_key(|(_, (network, _))| network.bits()).map(|(index, _)| index)
    };
    let mut sums = vec![0_u64; targets.len()];
    for connection in connections {
        if let Some(sum) = of(connection.peer).and_then(|index| sums.get_mut(index)) {
            *sum = sum.saturating_add(connection.target().as_bps());
        }
    }
    for ((_, target), sum) in targets.iter().zip(sums) {
        target.store(sum, Ordering::Relaxed);
    }
}

/// A connection that has packets on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sending {
    peer: IpAddr,
    window_pkts: u64,
    /// On the line.
    packet: Bytes,
    shortest: Duration,
}

impl Sending {
    fn target(&self) -> BitRate {
        of_window(self.window_pkts, self.packet, self.shortest).unwrap_or(BitRate::ZERO)
    }
}

/// All of TCP in the namespace that send.
fn connections(kernel: &mut Netlink) -> io::Result<Vec<Sending>> {
    let mut sending = Vec::new();
    for family in [AF_INET, AF_INET6] {
        let mut request = vec![family, TCP, WITH_INFO, 0];
        request.extend(STATES.to_ne_bytes());
        request.resize(REQUEST_BYTES, 0);
        kernel.ask(BY_FAMILY, DUMP, &request, |answer| sending.extend(decode(answer)))?;
    }
    Ok(sending)
}

/// `struct inet_diag_msg` and its attributes; none where nothing is on the way.
fn decode(body: &[u8]) -> Option<Sending> {
    let peer = body.get(PEER..PEER + 16)?;
    let peer = match *body.first()? {
        AF_INET => IpAddr::from(<[u8; 4]>::try_from(peer.get(..4)?).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(peer).ok()?).to_canonical(),
    };
    let (_, info) = attributes(body.get(ABOUT..)?).find(|(kind, _)| *kind == INFO)?;
    of_info(peer, info)
}

/// `struct tcp_info`.
fn of_info(peer: IpAddr, info: &[u8]) -> Option<Sending> {
    let word = |at: usize| Some(u32::from_ne_bytes(*info.get(at..)?.first_chunk()?));
    if word(UNACKNOWLEDGED)? == 0 {
        return None;
    }
    let headers = if peer.is_ipv4() { 40 } else { 60 };
    let timestamps = if info.get(OPTIONS)? & TIMESTAMPS == 0 { 0 } else { 12 };
    Some(Sending {
        peer,
        window_pkts: word(WINDOW)?.into(),
        packet: on_line(Bytes(u64::from(word(SEGMENT)?) + headers + timestamps)),
        shortest: Duration::from_micros(word(SHORTEST)?.into()),
    })
}

/// A window changes once a round trip; this is one of a short path.
const EVERY: Duration = Duration::from_millis(10);

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const TCP: u8 = 6;
const BY_FAMILY: u16 = 20;
/// `struct inet_diag_req_v2`.
const REQUEST_BYTES: usize = 56;
/// ESTABLISHED, FIN_WAIT1, CLOSE_WAIT, LAST_ACK.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 8 | 1 << 9;
const WITH_INFO: u8 = 1 << (INFO - 1);
const INFO: u16 = 2;
/// In `struct inet_diag_msg`, and its size.
const PEER: usize = 24;
const ABOUT: usize = 72;
/// In `struct tcp_info`.
const OPTIONS: usize = 5;
const TIMESTAMPS: u8 = 1;
const SEGMENT: usize = 16;
const UNACKNOWLEDGED: usize = 24;
const WINDOW: usize = 80;
const SHORTEST: usize = 148;

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn windows_are_added_up_by_the_longest_network() {
        let class = |network: &str| (network.parse::<Network>().unwrap(), Target::default());
        let targets = [class("10.0.0.0/8"), class("10.1.0.0/16"), class("2001:db8::/32")];
        let one = |peer: &str, window_pkts| Sending {
            peer: peer.parse().unwrap(),
            window_pkts,
            packet: Bytes(1250),
            shortest: Duration::from_millis(10),
        };
        tell(
            &targets,
            &[one("10.1.2.3", 10), one("10.1.2.4", 20), one("10.9.9.9", 5), one("192.0.2.1", 99), one("2001:db8::1", 1)],
        );
        let told = || targets.each_ref().map(|(_, target)| target.load(Ordering::Relaxed));
        assert_eq!(told(), [5_000_000, 30_000_000, 1_000_000]);
        tell(&targets, &[]);
        assert_eq!(told(), [0; 3]);
    }

    /// A receiver that reads nothing: what fills its window stays on the way, or behind it.
    #[test]
    fn a_connection_that_sends_is_found_with_its_window() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _far = listener.accept().unwrap();
        let mut kernel = Netlink::open(Some(SOCK_DIAG)).unwrap();
        near.set_nonblocking(true).unwrap();
        let much = vec![0; 65_536];
        let found = (0..1000).any(|_| {
            while near.write(&much).is_ok() {}
            let sending = connections(&mut kernel).unwrap();
            sending
                .iter()
                .any(|one| one.peer.is_loopback() && one.window_pkts >= 2 && one.packet > Bytes(500) && !one.shortest.is_zero())
        });
        assert!(found);
    }

    #[test]
    fn what_is_too_short_is_nothing() {
        let mut body = vec![0; ABOUT];
        body[0] = AF_INET;
        assert_eq!(decode(&body), None);
        body.extend([200_u16.to_ne_bytes(), INFO.to_ne_bytes()].concat());
        assert_eq!(decode(&body), None);
        body.extend([0; 196]);
        assert_eq!(decode(&body), None, "nothing is on the way");
        body[ABOUT + 4 + UNACKNOWLEDGED] = 3;
        body[ABOUT + 4 + WINDOW] = 7;
        assert_eq!(decode(&body).map(|one| (one.window_pkts, one.packet)), Some((7, on_line(Bytes(40)))));
        assert_eq!(decode(&[]), None);
    }
}

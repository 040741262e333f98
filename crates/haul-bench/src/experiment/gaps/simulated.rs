//! The senders in virtual time: a TCP whose window is what the rate makes of a round trip, behind interfaces that space its packets, or do not.

use std::time::Duration;

use haul_netdev::ethernet::{MOST, on_line};
use haul_pace::Spaced;
use haul_sim::{EndpointId, LinkConfig, Network, Tcp, TcpConfig};
use haul_units::{BitRate, Bytes, Time};

use super::cases::{Case, RTT, Seen, cases};
use super::show;
use crate::experiment::{Report, Scale};

/// Who spaces.
#[derive(Debug, Clone, Copy)]
enum How {
    Gaps,
    Timer(Duration),
    Nobody,
}

const ALL: [(&str, How); 5] = [
    ("gap frames", How::Gaps),
    ("a timer of 50 us", How::Timer(Duration::from_micros(50))),
    ("a timer of 1 ms", How::Timer(Duration::from_millis(1))),
    ("a timer of 4 ms", How::Timer(Duration::from_millis(4))),
    ("nobody", How::Nobody),
];

pub fn simulated(scale: Scale) -> Report {
    let length = Duration::from_secs(scale.pick(1, 10));
    let seen: Vec<Seen> = cases(scale).into_iter().flat_map(|case| ALL.map(|(name, how)| run(case, name, how, length))).collect();
    show::report("simulated: TCP with a window of one round trip", &seen)
}

fn run(case: Case, name: &str, how: How, length: Duration) -> Seen {
    // Twice the window where something behind TCP holds packets back: it must never run dry.
    let window = case.rate.bytes_in(RTT).0 / MOST.0;
    let window = if matches!(how, How::Nobody) { window } else { 2 * window };
    let config = TcpConfig { max_window_pkts: u32::try_from(window).unwrap_or(u32::MAX), ..TcpConfig::RENO };
    let (receiver, switch) = (EndpointId(1), EndpointId(2));
    let tcp = Tcp::sender(config, receiver, Time::ZERO, None);
    let room = on_line(Bytes(1500)).0 * (window + 1);
    let sender = match how {
        How::Gaps => Spaced::by_gaps(tcp, case.line, case.rate, Bytes(room), switch),
        How::Timer(tick) => Spaced::by_timer(tcp, tick, case.rate, Bytes(room)),
        How::Nobody => Spaced::plain(tcp),
    };
    let mut network = Network::new();
    network.add_endpoint(sender);
    network.add_endpoint(Spaced::plain(Tcp::receiver(config, None)));
    network.add_endpoint(Spaced::plain(Tcp::receiver(config, None)));
    // Whatever the host lets go at once waits before its line.
    let line = LinkConfig { rate: case.line, delay: Duration::ZERO, queue: Bytes(room.max(1 << 20)), ..LinkConfig::default() };
    let line = network.add_link(line);
    let far = LinkConfig { rate: BitRate::MAX, delay: RTT / 2, ..LinkConfig::default() };
    let (path, back) = (network.add_link(far), network.add_link(far));
    network.route(EndpointId(0), receiver, &[line, path]);
    network.route(EndpointId(0), switch, &[line]);
    network.route(receiver, EndpointId(0), &[back]);
    network.run(Time::ZERO + START);
    let before = network.endpoint(receiver).arrivals().histogram().clone();
    network.run(Time::ZERO + START + length);
    let gaps = network.endpoint(receiver).arrivals().histogram().since(&before);
    Seen { case, sender: name.to_owned(), gaps, remark: String::new() }
}

/// Slow start is over: a window of 5 Gbit/s and 20 ms is full after 11 round trips.
const START: Duration = Duration::from_secs(1);

//! The event loop: request and answer over two hops, a timer, a shared bottleneck.

use std::time::Duration;

use haul_sim::{Delivered, Endpoint, EndpointId, LinkConfig, LossModel, Network, Transmit};
use haul_units::{BitRate, Bytes, Ratio, Time};

/// Sends numbers to a peer one at a time, again after a timeout until they are echoed.
#[derive(Debug, Default)]
struct Pinger {
    peer: Option<EndpointId>,
    total: u64,
    done: u64,
    resend_at: Option<Time>,
    outbox: Vec<Transmit<u64>>,
    resent: u64,
}

const BYTES: Bytes = Bytes(1_000);

impl Pinger {
    fn client(peer: EndpointId, total: u64) -> Self {
        let outbox = vec![Transmit { to: peer, way: 0, packet: 0, bytes: BYTES }];
        Self { peer: Some(peer), total, outbox, ..Self::default() }
    }
}

impl Endpoint for Pinger {
    type Packet = u64;

    fn handle(&mut self, _now: Time, from: EndpointId, packet: Delivered<u64>) {
        if self.peer.is_none() {
            self.outbox.push(Transmit { to: from, way: 0, packet: packet.packet, bytes: BYTES });
        } else if packet.packet == self.done {
            self.done += 1;
            self.resend_at = None;
            if self.done < self.total {
                self.outbox.push(Transmit { to: from, way: 0, packet: self.done, bytes: BYTES });
            }
        }
    }

    fn handle_timeout(&mut self, _now: Time) {
        self.resend_at = None;
        self.resent += 1;
        self.outbox.extend(self.peer.map(|to| Transmit { to, way: 0, packet: self.done, bytes: BYTES }));
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<u64>> {
        let transmit = self.outbox.pop()?;
        if self.peer.is_some() {
            self.resend_at = Some(now + Duration::from_millis(200));
        }
        Some(transmit)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.resend_at
    }
}

fn slow() -> LinkConfig {
    // 1 ms a packet and 10 ms of propagation.
    LinkConfig { rate: BitRate::mbps(8), ..LinkConfig::default() }
}

#[test]
fn a_round_trip_takes_what_the_links_take() {
    let server = EndpointId(1);
    let mut network = Network::pair(Pinger::client(server, 5), Pinger::default(), slow(), slow());
    assert!(network.run_until(Time::ZERO + Duration::from_secs(1), |n| n.endpoint(EndpointId(0)).done == 5));
    assert_eq!(network.now(), Time::ZERO + Duration::from_millis(5 * 22));
}

#[test]
fn timers_recover_what_is_lost() {
    let lossy = LinkConfig { loss: LossModel::Random(Ratio::percent(30.0)), ..slow() };
    let mut network = Network::pair(Pinger::client(EndpointId(1), 50), Pinger::default(), lossy, lossy);
    assert!(network.run_until(Time::ZERO + Duration::from_secs(60), |n| n.endpoint(EndpointId(0)).done == 50));
    assert!(network.endpoint(EndpointId(0)).resent > 10);
}

#[test]
fn flows_that_share_a_link_share_its_queue() {
    let mut network = Network::new();
    let server = EndpointId(2);
    let clients = [network.add_endpoint(Pinger::client(server, 10)), network.add_endpoint(Pinger::client(server, 10))];
    network.add_endpoint(Pinger::default());
    let (access, bottleneck, back) = (network.add_link(slow()), network.add_link(slow()), network.add_link(slow()));
    for client in clients {
        network.route(client, server, &[access, bottleneck]);
        network.route(server, client, &[back]);
    }
    network.run(Time::ZERO + Duration::from_millis(38));
    assert_eq!(network.endpoint(clients[0]).done, 1);
    assert_eq!(network.endpoint(clients[1]).done, 1);
    assert_eq!(network.link(access).stats().max_queued, BYTES * 2);
    network.run(Time::ZERO + Duration::from_secs(1));
    assert_eq!(network.endpoint(clients[1]).done, 10);
    assert_eq!(network.now(), Time::ZERO + Duration::from_secs(1));
}

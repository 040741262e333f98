//! What a sender says about its path, on paths of which the truth is known.

use std::time::Duration;

use haul_proto::{Stats, TransportConfig};
use haul_units::BitRate;

use crate::harness::{CLIENT, Path, ms, pair, upload};

fn sent(path: Path, bytes: u64, transport: TransportConfig) -> Stats {
    let mut network = pair(path, &TransportConfig { max_packet: 1472, ..transport });
    upload(&mut network, bytes, Duration::from_secs(300));
    let now = network.now();
    network.endpoint_mut(CLIENT).connection().stats(now).unwrap()
}

/// Packets lost that no queue explains.
fn unexplained(stats: &Stats) -> u64 {
    let explained = stats.evidence.lost_starting_pkts + stats.evidence.lost_queued_pkts;
    stats.lost_pkts.saturating_sub(explained)
}

#[test]
fn what_the_start_overfilled_is_not_the_path_s_loss() {
    let stats = sent(Path::new(BitRate::mbps(300), ms(60)), 60 << 20, TransportConfig::default());
    assert!(stats.evidence.is_started && stats.evidence.start < ms(2000), "{stats:?}");
    assert!(unexplained(&stats) * 100 <= stats.lost_pkts, "nothing was lost but in the queue: {stats:?}");
    assert!(stats.evidence.queued_rounds > 0, "the path was full: {stats:?}");
}

#[test]
fn loss_without_a_queue_is_the_path_s() {
    let stats = sent(Path::new(BitRate::mbps(300), ms(60)).loss(0.02), 60 << 20, TransportConfig::default());
    // What is lost at random in a round trip with a queue cannot be told from congestion; the rest can, above half of 2 %.
    assert!(unexplained(&stats) * 100 > stats.sent_pkts, "2 % were lost at random: {stats:?}");
}

#[test]
fn the_user_s_limit_is_told_from_the_path_s_rate() {
    let limit = TransportConfig { rate_limit: Some(BitRate::mbps(50)), ..TransportConfig::default() };
    let waits = sent(Path::new(BitRate::mbps(300), ms(60)), 30 << 20, limit).waits;
    assert!(waits.limit > 5 * (waits.pacing + waits.window), "{waits:?}");
    let waits = sent(Path::new(BitRate::mbps(300), ms(60)), 30 << 20, TransportConfig::default()).waits;
    assert_eq!(waits.limit, Duration::ZERO, "{waits:?}");
}

//! The modes at a bottleneck: alone under random loss, with their like, beside CUBIC. Bounds, in virtual time: the same run each time.

use crate::path::{Outcome, Path, Sender, run};
use crate::shim::{self, Ack};

const PATH: Path = Path { rate_mbps: 50, rtt_ms: 40, queue_percent: 100, loss_ppm: 0, seconds: 30, apart_ms: 1000, seed: 1 };

fn alone(path: Path, sender: Sender) -> Outcome {
    let outcome = run(path, &[sender]).remove(0);
    println!("{sender:?} {path:?}: {outcome:.1?}");
    outcome
}

fn together(path: Path, senders: &[Sender]) -> Vec<Outcome> {
    let outcomes = run(path, senders);
    for (sender, outcome) in senders.iter().zip(&outcomes) {
        println!("{sender:?} of {} {path:?}: {outcome:.1?}", senders.len());
    }
    outcomes
}

#[test]
fn random_loss_is_not_congestion() {
    for (loss_ppm, least) in [(1_000, 95.0), (10_000, 93.0), (50_000, 85.0)] {
        for sender in [Sender::Fair, Sender::Aggressive] {
            let outcome = alone(Path { loss_ppm, ..PATH }, sender);
            assert!(outcome.share > least, "{sender:?} at {loss_ppm} ppm: {outcome:?}");
        }
    }
    let cubic = alone(Path { loss_ppm: 10_000, ..PATH }, Sender::Cubic);
    assert!(cubic.share < 10.0, "what is compared with is no TCP: {cubic:?}");
}

/// A window of thousands of packets, of which hundreds are lost each round trip: chance is no congestion there either.
#[test]
fn random_loss_of_a_long_fat_path_is_not_congestion() {
    let path = Path { rate_mbps: 1_000, rtt_ms: 100, seconds: 10, loss_ppm: 50_000, ..PATH };
    for sender in [Sender::Fair, Sender::Aggressive] {
        let outcome = alone(path, sender);
        assert!(outcome.share > 85.0, "{sender:?}: {outcome:?}");
    }
}

#[test]
fn the_path_own_loss_is_found_and_no_more() {
    let fair = alone(Path { loss_ppm: 10_000, ..PATH }, Sender::Fair);
    // It is learned without a queue: from some hundred packets, where one stands soon.
    assert!((4_000..16_000).contains(&fair.loss_ppm), "{fair:?}");
    let none = alone(PATH, Sender::Fair);
    assert!(none.loss_ppm < 1_000, "{none:?}");
}

#[test]
fn aggressive_does_not_feed_on_its_own_drops() {
    for queue_percent in [10, 50, 200] {
        let outcome = alone(Path { queue_percent, ..PATH }, Sender::Aggressive);
        assert!(outcome.share > 90.0 && outcome.dropped < 5.0, "{outcome:?}");
    }
}

/// Whose packets a full queue drops is chance, and decides over half a minute: the mean of some paths counts.
#[test]
fn fair_ones_share_alike() {
    for queue_percent in [50, 100, 200] {
        let jains = [44, 50, 54, 58]
            .map(|rate_mbps| jain(&together(Path { rate_mbps, queue_percent, seconds: 80, ..PATH }, &[Sender::Fair; 4])));
        let mean = mean(&jains);
        assert!(mean > 0.92 && jains.iter().all(|jain| *jain > 0.85), "queue of {queue_percent} %: {jains:?}");
    }
}

/// What waits behind a packet that was lost again and again has room to be written, and nothing more is asked for where nothing is lost.
#[test]
fn the_send_buffer_holds_what_waits_behind_a_loss() {
    let windows = [0, 65, 655, 3_277, 6_554].map(|lost| shim::buffered(8_600, lost));
    assert_eq!(windows, [2, 3, 4, 5, 7], "of 8,600 packets one in 16 round trips is lost so often, at 0, 0.1, 1, 5 and 10 %");
    assert_eq!(shim::buffered(5, 655), 2, "a packet of 80 is seldom lost at 1 %");
    assert_eq!(shim::buffered(1_000_000, 19_660), 8, "a bound");
}

/// A full queue that became shorter without this flow's doing is a reduction by the part that went out of the path, and never to less than shows a loss.
#[test]
fn fair_follows_the_reductions_of_others() {
    assert_eq!(shim::followed(1_000, 100_000, 50_000), 750, "a quarter of 200 ms in flight went out");
    assert_eq!(shim::followed(1_000, 100_000, 98_000), 1_000, "a sixteenth of the queue is noise");
    assert_eq!(shim::followed(5, 100_000, 0), 4);
}

/// Those that come later have the queue of those before them in their handshake, and leave their start at once: they have to catch up within a quarter of a minute.
#[test]
fn a_later_fair_catches_up() {
    for flows in [2, 4, 8] {
        let jain = |turn: u64| {
            let path = Path { rate_mbps: 96 + turn, rtt_ms: 50, seconds: 30, apart_ms: 300 + 200 * turn, ..PATH };
            jain(&together(path, &vec![Sender::Fair; flows]))
        };
        let jains: Vec<f64> = (0..8).map(jain).collect();
        let mean = mean(&jains);
        println!("{flows} flows: {mean:.3} of {jains:.3?}");
        assert!(mean > 0.96 && jains.iter().all(|jain| *jain > 0.9), "{flows} flows: {mean:.3} of {jains:.3?}");
    }
}

/// Their pacing is as fine as their rates, and they do not probe all at once: beside each other, who came first keeps nothing but what chance gives.
#[test]
fn aggressive_ones_share_alike() {
    for (flows, least) in [(2, 0.95), (4, 0.75)] {
        let jains: Vec<f64> = (0..4).map(|turn| later_ones(Sender::Aggressive, flows, turn)).collect();
        let mean = mean(&jains);
        assert!(mean > least, "{flows} flows: {mean:.3} of {jains:.3?}");
    }
}

/// A later one has the queue of those before it for its path until all let it run empty at the same time.
#[test]
fn modest_ones_share_alike() {
    for flows in [2, 4, 8] {
        for turn in 0..2 {
            let jain = later_ones(Sender::Modest, flows, turn);
            assert!(jain > 0.9, "{flows} flows, {turn}: {jain:.3}");
        }
    }
}

/// As they are started by hand on a path of 100 Mbit/s: within half a minute all have found the path, wherever the first look falls.
#[test]
fn many_modest_ones_find_the_path_soon() {
    for flows in [3, 5, 8, 12] {
        let jain = |turn: u64| {
            let path = Path { rate_mbps: 96 + turn, rtt_ms: 50, seconds: 30, apart_ms: 300 + 100 * turn, ..PATH };
            jain(&together(path, &vec![Sender::Modest; flows]))
        };
        let jains: Vec<f64> = (0..8).map(jain).collect();
        println!("{flows} flows: {jains:.3?}");
        assert!(jains.iter().all(|jain| *jain > 0.95), "{flows} flows: {jains:.3?}");
    }
}

/// Jain's index of those that come one after the other, at another rate and moment each turn.
fn later_ones(sender: Sender, flows: usize, turn: u64) -> f64 {
    let path = Path { rate_mbps: 48 + turn, rtt_ms: 50, seconds: 40, apart_ms: 400 + 150 * turn, ..PATH };
    jain(&together(path, &vec![sender; flows]))
}

/// Its own queue is never taken for the path, however long it stands: after half a minute the smallest round-trip time is another one.
#[test]
fn modest_keeps_the_queue_short_for_minutes() {
    let outcome = alone(Path { rate_mbps: 20, seconds: 240, ..PATH }, Sender::Modest);
    assert!(outcome.share > 90.0 && outcome.queue < 25.0, "{outcome:?}");
}

/// Not by whole bytes a microsecond, of which one is 8 Mbit/s.
#[test]
fn aggressive_paces_at_the_rate_of_the_path() {
    for packets in [10, 300, 1_000, 4_321, 80_000, 5_000_000] {
        let (wanted, pacing) = (packets * 1_448, shim::paced_at(packets, 1_448));
        assert!(pacing.abs_diff(wanted) <= wanted / 100, "{packets} packets a second: {pacing}, not {wanted}");
    }
    // A whole super-packet as one segment, as on a loopback.
    let (wanted, pacing) = (1_000_000 * 65_483, shim::paced_at(1_000_000, 65_483));
    assert!(pacing.abs_diff(wanted) <= wanted / 100, "{pacing}, not {wanted}");
}

/// Where all probe in the same round, each gets as much more as it has.
#[test]
fn aggressive_ones_probe_each_in_a_round_of_its_own() {
    let flows = [1_000_000, 1_000_120, 1_000_241, 1_003_000, 1_025_000].map(shim::probes);
    for (at, probes) in flows.iter().enumerate() {
        let rounds: Vec<u32> = (0..64).filter(|round| (probes >> round) & 1 == 1).collect();
        assert!(rounds.windows(2).all(|two| (4..=11).contains(&(two[1] - two[0]))), "{rounds:?}");
        for other in &flows[at + 1..] {
            let together = (probes & other).count_ones() as usize;
            assert!(together * 2 <= rounds.len(), "{together} of {}", rounds.len());
        }
    }
}

#[test]
fn aggressive_goes_by_the_last_round_when_the_path_is_full() {
    assert_eq!(shim::rate_after_congestion(1_000, 800), 800);
    assert_eq!(shim::rate_after_congestion(1_000, 0), 1_000, "no round has ended yet");
}

/// The queue of others goes away little by little, and with it what was learned while it stood.
#[test]
fn what_was_lost_in_a_queue_of_others_is_not_the_path_own_loss() {
    assert!(shim::loss_after_base(100_000, 100_000) > 100_000, "a fifth is believed");
    assert!(shim::loss_after_base(100_000, 99_000) > 100_000, "a millisecond is none");
    assert_eq!(shim::loss_after_base(100_000, 80_000), 0, "a fifth of it was the queue of others");
}

/// An overflow's losses are told of when its queue is gone.
#[test]
fn what_an_overflow_has_dropped_is_not_the_path_own_loss() {
    assert!(shim::loss_after_rounds(40_000, 0, 0) > 100_000, "calm for two rounds");
    assert_eq!(shim::loss_after_rounds(0, 40_000, 0), 0, "the round before had a queue");
    assert_eq!(shim::loss_after_rounds(0, 0, 40_000), 0);
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn jain(outcomes: &[Outcome]) -> f64 {
    let sum: f64 = outcomes.iter().map(|outcome| outcome.share).sum();
    let squares: f64 = outcomes.iter().map(|outcome| outcome.share.powi(2)).sum();
    assert!(sum > 90.0, "{outcomes:?}");
    sum * sum / (outcomes.len() as f64 * squares)
}

/// Over paths, not on each: where CUBIC has left its start too early it takes minutes to come back.
#[test]
fn fair_shares_with_cubic() {
    for queue_percent in [25, 50, 100, 200, 400] {
        let share = |turn: u64| {
            let at = Path { rate_mbps: 50 + 3 * turn, rtt_ms: 30 + 2 * turn, apart_ms: 700 + 230 * turn, ..PATH };
            together(Path { queue_percent, seconds: 80, ..at }, &[Sender::Cubic, Sender::Fair])[1].share
        };
        let shares: Vec<f64> = (0..9).map(share).collect();
        let mean = mean(&shares);
        println!("queue of {queue_percent} %: {mean:.1} of {shares:.1?}");
        assert!((35.0..65.0).contains(&mean), "queue of {queue_percent} %: {mean:.1} of {shares:.1?}");
    }
}

/// A queue that is too short for what x0.7 leaves fills soon again.
#[test]
fn fair_fills_the_path_behind_a_short_queue() {
    for (queue_percent, least) in [(10, 85.0), (25, 92.0), (50, 93.0), (100, 99.0)] {
        let outcome = alone(Path { rate_mbps: 100, rtt_ms: 50, queue_percent, seconds: 60, ..PATH }, Sender::Fair);
        assert!(outcome.share > least, "queue of {queue_percent} %: {outcome:?}");
    }
}

#[test]
fn modest_keeps_the_queue_short_and_gives_way() {
    let outcome = alone(PATH, Sender::Modest);
    assert!(outcome.share > 90.0 && outcome.queue < 25.0, "{outcome:?}");
    let outcomes = together(Path { seconds: 60, ..PATH }, &[Sender::Cubic, Sender::Modest]);
    assert!(outcomes[1].share < 15.0 && outcomes[0].share > 75.0, "{outcomes:?}");
}

/// 5 % of the path's own: 10,000 packets lose 500 and some 20 more or less.
#[test]
fn a_loss_that_is_told_of_late_is_no_congestion() {
    let excess = |before_lost, lost| shim::excess(65_536, 3_277, before_lost, lost, 10_000, 20_000) != 0;
    assert!(!excess(500, 570), "chance");
    assert!(excess(500, 660), "more than chance");
    assert!(!excess(330, 660), "the round before was told of so many less");
    assert!(excess(500, 1_000));
    // Where nothing is lost by the path itself, the first one with a queue counts, and without one a thirty-second part.
    assert!(shim::excess(65_536, 0, 0, 1, 10_000, 20_000) != 0);
    assert!(shim::excess(65_536, 0, 0, 300, 10_000, 0) == 0);
    assert!(shim::excess(65_536, 0, 0, 320, 10_000, 0) != 0);
}

/// Rounds without a queue after a reduction: on a path that loses by itself the reduction was for nothing.
#[test]
fn a_reduction_for_nothing_is_made_up_for() {
    assert!(shim::after_rounds(65_536, 3_277, 8) > 2_000, "{}", shim::after_rounds(65_536, 3_277, 8));
    assert_eq!(shim::after_rounds(65_536, 3_277, 3), 1_000);
    assert_eq!(shim::after_rounds(65_536, 0, 12), 1_000, "it is left to CUBIC's growth");
}

/// A jump of so many packets into a path of 100 ms, of which some are lost: the window when the last one's fate is known, and whether it doubles from there.
fn after_jump(jump: u32, lost: impl Fn(u32) -> bool) -> (u32, bool) {
    let mut state = vec![0; shim::flow_bytes() as usize / 8];
    shim::begin(state.as_mut_ptr(), 1, 10, 100_000, 0, jump);
    assert_eq!(shim::window(state.as_ptr()), jump);
    let knobs = [0, 3_000, 300_000, 50, 86_400, 30];
    let (mut delivered, mut gone) = (0, 0);
    let mut hear = |packet: u32, round: u32, is_lost: bool, prior_in_flight: u32| {
        if is_lost {
            gone += 1;
        } else {
            delivered += 1;
        }
        let ack = Ack {
            now_us: u64::from(round) * 100_000 + u64::from(packet) * 100,
            delivered_total: delivered,
            delivered: if is_lost { -1 } else { 1 },
            interval_us: 100_000,
            rtt_us: if is_lost { -1 } else { 100_000 },
            acked: u32::from(!is_lost),
            lost_total: gone,
            prior_in_flight,
            in_flight: prior_in_flight - 1,
            smoothed_us: 100_000,
            segment_bytes: 1448,
            most: u32::MAX,
            ..Ack::default()
        };
        shim::on_ack(state.as_mut_ptr(), &raw const ack, knobs.as_ptr());
        shim::window(state.as_ptr())
    };
    let mut window = 0;
    for packet in 0..jump {
        window = hear(packet, 1, lost(packet), jump - packet);
    }
    // Twenty of the next round; what was lost of the jump is made up for by some of them.
    let next = (0..20).fold(0, |_, packet| hear(packet, 2, false, window));
    (window, next >= window + 10)
}

/// RFC 9959: half of what came through, and no doubling from there.
#[test]
fn a_jump_that_loses_packets_is_brought_back() {
    // The path has room for 150: what came before the first loss is known to is half of that at most.
    let (window, doubles) = after_jump(400, |packet| packet >= 150);
    assert!((4..=75).contains(&window), "{window}");
    assert!(!doubles);
    // Some few are chance: the jump is kept, and the start goes on from it.
    let (window, doubles) = after_jump(400, |packet| packet % 100 == 50);
    assert!(window >= 396, "{window}");
    assert!(doubles);
    let (window, doubles) = after_jump(400, |_| false);
    assert!(window >= 400 && doubles, "{window}");
}

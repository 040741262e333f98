//! What a link promises, for random links and random traffic.

use std::time::Duration;

use haul_sim::{Delivered, Link, LinkConfig, LossModel, Reorder, Verdict};
use haul_units::{BitRate, Bytes, Ratio, Time};
use proptest::prelude::*;

/// A packet remembers when it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Packet {
    number: u64,
    sent: Time,
    bytes: u64,
}

/// Time to wait in microseconds, then a packet of that size.
type Traffic = Vec<(u64, u64)>;

fn traffic() -> impl Strategy<Value = Traffic> {
    prop::collection::vec((0u64..300, 40u64..9_000), 1..300)
}

fn links() -> impl Strategy<Value = LinkConfig> {
    let loss = prop_oneof![
        Just(LossModel::None),
        (0.0..0.5).prop_map(|r| LossModel::Random(Ratio::new(r))),
        (0.0..0.5, 1.0..30.0).prop_map(|(r, mean_pkts)| LossModel::Bursts { ratio: Ratio::new(r), mean_pkts }),
    ];
    let times = (0u64..50_000, 0u64..20_000, 0u64..5_000);
    (1_000_000u64..1_000_000_000, times, 9_000u64..200_000, loss, 0.0..0.3, any::<u64>()).prop_map(
        |(rate, (delay, jitter, extra), queue, loss, ratio, seed)| LinkConfig {
            rate: BitRate::from_bps(rate),
            delay: Duration::from_micros(delay),
            jitter: Duration::from_micros(jitter),
            queue: Bytes(queue),
            loss,
            reorder: Reorder { ratio: Ratio::new(ratio / 2.0), extra: Duration::from_micros(extra) },
            duplicate: Ratio::new(ratio / 3.0),
            corrupt: Ratio::new(ratio),
            ecn_threshold: Some(Bytes(queue / 4)),
            seed,
        },
    )
}

/// Plays traffic through a link, taking packets as they arrive, and checks the queue and the balance after every step.
fn play(config: LinkConfig, traffic: &Traffic) -> (Link<Packet>, Vec<Delivered<Packet>>) {
    let (mut link, mut now, mut arrived) = (Link::new(config), Time::ZERO, Vec::new());
    for (number, &(wait_us, bytes)) in traffic.iter().enumerate() {
        let next = now + Duration::from_micros(wait_us);
        while let Some(event) = link.next_event().filter(|event| *event <= next) {
            assert!(event >= now, "an event in the past");
            now = event;
            arrived.extend(std::iter::from_fn(|| link.pop(event)));
        }
        now = next;
        link.send(now, Packet { number: number as u64, sent: now, bytes }, Bytes(bytes));
        assert!(link.queued(now) <= config.queue);
        assert_balance(&link);
    }
    while let Some(event) = link.next_event() {
        arrived.extend(std::iter::from_fn(|| link.pop(event)));
    }
    assert_balance(&link);
    assert_eq!(link.inside_pkts(), 0);
    (link, arrived)
}

fn assert_balance(link: &Link<Packet>) {
    let stats = link.stats();
    let gone = stats.delivered_pkts + stats.dropped_pkts + stats.lost_pkts + link.inside_pkts();
    assert_eq!(stats.sent_pkts + stats.duplicated_pkts, gone);
}

proptest! {
    #[test]
    fn nothing_is_early_and_arrivals_are_in_order_of_time(config in links(), traffic in traffic()) {
        let (_, arrived) = play(config, &traffic);
        for packet in &arrived {
            let transmission = config.rate.time_for(Bytes(packet.packet.bytes)).saturating_sub(Duration::from_nanos(1));
            prop_assert!(packet.at >= packet.packet.sent + config.delay + transmission);
        }
        prop_assert!(arrived.is_sorted_by_key(|packet| packet.at));
    }

    #[test]
    fn order_is_kept_unless_reordering_is_asked_for(config in links(), traffic in traffic()) {
        let (_, arrived) = play(LinkConfig { reorder: Reorder::default(), ..config }, &traffic);
        prop_assert!(arrived.is_sorted_by_key(|packet| packet.packet.number));
    }

    #[test]
    fn the_rate_is_never_exceeded(config in links(), traffic in traffic()) {
        let plain = LinkConfig { jitter: Duration::ZERO, reorder: Reorder::default(), duplicate: Ratio::ZERO, ..config };
        let (_, arrived) = play(plain, &traffic);
        let mut bytes = Bytes::ZERO;
        for pair in arrived.windows(2) {
            bytes += Bytes(pair[1].packet.bytes);
            let time = pair[1].at - arrived[0].at;
            prop_assert!(time + Duration::from_nanos(2) >= plain.rate.time_for(bytes));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(config in links(), traffic in traffic()) {
        prop_assert_eq!(play(config, &traffic).1, play(config, &traffic).1);
    }
}

fn send_all(link: &mut Link<u64>, now: Time, count: u64) -> u64 {
    (0..count).filter(|number| link.send(now, *number, Bytes(1_000)) == Verdict::Queued).count() as u64
}

fn drain(link: &mut Link<u64>) -> Vec<Delivered<u64>> {
    let mut arrived = Vec::new();
    while let Some(event) = link.next_event() {
        arrived.extend(std::iter::from_fn(|| link.pop(event)));
    }
    arrived
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_busy_link_works_at_exactly_its_rate() {
    // A rate that no packet's time divides evenly.
    let config = LinkConfig { rate: BitRate::from_bps(7_000_000_001), queue: Bytes::gib(1), delay: MS, ..LinkConfig::default() };
    let mut link = Link::new(config);
    assert_eq!(send_all(&mut link, Time::ZERO, 100_000), 100_000);
    let arrived = drain(&mut link);
    let ideal = config.rate.time_for(Bytes(100_000_000));
    let took = arrived.last().expect("all arrive").at - (Time::ZERO + MS);
    assert!(took.abs_diff(ideal) <= Duration::from_nanos(2), "{took:?} for {ideal:?}");
}

#[test]
fn tail_drop_marks_and_queue_delay() {
    let config =
        LinkConfig { rate: BitRate::mbps(8), queue: Bytes(10_000), ecn_threshold: Some(Bytes(5_000)), ..LinkConfig::default() };
    let mut link = Link::new(config);
    assert_eq!(send_all(&mut link, Time::ZERO, 20), 10);
    assert_eq!(link.queue_delay(Time::ZERO), MS * 10);
    assert_eq!(link.queue_delay(Time::ZERO + MS * 4), MS * 6);
    assert_eq!(link.stats().dropped_pkts, 10);
    let marked: Vec<u64> = drain(&mut link).iter().filter(|p| p.ce).map(|p| p.packet).collect();
    assert_eq!(marked, [6, 7, 8, 9]);
}

#[test]
fn changes_while_it_runs() {
    let config = LinkConfig { rate: BitRate::mbps(8), queue: Bytes::mib(1), delay: MS * 10, ..LinkConfig::default() };
    let mut link = Link::new(config);
    send_all(&mut link, Time::ZERO, 10);
    // Five left at 1 ms each; the others take 0.1 ms each.
    link.set_rate(Time::ZERO + MS * 5, BitRate::mbps(80));
    link.set_delay(Time::ZERO + MS * 5, MS * 20);
    let arrived = drain(&mut link);
    assert_eq!(arrived[4].at, Time::ZERO + MS * 15);
    assert_eq!(arrived[9].at, Time::ZERO + MS * 25 + MS / 2);

    let down = Time::ZERO + MS * 100;
    link.set_loss(down, LossModel::All);
    send_all(&mut link, down, 10);
    assert!(drain(&mut link).is_empty());
    link.set_loss(down + MS * 50, LossModel::None);
    send_all(&mut link, down + MS * 50, 10);
    assert_eq!(drain(&mut link).len(), 10);

    // At a rate of zero packets wait for better times.
    let stop = down + MS * 100;
    link.set_rate(stop, BitRate::ZERO);
    send_all(&mut link, stop, 3);
    assert_eq!(link.pop(stop + MS * 1_000), None);
    link.set_rate(stop + MS * 1_000, BitRate::mbps(8));
    assert_eq!(drain(&mut link).len(), 3);
}

#[test]
fn jitter_stays_within_its_amplitude_and_moves() {
    let config = LinkConfig { rate: BitRate::MAX, delay: MS * 10, jitter: MS * 20, ..LinkConfig::default() };
    let mut link = Link::new(config);
    let mut delays = Vec::new();
    for step in 0..10_000 {
        let now = Time::ZERO + MS / 10 * step;
        link.send(now, now, Bytes(1_000));
        delays.extend(std::iter::from_fn(|| link.pop(now)).map(|p| p.at - p.packet));
    }
    let (least, most) = (delays.iter().min().expect("some"), delays.iter().max().expect("some"));
    assert!(*least >= MS * 10 && *most <= MS * 30);
    assert!(*most > *least + MS * 15, "{least:?}..{most:?}");
}

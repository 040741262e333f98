//! What a link promises, for random links and random traffic.

use std::time::Duration;

use haul_sim::{Change, CoDel, Delivered, Discipline, Link, LinkConfig, LossModel, Red, Reorder, TokenBucket, Verdict};
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
    let disciplines = prop_oneof![
        Just(Discipline::TailDrop),
        any::<bool>().prop_map(|ecn| Discipline::Red(Red { weight: 0.1, ecn, ..Red::for_queue(Bytes(60_000)) })),
        any::<bool>().prop_map(|ecn| {
            Discipline::CoDel(CoDel { target: Duration::from_micros(500), interval: Duration::from_millis(5), ecn })
        }),
    ];
    let buckets = || {
        prop::option::of(
            (1_000_000u64..1_000_000_000, 9_000u64..100_000)
                .prop_map(|(rate, bucket)| TokenBucket { rate: BitRate::from_bps(rate), bucket: Bytes(bucket) }),
        )
    };
    let control = (disciplines, buckets(), buckets(), any::<u64>());
    let times = (0u64..50_000, 0u64..20_000, 0u64..5_000);
    (1_000_000u64..1_000_000_000, times, 9_000u64..200_000, loss, 0.0..0.3, control).prop_map(
        |(rate, (delay, jitter, extra), queue, loss, ratio, (discipline, policer, shaper, seed))| LinkConfig {
            rate: BitRate::from_bps(rate),
            delay: Duration::from_micros(delay),
            jitter: Duration::from_micros(jitter),
            queue: Bytes(queue),
            loss,
            reorder: Reorder { ratio: Ratio::new(ratio / 2.0), extra: Duration::from_micros(extra) },
            duplicate: Ratio::new(ratio / 3.0),
            corrupt: Ratio::new(ratio),
            ecn_threshold: Some(Bytes(queue / 4)),
            discipline,
            policer,
            shaper,
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
    fn a_policer_lets_no_more_through_than_its_bucket_and_its_rate(config in links(), traffic in traffic(), rate in 1_000_000u64..500_000_000) {
        let policer = TokenBucket { rate: BitRate::from_bps(rate), bucket: Bytes(20_000) };
        let config = LinkConfig { policer: Some(policer), duplicate: Ratio::ZERO, ..config };
        let (link, arrived) = play(config, &traffic);
        let mut passed: Vec<Packet> = arrived.iter().map(|packet| packet.packet).collect();
        passed.sort_by_key(|packet| packet.number);
        // Over any stretch of time: what passed is at most the bucket and what flowed into it.
        for from in (0..passed.len()).step_by(7) {
            let mut bytes = 0;
            for packet in &passed[from..] {
                bytes += packet.bytes;
                let allowed = policer.bucket + policer.rate.bytes_in(packet.sent - passed[from].sent) + Bytes(1);
                prop_assert!(Bytes(bytes) <= allowed);
            }
        }
        prop_assert!(link.stats().policed_pkts <= link.stats().dropped_pkts);
    }

    #[test]
    fn a_shaper_holds_back_what_exceeds_its_bucket_and_its_rate(config in links(), traffic in traffic(), rate in 1_000_000u64..500_000_000) {
        let shaper = TokenBucket { rate: BitRate::from_bps(rate), bucket: Bytes(20_000) };
        let plain = LinkConfig { rate: config.rate, queue: Bytes(u64::MAX), shaper: Some(shaper), ..LinkConfig::default() };
        let (link, arrived) = play(plain, &traffic);
        prop_assert_eq!(arrived.len(), traffic.len());
        prop_assert_eq!(link.stats().dropped_pkts, 0);
        // A packet arrives when its last bit has left: the largest one's time on the wire is between that and its tokens.
        let slack = shaper.rate.bytes_in(plain.rate.time_for(Bytes(9_000))) + Bytes(1);
        for from in (0..arrived.len()).step_by(7) {
            let mut bytes = 0;
            for packet in &arrived[from..] {
                bytes += packet.packet.bytes;
                let allowed = shaper.bucket + shaper.rate.bytes_in(packet.at - arrived[from].at) + slack;
                prop_assert!(Bytes(bytes) <= allowed);
            }
        }
    }

    #[test]
    fn changes_by_schedule_are_the_same_as_changes_by_hand(config in links(), traffic in traffic(), times in prop::collection::vec(0u64..50_000, 6)) {
        let made = [
            Change::Rate(BitRate::mbps(30)),
            Change::Delay(Duration::from_millis(3)),
            Change::Down,
            Change::Up,
            Change::Loss(LossModel::Random(Ratio::percent(5.0))),
            Change::Rate(BitRate::mbps(700)),
        ];
        let mut changes: Vec<(Time, Change)> =
            times.iter().map(|us| Time::ZERO + Duration::from_micros(*us)).zip(made).collect();
        changes.sort_by_key(|(at, _)| *at);
        let (mut scheduled, mut by_hand) = (Link::new(config), Link::new(config));
        scheduled.schedule(changes.iter().copied());
        let (mut now, mut pending) = (Time::ZERO, changes.into_iter().peekable());
        for (number, &(wait_us, bytes)) in traffic.iter().enumerate() {
            now += Duration::from_micros(wait_us);
            while let Some((at, change)) = pending.next_if(|(at, _)| *at <= now) {
                by_hand.change(at, change);
            }
            let packet = Packet { number: number as u64, sent: now, bytes };
            prop_assert_eq!(scheduled.send(now, packet, Bytes(bytes)), by_hand.send(now, packet, Bytes(bytes)));
        }
        for (at, change) in pending {
            by_hand.change(at, change);
        }
        prop_assert_eq!(drain(&mut scheduled), drain(&mut by_hand));
    }

    #[test]
    fn the_same_seed_gives_the_same_run(config in links(), traffic in traffic()) {
        prop_assert_eq!(play(config, &traffic).1, play(config, &traffic).1);
    }
}

fn send_all(link: &mut Link<u64>, now: Time, count: u64) -> u64 {
    (0..count).filter(|number| link.send(now, *number, Bytes(1_000)) == Verdict::Queued).count() as u64
}

fn drain<P: Clone>(link: &mut Link<P>) -> Vec<Delivered<P>> {
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

/// Sends 1000-byte packets for 10 s at a part of the link's 8 Mbit/s; gives the link and the mean wait in the last 5 s in ms.
fn load(discipline: Discipline, part: f64) -> (Link<Time>, f64) {
    let config = LinkConfig { rate: BitRate::mbps(8), queue: Bytes(500_000), discipline, ..LinkConfig::default() };
    let (mut link, mut waits) = (Link::new(config), Vec::new());
    let gap = MS.div_f64(part);
    let mut now = Time::ZERO;
    while now < Time::ZERO + MS * 10_000 {
        waits.extend(std::iter::from_fn(|| link.pop(now)).map(|p| (p.packet, p.at - (p.packet + MS * 11))));
        link.send(now, now, Bytes(1_000));
        now += gap;
    }
    let late: Vec<f64> =
        waits.iter().filter(|(sent, _)| *sent >= Time::ZERO + MS * 5_000).map(|(_, wait)| wait.as_secs_f64() * 1e3).collect();
    let mean = late.iter().sum::<f64>() / late.len() as f64;
    (link, mean)
}

#[test]
fn red_holds_the_average_between_its_thresholds() {
    let red = Red { min: Bytes(20_000), max: Bytes(60_000), ..Red::for_queue(Bytes::ZERO) };
    let (link, _) = load(Discipline::Red(red), 0.9);
    assert_eq!(link.stats().dropped_pkts, 0, "no queue, no drops");
    // 9 % too much calls for 8.3 % drops, which is a probability reached just below the maximum: 20 + 40 * 0.083 / 0.1 = 53 ms, and
    // evenly spread drops take a little less.
    let (link, wait) = load(Discipline::Red(red), 1.0 / 0.917);
    assert!((30.0..60.0).contains(&wait), "{wait} ms");
    let stats = link.stats();
    assert_eq!(stats.early_dropped_pkts, stats.dropped_pkts);
    // Half too much: beyond the maximum, where gentle RED still holds it.
    let (link, wait) = load(Discipline::Red(red), 1.5);
    assert!((60.0..120.0).contains(&wait), "{wait} ms");
    assert_eq!(link.stats().early_dropped_pkts, link.stats().dropped_pkts);
    // Marked packets stay, and fill the queue if nobody heeds them.
    let (link, wait) = load(Discipline::Red(Red { ecn: true, ..red }), 1.0 / 0.917);
    assert!(link.stats().marked_pkts > 500 && wait > 120.0, "{:?} {wait} ms", link.stats());
}

#[test]
fn codel_hits_a_standing_queue_ever_faster_and_leaves_bursts_alone() {
    let codel = CoDel::DEFAULT;
    let (link, wait) = load(Discipline::CoDel(codel), 0.99);
    assert_eq!((link.stats().dropped_pkts, wait.round() as u64), (0, 0));
    // A burst of 80 ms is gone before an interval is over.
    let config = LinkConfig { rate: BitRate::mbps(8), discipline: Discipline::CoDel(codel), ..LinkConfig::default() };
    let mut link = Link::new(config);
    send_all(&mut link, Time::ZERO, 80);
    assert_eq!(drain(&mut link).len(), 80);
    // A queue of 200 ms: the first is hit when an interval has passed, the next ones 100/sqrt(n) ms after.
    let mut link = Link::new(config);
    send_all(&mut link, Time::ZERO, 400);
    let arrived: Vec<u64> = drain(&mut link).iter().map(|p| p.packet).collect();
    let hit: Vec<u64> = (0..400).filter(|n| !arrived.contains(n)).collect();
    let expected = [0.0, 100.0, 170.7, 228.4, 278.4].map(|later: f64| 106.0 + later);
    assert_eq!(hit.len(), 5, "{hit:?}");
    for (index, (n, at)) in hit.iter().zip(expected).enumerate() {
        assert!((*n as f64 - index as f64 - at).abs() <= 2.0, "{hit:?}");
    }
    // A constant overload of 5 %: it finds the drop rate that brings the wait down.
    let (link, wait) = load(Discipline::CoDel(codel), 1.05);
    assert!(wait < 60.0 && link.stats().early_dropped_pkts > 100, "{wait} ms");
    // Marks instead.
    let (link, _) = load(Discipline::CoDel(CoDel { ecn: true, ..codel }), 1.05);
    assert_eq!(link.stats().early_dropped_pkts, 0);
    assert!(link.stats().marked_pkts > 100);
}

#[test]
fn what_cannot_be_marked_is_dropped_or_left_alone() {
    let red = Red { min: Bytes(0), max: Bytes(1), weight: 1.0, max_probability: 1.0, ecn: true };
    let config = LinkConfig { discipline: Discipline::Red(red), ecn_threshold: Some(Bytes::ZERO), ..LinkConfig::default() };
    let mut link = Link::new(config);
    link.send_ecn(Time::ZERO, 0, Bytes(1_000), false);
    assert_eq!(link.send_ecn(Time::ZERO, 1, Bytes(1_000), false), Verdict::Dropped);
    assert_eq!(link.send_ecn(Time::ZERO, 2, Bytes(1_000), true), Verdict::Queued);
    let arrived: Vec<(u64, bool)> = drain(&mut link).iter().map(|p| (p.packet, p.ce)).collect();
    assert_eq!(arrived, [(0, false), (2, true)]);
}

#[test]
fn an_outage_by_schedule() {
    let mut link = Link::new(LinkConfig { rate: BitRate::MAX, delay: MS, ..LinkConfig::default() });
    link.schedule([(Time::ZERO + MS * 200, Change::Up), (Time::ZERO + MS * 100, Change::Down)]);
    for n in 0..300 {
        link.send(Time::ZERO + MS * n, u64::from(n), Bytes(1_000));
    }
    let arrived: Vec<u64> = drain(&mut link).iter().map(|p| p.packet).collect();
    assert_eq!(arrived, (0..100).chain(200..300).collect::<Vec<u64>>());
}

#[test]
fn duplicates_corruption_and_reordering_come_as_often_as_asked_for() {
    let ratio = Ratio::percent(10.0);
    let config = LinkConfig {
        rate: BitRate::MAX,
        duplicate: ratio,
        corrupt: ratio,
        reorder: Reorder { ratio, extra: MS * 5 },
        ..LinkConfig::default()
    };
    let mut link = Link::new(config);
    for n in 0..100_000 {
        link.send(Time::ZERO + MS * n, u64::from(n), Bytes(1_000));
    }
    let arrived = drain(&mut link);
    let near = |count: usize, of: f64| (count as f64 / of - 1.0).abs() < 0.05;
    assert!(near(arrived.len(), 110_000.0), "{}", arrived.len());
    assert!(near(arrived.iter().filter(|p| p.corrupted).count(), 11_000.0));
    let late = arrived.iter().filter(|p| p.at > Time::ZERO + MS * (p.packet as u32 + 10)).count();
    assert!(near(late, 11_000.0), "{late}");
    assert!(arrived.iter().all(|p| p.at <= Time::ZERO + MS * (p.packet as u32 + 15)));
}

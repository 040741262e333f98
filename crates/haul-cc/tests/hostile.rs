//! Controllers and measurements under any sequence of events, with values no honest peer or sane clock would give.

use std::time::Duration;

use haul_cc::{
    AckReport, AckSample, ControllerChoice, DispersionSample, EcnSample, Learned, LossSample, OneWayDelay, PathStart, RateSample,
    RateSampler, RttEstimator, SentSample,
};
use haul_units::{BitRate, Bytes, Time};
use proptest::prelude::*;

const PACKET: Bytes = Bytes(1472);

/// Numbers of every size: a uniform one is nearly always huge.
fn any_size() -> impl Strategy<Value = u64> {
    (0u32..63, any::<u64>()).prop_map(|(bits, value)| value & ((1 << bits) - 1))
}

fn bytes() -> impl Strategy<Value = Bytes> {
    (0u32..45, any::<u64>()).prop_map(|(bits, value)| Bytes(value & ((1 << bits) - 1)))
}

/// Up to an hour.
fn duration() -> impl Strategy<Value = Duration> {
    (0u32..42, any::<u64>()).prop_map(|(bits, value)| Duration::from_nanos(value & ((1 << bits) - 1)))
}

#[derive(Debug, Clone)]
enum Event {
    Sent {
        bytes: Bytes,
        in_flight: Bytes,
    },
    Ack {
        acked: Bytes,
        in_flight: Bytes,
        rtt: Duration,
        delay: Duration,
        rate: Option<u64>,
        round_start: bool,
        app_limited: bool,
    },
    Loss {
        lost: Bytes,
        in_flight: Bytes,
        persistent: bool,
    },
    Spurious(Bytes),
    Ecn {
        marked: u64,
        reported: u64,
    },
    Idle,
    Mtu(u64),
    PathChange,
    Dispersion {
        bytes: Bytes,
        time: Option<Duration>,
        steps: u32,
    },
    TakeOver(ControllerChoice),
}

fn events() -> impl Strategy<Value = Vec<(Duration, Event)>> {
    let ack = (bytes(), bytes(), duration(), duration(), prop::option::of(any_size()), any::<bool>(), any::<bool>()).prop_map(
        |(acked, in_flight, rtt, delay, rate, round_start, app_limited)| Event::Ack {
            acked,
            in_flight,
            rtt,
            delay,
            rate,
            round_start,
            app_limited,
        },
    );
    let event = prop_oneof![
        8 => ack,
        2 => (bytes(), bytes()).prop_map(|(bytes, in_flight)| Event::Sent { bytes, in_flight }),
        2 => (bytes(), bytes(), any::<bool>())
            .prop_map(|(lost, in_flight, persistent)| Event::Loss { lost, in_flight, persistent }),
        1 => bytes().prop_map(Event::Spurious),
        1 => (any_size(), any_size()).prop_map(|(marked, reported)| Event::Ecn { marked, reported }),
        1 => Just(Event::Idle),
        1 => (1200u64..9000).prop_map(Event::Mtu),
        1 => Just(Event::PathChange),
        2 => (bytes(), prop::option::of(duration()), any::<u32>())
            .prop_map(|(bytes, time, steps)| Event::Dispersion { bytes, time, steps }),
        1 => choices().prop_map(Event::TakeOver),
    ];
    prop::collection::vec((duration(), event), 1..200)
}

fn learned() -> impl Strategy<Value = Learned> {
    (any::<u64>(), duration(), 0.0f64..=1.0).prop_map(|(bps, min_rtt, base_loss)| Learned {
        bandwidth: BitRate::from_bps(bps),
        min_rtt,
        base_loss,
    })
}

fn choices() -> impl Strategy<Value = ControllerChoice> {
    prop_oneof![9 => prop::sample::select(ControllerChoice::NAMED), 1 => Just(ControllerChoice::Fixed(BitRate::gbps(10)))]
}

proptest! {
    #[test]
    fn controllers_always_leave_a_way_on(
        choice in choices(),
        rtt in prop::option::of(duration()),
        remembered in prop::option::of(learned()),
        events in events(),
    ) {
        let mut now = Time::ZERO;
        let mut controller = choice.build(&PathStart { rtt, remembered, ..PathStart::new(now, PACKET, 1) });
        let (mut delivered, mut lost_total, mut packet, mut round) = (Bytes::ZERO, Bytes::ZERO, PACKET, 0);
        for (wait, event) in events {
            now += wait;
            match event {
                Event::Sent { bytes, in_flight } => {
                    controller.on_sent(&SentSample { now, bytes, in_flight, app_limited: false });
                }
                Event::Ack { acked, in_flight, rtt, delay, rate, round_start, app_limited } => {
                    delivered += acked;
                    round += u64::from(round_start);
                    let sample = |bps| RateSample {
                        rate: BitRate::from_bps(bps),
                        sent: BitRate::MAX,
                        interval: rtt,
                        app_limited,
                        in_flight_at_send: in_flight,
                        lost: Bytes::ZERO,
                        delivered: acked,
                    };
                    controller.on_ack(&AckSample {
                        now,
                        acked,
                        delivered,
                        in_flight,
                        rtt: Some(rtt),
                        smoothed_rtt: rtt,
                        min_rtt: rtt,
                        queue_delay: Some(delay),
                        rate: rate.map(sample),
                        round,
                        round_start,
                        lost_total,
                    });
                }
                Event::Loss { lost, in_flight, persistent } => {
                    lost_total += lost;
                    controller.on_loss(&LossSample {
                        now,
                        lost,
                        runs: 1,
                        in_flight,
                        in_flight_at_send: in_flight,
                        sent_at: now.before(wait),
                        persistent,
                        min_rtt: wait,
                    });
                }
                Event::Spurious(bytes) => {
                    lost_total = lost_total.saturating_sub(bytes);
                    controller.on_spurious(now, bytes);
                }
                Event::Ecn { marked, reported } => {
                    controller.on_ecn(&EcnSample { now, marked_pkts: marked, reported_pkts: reported, sent_at: now });
                }
                Event::Idle => controller.on_idle(now),
                Event::Mtu(bytes) => {
                    packet = Bytes(bytes);
                    controller.on_mtu(packet);
                }
                Event::PathChange => controller.on_path_change(now, None),
                Event::Dispersion { bytes, time, steps } => {
                    controller.on_dispersion(&DispersionSample { sent_at: now.before(wait), bytes, time, steps });
                }
                Event::TakeOver(choice) => {
                    let learned = controller.learned();
                    controller = choice.build(&PathStart { learned, ..PathStart::new(now, packet, 1) });
                }
            }
            prop_assert!(controller.window() >= packet, "window {}", controller.window());
            prop_assert!(controller.rate() > BitRate::ZERO);
            prop_assert!(controller.burst() >= packet * 2, "burst {}", controller.burst());
            let state = controller.snapshot();
            prop_assert!(state.base_loss.is_none_or(|loss| (0.0..=0.2).contains(&loss)), "{state:?}");
        }
    }

    /// Whatever the peer reports, no sample exceeds the rate at which we sent.
    #[test]
    fn the_rate_sampler_believes_no_more_than_was_sent(
        reports in prop::collection::vec((any::<u64>(), any::<u64>(), 0usize..20, 1u64..20_000), 1..200),
    ) {
        let mut now = Time::ZERO;
        let mut sampler = RateSampler::new(now);
        let mut states = Vec::new();
        for (receiver_bytes, receiver_nanos, back, wait_us) in reports {
            now += Duration::from_micros(wait_us);
            states.push(sampler.on_sent(now, PACKET, PACKET * 20));
            let state = states[states.len().saturating_sub(back + 1)];
            let report = AckReport {
                now: now + Duration::from_millis(10),
                receiver_bytes: Bytes(receiver_bytes),
                receiver_time: Time::from_nanos(receiver_nanos),
                lost_total: Bytes::ZERO,
                min_rtt: Duration::from_millis(10),
            };
            if let Some(sample) = sampler.on_ack(&state, &report) {
                // One packet each microsecond at most.
                prop_assert!(sample.rate <= BitRate::of(PACKET, Duration::from_micros(1)), "{sample:?}");
            }
        }
    }

    #[test]
    fn delays_stay_within_the_round_trip(
        samples in prop::collection::vec((duration(), any::<u64>(), duration(), any::<u64>()), 1..100),
    ) {
        let (mut now, mut delay, mut rtt) = (Time::ZERO, OneWayDelay::new(), RttEstimator::default());
        for (wait, received, round_trip, ack_delay) in samples {
            now += wait;
            let queue = delay.on_sample(now, now.before(round_trip), Time::from_nanos(received), round_trip);
            prop_assert!(queue <= round_trip);
            let adjusted = rtt.on_sample(now, round_trip, Duration::from_nanos(ack_delay));
            prop_assert!(adjusted <= round_trip && adjusted >= rtt.min());
        }
    }
}

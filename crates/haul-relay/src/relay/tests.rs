use super::*;
use crate::{Heard, Registration, punch};

const NEAR: &str = "192.0.2.1:1000";
const FAR: &str = "198.51.100.2:2000";
const STRANGER: &str = "203.0.113.3:3000";
const LIMITS: Limits = Limits { pairs: 2, idle: Duration::from_secs(60), rate: None };
/// As the transport's packets begin.
const DATA: [u8; 1200] = [1; 1200];

fn at(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn relay(limits: Limits) -> Relay {
    Relay::new(limits, [42; 32])
}

fn seconds(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn pair(relay: &mut Relay, seed: u8) -> (Registration, Registration) {
    let made = relay.allocate(Time::ZERO, &[seed; RANDOM_BYTES].map_with_index()).expect("room");
    (Registration::new(made.asking), Registration::new(made.other))
}

trait Distinct {
    fn map_with_index(self) -> Self;
}

impl Distinct for [u8; RANDOM_BYTES] {
    fn map_with_index(mut self) -> Self {
        self.iter_mut().enumerate().for_each(|(at, byte)| *byte = byte.wrapping_mul(31).wrapping_add(at as u8));
        self
    }
}

/// An end makes itself known from an address, and is told that it is there.
fn register(relay: &mut Relay, now: Time, end: &mut Registration, from: &str) {
    let cookie = relay.handle(now, at(from), &end.says()).expect("a cookie");
    assert_eq!(end.hears(&cookie), Some(Heard::Again));
    let place = relay.handle(now, at(from), &end.says()).expect("a place");
    assert_eq!(end.hears(&place), Some(Heard::Known(at(from))));
}

#[test]
fn two_ends_that_are_known_reach_each_other_and_nobody_else_does() {
    let mut relay = relay(LIMITS);
    let (mut near, mut far) = pair(&mut relay, 1);
    register(&mut relay, Time::ZERO, &mut near, NEAR);
    assert_eq!(relay.forward(Time::ZERO, at(NEAR), &DATA), None, "the other end is not there");
    register(&mut relay, Time::ZERO, &mut far, FAR);
    assert_eq!(relay.forward(Time::ZERO, at(NEAR), &DATA), Some(at(FAR)));
    assert_eq!(relay.forward(Time::ZERO, at(FAR), &DATA), Some(at(NEAR)));
    assert_eq!(relay.forward(Time::ZERO, at(STRANGER), &DATA), None);
    assert_eq!(relay.handle(Time::ZERO, at(STRANGER), &DATA), None);
    assert_eq!(relay.forwarded(relay.by_address[&at(NEAR)].0), Some(2400));
}

#[test]
fn who_holds_no_ticket_hears_nothing() {
    let mut relay = relay(LIMITS);
    let (mut near, _) = pair(&mut relay, 1);
    let right = near.says();
    for byte in 0..MESSAGE_BYTES {
        let mut wrong = right;
        wrong[byte] ^= 0x10;
        assert_eq!(relay.handle(Time::ZERO, at(STRANGER), &wrong), None, "byte {byte}");
    }
    let mut forged =
        Registration::new(Ticket { pair: relay.pairs.keys().next().copied().expect("one"), end: End::Asking, key: [0; 32] });
    assert_eq!(relay.handle(Time::ZERO, at(STRANGER), &forged.says()), None);
    assert!(relay.by_address.is_empty());
}

/// Who sends in somebody else's name does not see the cookie, and nothing is ever sent there.
#[test]
fn an_address_that_has_not_answered_is_no_end_s() {
    let mut relay = relay(LIMITS);
    let (mut near, mut far) = pair(&mut relay, 1);
    register(&mut relay, Time::ZERO, &mut near, NEAR);
    let cookie = relay.handle(Time::ZERO, at(FAR), &far.says()).expect("a cookie");
    // The cookie of one address is none of another.
    far.hears(&cookie);
    let again = relay.handle(Time::ZERO, at(STRANGER), &far.says()).expect("another cookie");
    assert_eq!(far.hears(&again), Some(Heard::Again), "not known there");
    assert_eq!(relay.forward(Time::ZERO, at(NEAR), &DATA), None);
    // Nor of the other end.
    let cookie_of_near = relay.handle(Time::ZERO, at(FAR), &near.says()).expect("a cookie");
    assert_ne!(cookie_of_near[20..36], cookie[20..36]);
}

#[test]
fn no_answer_is_longer_than_its_question() {
    let mut relay = relay(LIMITS);
    let (mut near, _) = pair(&mut relay, 1);
    for _ in 0..3 {
        let question = near.says();
        let answer = relay.handle(Time::ZERO, at(NEAR), &question).expect("an answer");
        assert!(answer.len() <= question.len());
        near.hears(&answer);
    }
}

/// Two relays, or a relay and an end, do not talk to each other for ever.
#[test]
fn nothing_that_a_relay_says_is_answered() {
    let mut relay = relay(LIMITS);
    let (mut near, mut far) = pair(&mut relay, 1);
    register(&mut relay, Time::ZERO, &mut far, FAR);
    let cookie = relay.handle(Time::ZERO, at(NEAR), &near.says()).expect("a cookie");
    near.hears(&cookie);
    let place = relay.handle(Time::ZERO, at(NEAR), &near.says()).expect("a place");
    for said in [cookie, place, punch(relay.by_address[&at(NEAR)].0, End::Asking, &[1; 32])] {
        assert_eq!(relay.handle(Time::ZERO, at(NEAR), &said), None);
        assert_eq!(relay.forward(Time::ZERO, at(NEAR), &said), None, "messages are not forwarded");
    }
}

#[test]
fn what_was_said_once_is_not_heard_again() {
    let mut relay = relay(LIMITS);
    let (mut near, mut far) = pair(&mut relay, 1);
    register(&mut relay, Time::ZERO, &mut far, FAR);
    let cookie = relay.handle(Time::ZERO, at(NEAR), &near.says()).expect("a cookie");
    near.hears(&cookie);
    let overheard = near.says();
    assert!(relay.handle(Time::ZERO, at(NEAR), &overheard).is_some());
    register(&mut relay, Time::ZERO, &mut near, "192.0.2.9:9");
    assert_eq!(relay.handle(Time::ZERO, at(NEAR), &overheard), None);
    assert_eq!(relay.forward(Time::ZERO, at(FAR), &DATA), Some(at("192.0.2.9:9")));
}

#[test]
fn an_end_whose_address_changes_is_known_at_the_new_one_only() {
    let mut relay = relay(LIMITS);
    let (mut near, mut far) = pair(&mut relay, 1);
    register(&mut relay, Time::ZERO, &mut near, NEAR);
    register(&mut relay, Time::ZERO, &mut far, FAR);
    register(&mut relay, Time::ZERO, &mut near, STRANGER);
    assert_eq!(relay.forward(Time::ZERO, at(NEAR), &DATA), None);
    assert_eq!(relay.forward(Time::ZERO, at(FAR), &DATA), Some(at(STRANGER)));
}

/// Pairs of one end with itself, and two pairs behind one address: the newest counts.
#[test]
fn an_address_is_one_end_of_one_pair() {
    let mut relay = relay(LIMITS);
    let (mut near, mut far) = pair(&mut relay, 1);
    register(&mut relay, Time::ZERO, &mut near, NEAR);
    register(&mut relay, Time::ZERO, &mut far, NEAR);
    assert_eq!(relay.forward(Time::ZERO, at(NEAR), &DATA), None, "nothing is sent back to where it came from");
    let (mut other, mut peer) = pair(&mut relay, 2);
    register(&mut relay, Time::ZERO, &mut peer, FAR);
    register(&mut relay, Time::ZERO, &mut other, NEAR);
    assert_eq!(relay.forward(Time::ZERO, at(NEAR), &DATA), Some(at(FAR)));
    assert_eq!(relay.by_address.len(), 2);
}

#[test]
fn there_are_as_many_pairs_as_there_may_be_and_silent_ones_end() {
    let mut relay = relay(LIMITS);
    let (mut near, mut far) = pair(&mut relay, 1);
    pair(&mut relay, 2);
    let third = [3; RANDOM_BYTES];
    assert_eq!(relay.allocate(Time::ZERO, &third).map(drop), Err(Full));
    register(&mut relay, seconds(50), &mut near, NEAR);
    register(&mut relay, seconds(50), &mut far, FAR);
    // The second has been silent for too long by then; the first has not.
    assert!(relay.allocate(seconds(61), &third).is_ok());
    assert_eq!(relay.forward(seconds(100), at(NEAR), &DATA), Some(at(FAR)));
    relay.tidy(seconds(161));
    assert_eq!((relay.pairs(), relay.by_address.len()), (0, 0));
    assert_eq!(relay.forward(seconds(161), at(NEAR), &DATA), None);
}

#[test]
fn a_pair_that_is_released_says_what_was_forwarded_and_nothing_more_is() {
    let mut relay = relay(LIMITS);
    let (mut near, mut far) = pair(&mut relay, 1);
    register(&mut relay, Time::ZERO, &mut near, NEAR);
    register(&mut relay, Time::ZERO, &mut far, FAR);
    relay.forward(Time::ZERO, at(FAR), &DATA);
    let id = relay.by_address[&at(NEAR)].0;
    assert_eq!((relay.release(id), relay.release(id), relay.forwarded(id)), (Some(1200), None, None));
    assert_eq!(relay.forward(Time::ZERO, at(FAR), &DATA), None);
    assert_eq!(relay.handle(Time::ZERO, at(NEAR), &near.says()), None);
}

#[test]
fn a_rate_holds_for_both_ways_of_a_pair_together() {
    let mut relay = relay(Limits { rate: Some(BitRate::mbps(8)), ..LIMITS });
    let (mut near, mut far) = pair(&mut relay, 1);
    register(&mut relay, Time::ZERO, &mut near, NEAR);
    register(&mut relay, Time::ZERO, &mut far, FAR);
    let mut passed = 0;
    for step in 0..4000 {
        let now = Time::ZERO + Duration::from_micros(250) * step;
        for from in [NEAR, FAR] {
            passed += relay.forward(now, at(from), &DATA).map_or(0, |_| DATA.len());
        }
    }
    // 1 MB in the second, and a burst of 250 kB.
    assert!((1_200_000..1_300_000).contains(&passed), "{passed}");
}

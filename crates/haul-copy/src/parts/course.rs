//! One course of events, of what both sides have noted.

use std::time::{Duration, Instant};

use haul_peer::Login;

use super::marks::{Noted, Told};
use super::rate::Series;
use super::times::{Part, Parts};

/// The moments of a copy on one clock, as far as they are known.
#[derive(Debug, Clone, Copy)]
struct Course {
    /// The command was given.
    begun: Instant,
    /// The try that led to this connection begins; later than `begun` where there were others.
    tried: Instant,
    /// ssh has brought the far side's answer.
    answered: Option<Instant>,
    /// What the far side's start took.
    far_start: Duration,
    /// The connection is there.
    connected: Instant,
    /// The first content can be at the receiver, and news of that here.
    first: Option<Instant>,
    /// It comes at its rate.
    at_rate: Option<Instant>,
    /// The sender has given all to the transport.
    handed: Option<Instant>,
    /// The receiver has written all.
    written: Option<Instant>,
    /// Time of syncs after that.
    sync: Duration,
    /// Time of renames after that.
    rename: Duration,
    /// The other side has said, or was told, that all is in place.
    finished: Instant,
    /// Nothing is left to be done.
    over: Instant,
}

impl Course {
    /// The parts. Whatever the other side says, they are in order and sum up to the time from `begun` to `over`.
    fn parts(&self) -> Parts {
        let mut parts = Parts::default();
        let mut at = self.begun;
        let mut until = |moment: Instant| {
            let end = moment.min(self.over).max(at);
            end - std::mem::replace(&mut at, end)
        };
        parts.set(Part::Earlier, until(self.tried));
        let login = self.answered.map_or(Duration::ZERO, &mut until);
        let far_start = self.far_start.min(login);
        parts.set(Part::FarStart, far_start);
        parts.set(Part::Login, login.saturating_sub(far_start));
        parts.set(Part::Handshake, until(self.connected));
        let finished = self.finished.max(self.connected);
        // That is looked for every now and then only: what was noted when it happened is right.
        let by = |moment: Instant| self.written.map_or(moment, |written| moment.min(written));
        let without_content = if self.first.is_none() { Some(finished) } else { None };
        for (part, moment) in [
            (Part::Hello, self.first.or(without_content)),
            (Part::Startup, self.at_rate.map(by)),
            (Part::Bulk, self.handed.map(by)),
            (Part::LastBlock, self.written),
        ] {
            // What the other side says of itself is over before it says so.
            parts.set(part, moment.map_or(Duration::ZERO, |moment| until(moment.min(finished))));
        }
        let tail = until(finished);
        let sync = self.sync.min(tail);
        let rename = self.rename.min(tail.saturating_sub(sync));
        parts.set(Part::Sync, sync);
        parts.set(Part::Rename, rename);
        parts.set(Part::Closing, tail.saturating_sub(sync + rename) + until(self.over));
        parts
    }
}

/// What both sides know of a copy over one connection.
pub(crate) struct Both<'a> {
    /// The command was given.
    pub(crate) begun: Instant,
    /// The try that led to this connection begins.
    pub(crate) tried: Instant,
    /// How the login went, where there was one.
    pub(crate) login: Option<Login>,
    /// The connection is there.
    pub(crate) connected: Instant,
    /// Nothing is left to be done.
    pub(crate) over: Instant,
    /// Whether this side sends.
    pub(crate) sends: bool,
    /// Round-trip time.
    pub(crate) rtt: Duration,
    /// What this side has noted.
    pub(crate) noted: &'a Noted,
    /// What the other side tells; nothing from an older one.
    pub(crate) told: Option<Told>,
    /// What had arrived when.
    pub(crate) series: &'a Series,
}

impl Both<'_> {
    /// The parts, which sum up to the whole.
    pub(crate) fn parts(&self) -> Parts {
        self.course().parts()
    }

    /// On this side's clock. Without the other side's word, what the sender knows of its blocks stands for what the receiver would say.
    fn course(&self) -> Course {
        let Self { begun, tried, login, connected, over, sends, rtt, noted, told, series } = *self;
        let finished = noted.finished.unwrap_or(over);
        // A receiver's last word ends its side, and is what ends this one; a sender ends by the receiver's, which takes half a round trip, and news of that would take the other half.
        let end = if sends { finished } else { finished + rtt };
        let there = |before: Option<u64>| end.checked_sub(Duration::from_micros(before?));
        let told = told.unwrap_or_default();
        // A block is there when all of it is, which at the start takes several round trips: its first bytes are there as soon as they can be.
        let first_bytes = if sends { noted.first_handed.map(|handed| handed + rtt) } else { there(told.first_handed_us) };
        let first_block = noted.first.or_else(|| there(told.first_us));
        let first = first_bytes.into_iter().chain(first_block).min();
        let (sync, rename) = if sends {
            (Duration::from_micros(told.sync_us), Duration::from_micros(told.rename_us))
        } else {
            (noted.sync, noted.rename)
        };
        Course {
            begun,
            tried,
            answered: login.map(|login| login.answered),
            far_start: login.and_then(|login| login.far_start).unwrap_or_default(),
            connected,
            first,
            at_rate: first.and_then(|_| series.reached(rtt)),
            handed: noted.handed.or_else(|| there(told.handed_us)),
            written: noted.written.or_else(|| there(told.written_us)).or(noted.arrived),
            sync,
            rename,
            finished,
            over,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::parts::Marks;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// What comes in each 20 ms at this rate from this moment on.
    fn series(from: Instant, until: Instant) -> Series {
        let mut series = Series::default();
        let (mut at, mut bytes) = (from, 0);
        while at <= until {
            series.push(at, bytes);
            (at, bytes) = (at + ms(20), bytes + 1_000_000);
        }
        series
    }

    /// All parts that took any time, in ms.
    fn times(parts: &Parts) -> Vec<(Part, u128)> {
        Part::ALL.into_iter().map(|part| (part, parts.of(part).as_millis())).filter(|(_, ms)| *ms > 0).collect()
    }

    /// A connection after 1500 ms, of which the login took 1400 and of that the far side's start 30; all is over after 4000.
    fn both<'a>(begun: Instant, noted: &'a Noted, series: &'a Series) -> Both<'a> {
        let login = Login { answered: begun + ms(1400), far_start: Some(ms(30)) };
        Both {
            begun,
            tried: begun,
            login: Some(login),
            connected: begun + ms(1500),
            over: begun + ms(4000),
            sends: true,
            rtt: ms(100),
            noted,
            told: None,
            series,
        }
    }

    #[test]
    fn what_is_sent_has_its_parts_by_what_the_far_side_tells_of_itself() {
        let begun = clock::now();
        let marks = Marks::default();
        marks.hands_over(begun + ms(1510));
        marks.handed_all(begun + ms(3000));
        marks.all_arrived(begun + ms(3200));
        marks.finishes(begun + ms(3900));
        let (noted, series) = (marks.noted(), series(begun + ms(1600), begun + ms(3200)));
        let us = |ms: u64| ms * 1000;
        // Its clock is of no account: all is as long ago at its end as it says.
        let told =
            Told { first_us: Some(us(2300)), written_us: Some(us(600)), sync_us: us(400), rename_us: us(150), ..Told::default() };
        let parts = Both { told: Some(told), ..both(begun, &noted, &series) }.parts();
        let expected = [
            (Part::Login, 1370),
            (Part::FarStart, 30),
            (Part::Handshake, 100),
            (Part::Hello, 100),
            (Part::LastBlock, 300),
            (Part::Sync, 400),
            (Part::Rename, 150),
            (Part::Closing, 150),
        ];
        let (startup, bulk) = (parts.of(Part::Startup), parts.of(Part::Bulk));
        assert!(startup >= ms(80) && startup <= ms(100) && startup + bulk == ms(1400), "{startup:?} {bulk:?}");
        let others: Vec<_> = times(&parts).into_iter().filter(|(part, _)| !matches!(part, Part::Startup | Part::Bulk)).collect();
        assert_eq!(others, expected);
        assert_eq!(parts.total(), ms(4000));
        // The first block is whole later: what comes of it before that is no part of the hello.
        let late = Both { told: Some(Told { first_us: Some(us(1000)), ..told }), ..both(begun, &noted, &series) }.parts();
        assert_eq!((late.of(Part::Hello), late.total()), (ms(110), ms(4000)));
        let spans = parts.spans();
        assert!(spans.windows(2).all(|pair| pair[0].2 == pair[1].1), "one behind the other: {spans:?}");
        assert_eq!((spans[0].1, spans.last().map(|last| last.2)), (Duration::ZERO, Some(ms(4000))));
    }

    #[test]
    fn what_is_received_has_its_parts_by_this_side_and_the_end_of_the_sending_by_the_other() {
        let begun = clock::now();
        let marks = Marks::default();
        marks.comes(begun + ms(1620));
        marks.ends(begun + ms(3300));
        marks.commits(haul_files::Commit::Sync, begun + ms(3300));
        marks.commits(haul_files::Commit::Rename, begun + ms(3500));
        marks.commits(haul_files::Commit::Done, begun + ms(3550));
        marks.finishes(begun + ms(3600));
        let (noted, series) = (marks.noted(), series(begun + ms(1600), begun + ms(3200)));
        // Its end is half a round trip after ours, and news of it would be here another half later: what it says was 600 ms before that.
        let told = Told { handed_us: Some(600_000), written_us: Some(1), sync_us: 5, ..Told::default() };
        let parts = Both { sends: false, told: Some(told), ..both(begun, &noted, &series) }.parts();
        let of = |part| parts.of(part).as_millis();
        assert_eq!((of(Part::Hello), of(Part::LastBlock)), (120, 200), "{:?}", times(&parts));
        assert_eq!((of(Part::Sync), of(Part::Rename), of(Part::Closing)), (200, 50, 450), "{:?}", times(&parts));
        assert_eq!(parts.total(), ms(4000));
    }

    #[test]
    fn a_start_that_is_seen_late_takes_nothing_from_what_was_noted_at_its_moment() {
        let begun = clock::now();
        let marks = Marks::default();
        marks.comes(begun + ms(1505));
        marks.ends(begun + ms(1510));
        marks.commits(haul_files::Commit::Sync, begun + ms(1510));
        marks.commits(haul_files::Commit::Rename, begun + ms(1530));
        marks.commits(haul_files::Commit::Done, begun + ms(1533));
        marks.finishes(begun + ms(1540));
        let mut series = Series::default();
        series.push(begun + ms(1536), 1000);
        let noted = marks.noted();
        let parts = Both { sends: false, ..both(begun, &noted, &series) }.parts();
        let of = |part| parts.of(part).as_millis();
        assert_eq!((of(Part::Startup), of(Part::Sync), of(Part::Rename)), (5, 20, 3), "{:?}", times(&parts));
        assert_eq!(parts.total(), ms(4000));
    }

    #[test]
    fn an_older_far_side_tells_nothing_and_the_sender_knows_what_arrived() {
        let begun = clock::now();
        let marks = Marks::default();
        marks.hands_over(begun + ms(1510));
        marks.handed_all(begun + ms(3000));
        marks.all_arrived(begun + ms(3200));
        marks.finishes(begun + ms(3900));
        let (noted, series) = (marks.noted(), Series::default());
        let parts = Both { login: None, ..both(begun, &noted, &series) }.parts();
        let expected =
            [(Part::Handshake, 1500), (Part::Hello, 110), (Part::Bulk, 1390), (Part::LastBlock, 200), (Part::Closing, 800)];
        assert_eq!(times(&parts), expected);
    }

    #[test]
    fn without_content_all_of_it_is_the_hello() {
        let begun = clock::now();
        let marks = Marks::default();
        marks.handed_all(begun + ms(1550));
        marks.all_arrived(begun + ms(1560));
        marks.finishes(begun + ms(3900));
        let (noted, series) = (marks.noted(), Series::default());
        let parts = both(begun, &noted, &series).parts();
        assert_eq!((parts.of(Part::Hello), parts.of(Part::Closing)), (ms(2400), ms(100)));
        assert_eq!(parts.total(), ms(4000));
    }

    /// A peer may say anything, and a clock may stand still.
    #[test]
    fn whatever_was_noted_and_told_the_parts_sum_up_to_the_whole() {
        let earliest = clock::now();
        let base = earliest + ms(2000);
        let mut state = 1_u64;
        let mut random = move |below: u64| {
            // Knuth's constants: a test needs no better ones.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..20_000 {
            let over = base + ms(random(5000));
            let mut moment = || earliest + ms(random(8000));
            let (tried, connected, answered) = (moment(), moment(), moment());
            let noted = Marks::default();
            noted.hands_over(moment());
            noted.comes(moment());
            noted.handed_all(moment());
            noted.ends(moment());
            noted.finishes(moment());
            let mut noted = noted.noted();
            let mut any = || [0, 1, 700_000, 5_000_000, u64::MAX][random(5) as usize];
            let told = Told {
                first_us: Some(any()),
                first_handed_us: Some(any()),
                handed_us: Some(any()),
                written_us: Some(any()),
                sync_us: any(),
                rename_us: any(),
            };
            if any() == 0 {
                noted = Noted::default();
            }
            let login = Login { answered, far_start: Some(Duration::from_micros(any())) };
            let sends = any() < 2;
            let both = Both {
                begun: base,
                tried,
                login: Some(login),
                connected,
                over,
                sends,
                rtt: ms(100),
                noted: &noted,
                told: Some(told),
                series: &series(base, over),
            };
            let parts = both.parts();
            assert_eq!(parts.total(), over - base, "{noted:?} {told:?}");
        }
    }
}

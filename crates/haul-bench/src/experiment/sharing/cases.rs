//! Who meets whom.

use std::time::Duration;

use haul_cc::ControllerChoice::{self, Aggressive, Fair, Modest, Quickstart};
use haul_tcp::Law;
use haul_units::BitRate;

/// Flows on a path, and what is wanted of them.
#[derive(Debug)]
pub struct Case {
    /// What a person calls it.
    pub name: &'static str,
    /// Part of the packets lost, each way.
    pub loss: f64,
    /// In order of start.
    pub parties: &'static [Party],
    /// All of these.
    pub goals: &'static [Goal],
    /// How often it is run; shares are means.
    pub runs: u32,
}

/// A flow.
#[derive(Debug, Clone, Copy)]
pub struct Party {
    /// Of whom.
    pub who: Who,
    /// When it starts, as a part of the whole time.
    pub from: f64,
    /// When it ends, about; none: with everything.
    pub until: Option<f64>,
    /// Its round-trip time.
    pub rtt: Duration,
}

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// haul in a mode.
    Haul(ControllerChoice),
    /// The kernel's TCP with a law of haul; in simulation, where there is no kernel, haul's transport in the mode of that name.
    Kernel(Law),
    /// The kernel's CUBIC, or the model of it.
    Cubic,
    /// The kernel's BBR.
    Bbr,
}

/// What is wanted.
#[derive(Debug, Clone, Copy)]
pub enum Goal {
    /// Jain's index of fairness.
    JainAtLeast(f64),
    /// Part of what the path carries, all flows together.
    UsedAtLeast(f64),
    /// Part of everything that a flow got.
    ShareWithin(usize, f64, f64),
    /// The same, from above alone.
    ShareAtMost(usize, f64),
    /// The same, from below alone.
    ShareAtLeast(usize, f64),
    /// Variation of the first flow's rate a second: standard deviation by mean.
    VariationAtMost(f64),
    /// 95th percentile of the wait in the queue, in bandwidth-delay products.
    QueueAtMost(f64),
    /// The first flow has this part of the path again so soon after the second has ended.
    BackAt(f64, Duration),
}

const fn party(who: Who) -> Party {
    Party { who, from: 0.0, until: None, rtt: RTT }
}

const fn at(from: f64, who: Who) -> Party {
    Party { from, ..party(who) }
}

const FAIR: Who = Who::Haul(Fair);
const QUICK: Who = Who::Haul(Quickstart);
const MODEST: Who = Who::Haul(Modest);
const AGGRESSIVE: Who = Who::Haul(Aggressive);

const AMONG_EQUALS: &[Goal] = &[Goal::JainAtLeast(0.95), Goal::UsedAtLeast(0.95)];
const A_FAIR_SHARE: &[Goal] = &[Goal::ShareWithin(0, 0.35, 0.65)];

/// Beside flows that fill the queue until it overflows it is chance who loses packets when, for half a minute at a time: one run says little.
const BESIDE_TCP: u32 = 3;

/// All of them.
pub const CASES: &[Case] = &[
    Case { name: "2 fair", loss: 0.0, parties: &[party(FAIR), at(0.02, FAIR)], goals: AMONG_EQUALS, runs: 1 },
    Case {
        name: "4 fair",
        loss: 0.0,
        parties: &[party(FAIR), at(0.02, FAIR), at(0.04, FAIR), at(0.06, FAIR)],
        goals: AMONG_EQUALS,
        runs: 1,
    },
    Case {
        name: "8 fair",
        loss: 0.0,
        parties: &[
            party(FAIR),
            at(0.02, FAIR),
            at(0.04, FAIR),
            at(0.06, FAIR),
            at(0.08, FAIR),
            at(0.10, FAIR),
            at(0.12, FAIR),
            at(0.14, FAIR),
        ],
        goals: AMONG_EQUALS,
        runs: 1,
    },
    Case { name: "fair, CUBIC", loss: 0.0, parties: &[party(FAIR), at(0.05, Who::Cubic)], goals: A_FAIR_SHARE, runs: BESIDE_TCP },
    Case { name: "fair, BBR", loss: 0.0, parties: &[party(FAIR), at(0.05, Who::Bbr)], goals: A_FAIR_SHARE, runs: BESIDE_TCP },
    // Nobody's goal: what TCP itself leaves to TCP.
    Case { name: "CUBIC, BBR", loss: 0.0, parties: &[party(Who::Cubic), at(0.05, Who::Bbr)], goals: &[], runs: BESIDE_TCP },
    Case { name: "2 quickstart", loss: 0.0, parties: &[party(QUICK), at(0.02, QUICK)], goals: AMONG_EQUALS, runs: 1 },
    Case {
        name: "quickstart, CUBIC",
        loss: 0.0,
        parties: &[party(QUICK), at(0.05, Who::Cubic)],
        goals: A_FAIR_SHARE,
        runs: BESIDE_TCP,
    },
    Case {
        name: "modest alone",
        loss: 0.0,
        parties: &[party(MODEST)],
        goals: &[Goal::UsedAtLeast(0.9), Goal::VariationAtMost(0.05), Goal::QueueAtMost(0.25)],
        runs: 1,
    },
    // What counts is the second half of the guest's stay: CUBIC needs half a minute to grow where its start met a loss.
    Case {
        name: "modest, CUBIC that leaves",
        loss: 0.0,
        parties: &[party(MODEST), Party { until: Some(0.8), ..at(0.05, Who::Cubic) }],
        goals: &[Goal::ShareAtMost(0, 0.15), Goal::BackAt(0.9, Duration::from_secs(5))],
        runs: BESIDE_TCP,
    },
    Case {
        name: "aggressive, CUBIC",
        loss: 0.0,
        parties: &[party(AGGRESSIVE), at(0.05, Who::Cubic)],
        goals: &[Goal::ShareAtLeast(0, 0.5)],
        runs: BESIDE_TCP,
    },
    Case {
        name: "aggressive alone, 5 % loss",
        loss: 0.05,
        parties: &[party(AGGRESSIVE)],
        goals: &[Goal::UsedAtLeast(0.93)],
        runs: 1,
    },
    Case {
        name: "fair at 20 ms, fair at 200 ms",
        loss: 0.0,
        parties: &[
            Party { rtt: Duration::from_millis(20), ..party(FAIR) },
            Party { rtt: Duration::from_millis(200), ..at(0.05, FAIR) },
        ],
        goals: &[Goal::JainAtLeast(0.9)],
        runs: 1,
    },
];

const TCP_FAIR: Who = Who::Kernel(Law::Fair);
const TCP_QUICK: Who = Who::Kernel(Law::Quickstart);
const TCP_MODEST: Who = Who::Kernel(Law::Modest);
const TCP_AGGRESSIVE: Who = Who::Kernel(Law::Aggressive);

/// One that has a thirtieth part of the whole time, a second of the measured ones: it is in its start for most of it.
const fn brief(from: f64, who: Who) -> Party {
    Party { until: Some(from + 0.034), ..at(from, who) }
}

/// So many of one kind, each a fiftieth part of the time after the one before it.
const fn all_of<const COUNT: usize>(who: Who) -> [Party; COUNT] {
    let mut parties = [party(who); COUNT];
    let mut number = 0;
    while number < COUNT {
        parties[number].from = number as f64 * 0.02;
        number += 1;
    }
    parties
}

/// A long one, and in the half that counts four brief ones of CUBIC.
const fn beside_brief(who: Who) -> [Party; 5] {
    [party(who), brief(0.55, Who::Cubic), brief(0.65, Who::Cubic), brief(0.75, Who::Cubic), brief(0.85, Who::Cubic)]
}

const fn kernel(name: &'static str, parties: &'static [Party], goals: &'static [Goal]) -> Case {
    Case { name, loss: 0.0, parties, goals, runs: 1 }
}

/// The same among the kernel's TCPs.
pub const KERNEL_CASES: &[Case] = &[
    kernel("2 fair", &[party(TCP_FAIR), at(0.02, TCP_FAIR)], AMONG_EQUALS),
    kernel("fair, CUBIC", &[party(TCP_FAIR), at(0.05, Who::Cubic)], A_FAIR_SHARE),
    kernel("4 fair", &all_of::<4>(TCP_FAIR), AMONG_EQUALS),
    kernel("8 fair", &all_of::<8>(TCP_FAIR), AMONG_EQUALS),
    kernel("modest alone", &[party(TCP_MODEST)], &[Goal::UsedAtLeast(0.9), Goal::QueueAtMost(0.25)]),
    kernel("modest, CUBIC", &[party(TCP_MODEST), at(0.05, Who::Cubic)], &[Goal::ShareAtMost(0, 0.15)]),
    kernel("fair, BBR", &[party(TCP_FAIR), at(0.05, Who::Bbr)], &[]),
    kernel("quickstart, CUBIC", &[party(TCP_QUICK), at(0.05, Who::Cubic)], A_FAIR_SHARE),
    kernel("2 aggressive", &[party(TCP_AGGRESSIVE), at(0.05, TCP_AGGRESSIVE)], &[]),
    kernel("aggressive, CUBIC", &[party(TCP_AGGRESSIVE), at(0.05, Who::Cubic)], &[Goal::ShareAtLeast(0, 0.5)]),
    kernel("2 modest", &[party(TCP_MODEST), at(0.05, TCP_MODEST)], &[]),
    kernel("modest, BBR", &[party(TCP_MODEST), at(0.05, Who::Bbr)], &[]),
    kernel("aggressive, BBR", &[party(TCP_AGGRESSIVE), at(0.05, Who::Bbr)], &[]),
    kernel("quickstart, BBR", &[party(TCP_QUICK), at(0.05, Who::Bbr)], &[]),
    kernel("2 quickstart", &[party(TCP_QUICK), at(0.02, TCP_QUICK)], AMONG_EQUALS),
    kernel("4 quickstart", &all_of::<4>(TCP_QUICK), &[]),
    kernel("8 quickstart", &all_of::<8>(TCP_QUICK), &[]),
    kernel("4 modest", &all_of::<4>(TCP_MODEST), &[]),
    kernel("8 modest", &all_of::<8>(TCP_MODEST), &[]),
    kernel("4 aggressive", &all_of::<4>(TCP_AGGRESSIVE), &[]),
    kernel("8 aggressive", &all_of::<8>(TCP_AGGRESSIVE), &[]),
    kernel("fair, short CUBIC", &beside_brief(TCP_FAIR), &[]),
    kernel("aggressive, short CUBIC", &beside_brief(TCP_AGGRESSIVE), &[]),
    // What the kernel's own leave to each other.
    kernel("CUBIC, short CUBIC", &beside_brief(Who::Cubic), &[]),
    kernel("2 CUBIC", &[party(Who::Cubic), at(0.05, Who::Cubic)], &[]),
    kernel("4 CUBIC", &all_of::<4>(Who::Cubic), &[]),
    kernel("8 CUBIC", &all_of::<8>(Who::Cubic), &[]),
    kernel("CUBIC, BBR", &[party(Who::Cubic), at(0.05, Who::Bbr)], &[]),
];

/// What they share.
pub const RATE: BitRate = BitRate::mbps(100);
/// Unless a party says otherwise.
pub const RTT: Duration = Duration::from_millis(50);

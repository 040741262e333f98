//! Which programs may run beside each other.
//!
//! They share no name: namespaces, scratch directories and WANs carry the process id of their test, ports are the kernel's or those of a namespace.
//! What they share is two cores. So a program is sorted by what it needs of them; one that is not listed waits if it is of a crate whose programs all do, else it needs the processor.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Mutex;

use super::programs::Program;

/// What a program spends its time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Computing: virtual time, codecs, golden tables. Nothing real is timed, so it may be slowed down as much as others like.
    Processor,
    /// Waiting: for links that are down, for silence to be noticed, for real programs. One that has the cores when it wakes up is like one alone.
    Waiting,
    /// Measuring time, rate or memory against what another run on the same machine gives.
    Alone,
}

impl Lane {
    pub const ALL: [Self; 3] = [Self::Processor, Self::Waiting, Self::Alone];
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Processor => "processor",
            Self::Waiting => "waiting",
            Self::Alone => "alone",
        })
    }
}

/// The longest of a lane first, so that it does not end with one that everybody waits for.
const KNOWN: &[(&str, Lane)] = &[
    ("e2e/shells", Lane::Waiting),
    ("torture/torture", Lane::Waiting),
    ("e2e/path", Lane::Waiting),
    ("e2e/ways", Lane::Waiting),
    ("e2e/perf", Lane::Waiting),
    ("e2e/blocked", Lane::Waiting),
    ("e2e/transports", Lane::Waiting),
    ("e2e/kills", Lane::Waiting),
    ("torture/soak", Lane::Waiting),
    ("e2e/fattree", Lane::Waiting),
    ("e2e/proxy", Lane::Waiting),
    ("e2e/tunnels", Lane::Waiting),
    ("haul-cli/cli", Lane::Waiting),
    ("haul-cli/documents", Lane::Waiting),
    ("e2e/copies", Lane::Waiting),
    ("e2e/failures", Lane::Waiting),
    ("e2e/hostile", Lane::Waiting),
    ("e2e/logins", Lane::Waiting),
    ("e2e/bootstrap", Lane::Waiting),
    ("e2e/packages", Lane::Waiting),
    ("e2e/lab", Lane::Waiting),
    ("e2e/fleet", Lane::Waiting),
    ("e2e/fleet_command", Lane::Waiting),
    ("e2e/fleet_session", Lane::Waiting),
    ("haul-fleet/many", Lane::Waiting),
    ("e2e/stores", Lane::Waiting),
    ("haul-gfarm/gfarm", Lane::Waiting),
    ("haul/sockets", Lane::Waiting),
    ("hostile/silence", Lane::Waiting),
    ("hostile/addresses", Lane::Waiting),
    ("hostile/lies", Lane::Waiting),
    ("hostile/messages", Lane::Waiting),
    ("haul-tcp/kernel", Lane::Waiting),
    ("haul-tcp/pace", Lane::Waiting),
    ("haul-cli/pace", Lane::Waiting),
    ("haul-cli/tcp", Lane::Waiting),
    ("haul-pace/inject", Lane::Waiting),
    ("haul-tunnel/keys", Lane::Waiting),
    ("haul-tunnel/pipe", Lane::Waiting),
    ("haul-tunnel/forward", Lane::Waiting),
    ("haul-tunnel/lib", Lane::Waiting),
    ("haul-peer/lib", Lane::Waiting),
    ("haul-perf/loopback", Lane::Waiting),
    ("haul-perf/example", Lane::Waiting),
    ("haul-ffi/programs", Lane::Waiting),
    ("haul/diagnose", Lane::Waiting),
    ("haul-udp/lib", Lane::Waiting),
    ("haul-scenarios/scenarios", Lane::Processor),
    ("haul-cc/simulated", Lane::Processor),
    ("haul-tcp/laws", Lane::Processor),
    ("haul-proto/connection", Lane::Processor),
    // An authorised client among strangers against the same client without them.
    ("hostile/strangers", Lane::Alone),
    // Hundreds of clients at once, and what a daemon's memory comes to: nothing beside it would have a processor.
    ("hostile/memory", Lane::Alone),
    // Real tools over an emulated WAN, at rates that are compared.
    ("haul-tcp/coupled", Lane::Alone),
    ("haul-cli/bench", Lane::Alone),
    // What a copy takes for its limit: a processor that is busy otherwise is another one.
    ("e2e/verdict", Lane::Alone),
    ("haul-cli/verdict", Lane::Alone),
    ("haul-cli/lab", Lane::Alone),
    ("haul-lab/relay", Lane::Alone),
];

/// Tests that one program runs at once, where that is more than there are cores: all of these wait for TCP to get over a path of 100 ms that loses packets, at some Mbit/s.
const AT_ONCE: &[(&str, usize)] = &[("e2e/shells", 6)];

/// How many tests of a program run at once, if it is not as many as there are cores.
pub fn at_once(name: &str) -> Option<usize> {
    AT_ONCE.iter().find(|(known, _)| *known == name).map(|(_, tests)| *tests)
}

/// Programs in their lanes, in the order in which they begin.
#[derive(Debug, Default)]
pub struct Plan(Vec<(Lane, Program)>);

impl Plan {
    pub fn of(mut programs: Vec<Program>) -> Self {
        programs.sort_by_key(|program| known(&program.name).unwrap_or(KNOWN.len()));
        let lane = |program: &Program| known(&program.name).map_or_else(|| usual(&program.name), |at| KNOWN[at].1);
        Self(programs.into_iter().map(|program| (lane(&program), program)).collect())
    }

    /// What runs in a lane, from the first to the last.
    pub fn queue(&self, lane: Lane) -> Mutex<VecDeque<Program>> {
        Mutex::new(self.0.iter().filter(|(of, _)| *of == lane).map(|(_, program)| program.clone()).collect())
    }
}

/// Of a program that is not listed: all of these crates' cross namespaces or sockets.
fn usual(name: &str) -> Lane {
    let crosses = ["e2e/", "torture/", "hostile/"].iter().any(|of| name.starts_with(of));
    if crosses { Lane::Waiting } else { Lane::Processor }
}

fn known(name: &str) -> Option<usize> {
    KNOWN.iter().position(|(known, _)| *known == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::root;

    fn program(name: &str) -> Program {
        Program { name: name.into(), run: Vec::new(), dir: "/".into() }
    }

    #[test]
    fn each_program_is_in_one_lane_the_longest_first_and_unknown_ones_last() {
        let names =
            ["new/lib", "haul-cc/simulated", "hostile/strangers", "e2e/proxy", "torture/torture", "haul-scenarios/scenarios"];
        let plan = Plan::of(names.map(program).to_vec());
        let queue =
            |lane| -> Vec<String> { plan.queue(lane).into_inner().expect("a lock").into_iter().map(|p| p.name).collect() };
        assert_eq!(queue(Lane::Processor), ["haul-scenarios/scenarios", "haul-cc/simulated", "new/lib"]);
        assert_eq!(queue(Lane::Waiting), ["torture/torture", "e2e/proxy"]);
        assert_eq!(queue(Lane::Alone), ["hostile/strangers"]);
    }

    /// A program that was renamed would be in the processor's lane, and nobody would see it.
    #[test]
    fn what_is_listed_is_there() {
        for (name, _) in KNOWN {
            let (of, target) = name.split_once('/').expect("crate/target");
            let dirs = [root().join("crates").join(of), root().join("tests").join(of)];
            let dir = dirs.iter().find(|dir| dir.exists()).unwrap_or_else(|| panic!("no crate {of}"));
            let files = [format!("tests/{target}.rs"), format!("tests/{target}/main.rs"), format!("src/{target}.rs")];
            assert!(files.iter().any(|file| dir.join(file).exists()), "{name} is not there");
        }
        assert!(AT_ONCE.iter().all(|(name, _)| known(name).is_some_and(|at| KNOWN[at].1 == Lane::Waiting)));
        let mut names: Vec<_> = KNOWN.iter().map(|(name, _)| name).collect();
        names.sort();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "one is listed twice");
    }

    #[test]
    fn what_crosses_namespaces_does_not_stand_behind_computing() {
        assert_eq!(["e2e/newest", "haul-cc/newest"].map(usual), [Lane::Waiting, Lane::Processor]);
    }
}

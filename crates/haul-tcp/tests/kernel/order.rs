//! Any order of commands, with kills in the middle of them, others at the same time, and namespaces that go while they are in use: the machine works after each step, what is said to be in
//! force is what the kernel has, and `off` leaves nothing.
//!
//! `E2E_SEED` repeats the commands of a run, but for the moment of a kill within its millisecond, and for who of two is first; `E2E_STEPS` are how many there are.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use haul_tcp::{Choice, Law, Namespace, Place, Rule, Scope, Tcp, Way, default_of};
use haul_units::Network;

use crate::chance::Chance;
use crate::objects;
use crate::rig::{ADDRESSES, Rig, own};
use crate::road::{pause, until};
use crate::wire::{ip, told};

/// Set for a process that is started: what it does, the namespace, which law, and where haul remembers peers.
const OTHER: &str = "HAUL_TCP_OTHER";
const STEPS: u32 = 60;
/// How often one of two that switch on and off at the same time does it.
const TURNS: u32 = 4;

#[test]
fn any_order_of_commands_leaves_a_working_machine() {
    let Some(rig) = Rig::open() else { return };
    let number = |key: &str| std::env::var(key).ok().and_then(|value| value.parse().ok());
    let seed = number("E2E_SEED").unwrap_or(7);
    println!("E2E_SEED={seed}");
    let mut walk = Walk::new(&rig, seed);
    for step in 0..number("E2E_STEPS").unwrap_or(STEPS.into()) {
        walk.step(step);
        rig.transfer();
        walk.expect_what_is_said();
    }
    walk.end();
}

/// One that walks through the commands.
struct Walk<'a> {
    rig: &'a Rig,
    chance: Chance,
    /// A cgroup that nobody is in.
    group: PathBuf,
    /// Of a namespace that nothing was done to.
    usual: Choice,
    /// Connections that are open meanwhile.
    open: Vec<(TcpStream, TcpStream)>,
}

impl<'a> Walk<'a> {
    fn new(rig: &'a Rig, seed: u64) -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("readable");
        let root = mounts.lines().find_map(|line| line.split_once(' ')?.1.split_once(" cgroup2 ")).expect("cgroup2").0;
        let group = PathBuf::from(format!("{root}/haul-order-{}", std::process::id()));
        fs::create_dir(&group).expect("a cgroup");
        Self { rig, chance: Chance(seed), group, usual: rig.transfer(), open: Vec::new() }
    }

    fn law(&mut self) -> Choice {
        if self.chance.below(6) == 0 {
            return Choice::Kernel("reno".to_owned());
        }
        own(Law::ALL[self.chance.below(Law::ALL.len() as u64) as usize])
    }

    /// All of the namespace, a network with a route, a host without, the cgroup, or a host for the cgroup.
    fn scope(&mut self) -> Scope {
        let mut scope = self.rig.scope();
        let which = self.chance.below(6);
        match which {
            0 => scope.networks.push("10.9.0.0/24".parse().expect("a network")),
            1 | 4 => scope.networks.push("10.9.0.2".parse().expect("a host")),
            2 => scope.networks.extend(["10.9.0.0/24", "10.9.0.7"].map(|text| text.parse::<Network>().expect("a network"))),
            _ => {}
        }
        if which >= 4 {
            scope.cgroup = Some(self.group.clone());
        }
        scope
    }

    fn step(&mut self, step: u64) {
        let (law, scope, what) = (self.law(), self.scope(), self.chance.below(14));
        let after_ms = self.chance.below(60);
        println!("{step}: {what} {law} {:?} {:?} {after_ms}", scope.networks, scope.cgroup.is_some());
        let rig = self.rig;
        match what {
            0..=3 => drop(rig.tcp.on(&law, &scope).expect("on")),
            4 => drop(rig.tcp.off(Some(&scope)).expect("off")),
            5 => {
                rig.tcp.off(None).expect("off");
                assert_eq!(rig.tcp.rules().expect("rules"), []);
                rig.expect_nothing_left();
            }
            6 => drop(rig.tcp.switch(&law, &rig.namespace(), &[]).expect("switched")),
            // Nothing is on, and so nothing can be set: that is said.
            7 => assert_eq!(rig.tcp.set(&format!("jump-percent={}", 1 + after_ms)).is_ok(), rig.tcp.is_loaded()),
            8 => drop(rig.tcp.on(&law, &rig.scope()).expect("the default")),
            9 => kill(self.other("loop", &law), after_ms),
            10 => kill(self.other("run", &law), after_ms),
            11 => {
                let mut two = [self.other("turns", &law), self.other("turns", &own(Law::Bic))];
                for one in &mut two {
                    assert!(one.wait().expect("it ends").success(), "one of two at the same time failed");
                }
            }
            12 => self.open.push(rig.connection()),
            _ => {
                self.open.clear();
                renew(rig);
            }
        }
    }

    /// A process that does something with the same machine.
    fn other(&self, what: &str, law: &Choice) -> Child {
        Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "order::what_others_do", "--nocapture"])
            .env(OTHER, format!("{what} {} {law} {}", self.rig.wire.a, self.rig.place.memory.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("started")
    }

    /// What is said to be in force is what the kernel has, neither more nor less.
    fn expect_what_is_said(&self) {
        let rules = self.rig.tcp.rules().expect("rules");
        let of = |is: fn(&Way) -> bool| rules.iter().filter(move |rule| is(&rule.way)).collect::<Vec<&Rule>>();
        let default = default_of(&self.rig.namespace()).expect("a default");
        match of(|way| matches!(way, Way::Default)).as_slice() {
            [] => assert_eq!(default, self.usual, "{rules:?}"),
            [rule] => assert_eq!(default, rule.law, "{rules:?}"),
            more => panic!("{more:?}"),
        }
        let route = told(&["-n", &self.rig.wire.a, "-d", "route", "show", "10.9.0.0/24"]);
        match of(|way| matches!(way, Way::Routes(_))).as_slice() {
            [] => assert!(!route.contains("congctl"), "{route}: {rules:?}"),
            [rule] => assert!(route.contains(&format!("congctl {}", rule.law.kernel_name())), "{route}: {rules:?}"),
            more => panic!("{more:?}"),
        }
        let at_groups = of(|way| matches!(way, Way::Cgroup(_))).len();
        until("programs at cgroups are those that are said", || objects::choosers_at_work() == at_groups);
        let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("readable");
        let ours = known.split_whitespace().filter(|name| name.starts_with("haul_")).count();
        if self.rig.tcp.is_loaded() {
            assert_eq!(ours, Law::ALL.len(), "{known}");
        }
        assert!(rules.iter().all(|rule| !matches!(rule.law, Choice::Own(_)) || self.rig.tcp.is_loaded()), "{rules:?}");
    }

    fn end(self) {
        // What belongs to a namespace that has gone goes with the next command, without a word.
        let nobody = Scope { networks: vec!["192.0.2.0/24".parse().expect("a network")], ..self.rig.scope() };
        assert_eq!(self.rig.tcp.off(Some(&nobody)).expect("off"), []);
        let rules = self.rig.tcp.rules().expect("rules");
        let taken = self.rig.tcp.off(None).expect("off");
        assert!(rules.iter().all(|rule| taken.contains(rule)), "{rules:?} were on, {taken:?} were taken back");
        assert_eq!(self.rig.transfer(), self.usual, "the default is what it was");
        self.rig.expect_nothing_left();
        until("no program is left at a cgroup", || objects::choosers().is_empty());
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.group);
    }
}

fn kill(mut other: Child, after_ms: u64) {
    pause(Duration::from_millis(after_ms));
    other.kill().expect("killed");
    other.wait().expect("ended");
}

/// No test of its own: what [`Walk::other`] starts.
#[test]
fn what_others_do() {
    let Ok(text) = std::env::var(OTHER) else { return };
    let words: Vec<&str> = text.split(' ').collect();
    let [what, namespace, law, memory] = words.as_slice() else { panic!("{text}") };
    let law: Choice = law.parse().expect("a law");
    let tcp = Tcp::new(Place { memory: memory.into(), ..Place::default() });
    let namespace = Namespace::named(namespace).expect("a namespace");
    let routes =
        Scope { namespace: Some(namespace.clone()), networks: vec!["10.9.0.0/24".parse().expect("a network")], cgroup: None };
    let host = Scope { networks: vec!["10.9.0.2".parse().expect("a host")], ..routes.clone() };
    let all = Scope { namespace: Some(namespace), ..Scope::default() };
    let once = || {
        for scope in [&routes, &host, &all] {
            tcp.on(&law, scope).expect("on");
        }
        tcp.off(None).expect("off");
    };
    match *what {
        "loop" => loop {
            once();
        },
        "run" => loop {
            let run = tcp.run(&law).expect("it runs");
            run.leave().expect("left");
            run.end().expect("ended");
        },
        _ => (0..TURNS).for_each(|_| once()),
    }
}

/// The namespace goes and another one comes under its name.
fn renew(rig: &Rig) {
    told(&["netns", "delete", &rig.wire.a]);
    ip(&["netns", "add", &rig.wire.a]);
    // The link's other end went with the first one, some time after it.
    until("the link is gone", || !told(&["-n", &rig.wire.b, "link", "show", "x"]).contains("x@"));
    rig.wire.join(ADDRESSES);
}

//! Any order of commands, with kills in the middle of them and namespaces that go: the machine works, and `off` leaves nothing.

use std::process::{Command, Stdio};
use std::time::Duration;

use haul_tcp::{Choice, Law, Scope, Tcp};

use crate::chance::Chance;
use crate::rig::{ADDRESSES, Rig, own};
use crate::wire::{ip, told};

/// Set for the process that is to be killed: the namespace, and which law.
const VICTIM: &str = "HAUL_TCP_VICTIM";
const STEPS: u32 = 40;

#[test]
fn any_order_of_commands_leaves_a_working_machine() {
    let Some(rig) = Rig::open() else { return };
    let seed = std::env::var("E2E_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    println!("E2E_SEED={seed}");
    let mut chance = Chance(seed);
    let before = rig.transfer();
    for step in 0..STEPS {
        let law = own(Law::ALL[chance.below(Law::ALL.len() as u64) as usize]);
        let mut scope = rig.scope();
        match chance.below(3) {
            0 => scope.networks.push("10.9.0.0/24".parse().expect("a network")),
            1 => scope.networks.push("10.9.0.2".parse().expect("a host")),
            _ => {}
        }
        let what = chance.below(8);
        println!("{step}: {what} {law} {:?}", scope.networks);
        match what {
            0..=2 => drop(rig.tcp.on(&law, &scope).expect("on")),
            3 => drop(rig.tcp.off(Some(&scope)).expect("off")),
            4 => drop(rig.tcp.off(None).expect("off")),
            5 => drop(rig.tcp.switch(&law, &rig.namespace(), &[]).expect("switched")),
            6 => kill_one(&rig.wire.a, &law, chance.below(60)),
            _ => renew(&rig),
        }
        rig.transfer();
    }
    rig.tcp.off(None).expect("off");
    assert_eq!(rig.transfer(), before, "the default is what it was");
    rig.expect_nothing_left();
}

/// Another process switches on and off all the time, and is killed at some moment.
fn kill_one(namespace: &str, law: &Choice, after_ms: u64) {
    let mut victim = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "order::the_one_that_is_killed", "--nocapture"])
        .env(VICTIM, format!("{namespace} {law}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    pause(Duration::from_millis(after_ms));
    victim.kill().expect("killed");
    victim.wait().expect("ended");
}

/// No test of its own: what [`kill_one`] starts.
#[test]
fn the_one_that_is_killed() {
    let Ok(text) = std::env::var(VICTIM) else { return };
    let (namespace, law) = text.split_once(' ').expect("a namespace and a law");
    let law: Choice = law.parse().expect("a law");
    let tcp = Tcp::default();
    loop {
        let namespace = haul_tcp::Namespace::named(namespace).expect("a namespace");
        let routes =
            Scope { namespace: Some(namespace.clone()), networks: vec!["10.9.0.0/24".parse().expect("a network")], cgroup: None };
        let all = Scope { namespace: Some(namespace), ..Scope::default() };
        for scope in [&routes, &all] {
            tcp.on(&law, scope).expect("on");
        }
        tcp.off(None).expect("off");
    }
}

/// The namespace goes and another one comes under its name.
fn renew(rig: &Rig) {
    told(&["netns", "delete", &rig.wire.a]);
    ip(&["netns", "add", &rig.wire.a]);
    // The link's other end went with the first one, some time after it.
    while told(&["-n", &rig.wire.b, "link", "show", "x"]).contains("x@") {
        pause(Duration::from_millis(5));
    }
    rig.wire.join(ADDRESSES);
}

#[expect(clippy::disallowed_methods, reason = "the moment of a kill is what is tried")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

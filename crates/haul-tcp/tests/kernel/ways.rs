//! The ways by which connections get a law, and that each is taken back to exactly what was there.

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use haul_tcp::{Choice, Law, Namespace, Scope, TcpError, Way, default_of};
use haul_units::Network;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, connect_unspec, socket_with, sockopt};

use crate::objects;
use crate::rig::{Rig, law_of, own};
use crate::wire::{inside, ip, told};

fn network(text: &str) -> Network {
    text.parse().expect("a network")
}

#[test]
fn a_network_with_a_route_gets_it_by_the_route() {
    let Some(rig) = Rig::open() else { return };
    ip(&["-n", &rig.wire.a, "route", "change", "10.9.0.0/24", "dev", "x", "src", "10.9.0.1", "mtu", "1400", "initcwnd", "20"]);
    let routes = || told(&["-n", &rig.wire.a, "-d", "route", "show"]);
    let before = routes();
    let scope = Scope { networks: vec![network("10.9.0.0/24")], ..rig.scope() };
    for law in [Law::Highspeed, Law::Fair] {
        let rules = rig.tcp.on(&own(law), &scope).expect("on");
        assert_eq!(rules[0].way, Way::Routes(1));
        assert_eq!(rig.transfer(), own(law));
        assert!(routes().contains(&format!("congctl haul_{}", law.name())), "{}", routes());
    }
    assert_ne!(default_of(&rig.namespace()).expect("a default"), own(Law::Fair));
    rig.tcp.off(Some(&scope)).expect("off");
    assert_eq!(routes(), before);
    rig.expect_nothing_left();
}

/// Accepted connections too, and those of no other namespace.
#[test]
fn a_network_without_a_route_gets_it_at_the_cgroups_root() {
    let Some(rig) = Rig::open() else { return };
    let scope = Scope { networks: vec![network("10.9.0.2")], ..rig.scope() };
    let before = rig.transfer();
    let rules = rig.tcp.on(&own(Law::Modest), &scope).expect("on");
    assert!(matches!(rules[0].way, Way::Cgroup(_)), "{rules:?}");
    assert_eq!(rig.transfer(), own(Law::Modest));
    assert_eq!(rig.transfer_back(), before, "that is another namespace");
    let accepted = {
        let listener = inside(&rig.wire.a, || std::net::TcpListener::bind("10.9.0.1:0").expect("a port"));
        let address = listener.local_addr().expect("an address");
        let _near = inside(&rig.wire.b, || std::net::TcpStream::connect(address).expect("connected"));
        law_of(&listener.accept().expect("a connection").0)
    };
    assert_eq!(accepted, own(Law::Modest));
    rig.tcp.off(Some(&scope)).expect("off");
    assert_eq!(rig.transfer(), before);
    rig.expect_nothing_left();
}

/// The kernel asks the programs of the root last, and of one cgroup those that came last.
#[test]
fn the_narrower_rule_counts_whichever_is_asked_last() {
    let Some(rig) = Rig::open() else { return };
    let on = |law, to: &str| {
        let rules = rig.tcp.on(&own(law), &Scope { networks: vec![network(to)], ..rig.scope() }).expect("on");
        assert!(matches!(rules[0].way, Way::Cgroup(_)), "{rules:?}");
    };
    on(Law::Modest, "10.9.0.2");
    on(Law::Aggressive, "10.9.0.0/25");
    assert_eq!(rig.transfer(), own(Law::Modest), "the longer network");
    let run = rig.tcp.run(&own(Law::Fair)).expect("it runs");
    let of_the_run = [rig.transfer(), rig.transfer_back()];
    run.leave().expect("left");
    run.end().expect("ended");
    assert_eq!(of_the_run, [own(Law::Fair), own(Law::Fair)], "the cgroup of its own");
    assert_eq!(rig.transfer(), own(Law::Modest));
    rig.tcp.off(None).expect("off");
    rig.expect_nothing_left();
}

/// A socket that is connected twice is two connections: a narrow rule for the first peer says nothing of the second.
#[test]
fn a_socket_that_connects_again_is_looked_at_again() {
    let Some(rig) = Rig::open() else { return };
    ip(&["-n", &rig.wire.b, "address", "add", "10.9.0.3/24", "dev", "x"]);
    for (law, to) in [(Law::Modest, "10.9.0.2"), (Law::Aggressive, "10.9.0.0/25")] {
        rig.tcp.on(&own(law), &Scope { networks: vec![network(to)], ..rig.scope() }).expect("on");
    }
    let listener = inside(&rig.wire.b, || std::net::TcpListener::bind("0.0.0.0:0").expect("a port"));
    let port = listener.local_addr().expect("an address").port();
    let laws = inside(&rig.wire.a, || {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a socket");
        [[10, 9, 0, 2], [10, 9, 0, 3]].map(|to| {
            connect(&socket, &SocketAddr::from((to, port))).expect("connected");
            let law = Choice::of_kernel(&sockopt::tcp_congestion(&socket).expect("a name"));
            connect_unspec(&socket).expect("free again");
            law
        })
    });
    assert_eq!(laws, [own(Law::Modest), own(Law::Aggressive)]);
}

#[test]
fn connections_that_are_open_are_switched_and_seen() {
    let Some(rig) = Rig::open() else { return };
    let (near, far) = rig.connection();
    let before = law_of(&near);
    rig.tcp.on(&own(Law::Fair), &rig.scope()).expect("on");
    assert_eq!(law_of(&near), before, "it is older");
    let nobody = rig.tcp.switch(&own(Law::Bic), &rig.namespace(), &[network("192.0.2.0/24")]).expect("switched");
    assert_eq!(nobody, (0, 0));
    let one = rig.tcp.switch(&own(Law::Modest), &rig.namespace(), &[network("10.9.0.2")]).expect("switched");
    assert_eq!(one, (1, 0));
    assert_eq!((law_of(&near), law_of(&far)), (own(Law::Modest), before));
    let seen = rig.tcp.connections(&rig.namespace()).expect("connections");
    let port = near.local_addr().expect("an address").port();
    let connection = seen.iter().find(|connection| connection.own_port == port).expect("it is shown");
    assert_eq!((&connection.law, connection.peer), (&own(Law::Modest), near.peer_addr().expect("an address")));
    assert!(connection.path.is_some(), "{connection:?}");
}

#[test]
fn what_somebody_else_has_changed_since_stays() {
    let Some(rig) = Rig::open() else { return };
    rig.tcp.on(&own(Law::Fair), &rig.scope()).expect("on");
    inside(&rig.wire.a, || fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno").expect("written"));
    rig.tcp.off(None).expect("off");
    assert_eq!(default_of(&rig.namespace()).expect("a default"), Choice::Kernel("reno".to_owned()));
}

#[test]
fn a_default_that_no_journal_knows_gives_way_to_the_usual_one() {
    let Some(rig) = Rig::open() else { return };
    let usual = default_of(&rig.namespace()).expect("a default");
    let lose_the_journal = || {
        rig.tcp.on(&own(Law::Fair), &rig.scope()).expect("on");
        fs::remove_file(rig.place.state.join("journal.json")).expect("removed");
    };
    lose_the_journal();
    let rules = rig.tcp.off(Some(&rig.scope())).expect("off");
    assert_eq!(rules.iter().map(|rule| &rule.law).collect::<Vec<_>>(), [&own(Law::Fair)]);
    assert_eq!(default_of(&rig.namespace()).expect("a default"), usual);
    // Nor is it taken for what was there before.
    lose_the_journal();
    rig.tcp.on(&own(Law::Modest), &rig.scope()).expect("on");
    rig.tcp.off(Some(&rig.scope())).expect("off");
    assert_eq!(default_of(&rig.namespace()).expect("a default"), usual);
}

/// A namespace begins with the machine's default; nobody has asked for a law there.
#[test]
fn what_a_namespace_was_made_with_goes_with_everything() {
    let Some(rig) = Rig::open() else { return };
    rig.tcp.on(&own(Law::Fair), &rig.scope()).expect("on");
    let far = Namespace::named(&rig.wire.b).expect("the namespace of the test");
    let usual = default_of(&far).expect("a default");
    let default = "/proc/sys/net/ipv4/tcp_congestion_control";
    inside(&rig.wire.b, || fs::write(default, "haul_fair").expect("written"));
    // One that has no name, for as long as a program is in it.
    let mut nameless = Command::new("unshare")
        .args(["--net", "sh", "-c", &format!("echo haul_fair > {default} && echo made && ! read wait && cat {default}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare of util-linux");
    let mut says = nameless.stdout.take().expect("a pipe");
    says.read_exact(&mut [0; 5]).expect("it is there");
    // What is asked of one namespace touches no other.
    rig.tcp.off(Some(&Scope { networks: vec![network("192.0.2.0/24")], ..rig.scope() })).expect("off");
    assert_eq!(default_of(&far).expect("a default"), own(Law::Fair));
    let rules = rig.tcp.off(None).expect("off");
    let whose: Vec<&str> = rules.iter().map(|rule| rule.whose.as_str()).collect();
    assert!(whose.contains(&&*format!("all in {}", rig.wire.b)), "{whose:?}");
    assert!(whose.iter().any(|whose| whose.starts_with("all in net:[")), "{whose:?}");
    assert_eq!(default_of(&far).expect("a default"), usual);
    drop(nameless.stdin.take());
    let mut left = String::new();
    says.read_to_string(&mut left).expect("it says");
    nameless.wait().expect("ended");
    assert_eq!(Choice::of_kernel(left.trim()), usual);
    rig.expect_nothing_left();
}

#[test]
fn a_namespace_that_is_deleted_takes_its_rules_along() {
    let Some(rig) = Rig::open() else { return };
    let scope = rig.scope();
    rig.tcp.on(&own(Law::Aggressive), &scope).expect("on");
    ip(&["netns", "delete", &rig.wire.a]);
    ip(&["netns", "add", &rig.wire.a]);
    let fresh = Namespace::named(&rig.wire.a).expect("it is there");
    let before = default_of(&fresh).expect("a default");
    assert!(matches!(rig.tcp.on(&own(Law::Fair), &scope), Err(TcpError::Namespace { .. })));
    assert_eq!(default_of(&fresh).expect("a default"), before, "it is another one");
    assert!(rig.tcp.rules().expect("rules").is_empty());
    rig.expect_nothing_left();
}

#[test]
fn settings_are_read_by_the_laws_that_run() {
    let Some(rig) = Rig::open() else { return };
    assert!(matches!(rig.tcp.set("jump-percent=30"), Err(TcpError::NothingOn)));
    rig.tcp.on(&own(Law::Quickstart), &rig.scope()).expect("on");
    rig.tcp.set("jump-percent=30").expect("set");
    // A newer haul, or the same one, comes and finds it.
    rig.tcp.on(&own(Law::Fair), &rig.scope()).expect("on");
    let settings = rig.tcp.settings().expect("settings");
    assert!(settings.iter().any(|(knob, value)| knob.key == "jump-percent" && *value == 30), "{settings:?}");
}

/// A newer haul comes while a connection lives: that one keeps the law that it has, and goes on; new ones get the new.
#[test]
fn a_newer_haul_replaces_the_laws_while_a_connection_lives() {
    let Some(rig) = Rig::open() else { return };
    rig.tcp.on(&own(Law::Fair), &rig.scope()).expect("on");
    let (mut near, mut far) = rig.connection();
    assert_eq!(law_of(&near), own(Law::Fair));
    let before = objects::of_the_laws();
    // As an older haul has written it, whose programs are others.
    let file = rig.place.state.join("journal.json");
    let mut journal: serde_json::Value = serde_json::from_slice(&fs::read(&file).expect("a journal")).expect("JSON");
    assert!(journal["loaded"].is_string(), "{journal}");
    journal["loaded"] = "older".into();
    fs::write(&file, journal.to_string()).expect("written");
    rig.tcp.on(&own(Law::Fair), &rig.scope()).expect("on");
    let both = objects::of_the_laws();
    let law = |found: &[(u32, String)]| found.iter().filter(|(_, name)| name == "fair_law").count();
    assert_eq!((law(&before), law(&both)), (1, 2), "the connection has the old one: {both:?}");
    assert_eq!(rig.transfer(), own(Law::Fair));
    assert_eq!(law_of(&near), own(Law::Fair));
    let reader = std::thread::spawn(move || {
        let mut read = Vec::new();
        far.read_to_end(&mut read).map(|_| read.len())
    });
    near.write_all(&vec![7; 4 << 20]).expect("it carries");
    drop(near);
    assert_eq!(reader.join().expect("read").expect("bytes"), 4 << 20);
    rig.tcp.off(None).expect("off");
    rig.expect_nothing_left();
}

/// The second connection to a peer begins with what the first one has learned.
#[test]
fn quickstart_remembers() {
    let Some(rig) = Rig::open() else { return };
    rig.tcp.on(&own(Law::Quickstart), &rig.scope()).expect("on");
    let jumps = || rig.tcp.totals().expect("counters").iter().map(|of| of.jumps).sum::<u64>();
    rig.transfer();
    assert_eq!(jumps(), 0, "there was nothing to remember");
    // The kernel forgets the first one's state when its last acknowledgement has come.
    let jumped = (0..20).any(|_| {
        rig.transfer();
        jumps() > 0
    });
    assert!(jumped, "{:?}", rig.tcp.totals());
}

/// As a restart of the machine does: nothing of haul is in the kernel in between.
#[test]
fn what_was_remembered_outlives_the_laws() {
    let Some(rig) = Rig::open() else { return };
    let jumps = || rig.tcp.totals().expect("counters").iter().map(|of| of.jumps).sum::<u64>();
    rig.tcp.on(&own(Law::Quickstart), &rig.scope()).expect("on");
    // The kernel forgets a connection's state when its last acknowledgement has come.
    assert!((0..20).any(|_| {
        rig.transfer();
        jumps() > 0
    }));
    rig.tcp.off(None).expect("off");
    rig.expect_nothing_left();
    let kept = fs::read_to_string(&rig.place.memory).expect("a file");
    assert!(kept.contains("::ffff:10.9.0.2"), "{kept}");
    rig.tcp.on(&own(Law::Quickstart), &rig.scope()).expect("on");
    assert_eq!(jumps(), 0, "the counters are new");
    // What is kept now, without a connection in between, came from the file.
    fs::remove_file(&rig.place.memory).expect("it was there");
    rig.tcp.off(None).expect("off");
    let again = fs::read_to_string(&rig.place.memory).expect("a file");
    assert!(again.contains("::ffff:10.9.0.2"), "{again}");
}

/// A file of something else is nothing remembered.
#[test]
fn a_memory_that_is_none_harms_nobody() {
    let Some(rig) = Rig::open() else { return };
    fs::write(&rig.place.memory, "[{\"peer\":").expect("written");
    rig.tcp.on(&own(Law::Quickstart), &rig.scope()).expect("on");
    assert_eq!(rig.transfer(), own(Law::Quickstart));
}

#[test]
fn a_name_that_nothing_has_is_refused_and_nothing_is_left() {
    let Some(rig) = Rig::open() else { return };
    let Err(TcpError::NoSuchLaw { known, .. }) = rig.tcp.on(&Choice::Kernel("nonesuch".to_owned()), &rig.scope()) else {
        panic!("there is none of that name");
    };
    assert!(known.contains(&"fair".to_owned()) && known.contains(&"reno".to_owned()), "{known:?}");
    let scope = Scope { cgroup: Some("/tmp".into()), ..Scope::default() };
    assert!(matches!(rig.tcp.on(&own(Law::Fair), &scope), Err(TcpError::NotACgroup(_))));
    rig.expect_nothing_left();
}

/// What `ip netns exec` starts would keep its names in mounts that end with it.
#[test]
fn mounts_that_nobody_else_sees_are_refused() {
    let Some(rig) = Rig::open() else { return };
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "ways::what_has_mounts_of_its_own", "--nocapture"])
        .env(OWN_MOUNTS, &rig.wire.a)
        .output()
        .expect("unshare of util-linux");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    rig.expect_nothing_left();
}

const OWN_MOUNTS: &str = "HAUL_TCP_OWN_MOUNTS";

/// No test of its own: what the one before it starts.
#[test]
fn what_has_mounts_of_its_own() {
    let Ok(name) = std::env::var(OWN_MOUNTS) else { return };
    let scope = Scope { namespace: Some(Namespace::named(&name).expect("a namespace")), ..Scope::default() };
    let refused = haul_tcp::Tcp::default().on(&own(Law::Fair), &scope);
    assert!(matches!(refused, Err(TcpError::Load(haul_tcp::LoadError::OwnMounts))), "{refused:?}");
}

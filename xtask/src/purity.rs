//! The sans-IO crates get time and randomness from their caller.
//!
//! A failing run of a simulation replays from its seed only while no code of these crates asks the system for anything. Names from `std` can be
//! reached through a path alone, so looking at every path and every `use` tree is enough.

use crate::finding::Finding;
use crate::source::Named;
use crate::workspace::Workspace;

const PURE: &[&str] = &[
    "crates/haul-cc/",
    "crates/haul-pieces/",
    "crates/haul-paths/",
    "crates/haul-plan/",
    "crates/haul-proto/",
    "crates/haul-relay/",
    "crates/haul-scenarios/",
    "crates/haul-sim/",
    "crates/haul-units/",
];

/// What no code of a pure crate may name, its tests included.
const NOWHERE: &[(&str, &str)] = &[
    ("std::time::Instant", "a clock: take haul_units::Time from the caller"),
    ("std::time::SystemTime", "a clock: take haul_units::Time from the caller"),
    ("std::time::UNIX_EPOCH", "a clock: take haul_units::Time from the caller"),
    ("std::thread::sleep", "a sleep: return the time at which to be called again"),
    ("std::net", "a socket: return datagrams to the caller"),
    ("std::os", "the operating system: leave it to the driver"),
    ("tokio", "a runtime: leave it to the driver"),
    ("mio", "a socket: leave it to the driver"),
    ("socket2", "a socket: leave it to the driver"),
    ("libc", "the operating system: leave it to the driver"),
    ("rustix", "the operating system: leave it to the driver"),
    ("quinn_udp", "a socket: leave it to the driver"),
];

/// What only tests of a pure crate may name, for instance to read a golden table.
const TESTS_ONLY: &[(&str, &str)] = &[
    ("std::thread", "a thread: leave it to the driver"),
    ("std::fs", "the file system: take and return bytes"),
    ("std::env", "the environment: take a configuration"),
    ("std::process", "a process: leave it to the programs"),
];

/// Plain data of `std::net`.
const ADDRESSES: &[&str] = &["SocketAddr", "SocketAddrV4", "SocketAddrV6", "IpAddr", "Ipv4Addr", "Ipv6Addr", "AddrParseError"];

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    // Examples and benches are programs of their own, which measure time.
    let is_program = |path: &str| path.split('/').any(|part| matches!(part, "examples" | "benches"));
    let is_pure = |path: &str| PURE.iter().any(|dir| path.starts_with(dir)) && !is_program(path);
    let pure = workspace.sources.iter().filter(|source| is_pure(&source.path));
    pure.flat_map(|source| {
        let finding = |named: &Named| {
            let why = reason(named)?;
            Some(Finding { place: source.place(named.line), message: format!("{} is {why}", named.path) })
        };
        source.paths().iter().filter_map(finding).collect::<Vec<_>>()
    })
    .collect()
}

/// Why the crate may not name this, if it may not.
fn reason(named: &Named) -> Option<&'static str> {
    let path = named.path.strip_suffix("::*").unwrap_or(&named.path);
    let below = |path: &str, root: &str| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    if let Some(item) = named.path.strip_prefix("std::net::") {
        let first = item.split("::").next().unwrap_or_default();
        if ADDRESSES.contains(&first) {
            return None;
        }
    }
    let tests_only = if named.test { &[] } else { TESTS_ONLY };
    // A module that holds something forbidden must not be imported whole either: the rest of the file could name it by a short path.
    NOWHERE.iter().chain(tests_only).find(|(root, _)| below(path, root) || below(root, path)).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn places(path: &str, text: &str) -> Vec<String> {
        let workspace = Workspace { sources: vec![Source::new(path, text)], ..Workspace::default() };
        check(&workspace).into_iter().map(|finding| finding.place).collect()
    }

    #[test]
    fn each_forbidden_thing_is_found_with_its_line() {
        let path = "crates/haul-proto/src/lib.rs";
        let guilty = [
            "use std::time::{Duration, Instant};",
            "fn f() { std::time::SystemTime::now(); }",
            "fn f() { std::thread::spawn(g); }",
            "fn f() { std::thread::sleep(d); }",
            "use std::net::{IpAddr, UdpSocket};",
            "use std::{fs, fmt};",
            "fn f() { std::env::var(\"HAUL\"); }",
            "use std::process::Command;",
            "use std::os::fd::RawFd;",
            "fn f() { libc::getpid(); }",
            "use std::net;",
            "use std::time;",
            "use std::time::*;",
            "use std as s;",
        ];
        for code in guilty {
            assert_eq!(places(path, &format!("\n{code}\n")), ["crates/haul-proto/src/lib.rs:2"], "{code}");
        }
    }

    #[test]
    fn addresses_and_durations_are_plain_data() {
        let innocent =
            "use std::net::{IpAddr, Ipv6Addr, SocketAddr};\nuse std::time::Duration;\n// std::fs\nconst A: &str = \"std::fs\";";
        assert_eq!(places("crates/haul-cc/src/a.rs", innocent), Vec::<String>::new());
    }

    #[test]
    fn tests_may_read_files_but_no_clock() {
        let code = "#[cfg(test)]\nmod tests {\n use std::fs;\n use std::time::Instant;\n}";
        assert_eq!(places("crates/haul-sim/src/a.rs", code), ["crates/haul-sim/src/a.rs:4"]);
    }

    #[test]
    fn programs_and_other_crates_may_do_all_that() {
        assert_eq!(places("crates/haul-proto/examples/speed.rs", "use std::time::Instant;"), Vec::<String>::new());
        assert_eq!(places("crates/haul/src/lib.rs", "use std::net::UdpSocket;"), Vec::<String>::new());
    }
}

//! A hundred servers, each with a few small files: what they cost the client's memory.
//!
//! The servers are another process, this program called once more: what is counted here is the client's alone.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

#[path = "common/loopback.rs"]
mod loopback;

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use haul::Fingerprint;
use haul_fleet::{GetJob, Member, Unwatched, get};
use haul_units::Cancel;
use loopback::{member, serve};

const SERVERS: usize = 100;
const FEW: usize = 10;
const FILES: usize = 5;
/// Where the servers' files are, for the process that serves.
const PLACE: &str = "HAUL_TEST_MANY";

/// What a member may cost. A connection with its threads, its session and the names of its files takes 470 KiB where it is measured; twice that is what another allocator may need.
const MOST_KIB: u64 = 1024;

#[test]
fn a_member_costs_the_client_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    for server in 0..SERVERS {
        let home = dir.path().join(server.to_string());
        fs::create_dir_all(home.join("set")).unwrap();
        for file in 0..FILES {
            fs::write(home.join(format!("set/of-{server}-{file}")), vec![server as u8; 10_000 + file]).unwrap();
        }
    }
    let servers = Servers::start(dir.path());
    // The first job pays for what every process needs once.
    let before = fetched(&servers, FEW, &dir.path().join("few"));
    let after = fetched(&servers, SERVERS, &dir.path().join("all"));
    let each = after.saturating_sub(before) / (SERVERS - FEW) as u64;
    println!("{before} KiB with {FEW} servers, {after} KiB with {SERVERS}: {each} KiB for each");
    assert!(each <= MOST_KIB, "{each} KiB for each server");
}

/// The other process: nothing, where nobody asks for it.
#[test]
fn serves_where_it_is_told_to() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    for server in 0..SERVERS {
        let (address, print) = serve(&PathBuf::from(&place).join(server.to_string()));
        println!("serves {address} {print}");
    }
    println!("all serve");
    // Until the client has gone.
    let _ = std::io::stdin().read_line(&mut String::new());
}

/// A job with so many servers; the most memory that this process has had.
fn fetched(servers: &Servers, count: usize, to: &Path) -> u64 {
    fs::create_dir(to).unwrap();
    let mut job = GetJob::new(vec!["set".into()], to);
    job.options.recursive = true;
    let report = get(servers.members(count), &job, &Unwatched, &Cancel::new()).unwrap();
    assert_eq!((report.files.files, report.files.problem_count), ((count * FILES) as u64, 0));
    assert!(report.members.iter().all(|member| member.files == FILES as u64 && member.down.is_none()));
    for server in 0..count {
        assert_eq!(fs::read(to.join(format!("set/of-{server}-1"))).unwrap(), vec![server as u8; 10_001]);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    most.trim().trim_end_matches("kB").trim().parse().unwrap()
}

struct Servers {
    child: Child,
    at: Vec<(SocketAddr, Fingerprint)>,
}

impl Servers {
    fn start(place: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "serves_where_it_is_told_to", "--nocapture"])
            .env(PLACE, place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut at = Vec::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let mut words = line.rsplit("serves ").next().unwrap().split(' ');
            match (words.next().map(str::parse), words.next().map(str::parse)) {
                (Some(Ok(address)), Some(Ok(print))) => at.push((address, print)),
                _ if line == "all serve" => break,
                _ => {}
            }
        }
        assert_eq!(at.len(), SERVERS);
        Self { child, at }
    }

    fn members(&self, count: usize) -> Vec<Member> {
        let at = self.at.iter().take(count).enumerate();
        at.map(|(number, (address, print))| member(number, *address, *print)).collect()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = self.child.stdin.take().map(|mut stdin| stdin.write_all(b"\n"));
        let _ = self.child.wait();
    }
}

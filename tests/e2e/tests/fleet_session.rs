//! A fleet that stays up, as its users type it: several processes, several jobs, one start.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::{Finished, Random, Running, Sites, eventually, example, tree};
use haul_lab::LinkOptions;
use haul_units::BitRate;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{Uid, set_thread_res_uid};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(120);
/// Somebody else: `nobody`.
const STRANGER: u32 = 65_534;

struct Fleet {
    sites: Sites,
}

impl Fleet {
    fn open() -> Option<Self> {
        let link = |()| LinkOptions { rate: BitRate::mbps(100), rtt: Duration::from_millis(20), ..LinkOptions::default() };
        let fleet = Self { sites: Sites::open(&[(), (), ()].map(link))? };
        for site in 1..=3 {
            fs::create_dir(fleet.at(site)).expect("a directory");
        }
        fs::DirBuilder::new().mode(0o700).create(fleet.runtime()).expect("a directory");
        Some(fleet)
    }

    fn at(&self, site: usize) -> PathBuf {
        self.sites.scratch().join(format!("disk{site}"))
    }

    fn runtime(&self) -> PathBuf {
        self.sites.scratch().join("run")
    }

    fn socket(&self) -> PathBuf {
        self.runtime().join("haul/test.sock")
    }

    /// `haul fleet WHAT ..` on the hub.
    fn command(&self, what: &str, words: &[&str]) -> Command {
        let mut command = self.sites.haul(self.sites.hub());
        command.args(["fleet", what]).args(words).env("XDG_RUNTIME_DIR", self.runtime());
        command
    }

    fn run(&self, what: &str, words: &[&str]) -> Finished {
        Running::start(self.command(what, words)).wait(PATIENCE)
    }

    fn up(&self) -> Finished {
        let hosts = (1..=3).map(|site| format!("site{site}:{}", self.at(site).display())).collect::<Vec<_>>().join(",");
        let config = self.sites.ssh_config();
        self.run("up", &["--name", "test", "--json", "-F", text(&config), "-H", &hosts])
    }

    /// `haul fleet get --name test ..` in a directory, with a mask of its own.
    fn get_in(&self, dir: &Path, mask: &str, words: &[&str]) -> Running {
        let haul = self.command("get", &["--name", "test", "--json"]);
        let mut shell = Command::new("sh");
        shell.args(["-c", "umask \"$1\"; shift; exec \"$@\"", "sh", mask]).arg(haul.get_program()).args(haul.get_args());
        shell.args(words).current_dir(dir);
        for (name, value) in haul.get_envs() {
            shell.env(name, value.expect("set"));
        }
        Running::start(shell)
    }

    fn remotes(&self, site: usize) -> Vec<Pid> {
        self.sites.site(site).processes(&["haul", "remote"])
    }

    fn has_no_members(&self) -> bool {
        (1..=3).all(|site| self.remotes(site).is_empty())
    }

    /// What `list` says of the fleet.
    fn listed(&self) -> Option<Value> {
        let listed = self.run("list", &["--json"]).expect(0);
        String::from_utf8_lossy(&listed.stdout).lines().find_map(|line| serde_json::from_str(line).ok())
    }

    fn keeper(&self) -> Pid {
        let pid = self.listed().expect("it is up")["pid"].as_i64().expect("a process");
        i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process")
    }

    /// The same file for all three.
    fn file(&self, name: &str, size: u64, seed: u64) {
        tree::write_random(&self.at(1).join(name), size, &mut Random::seeded(seed));
        for site in [2, 3] {
            let copied = Command::new("cp").arg("-p").arg(self.at(1).join(name)).arg(self.at(site).join(name)).status();
            assert!(copied.expect("cp").success());
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // A keeper is in a session of its own: nothing else ends it.
        if self.socket().exists() {
            let _ = self.command("down", &["--name", "test"]).output();
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn members(finished: &Finished) -> Vec<(String, u64)> {
    let summary = finished.event("summary");
    let members = summary["members"].as_array().expect("members");
    members.iter().map(|member| (member["name"].to_string(), member["bytes"].as_u64().expect("bytes"))).collect()
}

#[test]
fn several_processes_use_one_fleet_each_as_itself() {
    let Some(fleet) = Fleet::open() else { return };
    fleet.file("one", 6 << 20, 91);
    fleet.file("two", 5 << 20, 92);
    let up = fleet.up().expect(0).event("up");
    assert_eq!((&up["servers"], &up["absent"]), (&3.into(), &0.into()), "{up}");
    let second = fleet.up().expect(2);
    assert!(second.stderr.contains("a fleet named test is up already") && second.stderr.contains("fleet down"), "{second}");

    // Two at once, in directories and with masks of their own.
    let dirs = [fleet.sites.scratch().join("here"), fleet.sites.scratch().join("there")];
    for dir in &dirs {
        fs::create_dir(dir).expect("a directory");
    }
    let one = fleet.get_in(&dirs[0], "077", &["one", "got"]);
    let two = fleet.get_in(&dirs[1], "027", &["two", "got"]);
    for (finished, dir, name, mode) in [(one, &dirs[0], "one", 0o600), (two, &dirs[1], "two", 0o640)] {
        let finished = finished.wait(PATIENCE).expect(0);
        assert_eq!(members(&finished).len(), 3, "{finished}");
        assert_eq!(tree::hash(&dir.join("got")), tree::hash(&fleet.at(1).join(name)), "{name}");
        assert_eq!(dir.join("got").metadata().expect("its mode").mode() & 0o777, mode, "{name}");
    }
    // Back, and what the servers are.
    let put = ["--name", "test", "--json", "-r", "--replicas", "2", text(&dirs[0]), "back"];
    fleet.run("put", &put).expect(0);
    assert_eq!((1..=3).filter(|site| fleet.at(*site).join("back/here/got").exists()).count(), 2);
    let status = fleet.run("status", &["--name", "test", "--json"]).expect(0);
    let told: Vec<Value> =
        String::from_utf8_lossy(&status.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(told.len() == 3 && told.iter().all(|told| told["status"]["places"][0]["free_bytes"].as_u64() > Some(0)), "{status}");
    let table = fleet.run("status", &["--name", "test"]).expect(0);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.contains("DOES") && table.matches("rests").count() == 3, "{table}");

    // An interrupt is that job's alone, and so is the end of its process.
    let slow = ["-l", "100", "one", "slow"];
    let (interrupted, mut killed) = (fleet.get_in(&dirs[0], "022", &slow), fleet.get_in(&dirs[1], "022", &slow));
    let working = || {
        let status = fleet.run("status", &["--name", "test"]);
        String::from_utf8_lossy(&status.stdout).matches(" sends ").count() >= 2
    };
    assert!(eventually(PATIENCE, working), "nothing is sent");
    interrupted.signal(Signal::INT);
    killed.signal(Signal::KILL);
    interrupted.wait(PATIENCE).expect(130);
    assert!(eventually(PATIENCE, || !killed.runs()));
    assert_eq!(members(&fleet.get_in(&dirs[1], "022", &["one", "after"]).wait(PATIENCE).expect(0)).len(), 3);

    fleet.run("down", &["--name", "test"]).expect(0);
    assert!(fleet.listed().is_none() && !fleet.socket().exists());
    assert!(eventually(PATIENCE, || fleet.has_no_members()), "members are left");
    let after = fleet.run("get", &["--name", "test", "one", text(&dirs[0])]).expect(2);
    assert!(after.stderr.contains("no fleet named test is up") && after.stderr.contains("haul fleet up"), "{after}");
}

#[test]
fn members_end_with_a_killed_keeper_and_its_socket_is_replaced() {
    let Some(fleet) = Fleet::open() else { return };
    fleet.file("one", 100_000, 93);
    fleet.up().expect(0);
    kill_process(fleet.keeper(), Signal::KILL).expect("killed");
    assert!(eventually(PATIENCE, || fleet.has_no_members()), "members are left");
    assert!(fleet.socket().exists(), "that is what makes it a stale one");
    assert!(fleet.listed().is_none());
    fleet.up().expect(0);
    let target = fleet.sites.scratch().join("target");
    let got = fleet.get_in(fleet.sites.scratch(), "022", &["one", "target"]).wait(PATIENCE).expect(0);
    assert_eq!((members(&got).len(), tree::hash(&target)), (3, tree::hash(&fleet.at(1).join("one"))));
    fleet.run("down", &["--name", "test"]).expect(0);
}

#[test]
fn a_member_that_dies_is_noticed_and_started_again_for_the_next_job() {
    let Some(fleet) = Fleet::open() else { return };
    fleet.file("one", 3 << 20, 94);
    fleet.up().expect(0);
    for pid in fleet.remotes(2) {
        let _ = kill_process(pid, Signal::KILL);
    }
    let gone = || fleet.listed().is_some_and(|listed| listed["servers"] == 2 && listed["gone"] == 1);
    assert!(eventually(PATIENCE, gone), "{:?}", fleet.listed());
    let status = fleet.run("status", &["--name", "test"]).expect(1);
    assert!(status.stderr.contains("site2"), "{status}");
    let got = fleet.get_in(fleet.sites.scratch(), "022", &["one", "target"]).wait(PATIENCE).expect(0);
    assert_eq!(members(&got).len(), 3, "{got}");
    assert!(fleet.listed().is_some_and(|listed| listed["servers"] == 3 && listed["gone"] == 0));
    fleet.run("down", &["--name", "test"]).expect(0);
}

#[test]
fn another_user_gets_nothing() {
    let Some(fleet) = Fleet::open() else { return };
    fleet.up().expect(0);
    let ask = b"{\"v\":1,\"version\":\"0\",\"ask\":{\"terms\":{\"revive\":false}}}\n";
    let answer = |stream: std::io::Result<UnixStream>| {
        let mut stream = stream.expect("connected");
        let mut said = String::new();
        // It may be closed before all is written.
        let _ = stream.write_all(ask).and_then(|()| stream.shutdown(std::net::Shutdown::Write));
        let _ = stream.read_to_string(&mut said);
        said
    };
    assert!(answer(UnixStream::connect(fleet.socket())).contains("\"members\""));
    let mode = |path: &Path| path.metadata().expect("its mode").mode() & 0o777;
    assert_eq!((mode(&fleet.socket()), mode(fleet.socket().parent().expect("its directory"))), (0o600, 0o700));
    // The modes keep others out; where they were opened, the other end's user is looked at.
    let as_stranger = || {
        std::thread::scope(|scope| {
            let ask = || {
                let uid = Uid::from_raw(STRANGER);
                set_thread_res_uid(uid, uid, uid).expect("this thread is somebody else's");
                UnixStream::connect(fleet.socket()).map(|stream| answer(Ok(stream)))
            };
            scope.spawn(ask).join().expect("no panic")
        })
    };
    assert!(as_stranger().is_err(), "the directory is shut");
    fs::set_permissions(fleet.socket(), fs::Permissions::from_mode(0o666)).expect("opened");
    for dir in [fleet.runtime().join("haul"), fleet.runtime(), fleet.sites.scratch().to_owned()] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).expect("opened");
    }
    assert_eq!(as_stranger().expect("connected"), "");
    fs::set_permissions(fleet.runtime(), fs::Permissions::from_mode(0o700)).expect("shut");
    fs::set_permissions(fleet.socket().parent().expect("its directory"), fs::Permissions::from_mode(0o700)).expect("shut");
    fleet.run("down", &["--name", "test"]).expect(0);

    // Nor is a socket used that somebody else has put there.
    let dir = fleet.runtime().join("haul");
    let _listener = UnixListener::bind(dir.join("test.sock")).expect("a socket");
    rustix::fs::chown(&dir, Some(Uid::from_raw(STRANGER)), None).expect("given away");
    let refused = fleet.run("get", &["--name", "test", "a", "b"]).expect(2);
    assert!(refused.stderr.contains("it belongs to another user"), "{refused}");
    rustix::fs::chown(&dir, Some(Uid::ROOT), None).expect("taken back");
    fs::remove_file(dir.join("test.sock")).expect("removed");
}

#[test]
fn a_program_of_ones_own_has_a_session() {
    let Some(fleet) = Fleet::open() else { return };
    fleet.file("one", 300_000, 95);
    fleet.file("two", 200_000, 96);
    let hosts = (1..=3).map(|site| format!("site{site}:{}", fleet.at(site).display())).collect::<Vec<_>>().join(",");
    let target = fleet.sites.scratch().join("target");
    let mut command = fleet.sites.hub().command(example("session"));
    command.args([&hosts, "one", "two", text(&target)]).arg(fleet.sites.ssh_config());
    let finished = Running::start(command).wait(PATIENCE).expect(0);
    for name in ["one", "two"] {
        for at in [target.join("got"), fleet.at(1).join("sent/got"), fleet.at(3).join("sent/got")] {
            assert_eq!(tree::hash(&at.join(name)), tree::hash(&fleet.at(2).join(name)), "{name}: {finished}");
        }
    }
    assert_eq!(tree::names(&target.join("logs")).len(), 3, "a log for each job");
    assert!(eventually(PATIENCE, || fleet.has_no_members()), "members are left");
}

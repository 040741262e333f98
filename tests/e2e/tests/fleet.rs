//! Starting a fleet with real programs: sshd on three hosts, OpenMPI, Slurm. What starts it is the example `start_fleet`, which fetches a tree from each member.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use e2e::{Daemon, Finished, Host, Lab, Random, Running, Sites, eventually, example, haul_binary, pause, tree};
use haul_lab::LinkOptions;
use haul_units::BitRate;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

/// Three hosts whose users can log in to each other, and what lies on all of them.
struct Fleet {
    sites: Sites,
    data: PathBuf,
    got: PathBuf,
}

impl Fleet {
    fn open(rate: BitRate, size: u64) -> Option<Self> {
        let link = || LinkOptions { rate, rtt: Duration::from_millis(20), ..LinkOptions::default() };
        let sites = Sites::open(&[link(), link(), link()])?;
        let (data, got) = (sites.scratch().join("data"), sites.scratch().join("got"));
        for dir in [&data, &got] {
            fs::create_dir(dir).expect("a directory");
        }
        tree::write_random(&data.join("file"), size, &mut Random::seeded(71));
        // Those who have logged in find the names of the others as the client does.
        let script = format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", sites.ssh_config().display());
        program(&sites.scratch().join("bin/ssh"), &script);
        Some(Self { sites, data, got })
    }

    fn command(&self, way: &str, hosts: &str, more: &[&str]) -> Command {
        let mut command = self.sites.hub().command(example("start_fleet"));
        command.args([way, hosts, &format!("ssh={}", self.sites.ssh_config().display())]);
        command.arg(format!("from={}", self.data.join("file").display())).arg(format!("to={}", self.got.display()));
        command.args(more).env("XDG_CONFIG_HOME", self.sites.scratch()).env("XDG_STATE_HOME", self.sites.scratch());
        command
    }

    fn run(&self, way: &str, hosts: &str, more: &[&str]) -> Finished {
        Running::start(self.command(way, hosts, more)).wait(PATIENCE).expect(0)
    }

    /// `haul fleet get` of the file, which all hosts have, as its user types it; into `by-command`.
    fn get(&self, start: &str, hosts: &str, more: &[&str]) -> Command {
        self.get_from(start, &["-H", hosts], more)
    }

    fn get_from(&self, start: &str, hosts: &[&str], more: &[&str]) -> Command {
        let target = self.got.join("by-command");
        let _ = fs::remove_file(&target);
        let mut command = self.sites.haul(self.sites.hub());
        command.args(["fleet", "get", "--json", "-F"]).arg(self.sites.ssh_config()).args(["--start", start]).args(hosts);
        command.args(more).arg(self.data.join("file")).arg(target);
        command
    }

    /// That it was got whole, by as many members as there are.
    #[track_caller]
    fn assert_got(&self, finished: &Finished, members: usize) {
        let summary = events(finished, "summary").pop().unwrap_or_else(|| panic!("no summary: {finished}"));
        assert_eq!(summary["members"].as_array().map(Vec::len), Some(members), "{finished}");
        assert_eq!(tree::hash(&self.data.join("file")), tree::hash(&self.got.join("by-command")), "{finished}");
    }

    fn assert_fetched(&self, finished: &Finished, members: &[&str]) {
        assert_eq!(named(finished, "fetched"), members, "{finished}");
        for member in members {
            assert_eq!(tree::hash(&self.data.join("file")), tree::hash(&self.got.join(member)), "{member}");
            fs::remove_file(self.got.join(member)).expect("it was fetched");
        }
    }

    fn of_haul(&self, site: usize) -> Vec<rustix::process::Pid> {
        self.sites.site(site).processes(&["haul", "remote"])
    }

    #[track_caller]
    fn assert_no_process_left(&self, limit: Duration) {
        let left = || (1..=3).flat_map(|site| self.of_haul(site)).collect::<Vec<_>>();
        assert!(eventually(limit, || left().is_empty()), "processes left behind: {:?}", left());
    }

    /// What a login at a site runs, whatever it is asked to run.
    fn force(&self, site: usize, command: &str) {
        let dir = self.sites.scratch().join(format!("site{site}"));
        let key = fs::read_to_string(dir.join("user_key.pub")).expect("the user's key");
        fs::write(dir.join("authorized_keys"), format!("restrict,command=\"{command}\" {key}")).expect("written");
    }
}

fn program(path: &Path, script: &str) {
    fs::write(path, script).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its mode");
}

fn events(finished: &Finished, event: &str) -> Vec<Value> {
    let text = String::from_utf8_lossy(&finished.stdout);
    text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).filter(|value| value["event"] == event).collect()
}

/// Members of which this was told, in alphabetical order.
fn named(finished: &Finished, event: &str) -> Vec<String> {
    let mut names: Vec<_> = events(finished, event).iter().filter_map(|value| Some(value["name"].as_str()?.to_owned())).collect();
    names.sort();
    names
}

/// Why a host is not a member.
fn why(finished: &Finished, name: &str) -> String {
    let absent = events(finished, "absent").into_iter().find(|value| value["name"] == name);
    absent.unwrap_or_else(|| panic!("{name} is not absent: {finished}"))["why"].as_str().unwrap_or_default().to_owned()
}

/// One that has started its fleet and waits for a word.
struct Waiting {
    child: Child,
}

impl Waiting {
    fn start(mut command: Command) -> Self {
        use std::io::BufRead as _;
        let mut child = command.arg("wait").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
        let mut stdout = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        while !line.contains("\"started\"") {
            line.clear();
            assert_ne!(stdout.read_line(&mut line).expect("a line"), 0, "it ended without a fleet");
        }
        child.stdout = Some(stdout.into_inner());
        Self { child }
    }

    fn go_on(&mut self) {
        self.child.stdin.take().expect("not told yet").write_all(b"\n").expect("told");
    }

    fn output(self) -> String {
        String::from_utf8(self.child.wait_with_output().expect("its end").stdout).expect("lines of JSON")
    }
}

#[test]
fn the_representative_starts_the_others() {
    let Some(fleet) = Fleet::open(BitRate::mbps(500), 1 << 20) else { return };
    for more in [&[][..], &["dial-out"]] {
        let finished = fleet.run("ssh", "site1,site2,site3", more);
        fleet.assert_fetched(&finished, &["site1", "site2", "site3"]);
        fleet.assert_no_process_left(Duration::from_secs(10));
    }
    let finished = fleet.run("ssh-direct", "site1,site2,site3", &[]);
    fleet.assert_fetched(&finished, &["site1", "site2", "site3"]);
    fleet.assert_no_process_left(Duration::from_secs(10));
    for more in [&[][..], &["--dial-out"], &["--udp-port", "17000-17010"]] {
        let got = Running::start(fleet.get("ssh", "site1,site2,site3", more)).wait(PATIENCE).expect(0);
        fleet.assert_got(&got, 3);
        fleet.assert_no_process_left(Duration::from_secs(10));
    }
    // What is for mpirun is for no other way.
    let wrong = Running::start(fleet.get("ssh", "site1", &["--launcher-arg", "-v"])).wait(PATIENCE).expect(2);
    assert!(wrong.stderr.contains("--launcher-arg is for a program that starts all servers"), "{wrong}");
    fleet.assert_no_process_left(Duration::from_secs(20));
}

#[test]
fn members_outlive_the_representative_and_not_the_client() {
    let Some(fleet) = Fleet::open(BitRate::mbps(40), 6 << 20) else { return };
    let kill_representative = || {
        for pid in fleet.of_haul(1) {
            let _ = kill_process(pid, Signal::KILL);
        }
    };
    // Before anything is asked for, and in the middle of it.
    for before in [true, false] {
        let mut waiting = Waiting::start(fleet.command("ssh", "site1,site2,site3", &["idle=8"]));
        if before {
            kill_representative();
        }
        waiting.go_on();
        if !before {
            pause(Duration::from_millis(400));
            kill_representative();
        }
        let output = waiting.output();
        for member in ["site2", "site3"] {
            assert!(output.contains(&format!("\"fetched\",\"files\":1,\"name\":\"{member}\"")), "{output}");
            assert_eq!(tree::hash(&fleet.data.join("file")), tree::hash(&fleet.got.join(member)), "{member}");
        }
        assert!(!output.contains("\"files\":1,\"name\":\"site1\""), "site1 was killed too late: {output}");
        fleet.assert_no_process_left(Duration::from_secs(10));
        fs::remove_dir_all(&fleet.got).and_then(|()| fs::create_dir(&fleet.got)).expect("emptied");
    }
    // In the middle of a job by the command, the others do its work.
    let carried = || [2, 3].map(|site| fleet.sites.delivered_bytes(site));
    let before = carried();
    let running = Running::start(fleet.get("ssh", "site1,site2,site3", &["--dead-after", "8", "--limit-each", "6M"]));
    let all_bring = || carried().iter().zip(before).all(|(now, before)| now - before >= 1 << 18);
    assert!(eventually(PATIENCE, all_bring), "the others bring nothing");
    kill_representative();
    let finished = running.wait(PATIENCE).expect(0);
    fleet.assert_got(&finished, 3);
    let states = events(&finished, "progress").iter().map(|event| event["members"][0]["state"].clone()).collect::<Vec<_>>();
    assert!(states.iter().any(|state| state == "stalled" || state == "gone"), "it was over already: {states:?}");
    fleet.assert_no_process_left(Duration::from_secs(10));
    // The client is killed: its members hear nothing more, and end.
    let mut waiting = Waiting::start(fleet.command("ssh", "site1,site2,site3", &["idle=8"]));
    let alone = || (1..=3).all(|site| fleet.of_haul(site).len() == 1);
    assert!(eventually(Duration::from_secs(10), alone), "one member a host, and nothing besides, once the start is over");
    waiting.child.kill().expect("killed");
    waiting.child.wait().expect("its end");
    fleet.assert_no_process_left(Duration::from_secs(30));
}

#[test]
fn hosts_that_cannot_be_members_are_named_and_left_out() {
    let Some(fleet) = Fleet::open(BitRate::mbps(500), 1 << 10) else { return };
    fleet.force(2, "/nonexistent/haul remote");
    fleet.force(3, "echo Welcome; echo HAUL/1 '{\\\"failed\\\":{\\\"error\\\":\\\"of another version\\\"}}'; exit 2");
    for way in ["ssh", "ssh-direct"] {
        let finished = fleet.run(way, "site1,no-such-host.invalid,site2,site3", &[]);
        fleet.assert_fetched(&finished, &["site1"]);
        assert!(why(&finished, "no-such-host.invalid").contains("ssh could not log in"), "{finished}");
        assert!(why(&finished, "site2").contains("haul not found there"), "{finished}");
        assert!(why(&finished, "site3").contains("of another version"), "{finished}");
    }
    // Another host is the representative where the first is not there.
    fleet.force(2, "haul remote");
    let finished = fleet.run("ssh", "no-such-host.invalid,site1,site2", &[]);
    fleet.assert_fetched(&finished, &["site1", "site2"]);
    assert!(why(&finished, "no-such-host.invalid").contains("ssh could not log in"), "{finished}");
    fleet.assert_no_process_left(Duration::from_secs(10));
}

#[test]
fn a_member_serves_what_its_login_may() {
    let Some(fleet) = Fleet::open(BitRate::mbps(500), 1 << 10) else { return };
    fleet.force(2, &format!("haul remote --only cp --root {} --read-only", fleet.data.display()));
    fleet.force(3, "haul remote --only perf");
    let command =
        fleet.command("ssh", "site1,site2,site3", &[&format!("from={}", fleet.sites.scratch().join("ssh_config").display())]);
    let finished = Running::start(command).wait(PATIENCE).expect(0);
    assert!(why(&finished, "site3").contains("not for copies"), "{finished}");
    // The account of site1 may read all, the login of site2 what lies below its root.
    assert_eq!(named(&finished, "fetched"), ["site1"], "{finished}");
    assert_eq!(named(&finished, "failed"), ["site2"], "{finished}");
    let mut command = fleet.command("ssh", "site1,site2", &["from=file"]);
    command.arg("from=/file");
    let finished = Running::start(command).wait(PATIENCE).expect(0);
    assert!(named(&finished, "fetched").contains(&"site2".to_owned()), "{finished}");
    // To start others is to run commands: who may copy only may not.
    let finished = fleet.run("ssh", "site2", &[]);
    assert!(why(&finished, "site2").contains("not for commands"), "{finished}");
    fleet.assert_no_process_left(Duration::from_secs(10));
}

#[test]
fn who_sees_the_processes_of_a_node_cannot_be_a_member() {
    let Some(fleet) = Fleet::open(BitRate::mbps(500), 1 << 10) else { return };
    let mut waiting = Waiting::start(fleet.command("ssh", "site1,site2", &["idle=8"]));
    let [pid] = fleet.of_haul(2)[..] else { panic!("one member") };
    let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).expect("its words");
    let words: Vec<String> = line.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let word = words.iter().rfind(|word| word.len() > 100).expect("the invitation");
    // The same words, from another host, while the client listens.
    let mut thief = fleet.sites.site(3).command(haul_binary());
    thief.args(["remote", word]);
    let thief = Running::start(thief);
    pause(Duration::from_millis(500));
    waiting.go_on();
    let output = waiting.output();
    assert_eq!(output.matches("\"fetched\"").count(), 2, "{output}");
    let thief = thief.wait(PATIENCE);
    assert_eq!(thief.code, Some(2), "{thief}");
}

#[test]
fn daemons_are_members_as_they_are() {
    let Some(lab) = Lab::open() else { return };
    let (root, got) = (lab.place("root"), lab.place("got"));
    tree::write_random(&root.join("file"), 1 << 20, &mut Random::seeded(72));
    let daemon = Daemon::start(&lab, &root);
    let mut command = lab.near.command(example("start_fleet"));
    let config = lab.scratch().join(format!("config-{}", lab.near.namespace));
    // Nobody listens at the second one.
    let hosts = format!("{},haul://{}:7701", lab.far.address, lab.near.address);
    command.args(["daemon", &hosts]).env("XDG_CONFIG_HOME", &config).env("XDG_STATE_HOME", &config);
    command.args(["from=/data/file".to_owned(), format!("to={}", got.display())]);
    let finished = Running::start(command).wait(PATIENCE).expect(0);
    assert_eq!(named(&finished, "fetched"), std::slice::from_ref(&lab.far.address), "{finished}");
    assert!(why(&finished, &lab.near.address).contains("no answer over UDP"), "{finished}");
    assert_eq!(tree::hash(&root.join("file")), tree::hash(&got.join(&lab.far.address)));
    // The same by the command, there and back.
    let host = format!("haul://{}/data", lab.far.address);
    let fleet = |what: &str, words: &[&Path]| {
        let mut command = lab.haul(&lab.near);
        command.args(["fleet", what, "--json", "-H", &host]).args(words);
        Running::start(command).wait(PATIENCE).expect(0)
    };
    fleet("get", &["file".as_ref(), &got.join("by-command")]);
    assert_eq!(tree::hash(&root.join("file")), tree::hash(&got.join("by-command")));
    fleet("put", &[&got.join("by-command"), "back".as_ref()]);
    assert_eq!(tree::hash(&root.join("file")), tree::hash(&root.join("back/by-command")));
    let told = fleet("status", &[]);
    let status: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    assert!(status["status"]["places"][0]["total_bytes"].as_u64() > Some(0), "{told}");
    drop(daemon);
}

/// Whether a program is there; if not the test says so, and fails in CI.
fn has(program: &str) -> bool {
    let found = ["/usr/bin", "/usr/sbin", "/usr/local/bin"].iter().any(|dir| Path::new(dir).join(program).exists());
    if !found {
        skip::skip(format_args!("{program} is not installed (make setup)"));
    }
    found
}

#[test]
fn open_mpi_starts_members() {
    if !has("mpirun") {
        return;
    }
    let Some(fleet) = Fleet::open(BitRate::mbps(500), 1 << 20) else { return };
    let haul = format!("haul={}", haul_binary().display());
    let run = |hosts: &str, more: &[&str]| {
        let mut command = fleet.command("mpirun", hosts, &[&haul, "arg=--oversubscribe"]);
        command.args(more).envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
        Running::start(command).wait(PATIENCE).expect(0)
    };
    // Two names of this host: mpirun knows that they are one, and starts both.
    let finished = run("localhost,127.0.0.1", &[]);
    fleet.assert_fetched(&finished, &["127.0.0.1", "localhost"]);
    let finished = run("localhost", &["haul=/nonexistent/haul"]);
    assert!(why(&finished, "localhost").contains("haul not found there"), "{finished}");
    // The same by the command; here, and on a host that ssh reaches.
    let haul = haul_binary();
    let haul = haul.to_str().expect("UTF-8");
    for on in [&[][..], &["--launcher-on", "site1"]] {
        let words =
            [&["--remote-haul", haul, "--launcher-arg", "--oversubscribe", "--launcher-arg", "--allow-run-as-root"], on].concat();
        let command = fleet.get("mpirun", "localhost,127.0.0.1", &words);
        fleet.assert_got(&Running::start(command).wait(PATIENCE).expect(0), 2);
    }
    let missing =
        Running::start(fleet.get("mpirun", "localhost", &["--launcher", "/nonexistent/mpirun"])).wait(PATIENCE).expect(2);
    assert!(missing.stderr.contains("/nonexistent/mpirun"), "{missing}");
    let left = || fleet.sites.hub().processes(&["haul", "remote"]);
    assert!(eventually(Duration::from_secs(10), || left().is_empty()), "{:?}", left());
}

#[test]
fn open_mpi_starts_members_on_several_hosts() {
    if !has("mpirun") {
        return;
    }
    let Some(fleet) = Fleet::open(BitRate::mbps(100), 12 << 20) else { return };
    let haul = haul_binary().to_str().expect("UTF-8");
    // From outside, and on one of the hosts, whose mpirun starts its own member without ssh.
    let scratch = fleet.sites.scratch().display().to_string();
    let agent = format!("{scratch}/bin/ssh");
    for on in [&[][..], &["--launcher-on", "site2"]] {
        let mut words = vec!["--remote-haul", haul, "--call-back", "10.91.1.1", "--limit-each", "12M"];
        // What mpirun keeps of its run may outlive it, and is to go with the scratch directory.
        for word in ["--allow-run-as-root", "--mca", "plm_rsh_agent", &agent, "--mca", "orte_tmpdir_base", &scratch] {
            words.extend(["--launcher-arg", word]);
        }
        let running = Running::start(fleet.get("mpirun", "site1,site2,site3", &[&words, on].concat()));
        let members = || (1..=3).all(|site| fleet.of_haul(site).len() == 1);
        let is_started = eventually(PATIENCE, members);
        let finished = running.wait(PATIENCE).expect(0);
        assert!(is_started, "not one member on each host: {finished}");
        fleet.assert_got(&finished, 3);
        fleet.assert_no_process_left(Duration::from_secs(10));
    }
}

/// Slurm on one host, with three nodes, whose users munge vouches for.
struct Slurm {
    conf: PathBuf,
    daemons: Vec<Running>,
}

impl Slurm {
    fn start(host: &Host, dir: &Path) -> Self {
        fs::create_dir_all(dir.join("state")).expect("a directory");
        let name = rustix::system::uname().nodename().to_string_lossy().split('.').next().unwrap_or_default().to_owned();
        let place = dir.display();
        let conf = format!(
            "ClusterName=t\nSlurmctldHost={name}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\nCredType=cred/munge\n\
             AuthInfo=socket={place}/munge/socket\nSlurmctldPort=16817\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\n\
             AccountingStorageType=accounting_storage/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
             SlurmdParameters=config_overrides\nReturnToService=2\nStateSaveLocation={place}/state\nSlurmdSpoolDir={place}/spool-%n\n\
             SlurmdPidFile={place}/%n.pid\nSlurmdLogFile={place}/%n.log\nSlurmctldLogFile={place}/ctld.log\nSlurmctldPidFile={place}/ctld.pid\n\
             NodeName=n[1-3] NodeHostName={name} NodeAddr=127.0.0.1 Port=[17001-17003] CPUs=2 RealMemory=100\nPartitionName=p Nodes=n[1-3] Default=YES\n"
        );
        fs::write(dir.join("slurm.conf"), conf).expect("slurm.conf");
        let conf = dir.join("slurm.conf");
        let run = |program: &str, args: &[&str]| {
            // `ip netns exec` would hide the control groups, without which slurmd does not start.
            let mut command = Command::new("nsenter");
            command.arg(format!("--net=/run/netns/{}", host.namespace)).arg(program);
            command.args(args).env("SLURM_CONF", &conf).env("PATH", "/usr/bin:/usr/sbin:/bin:/sbin");
            Running::start(command)
        };
        let munge = dir.join("munge");
        fs::create_dir(&munge).expect("a directory");
        fs::write(munge.join("key"), Random::seeded(73).bytes(128)).expect("a key");
        fs::set_permissions(munge.join("key"), fs::Permissions::from_mode(0o600)).expect("its mode");
        let files = [("key-file", "key"), ("socket", "socket"), ("pid-file", "pid"), ("seed-file", "seed"), ("log-file", "log")]
            .map(|(option, name)| format!("--{option}={}", munge.join(name).display()));
        // The directory above is everybody's, which it minds unless it is told not to.
        let munged = [&["--foreground", "--force", "--origin=127.0.0.1"][..], &files.each_ref().map(String::as_str)].concat();
        let mut daemons = vec![run("munged", &munged)];
        assert!(eventually(PATIENCE, || munge.join("socket").exists()), "munged does not listen");
        daemons.push(run("slurmctld", &["-D"]));
        for node in ["n1", "n2", "n3"] {
            fs::create_dir_all(dir.join(format!("spool-{node}"))).expect("a directory");
            daemons.push(run("slurmd", &["-D", "-N", node]));
        }
        let slurm = Self { conf: conf.clone(), daemons };
        let idle = || {
            let states = host.command("sinfo").args(["-h", "-o", "%T %D"]).env("SLURM_CONF", &conf).output();
            states.is_ok_and(|states| states.stdout.starts_with(b"idle 3"))
        };
        assert!(eventually(PATIENCE, idle), "{}", fs::read_to_string(dir.join("ctld.log")).unwrap_or_default());
        slurm
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in &self.daemons {
            daemon.signal(Signal::TERM);
        }
        for daemon in self.daemons.drain(..) {
            daemon.wait(Duration::from_secs(20));
        }
    }
}

#[test]
fn slurm_starts_members() {
    if !(has("srun") && has("slurmctld") && has("slurmd") && has("munged")) {
        return;
    }
    let Some(fleet) = Fleet::open(BitRate::mbps(500), 1 << 20) else { return };
    let slurm = Slurm::start(fleet.sites.hub(), &fleet.sites.scratch().join("slurm"));
    let haul = format!("haul={}", haul_binary().display());
    let run = |hosts: &str, more: &[&str]| {
        let mut command = fleet.command("srun", hosts, &[&haul, "call-back=127.0.0.1"]);
        command.args(more).env("SLURM_CONF", &slurm.conf);
        Running::start(command).wait(PATIENCE).expect(0)
    };
    let finished = run("n[1-3]", &[]);
    fleet.assert_fetched(&finished, &["n1", "n2", "n3"]);
    // What there is not is named by Slurm; a node without haul by its name.
    let finished = run("n1,n7", &[]);
    assert!(why(&finished, "n7").contains("srun started nothing"), "{finished}");
    let finished = run("n[1-2]", &["haul=/nonexistent/haul"]);
    assert!(why(&finished, "n2").contains("haul not found there"), "{finished}");
    // The same by the command.
    let haul = haul_binary();
    let words =
        ["--remote-haul", haul.to_str().expect("UTF-8"), "--call-back", "127.0.0.1", "--launcher-arg", "--job-name=fleet"];
    let mut command = fleet.get("srun", "n[1-3]", &words);
    command.env("SLURM_CONF", &slurm.conf);
    fleet.assert_got(&Running::start(command).wait(PATIENCE).expect(0), 3);
    // Inside a job its nodes are the list.
    let mut command = fleet.get_from("srun", &[], &words);
    command.envs([("SLURM_JOB_NODELIST", "n[2-3]")]).env("SLURM_CONF", &slurm.conf);
    fleet.assert_got(&Running::start(command).wait(PATIENCE).expect(0), 2);
    let is_idle = || {
        let jobs = fleet.sites.hub().command("squeue").arg("-h").env("SLURM_CONF", &slurm.conf).output();
        jobs.is_ok_and(|jobs| jobs.status.success() && jobs.stdout.is_empty())
    };
    assert!(eventually(Duration::from_secs(20), is_idle), "a job is left");
}

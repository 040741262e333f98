//! `haul pipe`, `haul rsh` and `haul rsync`: programs connected across the network as if there were none.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::Duration;

use e2e::tree::{self, Exactness};
use e2e::{Finished, Lab, Random, Running, eventually, haul_binary, key, own_key, pause};
use rustix::process::Signal;

const PATIENCE: Duration = Duration::from_secs(60);

/// `haul pipe far -- LINE` on the near host.
fn command(lab: &Lab, line: &str) -> Command {
    let config = lab.ssh_config().to_owned();
    let mut command = lab.haul(&lab.near);
    command.args(["pipe", "-F"]).arg(config).args(["far", "--", line]);
    command
}

fn run(lab: &Lab, line: &str, input: impl Into<Stdio>) -> Finished {
    Running::start_with(command(lab, line), input.into()).wait(PATIENCE)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_command_s_streams_and_status_come_back() {
    let Some(lab) = Lab::open() else { return };
    let finished = run(&lab, "echo out; echo err >&2; exit 7", Stdio::null()).expect(7);
    assert_eq!((text(&finished.stdout).as_str(), finished.stderr.as_str()), ("out\n", "err\n"));
    assert_eq!(run(&lab, "kill -TERM $$", Stdio::null()).code, Some(128 + 15));
    assert_eq!(run(&lab, "no-such-program-at-all", Stdio::null()).code, Some(127));
    // It ends without having read its input.
    let endless = File::open("/dev/zero").expect("/dev/zero");
    run(&lab, "head -c 100000 >/dev/null", endless).expect(0);
    lab.assert_no_process_left(Duration::from_secs(10));
}

#[test]
fn every_byte_goes_there_and_back() {
    let Some(lab) = Lab::open() else { return };
    let file = lab.place("file").join("random");
    tree::write_random(&file, 30 << 20, &mut Random::seeded(71));
    let finished = run(&lab, "cat", File::open(&file).expect("the file")).expect(0);
    assert_eq!(blake3::hash(&finished.stdout), tree::hash(&file));
    let empty = run(&lab, "wc -c", Stdio::null()).expect(0);
    assert_eq!(text(&empty.stdout).trim(), "0");
}

#[test]
fn a_reader_that_has_gone_ends_the_writer() {
    let Some(lab) = Lab::open() else { return };
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
    let mut endless = command(&lab, "yes; echo $? >&2");
    let mut child = endless.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn().expect("haul");
    let mut some = [0; 1000];
    assert!(rustix::io::read(&reader, &mut some).expect("some of it") > 0);
    drop((reader, endless));
    assert!(eventually(PATIENCE, || child.try_wait().is_ok_and(|status| status.is_some())), "it writes for nobody");
    lab.assert_no_process_left(Duration::from_secs(10));
    assert!(lab.far.processes(&["yes"]).is_empty(), "the command goes on");
}

#[test]
fn a_client_that_is_killed_takes_its_command_along() {
    let Some(lab) = Lab::open() else { return };
    let running = Running::start(command(&lab, "exec sleep 4711"));
    assert!(eventually(PATIENCE, || !lab.far.processes(&["sleep 4711"]).is_empty()), "the command does not start");
    running.signal(Signal::KILL);
    running.wait(PATIENCE);
    assert!(eventually(PATIENCE, || lab.far.processes(&["sleep 4711"]).is_empty()), "the command goes on");
    lab.assert_no_process_left(Duration::from_secs(20));
}

/// A listening side on the far host, and the port and key that it says.
struct Listener {
    running: Running,
    said: std::path::PathBuf,
}

impl Listener {
    fn start(lab: &Lab, args: &[&str], input: Stdio) -> Self {
        let said = lab.place("said").join("stderr");
        let mut command = lab.haul(&lab.far);
        command.args(["pipe", "-l"]).args(args);
        // Standard error goes to a file, so that it can be read while the program runs.
        let mut shell = lab.far.command("sh");
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let words = command.get_args().skip_while(|arg| *arg != OsStr::new("pipe")).map(OsStr::to_owned);
        shell.arg("-c").arg("exec \"$0\" \"$@\" 2>\"$SAID\"").arg(haul_binary()).args(words).env("SAID", &said);
        let running = Running::start_with(shell, input);
        assert!(eventually(PATIENCE, || fs::read_to_string(&said).is_ok_and(|text| text.contains('\n'))), "it does not listen");
        Self { running, said }
    }

    /// The port and the fingerprint that it says.
    fn whereabouts(&self) -> (String, String) {
        let text = fs::read_to_string(&self.said).expect("what it said");
        let words: Vec<&str> = text.split_whitespace().collect();
        let key = words.iter().find(|word| word.starts_with("SHA256:")).expect("a fingerprint");
        (words.last().expect("a port").to_string(), key.to_string())
    }
}

fn connect(lab: &Lab, args: &[&str], input: impl Into<Stdio>) -> Finished {
    let mut command = lab.haul(&lab.near);
    command.arg("pipe").args(args);
    Running::start_with(command, input.into()).wait(PATIENCE)
}

#[test]
fn two_hosts_without_ssh() {
    let Some(lab) = Lab::open() else { return };
    let file = lab.place("file").join("random");
    tree::write_random(&file, 20 << 20, &mut Random::seeded(72));
    let answer = lab.place("answer").join("text");
    fs::write(&answer, "the answer\n").expect("a file");
    key(&lab, &lab.far, &["authorize", &own_key(&lab, &lab.near)]);

    let listener = Listener::start(&lab, &["-s", &lab.far.address], File::open(&answer).expect("the answer").into());
    let (port, key) = listener.whereabouts();
    let there = connect(&lab, &["--key", &key, &lab.far.address, &port], File::open(&file).expect("the file")).expect(0);
    assert_eq!(text(&there.stdout), "the answer\n");
    let here = listener.running.wait(PATIENCE).expect(0);
    assert_eq!(blake3::hash(&here.stdout), tree::hash(&file));
}

#[test]
fn who_is_not_authorised_or_not_known_is_refused() {
    let Some(lab) = Lab::open() else { return };
    let listener = Listener::start(&lab, &["-k"], Stdio::null());
    let (port, key) = listener.whereabouts();
    let address = lab.far.address.clone();
    let unknown = connect(&lab, &[&address, &port], Stdio::null()).expect(2);
    assert!(unknown.stderr.contains("its key is not known") && unknown.stderr.contains("haul key trust"), "{unknown}");
    let wrong = key.chars().rev().collect::<String>();
    connect(&lab, &["--key", &wrong, &address, &port], Stdio::null()).expect(2);
    let other = own_key(&lab, &lab.near);
    let another = connect(&lab, &["--key", &other, &address, &port], Stdio::null()).expect(2);
    assert!(another.stderr.contains("another key answers"), "{another}");
    let refused = connect(&lab, &["--key", &key, &address, &port], Stdio::null()).expect(2);
    assert!(refused.stderr.contains("haul key authorize"), "{refused}");

    e2e::key(&lab, &lab.far, &["authorize", &other]);
    for round in ["one\n", "two\n"] {
        let file = lab.place("line").join("line");
        fs::write(&file, round).expect("a file");
        connect(&lab, &["--key", &key, &address, &port], File::open(&file).expect("it")).expect(0);
    }
    listener.running.signal(Signal::TERM);
    let ended = listener.running.wait(PATIENCE).expect(0);
    assert_eq!(text(&ended.stdout), "one\ntwo\n");
}

#[test]
fn a_connection_that_breaks_is_not_an_end() {
    let Some(lab) = Lab::open() else { return };
    key(&lab, &lab.far, &["authorize", &own_key(&lab, &lab.near)]);
    let listener = Listener::start(&lab, &[], Stdio::null());
    let (port, key) = listener.whereabouts();
    let mut sender = lab.haul(&lab.near);
    sender.args(["pipe", "--key", &key, &lab.far.address, &port]);
    let sender = Running::start_with(sender, File::open("/dev/zero").expect("/dev/zero").into());
    pause(Duration::from_millis(1500));
    sender.signal(Signal::INT);
    sender.wait(PATIENCE).expect(130);
    // Half of a stream must not look like all of it.
    listener.running.wait(PATIENCE).expect(2);
}

/// rsync with haul as its remote shell, on the near host.
fn rsync(lab: &Lab, args: &[&OsStr]) -> Finished {
    let shell = format!("{} rsh -F {}", haul_binary().display(), lab.ssh_config().display());
    let mut command = lab.haul(&lab.near);
    command.args(["rsync", "-e", &shell]).args(args);
    Running::start(command).wait(PATIENCE)
}

#[test]
fn rsync_works_as_over_ssh() {
    let Some(lab) = Lab::open() else { return };
    if Command::new("rsync").arg("--version").output().is_err() {
        return skip::skip("rsync is not installed (make setup)");
    }
    let mut random = Random::seeded(73);
    let source = lab.place("tree");
    tree::make_varied(&source.join("varied"), &mut random);
    tree::make_many(&source.join("many"), 200, &mut random);
    let place = lab.place("copy");
    let far = |path: &std::path::Path| format!("far:{}/", path.display());
    let from = format!("{}/", source.display());
    // To the nanosecond: rsync else takes two times within a second for the same.
    let exact = "--modify-window=-1".as_ref();
    let up = [OsStr::new("-aHS"), exact, "--delete".as_ref(), from.as_ref(), far(&place).as_ref()].map(OsStr::to_owned);
    let up: Vec<&OsStr> = up.iter().map(AsRef::as_ref).collect();
    rsync(&lab, &up).expect(0);
    tree::assert_same(&source, &place, Exactness::Everything);

    // Only what changed crosses the network, and what is gone goes.
    fs::remove_dir_all(source.join("many/dir0")).expect("removing");
    symlink("elsewhere", source.join("new link")).expect("a link");
    let before = lab.bytes_carried();
    rsync(&lab, &up).expect(0);
    tree::assert_same(&source, &place, Exactness::Everything);
    assert!(lab.bytes_carried() - before < 600_000, "{} bytes for nothing new", lab.bytes_carried() - before);

    let back = lab.place("back");
    let target = format!("{}/", back.display());
    rsync(&lab, &["-aHS".as_ref(), exact, far(&place).as_ref(), target.as_ref()]).expect(0);
    tree::assert_same(&source, &back, Exactness::Everything);

    let missing = rsync(&lab, &["-a".as_ref(), "far:/no/such/place".as_ref(), target.as_ref()]).expect(23);
    assert!(missing.stderr.contains("No such file"), "{missing}");
    let nobody = rsync(&lab, &["-a".as_ref(), "nobody.invalid:/x".as_ref(), target.as_ref()]);
    // 255 is its shell's; rsync looks for that only once, and says 12 where the shell has closed its output and not quite ended.
    assert!(matches!(nobody.code, Some(255 | 12)) && nobody.stderr.contains("ssh could not log in"), "{nobody}");
    let mut shell = lab.haul(&lab.near);
    shell.args(["rsh", "-F"]).arg(lab.ssh_config()).args(["nobody.invalid", "true"]);
    Running::start(shell).wait(PATIENCE).expect(255);
    lab.assert_no_process_left(Duration::from_secs(10));
}

//! Copies through a stand-in for ssh, which runs the far side's command on this machine: everything of the bootstrap but the login.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

use crate::support::{Bench, HAUL, Run, STAND_IN, noise};

/// A place with the stand-in and the homes of two hosts.
pub fn bench() -> Bench {
    let bench = Bench::new();
    for host in ["far", "other"] {
        fs::create_dir(bench.path(host)).unwrap();
    }
    bench.script("ssh", STAND_IN);
    bench
}

pub fn cp(bench: &Bench, args: &[&str]) -> Run {
    let ssh = bench.path("bin/ssh");
    bench.haul([&["cp", "-S", ssh.to_str().unwrap()], args].concat())
}

fn calls(bench: &Bench) -> String {
    fs::read_to_string(bench.path("bin/ssh.calls")).unwrap()
}

#[test]
fn up_and_down() {
    let bench = bench();
    let original = fs::read(bench.file("file", 2_000_000)).unwrap();
    cp(&bench, &["file", "far:"]).expect(0).says(&["copied 1 file", "verified"]);
    assert_eq!(fs::read(bench.path("far/file")).unwrap(), original);
    cp(&bench, &["me@far:file", "back"]).expect(0);
    assert_eq!(fs::read(bench.path("back")).unwrap(), original);
    cp(&bench, &["scp://far:2222/file", "-"]).expect(0);
    let absolute = format!("far:{}", bench.path("far/abs").display());
    cp(&bench, &["file", &absolute]).expect(0);
    assert!(bench.path("far/abs").exists());
}

#[test]
fn paths_start_at_home_and_patterns_are_expanded_there() {
    let bench = bench();
    for name in ["far/a.log", "far/b.log", "far/[x].log", "far/dir/c.log", "far/dir/.d.log"] {
        bench.file(name, 100);
    }
    fs::create_dir(bench.path("here")).unwrap();
    let names = || {
        let entries = fs::read_dir(bench.path("here")).unwrap().map(|entry| entry.unwrap());
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        fs::remove_dir_all(bench.path("here")).unwrap();
        fs::create_dir(bench.path("here")).unwrap();
        names.sort();
        names
    };
    for (sources, expected) in [
        (&["far:*.log"][..], &["[x].log", "a.log", "b.log"][..]),
        (&["far:~/a.log"], &["a.log"]),
        (&["far:~/d*/?.log", "far:b.*"], &["b.log", "c.log"]),
        (&["far:[x].log"], &["[x].log"]),
    ] {
        cp(&bench, &[sources, &["here"]].concat()).expect(0);
        assert_eq!(names(), expected, "{sources:?}");
    }
    cp(&bench, &["far:*.none", "far:a.log", "here"]).expect(1).says(&["*.none: no match", "copied 1 file"]);
    // The home itself, as a source and as a target.
    cp(&bench, &["far:", "here"]).expect(1).says(&["is a directory: not copied without -r"]);
    bench.file("x", 10);
    for (target, place) in [("far:", "far/x"), ("far:~", "far/x"), ("far:~/dir", "far/dir/x"), ("far:~/y", "far/y")] {
        let _ = fs::remove_file(bench.path(place));
        cp(&bench, &["x", target]).expect(0);
        assert!(bench.path(place).exists(), "{target}");
    }
}

#[test]
fn several_sources_need_a_directory_that_is_there() {
    let bench = bench();
    for name in ["a", "b", "far/a", "far/b", "other/c"] {
        bench.file(name, 10);
    }
    for args in [&["a", "b", "far:new"][..], &["far:a", "far:b", "new"], &["far:a", "other:c", "new"]] {
        cp(&bench, args)
            .expect(2)
            .says(&["new: is not a directory, and several sources need one", "hint: make the directory first"]);
    }
    assert!(!bench.path("far/new").exists() && !bench.path("new").exists());
}

#[test]
fn a_path_may_start_at_another_user_s_home() {
    let bench = bench();
    fs::create_dir(bench.path("here")).unwrap();
    // A user of every system, whose home has something to read.
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let user = users.lines().find(|line| line.split(':').nth(5) == Some("/bin")).and_then(|line| line.split(':').next());
    let user = user.expect("`bin`, at home in /bin");
    cp(&bench, &[&format!("far:~{user}/cat"), &format!("far:~{user}/tru[e]"), "here"]).expect(0).says(&["copied 2 files"]);
    for name in ["cat", "true"] {
        assert_eq!(fs::read(bench.path("here").join(name)).unwrap(), fs::read(format!("/bin/{name}")).unwrap());
    }
    // Who is no user is part of a name.
    bench.file("far/~nobody-at-all/x", 10);
    cp(&bench, &["far:~nobody-at-all/x", "here"]).expect(0);
    assert!(bench.path("here/x").exists());
}

#[test]
fn trees_from_several_hosts() {
    let bench = bench();
    bench.file("far/tree/sub/a", 1000);
    bench.file("other/b", 1000);
    fs::create_dir(bench.path("here")).unwrap();
    let run = cp(&bench, &["-r", "far:tree", "other:b", "far:tree/sub/a", "here"]).expect(0);
    run.says(&["copied 3 files"]);
    for name in ["here/tree/sub/a", "here/b", "here/a"] {
        assert_eq!(fs::read(bench.path(name)).unwrap(), noise(1000), "{name}");
    }
    let logins = calls(&bench).lines().filter(|line| !line.contains(" -G ")).count();
    assert_eq!(logins, 2, "one login a host");
    // One host that does not answer: the other's files still come.
    let run = cp(&bench, &["nobody:x", "other:b", "here"]).expect(1);
    run.says(&["error: nobody:", "copied 1 file"]);
}

/// What is typed has no `--` before the host.
const TYPED: &str = r#"
case " $* " in *" -- "*) ;; *)
    while :; do case $1 in -p | -l) shift 2 ;; *) break ;; esac; done
    set -- -- "$@" ;;
esac
"#;

#[test]
fn what_is_hinted_for_a_copy_from_host_to_host_copies() {
    let bench = bench();
    bench.script("ssh", &[TYPED, STAND_IN].concat());
    let original = fs::read(bench.file("far/a tree/it's", 1000)).unwrap();
    let path = |command: &mut std::process::Command| {
        let path = command.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
        format!("{}:{}", bench.path("bin").display(), path.display())
    };
    for (args, arrives) in [
        (&["-r", "far:a tree", "other:"][..], "other/a tree/it's"),
        (&["-3", "-P", "2222", "me@far:a tree/it's", "scp://you@other:2200/b%25"], "other/b%"),
        (&["-l", "80000", "far:~/a?tree/*", "other:c d"], "other/c d"),
    ] {
        let refused = bench.haul([&["cp"], args].concat()).expect(2);
        let hinted = refused.stderr.split('`').nth(1).unwrap();
        let mut typed = bench.command::<&str>([]);
        let path = path(&mut typed);
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", hinted]).current_dir(bench.path("")).env_clear().env("PATH", path).env("HOME", bench.path("home"));
        Run::from(shell.output().unwrap()).expect(0);
        assert_eq!(fs::read(bench.path(arrives)).unwrap(), original, "{hinted}");
    }
}

#[test]
fn standard_streams() {
    let bench = bench();
    let ssh = bench.path("bin/ssh");
    let data = noise(300_000);
    bench.haul_with_input(["cp", "-S", ssh.to_str().unwrap(), "-", "far:stream"], &data).expect(0);
    assert_eq!(fs::read(bench.path("far/stream")).unwrap(), data);
    assert_eq!(cp(&bench, &["far:stream", "-"]).expect(0).stdout, data);
    bench.haul_with_input(["cp", "-S", ssh.to_str().unwrap(), "-", "far:"], &data).says(&["needs a file name"]);
}

#[test]
fn a_reader_that_has_enough_is_nobody_s_fault() {
    let bench = bench();
    bench.file("far/big", 20_000_000);
    let ssh = bench.path("bin/ssh");
    let (reader, writer) = std::io::pipe().unwrap();
    let command = ["cp", "-S", ssh.to_str().unwrap(), "far:big", "-"];
    let mut child = bench.command(command).stdout(Stdio::from(writer)).stderr(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(reader);
    reader.fill_buf().unwrap();
    drop(reader);
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(1), ""));
}

#[test]
fn what_is_no_file_is_a_note_and_no_failure() {
    let bench = bench();
    bench.file("tree/file", 10);
    rustix::fs::mknodat(rustix::fs::CWD, bench.path("tree/pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bench.path("tree/socket")).unwrap();
    cp(&bench, &["-r", "tree", "far:"]).expect(0).says(&[
        "note: tree/pipe: is a device, socket or named pipe: skipped",
        "note: tree/socket: is a device, socket or named pipe: skipped",
    ]);
    cp(&bench, &["-r", "far:tree", "back"]).expect(0);
    assert!(bench.path("back/file").exists() && !bench.path("back/pipe").exists() && !bench.path("back/socket").exists());
    cp(&bench, &["tree/pipe", "far:"]).expect(1).says(&["error: tree/pipe: is a device"]);
}

#[test]
fn ssh_gets_its_options_and_no_secret() {
    let bench = bench();
    bench.file("x", 10);
    let args = "-P 2222 -i key -J jump -F conf -o User=me -4 -q -B -c aes128-ctr x you@far:";
    cp(&bench, &args.split(' ').collect::<Vec<_>>()).expect(0);
    let calls = calls(&bench);
    let login = calls.lines().find(|line| !line.contains(" -G ")).unwrap();
    let (login, greeting) = login.rsplit_once(' ').unwrap();
    assert!(
        login.ends_with(
            "-F conf -i key -J jump -o User=me -o BatchMode=yes -o Ciphers=aes128-ctr -p 2222 -l you -4 -q -- far haul remote"
        ),
        "{login}"
    );
    // Public all of it: versions, the fingerprint of the key that will connect, what the far side is to listen on, TLS' ClientHello.
    let greeting = data_encoding::BASE64URL_NOPAD.decode(greeting.as_bytes()).unwrap();
    let greeting: serde_json::Map<String, Value> = serde_json::from_slice(&greeting).unwrap();
    let public = [
        "bootstrap",
        "version",
        "client",
        "family",
        "udp_ports",
        "controller",
        "stream_window",
        "dead_after_s",
        "filler",
        "remembered",
        "opening",
        "carries",
    ];
    assert!(greeting.keys().all(|key| public.contains(&key.as_str())), "{greeting:?}");
    assert!(greeting["client"].as_str().unwrap().starts_with("SHA256:"), "{greeting:?}");
}

#[test]
fn ports_can_be_chosen_and_used_up() {
    let bench = bench();
    bench.file("x", 10);
    let taken = UdpSocket::bind("[::]:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    cp(&bench, &["--udp-port", &port, "x", "far:"]).expect(2).says(&["error: far:", &port, "hint: on far:", "--udp-port"]);
    drop(taken);
    cp(&bench, &["--udp-port", &port, "x", "far:"]).expect(0);
}

#[test]
fn a_far_side_without_haul() {
    let bench = bench();
    bench.file("x", 10);
    cp(&bench, &["--remote-haul", "/no/such/haul", "x", "far:"])
        .expect(2)
        .says(&["error: far: haul not found there", "--remote-haul PATH"]);
    // A name that needs quoting, and a home directory that the far side knows.
    let odd = bench.path("far/my haul's");
    fs::create_dir(&odd).unwrap();
    std::os::unix::fs::symlink(HAUL, odd.join("haul")).unwrap();
    cp(&bench, &["--remote-haul", odd.join("haul").to_str().unwrap(), "x", "far:"]).expect(0);
    cp(&bench, &["--remote-haul", "~/my haul's/haul", "x", "far:"]).expect(0);
    cp(&bench, &["--remote-haul", "/bin/true", "x", "far:"])
        .expect(2)
        .says(&["ended without an answer", "far /bin/true --version`"]);
    cp(&bench, &["--remote-haul", "/bin/false", "x", "far:"]).expect(2).says(&["status 1"]);
}

#[test]
fn ssh_itself_fails() {
    let bench = bench();
    bench.file("x", 10);
    bench.haul(["cp", "-S", "/no/such/ssh", "x", "far:"]).expect(2).says(&["/no/such/ssh: No such file", "-S PROGRAM"]);
    let refuses = bench.script("refuses", "echo 'Permission denied (publickey).' >&2; exit 255");
    let run = bench.haul(["cp", "-S", refuses.to_str().unwrap(), "x", "far:"]).expect(2);
    run.says(&["Permission denied (publickey).", "far: ssh could not log in", "refuses far true` must work first"]);
    let closed = bench.script("closed", "echo 'This account is closed.'; exit 1");
    bench.haul(["cp", "-S", closed.to_str().unwrap(), "x", "far:"]).expect(2).says(&["(it printed: This account is closed.)"]);
}

#[test]
fn udp_that_does_not_come_through_is_noticed() {
    let bench = bench();
    bench.file("x", 10);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    // A far side that says it listens where nobody answers.
    let key = bench.key();
    let answer = format!(
        r#"HAUL/1 {{"ready":{{"version":"0","port":{port},"server":"{key}","token":"AAAA","addresses":["127.0.0.1"]}}}}"#
    );
    let deaf = bench.script("deaf", &format!("echo '{answer}'; cat > /dev/null"));
    let run = bench.haul(["cp", "-S", deaf.to_str().unwrap(), "x", "127.0.0.1:"]).expect(2);
    run.says(&[
        &format!("error: no answer over UDP from 127.0.0.1:{port} within 5 s"),
        "hint: the firewall at 127.0.0.1 lets no UDP in to this port, or the one here no answer back; if some ports are open there",
    ]);
}

/// Once the handshake has come through ssh, whoever uses the connection finds out.
#[test]
fn udp_that_does_not_come_through_is_noticed_by_every_command() {
    let bench = bench();
    bench.file("x", 10);
    bench.file("far/x", 10);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let ssh = bench.script("elsewhere", &changing(&format!(r#"s/"port":[0-9]*/"port":{port}/"#)));
    let ssh = ssh.to_str().unwrap();
    let commands: [&[&str]; 6] = [
        &["cp", "--transport", "udp", "-S", ssh, "x", "far:y"],
        &["cp", "--transport", "udp", "-S", ssh, "far:x", "y"],
        &["pipe", "--transport", "udp", "-S", ssh, "far", "--", "cat"],
        &["rsh", "--transport", "udp", "--ssh", ssh, "far", "true"],
        &["perf", "--transport", "udp", "-S", ssh, "far"],
        &["proxy", "--transport", "udp", "-S", ssh, "far", "-L", "0:localhost:1"],
    ];
    let running = commands.map(|args| bench.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    for child in running {
        let run = Run::from(child.wait_with_output().unwrap());
        run.says(&[
            &format!("error: no answer over UDP from far:{port} within 5 s"),
            "hint: the firewall at far lets no UDP in to this port, or the one here no answer back; if",
            "--udp-port RANGE",
        ]);
    }
}

/// As behind a forwarded port: only the far side knows an address at which UDP reaches it.
#[test]
fn the_address_that_answers_is_taken() {
    let bench = bench();
    bench.file("x", 10);
    for (to, nowhere) in [("1", "192.0.2.1"), ("2", "2001:db8::1")] {
        let ssh = bench.script("forwarded", &STAND_IN.replace("hostname 127.0.0.1", &format!("hostname {nowhere}")));
        let run = bench.haul(["cp", "-vv", "-S", ssh.to_str().unwrap(), "x", &format!("far:{to}")]).expect(0);
        run.says(&["carried=true"]);
        assert_eq!(fs::read(bench.path("far").join(to)).unwrap(), noise(10));
    }
}

/// The stand-in, with a far side whose answer is changed by this command of sed.
fn changing(how: &str) -> String {
    STAND_IN.replace("exec /bin/sh -c \"$*\"", &format!("exec /bin/sh -c \"$* | sed -u '{}'\"", how.replace('"', "\\\"")))
}

#[test]
fn the_handshake_goes_through_ssh_and_over_udp_where_it_cannot() {
    let bench = bench();
    bench.file("x", 10);
    cp(&bench, &["-vv", "x", "far:1"]).expect(0).says(&["carried=true"]);
    // No answer; one that has lost its beginning; one with other bytes at its end.
    let changes =
        [r#"s/,"answer":"[^"]*"//"#, r#"s/"answer":"..../"answer":"/"#, r#"s/\("answer":"[^"]*\)[^"]\{6\}"/\1AAAAAA"/"#];
    for (to, how) in ["2", "3", "4"].into_iter().zip(changes) {
        let ssh = bench.script("changes", &changing(how));
        let run =
            bench.haul(["cp", "-vv", "--transport", "udp", "-S", ssh.to_str().unwrap(), "x", &format!("far:{to}")]).expect(0);
        run.says(&["carried=false"]);
        assert_eq!(fs::read(bench.path("far").join(to)).unwrap(), noise(10));
    }
}

#[test]
fn another_version_at_the_far_side_is_named() {
    let bench = bench();
    bench.file("x", 10);
    let later = bench.script("later", r#"echo 'HAUL/1 {"listening":1}'"#);
    bench
        .haul(["cp", "-S", later.to_str().unwrap(), "x", "far:"])
        .expect(2)
        .says(&["another version", "same version of haul on both hosts"]);
    let mut remote = bench.command(["remote"]);
    let mut child = remote.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"{\"bootstrap\":99,\"version\":\"9.9\",\"client\":\"x\"}\n")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(answer.contains("HAUL/1 {\"failed\"") && answer.contains("9.9"), "{answer}");
}

#[test]
fn a_far_side_that_dies_is_noticed_soon() {
    let bench = bench();
    bench.file("far/file", 12 << 20);
    let ssh = bench
        .script("marked", &STAND_IN.replace("exec /bin/sh -c \"$*\"", "echo $$ > \"$HOME/pid\"; exec /bin/sh -c \"exec $*\""));
    let args = ["cp", "--json", "-l", "16M", "-S", ssh.to_str().unwrap(), "far:file", "copy"];
    let mut child = bench.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let arrived = |line: String| serde_json::from_str::<Value>(&line).unwrap()["bytes_arrived"].as_u64();
    assert!(lines.any(|line| arrived(line).is_some_and(|bytes| bytes > 0)));
    let id = fs::read_to_string(bench.path("far/pid")).unwrap().trim().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), rustix::process::Signal::KILL).unwrap();
    let last: Value = serde_json::from_str(&lines.last().unwrap()).unwrap();
    assert_eq!(last["exit_status"], 2);
    Run::from(child.wait_with_output().unwrap())
        .expect(2)
        .says(&["far: ssh ended in the middle of the copy", "hint: the same command goes on"]);
    cp(&bench, &["far:file", "copy"]).expect(0).says(&["were there from an interrupted copy"]);
}

#[test]
fn nothing_is_left_running_at_the_far_side() {
    let bench = bench();
    bench.file("x", 10);
    // The far side tells its process id before it becomes haul.
    let ssh = bench.script("marked", &STAND_IN.replace("exec /bin/sh -c", "echo $$ > \"$HOME/pid\"; exec /bin/sh -c"));
    bench.haul(["cp", "-S", ssh.to_str().unwrap(), "x", "far:"]).expect(0);
    let id = fs::read_to_string(bench.path("far/pid")).unwrap();
    // Nobody waits for it: it ends by itself, and ssh with it.
    let id = rustix::process::Pid::from_raw(id.trim().parse().unwrap()).unwrap();
    let Ok(far_side) = rustix::process::pidfd_open(id, rustix::process::PidfdFlags::empty()) else { return };
    let mut end = [PollFd::new(&far_side, PollFlags::IN)];
    let within = Timespec { tv_sec: 20, tv_nsec: 0 };
    assert_eq!(poll(&mut end, Some(&within)).unwrap(), 1, "the far side stays");
}

/// As where the far side's keys allow one command only: its words are not those of the near side.
#[test]
fn a_far_side_with_a_command_of_its_own_is_greeted_on_standard_input() {
    let bench = bench();
    bench.file("x", 10);
    let ssh = bench.script("forced", &STAND_IN.replace("exec /bin/sh -c \"$*\"", "exec haul remote"));
    bench.haul(["cp", "-S", ssh.to_str().unwrap(), "x", "far:"]).expect(0);
    assert_eq!(fs::read(bench.path("far/x")).unwrap(), noise(10));
}

#[test]
fn quickstart_remembers_both_ways() {
    let bench = bench();
    let original = fs::read(bench.file("file", 30_000_000)).unwrap();
    let paths = bench.path("config/haul/paths");
    cp(&bench, &["file", "far:up"]).expect(0);
    assert!(!paths.exists(), "other modes keep nothing");
    for _ in 0..2 {
        cp(&bench, &["--mode", "quickstart", "file", "far:up"]).expect(0);
        cp(&bench, &["--mode", "quickstart", "far:up", "down"]).expect(0);
        assert!(fs::read(bench.path("down")).unwrap() == original);
        let kept = fs::read_to_string(&paths).unwrap();
        let entries: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let ways: Vec<_> = entries.iter().map(|entry| (entry["host"].as_str(), entry["way"].as_str())).collect();
        assert_eq!(ways, [(Some("far"), Some("to")), (Some("far"), Some("from"))], "{kept}");
    }
    // What somebody else has written there does no harm.
    let absurd =
        r#"{"host":"far","way":"to","at":1,"path":{"bandwidth_bps":18446744073709551615,"min_rtt_us":0,"base_loss":-1.0}}"#;
    fs::write(&paths, format!("nonsense\n{absurd}\n")).unwrap();
    cp(&bench, &["--mode", "quickstart", "file", "far:up"]).expect(0);
    assert_eq!(fs::read_to_string(&paths).unwrap().lines().count(), 1);
}

/// Nobody is there to say so: ssh has ended, and the far side is not heard.
#[test]
fn a_shell_whose_far_side_was_killed_ends() {
    let bench = bench();
    let ssh = bench.path("bin/ssh");
    let words = ["rsh", "--ssh", ssh.to_str().unwrap(), "--dead-after", "3600", "far", "kill -9 $PPID; exec sleep 20"];
    bench.haul(words).expect(255).says(&["far: ssh ended in the middle"]);
}

#[test]
fn what_is_about_ssh_alone_is_handed_over_without_our_words() {
    let bench = bench();
    let words = bench.script("words", "echo \"$@\"");
    let words = words.to_str().unwrap();
    for ours in [["--transport", "tcp"], ["--relay", "r:7701"], ["--bootstrap-from", "/none"], ["--mode", "fair"]] {
        let run = bench.haul([&["rsh", "--bootstrap", "--ssh", words], &ours[..], &["-G", "far"]].concat()).expect(0);
        assert_eq!(run.text(), "-G far\n", "{ours:?}");
    }
}

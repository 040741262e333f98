//! Wrong and right ways to call the program: exit status and messages.

use std::process::Stdio;

use crate::support::Bench;

#[test]
fn wrong_usage_is_status_2_and_says_what_is_wrong() {
    let bench = Bench::new();
    for (args, says) in [
        ("", "Usage: haul"),
        ("move a b", "unrecognized subcommand 'move'"),
        ("cp", "one or more sources are needed, then the target"),
        ("cp a", "SOURCE... TARGET"),
        ("cp -Z a h:b", "unexpected argument '-Z'"),
        ("cp -D server a h:b", "-D is about sftp"),
        ("cp -P x a h:b", "invalid value 'x' for '-P <PORT>': not a whole number"),
        ("cp -P 70000 a h:b", "it may be 0 to 65535"),
        ("cp --retries 99999999999 a h:b", "it may be 0 to 4294967295"),
        ("cp -l 10MB a h:b", "`10MB` is not a rate"),
        ("cp --udp-port 9-1 a h:b", "for instance 7700 or 60000-60100"),
        ("cp --mode vegas a h:b", "write fair, quickstart, modest, aggressive, "),
        ("cp -4 -6 a h:b", "cannot be used with"),
        ("cp a b", "both on this machine"),
        ("cp h:a g:b", "both on other hosts"),
        ("cp -3 h:a g:b", "`ssh h haul cp a g:b`"),
        ("cp -R me@h:a haul://g/pub", "`ssh -l me h haul cp a haul://g:7700/pub`"),
        ("cp -3rp -P 2222 -i key --delete h:a scp://g:22/b", "`ssh -i key -p 2222 h haul cp -r -p --delete a scp://g:22/b`"),
        ("cp haul://h/pub/a g:b", "`ssh g haul cp haul://h:7700/pub/a b`"),
        ("cp haul://h/pub/a haul://g/pub", "run haul on one of the two"),
        ("cp haul:///pub/a .", "haul:///pub/a: no host named: write haul://HOST/ROOT/path"),
        ("cp -- a -oProxyCommand=x:b", "not a host name"),
        ("cp haul://h/ .", "no root named"),
        ("cp haul:// .", "haul://: no host named: write haul://HOST/ROOT/path"),
        ("cp haul:///pub/x .", "haul:///pub/x: no host named"),
        ("ctl pause all", "not a whole number"),
        ("cp haul://me@h/pub .", "keys, not users"),
        ("cp sftp://h/a .", "only scp:// and haul://"),
        ("cp --json h:a -", "both need standard output"),
        ("cp --verify read-back h:a -", "standard output cannot be read back"),
        ("cp --verify read-back --no-verify a h:b", "cannot be used with"),
        ("cp --changed maybe a h:b", "possible values: take, fail, retry"),
        ("cp - - h:a", "only once"),
        ("serve", "--root"),
        ("serve --root /srv", "write NAME=PATH"),
        ("serve --root a/b=/srv", "no name for a root"),
        (
            "serve --root x=/no/such/dir:rx",
            "/no/such/dir:rx: No such file or directory\nhint: is the directory there? What stands behind it",
        ),
        ("serve --root x=/etc/passwd", "not a directory"),
        ("serve --root x=/tmp --root x=/", "named twice"),
        ("serve --root x=/tmp --listen nowhere", "for instance 192.0.2.1:7700"),
        ("key trust host nonsense", "not a fingerprint"),
        ("key revoke nobody", "neither an authorised key nor a trusted host"),
        ("perf", "<HOST>"),
        ("perf mesh ./no-such-hosts b", "./no-such-hosts: No such file"),
        ("perf -c", "a value is required"),
        ("perf -s -c host", "cannot be used with"),
        ("perf mesh a b -P 0", "0 streams"),
        ("perf mesh a b -i 0.001", "10ms"),
        ("perf host -p 9", "--ssh-port"),
        ("perf haul://host -p 9", "haul://HOST:PORT"),
        ("perf host --key SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "-c HOST"),
        ("perf -c host:0", "not a port"),
        ("perf -c me@host", "not a host"),
        ("perf -c host -P 0", "0 streams"),
        ("perf -c host -P 1000", "1 to 128"),
        ("perf -c host -t 0", "nothing would be measured"),
        ("perf -c host -i 0.001", "10ms"),
        ("perf -c host -l 4M", "at most"),
        ("perf -c host -t 5 -n 5", "cannot be used with"),
        ("perf -c host -b fast", "a rate in bits per second"),
        ("perf -c host --mode turbo", "turbo"),
        ("perf -c host --congestion bbr", "--tcp"),
        ("perf -c 127.0.0.1 -B 192.0.2.9", "an address of this machine"),
        ("perf -oProxyCommand=x", "<HOST>"),
        ("perf -c host --no-pacing -R", "cannot be used with"),
        ("perf -c host --paths 0", "it may be 1 to 8"),
        ("perf -c host --paths 9", "it may be 1 to 8"),
        ("perf -c host --paths 2 --tcp", "cannot be used with"),
        ("cp --paths 0 a b", "it may be 1 to 8"),
        ("cp --paths 9 a b", "it may be 1 to 8"),
        ("lab run", "NAME"),
        ("lab run sharring", "did you mean `sharing`"),
        ("lab run nonsense", "paths, company, blocked\n"),
        ("lab run zzz", "loss, rtt, startup, sharing, pacing"),
        ("lab run loss --sim-only --real", "cannot be used with"),
        ("lab run loss --tools scp", "only copies files"),
        ("lab run loss --tools ftp", "no tool `ftp`"),
        ("lab wan up --rtt 50", "`50` has no unit: write for instance 50ms or 50s"),
        ("lab wan up --beside 1M,40", "write the rate, the round-trip time"),
        ("lab wan up --loss 150%", "`150%` is more than all packets"),
        ("lab bench --loss 150%", "`150%` is more than all packets"),
        ("completions tcsh", "invalid value 'tcsh'"),
    ] {
        bench.haul(args.split_whitespace()).expect(2).says(&[says, "error:"][..if args.is_empty() { 1 } else { 2 }]);
    }
}

#[test]
fn a_file_that_is_called_like_an_option_is_what_the_tip_is_for() {
    let bench = Bench::new();
    let call = || bench.haul(["cp", "-Z", "h:b"]).expect(2);
    assert!(!call().stderr.contains("as a value"), "{}", call().stderr);
    bench.file("-Z", 1);
    call().says(&["to pass '-Z' as a value, use '-- -Z'"]);
}

#[test]
fn help_and_version_are_status_0() {
    let bench = Bench::new();
    for (args, says) in [
        ("--help", "Commands:"),
        ("cp --help", "Exit status: 0"),
        ("serve --help", "read-only unless"),
        ("key trust --help", "FINGERPRINT"),
        ("perf --help", "iperf3"),
        ("--version", env!("CARGO_PKG_VERSION")),
    ] {
        let run = bench.haul(args.split(' ')).expect(0);
        assert!(run.text().contains(says), "{args}: {}", run.text());
        assert!(run.stderr.is_empty());
    }
    let help = bench.haul(["--help"]).expect(0).text();
    assert!(help.contains("\n  perf") && help.contains("\n  remote"), "{help}");
}

#[test]
fn acts_by_its_name() {
    let bench = Bench::new();
    for name in ["hcp", "hperf"] {
        std::os::unix::fs::symlink(crate::support::HAUL, bench.path("bin").join(name)).unwrap();
    }
    let call = |name: &str, args: &[&str]| {
        let mut command = std::process::Command::new(bench.path("bin").join(name));
        crate::support::Run::from(command.args(args).output().unwrap())
    };
    call("hcp", &["a", "b"]).expect(2).says(&["both on this machine"]);
    assert!(call("hcp", &["--help"]).expect(0).text().contains("Usage: hcp [OPTIONS] SOURCE... TARGET"));
    call("hperf", &["-c", "host", "-P", "0"]).expect(2).says(&["0 streams"]);
}

#[test]
fn a_closed_standard_output_is_not_a_panic() {
    let bench = Bench::new();
    for args in [["completions", "bash"].as_slice(), &["man"], &["key", "show"], &["cp", "--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = bench.command(args).stdout(Stdio::from(writer)).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("panicked"), "{args:?}: {stderr}");
    }
}

/// Nobody has read what did not fit on the disk: it must not look as if it were there.
#[test]
fn output_that_finds_no_room_is_no_success() {
    let bench = Bench::new();
    for args in [["key", "show"].as_slice(), &["config"], &["man"], &["ctl", "list"], &["completions", "bash"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = bench.command(args).stdout(full).output().unwrap();
        let run = crate::support::Run::from(output).expect(1).says(&["error: standard output: No space left on device"]);
        assert_eq!(run.stderr.lines().count(), 1, "{args:?}: {}", run.stderr);
    }
}

#[test]
fn a_port_that_is_taken_is_said_to_be_and_the_address_once() {
    let bench = Bench::new();
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let root = format!("x={}", bench.path("home").display());
    for args in [
        ["serve", "--root", &root, "--listen", &address].as_slice(),
        &["pipe", "-l", &port.to_string()],
        &["proxy", "serve", "--to", "localhost:80", "-p", &port.to_string(), "-B", "127.0.0.1"],
        &["perf", "-s", "-p", &port.to_string(), "-B", "127.0.0.1"],
    ] {
        let run = bench.haul(args).expect(2).says(&["Address already in use\nhint: "]);
        assert!(!run.stderr.contains("os error"), "{args:?}: {}", run.stderr);
        assert_eq!(run.stderr.matches("cannot bind").count(), 1, "{args:?}: {}", run.stderr);
    }
}

#[test]
fn what_stands_in_the_place_of_ssh_ends_with_ssh_s_own_status() {
    let bench = Bench::new();
    bench.haul(["rsh", "-Z", "host", "true"]).expect(255).says(&["unexpected argument '-Z'"]);
    // Before anything logs in.
    bench.haul(["rsh", "--ssh", "/none", "-W", "nonsense", "host"]).expect(255).says(&["-W nonsense: HOST:PORT is wanted"]);
    bench.haul(["rsh", "--help"]).expect(0);
}

#[test]
fn a_filter_of_the_log_that_is_none_is_said_and_nothing_fails_for_it() {
    let bench = Bench::new();
    let run = |filter: &str| {
        crate::support::Run::from(bench.command(["rsh", "-L", "1:a:1", "host"]).env("HAUL_LOG", filter).output().unwrap())
            .expect(255)
    };
    run("haul=loud").says(&["HAUL_LOG: error parsing level filter", "it counts for nothing\n", "with haul rsh"]);
    for sound in ["", "debug", "warn,haul_udp=trace"] {
        let run = run(sound);
        assert!(!run.stderr.contains("HAUL_LOG"), "{sound}: {}", run.stderr);
    }
}

#[test]
fn keys_are_kept() {
    let bench = Bench::new();
    let key = bench.key();
    assert_eq!(bench.key(), key, "made once");
    assert!(key.starts_with("SHA256:") && key.len() == 50);
    bench.haul(["key", "authorize", &key, "--name", "alice at home"]).expect(0);
    bench.haul(["key", "trust", "haul://Far/pub", &key]).expect(0);
    let list = bench.haul(["key", "list"]).expect(0).text();
    assert_eq!(list, format!("trusted     {key}  haul://far:7700\nauthorised  {key}  alice at home  everything\n"));
    let other = Bench::new().key();
    bench.haul(["key", "trust", "far:7700", &other]).expect(2).says(&["another key is trusted", "--replace"]);
    bench.haul(["key", "trust", "far", &other, "--replace"]).expect(0);
    bench.haul(["key", "revoke", &key]).expect(0);
    bench.haul(["key", "revoke", "far"]).expect(0);
    let run = bench.haul(["key", "list"]).expect(0).says(&["no host is trusted, and no key authorised, in ", "config/haul"]);
    assert_eq!(run.text(), "", "a script reads no entries");
}

#[test]
fn a_key_that_others_can_read_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    bench.key();
    let path = bench.path("config/haul/identity");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o640)).unwrap();
    bench.haul(["key", "show"]).expect(2).says(&["others may read this private key", "hint: chmod 600"]);
}

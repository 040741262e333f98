//! The configuration file, and what runs at the end of a copy.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::ssh::{bench, cp};
use crate::support::{Bench, HAUL, Run, noise};

fn write(bench: &Bench, text: &str) {
    fs::create_dir_all(bench.path("config/haul")).unwrap();
    fs::set_permissions(bench.path("config/haul"), Permissions::from_mode(0o755)).unwrap();
    fs::write(bench.path("config/haul/config.toml"), text).unwrap();
    fs::set_permissions(bench.path("config/haul/config.toml"), Permissions::from_mode(0o644)).unwrap();
}

fn calls(bench: &Bench) -> String {
    fs::read_to_string(bench.path("bin/ssh.calls")).unwrap()
}

#[test]
fn a_hosts_own_words_reach_its_copy_alone() {
    let bench = bench();
    bench.file("far/x", 1000);
    bench.file("other/y", 1000);
    fs::create_dir(bench.path("here")).unwrap();
    write(&bench, &format!("[host.\"o*\"]\nremote-haul = \"{HAUL}\"\n\n[host.far]\nremote-haul = '/nowhere/haul'\n"));
    // One of several hosts has a haul elsewhere, and fails; the other one does not.
    cp(&bench, &["far:x", "other:y", "here"]).expect(1).says(&["/nowhere/haul"]);
    assert_eq!(fs::read(bench.path("here/y")).unwrap(), noise(1000));
    assert!(!bench.path("here/x").exists() && calls(&bench).contains(&format!("{HAUL} remote")));
    // The command line counts more.
    cp(&bench, &["--remote-haul", HAUL, "far:x", "here"]).expect(0);
    // What is not about copies does not need the file.
    fs::write(bench.path("config/haul/config.toml"), "nonsense").unwrap();
    bench.haul(["--version"]).expect(0);
    bench.haul(["key", "show"]).expect(0);
}

#[test]
fn what_is_wrong_is_named_by_file_and_line() {
    let bench = bench();
    bench.file("x", 10);
    for (text, line, part) in [
        ("[defaults]\nmood = 'fair'\n", 2, "there is no `mood`"),
        ("[defaults]\n\nlimit = '2X'\n", 3, "invalid value '2X' for '--limit"),
        ("[host.far\n", 1, "unclosed table"),
        ("[host.far]\nmode = 'polite'\n", 2, "polite"),
    ] {
        write(&bench, text);
        let at = format!("haul/config.toml:{line}: ");
        bench.haul(["config", "check"]).expect(2).says(&[&at, part, "hint: "]);
        cp(&bench, &["x", "far:"]).expect(2).says(&[&at, part]);
    }
    assert!(!bench.path("far/x").exists());
    write(&bench, "[defaults]\non-success = 'true'\n");
    fs::set_permissions(bench.path("config/haul/config.toml"), Permissions::from_mode(0o666)).unwrap();
    cp(&bench, &["x", "far:"]).expect(2).says(&["config.toml: others may write to it"]);
}

#[test]
fn a_remote_shell_a_proxy_and_a_fleet_read_it_too() {
    let bench = bench();
    let ssh = bench.path("bin/ssh").display().to_string();
    bench.file("far/x", 1000);
    bench.file("other/x", 1000);
    let run = |words: &[&str]| bench.haul(words.iter().copied());
    write(&bench, &format!("[host.\"o*\"]\nremote-haul = \"{HAUL}\"\n\n[host.far]\nremote-haul = '/nowhere/haul'\n"));
    run(&["rsh", "--ssh", &ssh, "me@far", "true"]).expect(255).says(&["/nowhere/haul"]);
    run(&["rsh", "--ssh", &ssh, "other", "exit 7"]).expect(7);
    run(&["rsh", "far", "--ssh", &ssh, "--remote-haul", HAUL, "exit 8"]).expect(8);
    run(&["proxy", "-S", &ssh, "far", "-L", "0:localhost:1"]).expect(2).says(&["/nowhere/haul"]);
    run(&["proxy", "connect", "-S", &ssh, "me@far", "-L", "0:localhost:1"]).expect(2).says(&["/nowhere/haul"]);
    run(&["fleet", "get", "-S", &ssh, "-H", "far", "x", "got"]).expect(2).says(&["/nowhere/haul"]);
    run(&["fleet", "get", "-S", &ssh, "-H", "other", "x", "got"]).expect(0);
    assert_eq!(fs::read(bench.path("got")).unwrap(), noise(1000));
    // They are reached in one way, which the command line may say.
    let both = |more: &[&str]| run(&[&["fleet", "status", "-S", &ssh, "-H", "far,other"], more].concat());
    both(&[]).expect(2).says(&["remote-haul: /nowhere/haul for far (", "config.toml:5", HAUL, "hint: say --remote-haul"]);
    both(&["--remote-haul", HAUL]).expect(0);
    // A limit is each server's own, and no time of day.
    write(&bench, &format!("[defaults]\nremote-haul = \"{HAUL}\"\n[host.far]\nlimit = '08:00-18:00=1G'\n"));
    let put = |more: &[&str]| run(&[&["fleet", "put", "-S", &ssh, "-H", "far,other"], more, &["got", "new"]].concat());
    put(&[]).expect(2).says(&["08:00-18:00=1G", "config.toml:4", "--limit-each"]);
    put(&["--limit-each", "1G"]).expect(0);
    // A daemon's client among them: whoever serves reads nothing.
    write(&bench, "[defaults]\nmood = 'fair'\n");
    run(&["rsh", "--ssh", &ssh, "far", "true"]).expect(255).says(&["there is no `mood`"]);
    run(&["proxy", "-S", &ssh, "far", "-L", "0:localhost:1"]).expect(2).says(&["there is no `mood`"]);
    run(&["fleet", "status", "-S", &ssh, "-H", "far"]).expect(2).says(&["there is no `mood`"]);
}

/// rsync starts the remote shell, which reads the file.
#[test]
fn rsync_with_haul_reads_it_too() {
    let bench = bench();
    if !["/usr/bin/rsync", "/bin/rsync"].iter().any(|path| fs::exists(path).unwrap()) {
        return skip::skip("rsync is not installed (make setup)");
    }
    bench.file("tree/x", 1000);
    let run = |words: &[&str]| -> Run {
        let mut command = bench.command([&["rsync"], words, &["-r", "tree/", "far:copied"]].concat());
        let path = format!("{}:/usr/bin:/bin", bench.path("bin").display());
        command.env("PATH", path).output().unwrap().into()
    };
    write(&bench, "[host.far]\nremote-haul = '/nowhere/haul'\n");
    run(&[]).says(&["/nowhere/haul"]);
    assert!(!bench.path("far/copied").exists());
    // The command line counts more.
    run(&["--remote-haul", HAUL]).expect(0);
    assert_eq!(fs::read(bench.path("far/copied/x")).unwrap(), noise(1000));
    // A copy's own options do not disturb it.
    bench.file("tree/y", 2000);
    write(&bench, &format!("[defaults]\nlimit = '1G'\nretries = 3\n\n[host.far]\nremote-haul = '{HAUL}'\ntransport = 'ssh'\n"));
    run(&[]).expect(0);
    assert_eq!(fs::read(bench.path("far/copied/y")).unwrap(), noise(2000));
    write(&bench, "[defaults]\nmood = 'fair'\n");
    run(&[]).says(&["there is no `mood`"]);
}

#[test]
fn what_holds_for_a_host_is_shown_with_where_it_comes_from() {
    let bench = bench();
    let path = bench.path("config/haul/config.toml");
    let none = bench.haul(["config"]).expect(0).text();
    assert!(none.starts_with(&format!("{}: not there", path.display())), "{none}");
    write(&bench, "[defaults]\nretries = 3\n");
    let one = bench.haul(["config", "check"]).expect(0).text();
    assert!(one.starts_with(&format!("{}: 1 table, 1 value\n", path.display())), "{one}");
    write(&bench, "[defaults]\nretries = 3\n\n[host.'dtn*']\nlimit = '2G'\n");
    let files = bench.haul(["config", "check"]).expect(0).text();
    assert!(files.starts_with(&format!("{}: 2 tables, 2 values", path.display())), "{files}");
    let text = bench.haul(["config", "dtn1.example.org"]).expect(0).text();
    let row = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("no {key} in {text}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("limit"), format!("limit 2G {}:5 [host.\"dtn*\"]", path.display()));
    assert_eq!(row("retries"), format!("retries 3 {}:2 [defaults]", path.display()));
    assert_eq!(row("mode"), "mode fair haul's own default");
    assert_eq!(row("remote-haul"), "remote-haul - haul's own default");
}

#[test]
fn a_hook_runs_at_the_end_and_is_told_how_it_was() {
    let bench = bench();
    bench.file("x", 1000);
    write(
        &bench,
        "[defaults]\non-success = 'echo \"$HAUL_STATUS $HAUL_FILES $HAUL_BYTES $HAUL_TARGET\" >>hook; echo told'\non-failure = 'echo \"$HAUL_STATUS $HAUL_ERROR\" >>hook'\n",
    );
    let hooked = || fs::read_to_string(bench.path("hook")).unwrap_or_default();
    let run = cp(&bench, &["x", "far:a b;c"]).expect(0);
    assert_eq!(hooked(), "0 1 1000 far:a b;c\n");
    assert!(run.stderr.contains("told") && run.stdout.is_empty(), "{}", run.stderr);
    cp(&bench, &["-n", "x", "far:"]).expect(0);
    assert_eq!(hooked().lines().count(), 1, "not after a dry run");
    cp(&bench, &["x", "nowhere/missing", "far:"]).expect(1);
    cp(&bench, &["--remote-haul", "/nowhere/haul", "x", "far:"]).expect(2);
    let lines = hooked();
    let lines: Vec<_> = lines.lines().collect();
    assert!(lines.len() == 3 && lines[1].starts_with("1 ") && lines[2].starts_with("2 far: "), "{lines:?}");
    // The command line's own comes in the file's place; one that fails is said.
    cp(&bench, &["--on-success", "exit 3", "x", "far:"]).expect(1).says(&["--on-success: exit 3: exit status: 3"]);
    assert_eq!(hooked().lines().count(), 3);
    // What fails before anything is copied is a failure as well.
    cp(&bench, &["--files-from", "missing", ".", "far:"]).expect(2).says(&["error: missing: "]);
    assert!(hooked().lines().nth(3).is_some_and(|line| line.starts_with("2 missing: ")), "{}", hooked());
}

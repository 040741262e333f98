//! The commands of docs/use, as a reader types them: every block ```` ```sh run ```` of a page is run, one after the other, and must end well.
//!
//! A page has a network namespace of its own, in which the names of its hosts are this machine, 192.0.2.7 and 198.51.100.7 are addresses of it, a stand-in for ssh
//! runs the far side's command in a directory of that host, and daemons have the ports that they have by default. Comments in the page say what is there before and
//! after:
//!
//! ```text
//! <!-- given: photos/a.jpg host:logs/b.log /srv/pub/c -->   files, here, in a host's home, or below /srv
//! ```sh run                      typed here
//! ```sh run server               typed on that host
//! ```sh run server background    typed there, and left running; the next block waits until it listens
//! <!-- then: host:photos/a.jpg -->                          files that are there now
//! ```

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The program under test.
const HAUL: &str = env!("CARGO_BIN_EXE_haul");

/// Names of hosts in documents; each is this machine, with a home of its own.
const HOSTS: &[&str] =
    &["host", "host1", "host2", "nas", "far", "server", "client", "dbhost", "a", "b", "c", "store01", "store02", "store03", "gw"];

/// Explains itself, and runs the command in the home of the host that is named.
const SSH: &str = r#"#!/bin/sh
case " $* " in *" -- "*) while [ "$1" != "--" ]; do [ "$1" = "-G" ] && explain=yes; shift; done; shift ;; esac
host=${1#*@}; shift
[ -n "$explain" ] && { echo "user me"; echo "hostname 127.0.0.1"; exit 0; }
HOME=$ROOT/hosts/$host; export HOME
XDG_CONFIG_HOME=$HOME/.config; export XDG_CONFIG_HOME
SSH_CONNECTION="127.0.0.1 50000 127.0.0.1 22"; export SSH_CONNECTION
cd "$HOME" && exec /bin/sh -c "$*"
"#;

/// What a page's script begins with. `left` starts a command and waits until it says that it listens.
const PRELUDE: &str = r#"
set -eu
ip link set lo up
for here in 192.0.2.7 198.51.100.7; do ip address add $here/32 dev lo; done
cp /etc/hosts "$ROOT/names"; for name in $HOSTS; do echo "127.0.0.1 $name" >>"$ROOT/names"; done
mount --bind "$ROOT/names" /etc/hosts
mount -t tmpfs srv /srv
mount -t tmpfs memory /dev/shm
at() {
    if [ "$1" = here ]; then HOME=$ROOT/home; cd "$ROOT/work"; else HOME=$ROOT/hosts/$1; cd "$HOME"; fi
    export HOME; XDG_CONFIG_HOME=$HOME/.config; export XDG_CONFIG_HOME
}
ready() {
    for i in $(seq 200); do
        grep -qiE 'listen|serving' "$1" && return 0
        sleep 0.1
    done
    echo "what was left running does not listen after 20 s:"; cat "$1"; exit 1
}
path() {
    case $1 in
    /*) echo "$1" ;;
    *:*) echo "$ROOT/hosts/${1%%:*}/${1#*:}" ;;
    *) echo "$ROOT/work/$1" ;;
    esac
}
given() {
    for name; do
        file=$(path "$name"); mkdir -p "$(dirname "$file")"
        case $name in */) mkdir -p "$file" ;; *) head -c 100000 /dev/urandom >"$file" ;; esac
    done
}
there() {
    for name; do test -e "$(path "$name")" || { echo "$name is not there:"; find "$ROOT/work" "$ROOT/hosts" /srv | head -60; exit 1; }; done
}
"#;

/// Pages whose commands need what a test has not got, each with what that is; what they tell is parsed all the same (args/documents.rs).
const ELSEWHERE: &[(&str, &str)] = &[
    ("bench", "root, the other tools, and minutes"),
    ("experiments", "minutes; tests/cli/experiments.rs runs each for a moment"),
    ("install", "another machine: scripts/roots.sh installs each way into a clean root"),
    ("lab", "root and /dev/net/tun: tests/lab.rs runs its blocks"),
    ("pace", "root and eBPF: tests/pace.rs"),
    ("rsh", "the programs that call it: tests/e2e/tests/shells.rs"),
    ("ssh", "sshd and its authorized_keys: tests/e2e/tests/logins.rs"),
    ("tcp", "root and eBPF: tests/tcp.rs, haul-tcp/tests/kernel"),
    ("windows", "another system: scripts/windows.sh test copies under Wine"),
];

/// One step of a page.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Given(String),
    Then(String),
    Run { host: String, background: bool, script: String },
}

#[test]
fn what_the_pages_say_works() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/use");
    let mut failed = Vec::new();
    let mut run = 0;
    let mut entries: Vec<_> = fs::read_dir(pages).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for page in entries {
        let name = page.file_stem().unwrap().to_string_lossy().into_owned();
        let steps = steps(&fs::read_to_string(&page).unwrap());
        let blocks = steps.iter().filter(|step| matches!(step, Step::Run { .. })).count();
        let excused = ELSEWHERE.iter().any(|(known, _)| *known == name);
        assert!(
            excused || blocks > 0,
            "no block of docs/use/{name}.md is run: mark them with `sh run`, or say why not in ELSEWHERE"
        );
        if blocks > 0 {
            run += blocks;
            failed.extend(play(&steps).err().map(|said| format!("docs/use/{name}.md:\n{said}")));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(run > 20, "only {run} blocks were run");
}

#[test]
fn a_command_that_fails_and_a_file_that_is_missing_are_seen() {
    let play = |text: &str| play(&steps(text));
    assert_eq!(play("<!-- given: x -->\n```sh run\nhaul cp x host:y\n```\n<!-- then: host:y -->\n"), Ok(()));
    assert!(play("```sh run\nhaul cp missing host:y\ntrue\n```\n").unwrap_err().contains("missing"));
    assert!(
        play("<!-- given: x -->\n```sh run\nhaul cp x host:y\n```\n<!-- then: host:z -->\n")
            .unwrap_err()
            .contains("host:z is not there")
    );
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut block: Option<(Vec<String>, String)> = None;
    for line in text.lines() {
        if let Some((words, script)) = &mut block {
            if line.starts_with("```") {
                if words.first().is_some_and(|word| word == "run") {
                    let host = words[1..].iter().find(|word| *word != "background").map_or("here", String::as_str).to_owned();
                    let background = words.iter().any(|word| word == "background");
                    steps.push(Step::Run { host, background, script: std::mem::take(script) });
                }
                block = None;
            } else {
                script.push_str(line);
                script.push('\n');
            }
        } else if let Some(kind) = line.strip_prefix("```") {
            let words = kind.split_whitespace().skip(usize::from(kind.starts_with("sh"))).map(str::to_owned);
            let words = if kind.starts_with("sh ") { words.collect() } else { Vec::new() };
            block = Some((words, String::new()));
        } else if let Some(names) = said(line, "given") {
            steps.push(Step::Given(names));
        } else if let Some(names) = said(line, "then") {
            steps.push(Step::Then(names));
        }
    }
    steps
}

fn said(line: &str, what: &str) -> Option<String> {
    let names = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.strip_prefix(what)?.strip_prefix(": ")?;
    Some(names.to_owned())
}

/// Runs the steps in a namespace of their own; what was said where one failed.
fn play(steps: &[Step]) -> Result<(), String> {
    let dir = TempDir::new().unwrap();
    let root = dir.path();
    for made in
        ["home", "work", "bin"].iter().map(|name| root.join(name)).chain(HOSTS.iter().map(|host| root.join("hosts").join(host)))
    {
        fs::create_dir_all(made).unwrap();
    }
    let ssh = root.join("bin/ssh");
    fs::write(&ssh, SSH).unwrap();
    fs::set_permissions(&ssh, Permissions::from_mode(0o755)).unwrap();
    let script = root.join("page");
    fs::write(&script, written(steps)).unwrap();
    let mut command = Command::new("timeout");
    command.args(["120", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.arg("sh").arg(&script).env_clear().stdin(Stdio::null());
    let path =
        format!("{}:{}:/usr/sbin:/usr/bin:/sbin:/bin", root.join("bin").display(), Path::new(HAUL).parent().unwrap().display());
    command.env("PATH", path).env("ROOT", root).env("HOSTS", HOSTS.join(" ")).env("XDG_RUNTIME_DIR", root.join("home"));
    let output = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(()) } else { Err(format!("{}: {said}", output.status)) }
}

fn written(steps: &[Step]) -> String {
    let mut text = PRELUDE.to_owned();
    let mut left = 0;
    for step in steps {
        let _ = match step {
            Step::Given(names) => writeln!(text, "given {names}"),
            Step::Then(names) => writeln!(text, "there {names}"),
            Step::Run { host, background: false, script } => {
                writeln!(text, "cat <<'SHOWN'\n{script}SHOWN\n(at {host}\n{script})")
            }
            Step::Run { host, background: true, script } => {
                left += 1;
                writeln!(text, "(at {host}\n{script}) >\"$ROOT/left{left}\" 2>&1 &\nready \"$ROOT/left{left}\"")
            }
        };
    }
    text
}

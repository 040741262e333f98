//! The script, run by the shells that are here, with a home of its own.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use super::*;

#[test]
fn the_script_is_one_word_for_any_login_shell() {
    for forbidden in ["'", "!", "\n", "\\\\", "\\'"] {
        assert!(!SCRIPT.contains(forbidden), "{forbidden:?}");
    }
}

#[test]
fn what_the_script_says_is_understood() {
    let wants = ShellSays::parse("wants Linux x86_64\n");
    assert_eq!(wants, Some(ShellSays::Wants { system: "Linux".into(), machine: "x86_64".into() }));
    let Some(ShellSays::Lacks(obstacle)) = ShellSays::parse("lacks room head: No space left on device") else { panic!() };
    assert_eq!(obstacle.kind, ObstacleKind::Room);
    assert!(obstacle.to_string().ends_with("there: head: No space left on device"), "{obstacle}");
    for other in ["", "wants", "{\"ready\":1}", "lacks everything", "has it"] {
        assert_eq!(ShellSays::parse(other), None, "{other}");
    }
}

/// A home, and a program that says what it was called with. It is a script: what kind of machine it is for is said by the test.
struct Home {
    dir: TempDir,
    program: Program,
}

const BODY: &str = "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n[ \"$PWD\" = \"$HOME\" ] || echo lost; echo \"ran from $0 with $*\"; cat >/dev/null\n";

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("bin")).expect("a directory");
        let path = dir.path().join("sent");
        fs::write(&path, BODY).expect("a program");
        let output = Command::new("sha256sum").arg(&path).output().expect("sha256sum");
        let sha256 = String::from_utf8_lossy(&output.stdout).split(' ').next().expect("a hash").to_owned();
        let program = Program { path, machine: std::env::consts::ARCH, bytes: BODY.len() as u64, sha256 };
        Self { dir, program }
    }

    fn bootstrap(&self, stay: Stay) -> Bootstrap {
        Bootstrap { programs: vec![self.program.clone()], stay, afresh: false }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs it as sshd would by this login shell; `sent` comes by standard input.
    fn run(&self, shell: &[&str], bootstrap: &Bootstrap, sent: &[u8]) -> Output {
        let line = format!("{} remote WORD", command(bootstrap, "haul"));
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).args(["-c", &line]).current_dir(self.dir.path());
        command.env_clear().env("HOME", self.dir.path()).env("PATH", path).env("XDG_CACHE_HOME", "relative/does/not/count");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell");
        let _ = child.stdin.take().expect("a pipe").write_all(sent);
        child.wait_with_output().expect("its end")
    }

    fn kept(&self) -> PathBuf {
        let short = &self.program.sha256[..SHORT];
        self.path(&format!(".cache/haul/{}-{short}/haul", env!("CARGO_PKG_VERSION")))
    }

    /// What is in the directory of kept programs.
    fn left(&self) -> Vec<PathBuf> {
        fs::read_dir(self.path(".cache/haul")).into_iter().flatten().map(|entry| entry.expect("an entry").path()).collect()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn wants() -> String {
    format!("\nHAUL/1 wants Linux {}\n", std::env::consts::ARCH)
}

#[test]
fn the_program_is_brought_and_kept_by_every_login_shell() {
    let shells: [&[&str]; 9] =
        [&["sh"], &["dash"], &["bash"], &["busybox", "sh"], &["csh"], &["tcsh"], &["fish"], &["zsh"], &["ksh"]];
    let mut ran = 0;
    for shell in shells {
        if Command::new(shell[0]).args(&shell[1..]).args(["-c", "true"]).output().is_err() {
            continue;
        }
        let home = Home::new();
        let keep = home.bootstrap(Stay::Keep);
        let first = home.run(shell, &keep, BODY.as_bytes());
        let expected = "ran from /proc/self/fd/3 with remote WORD\n";
        assert_eq!(said(&first), format!("{}{expected}", wants()), "{shell:?}: {first:?}");
        assert_eq!(home.left(), [home.kept().parent().expect("its directory")], "{shell:?}");
        assert_eq!(fs::read_to_string(home.kept()).expect("the program"), BODY);
        let second = home.run(shell, &keep, b"");
        assert_eq!(said(&second), expected, "{shell:?}: what is kept is used");
        ran += 1;
    }
    assert!(ran >= 2, "sh and bash at least");
}

#[test]
fn once_leaves_nothing_and_keep_heals_what_is_broken() {
    let home = Home::new();
    let once = home.run(&["sh"], &home.bootstrap(Stay::Once), BODY.as_bytes());
    assert_eq!(said(&once), format!("{}ran from /proc/self/fd/3 with remote WORD\n", wants()), "{once:?}");
    assert!(home.left().is_empty());
    fs::create_dir_all(home.kept().parent().expect("its directory")).expect("a directory");
    fs::write(home.kept(), "broken").expect("a file");
    let healed = home.run(&["sh"], &home.bootstrap(Stay::Keep), BODY.as_bytes());
    assert!(said(&healed).ends_with("with remote WORD\n"), "{healed:?}");
    assert_eq!(fs::read_to_string(home.kept()).expect("the program"), BODY);
}

#[test]
fn a_haul_of_this_version_is_taken_and_one_of_another_is_left_alone() {
    let home = Home::new();
    let installed = |version: &str| {
        let path = home.path("bin/haul");
        let body = format!("#!/bin/sh\n[ \"$1\" = --version ] && echo haul {version} || echo installed $*\n");
        fs::write(&path, body).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
    };
    installed(env!("CARGO_PKG_VERSION"));
    let keep = home.bootstrap(Stay::Keep);
    assert_eq!(said(&home.run(&["sh"], &keep, b"")), "installed remote WORD\n");
    let afresh = Bootstrap { afresh: true, ..keep.clone() };
    assert!(said(&home.run(&["sh"], &afresh, BODY.as_bytes())).contains("ran from"));
    fs::remove_dir_all(home.path(".cache")).expect("what was kept");
    installed("0.0.1");
    assert!(said(&home.run(&["sh"], &keep, BODY.as_bytes())).contains("ran from"));
}

fn lacks(output: &Output) -> Obstacle {
    let text = said(output);
    let last = text.lines().last().and_then(|line| line.strip_prefix("HAUL/1 ")).unwrap_or_else(|| panic!("{output:?}"));
    let Some(ShellSays::Lacks(obstacle)) = ShellSays::parse(last) else { panic!("{output:?}") };
    obstacle
}

#[test]
fn what_is_in_the_way_is_said_and_nothing_stays_behind() {
    let home = Home::new();
    let keep = home.bootstrap(Stay::Keep);
    for sent in [&BODY.as_bytes()[..20], &BODY.replace("ran", "ram").into_bytes()] {
        assert_eq!(lacks(&home.run(&["sh"], &keep, sent)).kind, ObstacleKind::Hash);
        assert!(home.left().is_empty());
    }
    let broken = "#!/nowhere/sh\n".to_owned() + BODY;
    let other = Home::new();
    fs::write(&other.program.path, &broken).expect("a program");
    let output = Command::new("sha256sum").arg(&other.program.path).output().expect("sha256sum");
    let sha256 = String::from_utf8_lossy(&output.stdout).split(' ').next().expect("a hash").to_owned();
    let program = Program { bytes: broken.len() as u64, sha256, ..other.program.clone() };
    let keep_broken = Bootstrap { programs: vec![program], ..keep.clone() };
    let obstacle = lacks(&other.run(&["sh"], &keep_broken, broken.as_bytes()));
    assert!(obstacle.kind == ObstacleKind::Run && obstacle.detail.as_str().contains("not found"), "{obstacle}");
    assert!(other.left().is_empty());
    fs::remove_dir_all(home.path(".cache")).expect("the directory");
    fs::write(home.path(".cache"), "").expect("a file in its place");
    let obstacle = lacks(&home.run(&["sh"], &keep, b""));
    assert!(obstacle.kind == ObstacleKind::Directory && obstacle.detail.as_str().contains("mkdir"), "{obstacle}");
}

/// Where others may write too, they gain nothing: what is theirs is not used, and what is ours is shut.
#[test]
fn the_directory_is_the_users_own() {
    let home = Home::new();
    let keep = home.bootstrap(Stay::Keep);
    let cache = home.path(".cache/haul");
    fs::create_dir_all(cache.join("new.other")).expect("a directory");
    fs::create_dir(cache.join("new.old")).expect("a directory");
    let aged = Command::new("touch").args(["-d", "2 days ago"]).arg(cache.join("new.old")).status();
    assert!(aged.expect("touch").success());
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).expect("its mode");
    assert!(said(&home.run(&["sh"], &keep, BODY.as_bytes())).ends_with("with remote WORD\n"));
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&cache), mode(&home.kept())), (0o700, 0o700));
    assert!(cache.join("new.other").exists(), "another login may be at work on it");
    assert!(!cache.join("new.old").exists());
    if std::os::unix::fs::chown(&cache, Some(65534), None).is_err() {
        return skip::skip("the rest needs root, for a directory of another user's");
    }
    let obstacle = lacks(&home.run(&["sh"], &keep, BODY.as_bytes()));
    assert!(obstacle.kind == ObstacleKind::Owner && obstacle.detail.as_str().ends_with(".cache/haul"), "{obstacle}");
}

#[test]
fn a_machine_that_no_program_is_for_says_what_it_is() {
    let home = Home::new();
    let none = Bootstrap { programs: Vec::new(), ..home.bootstrap(Stay::Keep) };
    assert_eq!(said(&home.run(&["sh"], &none, b"")), wants());
    assert!(!Path::new(&home.path(".cache")).exists());
    assert_eq!((none.machines().as_str(), home.bootstrap(Stay::Once).program("Linux", "mips")), ("none", None));
}

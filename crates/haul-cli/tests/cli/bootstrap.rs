//! A far side without haul gets one, through the stand-in for ssh.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::ssh::bench;
use crate::support::{Bench, HAUL, Run, STAND_IN, noise};

/// The program under test, without what it knows for debuggers, which is most of it. What is sent has no name that is known.
fn small() -> &'static Path {
    static SMALL: OnceLock<PathBuf> = OnceLock::new();
    SMALL.get_or_init(|| {
        let path = Path::new(HAUL).with_file_name("haul-to-send");
        let making = path.with_extension(std::process::id().to_string());
        let stripped = Command::new("strip").arg("--strip-all").arg("-o").arg(&making).arg(HAUL).status();
        assert!(stripped.expect("strip, of binutils").success());
        fs::rename(&making, &path).unwrap();
        path
    })
}

/// A stand-in whose far side finds nothing but the system's own programs, and first does this.
fn without_haul(bench: &Bench, before: &str) -> PathBuf {
    let body = STAND_IN.replace("cd \"$HOME\"", &format!("PATH=/usr/bin:/bin; export PATH; {before}\ncd \"$HOME\""));
    bench.script("empty", &body)
}

fn cp(bench: &Bench, ssh: &Path, args: &[&str]) -> Run {
    let from = small().to_str().unwrap();
    bench.haul([&["cp", "-S", ssh.to_str().unwrap(), "--bootstrap-from", from], args].concat())
}

fn kept(bench: &Bench) -> Vec<PathBuf> {
    fs::read_dir(bench.path("far/.cache/haul")).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

fn copies(bench: &Bench) -> usize {
    let calls = fs::read_to_string(bench.path("bin/empty.calls")).unwrap();
    calls.lines().filter(|line| !line.contains(" -G ") && line.contains(" -- far ")).count()
}

#[test]
fn it_is_sent_once_and_kept() {
    let bench = bench();
    bench.file("x", 100_000);
    let ssh = without_haul(&bench, "");
    let first = cp(&bench, &ssh, &["--bootstrap", "x", "far:one"]).expect(0);
    first.says(&["note: far has no haul", "sending it", "it stays in ~/.cache/haul", "copied 1 file"]);
    assert_eq!(fs::read(bench.path("far/one")).unwrap(), noise(100_000));
    let there = kept(&bench);
    assert_eq!(there.len(), 1, "{there:?}");
    assert!(fs::read(there[0].join("haul")).unwrap() == fs::read(small()).unwrap());
    let second = cp(&bench, &ssh, &["--bootstrap=keep", "far:one", "two"]).expect(0);
    assert!(!second.stderr.contains("sending"), "{}", second.stderr);
    assert_eq!(fs::read(bench.path("two")).unwrap(), noise(100_000));
    assert_eq!(copies(&bench), 2, "one login each");
}

#[test]
fn a_command_brings_it_along_too() {
    let bench = bench();
    let ssh = without_haul(&bench, "");
    let (ssh, from) = (ssh.to_str().unwrap(), small().to_str().unwrap());
    let rsh = |args: &[&str]| bench.haul([&["rsh", "--ssh", ssh], args].concat());
    rsh(&["far", "true"]).expect(255).says(&["far: haul not found there", "`haul rsh` --bootstrap, which brings it along"]);
    for word in ["first", "second"] {
        let run = rsh(&["--bootstrap-from", from, "--bootstrap", "far", "echo", word]).expect(0);
        assert_eq!(run.text(), format!("{word}\n"));
        assert_eq!(run.stderr.contains("sending it"), word == "first", "{}", run.stderr);
    }
    assert_eq!(kept(&bench).len(), 1);
}

/// Where nothing but ssh passes, its channel carries behind a program that was sent, and behind one that was there.
#[test]
fn the_channel_carries_behind_it() {
    let bench = bench();
    bench.file("x", 100_000);
    let ssh = without_haul(&bench, "");
    for to in ["one", "two"] {
        cp(&bench, &ssh, &["--bootstrap", "--transport", "ssh", "x", &format!("far:{to}")]).expect(0).says(&["copied 1 file"]);
        assert_eq!(fs::read(bench.path("far").join(to)).unwrap(), noise(100_000));
    }
}

#[test]
fn once_leaves_nothing() {
    let bench = bench();
    bench.file("x", 100_000);
    let ssh = without_haul(&bench, "");
    cp(&bench, &ssh, &["--bootstrap=once", "x", "far:one"]).expect(0).says(&["nothing of it stays"]);
    assert_eq!(fs::read(bench.path("far/one")).unwrap(), noise(100_000));
    assert!(kept(&bench).is_empty());
}

#[test]
fn without_being_asked_nothing_is_sent() {
    let bench = bench();
    bench.file("x", 10);
    let ssh = without_haul(&bench, "");
    let run = bench.haul(["cp", "-S", ssh.to_str().unwrap(), "x", "far:"]).expect(2);
    run.says(&["far: haul not found there", "hint: install haul on the far side", "--bootstrap"]);
    assert!(kept(&bench).is_empty() && !bench.path("far/.cache").exists());
    bench.haul(["cp", "--bootstrap-from", "x", "a", "far:"]).expect(2).says(&["--bootstrap"]);
}

#[test]
fn a_haul_of_another_version_is_passed_over() {
    let bench = bench();
    bench.file("x", 10);
    fs::create_dir_all(bench.path("old")).unwrap();
    // One says so, the other has our version's name and other words.
    for (to, version) in [("one", "0.0.1"), ("two", env!("CARGO_PKG_VERSION"))] {
        let body = format!("#!/bin/sh\n[ \"$1\" = --version ] && echo haul {version} || echo 'HAUL/1 {{\"listening\":1}}'\n");
        fs::write(bench.path("old/haul"), body).unwrap();
        fs::set_permissions(bench.path("old/haul"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let ssh = without_haul(&bench, &format!("PATH={}:$PATH", bench.path("old").display()));
        cp(&bench, &ssh, &["--bootstrap=once", "x", &format!("far:{to}")]).expect(0).says(&["sending it"]);
        assert_eq!(fs::read(bench.path("far").join(to)).unwrap(), noise(10));
    }
}

#[test]
fn what_is_in_the_way_is_an_error_with_a_remedy() {
    let bench = bench();
    bench.file("x", 10);
    fs::create_dir_all(bench.path("bin/only")).unwrap();
    bench.script("only/uname", "[ $1 = -m ] && echo riscv64 || echo Linux");
    let ssh = without_haul(&bench, &format!("PATH={}:$PATH", bench.path("bin/only").display()));
    let run = cp(&bench, &ssh, &["--bootstrap", "x", "far:"]).expect(2);
    run.says(&[
        "far has no haul of this version",
        "none here for Linux riscv64",
        "there is: Linux",
        "hint: name one",
        "--bootstrap-from",
    ]);

    let no_hash = bench.path("bin/few");
    fs::create_dir_all(&no_hash).unwrap();
    for name in ["sh", "uname", "sed", "mkdir", "mktemp", "head", "chmod", "mv", "rm"] {
        std::os::unix::fs::symlink(Path::new("/usr/bin").join(name), no_hash.join(name)).unwrap();
    }
    let ssh = without_haul(&bench, &format!("PATH={}", no_hash.display()));
    cp(&bench, &ssh, &["--bootstrap", "x", "far:"]).expect(2).says(&["no sha256sum, shasum or openssl"]);

    let ssh = without_haul(&bench, "XDG_CACHE_HOME=/proc/none; export XDG_CACHE_HOME");
    cp(&bench, &ssh, &["--bootstrap", "x", "far:"]).expect(2).says(&[
        "its directory cannot be made: mkdir",
        "hint: ",
        "XDG_CACHE_HOME",
    ]);

    // A file as large as it may be.
    let ssh = without_haul(&bench, "trap '' XFSZ; ulimit -f 100");
    let run = cp(&bench, &ssh, &["--bootstrap", "x", "far:"]).expect(2);
    run.says(&["haul could not be written there", "hint: make room there"]);
    assert!(kept(&bench).is_empty(), "{:?}", kept(&bench));
    fs::write(bench.path("script"), "#!/bin/sh\n").unwrap();
    let run = bench.haul(["cp", "--bootstrap", "--bootstrap-from", "script", "x", "far:"]).expect(2);
    run.says(&["script: not a program for Linux"]);
}

/// It says that all is well while the program is still under way.
#[test]
fn a_far_side_that_answers_before_it_has_the_program_is_not_believed() {
    let bench = bench();
    bench.file("x", 10);
    let ready = r#"{"ready":{"port":9,"fingerprint":"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU","addresses":[]}}"#;
    let answers = format!("printf '\\nHAUL/1 wants Linux {}\\nHAUL/1 {ready}\\n'; exec sleep 30", std::env::consts::ARCH);
    let ssh = without_haul(&bench, &answers);
    cp(&bench, &ssh, &["--bootstrap", "x", "far:"]).expect(2).says(&["far: the far side's answer makes no sense"]);
}

/// At a terminal the user is asked; `script` makes one.
#[test]
fn at_a_terminal_the_user_is_asked() {
    if Command::new("script").arg("--version").output().is_err() {
        return skip::skip("script(1) is not installed, and makes the terminal");
    }
    let bench = bench();
    bench.file("x", 10);
    let ssh = without_haul(&bench, "");
    // Beside the program, as a package has it: by its header it needs no loader, and so haul offers it. It will not run, but that is known only when it is there.
    let bin = bench.path("usr/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(bench.path("usr/lib/haul/static")).unwrap();
    fs::copy(small(), bin.join("haul")).unwrap();
    fs::write(bench.path("usr/lib/haul/static/haul"), without_loader(fs::read(small()).unwrap())).unwrap();
    for (answer, sent) in [("no\n", false), ("perhaps\nyes\n", true)] {
        let line = format!("{} cp -S {} x far:", bin.join("haul").display(), ssh.display());
        let mut asked = Command::new("script");
        asked.args(["-qec", &line, "/dev/null"]).current_dir(bench.path(".")).env_clear();
        asked.env("PATH", "/usr/bin:/bin").env("HOME", bench.path("home")).env("XDG_CONFIG_HOME", bench.path("config"));
        let mut child = asked.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), answer.as_bytes()).unwrap();
        let text = Run::from(child.wait_with_output().unwrap()).expect(2).text();
        assert!(text.contains("haul not found there") && text.contains("(yes/once/no)"), "{text}");
        assert_eq!(text.contains("sending it") && text.contains("cannot be run"), sent, "{text}");
        assert_eq!(text.contains("Type yes, once or no"), sent, "{text}");
        assert!(kept(&bench).is_empty());
    }
}

/// The program with its `PT_INTERP` made a `PT_NULL`.
fn without_loader(mut elf: Vec<u8>) -> Vec<u8> {
    let (at, count) = (usize::from(elf[32]), usize::from(elf[56]));
    for part in (0..count).map(|nth| at + nth * 56) {
        if elf[part] == 3 {
            elf[part] = 0;
        }
    }
    elf
}

//! Logins that a line of ssh's `authorized_keys` confines to haul: what the line allows works, and nothing else does.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use e2e::{Finished, Lab, Running};

const PATIENCE: Duration = Duration::from_secs(60);

/// Lets the user's key in for this command only.
fn confine(lab: &Lab, command: &str) {
    lab.ssh_config();
    let key = fs::read_to_string(lab.scratch().join("user_key.pub")).expect("the user's key");
    let line = format!("restrict,command=\"{command}\" {key}");
    fs::write(lab.scratch().join("authorized_keys"), line).expect("writing authorized_keys");
}

/// Runs a program of the near host, with ssh's configuration behind `-F`.
fn run(mut command: Command, words: &[&str], config: &Path, rest: &[&str]) -> Finished {
    command.args(words).arg("-F").arg(config).args(rest);
    Running::start_with(command, Stdio::null()).wait(PATIENCE)
}

fn haul(lab: &Lab, words: &[&str], rest: &[&str]) -> Finished {
    run(lab.haul(&lab.near), words, lab.ssh_config(), rest)
}

fn says(finished: &Finished, text: &str) {
    assert!(finished.stderr.contains(text), "no `{text}` in {finished}");
}

#[test]
fn a_login_to_copy_out_of_one_directory_does_that_and_nothing_else() {
    let Some(lab) = Lab::open() else { return };
    let (data, here) = (lab.place("data"), lab.place("here"));
    fs::create_dir(data.join("dir")).expect("a directory");
    fs::write(data.join("dir/file"), "what may be read").expect("a file");
    fs::write(data.parent().expect("its place").join("secret"), "secret").expect("a file beside it");
    fs::write(here.join("mine"), "mine").expect("a file here");
    let text = |path: &Path| path.to_str().expect("an ASCII path").to_owned();
    confine(&lab, &format!("haul remote --only cp --root {} --read-only", data.display()));

    lab.run_cp(["-r", "far:dir", &text(&here)]).expect(0);
    assert_eq!(fs::read_to_string(here.join("dir/file")).expect("the copy"), "what may be read");
    for spelled in ["far:~/dir/file", "far:/dir/f*"] {
        lab.run_cp([spelled, &text(&here.join("again"))]).expect(0);
        fs::remove_file(here.join("again")).expect("the copy");
    }
    // Not out of it.
    for outside in ["../secret", "/etc/passwd", &text(&data.join("../secret"))] {
        let finished = lab.run_cp([&format!("far:{outside}"), &text(&here.join("stolen"))]);
        assert_ne!(finished.code, Some(0), "{outside}: {finished}");
        assert!(!here.join("stolen").exists(), "{outside}");
    }
    // Not into it.
    let finished = lab.run_cp([&text(&here.join("mine")), "far:mine"]).expect(2);
    says(&finished, "read-only");
    assert!(!data.join("mine").exists());
    // Nothing else that haul does.
    says(&haul(&lab, &["perf"], &["-t", "1", "far"]).expect(2), "not for measuring");
    says(&haul(&lab, &["pipe"], &["far", "--", "id"]).expect(2), "not for commands");
    says(&haul(&lab, &["proxy"], &["-N", "-L", "9999:localhost:22", "far"]).expect(2), "not for a proxy");
    // Nothing else that ssh does.
    for command in [&["far", "id"][..], &["far"], &["far", "haul", "remote"], &["far", "haul", "serve", "--help"]] {
        let finished = run(lab.near.command("ssh"), &[], lab.ssh_config(), command);
        assert_eq!(finished.code, Some(2), "{command:?}: {finished}");
        says(&finished, "this login serves haul only");
        assert!(!String::from_utf8_lossy(&finished.stdout).contains("uid="), "{finished}");
    }
    let forward =
        run(lab.near.command("ssh"), &["-o", "ExitOnForwardFailure=yes"], lab.ssh_config(), &["-W", "localhost:2222", "far"]);
    assert_ne!(forward.code, Some(0), "{forward}");
}

#[test]
fn what_a_line_names_works() {
    let Some(lab) = Lab::open() else { return };
    let (data, here) = (lab.place("data"), lab.place("here"));
    fs::write(here.join("mine"), "mine").expect("a file here");
    confine(&lab, &format!("haul remote --only cp,perf --root {}", data.display()));
    lab.run_cp([here.join("mine").to_str().expect("an ASCII path"), "far:"]).expect(0);
    assert_eq!(fs::read_to_string(data.join("mine")).expect("the copy"), "mine");
    haul(&lab, &["perf"], &["-t", "1", "far"]).expect(0);
    says(&haul(&lab, &["pipe"], &["far", "--", "id"]).expect(2), "not for commands");
    // The greeting comes with the command, so that a login takes as long as any other; without a root the account's files are reached.
    confine(&lab, "haul remote --only tunnel");
    let finished = haul(&lab, &["pipe"], &["far", "--", "echo out"]).expect(0);
    assert_eq!(finished.stdout, b"out\n");
    says(&lab.run_cp(["far:/etc/hostname", here.to_str().expect("an ASCII path")]).expect(2), "not for copies");
}

/// `any:` is for who has the whole account: to others it is a name in their directory.
#[test]
fn a_confined_login_has_no_choice_of_places() {
    let Some(lab) = Lab::open() else { return };
    let (data, here, place) = (lab.place("data"), lab.place("here"), lab.place("place"));
    let config = lab.scratch().join("far-config/haul");
    fs::create_dir_all(&config).expect("a directory");
    fs::write(config.join("config.toml"), format!("places = [{place:?}]\n")).expect("the list of places");
    fs::write(place.join("secret"), "secret").expect("a file in the place");
    fs::write(here.join("mine"), "mine").expect("a file here");
    let at = |name: &str| here.join(name).to_str().expect("an ASCII path").to_owned();
    // It is there for the account.
    lab.run_cp(["far:any:secret", &at("known")]).expect(0);
    assert_eq!(fs::read_to_string(at("known")).expect("the copy"), "secret");

    confine(&lab, &format!("haul remote --only cp --root {}", data.display()));
    for command in [&["cp"][..], &["fleet", "get", "-H", "far"]] {
        let source = if command.len() > 1 { "any:secret" } else { "far:any:secret" };
        let finished = haul(&lab, command, &[source, &at("stolen")]).expect(1);
        says(&finished, "any:secret");
        assert!(!here.join("stolen").exists(), "{finished}");
    }
    lab.run_cp([&at("mine"), "far:any:mine"]).expect(0);
    haul(&lab, &["fleet", "put", "-H", "far"], &[&at("known"), "any:more"]).expect(0);
    let names = |dir: &Path| e2e::tree::names(dir);
    assert_eq!((names(&place), names(&data)), (vec!["secret".to_owned()], vec!["any:mine".to_owned(), "any:more".to_owned()]));
    let told = haul(&lab, &["fleet", "status"], &["-H", "far:any:"]);
    assert!(!String::from_utf8_lossy(&told.stdout).contains(place.to_str().expect("ASCII")), "{told}");

    confine(&lab, &format!("haul remote --only cp --root {} --read-only", data.display()));
    says(&lab.run_cp([&at("mine"), "far:any:other"]).expect(2), "read-only");
    assert_eq!(names(&place), ["secret"]);
}

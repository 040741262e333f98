//! A far side whose PATH has no haul, behind a real sshd: it gets one, and what is in the way is said.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::tree::{self, Exactness};
use e2e::{Finished, Lab, Random, haul_binary};

/// A lab whose far host finds no haul, and the program to send, without what it knows for debuggers.
fn lab() -> Option<(Lab, PathBuf)> {
    let lab = Lab::open()?;
    fs::create_dir(lab.scratch().join("bin")).expect("a PATH without haul");
    let small = lab.scratch().join("to-send");
    let stripped = Command::new("strip").arg("--strip-all").arg("-o").arg(&small).arg(haul_binary()).status();
    assert!(stripped.expect("strip, of binutils").success());
    Some((lab, small))
}

fn cp(lab: &Lab, program: &Path, how: &str, from: &Path, to: &Path) -> Finished {
    let mut target = OsString::from("far:");
    target.push(to);
    let words: [OsString; 6] = ["-r".into(), how.into(), "--bootstrap-from".into(), program.into(), from.into(), target];
    lab.run_cp(words)
}

#[track_caller]
fn says(finished: &Finished, texts: &[&str]) {
    for text in texts {
        assert!(finished.stderr.contains(text), "no `{text}` in {finished}");
    }
}

#[test]
fn a_tree_reaches_a_host_without_haul() {
    let Some((lab, program)) = lab() else { return };
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::make_many(&source, 200, &mut Random::seeded(90));
    let kept = lab.scratch().join("far-cache/haul");
    says(&cp(&lab, &program, "--bootstrap=once", &source, &there).expect(0), &["sending it", "nothing of it stays"]);
    tree::assert_same(&source, &there.join("source"), Exactness::Content);
    assert!(tree::names(&kept).is_empty());
    let again = lab.place("again");
    says(&cp(&lab, &program, "--bootstrap", &source, &again).expect(0), &["sending it", "it stays"]);
    let names = tree::names(&kept);
    assert!(names.len() == 1 && kept.join(&names[0]).join("haul").exists(), "{names:?}");
    let third = cp(&lab, &program, "--bootstrap", &source, &lab.place("third")).expect(0);
    assert!(!third.stderr.contains("sending"), "{third}");
    lab.assert_no_process_left(Duration::from_secs(10));
}

/// A login that runs `haul remote` whatever it is asked for needs none, and is greeted all the same.
#[test]
fn a_login_with_a_command_of_its_own_gets_nothing() {
    let Some((lab, program)) = lab() else { return };
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::make_many(&source, 5, &mut Random::seeded(91));
    lab.ssh_config();
    let key = fs::read_to_string(lab.scratch().join("user_key.pub")).expect("the user's key");
    let line = format!("restrict,command=\"{} remote\" {key}", haul_binary().display());
    fs::write(lab.scratch().join("authorized_keys"), line).expect("writing authorized_keys");
    let finished = cp(&lab, &program, "--bootstrap", &source, &there).expect(0);
    assert!(!finished.stderr.contains("sending"), "{finished}");
    tree::assert_same(&source, &there.join("source"), Exactness::Content);
}

/// A mount, gone with this value.
struct Mounted(PathBuf);

impl Mounted {
    fn at(path: PathBuf, options: &str) -> Self {
        fs::create_dir(&path).expect("a directory");
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", options, "haul-e2e"]).arg(&path).status();
        assert!(status.expect("mount(8)").success());
        Self(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_home_that_cannot_take_it_is_named() {
    let Some((lab, program)) = lab() else { return };
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::make_many(&source, 3, &mut Random::seeded(92));
    let cache = lab.scratch().join("far-cache");
    let homes = [
        ("full", "size=1m", ["haul could not be written there", "No space left on device", "make room there"]),
        ("noexec", "noexec", ["cannot be run", "ermission denied", "noexec"]),
        ("readonly", "ro", ["its directory cannot be made", "Read-only file system", "--remote-haul"]),
    ];
    let mounted: Vec<_> = homes.iter().map(|(name, options, _)| Mounted::at(lab.scratch().join(name), options)).collect();
    for ((name, _, texts), mounted) in homes.iter().zip(&mounted) {
        symlink(&mounted.0, &cache).expect("a link");
        for how in ["--bootstrap", "--bootstrap=once"] {
            let finished = cp(&lab, &program, how, &source, &there).expect(2);
            says(&finished, texts);
            assert!(tree::names(&there).is_empty(), "{name}");
            assert!(*name == "readonly" || tree::names(&cache.join("haul")).is_empty(), "{name}: something is left");
        }
        fs::remove_file(&cache).expect("the link");
    }
}

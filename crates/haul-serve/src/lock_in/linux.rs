//! Landlock: from a call on, the calling thread and those that it starts can open only what lies below some directories, whatever the code tries. Nothing undoes it.
//!
//! A second lock within the first: whoever serves a client checks its paths itself. Where the kernel has no Landlock nothing changes but what the log says.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus,
};

use super::Locked;

/// The rights that are spoken of: those of Linux 6.10. An older kernel keeps to those that it knows.
const KNOWN: ABI = ABI::V5;
/// What the program reads of the system while it serves: its threads' times and its umask; how the machine does, and what it is called; which start of the machine this is, by which a
/// copy that was killed knows whether what it wrote is still there; which congestion controls TCP has.
const SYSTEM: [&str; 9] = [
    "/proc/self",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/net/ipv4/tcp_available_congestion_control",
    "/proc/sys/net/ipv4/tcp_allowed_congestion_control",
];

/// What may be opened.
#[derive(Debug, Default)]
pub struct Open {
    below: Vec<(PathBuf, Use)>,
}

/// What for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    Write,
    Append,
}

impl Open {
    /// Also what is below this directory, to read.
    pub fn reading(mut self, path: &Path) -> Self {
        self.below.push((path.to_owned(), Use::Read));
        self
    }

    /// Also what is below this directory, to read and to write.
    pub fn writing(mut self, path: &Path) -> Self {
        self.below.push((path.to_owned(), Use::Write));
        self
    }

    /// Also what is below this directory, to make files and to write to them, not to read them.
    pub fn appending(mut self, path: &Path) -> Self {
        self.below.push((path.to_owned(), Use::Append));
        self
    }

    /// Locks this thread in. A directory that is not there is left out.
    pub fn lock_in(&self) -> Result<Locked, RulesetError> {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(KNOWN))?;
        let mut ruleset = ruleset.create()?;
        let system = SYSTEM.iter().map(|path| (Path::new(path), Use::Read));
        for (path, to) in self.below.iter().map(|(path, to)| (path.as_path(), *to)).chain(system) {
            let Ok(opened) = PathFd::new(path) else { continue };
            let read = AccessFs::ReadFile | AccessFs::ReadDir;
            let allowed: BitFlags<AccessFs> = match (path.is_dir(), to) {
                (true, Use::Read) => read,
                (true, Use::Write) => read | writing(),
                (true, Use::Append) => AccessFs::MakeReg | AccessFs::WriteFile,
                // Rules about what is in a directory make no sense for a file.
                (false, Use::Read) => AccessFs::ReadFile.into(),
                (false, Use::Append) => AccessFs::WriteFile.into(),
                (false, Use::Write) => AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate,
            };
            ruleset = ruleset.add_rule(PathBeneath::new(opened, allowed))?;
        }
        Ok(match ruleset.restrict_self()?.ruleset {
            RulesetStatus::FullyEnforced => Locked::Fully,
            RulesetStatus::PartiallyEnforced => Locked::Partly,
            RulesetStatus::NotEnforced => Locked::No,
        })
    }
}

/// Everything that files need; no devices, and nothing is run.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::RemoveDir
        | AccessFs::RemoveFile
        | AccessFs::MakeDir
        | AccessFs::MakeReg
        | AccessFs::MakeSym
        | AccessFs::MakeFifo
        | AccessFs::MakeSock
        | AccessFs::Refer
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::thread;

    use super::*;

    #[test]
    fn what_is_outside_cannot_be_opened_whatever_the_code_does() {
        let dir = tempfile::tempdir().unwrap();
        let [to_read, to_write, to_append, outside] = ["to_read", "to_write", "to_append", "outside"].map(|name| {
            let path = dir.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("file"), name).unwrap();
            path
        });
        std::os::unix::fs::symlink(&outside, to_write.join("out")).unwrap();
        // A thread of its own: nothing undoes it.
        let locked = thread::spawn(move || {
            let locked = Open::default().reading(&to_read).writing(&to_write).appending(&to_append).lock_in().unwrap();
            if locked == Locked::No {
                return locked;
            }
            assert_eq!(fs::read(to_read.join("file")).unwrap(), b"to_read");
            let denied = |result: std::io::Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::PermissionDenied);
            denied(fs::write(to_read.join("file"), ""));
            denied(fs::write(to_read.join("new"), ""));
            denied(fs::read(outside.join("file")).map(drop));
            denied(fs::read_dir(&outside).map(drop));
            denied(fs::read(to_write.join("out/file")).map(drop));
            denied(fs::read("/etc/passwd").map(drop));
            fs::create_dir(to_write.join("dir")).unwrap();
            fs::write(to_write.join("dir/new"), "x").unwrap();
            fs::rename(to_write.join("dir/new"), to_write.join("moved")).unwrap();
            fs::remove_dir(to_write.join("dir")).unwrap();
            fs::OpenOptions::new().append(true).open(to_append.join("file")).unwrap();
            fs::OpenOptions::new().append(true).create(true).open(to_append.join("new")).unwrap();
            denied(fs::read(to_append.join("file")).map(drop));
            denied(fs::remove_file(to_append.join("new")));
            // What it starts is locked in too.
            let child = thread::spawn(move || fs::read(outside.join("file")).is_err());
            assert!(child.join().unwrap());
            locked
        });
        if locked.join().unwrap() == Locked::No {
            return skip::skip("this kernel has no Landlock");
        }
        assert!(dir.path().join("outside/file").exists(), "the others are free");
    }

    #[test]
    fn what_is_read_of_the_machine_can_be_read_and_nothing_besides() {
        let locked = thread::spawn(|| {
            let locked = Open::default().lock_in().unwrap();
            if locked == Locked::No {
                return locked;
            }
            let read = |path: &str| fs::read_to_string(path).map_err(|error| (path.to_owned(), error)).unwrap();
            assert!(read("/proc/stat").starts_with("cpu "), "the processors' ticks");
            let [load, up] = ["/proc/loadavg", "/proc/uptime"].map(|path| read(path).split(' ').next().unwrap().parse::<f64>());
            assert!(load.is_ok() && up.is_ok(), "{load:?} {up:?}");
            assert_eq!(read("/proc/sys/kernel/random/boot_id").trim().len(), 36);
            assert!(read("/proc/meminfo").contains("MemAvailable") && !read("/proc/sys/kernel/hostname").is_empty());
            for list in ["available", "allowed"] {
                assert!(!read(&format!("/proc/sys/net/ipv4/tcp_{list}_congestion_control")).is_empty());
            }
            for path in ["/proc/version", "/proc/sys/kernel/osrelease"] {
                assert_eq!(fs::read(path).unwrap_err().kind(), ErrorKind::PermissionDenied, "{path}");
            }
            let write = fs::OpenOptions::new().write(true).open("/proc/sys/kernel/hostname");
            assert_eq!(write.unwrap_err().kind(), ErrorKind::PermissionDenied);
            locked
        });
        if locked.join().unwrap() == Locked::No {
            skip::skip("this kernel has no Landlock");
        }
    }
}

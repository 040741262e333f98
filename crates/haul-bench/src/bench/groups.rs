//! Processor time of all that is started for one host, whoever started it and whether anybody waits for it.
//!
//! What a process has used is told to whoever waits for it, and sshd does not wait for its sessions. So each host has a control group (v2) of its own: a program
//! enters before it is executed, what it starts is in there with it, and the kernel goes on counting what has ended. Groups are below that of this process, so
//! that limits of whoever called it hold, and are gone with their values. Their names carry the process id: what a killed run has left behind goes at the next.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use thiserror::Error;

/// Makes groups.
#[derive(Debug)]
pub struct Groups {
    parent: PathBuf,
    made: Cell<u32>,
}

/// One that is there until the value is dropped; what still runs in it is killed then.
#[derive(Debug)]
pub struct Group {
    dir: PathBuf,
    /// `cgroup.procs`, for those that enter.
    procs: Arc<File>,
}

/// Why there are none.
#[derive(Debug, Error)]
pub enum GroupsError {
    /// This system does not have them.
    #[error(transparent)]
    Hierarchy(#[from] haul_tcp::TcpError),
    /// They are there, and not for us.
    #[error("no control group can be made and entered below {}: {error}", parent.display())]
    Denied {
        /// The group of this process.
        parent: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl Groups {
    /// Those below the group of this process; tried, so that what is made later can be entered.
    pub fn open() -> Result<Self, GroupsError> {
        let groups = Self { parent: haul_tcp::own_cgroup()?, made: Cell::new(0) };
        groups.sweep();
        groups.attempt().map_err(|error| GroupsError::Denied { parent: groups.parent.clone(), error })?;
        Ok(groups)
    }

    /// A new one, for what this word says.
    pub fn make(&self, what: &str) -> io::Result<Group> {
        let number = self.made.replace(self.made.get() + 1);
        let dir = self.parent.join(format!("{PREFIX}{}-{number}-{what}", std::process::id()));
        fs::create_dir(&dir)?;
        match File::options().write(true).open(dir.join("cgroup.procs")) {
            Ok(procs) => Ok(Group { dir, procs: Arc::new(procs) }),
            Err(error) => {
                let _ = fs::remove_dir(&dir);
                Err(error)
            }
        }
    }

    fn attempt(&self) -> io::Result<()> {
        let group = self.make("attempt")?;
        let mut command = Command::new("true");
        group.admit(command.stdin(Stdio::null()));
        command.status()?;
        group.used().map(drop)
    }

    /// Removes the groups of processes that are gone, where nothing runs in them any more.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.parent).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(is_orphan) {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

impl Group {
    /// Has a program enter, before it is executed, and so all that it will start.
    pub fn admit(&self, command: &mut Command) {
        let procs = Arc::clone(&self.procs);
        // SAFETY: between fork and exec there is one write to a descriptor that was open before; the string is in the program's text.
        unsafe {
            command.pre_exec(move || {
                // "0" is who writes.
                let written = libc::write(procs.as_raw_fd(), c"0".as_ptr().cast(), 1);
                if written == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
            });
        }
    }

    /// Has a process enter that runs, with its threads; not with what it has started.
    pub fn enter(&self, process: Pid) -> io::Result<()> {
        (&*self.procs).write_all(process.as_raw_nonzero().to_string().as_bytes())
    }

    /// Processor time of all that was in it so far, those that have ended included.
    pub fn used(&self) -> io::Result<Duration> {
        let text = fs::read_to_string(self.dir.join("cpu.stat"))?;
        usage(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "cpu.stat without usage_usec"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Where the kernel does not have it (before 5.14), whoever started something ends it.
        let _ = fs::write(self.dir.join("cgroup.kill"), "1");
        for _ in 0..ATTEMPTS {
            match fs::remove_dir(&self.dir) {
                // Somebody in it has not ended yet.
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::park_timeout(PAUSE),
                _ => return,
            }
        }
    }
}

/// `usage_usec` of a group's cpu.stat.
fn usage(stat: &str) -> Option<Duration> {
    let micros = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    micros.trim().parse().ok().map(Duration::from_micros)
}

/// Whether a name is that of a group whose maker is gone.
fn is_orphan(name: &str) -> bool {
    let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse().ok()).and_then(Pid::from_raw);
    process.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

/// What their names begin with; the process id follows.
const PREFIX: &str = "haul-lab-";
/// How often a group is tried to be removed whose last processes are still ending, and how long after each other.
const ATTEMPTS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn groups() -> Option<Groups> {
        Groups::open().inspect_err(|error| skip::skip(format!("{error} (needs root and a cgroup v2)"))).ok()
    }

    /// Waits until there is such a file.
    fn wait_for(path: &Path) {
        for _ in 0..3000 {
            if path.exists() {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
        panic!("{} has not come", path.display());
    }

    #[test]
    fn the_kernels_table_is_read() {
        assert_eq!(usage("usage_usec 1500000\nuser_usec 9\nsystem_usec 0\n"), Some(Duration::from_millis(1500)));
        assert_eq!(usage("user_usec 9\nsystem_usec 0\n"), None);
        assert_eq!(usage("usage_usec many\n"), None);
    }

    #[test]
    fn what_nobody_waits_for_is_counted() {
        let Some(groups) = groups() else { return };
        let dir = tempfile::tempdir().expect("a directory");
        let group = groups.make("test").expect("a group");
        let mut command = Command::new("sh");
        // As sshd does it: the session is another one's child, and goes on when the one that started it has ended.
        let work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; : >over; exec sleep 1000";
        command.args(["-c", &format!("setsid sh -c '{work}' </dev/null >/dev/null 2>&1 & exit 0")]).current_dir(&dir);
        group.admit(&mut command);
        assert!(command.status().expect("sh").success());
        wait_for(&dir.path().join("over"));
        let used = group.used().expect("counted");
        assert!(used > Duration::from_millis(20), "{used:?}");
        // Its `sleep` is killed with the group, of which nothing is left.
        let place = group.dir.clone();
        drop(group);
        assert!(!place.exists());
    }

    #[test]
    fn others_are_not_counted() {
        let Some(groups) = groups() else { return };
        let (idle, busy) = (groups.make("idle").expect("a group"), groups.make("busy").expect("a group"));
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"]);
        busy.admit(&mut command);
        assert!(command.status().expect("sh").success());
        assert_eq!(idle.used().expect("counted"), Duration::ZERO);
        assert!(busy.used().expect("counted") > Duration::ZERO);
    }

    #[test]
    fn what_a_killed_run_has_left_goes_at_the_next() {
        let Some(groups) = groups() else { return };
        let mut gone = Command::new("true").spawn().expect("true");
        let name = |process: u32| format!("{PREFIX}{process}-0-s1");
        gone.wait().expect("ended");
        let (dead, living) = (groups.parent.join(name(gone.id())), groups.parent.join(name(std::process::id())));
        for dir in [&dead, &living] {
            fs::create_dir(dir).expect("a group");
        }
        let _next = Groups::open().expect("as before");
        let found = (dead.exists(), living.exists());
        let _ = fs::remove_dir(&living);
        assert_eq!(found, (false, true));
    }

    #[test]
    fn names_of_others_are_left_alone() {
        for name in ["haul-lab-", "haul-lab-x-1-s1", "haul-tcp-1", "system.slice", "haul-lab-0-1-s1"] {
            assert!(!is_orphan(name), "{name}");
        }
    }
}

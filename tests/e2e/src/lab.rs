//! One lab: the net, the scratch directory, the sshd and the daemon, made when asked for and gone with it.

use std::cell::{Cell, OnceCell};
use std::ffi::OsStr;
use std::io::Write as _;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use crate::clock::eventually;
use crate::net::{Host, Net, PREFIX, is_orphan};
use crate::program::{Finished, Running, haul_binary};
use crate::sshd::Sshd;
use crate::tmpfs::Tmpfs;

/// Two hosts, a router between them, a place for files. Dereferences to the net.
pub struct Lab {
    sshd: OnceCell<Sshd>,
    net: Net,
    scratch: TempDir,
    places: Cell<u32>,
    /// One lab at a time: tests that measure time would disturb each other.
    _turn: MutexGuard<'static, ()>,
}

/// Longest time that any copy of these tests may take.
const PATIENCE: Duration = Duration::from_secs(180);

impl Lab {
    /// A lab of one's own, or nothing where namespaces cannot be made: then the test says so and ends.
    pub fn open() -> Option<Self> {
        static TURN: Mutex<()> = Mutex::new(());
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !ready() {
            return None;
        }
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        haul_binary();
        let id = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        sweep_scratch();
        let scratch = tempfile::Builder::new().prefix(&format!("{PREFIX}{id}-")).tempdir().expect("a scratch directory");
        Some(Self { sshd: OnceCell::new(), net: Net::make(&id), scratch, places: Cell::new(0), _turn: turn })
    }

    /// A new empty directory, alone in another one: whatever is left beside it can be seen.
    pub fn place(&self, name: &str) -> PathBuf {
        self.places.set(self.places.get() + 1);
        let place = self.scratch.path().join(format!("{}-{name}", self.places.get())).join(name);
        std::fs::create_dir_all(&place).expect("making a directory");
        place
    }

    /// The scratch directory.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// The configuration of ssh under which `far` and `far6` can be reached; starts the sshd at the first call.
    pub fn ssh_config(&self) -> &Path {
        let dir = self.scratch.path();
        let start = || {
            let bin = dir.join("bin");
            std::fs::create_dir_all(&bin).expect("making bin");
            std::os::unix::fs::symlink(haul_binary(), bin.join("haul")).expect("linking haul");
            Sshd::start(&self.net.far, dir, &format!("{}:/usr/bin:/bin", bin.display()))
        };
        &self.sshd.get_or_init(start).client_config
    }

    /// `haul` on a host, with a configuration directory of its own.
    pub fn haul(&self, host: &Host) -> Command {
        let mut command = host.command(haul_binary());
        let config = self.scratch.path().join(format!("config-{}", host.namespace));
        command
            .env("XDG_CONFIG_HOME", &config)
            .env("XDG_STATE_HOME", &config)
            .env("RUST_BACKTRACE", "1")
            .env("HOME", self.scratch.path());
        command
    }

    /// `haul cp` on the near host, with `far:` to be reached through ssh.
    pub fn cp(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let config = self.ssh_config().to_owned();
        let mut command = self.haul(&self.net.near);
        command.arg("cp").arg("-F").arg(config).args(args);
        command
    }

    /// Runs `haul cp` on the near host to its end.
    pub fn run_cp(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Finished {
        Running::start(self.cp(args)).wait(PATIENCE)
    }

    /// Panics unless every haul process ends by itself within `limit`; daemons not counted.
    #[track_caller]
    pub fn assert_no_process_left(&self, limit: Duration) {
        let left = || {
            let of = |host: &Host| {
                let mut pids = host.processes(&["haul remote"]);
                pids.extend(host.processes(&["haul cp"]));
                pids
            };
            [of(&self.net.near), of(&self.net.far)].concat()
        };
        assert!(eventually(limit, || left().is_empty()), "processes left behind: {:?}", left());
    }
}

impl Deref for Lab {
    type Target = Net;

    fn deref(&self) -> &Net {
        &self.net
    }
}

impl DerefMut for Lab {
    fn deref_mut(&mut self) -> &mut Net {
        &mut self.net
    }
}

/// Removes the scratch directories of tests that were killed.
fn sweep_scratch() {
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten().filter(|entry| is_orphan(&entry.file_name().to_string_lossy())) {
        let disk = Tmpfs::place(&entry.path());
        let _ = Command::new("umount").arg("-lq").arg(disk).stderr(Stdio::null()).status();
        let _ = std::fs::remove_dir_all(entry.path());
    }
}

/// Whether namespaces can be made here; where they cannot, the test says so.
pub fn ready() -> bool {
    let Some(missing) = missing() else { return true };
    assert!(std::env::var_os("CI").is_none(), "end-to-end tests are required in CI, but {missing}");
    // Not by the macro, whose output the test runner swallows: a skipped test must not look like one that ran.
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: {}: {missing}", std::thread::current().name().unwrap_or("test"));
    false
}

/// What is missing on this machine, in words.
fn missing() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("there is no root to make network namespaces with (run as root)");
    }
    let runs = |program: &str, arg: &str| Command::new(program).arg(arg).output().is_ok();
    if !runs("ip", "-V") || !runs("tc", "-V") {
        return Some("iproute2 is not installed (make setup)");
    }
    if !runs("ssh", "-V") || !Path::new("/usr/sbin/sshd").exists() {
        return Some("openssh is not installed (make setup)");
    }
    None
}

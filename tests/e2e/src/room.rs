//! What every lab stands on: its turn, a name, a scratch directory, and `haul` with a configuration of its own in there.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::net::{Host, PREFIX, is_orphan, sweep};
use crate::program::haul_binary;
use crate::tmpfs::Tmpfs;
use crate::turn::Turn;

/// All of it goes with this value.
pub struct Room {
    id: String,
    scratch: TempDir,
    _turn: Turn,
}

impl Room {
    /// A room of one's own, or nothing where namespaces cannot be made: then the test says so and ends.
    pub fn open() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if let Some(missing) = missing() {
            skip::skip(missing);
            return None;
        }
        let turn = Turn::wait();
        haul_binary();
        sweep();
        sweep_scratch();
        let id = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let scratch = tempfile::Builder::new().prefix(&format!("{PREFIX}{id}-")).tempdir().expect("a scratch directory");
        Some(Self { id, scratch, _turn: turn })
    }

    /// With [`PREFIX`] before it, names begin that nobody else has.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The scratch directory.
    pub fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// PATH for those who log in: with `haul`.
    pub fn search_path(&self) -> String {
        let bin = self.path().join("bin");
        if !bin.exists() {
            std::fs::create_dir_all(&bin).expect("making bin");
            std::os::unix::fs::symlink(haul_binary(), bin.join("haul")).expect("linking haul");
        }
        format!("{}:/usr/bin:/bin", bin.display())
    }

    /// `haul` on a host, with a configuration directory of its own.
    pub fn haul(&self, host: &Host) -> Command {
        let mut command = host.command(haul_binary());
        let config = self.path().join(format!("config-{}", host.namespace));
        command
            .env("XDG_CONFIG_HOME", &config)
            .env("XDG_STATE_HOME", &config)
            .env("RUST_BACKTRACE", "1")
            .env("HOME", self.path());
        command
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

/// What is missing on this machine to make namespaces with and to log in, in words.
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

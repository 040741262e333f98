//! One lab: the net, the scratch directory, the sshd and the daemon, made when asked for and gone with it.

use std::cell::{Cell, OnceCell};
use std::ffi::OsStr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::clock::eventually;
use crate::net::{Host, Net};
use crate::program::{Finished, Running};
use crate::room::Room;
use crate::sshd::Sshd;

/// Two hosts, a router between them, a place for files. Dereferences to the net.
pub struct Lab {
    sshd: OnceCell<Sshd>,
    net: Net,
    places: Cell<u32>,
    room: Room,
}

/// Longest time that any copy of these tests may take.
const PATIENCE: Duration = Duration::from_secs(180);

impl Lab {
    /// A lab of one's own, or nothing where namespaces cannot be made: then the test says so and ends.
    pub fn open() -> Option<Self> {
        let room = Room::open()?;
        Some(Self { sshd: OnceCell::new(), net: Net::make(room.id()), places: Cell::new(0), room })
    }

    /// A new empty directory, alone in another one: whatever is left beside it can be seen.
    pub fn place(&self, name: &str) -> PathBuf {
        self.places.set(self.places.get() + 1);
        let place = self.scratch().join(format!("{}-{name}", self.places.get())).join(name);
        std::fs::create_dir_all(&place).expect("making a directory");
        place
    }

    /// The scratch directory.
    pub fn scratch(&self) -> &Path {
        self.room.path()
    }

    /// The configuration of ssh under which `far` and `far6` can be reached; starts the sshd at the first call.
    pub fn ssh_config(&self) -> &Path {
        let start = || Sshd::start(&self.net.far, self.scratch(), &self.room.search_path(), None);
        &self.sshd.get_or_init(start).client_config
    }

    /// `haul` on a host, with a configuration directory of its own.
    pub fn haul(&self, host: &Host) -> Command {
        self.room.haul(host)
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

//! The laws in the kernel: what has to be there for it, loading, replacing, taking away.
//!
//! Each law is registered by a link with a name in the bpf file system, so that it outlives the command, is there until its name is removed, and can be replaced by that
//! of a newer haul at once: connections that are open keep the old one. Maps have names too, and are shared by old and new.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::error::LoadError;
use crate::kernel::bpf::{self, Attach};
use crate::kernel::library::{Library, Loaded};
use crate::kernel::mount;
use crate::kernel::object::Object;
use crate::knobs::{self, Values};
use crate::law::Law;
use crate::memory;

static LAWS: Object = Object::packed(include_bytes!(concat!(env!("OUT_DIR"), "/laws.bpf.o.zst")));
static CHOOSE: Object = Object::packed(include_bytes!(concat!(env!("OUT_DIR"), "/choose.bpf.o.zst")));

/// Maps that old and new share.
const SHARED: [&str; 6] = ["flows", "knobs", "totals", PEERS, "change", "subflows"];
const PEERS: &str = "peers";
/// Of the programs that give connections their law by their peer.
const CHOSEN: &str = "haul_chosen";
const PROGRAMS: [&str; 2] = ["show", "alter"];
/// `cong_control` has the four arguments that are used here.
const OLDEST_KERNEL: (u32, u32) = (6, 10);

/// Which programs these are: those of another build differ.
pub(crate) fn digest() -> String {
    // FNV-1a: told apart are builds of one program, by nobody who means harm.
    let hash = LAWS
        .mark()
        .iter()
        .chain(CHOOSE.mark())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// What lacks for the laws to be loaded here; found without loading them.
pub fn obstacle() -> Result<(), LoadError> {
    if LAWS.is_missing() {
        return Err(LoadError::NotBuilt);
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if version(&release).is_some_and(|version| version < OLDEST_KERNEL) {
        return Err(LoadError::OldKernel { release: release.trim().to_owned() });
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(LoadError::NoTypes);
    }
    let missing = missing_rights(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    if missing.is_empty() { Ok(()) } else { Err(LoadError::Rights { missing }) }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|char: char| !char.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn missing_rights(status: &str) -> Vec<&'static str> {
    // Numbers of linux/capability.h; CAP_SYS_ADMIN has those of CAP_BPF and CAP_PERFMON.
    const RIGHTS: [(u32, bool, &str); 4] =
        [(12, false, "CAP_NET_ADMIN"), (39, true, "CAP_BPF"), (38, true, "CAP_PERFMON"), (21, false, "CAP_SYS_ADMIN")];
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let Some(set) = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()) else { return Vec::new() };
    let has = |bit: u32| set >> bit & 1 == 1;
    RIGHTS.into_iter().filter(|(bit, admin, _)| !(has(*bit) || *admin && has(21))).map(|(_, _, name)| name).collect()
}

/// Where the laws have names, and the file that keeps what they remember while there are none.
#[derive(Debug, Clone)]
pub(crate) struct Pins(PathBuf, PathBuf);

impl Pins {
    pub(crate) fn new(dir: &Path, memory: &Path) -> Self {
        Self(dir.to_owned(), memory.to_owned())
    }

    /// Where that file cannot be written, peers are met anew.
    pub(crate) fn keep_memory(&self) {
        if let Ok(peers) = self.open(PEERS) {
            let _ = memory::save(peers.as_fd(), &self.1);
        }
    }

    fn link(&self, law: Law) -> PathBuf {
        self.0.join(law.kernel_name())
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Whether all laws are registered.
    pub(crate) fn are_complete(&self) -> bool {
        let names = Law::ALL.map(|law| self.link(law));
        names.iter().all(|name| name.exists()) && SHARED.iter().chain(&PROGRAMS).all(|name| self.at(name).exists())
    }

    pub(crate) fn open(&self, name: &str) -> io::Result<OwnedFd> {
        bpf::pinned(&self.at(name))
    }

    /// Loads all laws and registers them; where there are some already they are replaced.
    pub(crate) fn load(&self) -> Result<(), LoadError> {
        obstacle()?;
        make(&self.0)?;
        let library = Library::open()?;
        self.keep_memory();
        let met_nobody = !self.at(PEERS).exists();
        let mut renewed = false;
        let object = match self.object(&library) {
            // Maps of another layout are not shared: connections that are open keep theirs, new ones begin with nothing.
            Err(LoadError::Refused { .. }) if SHARED.iter().any(|map| self.at(map).exists()) => {
                for map in SHARED {
                    remove(&self.at(map))?;
                }
                renewed = true;
                self.object(&library)?
            }
            object => object?,
        };
        for law in Law::ALL {
            self.register(&object, law)?;
        }
        for program in PROGRAMS {
            remove(&self.at(program))?;
            bpf::pin(object.program(program)?, &self.at(program)).map_err(|source| place(&self.at(program), source))?;
        }
        if met_nobody || renewed {
            memory::restore(object.map(PEERS)?, &self.1);
        }
        let knobs = object.map("knobs")?;
        let mut values = [0; size_of::<Values>()];
        let read = bpf::lookup(knobs, &0_u32.to_ne_bytes(), &mut values);
        // A map that is new is all zero, which no setting of times may be.
        if read.is_ok() && values == [0; size_of::<Values>()] {
            let written = bpf::update(knobs, &0_u32.to_ne_bytes(), &knobs::encode(&knobs::usual()));
            written.map_err(|source| LoadError::Refused { source, log: String::new(), kept: None })?;
        }
        Ok(())
    }

    fn object<'a>(&self, library: &'a Library) -> Result<Loaded<'a>, LoadError> {
        let object = library.object(LAWS.bytes())?;
        for map in SHARED {
            object.share(map, &self.at(map))?;
        }
        for law in Law::ALL {
            object.by_link(&law.operations())?;
        }
        object.load()?;
        Ok(object)
    }

    fn register(&self, object: &Loaded<'_>, law: Law) -> Result<(), LoadError> {
        let refused = |source| LoadError::Refused { source, log: format!("registering {}", law.kernel_name()), kept: None };
        let map = object.ready(&law.operations())?;
        let name = self.link(law);
        if let Ok(link) = bpf::pinned(&name) {
            if bpf::replace(link.as_fd(), map).is_ok() {
                return Ok(());
            }
            // It was detached by a program that was killed before it could remove the name.
            remove(&name)?;
        }
        let link = bpf::link(map, None, Attach::StructOps).map_err(refused)?;
        bpf::pin(link.as_fd(), &name).map_err(|source| place(&name, source))
    }

    /// Takes the laws' names away: no new connection gets one, and those that are open keep theirs until they end.
    pub(crate) fn unload(&self) -> Result<(), LoadError> {
        self.keep_memory();
        for name in Law::ALL.map(|law| self.link(law)) {
            if let Ok(link) = bpf::pinned(&name) {
                bpf::detach(link.as_fd()).map_err(|source| place(&name, source))?;
            }
        }
        remove_tree(&self.0).map_err(|source| place(&self.0, source))
    }
}

/// Loads the program that gives connections their law by their peer, with its table, both named in a directory of their own. What says by how narrow a rule a connection has its law has its name beside that
/// directory, and is all such programs'.
pub(crate) fn load_chooser(dir: &Path) -> Result<(), LoadError> {
    obstacle()?;
    make(dir)?;
    let library = Library::open()?;
    let chosen = dir.with_file_name(CHOSEN);
    let loaded = || {
        let object = library.object(CHOOSE.bytes())?;
        object.share(CHOSEN, &chosen)?;
        object.load().map(|()| object)
    };
    let object = match loaded() {
        // One of another layout is an older haul's.
        Err(LoadError::Refused { .. }) if chosen.exists() => {
            remove(&chosen)?;
            loaded()?
        }
        object => object?,
    };
    for (name, fd) in [("program", object.program("choose")?), ("rules", object.map("rules")?)] {
        remove(&dir.join(name))?;
        bpf::pin(fd, &dir.join(name)).map_err(|source| place(&dir.join(name), source))?;
    }
    Ok(())
}

/// Mounts the bpf file system where it is missing.
pub(crate) fn mount(at: &Path) -> Result<(), LoadError> {
    if mount::is_mounted(at) {
        return Ok(());
    }
    if !mount::is_shared() {
        return Err(LoadError::OwnMounts);
    }
    mount::mount_bpf(at).map_err(|source| place(at, source))
}

fn make(dir: &Path) -> Result<(), LoadError> {
    fs::create_dir_all(dir).map_err(|source| place(dir, source))
}

fn remove(file: &Path) -> Result<(), LoadError> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(place(file, error)),
        _ => Ok(()),
    }
}

/// Ends a program that [`load_chooser`] has loaded, with its link and its table.
pub(crate) fn unload_chooser(dir: &Path) -> Result<(), LoadError> {
    if let Ok(link) = bpf::pinned(&dir.join("link")) {
        // It is detached already where its cgroup has gone.
        let _ = bpf::detach(link.as_fd());
    }
    remove_tree(dir).map_err(|source| place(dir, source))
}

/// A directory with what is in it; none is none.
fn remove_tree(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(crate) fn place(path: &Path, source: io::Error) -> LoadError {
    LoadError::Place { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_first_two_numbers() {
        assert_eq!(version("6.18.44-fc-v657\n"), Some((6, 18)));
        assert_eq!(version("6.9-rc1"), Some((6, 9)));
        assert!(version("6.9").expect("a version") < OLDEST_KERNEL);
        assert_eq!(version("plan9"), None);
    }

    #[test]
    fn the_rights_that_lack_are_named() {
        assert_eq!(missing_rights("CapEff:\t0000000000000000\n").len(), 4);
        assert_eq!(missing_rights("CapEff:\t000001ffffffffff\n"), [""; 0]);
        assert_eq!(missing_rights("CapEff:\t0000000000200000\n"), ["CAP_NET_ADMIN"]);
    }
}

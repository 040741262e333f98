//! What TCP's own timer cannot hold: packets of UDP and all else wait at the interface that they leave through, in a queueing discipline of the kernel ([`Discipline`]). A program at the cgroup
//! says of each packet which class it is for; what it says nothing of passes at once. By fq a second program, at the interface, gives each packet of a class its departure time.
//!
//! The discipline stands where the kernel's default stood, never in the place of one that somebody has chosen, and the default comes back with its end. Before it is made a file of its own
//! names it, locked as long as its process lives: one that was left by a kill holds nobody, and is taken away by whoever comes next.

use std::fmt;
use std::fs::{self, File};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use crate::class::{PaceClass, with_rates};
use crate::departure;
use crate::discipline::{Discipline, Standing, standing};
use crate::error::TcpError;
use crate::kernel::bpf::{self, Attach};
use crate::kernel::cgroup;
use crate::kernel::library::Library;
use crate::kernel::netns::Namespace;
use crate::kernel::object::Object;

static QUEUE: Object = Object::packed(include_bytes!(concat!(env!("OUT_DIR"), "/queue.bpf.o.zst")));

/// Where all else of the classes is to wait, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSpec<'a> {
    /// The interface through which it leaves, in this network namespace.
    pub interface: &'a str,
    /// What holds it there. None: departure times where the kernel can, else HTB.
    pub by: Option<Discipline>,
}

/// A queue that is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueState {
    /// Where.
    pub place: QueuePlace,
    /// What holds packets there.
    pub by: Discipline,
}

/// An interface with a queue of ours. What it says of itself names the interface among those of all network namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePlace {
    /// Its name there.
    pub interface: String,
    /// Where it is.
    pub namespace: Namespace,
}

/// The discipline at an interface, and the programs that say which packets are for which class and when they leave. Dropped, it goes.
#[derive(Debug)]
pub(crate) struct Queue {
    place: QueuePlace,
    program: OwnedFd,
    /// Where it is by departure times.
    departures: Option<OwnedFd>,
    /// None: it is to stay.
    note: Option<Note>,
}

/// The file that names it.
#[derive(Debug)]
struct Note {
    path: PathBuf,
    _lock: File,
}

impl Queue {
    /// Whether one can be made there, once the one that is `given_up` has gone; nothing is changed.
    pub(crate) fn may_be_at(spec: &QueueSpec<'_>, classes: &[PaceClass], given_up: Option<&QueuePlace>) -> Result<(), TcpError> {
        let interface = spec.interface;
        if with_rates(classes).next().is_none() {
            return Err(TcpError::NoSuchSetting(format!("no class has a rate that a queue at {interface} could hold")));
        }
        index(interface)?;
        match standing(interface)? {
            Standing::Ours if given_up != Some(&QueuePlace::here(interface)?) => {
                Err(TcpError::QueueInUse { interface: interface.to_owned() })
            }
            Standing::Default | Standing::Ours => Ok(()),
            Standing::Chosen(kind) => Err(TcpError::QueueTaken { interface: interface.to_owned(), kind }),
        }
    }

    /// Makes the discipline at an interface, for each of these classes that has a rate.
    pub(crate) fn at(state: &Path, spec: &QueueSpec<'_>, classes: &[PaceClass]) -> Result<Self, TcpError> {
        let interface = spec.interface;
        let number = index(interface)?;
        let program = load(number, classes)?;
        let place = QueuePlace::here(interface)?;
        let note = Some(Note::write(state, &place)?);
        Self::may_be_at(spec, classes, None)?;
        // Dropped, it takes away what is ours: not before there is something of ours.
        let mut queue = Self { place, program, departures: None, note };
        let departures = || {
            let link = departure::at(number, classes)?;
            Discipline::Fq.lay(interface, classes).map(|()| Some(link))
        };
        let htb = || Discipline::Htb.lay(interface, classes).map(|()| None);
        queue.departures = match spec.by {
            Some(Discipline::Fq) => departures(),
            Some(Discipline::Htb) => htb(),
            None => departures().or_else(|error| if matches!(error, TcpError::NoDepartures(_)) { htb() } else { Err(error) }),
        }?;
        Ok(queue)
    }

    /// Has the program look at all packets of a cgroup.
    pub(crate) fn attach(&self, dir: &Path) -> Result<OwnedFd, TcpError> {
        cgroup::attach(dir, self.program.as_fd(), Attach::Egress)
    }

    /// It outlives this process, and is to be taken away by its place.
    pub(crate) fn keep(mut self) {
        self.note = None;
    }

    pub(crate) const fn place(&self) -> &QueuePlace {
        &self.place
    }

    pub(crate) const fn by(&self) -> Discipline {
        if self.departures.is_some() { Discipline::Fq } else { Discipline::Htb }
    }

    /// By which the program at the interface lives, where there is one.
    pub(crate) fn departures(&self) -> Option<BorrowedFd<'_>> {
        self.departures.as_ref().map(OwnedFd::as_fd)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.note.is_some() {
            // First what gives times, which without a discipline would drop packets and hold none.
            self.departures = None;
            let _ = self.place.take_away();
        }
    }
}

impl QueuePlace {
    fn here(interface: &str) -> Result<Self, TcpError> {
        Ok(Self { interface: interface.to_owned(), namespace: Namespace::own()? })
    }

    /// From what another one has said of itself.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (number, interface) = text.split_once('.')?;
        Some(Self { interface: interface.to_owned(), namespace: Namespace::numbered(number.parse().ok()?) })
    }

    /// Takes the discipline away, if it is ours; it goes with its namespace too.
    pub(crate) fn take_away(&self) -> Result<(), TcpError> {
        let taken = self
            .namespace
            .inside_if_there(|| if index(&self.interface).is_ok() { Discipline::take_away(&self.interface) } else { Ok(()) });
        taken?.unwrap_or(Ok(()))
    }
}

impl fmt::Display for QueuePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.namespace.number(), self.interface)
    }
}

impl Note {
    fn write(state: &Path, place: &QueuePlace) -> Result<Self, TcpError> {
        let dir = state.join(NOTES);
        let failed = |source| TcpError::Journal { path: dir.clone(), source };
        fs::create_dir_all(&dir).map_err(failed)?;
        let path = dir.join(place.to_string());
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path, _lock: file }),
            Err(Errno::WOULDBLOCK) => Err(TcpError::QueueInUse { interface: place.interface.clone() }),
            Err(errno) => Err(failed(errno.into())),
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Takes away what runs that were killed have left.
pub(crate) fn sweep(state: &Path) {
    for entry in fs::read_dir(state.join(NOTES)).into_iter().flatten().flatten() {
        let Some(place) = entry.file_name().to_str().and_then(QueuePlace::read) else { continue };
        let Ok(file) = File::open(entry.path()) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() && place.take_away().is_ok() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The program that says which class a packet is for, where it leaves through the interface of this number; it does nothing yet.
fn load(interface: u32, classes: &[PaceClass]) -> Result<OwnedFd, TcpError> {
    let library = Library::open()?;
    let object = library.object(QUEUE.bytes())?;
    object.load()?;
    let doing = "filling the tables";
    let (networks, at) = (object.map("classes")?, object.map("at")?);
    bpf::update(at, &0_u32.to_ne_bytes(), &interface.to_ne_bytes()).map_err(TcpError::doing(doing))?;
    for (class, number) in with_rates(classes) {
        bpf::update(networks, &class.key(), &number.to_ne_bytes()).map_err(TcpError::doing(doing))?;
    }
    object.program("sort")?.try_clone_to_owned().map_err(TcpError::doing("keeping a program"))
}

/// The interface's number, in this network namespace.
fn index(interface: &str) -> Result<u32, TcpError> {
    let unknown = |source: Errno| TcpError::NoInterface { name: interface.to_owned(), source: source.into() };
    // What tc would read as words of its own is no name.
    if interface.is_empty()
        || !interface.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/')
        || interface.starts_with('-')
    {
        return Err(unknown(Errno::NODEV));
    }
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).map_err(unknown)?;
    netdevice::name_to_index(&socket, interface).map_err(unknown)
}

const NOTES: &str = "queues";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_of_an_interface_is_not_told_to_tc() {
        for name in ["", "-force", "eth0 root", "a\nqdisc", "../eth0", "no-such-device"] {
            assert!(matches!(index(name), Err(TcpError::NoInterface { .. })), "{name}");
        }
        assert_eq!(index("lo").ok(), Some(1));
    }
}

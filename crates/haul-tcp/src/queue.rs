//! What TCP's own timer cannot hold: packets of UDP and all else wait at the interface that they leave through, in a queueing discipline of the kernel (HTB), a class of it for each of
//! ours. A program at the cgroup says of each packet which class it is for; what it says nothing of passes at once.
//!
//! The discipline stands where the kernel's default stood, never in the place of one that somebody has chosen, and the default comes back with its end. Before it is made a file of its own
//! names it, locked as long as its process lives: one that was left by a kill holds nobody, and is taken away by whoever comes next.

use std::fmt;
use std::fs::{self, File};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use haul_netdev::iproute::{tc, tc_batch};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
use serde_json::Value;

use crate::class::PaceClass;
use crate::error::TcpError;
use crate::kernel::bpf::{self, Attach};
use crate::kernel::cgroup;
use crate::kernel::library::Library;
use crate::kernel::netns::Namespace;
use crate::laws;

static QUEUE: &laws::Object<[u8]> = &laws::Object(*include_bytes!(concat!(env!("OUT_DIR"), "/queue.bpf.o")));

/// By which the discipline is known for ours, in tc's words; the program has the same.
const HANDLE: &str = "4861:";
/// A timer of a busy host is late by that much; what the line would have carried meanwhile may follow at once, or the rate is never reached.
const LATE_US: u64 = 500;
/// A full frame, at least.
const LEAST_BURST: u64 = 1600;
/// What a frame has on a line beside what the kernel counts: check sum, preamble, gap; and the shortest one.
const ON_LINE: &str = "overhead 24 mpu 84";

/// An interface with a queue of ours. What it says of itself names the interface among those of all network namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePlace {
    /// Its name there.
    pub interface: String,
    /// Where it is.
    pub namespace: Namespace,
}

/// The discipline at an interface, and the program that sorts packets into it. Dropped, it goes.
#[derive(Debug)]
pub(crate) struct Queue {
    place: QueuePlace,
    program: OwnedFd,
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
    /// Makes the discipline at an interface, with a class for each of these that has a rate.
    pub(crate) fn at(state: &Path, interface: &str, classes: &[PaceClass]) -> Result<Self, TcpError> {
        if with_rates(classes).next().is_none() {
            return Err(TcpError::NoSuchSetting(format!("no class has a rate that a queue at {interface} could hold")));
        }
        let program = load(index(interface)?, classes)?;
        let place = QueuePlace::here(interface)?;
        let note = Some(Note::write(state, &place)?);
        match standing(interface)? {
            Standing::Default => {}
            Standing::Ours => return Err(TcpError::QueueInUse { interface: interface.to_owned() }),
            Standing::Chosen(kind) => return Err(TcpError::QueueTaken { interface: interface.to_owned(), kind }),
        }
        // Dropped, it takes away what is ours: not before there is something of ours.
        let queue = Self { place, program, note };
        tc_batch(&lines(interface, classes))?;
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
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.note.is_some() {
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
        let taken = self.namespace.inside_if_there(|| {
            let interface = &self.interface;
            if index(interface).is_ok() && standing(interface)? == Standing::Ours {
                tc_batch(&format!("qdisc del dev {interface} root\n"))?;
            }
            Ok(())
        });
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
    let object = library.object(&QUEUE.0)?;
    object.load()?;
    let doing = "filling the tables";
    let (networks, at) = (object.map("classes")?, object.map("at")?);
    bpf::update(at, &0_u32.to_ne_bytes(), &interface.to_ne_bytes()).map_err(TcpError::doing(doing))?;
    for (class, number) in with_rates(classes) {
        bpf::update(networks, &class.key(), &number.to_ne_bytes()).map_err(TcpError::doing(doing))?;
    }
    object.program("sort")?.try_clone_to_owned().map_err(TcpError::doing("keeping a program"))
}

/// Those that the discipline has a class for, and which of all they are.
fn with_rates(classes: &[PaceClass]) -> impl Iterator<Item = (&PaceClass, u32)> {
    classes.iter().zip(0..).filter(|(class, _)| class.bits_per_s > 0)
}

/// For `tc -batch`.
fn lines(interface: &str, classes: &[PaceClass]) -> String {
    let mut lines = format!("qdisc add dev {interface} root handle {HANDLE} htb default 0\n");
    for (class, number) in with_rates(classes) {
        let rate = class.bits_per_s;
        let burst = (rate / 8).saturating_mul(LATE_US).div_ceil(1_000_000).max(LEAST_BURST);
        let class = format!("class add dev {interface} parent {HANDLE} classid {HANDLE}{:x}", number + 1);
        lines.extend([class, format!(" htb rate {rate}bit burst {burst} cburst {burst} quantum {LEAST_BURST} {ON_LINE}\n")]);
    }
    lines
}

/// The discipline that an interface has.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    /// The kernel's default.
    Default,
    Ours,
    /// Another one, that somebody has chosen.
    Chosen(String),
}

fn standing(interface: &str) -> Result<Standing, TcpError> {
    let told = tc(&["-json", "qdisc", "show", "dev", interface, "root"])?;
    let list: Vec<Value> = serde_json::from_str(&told).unwrap_or_default();
    Ok(list.first().map_or(Standing::Default, |root| {
        let word = |key: &str| root.get(key).and_then(Value::as_str).unwrap_or_default();
        match (word("kind"), word("handle")) {
            ("htb", HANDLE) => Standing::Ours,
            // What nobody has chosen has no number.
            ("noqueue", _) | (_, "0:") => Standing::Default,
            (kind, handle) => Standing::Chosen(format!("{kind} {handle}")),
        }
    }))
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
    fn each_class_with_a_rate_has_one_of_the_disciplines() {
        let class = |bits_per_s| PaceClass { to: None, bits_per_s, follows: false };
        let lines = lines("eth0", &[class(1_000_000), class(0), class(2_000_000_000)]);
        let words: Vec<Vec<&str>> = lines.lines().map(|line| line.split(' ').collect()).collect();
        assert_eq!(words[0].join(" "), "qdisc add dev eth0 root handle 4861: htb default 0");
        let of = |line: &[&str], word: &str| line[line.iter().position(|one| *one == word).expect("the word") + 1].to_owned();
        let each = words[1..].iter().map(|line| ["classid", "rate", "burst"].map(|word| of(line, word)));
        let expected = [["4861:1", "1000000bit", "1600"], ["4861:3", "2000000000bit", "125000"]];
        assert_eq!(each.collect::<Vec<_>>(), expected.map(|words| words.map(str::to_owned)));
    }

    #[test]
    fn what_is_no_name_of_an_interface_is_not_told_to_tc() {
        for name in ["", "-force", "eth0 root", "a\nqdisc", "../eth0", "no-such-device"] {
            assert!(matches!(index(name), Err(TcpError::NoInterface { .. })), "{name}");
        }
        assert_eq!(index("lo").ok(), Some(1));
    }
}

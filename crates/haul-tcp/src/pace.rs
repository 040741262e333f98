//! Rates for the connections of programs that know nothing of it: the kernel's TCP spaces their packets by its own timer, whatever their congestion control.
//!
//! A program at a cgroup holds each connection to its part of its class's rate (`SO_MAX_PACING_RATE`, which needs no queueing discipline), counts those of a class that
//! send, and adjusts the parts with each round-trip time measured. A class may also follow TCP's own estimate: a window each round trip (PSPacer's `mode`), where the
//! kernel would let 120 to 200 % of that go. What leaves through a named interface otherwise, UDP above all, waits there in a [`queue`] of the kernel's.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::class::PaceClass;
use crate::clock;
use crate::discipline::Discipline;
use crate::error::{LoadError, TcpError};
use crate::journal;
use crate::kernel::bpf::{self, Attach};
use crate::kernel::library::Library;
use crate::kernel::object::Object;
use crate::kernel::{cgroup, mount};
use crate::laws;
use crate::queue::{self, Queue, QueuePlace, QueueSpec, QueueState};

static PACE: Object = Object::packed(include_bytes!(concat!(env!("OUT_DIR"), "/pace.bpf.o.zst")));

/// A class and what it holds now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaceState {
    /// The class.
    pub class: PaceClass,
    /// Connections that are open and were opened since.
    pub open: u64,
    /// Those of them that have sent in the last seconds and share the rate.
    pub sending: u64,
}

/// Rates for this machine's connections, or for one program's.
#[derive(Debug, Clone)]
pub struct Pace {
    state: PathBuf,
}

impl Default for Pace {
    fn default() -> Self {
        Self::new(Path::new("/run/haul/pace"))
    }
}

/// The program in the kernel, with its tables.
#[derive(Debug)]
struct Spread {
    program: OwnedFd,
    counts: OwnedFd,
}

/// What `haul pace -- CMD` holds: dropped, the kernel takes the rates back; so it does where this process is killed.
#[derive(Debug)]
pub struct PaceRun {
    dir: PathBuf,
    before: PathBuf,
    _links: Vec<OwnedFd>,
    classes: Vec<PaceClass>,
    counts: OwnedFd,
    queue: Option<Queue>,
}

impl Pace {
    /// With its state there. Default: /run/haul/pace.
    pub fn new(state: &Path) -> Self {
        Self { state: state.to_owned() }
    }

    /// A cgroup whose programs have these rates; this process is in it, until [`PaceRun::leave`]. With an interface, whatever else of a class leaves through that is held too.
    pub fn run(&self, classes: &[PaceClass], queue: Option<QueueSpec<'_>>) -> Result<PaceRun, TcpError> {
        let spread = load(classes)?;
        let root = cgroup::root()?;
        sweep(&root);
        queue::sweep(&self.state);
        let queue = queue.map(|spec| Queue::at(&self.state, &spec, classes)).transpose()?;
        let before = cgroup::own()?;
        let dir = root.join(format!("{GROUP}{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(TcpError::doing("making a cgroup"))?;
        let entered = || {
            let mut links = vec![spread.attach(&dir)?];
            if let Some(queue) = &queue {
                links.push(queue.attach(&dir)?);
            }
            cgroup::join(&dir).map_err(TcpError::doing("joining a cgroup"))?;
            Ok(links)
        };
        match entered() {
            Ok(links) => Ok(PaceRun { dir, before, _links: links, classes: classes.to_vec(), counts: spread.counts, queue }),
            Err(error) => {
                let _ = cgroup::remove(&dir);
                Err(error)
            }
        }
    }

    /// Gives all connections of this machine that open from now on these rates, until [`off`](Self::off) or a restart, and with an interface whatever else of a class leaves through that. What
    /// was on before is replaced.
    pub fn on(&self, classes: &[PaceClass], queue: Option<QueueSpec<'_>>) -> Result<(), TcpError> {
        let _lock = journal::lock(&self.state)?;
        let spread = load(classes)?;
        if !mount::is_shared() {
            return Err(LoadError::OwnMounts.into());
        }
        // What cannot be had leaves what is on as it is.
        if let Some(spec) = &queue {
            queue::sweep(&self.state);
            Queue::may_be_at(spec, classes, self.queue_place().as_ref())?;
        }
        self.take_back()?;
        let bpf = self.bpf();
        mount::mount_bpf(&bpf).map_err(|source| laws::place(&bpf, source))?;
        // What is written is there before what it speaks of: a kill between leaves a word too much, which `off` takes away.
        let text = serde_json::to_vec(classes).map_err(|error| TcpError::doing("writing the classes")(error.into()))?;
        let (file, new) = (self.classes_file(), self.unfinished_file());
        let written = fs::write(&new, &text).and_then(|()| fs::rename(&new, &file));
        written.map_err(|source| laws::place(&file, source))?;
        let made = || {
            let pinned = |name: &str, fd: BorrowedFd<'_>| bpf::pin(fd, &bpf.join(name)).map_err(TcpError::doing("naming a link"));
            let root = cgroup::root()?;
            if let Some(spec) = queue {
                let queue = Queue::at(&self.state, &spec, classes)?;
                let written = fs::write(self.queue_file(), queue.place().to_string());
                written.map_err(|source| laws::place(&self.queue_file(), source))?;
                if let Some(departures) = queue.departures() {
                    pinned(DEPART, departures)?;
                }
                pinned(SORT, queue.attach(&root)?.as_fd())?;
                queue.keep();
            }
            pinned("link", spread.attach(&root)?.as_fd())?;
            pinned(COUNTS, spread.counts.as_fd())
        };
        made().inspect_err(|_| {
            let _ = self.take_back();
        })
    }

    /// The interface where all else of the classes that are on waits, if there is one.
    pub fn queue_at(&self) -> Option<QueueState> {
        let by = if self.bpf().join(DEPART).exists() { Discipline::Fq } else { Discipline::Htb };
        // Else it is a word that was left by a kill.
        let place = self.bpf().join(SORT).exists().then(|| self.queue_place())??;
        Some(QueueState { place, by })
    }

    fn queue_place(&self) -> Option<QueuePlace> {
        QueuePlace::read(&fs::read_to_string(self.queue_file()).ok()?)
    }

    /// Takes rates back; false where none were on. Connections that are open keep theirs.
    pub fn off(&self) -> Result<bool, TcpError> {
        let _lock = journal::lock(&self.state)?;
        if let Ok(root) = cgroup::root() {
            sweep(&root);
        }
        self.take_back()
    }

    /// What is on, and how many connections have it.
    pub fn status(&self) -> Result<Vec<PaceState>, TcpError> {
        let text = match fs::read(self.classes_file()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            text => text.map_err(|source| TcpError::Journal { path: self.classes_file(), source })?,
        };
        let classes: Vec<PaceClass> =
            serde_json::from_slice(&text).map_err(|source| TcpError::Unreadable { path: self.classes_file(), source })?;
        match bpf::pinned(&self.bpf().join(COUNTS)) {
            Ok(counts) => states(&classes, counts.as_fd()),
            // A word that was left by a kill.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(TcpError::doing("reading what is on")(error)),
        }
    }

    fn take_back(&self) -> Result<bool, TcpError> {
        let was_on = mount::is_mounted(&self.bpf());
        queue::sweep(&self.state);
        for name in ["link", SORT, DEPART] {
            if let Ok(link) = bpf::pinned(&self.bpf().join(name)) {
                bpf::detach(link.as_fd()).map_err(TcpError::doing("detaching a program"))?;
            }
        }
        if let Some(place) = self.queue_place() {
            place.take_away()?;
            let _ = fs::remove_file(self.queue_file());
        }
        mount::unmount_bpf(&self.bpf()).map_err(TcpError::doing("unmounting the bpf file system"))?;
        let _ = fs::remove_file(self.unfinished_file());
        match fs::remove_file(self.classes_file()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(TcpError::Journal { path: self.classes_file(), source: error })
            }
            _ => Ok(was_on),
        }
    }

    fn bpf(&self) -> PathBuf {
        self.state.join("bpf")
    }

    fn classes_file(&self) -> PathBuf {
        self.state.join("classes.json")
    }

    fn queue_file(&self) -> PathBuf {
        self.state.join("queue")
    }

    /// What has its name only once it is whole.
    fn unfinished_file(&self) -> PathBuf {
        self.state.join("classes.new")
    }
}

impl Spread {
    fn attach(&self, dir: &Path) -> Result<OwnedFd, TcpError> {
        cgroup::attach(dir, self.program.as_fd(), Attach::Sockops)
    }
}

impl PaceRun {
    /// Leaves the cgroup, once the program was started in it.
    pub fn leave(&self) -> Result<(), TcpError> {
        cgroup::join(&self.before).map_err(TcpError::doing("leaving a cgroup"))
    }

    /// What holds UDP and all else at the interface, where that was asked for.
    pub fn queue_by(&self) -> Option<Discipline> {
        self.queue.as_ref().map(Queue::by)
    }

    /// What its classes hold now.
    pub fn status(&self) -> Result<Vec<PaceState>, TcpError> {
        states(&self.classes, self.counts.as_fd())
    }
}

impl Drop for PaceRun {
    fn drop(&mut self) {
        let _ = cgroup::join(&self.before);
        let _ = cgroup::remove(&self.dir);
    }
}

fn states(classes: &[PaceClass], counts: BorrowedFd<'_>) -> Result<Vec<PaceState>, TcpError> {
    let state = |(index, class): (u32, &PaceClass)| {
        let mut count = [0; COUNT_BYTES];
        bpf::lookup(counts, &index.to_ne_bytes(), &mut count).map_err(TcpError::doing("reading the counters"))?;
        let word = |at: usize| count[at * 8..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        // As in pace.bpf.c: two times, each with how many have sent in it.
        let now = clock::since_start().as_nanos() as u64 >> TIME_SHIFT;
        let sent_in = |time: u64| {
            let slot = word(1 + (time & 1) as usize);
            if slot >> 32 == time & 0xffff_ffff { slot & 0xffff_ffff } else { 0 }
        };
        Ok(PaceState { class: *class, open: word(0), sending: sent_in(now).max(sent_in(now.wrapping_sub(1))) })
    };
    (0..).zip(classes).map(state).collect()
}

/// Loads the program, its tables filled; it does nothing yet.
fn load(classes: &[PaceClass]) -> Result<Spread, TcpError> {
    if classes.is_empty() || classes.len() > CLASSES_MOST {
        return Err(TcpError::NoSuchSetting(format!("there are {} classes: 1 to {CLASSES_MOST} can be", classes.len())));
    }
    if let Some(class) = classes.iter().find(|class| class.bits_per_s == 0 && !class.follows) {
        let to = class.to.map_or_else(|| "everywhere".to_owned(), |to| to.to_string());
        return Err(TcpError::NoSuchSetting(format!("the class to {to} has no rate")));
    }
    laws::obstacle()?;
    let library = Library::open()?;
    let object = library.object(PACE.bytes())?;
    // What several programs hold a connection to, they have in common.
    if let Some(held) = bpf::map_called(HELD, HELD_BYTES) {
        object.reuse(HELD, held.as_fd())?;
    }
    object.load()?;
    let doing = "filling the tables";
    let (networks, paces) = (object.map("classes")?, object.map("paces")?);
    // Not zero, and no other program's that is about.
    let holder = u64::from(clock::since_start().as_nanos() as u32 | 1);
    for (index, class) in (0_u32..).zip(classes) {
        let pace = [class.bits_per_s / 8, u64::from(class.follows), holder].map(u64::to_ne_bytes).concat();
        bpf::update(paces, &index.to_ne_bytes(), &pace).map_err(TcpError::doing(doing))?;
        bpf::update(networks, &class.key(), &index.to_ne_bytes()).map_err(TcpError::doing(doing))?;
    }
    let own = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map_err(TcpError::doing("keeping a table"));
    Ok(Spread { program: own(object.program("spread")?)?, counts: own(object.map("counts")?)? })
}

/// Groups of runs that were killed.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(GROUP));
        if process.is_some_and(|process| process.parse::<u32>().is_ok() && !Path::new("/proc").join(process).exists()) {
            // One that a program of it is still in can wait.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Of a run: with the number of its process.
const GROUP: &str = "haul-pace-";
/// The link of the program that sorts packets, by its name in the bpf file system.
const SORT: &str = "sort";
/// That of the program that gives them their departure times.
const DEPART: &str = "depart";
/// The program's table of connections, by its name in the bpf file system.
const COUNTS: &str = "counts";
/// An entry of it.
const COUNT_BYTES: usize = 24;
/// The map that all programs have in common, by its name in the kernel, and the size of its values: `struct held`.
const HELD: &str = "haul_held";
const HELD_BYTES: u32 = 40;
/// As there.
const TIME_SHIFT: u32 = 30;
/// As many as the program's tables have.
const CLASSES_MOST: usize = 64;

//! The destination tree: directories, links, and where a file goes.
//!
//! Every name that the peer gives is one component, used below an open directory and never followed as a link; see [`Dirs`].

use std::collections::{HashMap, HashSet};
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::Expected;
use super::commit::FEW;
use super::interrupted::MAX_TOPS;
use super::remembered::{DirInfo, Finish, Links, Location, Remembered};
use super::stage::{Stage, part_name};
use crate::descriptors::open_at;
use crate::dirs::Dirs;
use crate::error::{CopyError, Why, WirePath};
use crate::job::{Options, Ownership};
use crate::journal::{Made, Record};
use crate::meta;
use crate::protocol::{Entry, Kind, MAX_TARGET, ROOT, Stamp};
use crate::resolve::{Place, is_plain_name, is_reserved};
use crate::session::lock;

/// Memory for the directories and hard links that a user's own copy remembers to its end: some seven million of them.
const REMEMBERED_BYTES: usize = 1 << 30;
/// The same for a client of a daemon, which has others: some two million.
const CLIENTS_REMEMBERED_BYTES: usize = 256 << 20;

pub(super) struct Tree {
    pub(super) place: Place,
    pub(super) options: Options,
    pub(super) stage: Stage,
    pub(super) dirs: Dirs,
    /// What may stand at the top; none: anything.
    pub(super) expected: Option<Expected>,
    umask: u32,
    euid: u32,
    egid: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tops: usize,
    remembered: Remembered,
    /// Directories in which names were made, no more than are synced one by one.
    touched: HashSet<u64>,
    /// A directory on each other file system that is mounted in the tree, by device.
    foreign: HashMap<u64, u64>,
}

/// How a finished part file got its name, and what was made, if it is another file than the part.
pub(super) enum Placed {
    Renamed,
    Copied(Made),
    /// Into the file that was there.
    WrittenOver(Made),
}

/// How a new file is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meta {
    /// For the call that makes it; the umask applies.
    pub(super) open_mode: u32,
    /// To set afterwards, where the umask would take something away.
    pub(super) mode: Option<u32>,
    /// The mode as it shall be.
    pub(super) final_mode: u32,
    pub(super) mtime: Option<Stamp>,
    pub(super) owner: Option<(u32, u32)>,
}

impl Tree {
    pub(super) fn new(place: Place, stage: Stage, options: Options, expected: Option<Expected>) -> Self {
        let dirs = Dirs::new();
        dirs.pin(ROOT, ROOT, &place.display().0, place.root.clone());
        let mut state = State::default();
        state.remembered.directory(ROOT, DirInfo { created: false, usable: true, finish: Finish::default() });
        let (euid, egid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self { place, options, stage, dirs, expected, umask: meta::umask(), euid, egid, state: Mutex::new(state) }
    }

    /// The name an entry gets; an error where the peer must not give it. The inner error is the user's: a file where a directory was asked for.
    pub(super) fn name_of(&self, entry: &Entry) -> Result<Result<Vec<u8>, Why>, CopyError> {
        let replaces = matches!(entry.kind, Kind::File { replaces: Some(_), .. } | Kind::Stream { replaces: Some(_), .. });
        let directory = matches!(entry.kind, Kind::Directory);
        if entry.parent != ROOT {
            if !is_plain_name(&entry.name.0) {
                return Err(CopyError::PeerMisbehaved("a name that is not plain"));
            }
            return Ok(if is_reserved(&entry.name.0) { Err(Why::Reserved) } else { Ok(entry.name.0.clone()) });
        }
        let mut state = lock(&self.state);
        state.tops += usize::from(!replaces);
        if state.tops <= MAX_TOPS && !self.stage.has_earlier() {
            // Only for people: a journal that cannot be written to says so soon enough.
            let name = self.place.rename.clone().unwrap_or_else(|| entry.name.0.clone());
            let _ = self.stage.append(&[Record::Top { name: WirePath(name) }]);
        }
        if let Some(name) = &self.place.rename {
            if state.tops > 1 {
                return Err(CopyError::PeerMisbehaved("several sources for one name"));
            }
            return Ok(if self.place.directory_only && !directory { Err(Why::NeedsDirectory) } else { Ok(name.clone()) });
        }
        let name = &entry.name.0;
        if self.expected.as_ref().is_some_and(|expected| !expected.contains(name)) {
            return Err(CopyError::PeerMisbehaved("a source that was not asked for"));
        }
        let plain = is_plain_name(name) || (name.is_empty() && directory);
        if !plain {
            return Err(CopyError::PeerMisbehaved("a name that is not plain"));
        }
        Ok(if is_reserved(name) { Err(Why::Reserved) } else { Ok(name.clone()) })
    }

    /// Whether there is a directory for it, and whether this run made that; an error where the peer never announced it.
    pub(super) fn parent(&self, entry: &Entry) -> Result<Option<bool>, CopyError> {
        let state = lock(&self.state);
        let info = state.remembered.info(entry.parent).ok_or(CopyError::PeerMisbehaved("an entry in an unknown directory"))?;
        Ok(info.usable.then_some(info.created))
    }

    /// What has this name already.
    pub(super) fn existing(&self, parent: u64, name: &[u8]) -> Result<Option<Stat>, Errno> {
        let dir = self.dirs.open(parent)?;
        match rustix::fs::statat(&*dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    pub(super) fn display(&self, parent: u64, name: &[u8]) -> WirePath {
        WirePath(self.dirs.display(parent, name))
    }

    /// Makes a directory or takes the one that is there.
    pub(super) fn directory(&self, entry: &Entry, name: &[u8]) -> Result<(), Why> {
        let result = self.make_directory(entry, name);
        lock(&self.state).remembered.directory(entry.id, *result.as_ref().unwrap_or(&DirInfo::UNUSABLE));
        result.map(drop)
    }

    /// A directory that is not to be: what is below it is not either, and is not named one by one.
    pub(super) fn no_directory(&self, id: u64) {
        lock(&self.state).remembered.directory(id, DirInfo::UNUSABLE);
    }

    /// A name was made in this directory.
    pub(super) fn touched(&self, id: u64) {
        let mut state = lock(&self.state);
        if state.touched.len() <= FEW {
            state.touched.insert(id);
        }
    }

    /// Makes all names durable.
    pub(super) fn sync(&self) -> Result<(), Errno> {
        let touched: Vec<u64> = lock(&self.state).touched.iter().copied().collect();
        if touched.len() > FEW {
            rustix::fs::syncfs(&self.stage.dir)?;
            let foreign: Vec<u64> = lock(&self.state).foreign.values().copied().collect();
            return foreign.into_iter().try_for_each(|id| rustix::fs::syncfs(self.open_to_read(id)?));
        }
        touched.into_iter().try_for_each(|id| rustix::fs::fsync(self.open_to_read(id)?))
    }

    /// Names were made in a directory that is on another file system than the stage.
    pub(super) fn note_foreign(&self, device: u64, id: u64) {
        lock(&self.state).foreign.insert(device, id);
    }

    fn open_to_read(&self, id: u64) -> Result<OwnedFd, Errno> {
        open_at(&*self.dirs.open(id)?, c".", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    /// Whether more may be announced, where what is not complete takes `open` bytes.
    pub(super) fn has_room(&self, open: usize) -> bool {
        let room = if self.place.confined { CLIENTS_REMEMBERED_BYTES } else { REMEMBERED_BYTES };
        lock(&self.state).remembered.bytes() + self.dirs.bytes() + open < room
    }

    fn make_directory(&self, entry: &Entry, name: &[u8]) -> Result<DirInfo, Why> {
        let wanted = if self.options.preserve { entry.mode & 0o777 } else { entry.mode & 0o777 & !self.umask };
        let mut finish = Finish::default();
        if self.options.preserve {
            let special = entry.mode & (0o1000 | self.set_id_bits(entry));
            finish = Finish { mode: Some(wanted | special), mtime: Some(entry.mtime), owner: self.owner(entry) };
        }
        if name.is_empty() {
            self.dirs.pin(entry.id, ROOT, b"", self.place.root.clone());
            return Ok(DirInfo { created: false, usable: true, finish });
        }
        let parent = self.dirs.open(entry.parent)?;
        let first = wanted & 0o777 | 0o700;
        let created = match rustix::fs::mkdirat(&*parent, name, Mode::from_raw_mode(first)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(errno.into()),
        };
        if created && wanted != first {
            finish.mode = finish.mode.or(Some(wanted));
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let dir = match open_at(&*parent, name, flags, Mode::empty()) {
            // With O_DIRECTORY a link is just no directory.
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(not_a_directory(&parent, name)),
            result => result?,
        };
        // What was opened counts from here on: others may put something else under the name.
        let stat = rustix::fs::fstat(&dir)?;
        if self.stage.is_itself(&stat) {
            return Err(Why::Reserved);
        }
        // Left read-only, perhaps by an earlier run of this copy: opened up until the end.
        if !created && stat.st_mode & 0o300 != 0o300 && self.euid != 0 && stat.st_uid == self.euid {
            finish.mode = finish.mode.or(Some(meta::mode_bits(&stat)));
            set_mode(&dir, stat.st_mode | 0o700)?;
        }
        self.dirs.add_open(entry.id, entry.parent, name, dir, &stat);
        self.touched(entry.parent);
        Ok(DirInfo { created, usable: true, finish })
    }

    fn owner(&self, entry: &Entry) -> Option<(u32, u32)> {
        (self.options.preserve && self.euid == 0 && self.place.ownership == Ownership::Allow).then_some((entry.uid, entry.gid))
    }

    /// The set-id bits that an entry may bring: where it brings its owner too, or the owner is the same anyway.
    fn set_id_bits(&self, entry: &Entry) -> u32 {
        let own = self.owner(entry).is_some() || entry.uid == self.euid;
        if own && self.place.ownership == Ownership::Allow { 0o6000 } else { 0 }
    }

    /// Whether an entry loses an owner or a bit here that it would keep where its sender chooses.
    pub(super) fn is_masked(&self, entry: &Entry) -> bool {
        if !self.options.preserve || self.place.ownership == Ownership::Allow {
            return false;
        }
        let special = if matches!(entry.kind, Kind::Directory) { 0o6000 } else { 0o7000 };
        let bits = !matches!(entry.kind, Kind::Symlink { .. }) && entry.mode & special != 0;
        bits || self.euid == 0 && (entry.uid, entry.gid) != (self.euid, self.egid)
    }

    /// How a file is made that may replace `existing`.
    pub(super) fn meta(&self, entry: &Entry, existing: Option<&Stat>) -> Meta {
        let replaced = existing.filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        // Root's copy over another user's file leaves it his, as writing to it would.
        let old_owner = replaced.filter(|_| self.euid == 0).map(|stat| (stat.st_uid, stat.st_gid));
        let owner = self.owner(entry).or(old_owner);
        let final_mode = match replaced {
            _ if self.options.preserve && self.place.ownership == Ownership::Mask => entry.mode & 0o777,
            _ if self.options.preserve => entry.mode & (0o1777 | self.set_id_bits(entry)),
            Some(stat) => meta::mode_bits(stat) & 0o777,
            None => entry.mode & 0o777 & !self.umask,
        };
        let open_mode = final_mode & 0o777;
        // Changing the owner takes the set-id bits away, so they are set after it.
        let mode =
            (final_mode & !(0o777 & !self.umask) != 0 || owner.is_some() && final_mode & 0o6000 != 0).then_some(final_mode);
        // What compares times the next time needs them.
        let dated = self.options.preserve || self.options.compares();
        let undated_stream = matches!(entry.kind, Kind::Stream { .. }) && entry.mtime == Stamp::default();
        let mtime = (dated && !undated_stream).then_some(entry.mtime);
        Meta { open_mode, mode, final_mode, mtime, owner }
    }

    /// Gives a file its owner, mode and time, in this order: each undoes a part of the one after it.
    pub(super) fn apply(fd: &OwnedFd, meta: &Meta, mode: Option<u32>) -> Result<(), Errno> {
        if let Some((uid, gid)) = meta.owner {
            let (uid, gid) = meta::owner(uid, gid);
            rustix::fs::fchown(fd, uid, gid)?;
        }
        if let Some(mode) = mode {
            rustix::fs::fchmod(fd, meta::mode(mode))?;
        }
        if let Some(mtime) = meta.mtime {
            rustix::fs::futimens(fd, &meta::timestamps(mtime))?;
        }
        Ok(())
    }

    /// Makes a symbolic link, in the place of anything but a directory.
    pub(super) fn symlink(&self, entry: &Entry, name: &[u8], target: &[u8]) -> Result<(), Why> {
        if target.is_empty() || target.len() > MAX_TARGET || target.contains(&0) {
            return Err(Errno::INVAL.into());
        }
        let dir = self.dirs.open(entry.parent)?;
        let fresh = self.stage.fresh_name();
        let result = self
            .make_symlink(entry, target, &self.stage.dir, &fresh)
            .and_then(|()| rustix::fs::renameat(&self.stage.dir, &*fresh, &*dir, name));
        if result.is_err() {
            let _ = rustix::fs::unlinkat(&self.stage.dir, &*fresh, AtFlags::empty());
        }
        self.touched(entry.parent);
        match result {
            Err(Errno::XDEV) => self.beside(entry.parent, name, |dir, beside| self.make_symlink(entry, target, dir, beside)),
            result => result.map_err(in_the_way),
        }
    }

    fn make_symlink(&self, entry: &Entry, target: &[u8], dir: &OwnedFd, name: &str) -> Result<(), Errno> {
        rustix::fs::symlinkat(target, dir, name)?;
        if let Some((uid, gid)) = self.owner(entry) {
            let (uid, gid) = meta::owner(uid, gid);
            rustix::fs::chownat(dir, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        if self.options.preserve {
            rustix::fs::utimensat(dir, name, &meta::timestamps(entry.mtime), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(())
    }

    /// Remembers a hard link for [`links`](Self::links).
    pub(super) fn link_later(&self, entry: &Entry, name: &[u8], to: u64) {
        lock(&self.state).remembered.link((entry.parent, name), entry.mtime, to);
    }

    /// A file that others may be links to has its name.
    pub(super) fn named(&self, id: u64, parent: u64, name: &[u8]) {
        lock(&self.state).remembered.named(id, parent, name);
    }

    /// `later` is announced in the place of `earlier`.
    pub(super) fn replaced(&self, earlier: u64, later: u64) {
        lock(&self.state).remembered.replaced(earlier, later);
    }

    /// The hard links, to be made when all files have their names.
    pub(super) fn links(&self) -> Links {
        lock(&self.state).remembered.take_links()
    }

    /// Makes a hard link to the file `at`, in the place of anything but a directory.
    pub(super) fn link(&self, (parent, name): Location<'_>, at: Location<'_>) -> Result<(), Why> {
        let from = self.dirs.open(at.0)?;
        let to = self.dirs.open(parent)?;
        self.touched(parent);
        let existing = rustix::fs::statat(&*to, name, AtFlags::SYMLINK_NOFOLLOW);
        let Ok(existing) = existing else {
            return match rustix::fs::linkat(&*from, at.1, &*to, name, AtFlags::empty()) {
                Err(Errno::XDEV) => self.link_over(&from, at.1, parent, name),
                result => Ok(result?),
            };
        };
        let target = rustix::fs::statat(&*from, at.1, AtFlags::SYMLINK_NOFOLLOW)?;
        if (existing.st_dev, existing.st_ino) == (target.st_dev, target.st_ino) {
            return Ok(());
        }
        let fresh = self.stage.fresh_name();
        let linked = rustix::fs::linkat(&*from, at.1, &self.stage.dir, &*fresh, AtFlags::empty());
        let result = linked.and_then(|()| rustix::fs::renameat(&self.stage.dir, &*fresh, &*to, name));
        if result.is_err() {
            let _ = rustix::fs::unlinkat(&self.stage.dir, &*fresh, AtFlags::empty());
        }
        match result {
            Err(Errno::XDEV) => self.link_over(&from, at.1, parent, name),
            result => result.map_err(in_the_way),
        }
    }

    /// Gives a finished part file its name.
    pub(super) fn rename(&self, part: u64, parent: u64, name: &[u8], meta: &Meta) -> Result<Placed, Why> {
        let dir = self.dirs.open(parent)?;
        let placed = match rustix::fs::renameat(&self.stage.dir, &*part_name(part), &*dir, name) {
            Err(Errno::XDEV) => self.copy_over(part, parent, name, meta).map(Placed::Copied),
            result => result.map(|()| Placed::Renamed).map_err(in_the_way),
        };
        match placed {
            Err(why) if why == Errno::ACCESS.into() || why == Errno::PERM.into() => {
                self.write_over(part, &dir, name, meta).map(Placed::WrittenOver).map_err(|_| why)
            }
            placed => placed,
        }
    }

    /// Modes, owners and times of directories, the deepest first. Gives those that failed.
    pub(super) fn finish_directories(&self, tops_only: bool) -> Vec<(WirePath, Why)> {
        let state = lock(&self.state);
        let mut failed = Vec::new();
        for (id, info) in state.remembered.directories().filter(|(_, info)| info.usable && info.finish.any()) {
            let result = self.dirs.open(id).and_then(|fd| {
                // The root itself changes once more when the stage goes.
                if Arc::ptr_eq(&fd, &self.place.root) != tops_only {
                    return Ok(());
                }
                let fd = self.open_to_read(id)?;
                let Finish { mode, mtime, owner } = info.finish;
                Self::apply(&fd, &Meta { open_mode: 0, mode, final_mode: 0, mtime, owner }, mode)
            });
            if let Err(errno) = result {
                failed.push((self.display(id, b""), errno.into()));
            }
        }
        failed
    }
}

pub(super) fn in_the_way(errno: Errno) -> Why {
    if matches!(errno, Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) { Why::InTheWay } else { errno.into() }
}

fn not_a_directory(parent: &OwnedFd, name: &[u8]) -> Why {
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    let link = stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
    if link { Why::LinkNotFollowed } else { Why::InTheWay }
}

/// Changes the mode of what `fd` is open for (`O_PATH` is enough), whatever its name has come to mean.
fn set_mode(fd: &OwnedFd, mode: u32) -> Result<(), Errno> {
    // fchmod(2) takes no O_PATH descriptor, and fchmodat2(2) is younger than the systems that haul runs on.
    rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), meta::mode(mode))
}

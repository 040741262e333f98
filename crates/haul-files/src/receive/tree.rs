//! The destination tree: directories, links, and where a file goes.
//!
//! Every name that the peer gives is one component, used below an open directory and never followed as a link; see [`Dirs`].

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use super::expected::Expected;
use super::remembered::{Announced, DirInfo, Finish, Links, Location, Remembered};
use super::room::{Room, Share};
use super::stage::Stage;
use crate::dirs::Dirs;
use crate::job::{Options, Ownership};
use crate::journal::Record;
use crate::locks::lock;
use crate::protocol::{Entry, Kind, MAX_TARGET, ROOT, Stamp};
use crate::store::{
    At, Attributes, FEW, FileKind, MAX_TOPS, Metadata, Place, Placed, Spot, Stage as _, Store, StoreError, umask,
};
use haul_faults::{CopyError, Errno, Why, WirePath};
use haul_names::{is_plain_name, is_reserved};

/// Memory for the directories and hard links that a user's own copy remembers to its end, and for parts of files that do not touch: some seven million of them.
const REMEMBERED_BYTES: usize = 1 << 30;
/// The same for a client of a daemon, some two million, and for all clients of this process.
static CLIENTS: Room = Room::new(256 << 20, 2 << 30);

/// What daemons remember of the trees that clients send them takes no more than so many bytes together: 2 GiB where nothing is said.
pub fn limit_remembered(bytes: usize) {
    CLIENTS.set_all(bytes);
}

pub(super) struct Tree<'a, S: Store> {
    pub(super) place: Place<S::Dir>,
    pub(super) options: Options,
    pub(super) stage: Stage<S>,
    pub(super) dirs: Dirs<'a, S>,
    /// What may stand at the top; none: anything.
    pub(super) expected: Option<Expected>,
    umask: u32,
    euid: u32,
    egid: u32,
    /// Of what clients may have remembered, where one sends this.
    share: Option<Share<'static>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tops: usize,
    /// What the source that gets another name is called.
    renamed: Option<Vec<u8>>,
    remembered: Remembered,
    /// What was announced, where what was not is to go.
    announced: Announced,
    /// Directories in which names were made, no more than are synced one by one.
    touched: HashSet<u64>,
}

impl<'a, S: Store> Tree<'a, S> {
    pub(super) fn new(store: &'a S, place: Place<S::Dir>, stage: Stage<S>, options: Options, expected: Option<Expected>) -> Self {
        let dirs = Dirs::new(store);
        dirs.pin(ROOT, ROOT, &place.display().0, place.root.clone());
        let mut state = State::default();
        state.remembered.directory(ROOT, DirInfo { created: false, usable: true, opened: false, finish: Finish::default() });
        let (euid, egid) = crate::process::user();
        let share = place.confined.then(|| CLIENTS.enter());
        Self { place, options, stage, dirs, expected, umask: umask(), euid, egid, share, state: Mutex::new(state) }
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
            let _ = self.stage.store.append(&[Record::Top { name: WirePath(name) }]);
        }
        if let Some(name) = &self.place.rename {
            state.renamed.get_or_insert_with(|| entry.name.0.clone());
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

    /// Remembers that the sender has this name, where what it has not is to go.
    pub(super) fn announced(&self, entry: &Entry, name: &[u8]) {
        if self.options.delete.is_some() && entry.parent != ROOT {
            let (dir, key) = (self.dirs.key(entry.parent), self.dirs.child_key(entry.parent, name));
            lock(&self.state).announced.add(dir, key);
        }
    }

    /// Whether the sender has this name, where that is remembered.
    pub(super) fn is_announced(&self, parent: u64, name: &[u8]) -> bool {
        let key = self.dirs.child_key(parent, name);
        lock(&self.state).announced.has(&key)
    }

    /// How many names in a directory the sender has, where that is remembered.
    pub(super) fn announced_in(&self, id: u64) -> u64 {
        let key = self.dirs.key(id);
        lock(&self.state).announced.count(&key)
    }

    /// The directories that the sender has and that were there before, the latest first.
    pub(super) fn taken_directories(&self) -> Vec<u64> {
        let state = lock(&self.state);
        let taken = state.remembered.directories().filter(|(id, info)| *id != ROOT && info.usable && !info.created);
        taken.map(|(id, _)| id).collect()
    }

    /// What has this name already.
    pub(super) fn existing(&self, parent: u64, name: &[u8]) -> Result<Option<Metadata>, StoreError> {
        let dir = self.dirs.open(parent)?;
        match self.dirs.store().stat(At::In(&*dir, name)) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(StoreError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether this run made the directory.
    pub(super) fn is_new(&self, id: u64) -> bool {
        lock(&self.state).remembered.info(id).is_some_and(|info| info.usable && info.created)
    }

    /// What the symbolic link of this name says, if there is one.
    pub(super) fn link_there(&self, parent: u64, name: &[u8]) -> Option<Vec<u8>> {
        let dir = self.dirs.open(parent).ok()?;
        self.dirs.store().read_link(&dir, name).ok()
    }

    /// The path of an entry below the target; where its source gets another name there, with that which it has at the sender.
    pub(super) fn path_at_sender(&self, entry: &Entry) -> Vec<u8> {
        if entry.parent == ROOT { entry.name.0.clone() } else { self.path_below(entry.parent, &entry.name.0) }
    }

    /// The same of a name that is at the destination.
    pub(super) fn path_below(&self, parent: u64, name: &[u8]) -> Vec<u8> {
        let path = self.dirs.relative(parent, name);
        let state = lock(&self.state);
        match (&self.place.rename, &state.renamed) {
            (Some(_), Some(was)) if parent == ROOT => was.clone(),
            (Some(name), Some(was)) => {
                let rest = path.strip_prefix(&**name).and_then(|rest| rest.strip_prefix(b"/")).unwrap_or(&path);
                let between: &[u8] = if was.is_empty() { b"" } else { b"/" };
                [was, between, rest].concat()
            }
            _ => path,
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

    /// This directory is gone. Where more were touched than are synced one by one, that stays known.
    pub(super) fn untouched(&self, id: u64) {
        let mut state = lock(&self.state);
        if state.touched.len() <= FEW {
            state.touched.remove(&id);
        }
    }

    /// Makes all names durable.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        let touched: Vec<u64> = lock(&self.state).touched.iter().copied().collect();
        let open = || touched.iter().map(|&id| self.dirs.open(id)).collect::<Result<Vec<_>, _>>().ok();
        // Where one cannot be opened, as somebody has moved it meanwhile, all are synced.
        let dirs = if touched.len() > FEW { None } else { open() };
        self.stage.store.sync_names(dirs.as_deref())
    }

    /// Whether more may be announced, where what is not complete takes `open` bytes.
    pub(super) fn has_room(&self, open: usize) -> bool {
        let state = lock(&self.state);
        let remembered = state.remembered.bytes() + state.announced.bytes();
        drop(state);
        let bytes = (remembered + self.dirs.bytes()).saturating_add(open);
        self.share.as_ref().map_or(bytes < REMEMBERED_BYTES, |share| share.hold(bytes))
    }

    fn make_directory(&self, entry: &Entry, name: &[u8]) -> Result<DirInfo, Why> {
        let wanted = if self.options.keeps_modes() { entry.mode & 0o777 } else { entry.mode & 0o777 & !self.umask };
        let mut finish = Finish::default();
        // The destination itself, of a sender that is fed: nobody's directory has attributes to keep.
        let is_nobodys = entry.parent == ROOT && entry.name.0.is_empty() && (entry.uid, entry.gid) == (u32::MAX, u32::MAX);
        let wanted = if is_nobodys { wanted & !self.umask } else { wanted };
        if self.options.keeps_modes() && !is_nobodys {
            let special = entry.mode & (0o1000 | self.set_id_bits(entry));
            let mtime = self.options.preserve.then_some(entry.mtime);
            finish = Finish { mode: Some(wanted | special), mtime, owner: self.owner(entry) };
        }
        if name.is_empty() {
            self.dirs.pin(entry.id, ROOT, b"", self.place.root.clone());
            return Ok(DirInfo { created: false, usable: true, opened: false, finish });
        }
        let parent = self.dirs.open(entry.parent)?;
        let first = wanted & 0o777 | 0o700;
        let made = self.dirs.store().make_directory(&parent, name, first)?;
        let (created, there) = (made.created, made.metadata);
        if created && wanted != first {
            finish.mode = finish.mode.or(Some(wanted));
        }
        if self.stage.store.identity() == Some(there.identity) {
            return Err(Why::Reserved);
        }
        // Left read-only, perhaps by an earlier run of this copy: opened up until the end.
        let opens = !created && self.may_open_up(&there);
        if opens {
            finish.mode = finish.mode.or(Some(there.mode));
            self.dirs.store().set_mode(&made.dir, there.mode | 0o700)?;
        }
        self.dirs.add_open(entry.id, entry.parent, name, made.dir, there.identity);
        self.touched(entry.parent);
        Ok(DirInfo { created, usable: true, opened: opens || wanted != first, finish })
    }

    /// Whether a directory cannot be written to and its mode is this user's to change.
    pub(super) fn may_open_up(&self, there: &Metadata) -> bool {
        there.mode & 0o300 != 0o300 && self.euid != 0 && there.uid == self.euid
    }

    /// Whether this process may do what only root may.
    pub(super) fn is_root(&self) -> bool {
        self.euid == 0
    }

    /// Opens up a directory whose ACL has just given it its mode, until the end.
    pub(super) fn open_up(&self, entry: &Entry) -> Result<(), Why> {
        let dir = self.dirs.open(entry.id)?;
        Ok(self.dirs.store().set_mode(&dir, entry.mode & 0o777 | 0o700)?)
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
        if !self.options.keeps_modes() || self.place.ownership == Ownership::Allow {
            return false;
        }
        let special = if matches!(entry.kind, Kind::Directory) { 0o6000 } else { 0o7000 };
        let bits = !matches!(entry.kind, Kind::Symlink { .. }) && entry.mode & special != 0;
        bits || self.options.preserve && self.euid == 0 && (entry.uid, entry.gid) != (self.euid, self.egid)
    }

    /// How a file is made that may replace `existing`.
    pub(super) fn attributes(&self, entry: &Entry, existing: Option<&Metadata>) -> Attributes {
        let replaced = existing.filter(|there| there.kind == FileKind::File);
        // Root's copy over another user's file leaves it his, as writing to it would.
        let old_owner = replaced.filter(|_| self.euid == 0).map(|there| (there.uid, there.gid));
        let owner = self.owner(entry).or(old_owner);
        let final_mode = match replaced {
            _ if self.options.keeps_modes() && self.place.ownership == Ownership::Mask => entry.mode & 0o777,
            _ if self.options.keeps_modes() => entry.mode & (0o1777 | self.set_id_bits(entry)),
            Some(there) => there.mode & 0o777,
            None => entry.mode & 0o777 & !self.umask,
        };
        let open_mode = final_mode & 0o777;
        // Changing the owner takes the set-id bits away, so they are set after it.
        // And a directory's ACL for what is made in it, the stage's too, has a part in the mode in the umask's place.
        let loses_some = final_mode & !(0o777 & !self.umask) != 0 || owner.is_some() && final_mode & 0o6000 != 0;
        let mode = (loses_some || self.options.keep.acls).then_some(final_mode);
        // What compares times the next time needs them.
        let dated = self.options.preserve || self.options.compares_times();
        let undated_stream = matches!(entry.kind, Kind::Stream { .. }) && entry.mtime == Stamp::default();
        let mtime = (dated && !undated_stream).then_some(entry.mtime);
        Attributes { open_mode, mode, final_mode, mtime, owner, keep: self.options.keep }
    }

    /// Makes a symbolic link, in the place of anything but a directory.
    pub(super) fn symlink(&self, entry: &Entry, name: &[u8], target: &[u8]) -> Result<(), Why> {
        if target.is_empty() || target.len() > MAX_TARGET || target.contains(&0) {
            return Err(Errno::INVAL.into());
        }
        let mtime = self.options.preserve.then_some(entry.mtime);
        let attributes = Attributes { mtime, owner: self.owner(entry), ..Attributes::default() };
        Ok(self.at(entry.parent, name, |to| {
            self.touched(entry.parent);
            self.stage.store.symlink(to, target, &attributes)
        })?)
    }

    /// Does something with a name in a directory.
    fn at<R>(
        &self,
        parent: u64,
        name: &[u8],
        with: impl FnOnce(&Spot<'_, S::Dir>) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let dir = self.dirs.open(parent)?;
        with(&Spot { dir: &dir, name, path: &|name| self.dirs.relative(parent, name) })
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
        Ok(self.at(parent, name, |to| {
            self.touched(parent);
            self.stage.store.link(&from, at.1, to)
        })?)
    }

    /// Gives a finished part file its name.
    pub(super) fn commit(&self, part: u64, parent: u64, name: &[u8], attributes: &Attributes) -> Result<Placed, StoreError> {
        self.at(parent, name, |to| self.stage.store.commit(part, to, attributes))
    }

    /// Of a copy that ends early: directories that could be written to for its time only get the modes that they are to have. The next run opens them again.
    pub(super) fn close_directories(&self) {
        for (id, info) in lock(&self.state).remembered.directories().filter(|(_, info)| info.opened) {
            if let (Some(mode), Ok(dir)) = (info.finish.mode, self.dirs.open(id)) {
                let _ = self.dirs.store().set_mode(&dir, mode);
            }
        }
    }

    /// Modes, owners and times of directories, the deepest first. Gives those that failed.
    pub(super) fn finish_directories(&self, tops_only: bool) -> Vec<(WirePath, Why)> {
        let state = lock(&self.state);
        let mut failed = Vec::new();
        for (id, info) in state.remembered.directories().filter(|(_, info)| info.usable && info.finish.any()) {
            let result = self.dirs.open(id).and_then(|dir| {
                // The root itself changes once more when the stage goes.
                if Arc::ptr_eq(&dir, &self.place.root) != tops_only {
                    return Ok(());
                }
                let Finish { mode, mtime, owner } = info.finish;
                self.dirs.store().finish_directory(&dir, &Attributes { mode, mtime, owner, ..Attributes::default() })
            });
            if let Err(error) = result {
                failed.push((self.display(id, b""), error.into()));
            }
        }
        failed
    }
}

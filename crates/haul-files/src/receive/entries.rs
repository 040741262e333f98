//! What the receiver does with an entry: makes directories and links, and decides what it needs of a file.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

use haul_names::path_of;
use haul_units::{Bytes, Ranges};

use super::Receiver;
use super::commit::{Ready, hand_over};
use super::incomplete::{End, Incomplete, Part, State};
use crate::block::Sent;
use crate::journal::{Earlier, Record, Source};
use crate::locks::lock;
use crate::observe::{Event, Observer};
use crate::protocol::{Entry, Kind, MAX_RANGES, Message, Needs, Stamp, Want};
use crate::store::{Attributes, Content, FileKind, Metadata, Part as _, Stage as _, Store, StoreError};
use crate::transport::Transport;
use haul_faults::{CopyError, Errno, Note, Stop, Why};
use haul_pieces::Taken;
use haul_xattrs::Held;

/// What a file takes that is announced and incomplete, with a name and its place in the map. An honest sender has a hundred thousand at most: those of its plan, and
/// those in the blocks under way.
const OPEN_BYTES: usize = size_of::<Incomplete>() + 64;

/// What the sender has announced.
#[derive(Default)]
pub(super) struct Found {
    files: u64,
    bytes: u64,
}

impl Found {
    pub(super) fn count(&mut self, entry: &Entry) {
        match entry.kind {
            Kind::File { data, replaces: None, .. } => {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(data);
            }
            Kind::Stream { replaces: None, .. } => self.files += 1,
            _ => {}
        }
    }

    pub(super) fn tell(&self, observer: &dyn Observer, complete: bool) {
        observer.event(Event::Found { files: self.files, bytes: Bytes(self.bytes), complete });
    }
}

impl<T: Transport, S: Store> Receiver<'_, T, S> {
    /// Takes a batch of entries, and answers it where the sender waits for that.
    pub(super) fn entries(&self, entries: Vec<Entry>, ready: &SyncSender<Ready>, found: &mut Found) -> Result<(), CopyError> {
        let mut wants = Vec::new();
        for entry in entries {
            self.session.check_what_came()?;
            self.admit(&entry)?;
            found.count(&entry);
            let id = entry.id;
            let is_file = matches!(entry.kind, Kind::File { .. });
            let is_stream = matches!(entry.kind, Kind::Stream { .. });
            let needs = self.entry(&entry, ready)?;
            let needs = self.fitting(&entry, needs)?;
            {
                let mut files = lock(&self.files);
                if let (Some(file), _) = &needs {
                    files.open.insert(id, file.clone());
                }
                files.last_id = id;
            }
            match needs.1 {
                _ if !is_file && !is_stream => {}
                needs if self.wants && is_file => wants.push(Want { id, needs }),
                Needs::Nothing => self.session.say(&Message::Unwanted(id))?,
                _ => {}
            }
        }
        self.all_extended()?;
        self.announced.notify_all();
        found.tell(self.session.observer, false);
        if wants.is_empty() { Ok(()) } else { self.answer(wants) }
    }

    /// Ends a copy that has announced more than there is room for, where the store wants that; or does without the file.
    fn fitting(
        &self,
        entry: &Entry,
        (file, needs): (Option<Arc<Incomplete>>, Needs),
    ) -> Result<(Option<Arc<Incomplete>>, Needs), CopyError> {
        // What is announced a second time has been counted.
        let (Some(room), Kind::File { size, replaces: None, .. }) = (self.room, &entry.kind) else { return Ok((file, needs)) };
        let needed = match &needs {
            Needs::Nothing => 0,
            Needs::All => *size,
            Needs::Ranges(ranges) => ranges.iter().map(|(start, end)| end.saturating_sub(*start)).fold(0, u64::saturating_add),
        };
        let before = self.announced_bytes.fetch_add(needed, Ordering::Relaxed);
        if before.saturating_add(needed) <= room {
            if let Some(file) = &file {
                file.counted.store(needed, Ordering::Relaxed);
            }
            return Ok((file, needs));
        }
        let path = self.tree.display(entry.parent, &entry.name.0);
        if !self.takes_what_fits {
            return Err(CopyError::Stopped(Stop::DestinationFull { path }));
        }
        self.announced_bytes.fetch_sub(needed, Ordering::Relaxed);
        if let Some(part) = file.and_then(|file| lock(&file.state).give_up()) {
            self.drop_part(&part);
        }
        self.problem(path, Errno::NOSPC.into())?;
        Ok((None, Needs::Nothing))
    }

    fn answer(&self, wants: Vec<Want>) -> Result<(), CopyError> {
        // 20 bytes a range at most; a frame holds one file's ranges several times.
        let mut batch = Vec::new();
        let mut ranges = 0;
        for want in wants {
            ranges += if let Needs::Ranges(list) = &want.needs { list.len() + 1 } else { 1 };
            batch.push(want);
            if ranges > 2 * MAX_RANGES {
                self.session.say(&Message::Wants(std::mem::take(&mut batch)))?;
                ranges = 0;
            }
        }
        if batch.is_empty() { Ok(()) } else { self.session.say(&Message::Wants(batch)) }
    }

    /// Refuses what an honest sender does not announce.
    fn admit(&self, entry: &Entry) -> Result<(), CopyError> {
        let files = lock(&self.files);
        if entry.id <= files.last_id {
            return Err(CopyError::PeerMisbehaved("an id that does not rise"));
        }
        if !self.has_room(files.open.len()) {
            let what = "no memory is left for so many directories and hard links: try again later, or copy them in parts";
            return Err(CopyError::Stopped(Stop::Failed(what.into())));
        }
        let wants_trees = self.options.recursive || self.tree.expected.is_none() || self.filter.chosen().is_some();
        if !wants_trees && matches!(entry.kind, Kind::Directory | Kind::Symlink { .. }) {
            return Err(CopyError::PeerMisbehaved("a directory or link, where only files were asked for"));
        }
        let fits = if let Kind::File { size, .. } = entry.kind { i64::try_from(size).is_ok() } else { true };
        if !fits || entry.mtime.nanos >= 1_000_000_000 {
            return Err(CopyError::PeerMisbehaved("a size or time that cannot be"));
        }
        Ok(())
    }

    /// Refuses one part of a file too many.
    pub(super) fn has_room_for_parts(&self) -> Result<(), CopyError> {
        if !self.parts.have_grown() || self.has_room(lock(&self.files).open.len()) {
            return Ok(());
        }
        let what =
            "no memory is left for so many parts of files that do not touch: try again later, or copy fewer of them at once";
        Err(CopyError::Stopped(Stop::Failed(what.into())))
    }

    /// Whether there is memory for what has been announced, of which so many files are not complete.
    fn has_room(&self, open: usize) -> bool {
        self.tree.has_room((open * OPEN_BYTES).saturating_add(self.parts.bytes()).saturating_add(lock(&self.ahead).held_bytes()))
    }

    /// Gives the file to come, if it is one, and what is needed of it.
    fn entry(&self, entry: &Entry, ready: &SyncSender<Ready>) -> Result<(Option<Arc<Incomplete>>, Needs), CopyError> {
        let nothing = Ok((None, Needs::Nothing));
        let extended = lock(&self.ahead).take(entry.id);
        let name = self.tree.name_of(entry)?;
        let Some(created) = self.tree.parent(entry)? else {
            // Its directory failed and was reported; what is below is not named one by one.
            if matches!(entry.kind, Kind::Directory) {
                self.tree.no_directory(entry.id);
            }
            return nothing;
        };
        if !self.filter.is_empty()
            && self.filter.leaves_out(&self.tree.path_at_sender(entry), matches!(entry.kind, Kind::Directory))
        {
            return Err(CopyError::PeerMisbehaved("what was to be left out"));
        }
        let name = match name {
            Ok(name) => name,
            Err(why) => {
                let path = match why {
                    Why::Reserved => self.tree.display(entry.parent, &entry.name.0),
                    _ => self.tree.place.spelled.clone(),
                };
                if matches!(entry.kind, Kind::Directory) {
                    self.tree.no_directory(entry.id);
                }
                self.problem(path, why)?;
                return nothing;
            }
        };
        if self.filter.chosen().is_some_and(|chosen| !chosen.takes(&self.tree.path_at_sender(entry), self.options.recursive)) {
            return Err(CopyError::PeerMisbehaved("what is not on the list of names"));
        }
        self.tree.announced(entry, &name);
        if self.tree.is_masked(entry) {
            self.session.remark(Note::OwnersNotKept)?;
        }
        let result = match &entry.kind {
            Kind::Directory => self.tree.directory(entry, &name).map(|()| &self.counts.directories),
            Kind::Symlink { target } => self.tree.symlink(entry, &name, &target.0).map(|()| &self.counts.symlinks),
            Kind::HardLink { to } if *to >= entry.id => return Err(CopyError::PeerMisbehaved("a link to what comes later")),
            Kind::HardLink { to } => {
                self.tree.link_later(entry, &name, *to);
                return nothing;
            }
            Kind::File { .. } | Kind::Stream { .. } => return self.file(entry, name, (created, extended), ready),
        };
        match result {
            Ok(_) if self.options.dry_run && !self.would_make(entry, &name)? => self.extend_entry(entry, &name, extended)?,
            Ok(count) => {
                count.fetch_add(1, Ordering::Relaxed);
                if !self.options.dry_run {
                    self.extend_entry(entry, &name, extended)?;
                }
            }
            Err(why) => self.problem(self.tree.display(entry.parent, &name), why)?,
        }
        nothing
    }

    /// Gives a file that is to come, and what is needed of it.
    fn file(
        &self,
        entry: &Entry,
        name: Vec<u8>,
        (created, extended): (bool, Option<Held>),
        ready: &SyncSender<Ready>,
    ) -> Result<(Option<Arc<Incomplete>>, Needs), CopyError> {
        let nothing = Ok((None, Needs::Nothing));
        if let Kind::File { linked: true, replaces: Some(earlier), .. } | Kind::Stream { linked: true, replaces: Some(earlier) } =
            entry.kind
        {
            self.tree.replaced(earlier, entry.id);
        }
        let existing = match self.existing(entry.parent, &name, created) {
            Ok(existing) => existing,
            Err(why) => {
                self.problem(self.tree.display(entry.parent, &name), why)?;
                return nothing;
            }
        };
        let mut file = Incomplete { extended, ..self.incomplete(entry, name, existing.as_ref()) };
        // A stream that is no file has no time.
        let dated = !file.stream || entry.mtime != Stamp::default();
        if self.options.update && dated && is_newer(entry.mtime, existing.as_ref()) {
            self.keep_newer(&file);
            return nothing;
        }
        if file.stream {
            if self.options.dry_run {
                self.would_take(&file, existing.as_ref())?;
                return nothing;
            }
            return Ok((Some(Arc::new(file)), Needs::All));
        }
        let earlier = self.tree.stage.take_earlier(&file.key).filter(|earlier| {
            let is_of_this = earlier.source == file.source;
            if !is_of_this {
                // No run goes on from it, and there may not be room for both.
                self.tree.stage.discard(earlier.part);
            }
            is_of_this
        });
        if self.is_same(&file, existing.as_ref())? || self.is_made(&file, existing.as_ref(), earlier.as_ref())? {
            self.extend_kept(&file)?;
            self.keep(&file);
            return nothing;
        }
        if self.options.dry_run {
            self.would_take(&file, existing.as_ref())?;
            return nothing;
        }
        let needs = earlier.map_or(Ok(Needs::All), |earlier| self.resume(&mut file, &earlier, ready))?;
        if needs == Needs::Nothing {
            return nothing;
        }
        if file.size == 0 {
            self.make_empty(&file, ready)?;
            return nothing;
        }
        Ok((Some(Arc::new(file)), needs))
    }

    /// What has the name of a file that comes, which is no directory. In one that this copy has made there is nothing.
    fn existing(&self, parent: u64, name: &[u8], created: bool) -> Result<Option<Metadata>, Why> {
        let existing = if created { None } else { self.tree.existing(parent, name)? };
        if existing.as_ref().is_some_and(|there| there.kind == FileKind::Directory) { Err(Why::InTheWay) } else { Ok(existing) }
    }

    /// A file as it is announced, of which nothing has come.
    fn incomplete(&self, entry: &Entry, name: Vec<u8>, existing: Option<&Metadata>) -> Incomplete {
        let (size, version, linked) = match entry.kind {
            Kind::File { size, version, linked, .. } => (size, version, linked),
            Kind::Stream { linked, .. } => (0, 0, linked),
            _ => (0, 0, false),
        };
        Incomplete {
            id: entry.id,
            parent: entry.parent,
            key: self.tree.dirs.child_key(entry.parent, &name),
            name,
            size,
            source: Source { size, mtime: entry.mtime, version },
            stream: matches!(entry.kind, Kind::Stream { .. }),
            linked,
            counted: AtomicU64::new(0),
            attributes: self.tree.attributes(entry, existing),
            extended: None,
            state: Mutex::new(State::Waiting),
        }
    }

    /// Of a dry run: the file would be copied.
    fn would_take(&self, file: &Incomplete, existing: Option<&Metadata>) -> Result<(), CopyError> {
        self.would_copy(file.parent, &file.name, file.size, existing)?;
        if file.linked {
            self.tree.named(file.id, file.parent, &file.name);
        }
        Ok(())
    }

    /// An empty file is there as soon as it is announced.
    fn make_empty(&self, file: &Incomplete, ready: &SyncSender<Ready>) -> Result<(), CopyError> {
        let Some(done) = self.write_whole(file, &[], [0; 32])? else { return Ok(()) };
        let (record, done) = *done;
        self.tree.stage.store.append(&[record]).map_err(|error| self.broken(error))?;
        hand_over(ready, done)
    }

    fn keep(&self, file: &Incomplete) {
        self.tell_content(file.parent, &file.name);
        self.count_kept(file);
    }

    /// Tells who wants to know of a file that has its name, and is that of the source.
    pub(super) fn tell_content(&self, parent: u64, name: &[u8]) {
        let observer = self.session.observer;
        if observer.wants_content() && !self.options.dry_run {
            let here = path_of(self.tree.display(parent, name).0);
            observer.event(Event::Content { name: &self.tree.path_below(parent, name), here: &here });
        }
    }

    fn count_kept(&self, file: &Incomplete) {
        self.counts.kept_files.fetch_add(1, Ordering::Relaxed);
        self.counts.kept_bytes.fetch_add(file.size, Ordering::Relaxed);
        if file.linked {
            self.tree.named(file.id, file.parent, &file.name);
        }
    }

    fn keep_newer(&self, file: &Incomplete) {
        self.counts.newer_files.fetch_add(1, Ordering::Relaxed);
        self.count_kept(file);
    }

    /// Goes on from an earlier run's part file, as far as its content is what the journal says.
    fn resume(&self, file: &mut Incomplete, earlier: &Earlier, ready: &SyncSender<Ready>) -> Result<Needs, CopyError> {
        let stage = &self.tree.stage;
        let Ok(part) = stage.store.reopen(earlier.part) else { return Ok(Needs::All) };
        let Ok(there) = part.metadata() else { return Ok(Needs::All) };
        let mut buffer = Vec::new();
        if let Some((made, hash)) = &earlier.complete
            && *made == there.made()
            && self.has_all(&part, earlier, hash.as_ref(), file.size, &mut buffer)
            && self
                .has_what_it_keeps(file, &there, earlier, || part.finish(&file.attributes, Some(file.attributes.final_mode)))?
        {
            self.extend_part(file, &part)?;
            self.keep(file);
            let pieces = match hash {
                Some(hash) => vec![(0, u32::try_from(file.size).unwrap_or(u32::MAX), *hash)],
                None => earlier.ranges.clone(),
            };
            hand_over(ready, Ready::kept(file, earlier.part, self.to_read_back(pieces)))?;
            return Ok(Needs::Nothing);
        }
        if there.size != file.size || earlier.ranges.is_empty() {
            stage.discard(earlier.part);
            return Ok(Needs::All);
        }
        let (mut have, mut good) = (Ranges::default(), Vec::new());
        let mut sorted = earlier.ranges.clone();
        sorted.sort_unstable();
        for range @ (offset, length, _) in sorted {
            self.session.check()?;
            let fits = offset.checked_add(u64::from(length)).is_some_and(|end| end <= file.size) && length > 0;
            if have.runs() + 1 >= MAX_RANGES {
                break;
            }
            if fits
                && stage.holds(&part, &range, self.options.verify.hashes(), &mut buffer)
                && have.insert_new(offset..offset + u64::from(length))
            {
                good.push(range);
            }
        }
        let missing: Vec<(u64, u64)> = have.missing_in(0..file.size).map(|gap| (gap.start, gap.end)).collect();
        // One that was finished may have a mode by which nothing more can be written to it.
        if !missing.is_empty() && part.set_size(file.size).is_err() {
            stage.discard(earlier.part);
            return Ok(Needs::All);
        }
        let kept = have.total();
        self.counts.resumed.fetch_add(kept, Ordering::Relaxed);
        self.counts.kept_bytes.fetch_add(kept, Ordering::Relaxed);
        stage.keep_open(earlier.part, part);
        file.state = Mutex::new(State::Open(Part::resumed(earlier.part, Taken::new(have, &self.parts), self.to_read_back(good))));
        self.under_way.add(file.id);
        if missing.is_empty() {
            // Killed between the last write and the end.
            if let Some(done) = self.complete_now(file, End { size: file.size, bytes: 0, sum: [0; 32] })? {
                hand_over(ready, done)?;
            }
            return Ok(Needs::Nothing);
        }
        Ok(Needs::Ranges(missing))
    }

    /// Whether an earlier run of this copy has put this file there.
    fn is_made(&self, file: &Incomplete, there: Option<&Metadata>, earlier: Option<&Earlier>) -> Result<bool, CopyError> {
        let (Some(there), Some(earlier)) = (there.filter(|there| there.kind == FileKind::File), earlier) else {
            return Ok(false);
        };
        if earlier.complete.as_ref().is_none_or(|(made, _)| *made != there.made()) {
            return Ok(false);
        }
        self.has_what_it_keeps(file, there, earlier, || {
            let dir = self.tree.dirs.open(file.parent)?;
            self.tree.dirs.store().finish_file(&dir, &file.name, there.identity, &file.attributes)
        })
    }

    /// Gives a file that an earlier run has made what that run was not asked to keep. False where that cannot be: then it is copied again.
    fn has_what_it_keeps(
        &self,
        file: &Incomplete,
        there: &Metadata,
        earlier: &Earlier,
        finish: impl FnOnce() -> Result<Metadata, StoreError>,
    ) -> Result<bool, CopyError> {
        let Attributes { final_mode, mtime, owner, .. } = file.attributes;
        let as_it_was = mtime.is_none_or(|mtime| mtime == there.mtime)
            && (final_mode == there.mode || !self.options.keeps_modes())
            && owner.is_none_or(|owner| owner == (there.uid, there.gid));
        if as_it_was {
            return Ok(true);
        }
        let there = match finish() {
            Ok(there) => there,
            // Another's file, which was written over: copied again it would be no other.
            Err(error) => return Ok(error == Errno::PERM.into()),
        };
        // By its new time the next run knows it.
        let hash = earlier.complete.as_ref().and_then(|(_, hash)| *hash);
        let record = Record::Complete { part: earlier.part, path: file.key, source: file.source, made: there.made(), hash };
        self.tree.stage.store.append(&[record]).map_err(|error| self.broken(error))?;
        Ok(true)
    }

    fn has_all(&self, part: &impl Content, earlier: &Earlier, hash: Option<&[u8; 32]>, size: u64, buffer: &mut Vec<u8>) -> bool {
        let mut holds = |range: &Sent| self.tree.stage.holds(part, range, self.options.verify.hashes(), buffer);
        match hash {
            Some(_) if size == 0 => true,
            Some(hash) => u32::try_from(size).is_ok_and(|size| holds(&(0, size, *hash))),
            None => earlier.ranges.iter().all(holds),
        }
    }
}

/// Whether the destination has a newer file of this name.
pub(super) fn is_newer(mtime: Stamp, existing: Option<&Metadata>) -> bool {
    existing.filter(|there| there.kind == FileKind::File).is_some_and(|there| there.mtime > mtime)
}

//! One errand, done in the directories of this machine, as far as the client may use them.

use std::ops::ControlFlow;
use std::sync::Arc;

use haul_faults::Errno;
use haul_files::store::{
    At, Attributes, Content, FileKind, Metadata, Part as _, Place, Scheme, Spot, Stage as _, Store, is_plain_name, is_reserved,
    umask,
};
use haul_files::{Access, Stop, StoreError, Why, WirePath};
use haul_units::Cancel;

use super::{Found, FoundKind, MAX_PATH, Problem};
use crate::here::{self, Local};

/// Bytes that are read and written at once.
pub const CHUNK: usize = 1 << 20;

/// What one client may reach.
pub struct Reach {
    access: Access,
    store: Local,
}

type Dir = <Local as Store>::Dir;

/// A file that is open for reading.
pub struct Opened {
    file: <Local as Store>::File,
    pub size: u64,
}

impl Opened {
    /// Up to a chunk of it; shorter only at its end.
    pub fn read(&self, buffer: &mut Vec<u8>, from: u64, length: usize) -> Result<usize, StoreError> {
        buffer.clear();
        self.file.read_at(buffer, from, length.min(CHUNK))
    }
}

/// A file that is being written. Dropped before [`Made::commit`], nothing is left of it.
pub struct Made {
    stage: Option<<Local as Store>::Stage>,
    part: <<Local as Store>::Stage as haul_files::store::Stage>::Part,
    number: u64,
    root: Arc<Dir>,
    name: Vec<u8>,
    attributes: Attributes,
    path: WirePath,
    written: u64,
}

impl Reach {
    pub fn new(access: &Access) -> Self {
        Self { access: access.clone(), store: Local::of(access.clone()) }
    }

    pub fn look(&self, path: &WirePath) -> Result<Found, Problem> {
        self.check(path)?;
        if self.is_top(path) {
            return Ok(top(path));
        }
        match self.store.stat(At::Top(&self.source(path)?)) {
            Ok(found) => Ok(told(path.clone(), &found, None)),
            // Perhaps it is a link, which is not followed and can be seen.
            Err(error @ StoreError::OutsideRoot) => self.look_at_link(path).ok_or_else(|| failed(path, error)),
            Err(error) => Err(failed(path, error)),
        }
    }

    /// A link in a directory that the client may see.
    fn look_at_link(&self, path: &WirePath) -> Option<Found> {
        let end = path.0.iter().rposition(|&byte| byte != b'/')? + 1;
        let spelled = path.0.get(..end)?;
        let cut = spelled.iter().rposition(|&byte| byte == b'/')?;
        let (parent, name) = (WirePath(spelled.get(..cut)?.to_vec()), spelled.get(cut + 1..).filter(|name| is_plain_name(name))?);
        let dir = self.store.directory(At::Top(&self.source(&parent).ok()?), None).ok()?;
        let found = self.store.stat(At::In(&dir, name)).ok().filter(|found| found.kind == FileKind::Symlink)?;
        let target = self.store.read_link(&dir, name).ok()?;
        Some(told(path.clone(), &found, Some(WirePath(target))))
    }

    /// Calls `each` with what is in a directory, but for unfinished copies.
    pub fn list(&self, path: &WirePath, each: &mut dyn FnMut(Found) -> ControlFlow<()>) -> Result<(), Problem> {
        self.check(path)?;
        if let (true, Access::Exports(exports)) = (self.is_top(path), &self.access) {
            for export in exports {
                let name = WirePath(export.name.clone().into_bytes());
                // What is no longer there is still exported.
                let inside = WirePath([b"/", &*name.0].concat());
                let mut found = self.look(&inside).unwrap_or_else(|_| top(&name));
                found.name = name;
                if each(found).is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let dir = self.store.directory(At::Top(&self.source(path)?), None).map_err(|error| failed(path, error))?;
        let mut listed = |entry: haul_files::store::Listed<'_>| {
            if is_reserved(entry.name) {
                return ControlFlow::Continue(());
            }
            // One that has gone meanwhile is not in it.
            let Ok(metadata) = (entry.metadata)() else { return ControlFlow::Continue(()) };
            let target = (metadata.kind == FileKind::Symlink).then(|| self.store.read_link(&dir, entry.name).ok()).flatten();
            each(told(WirePath(entry.name.to_vec()), &metadata, target.map(WirePath)))
        };
        self.store.list(&dir, &mut listed).map_err(|error| failed(path, error))
    }

    pub fn open(&self, path: &WirePath) -> Result<Opened, Problem> {
        self.check(path)?;
        let file = self.store.open(At::Top(&self.source(path)?)).map_err(|error| failed(path, error))?;
        let found = Content::metadata(&file).map_err(|error| failed(path, error))?;
        match found.kind {
            FileKind::File => Ok(Opened { file, size: found.size }),
            FileKind::Directory => Err(Problem::of(path, &Errno::ISDIR.into())),
            FileKind::Symlink | FileKind::Special => Err(Problem::of(path, &Why::Special)),
        }
    }

    /// Begins a file; `number` tells it from all others that are being written.
    pub fn write(&self, path: &WirePath, number: &[u8; 32]) -> Result<Made, Problem> {
        self.check(path)?;
        let place = self.store.destination(path, false).map_err(|stop| stopped(path, &stop))?;
        let Some(name) = place.rename.clone().filter(|_| !place.directory_only) else {
            return Err(Problem::of(path, &Errno::ISDIR.into()));
        };
        let there = self.store.stat(At::In(&*place.root, &name)).ok();
        if there.is_some_and(|there| there.kind == FileKind::Directory) {
            return Err(Problem::of(path, &Errno::ISDIR.into()));
        }
        let mode = there.filter(|there| there.kind == FileKind::File).map_or(0o666 & !umask(), |there| there.mode & 0o777);
        let attributes = Attributes {
            open_mode: mode,
            mode: (mode & !(0o777 & !umask()) != 0).then_some(mode),
            final_mode: mode,
            ..Attributes::default()
        };
        let (stage, _) = self.store.stage(&place, number, false, &Cancel::new()).map_err(|stop| stopped(path, &stop))?;
        let (number, part) = match stage.create(mode) {
            Ok(made) => made,
            Err(error) => {
                let _ = stage.remove();
                return Err(failed(path, error));
            }
        };
        Ok(Made { stage: Some(stage), part, number, root: place.root, name, attributes, path: path.clone(), written: 0 })
    }

    pub fn make(&self, path: &WirePath) -> Result<(), Problem> {
        let (dir, name) = self.spot(path)?;
        here::make(&dir, &name).map_err(|error| failed(path, error))
    }

    pub fn remove(&self, path: &WirePath, is_directory: bool) -> Result<(), Problem> {
        let (dir, name) = self.spot(path)?;
        here::remove(&dir, &name, is_directory).map_err(|error| failed(path, error))
    }

    pub fn rename(&self, from: &WirePath, to: &WirePath) -> Result<(), Problem> {
        let ((from_dir, from_name), (to_dir, to_name)) = (self.spot(from)?, self.spot(to)?);
        here::rename((&from_dir, &from_name), (&to_dir, &to_name)).map_err(|error| failed(from, error))
    }

    /// The directory that has a name which is to be changed, and the name.
    fn spot(&self, path: &WirePath) -> Result<(Arc<Dir>, Vec<u8>), Problem> {
        self.check(path)?;
        let end = path.0.iter().rposition(|&byte| byte != b'/').map_or(0, |at| at + 1);
        let spelled = path.0.get(..end).unwrap_or_default();
        let cut = spelled.iter().rposition(|&byte| byte == b'/');
        let (parent, name) = match cut {
            Some(0) => (&b"/"[..], spelled.get(1..).unwrap_or_default()),
            Some(at) => (spelled.get(..at).unwrap_or_default(), spelled.get(at + 1..).unwrap_or_default()),
            None => (&b"."[..], spelled),
        };
        if !is_plain_name(name) {
            return Err(Problem::of(path, &Errno::INVAL.into()));
        }
        if is_reserved(name) {
            return Err(Problem::of(path, &Why::Reserved));
        }
        if matches!(self.access, Access::Exports(_)) && parent.iter().all(|byte| matches!(byte, b'/' | b'.')) {
            return Err(Problem::new(path, Errno::ACCESS, "is a root, which only its daemon can change"));
        }
        // Below an account's home, as the path itself would be.
        let parent = if cut.is_none() && matches!(self.access, Access::Account { .. }) {
            WirePath::default()
        } else {
            WirePath(parent.to_vec())
        };
        let place: Place<Dir> = self.store.destination(&parent, true).map_err(|stop| stopped(path, &stop))?;
        match place.rename {
            None => Ok((place.root, name.to_vec())),
            Some(_) => Err(Problem::of(path, &Errno::NOENT.into())),
        }
    }

    fn source(&self, path: &WirePath) -> Result<<Local as Store>::Top, Problem> {
        self.store.source(path).map_err(|stop| stopped(path, &stop))
    }

    fn check(&self, path: &WirePath) -> Result<(), Problem> {
        if path.0.len() > MAX_PATH || path.0.contains(&0) {
            return Err(Problem::new(&WirePath::default(), Errno::INVAL, "a path of too many bytes, or with a zero in it"));
        }
        if matches!(self.access, Access::Account { .. }) && Scheme::split(&path.0).0 != Scheme::Local {
            return Err(Problem::new(
                path,
                Errno::OPNOTSUPP,
                "is in a store of which single files are not read or written: copy them",
            ));
        }
        Ok(())
    }

    /// Whether it is what has the roots in it.
    fn is_top(&self, path: &WirePath) -> bool {
        matches!(self.access, Access::Exports(_)) && path.0.iter().all(|&byte| byte == b'/')
    }
}

impl Made {
    /// More of its content.
    pub fn write(&mut self, content: &[u8]) -> Result<(), Problem> {
        self.part.write_at(content, self.written).map_err(|error| failed(&self.path, error))?;
        self.written += content.len() as u64;
        Ok(())
    }

    /// Gives it its name, when it is durable.
    pub fn commit(mut self) -> Result<u64, Problem> {
        let Some(stage) = self.stage.take() else { return Ok(0) };
        let result = self.named(&stage);
        let removed = stage.remove();
        result.map_err(|error| failed(&self.path, error))?;
        removed.map_err(|error| failed(&self.path, error))?;
        Ok(self.written)
    }

    fn named(&self, stage: &<Local as Store>::Stage) -> Result<(), StoreError> {
        self.part.set_size(self.written)?;
        self.part.finish(&self.attributes, self.attributes.mode)?;
        stage.sync(&[self.number])?;
        let spot = Spot { dir: &self.root, name: &self.name, path: &|name| name.to_vec() };
        stage.commit(self.number, &spot, &self.attributes)?;
        stage.sync_names(Some(&[Arc::clone(&self.root)]))
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(stage) = self.stage.take() {
            let _ = stage.remove();
        }
    }
}

fn failed(path: &WirePath, error: StoreError) -> Problem {
    Problem::of(path, &error.into())
}

/// Why something may not be reached at all.
fn stopped(path: &WirePath, stop: &Stop) -> Problem {
    match stop {
        Stop::Destination { why, .. } => Problem::of(path, why),
        Stop::UnknownRoot { .. } => Problem::new(path, Errno::NOENT, "no such root is exported"),
        Stop::ReadOnlyRoot { .. } => Problem::new(path, Errno::ROFS, "this root is read-only"),
        Stop::NeedsDirectory { .. } => Problem::of(path, &Errno::NOENT.into()),
        other => Problem::new(path, Errno::IO, &other.to_string()),
    }
}

fn told(name: WirePath, metadata: &Metadata, target: Option<WirePath>) -> Found {
    let kind = match metadata.kind {
        FileKind::File => FoundKind::File,
        FileKind::Directory => FoundKind::Directory,
        FileKind::Symlink => FoundKind::Link,
        FileKind::Special => FoundKind::Special,
    };
    let (size, modified) = (metadata.size, (metadata.mtime.secs, metadata.mtime.nanos));
    Found {
        name,
        kind,
        size,
        mode: metadata.mode,
        uid: metadata.uid,
        gid: metadata.gid,
        modified,
        inode: metadata.identity.inode,
        target,
    }
}

/// What has the roots in it.
fn top(name: &WirePath) -> Found {
    let kind = FoundKind::Directory;
    Found { name: name.clone(), kind, size: 0, mode: 0o555, uid: 0, gid: 0, modified: (0, 0), inode: 0, target: None }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use haul_files::{Export, Ownership};

    use super::*;

    fn reach(path: &Path, writable: bool) -> Reach {
        Reach::new(&Access::Exports(vec![Export { name: "r".into(), path: path.into(), writable, ownership: Ownership::Mask }]))
    }

    fn path(text: &str) -> WirePath {
        WirePath(text.into())
    }

    fn listed(reach: &Reach, text: &str) -> Result<Vec<String>, Problem> {
        let mut all = Vec::new();
        let result = reach.list(&path(text), &mut |found| {
            all.push(found.name.to_string());
            ControlFlow::Continue(())
        });
        all.sort();
        result.map(|()| all)
    }

    fn errno(result: Result<impl Sized, Problem>) -> Option<Errno> {
        result.err().map(|problem| Errno::from_raw_os_error(problem.errno))
    }

    #[test]
    fn names_are_made_renamed_and_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let reach = reach(dir.path(), true);
        reach.make(&path("/r/d")).expect("made");
        assert_eq!(errno(reach.make(&path("/r/d/"))), Some(Errno::EXIST));
        assert_eq!(errno(reach.make(&path("/r/no/d"))), Some(Errno::NOENT));
        let mut made = reach.write(&path("/r/d/a"), &[1; 32]).expect("begun");
        made.write(b"con").expect("written");
        assert_eq!(listed(&reach, "/r/d"), Ok(vec![]), "it has no name yet");
        made.write(b"tent").expect("written");
        assert_eq!(made.commit(), Ok(7));
        assert_eq!(fs::read(dir.path().join("d/a")).expect("it is there"), b"content");
        assert_eq!(fs::read_dir(dir.path().join("d")).expect("a directory").count(), 1, "nothing else stays");
        drop(reach.write(&path("/r/d/a"), &[2; 32]).expect("begun"));
        assert_eq!(reach.look(&path("/r/d/a")).map(|found| (found.kind, found.size)), Ok((FoundKind::File, 7)));
        assert_eq!(errno(reach.remove(&path("/r/d"), true)), Some(Errno::NOTEMPTY));
        reach.rename(&path("/r/d/a"), &path("/r/b")).expect("renamed");
        reach.remove(&path("/r/d"), true).expect("removed");
        assert_eq!(listed(&reach, "/r"), Ok(vec!["b".into()]));
        reach.remove(&path("r/b"), false).expect("removed");
        assert_eq!(errno(reach.look(&path("/r/b"))), Some(Errno::NOENT));
        assert_eq!(listed(&reach, "/"), Ok(vec!["r".into()]));
        assert_eq!(errno(reach.open(&path("/r"))), Some(Errno::ISDIR));
        assert_eq!(errno(reach.write(&path("/r"), &[3; 32]).map(|_| ())), Some(Errno::ISDIR));
    }

    #[test]
    fn nothing_leads_out_of_what_a_client_may_see_or_change() {
        let dir = tempfile::tempdir().expect("a directory");
        let inside = dir.path().join("inside");
        fs::create_dir_all(inside.join(".haul-12345678")).expect("a stage");
        fs::write(dir.path().join("secret"), "x").expect("a file");
        fs::write(inside.join("a"), "x").expect("a file");
        std::os::unix::fs::symlink("..", inside.join("up")).expect("a link");
        let (writer, reader) = (reach(&inside, true), reach(&inside, false));
        let link = writer.look(&path("/r/up/")).expect("a link can be seen");
        assert_eq!((link.kind, link.target), (FoundKind::Link, Some(path(".."))));
        for spelled in ["/r/../secret", "/r/up/secret", "/r/up/inside/up"] {
            assert_eq!(errno(writer.look(&path(spelled))), Some(Errno::ACCESS), "{spelled}");
            assert_eq!(errno(writer.open(&path(spelled)).map(|_| ())), Some(Errno::ACCESS), "{spelled}");
        }
        for spelled in ["/r/../new", "/r/up/new"] {
            assert_eq!(errno(writer.write(&path(spelled), &[1; 32]).map(|_| ())), Some(Errno::ACCESS), "{spelled}");
            assert_eq!(errno(writer.make(&path(spelled))), Some(Errno::ACCESS), "{spelled}");
            assert_eq!(errno(writer.rename(&path("/r/a"), &path(spelled))), Some(Errno::ACCESS), "{spelled}");
        }
        assert_eq!(errno(writer.remove(&path("/r/up/secret"), false)), Some(Errno::ACCESS));
        for spelled in ["/r", "/r/", "r", "/", "", "/r/..", "/r/."] {
            assert!(writer.remove(&path(spelled), true).is_err() && writer.make(&path(spelled)).is_err(), "{spelled}");
        }
        for spelled in ["/r/.haul-12345678", "/r/.haul-12345678/journal"] {
            assert!(writer.remove(&path(spelled), true).is_err() && writer.remove(&path(spelled), false).is_err(), "{spelled}");
        }
        assert_eq!(errno(writer.look(&path("/other/a"))), Some(Errno::NOENT));
        assert_eq!(listed(&writer, "/r"), Ok(vec!["a".into(), "up".into()]), "a stage is not shown");
        let refused = [
            errno(reader.write(&path("/r/b"), &[1; 32]).map(|_| ())),
            errno(reader.make(&path("/r/b"))),
            errno(reader.remove(&path("/r/a"), false)),
            errno(reader.rename(&path("/r/a"), &path("/r/b"))),
        ];
        assert_eq!(refused, [Some(Errno::ROFS); 4]);
        assert_eq!(errno(writer.look(&path(&"x".repeat(MAX_PATH + 1)))), Some(Errno::INVAL));
        // A link is removed, and not what it leads to.
        writer.remove(&path("/r/up"), false).expect("removed");
        assert!(dir.path().join("secret").exists());
    }

    #[test]
    fn an_account_has_its_home_and_everything() {
        let dir = tempfile::tempdir().expect("a directory");
        let reach = Reach::new(&Access::Account { home: dir.path().into() });
        reach.make(&path("d")).expect("made at home");
        assert!(dir.path().join("d").is_dir());
        let absolute = format!("{}/d/e", dir.path().display());
        reach.make(&path(&absolute)).expect("made");
        reach.make(&path("~/d/f")).expect("made");
        assert_eq!(listed(&reach, "d"), Ok(vec!["e".into(), "f".into()]));
        assert_eq!(errno(reach.make(&path("ram:d"))), Some(Errno::OPNOTSUPP));
    }
}

//! Another file system is mounted in the destination: a name there cannot come from the stage by a rename.
//!
//! What gets such a name is made beside its place, in a directory `.haul-xxxxxxxx.<number>` that nobody else may write to, and then renamed; a note in the
//! stage lets the run after a kill remove it. A hard link to a file on another file system becomes a copy of that file.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::at::in_the_way;
use super::private::{INSIDE, Private};
use super::stage::Stage;
use super::{content, meta};
use crate::journal::Made;
use crate::store::{Attributes, Spot, StoreError};
use haul_descriptors::open_at;
use haul_xattrs::{Keep, Reach};

/// Makes something beside its place and renames it.
pub(super) fn make<R>(
    stage: &Stage,
    to: &Spot<'_, OwnedFd>,
    make: impl FnOnce(&OwnedFd, &str) -> Result<R, Errno>,
) -> Result<R, StoreError> {
    let dir = &**to.dir;
    stage.note_foreign(rustix::fs::fstat(dir)?.st_dev, to.dir);
    let (note, beside) = stage.note(|beside| (to.path)(beside.as_bytes()));
    let result = Private::make(dir, beside).and_then(|private| {
        let made =
            make(private.dir(), INSIDE).and_then(|made| rustix::fs::renameat(private.dir(), INSIDE, dir, to.name).map(|()| made));
        private.remove(dir);
        made
    });
    stage.forget_note(note);
    result.map_err(in_the_way)
}

/// Copies a finished part file to its place.
pub(super) fn copy_over(stage: &Stage, part: u64, to: &Spot<'_, OwnedFd>, attributes: &Attributes) -> Result<Made, StoreError> {
    let from = stage.open_part(part, OFlags::RDONLY)?;
    make(stage, to, |dir, beside| copy(&from, dir, beside, attributes))
}

/// Writes a finished part file over the file that is there, which keeps its owner and mode. Only where there is one, and under one name: what other
/// users could link here must not be written to; and where there is room. What fails then has [emptied](StoreError::Emptied) it.
pub(super) fn write_over(stage: &Stage, part: u64, to: &Spot<'_, OwnedFd>, attributes: &Attributes) -> Result<Made, StoreError> {
    let from = stage.open_part(part, OFlags::RDONLY)?;
    let to = open_at(&**to.dir, to.name, OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK, Mode::empty())?;
    let stat = rustix::fs::fstat(&to)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_nlink != 1 {
        return Err(Errno::PERM.into());
    }
    let data = meta::metadata(&rustix::fs::fstat(&from)?).data;
    // Not every file system can; one that can says so before anything is lost.
    if let Err(full @ (Errno::NOSPC | Errno::DQUOT)) = rustix::fs::fallocate(&to, FallocateFlags::KEEP_SIZE, 0, data) {
        // What was taken behind its end is given back.
        let _ = rustix::fs::ftruncate(&to, meta::size(&stat));
        return Err(full.into());
    }
    rustix::fs::ftruncate(&to, 0)?;
    overwrite(&from, &to, attributes).map_err(|errno| {
        // Not one that has the right size and a part of the content.
        let _ = rustix::fs::ftruncate(&to, 0);
        StoreError::Emptied(errno.raw_os_error())
    })
}

fn overwrite(from: &File, to: &OwnedFd, attributes: &Attributes) -> Result<Made, Errno> {
    copy_data(from, to)?;
    // Its mode stays, so the ACL that it is a part of does too.
    mirror(from, to, Keep { acls: false, ..attributes.keep })?;
    if let Some(mtime) = attributes.mtime {
        // Only its owner can set a file's times.
        let _ = rustix::fs::futimens(to, &meta::timestamps(mtime));
    }
    rustix::fs::fsync(to)?;
    Ok(meta::metadata(&rustix::fs::fstat(to)?).made())
}

/// Makes a hard link where the stage cannot help, or a copy where there can be no link.
pub(super) fn link_over(stage: &Stage, from: &OwnedFd, at: &[u8], to: &Spot<'_, OwnedFd>) -> Result<(), StoreError> {
    make(stage, to, |dir, beside| match rustix::fs::linkat(from, at, dir, beside, AtFlags::empty()) {
        Err(Errno::XDEV) => {
            let file = File::from(open_at(from, at, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK, Mode::empty())?);
            let stat = rustix::fs::fstat(&file)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                return Err(Errno::STALE);
            }
            let owner = rustix::process::geteuid().is_root().then_some((stat.st_uid, stat.st_gid));
            let metadata = meta::metadata(&stat);
            let (final_mode, mtime) = (metadata.mode, Some(metadata.mtime));
            copy(&file, dir, beside, &Attributes { open_mode: 0o600, final_mode, mtime, owner, ..Attributes::default() })
                .map(drop)
        }
        result => result,
    })
}

/// A durable copy of a file, with all its metadata.
fn copy(from: &File, dir: &OwnedFd, name: &str, attributes: &Attributes) -> Result<Made, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let to = open_at(dir, name, flags, Mode::RUSR | Mode::WUSR)?;
    copy_data(from, &to)?;
    content::apply(&to, attributes, Some(attributes.final_mode))?;
    mirror(from, &to, attributes.keep)?;
    rustix::fs::fsync(&to)?;
    Ok(meta::metadata(&rustix::fs::fstat(&to)?).made())
}

/// Gives the file at a name what its part has got.
fn mirror(from: &File, to: &OwnedFd, keep: Keep) -> Result<(), Errno> {
    // Who was allowed to give it to the part is so here.
    let reach = if rustix::process::geteuid().is_root() { Reach::All } else { Reach::User };
    if !keep.any() {
        return Ok(());
    }
    haul_xattrs::mirror(from, to, keep, reach).map(drop).map_err(|failed| Errno::from_raw_os_error(failed.number))
}

/// Copies data and leaves holes.
fn copy_data(from: &File, to: &OwnedFd) -> Result<(), Errno> {
    let size = meta::size(&rustix::fs::fstat(from)?);
    rustix::fs::ftruncate(to, size)?;
    let mut at = 0;
    while at < size {
        let data = match rustix::fs::seek(from, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            Err(_) => at,
        };
        let end = rustix::fs::seek(from, SeekFrom::Hole(data)).unwrap_or(size).min(size);
        let (mut read_at, mut write_at) = (data, data);
        while read_at < end {
            let length = usize::try_from(end - read_at).unwrap_or(usize::MAX).min(1 << 30);
            match rustix::fs::copy_file_range(from, Some(&mut read_at), to, Some(&mut write_at), length) {
                Ok(0) => return Err(Errno::IO),
                Ok(_) => {}
                Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    let mut buffer = vec![0; length.min(1 << 20)];
                    let n = rustix::io::pread(from, &mut buffer, read_at)?;
                    let content = buffer.get(..n).filter(|content| !content.is_empty()).ok_or(Errno::IO)?;
                    let written = rustix::io::pwrite(to, content, write_at)? as u64;
                    (read_at, write_at) = (read_at + written, write_at + written);
                }
                Err(errno) => return Err(errno),
            }
        }
        at = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::{Local, Stage as _, Store};
    use haul_units::Cancel;

    #[test]
    fn what_is_lost_in_writing_over_is_told_and_empty() {
        let dir = tempfile::tempdir().unwrap();
        let place = Local::own().destination(&dir.path().into(), false).unwrap();
        let (stage, _) = Local::own().stage(&place, &[7; 32], true, &Cancel::new()).unwrap();
        std::fs::write(dir.path().join("file"), "what was there").unwrap();
        let root = Arc::new(rustix::fs::open(dir.path(), OFlags::PATH, Mode::empty()).unwrap());
        let to = Spot { dir: &root, name: b"file", path: &|name| name.to_vec() };
        let attributes = Attributes::default();
        assert_eq!(write_over(&stage, 77, &to, &attributes), Err(StoreError::Missing), "no part");
        // A part that cannot be read, as one on a disk that fails.
        rustix::fs::mkdirat(&stage.dir, "p77", Mode::RWXU).unwrap();
        rustix::fs::mkdirat(&stage.dir, "p77/it has some length", Mode::RWXU).unwrap();
        let size = || std::fs::metadata(dir.path().join("file")).unwrap().len();
        assert_eq!(size(), 14);
        let lost = write_over(&stage, 77, &to, &attributes).unwrap_err();
        assert!(matches!(lost, StoreError::Emptied(_)) && size() == 0, "{lost:?}, {} bytes", size());
        let (part, file) = stage.create(0o600).unwrap();
        rustix::io::write(&file, b"new").unwrap();
        assert_eq!(write_over(&stage, part, &to, &attributes).unwrap().size, 3);
        assert_eq!(std::fs::read(dir.path().join("file")).unwrap(), b"new");
    }
}

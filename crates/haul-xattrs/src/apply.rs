//! Making what a thing has what it is to have.

use std::os::fd::AsFd;

use rustix::fs::{FileType, Mode, XattrFlags, chmod, fstat, removexattr, setxattr};
use rustix::io::Errno;

use crate::read::{kept_of, path_of, there};
use crate::{Attribute, Failed, Keep, Namespace, Outcome, Reach, Wanted};

/// What a label of the system is called, which cannot be removed, only be another one.
const LABEL: &[u8] = b"security.selinux";
/// The owner may write.
const OWNER_WRITES: u32 = 0o200;

/// Gives a thing what it is to have, and takes from it what it has besides. What can be done is done, and the first that cannot is the error.
pub fn apply(on: impl AsFd, wanted: &Wanted<'_>) -> Result<Outcome, Failed> {
    let (path, keep) = (path_of(&on), kept_of(&on, wanted.keep)?);
    let is_wanted = |one: &&Attribute| one.space().is_some_and(|space| space.is_kept(keep, wanted.reach));
    let list: Vec<&Attribute> = wanted.list.iter().filter(is_wanted).collect();
    let left_out = wanted.list.iter().any(|one| one.space() == Some(Namespace::Privileged) && !is_wanted(&one));
    let there = there(&path, keep, wanted.reach)?;
    let surplus = there.iter().filter(|one| one.name != LABEL && !list.iter().any(|wanted| wanted.name == one.name));
    let differs = |one: &&&Attribute| !there.contains(one);
    let mut steps: Vec<Step<'_>> = surplus.map(|one| Step::Remove(&one.name)).collect();
    steps.extend(list.iter().filter(differs).filter(|one| one.space() != Some(Namespace::Acl)).map(|one| Step::Set(one)));
    let mode = fstat(&on).map_err(Failed::listing)?.st_mode;
    if let Some(wanted) = wanted.mode.filter(|wanted| keep.acls && mode & 0o777 != wanted & 0o777) {
        steps.push(Step::Mode(mode & 0o7000 | wanted & 0o777));
    }
    // Behind the mode, whose bits for the group are an ACL's mask.
    steps.extend(list.iter().filter(differs).filter(|one| one.space() == Some(Namespace::Acl)).map(|one| Step::Set(one)));
    let outcome = Outcome { changed: !steps.is_empty(), left_out };
    if wanted.writes {
        let failed: Vec<Failed> = steps.iter().filter_map(|step| step.take(&path, mode).err()).collect();
        failed.into_iter().next().map_or(Ok(outcome), Err)
    } else {
        Ok(outcome)
    }
}

/// Gives one thing what another has.
pub fn mirror(from: impl AsFd, to: impl AsFd, keep: Keep, reach: Reach) -> Result<Outcome, Failed> {
    let list = there(&path_of(&from), kept_of(&from, keep)?, reach)?;
    apply(to, &Wanted { list: &list, keep, reach, mode: None, writes: true })
}

enum Step<'a> {
    Remove(&'a [u8]),
    Set(&'a Attribute),
    Mode(u32),
}

impl Step<'_> {
    fn take(&self, path: &str, mode: u32) -> Result<(), Failed> {
        let (name, result) = match self {
            Self::Mode(mode) => (&b""[..], chmod(path, Mode::from_raw_mode(*mode))),
            Self::Remove(name) => (*name, writable(path, mode, || removexattr(path, *name))),
            Self::Set(one) => {
                let set = || setxattr(path, &*one.name, &one.value, XattrFlags::empty());
                (&*one.name, writable(path, mode, set))
            }
        };
        match (self, result) {
            (_, Ok(())) | (Self::Remove(_), Err(Errno::NODATA)) => Ok(()),
            (_, Err(errno)) => Err(Failed::of(name, errno)),
        }
    }
}

/// Tries it, and where a thing's owner may not write it, once more while he may: attributes of `user` are as its content.
fn writable(path: &str, mode: u32, attempt: impl Fn() -> Result<(), Errno>) -> Result<(), Errno> {
    let result = attempt();
    let opens = result == Err(Errno::ACCESS) && mode & OWNER_WRITES == 0;
    if !opens || FileType::from_raw_mode(mode) == FileType::Symlink {
        return result;
    }
    chmod(path, Mode::from_raw_mode(mode & 0o7777 | OWNER_WRITES))?;
    let result = attempt();
    chmod(path, Mode::from_raw_mode(mode & 0o7777))?;
    result
}

//! The bpf(2) system call, as far as it is needed: maps, pins, links, iterators.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const MAP_NEXT_KEY: libc::c_int = 4;
const OBJ_PIN: libc::c_int = 6;
const OBJ_GET: libc::c_int = 7;
const MAP_NEXT_ID: libc::c_int = 12;
const MAP_BY_ID: libc::c_int = 14;
const OBJ_INFO: libc::c_int = 15;
const LINK_CREATE: libc::c_int = 28;
const LINK_UPDATE: libc::c_int = 29;
const ITER_CREATE: libc::c_int = 33;
const LINK_DETACH: libc::c_int = 34;

/// What a link is made to (`enum bpf_attach_type`).
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(crate) enum Attach {
    Egress = 1,
    Sockops = 3,
    Iterator = 28,
    StructOps = 44,
    Interface = 47,
}

/// The argument of a command: the kernel takes a shorter one for one whose rest is zero.
#[repr(C, align(8))]
struct Argument([u64; 4]);

fn bpf(command: libc::c_int, words: [u64; 4]) -> io::Result<libc::c_int> {
    bpf_answered(command, words).map(|(result, _)| result)
}

/// With what the kernel has written into the argument.
fn bpf_answered(command: libc::c_int, words: [u64; 4]) -> io::Result<(libc::c_int, [u64; 4])> {
    let mut argument = Argument(words);
    // SAFETY: the argument is as long as is said; pointers in it are of objects that outlive the call, as each caller below shows.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut argument, size_of::<Argument>() as libc::c_uint) } as libc::c_int;
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok((result, argument.0)) }
}

fn descriptor(fd: libc::c_int) -> OwnedFd {
    // SAFETY: the kernel has just given it to us and nobody else has it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Two 32-bit fields that follow each other.
const fn pair(first: u32, second: u32) -> u64 {
    if cfg!(target_endian = "little") { first as u64 | (second as u64) << 32 } else { (first as u64) << 32 | second as u64 }
}

/// The second of them.
const fn second(word: u64) -> u32 {
    if cfg!(target_endian = "little") { (word >> 32) as u32 } else { word as u32 }
}

fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd() as u32
}

fn path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

/// Gives what a descriptor stands for a name in a bpf file system, by which it outlives this process.
pub(crate) fn pin(fd: BorrowedFd<'_>, to: &Path) -> io::Result<()> {
    let to = path(to)?;
    bpf(OBJ_PIN, [to.as_ptr() as u64, pair(number(fd), 0), 0, 0]).map(drop)
}

/// What has that name.
pub(crate) fn pinned(at: &Path) -> io::Result<OwnedFd> {
    let at = path(at)?;
    bpf(OBJ_GET, [at.as_ptr() as u64, 0, 0, 0]).map(descriptor)
}

/// A link from a program (or a map of operations) to a cgroup, or to nothing.
pub(crate) fn link(program: BorrowedFd<'_>, target: Option<BorrowedFd<'_>>, attach: Attach) -> io::Result<OwnedFd> {
    bpf(LINK_CREATE, [pair(number(program), target.map_or(0, number)), pair(attach as u32, 0), 0, 0]).map(descriptor)
}

/// A link from a program to what leaves through an interface of this thread's network namespace, by its number.
pub(crate) fn link_to_interface(program: BorrowedFd<'_>, interface: u32) -> io::Result<OwnedFd> {
    bpf(LINK_CREATE, [pair(number(program), interface), pair(Attach::Interface as u32, 0), 0, 0]).map(descriptor)
}

/// Puts another map of operations in the place of a link's: at once for new connections, while those that are open keep theirs.
pub(crate) fn replace(link: BorrowedFd<'_>, map: BorrowedFd<'_>) -> io::Result<()> {
    bpf(LINK_UPDATE, [pair(number(link), number(map)), 0, 0, 0]).map(drop)
}

/// Ends what a link does, before it goes. A link that cannot be detached (operations before Linux 6.11) ends soon after its last name.
pub(crate) fn detach(link: BorrowedFd<'_>) -> io::Result<()> {
    match bpf(LINK_DETACH, [pair(number(link), 0), 0, 0, 0]) {
        Err(error) if error.raw_os_error() != Some(libc::EOPNOTSUPP) => Err(error),
        _ => Ok(()),
    }
}

/// All that an iterator writes, in the network namespace of this thread.
pub(crate) fn walk(program: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let link = link(program, None, Attach::Iterator)?;
    let iterator = bpf(ITER_CREATE, [pair(link.as_raw_fd() as u32, 0), 0, 0, 0]).map(descriptor)?;
    let mut written = Vec::new();
    File::from(iterator).read_to_end(&mut written)?;
    Ok(written)
}

/// A map of this name whose values have this size, of any program in the kernel.
pub(crate) fn map_called(name: &str, value_bytes: u32) -> Option<OwnedFd> {
    let mut id = 0;
    while let Ok((_, words)) = bpf_answered(MAP_NEXT_ID, [pair(id, 0), 0, 0, 0]) {
        id = second(words[0]);
        // One that has just gone is none.
        let map = bpf(MAP_BY_ID, [pair(id, 0), 0, 0, 0]).map(descriptor);
        let is_it =
            |map: &OwnedFd| about(map.as_fd()).is_ok_and(|about| about.is_called(name) && about.value_bytes() == value_bytes);
        if let Some(map) = map.ok().filter(is_it) {
            return Some(map);
        }
    }
    None
}

/// As much of `struct bpf_map_info` as is looked at.
#[repr(C, align(8))]
struct About([u8; 40]);

impl About {
    fn is_called(&self, name: &str) -> bool {
        self.0[24..].split(|byte| *byte == 0).next() == Some(name.as_bytes())
    }

    fn value_bytes(&self) -> u32 {
        self.0[12..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }
}

fn about(map: BorrowedFd<'_>) -> io::Result<About> {
    let mut about = About([0; 40]);
    bpf(OBJ_INFO, [pair(number(map), size_of::<About>() as u32), (&raw mut about) as u64, 0, 0])?;
    Ok(about)
}

pub(crate) fn update(map: BorrowedFd<'_>, key: &[u8], value: &[u8]) -> io::Result<()> {
    bpf(MAP_UPDATE, [pair(number(map), 0), key.as_ptr() as u64, value.as_ptr() as u64, 0]).map(drop)
}

/// The key after another one, or the first; false where there is none. Both have to have the size of the map's.
pub(crate) fn next_key(map: BorrowedFd<'_>, key: Option<&[u8]>, next: &mut [u8]) -> io::Result<bool> {
    let key = key.map_or(0, |key| key.as_ptr() as u64);
    match bpf(MAP_NEXT_KEY, [pair(number(map), 0), key, next.as_mut_ptr() as u64, 0]) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        found => found.map(|_| true),
    }
}

/// The value has to have the map's size.
pub(crate) fn lookup(map: BorrowedFd<'_>, key: &[u8], value: &mut [u8]) -> io::Result<()> {
    bpf(MAP_LOOKUP, [pair(number(map), 0), key.as_ptr() as u64, value.as_mut_ptr() as u64, 0]).map(drop)
}

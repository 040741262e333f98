//! libgfarm, loaded at run time: its functions, what they take and give, and all of the unsafe code that this needs.
//!
//! The layouts are those of `gfarm/gfs.h`, the same since Gfarm 2.7. The library is never unloaded: it has registered what runs at the end of the process.
//! A value of [`Library`] stays on the thread that made it (its pointers are not `Send`): libgfarm says nothing of threads.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use crate::error::{GfarmError, OpenError};

/// What the library is called on every system that has Gfarm 2.
pub(crate) const LIBRARY: &str = "libgfarm.so.1";
/// The oldest release whose layouts are known to be these.
const OLDEST: (c_int, c_int) = (2, 7);
/// Releases up to this one crash on a host with a tunnel (seen with 2.7.20).
const NO_TUNNELS: (c_int, c_int) = (2, 7);
/// `LOG_ALERT` of syslog: what libgfarm says on standard error is for us to say.
const QUIET: c_int = 1;

/// `GFARM_FILE_RDONLY`.
const READ: c_int = 0;
/// `GFARM_FILE_RDWR`.
const READ_WRITE: c_int = 2;
/// `GFARM_FILE_EXCLUSIVE`.
const EXCLUSIVE: c_int = 0x1000;
/// `GFARM_FILE_UNBUFFERED`: what was written is at the server, and is there when this process is killed.
const UNBUFFERED: c_int = 0x0020_0000;
/// In the flags of a checksum: somebody has the file open for writing (`GFM_PROTO_CKSUM_GET_MAYBE_EXPIRED`).
const BEING_WRITTEN: c_int = 1;
/// `GFS_REPLICA_INFO_INCLUDING_` dead hosts, incomplete and obsolete copies.
const ALL_REPLICAS: c_int = 7;

type Code = c_int;
type File = *mut c_void;
type Dir = *mut c_void;

#[repr(C)]
struct RawTime {
    seconds: i64,
    nanos: i32,
}

#[repr(C)]
struct RawStat {
    inode: u64,
    generation: u64,
    mode: u32,
    links: u64,
    user: *mut c_char,
    group: *mut c_char,
    size: i64,
    copies: u64,
    accessed: RawTime,
    modified: RawTime,
    changed: RawTime,
}

#[repr(C)]
struct RawEntry {
    inode: u64,
    record_length: u16,
    kind: u8,
    name_length: u8,
    name: [c_char; 256],
}

#[repr(C)]
struct RawChecksum {
    kind: *mut c_char,
    checksum: *mut c_char,
    length: usize,
    flags: c_int,
}

haul_clib::functions! {
    struct Functions {
        gfarm_version_major() -> c_int;
        gfarm_version_minor() -> c_int;
        gflog_set_priority_level(c_int);
        gfarm_initialize(*mut c_int, *mut *mut *mut c_char) -> Code;
        gfarm_set_client_digest_check(c_int);
        gfarm_get_global_username_by_url(*const c_char, *mut *mut c_char) -> Code;
        gfarm_error_string(Code) -> *const c_char;
        gfarm_error_to_errno(Code) -> c_int;
        gfs_lstat(*const c_char, *mut RawStat) -> Code;
        gfs_stat(*const c_char, *mut RawStat) -> Code;
        gfs_fstat(File, *mut RawStat) -> Code;
        gfs_stat_free(*mut RawStat);
        gfs_opendirplus(*const c_char, *mut Dir) -> Code;
        gfs_readdirplus(Dir, *mut *mut RawEntry, *mut *mut RawStat) -> Code;
        gfs_closedirplus(Dir) -> Code;
        gfs_pio_open(*const c_char, c_int, *mut File) -> Code;
        gfs_pio_create(*const c_char, c_int, c_uint, *mut File) -> Code;
        gfs_pio_close(File) -> Code;
        gfs_pio_pread(File, *mut c_void, c_int, i64, *mut c_int) -> Code;
        gfs_pio_pwrite(File, *const c_void, c_int, i64, *mut c_int) -> Code;
        gfs_pio_truncate(File, i64) -> Code;
        gfs_pio_sync(File) -> Code;
        gfs_pio_internal_set_view_section(File, *mut c_char) -> Code;
        gfs_mkdir(*const c_char, c_uint) -> Code;
        gfs_rmdir(*const c_char) -> Code;
        gfs_unlink(*const c_char) -> Code;
        gfs_rename(*const c_char, *const c_char) -> Code;
        gfs_link(*const c_char, *const c_char) -> Code;
        gfs_symlink(*const c_char, *const c_char) -> Code;
        gfs_readlink(*const c_char, *mut *mut c_char) -> Code;
        gfs_lchmod(*const c_char, c_uint) -> Code;
        gfs_lutimes(*const c_char, *const RawTime) -> Code;
        gfs_statfs_by_path(*const c_char, *mut i64, *mut i64, *mut i64) -> Code;
        gfs_stat_cksum(*const c_char, *mut RawChecksum) -> Code;
        gfs_stat_cksum_free(*mut RawChecksum) -> Code;
        gfs_replica_info_by_name(*const c_char, c_int, *mut *mut c_void) -> Code;
        gfs_replica_info_number(*mut c_void) -> c_int;
        gfs_replica_info_nth_host(*mut c_void, c_int) -> *const c_char;
        gfs_replica_info_nth_gen(*mut c_void, c_int) -> u64;
        gfs_replica_info_nth_is_incomplete(*mut c_void, c_int) -> c_int;
        gfs_replica_info_nth_is_dead_host(*mut c_void, c_int) -> c_int;
        gfs_replica_info_nth_is_dead_copy(*mut c_void, c_int) -> c_int;
        gfs_replica_info_free(*mut c_void);
    }
}

/// What Gfarm knows of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) inode: u64,
    /// Rises with each time that content was written.
    pub(crate) generation: u64,
    /// Type and permission bits, as POSIX has them.
    pub(crate) mode: u32,
    pub(crate) links: u64,
    /// It belongs to the user that this process is for Gfarm.
    pub(crate) own: bool,
    pub(crate) size: u64,
    pub(crate) modified: (i64, u32),
    pub(crate) changed: (i64, u32),
}

/// A copy of a file's content on one server, as the library tells it.
pub(crate) struct RawReplica {
    pub(crate) host: String,
    pub(crate) generation: u64,
    pub(crate) down: bool,
    pub(crate) incomplete: bool,
    pub(crate) obsolete: bool,
}

/// A checksum that Gfarm keeps, and whether somebody writes to the file now.
pub(crate) struct RawSum {
    pub(crate) kind: Vec<u8>,
    pub(crate) sum: Vec<u8>,
    pub(crate) being_written: bool,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write,
}

/// A file or directory that the library has open, by a number that is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Number(u64);

/// The library, initialised, with what is open in it.
pub(crate) struct Library {
    functions: Functions,
    /// Who this process is for Gfarm.
    user: Vec<u8>,
    files: HashMap<Number, File>,
    dirs: HashMap<Number, Dir>,
    last: u64,
    /// Stays on its thread.
    thread: PhantomData<*mut ()>,
}

impl Library {
    /// Loads it and reads Gfarm's configuration.
    pub(crate) fn open(name: &str) -> Result<Self, OpenError> {
        // SAFETY: what runs when libgfarm is loaded are the constructors of it and of OpenSSL, which ask nothing of their caller.
        let loaded = unsafe { haul_clib::Library::open(name) };
        let loaded = loaded.map_err(|source| OpenError::Missing { library: name.to_owned(), source })?;
        // SAFETY: the types are those of the library's headers, whose release is looked at before any of them is called.
        let found = unsafe { Functions::find(&loaded) };
        let functions = found.map_err(|source| OpenError::TooOld { library: name.to_owned(), source: Some(source) })?;
        let (files, dirs) = (HashMap::new(), HashMap::new());
        let mut library = Self { functions, user: Vec::new(), files, dirs, last: 0, thread: PhantomData };
        // SAFETY: both take nothing and give a number.
        let version = unsafe { ((library.functions.gfarm_version_major)(), (library.functions.gfarm_version_minor)()) };
        if version < OLDEST || version.0 != OLDEST.0 {
            return Err(OpenError::TooOld { library: name.to_owned(), source: None });
        }
        if let Some(device) = tunnel().filter(|_| version <= NO_TUNNELS) {
            return Err(OpenError::Tunnel { device, major: version.0, minor: version.1 });
        }
        library.initialize().map_err(|error| OpenError::Configuration(library.text(error)))?;
        library.user = library.own_name().map_err(|error| OpenError::Configuration(library.text(error)))?;
        Ok(library)
    }

    fn initialize(&self) -> Result<(), GfarmError> {
        let mut program = *b"haul\0";
        let mut arguments = [program.as_mut_ptr().cast::<c_char>(), ptr::null_mut()];
        let (mut count, mut list) = (1, arguments.as_mut_ptr());
        // SAFETY: a count and a list of so many strings with a null pointer behind them, as main() has them; the library keeps neither.
        unsafe {
            (self.functions.gflog_set_priority_level)(QUIET);
            self.done((self.functions.gfarm_initialize)(&raw mut count, &raw mut list))?;
            (self.functions.gflog_set_priority_level)(QUIET);
            // Has what is read come through the server, where this is that server, and not from its disk directly: there the library's own copies lose data in silence (Gfarm 2.7, 2.8). What is written goes to that disk
            // directly all the same: the library offers no switch for it but its configuration file. So nothing here is left to those copies, and each call's count is looked at.
            (self.functions.gfarm_set_client_digest_check)(1);
        }
        Ok(())
    }

    fn own_name(&self) -> Result<Vec<u8>, GfarmError> {
        let mut name = ptr::null_mut();
        // SAFETY: a path that ends, and room for the answer.
        self.done(unsafe { (self.functions.gfarm_get_global_username_by_url)(c"/".as_ptr(), &raw mut name) })?;
        let own = bytes(name);
        // SAFETY: the library has allocated it for its caller to free; null is nothing.
        unsafe { libc::free(name.cast()) };
        Ok(own)
    }

    /// What the library says of an error.
    pub(crate) fn text(&self, error: GfarmError) -> String {
        // SAFETY: takes any number, and gives a constant string.
        let text = unsafe { (self.functions.gfarm_error_string)(error.code()) };
        if text.is_null() {
            return format!("error {}", error.code());
        }
        // SAFETY: not null, and a string that ends, see above.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    fn done(&self, code: Code) -> Result<(), GfarmError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: takes any number and gives one.
        let errno = unsafe { (self.functions.gfarm_error_to_errno)(code) };
        Err(GfarmError::new(code, errno))
    }

    /// What has this path; a link is followed or not.
    pub(crate) fn stat(&self, path: &CStr, follow: bool) -> Result<Stat, GfarmError> {
        let call = if follow { self.functions.gfs_stat } else { self.functions.gfs_lstat };
        // SAFETY: a path that ends, and room for the answer.
        self.stat_by(|answer| unsafe { call(path.as_ptr(), answer) })
    }

    /// What an open file is. Gfarm learns the size of one that is written to when it is closed.
    pub(crate) fn stat_open(&self, file: Number) -> Result<Stat, GfarmError> {
        let file = self.file(file)?;
        // SAFETY: a file that is open, and room for the answer.
        self.stat_by(|answer| unsafe { (self.functions.gfs_fstat)(file, answer) })
    }

    fn stat_by(&self, call: impl FnOnce(*mut RawStat) -> Code) -> Result<Stat, GfarmError> {
        let mut answer = MaybeUninit::uninit();
        self.done(call(answer.as_mut_ptr()))?;
        // SAFETY: a call that has succeeded has filled it in.
        let mut answer = unsafe { answer.assume_init() };
        let stat = self.stat_of(&answer);
        // SAFETY: filled in by the library, and freed once.
        unsafe { (self.functions.gfs_stat_free)(&raw mut answer) };
        Ok(stat)
    }

    fn stat_of(&self, raw: &RawStat) -> Stat {
        let time = |time: &RawTime| (time.seconds, u32::try_from(time.nanos).unwrap_or(0));
        Stat {
            inode: raw.inode,
            generation: raw.generation,
            mode: raw.mode,
            links: raw.links,
            own: bytes(raw.user) == self.user,
            size: u64::try_from(raw.size).unwrap_or(0),
            modified: time(&raw.modified),
            changed: time(&raw.changed),
        }
    }

    /// Opens a directory, to be listed.
    pub(crate) fn open_list(&mut self, path: &CStr) -> Result<Number, GfarmError> {
        let mut dir = ptr::null_mut();
        // SAFETY: a path that ends, and room for the answer.
        self.done(unsafe { (self.functions.gfs_opendirplus)(path.as_ptr(), &raw mut dir) })?;
        let number = self.number();
        self.dirs.insert(number, dir);
        Ok(number)
    }

    /// Up to `most` further entries; none at the end, and then it is closed.
    pub(crate) fn list(&mut self, dir: Number, most: usize) -> Result<Vec<(Vec<u8>, Stat)>, GfarmError> {
        let raw = *self.dirs.get(&dir).ok_or(GfarmError::CLOSED)?;
        let mut found = Vec::new();
        while found.len() < most {
            let (mut entry, mut stat) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: a directory that is open; both answers belong to the library until the next call.
            self.done(unsafe { (self.functions.gfs_readdirplus)(raw, &raw mut entry, &raw mut stat) })?;
            if entry.is_null() || stat.is_null() {
                break;
            }
            // SAFETY: not null, and valid until the next call for this directory.
            let (entry, stat) = unsafe { (&*entry, &*stat) };
            let name = entry.name.iter().take(entry.name_length.into()).map(|&byte| byte as u8).collect();
            found.push((name, self.stat_of(stat)));
        }
        if found.is_empty() {
            self.close_list(dir);
        }
        Ok(found)
    }

    /// Closes a directory.
    pub(crate) fn close_list(&mut self, dir: Number) {
        if let Some(raw) = self.dirs.remove(&dir) {
            // SAFETY: it was open, and is forgotten.
            let _ = unsafe { (self.functions.gfs_closedirplus)(raw) };
        }
    }

    /// Opens a file; a link is followed.
    pub(crate) fn open_file(&mut self, path: &CStr, mode: Mode) -> Result<Number, GfarmError> {
        let flags = if mode == Mode::Write { READ_WRITE | UNBUFFERED } else { READ };
        let mut file = ptr::null_mut();
        // SAFETY: a path that ends, and room for the answer.
        self.done(unsafe { (self.functions.gfs_pio_open)(path.as_ptr(), flags, &raw mut file) })?;
        Ok(self.opened(file))
    }

    /// Makes a file that is not there yet, open for reading and writing. No umask applies.
    pub(crate) fn create(&mut self, path: &CStr, mode: u32) -> Result<Number, GfarmError> {
        let mut file = ptr::null_mut();
        let flags = READ_WRITE | EXCLUSIVE | UNBUFFERED;
        // SAFETY: a path that ends, and room for the answer.
        self.done(unsafe { (self.functions.gfs_pio_create)(path.as_ptr(), flags, mode & 0o7777, &raw mut file) })?;
        Ok(self.opened(file))
    }

    fn opened(&mut self, file: File) -> Number {
        let number = self.number();
        self.files.insert(number, file);
        number
    }

    fn number(&mut self) -> Number {
        self.last += 1;
        Number(self.last)
    }

    fn file(&self, file: Number) -> Result<File, GfarmError> {
        self.files.get(&file).copied().ok_or(GfarmError::CLOSED)
    }

    /// Chooses the server that a file is read from, before anything is read.
    pub(crate) fn choose_host(&self, file: Number, host: &CStr) -> Result<(), GfarmError> {
        let file = self.file(file)?;
        // SAFETY: a file that is open and was not read from; the library copies the name, which it does not change.
        self.done(unsafe { (self.functions.gfs_pio_internal_set_view_section)(file, host.as_ptr().cast_mut()) })
    }

    /// Appends up to `length` bytes at `offset` to `buffer`: fewer only where the file ends.
    pub(crate) fn read(&self, file: Number, buffer: &mut Vec<u8>, offset: u64, length: usize) -> Result<usize, GfarmError> {
        let file = self.file(file)?;
        let start = buffer.len();
        buffer.reserve(length);
        while buffer.len() - start < length {
            let done = buffer.len() - start;
            let at = offset.checked_add(done as u64).and_then(|at| i64::try_from(at).ok()).ok_or(GfarmError::TOO_LARGE)?;
            let left = c_int::try_from(length - done).unwrap_or(c_int::MAX);
            let mut read = 0;
            let room = buffer.spare_capacity_mut().as_mut_ptr().cast();
            // SAFETY: a file that is open, and room for `left` bytes, which were reserved.
            self.done(unsafe { (self.functions.gfs_pio_pread)(file, room, left, at, &raw mut read) })?;
            if read <= 0 {
                break;
            }
            if read > left {
                return Err(GfarmError::DAMAGED);
            }
            // SAFETY: the library has filled in so many bytes, no more than there is room for.
            unsafe { buffer.set_len(start + done + read as usize) };
        }
        Ok(buffer.len() - start)
    }

    /// Writes all of it.
    pub(crate) fn write(&self, file: Number, mut content: &[u8], mut offset: u64) -> Result<(), GfarmError> {
        let file = self.file(file)?;
        while !content.is_empty() {
            let at = i64::try_from(offset).map_err(|_| GfarmError::TOO_LARGE)?;
            let length = c_int::try_from(content.len()).unwrap_or(c_int::MAX);
            let mut written = 0;
            // SAFETY: a file that is open, and `length` bytes to be read.
            self.done(unsafe { (self.functions.gfs_pio_pwrite)(file, content.as_ptr().cast(), length, at, &raw mut written) })?;
            if written <= 0 || written > length {
                return Err(GfarmError::DAMAGED);
            }
            content = content.get(written as usize..).unwrap_or_default();
            offset += written as u64;
        }
        Ok(())
    }

    /// Gives a file its length.
    pub(crate) fn truncate(&self, file: Number, size: u64) -> Result<(), GfarmError> {
        let (file, size) = (self.file(file)?, i64::try_from(size).map_err(|_| GfarmError::TOO_LARGE)?);
        // SAFETY: a file that is open.
        self.done(unsafe { (self.functions.gfs_pio_truncate)(file, size) })
    }

    /// Makes what was written durable, on the disk of its server.
    pub(crate) fn sync(&self, file: Number) -> Result<(), GfarmError> {
        let file = self.file(file)?;
        // SAFETY: a file that is open.
        self.done(unsafe { (self.functions.gfs_pio_sync)(file) })
    }

    /// Closes a file: an error is one of writing.
    pub(crate) fn close(&mut self, file: Number) -> Result<(), GfarmError> {
        let Some(raw) = self.files.remove(&file) else { return Ok(()) };
        // SAFETY: it was open, and is forgotten, for the library frees it in any case.
        self.done(unsafe { (self.functions.gfs_pio_close)(raw) })
    }

    pub(crate) fn make_directory(&self, path: &CStr, mode: u32) -> Result<(), GfarmError> {
        // SAFETY: a path that ends.
        self.done(unsafe { (self.functions.gfs_mkdir)(path.as_ptr(), mode & 0o7777) })
    }

    pub(crate) fn remove_directory(&self, path: &CStr) -> Result<(), GfarmError> {
        // SAFETY: a path that ends.
        self.done(unsafe { (self.functions.gfs_rmdir)(path.as_ptr()) })
    }

    pub(crate) fn unlink(&self, path: &CStr) -> Result<(), GfarmError> {
        // SAFETY: a path that ends.
        self.done(unsafe { (self.functions.gfs_unlink)(path.as_ptr()) })
    }

    /// Renames, in the place of anything but a directory.
    pub(crate) fn rename(&self, from: &CStr, to: &CStr) -> Result<(), GfarmError> {
        // SAFETY: two paths that end.
        self.done(unsafe { (self.functions.gfs_rename)(from.as_ptr(), to.as_ptr()) })
    }

    pub(crate) fn link(&self, from: &CStr, to: &CStr) -> Result<(), GfarmError> {
        // SAFETY: two paths that end.
        self.done(unsafe { (self.functions.gfs_link)(from.as_ptr(), to.as_ptr()) })
    }

    pub(crate) fn symlink(&self, target: &CStr, path: &CStr) -> Result<(), GfarmError> {
        // SAFETY: two strings that end.
        self.done(unsafe { (self.functions.gfs_symlink)(target.as_ptr(), path.as_ptr()) })
    }

    pub(crate) fn read_link(&self, path: &CStr) -> Result<Vec<u8>, GfarmError> {
        let mut target = ptr::null_mut();
        // SAFETY: a path that ends, and room for the answer.
        self.done(unsafe { (self.functions.gfs_readlink)(path.as_ptr(), &raw mut target) })?;
        let said = bytes(target);
        // SAFETY: the library has allocated it for its caller to free; null is nothing.
        unsafe { libc::free(target.cast()) };
        Ok(said)
    }

    pub(crate) fn set_mode(&self, path: &CStr, mode: u32) -> Result<(), GfarmError> {
        // SAFETY: a path that ends.
        self.done(unsafe { (self.functions.gfs_lchmod)(path.as_ptr(), mode & 0o7777) })
    }

    /// Sets the time of access and of modification, to the nanosecond.
    pub(crate) fn set_times(&self, path: &CStr, modified: (i64, u32)) -> Result<(), GfarmError> {
        let time = || RawTime { seconds: modified.0, nanos: modified.1 as i32 };
        let times = [time(), time()];
        // SAFETY: a path that ends, and two times, as this call has them.
        self.done(unsafe { (self.functions.gfs_lutimes)(path.as_ptr(), times.as_ptr()) })
    }

    /// Room in use and room left, in KiB.
    pub(crate) fn space(&self, path: &CStr) -> Result<(u64, u64), GfarmError> {
        let (mut used, mut left, mut files) = (0, 0, 0);
        // SAFETY: a path that ends, and room for three answers.
        self.done(unsafe { (self.functions.gfs_statfs_by_path)(path.as_ptr(), &raw mut used, &raw mut left, &raw mut files) })?;
        Ok((u64::try_from(used).unwrap_or(0), u64::try_from(left).unwrap_or(0)))
    }

    /// The checksum that Gfarm has of a file; empty where it has none.
    pub(crate) fn checksum(&self, path: &CStr) -> Result<RawSum, GfarmError> {
        let mut raw = RawChecksum { kind: ptr::null_mut(), checksum: ptr::null_mut(), length: 0, flags: 0 };
        // SAFETY: a path that ends, and room for the answer.
        self.done(unsafe { (self.functions.gfs_stat_cksum)(path.as_ptr(), &raw mut raw) })?;
        let mut sum = bytes(raw.checksum);
        sum.truncate(raw.length);
        let found = RawSum { kind: bytes(raw.kind), sum, being_written: raw.flags & BEING_WRITTEN != 0 };
        // SAFETY: filled in by the library, and freed once.
        let _ = unsafe { (self.functions.gfs_stat_cksum_free)(&raw mut raw) };
        Ok(found)
    }

    /// Every copy of a file's content, of whatever use.
    pub(crate) fn replicas(&self, path: &CStr) -> Result<Vec<RawReplica>, GfarmError> {
        let functions = &self.functions;
        let mut info = ptr::null_mut();
        // SAFETY: a path that ends, and room for the answer.
        self.done(unsafe { (functions.gfs_replica_info_by_name)(path.as_ptr(), ALL_REPLICAS, &raw mut info) })?;
        // SAFETY: the answer of the call above, asked for numbers below the one that it gives first; freed once, and not used after that.
        unsafe {
            let count = (functions.gfs_replica_info_number)(info);
            let replica = |nth| RawReplica {
                host: String::from_utf8_lossy(&bytes((functions.gfs_replica_info_nth_host)(info, nth))).into_owned(),
                generation: (functions.gfs_replica_info_nth_gen)(info, nth),
                down: (functions.gfs_replica_info_nth_is_dead_host)(info, nth) != 0,
                incomplete: (functions.gfs_replica_info_nth_is_incomplete)(info, nth) != 0,
                obsolete: (functions.gfs_replica_info_nth_is_dead_copy)(info, nth) != 0,
            };
            let replicas = (0..count).map(replica).collect();
            (functions.gfs_replica_info_free)(info);
            Ok(replicas)
        }
    }
}

/// A device of this host without an address of its own, as tunnels are: getifaddrs gives it a null pointer for one, which libgfarm follows when it looks whether a server is this host.
fn tunnel() -> Option<String> {
    let mut list = ptr::null_mut();
    // SAFETY: the place of one pointer, which a success fills.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return None;
    }
    let (mut at, mut found) = (list, None);
    while !at.is_null() && found.is_none() {
        // SAFETY: an entry of the list, which is freed below.
        let entry = unsafe { &*at };
        if entry.ifa_addr.is_null() {
            found = Some(String::from_utf8_lossy(&bytes(entry.ifa_name)).into_owned());
        }
        at = entry.ifa_next;
    }
    // SAFETY: what getifaddrs gave, once.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// A copy of a string of the library's.
fn bytes(text: *const c_char) -> Vec<u8> {
    if text.is_null() {
        return Vec::new();
    }
    // SAFETY: not null, and the library ends its strings.
    unsafe { CStr::from_ptr(text) }.to_bytes().to_vec()
}

/// A string for the library; an error where it cannot be one.
pub(crate) fn c_string(text: &[u8]) -> Result<CString, GfarmError> {
    CString::new(text).map_err(|_| GfarmError::BAD_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Library {
        /// One that opens and closes whatever it is asked to, and can do nothing else.
        pub(crate) fn fake() -> Self {
            unsafe extern "C" fn nothing() -> Code {
                0
            }
            unsafe extern "C" fn open(_: *const c_char, _: c_int, file: *mut File) -> Code {
                // SAFETY: room for the answer, as the caller has promised. Nobody follows it.
                unsafe { *file = ptr::dangling_mut() };
                0
            }
            unsafe extern "C" fn create(path: *const c_char, flags: c_int, _: c_uint, file: *mut File) -> Code {
                // SAFETY: the caller's promise.
                unsafe { open(path, flags, file) }
            }
            unsafe extern "C" fn open_list(path: *const c_char, dir: *mut Dir) -> Code {
                // SAFETY: the caller's promise.
                unsafe { open(path, 0, dir) }
            }
            unsafe extern "C" fn close(_: File) -> Code {
                0
            }
            const FUNCTIONS: usize = size_of::<Functions>() / size_of::<usize>();
            let all = [nothing as unsafe extern "C" fn() -> Code; FUNCTIONS];
            // SAFETY: functions, as many as it has, each as large as any. Those that are of another type than theirs are never called.
            let functions: Functions =
                unsafe { std::mem::transmute::<[unsafe extern "C" fn() -> Code; FUNCTIONS], Functions>(all) };
            let functions = Functions {
                gfs_pio_open: open,
                gfs_pio_create: create,
                gfs_pio_close: close,
                gfs_opendirplus: open_list,
                gfs_closedirplus: close,
                ..functions
            };
            Self { functions, user: Vec::new(), files: HashMap::new(), dirs: HashMap::new(), last: 0, thread: PhantomData }
        }

        /// How many files and directories were opened, and how many are still.
        pub(crate) fn counts(&self) -> (u64, usize) {
            (self.last, self.files.len() + self.dirs.len())
        }
    }

    #[test]
    fn a_missing_library_is_named_with_what_has_it() {
        let Err(error) = Library::open("libgfarm-of-another-world.so.1") else { panic!("it is there") };
        let said = error.to_string();
        assert!(said.contains("libgfarm-of-another-world.so.1") && said.contains("libgfarm1"), "{said}");
    }

    /// Any other library: the C library is everywhere.
    #[test]
    fn a_library_without_the_functions_is_refused() {
        let Err(error) = Library::open("libc.so.6") else { panic!("it is no libgfarm") };
        assert!(matches!(error, OpenError::TooOld { source: Some(_), .. }), "{error}");
    }
}

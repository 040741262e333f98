//! libbpf, loaded at run time: it fits the programs to the running kernel and loads them. Every system with `ip` or `tc` has it.
//!
//! So neither building nor starting haul needs it. From release 1.0 on the functions are these.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::path::Path;
use std::ptr;

use super::refusal;
use crate::error::LoadError;

const LIBRARY: &str = "libbpf.so.1";
/// A map of operations takes effect by a link, and no longer than that is there.
const F_LINK: u32 = 1 << 13;
/// The verifier's log comes as one line of at most so much (libbpf's own bound, and some words around it), of which memory is taken only as far as it is written to.
const LINE_BYTES: usize = (16 << 20) + 4096;

type Object = *mut c_void;
type Map = *mut c_void;
type Program = *mut c_void;
type Link = *mut c_void;
/// A `va_list` reaches a function as a pointer on x86-64 and on 64-bit ARM.
type Arguments = *mut c_void;
type Print = unsafe extern "C" fn(c_int, *const c_char, Arguments) -> c_int;

haul_clib::functions! {
    struct Functions {
        libbpf_minor_version() -> u32;
        libbpf_set_print(Option<Print>) -> Option<Print>;
        bpf_object__open_mem(*const c_void, usize, *const c_void) -> Object;
        bpf_object__load(Object) -> c_int;
        bpf_object__close(Object);
        bpf_object__find_map_by_name(Object, *const c_char) -> Map;
        bpf_object__find_program_by_name(Object, *const c_char) -> Program;
        bpf_program__fd(Program) -> c_int;
        bpf_map__fd(Map) -> c_int;
        bpf_map__reuse_fd(Map, c_int) -> c_int;
        bpf_map__set_map_flags(Map, u32) -> c_int;
        bpf_map__set_pin_path(Map, *const c_char) -> c_int;
        bpf_map__attach_struct_ops(Map) -> Link;
        bpf_link__disconnect(Link);
        bpf_link__destroy(Link) -> c_int;
    }
}

unsafe extern "C" {
    fn vsnprintf(to: *mut c_char, size: usize, format: *const c_char, arguments: Arguments) -> c_int;
}

thread_local! {
    static LOG: RefCell<String> = const { RefCell::new(String::new()) };
}

unsafe extern "C" fn keep(level: c_int, format: *const c_char, arguments: Arguments) -> c_int {
    /// `LIBBPF_DEBUG`.
    const DEBUG: c_int = 2;
    if level >= DEBUG {
        return 0;
    }
    let mut line = vec![0_u8; LINE_BYTES];
    // SAFETY: libbpf gives a format with its arguments; no more than the buffer's size is written, its end included.
    unsafe { vsnprintf(line.as_mut_ptr().cast(), line.len(), format, arguments) };
    let text = CStr::from_bytes_until_nul(&line).map(CStr::to_string_lossy).unwrap_or_default();
    LOG.with_borrow_mut(|log| {
        log.push_str(&text);
        *log = refusal::end_of(log, refusal::MOST_BYTES).to_owned();
    });
    0
}

/// The library. It stays loaded, and on the thread that loaded it.
pub(crate) struct Library {
    functions: Functions,
    _here: PhantomData<*mut ()>,
}

impl Library {
    pub(crate) fn open() -> Result<Self, LoadError> {
        // SAFETY: libbpf does nothing when it is loaded.
        let library = unsafe { haul_clib::Library::open(LIBRARY) };
        // SAFETY: the types are those of libbpf's header, the same in all releases 1.x.
        let found = library.and_then(|library| unsafe { Functions::find(&library) });
        let functions = found.map_err(|source| LoadError::NoLibrary { library: LIBRARY, source })?;
        // SAFETY: the function lives as long as the program.
        unsafe { (functions.libbpf_set_print)(Some(keep)) };
        Ok(Self { functions, _here: PhantomData })
    }

    /// Opens an object; nothing is in the kernel yet.
    pub(crate) fn object(&self, bytes: &'static [u8]) -> Result<Loaded<'_>, LoadError> {
        LOG.with_borrow_mut(String::clear);
        // SAFETY: bytes and length belong together, and live as long as the program.
        let object = unsafe { (self.functions.bpf_object__open_mem)(bytes.as_ptr().cast(), bytes.len(), ptr::null()) };
        if object.is_null() {
            return Err(refused(io::Error::last_os_error()));
        }
        Ok(Loaded { library: self, object })
    }
}

/// Programs and maps of one object. Dropped, they stay where they are pinned or linked, or go.
pub(crate) struct Loaded<'a> {
    library: &'a Library,
    object: Object,
}

impl Loaded<'_> {
    /// Shares a map with those that were loaded before: the one of that name in a bpf file system, or a new one that gets it.
    pub(crate) fn share(&self, map: &str, at: &Path) -> Result<(), LoadError> {
        let at = text(&at.to_string_lossy())?;
        let map = self.map_named(map)?;
        // SAFETY: the map is of this object; the path is copied.
        check(unsafe { (self.library.functions.bpf_map__set_pin_path)(map, at.as_ptr()) })
    }

    /// Shares a map with another object, which has it under this descriptor.
    pub(crate) fn reuse(&self, map: &str, fd: BorrowedFd<'_>) -> Result<(), LoadError> {
        let map = self.map_named(map)?;
        // SAFETY: the map is of this object, which is not loaded yet; the descriptor is copied.
        check(unsafe { (self.library.functions.bpf_map__reuse_fd)(map, fd.as_raw_fd()) })
    }

    /// Has a map of operations take effect by links.
    pub(crate) fn by_link(&self, operations: &str) -> Result<(), LoadError> {
        let map = self.map_named(operations)?;
        // SAFETY: the map is of this object, which is not loaded yet.
        check(unsafe { (self.library.functions.bpf_map__set_map_flags)(map, F_LINK) })
    }

    /// Loads it. What the verifier says of a program that it refuses is kept in a file.
    pub(crate) fn load(&self) -> Result<(), LoadError> {
        self.load_or_keep(Path::new(refusal::PLACE))
    }

    fn load_or_keep(&self, place: &Path) -> Result<(), LoadError> {
        // SAFETY: the object is open.
        let mut loaded = check(unsafe { (self.library.functions.bpf_object__load)(self.object) });
        if let Err(LoadError::Refused { log, kept, .. }) = &mut loaded
            && log.contains(OF_THE_VERIFIER)
        {
            // Where nothing can be kept, the error has at least the end of it.
            *kept = refusal::keep(log, place).ok();
        }
        loaded
    }

    /// Fills a map of operations in, and says what descriptor it has: a link can be made of it then.
    pub(crate) fn ready(&self, operations: &str) -> Result<BorrowedFd<'_>, LoadError> {
        let map = self.map_named(operations)?;
        let functions = &self.library.functions;
        // SAFETY: the map is of this object, which is loaded; null is looked for. What is destroyed is not used again.
        unsafe {
            let link = (functions.bpf_map__attach_struct_ops)(map);
            // From 1.2 on the library makes a link, where the name is free. It is undone, so that there is one way for all releases.
            if !link.is_null() {
                if (functions.libbpf_minor_version)() < 2 {
                    (functions.bpf_link__disconnect)(link);
                }
                (functions.bpf_link__destroy)(link);
            }
        }
        self.map(operations)
    }

    pub(crate) fn map(&self, name: &str) -> Result<BorrowedFd<'_>, LoadError> {
        let map = self.map_named(name)?;
        // SAFETY: the map is of this object, and its descriptor lives as long.
        descriptor(unsafe { (self.library.functions.bpf_map__fd)(map) })
    }

    pub(crate) fn program(&self, name: &str) -> Result<BorrowedFd<'_>, LoadError> {
        let name = text(name)?;
        let functions = &self.library.functions;
        // SAFETY: the object is open, a program of it lives as long; null is looked for.
        let fd = unsafe {
            let program = (functions.bpf_object__find_program_by_name)(self.object, name.as_ptr());
            if program.is_null() { -1 } else { (functions.bpf_program__fd)(program) }
        };
        descriptor(fd)
    }

    fn map_named(&self, name: &str) -> Result<Map, LoadError> {
        let name = text(name)?;
        // SAFETY: the object is open; the map lives as long as it.
        let map = unsafe { (self.library.functions.bpf_object__find_map_by_name)(self.object, name.as_ptr()) };
        if map.is_null() { Err(refused(io::Error::last_os_error())) } else { Ok(map) }
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        // SAFETY: it is open, and closed once.
        unsafe { (self.library.functions.bpf_object__close)(self.object) };
    }
}

fn text(text: &str) -> Result<CString, LoadError> {
    CString::new(text).map_err(|_| refused(io::Error::from(io::ErrorKind::InvalidInput)))
}

/// Functions of libbpf give the negative number of an error, from 1.0 on.
fn check(code: c_int) -> Result<(), LoadError> {
    if code < 0 { Err(refused(io::Error::from_raw_os_error(-code))) } else { Ok(()) }
}

fn descriptor<'a>(fd: c_int) -> Result<BorrowedFd<'a>, LoadError> {
    if fd < 0 {
        return Err(refused(io::Error::from_raw_os_error(libc::ENOENT)));
    }
    // SAFETY: the object keeps it open, and the callers bind the lifetime to the object's.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// What the kernel said no to, with what libbpf and the verifier have said of it.
fn refused(source: io::Error) -> LoadError {
    LoadError::Refused { source, log: LOG.with_borrow_mut(std::mem::take), kept: None }
}

/// Around it, as libbpf prints it.
const OF_THE_VERIFIER: &str = "PROG LOAD LOG";

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::laws::obstacle;

    /// What is no context is read as one.
    const BAD: &str = r#"
        __attribute__((section("license"), used)) char licence[] = "GPL";
        __attribute__((section("socket"), used)) int bad(void *context) { return **(int **)context; }
    "#;

    /// Compiled, and kept for as long as the test runs.
    fn bad(dir: &Path) -> &'static [u8] {
        let (source, object) = (dir.join("bad.c"), dir.join("bad.o"));
        fs::write(&source, BAD).expect("written");
        let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
        let status = Command::new(clang).args(["-O2", "-target", "bpf", "-c"]).arg(&source).arg("-o").arg(&object).status();
        assert!(status.expect("clang: `make setup` installs it").success());
        fs::read(object).expect("an object").leak()
    }

    #[test]
    fn what_the_verifier_says_of_a_program_that_it_refuses_is_kept() {
        if let Err(lack) = obstacle() {
            return skip::skip(lack);
        }
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("log");
        let library = Library::open().expect("libbpf");
        let object = library.object(bad(dir.path())).expect("it is an object");
        let error = object.load_or_keep(&place).expect_err("it reads what it may not");
        let LoadError::Refused { kept: Some(kept), log, .. } = &error else { panic!("{error:?}") };
        let text = fs::read_to_string(kept).expect("a file");
        assert!(text.contains("invalid bpf_context access") && text.contains(OF_THE_VERIFIER), "{text}");
        assert_eq!(&text, log);
        assert!(error.to_string().contains(&format!("all of it is in {}", kept.display())), "{error}");
        // What has nothing to do with the verifier leaves no file.
        fs::remove_file(kept).expect("removed");
        assert!(matches!(object.map("none"), Err(LoadError::Refused { kept: None, .. })));
        assert!(!kept.exists());
    }
}

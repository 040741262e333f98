//! Where the socket of a fleet that is kept lies, and who may use it.
//!
//! A directory of the user's own: `haul` in `XDG_RUNTIME_DIR` (or `/run/user/UID`), or else `/tmp/haul-UID`. It has mode 0700, and is refused where it is a link, or belongs to anybody else. In it each name has two files: a socket, and
//! a file that the keeper holds a lock on as long as it lives. So a socket whose lock is free is a killed keeper's, and whoever takes the lock may replace it; two keepers of one name cannot be. Both ends look at the other's user
//! (`SO_PEERCRED`) besides.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use super::error::JoinError;

/// Longest name: with a usual directory it fits into the address of a socket.
const MAX_NAME: usize = 48;

/// What a fleet is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FleetName(String);

impl FleetName {
    /// A name of letters, digits, `.`, `_` and `-`, which does not begin with a point, of at most 48 of them: it becomes the name of a file.
    pub fn new(name: &str) -> Result<Self, JoinError> {
        let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if name.is_empty() || name.len() > MAX_NAME || name.starts_with('.') || !name.chars().all(is_fine) {
            return Err(JoinError::BadName { name: name.to_owned() });
        }
        Ok(Self(name.to_owned()))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FleetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The right to be the keeper of a fleet of this name, as long as it lives.
#[derive(Debug)]
pub struct Claim {
    name: FleetName,
    socket: PathBuf,
    _lock: File,
}

impl Claim {
    /// Of which fleet.
    pub const fn name(&self) -> &FleetName {
        &self.name
    }

    /// Where its socket is.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Takes the name in this directory.
    pub(super) fn take(name: &FleetName, dir: &Path) -> Result<Self, JoinError> {
        check(dir)?;
        let lock_path = dir.join(format!("{name}.lock"));
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| JoinError::Socket { path, source }
        };
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&lock_path)
            .map_err(fail(&lock_path))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
            rustix::io::Errno::WOULDBLOCK => JoinError::UpAlready { name: name.to_string() },
            errno => JoinError::Socket { path: lock_path, source: errno.into() },
        })?;
        let socket = dir.join(format!("{name}.sock"));
        Ok(Self { name: name.clone(), socket, _lock: lock })
    }

    /// Is there for others from now on; they wait until they are answered.
    pub fn open(self) -> Result<KeeperSocket, JoinError> {
        let fail = |source: io::Error| JoinError::Socket { path: self.socket.clone(), source };
        // Whoever made one is gone: the lock was free.
        match fs::remove_file(&self.socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
        let listener = UnixListener::bind(&self.socket).map_err(fail)?;
        fs::set_permissions(&self.socket, fs::Permissions::from_mode(0o600)).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        Ok(KeeperSocket { claim: self, listener })
    }
}

/// A name that was claimed, and the socket under which it is found.
#[derive(Debug)]
pub struct KeeperSocket {
    claim: Claim,
    pub(super) listener: UnixListener,
}

impl KeeperSocket {
    /// Whose it is.
    pub const fn claim(&self) -> &Claim {
        &self.claim
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

/// Takes a name, if no fleet of this user has it.
pub fn claim(name: &FleetName) -> Result<Claim, JoinError> {
    let dirs = directories();
    let (first, others) = dirs.split_first().ok_or_else(|| JoinError::NotUp { name: name.to_string() })?;
    // A fleet may have been started where the environment was another one.
    if others.iter().any(|dir| connect_in(name, dir).is_ok()) {
        return Err(JoinError::UpAlready { name: name.to_string() });
    }
    make(first)?;
    Claim::take(name, first)
}

/// A connection with the keeper of a fleet.
pub(super) fn connect(name: &FleetName) -> Result<UnixStream, JoinError> {
    let mut result = Err(JoinError::NotUp { name: name.to_string() });
    for dir in directories() {
        match connect_in(name, &dir) {
            Err(JoinError::NotUp { .. }) => {}
            other => {
                result = other;
                break;
            }
        }
    }
    result
}

pub(super) fn connect_in(name: &FleetName, dir: &Path) -> Result<UnixStream, JoinError> {
    let socket = dir.join(format!("{name}.sock"));
    if !dir.exists() {
        return Err(JoinError::NotUp { name: name.to_string() });
    }
    check(dir)?;
    let stream = UnixStream::connect(&socket).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => JoinError::NotUp { name: name.to_string() },
        _ => JoinError::Socket { path: socket.clone(), source },
    })?;
    match stranger(&stream) {
        Ok(None) => Ok(stream),
        Ok(Some(uid)) => Err(JoinError::NotOurs { name: name.to_string(), uid }),
        Err(source) => Err(JoinError::Socket { path: socket, source }),
    }
}

/// Who is at the other end, if that is neither this user nor root.
pub(super) fn stranger(stream: &UnixStream) -> io::Result<Option<u32>> {
    let uid = socket_peercred(stream)?.uid;
    Ok((uid != geteuid() && !uid.is_root()).then(|| uid.as_raw()))
}

/// Names in the directories, whether a keeper is there or not.
pub(super) fn names() -> Vec<FleetName> {
    let mut names: Vec<FleetName> = Vec::new();
    for dir in directories().iter().filter(|dir| check(dir).is_ok()) {
        let Ok(entries) = fs::read_dir(dir) else { continue };
        names.extend(entries.flatten().filter_map(|entry| {
            let name = entry.file_name();
            FleetName::new(name.to_str()?.strip_suffix(".sock")?).ok()
        }));
    }
    names.sort();
    names.dedup();
    names
}

/// Where sockets can be, the usual place first.
fn directories() -> Vec<PathBuf> {
    let uid = geteuid().as_raw();
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let runtime = [given, Some(PathBuf::from(format!("/run/user/{uid}")))];
    // Who became another user by su(1) may still have the other one's.
    let mut dirs: Vec<PathBuf> =
        runtime.into_iter().flatten().filter(|dir| check(dir).is_ok()).map(|dir| dir.join("haul")).collect();
    dirs.dedup();
    dirs.push(PathBuf::from(format!("/tmp/haul-{uid}")));
    dirs
}

fn make(dir: &Path) -> Result<(), JoinError> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(JoinError::Socket { path: dir.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}

/// A directory, and no link to one, of this user's, that nobody else may use.
fn check(dir: &Path) -> Result<(), JoinError> {
    let wrong = |why| JoinError::Place { path: dir.to_owned(), why };
    let metadata = dir.symlink_metadata().map_err(|source| JoinError::Socket { path: dir.to_owned(), source })?;
    if !metadata.is_dir() {
        return Err(wrong("it is no directory"));
    }
    if metadata.uid() != geteuid().as_raw() {
        return Err(wrong("it belongs to another user"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(wrong("others may use it: its mode must be 0700"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn private() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).expect("its mode");
        dir
    }

    fn name(text: &str) -> FleetName {
        FleetName::new(text).expect("a name")
    }

    #[test]
    fn names_are_names_of_files() {
        for bad in ["", ".", "..", ".a", "a/b", "a b", "ä", "a\n", &"x".repeat(49)] {
            assert!(FleetName::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(name("run-7.b_X").as_str(), "run-7.b_X");
    }

    #[test]
    fn a_name_is_taken_once_and_a_killed_keepers_socket_is_replaced() {
        let dir = private();
        // What a killed keeper leaves: a socket that nobody listens on, and a lock that nobody holds.
        drop(UnixListener::bind(dir.path().join("a.sock")).expect("a socket"));
        assert!(matches!(connect_in(&name("a"), dir.path()), Err(JoinError::NotUp { .. })));
        let claim = Claim::take(&name("a"), dir.path()).expect("the socket is stale");
        assert!(matches!(connect_in(&name("a"), dir.path()), Err(JoinError::NotUp { .. })), "nobody is there yet");
        let claim = claim.open().expect("the socket is replaced");
        assert_eq!(claim.claim().socket().symlink_metadata().expect("a socket").mode() & 0o777, 0o600);
        assert!(connect_in(&name("a"), dir.path()).is_ok());
        assert!(matches!(Claim::take(&name("a"), dir.path()), Err(JoinError::UpAlready { .. })));
        assert!(Claim::take(&name("b"), dir.path()).is_ok(), "another name");
        drop(claim);
        assert!(!dir.path().join("a.sock").exists());
        assert!(Claim::take(&name("a"), dir.path()).is_ok(), "it is free again");
    }

    #[test]
    fn a_directory_that_others_may_use_and_a_link_are_refused() {
        let dir = private();
        let (open, link) = (dir.path().join("open"), dir.path().join("link"));
        fs::create_dir(&open).expect("a directory");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o750)).expect("its mode");
        assert!(matches!(Claim::take(&name("a"), &open), Err(JoinError::Place { .. })));
        std::os::unix::fs::symlink(dir.path(), &link).expect("a link");
        assert!(matches!(Claim::take(&name("a"), &link), Err(JoinError::Place { .. })));
        // Nor is a lock opened through a link.
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), dir.path().join("a.lock")).expect("a link");
        assert!(matches!(Claim::take(&name("a"), dir.path()), Err(JoinError::Socket { .. })));
        assert!(!dir.path().join("elsewhere").exists());
    }
}

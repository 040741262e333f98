//! Servers of directories, and trees that can be compared.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use haul::{ClientConfig, Connection, Endpoint, Identity, PeerTrust, ServerConfig};
use haul_copy::{PROTOCOL, ServerSession};
use haul_files::{Access, Cancel, Export, Options, Ownership, Silent};
use haul_fleet::{GetError, GetJob, JobEvent, JobObserver, JobReport, Member, get};

/// A server of one connection; what it does with that is `serve`'s.
pub fn member(name: &str, serve: impl FnOnce(Connection) + Send + 'static) -> Member {
    let identity = Identity::generate();
    let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
    let config = ServerConfig { protocols: vec![PROTOCOL.to_vec()], ..ServerConfig::new(identity, PeerTrust::Anyone) };
    let server = Endpoint::listen("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let address = server.local_addr();
    std::thread::spawn(move || {
        if let Ok(connection) = server.accept() {
            serve(connection);
        }
    });
    let config = ClientConfig { protocols: vec![PROTOCOL.to_vec()], ..ClientConfig::new(trust) };
    let connection = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap().connect(address, config).unwrap();
    Member::called_back(name, connection)
}

/// A member that serves what is in a directory.
pub fn serving(name: &str, dir: &Path) -> Member {
    let root = Export { name: "root".into(), path: dir.to_owned(), writable: false, ownership: Ownership::Mask };
    member(name, |connection| {
        let Ok(session) = ServerSession::accept(connection) else { return };
        let (_, farewell) = session.serve(&Access::Root(root), None, &Silent, &Cancel::new());
        farewell.part(&Cancel::new());
    })
}

/// Directories of members, and one to fetch into.
pub struct Places {
    pub all: tempfile::TempDir,
    pub to: PathBuf,
}

pub fn places() -> Places {
    let all = tempfile::tempdir().unwrap();
    let to = all.path().join("to");
    fs::create_dir(&to).unwrap();
    Places { all, to }
}

impl Places {
    /// The directory of a member.
    pub fn of(&self, name: &str) -> PathBuf {
        let dir = self.all.path().join(name);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// Members that serve their directories.
    pub fn members(&self, names: &[&str]) -> Vec<Member> {
        names.iter().map(|name| serving(name, &self.of(name))).collect()
    }

    /// Writes a file of a member, with a time that is the same for all.
    pub fn file(&self, member: &str, path: &str, content: &[u8]) {
        let path = self.of(member).join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_600_000_000, 123_456_789);
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    }
}

/// Bytes that differ from place to place.
pub fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|i| (i / 4096 + i % 251 + seed * 7) as u8).collect()
}

pub fn job(sources: &[&str], to: &Path) -> GetJob {
    let mut job = GetJob::new(sources.iter().map(PathBuf::from).collect(), to);
    job.options = Options { recursive: true, preserve: true, ..Options::default() };
    job
}

/// Does something at each event.
pub struct Watch<F>(pub F);

impl<F: Fn(&JobEvent<'_>) + Send + Sync> JobObserver for Watch<F> {
    fn event(&self, event: &JobEvent<'_>) {
        (self.0)(event);
    }
}

/// Events in words.
#[derive(Default)]
pub struct Heard(pub Mutex<Vec<String>>);

impl JobObserver for Heard {
    fn event(&self, event: &JobEvent<'_>) {
        if !matches!(event, JobEvent::Progress(_)) {
            self.0.lock().unwrap().push(format!("{event:?}"));
        }
    }
}

pub fn fetch(members: Vec<Member>, job: &GetJob) -> Result<JobReport, GetError> {
    get(members, job, &haul_fleet::Unwatched, &Cancel::new())
}

/// All that is below a directory: kind and mode, time, content or target.
pub fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_dir() {
                left.push(path.clone());
                Vec::new()
            } else if metadata.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path).unwrap()
            };
            let nanos = metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec();
            found.insert(path.strip_prefix(root).unwrap().to_owned(), (metadata.mode(), nanos, content));
        }
    }
    found
}

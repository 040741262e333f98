//! A Gfarm for each test, and the process that uses it: libgfarm reads its configuration once a process, from where the environment says.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use haul_files::{Cancel, CopyError, Options, PushJob, Report, Silent, Store, push_from, serve_store};
use haul_gfarm::Gfarm;
use haul_ramstore::memory::{Conditions, pair};

/// Tells a test that it is the process inside.
const INSIDE: &str = "HAUL_TEST_GFARM";

/// A running Gfarm, as the test inside has it.
pub struct Servers {
    pub dir: PathBuf,
}

/// Runs the body in a process of its own with a Gfarm, whose servers leave `free` of their disk alone; or says why not.
pub fn with_gfarm(test: &str, free: &str, body: impl FnOnce(&Servers)) {
    if let Some(dir) = std::env::var_os(INSIDE) {
        return body(&Servers { dir: dir.into() });
    }
    if Command::new("sh")
        .args(["-c", "PATH=$PATH:/usr/sbin command -v gfmd gfsd gfkey"])
        .output()
        .is_ok_and(|out| !out.status.success())
    {
        return skip::skip("Gfarm is not installed (make setup)");
    }
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let running = Running(dir.path().to_owned());
    start(dir.path(), free);
    let inside = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, dir.path())
        .env("GFARM_CONFIG_FILE", dir.path().join("etc/gfarm2.conf"))
        .output()
        .unwrap();
    drop(running);
    let said = format!("{}{}", String::from_utf8_lossy(&inside.stdout), String::from_utf8_lossy(&inside.stderr));
    assert!(inside.status.success() && said.contains("1 passed"), "{said}");
}

struct Running(PathBuf);

impl Drop for Running {
    fn drop(&mut self) {
        script("down", &self.0, &[]);
    }
}

impl Servers {
    /// Kills the storage server 127.0.0.`n`.
    pub fn kill(&self, n: u8) {
        assert!(script("kill", &self.dir, &[&n.to_string()]).status.success());
    }

    /// Brings a file to `n` of the servers; they have it when this returns.
    pub fn spread(&self, path: &str, n: usize) {
        let spread = script("spread", &self.dir, &[path, &n.to_string()]);
        assert!(spread.status.success(), "{}", String::from_utf8_lossy(&spread.stderr));
    }

    /// One of Gfarm's own programs.
    pub fn program(&self, name: &str, arguments: &[&str]) -> String {
        let config = self.dir.join("etc/gfarm2.conf");
        let output = Command::new(name).args(arguments).env("GFARM_CONFIG_FILE", config).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn script(verb: &str, dir: &Path, more: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/gfarm.sh");
    Command::new(script).arg(verb).arg(dir).args(more).output().unwrap()
}

/// What `gfarm.sh up` ends with where somebody has the port.
const PORT_IS_TAKEN: i32 = 3;

/// Starts the servers at a port that they get. Others on this machine may take the one that was free a moment ago: then at another.
fn start(dir: &Path, free: &str) {
    for port in free_ports() {
        let up = script("up", dir, &[&port.to_string(), free]);
        if up.status.code() != Some(PORT_IS_TAKEN) {
            assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
            return;
        }
        script("down", dir, &[]);
    }
}

/// Ports that nobody has, each with the one below it. They are below those that the system gives to connections (32768 and up), of which each test on this machine takes some every second.
fn free_ports() -> impl Iterator<Item = u16> {
    // Tests that run at once begin at different ones.
    let first = RandomState::new().hash_one(()) as usize % 11_000;
    (10_000..32_000)
        .step_by(2)
        .cycle()
        .skip(first)
        .filter(|&port| TcpListener::bind(("0.0.0.0", port)).is_ok() && TcpListener::bind(("0.0.0.0", port - 1)).is_ok())
}

pub fn open() -> Gfarm {
    Gfarm::open(&Cancel::new()).unwrap()
}

pub fn recursive() -> Options {
    Options { recursive: true, ..Options::default() }
}

pub fn preserving() -> Options {
    Options { recursive: true, preserve: true, ..Options::default() }
}

/// Copies `source` of one store to `destination` of another.
pub fn push<A: Store, B: Store>(from: &A, source: &Path, to: &B, destination: &str, options: Options) -> Report {
    let report = push_under(Conditions::default(), from, source, to, destination, options).expect("a copy");
    assert_eq!(report.problem_count, 0, "{:?}", report.problems);
    report
}

pub fn push_under<A: Store, B: Store>(
    conditions: Conditions,
    from: &A,
    source: &Path,
    to: &B,
    destination: &str,
    options: Options,
) -> Result<Report, CopyError> {
    let job = PushJob { options, ..PushJob::new([source.to_owned()], destination) };
    let (here, there) = pair(conditions);
    let transport = here.transport.clone();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve_store(there, to, &Silent, &Cancel::new()));
        let client = push_from(here, from, &job, &Silent, &Cancel::new());
        transport.kill();
        let server = server.join().unwrap();
        // The side that failed first knows why.
        client.map_err(|client| match server {
            Err(server @ CopyError::Stopped(_)) => server,
            _ => client,
        })
    })
}

/// Bytes that no two places share.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

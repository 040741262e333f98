//! Members in threads of the test, started by a script in the place of mpirun, as often as it is called.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haul_copy::Places;
use haul_files::Access;
use haul_fleet::{Absent, HostSpec, Launcher, Service, Session, Setup, Summons, Way};
use haul_peer::{Nobody, Tell};
use haul_units::Cancel;

pub struct Stage {
    dir: tempfile::TempDir,
    members: Arc<Mutex<BTreeMap<String, Vec<Started>>>>,
    over: Arc<AtomicBool>,
    starting: Option<JoinHandle<()>>,
}

/// A member of the stage's.
pub struct Started {
    pub cancel: Cancel,
    pub thread: JoinHandle<bool>,
}

impl Stage {
    /// Starts whom the launcher is called for, each with a directory of its name; but nobody called `absent`.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let (members, over) = (Arc::<Mutex<BTreeMap<String, Vec<Started>>>>::default(), Arc::<AtomicBool>::default());
        let starting = {
            let (dir, members, over) = (dir.path().to_owned(), members.clone(), over.clone());
            thread::spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    start_launched(&dir, &members);
                    thread::park_timeout(Duration::from_millis(5));
                }
            })
        };
        Self { dir, members, over, starting: Some(starting) }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The directory of a member.
    pub fn of(&self, member: &str) -> PathBuf {
        let dir = self.path(member);
        fs::create_dir_all(&dir).expect("a directory");
        dir
    }

    pub fn setup(&self, hosts: &str, dial_out: bool) -> Setup {
        let dir = self.dir.path().display();
        // Each call has a channel of its own: the one before may still be read, and would take lines that are not for it.
        let script = format!(
            "mkfifo {dir}/channel.$$ && printf '%s\\n' {dir}/channel.$$ \"$@\" > {dir}/words.$$ && mv {dir}/words.$$ {dir}/words && exec cat {dir}/channel.$$"
        );
        let launcher =
            Launcher { program: Some("sh".into()), arguments: ["-c", &script, "mpirun"].map(Into::into).into(), on: None };
        let mut hosts = HostSpec::list(hosts).expect("hosts");
        for host in &mut hosts {
            host.path = Some(self.of(&host.name));
            host.data = Some("127.0.0.1".to_owned());
        }
        let mut setup = Setup::initiate(hosts);
        setup.spec.way = Way::Mpirun;
        setup.spec.dial_out = dial_out;
        setup.spec.timeout = Duration::from_secs(8);
        setup.spec.call_back = vec![IpAddr::from([127, 0, 0, 1])];
        setup.spec.launcher = launcher;
        setup
    }

    pub fn start(setup: Setup) -> (Session, Vec<Absent>) {
        let nobody: Arc<dyn Tell> = Arc::new(Nobody);
        setup.start(&nobody, &Cancel::new()).expect("started")
    }

    /// Takes the member of this name that was started last.
    pub fn take(&self, name: &str) -> Started {
        let taken = self.members.lock().expect("no panic").get_mut(name).and_then(Vec::pop);
        taken.unwrap_or_else(|| panic!("{name} was not started"))
    }

    /// A file of a member, with a time that is the same for all.
    pub fn file(&self, member: &str, name: &str, content: &[u8]) {
        let path = self.of(member).join(name);
        fs::write(&path, content).expect("written");
        let time = std::time::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
        fs::File::options().write(true).open(&path).expect("the file").set_modified(time).expect("its time");
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(starting) = self.starting.take() {
            let _ = starting.join();
        }
    }
}

fn start_launched(dir: &Path, members: &Mutex<BTreeMap<String, Vec<Started>>>) {
    let words = dir.join("words");
    let Ok(text) = fs::read_to_string(&words) else { return };
    fs::remove_file(&words).expect("removed");
    let invitation = |script: &str| match Summons::from_word(script.strip_prefix("haul remote ")?.split(' ').next()?)? {
        Summons::Serve(invitation) => Some(*invitation),
        Summons::Lead { .. } => None,
    };
    let mut lines = text.lines();
    let channel = OpenOptions::new().write(true).open(lines.next().expect("a channel")).expect("the channel");
    for invitation in lines.filter_map(invitation) {
        let name = invitation.name().to_string();
        if name == "absent" {
            continue;
        }
        let (cancel, mut out) = (Cancel::new(), channel.try_clone().expect("a handle"));
        let to_end = cancel.clone();
        let access = Access::Account { home: "/".into() };
        let thread = thread::spawn(move || invitation.serve(Service::new(access, Places::default(), None), &mut out, &to_end));
        members.lock().expect("no panic").entry(name).or_default().push(Started { cancel, thread });
    }
}

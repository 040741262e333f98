//! Members that call back, on real sockets of the loopback: who is let in, and who is not.
//!
//! What starts them is a script in the place of mpirun: it shows the test the words that it was given, and prints what the test gives it. So the test decides who says what on the start channel.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haul::{ClientConfig, Endpoint, Fingerprint, Identity, PeerTrust};
use haul_copy::{ClientSession, Job, Places};
use haul_files::{Access, Destination, Filter, Options, PullJob, Silent};
use haul_fleet::{
    AbsentError, Fleet, HostSpec, Invitation, Launcher, Member, Service, StartError, StartSpec, Summons, Way, start,
};
use haul_peer::{Nobody, Refusal, Tell};
use haul_units::Cancel;

/// A launcher of the test's, and a place.
struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let made = std::process::Command::new("mkfifo").arg(dir.path().join("channel")).status();
        assert!(made.expect("mkfifo").success());
        fs::create_dir(dir.path().join("data")).expect("a directory");
        fs::write(dir.path().join("data/file"), "content").expect("a file");
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn spec(&self, hosts: &str, timeout_s: u64) -> StartSpec {
        let dir = self.dir.path().display();
        let script = format!("printf '%s\\n' \"$@\" > {dir}/words.new && mv {dir}/words.new {dir}/words && cat {dir}/channel");
        let launcher =
            Launcher { program: Some("sh".into()), arguments: ["-c", &script, "mpirun"].map(Into::into).into(), on: None };
        let hosts = HostSpec::list(hosts).expect("hosts");
        let call_back = vec![IpAddr::from([127, 0, 0, 1])];
        StartSpec { way: Way::Mpirun, timeout: Duration::from_secs(timeout_s), call_back, launcher, ..StartSpec::new(hosts) }
    }

    /// The invitations, once the launcher has been called, and its output, to be written.
    fn launched(&self) -> (Vec<Invitation>, File) {
        while !self.path("words").exists() {
            thread::park_timeout(Duration::from_millis(5));
        }
        let words = fs::read_to_string(self.path("words")).expect("the words");
        let invitation = |script: &str| match Summons::from_word(script.strip_prefix("haul remote ")?.split(' ').next()?)? {
            Summons::Serve(invitation) => Some(*invitation),
            Summons::Lead { .. } => None,
        };
        let channel = OpenOptions::new().write(true).open(self.path("channel")).expect("the channel");
        (words.lines().filter_map(invitation).collect(), channel)
    }

    fn service() -> Service {
        Service::new(Access::Account { home: "/".into() }, Places::default(), None)
    }
}

/// A member in a thread; what it says goes to `out`. Whether it served.
fn member(invitation: &Invitation, out: impl Write + Send + 'static) -> JoinHandle<bool> {
    let (invitation, mut out) = (invitation.clone(), out);
    thread::spawn(move || invitation.serve(Stage::service(), &mut out, &Cancel::new()))
}

/// What a member says when it is there.
fn here(member: &str, key: Fingerprint) -> String {
    format!("\nHAUL-FLEET/1 {{\"here\":{{\"member\":\"{member}\",\"key\":\"{key}\",\"version\":\"1\",\"host\":\"h\"}}}}\n")
}

fn started(spec: StartSpec) -> JoinHandle<Result<Fleet, StartError>> {
    thread::spawn(move || {
        let nobody: Arc<dyn Tell> = Arc::new(Nobody);
        start(&spec, &nobody, &Cancel::new())
    })
}

fn names(fleet: &Fleet) -> Vec<&str> {
    fleet.members.iter().map(|member| member.name.as_str()).collect()
}

fn fetch(member: &Member, from: &Path, to: &Path) {
    let job = PullJob {
        sources: vec![from.into()],
        destination: Destination::Path(to.to_owned()),
        options: Options::default(),
        filter: Filter::default(),
    };
    let job = Job::Pull(job);
    let report = ClientSession::new(member.connection.clone(), &job).run(&job, None, &Silent, &Cancel::new()).expect("fetched");
    assert_eq!((report.files, fs::read_to_string(to).expect("the file").as_str()), (1, "content"));
}

#[test]
fn members_call_back_serve_and_end() {
    let stage = Stage::new();
    let start = started(stage.spec("a,b:/data,c", 20));
    let (invitations, channel) = stage.launched();
    let members: Vec<_> = invitations.iter().map(|one| member(one, channel.try_clone().expect("a handle"))).collect();
    drop(channel);
    let fleet = start.join().expect("no panic").expect("started");
    assert_eq!((names(&fleet), fleet.absent.len()), (vec!["a", "b", "c"], 0));
    assert_eq!(fleet.members[1].path.as_deref(), Some(Path::new("/data")));
    // All at once: each has a connection of its own.
    thread::scope(|scope| {
        for member in &fleet.members {
            scope.spawn(|| fetch(member, &stage.path("data/file"), &stage.path(&format!("got-{}", member.name))));
        }
    });
    assert!(members.into_iter().all(|member| member.join().expect("no panic")), "all of them have served");
}

#[test]
fn who_has_only_read_an_invitation_is_turned_away() {
    let stage = Stage::new();
    let start = started(stage.spec("a,b", 4));
    let (invitations, channel) = stage.launched();
    // Both strangers know all that was passed to the member; only its line on the start channel makes a member of it.
    let before = member(&invitations[1], io::sink());
    let a = member(&invitations[0], channel.try_clone().expect("a handle"));
    let beside = member(&invitations[0], io::sink());
    let fleet = start.join().expect("no panic").expect("started");
    assert_eq!(names(&fleet), ["a"]);
    assert!(matches!(fleet.absent[0].why, AbsentError::Silent { .. }), "{:?}", fleet.absent);
    fetch(&fleet.members[0], &stage.path("data/file"), &stage.path("got"));
    assert!(a.join().expect("no panic"));
    assert!(!before.join().expect("no panic") && !beside.join().expect("no panic"), "they give up");
}

#[test]
fn the_first_line_of_a_name_counts_and_unknown_names_are_nobody() {
    let stage = Stage::new();
    let start = started(stage.spec("a,b", 4));
    let (invitations, mut channel) = stage.launched();
    // The first one for `a` has a key of its own, and does not call; whoever says the name after it is nobody.
    channel.write_all(here("a", Identity::generate().public_key().fingerprint()).as_bytes()).expect("written");
    let again = member(&invitations[0], channel.try_clone().expect("a handle"));
    let other = Invitation { member: Some("z".into()), ..invitations[0].clone() };
    let unknown = member(&other, channel.try_clone().expect("a handle"));
    let b = member(&invitations[1], channel.try_clone().expect("a handle"));
    let fleet = start.join().expect("no panic").expect("started");
    assert_eq!(names(&fleet), ["b"]);
    assert!(matches!(fleet.absent[0].why, AbsentError::NoCall { .. }), "{:?}", fleet.absent);
    fetch(&fleet.members[0], &stage.path("data/file"), &stage.path("got"));
    assert!(b.join().expect("no panic"));
    assert!(!again.join().expect("no panic") && !unknown.join().expect("no panic"));
}

#[test]
fn each_absence_has_its_reason() {
    let stage = Stage::new();
    let start = started(stage.spec("calls-not,refuses,ended,old", 2));
    let (invitations, mut channel) = stage.launched();
    // It is there, and its calls go to where nobody is.
    let elsewhere = Invitation { call: vec!["127.0.0.1:9".parse().expect("an address")], ..invitations[0].clone() };
    let calls_not = member(&elsewhere, channel.try_clone().expect("a handle"));
    invitations[1].refuse(&Refusal { error: "not for copies".into(), hint: None }, &mut channel);
    let line = "noise\nHAUL-FLEET/1 {\"ended\":{\"member\":\"ended\",\"status\":127,\"printed\":[]}}\nHAUL-FLEET/1 {\"here\":{}}\nHAUL-FLEET/1 x\n";
    channel.write_all(line.as_bytes()).expect("written");
    let old = Invitation { fleet: 0, ..invitations[3].clone() };
    assert!(!old.serve(Stage::service(), &mut channel, &Cancel::new()), "another version");
    let fleet = start.join().expect("no panic").expect("started");
    let whys: Vec<_> = fleet.absent.iter().map(|absent| format!("{}: {}", absent.name, absent.why)).collect();
    assert_eq!(
        whys,
        [
            "calls-not: it was started, and did not call back over UDP within 2 s",
            "refuses: not for copies",
            "ended: haul not found there",
            &format!(
                "old: the haul that called is of another version: it is version {0}, this one {0}",
                env!("CARGO_PKG_VERSION")
            ),
        ]
    );
    assert!(!calls_not.join().expect("no panic"));
}

#[test]
fn a_launcher_that_ends_badly_names_itself() {
    let stage = Stage::new();
    let mut spec = stage.spec("a,b", 20);
    spec.launcher.arguments = ["-c", "echo no such thing >&2; exit 3", "mpirun"].map(Into::into).into();
    let fleet = started(spec).join().expect("no panic").expect("tried");
    let whys: Vec<_> = fleet.absent.iter().map(|absent| absent.why.to_string()).collect();
    assert_eq!(whys, ["mpirun started nothing: sh ended with status 3 (no such thing)"; 2]);
}

#[test]
fn members_can_listen_instead() {
    let stage = Stage::new();
    let start = started(StartSpec { dial_out: true, ..stage.spec("127.0.0.1", 20) });
    let (invitations, channel) = stage.launched();
    assert!(invitations[0].call.is_empty(), "there is nowhere to call");
    let listening = member(&invitations[0], channel);
    let fleet = start.join().expect("no panic").expect("started");
    assert_eq!(names(&fleet), ["127.0.0.1"]);
    fetch(&fleet.members[0], &stage.path("data/file"), &stage.path("got"));
    assert!(listening.join().expect("no panic"));
}

#[test]
fn nobody_is_let_in_once_the_start_is_over() {
    let stage = Stage::new();
    let start = started(stage.spec("a,b", 2));
    let (invitations, mut channel) = stage.launched();
    let a = member(&invitations[0], channel.try_clone().expect("a handle"));
    // It says in time that it is there, and calls when nobody waits for it any more.
    let identity = Identity::generate();
    channel.write_all(here("b", identity.public_key().fingerprint()).as_bytes()).expect("written");
    let fleet = start.join().expect("no panic").expect("started");
    assert_eq!(names(&fleet), ["a"]);
    assert!(matches!(fleet.absent[0].why, AbsentError::NoCall { .. }), "{:?}", fleet.absent);
    let client = invitations[1].hello.client.parse().expect("a fingerprint");
    let protocols = vec![b"haul-fleet/1".to_vec()];
    let config = ClientConfig { identity: Some(identity), protocols, ..ClientConfig::new(PeerTrust::Pinned(vec![client])) };
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().expect("an address")).expect("a socket");
    match endpoint.connect(invitations[1].call[0], config) {
        Ok(connection) => assert!(connection.closed().is_key_refused(), "{:?}", connection.end()),
        Err(error) => assert!(error.is_key_refused(), "{error}"),
    }
    fetch(&fleet.members[0], &stage.path("data/file"), &stage.path("got"));
    assert!(a.join().expect("no panic"));
}

#[test]
fn members_end_when_the_client_parts() {
    let stage = Stage::new();
    let start = started(stage.spec("a", 20));
    let (invitations, channel) = stage.launched();
    let a = member(&invitations[0], channel);
    start.join().expect("no panic").expect("started").part();
    assert!(!a.join().expect("no panic"), "nothing was asked of it");
}

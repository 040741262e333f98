//! Fleets that stay up, on real sockets of the loopback: many jobs over one start.

mod stage;

use std::fs;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use haul::{TransportConfig, block_on};
use haul_files::Options;
use haul_fleet::{Begin, GetJob, JobEvent, JobObserver, PutJob, SessionError, Unwatched};
use haul_units::{BitRate, Cancel};

use stage::Stage;

fn get(sources: &[&str], to: &Path) -> GetJob {
    let mut job = GetJob::new(sources.iter().map(Into::into).collect(), to);
    job.options = Options { recursive: true, ..Options::default() };
    job
}

fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 4096 + at % 251 + seed * 7) as u8).collect()
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).expect("the file")
}

fn many_jobs(dial_out: bool) {
    let stage = Stage::new();
    let (first, second) = (pattern(3 << 20, 1), pattern(2 << 20, 2));
    for member in ["a", "b"] {
        stage.file(member, "one", &first);
    }
    stage.file("b", "two", &second);
    let mut setup = stage.setup("a,b", dial_out);
    setup.set_dir(stage.path("logs"));
    let (session, absent) = Stage::start(setup);
    assert!(absent.is_empty(), "{absent:?}");

    // Two at once, then one after them, then the other way.
    let to = [stage.path("to1"), stage.path("to2"), stage.path("to3")];
    let done = session.download_many(&[get(&["one"], &to[0]), get(&["two"], &to[1])], &Cancel::new());
    for report in done {
        let report = report.expect("fetched");
        assert_eq!((report.job.files.files, report.job.members.len(), report.absent.len()), (1, 2, 0));
    }
    session.download(&get(&["one"], &to[2]), &Unwatched, &Cancel::new()).expect("fetched");
    assert!(read(&to[0]) == first && read(&to[1]) == second && read(&to[2]) == first);
    let back = PutJob { replicas: 2, ..PutJob::new(vec![to[1].clone()], "back") };
    let report = session.upload(&back, &Unwatched, &Cancel::new()).expect("sent");
    assert_eq!(report.job.files.problem_count, 0);
    for member in ["a", "b"] {
        assert!(read(&stage.of(member).join("back/to2")) == second, "{member}");
    }
    // Each job has a log of its own.
    let logs = fs::read_dir(stage.path("logs")).expect("logs").count();
    assert_eq!(logs, 4);

    let status = session.status(&Cancel::new()).expect("told");
    let names: Vec<_> = status.members.iter().map(|member| &*member.name).collect();
    assert_eq!((names, status.absent.len()), (vec!["a", "b"], 0));
    for member in &status.members {
        let report = member.report.as_ref().expect("told");
        assert!(report.work.is_empty() && report.places[0].total_bytes > Some(0), "{report:?}");
    }
    session.stop(&Cancel::new()).expect("stopped");
    for name in ["a", "b"] {
        assert!(stage.take(name).thread.join().expect("no panic"), "{name} has served");
    }
    assert!(session.download(&get(&["one"], &stage.path("to4")), &Unwatched, &Cancel::new()).is_err(), "it is over");
}

#[test]
fn members_that_call_do_many_jobs() {
    many_jobs(false);
}

#[test]
fn members_that_listen_do_many_jobs() {
    many_jobs(true);
}

/// Says when something was ordered.
struct Ordered(mpsc::Sender<()>);

impl JobObserver for Ordered {
    fn event(&self, event: &JobEvent<'_>) {
        if matches!(event, JobEvent::Ordered { .. }) {
            let _ = self.0.send(());
        }
    }
}

#[test]
fn a_job_that_is_given_up_ends_no_other_and_status_tells_of_those_under_way() {
    let stage = Stage::new();
    let content = pattern(4 << 20, 3);
    stage.file("a", "file", &content);
    let (session, _) = Stage::start(stage.setup("a", true));
    let (tell, told) = mpsc::channel();
    // Slow ones, that would take an hour.
    let slow = |to: &str| GetJob { limit: Some(BitRate::from_bps(8_000)).into(), ..get(&["file"], &stage.path(to)) };
    let given_up = session.download_async(slow("slow"), Arc::new(Ordered(tell.clone())));
    told.recv().expect("it has begun");
    let other = session.download_async(get(&["file"], &stage.path("quick")), Arc::new(Unwatched));
    assert_eq!(block_on(other).expect("fetched").job.files.files, 1);
    let work = || {
        thread::park_timeout(Duration::from_millis(20));
        let status = session.status(&Cancel::new()).expect("told");
        status.members[0].report.as_ref().expect("told").work.clone()
    };
    // The server hears a moment later that the other one is over.
    let work = (0..100).map(|_| work()).find(|work| work.len() == 1).unwrap_or_else(work);
    assert!(work.len() == 1 && work[0].sends && work[0].what.ends_with("/a/file"), "{work:?}");
    given_up.cancel();
    assert!(matches!(block_on(given_up), Err(SessionError::Get(haul_fleet::GetError::Cancelled))));
    // One that nobody waits for any more is given up too.
    drop(session.download_async(slow("dropped"), Arc::new(Ordered(tell))));
    session.download(&get(&["file"], &stage.path("after")), &Unwatched, &Cancel::new()).expect("fetched");
    assert!(read(&stage.path("quick")) == content && read(&stage.path("after")) == content);
}

#[test]
fn uploads_go_several_at_a_time_or_are_awaited_as_the_status_is_and_connections_have_the_parameters() {
    let stage = Stage::new();
    let sources = ["one", "two", "three"].map(|name| stage.path(name));
    for (source, seed) in sources.iter().zip(1..) {
        fs::write(source, pattern(1 << 20, seed)).expect("written");
    }
    let patience = Duration::from_secs(7);
    let mut setup = stage.setup("a,b", true);
    setup.set_parameters(TransportConfig { idle_timeout: patience, ..TransportConfig::default() });
    let (session, absent) = Stage::start(setup);
    assert!(absent.is_empty(), "{absent:?}");
    let fleet = session.join(&Cancel::new()).expect("joined");
    let patiences: Vec<_> = fleet.members.iter().map(|member| member.connection.stats().idle_timeout).collect();
    assert_eq!(patiences, [patience; 2]);
    fleet.part();

    let put = |source: &Path, to: &str| PutJob { replicas: 2, ..PutJob::new(vec![source.to_owned()], to) };
    let done = session.upload_many(&[put(&sources[0], "first"), put(&sources[1], "second")], &Cancel::new());
    let third = session.upload_async(put(&sources[2], "third"), Arc::new(Unwatched));
    for report in done.into_iter().chain([block_on(third)]) {
        let report = report.expect("sent");
        assert_eq!((report.job.files.problem_count, report.job.members.len()), (0, 2));
    }
    for member in ["a", "b"] {
        for (name, seed) in ["first/one", "second/two", "third/three"].iter().zip(1..) {
            assert!(read(&stage.of(member).join(name)) == pattern(1 << 20, seed), "{member} {name}");
        }
    }
    let status = block_on(session.status_async()).expect("told");
    let names: Vec<_> = status.members.iter().map(|member| &*member.name).collect();
    assert_eq!((names, status.absent.len(), status.pid), (vec!["a", "b"], 0, std::process::id()));
}

#[test]
fn who_dies_while_it_rests_is_named_and_started_again_before_the_next_job() {
    let stage = Stage::new();
    for member in ["a", "b"] {
        stage.file(member, "file", b"content");
    }
    let (session, absent) = Stage::start(stage.setup("a,b,absent", true));
    assert_eq!(absent.iter().map(|absent| &*absent.name).collect::<Vec<_>>(), ["absent"]);
    let died = stage.take("a");
    died.cancel.cancel();
    died.thread.join().expect("no panic");
    // Nobody is started for a look.
    let status = loop {
        let status = session.status(&Cancel::new()).expect("told");
        if status.absent.len() == 2 {
            break status;
        }
        thread::yield_now();
    };
    assert_eq!(status.members.len(), 1);
    assert!(status.absent.iter().any(|absent| absent.name == "a" && !absent.why.to_string().is_empty()), "{:?}", status.absent);
    // Else the file may be here before the one that is started again has come.
    let job = GetJob { begin: Begin::WhenAllAreHeard, ..get(&["file"], &stage.path("to")) };
    let done = session.download(&job, &Unwatched, &Cancel::new()).expect("fetched");
    let names: Vec<_> = done.job.members.iter().map(|member| &*member.name).collect();
    assert_eq!(names, ["a", "b"], "{:?}", done.absent);
    // The third was tried a moment ago, so nobody waits for it again.
    assert_eq!(done.absent.iter().map(|absent| &*absent.name).collect::<Vec<_>>(), ["absent"]);
    drop(session);
    for name in ["a", "b"] {
        assert!(stage.take(name).thread.join().expect("no panic"), "members end with the session");
    }
}

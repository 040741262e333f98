//! What a log has of a job, and what it does to what is there.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::Duration;

use haul_fleet::{JobEvent, JobLog, JobObserver as _, JobTitle, MemberState, MemberView, Snapshot, Why};
use haul_units::{BitRate, Bytes};
use serde_json::Value;

fn title() -> JobTitle {
    JobTitle { kind: "get".into(), about: vec!["/data".into(), ".".into()], members: vec!["a".into(), "../b\n".into()] }
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn events(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["event"].as_str().unwrap()).collect()
}

#[test]
fn each_member_has_a_file_of_what_happened_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let log = JobLog::create(dir.path(), title()).unwrap();
    let path = Path::new(OsStr::from_bytes(b"d/evil\n\x1b[31m\xff\"</script>"));
    log.event(&JobEvent::Up { member: "a", rtt: Duration::from_millis(150) });
    log.event(&JobEvent::Found { files: 1, bytes: Bytes(10), complete: true });
    log.event(&JobEvent::Ordered { member: "../b\n", path, range: 0..10, why: Why::Next });
    log.event(&JobEvent::Delivered { member: "../b\n", path, range: 0..10 });
    log.event(&JobEvent::FileFinished { member: None, path, size: Bytes(10) });
    log.event(&JobEvent::Down { member: "a", why: "gone" });
    let view = MemberView { name: "a".into(), state: MemberState::Busy, rate: BitRate::mbps(8), ..MemberView::default() };
    log.event(&JobEvent::Progress(&Snapshot { files: 1, members: vec![view.clone(), view], ..Snapshot::default() }));
    let own = log.dir().to_owned();
    drop(log);

    let client = lines(&own.join("client.jsonl"));
    assert_eq!(events(&client), ["job", "found", "finished", "client", "end"]);
    assert_eq!((client[0]["version"].as_u64(), client[0]["members"][1].as_str()), (Some(1), Some("../b\n")));
    assert!(client[3]["memory_bytes"].as_u64().unwrap() > 100_000);
    let a = lines(&own.join("member-00001.jsonl"));
    assert_eq!(events(&a), ["member", "up", "down", "sample"]);
    assert_eq!(
        (a[1]["rtt_us"].as_u64(), a[3]["rate_bps"].as_u64(), a[3]["state"].as_str()),
        (Some(150_000), Some(8_000_000), Some("busy"))
    );
    let b = lines(&own.join("member-00002.jsonl"));
    assert_eq!(events(&b), ["member", "ordered", "delivered", "sample"]);
    let shown = b[1]["path"].as_str().unwrap();
    assert!(!shown.contains(['\n', '\x1b']) && shown.starts_with("d/evil"), "{shown}");
    assert!(b.windows(2).all(|two| two[0]["t"].as_f64() <= two[1]["t"].as_f64()));
}

#[test]
fn what_is_there_is_neither_followed_nor_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), dir.path().join("job-00001")).unwrap();
    let first = JobLog::create(dir.path(), title()).unwrap().dir().to_owned();
    let second = JobLog::create(dir.path(), title()).unwrap().dir().to_owned();
    assert_eq!((first.file_name(), second.file_name()), (Some("job-00002".as_ref()), Some("job-00003".as_ref())));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    assert_eq!(fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(first.join("client.jsonl")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_directory_that_cannot_be_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = JobLog::create(&dir.path().join("file"), title()).map(drop).unwrap_err();
    assert!(error.to_string().ends_with("/file"), "{error}");
}

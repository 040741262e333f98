//! Reports of a small recorded log: one job with names that would be tags and a member that dies, one that was killed.
//! `HAUL_GOLDEN=write cargo test -p haul-fleet --test report` writes the tables anew; read the difference.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use haul_fleet::{LogReport, ReportError};

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/log")
}

#[test]
fn the_tables_of_a_recorded_log() {
    let tables = LogReport::read(&recorded()).unwrap().tables();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/report.txt");
    if std::env::var_os("HAUL_GOLDEN").is_some_and(|value| value == "write") {
        fs::write(&path, &tables).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == tables, "{} differs; this is it now:\n{tables}", path.display());
}

#[test]
fn what_a_log_says_is_read() {
    let report = LogReport::read(&recorded()).unwrap();
    let [put, killed] = &*report.jobs else { panic!("{} jobs", report.jobs.len()) };
    assert_eq!((put.seconds, put.is_complete, put.problem_count, put.bad_lines), (3.0, true, 1, 1));
    assert_eq!((killed.seconds, killed.is_complete), (2.0, false));
    let node1 = &put.members[0];
    // 0.2 to 1.4, of which a part twice, and 2.0 to 3.0.
    assert!((node1.busy(3.0) - 2.2).abs() < 1e-9, "{}", node1.busy(3.0));
    assert_eq!(put.last().map(|member| &*member.name), Some("node1"));
    assert_eq!(put.members[2].down, Some((1.1, "the connection failed: timed out".into())));
    // One log by itself.
    assert_eq!(LogReport::read(&recorded().join("job-00002")).unwrap().jobs, std::slice::from_ref(killed));
}

#[test]
fn names_are_text_on_the_page_and_in_pictures() {
    let out = tempfile::tempdir().unwrap();
    // A link with the name of a file of the report is not followed.
    fs::write(out.path().join("elsewhere"), "mine").unwrap();
    std::os::unix::fs::symlink("elsewhere", out.path().join("report.txt")).unwrap();
    let written = LogReport::read(&recorded()).unwrap().write(out.path()).unwrap();
    assert_eq!(fs::read_to_string(out.path().join("elsewhere")).unwrap(), "mine");
    let names: Vec<&str> = written.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    for name in [
        "report.html",
        "report.txt",
        "job-00001-rate.svg",
        "job-00001-cpu.png",
        "job-00001-memory.png",
        "job-00001-timeline.svg",
        "job-00001-timeline.png",
        "members.svg",
    ] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    let page = fs::read_to_string(out.path().join("report.html")).unwrap();
    assert!(!page.contains("<b>") && !page.contains("<script") && page.contains("&lt;b&gt;node2&lt;/b&gt;"));
    assert!(page.contains("tree/&lt;script&gt;"));
    let elsewhere =
        page.matches("http").count() - page.matches("http://www.w3.org/2000/svg").count() - page.matches("http-equiv").count();
    assert_eq!(elsewhere, 0, "the page needs something from elsewhere");
    for path in written.iter().filter(|path| path.extension().is_some_and(|end| end == "svg")) {
        let svg = fs::read_to_string(path).unwrap();
        roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    assert!(fs::read(out.path().join("job-00001-rate.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn several_directories_are_read_as_one_and_their_jobs_are_told_apart() {
    let (all, second) = (recorded(), recorded().join("job-00002"));
    let report = LogReport::read_all(&[second.clone(), all.clone(), second]).unwrap();
    let names: Vec<_> = report.jobs.iter().map(|job| &*job.name).collect();
    assert_eq!(names, ["job-00002", "job-00001", "job-00002-2", "job-00002-3"]);
    assert_eq!(LogReport::read_all(&[all]).unwrap().jobs, LogReport::read(&recorded()).unwrap().jobs);
}

#[test]
fn what_is_no_log_is_an_error_and_nonsense_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(LogReport::read(dir.path()), Err(ReportError::NoLog { .. })));
    let job = dir.path().join("job-00001");
    fs::create_dir(&job).unwrap();
    let long = format!("{{\"event\":\"{}\"}}", "x".repeat(200_000));
    let text = format!(
        "{{\"t\":-5,\"event\":\"client\",\"rate_bps\":1e300}}\nnonsense\n{long}\n{{\"t\":1,\"event\":\"problem\",\"path\":\"\\u001b[2J\"}}\n{{\"t\":2"
    );
    fs::write(job.join("client.jsonl"), text).unwrap();
    let report = LogReport::read(dir.path()).unwrap();
    assert_eq!((report.jobs[0].bad_lines, report.jobs[0].problem_count), (3, 1));
    assert!(report.jobs[0].points[0].rate_bps <= 1e18 && report.jobs[0].points[0].t >= 0.0);
    assert!(!report.tables().contains('\u{1b}') && report.page().is_ok());
    fs::write(job.join("client.jsonl"), "{\"t\":0,\"event\":\"job\",\"version\":9}\n").unwrap();
    assert!(matches!(LogReport::read(dir.path()), Err(ReportError::Version { version: 9, .. })));
}

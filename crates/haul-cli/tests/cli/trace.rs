//! `haul trace`: a copy's trace as lines, pictures and a qlog.

use std::fs;

use serde_json::Value;

use super::ssh;
use super::support::{Bench, Daemon, noise};

#[test]
fn a_copys_trace_is_lines_a_picture_and_a_qlog() {
    let (server, client) = (Bench::new(), Bench::new());
    let daemon = Daemon::start(&server, &client, &[format!("pub={}", server.path("").display())]);
    fs::write(server.path("file"), noise(3_000_000)).unwrap();
    let trace = client.path("near.jsonl");
    // A second and a half: the phases of what is over at once have no width in a picture.
    let status =
        client.command(["cp", "-l", "16M", &daemon.url("pub/file"), "there"]).env("HAUL_TRACE", &trace).status().unwrap();
    assert!(status.success());
    let trace = trace.display().to_string();
    let said = client.haul(["trace", &trace]).expect(0);
    let said = said.text();
    // 2.86 MiB, and what a busy machine had sent again.
    let is_all =
        said.split_once("received ").is_some_and(|(_, rest)| rest.starts_with(['2', '3', '4']) && rest[1..].starts_with('.'));
    assert!(said.contains("  fair  RTT ") && is_all && said.contains(" MiB, "), "{said}");
    for (name, begins) in [("o.svg", &b"<svg"[..]), ("o.png", b"\x89PNG"), ("o.qlog", b"{\"qlog_format\":\"JSON\"")] {
        client.haul(["trace", &trace, "-o", name]).expect(0);
        let written = fs::read(client.path(name)).unwrap();
        assert!(written.starts_with(begins), "{name}: {:?}", &written[..20]);
    }
    // Those that it has been in; how long each lasted is the machine's business.
    let written = fs::read_to_string(client.path("o.qlog")).unwrap();
    let qlog: Value = serde_json::from_str(&written).unwrap();
    let events = qlog["traces"][0]["events"].as_array().unwrap();
    let phases: Vec<&str> = events.iter().filter_map(|event| event["data"]["new"].as_str()).collect();
    let picture = fs::read_to_string(client.path("o.svg")).unwrap();
    // This side only asks: on a busy machine it may not get beyond its first one, which nothing has ended then.
    let is_drawn = phases.iter().any(|phase| picture.contains(phase));
    assert!(!phases.is_empty() && (phases.len() == 1 || is_drawn), "{phases:?} stand in it: {picture}");
}

#[test]
fn what_is_no_trace_is_named() {
    let bench = Bench::new();
    fs::write(bench.path("text"), "not of a trace\n").unwrap();
    fs::write(bench.path("one"), "{\"t\":1,\"id\":\"\\u001b[2J2a\",\"event\":\"connected\"}\n").unwrap();
    for (args, says) in [
        ("trace none", "none: No such file or directory\n"),
        ("trace text", "text: line 1 is none of a trace"),
        ("trace one -o picture.gif", "let it end in .svg or .png"),
        ("trace one --id 7 -o a.svg", "there are "),
        ("perf -c h -R --trace a.svg", "cannot be used with"),
        ("perf -c h --trace a.gif", "let it end in .svg or .png"),
    ] {
        bench.haul(args.split_whitespace()).expect(2).says(&[says, "error:"]);
    }
    let shown = bench.haul(["trace", "one"]).expect(0);
    assert!(!shown.text().contains('\u{1b}'), "what a terminal would obey is not printed");
}

/// The last event of `--json`.
fn summary(stdout: &[u8]) -> Value {
    let text = String::from_utf8_lossy(stdout);
    let last = text.lines().last().unwrap_or_default();
    let summary: Value = serde_json::from_str(last).unwrap();
    assert_eq!(summary["event"], "summary", "{text}");
    summary
}

#[test]
fn the_parts_of_a_copy_sum_up_to_the_whole_and_the_far_side_tells_its_own() {
    let bench = ssh::bench();
    bench.file("file", 3_000_000);
    for (from, to) in [("file", "far:there"), ("far:there", "back")] {
        let run = ssh::cp(&bench, &["--trace=parts.json", "--json", from, to]).expect(0);
        let summary = summary(&run.stdout);
        let parts = summary["parts_s"].as_object().unwrap();
        let of = |part: &str| parts[part].as_f64().unwrap();
        let sum: f64 = parts.iter().filter(|(part, _)| *part != "total").filter_map(|(_, s)| s.as_f64()).sum();
        assert!((sum - of("total")).abs() < 1e-6, "{parts:?}");
        assert!(of("total") >= summary["elapsed_s"].as_f64().unwrap(), "the engine's time is a part of it: {summary}");
        // What the far side alone knows: how long it took to start, and where it receives what it did with the file.
        for part in ["login", "far_start", "hello", "rename"] {
            assert!(of(part) > 0.0, "{part} from {from}: {parts:?}");
        }
        let written: Value = serde_json::from_str(&fs::read_to_string(bench.path("parts.json")).unwrap()).unwrap();
        assert_eq!(written, summary["parts_s"]);
    }
    let untold = ssh::cp(&bench, &["--json", "file", "far:again"]).expect(0);
    assert!(summary(&untold.stdout)["parts_s"].is_null(), "nobody has asked");
}

#[test]
fn a_copys_parts_are_a_table_and_a_picture() {
    let bench = ssh::bench();
    bench.file("file", 3_000_000);
    ssh::cp(&bench, &["--trace=copy.svg", "--log-file", "log", "file", "far:"]).expect(0).says(&[
        "where the time went",
        "login (ssh)",
        "far side's start",
        "in all",
    ]);
    let log = fs::read_to_string(bench.path("log")).unwrap();
    assert!(log.contains("login (ssh)") && log.contains("in all"), "{log}");
    let picture = fs::read_to_string(bench.path("copy.svg")).unwrap();
    for word in ["rate of the copy", "time since the command", "round trip"] {
        assert!(picture.contains(word), "{word} is not in {picture}");
    }
    // A name is written where its part is long enough for it.
    let names = ["login (ssh)", "far side's start", "handshake", "hello", "start-up", "last block"];
    assert!(names.iter().any(|name| picture.contains(name)), "{picture}");
    // Its file stands behind an equals sign, or it would be taken for a source.
    ssh::cp(&bench, &["--trace", "file", "far:table"]).expect(0).says(&["where the time went"]);
    ssh::cp(&bench, &["--trace=copy.gif", "file", "far:"]).expect(2).says(&["let it end in .svg or .png"]);
    // What was not begun has no parts, and its error is the one that counts.
    let run = ssh::cp(&bench, &["--trace=none.svg", "file", "far:none/of/these/there"]).expect(2);
    assert!(!run.text().contains("where the time went") && !bench.path("none.svg").exists(), "{}", run.text());
}

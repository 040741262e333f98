//! `haul trace`: a copy's trace as lines, pictures and a qlog.

use std::fs;

use serde_json::Value;

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

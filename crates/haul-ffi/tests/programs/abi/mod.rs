//! The interface as programs see it: what the header says, what the library exports, and what this crate means are the same; and none of it changes unseen.
//!
//! `HAUL_ABI=write cargo test -p haul-ffi --test programs abi` writes `tests/haul.abi` and the manual pages again. A line of the listing that goes or changes breaks programs: then the
//! version's second number (after 1.0 the first) must change too, and with it the soname.

mod header;
mod manual;
mod signatures;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

use self::header::Header;
use crate::support::{Build, Workshop, built, root, run};
use haul_ffi::{
    HaulBlock, HaulCopyProgress, HaulCopyRequest, HaulCopyResult, HaulFleetJob, HaulFleetMember, HaulFleetRequest,
    HaulFleetServer, HaulPerfInterval, HaulPerfRequest, HaulPerfResult, HaulPollfd, HaulStatistics,
};

fn the_header() -> Header {
    Header::parse(&fs::read_to_string(root().join("include/haul.h")).expect("the header"))
}

/// Compares a file with what it should be, or writes it.
fn same(path: &Path, wanted: &str) {
    if std::env::var_os("HAUL_ABI").is_some_and(|value| value == "write") {
        fs::write(path, wanted).expect("a file that can be written");
        return;
    }
    let found = fs::read_to_string(path).unwrap_or_default();
    let difference = found.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
    assert!(
        found == wanted,
        "{} is not what the header says: {difference:?}; HAUL_ABI=write cargo test -p haul-ffi --test programs abi writes it",
        path.display()
    );
}

#[test]
fn listing() {
    same(&root().join("tests/haul.abi"), &the_header().listing());
}

#[test]
fn manual_pages() {
    let pages = manual::pages(&the_header());
    for (name, page) in &pages {
        same(&root().join("man").join(name), page);
    }
    let there: BTreeSet<String> = fs::read_dir(root().join("man"))
        .expect("manual pages")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    let wanted: BTreeSet<String> = pages.into_iter().map(|(name, _)| name).collect();
    assert_eq!(there, wanted, "a page that nothing in the header has, or the other way round");
}

#[test]
fn the_header_is_of_this_version() {
    let text = fs::read_to_string(root().join("include/haul.h")).expect("the header");
    for (name, number) in [("MAJOR", env!("CARGO_PKG_VERSION_MAJOR")), ("MINOR", env!("CARGO_PKG_VERSION_MINOR"))] {
        assert!(text.contains(&format!("#define HAUL_VERSION_{name} {number}\n")), "{name}: scripts/release.sh writes it");
    }
}

/// Numbers are written twice, in C and in Rust.
#[test]
fn numbers_are_the_headers() {
    let header = fs::read_to_string(root().join("include/haul.h")).expect("the header");
    let (options, codes) = ("src/calls/options.rs", "src/failure.rs");
    let names = [
        (options, "OPT_SNDTIMEO", "SendTimeout"),
        (options, "OPT_RCVTIMEO", "ReceiveTimeout"),
        (options, "OPT_CONNTIMEO", "ConnectTimeout"),
        (options, "OPT_MEMORY", "Memory"),
        (options, "OPT_STREAM_WINDOW", "StreamWindow"),
        (options, "OPT_MAX_PACKET", "MaxPacket"),
        (options, "OPT_IDLE_TIMEOUT", "IdleTimeout"),
        (options, "OPT_KEEP_ALIVE", "KeepAlive"),
        (options, "OPT_MAX_STREAMS", "MaxStreams"),
        (options, "OPT_RATE_LIMIT", "RateLimit"),
        (options, "OPT_PATHS", "Paths"),
        (options, "OPT_PRIORITY", "Priority"),
        (options, "OPT_CONTROLLER", "Controller"),
        (codes, "EHANDLE", "Handle"),
        (codes, "EINVAL", "Invalid"),
        (codes, "ESTATE", "State"),
        (codes, "ESTARTUP", "NotStarted"),
        (codes, "EFORK", "Forked"),
        (codes, "ECLOSED", "Closed"),
        (codes, "ECANCELLED", "Cancelled"),
        (codes, "EAGAIN", "Again"),
        (codes, "ETIMEDOUT", "TimedOut"),
        (codes, "ESYSTEM", "System"),
        (codes, "EUNREACHED", "Unreached"),
        (codes, "ELOST", "Lost"),
        (codes, "EUNTRUSTED", "Untrusted"),
        (codes, "EREFUSED", "Refused"),
        (codes, "EPEERCLOSED", "PeerClosed"),
        (codes, "ERESET", "Reset"),
        (codes, "ESTOPPED", "Stopped"),
        (codes, "EPROTOCOL", "Protocol"),
        (codes, "EINTERNAL", "Internal"),
    ];
    let declared = header.lines().filter(|line| line.starts_with("#define HAUL_OPT_") || line.starts_with("#define HAUL_E"));
    assert_eq!(declared.count(), names.len(), "one that this test does not know");
    for (file, in_c, in_rust) in names {
        let source = fs::read_to_string(root().join(file)).expect("a source");
        let define = header.lines().find_map(|line| line.strip_prefix(&format!("#define HAUL_{in_c} "))).expect(in_c);
        let number = define.split_whitespace().next().expect("a number").trim_matches(['(', ')']);
        let defined = source.lines().find_map(|line| line.trim().strip_prefix(&format!("{in_rust} = "))).expect(in_rust);
        assert_eq!(defined.split(',').next(), Some(number), "{in_c}");
    }
}

#[test]
fn exported_symbols_are_the_headers() {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(built("libhaul_ffi.so")).output().expect("nm");
    let listed = String::from_utf8(output.stdout).expect("text");
    let exported: BTreeSet<&str> = listed.lines().filter_map(|line| line.split_whitespace().last()).collect();
    let header = the_header();
    let declared: Vec<String> = header.functions().map(|function| function.name).collect();
    let declared: BTreeSet<&str> = declared.iter().map(String::as_str).collect();
    assert!(declared.len() > 50);
    assert_eq!(exported, declared);
}

#[test]
fn functions_have_the_types_of_their_prototypes() {
    let defined = signatures::of_calls(&root().join("src"));
    let header = the_header();
    for function in header.functions() {
        let here = defined.get(&function.name).unwrap_or_else(|| panic!("{} is not defined", function.name));
        assert_eq!(*here, signatures::of_prototype(&function), "{}", function.name);
    }
    assert_eq!(defined.len(), header.functions().count());
}

/// Sizes and offsets by the C compiler, against those of this crate.
#[test]
fn structures_have_one_layout() {
    macro_rules! layout {
        ($($structure:ident $name:literal { $($field:ident),* })*) => {
            vec![$(
                format!("{} {}", $name, size_of::<$structure>()),
                $(format!("{}.{} {}", $name, stringify!($field), offset_of!($structure, $field)),)*
            )*]
        };
    }
    let here = layout! {
        HaulBlock "haul_block" { handle, data, length, capacity, index }
        HaulStatistics "haul_statistics" {
            size, rtt_us, min_rtt_us, queue_delay_us, delivery_rate_bps, pacing_rate_bps, window_bytes, in_flight_bytes, packet_bytes, sent_pkts,
            received_pkts, duplicate_pkts, lost_pkts, spurious_pkts, ecn_marked_pkts, retransmitted_bytes, sent_bytes, acknowledged_bytes,
            received_bytes, received_stream_bytes, loss_ppm, buffered_bytes, held_bytes, streams, paths, silence_us
        }
        HaulPollfd "haul_pollfd" { handle, events, revents }
        HaulCopyProgress "haul_copy_progress" {
            size, files_found, bytes_found, files_arrived, bytes_arrived, files_kept, bytes_kept, problems, complete
        }
        HaulCopyRequest "haul_copy_request" {
            size, sources, source_count, destination, flags, rate_limit_bps, controller, state, identity_file, progress, problem, context,
            exclude, exclude_count, max_deletes, retries, transport, via, would, relay
        }
        HaulCopyResult "haul_copy_result" {
            size, files, directories, links, bytes, resumed_bytes, skipped_files, problems, verified, elapsed_us, removed
        }
        HaulFleetRequest "haul_fleet_request" {
            size, hosts, way, timeout_ms, logs, controller, state, ssh_config, identity_file, absent, context, relay
        }
        HaulFleetServer "haul_fleet_server" { size, name, state, files, bytes, rate_bps, rtt_us }
        HaulFleetJob "haul_fleet_job" {
            size, sources, source_count, destination, flags, replicas, rate_limit_bps, progress, problem, server, context
        }
        HaulFleetMember "haul_fleet_member" {
            size, name, problem, rtt_us, processors, load_per_mille, memory_total_bytes, memory_available_bytes, free_bytes
        }
        HaulPerfInterval "haul_perf_interval" { size, down, start_us, end_us, sent_bytes, received_bytes }
        HaulPerfRequest "haul_perf_request" { size, ways, streams, block_bytes, bytes, time_ms, interval_ms, interval, context }
        HaulPerfResult "haul_perf_result" { size, up_bytes, up_us, down_bytes, down_us }
    };
    let mut source = "#include <stdio.h>\n#include <haul.h>\nint main(void) {\n".to_owned();
    for (name, fields) in the_header().structures() {
        let _ = writeln!(source, "printf(\"{name} %zu\\n\", sizeof(struct {name}));");
        for field in fields {
            let _ = writeln!(source, "printf(\"{name}.{field} %zu\\n\", offsetof(struct {name}, {field}));");
        }
    }
    let place = Workshop::open();
    let path = place.path("layout.c");
    fs::write(&path, source + "return 0;\n}\n").expect("a file");
    let output = run(place.command(&place.compile(path.to_str().expect("text"), Build::Plain)));
    let there = String::from_utf8(output.stdout).expect("text");
    assert_eq!(there.lines().collect::<Vec<_>>(), here);
}

/// What the test for changes is worth: a type, a field, a number that changes shows.
#[test]
fn a_change_shows() {
    let text = fs::read_to_string(root().join("include/haul.h")).expect("the header");
    let listing = Header::parse(&text).listing();
    for (old, new) in [
        ("int haul_bind(haul_t endpoint,", "int haul_bind(int endpoint,"),
        ("#define HAUL_ESTATE (-3)", "#define HAUL_ESTATE (-4)"),
        ("    uint64_t index;  /*", "    uint32_t index;  /*"),
        ("int haul_flush(haul_t stream);", ""),
    ] {
        assert!(text.contains(old), "{old}");
        assert_ne!(Header::parse(&text.replace(old, new)).listing(), listing, "{old}");
    }
    // Words may change.
    assert_eq!(Header::parse(&text.replace("Ends a direction", "Finishes a direction")).listing(), listing);
}

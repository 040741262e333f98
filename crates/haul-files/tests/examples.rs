//! The examples run.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

#[path = "../examples/copy_in_memory.rs"]
#[allow(dead_code, reason = "its main is not called")]
mod copy_in_memory;
#[path = "../examples/gather.rs"]
#[allow(dead_code, reason = "its main is not called")]
mod gather;

use haul_files::{Local, StoreError, WirePath};
use haul_ramstore::{Operation, Ram};

fn content(length: usize) -> Vec<u8> {
    let mut content = vec![0; length];
    blake3::Hasher::new().finalize_xof().fill(&mut content);
    content
}

#[test]
fn a_file_is_gathered_from_its_replicas() {
    let servers = [Ram::new(), Ram::new(), Ram::new()];
    for server in &servers {
        server.put("stripes/one", content((5 << 20) + 17));
    }
    let (dir, object) = (tempfile::tempdir().unwrap(), WirePath(b"stripes/one".to_vec()));
    let target = dir.path().join("whole");
    let gather = || gather::gather(&servers, &object, &Local::own(), &target.as_path().into());

    servers[1].fail(Operation::Read, 1, StoreError::FAILED);
    assert!(gather().is_err());
    assert!(!target.exists(), "a part of it has the name");
    servers[1].heal();

    let before = servers.each_ref().map(Ram::operations);
    assert_eq!(gather().unwrap(), (5 << 20) + 17);
    assert!(std::fs::read(&target).unwrap() == content((5 << 20) + 17));
    for (server, before) in servers.iter().zip(before) {
        // Opened, asked what it is, and two ranges each.
        assert!(server.operations() - before >= 3, "one gave nothing");
    }
    assert_eq!(dir.path().read_dir().unwrap().count(), 1, "something is left");
}

#[test]
fn a_tree_is_copied_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (source, target) = (dir.path().join("tree"), dir.path().join("there"));
    std::fs::create_dir(&source).unwrap();
    std::fs::create_dir(&target).unwrap();
    std::fs::write(source.join("file"), content(3 << 20)).unwrap();
    let options = haul_files::Options { recursive: true, ..haul_files::Options::default() };
    let report = copy_in_memory::copy(source, target.clone(), options).unwrap();
    assert_eq!((report.files, report.problem_count), (1, 0));
    assert!(std::fs::read(target.join("tree/file")).unwrap() == content(3 << 20));
}

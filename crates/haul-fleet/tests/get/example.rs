//! The example runs.

#[path = "../../examples/gather_tree.rs"]
#[allow(dead_code, reason = "its main is not called")]
mod gather;

use std::fs;

use crate::fixture::*;

#[test]
fn a_tree_is_gathered() {
    let p = places();
    p.file("a", "set/one", b"1");
    p.file("b", "set/two", b"2");
    let report = gather::gather(p.members(&["a", "b"]), "set".as_ref(), &p.to).unwrap();
    assert_eq!(report.files.files, 2);
    assert_eq!(fs::read(p.to.join("set/two")).unwrap(), b"2");
}

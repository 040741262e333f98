//! On real files, in a directory of the system's.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::fs::OFlags;

use super::*;

const BOTH: Keep = Keep { xattrs: true, acls: true };
const XATTRS: Keep = Keep { xattrs: true, acls: false };

fn of(name: &str, value: &[u8]) -> Attribute {
    Attribute { name: name.into(), value: value.to_vec() }
}

/// Owner rw, user 1000 r, group r, mask rw, others r.
fn some_acl() -> Vec<u8> {
    let mut value = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in [(1, 6, u32::MAX), (2, 4, 1000), (4, 4, u32::MAX), (0x10, 6, u32::MAX), (0x20, 4, u32::MAX)] {
        let (tag, permissions, id): (u16, u16, u32) = (tag, permissions, id);
        value.extend(tag.to_le_bytes());
        value.extend(permissions.to_le_bytes());
        value.extend(id.to_le_bytes());
    }
    value
}

#[test]
fn a_list_that_no_honest_peer_sends_is_refused() {
    let acl = some_acl();
    let good: [Vec<Attribute>; 5] = [
        vec![],
        vec![of("user.a", b""), of("user.b", &[0; MAX_VALUE])],
        vec![of("security.capability", b"x"), of("trusted.x", b"y"), of("user./..", b"z")],
        vec![of("system.posix_acl_access", &acl), of("system.posix_acl_default", &acl), of("user.a", b"")],
        (0..MAX_COUNT).map(|i| of(&format!("user.{i:05}"), b"")).collect(),
    ];
    for list in &good {
        assert_eq!(check(list, BOTH), Ok(()), "{list:?}");
    }
    let long = format!("user.{}", "n".repeat(MAX_NAME - 4));
    let bad: [Vec<Attribute>; 17] = [
        vec![of("user.b", b""), of("user.a", b"")],
        vec![of("user.a", b""), of("user.a", b"")],
        vec![of("", b"")],
        vec![of("user", b"")],
        vec![of("user.", b"")],
        vec![of("trusted.", b"")],
        vec![of("a", b"")],
        vec![of("btrfs.compression", b"zstd")],
        vec![of("system.nfs4_acl", b"")],
        vec![of("system.posix_acl_acces", &acl)],
        vec![of("user.a\0b", b"")],
        vec![of(&long, b"")],
        vec![of("user.a", &[0; MAX_VALUE + 1])],
        vec![of("system.posix_acl_access", b"")],
        vec![of("system.posix_acl_access", &acl[..acl.len() - 1])],
        (0..=MAX_COUNT).map(|i| of(&format!("user.{i:05}"), b"")).collect(),
        (0..17).map(|i| of(&format!("user.{i:05}"), &vec![0; MAX_VALUE])).collect(),
    ];
    for list in &bad {
        assert_eq!(check(list, BOTH), Err(Misshapen), "{:?}", list.first());
    }
    // What was not asked for.
    assert_eq!(check(&good[3], XATTRS), Err(Misshapen));
    assert_eq!(check(&good[1], Keep { xattrs: false, acls: true }), Err(Misshapen));
}

#[test]
fn an_acl_has_the_shape_of_one() {
    let good = some_acl();
    assert!(acl::is_one(&good));
    for (at, byte) in [(0, 1), (4, 3), (6, 8), (7, 1)] {
        let mut bad = good.clone();
        bad[at] = byte;
        assert!(!acl::is_one(&bad), "{at}");
    }
    assert!(!acl::is_one(&good[..4]));
}

#[test]
fn what_is_wanted_is_there_and_nothing_besides() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let file = File::create(&path).unwrap();
    let both = [of("system.posix_acl_access", &some_acl()), of("user.a", b"1"), of("user.b", b"")];
    let wanted = Wanted { list: &both, keep: BOTH, reach: Reach::User, mode: None, writes: true };
    match apply(&file, &wanted) {
        Err(failed) if failed.number == rustix::io::Errno::OPNOTSUPP.raw_os_error() => {
            return skip::skip("the file system of the temporary directory has no attributes");
        }
        result => assert_eq!(result.unwrap(), Outcome { changed: true, left_out: false }),
    }
    assert_eq!(read(&file, BOTH, Reach::User).unwrap(), both);
    assert_eq!(read(&file, XATTRS, Reach::User).unwrap(), both[1..]);
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o664, "the mask is the group's bits");
    // A second time there is nothing to do, and looking does nothing.
    assert!(!apply(&file, &wanted).unwrap().changed);
    let less = [of("user.a", b"2")];
    let looked = Wanted { list: &less, writes: false, ..wanted };
    assert!(apply(&file, &looked).unwrap().changed);
    assert_eq!(read(&file, BOTH, Reach::User).unwrap(), both);
    // What does not count stays.
    assert!(apply(&file, &Wanted { list: &less, keep: XATTRS, ..wanted }).unwrap().changed);
    assert_eq!(read(&file, BOTH, Reach::User).unwrap(), [both[0].clone(), less[0].clone()]);
    // A file that may not be written, by a descriptor that only names it; and its mode, where an ACL goes.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o460)).unwrap();
    let named = rustix::fs::open(&path, OFlags::PATH | OFlags::NOFOLLOW, rustix::fs::Mode::empty()).unwrap();
    let list = [of("user.c", b"3")];
    apply(&named, &Wanted { list: &list, mode: Some(0o440), ..wanted }).unwrap();
    assert_eq!(read(&named, BOTH, Reach::User).unwrap(), list);
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o440);
    let other = File::create(dir.path().join("g")).unwrap();
    mirror(&file, &other, BOTH, Reach::User).unwrap();
    assert_eq!(read(&other, BOTH, Reach::User).unwrap(), list);
}

#[test]
fn who_has_no_right_to_it_sets_nothing_outside_of_user() {
    let dir = tempfile::tempdir().unwrap();
    let file = File::create(dir.path().join("f")).unwrap();
    let list = [of("security.capability", b"x"), of("trusted.x", b"y")];
    let wanted = Wanted { list: &list, keep: BOTH, reach: Reach::User, mode: None, writes: true };
    assert_eq!(apply(&file, &wanted).unwrap(), Outcome { changed: false, left_out: true });
    assert_eq!(read(&file, BOTH, Reach::All).unwrap(), []);
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let list = [of("trusted.x", b"y")];
    assert_eq!(
        apply(&file, &Wanted { list: &list, reach: Reach::All, ..wanted }).unwrap(),
        Outcome { changed: true, left_out: false }
    );
    assert_eq!(read(&file, BOTH, Reach::All).unwrap(), list);
    assert_eq!(read(&file, BOTH, Reach::User).unwrap(), []);
    // Nor does he remove it.
    assert!(!apply(&file, &Wanted { list: &[], ..wanted }).unwrap().changed);
    assert_eq!(read(&file, BOTH, Reach::All).unwrap(), list);
}

#[test]
fn a_link_has_attributes_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let (file, link) = (dir.path().join("f"), dir.path().join("l"));
    std::fs::write(&file, "").unwrap();
    std::os::unix::fs::symlink("f", &link).unwrap();
    let named = rustix::fs::open(&link, OFlags::PATH | OFlags::NOFOLLOW, rustix::fs::Mode::empty()).unwrap();
    // Linux takes none of `user` there, and no ACL.
    let list = [of("system.posix_acl_access", &some_acl())];
    let wanted = Wanted { list: &list, keep: BOTH, reach: Reach::All, mode: Some(0o640), writes: true };
    assert!(!apply(&named, &wanted).unwrap().changed);
    if rustix::process::geteuid().is_root() {
        let list = [of("trusted.l", b"1")];
        assert!(apply(&named, &Wanted { list: &list, ..wanted }).unwrap().changed);
        assert_eq!(read(&named, BOTH, Reach::All).unwrap(), list);
    }
    assert_eq!(read(File::open(&file).unwrap(), BOTH, Reach::All).unwrap(), []);
}

/// Attributes of `user` are written as content is; root may write everything, so it has to be somebody else.
#[test]
fn a_file_that_its_owner_may_not_write_gets_its_attributes_and_keeps_its_mode() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let file = File::create(&path).unwrap();
    let nobody = 65534;
    std::os::unix::fs::chown(&path, Some(nobody), Some(nobody)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
    let list = [of("user.a", b"1")];
    let applied = std::thread::scope(|scope| {
        let as_nobody = || {
            let nobody = rustix::process::Uid::from_raw(nobody);
            // Of this thread alone.
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            apply(&file, &Wanted { list: &list, keep: XATTRS, reach: Reach::User, mode: None, writes: true })
        };
        scope.spawn(as_nobody).join().unwrap()
    });
    assert_eq!(applied, Ok(Outcome { changed: true, left_out: false }));
    assert_eq!(read(&file, XATTRS, Reach::User).unwrap(), list);
    assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o400);
}

//! Copies into and out of a store of objects: one flat name space.

use std::path::Path;

use haul_files::store::{At, Content, Store};
use haul_files::{Local, Options, Stop, StoreError, WirePath};
use haul_objects::Objects;
use haul_ramstore::Ram;
use haul_ramstore::memory::Conditions;
use haul_units::Bytes;

use crate::fixture::*;
use crate::stores::{push_between, push_under};

fn content_of(objects: &Objects, name: &str) -> Result<Vec<u8>, StoreError> {
    let top = WirePath(name.as_bytes().to_vec());
    let mut content = Vec::new();
    objects.open(At::Top(&top))?.read_at(&mut content, 0, 1 << 30)?;
    Ok(content)
}

fn names_in(objects: &Objects) -> Vec<Vec<u8>> {
    let place = objects.destination(&WirePath::default(), true).unwrap();
    let mut names = Vec::new();
    let mut each = |entry: haul_files::store::Listed<'_>| {
        assert_eq!((entry.metadata)().unwrap().kind, haul_files::store::FileKind::File);
        names.push(entry.name.to_vec());
        std::ops::ControlFlow::Continue(())
    };
    objects.list(&place.root, &mut each).unwrap();
    names.sort();
    names
}

#[test]
fn objects_come_and_go() {
    let p = places();
    let (from, objects) = (Ram::new(), Objects::open(&p.to).unwrap());
    for number in 0..300 {
        from.put(&format!("all/object {number}"), noise(100 + number, number as u64));
    }
    from.put("all/large", noise(3 << 20, 7));
    // The content of a directory, for a directory has no place there.
    push_between(&from, Path::new("all/."), &objects, Path::new(""), Options { recursive: true, ..Options::default() }).clean();
    assert_eq!(names_in(&objects).len(), 301);
    assert_eq!(content_of(&objects, "object 77").unwrap(), noise(177, 77));
    let largest = std::fs::read_dir(&p.to).unwrap().map(|entry| entry.unwrap().path().read_dir().unwrap().count()).max();
    assert!(largest.unwrap() < 20, "they are spread: {largest:?}");
    assert_nothing_left(&p.to);

    let back = Ram::new();
    push_between(&objects, Path::new(""), &back, Path::new(""), recursive()).clean();
    assert_eq!(back.get("large").unwrap(), noise(3 << 20, 7));
    assert_eq!(back.get("object 299").unwrap(), noise(399, 299));

    objects.remove(b"object 77").unwrap();
    objects.remove(b"object 77").unwrap();
    assert!(matches!(content_of(&objects, "object 77"), Err(StoreError::Missing)));
    assert_eq!(names_in(&objects).len(), 300);
}

#[test]
fn an_object_is_replaced_at_once_and_a_broken_copy_goes_on() {
    let p = places();
    let (from, objects) = (Ram::new(), Objects::open(&p.to).unwrap());
    from.put("large", "old");
    let into = Path::new("stripe");
    push_between(&from, Path::new("large"), &objects, into, Options::default()).clean();
    from.put("large", noise(20 << 20, 3));
    let broken = Conditions { break_after: Some(15), arrived: true, ..Conditions::default() };
    assert!(push_under(broken, &from, Path::new("large"), &objects, into, Options::default()).client.is_err());
    assert_eq!(content_of(&objects, "stripe").unwrap(), b"old");
    assert_eq!(names_in(&objects), [b"stripe"]);
    let report = push_between(&from, Path::new("large"), &objects, into, Options::default()).clean();
    assert!(report.resumed > Bytes::mib(5), "{:?}", report.resumed);
    assert_eq!(content_of(&objects, "stripe").unwrap(), noise(20 << 20, 3));
    assert_nothing_left(&p.to);
}

#[test]
fn what_is_no_object_is_refused() {
    let p = places();
    let objects = Objects::open(&p.to).unwrap();
    for (name, error) in [
        ("a/b", StoreError::OutsideRoot),
        ("..", StoreError::OutsideRoot),
        (".haul-01234567", StoreError::Reserved),
        ("a\0b", StoreError::OutsideRoot),
    ] {
        let spelled = WirePath(name.as_bytes().to_vec());
        assert_eq!(objects.stat(At::Top(&spelled)).unwrap_err(), error, "{name}");
        assert_eq!(objects.remove(name.as_bytes()).unwrap_err(), error, "{name}");
        let refused = objects.destination(&spelled, false).map(drop);
        assert_eq!(refused, Err(Stop::Destination { path: spelled, why: error.into() }), "{name}");
    }
    assert!(matches!(content_of(&objects, "not there"), Err(StoreError::Missing)));

    let tree = p.from.join("tree");
    write(tree.join("sub/inside"), "content");
    write(tree.join("object"), "content");
    std::os::unix::fs::symlink("object", tree.join("link")).unwrap();
    let report = push_between(&Local::own(), &tree.join("."), &objects, Path::new(""), recursive()).partial();
    // The directory and the link; what is in the directory is not named one by one.
    assert_eq!((report.files, report.problem_count), (1, 2), "{:?}", report.problems);
    assert!(report.problems.iter().all(|problem| problem.why == StoreError::UNSUPPORTED.into()), "{:?}", report.problems);
    assert_eq!(names_in(&objects), [b"object"]);
    assert_nothing_left(&p.to);
}

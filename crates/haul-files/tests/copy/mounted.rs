//! Another file system mounted inside the destination: names there cannot come from the stage by a rename.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use haul_files::{CopyError, Options, Stop};
use haul_ramstore::memory::Conditions;
use haul_units::Bytes;

use crate::fixture::*;
use crate::resume::stage;

/// A tree of which `sub` will meet another file system.
fn tree(root: &Path) {
    write(root.join("plain"), noise(1000, 1));
    write(root.join("sub/small"), noise(5000, 2));
    write(root.join("sub/large"), noise(6 << 20, 3));
    write(root.join("sub/deep/er/file"), noise(70_000, 4));
    let sparse = fs::File::create(root.join("sub/sparse")).unwrap();
    sparse.set_len(8 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"data", 4 << 20).unwrap();
    fs::set_permissions(root.join("sub/small"), fs::Permissions::from_mode(0o4751)).unwrap();
    symlink("../plain", root.join("sub/link")).unwrap();
    fs::hard_link(root.join("sub/small"), root.join("sub/zzz")).unwrap();
}

fn nothing_left_anywhere(directory: &Path) {
    for path in snapshot(directory).into_keys() {
        assert!(!path.to_string_lossy().contains(".haul-"), "{} is left", path.display());
    }
}

#[test]
fn everything_gets_there_and_again_over_what_is_there() {
    let p = places();
    let source = p.from.join("tree");
    tree(&source);
    fs::create_dir_all(p.to.join("tree/sub")).unwrap();
    let Some(_mounted) = Mounted::tmpfs(&p.to.join("tree/sub"), "size=64m") else { return };
    assert_ne!(fs::metadata(&p.to).unwrap().dev(), fs::metadata(p.to.join("tree/sub")).unwrap().dev());
    for seed in 0..2 {
        push_paths(&[&source], &p.to, preserving(), shuffled(seed)).clean();
        assert_same(&source, &p.to.join("tree"));
        nothing_left_anywhere(&p.to);
    }
    assert!(fs::metadata(p.to.join("tree/sub/sparse")).unwrap().blocks() < 1000, "holes stay");
}

#[test]
fn a_hard_link_across_becomes_a_copy() {
    let p = places();
    let source = p.from.join("tree");
    write(source.join("a"), "content");
    fs::create_dir(source.join("sub")).unwrap();
    fs::hard_link(source.join("a"), source.join("sub/b")).unwrap();
    fs::create_dir_all(p.to.join("tree/sub")).unwrap();
    let Some(_mounted) = Mounted::tmpfs(&p.to.join("tree/sub"), "size=8m") else { return };
    push_paths(&[&source], &p.to, preserving(), shuffled(1)).clean();
    assert_eq!(fs::read(p.to.join("tree/a")).unwrap(), b"content");
    assert_eq!(fs::read(p.to.join("tree/sub/b")).unwrap(), b"content");
    nothing_left_anywhere(&p.to);
}

#[test]
fn full_it_stops_clearly_and_goes_on_when_there_is_room() {
    let p = places();
    let source = p.from.join("tree");
    tree(&source);
    fs::create_dir_all(p.to.join("tree/sub")).unwrap();
    let Some(_mounted) = Mounted::tmpfs(&p.to.join("tree/sub"), "size=2m") else { return };
    let outcome = push_paths(&[&source], &p.to, preserving(), shuffled(1));
    assert!(matches!(outcome.client, Err(CopyError::Refused(Stop::DestinationFull { .. }))), "{:?}", outcome.client);
    assert!(!p.to.join("tree/sub/large").exists());
    let remounted = Command::new("mount").args(["-o", "remount,size=64m"]).arg(p.to.join("tree/sub")).status();
    assert!(remounted.unwrap().success());
    let again = push_paths(&[&source], &p.to, preserving(), shuffled(2));
    assert!(again.bytes < 2 << 20, "the large file had arrived: {} sent", again.bytes);
    again.clean();
    assert_same(&source, &p.to.join("tree"));
    nothing_left_anywhere(&p.to);
}

#[test]
fn read_only_it_is_a_problem_of_its_files() {
    let p = places();
    let source = p.from.join("tree");
    tree(&source);
    fs::create_dir_all(p.to.join("tree/sub")).unwrap();
    let Some(_mounted) = Mounted::tmpfs(&p.to.join("tree/sub"), "ro") else { return };
    let report = push_paths(&[&source], &p.to, recursive(), shuffled(1)).partial();
    assert!(report.problem_count >= 4, "{:?}", report.problems);
    assert_eq!(fs::read(p.to.join("tree/plain")).unwrap(), noise(1000, 1));
    nothing_left_anywhere(&p.to);
}

#[test]
fn broken_off_it_goes_on_without_sending_again() {
    let p = places();
    let source = p.from.join("tree");
    tree(&source);
    write(source.join("zlast"), noise(30 << 20, 9));
    fs::create_dir_all(p.to.join("tree/sub")).unwrap();
    let Some(_mounted) = Mounted::tmpfs(&p.to.join("tree/sub"), "size=64m") else { return };
    let mut sent = 0;
    for after in [4, 8, 12] {
        let broken = Conditions { break_after: Some(after), shuffle: 4, seed: after, capacity: 4, arrived: false };
        let outcome = push_paths(&[&source], &p.to, preserving(), broken);
        assert!(outcome.client.is_err());
        sent += outcome.bytes;
    }
    let last = push_paths(&[&source], &p.to, preserving(), shuffled(1));
    let total = (37 << 20) + 80_000;
    assert!(sent + last.bytes < total + (24 << 20), "{sent} and {} of {total}", last.bytes);
    last.clean();
    assert_same(&source, &p.to.join("tree"));
    nothing_left_anywhere(&p.to);
}

#[test]
fn killed_anywhere_it_ends_complete_and_leaves_nothing() {
    let p = places();
    let source = p.from.join("tree");
    tree(&source);
    fs::create_dir_all(p.to.join("tree/sub")).unwrap();
    let Some(_mounted) = Mounted::tmpfs(&p.to.join("tree/sub"), "size=64m") else { return };
    let mut kills = 0;
    for events in [3, 6, 9, 12, 15, 18, 21, 24] {
        let victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "resume::victim"])
            .env("HAUL_TEST_VICTIM", format!("{}|{}|{events}", source.display(), p.to.display()))
            .output()
            .unwrap();
        if victim.status.success() {
            break;
        }
        kills += 1;
    }
    assert!(kills > 1, "{kills} kills");
    push_paths(&[&source], &p.to, preserving(), shuffled(1)).clean();
    assert_same(&source, &p.to.join("tree"));
    nothing_left_anywhere(&p.to);
}

/// The state that a kill between making a file beside its place and its rename leaves.
#[test]
fn what_a_killed_run_left_beside_a_place_goes_and_nothing_else_does() {
    let p = places();
    let file = p.from.join("file");
    write(&file, noise(20 << 20, 1));
    let breaking = Conditions { break_after: Some(15), shuffle: 8, seed: 1, capacity: 8, arrived: false };
    assert!(push_paths(&[&file], &p.to, Options::default(), breaking).client.is_err());
    let stage = stage(&p.to);
    let name = stage.file_name().unwrap().to_str().unwrap().to_owned();
    let victim = p.from.join("outside");
    fs::create_dir(&victim).unwrap();
    let private = |name: &str| {
        write(p.to.join(name).join("f"), "half");
        fs::set_permissions(p.to.join(name), fs::Permissions::from_mode(0o700)).unwrap();
    };
    private(&format!("sub/{name}.77"));
    write(p.to.join("sub/precious"), "x");
    write(victim.join(format!("{name}.78")), "x");
    symlink(&victim, p.to.join("way-out")).unwrap();
    let notes =
        [format!("sub/{name}.77"), "sub/precious".into(), format!("way-out/{name}.78"), format!("../from/outside/{name}.78")];
    for (number, note) in notes.iter().enumerate() {
        symlink(note, stage.join(format!("n{}", 70 + number))).unwrap();
    }
    let report = push_paths(&[&file], &p.to, Options::default(), shuffled(1)).clean();
    assert!(report.resumed > Bytes::ZERO);
    assert!(!p.to.join(&notes[0]).exists() && p.to.join("sub/precious").exists());
    assert!(victim.join(format!("{name}.78")).exists(), "a note leads nowhere outside");
    assert_nothing_left(&p.to);
}

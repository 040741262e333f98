//! Copies that break off, and the next run of the same command.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use haul_files::journal::Record;
use haul_files::protocol::{Entry, Message, ROOT, Request};
use haul_files::store::{Local, Stage as _, Store as _};
use haul_files::{CopyError, Destination, Event, Observer, Options, PushJob, Stop, Verify};
use haul_ramstore::memory::Conditions;
use haul_units::Bytes;
use proptest::prelude::*;

use crate::fixture::*;
use crate::hostile::{file, piece, push_request, pusher_asking};

fn tree(root: &Path) {
    write(root.join("large"), noise(12 << 20, 1));
    write(root.join("larger"), noise((20 << 20) + 5, 2));
    write(root.join("empty"), "");
    for i in 0..400 {
        write(root.join(format!("d{}/{i}", i % 7)), noise(i * 50, 100 + i as u64));
    }
}

fn breaking(after: u64, seed: u64) -> Conditions {
    Conditions { break_after: Some(after), shuffle: 8, seed, capacity: 8, arrived: false }
}

/// In every file that has its name: all of the old content or all of the new.
fn assert_old_or_new(source: &Path, copy: &Path, old: &[u8]) {
    let (source, copy) = (snapshot(source), snapshot(copy));
    let old = *blake3::hash(old).as_bytes();
    for (path, seen) in copy.iter().filter(|(path, _)| !path.starts_with(".haul-")) {
        if let Kind::File { hash, .. } = &seen.kind {
            let new = matches!(&source[path].kind, Kind::File { hash: new, .. } if new == hash);
            assert!(new || *hash == old, "{}", path.display());
        }
    }
}

#[test]
fn broken_anywhere_the_next_run_sends_only_what_is_missing() {
    for after in [0, 1, 2, 5, 9, 14, 20, 26, 32] {
        for pulled in [false, true] {
            let p = places();
            let source = p.from.join("tree");
            tree(&source);
            write(p.to.join("tree/d3/3"), "old");
            write(p.to.join("tree/large"), "old");
            let copy = |conditions| {
                if pulled {
                    pull_paths(&[&source], Destination::Path(p.to.clone()), preserving(), conditions)
                } else {
                    push_paths(&[&source], &p.to, preserving(), conditions)
                }
            };
            let first = copy(breaking(after, after + 1));
            assert!(first.client.is_err() && first.server.is_err());
            assert_old_or_new(&source, &p.to.join("tree"), b"old");
            let second = copy(shuffled(after));
            let total: u64 = (32 << 20) + 5 + (0..400).map(|i| i * 50).sum::<u64>();
            // What was under way when it broke: the blocks in the transport and one in each reader and writer.
            let in_flight = (8 + 4) << 20;
            let bound = total.saturating_sub(first.bytes) + in_flight;
            assert!(second.bytes <= bound + 100_000, "{} of {total} sent, then {}", first.bytes, second.bytes);
            let report = second.clean();
            assert_eq!(report.files + report.skipped_files, 403);
            assert_same(&source, &p.to.join("tree"));
            assert_nothing_left(&p.to);
        }
    }
}

/// The first run has made the directory: the second one goes on in it, and not below it; a third one finds a directory to copy into.
#[test]
fn what_was_to_get_a_new_name_still_gets_it_when_the_run_is_called_again() {
    for (named, pulled) in [("tree", false), ("tree", true), ("tree/.", false), ("tree/.", true)] {
        let p = places();
        let source = p.from.join(named);
        tree(&source);
        let target = p.to.join("new");
        let copy = |conditions| {
            if pulled {
                pull_paths(&[&source], Destination::Path(target.clone()), preserving(), conditions)
            } else {
                push_paths(&[&source], &target, preserving(), conditions)
            }
        };
        let first = copy(breaking(20, 21));
        assert!(first.client.is_err() && first.server.is_err() && target.is_dir());
        let second = copy(shuffled(20));
        let total: u64 = (32 << 20) + 5 + (0..400).map(|i| i * 50).sum::<u64>();
        let bound = total.saturating_sub(first.bytes) + (12 << 20);
        assert!(second.bytes <= bound + AROUND, "{named}, {pulled}: {} of {total} sent, then {}", first.bytes, second.bytes);
        second.clean();
        assert_same(&source, &target);
        assert_nothing_left(&p.to);
        copy(shuffled(22)).clean();
        assert_eq!(target.join("tree").is_dir(), named == "tree", "{named}, {pulled}");
    }
}

/// What goes over the transport besides content: piece tables, and of each block what the cut at a megabyte leaves.
const AROUND: u64 = 100_000;
/// What a sender sends before it knows that something is there already.
const IN_VAIN: u64 = 512 << 10;

/// Cuts a copy after so many blocks and runs it again: the bytes that were sent twice, and blocks that were under way at most.
fn sent_again(after: u64, arrived: bool, pulled: bool) -> u64 {
    let p = places();
    let source = p.from.join("tree");
    tree(&source);
    let copy = |conditions| {
        if pulled {
            pull_paths(&[&source], Destination::Path(p.to.clone()), preserving(), conditions)
        } else {
            push_paths(&[&source], &p.to, preserving(), conditions)
        }
    };
    let first = copy(Conditions { arrived, ..breaking(after, after + 1) });
    assert!(first.client.is_err() && first.server.is_err());
    let second = copy(shuffled(after));
    let sent = first.bytes + second.bytes;
    let total: u64 = (32 << 20) + 5 + (0..400).map(|i| i * 50).sum::<u64>();
    second.clean();
    assert_same(&source, &p.to.join("tree"));
    assert_nothing_left(&p.to);
    sent.saturating_sub(total + 2 * AROUND)
}

#[test]
fn after_a_cut_only_what_was_lost_under_way_is_sent_again() {
    for pulled in [false, true] {
        let in_vain = if pulled { 0 } else { IN_VAIN };
        for after in [0, 1, 2, 3, 5, 9, 14, 20, 27, 32] {
            // Killed with all that is under way: the capacity of the transport.
            let again = sent_again(after, false, pulled);
            assert!(
                again <= after.min(8) * (1 << 20) + in_vain,
                "{again} bytes sent again after {after} blocks, pulled: {pulled}"
            );
            // The sender is killed, and what it has sent arrives all the same.
            let again = sent_again(after, true, pulled);
            assert!(again <= in_vain, "{again} bytes sent again after {after} blocks that arrived, pulled: {pulled}");
        }
    }
}

#[test]
fn a_source_that_changed_between_runs_starts_again() {
    let p = places();
    let file = p.from.join("file");
    write(&file, noise(20 << 20, 1));
    assert!(push_paths(&[&file], &p.to, Options::default(), breaking(15, 1)).client.is_err());
    write(&file, noise(20 << 20, 2));
    // However often it breaks, no part is kept of what nobody has any more.
    assert!(push_paths(&[&file], &p.to, Options::default(), breaking(15, 2)).client.is_err());
    let names = fs::read_dir(stage(&p.to)).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.filter(|name| name.as_encoded_bytes().starts_with(b"p")).count(), 1);
    write(&file, noise(20 << 20, 3));
    let report = push_paths(&[&file], &p.to, Options::default(), shuffled(1)).clean();
    assert_eq!(report.resumed, Bytes::ZERO);
    assert_eq!(fs::read(p.to.join("file")).unwrap(), noise(20 << 20, 3));
    assert_nothing_left(&p.to);
}

/// Kills this process, and so both sides of the copy, at one of the events that either side tells.
struct Deadly(std::sync::atomic::AtomicU64);

impl Observer for Deadly {
    fn event(&self, _event: Event<'_>) {
        if self.0.fetch_sub(1, std::sync::atomic::Ordering::SeqCst) == 1 {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
    }
    fn wants_files(&self) -> bool {
        true
    }
}

/// Not a test by itself: what [`killed_anywhere_and_run_again_it_ends_complete`] runs and kills.
#[test]
fn victim() {
    let Ok(arguments) = std::env::var("HAUL_TEST_VICTIM") else { return };
    let mut arguments = arguments.split('|');
    let (from, to, events) = (arguments.next().unwrap(), arguments.next().unwrap(), arguments.next().unwrap());
    let observer = Deadly(events.parse::<u64>().unwrap().into());
    let job = PushJob { options: preserving(), ..PushJob::new([std::path::PathBuf::from(from)], to) };
    let (here, there) = haul_ramstore::memory::pair(shuffled(1));
    std::thread::scope(|scope| {
        let server = scope.spawn(|| haul_files::serve(there, &account(), &observer, &haul_files::Cancel::new()));
        haul_files::push(here, &job, &observer, &haul_files::Cancel::new()).unwrap();
        server.join().unwrap().unwrap();
    });
}

#[test]
fn killed_anywhere_and_run_again_it_ends_complete() {
    let p = places();
    let source = p.from.join("tree");
    tree(&source);
    write(p.to.join("tree/d3/3"), "old");
    write(p.to.join("tree/large"), "old");
    let mut kills = 0;
    for turn in 0..40_u64 {
        let events = 3 + turn * 29 % 90;
        let victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "resume::victim"])
            .env("HAUL_TEST_VICTIM", format!("{}|{}|{events}", source.display(), p.to.display()))
            .output()
            .unwrap();
        if victim.status.success() {
            break;
        }
        kills += 1;
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&victim.status),
            Some(9),
            "{}",
            String::from_utf8_lossy(&victim.stdout)
        );
        assert_old_or_new(&source, &p.to.join("tree"), b"old");
    }
    assert!(kills > 3, "{kills} kills");
    push_paths(&[&source], &p.to, preserving(), shuffled(1)).clean();
    assert_same(&source, &p.to.join("tree"));
    assert_nothing_left(&p.to);
}

/// The stage of the only copy in a directory.
pub fn stage(directory: &Path) -> std::path::PathBuf {
    find_stage(directory).expect("a stage")
}

fn find_stage(directory: &Path) -> Option<std::path::PathBuf> {
    let mut entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.find(|path| path.file_name().unwrap().as_encoded_bytes().starts_with(b".haul-"))
}

#[test]
fn damage_to_a_part_file_is_found_and_sent_again() {
    let p = places();
    let file = p.from.join("file");
    write(&file, noise(20 << 20, 1));
    assert!(push_paths(&[&file], &p.to, Options::default(), breaking(15, 1)).client.is_err());
    let part =
        fs::read_dir(stage(&p.to)).unwrap().map(|entry| entry.unwrap().path()).find(|path| !path.ends_with("journal")).unwrap();
    let mut bytes = fs::read(&part).unwrap();
    // As a power failure leaves it: some pages were never written.
    for page in bytes.chunks_mut(4096).step_by(300) {
        page.fill(0);
    }
    fs::write(&part, bytes).unwrap();
    push_paths(&[&file], &p.to, Options::default(), shuffled(1)).clean();
    assert_eq!(fs::read(p.to.join("file")).unwrap(), noise(20 << 20, 1));
}

#[test]
fn what_is_in_place_gets_what_the_next_run_is_to_keep() {
    let p = places();
    let small = p.to.join("small");
    let entry = || Entry { mode: 0o666, ..file(1, ROOT, b"small", 3) };
    let entries = || Message::Entries(vec![entry(), file(2, ROOT, b"large", 3 << 20)]);
    let request = Request { options: recursive(), ..push_request(&p.to, false) };
    let (first, _) = pusher_asking(request, |peer| {
        peer.say(&entries());
        peer.block(&[piece(1, 0, b"abc", true)], b"abc");
        peer.block(&[piece(2, 0, b"abc", false)], b"abc");
        wait_until(|| small.exists());
        peer.link.transport.kill();
    });
    assert!(first.is_err());
    let seen =
        || fs::metadata(&small).map(|there| (there.mode() & 0o7777, there.mtime(), there.mtime_nsec(), there.ino())).unwrap();
    let before = seen();
    assert!(before.0 != 0o666 && before.1 > 1, "{before:?}");
    // Twice: what it has got is what the run after that knows it by.
    for _ in 0..2 {
        let (again, said) = pusher_asking(push_request(&p.to, false), |peer| {
            peer.say(&entries());
            while !matches!(peer.hear(), Message::Wants(_)) {}
            peer.link.transport.kill();
        });
        assert!(again.is_err() && !said.iter().any(|said| matches!(said, Message::Problem(_))));
        assert_eq!(seen(), (0o666, 1, 2, before.3));
    }
}

#[test]
fn without_hashes_a_copy_goes_on_while_the_machine_runs() {
    let p = places();
    let file = p.from.join("file");
    write(&file, noise(20 << 20, 1));
    let options = Options { verify: Verify::Off, ..Options::default() };
    assert!(push_paths(&[&file], &p.to, options, breaking(15, 1)).client.is_err());
    let report = push_paths(&[&file], &p.to, options, shuffled(1)).clean();
    assert!(report.resumed > Bytes::mib(3), "{:?}", report.resumed);
    assert_eq!(fs::read(p.to.join("file")).unwrap(), noise(20 << 20, 1));
}

/// A kill between the making of a link and its rename leaves it in the stage, and the journal knows nothing of it.
#[test]
fn links_that_a_killed_run_left_are_not_in_the_way() {
    let p = places();
    let tree = p.from.join("tree");
    write(tree.join("large"), noise(20 << 20, 1));
    fs::hard_link(tree.join("large"), tree.join("the same")).unwrap();
    for i in 0..20 {
        std::os::unix::fs::symlink("large", tree.join(format!("link{i}"))).unwrap();
    }
    assert!(push_paths(&[&tree], &p.to, recursive(), breaking(15, 1)).client.is_err());
    let stage = stage(&p.to);
    for number in 1..200 {
        let _ = std::os::unix::fs::symlink("anywhere", stage.join(format!("p{number}")));
    }
    push_paths(&[&tree], &p.to, recursive(), shuffled(1)).clean();
    assert_same_content(&tree, &p.to.join("tree"));
    assert_nothing_left(&p.to);
}

#[test]
fn no_resume_ignores_and_removes_what_was_left() {
    let p = places();
    let file = p.from.join("file");
    write(&file, noise(20 << 20, 1));
    assert!(push_paths(&[&file], &p.to, Options::default(), breaking(15, 1)).client.is_err());
    let outcome = push_paths(&[&file], &p.to, Options { resume: false, ..Options::default() }, shuffled(1));
    assert!(outcome.bytes > 20 << 20);
    outcome.clean();
    assert_nothing_left(&p.to);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn broken_again_and_again_it_ends_complete(breaks in prop::collection::vec(0u64..12, 1..8), seed in any::<u64>(), cut in any::<prop::sample::Index>()) {
        let p = places();
        let source = p.from.join("tree");
        tree(&source);
        for (i, &after) in breaks.iter().enumerate() {
            let outcome = push_paths(&[&source], &p.to, preserving(), breaking(after, seed ^ i as u64));
            if outcome.client.is_ok() {
                break;
            }
            // A connection that broke at its first words leaves none.
            if i == 0 && let Some(stage) = find_stage(&p.to) {
                // A journal that a crash cut off anywhere.
                let journal = fs::File::options().write(true).open(stage.join("journal")).unwrap();
                let length = journal.metadata().unwrap().len();
                journal.set_len(cut.index(length as usize + 1) as u64).unwrap();
            }
        }
        push_paths(&[&source], &p.to, preserving(), shuffled(seed)).clean();
        assert_same(&source, &p.to.join("tree"));
        assert_nothing_left(&p.to);
    }
}

#[test]
fn the_same_copy_twice_at_once_is_refused() {
    struct Second<'a>(&'a PushJob, std::sync::Mutex<Option<Outcome>>);
    impl Observer for Second<'_> {
        fn event(&self, event: Event<'_>) {
            let mut second = self.1.lock().unwrap();
            if matches!(event, Event::FileStarted { .. }) && second.is_none() {
                // The client reads before the server has made its stage.
                let locked = || {
                    find_stage(&self.0.destination)
                        .is_some_and(|stage| fs::read(stage.join("journal")).is_ok_and(|journal| !journal.is_empty()))
                };
                wait_until(locked);
                *second = Some(run_push(self.0, &account(), Conditions::default(), &haul_files::Silent, |_| {}));
            }
        }
        fn wants_files(&self) -> bool {
            true
        }
    }
    let p = places();
    write(p.from.join("file"), noise(3 << 20, 1));
    let job = PushJob::new([p.from.join("file")], &p.to);
    let observer = Second(&job, std::sync::Mutex::default());
    // Told to the receiver: it has its stage when it starts a file, which a sender that begins early does not know.
    let (here, there) = haul_ramstore::memory::pair(Conditions::default());
    std::thread::scope(|scope| {
        let server = scope.spawn(|| haul_files::serve(there, &account(), &observer, &haul_files::Cancel::new()));
        haul_files::push(here, &job, &haul_files::Silent, &haul_files::Cancel::new()).unwrap();
        server.join().unwrap().unwrap();
    });
    let second = observer.1.into_inner().unwrap().unwrap();
    assert!(matches!(second.client, Err(CopyError::Refused(Stop::Busy { .. }))), "{:?}", second.client);
    assert_nothing_left(&p.to);
}

#[test]
fn a_disk_without_inodes_stops_clearly_and_goes_on_when_there_are_some() {
    let p = places();
    let Some(_mounted) = Mounted::tmpfs(&p.to, "size=64m,nr_inodes=40") else { return };
    let source = p.from.join("tree");
    fs::create_dir(&source).unwrap();
    for number in 0..100 {
        write(source.join(format!("{number:03}")), noise(5000, number));
    }
    let options = || Options { recursive: true, ..Options::default() };
    let outcome = push_paths(&[&source], &p.to, options(), shuffled(1));
    assert!(matches!(outcome.client, Err(CopyError::Refused(Stop::DestinationFull { .. }))), "{:?}", outcome.client);
    assert!(Command::new("mount").args(["-o", "remount,nr_inodes=1000"]).arg(&p.to).status().unwrap().success());
    let again = push_paths(&[&source], &p.to, options(), shuffled(2)).clean();
    // Some may have been finished before there were none left.
    assert_eq!(again.files + again.skipped_files, 100, "{again:?}");
    for number in 0..100 {
        assert_eq!(fs::read(p.to.join(format!("tree/{number:03}"))).unwrap(), noise(5000, number), "{number}");
    }
    assert_nothing_left(&p.to);
}

#[test]
fn a_full_disk_stops_clearly_and_resumes_when_there_is_room() {
    let p = places();
    let Some(_mounted) = Mounted::tmpfs(&p.to, "size=8m") else { return };
    write(p.from.join("file"), noise(12 << 20, 1));
    let outcome = push_paths(&[&p.from.join("file")], &p.to, Options::default(), shuffled(1));
    assert!(matches!(outcome.client, Err(CopyError::Refused(Stop::DestinationFull { .. }))), "{:?}", outcome.client);
    assert!(matches!(outcome.server, Err(CopyError::Stopped(Stop::DestinationFull { .. }))), "{:?}", outcome.server);
    assert!(!p.to.join("file").exists());
    assert!(Command::new("mount").args(["-o", "remount,size=40m"]).arg(&p.to).status().unwrap().success());
    let report = push_paths(&[&p.from.join("file")], &p.to, Options::default(), shuffled(2)).clean();
    assert!(report.resumed > Bytes::mib(3), "{:?}", report.resumed);
    assert_eq!(fs::read(p.to.join("file")).unwrap(), noise(12 << 20, 1));
    assert_nothing_left(&p.to);
}

/// A record that crosses a block of a full disk is written in part. What is recorded later, when there is room again, is not lost behind it.
#[test]
fn a_record_that_has_no_room_leaves_nothing_of_it() {
    let p = places();
    let Some(_mounted) = Mounted::tmpfs(&p.to, "size=64k") else { return };
    let store = Local::own();
    let place = store.destination(&p.to.as_path().into(), false).unwrap();
    let open = || store.stage(&place, &[7; 32], true, &haul_files::Cancel::new()).unwrap();
    let (stage, _) = open();
    let record = |part| Record::Range { part, offset: 0, length: 1, hash: [part as u8; 32] };
    let full = p.to.join("full");
    assert!(fs::write(&full, vec![0; 1 << 20]).is_err(), "it fills the disk");
    let failed = (1..1000).map(|part| (part, stage.append(&[record(part)]))).find(|(_, result)| result.is_err()).unwrap();
    assert!(failed.0 > 10 && failed.1 == Err(rustix::io::Errno::NOSPC.into()), "{failed:?}");
    fs::remove_file(full).unwrap();
    stage.append(&[record(1000)]).unwrap();
    drop(stage);
    let (_, records) = open();
    assert_eq!(records.len() as u64, 1 + failed.0, "the head, what went before, and what came later");
    assert_eq!(records.last(), Some(&record(1000)));
}

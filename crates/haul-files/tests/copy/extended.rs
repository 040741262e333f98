//! Extended attributes and ACLs: beside rsync, over interrupts, to peers and stores without them, and from peers that lie.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use haul_files::protocol::{ATTRIBUTES, Entry, Extended, Hello, Kind, Message, ROOT, Request, Term, VERSION, What};
use haul_files::{
    Access, Cancel, CopyError, Export, Keep, Note, Options, Ownership, PushJob, Report, Silent, Stop, Why, push, push_from,
    serve, serve_store,
};
use haul_ramstore::memory::{Conditions, pair};
use haul_xattrs::{Attribute, MAX_BYTES, MAX_VALUE, Reach, Wanted, apply, read};
use rustix::fs::{Mode, OFlags, open};

use crate::fixture::Kind as Thing;
use crate::fixture::*;
use crate::hostile::{Peer, directory, file, misbehaved, piece};
use crate::rsync::{Chance, Heard, copy_of, grown, rsync_with};

const BOTH: Keep = Keep { xattrs: true, acls: true };
const XATTRS: Keep = Keep { xattrs: true, acls: false };
const TREES: u64 = 100;

fn of(name: &str, value: &[u8]) -> Attribute {
    Attribute { name: name.into(), value: value.to_vec() }
}

/// Owner rw, a user, group r, mask, others nothing.
fn acl(user: u32, mask: u16) -> Vec<u8> {
    let mut value = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in
        [(1_u16, 6_u16, u32::MAX), (2, 4, user), (4, 4, u32::MAX), (0x10, mask, u32::MAX), (0x20, 0, u32::MAX)]
    {
        value.extend(tag.to_le_bytes());
        value.extend(permissions.to_le_bytes());
        value.extend(id.to_le_bytes());
    }
    value
}

fn give(path: &Path, list: &[Attribute]) {
    let named = open(path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty()).unwrap();
    apply(named, &Wanted { list, keep: BOTH, reach: reach(), mode: None, writes: true }).unwrap();
}

fn has(path: &Path) -> Vec<Attribute> {
    read(open(path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty()).unwrap(), BOTH, reach()).unwrap()
}

fn reach() -> Reach {
    if is_root() { Reach::All } else { Reach::User }
}

/// A file system with both, which a test needs.
fn can() -> bool {
    let dir = temporary();
    fs::write(dir.path().join("f"), "").unwrap();
    let named = open(dir.path().join("f"), OFlags::PATH, Mode::empty()).unwrap();
    let list = [of("system.posix_acl_access", &acl(1, 6)), of("user.a", b"")];
    let can = apply(named, &Wanted { list: &list, keep: BOTH, reach: reach(), mode: None, writes: true }).is_ok();
    if !can {
        skip::skip("the file system of the temporary directory has no attributes and ACLs");
    }
    can
}

/// Gives everything in a tree attributes and ACLs by chance.
fn dress(chance: &mut Chance, root: &Path, acls: bool) {
    for (path, seen) in snapshot(root) {
        let mut list = Vec::new();
        let (is_link, is_directory) = (matches!(seen.kind, Thing::Symlink(_)), matches!(seen.kind, Thing::Directory));
        let mut draw = |list: &mut Vec<_>, name: &str| {
            if chance.below(2) == 0 {
                list.push(of(name, &vec![b'0' + chance.below(2) as u8; [0, 1, 300][chance.below(3) as usize]]));
            }
        };
        if is_root() {
            draw(&mut list, "security.haul");
        }
        let mut user = Vec::new();
        if !is_link {
            draw(&mut user, "user.a");
            draw(&mut user, "user.b");
        }
        if is_root() {
            draw(&mut list, "trusted.t");
        }
        list.extend(user);
        if acls && !is_link && chance.below(2) == 0 {
            list.push(of("system.posix_acl_access", &acl(1 + chance.below(2) as u32, 4 + 2 * chance.below(2) as u16)));
        }
        if acls && is_directory && chance.below(2) == 0 {
            list.push(of("system.posix_acl_default", &acl(1 + chance.below(2) as u32, 6)));
        }
        list.sort_by(|one, other| one.name.cmp(&other.name));
        give(&root.join(path), &list);
    }
}

type Dressed = BTreeMap<PathBuf, (Thing, u32, Vec<Attribute>)>;

fn dressed(root: &Path) -> Dressed {
    let of = |(path, seen): (PathBuf, Seen)| {
        let has = has(&root.join(&path));
        (path, (seen.kind, seen.mode, has))
    };
    snapshot(root).into_iter().map(of).collect()
}

/// What rsync says has only other attributes: of files, or of what else there is.
fn updates(lines: &[String], acls: bool) -> BTreeSet<(PathBuf, &'static str)> {
    let of = |line: &String| {
        let (how, name) = line.split_once(' ')?;
        let differs = |at: usize, flag: &str| how.get(at..=at) == Some(flag);
        let mode = acls && how.starts_with(".f") && differs(5, "p");
        let is_one = how.starts_with('.') && (differs(10, "x") || differs(9, "a") || mode);
        let name = name.split(" -> ").next()?.trim_end_matches('/');
        is_one.then(|| (PathBuf::from(if name == "." { "" } else { name }), "attributes"))
    };
    lines.iter().filter_map(of).collect()
}

/// On the same trees the same is there afterwards, on files that were the same too, and a dry run has said it.
#[test]
fn attributes_and_acls_become_those_that_rsync_makes() {
    if !can() {
        return;
    }
    let mut kept = 0;
    for (words, keep) in [("-rlptX", XATTRS), ("-rlptXA", BOTH)] {
        for seed in 0..TREES {
            let places = || {
                let p = grown(seed);
                let mut chance = Chance::of(seed ^ 0xa11);
                dress(&mut chance, &p.from, keep.acls);
                dress(&mut chance, &p.to, keep.acls);
                p
            };
            let (ours, theirs) = (places(), places());
            let options = Options { recursive: true, preserve: true, skip_same: true, keep, ..Options::default() };
            let pulled = seed % 2 == 0;
            let heard = Heard::default();
            let before = dressed(&ours.to);
            copy_of(&ours, Options { dry_run: true, ..options }, &haul_files::Filter::default(), pulled, &heard);
            assert_eq!(dressed(&ours.to), before, "{words}, seed {seed}: a dry run writes nothing");
            copy_of(&ours, options, &haul_files::Filter::default(), pulled, &Silent);
            let Some((lines, true)) = rsync_with(&theirs, &[words]) else { return };
            let said: BTreeSet<_> = heard.below(&ours.to).into_iter().filter(|(_, what)| *what == "attributes").collect();
            assert_eq!(said, updates(&lines, keep.acls), "{words}, seed {seed}, {lines:#?}");
            kept += said.len();
            let seen = |root: &Path| {
                let mut seen = dressed(root);
                if !keep.acls {
                    // A file that stays keeps its mode here, where rsync's -p sets it.
                    for (_, mode, _) in seen.values_mut() {
                        *mode = 0;
                    }
                }
                seen
            };
            let (ours_seen, theirs_seen) = (seen(&ours.to), seen(&theirs.to));
            for (path, seen) in &ours_seen {
                assert_eq!(Some(seen), theirs_seen.get(path), "{words}, seed {seed}: {}", path.display());
            }
            assert_eq!(ours_seen.len(), theirs_seen.len(), "{words}, seed {seed}");
            let again = Heard::default();
            copy_of(&ours, Options { dry_run: true, ..options }, &haul_files::Filter::default(), pulled, &again);
            assert!(again.0.lock().unwrap().is_empty(), "{words}, seed {seed}: nothing is left to do");
        }
    }
    assert!(kept as u64 > TREES, "{kept} things that had only other attributes");
}

/// -A implies modes, and nothing else that -p does; what is not asked for is not touched.
#[test]
fn an_acl_brings_its_mode_and_no_time() {
    if !can() {
        return;
    }
    let p = places();
    write(p.from.join("f"), "f");
    write(p.to.join("f"), "old");
    fs::set_permissions(p.from.join("f"), fs::Permissions::from_mode(0o604)).unwrap();
    give(&p.from.join("f"), &[of("system.posix_acl_access", &acl(1, 6)), of("user.a", b"1")]);
    let keep = Keep { xattrs: false, acls: true };
    push_paths(&[&p.from.join("f")], &p.to, Options { keep, ..Options::default() }, shuffled(1)).clean();
    assert_eq!(has(&p.to.join("f")), has(&p.from.join("f"))[..1]);
    let (from, to) = (snapshot(&p.from), snapshot(&p.to));
    let name = Path::new("f");
    assert_eq!((to[name].mode, to[name].mtime == from[name].mtime), (0o660, false));
}

/// A newer file stays as it is, as with rsync's -u; one that an interrupted copy has in place already gets what it lacks, and so does what it has whole and not named.
#[test]
fn a_newer_file_keeps_its_own_and_a_copy_that_goes_on_brings_them() {
    if !can() {
        return;
    }
    let p = places();
    for name in ["old", "new"] {
        write(p.from.join(name), name);
        write(p.to.join(name), name);
        give(&p.from.join(name), &[of("user.a", b"1")]);
    }
    let now = fs::metadata(p.to.join("new")).unwrap().modified().unwrap();
    fs::File::options()
        .write(true)
        .open(p.from.join("new"))
        .unwrap()
        .set_modified(now - std::time::Duration::from_secs(9))
        .unwrap();
    fs::File::options()
        .write(true)
        .open(p.from.join("old"))
        .unwrap()
        .set_modified(now + std::time::Duration::from_secs(9))
        .unwrap();
    let options = Options { update: true, keep: XATTRS, ..preserving() };
    let sources = [&*p.from.join("new"), &*p.from.join("old")];
    assert_eq!(push_paths(&sources, &p.to, options, shuffled(1)).clean().newer_files, 1);
    assert_eq!((has(&p.to.join("new")).len(), has(&p.to.join("old")).len()), (0, 1));

    for after in [1, 5, 12, 24] {
        let p = places();
        write(p.from.join("large"), noise(12 << 20, 1));
        write(p.from.join("larger"), noise(14 << 20, 2));
        for i in 0..40 {
            write(p.from.join(format!("{i}")), noise(i * 50, 100 + i as u64));
        }
        for (path, _) in snapshot(&p.from) {
            give(&p.from.join(&path), &[of("user.a", path.as_os_str().as_encoded_bytes())]);
        }
        let breaking = Conditions { break_after: Some(after), shuffle: 8, seed: after, capacity: 8, arrived: false };
        assert!(push_paths(&[&p.from], &p.to, preserving(), breaking).client.is_err(), "without attributes, and broken");
        push_paths(&[&p.from], &p.to, Options { keep: XATTRS, ..preserving() }, shuffled(1)).clean();
        assert_eq!(dressed(&p.to.join("from")), dressed(&p.from), "broken after {after}");
    }
}

/// A client of an export has no rights but those of `user`, whoever serves it; that is said once.
#[test]
fn a_client_of_an_export_gets_and_gives_those_of_users_alone() {
    if !can() || !is_root() {
        return;
    }
    let p = places();
    for name in ["f", "d/g"] {
        write(p.from.join(name), "content");
        give(
            &p.from.join(name),
            &[
                of("security.capability", b"\x01\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
                of("trusted.t", b"1"),
                of("user.a", b"1"),
            ],
        );
    }
    symlink("f", p.from.join("l")).unwrap();
    give(&p.from.join("l"), &[of("trusted.t", b"1")]);
    let export = |path: &Path| Export { name: "x".into(), path: path.into(), writable: true, ownership: Ownership::Mask };
    let options = Options { keep: BOTH, ..recursive() };
    let job = PushJob { options, ..PushJob::new([p.from.join(".")], "x") };
    let report = run_push(&job, &Access::Exports(vec![export(&p.to)]), shuffled(1), &Silent, |_| {}).clean();
    assert_eq!(report.notes.iter().filter(|note| **note == Note::AttributesNotKept).count(), 1, "{:?}", report.notes);
    for name in ["f", "d/g"] {
        assert_eq!(has(&p.to.join(name)), [of("user.a", b"1")], "{name}");
    }
    assert_eq!(has(&p.to.join("l")), []);
    let q = places();
    let access = Access::Exports(vec![export(&p.from)]);
    let report =
        run_pull(&[Path::new("x/f")], haul_files::Destination::Path(q.to.clone()), options, &access, shuffled(1)).clean();
    assert_eq!((has(&q.to.join("f")), report.notes.len()), (vec![of("user.a", b"1")], 0));
    // Who logged in as root has root's.
    push_paths(&[&p.from.join("f")], &q.to, options, shuffled(1)).clean();
    assert_eq!(has(&q.to.join("f")), has(&p.from.join("f")));
    assert_eq!(has(&q.to.join("f")).len(), 3);
}

/// A push of `keep` to a server with these features.
fn pushed_to(features: u64, keep: Keep) -> Result<Report, CopyError> {
    let p = places();
    write(p.from.join("f"), "f");
    let (here, there) = pair(Conditions::default());
    let job = PushJob { options: Options { keep, ..Options::default() }, ..PushJob::new([p.from.join("f")], &p.to) };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut peer = Peer { link: there };
            peer.say(&Message::Hello(Hello { version: VERSION, features }));
            peer.say(&Message::Start { wants: false });
            peer.listen();
        });
        push(here, &job, &Silent, &Cancel::new())
    })
}

#[test]
fn a_peer_or_store_without_them_is_named() {
    for keep in [XATTRS, Keep { xattrs: false, acls: true }] {
        let lacks = pushed_to(Hello::ours().features & !ATTRIBUTES, keep);
        assert!(matches!(lacks, Err(CopyError::PeerLacks("keep extended attributes and ACLs"))), "{lacks:?}");
    }
    let p = places();
    write(p.from.join("f"), "f");
    let ram = haul_ramstore::Ram::new();
    let options = Options { keep: XATTRS, ..Options::default() };
    let job = PushJob { options, ..PushJob::new([p.from.join("f")], "") };
    let (here, there) = pair(Conditions::default());
    let transport = here.transport.clone();
    let (client, server) = std::thread::scope(|scope| {
        let server = scope.spawn(|| serve_store(there, &ram, &Silent, &Cancel::new()));
        let client = push(here, &job, &Silent, &Cancel::new());
        transport.kill();
        (client, server.join().unwrap())
    });
    let said = |error: Option<CopyError>| match error {
        Some(CopyError::Refused(Stop::Unavailable(why)) | CopyError::Stopped(Stop::Unavailable(why))) => why.to_string(),
        other => panic!("{other:?}"),
    };
    let why = "the store in memory keeps no extended attributes and no ACLs (-X, -A)";
    assert_eq!((said(client.err()), said(server.err())), (why.to_owned(), why.to_owned()));
    let (here, _there) = pair(Conditions::default());
    assert_eq!(said(push_from(here, &ram, &job, &Silent, &Cancel::new()).err()), why);
}

/// A client that pushes with attributes, and what the server made of it.
fn pusher(to: &Path, keep: Option<Keep>, act: impl FnOnce(&mut Peer)) -> Result<Report, CopyError> {
    let (here, there) = pair(Conditions { capacity: 10_000, ..Conditions::default() });
    std::thread::scope(|scope| {
        let line = here.transport.clone();
        let server = scope.spawn(move || {
            let served = serve(there, &account(), &Silent, &Cancel::new());
            line.kill();
            served
        });
        let mut peer = Peer { link: here };
        peer.say(&Message::Hello(Hello::ours()));
        if let Some(keep) = keep {
            peer.say(&Message::Terms(vec![Term::Keep(keep)]));
        }
        let what = What::Push { destination: to.into(), sources: 1, stream: false, early: false };
        peer.say(&Message::Request(Request { what, options: preserving(), job: [7; 32] }));
        act(&mut peer);
        peer.listen();
        server.join().unwrap()
    })
}

fn whole(peer: &mut Peer, entries: Vec<Entry>, content: &[u8]) {
    let files: Vec<_> = entries.iter().filter(|entry| matches!(entry.kind, Kind::File { .. })).map(|entry| entry.id).collect();
    peer.say(&Message::Entries(entries));
    for id in files {
        peer.block(&[piece(id, 0, content, true)], content);
    }
    peer.say(&Message::ScanDone);
    peer.finish();
}

#[test]
fn lies_about_attributes_are_refused() {
    let list = |id: u64, list: Vec<Attribute>| Extended { id, list };
    let a = || vec![of("user.a", b"1")];
    let big = |id: u64| list(id, (0..15).map(|i| of(&format!("user.{i:02}"), &vec![0; MAX_VALUE])).collect());
    let cases: Vec<(Option<Keep>, Vec<Extended>, &str)> = vec![
        (None, vec![list(1, a())], "a message that no sender sends"),
        (Some(Keep::NONE), vec![list(1, a())], "a message that no sender sends"),
        (Some(BOTH), vec![list(1, a()), list(1, a())], "attributes of the same thing twice"),
        (Some(BOTH), vec![list(7, a())], "attributes of nothing"),
        (Some(BOTH), vec![list(1, vec![of("system.x", b"1")])], "attributes that cannot be"),
        (Some(BOTH), vec![list(1, vec![of("user.a", b"1"), of("user.a", b"1")])], "attributes that cannot be"),
        (Some(BOTH), vec![list(1, vec![of("system.posix_acl_access", b"nonsense")])], "attributes that cannot be"),
        (Some(XATTRS), vec![list(1, vec![of("system.posix_acl_access", &acl(1, 6))])], "attributes that cannot be"),
        (Some(BOTH), (1..=3).map(big).collect(), "more attributes than can be remembered"),
        (
            Some(BOTH),
            (1..=(2 * MAX_BYTES as u64) / 64 + 1).map(|id| list(id, vec![])).collect(),
            "more attributes than can be remembered",
        ),
    ];
    for (keep, lists, what) in cases {
        let p = places();
        let result = pusher(&p.to, keep, |peer| {
            for list in lists {
                peer.say(&Message::Attributes(vec![list]));
            }
            whole(peer, vec![file(1, ROOT, b"f", 1)], b"f");
        });
        assert_eq!(misbehaved(result), what);
        // Of a file that was announced with nothing wrong the content may have come by then.
        assert!(what == "attributes of nothing" || !p.to.join("f").exists(), "{what}");
    }
}

/// What the system does not take is a problem of the thing, which is there; what was not said of one leaves it alone.
#[test]
fn what_cannot_be_set_is_named_and_the_rest_is_there() {
    if !can() {
        return;
    }
    let p = places();
    write(p.to.join("d/old"), "old");
    give(&p.to.join("d"), &[of("user.mine", b"1")]);
    // An ACL without the entries that it must have.
    let short = acl(1, 6)[..12].to_vec();
    let result = pusher(&p.to, Some(BOTH), |peer| {
        let list = vec![of("system.posix_acl_access", &short), of("user.a", b"1")];
        peer.say(&Message::Attributes(vec![Extended { id: 2, list }]));
        whole(peer, vec![directory(1, ROOT, b"d"), file(2, 1, b"f", 1)], b"f");
    });
    let report = result.unwrap();
    let [problem] = &*report.problems else { panic!("{:?}", report.problems) };
    assert!(matches!(&problem.why, Why::Attribute { name, .. } if name.0 == b"system.posix_acl_access"), "{problem}");
    assert!(problem.to_string().contains("d/f: attribute system.posix_acl_access: "), "{problem}");
    assert_eq!((fs::read(p.to.join("d/f")).unwrap(), has(&p.to.join("d/f"))), (b"f".to_vec(), vec![of("user.a", b"1")]));
    assert_eq!(has(&p.to.join("d")), [of("user.mine", b"1")]);
}

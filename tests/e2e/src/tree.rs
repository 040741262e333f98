//! Trees to copy, and what can be said about a tree: every name, type, byte and time stamp.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use crate::random::Random;

/// All that must be the same at both ends of a copy with `-rp`.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    kind: Kind,
    mode: u32,
    /// Nanoseconds since 1970. Zero where the copy was made without `-p`.
    modified_ns: i128,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Directory,
    File {
        size: u64,
        hash: blake3::Hash,
        /// First name, in order, of those that share the inode; its own if it has only one.
        same_as: PathBuf,
    },
    Link(PathBuf),
    Other,
}

/// How much of the metadata a comparison looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exactness {
    /// Names, types, content, links: what any copy keeps.
    Content,
    /// Modes and times too: what `-p` keeps.
    Everything,
}

/// Panics, with the differences, unless both trees are the same.
#[track_caller]
pub fn assert_same(expected: &Path, found: &Path, exactness: Exactness) {
    let differences = differences(expected, found, exactness);
    let shown: Vec<_> = differences.iter().take(20).map(String::as_str).collect();
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), shown.join("\n"));
}

/// What is not the same in two trees, an entry each.
#[expect(clippy::unnecessary_debug_formatting, reason = "names may hold control characters")]
pub fn differences(expected: &Path, found: &Path, exactness: Exactness) -> Vec<String> {
    let (expected, found) = (describe(expected, exactness), describe(found, exactness));
    let mut differences = Vec::new();
    for (name, entry) in &expected {
        match found.get(name) {
            None => differences.push(format!("missing: {name:?}")),
            Some(other) if other != entry => differences.push(format!("{name:?}: expected {entry:?}, found {other:?}")),
            Some(_) => {}
        }
    }
    let extra = found.keys().filter(|name| !expected.contains_key(*name));
    differences.extend(extra.map(|name| format!("left behind: {name:?}")));
    differences
}

/// Names in a directory, hidden ones included.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// BLAKE3 of a file.
pub fn hash(path: &Path) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    hasher.update_reader(file).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    hasher.finalize()
}

/// Bytes of data in all regular files: holes left out, hard links counted once.
pub fn data_bytes(root: &Path) -> u64 {
    let metas = walk(root).into_iter().filter_map(|path| fs::symlink_metadata(path).ok()).filter(fs::Metadata::is_file);
    let data: BTreeMap<u64, u64> = metas.map(|meta| (meta.ino(), meta.len().min(meta.blocks() * 512))).collect();
    data.values().sum()
}

/// Writes a file of random bytes.
pub fn write_random(path: &Path, size: u64, random: &mut Random) {
    let mut file = File::create(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut left = size;
    while left > 0 {
        let part = left.min(1 << 20);
        file.write_all(&random.bytes(part as usize)).expect("writing a test file");
        left -= part;
    }
}

/// A tree with one of everything that a file system has and a copy must keep.
pub fn make_varied(root: &Path, random: &mut Random) {
    fs::create_dir_all(root).expect("making the root of the tree");
    make_names(root, random);
    make_sizes(root, random);
    make_links(root, random);
    make_deep(root);
    make_sparse(root, random);
    make_modes(root, random);
    stamp(root, random);
}

/// Many small files in a few directories.
pub fn make_many(root: &Path, files: u64, random: &mut Random) {
    for number in 0..files {
        let dir = root.join(format!("dir{}", number % 50));
        fs::create_dir_all(&dir).expect("making a directory");
        let size = random.within(0..16_000);
        write_random(&dir.join(format!("file{number}")), size, random);
    }
}

fn make_names(root: &Path, random: &mut Random) {
    let dir = root.join("names");
    fs::create_dir(&dir).expect("making names");
    let long = "n".repeat(255);
    let names: [&[u8]; 16] = [
        b" leading and trailing ",
        b"-rf",
        b"--",
        b"*?[a]",
        b"$(touch oops)`id`;&|<>",
        b"back\\slash",
        b"quote'\"s",
        b"new\nline",
        b"tab\tbell\x07escape\x1b[31m",
        b"...",
        b".hidden",
        b"\xff\xfe not utf-8 \x80",
        "\u{65e5}\u{672c}\u{8a9e} \u{1f69b}".as_bytes(),
        b"colon:and@at",
        b"~",
        long.as_bytes(),
    ];
    for name in names {
        write_random(&dir.join(OsStr::from_bytes(name)), 100, random);
    }
    fs::create_dir(dir.join(OsStr::from_bytes(b"dir\xc3\x28\n"))).expect("making a directory with an odd name");
}

fn make_sizes(root: &Path, random: &mut Random) {
    let dir = root.join("sizes");
    fs::create_dir_all(dir.join("empty directory")).expect("making sizes");
    for size in [0, 1, 2, 511, 512, 4095, 4096, 4097, 65_535, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (4 << 20) + 3] {
        write_random(&dir.join(size.to_string()), size, random);
    }
}

fn make_links(root: &Path, random: &mut Random) {
    let dir = root.join("links");
    fs::create_dir_all(dir.join("sub")).expect("making links");
    write_random(&dir.join("first"), 70_000, random);
    fs::hard_link(dir.join("first"), dir.join("second")).expect("hard link");
    fs::hard_link(dir.join("first"), dir.join("sub/third")).expect("hard link");
    File::create(dir.join("empty")).expect("empty file");
    fs::hard_link(dir.join("empty"), dir.join("empty too")).expect("hard link");
    for (name, target) in [
        ("to file", OsStr::new("first")),
        ("to directory", OsStr::new("sub")),
        ("dangling", OsStr::new("nowhere/at all")),
        ("absolute", OsStr::new("/etc/hostname")),
        ("upwards", OsStr::new("../../../..")),
        ("to itself", OsStr::new("to itself")),
        ("odd", OsStr::from_bytes(b"\xff\n")),
    ] {
        symlink(target, dir.join(name)).expect("symbolic link");
    }
}

fn make_deep(root: &Path) {
    let mut dir = root.join("deep");
    for level in 0..100 {
        dir = dir.join(format!("level {level}"));
    }
    fs::create_dir_all(&dir).expect("making deep directories");
    fs::write(dir.join("bottom"), "reached").expect("writing a test file");
}

fn make_sparse(root: &Path, random: &mut Random) {
    let dir = root.join("sparse");
    fs::create_dir(&dir).expect("making sparse");
    let with_data = |name: &str, size: u64, places: &[u64], random: &mut Random| {
        let mut file = File::create(dir.join(name)).expect("making a sparse file");
        file.set_len(size).expect("setting a length");
        for place in places {
            file.seek(SeekFrom::Start(*place)).expect("seeking");
            file.write_all(&random.bytes(64 << 10)).expect("writing a test file");
        }
    };
    with_data("hole only", 8 << 20, &[], random);
    with_data("data at both ends", 64 << 20, &[0, (64 << 20) - (64 << 10)], random);
    with_data("data in the middle", (16 << 20) + 17, &[8 << 20], random);
}

fn make_modes(root: &Path, random: &mut Random) {
    let dir = root.join("modes");
    fs::create_dir(&dir).expect("making modes");
    for mode in [0o000, 0o400, 0o444, 0o600, 0o640, 0o644, 0o666, 0o700, 0o755, 0o777, 0o1644] {
        let path = dir.join(format!("file {mode:o}"));
        write_random(&path, 1000, random);
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("setting a mode");
    }
    for mode in [0o500, 0o555, 0o700, 0o750, 0o777, 0o1777] {
        let path = dir.join(format!("dir {mode:o}"));
        fs::create_dir(&path).expect("making a directory");
        fs::write(path.join("inside"), "x").expect("writing a test file");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("setting a mode");
    }
}

/// Gives everything a time of its own, to the nanosecond; the deepest first, since a directory's time changes with its content.
fn stamp(root: &Path, random: &mut Random) {
    let mut paths = walk(root);
    paths.push(root.to_owned());
    paths.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
    for path in paths {
        // 1971 to 2036; some before 1970.
        let seconds = if random.within(0..10) == 0 { -1_000_000 } else { random.within(40_000_000..2_100_000_000) as i64 };
        let time = Timespec { tv_sec: seconds, tv_nsec: random.within(0..1_000_000_000) as i64 };
        let times = Timestamps { last_access: time, last_modification: time };
        utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// Everything below a directory, links not followed.
fn walk(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display())) {
            let entry = entry.expect("reading a directory");
            if entry.file_type().expect("type of an entry").is_dir() {
                open.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}

fn describe(root: &Path, exactness: Exactness) -> BTreeMap<PathBuf, Entry> {
    let mut paths = walk(root);
    paths.push(root.to_owned());
    paths.sort();
    let mut inodes = BTreeMap::new();
    let mut entries = BTreeMap::new();
    for path in paths {
        let meta = fs::symlink_metadata(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.strip_prefix(root).expect("below the root").to_owned();
        let kind = if meta.is_dir() {
            Kind::Directory
        } else if meta.is_symlink() {
            Kind::Link(fs::read_link(&path).expect("reading a link"))
        } else if meta.is_file() {
            let same_as = inodes.entry(meta.ino()).or_insert_with(|| name.clone()).clone();
            Kind::File { size: meta.len(), hash: hash(&path), same_as }
        } else {
            Kind::Other
        };
        let all = exactness == Exactness::Everything;
        let mode = if all && !meta.is_symlink() { meta.mode() & 0o7777 } else { 0 };
        let modified_ns = if all { i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()) } else { 0 };
        entries.insert(name, Entry { kind, mode, modified_ns });
    }
    entries
}

/// Panics unless files that take little space for their size do so at the other end too.
#[track_caller]
pub fn assert_as_sparse(expected: &Path, found: &Path) {
    // Blocks of st_blocks are 512 bytes; a file system may need a few more for its own tree of blocks.
    let allowance = 1 << 20;
    for path in walk(expected) {
        let meta = fs::symlink_metadata(&path).expect("metadata");
        if !meta.is_file() {
            continue;
        }
        let other = found.join(path.strip_prefix(expected).expect("below the root"));
        let other_meta = fs::symlink_metadata(&other).unwrap_or_else(|error| panic!("{}: {error}", other.display()));
        let (want, have) = (meta.blocks() * 512, other_meta.blocks() * 512);
        assert!(have <= want + allowance, "{}: takes {have} bytes on disk, the source {want}", other.display());
    }
}

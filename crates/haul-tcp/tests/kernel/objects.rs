//! What of haul the kernel holds: maps and programs by their names, also those that no file names any more.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const NEXT_KEY: libc::c_int = 4;
const PROGRAM_NEXT: libc::c_int = 11;
const MAP_NEXT: libc::c_int = 12;
const PROGRAM_OF: libc::c_int = 13;
const MAP_OF: libc::c_int = 14;
const ABOUT: libc::c_int = 15;
const LINK_OF: libc::c_int = 30;
const LINK_NEXT: libc::c_int = 31;
/// `BPF_LINK_TYPE_CGROUP`.
const LINK_TO_CGROUP: u32 = 3;

/// Where the name is in `bpf_map_info` and in `bpf_prog_info`, and how long it may be.
const NAME_OF_MAP: usize = 24;
const NAME_OF_PROGRAM: usize = 64;
const NAME_BYTES: usize = 16;

/// Of the coupled laws: an entry for each subflow that has one of them.
const SUBFLOWS: &str = "subflows";
const MAPS: &[&str] = &["flows", "knobs", "totals", "peers", "change", SUBFLOWS, "haul_chosen"];
const PROGRAMS: &[&str] = &["mode_control", "window_avoid", "coupled_avoid", "law_release", "show", "alter"];

/// Numbers and names of what the laws consist of.
pub fn of_the_laws() -> Vec<(u32, String)> {
    let mut found = all(MAP_NEXT, MAP_OF, NAME_OF_MAP);
    found.retain(|(_, name)| name.ends_with("_law") || MAPS.contains(&name.as_str()));
    let programs = all(PROGRAM_NEXT, PROGRAM_OF, NAME_OF_PROGRAM);
    found.extend(programs.into_iter().filter(|(_, name)| PROGRAMS.contains(&name.as_str())));
    found
}

/// Programs that give connections their law by the peer.
pub fn choosers() -> Vec<u32> {
    all(PROGRAM_NEXT, PROGRAM_OF, NAME_OF_PROGRAM).into_iter().filter(|(_, name)| name == "choose").map(|(id, _)| id).collect()
}

/// How many of them are at a cgroup: one for each rule there.
pub fn choosers_at_work() -> usize {
    let choosers = choosers();
    let (mut id, mut count) = (0, 0);
    while let Some(after) = following(LINK_NEXT, id) {
        id = after;
        // Kind, number, program.
        let about = opened(LINK_OF, id).and_then(|link| about::<64>(&link));
        let word = |about: &[u8; 64], at: usize| u32::from_ne_bytes([about[at], about[at + 1], about[at + 2], about[at + 3]]);
        count += usize::from(about.is_ok_and(|about| word(&about, 0) == LINK_TO_CGROUP && choosers.contains(&word(&about, 8))));
    }
    count
}

/// How many subflows the coupled laws know of, in all maps of that name.
pub fn subflows() -> usize {
    let maps = all(MAP_NEXT, MAP_OF, NAME_OF_MAP).into_iter().filter(|(_, name)| name == SUBFLOWS);
    maps.filter_map(|(id, _)| opened(MAP_OF, id).ok()).map(|map| entries(&map)).sum()
}

/// Of a map whose keys have 8 bytes.
fn entries(map: &OwnedFd) -> usize {
    let (mut key, mut count) = ([0_u8; 8], 0);
    let mut found = next_key(map, None, &mut key);
    while found {
        count += 1;
        let before = key;
        found = next_key(map, Some(&before), &mut key);
    }
    count
}

fn next_key(map: &OwnedFd, after: Option<&[u8; 8]>, next: &mut [u8; 8]) -> bool {
    let [low, high] = halves(after.map_or(0, |key| key.as_ptr() as u64));
    let [next_low, next_high] = halves(next.as_mut_ptr() as u64);
    call(NEXT_KEY, &mut [map.as_raw_fd() as u32, 0, low, high, next_low, next_high]).is_ok()
}

fn all(next: libc::c_int, of: libc::c_int, name_at: usize) -> Vec<(u32, String)> {
    let (mut id, mut found) = (0, Vec::new());
    while let Some(after) = following(next, id) {
        id = after;
        // One that has just gone is none.
        found.extend(name(of, id, name_at).ok().map(|name| (id, name)));
    }
    found
}

fn following(command: libc::c_int, id: u32) -> Option<u32> {
    let mut argument = [id, 0, 0, 0, 0, 0];
    call(command, &mut argument).ok().map(|_| argument[1])
}

fn opened(of: libc::c_int, id: u32) -> io::Result<OwnedFd> {
    let fd = call(of, &mut [id, 0, 0, 0, 0, 0])?;
    // SAFETY: the kernel has just given it to us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn halves(pointer: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = pointer.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}

fn name(of: libc::c_int, id: u32, at: usize) -> io::Result<String> {
    let about = about::<96>(&opened(of, id)?)?;
    let name = &about[at..at + NAME_BYTES];
    Ok(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned())
}

/// What the kernel says of an object.
fn about<const BYTES: usize>(object: &OwnedFd) -> io::Result<[u8; BYTES]> {
    let mut about = [0_u8; BYTES];
    let [low, high] = halves(about.as_mut_ptr() as u64);
    call(ABOUT, &mut [object.as_raw_fd() as u32, BYTES as u32, low, high, 0, 0])?;
    Ok(about)
}

#[repr(align(8))]
struct Argument([u32; 6]);

fn call(command: libc::c_int, words: &mut [u32; 6]) -> io::Result<libc::c_int> {
    let mut argument = Argument(*words);
    // SAFETY: the argument is as long as is said; pointers in it are of buffers that outlive the call, as long as it or the map says.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut argument, size_of::<Argument>()) } as libc::c_int;
    *words = argument.0;
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

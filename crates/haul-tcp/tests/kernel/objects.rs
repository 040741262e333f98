//! What of haul the kernel holds: maps and programs by their names, also those that no file names any more.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const PROGRAM_NEXT: libc::c_int = 11;
const MAP_NEXT: libc::c_int = 12;
const PROGRAM_OF: libc::c_int = 13;
const MAP_OF: libc::c_int = 14;
const ABOUT: libc::c_int = 15;

/// Where the name is in `bpf_map_info` and in `bpf_prog_info`, and how long it may be.
const NAME_OF_MAP: usize = 24;
const NAME_OF_PROGRAM: usize = 64;
const NAME_BYTES: usize = 16;

const MAPS: &[&str] = &["flows", "knobs", "totals", "peers", "change"];
const PROGRAMS: &[&str] = &["mode_control", "window_avoid", "law_release", "show", "alter"];

/// Numbers and names of what the laws consist of.
pub fn of_the_laws() -> Vec<(u32, String)> {
    let mut found = all(MAP_NEXT, MAP_OF, NAME_OF_MAP);
    found.retain(|(_, name)| name.ends_with("_law") || MAPS.contains(&name.as_str()));
    let programs = all(PROGRAM_NEXT, PROGRAM_OF, NAME_OF_PROGRAM);
    found.extend(programs.into_iter().filter(|(_, name)| PROGRAMS.contains(&name.as_str())));
    found
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
    let mut argument = [id, 0, 0, 0];
    call(command, &mut argument).ok().map(|_| argument[1])
}

fn name(of: libc::c_int, id: u32, at: usize) -> io::Result<String> {
    let fd = call(of, &mut [id, 0, 0, 0])?;
    // SAFETY: the kernel has just given it to us.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut about = [0_u8; 96];
    let pointer = (about.as_mut_ptr() as u64).to_ne_bytes();
    let half = |from: usize| u32::from_ne_bytes([pointer[from], pointer[from + 1], pointer[from + 2], pointer[from + 3]]);
    call(ABOUT, &mut [fd.as_raw_fd() as u32, about.len() as u32, half(0), half(4)])?;
    let name = &about[at..at + NAME_BYTES];
    Ok(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned())
}

#[repr(align(8))]
struct Argument([u32; 4]);

fn call(command: libc::c_int, words: &mut [u32; 4]) -> io::Result<libc::c_int> {
    let mut argument = Argument(*words);
    // SAFETY: the argument is as long as is said; the one pointer in it is of a buffer that outlives the call, whose length it has.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut argument, size_of::<Argument>()) } as libc::c_int;
    *words = argument.0;
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

//! Packets that a program is asked about without their being sent, for tests (`BPF_PROG_TEST_RUN`).

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// What a program at an interface is told of a packet, and says of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) priority: u32,
    /// When it is to leave; 0: nobody has said.
    pub(crate) time_ns: u64,
    /// With the headers of all its frames.
    pub(crate) wire_bytes: u32,
    /// Of a super-packet; 0: it is none.
    pub(crate) segments: u32,
}

const TEST_RUN: libc::c_int = 10;
/// The least that there can be of a frame, which the kernel makes a packet of: Ethernet, then IPv4 without anything in it.
const FRAME_BYTES: usize = 34;
/// Where a frame says that it is IPv4, and where IPv4 says its version and its header's length.
const IPV4: [(usize, u8); 3] = [(12, 0x08), (13, 0x00), (14, 0x45)];
/// `struct __sk_buff`, and where these are in it.
const CONTEXT_BYTES: usize = 192;
const PRIORITY: usize = 32;
const TIME: usize = 152;
const WIRE_BYTES: usize = 160;
const SEGMENTS: usize = 164;

/// Asks a program about a packet, which is as the program has left it then; what the program says.
pub(crate) fn ask(program: BorrowedFd<'_>, packet: &mut Packet) -> io::Result<i32> {
    let (mut frame, mut context, mut left) = ([0_u8; FRAME_BYTES], [0_u8; CONTEXT_BYTES], [0_u8; CONTEXT_BYTES]);
    for (at, byte) in IPV4 {
        frame[at] = byte;
    }
    context[PRIORITY..PRIORITY + 4].copy_from_slice(&packet.priority.to_ne_bytes());
    context[TIME..TIME + 8].copy_from_slice(&packet.time_ns.to_ne_bytes());
    context[WIRE_BYTES..WIRE_BYTES + 4].copy_from_slice(&packet.wire_bytes.to_ne_bytes());
    context[SEGMENTS..SEGMENTS + 4].copy_from_slice(&packet.segments.to_ne_bytes());
    let mut argument = Argument {
        program: program.as_raw_fd() as u32,
        frame_bytes: frame.len() as u32,
        frame: frame.as_ptr() as u64,
        context_bytes: context.len() as u32,
        left_bytes: left.len() as u32,
        context: context.as_ptr() as u64,
        left: left.as_mut_ptr() as u64,
        ..Argument::default()
    };
    // SAFETY: the argument is as long as is said; its pointers are of buffers that outlive the call, whose lengths it has.
    let result = unsafe { libc::syscall(libc::SYS_bpf, TEST_RUN, &raw mut argument, size_of::<Argument>()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let word = |at: usize| left[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    let time_ns = left[TIME..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    *packet = Packet { priority: word(PRIORITY), time_ns, wire_bytes: word(WIRE_BYTES), segments: word(SEGMENTS) };
    Ok(argument.said as i32)
}

/// Has what a socket sends from now on the priority of a class, as the program at the cgroup would give it.
pub(crate) fn give_priority(socket: BorrowedFd<'_>, priority: u32) -> io::Result<()> {
    let (value, length) = ((&raw const priority).cast(), size_of_val(&priority) as libc::socklen_t);
    // SAFETY: the value has the size that is told.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PRIORITY, value, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Of the command. The kernel will have zeros to its end, so it has no padding.
#[repr(C)]
#[derive(Default)]
struct Argument {
    program: u32,
    said: u32,
    frame_bytes: u32,
    frame_left_bytes: u32,
    frame: u64,
    frame_left: u64,
    repeat: u32,
    duration: u32,
    context_bytes: u32,
    left_bytes: u32,
    context: u64,
    left: u64,
    flags: u32,
    processor: u32,
    batch: u32,
    rest: u32,
}

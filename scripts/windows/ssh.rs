//! In the place of ssh.exe, for tests under Wine, where a program of Windows cannot give its pipes to one of Linux: what it was called with and its standard input go to a TCP port of this machine
//! (HAUL_TEST_SSH), where exchange.py runs the command; what comes back are the command's streams, in parts, and its status.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::{env, thread};

/// As ssh has it where it fails itself.
const FAILED: u32 = 255;

// Of kernel32.dll.
unsafe extern "system" {
    safe fn GetCurrentProcess() -> *mut std::ffi::c_void;
    fn TerminateProcess(process: *mut std::ffi::c_void, status: u32) -> i32;
}

fn main() {
    let status = run().unwrap_or_else(|error| {
        eprintln!("ssh: {error}");
        FAILED
    });
    // At once: a thread may be waiting for input, and under Wine an orderly end waited for it now and then.
    // SAFETY: the process is this one; all that it has said is on its way.
    unsafe { TerminateProcess(GetCurrentProcess(), status) };
}

fn run() -> io::Result<u32> {
    let port = env::var("HAUL_TEST_SSH").ok().and_then(|port| port.parse().ok()).unwrap_or(0_u16);
    let mut near = TcpStream::connect(("127.0.0.1", port))?;
    near.set_nodelay(true)?;
    let words = env::args().skip(1).collect::<Vec<_>>().join("\0").into_bytes();
    near.write_all(&(words.len() as u32).to_be_bytes())?;
    near.write_all(&words)?;
    let mut input = near.try_clone()?;
    thread::spawn(move || {
        let mut part = vec![0; 1 << 16];
        while let Ok(read @ 1..) = io::stdin().lock().read(&mut part) {
            if input.write_all(&part[..read]).is_err() {
                return;
            }
        }
        let _ = input.shutdown(Shutdown::Write);
    });
    loop {
        // What it is: 0 the status, 1 standard output, 2 standard error; and its length, or which status.
        let mut head = [0; 5];
        near.read_exact(&mut head)?;
        let number = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        if head[0] == 0 {
            return Ok(number);
        }
        let mut part = vec![0; number as usize];
        near.read_exact(&mut part)?;
        match head[0] {
            1 => io::stdout().write_all(&part).and_then(|()| io::stdout().flush())?,
            _ => io::stderr().write_all(&part)?,
        }
    }
}

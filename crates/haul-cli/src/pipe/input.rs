//! Standard input that can be given up: a terminal never ends by itself.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How often to look whether it has been given up.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Reads a file, a pipe or a terminal until its end, or until told to stop.
#[derive(Debug)]
pub struct Input {
    file: Option<File>,
    stop: Arc<AtomicBool>,
}

impl Input {
    /// Standard input; nothing at all if it is not `wanted`.
    pub fn standard(wanted: bool, stop: Arc<AtomicBool>) -> io::Result<Self> {
        let file = if wanted { Some(File::from(io::stdin().as_fd().try_clone_to_owned()?)) } else { None };
        Ok(Self { file, stop })
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return Ok(0) };
        while !self.stop.load(Ordering::Relaxed) {
            let mut waiting = [PollFd::new(&*file, PollFlags::IN)];
            match poll(&mut waiting, Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return file.read(buffer),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_told_to() {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        let stop = Arc::new(AtomicBool::new(false));
        let mut input = Input { file: Some(File::from(reader)), stop: Arc::clone(&stop) };
        rustix::io::write(&writer, b"some").expect("written");
        let mut buffer = [0; 8];
        assert_eq!(input.read(&mut buffer).expect("readable"), 4);
        stop.store(true, Ordering::Relaxed);
        // The other end of the pipe is still open.
        assert_eq!(input.read(&mut buffer).expect("readable"), 0);
    }
}

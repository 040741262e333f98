//! Descriptors. Either may have been made non-blocking by whoever shares it (rsync does so): then there is waiting to do here.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The largest pipe that Linux gives to anybody.
const PIPE: usize = 1 << 20;
/// How often to look whether it has been given up.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Where the bytes of this side come from, and where those of the other side go: files, pipes, sockets or a terminal.
#[derive(Debug)]
pub struct Local {
    /// Sent until its end; without it the end is all that is sent. A terminal, which never ends, is given up when the other side has ended.
    pub input: Option<OwnedFd>,
    /// Written to.
    pub output: OwnedFd,
}

impl Local {
    /// Both ends, `stop` the input's; and whether that ends by itself.
    pub(in crate::program) fn open(self, stop: &Arc<AtomicBool>) -> (Input, Output, bool) {
        let Self { input, output } = self;
        let ends = input.as_ref().is_none_or(|input| {
            enlarge_pipe(input);
            !input.is_terminal()
        });
        enlarge_pipe(&output);
        (Input { file: input.map(File::from), stop: Arc::clone(stop) }, Output(File::from(output)), ends)
    }
}

/// Gives a pipe all the room that it may have; anything else stays as it is.
pub(in crate::program) fn enlarge_pipe(fd: impl AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(fd, PIPE);
}

/// Reads a file, a pipe or a terminal until its end, or until told to stop.
#[derive(Debug)]
pub(in crate::program) struct Input {
    file: Option<File>,
    stop: Arc<AtomicBool>,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return Ok(0) };
        while !self.stop.load(Ordering::Relaxed) {
            let mut waiting = [PollFd::new(&*file, PollFlags::IN)];
            match poll(&mut waiting, Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => match file.read(buffer) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    result => return result,
                },
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(0)
    }
}

/// Writes to a file, a pipe or a terminal.
#[derive(Debug)]
pub(in crate::program) struct Output(File);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => return result,
            }
            let mut waiting = [PollFd::new(&self.0, PollFlags::OUT)];
            match poll(&mut waiting, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pipe_that_does_not_block_is_waited_for() {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).expect("a pipe");
        let mut output = Output(File::from(writer));
        let writing = std::thread::spawn(move || output.write_all(&vec![7; 1 << 20]));
        let mut input = Input { file: Some(File::from(reader)), stop: Arc::default() };
        let mut all = Vec::new();
        input.read_to_end(&mut all).expect("readable");
        writing.join().expect("no panic").expect("written");
        assert!(all.len() == 1 << 20 && all.iter().all(|&byte| byte == 7));
    }

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

//! Handles. A read that waits is not given up: who has read from a terminal ends with the program.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::os::windows::io::OwnedHandle;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the bytes of this side come from, and where those of the other side go: files, pipes or a terminal.
#[derive(Debug)]
pub struct Local {
    /// Sent until its end; without it the end is all that is sent.
    pub input: Option<OwnedHandle>,
    /// Written to.
    pub output: OwnedHandle,
}

impl Local {
    /// Both ends, `stop` the input's; and whether that ends by itself.
    pub(in crate::program) fn open(self, stop: &Arc<AtomicBool>) -> (Input, File, bool) {
        let Self { input, output } = self;
        let input = input.map(File::from);
        let ends = input.as_ref().is_none_or(|input| !input.is_terminal());
        (Input { file: input, stop: Arc::clone(stop) }, File::from(output), ends)
    }
}

/// Reads a file, a pipe or a terminal until its end, or until told to stop, at the next read.
#[derive(Debug)]
pub(in crate::program) struct Input {
    file: Option<File>,
    stop: Arc<AtomicBool>,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) if !self.stop.load(Ordering::Relaxed) => match file.read(buffer) {
                // Who wrote has gone: that is the end of a pipe.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
                result => result,
            },
            _ => Ok(0),
        }
    }
}

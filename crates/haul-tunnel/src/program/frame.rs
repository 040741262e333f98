//! What the server says on the control stream while a command runs: its standard error, and in the end its exit status.
//!
//! ```text
//!   kind (1 byte: 0 standard error, 1 exit code, 2 signal) | length (4 bytes, big endian) | content
//! ```

use std::io::{self, Read, Write};

/// Longest content.
const MAX_CONTENT: usize = 64 << 10;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// By itself.
    Code(u8),
    /// By a signal.
    Signal(u8),
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// Standard error.
    Error(Vec<u8>),
    /// The end.
    Exit(Status),
}

impl Status {
    /// What a shell makes of it.
    pub const fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128_u8.saturating_add(signal),
        }
    }
}

impl Frame {
    /// Writes it whole.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        let (kind, content): (u8, &[u8]) = match self {
            Self::Error(bytes) => (0, bytes),
            Self::Exit(Status::Code(code)) => (1, &[*code]),
            Self::Exit(Status::Signal(signal)) => (2, &[*signal]),
        };
        let length = u32::try_from(content.len()).map_err(|_| invalid("a frame that is too long"))?;
        let mut bytes = Vec::with_capacity(5 + content.len());
        bytes.push(kind);
        bytes.extend(length.to_be_bytes());
        bytes.extend(content);
        out.write_all(&bytes)
    }

    /// Reads the next one.
    pub fn read_from(input: &mut impl Read) -> io::Result<Self> {
        let mut head = [0; 5];
        input.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_CONTENT {
            return Err(invalid("a frame that is too long"));
        }
        let mut content = vec![0; length];
        input.read_exact(&mut content)?;
        match (kind, &*content) {
            (0, _) => Ok(Self::Error(content)),
            (1, [code]) => Ok(Self::Exit(Status::Code(*code))),
            (2, [signal]) => Ok(Self::Exit(Status::Signal(*signal))),
            _ => Err(invalid("a frame of an unknown kind")),
        }
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in() {
        let frames = [
            Frame::Error(b"oops\n".to_vec()),
            Frame::Error(Vec::new()),
            Frame::Exit(Status::Code(3)),
            Frame::Exit(Status::Signal(15)),
        ];
        let mut bytes = Vec::new();
        for frame in &frames {
            frame.write_to(&mut bytes).expect("a vector takes anything");
        }
        let mut rest = &bytes[..];
        for frame in frames {
            assert_eq!(Frame::read_from(&mut rest).expect("a frame"), frame);
        }
        assert_eq!(Frame::read_from(&mut rest).expect_err("the end").kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn nonsense_is_refused_before_memory_is_taken() {
        for bytes in [&[0, 0xff, 0xff, 0xff, 0xff][..], &[7, 0, 0, 0, 0], &[1, 0, 0, 0, 2, 1, 1]] {
            assert_eq!(Frame::read_from(&mut &*bytes).expect_err("refused").kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn a_signal_is_a_code_as_in_a_shell() {
        assert_eq!([Status::Code(7), Status::Signal(9), Status::Signal(255)].map(Status::code), [7, 137, 255]);
    }
}

//! Linux's numbers and words for them, with the Windows error codes that come nearest.

use std::{fmt, io};

/// An error number as Linux has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

macro_rules! numbers {
    ($($name:ident = $number:literal, $text:literal, [$($code:literal),*];)*) => {
        impl Errno {
            $(#[doc = $text] pub const $name: Self = Self($number);)*
        }

        /// What Linux says of a number.
        pub fn text(number: i32) -> String {
            match number {
                $($number => $text.to_owned(),)*
                other => format!("error {other} of the system"),
            }
        }

        /// The number for an error code of Windows (winerror.h).
        fn of_code(code: i32) -> Option<Errno> {
            match code {
                $($(| $code)* => Some(Errno::$name),)*
                _ => None,
            }
        }
    };
}

numbers! {
    PERM = 1, "Operation not permitted", [1307, 1314];
    NOENT = 2, "No such file or directory", [2, 3, 15, 53, 67, 1168];
    IO = 5, "Input/output error", [23, 30, 31, 1117, -1];
    BADF = 9, "Bad file descriptor", [6];
    AGAIN = 11, "Resource temporarily unavailable", [10035];
    NOMEM = 12, "Cannot allocate memory", [8, 14, 1450, 1455];
    ACCESS = 13, "Permission denied", [5, 82, 1920, 10013];
    BUSY = 16, "Device or resource busy", [32, 33, 170, 303];
    EXIST = 17, "File exists", [80, 183];
    XDEV = 18, "Invalid cross-device link", [17];
    NOTDIR = 20, "Not a directory", [267];
    ISDIR = 21, "Is a directory", [-2];
    INVAL = 22, "Invalid argument", [87, 123, 161, 1, 10022];
    NFILE = 23, "Too many open files in system", [-3];
    MFILE = 24, "Too many open files", [4, 10024];
    FBIG = 27, "File too large", [223];
    NOSPC = 28, "No space left on device", [112, 39];
    ROFS = 30, "Read-only file system", [19];
    MLINK = 31, "Too many links", [1142];
    PIPE = 32, "Broken pipe", [109, 232, 233];
    NAMETOOLONG = 36, "File name too long", [206, 111];
    NOSYS = 38, "Function not implemented", [120];
    NOTEMPTY = 39, "Directory not empty", [145];
    LOOP = 40, "Too many levels of symbolic links", [681, 1921];
    TOOBIG = 7, "Argument list too long", [-4];
    OPNOTSUPP = 95, "Operation not supported", [50];
    CONNRESET = 104, "Connection reset by peer", [10054];
    TIMEDOUT = 110, "Connection timed out", [121, 1460, 10060];
    STALE = 116, "Stale file handle", [1006];
    DQUOT = 122, "Disk quota exceeded", [1295, 1816];
    CANCELED = 125, "Operation canceled", [995, 1223];
}

impl Errno {
    /// As it crosses the network.
    pub const fn raw_os_error(self) -> i32 {
        self.0
    }

    /// From there.
    pub const fn from_raw_os_error(number: i32) -> Self {
        Self(number)
    }

    /// The number nearest to an error of Windows; none for one that did not come from the system.
    pub fn from_io_error(error: &io::Error) -> Option<Self> {
        error.raw_os_error().map(|code| of_code(code).unwrap_or(Self::IO))
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self.0))
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        let kind = match errno {
            Errno::NOENT => io::ErrorKind::NotFound,
            Errno::ACCESS | Errno::PERM => io::ErrorKind::PermissionDenied,
            Errno::EXIST => io::ErrorKind::AlreadyExists,
            Errno::PIPE => io::ErrorKind::BrokenPipe,
            Errno::OPNOTSUPP | Errno::NOSYS => io::ErrorKind::Unsupported,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, text(errno.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_windows_says_has_a_number_of_linux() {
        for (code, errno) in
            [(2, Errno::NOENT), (5, Errno::ACCESS), (112, Errno::NOSPC), (145, Errno::NOTEMPTY), (99_999, Errno::IO)]
        {
            assert_eq!(Errno::from_io_error(&io::Error::from_raw_os_error(code)), Some(errno), "{code}");
        }
        assert_eq!(Errno::from_io_error(&io::Error::other("none")), None);
        let missing = std::fs::metadata("no such file").expect_err("is not there");
        assert_eq!(Errno::from_io_error(&missing), Some(Errno::NOENT));
        assert_eq!(text(28), "No space left on device");
    }
}

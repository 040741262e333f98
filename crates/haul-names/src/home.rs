//! Where a path of an account starts: `~/x` and `x` at its own home, `~user/x` at the home of another one, as a shell has it.
//!
//! Other homes are what the system's database of users says (a static program asks /etc/passwd alone). A word behind `~` that is nobody's name is part of a
//! file's name, as with a shell; `./~user` is that always.

use std::path::{Path, PathBuf};

use crate::system::{home_of, os_str};

/// The path that `spelled` is for an account with this home.
pub fn at_home(home: &Path, spelled: &[u8]) -> PathBuf {
    let (first, rest) = match spelled.iter().position(|&byte| byte == b'/') {
        Some(at) => (spelled.get(..at).unwrap_or_default(), spelled.get(at..).unwrap_or_default()),
        None => (spelled, &b""[..]),
    };
    let start = match first {
        b"~" => Some(home.to_owned()),
        [b'~', user @ ..] => home_of(user),
        _ => None,
    };
    let Some(start) = start else { return home.join(os_str(spelled)) };
    let slashes = rest.iter().take_while(|&&byte| byte == b'/').count();
    match rest.get(slashes..) {
        Some(rest) if !rest.is_empty() => start.join(os_str(rest)),
        _ => start,
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    /// What /etc/passwd says of a user who is everywhere.
    fn home_of_root() -> String {
        let users = std::fs::read_to_string("/etc/passwd").unwrap();
        let line = users.lines().find(|line| line.starts_with("root:")).unwrap();
        line.split(':').nth(5).unwrap().to_owned()
    }

    #[test]
    fn a_path_starts_where_a_shell_would_have_it_start() {
        let root = home_of_root();
        for (spelled, expected) in [
            ("", "/home/me/"),
            ("~", "/home/me"),
            ("~/", "/home/me"),
            ("~/x/y", "/home/me/x/y"),
            ("~//x", "/home/me/x"),
            ("x/~", "/home/me/x/~"),
            ("/x", "/x"),
            ("~root", &root),
            ("~root/", &root),
            ("~root/x/*.log", &format!("{root}/x/*.log")),
            ("./~root/x", "/home/me/./~root/x"),
            ("~no such user/x", "/home/me/~no such user/x"),
            ("~$report.docx", "/home/me/~$report.docx"),
        ] {
            assert_eq!(at_home(Path::new("/home/me"), spelled.as_bytes()), Path::new(expected), "{spelled}");
        }
        assert_eq!(at_home(Path::new("/h"), b"~a\0b/x").as_os_str().as_bytes(), b"/h/~a\0b/x");
        assert_eq!(at_home(Path::new("/h"), b"~\xff").as_os_str().as_bytes(), b"/h/~\xff");
    }
}

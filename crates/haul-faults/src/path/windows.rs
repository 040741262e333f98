//! Slashes on the network, and either kind here; UTF-8. What is not UTF-8 names nothing here: it gets a character that says so, and is not found.

use std::path::{Path, PathBuf};

/// What begins a path that Windows takes as it is.
const VERBATIM: &str = "//?/";

pub(super) fn to_path(bytes: &[u8]) -> PathBuf {
    let text = String::from_utf8_lossy(bytes);
    // There a slash is no separator.
    PathBuf::from(if text.starts_with(VERBATIM) { text.replace('/', "\\") } else { text.into_owned() })
}

pub(super) fn to_bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_encoded_bytes().iter().map(|&byte| if byte == b'\\' { b'/' } else { byte }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_slashes_on_the_network() {
        for (path, bytes) in
            [(r"C:\a\b c", "C:/a/b c"), (r"\\?\C:\x\CON", "//?/C:/x/CON"), ("a/b", "a/b"), (r"\\host\share\x", "//host/share/x")]
        {
            assert_eq!(to_bytes(Path::new(path)), bytes.as_bytes());
        }
        assert_eq!(to_path(b"//?/C:/x/CON"), Path::new(r"\\?\C:\x\CON"));
        assert_eq!(to_path("C:/\u{e9}".as_bytes()), Path::new("C:/\u{e9}"));
    }
}

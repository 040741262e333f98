//! The own key: made when first needed, readable by its owner alone, in PEM (RFC 7468) around PKCS #8.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

use data_encoding::BASE64;
use haul::Identity;

use super::{KeysError, strict};
use crate::state::StateDir;
use crate::system::private;

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";

/// Reads the identity, or makes one; true if it is new.
pub fn load_or_make(state: &StateDir) -> Result<(Identity, bool), KeysError> {
    let path = state.identity();
    let not_made = |source| KeysError::NotMade { path: path.clone(), source };
    if let Some(file) = strict::open_private(&path)? {
        return read(file, &path).map(|identity| (identity, false));
    }
    state.create().map_err(not_made)?;
    let identity = Identity::generate();
    match write(&path, &identity) {
        Ok(()) => Ok((identity, true)),
        // Another process was faster: its key is the one.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let file = strict::open_private(&path)?.ok_or_else(|| KeysError::Io { path: path.clone(), source: error })?;
            read(file, &path).map(|identity| (identity, false))
        }
        Err(error) => Err(not_made(error)),
    }
}

fn read(mut file: File, path: &Path) -> Result<Identity, KeysError> {
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|source| KeysError::Io { path: path.to_owned(), source })?;
    let key = unwrapped(&text).and_then(|der| Identity::from_pkcs8(&der).ok());
    key.ok_or_else(|| KeysError::NotAKey { path: path.to_owned() })
}

/// The key gets its name only when it is whole: a link never replaces a file that is there.
fn write(path: &Path, identity: &Identity) -> io::Result<()> {
    let temporary = path.with_extension(std::process::id().to_string());
    let mut file = private(OpenOptions::new().write(true).create(true).truncate(true)).open(&temporary)?;
    let der = identity.to_pkcs8().expect("an identity made here is a plain key pair");
    let written = file.write_all(wrapped(&der).as_bytes()).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| fs::hard_link(&temporary, path));
    let _ = fs::remove_file(&temporary);
    linked
}

fn wrapped(der: &[u8]) -> String {
    let base64 = BASE64.encode(der);
    let mut text = format!("{BEGIN}\n");
    for start in (0..base64.len()).step_by(64) {
        text += &base64[start..base64.len().min(start + 64)];
        text.push('\n');
    }
    text + END + "\n"
}

fn unwrapped(text: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once(BEGIN)?;
    let (body, _) = rest.split_once(END)?;
    let base64: String = body.split_whitespace().collect();
    BASE64.decode(base64.as_bytes()).ok()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn made_once_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::find(Some(&dir.path().join("new/dir"))).unwrap();
        let (made, new) = load_or_make(&state).unwrap();
        assert!(new);
        let (loaded, new) = load_or_make(&state).unwrap();
        assert!(!new);
        assert_eq!(made.public_key().fingerprint(), loaded.public_key().fingerprint());
        assert_eq!(fs::metadata(state.identity()).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path().join("new/dir")).unwrap().count(), 1);
    }

    #[test]
    fn an_open_or_broken_key_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::find(Some(dir.path())).unwrap();
        load_or_make(&state).unwrap();
        fs::set_permissions(state.identity(), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(load_or_make(&state).err().unwrap().to_string().contains("others may read"));
        fs::write(state.identity(), format!("{BEGIN}\nAAAA\n{END}\n")).unwrap();
        fs::set_permissions(state.identity(), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(load_or_make(&state).err().unwrap().to_string().contains("not a private key"));
    }
}

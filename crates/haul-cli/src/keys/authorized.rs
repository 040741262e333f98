//! The keys that may use the daemon: `fingerprint name` a line.

use std::io;
use std::path::PathBuf;

use haul::Fingerprint;

use super::table;

/// The file.
#[derive(Debug)]
pub struct AuthorizedKeys {
    path: PathBuf,
    lines: Vec<String>,
}

impl AuthorizedKeys {
    /// Reads the file.
    pub fn load(path: PathBuf) -> io::Result<Self> {
        let lines = table::read(&path)?;
        Ok(Self { path, lines })
    }

    /// The name that an authorised key goes by, perhaps empty; none if it is not authorised.
    pub fn name_of(&self, key: Fingerprint) -> Option<String> {
        self.entries().find(|(entry, _)| *entry == key).map(|(_, name)| name)
    }

    /// Authorises a key; a name that is not given stays as it is.
    pub fn authorize(&mut self, key: Fingerprint, name: Option<&str>) -> io::Result<()> {
        let name = name.map(|name| name.split_whitespace().collect::<Vec<_>>().join(" "));
        let name = name.or_else(|| self.name_of(key)).unwrap_or_default();
        self.remove(key);
        self.lines.push(format!("{key} {name}").trim_end().to_owned());
        table::write(&self.path, &self.lines)
    }

    /// Withdraws a key; false if it was not authorised.
    pub fn revoke(&mut self, key: Fingerprint) -> io::Result<bool> {
        let before = self.lines.len();
        self.remove(key);
        let removed = self.lines.len() < before;
        if removed {
            table::write(&self.path, &self.lines)?;
        }
        Ok(removed)
    }

    /// All keys and their names.
    pub fn entries(&self) -> impl Iterator<Item = (Fingerprint, String)> + '_ {
        self.lines.iter().filter_map(|line| entry(line))
    }

    fn remove(&mut self, key: Fingerprint) {
        self.lines.retain(|line| entry(line).is_none_or(|(entry, _)| entry != key));
    }
}

fn entry(line: &str) -> Option<(Fingerprint, String)> {
    let mut words = table::words(line);
    let key = words.next()?.parse().ok()?;
    Some((key, words.collect::<Vec<_>>().join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use haul::Identity;

    #[test]
    fn authorised_until_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("authorized_keys");
        let [one, two] = [(); 2].map(|()| Identity::generate().public_key().fingerprint());
        let mut keys = AuthorizedKeys::load(path.clone()).unwrap();
        keys.authorize(one, Some("alice\n at home")).unwrap();
        keys.authorize(two, None).unwrap();
        keys.authorize(one, None).unwrap();

        let mut keys = AuthorizedKeys::load(path).unwrap();
        assert_eq!(keys.name_of(one).as_deref(), Some("alice at home"));
        assert_eq!(keys.name_of(two).as_deref(), Some(""));
        assert_eq!(keys.entries().count(), 2);
        assert!(keys.revoke(one).unwrap());
        assert!(!keys.revoke(one).unwrap());
        assert_eq!(keys.name_of(one), None);
    }
}

//! The daemons that a user trusts: `host:port fingerprint` a line.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use haul::Fingerprint;

use super::{KeysError, strict, table};
use crate::operand::DaemonHost;

/// The file.
#[derive(Debug)]
pub struct KnownHosts {
    path: PathBuf,
    lines: Vec<String>,
}

/// What is known of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// This key is trusted.
    Trusted,
    /// Another key is.
    Changed(Fingerprint),
    /// Nothing.
    Unknown,
}

impl KnownHosts {
    /// Reads the file, if nobody else could have written it.
    pub fn load(path: PathBuf) -> Result<Self, KeysError> {
        let lines = strict::read(&path)?;
        Ok(Self { path, lines })
    }

    /// Looks a host up.
    pub fn look_up(&self, host: &DaemonHost, key: Fingerprint) -> Known {
        let mut trusted = self.entries().filter(|(name, _)| *name == host.to_string()).map(|(_, trusted)| trusted).peekable();
        match trusted.peek().copied() {
            None => Known::Unknown,
            Some(_) if trusted.clone().any(|other| other == key) => Known::Trusted,
            Some(first) => Known::Changed(first),
        }
    }

    /// Trusts a key for a host, in the place of any other, in the file as it is by now.
    pub fn trust(&mut self, host: &DaemonHost, key: Fingerprint) -> io::Result<()> {
        let _held = self.hold()?;
        self.remove(host);
        self.lines.push(format!("{host} {key}"));
        table::write(&self.path, &self.lines)
    }

    /// Withdraws the trust in a host from the file as it is by now; false if there was none.
    pub fn revoke(&mut self, host: &DaemonHost) -> io::Result<bool> {
        // Nothing is made where nothing is to be changed.
        self.read()?;
        let name = host.to_string();
        if !self.entries().any(|(entry, _)| entry == name) {
            return Ok(false);
        }
        let _held = self.hold()?;
        let before = self.lines.len();
        self.remove(host);
        let removed = self.lines.len() < before;
        if removed {
            table::write(&self.path, &self.lines)?;
        }
        Ok(removed)
    }

    /// All hosts and their keys.
    pub fn entries(&self) -> impl Iterator<Item = (String, Fingerprint)> + Clone + '_ {
        self.lines.iter().filter_map(|line| entry(line))
    }

    /// Keeps others from changing the file, until what is returned is dropped, and reads what they have changed.
    fn hold(&mut self) -> io::Result<File> {
        let held = table::hold(&self.path)?;
        self.read()?;
        Ok(held)
    }

    fn read(&mut self) -> io::Result<()> {
        self.lines = strict::read(&self.path).map_err(|error| match error {
            KeysError::Io { source, .. } => source,
            other => io::Error::other(other),
        })?;
        Ok(())
    }

    fn remove(&mut self, host: &DaemonHost) {
        let name = host.to_string();
        self.lines.retain(|line| entry(line).is_none_or(|(entry, _)| entry != name));
    }
}

fn entry(line: &str) -> Option<(String, Fingerprint)> {
    let mut words = table::words(line);
    let host = DaemonHost::parse(words.next()?).ok()?;
    Some((host.to_string(), words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use haul::Identity;

    fn host(text: &str) -> DaemonHost {
        DaemonHost::parse(text).unwrap()
    }

    #[test]
    fn trust_is_by_host_and_port() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("known_hosts");
        std::fs::write(&path, "# mine\nnonsense\n").unwrap();
        let [one, two] = [(); 2].map(|()| Identity::generate().public_key().fingerprint());
        let mut hosts = KnownHosts::load(path.clone()).unwrap();
        assert_eq!(hosts.look_up(&host("far"), one), Known::Unknown);
        hosts.trust(&host("far"), one).unwrap();
        hosts.trust(&host("[::1]:9"), two).unwrap();

        let mut hosts = KnownHosts::load(path.clone()).unwrap();
        assert_eq!(hosts.look_up(&host("FAR:7700"), one), Known::Trusted);
        assert_eq!(hosts.look_up(&host("far"), two), Known::Changed(one));
        assert_eq!(hosts.look_up(&host("far:7701"), one), Known::Unknown);
        assert_eq!(hosts.look_up(&host("[::1]:9"), two), Known::Trusted);

        hosts.trust(&host("far"), two).unwrap();
        assert_eq!(hosts.look_up(&host("far"), one), Known::Changed(two));
        assert!(hosts.revoke(&host("far")).unwrap());
        assert!(!hosts.revoke(&host("far")).unwrap());
        assert!(std::fs::read_to_string(path).unwrap().starts_with("# mine\nnonsense\n"), "people's own lines are kept");
    }

    #[test]
    fn what_two_change_at_once_is_changed_by_both() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("known_hosts");
        let key = Identity::generate().public_key().fingerprint();
        let [mut one, mut other] = [(); 2].map(|()| KnownHosts::load(path.clone()).unwrap());
        one.trust(&host("one"), key).unwrap();
        other.trust(&host("other"), key).unwrap();
        let known = |name: &str| KnownHosts::load(path.clone()).unwrap().look_up(&host(name), key);
        assert_eq!((known("one"), known("other")), (Known::Trusted, Known::Trusted));
        assert!(one.revoke(&host("other")).unwrap());
        assert_eq!((known("one"), known("other")), (Known::Trusted, Known::Unknown));
    }
}

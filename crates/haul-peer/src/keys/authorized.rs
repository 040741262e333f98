//! The keys that may use the daemon, one a line: options, fingerprint, name.
//!
//! A line that cannot be understood lets nobody in, and neither does a second line for a key: it is a [`Fault`], to be named to whoever looks after the file. The first line that has a key decides
//! about it, be it a fault.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use haul::Fingerprint;
use thiserror::Error;

use super::rights::{Rights, RightsError};
use super::{KeysError, kept, strict, table};

/// The file.
#[derive(Debug)]
pub struct AuthorizedKeys {
    path: PathBuf,
    lines: Vec<String>,
}

/// A key that is authorised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Fingerprint,
    /// Whose it is, perhaps empty.
    pub name: String,
    /// What it may do.
    pub rights: Rights,
}

/// A line that is refused as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its number; the first is 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: EntryError,
}

/// Why a line lets nobody in.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EntryError {
    /// No key stands in it.
    #[error("there is no key in it")]
    NoKey,
    /// Something else stands where the key should.
    #[error("`{0}` is no key: options are one word, with commas, before the key")]
    NotAKey(String),
    /// The key has a line already, which decides.
    #[error("a line above has this key already")]
    Second,
    /// Its options cannot be understood.
    #[error(transparent)]
    Rights(#[from] RightsError),
}

impl AuthorizedKeys {
    /// Reads the file, if nobody else could have written it. Where no descriptor is left for that, what this process has read last counts, unless the file has changed since.
    pub fn load(path: PathBuf) -> Result<Self, KeysError> {
        let lines = kept::read(&path)?;
        Ok(Self { path, lines })
    }

    /// The entry of a key, the fault in its line, or none if there is no line with it.
    pub fn find(&self, key: Fingerprint) -> Option<Result<Entry, Fault>> {
        let (line, words) = self.lines_with_words().find(|(_, words)| key_of(words) == Some(key))?;
        Some(parse(&words).map_err(|reason| Fault { line, reason }))
    }

    /// The same of all keys, for whoever looks many of them up.
    pub fn by_key(&self) -> HashMap<Fingerprint, Result<Entry, Fault>> {
        let mut found = HashMap::new();
        for (line, words) in self.lines_with_words() {
            if let Some(key) = key_of(&words) {
                found.entry(key).or_insert_with(|| parse(&words).map_err(|reason| Fault { line, reason }));
            }
        }
        found
    }

    /// Authorises a key, in the file as it is by now. A name and rights that are not given stay as they are.
    pub fn authorize(&mut self, key: Fingerprint, name: Option<&str>, rights: Option<Rights>) -> Result<Entry, KeysError> {
        let _held = self.hold()?;
        let old = self.find(key).and_then(Result::ok).unwrap_or(Entry { key, name: String::new(), rights: Rights::default() });
        let name = name.map(|name| name.split_whitespace().collect::<Vec<_>>().join(" "));
        let entry = Entry { key, name: name.unwrap_or(old.name), rights: rights.unwrap_or(old.rights) };
        self.remove(|found| found == key);
        self.lines.push(format!("{} {key} {}", entry.rights.options(), entry.name).trim().to_owned());
        self.write()?;
        Ok(entry)
    }

    /// Withdraws a key from the file as it is by now; false if it was in no line.
    pub fn revoke(&mut self, key: Fingerprint) -> Result<bool, KeysError> {
        // Nothing is made where nothing is to be changed.
        self.lines = strict::read(&self.path)?;
        if self.find(key).is_none() {
            return Ok(false);
        }
        let _held = self.hold()?;
        let before = self.lines.len();
        self.remove(|found| found == key);
        let removed = self.lines.len() < before;
        if removed {
            self.write()?;
        }
        Ok(removed)
    }

    /// The keys of a name.
    pub fn named(&self, name: &str) -> Vec<Fingerprint> {
        self.entries().into_iter().filter(|entry| entry.name == name).map(|entry| entry.key).collect()
    }

    /// All keys that are authorised.
    pub fn entries(&self) -> Vec<Entry> {
        self.all().filter_map(Result::ok).collect()
    }

    /// All lines that are refused.
    pub fn faults(&self) -> Vec<Fault> {
        self.all().filter_map(Result::err).collect()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn all(&self) -> impl Iterator<Item = Result<Entry, Fault>> {
        let mut seen = Vec::new();
        self.lines_with_words().map(move |(line, words)| {
            let key = key_of(&words);
            let is_second = key.is_some_and(|key| seen.contains(&key));
            seen.extend(key);
            let parsed = if is_second { Err(EntryError::Second) } else { parse(&words) };
            parsed.map_err(|reason| Fault { line, reason })
        })
    }

    /// Lines that are not empty and no comments, with their numbers.
    fn lines_with_words(&self) -> impl Iterator<Item = (usize, Vec<&str>)> {
        let lines = self.lines.iter().enumerate();
        lines.map(|(index, line)| (index + 1, table::words(line).collect::<Vec<_>>())).filter(|(_, words)| !words.is_empty())
    }

    fn remove(&mut self, which: impl Fn(Fingerprint) -> bool) {
        self.lines.retain(|line| !key_of(&table::words(line).collect::<Vec<_>>()).is_some_and(&which));
    }

    /// Keeps others from changing the file, until what is returned is dropped, and reads what they have changed.
    fn hold(&mut self) -> Result<File, KeysError> {
        let held = table::hold(&self.path).map_err(|source| KeysError::Io { path: self.path.clone(), source })?;
        self.lines = strict::read(&self.path)?;
        Ok(held)
    }

    fn write(&self) -> Result<(), KeysError> {
        table::write(&self.path, &self.lines).map_err(|source| KeysError::Io { path: self.path.clone(), source })
    }
}

#[cfg(test)]
thread_local! {
    /// Lines that a key was looked for in.
    pub(super) static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The first key in a line, wherever it is: whatever is wrong with the line, it is about this one.
fn key_of(words: &[&str]) -> Option<Fingerprint> {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + 1);
    words.iter().find_map(|word| word.parse().ok())
}

fn parse(words: &[&str]) -> Result<Entry, EntryError> {
    let (options, rest) = match words {
        [first, rest @ ..] if first.parse::<Fingerprint>().is_err() => (Some(*first), rest),
        words => (None, words),
    };
    let [key, name @ ..] = rest else { return Err(EntryError::NoKey) };
    let key = key.parse().map_err(|_| EntryError::NotAKey((*key).to_owned()))?;
    let rights = options.map_or_else(|| Ok(Rights::default()), str::parse)?;
    Ok(Entry { key, name: name.join(" "), rights })
}

#[cfg(test)]
mod tests {
    use super::*;
    use haul::Identity;

    fn key() -> Fingerprint {
        Identity::generate().public_key().fingerprint()
    }

    fn loaded(text: &str) -> AuthorizedKeys {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("authorized_keys");
        table::write(&path, &text.lines().map(str::to_owned).collect::<Vec<_>>()).unwrap();
        AuthorizedKeys::load(path).unwrap()
    }

    #[test]
    fn authorised_until_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("authorized_keys");
        let (one, two) = (key(), key());
        let mut keys = AuthorizedKeys::load(path.clone()).unwrap();
        let rights: Rights = "root=pub,ro".parse().unwrap();
        keys.authorize(one, Some("alice\n at home"), Some(rights.clone())).unwrap();
        keys.authorize(two, None, None).unwrap();
        keys.authorize(one, None, None).unwrap();

        let mut keys = AuthorizedKeys::load(path).unwrap();
        assert_eq!(keys.find(one), Some(Ok(Entry { key: one, name: "alice at home".into(), rights })));
        assert_eq!(keys.find(two), Some(Ok(Entry { key: two, name: String::new(), rights: Rights::default() })));
        assert_eq!((keys.entries().len(), keys.faults().len()), (2, 0));
        assert_eq!(keys.named("alice at home"), [one]);
        assert!(keys.revoke(one).unwrap());
        assert!(!keys.revoke(one).unwrap());
        assert_eq!(keys.find(one), None);
    }

    #[test]
    fn a_line_that_is_not_understood_lets_nobody_in() {
        let [good, bad, twice] = [(); 3].map(|()| key());
        let keys = loaded(&format!(
            "# who may\nroot=pub,frobnicate {bad} bob\n{good} carol\n\nnonsense\n{bad}\nro {twice}\n{twice}\nroot=pub ro {twice}\n"
        ));
        assert_eq!(keys.entries().iter().map(|entry| entry.key).collect::<Vec<_>>(), [good, twice]);
        assert!(keys.find(good).unwrap().is_ok());
        // The line below would let it do everything.
        assert_eq!(keys.find(bad).unwrap().unwrap_err().line, 2);
        assert!(keys.find(twice).unwrap().unwrap().rights.read_only);
        assert_eq!(keys.faults().iter().map(|fault| fault.line).collect::<Vec<_>>(), [2, 5, 6, 8, 9]);
        let by_key = keys.by_key();
        assert_eq!(by_key.len(), 3);
        assert!([good, bad, twice].iter().all(|key| keys.find(*key).as_ref() == by_key.get(key)));
    }

    #[test]
    fn what_two_change_at_once_is_changed_by_both() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("authorized_keys");
        let [gone, new, late] = [(); 3].map(|()| key());
        AuthorizedKeys::load(path.clone()).unwrap().authorize(gone, None, None).unwrap();
        let [mut one, mut other] = [(); 2].map(|()| AuthorizedKeys::load(path.clone()).unwrap());
        assert!(one.revoke(gone).unwrap());
        other.authorize(new, None, None).unwrap();
        let keys = || AuthorizedKeys::load(path.clone()).unwrap();
        assert_eq!((keys().find(gone), keys().entries().len()), (None, 1), "it stays revoked");
        other.authorize(late, None, None).unwrap();
        assert!(one.revoke(late).unwrap() && keys().find(late).is_none(), "what came since is there to be revoked");

        // A directory is nothing that can be held.
        std::fs::remove_file(dir.path().join("authorized_keys.lock")).unwrap();
        std::fs::create_dir(dir.path().join("authorized_keys.lock")).unwrap();
        assert!(one.revoke(new).is_err() && other.authorize(late, None, None).is_err(), "without the lock nothing is changed");
        assert_eq!(keys().entries().len(), 1);
    }

    #[test]
    fn where_nothing_is_revoked_nothing_is_made() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!AuthorizedKeys::load(dir.path().join("no/authorized_keys")).unwrap().revoke(key()).unwrap());
        assert!(!AuthorizedKeys::load(dir.path().join("authorized_keys")).unwrap().revoke(key()).unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn revoking_takes_every_line_of_the_key() {
        let key = key();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("authorized_keys");
        table::write(&path, &[format!("what {key}"), format!("ro {key} me"), "# kept".to_owned()]).unwrap();
        assert!(AuthorizedKeys::load(path.clone()).unwrap().revoke(key).unwrap());
        assert_eq!(table::read(&path).unwrap(), ["# kept"]);
    }
}

//! What a far side may serve: its own options decide, not the client.
//!
//! Where sshd runs this program whatever the client asks for (`command=` of a key, ForceCommand), the client's own command line is in `SSH_ORIGINAL_COMMAND`. Its last word is haul's
//! greeting; nothing else of it is looked at, and nothing of it is run.

use std::env;
use std::fs;
use std::path::PathBuf;

use haul_files::{Access, Export, Ownership};
use haul_peer::{ClientHello, Refusal};
use haul_serve::Open;

use crate::args::{Errand, RemoteArgs};
use crate::exit::Failure;

/// The bounds of one login.
#[derive(Debug)]
pub struct Confined {
    /// Allowed errands; none: all.
    only: Option<Vec<Errand>>,
    /// Where copies end.
    root: Option<Export>,
}

impl Confined {
    /// As the options say.
    pub fn new(args: &RemoteArgs) -> Result<Self, Failure> {
        let only = match (&args.only[..], &args.root) {
            ([], None) => None,
            ([], Some(_)) => Some(vec![Errand::Cp]),
            (only, _) => Some(only.to_vec()),
        };
        let Some(root) = &args.root else { return Ok(Self { only, root: None }) };
        if only.as_ref().is_some_and(|only| only.contains(&Errand::Tunnel)) {
            return Err(Failure::new("haul remote: a tunnel runs any command: it cannot be confined to a directory")
                .hint("leave out --root, or `tunnel` in --only"));
        }
        let failed = |error: &dyn std::fmt::Display| Failure::new(format!("haul remote --root {}: {error}", root.display()));
        let path = fs::canonicalize(root).map_err(|error| failed(&error))?;
        if !path.is_dir() {
            return Err(failed(&"not a directory"));
        }
        let root = Export { name: "/".to_owned(), path, writable: !args.read_only, ownership: Ownership::Mask };
        Ok(Self { only, root: Some(root) })
    }

    /// Locks the process in to the root (Landlock), unless it is to reach other hosts too: their names are looked up in the system's files.
    pub fn lock_in(&self) {
        let Some(root) = &self.root else { return };
        if self.refuses(Errand::Proxy).is_none() {
            return;
        }
        let open = if root.writable { Open::default().writing(&root.path) } else { Open::default().reading(&root.path) };
        match open.lock_in() {
            Ok(locked) => tracing::debug!(?locked, "locked in"),
            Err(error) => tracing::warn!(%error, "not locked in"),
        }
    }

    /// Why an errand is refused, if it is.
    pub fn refuses(&self, errand: Errand) -> Option<Refusal> {
        let is_allowed = self.only.as_ref().is_none_or(|only| only.contains(&errand));
        let what = match errand {
            Errand::Cp => "copies",
            Errand::Perf => "measuring",
            Errand::Proxy => "a proxy",
            Errand::Tunnel => "commands",
        };
        (!is_allowed).then(|| Refusal {
            error: format!("the key of this login is not for {what} there").into(),
            hint: Some("its line in ssh's authorized_keys there says what it is for (haul remote --only)".into()),
        })
    }

    /// What copies may reach.
    pub fn access(&self) -> Access {
        if let Some(root) = &self.root {
            return Access::Root(root.clone());
        }
        let home = env::var_os("HOME").map(PathBuf::from).or_else(|| env::current_dir().ok());
        Access::Account { home: home.unwrap_or_else(|| PathBuf::from("/")) }
    }
}

/// The greeting in what a client wanted to have run: `haul remote GREETING`, haul by whatever path.
pub fn greeting_in(command: &str) -> Option<ClientHello> {
    ClientHello::from_word(word_in(command)?)
}

/// The word that says it.
pub fn word_in(command: &str) -> Option<&str> {
    let (before, word) = command.rsplit_once(' ')?;
    before.ends_with(" remote").then_some(word)
}

/// The login was used for something else.
pub fn for_haul_only() -> Failure {
    Failure::new("this login serves haul only: no shell, no other commands")
        .hint("haul cp, perf, proxy, pipe and rsync reach it by themselves")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn args(only: &[Errand], root: Option<&Path>, read_only: bool) -> RemoteArgs {
        RemoteArgs { greeting: None, only: only.to_vec(), root: root.map(Path::to_owned), read_only }
    }

    #[test]
    fn nothing_said_is_everything() {
        let free = Confined::new(&args(&[], None, false)).unwrap();
        for errand in [Errand::Cp, Errand::Perf, Errand::Proxy, Errand::Tunnel] {
            assert_eq!(free.refuses(errand), None);
        }
        assert!(matches!(free.access(), Access::Account { .. }));
    }

    #[test]
    fn a_root_is_for_copies_unless_more_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = Confined::new(&args(&[], Some(dir.path()), true)).unwrap();
        assert_eq!(root.refuses(Errand::Cp), None);
        for errand in [Errand::Perf, Errand::Proxy, Errand::Tunnel] {
            assert!(root.refuses(errand).is_some());
        }
        assert!(matches!(root.access(), Access::Root(Export { writable: false, ownership: Ownership::Mask, .. })));
        let both = Confined::new(&args(&[Errand::Cp, Errand::Perf], Some(dir.path()), false)).unwrap();
        assert_eq!(both.refuses(Errand::Perf), None);
        assert!(Confined::new(&args(&[Errand::Cp, Errand::Tunnel], Some(dir.path()), false)).is_err());
        assert!(Confined::new(&args(&[], Some(&dir.path().join("missing")), false)).is_err());
    }

    #[test]
    fn of_the_client_s_command_only_the_greeting_counts() {
        let hello = ClientHello::from_line(br#"{"bootstrap":1,"version":"9","client":"SHA256:x"}"#).unwrap();
        let word = hello.to_word();
        for command in [format!("haul remote {word}"), format!("'/opt/my haul/bin' remote {word}")] {
            assert_eq!(greeting_in(&command).as_ref(), Some(&hello), "{command}");
        }
        for command in [
            String::new(),
            "ls".into(),
            "haul remote".into(),
            word.clone(),
            format!("rm -rf {word}"),
            format!("haul remote {word} ; ls"),
            format!("haul remote {word}x!"),
            "haul remote e30".into(),
            format!("remote {word}"),
        ] {
            assert_eq!(greeting_in(&command), None, "{command}");
        }
    }
}

//! The command that copies from host to host, for a user to type: this machine has no part in it.

use std::ffi::{OsStr, OsString};

use haul_peer::{Host, Operand, SshCommand, SshHost, SshOptions, os_str, quoted_word};

/// A copy that one of two hosts is to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Direct {
    /// Who makes it: ssh reaches it.
    at: SshHost,
    /// Its operands, as words of that host's shell.
    operands: Vec<String>,
}

impl Direct {
    /// The host of the sources makes the copy, where all are on one that ssh reaches; or the target's, to which the sources come from a daemon. None where neither is so.
    pub fn of(sources: &[Operand], host: &Host, destination: &OsStr) -> Option<Self> {
        let paths = |at: &SshHost| {
            let there = |source: &Operand| match source {
                Operand::Ssh(host, path) if host == at => Some(pattern(path)),
                _ => None,
            };
            sources.iter().map(there).collect::<Option<Vec<_>>>()
        };
        let (at, mut operands, target) = match (sources.first()?, host) {
            (Operand::Ssh(at, _), host) => (at, paths(at)?, shown(&operand(host, destination))),
            (_, Host::Ssh(at)) if sources.iter().all(|source| matches!(source, Operand::Daemon(..))) => {
                (at, sources.iter().map(shown).collect(), pattern(destination))
            }
            _ => return None,
        };
        operands.push(target);
        Some(Self { at: at.clone(), operands })
    }

    /// The command, for a login as `ssh` has it and with these options of `haul cp`.
    pub fn command(&self, ssh: &SshOptions, options: &[OsString]) -> String {
        let options = options.iter().map(|option| word(&option.to_string_lossy()));
        let words: Vec<String> = ["cp".to_owned()].into_iter().chain(options).chain(self.operands.iter().cloned()).collect();
        let command = SshCommand::running(ssh, &self.at, &words.join(" "));
        let there = command.remote().to_string_lossy();
        let is_plain = there.bytes().all(|byte| is_plain(byte) || byte == b' ');
        format!("{} {}", command.login(), if is_plain { there.into_owned() } else { quoted_word(&there) })
    }
}

/// The target as an operand.
fn operand(host: &Host, destination: &OsStr) -> Operand {
    match host {
        Host::Ssh(host) => Operand::Ssh(host.clone(), destination.to_owned()),
        Host::Daemon(host) | Host::Open(host, _) | Host::Pinned(host, _) => {
            let path = destination.as_encoded_bytes();
            Operand::Daemon(host.clone(), os_str(path.strip_prefix(b"/").unwrap_or(path)).into_owned())
        }
    }
}

/// An operand as a word of a shell.
fn shown(operand: &Operand) -> String {
    word(&operand.to_string())
}

/// A path of the host at which the copy is made, as a word of its shell: which replaces a tilde and expands patterns, as it is done for a path behind a host's name.
fn pattern(path: &OsStr) -> String {
    let text = path.to_string_lossy();
    let is_name = matches!(Operand::parse(path), Ok(Operand::Local(_))) && !text.starts_with('-');
    let text = match &*text {
        "" => ".".to_owned(),
        text if is_name => text.to_owned(),
        text => format!("./{text}"),
    };
    let home = if text.starts_with('~') { text.find('/').map_or(text.len(), |slash| slash + 1) } else { 0 };
    let (home, rest) = text.split_at(home);
    let is_pattern = |c: char| matches!(c, '*' | '?' | '[' | ']');
    let parts = rest.split_inclusive(is_pattern).map(|part| match part.char_indices().next_back() {
        Some((end, last)) if is_pattern(last) => format!("{}{last}", if end == 0 { String::new() } else { word(&part[..end]) }),
        _ => word(part),
    });
    format!("{home}{}", parts.collect::<String>())
}

fn word(text: &str) -> String {
    if !text.is_empty() && text.bytes().all(is_plain) { text.to_owned() } else { quoted_word(text) }
}

/// Whether a byte means itself in any shell.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-' | b'+' | b',' | b'@' | b'%' | b':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;
    use crate::PlanError;

    fn direct(operands: &[&str]) -> Option<Direct> {
        let operands: Vec<OsString> = operands.iter().map(OsString::from).collect();
        match Plan::new(&operands) {
            Err(PlanError::BothRemote { direct, .. }) => direct,
            plan => panic!("{operands:?}: {plan:?}"),
        }
    }

    fn command(operands: &[&str]) -> String {
        direct(operands).expect("a command").command(&SshOptions::default(), &[])
    }

    #[test]
    fn the_source_s_host_copies_to_the_target() {
        assert_eq!(command(&["h:a", "g:b"]), "ssh h haul cp a g:b");
        assert_eq!(command(&["me@h:a", "h2:"]), "ssh -l me h haul cp a h2:");
        assert_eq!(command(&["h:", "haul://g/pub"]), "ssh h haul cp . haul://g:7700/pub");
        assert_eq!(command(&["h:a", "h:/b", "g:dir"]), "ssh h haul cp a /b g:dir");
        assert_eq!(command(&["h:gfarm:/a", "g:"]), "ssh h haul cp gfarm:/a g:");
    }

    #[test]
    fn ports_users_and_addresses_of_both_stay() {
        let both = command(&["scp://me@h:2222/a", "scp://you@g:2223//data/100%25"]);
        assert_eq!(both, "ssh -p 2222 -l me h haul cp a scp://you@g:2223//data/100%25");
        assert_eq!(command(&["[::1]:a", "me@[fe80::1%eth0]:b"]), "ssh '::1' 'haul cp a '\\''me@[fe80::1%eth0]:b'\\'''");
    }

    #[test]
    fn names_stay_names_and_patterns_patterns() {
        assert_eq!(command(&["h:my file", "g:"]), "ssh h 'haul cp '\\''my file'\\'' g:'");
        assert_eq!(command(&["h:logs/*.log", "g:"]), "ssh h 'haul cp logs/*.log g:'");
        assert_eq!(command(&["h:~/a", "g:"]), "ssh h 'haul cp ~/a g:'");
        assert_eq!(command(&["h:b:c", "h:-x", "h:-", "g:"]), "ssh h haul cp ./b:c ./-x ./- g:");
    }

    #[test]
    fn what_comes_from_a_daemon_is_fetched_by_the_target() {
        assert_eq!(command(&["haul://h/pub/a", "g:b"]), "ssh g haul cp haul://h:7700/pub/a b");
        for operands in [&["haul://h/pub/a", "haul://g/b"][..], &["one:a", "two:b", "g:"], &["here", "h:a", "g:"]] {
            assert_eq!(direct(operands), None, "{operands:?}");
        }
    }

    #[test]
    fn options_of_the_login_and_of_the_copy_go_where_they_belong() {
        let ssh = SshOptions { port: Some(22), remote_haul: Some("~/bin/haul".into()), ..SshOptions::default() };
        let options = ["-r", "--exclude=*.o"].map(OsString::from);
        let command = direct(&["h:a", "g:b"]).expect("a command").command(&ssh, &options);
        assert_eq!(command, "ssh -p 22 h '~/bin/haul cp -r '\\''--exclude=*.o'\\'' a g:b'");
    }
}

//! The command line of ssh.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use super::{ClientHello, Family, SshOptions, script};
use crate::bootstrap::Bootstrap;
use crate::operand::SshHost;
use crate::system::{SSH_SETTINGS, os_str, ssh};

/// How ssh is to be called for one host.
#[derive(Debug, Clone)]
pub struct SshCommand {
    program: OsString,
    arguments: Vec<OsString>,
    /// The first of them are not the user's.
    own: usize,
    destination: OsString,
    remote: OsString,
    /// What is run there without haul's arguments, as a word of the shell.
    haul: OsString,
    bootstrap: Option<Bootstrap>,
}

impl SshCommand {
    /// For the far side of a connection: `haul remote`.
    pub fn new(options: &SshOptions, host: &SshHost) -> Self {
        Self::running(options, host, "remote")
    }

    /// For a command of haul's there; `words` are as its shell reads them. The user's options are put together with those that keep ssh to one task: to run one command.
    pub fn running(options: &SshOptions, host: &SshHost, words: &str) -> Self {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut option = |letter: &str, value: &OsStr| arguments.extend([letter.into(), value.to_owned()]);
        for set in [
            "ForwardX11=no",
            "PermitLocalCommand=no",
            "ClearAllForwardings=yes",
            "RemoteCommand=none",
            "RequestTTY=no",
            "ForwardAgent=no",
        ]
        .iter()
        .chain(&SSH_SETTINGS)
        {
            option("-o", OsStr::new(set));
        }
        let own = arguments.len();
        let mut option = |letter: &str, value: &OsStr| arguments.extend([letter.into(), value.to_owned()]);
        if let Some(config) = &options.config {
            option("-F", config.as_os_str());
        }
        for identity in &options.identity {
            option("-i", identity.as_os_str());
        }
        if let Some(jump) = &options.jump {
            option("-J", jump);
        }
        for setting in &options.option {
            option("-o", setting);
        }
        if let Some(port) = host.port.or(options.port) {
            option("-p", OsStr::new(&port.to_string()));
        }
        if let Some(user) = &host.user {
            option("-l", user);
        }
        let family = options.family;
        let flags =
            [(family == Family::Ipv4, "-4"), (family == Family::Ipv6, "-6"), (options.quiet, "-q"), (options.verbose, "-v")];
        arguments.extend(flags.iter().filter(|(wanted, _)| *wanted).map(|(_, flag)| OsString::from(flag)));
        let haul = remote_haul(options.remote_haul.as_deref());
        let mut remote = haul.clone();
        remote.push(" ");
        remote.push(words);
        let program = options.program.clone().unwrap_or_else(ssh);
        Self { program, arguments, own, destination: host.host.clone(), remote, haul, bootstrap: options.bootstrap.clone() }
    }

    /// What a user types to log in there in the same way.
    pub fn login(&self) -> String {
        let options = self.arguments.get(self.own..).unwrap_or_default();
        let words = [&self.program].into_iter().chain(options).chain([&self.destination]);
        let words = words.map(|word| quoted(word).to_string_lossy().into_owned());
        words.collect::<Vec<_>>().join(" ")
    }

    /// Runs the far side.
    pub fn start(&self) -> Command {
        let mut command = self.base();
        command.arg("--").arg(&self.destination).arg(&self.remote);
        command
    }

    /// Runs the far side, and greets it; where there is a program for a far side without haul, by way of the script that asks for it.
    pub fn start_with(&self, hello: &ClientHello) -> Command {
        let mut greeted = self.clone();
        if let Some(bootstrap) = &self.bootstrap {
            // A program is half as long on the way. The user's own word on this came first, and counts.
            greeted.arguments.extend(["-o".into(), "Compression=yes".into()]);
            greeted.remote = script::command(bootstrap, &self.haul.to_string_lossy()).into();
            greeted.remote.push(" remote");
        }
        greeted.remote.push(" ");
        greeted.remote.push(hello.to_word());
        greeted.start()
    }

    /// Logs in once more, to have its standard streams led to a port of the far host's own. It asks nothing, shares no connection, and ends when nothing has come back for half a minute.
    pub fn forward(&self, port: u16) -> Command {
        let mut command = Command::new(&self.program);
        // The first word on each counts.
        for set in [
            "BatchMode=yes",
            "ControlMaster=no",
            "ControlPath=none",
            "Compression=no",
            "ServerAliveInterval=10",
            "ServerAliveCountMax=3",
        ] {
            command.args(["-o", set]);
        }
        command.args(&self.arguments).arg("-W").arg(format!("127.0.0.1:{port}")).arg("--").arg(&self.destination);
        // What asks by way of a jump host has no terminal, and is to open no window either.
        command.env("SSH_ASKPASS_REQUIRE", "never");
        command
    }

    /// What a far side gets that has no haul of this version.
    pub const fn bootstrap(&self) -> Option<&Bootstrap> {
        self.bootstrap.as_ref()
    }

    /// Asks ssh what it makes of the host name: `ssh -G`.
    pub fn explain(&self) -> Command {
        let mut command = self.base();
        command.arg("-G").arg("--").arg(&self.destination);
        command
    }

    /// The program, as the user named it.
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// What the far side's shell is told to run.
    pub fn remote(&self) -> &OsStr {
        &self.remote
    }

    fn base(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }
}

/// One word for any shell.
pub fn quoted_word(word: &str) -> String {
    quoted(OsStr::new(word)).to_string_lossy().into_owned()
}

/// haul over there, as a word of the shell.
fn remote_haul(path: Option<&OsStr>) -> OsString {
    let Some(path) = path else { return OsString::from("haul") };
    // The far side's shell is to replace the tilde: it stays outside the quotes.
    let Some(rest) = path.as_encoded_bytes().strip_prefix(b"~/") else { return quoted(path) };
    let mut home = OsString::from("~/");
    home.push(quoted(&os_str(rest)));
    home
}

/// One word for any shell, in single quotes where it needs them.
fn quoted(word: &OsStr) -> OsString {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'_' | b'-' | b'+' | b',' | b'@' | b'%');
    if !word.is_empty() && word.as_encoded_bytes().iter().all(plain) {
        return word.to_owned();
    }
    let mut quoted = vec![b'\''];
    for &byte in word.as_encoded_bytes() {
        match byte {
            b'\'' => quoted.extend(b"'\\''"),
            // csh expands ! even between single quotes.
            b'!' => quoted.extend(b"'\\!'"),
            byte => quoted.push(byte),
        }
    }
    quoted.push(b'\'');
    os_str(&quoted).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words before the user's: six settings, and those of the system.
    const OWN: usize = 2 * (6 + SSH_SETTINGS.len());

    fn line(options: &SshOptions, host: &SshHost) -> Vec<String> {
        let command = SshCommand::new(options, host).start();
        command.get_args().skip(OWN).map(|arg| arg.to_string_lossy().into_owned()).collect()
    }

    fn host(user: Option<&str>, port: Option<u16>) -> SshHost {
        SshHost { user: user.map(Into::into), host: "far".into(), port }
    }

    #[test]
    fn plain() {
        assert_eq!(line(&SshOptions::default(), &host(None, None)), ["--", "far", "haul remote"]);
    }

    #[test]
    fn every_option_reaches_ssh() {
        let options = SshOptions {
            port: Some(2222),
            identity: vec!["k1".into(), "k2".into()],
            jump: Some("via".into()),
            config: Some("conf".into()),
            option: vec!["A=b".into()],
            family: Family::Ipv6,
            remote_haul: Some("/opt/my haul/bin".into()),
            ..SshOptions::default()
        };
        let expected = "-F conf -i k1 -i k2 -J via -o A=b -p 2222 -l me -6 -- far '/opt/my haul/bin' remote";
        assert_eq!(line(&options, &host(Some("me"), None)).join(" "), expected);
    }

    #[test]
    fn the_port_in_the_address_wins() {
        let options = SshOptions { port: Some(1), ..SshOptions::default() };
        assert!(line(&options, &host(None, Some(2))).join(" ").contains("-p 2 "));
    }

    #[test]
    fn words_are_safe_in_any_shell() {
        for (word, safe) in [
            ("haul", "haul"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("$(x)`y`", "'$(x)`y`'"),
            ("a!b", "'a'\\!'b'"),
        ] {
            assert_eq!(quoted(OsStr::new(word)), safe);
        }
        assert_eq!(remote_haul(Some(OsStr::new("~/my bin/haul"))), "~/'my bin/haul'");
    }

    #[test]
    fn one_more_login_leads_to_a_port_there_and_asks_nothing() {
        let options = SshOptions { option: vec!["BatchMode=no".into()], ..SshOptions::default() };
        let command = SshCommand::new(&options, &host(None, Some(22))).forward(60001);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words[..2], ["-o", "BatchMode=yes"], "the first word counts");
        assert!(words.join(" ").ends_with("-o BatchMode=no -p 22 -W 127.0.0.1:60001 -- far"), "{words:?}");
    }

    #[test]
    fn asks_ssh_for_its_view_of_the_host() {
        let command = SshCommand::new(&SshOptions::default(), &host(None, None)).explain();
        let last: Vec<_> = command.get_args().skip(OWN).collect();
        assert_eq!(last, ["-G", "--", "far"]);
    }
}

//! Arguments of `haul rsh`: ssh's letters, in ssh's order.
//!
//! Programs that start ssh write its options before the host or behind it, in bundles and with values in the same word (`-p22`). [`arranged`] brings them all before the host, as ssh's
//! own getopt(3) loop reads them; which letters take a value is known from the definition below, so there is one list of them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use clap::Args;
use haul::ControllerChoice;
use haul_peer::{Carriage, DaemonHost, Family, SshOptions};

use super::mode::ModeParser;
use super::{BootstrapArgs, PortRange, STREAM_MODE, SilenceArgs};

/// Run a command on another host, as ssh would, with its streams over haul
///
/// For programs that take a remote shell: `rsync -e 'haul rsh'`, `git -c core.sshCommand='haul rsh' fetch`, `sftp -S`. It takes ssh's letters, before the host and behind
/// it, and ssh logs in. The command's standard error and exit status come back; 255 means that haul itself failed. A link to haul that is called ssh is `haul rsh` too, and
/// starts the next ssh on the PATH.
///
/// Without a command, the login shell reads its commands from standard input, which must not be a terminal: haul makes none. What only ssh can do (forwarding of ports, of X11, of agents) is refused.
#[derive(Debug, Args)]
#[command(
    args_override_self = true,
    disable_help_flag = true,
    override_usage = "haul rsh [OPTIONS] [USER@]HOST [COMMAND...]",
    after_help = AFTER_HELP
)]
pub struct RshArgs {
    /// Print help
    #[arg(long, action = clap::ArgAction::HelpLong)]
    pub help: Option<bool>,
    /// Who logs in
    #[arg(short = 'l', value_name = "USER")]
    pub user: Option<OsString>,
    /// Port of the ssh server
    #[arg(short = 'p', value_name = "PORT")]
    pub ssh_port: Option<u16>,
    /// Do not read standard input
    #[arg(short = 'n')]
    pub no_input: bool,
    /// Run the subsystem that is named in the place of the command: `sftp`, or one that sshd_config there names
    #[arg(short = 's')]
    pub subsystem: bool,
    /// Run nothing; stay connected until interrupted
    #[arg(short = 'N')]
    pub no_command: bool,
    /// Go to the background when the login is over; standard input is not read
    #[arg(short = 'f')]
    pub background: bool,
    /// This is the process in the background: standard input is a pipe to the one in front, which waits for a word of the login's end
    #[arg(long, hide = true)]
    pub behind: bool,
    /// Connect standard input and output to a TCP port as the far side sees it, as ProxyCommand of ssh for instance
    #[arg(short = 'W', value_name = "HOST:PORT")]
    pub forward: Option<String>,
    /// Append haul's and the command's errors to FILE
    #[arg(short = 'E', value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(short = 'q')]
    pub quiet: bool,
    /// ssh says more
    #[arg(short = 'v', action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Congestion control, as for `haul cp`; the default is quickstart
    #[arg(long, value_name = "MODE", value_parser = ModeParser, hide_possible_values = true, default_value_t = STREAM_MODE, hide_default_value = true)]
    pub mode: ControllerChoice,
    /// UDP port or ports that the far side may use
    #[arg(long, value_name = "PORT[-PORT]")]
    pub udp_port: Option<PortRange>,
    /// What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes
    #[arg(long, value_name = "WAY", default_value_t, hide_default_value = true)]
    pub transport: Carriage,
    /// `haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way
    #[arg(long, value_name = "HOST[:PORT]", value_parser = DaemonHost::parse)]
    pub relay: Option<DaemonHost>,
    #[command(flatten)]
    pub silence: SilenceArgs,
    /// Directory of haul's own keys; not used with ssh
    #[arg(long, value_name = "DIR", hide = true)]
    pub state: Option<PathBuf>,
    /// Where the command is to run
    #[arg(value_name = "[USER@]HOST")]
    pub host: Option<OsString>,
    /// The command
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
    /// How ssh logs in.
    #[command(flatten)]
    pub login: LoginArgs,
    #[command(flatten)]
    pub bootstrap: BootstrapArgs,
    /// What ssh does and haul need not.
    #[command(flatten)]
    pub ignored: IgnoredArgs,
    /// What only ssh does.
    #[command(flatten)]
    pub refused: RefusedArgs,
}

/// How ssh logs in, in its letters.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for the login")]
pub struct LoginArgs {
    /// File with the private key to log in with
    #[arg(short, value_name = "KEY")]
    pub identity: Vec<PathBuf>,
    /// Log in by way of another host
    #[arg(short = 'J', value_name = "JUMP")]
    pub jump: Option<OsString>,
    /// Configuration file for ssh
    #[arg(short = 'F', value_name = "CONFIG")]
    pub config: Option<PathBuf>,
    /// Option in the form of ssh_config(5)
    #[arg(short, value_name = "OPTION", allow_hyphen_values = true)]
    pub option: Vec<OsString>,
    /// Use IPv4 only
    #[arg(short = '4', overrides_with = "ipv6")]
    pub ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6')]
    pub ipv6: bool,
    /// Ciphers of the login
    #[arg(short = 'c', value_name = "CIPHERS")]
    pub ciphers: Option<OsString>,
    /// Message authentication of the login
    #[arg(short = 'm', value_name = "MACS")]
    pub macs: Option<OsString>,
    /// Logins after this one share its ssh
    #[arg(short = 'M')]
    pub master: bool,
    /// The socket by which logins are shared
    #[arg(short = 'S', value_name = "SOCKET")]
    pub control_path: Option<OsString>,
    /// Tell the ssh that is shared to check, exit or stop
    #[arg(short = 'O', value_name = "WORD")]
    pub control: Option<OsString>,
    /// Print what ssh makes of its configuration for the host
    #[arg(short = 'G')]
    pub explain: bool,
    /// Print ssh's version
    #[arg(short = 'V')]
    pub ssh_version: bool,
    /// Program to use in place of ssh
    #[arg(long = "ssh", value_name = "PROGRAM")]
    pub program: Option<OsString>,
    /// haul's path on the far side, where its PATH does not have it
    #[arg(long, value_name = "PATH")]
    pub remote_haul: Option<OsString>,
}

/// Taken, for programs give them, and without effect.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options without effect")]
pub struct IgnoredArgs {
    /// No terminal is ever made
    #[arg(short = 'T')]
    pub no_terminal: bool,
    /// No terminal is ever made; a single -t at a terminal is refused, for somebody waits for one
    #[arg(short = 't', action = clap::ArgAction::Count)]
    pub terminal: u8,
    /// X11 is never forwarded
    #[arg(short = 'x')]
    pub no_x11: bool,
    /// The agent is never forwarded
    #[arg(short = 'a')]
    pub no_agent: bool,
    /// There is no terminal to escape from
    #[arg(short = 'e', value_name = "CHAR", allow_hyphen_values = true)]
    pub escape: Option<OsString>,
    /// Nothing is compressed: programs that gain by it do that themselves
    #[arg(short = 'C')]
    pub compress: bool,
    /// There is no other version of the protocol
    #[arg(short = '2')]
    pub version_two: bool,
}

/// Refused in words.
#[derive(Debug, Args)]
pub struct RefusedArgs {
    #[arg(short = 'A', hide = true)]
    agent: bool,
    #[arg(short = 'X', hide = true)]
    x11: bool,
    #[arg(short = 'Y', hide = true)]
    trusted_x11: bool,
    #[arg(short = 'L', hide = true)]
    local: Vec<OsString>,
    #[arg(short = 'R', hide = true)]
    remote: Vec<OsString>,
    #[arg(short = 'D', hide = true)]
    dynamic: Vec<OsString>,
    #[arg(short = 'w', hide = true)]
    tunnel: Option<OsString>,
    #[arg(short = 'b', hide = true)]
    bind: Option<OsString>,
    #[arg(short = 'B', hide = true)]
    interface: Option<OsString>,
}

impl RshArgs {
    /// For the library that starts ssh.
    pub fn ssh(&self) -> SshOptions {
        let LoginArgs { identity, jump, config, option, ciphers, macs, control_path, .. } = &self.login;
        let set = |name: &str, value: &OsStr| {
            let mut set = OsString::from(name);
            set.push("=");
            set.push(value);
            set
        };
        let named = [("Ciphers", ciphers), ("MACs", macs), ("ControlPath", control_path)];
        let mut options: Vec<OsString> = named.iter().filter_map(|(name, value)| Some(set(name, value.as_deref()?))).collect();
        options.extend(self.login.master.then(|| "ControlMaster=yes".into()));
        options.extend(option.iter().cloned());
        SshOptions {
            program: self.login.program.clone(),
            config: config.clone(),
            port: self.ssh_port,
            identity: identity.clone(),
            jump: jump.clone(),
            option: options,
            family: Family::of(self.login.ipv4, self.login.ipv6),
            remote_haul: self.login.remote_haul.clone(),
            bootstrap: None,
            quiet: self.quiet,
            verbose: self.verbose > 0,
            carriage: self.transport,
            relay: self.relay.clone(),
        }
    }

    /// What is asked for that only ssh does, and what to do about it.
    pub fn refused(&self) -> Option<(String, &'static str)> {
        let RefusedArgs { agent, x11, trusted_x11, local, remote, dynamic, tunnel, bind, interface } = &self.refused;
        let letters = [
            (*agent, "-A", AGENT),
            (*x11, "-X", X11),
            (*trusted_x11, "-Y", X11),
            (!local.is_empty(), "-L", PORTS),
            (!remote.is_empty(), "-R", PORTS),
            (!dynamic.is_empty(), "-D", PORTS),
            (tunnel.is_some(), "-w", "use ssh itself for a tunnel device"),
            (bind.is_some(), "-b", ADDRESS),
            (interface.is_some(), "-B", ADDRESS),
        ];
        let letter = letters.iter().find(|(given, ..)| *given).map(|(_, letter, hint)| ((*letter).to_owned(), *hint));
        letter.or_else(|| self.login.option.iter().find_map(|option| refused_setting(option)))
    }

    /// The values of a setting of ssh_config(5), as far as they stand in `-o`.
    pub fn sets(&self, wanted: &str) -> Option<String> {
        let values = self.login.option.iter().map(|option| setting(option));
        values.into_iter().find(|(name, _)| name == wanted).map(|(_, value)| value)
    }
}

/// Name, in small letters, and value of `NAME=VALUE` or `NAME VALUE`.
fn setting(option: &OsStr) -> (String, String) {
    let text = option.to_string_lossy();
    let text = text.trim();
    let at = text.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(text.len());
    let (name, value) = text.split_at(at);
    let value = value.trim_start_matches(|c: char| c == '=' || c.is_whitespace());
    (name.to_ascii_lowercase(), value.trim_matches('"').to_owned())
}

fn refused_setting(option: &OsStr) -> Option<(String, &'static str)> {
    let (name, value) = setting(option);
    let hint = match name.as_str() {
        "forwardagent" => AGENT,
        "forwardx11" | "forwardx11trusted" => X11,
        "localforward" | "remoteforward" | "dynamicforward" => PORTS,
        "tunnel" => "use ssh itself for a tunnel device",
        "bindaddress" | "bindinterface" => ADDRESS,
        "remotecommand" => "give the command behind the host",
        _ => return None,
    };
    let harmless = matches!(value.to_ascii_lowercase().as_str(), "no" | "none" | "false" | "");
    (!harmless).then(|| (format!("-o {}", option.to_string_lossy().trim()), hint))
}

/// ssh's words with all options before the host, and `--` between: `-p 22 far -l me -e none -- ls -l` becomes `-p 22 -l me -e none -- far ls -l`.
pub fn arranged(words: &[OsString], definition: &clap::Command) -> Vec<OsString> {
    let takes_value = |letter: char| {
        let of = |arg: &&clap::Arg| arg.get_short() == Some(letter);
        definition.get_arguments().find(of).is_some_and(|arg| arg.get_action().takes_values())
    };
    let long_takes_value = |name: &str| {
        let of = |arg: &&clap::Arg| arg.get_long() == Some(name);
        let takes_word = |arg: &clap::Arg| arg.get_action().takes_values() && !arg.is_require_equals_set();
        definition.get_arguments().find(of).is_some_and(takes_word)
    };
    let (mut options, mut host) = (Vec::new(), None);
    let mut words = words.iter();
    let mut rest: Vec<OsString> = Vec::new();
    while let Some(word) = words.next() {
        let bytes = word.as_bytes();
        if bytes == b"--" {
            if host.is_none() {
                host = words.next().cloned();
            }
            // ssh looks for options behind the host once more, but not behind a second host.
            rest.extend(words.by_ref().cloned());
            break;
        }
        if let Some(long) = bytes.strip_prefix(b"--") {
            options.push(word.clone());
            if long_takes_value(&String::from_utf8_lossy(long)) {
                options.extend(words.next().cloned());
            }
        } else if bytes.len() > 1 && bytes.first() == Some(&b'-') {
            arrange_bundle(bytes, takes_value, &mut words, &mut options);
        } else if host.is_none() {
            host = Some(word.clone());
        } else {
            rest.push(word.clone());
            rest.extend(words.by_ref().cloned());
        }
    }
    options.push("--".into());
    options.extend(host);
    options.extend(rest);
    options
}

/// `-xTp22`: letters until the first that takes a value, which is the rest of the word or the next word.
fn arrange_bundle<'a>(
    bundle: &[u8],
    takes_value: impl Fn(char) -> bool,
    words: &mut impl Iterator<Item = &'a OsString>,
    options: &mut Vec<OsString>,
) {
    for (index, &letter) in bundle.iter().enumerate().skip(1) {
        let option = OsString::from_vec(vec![b'-', letter]);
        options.push(option);
        if takes_value(char::from(letter)) {
            let value = bundle.get(index + 1..).filter(|rest| !rest.is_empty()).map(|rest| OsStr::from_bytes(rest).to_owned());
            options.extend(value.or_else(|| words.next().cloned()));
            return;
        }
    }
}

const AGENT: &str = "haul does not forward agents; log in with ssh where that is needed";
const X11: &str = "haul does not forward X11; use ssh itself for that";
const PORTS: &str = "`haul proxy HOST` forwards ports, by -L, -R and -D as ssh has them";
const ADDRESS: &str = "haul's packets leave by the route to the host; set a route, or use ssh itself";

const AFTER_HELP: &str = "\
Examples:
  git -c core.sshCommand='haul rsh' clone host:project
  rsync -a -e 'haul rsh' photos/ nas:photos/
  sshfs -o ssh_command='haul rsh' host: mnt
  ln -s $(command -v haul) ~/haul-ssh/ssh; PATH=~/haul-ssh:$PATH docker -H ssh://host ps

Exit status: the command's; 255 if haul or the login failed.";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<RshArgs, clap::Error> {
        let words = line.iter().map(OsString::from).collect();
        match crate::args::parse(words)? {
            crate::args::Command::Rsh(args) => Ok(*args),
            _ => panic!("no rsh"),
        }
    }

    fn rsh(line: &str) -> RshArgs {
        parsed(&line.split(' ').collect::<Vec<_>>()).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    fn command(args: &RshArgs) -> String {
        args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_words_that_programs_give_are_understood() {
        // Of git, scp, sftp, sshfs, rclone, restic, rsync, borg, unison, rdiff-backup, docker, Ansible (research of fleet-and-bindings, E).
        for (line, host, does) in [
            ("haul rsh -o SendEnv=GIT_PROTOCOL -p 2222 me@far git-upload-pack", "me@far", "git-upload-pack"),
            ("haul rsh -x -oPermitLocalCommand=no -oRequestTTY=no -p 22 -l me -s -- far sftp", "far", "sftp"),
            ("ssh -x -a -oClearAllForwardings=yes -oPort=22 -2 -s -- far sftp", "far", "sftp"),
            ("haul rsh me@far -s sftp", "me@far", "sftp"),
            ("haul rsh far -p 22 -l me -s sftp", "far", "sftp"),
            ("haul rsh -l me far rsync --server -vlogDtpre.iLsfxCIvu . /x", "far", "rsync --server -vlogDtpre.iLsfxCIvu . /x"),
            ("haul rsh -p22 me@far borg serve --umask=077", "me@far", "borg serve --umask=077"),
            ("haul rsh -l me -p 22 far -e none unison -server", "far", "unison -server"),
            ("haul rsh --mode modest far rdiff-backup server", "far", "rdiff-backup server"),
            ("/opt/x/ssh -T -- far docker system dial-stdio", "far", "docker system dial-stdio"),
            ("ssh -C -o ControlMaster=auto -o ControlPersist=60s -tt far /bin/sh -c x", "far", "/bin/sh -c x"),
        ] {
            let args = rsh(line);
            assert_eq!((args.host.clone().unwrap().to_str().unwrap(), command(&args).as_str()), (host, does), "{line}");
        }
    }

    #[test]
    fn letters_come_in_bundles_and_behind_the_host() {
        let args = rsh("haul rsh -xTp22 -tt far -lme -nq -oA=b -- -x");
        assert!(args.no_input && args.quiet && args.ignored.no_x11 && args.ignored.terminal == 2);
        assert_eq!((args.ssh_port, args.user.as_deref()), (Some(22), Some(OsStr::new("me"))));
        assert_eq!((args.login.option.len(), command(&args).as_str()), (1, "-x"));
        // An option's value may have a blank in it.
        let args = parsed(&["ssh", "-oForwardX11 no", "far", "ls", "-s"]).unwrap();
        assert_eq!((args.login.option, args.subsystem), (vec![OsString::from("ForwardX11 no")], false));
    }

    #[test]
    fn what_only_ssh_does_is_refused() {
        for (line, what) in [
            ("haul rsh -A far true", "-A"),
            ("haul rsh -L 1:x:2 far", "-L"),
            ("haul rsh -o ForwardAgent=yes far true", "ForwardAgent=yes"),
            ("haul rsh -oLocalForward=1 far true", "-o LocalForward=1"),
        ] {
            assert!(rsh(line).refused().expect(line).0.contains(what), "{line}");
        }
        assert!(rsh("haul rsh -oForwardAgent=no -oRemoteCommand=none far true").refused().is_none());
        assert!(parsed(&["haul", "rsh", "-Z", "far", "true"]).is_err());
    }

    #[test]
    fn the_login_gets_what_is_about_it() {
        let ssh = rsh("haul rsh -M -S sock -c aes -F conf -i key -J jump -oA=b -4 -v far x").ssh();
        assert_eq!(ssh.option, ["Ciphers=aes", "ControlPath=sock", "ControlMaster=yes", "A=b"]);
        assert!(ssh.verbose && ssh.family == Family::Ipv4 && ssh.jump.is_some() && ssh.config.is_some());
    }
}

//! `haul rsh`: in the place of ssh, for programs that take a remote shell.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use haul_config::definition;
use haul_peer::{Connector, Host, SshHost, SshOptions, greeting_in};
use haul_tunnel::program::{self, Ask, Far, Status};

use crate::args::{RshArgs, arranged};
use crate::exit::{Exit, Failure};
use crate::meanwhile::User;
use crate::orders::Carried;
use crate::output::PeerOutput;
use crate::pipe::{joined, standard};
use crate::{bootstrap, config, interrupt, logging, output};

/// What ssh ends with when it fails itself; rsync and others know this number.
pub const FAILED: Exit = Exit::Code(255);
/// Set for the ssh that takes this program's place: one that leads back here is not followed again.
const HANDED_OVER: &str = "HAUL_RSH_HANDED_OVER";
/// A login shell that reads commands: what ssh runs where no command is given.
const LOGIN_SHELL: &[u8] = b"exec \"${SHELL:-/bin/sh}\" -l";

/// Runs the command.
pub fn run(args: RshArgs, arguments: &[OsString]) -> Exit {
    logging::start(logging::Audience::Person, args.verbose.saturating_sub(1), args.quiet);
    configured(args, arguments).and_then(|args| rsh(&args)).map_or_else(
        |failure| {
            output::print_failure(&failure);
            FAILED
        },
        Exit::Code,
    )
}

/// The arguments, with what the configuration file says of the host.
fn configured(args: RshArgs, arguments: &[OsString]) -> Result<RshArgs, Failure> {
    // What is about ssh alone names no host, or is handed on as it is.
    let Ok((host, _)) = host(&args) else { return Ok(args) };
    let words = arranged(arguments, &definition::<RshArgs>());
    Ok(config::command_line(words)?.of(Some(&Host::Ssh(host)))?)
}

fn rsh(args: &RshArgs) -> Result<u8, Failure> {
    if let Some((what, hint)) = args.refused() {
        return Err(Failure::new(format!("{what}: not with haul rsh")).hint(hint));
    }
    if args.login.explain || args.login.ssh_version || args.login.control.is_some() {
        return Err(hand_over());
    }
    if let Some(log) = &args.log {
        append_errors_to(log).map_err(|error| Failure::new(format!("{}: {error}", log.display())))?;
    }
    // A script called ssh that calls haul rsh: its login comes back here, and would for ever.
    if greeting_in(&String::from_utf8_lossy(&joined(&args.command))).is_some() {
        return Err(circle());
    }
    let (host, port) = host(args)?;
    let ask = ask(args)?;
    if args.background && !args.behind {
        return go_behind();
    }
    interrupt::watch_as_shell();
    let mut ssh = SshOptions { bootstrap: bootstrap::asked(&args.bootstrap)?, ..args.ssh() };
    ssh.port = port.or(ssh.port);
    ssh.program = ssh.program.or_else(other_ssh);
    let connector = Connector {
        ssh,
        udp_port: args.udp_port,
        state: args.state.clone(),
        transport: program::transport(args.mode, args.silence.timeout()),
        tells_outages: !args.quiet,
        tell: Arc::new(User),
        cancel: interrupt::cancel().clone(),
        ..Connector::new(program::PROTOCOL)
    };
    let stays = matches!(ask, Ask::Stay);
    let reads = !(args.no_input || args.background || args.no_command || args.behind);
    let far = Far { connector, host: Host::Ssh(host) };
    let words: Vec<OsString> = args.host.iter().chain(&args.command).cloned().collect();
    let (control, _orders) = Carried::new("rsh", &words, None, !args.quiet).taking_orders();
    let on_connected = |connection: &haul::Connection| {
        control.connected(connection);
        if args.behind {
            tell_in_front();
        }
    };
    let ran = far.run(ask, standard(reads)?, PeerOutput::of_a_command(), on_connected)?;
    let ended_first = || Failure::new(format!("{}: the connection ended before the command", far.host));
    let status = ran.status.or(stays.then_some(Status::Code(0)));
    status.map(Status::code).ok_or_else(ended_first)
}

/// `[user@]host` or `ssh://[user@]host[:port]`; `-l` counts more.
fn host(args: &RshArgs) -> Result<(SshHost, Option<u16>), Failure> {
    let named =
        args.host.as_deref().ok_or_else(|| Failure::new("no host is named").hint("`haul rsh --help` shows how to call it"))?;
    let unusable = |error: haul_peer::OperandError| Failure::new(error.to_string());
    let (host, port) = match named.to_str().and_then(|text| text.strip_prefix("ssh://")) {
        Some(address) => {
            let (address, port) = match address.trim_end_matches('/').rsplit_once(':') {
                Some((address, port)) if !port.contains(']') => {
                    let number = port.parse().map_err(|_| Failure::new(format!("{port}: not a port")))?;
                    (address, Some(number))
                }
                _ => (address.trim_end_matches('/'), None),
            };
            (SshHost::parse(address.as_ref()).map_err(unusable)?, port)
        }
        None => (SshHost::parse(named).map_err(unusable)?, None),
    };
    Ok((SshHost { user: args.user.clone().or(host.user), ..host }, port))
}

/// What the far side is to do.
fn ask(args: &RshArgs) -> Result<Ask, Failure> {
    let wants_terminal = args.sets("requesttty").is_some_and(|value| value == "yes") || args.ignored.terminal == 1;
    if wants_terminal && io::stdin().is_terminal() {
        return Err(Failure::new("-t: haul rsh has no terminal to give").hint("use ssh for a session at a terminal"));
    }
    match (&args.forward, args.command.is_empty()) {
        (Some(to), true) if names_a_port(to) => Ok(Ask::Connect(to.as_str().into())),
        (Some(to), true) => Err(Failure::new(format!("-W {to}: HOST:PORT is wanted, [ADDRESS]:PORT for IPv6"))),
        (Some(_), false) => Err(Failure::new("-W connects to a port: it goes with no command")),
        (None, true) if args.subsystem => Err(Failure::new("-s: no subsystem is named")),
        (None, true) if args.no_command => Ok(Ask::Stay),
        (None, true) if io::stdin().is_terminal() => {
            Err(Failure::new("no command is named, and haul rsh has no terminal to give")
                .hint("use ssh for a session at a terminal"))
        }
        (None, true) => Ok(Ask::Command(LOGIN_SHELL.to_vec())),
        (None, false) if args.subsystem => Ok(Ask::Subsystem(String::from_utf8_lossy(&joined(&args.command)).as_ref().into())),
        (None, false) => Ok(Ask::Command(joined(&args.command))),
    }
}

/// `HOST:PORT`, as far as can be told here: what the host is called is the far side's business.
fn names_a_port(to: &str) -> bool {
    to.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

fn circle() -> Failure {
    Failure::new("the ssh on the PATH leads back to haul rsh")
        .hint("name the real one: haul rsh --ssh /usr/bin/ssh; or link haul under the name ssh, which finds it")
}

/// ssh in the place of this program, with the words as they came, less what is haul's: for what is about ssh alone.
fn hand_over() -> Failure {
    if env::var_os(HANDED_OVER).is_some() {
        return circle();
    }
    let mut words = env::args_os().skip(1).peekable();
    if words.peek().is_some_and(|word| word == "rsh") {
        words.next();
    }
    let definition = definition::<RshArgs>();
    let takes_the_next = |long: &str| {
        definition.get_arguments().any(|argument| {
            argument.get_long() == Some(long) && argument.get_action().takes_values() && !argument.is_require_equals_set()
        })
    };
    let mut program = other_ssh().unwrap_or_else(|| "ssh".into());
    let mut rest = Vec::new();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--ssh") => program = words.next().unwrap_or_default(),
            Some(long) if long.starts_with("--ssh=") => program = long.trim_start_matches("--ssh=").into(),
            Some(long) if long.starts_with("--") && long != "--" => {
                if takes_the_next(long.trim_start_matches("--")) {
                    words.next();
                }
            }
            _ => rest.push(word),
        }
    }
    let error = Command::new(&program).args(rest).env(HANDED_OVER, "1").exec();
    Failure::new(format!("{}: {error}", program.display()))
}

/// The first ssh on the PATH that is not this program by another name.
fn other_ssh() -> Option<OsString> {
    let own = env::current_exe().and_then(fs::canonicalize).ok();
    let found = |dir: PathBuf| {
        let path = dir.join("ssh");
        let runs = fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
        (runs && fs::canonicalize(&path).ok() != own).then_some(path.into_os_string())
    };
    env::split_paths(&env::var_os("PATH")?).find_map(found)
}

fn append_errors_to(log: &std::path::Path) -> io::Result<()> {
    let file = File::options().append(true).create(true).open(log)?;
    Ok(rustix::stdio::dup2_stderr(file)?)
}

/// Goes on in another process, and ends with 0 as soon as that has logged in.
fn go_behind() -> Result<u8, Failure> {
    let start = || {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let mut command = Command::new(env::current_exe()?);
        // Called as haul or as ssh, so that it takes its words as this process did.
        command.arg0(env::args_os().next().unwrap_or_else(|| OsStr::new("haul").to_owned()));
        let (name, rest): (Vec<_>, Vec<_>) = env::args_os().skip(1).enumerate().partition(|(at, word)| *at == 0 && word == "rsh");
        let words = |numbered: Vec<(usize, OsString)>| numbered.into_iter().map(|(_, word)| word);
        command.args(words(name)).arg("--behind").args(words(rest));
        let child = command.stdin(Stdio::from(writer)).spawn()?;
        // With the command goes this process's copy of the pipe's end.
        drop(command);
        let mut told = [0];
        let logged_in = File::from(reader).read(&mut told)? == 1;
        io::Result::Ok((child, logged_in))
    };
    let (mut child, logged_in) = start().map_err(|error| Failure::new(format!("going to the background: {error}")))?;
    if logged_in {
        return Ok(0);
    }
    let status = child.wait().map_err(|error| Failure::new(format!("waiting for the process in the background: {error}")))?;
    Ok(Exit::from(status).code())
}

/// The login is over: who started this process may end, and its terminal may go.
fn tell_in_front() {
    let _ = rustix::process::setsid();
    let said: io::Result<OwnedFd> = io::stdin().as_fd().try_clone_to_owned();
    let _ = said.and_then(|pipe| File::from(pipe).write_all(b"."));
    let nothing = File::open("/dev/null");
    let _ = nothing.and_then(|nothing| Ok(rustix::stdio::dup2_stdin(nothing)?));
}

//! Starting the others: what the representative does, or the client itself where it calls `mpirun` or `srun`.
//!
//! Whatever is started here says a line of its own, which is passed on. A host whose start fails is told of, and the others go on.
//!
//! By ssh and mpirun, members leave the processes that started them (`far::start_apart`): mpirun ends what belongs to it when it ends. Slurm ends whatever belongs to a *task* when the task
//! does, so there members stay tasks, and it is `srun` that is started apart.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use haul_peer::{Refusal, SshCommand, SshHost, SshOptions, quoted_word, spawn, spawn_apart};
use haul_units::{Cancel, PeerText};
use rustix::process::{Pid, Signal, kill_process};

use super::messages::{By, FLEET, Invitation, Line, MAGIC, Order, OrderHost, Said, Summons, lines};
use super::spec::FAN_OUT;
use crate::at_once::at_once;

/// How often to look whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// Lines of what was printed that are kept, from the beginning, where a cause is, and from the end, where it is explained.
const KEPT_LINES: usize = 3;
/// Seconds for a login, of which those that do not answer at all would take minutes.
const LOGIN_S: u32 = 15;

/// Who hears what members say.
pub type Say<'a> = dyn Fn(Said) + Sync + 'a;
/// Makes the command of a member on this host, for a word.
pub type Apart<'a> = dyn Fn(&str) -> Command + Sync + 'a;

/// When to stop starting.
#[derive(Debug, Clone, Default)]
pub struct Until {
    /// Nobody wants the members any more.
    pub given_up: Cancel,
    /// Who is there stays, and nobody else is waited for.
    pub enough: Cancel,
}

impl Until {
    fn is_over(&self) -> bool {
        self.given_up.is_cancelled() || self.enough.is_cancelled()
    }
}

impl Order {
    /// Starts everybody, and returns when nothing more is to be heard of that. `apart` is how a member is started on this host.
    pub fn carry_out(mut self, apart: &Apart<'_>, say: &Say<'_>, until: &Until) {
        if self.invitation.fleet != FLEET {
            let error = format!("the haul that called is of another version: it is version {}", self.invitation.hello.version);
            return say(Said::Unable { error: error.into(), hint: None });
        }
        if self.port.is_some() && self.invitation.call.is_empty() {
            let error = "no address of the client is known at which members could call it";
            return say(Said::Unable { error: error.into(), hint: None });
        }
        self.invitation.stay = self.by == By::Srun;
        match self.by {
            By::Ssh => self.by_ssh(apart, say, until),
            By::Mpirun => self.by_launcher(self.mpirun(), say, until),
            By::Srun => self.by_launcher(self.srun(), say, until),
        }
    }

    /// The client's address as this login shows it is one more that members can try.
    pub fn seen_from(&mut self, ssh_connection: Option<&str>) {
        let seen: Option<IpAddr> = ssh_connection.and_then(|words| words.split_whitespace().next()?.parse().ok());
        let (Some(ip), Some(port)) = (seen, self.port) else { return };
        let address = SocketAddr::new(ip, port);
        if !self.invitation.call.contains(&address) {
            self.invitation.call.push(address);
        }
    }

    fn by_ssh(&self, apart: &Apart<'_>, say: &Say<'_>, until: &Until) {
        let Some((own, others)) = self.hosts.split_first() else { return };
        thread::scope(|scope| {
            scope.spawn(|| {
                at_once(others, FAN_OUT, |host| {
                    if !until.is_over() {
                        self.log_in(host, say, until);
                    }
                })
            });
            let invitation = self.to(own);
            let started = invitation.start_apart(apart, &mut Passed { say, line: Vec::new() });
            if let Err(error) = started {
                say(Said::Failed { member: own.member.clone(), error: error.to_string().into(), hint: None });
            }
        });
    }

    /// Starts the member of one host by ssh.
    fn log_in(&self, host: &OrderHost, say: &Say<'_>, until: &Until) {
        let member = host.member.clone();
        let failed = |error: &dyn std::fmt::Display| {
            say(Said::Failed { member: member.clone(), error: error.to_string().into(), hint: None });
        };
        let Some(login) = host.login() else { return failed(&"not a host name") };
        let option = ["BatchMode=yes".into(), format!("ConnectTimeout={LOGIN_S}").into()].to_vec();
        let remote_haul = self.haul.as_ref().map(OsString::from);
        let options = SshOptions { option, remote_haul, family: self.invitation.hello.family, ..SshOptions::default() };
        let command = SshCommand::running(&options, &login, &format!("remote {}", word(&self.to(host)))).start();
        // What it says is about this host, whatever name it gives.
        let heard = AtomicBool::new(false);
        let listen = |said: Said| {
            if !heard.swap(true, Ordering::Relaxed) {
                say(said.of(member.clone()));
            }
        };
        match run(command, Life::Ours, &listen, until) {
            Ok(ended) if !heard.load(Ordering::Relaxed) => {
                say(Said::Ended { member: member.clone(), status: ended.status, printed: ended.printed });
            }
            Ok(_) => {}
            Err(error) => failed(&error),
        }
    }

    fn by_launcher(&self, command: Command, say: &Say<'_>, until: &Until) {
        let program = command.get_program().to_string_lossy().into_owned();
        let life = if self.by == By::Srun { Life::OfMembers } else { Life::Ours };
        let error = match run(command, life, say, until) {
            Ok(Ended { status: Some(0), .. }) => return,
            Ok(ended) => {
                let status = ended.status.map_or_else(|| "a signal".to_owned(), |status| format!("status {status}"));
                let printed: Vec<_> = ended.printed.iter().map(PeerText::as_str).collect();
                format!("{program} ended with {status} ({})", printed.join(" / "))
            }
            Err(error) => format!("{program}: {error}"),
        };
        say(Said::Unable { error: error.into(), hint: None });
    }

    /// One `mpirun` with a program of its own for each host, so that each has its own invitation. Open MPI and MPICH both take this.
    fn mpirun(&self) -> Command {
        let mut command = Command::new(self.program.as_deref().unwrap_or("mpirun"));
        command.args(&self.arguments);
        for (index, host) in self.hosts.iter().enumerate() {
            if index > 0 {
                command.arg(":");
            }
            let name = serde_json::Value::from(host.member.as_str()).to_string();
            let script = self.script(&self.to(host), &quoted_word(&name));
            command.args(["-host", host.host.as_str(), "-np", "1", "sh", "-c", &script]);
        }
        command
    }

    /// One `srun` with a task on each node; each has its node's name from Slurm.
    fn srun(&self) -> Command {
        let mut command = Command::new(self.program.as_deref().unwrap_or("srun"));
        let nodes: Vec<&str> = self.hosts.iter().map(|host| host.host.as_str()).collect();
        let count = nodes.len().to_string();
        // Of a job with more nodes these; and the others go on where one fails.
        command.args(&self.arguments).args([
            "--nodes",
            &count,
            "--ntasks",
            &count,
            "--ntasks-per-node=1",
            "--kill-on-bad-exit=0",
        ]);
        command.args(["--nodelist", &nodes.join(","), "--input=none", "sh", "-c"]);
        let invitation = Invitation { member: None, ..self.invitation.clone() };
        command.arg(self.script(&invitation, r#""\"$SLURMD_NODENAME\"""#));
        command
    }

    /// Runs a member, and tells how that ended where the member could not. One that fails is not to end the others, so its status is not passed on. `name`: the member's, as a word of JSON and of the shell.
    fn script(&self, invitation: &Invitation, name: &str) -> String {
        let options = SshOptions { remote_haul: self.haul.as_ref().map(OsString::from), ..SshOptions::default() };
        let anywhere = SshHost { user: None, host: OsString::from("localhost"), port: None };
        let command = SshCommand::running(&options, &anywhere, &format!("remote {}", word(invitation)));
        format!(
            "{} || printf '\\n%s%s%s%s%s\\n' '{MAGIC}' '{{\"ended\":{{\"member\":' {name} ',\"status\":' \"$?}}}}\"",
            command.remote().to_string_lossy()
        )
    }

    fn to(&self, host: &OrderHost) -> Invitation {
        let data = host.data.or(self.invitation.data);
        Invitation { member: Some(host.member.clone()), data, ..self.invitation.clone() }
    }
}

fn word(invitation: &Invitation) -> String {
    Summons::Serve(Box::new(invitation.clone())).to_word()
}

impl Said {
    /// The same of this member.
    fn of(self, member: PeerText) -> Self {
        match self {
            Self::Here(here) => Self::Here(super::messages::Here { member, ..here }),
            Self::Failed { error, hint, .. } | Self::Unable { error, hint } => Self::Failed { member, error, hint },
            Self::Ended { status, printed, .. } => Self::Ended { member, status, printed },
        }
    }
}

/// How a program that starts members has ended.
#[derive(Debug, Default)]
struct Ended {
    status: Option<i32>,
    printed: Vec<PeerText>,
}

/// How long a program that starts members lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// No longer than this process, and no longer than the start takes.
    Ours,
    /// As long as the members, which are its own.
    OfMembers,
}

/// Runs one, passes on what members say, and keeps the last lines of what else is printed.
fn run(mut command: Command, life: Life, say: &Say<'_>, until: &Until) -> io::Result<Ended> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = if life == Life::OfMembers { spawn_apart(command)? } else { spawn(command)? };
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        unreachable!("both were asked for as pipes")
    };
    let (tell, told) = mpsc::channel();
    listen(stdout, tell.clone());
    listen(stderr, tell);
    let (mut first, mut last): (Vec<PeerText>, VecDeque<PeerText>) = (Vec::new(), VecDeque::new());
    let mut hear = |line| match line {
        Line::Said(said) => say(*said),
        Line::Printed(text) if first.len() < KEPT_LINES => first.push(text),
        Line::Printed(text) => {
            if last.len() == KEPT_LINES {
                last.pop_front();
            }
            last.push_back(text);
        }
    };
    let status = loop {
        match told.recv_timeout(LOOK) {
            Ok(line) => hear(line),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            // It has closed both, and will end.
            Err(mpsc::RecvTimeoutError::Disconnected) => thread::park_timeout(LOOK),
        }
        if until.is_over() {
            end(child, life == Life::Ours || until.given_up.is_cancelled());
            return Ok(Ended::default());
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
    };
    while let Ok(line) = told.recv_timeout(LOOK) {
        hear(line);
    }
    first.extend(last);
    Ok(Ended { status: status.code(), printed: first })
}

/// Leaves it; if need be it is asked for its end, so that what it has started elsewhere ends with it.
fn end(mut child: Child, asked: bool) {
    if asked {
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
    }
    thread::spawn(move || child.wait());
}

fn listen(pipe: impl Read + Send + 'static, tell: mpsc::Sender<Line>) {
    thread::spawn(move || {
        lines(BufReader::new(pipe), |line| {
            // Nobody hears it where the start is over: it is read on, for a full pipe would stop the program.
            let _ = tell.send(line);
        });
    });
}

/// Passes on the line of a member that was started here.
struct Passed<'a> {
    say: &'a Say<'a>,
    line: Vec<u8>,
}

impl io::Write for Passed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        lines(&std::mem::take(&mut self.line)[..], |line| {
            if let Line::Said(said) = line {
                (self.say)(*said);
            }
        });
        Ok(())
    }
}

/// What the client says to the representative when the start is over, unless it has given up.
pub const ENOUGH: &str = "enough\n";

/// What the representative does: reads its order from `input`, starts everybody, and stays until the client has enough. What it says goes to `out`. `ssh_connection` is
/// `SSH_CONNECTION` as sshd sets it; `refusal` is why this login may start nobody, if that is so.
pub fn lead(
    input: impl BufRead + Send + 'static,
    ssh_connection: Option<&str>,
    refusal: Option<Refusal>,
    apart: &Apart<'_>,
    mut out: impl io::Write + Send,
) -> io::Result<()> {
    if let Some(Refusal { error, hint }) = refusal {
        out.write_all(Said::Unable { error, hint }.to_line().as_bytes())?;
        return out.flush();
    }
    let mut input = input;
    let mut order = Order::read(&mut input)?;
    order.seen_from(ssh_connection);
    let until = Until::default();
    let heard = until.clone();
    thread::spawn(move || {
        let mut line = String::new();
        let read = input.take(ENOUGH.len() as u64).read_line(&mut line);
        if read.is_ok() && line == ENOUGH { heard.enough.cancel() } else { heard.given_up.cancel() }
    });
    let out = Mutex::new(out);
    let say = |said: Said| {
        let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = out.write_all(said.to_line().as_bytes()).and_then(|()| out.flush());
    };
    order.carry_out(apart, &say, &until);
    while !until.is_over() {
        thread::park_timeout(LOOK);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use haul_peer::ClientHello;

    use super::*;

    fn order(by: By, hosts: &[&str]) -> Order {
        let hello = ClientHello::from_line(br#"{"bootstrap":1,"version":"9","client":"SHA256:x"}"#).expect("a greeting");
        let call = vec!["10.0.0.1:7".parse().expect("an address")];
        let invitation = Invitation { fleet: FLEET, member: None, hello, call, data: None, patience_s: 30, stay: false };
        let host = |name: &&str| OrderHost { member: (*name).into(), host: (*name).into(), user: None, port: None, data: None };
        let hosts = hosts.iter().map(host).collect();
        Order { by, hosts, invitation, port: Some(7), haul: None, program: None, arguments: vec!["--one".into()] }
    }

    /// Runs what a launcher would run on a host, with `haul` being `what`.
    fn outcome(script: &str, what: &str) -> Vec<Said> {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("haul() {{ {what}; }}; {script}")]).env("SLURMD_NODENAME", "n1");
        let heard = Mutex::new(Vec::new());
        let ended = run(command, Life::Ours, &|said| heard.lock().expect("alone").push(said), &Until::default()).expect("runs");
        assert_eq!(ended.status, Some(0), "one that fails is not to end the others: {ended:?}");
        heard.into_inner().expect("alone")
    }

    #[test]
    fn a_host_that_cannot_be_a_member_says_so_and_ends_nobody() {
        let name = r#"it's "n1""#;
        let order = order(By::Mpirun, &[name]);
        let script = order.mpirun().get_args().last().map(|word| word.to_string_lossy().into_owned()).expect("a script");
        let [Said::Ended { member, status: Some(127), .. }] = &outcome(&script, "return 127")[..] else { panic!("{script}") };
        assert_eq!(member.as_str(), name);
        assert!(outcome(&script, "true").is_empty());
    }

    #[test]
    fn one_mpirun_has_an_invitation_for_each() {
        let command = order(By::Mpirun, &["a", "b"]).mpirun();
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words[0], "--one");
        assert_eq!(
            (&words[1..7], &words[8..14]),
            (
                &["-host", "a", "-np", "1", "sh", "-c"].map(String::from)[..],
                &[":", "-host", "b", "-np", "1", "sh"].map(String::from)[..]
            )
        );
        let named = |script: &str| {
            let word = script.strip_prefix("haul remote ")?.split(' ').next()?;
            match Summons::from_word(word)? {
                Summons::Serve(invitation) => invitation.member,
                Summons::Lead { .. } => None,
            }
        };
        assert_eq!((named(&words[7]), named(&words[15])), (Some("a".into()), Some("b".into())));
    }

    #[test]
    fn one_srun_has_a_task_on_each_node() {
        let command = order(By::Srun, &["n1", "n2"]).srun();
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert!(words.join(" ").starts_with("--one --nodes 2 --ntasks 2 --ntasks-per-node=1 --kill-on-bad-exit=0 --nodelist n1,n2 --input=none sh -c haul remote "), "{words:?}");
        let script = words.last().expect("a script");
        let [Said::Ended { status: Some(3), .. }] = &outcome(script, "return 3")[..] else { panic!("{script}") };
    }

    #[test]
    fn what_is_said_over_one_ssh_is_about_its_host() {
        let said = Said::Failed { member: "other".into(), error: "no".into(), hint: None };
        assert_eq!(said.of("n1".into()), Said::Failed { member: "n1".into(), error: "no".into(), hint: None });
    }

    #[test]
    fn the_address_that_a_login_shows_is_one_more() {
        let mut order = order(By::Ssh, &["a"]);
        order.seen_from(Some("192.0.2.7 5000 192.0.2.2 22"));
        order.seen_from(Some("192.0.2.7 5001 192.0.2.2 22"));
        order.seen_from(None);
        let call: Vec<_> = order.invitation.call.iter().map(ToString::to_string).collect();
        assert_eq!(call, ["10.0.0.1:7", "192.0.2.7:7"]);
    }
}

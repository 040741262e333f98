//! A member's own side: it makes a key, says so by the way that started it, and calls the client or is dialled by it. Then it serves one copy, as `haul remote` does, or is kept for several ([`Service`]).
//!
//! Once it is connected nothing but the connection keeps it: neither what started it nor the representative. It ends with the copy, with the client that keeps it, or when nobody comes.

use std::env;
use std::io::{self, BufReader, Write};
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use haul::{ClientConfig, Connection, Fingerprint, Identity, PeerTrust};
use haul_copy::Unwelcome;
use haul_peer::{FarSide, FarSideError, Lost, Refusal, chain, race, spawn_apart, to_line};
use haul_units::{Cancel, PeerText};
use serde::{Deserialize, Serialize};

use super::messages::{FLEET, Here, Invitation, Line, PROTOCOL, Said, Summons, lines};
use crate::clock;
use crate::service::Service;

/// Between two calls; the client hears of a member's key a little before or after its first one.
const AGAIN: Duration = Duration::from_millis(100);
/// Between two calls at most.
const AGAIN_AT_MOST: Duration = Duration::from_secs(2);
/// Addresses of the client that are tried.
const MOST: usize = 16;
/// How long a member that was started apart may take to say a word.
const FIRST_WORD: Duration = Duration::from_secs(10);

/// The first line of a member on its connection, in a one-way stream: of several connections of a race it marks the one that is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calling {
    /// What the client calls it.
    pub member: PeerText,
}

impl Invitation {
    /// What the member is called: what the client says, or what Slurm calls its node.
    pub fn name(&self) -> PeerText {
        let named = self.member.clone().or_else(|| env::var("SLURMD_NODENAME").ok().map(PeerText::from));
        named.unwrap_or_else(|| own_name().into())
    }

    /// Has another process be the member, in a session of its own: it outlives this process, the login and the launcher. `command` makes its command, for the word that it is to get. Passes
    /// its first words on.
    pub fn start_apart(&self, command: &dyn Fn(&str) -> Command, out: &mut dyn Write) -> io::Result<()> {
        self.start_apart_within(command, out, FIRST_WORD)
    }

    fn start_apart_within(&self, command: &dyn Fn(&str) -> Command, out: &mut dyn Write, patience: Duration) -> io::Result<()> {
        let mut member = command(&Summons::Serve(Box::new(Self { stay: true, ..self.clone() })).to_word());
        // What it inherited would keep ssh waiting for it.
        member.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = spawn_apart(member)?;
        let Some(stdout) = child.stdout.take() else { unreachable!("it was asked for as a pipe") };
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            lines(BufReader::new(stdout), |line| {
                if let Line::Said(said) = line {
                    let _ = tell.send(said);
                }
            });
        });
        let said = match told.recv_timeout(patience) {
            Ok(said) => *said,
            Err(error) => {
                // Nobody hears of it any more, so nobody else would end it.
                let _ = child.kill();
                let said = match error {
                    RecvTimeoutError::Disconnected => "it ended at once".to_owned(),
                    RecvTimeoutError::Timeout => format!("it has said nothing for {} s", patience.as_secs_f32()),
                };
                self.failed(&said, None)
            }
        };
        thread::spawn(move || child.wait());
        out.write_all(said.to_line().as_bytes())?;
        out.flush()
    }

    /// Is a member until its session is over; says on `out` that it is there. True if it served.
    pub fn serve(&self, service: Service, out: &mut dyn Write, cancel: &Cancel) -> bool {
        if let Some(refusal) = service.refusal() {
            self.refuse(refusal, out);
            return false;
        }
        let terms = if self.fleet == FLEET {
            FarSide::terms(&self.hello)
        } else {
            Err(FarSideError::OtherVersion { theirs: self.hello.version.clone() })
        };
        let served = match terms {
            Ok(_) if self.call.is_empty() => self.listen(service, out, cancel),
            Ok((client, transport)) => {
                let identity = Identity::generate();
                let key = identity.public_key().fingerprint().to_string();
                let config = ClientConfig {
                    identity: Some(identity),
                    protocols: vec![PROTOCOL.to_vec()],
                    transport,
                    ..ClientConfig::new(PeerTrust::Pinned(vec![client]))
                };
                say(out, &Said::Here(self.here(key.into(), None)));
                Ok(self.call(&config, &service, cancel))
            }
            Err(error) => Err(error),
        };
        served.unwrap_or_else(|error| {
            say(out, &self.failed(&chain(&error), None));
            false
        })
    }

    /// Says on `out` why this login is no member.
    pub fn refuse(&self, refusal: &Refusal, out: &mut dyn Write) {
        say(out, &Said::Failed { member: self.name(), error: refusal.error.clone(), hint: refusal.hint.clone() });
    }

    /// Calls until the client takes it up, or the time is over.
    fn call(&self, config: &ClientConfig, service: &Service, cancel: &Cancel) -> bool {
        let deadline = clock::now() + Duration::from_secs(self.patience_s.into());
        let mut pause = AGAIN;
        while clock::now() < deadline && !cancel.is_cancelled() {
            match race(self.call.get(..MOST).unwrap_or(&self.call), self.data, config, cancel) {
                Ok((connection, _)) => {
                    if let Some(served) = self.serve_over(connection, config, service, cancel) {
                        return served;
                    }
                    tracing::debug!("the client does not know this member's key yet");
                }
                Err(Lost::Interrupted | Lost::NoAddress) => return false,
                Err(lost) => tracing::debug!(%lost, "the client does not answer"),
            }
            pause_until(clock::now() + pause, cancel);
            pause = (pause * 2).min(AGAIN_AT_MOST);
        }
        false
    }

    /// Serves the client's session; nothing where the client has not heard of this key yet.
    fn serve_over(&self, connection: Connection, config: &ClientConfig, service: &Service, cancel: &Cancel) -> Option<bool> {
        let watched = connection.clone();
        let welcome = |key: Fingerprint, port: Option<u16>| {
            let port = port.ok_or(Unwelcome::NoPort)?;
            let guest = Guest {
                at: SocketAddr::new(watched.remote_addr().ip(), port),
                from: self.data,
                config: ClientConfig { trust: PeerTrust::Pinned(vec![key]), ..config.clone() },
                calling: Calling { member: self.name() },
                service: service.clone(),
                cancel: cancel.clone(),
            };
            thread::Builder::new().spawn(move || guest.call()).map(drop).map_err(Unwelcome::Call)
        };
        let called = (Calling { member: self.name() }).say(&connection);
        let served = called.is_ok() && service.serve(connection, Some(&welcome), cancel);
        let unknown = watched.end().is_some_and(|end| end.is_key_refused() || end.is_unanswered());
        if !served && unknown { None } else { Some(served) }
    }

    /// Waits for the client's call.
    fn listen(&self, service: Service, out: &mut dyn Write, cancel: &Cancel) -> Result<bool, FarSideError> {
        let ssh = env::var("SSH_CONNECTION").ok();
        let (far, mut told) = FarSide::listen(&self.hello, &[haul_copy::PROTOCOL], ssh.as_deref())?;
        told.addresses.extend(self.data);
        let key = told.server.clone();
        say(out, &Said::Here(self.here(key, Some(told))));
        let (side, ends) = (far.clone(), far.clone());
        let _hook = cancel.on_cancel(move || {
            // What is under way saves its state; whoever cancels does not wait for that.
            let ends = ends.clone();
            thread::spawn(move || ends.end(false));
        });
        Ok(far.serve(move |connection, cancel| service.serve_at(&side, connection, cancel)))
    }

    fn here(&self, key: PeerText, listens: Option<haul_peer::RemoteHello>) -> Here {
        Here {
            member: self.name(),
            key,
            version: env!("CARGO_PKG_VERSION").into(),
            host: own_name().into(),
            rank: rank(|name| env::var(name).ok()),
            listens,
        }
    }

    fn failed(&self, error: &str, hint: Option<&str>) -> Said {
        Said::Failed { member: self.name(), error: error.into(), hint: hint.map(PeerText::from) }
    }
}

/// A guest of the client, who waits for a call.
struct Guest {
    at: SocketAddr,
    /// The address to call from.
    from: Option<IpAddr>,
    config: ClientConfig,
    calling: Calling,
    service: Service,
    cancel: Cancel,
}

impl Guest {
    fn call(self) {
        match race(&[self.at], self.from, &self.config, &self.cancel) {
            Ok((connection, _)) => {
                if self.calling.say(&connection).is_ok() {
                    self.service.serve(connection, None, &self.cancel);
                }
            }
            Err(lost) => tracing::debug!(%lost, at = %self.at, "a guest does not answer"),
        }
    }
}

impl Calling {
    fn say(&self, connection: &Connection) -> io::Result<()> {
        let mut stream = connection.open_uni()?;
        stream.write_all(&to_line(self))?;
        let _ = stream.finish(); // Who has read the line may have let go of the stream already.
        Ok(())
    }
}

/// What this process is among those that one program has started, as the program says it.
fn rank(variable: impl Fn(&str) -> Option<String>) -> Option<u32> {
    ["PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"].iter().find_map(|name| variable(name)?.parse().ok())
}

fn own_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Whoever started it may be gone already; then the client hears nothing, and the member ends when its time is over.
fn say(out: &mut dyn Write, said: &Said) {
    let _ = out.write_all(said.to_line().as_bytes()).and_then(|()| out.flush());
}

fn pause_until(until: Instant, cancel: &Cancel) {
    while clock::now() < until && !cancel.is_cancelled() {
        thread::park_timeout(Duration::from_millis(50).min(until.saturating_duration_since(clock::now())));
    }
}

#[cfg(test)]
mod tests {
    use haul_peer::ClientHello;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::{FdFlags, fcntl_setfd};

    use super::*;

    #[test]
    fn who_says_nothing_is_not_told_to_have_ended_and_is_ended() {
        let hello = ClientHello::from_line(br#"{"bootstrap":1,"version":"9","client":"SHA256:x"}"#).expect("a greeting");
        let member = Some("n1".into());
        let invitation = Invitation { fleet: FLEET, member, hello, call: Vec::new(), data: None, patience_s: 30, stay: false };
        let started = |program: &str, words: &[&str], patience| {
            let mut said = Vec::new();
            let command = |_: &str| {
                let mut command = Command::new(program);
                command.args(words);
                command
            };
            invitation.start_apart_within(&command, &mut said, patience).expect("it starts");
            String::from_utf8(said).expect("text")
        };
        // A process has this end of a pipe as long as it is there.
        let (end, kept) = io::pipe().expect("a pipe");
        fcntl_setfd(&kept, FdFlags::empty()).expect("a descriptor");
        let said = started("sleep", &["1000"], Duration::from_millis(50));
        assert!(said.contains("it has said nothing for 0.05 s"), "{said}");
        drop(kept);
        let mut ended = [PollFd::new(&end, PollFlags::IN)];
        assert_eq!(poll(&mut ended, Some(&Timespec { tv_sec: 10, tv_nsec: 0 })), Ok(1), "it is still there");

        let said = started("true", &[], FIRST_WORD);
        assert!(said.contains("it ended at once"), "{said}");
    }

    #[test]
    fn a_rank_comes_from_whoever_gives_one() {
        let with = |pairs: &'static [(&str, &str)]| {
            rank(move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(with(&[("SLURM_PROCID", "3"), ("OMPI_COMM_WORLD_RANK", "1")]), Some(1));
        assert_eq!(with(&[("SLURM_PROCID", "3")]), Some(3));
        assert_eq!(with(&[("PMIX_RANK", "x"), ("PMI_RANK", "0")]), Some(0));
        assert_eq!(with(&[]), None);
    }
}

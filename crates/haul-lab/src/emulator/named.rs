//! A WAN that somebody has started, known by its name.

use std::time::Duration;

use rustix::event::Timespec;

use super::status::{HostStatus, WanStatus};
use super::talk::{Answer, AskError, Namespaces, PATIENCE, Request, ask};
use crate::clock;
use crate::options::LinkChanges;

/// A WAN by its name, whether there is one or not: each call asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedWan {
    name: String,
}

impl NamedWan {
    /// The WAN of this name.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The hosts, and the namespaces of one of them; without a host, those of the machine with the emulator's processes.
    pub fn enter(&self, host: Option<&str>) -> Result<(Vec<HostStatus>, Namespaces), AskError> {
        match self.ask(&Request::Enter { host: host.map(str::to_owned) })? {
            (Answer::Hosts(hosts), Some(namespaces)) => Ok((hosts, namespaces)),
            _ => Err(AskError::NoNamespaces),
        }
    }

    /// Gives the link other properties while it carries traffic.
    pub fn set(&self, link: &LinkChanges) -> Result<(), AskError> {
        self.ask(&Request::Set { link: link.clone() }).map(drop)
    }

    /// All counts.
    pub fn status(&self) -> Result<WanStatus, AskError> {
        match self.ask(&Request::Status)? {
            (Answer::Status(status), _) => Ok(*status),
            _ => Err(AskError::NoStatus { name: self.name.clone() }),
        }
    }

    /// All counts, with rates over half a second.
    pub fn measured(&self) -> Result<WanStatus, AskError> {
        let before = self.status()?;
        // A signal makes it shorter, which the clock of the counts knows.
        rest(MOMENT);
        Ok(self.status()?.since(&before))
    }

    /// Ends the WAN and whatever runs on its hosts; returns when the name is free again.
    pub fn down(&self) -> Result<(), AskError> {
        self.down_within(PATIENCE)
    }

    fn down_within(&self, patience: Duration) -> Result<(), AskError> {
        self.ask(&Request::Down)?;
        let told = clock::now();
        // The name is free when the emulator and all processes of its hosts are gone. Until then it answers, or goes in the middle of it.
        loop {
            match self.status() {
                Err(AskError::NoSuchWan { .. } | AskError::AnotherUsers { .. }) => return Ok(()),
                _ if clock::now().since(told) > patience => {
                    return Err(AskError::StillThere { name: self.name.clone(), waited: patience });
                }
                _ => rest(INTERVAL),
            }
        }
    }

    fn ask(&self, request: &Request) -> Result<(Answer, Option<Namespaces>), AskError> {
        ask(&self.name, request)
    }
}

fn rest(time: Duration) {
    let time = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
    let _ = rustix::event::poll(&mut [], Some(&time));
}

/// Long enough for a rate, short enough to wait for.
const MOMENT: Duration = Duration::from_millis(500);
/// How often whoever waits for its end looks.
const INTERVAL: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::super::talk::{Refusal, listen, serve};
    use super::*;

    /// It says that it ends, and goes on answering.
    #[test]
    fn a_wan_that_does_not_end_is_not_waited_for_without_end() {
        let wan = NamedWan::new(&format!("stays-{}", std::process::id()));
        let listener = listen(wan.name()).expect("the name is free");
        listener.set_nonblocking(false).expect("set");
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let _ = serve(&stream, |request| match request {
                    Request::Down => Ok((Answer::Done, None)),
                    // Whatever it says, it is there.
                    _ => Err(Refusal::System(0)),
                });
            }
        });
        let error = wan.down_within(Duration::from_millis(50)).expect_err("it is there");
        assert!(matches!(error, AskError::StillThere { .. }), "{error}");
    }
}

//! A WAN that somebody has started, known by its name.

use std::time::Duration;

use rustix::event::Timespec;

use super::status::{HostStatus, WanStatus};
use super::talk::{Answer, AskError, Namespaces, Request, ask};
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
        let moment = Timespec { tv_sec: 0, tv_nsec: i64::from(MOMENT.subsec_nanos()) };
        // A signal makes it shorter, which the clock of the counts knows.
        let _ = rustix::event::poll(&mut [], Some(&moment));
        Ok(self.status()?.since(&before))
    }

    /// Ends the WAN and whatever runs on its hosts; returns when the name is free again.
    pub fn down(&self) -> Result<(), AskError> {
        self.ask(&Request::Down)?;
        // The name is free when the emulator and all processes of its hosts are gone.
        while self.status().is_ok() {}
        Ok(())
    }

    fn ask(&self, request: &Request) -> Result<(Answer, Option<Namespaces>), AskError> {
        ask(&self.name, request)
    }
}

/// Long enough for a rate, short enough to wait for.
const MOMENT: Duration = Duration::from_millis(500);

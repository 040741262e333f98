//! Which connections get which law: switched on and off by the narrowest way that does what was asked.
//!
//! ```text
//!   a network that has routes of its own      the routes' congestion control     seen by `ip route`
//!   a network without, or a cgroup            a program at the cgroup with a table of networks
//!   a whole network namespace                 its default
//!   connections that are open                 an iterator that gives them another law
//! ```

mod rule;
mod running;
mod scope;
mod shown;
mod ways;

use std::fs;
use std::path::{Path, PathBuf};

use haul_units::Network;

pub use self::rule::{Rule, Way};
use self::rule::{command, covers, rule, whose_default};
pub use self::running::Run;
pub use self::scope::Scope;
pub use self::shown::Totals;
pub use self::ways::default_of;
use self::ways::{is_ours, put_back_usual, set_default};
use crate::error::TcpError;
use crate::journal::{Change, Journal};
use crate::kernel::netns::Namespace;
use crate::kernel::{cgroup, mount};
use crate::law::{Choice, Law};
use crate::laws::{self, Pins};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Where state is kept.
#[derive(Debug, Clone)]
pub struct Place {
    /// Of the journal. Default: /run/haul/tcp.
    pub state: PathBuf,
    /// Of the bpf file system. Default: /run/haul/bpf.
    pub bpf: PathBuf,
    /// The file of what `quickstart` remembers while no law is loaded. Default: /var/lib/haul/tcp/peers.json, which a restart of the machine leaves.
    pub memory: PathBuf,
}

impl Default for Place {
    fn default() -> Self {
        Self { state: "/run/haul/tcp".into(), bpf: "/run/haul/bpf".into(), memory: "/var/lib/haul/tcp/peers.json".into() }
    }
}

/// The kernel's TCP on this machine.
#[derive(Debug, Clone, Default)]
pub struct Tcp {
    place: Place,
}

impl Tcp {
    /// With its state there.
    pub fn new(place: Place) -> Self {
        Self { place }
    }

    /// Gives the connections of a scope a law, from now on. A rule for the same scope is replaced.
    pub fn on(&self, choice: &Choice, scope: &Scope) -> Result<Vec<Rule>, TcpError> {
        let mut journal = Journal::open(&self.place.state)?;
        self.repair(&mut journal)?;
        if let Some(dir) = scope.cgroup.as_ref().filter(|dir| !cgroup::is_group(dir)) {
            return Err(TcpError::NotACgroup(dir.clone()));
        }
        let namespace = scope.namespace.clone().map_or_else(Namespace::own, Ok)?;
        // A machine that stops without `off` has what was known at the last command.
        self.pins().keep_memory();
        let made = self
            .make_available(&mut journal, choice, &namespace)
            .and_then(|()| self.apply(&mut journal, choice, scope, &namespace));
        let tidied = self.tidy(&mut journal);
        let rules = made?;
        tidied.map(|()| rules)
    }

    fn apply(&self, journal: &mut Journal, choice: &Choice, scope: &Scope, namespace: &Namespace) -> Result<Vec<Rule>, TcpError> {
        let law = choice.kernel_name();
        if scope.networks.is_empty() {
            return match &scope.cgroup {
                Some(dir) => self.on_cgroup(journal, &law, dir, scope.namespace.as_ref(), None),
                None => set_default(journal, &law, namespace),
            }
            .map(|rule| vec![rule]);
        }
        let one = |network: &Network| match &scope.cgroup {
            Some(dir) => self.on_cgroup(journal, &law, dir, scope.namespace.as_ref(), Some(*network)),
            None => self.on_network(journal, &law, namespace, *network),
        };
        scope.networks.iter().map(one).collect()
    }

    /// Takes back what was done for a scope, or everything. What somebody else has changed since then stays; a law of haul's that is the default though nobody knows of it goes, where everything is meant that of
    /// any network namespace.
    pub fn off(&self, scope: Option<&Scope>) -> Result<Vec<Rule>, TcpError> {
        let mut journal = Journal::open(&self.place.state)?;
        self.repair(&mut journal)?;
        let own = scope.map(|scope| scope.namespace.clone().map_or_else(Namespace::own, Ok)).transpose()?;
        let meant: Vec<Change> =
            journal.changes.iter().rev().filter(|change| covers(scope, own.as_ref(), change)).cloned().collect();
        let mut rules = Vec::new();
        let mut failed = None;
        for change in meant {
            match self.undo(&change) {
                Ok(()) => {
                    rules.push(rule(&change));
                    journal.changes.retain(|known| *known != change);
                    journal.write()?;
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let own = whose_default(scope)?;
        // One that was made meanwhile has the machine's default of then for its own.
        let others = if scope.is_none() { Namespace::all() } else { Vec::new() };
        for namespace in own.iter().chain(others.iter().filter(|other| own.as_ref() != Some(other))) {
            let is_it =
                |change: &Change| matches!(change, Change::Default { namespace: of, .. } if of.number() == namespace.number());
            if journal.changes.iter().any(is_it) {
                continue;
            }
            match put_back_usual(namespace) {
                Ok(rule) => rules.extend(rule),
                // One that this process may not enter has never been asked for.
                Err(TcpError::Namespace { .. }) if own.as_ref() != Some(namespace) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        self.tidy(&mut journal)?;
        failed.map_or(Ok(rules), Err)
    }

    /// The rules that are in force: what was begun and killed, or what somebody else has changed since, is none.
    pub fn rules(&self) -> Result<Vec<Rule>, TcpError> {
        Ok(self.in_force()?.iter().map(rule).collect())
    }

    fn in_force(&self) -> Result<Vec<Change>, TcpError> {
        let mut changes = Journal::read(&self.place.state)?.changes;
        changes.retain(|change| self.is_in_force(change));
        Ok(changes)
    }

    /// The arguments of `haul tcp` that make these rules again, one command each.
    pub fn commands(&self) -> Result<Vec<Vec<String>>, TcpError> {
        Ok(self.in_force()?.iter().filter_map(command).collect())
    }

    /// Whether the laws are in the kernel: all of them, and for good. Where one was killed that loaded them or took them away, some may be there that nobody counts on.
    pub fn is_loaded(&self) -> bool {
        Journal::read(&self.place.state).is_ok_and(|journal| journal.loaded.is_some()) && self.pins().are_complete()
    }

    fn pins(&self) -> Pins {
        Pins::new(&self.place.bpf.join("tcp"), &self.place.memory)
    }

    /// Has the kernel know a law by name.
    fn make_available(&self, journal: &mut Journal, choice: &Choice, namespace: &Namespace) -> Result<(), TcpError> {
        match choice {
            Choice::Own(_) => self.load(journal),
            Choice::Kernel(name) => {
                let known = namespace.inside(|| fs::read_to_string(AVAILABLE))?.unwrap_or_default();
                let known: Vec<String> = known.split_whitespace().filter(|name| !is_ours(name)).map(str::to_owned).collect();
                if known.contains(name) {
                    return Ok(());
                }
                let ours = Law::ALL.map(|law| law.name().to_owned());
                Err(TcpError::NoSuchLaw { name: name.clone(), known: [&ours[..], &known].concat() })
            }
        }
    }

    fn load(&self, journal: &mut Journal) -> Result<(), TcpError> {
        let digest = laws::digest();
        if journal.loaded.as_ref() == Some(&digest) && self.pins().are_complete() {
            return Ok(());
        }
        laws::obstacle()?;
        laws::mount(&self.place.bpf)?;
        self.pins().load()?;
        // Afterwards: a kill in the middle leaves laws that nobody counts on.
        journal.loaded = Some(digest);
        journal.write()
    }

    /// What was left by a program that was killed, and what belongs to things that are gone.
    fn repair(&self, journal: &mut Journal) -> Result<(), TcpError> {
        let gone = |change: &Change| match change {
            Change::Default { namespace, .. } | Change::Routes { namespace, .. } => !namespace.is_there(),
            Change::Cgroup { id, dir, namespace, .. } => {
                let link = self.place.bpf.join(format!("rule-{id}/link"));
                !link.exists() || !dir.exists() || namespace.as_ref().is_some_and(|namespace| !namespace.is_there())
            }
            Change::Run { process, .. } => !Path::new(&format!("/proc/{process}")).exists(),
        };
        let lost: Vec<Change> = journal.changes.iter().filter(|change| gone(change)).cloned().collect();
        for change in lost {
            self.undo(&change)?;
            journal.changes.retain(|known| *known != change);
            journal.write()?;
        }
        Ok(())
    }

    /// Where nothing is wanted any more, nothing is left.
    fn tidy(&self, journal: &mut Journal) -> Result<(), TcpError> {
        if !journal.changes.is_empty() {
            return Ok(());
        }
        if journal.loaded.take().is_some() {
            // First of all: a kill while laws are taken away leaves some that nobody counts on.
            journal.write()?;
        }
        if mount::is_mounted(&self.place.bpf) {
            self.pins().unload()?;
            mount::unmount_bpf(&self.place.bpf).map_err(TcpError::doing("unmounting the bpf file system"))?;
        }
        journal.loaded = None;
        journal.remove()
    }
}

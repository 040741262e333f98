//! The ways by which connections get a law, and back: the default of a namespace, routes, a program at a cgroup.
//!
//! A change is in the journal before it is made, so that one that a kill leaves half done can be taken back.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use haul_units::Network;

use super::Tcp;
use super::rule::{Rule, Way, rule};
use crate::error::TcpError;
use crate::journal::{Change, Journal};
use crate::kernel::netns::{self, Namespace};
use crate::kernel::route::Route;
use crate::kernel::{bpf, cgroup};
use crate::law::Choice;
use crate::laws;
use crate::network::{EVERYTHING, mapped};

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

impl Tcp {
    /// The routes to a network, or, where it has none of its own, a program for the whole machine that looks at this namespace's connections alone.
    pub(super) fn on_network(
        &self,
        journal: &mut Journal,
        law: &str,
        namespace: &Namespace,
        network: Network,
    ) -> Result<Rule, TcpError> {
        let failed = |source| TcpError::Route { network: network.to_string(), source };
        let now = namespace.inside(|| Route::to(&network))?.map_err(failed)?;
        let is_same = |change: &Change| matches!(change, Change::Routes { namespace: of, network: to, .. } if of == namespace && *to == network);
        let known = journal.changes.iter().find_map(|change| match change {
            Change::Routes { before, .. } if is_same(change) => Some(before.clone()),
            _ => None,
        });
        if now.is_empty() && known.is_none() {
            return self.on_cgroup(journal, law, &cgroup::root()?, Some(namespace), Some(network));
        }
        let routes = now.len();
        // What was there before us stays known as that.
        let mut before = known.unwrap_or_default();
        let fresh: Vec<Route> = now.iter().filter(|route| !before.iter().any(|known| known.is_same(route))).cloned().collect();
        before.extend(fresh);
        let change = Change::Routes { namespace: namespace.clone(), network, before, law: law.into() };
        let set = |route: &Route| route.with_law(Some(law)).set();
        supersede(journal, is_same, change, || namespace.inside(|| now.iter().try_for_each(set))?.map_err(failed))?;
        Ok(Rule { law: Choice::of_kernel(law), whose: format!("to {network} in {namespace}"), way: Way::Routes(routes) })
    }

    pub(super) fn on_cgroup(
        &self,
        journal: &mut Journal,
        law: &str,
        dir: &Path,
        namespace: Option<&Namespace>,
        network: Option<Network>,
    ) -> Result<Rule, TcpError> {
        // More than one where a kill has come between.
        let is_same = |change: &&Change| matches!(change, Change::Cgroup { dir: at, namespace: of, network: to, .. } if at == dir && of.as_ref() == namespace && *to == network);
        let same: Vec<Change> = journal.changes.iter().filter(is_same).cloned().collect();
        let used = |id: &u32| journal.changes.iter().any(|change| matches!(change, Change::Cgroup { id: of, .. } if of == id));
        let id = (0..u32::MAX).find(|id| !used(id)).unwrap_or(u32::MAX);
        let change = Change::Cgroup { id, dir: dir.to_owned(), namespace: namespace.cloned(), network, law: law.into() };
        journal.add(change.clone())?;
        if let Err(error) = self.attach_rule(id, law, dir, namespace, network) {
            self.undo(&change)?;
            journal.changes.retain(|known| *known != change);
            journal.write()?;
            return Err(error);
        }
        // The new one is there before the old one goes: no connection falls between.
        for old in same {
            self.undo(&old)?;
            journal.changes.retain(|known| *known != old);
            journal.write()?;
        }
        Ok(rule(&change))
    }

    fn attach_rule(
        &self,
        id: u32,
        law: &str,
        dir: &Path,
        namespace: Option<&Namespace>,
        network: Option<Network>,
    ) -> Result<(), TcpError> {
        let cookie = namespace
            .map_or(Ok(Ok([0; 8])), |namespace| namespace.inside(netns::cookie))?
            .map_err(TcpError::doing("asking for a namespace's number"))?;
        laws::mount(&self.place.bpf)?;
        let pins = self.place.bpf.join(format!("rule-{id}"));
        let link = attach(dir, &pins, law, &[(cookie, network.unwrap_or(EVERYTHING))])?;
        bpf::pin(link.as_fd(), &pins.join("link")).map_err(TcpError::doing("naming a link"))
    }

    /// Whether the kernel has what the journal says.
    pub(super) fn is_in_force(&self, change: &Change) -> bool {
        let holds = match change {
            Change::Default { namespace, law, .. } => namespace.inside_if_there(|| read_default().is_ok_and(|now| now == *law)),
            Change::Routes { namespace, network, law, .. } => namespace.inside_if_there(|| {
                Route::to(network).is_ok_and(|now| now.iter().any(|route| route.law().as_ref() == Some(law)))
            }),
            Change::Cgroup { id, dir, .. } => {
                return dir.exists() && self.place.bpf.join(format!("rule-{id}/link")).exists();
            }
            Change::Run { dir, process, .. } => return dir.exists() && Path::new(&format!("/proc/{process}")).exists(),
        };
        matches!(holds, Ok(Some(true)))
    }

    /// Takes a change back, as far as it is in force.
    pub(super) fn undo(&self, change: &Change) -> Result<(), TcpError> {
        match change {
            Change::Default { namespace, before, law } => namespace
                .inside_if_there(|| if read_default()? == *law { fs::write(DEFAULT, before) } else { Ok(()) })?
                .unwrap_or(Ok(()))
                .map_err(|source| TcpError::Default { namespace: namespace.to_string(), source }),
            Change::Routes { namespace, network, before, law } => namespace
                .inside_if_there(|| put_back(network, before, law))?
                .unwrap_or(Ok(()))
                .map_err(|source| TcpError::Route { network: network.to_string(), source }),
            Change::Cgroup { id, .. } => Ok(laws::unload_chooser(&self.place.bpf.join(format!("rule-{id}")))?),
            Change::Run { dir, process, .. } => {
                laws::unload_chooser(&self.place.bpf.join(format!("run-{process}")))?;
                cgroup::remove(dir).map_err(TcpError::doing("removing a cgroup"))
            }
        }
    }
}

/// The congestion control of new connections in a namespace for which there is nothing narrower.
pub fn default_of(namespace: &Namespace) -> Result<Choice, TcpError> {
    let name =
        namespace.inside(read_default)?.map_err(|source| TcpError::Default { namespace: namespace.to_string(), source })?;
    Ok(Choice::of_kernel(&name))
}

fn read_default() -> io::Result<String> {
    Ok(fs::read_to_string(DEFAULT)?.trim().to_owned())
}

/// A law of ours as the default that no journal knows, of a run whose journal is lost, or of a namespace that was made while it was the machine's: it stays in the kernel, out of everybody's reach, for as long as it is
/// one. The kernel gets its usual one back. A namespace that has gone has none.
pub(super) fn put_back_usual(namespace: &Namespace) -> Result<Option<Rule>, TcpError> {
    let put_back = || {
        let now = read_default()?;
        if is_ours(&now) { fs::write(DEFAULT, usual()?).map(|()| Some(now)) } else { Ok(None) }
    };
    let stray = namespace.inside_if_there(put_back)?.unwrap_or(Ok(None));
    let stray = stray.map_err(|source| TcpError::Default { namespace: namespace.to_string(), source })?;
    Ok(stray.map(|law| all_in(namespace, &law)))
}

/// What is to be put back later.
fn read_default_or_usual() -> io::Result<String> {
    let now = read_default()?;
    if is_ours(&now) { usual() } else { Ok(now) }
}

fn all_in(namespace: &Namespace, law: &str) -> Rule {
    Rule { law: Choice::of_kernel(law), whose: format!("all in {namespace}"), way: Way::Default }
}

/// Those of a newer haul too.
pub(super) fn is_ours(law: &str) -> bool {
    law.starts_with("haul_")
}

/// The kernel allows everybody the one that it was built with, and reno.
fn usual() -> io::Result<String> {
    const RENO: &str = "reno";
    let allowed = fs::read_to_string(ALLOWED)?;
    let built = allowed.split_whitespace().find(|name| *name != RENO && !is_ours(name));
    Ok(built.unwrap_or(RENO).to_owned())
}

pub(super) fn set_default(journal: &mut Journal, law: &str, namespace: &Namespace) -> Result<Rule, TcpError> {
    let failed = |source| TcpError::Default { namespace: namespace.to_string(), source };
    let is_same = |change: &Change| matches!(change, Change::Default { namespace: of, .. } if of == namespace);
    let known = journal.changes.iter().find(|change| is_same(change));
    let before = match known {
        Some(Change::Default { before, .. }) => before.clone(),
        _ => namespace.inside(read_default_or_usual)?.map_err(failed)?,
    };
    let change = Change::Default { namespace: namespace.clone(), before, law: law.into() };
    supersede(journal, is_same, change, || namespace.inside(|| fs::write(DEFAULT, law))?.map_err(failed))?;
    Ok(all_in(namespace, law))
}

/// Makes a change in the place of older ones of the same thing. Both are written down until the new one is in force: whichever a kill leaves, taking back finds it.
fn supersede(
    journal: &mut Journal,
    is_same: impl Fn(&Change) -> bool,
    change: Change,
    make: impl FnOnce() -> Result<(), TcpError>,
) -> Result<(), TcpError> {
    let older: Vec<Change> = journal.changes.iter().filter(|known| is_same(known) && **known != change).cloned().collect();
    if !journal.changes.contains(&change) {
        journal.add(change)?;
    }
    make()?;
    if older.is_empty() {
        return Ok(());
    }
    journal.changes.retain(|known| !older.contains(known));
    journal.write()
}

/// Routes that have still the law that they were given get what they had.
fn put_back(network: &Network, before: &[Route], law: &str) -> io::Result<()> {
    for now in Route::to(network)?.iter().filter(|now| now.law().as_deref() == Some(law)) {
        match before.iter().find(|before| before.is_same(now)) {
            Some(before) => before.set()?,
            None => now.with_law(None).set()?,
        }
    }
    Ok(())
}

/// Has a program at a cgroup give connections a law: those of each network namespace (by its cookie; 0: all) to each network.
pub(super) fn attach(dir: &Path, pins: &Path, law: &str, rules: &[([u8; 8], Network)]) -> Result<OwnedFd, TcpError> {
    laws::load_chooser(pins)?;
    let doing = "attaching to a cgroup";
    let map = bpf::pinned(&pins.join("rules")).map_err(TcpError::doing(doing))?;
    let root = cgroup::root()?;
    let depth = dir.strip_prefix(&root).map_or(0, |below| below.components().count()) as u32;
    for (cookie, network) in rules {
        let (address, bits) = mapped(*network);
        // IPv4 and IPv6 are both meant where no network is.
        let bits = if *network == EVERYTHING { 0 } else { bits };
        let key = [&(64 + bits).to_ne_bytes()[..], cookie, &address].concat();
        // A cgroup's own rule before that of one above it, then the longer network, then that of one namespace.
        let narrow = depth << 16 | bits << 1 | u32::from(*cookie != [0; 8]);
        let choice = [&name_field(law)[..], &narrow.to_ne_bytes()].concat();
        bpf::update(map.as_fd(), &key, &choice).map_err(TcpError::doing(doing))?;
    }
    let program = bpf::pinned(&pins.join("program")).map_err(TcpError::doing(doing))?;
    cgroup::attach(dir, program.as_fd(), bpf::Attach::Sockops)
}

/// As the kernel's field for it.
pub(super) fn name_field(law: &str) -> [u8; 16] {
    let mut field = [0; 16];
    for (to, from) in field.iter_mut().zip(law.bytes().take(15)) {
        *to = from;
    }
    field
}

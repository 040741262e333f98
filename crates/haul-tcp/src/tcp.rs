//! Which connections get which law: switched on and off by the narrowest way that does what was asked.
//!
//! ```text
//!   a network that has routes of its own      the routes' congestion control     seen by `ip route`
//!   a network without, or a cgroup            a program at the cgroup with a table of networks
//!   a whole network namespace                 its default
//!   connections that are open                 an iterator that gives them another law
//! ```

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use haul_units::Network;

use crate::connection::{self, Connection};
use crate::error::TcpError;
use crate::journal::{Change, Journal};
use crate::kernel::bpf;
use crate::kernel::netns::{self, Namespace};
use crate::kernel::route::Route;
use crate::kernel::{cgroup, mount};
use crate::knobs::{self, KNOBS, Knob, Values};
use crate::law::{Choice, Law};
use crate::laws::{self, Pins};
use crate::network::{EVERYTHING, mapped, mask};

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Whose connections are meant.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// To and from these; without any, all.
    pub networks: Vec<Network>,
    /// Of this network namespace; without one, that of this process.
    pub namespace: Option<Namespace>,
    /// Of the programs in this cgroup.
    pub cgroup: Option<PathBuf>,
}

/// What was done for a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The congestion control that it gives.
    pub law: Choice,
    /// Whose connections.
    pub whose: String,
    /// How.
    pub way: Way,
}

/// The way by which connections get a law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// The default of a network namespace.
    Default,
    /// The congestion control of routes: this many.
    Routes(usize),
    /// A program at this cgroup.
    Cgroup(PathBuf),
}

/// What a law has done since it was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// Which.
    pub law: Law,
    /// Connections that got it.
    pub begun: u64,
    /// Those of them that are closed.
    pub ended: u64,
    /// Their reductions.
    pub reductions: u64,
    /// Quickstart: those that began with what was remembered.
    pub jumps: u64,
}

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

    /// Takes back what was done for a scope, or everything. What somebody else has changed since then stays.
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
        self.tidy(&mut journal)?;
        failed.map_or(Ok(rules), Err)
    }

    /// The rules that are in force.
    pub fn rules(&self) -> Result<Vec<Rule>, TcpError> {
        Ok(Journal::read(&self.place.state)?.changes.iter().map(rule).collect())
    }

    /// The arguments of `haul tcp` that make these rules again, one command each.
    pub fn commands(&self) -> Result<Vec<Vec<String>>, TcpError> {
        let journal = Journal::read(&self.place.state)?;
        Ok(journal.changes.iter().filter_map(command).collect())
    }

    /// Whether the laws are in the kernel, and those of this program.
    pub fn is_loaded(&self) -> bool {
        self.pins().are_complete()
    }

    /// What the laws have done; without any that was used, none.
    pub fn totals(&self) -> Result<Vec<Totals>, TcpError> {
        let Ok(map) = self.pins().open("totals") else { return Ok(Vec::new()) };
        let mut totals = Vec::new();
        for (index, law) in (0_u32..).zip(Law::ALL) {
            let mut value = [0; 32];
            bpf::lookup(map.as_fd(), &index.to_ne_bytes(), &mut value).map_err(TcpError::doing("reading the counters"))?;
            let word = |at: usize| value[at * 8..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
            totals.push(Totals { law, begun: word(0), ended: word(1), reductions: word(2), jumps: word(3) });
        }
        Ok(totals)
    }

    /// The connections of a namespace.
    pub fn connections(&self, namespace: &Namespace) -> Result<Vec<Connection>, TcpError> {
        let program = self.pins().open("show").map_err(|_| TcpError::NothingOn)?;
        let written = namespace.inside(|| bpf::walk(program.as_fd()))?;
        written.map(|bytes| connection::decode(&bytes)).map_err(TcpError::doing("reading the connections"))
    }

    /// Gives connections that are open another law; how many got it, and how many could not.
    pub fn switch(&self, choice: &Choice, namespace: &Namespace, networks: &[Network]) -> Result<(usize, usize), TcpError> {
        let mut journal = Journal::open(&self.place.state)?;
        self.repair(&mut journal)?;
        // Also for a law of the kernel's: it is a program that switches.
        self.load(&mut journal)?;
        let switched =
            self.make_available(&mut journal, choice, namespace).and_then(|()| self.walk_over(choice, namespace, networks));
        let tidied = self.tidy(&mut journal);
        let switched = switched?;
        tidied.map(|()| switched)
    }

    fn walk_over(&self, choice: &Choice, namespace: &Namespace, networks: &[Network]) -> Result<(usize, usize), TcpError> {
        let doing = "switching connections";
        let change = self.pins().open("change").map_err(TcpError::doing(doing))?;
        let program = self.pins().open("alter").map_err(TcpError::doing(doing))?;
        let (mut switched, mut refused) = (0, 0);
        for network in if networks.is_empty() { &[EVERYTHING] } else { networks } {
            let (address, bits) = mapped(*network);
            let value = [&address[..], &mask(bits), &name_field(&choice.kernel_name())].concat();
            bpf::update(change.as_fd(), &0_u32.to_ne_bytes(), &value).map_err(TcpError::doing(doing))?;
            let written = namespace.inside(|| bpf::walk(program.as_fd()))?.map_err(TcpError::doing(doing))?;
            let done = written.chunks_exact(4).filter(|word| **word != [0; 4]).count();
            switched += done;
            refused += written.len() / 4 - done;
        }
        Ok((switched, refused))
    }

    /// All settings with their values.
    pub fn settings(&self) -> Result<Vec<(Knob, u32)>, TcpError> {
        let values = self.values()?.unwrap_or_else(knobs::usual);
        Ok(KNOBS.into_iter().zip(values).collect())
    }

    /// Sets one, by `KEY=VALUE`.
    pub fn set(&self, setting: &str) -> Result<(), TcpError> {
        let (index, value) = knobs::parse(setting)?;
        let mut values = self.values()?.ok_or(TcpError::NothingOn)?;
        values[index] = value;
        let map = self.pins().open("knobs").map_err(|_| TcpError::NothingOn)?;
        bpf::update(map.as_fd(), &0_u32.to_ne_bytes(), &knobs::encode(&values)).map_err(TcpError::doing("setting"))
    }

    fn values(&self) -> Result<Option<Values>, TcpError> {
        let Ok(map) = self.pins().open("knobs") else { return Ok(None) };
        let mut values = [0; size_of::<Values>()];
        bpf::lookup(map.as_fd(), &0_u32.to_ne_bytes(), &mut values).map_err(TcpError::doing("reading the settings"))?;
        Ok(Some(knobs::decode(&values)))
    }

    /// A cgroup whose programs have a law, for as long as the value lives. The kernel takes the program back whenever this process ends.
    pub fn run(&self, choice: &Choice) -> Result<Run, TcpError> {
        let mut journal = Journal::open(&self.place.state)?;
        self.repair(&mut journal)?;
        let law = choice.kernel_name();
        let process = std::process::id();
        let dir = cgroup::root()?.join(format!("haul-tcp-{process}"));
        journal.add(Change::Run { dir: dir.clone(), process, law: law.clone() })?;
        let entered = self.make_available(&mut journal, choice, &Namespace::own()?).and_then(|()| {
            fs::create_dir_all(&dir).map_err(TcpError::doing("making a cgroup"))?;
            let pins = self.place.bpf.join(format!("run-{process}"));
            laws::mount(&self.place.bpf)?;
            let link = attach(&dir, &pins, &law, &[([0; 8], EVERYTHING)]);
            let removed = laws::unload_chooser(&pins);
            let link = link?;
            let before = cgroup::own()?;
            cgroup::join(&dir).map_err(TcpError::doing("joining a cgroup"))?;
            removed?;
            Ok((link, before))
        });
        match entered {
            Ok((link, before)) => Ok(Run { tcp: self.clone(), before, _link: link }),
            Err(error) => {
                self.end_run(&mut journal, process)?;
                Err(error)
            }
        }
    }

    fn end_run(&self, journal: &mut Journal, process: u32) -> Result<(), TcpError> {
        let mine = |change: &Change| matches!(change, Change::Run { process: of, .. } if *of == process);
        if let Some(change) = journal.changes.iter().find(|change| mine(change)).cloned() {
            self.undo(&change)?;
            journal.changes.retain(|change| !mine(change));
            journal.write()?;
        }
        self.tidy(journal)
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
                let known: Vec<String> =
                    known.split_whitespace().filter(|name| !name.starts_with("haul_")).map(str::to_owned).collect();
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
        if journal.loaded.as_ref() == Some(&digest) && self.is_loaded() {
            return Ok(());
        }
        laws::obstacle()?;
        laws::mount(&self.place.bpf)?;
        self.pins().load()?;
        // Afterwards: a kill in the middle leaves laws that nobody counts on.
        journal.loaded = Some(digest);
        journal.write()
    }

    /// The routes to a network, or, where it has none of its own, a program for the whole machine that looks at this namespace's connections alone.
    fn on_network(&self, journal: &mut Journal, law: &str, namespace: &Namespace, network: Network) -> Result<Rule, TcpError> {
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

    fn on_cgroup(
        &self,
        journal: &mut Journal,
        law: &str,
        dir: &Path,
        namespace: Option<&Namespace>,
        network: Option<Network>,
    ) -> Result<Rule, TcpError> {
        let same = journal.changes.iter().position(|change| {
            matches!(change, Change::Cgroup { dir: at, namespace: of, network: to, .. } if at == dir && of.as_ref() == namespace && *to == network)
        });
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
        if let Some(old) = same {
            let old = journal.changes[old].clone();
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

    /// Takes a change back, as far as it is in force.
    fn undo(&self, change: &Change) -> Result<(), TcpError> {
        match change {
            Change::Default { namespace, before, law } if namespace.is_there() => namespace
                .inside(|| if read_default()? == *law { fs::write(DEFAULT, before) } else { Ok(()) })?
                .map_err(|source| TcpError::Default { namespace: namespace.to_string(), source }),
            Change::Routes { namespace, network, before, law } if namespace.is_there() => namespace
                .inside(|| put_back(network, before, law))?
                .map_err(|source| TcpError::Route { network: network.to_string(), source }),
            Change::Default { .. } | Change::Routes { .. } => Ok(()),
            Change::Cgroup { id, .. } => Ok(laws::unload_chooser(&self.place.bpf.join(format!("rule-{id}")))?),
            Change::Run { dir, process, .. } => {
                laws::unload_chooser(&self.place.bpf.join(format!("run-{process}")))?;
                cgroup::remove(dir).map_err(TcpError::doing("removing a cgroup"))
            }
        }
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

/// What `haul tcp run` holds: dropped, everything is as before.
#[derive(Debug)]
pub struct Run {
    tcp: Tcp,
    before: PathBuf,
    _link: std::os::fd::OwnedFd,
}

impl Run {
    /// Leaves the cgroup, once the program was started in it.
    pub fn leave(&self) -> Result<(), TcpError> {
        cgroup::join(&self.before).map_err(TcpError::doing("leaving a cgroup"))
    }

    /// The program has ended.
    pub fn end(self) -> Result<(), TcpError> {
        let mut journal = Journal::open(&self.tcp.place.state)?;
        self.tcp.end_run(&mut journal, std::process::id())
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

fn set_default(journal: &mut Journal, law: &str, namespace: &Namespace) -> Result<Rule, TcpError> {
    let failed = |source| TcpError::Default { namespace: namespace.to_string(), source };
    let is_same = |change: &Change| matches!(change, Change::Default { namespace: of, .. } if of == namespace);
    let known = journal.changes.iter().find(|change| is_same(change));
    let before = match known {
        Some(Change::Default { before, .. }) => before.clone(),
        _ => namespace.inside(read_default)?.map_err(failed)?,
    };
    let change = Change::Default { namespace: namespace.clone(), before, law: law.into() };
    supersede(journal, is_same, change, || namespace.inside(|| fs::write(DEFAULT, law))?.map_err(failed))?;
    Ok(Rule { law: Choice::of_kernel(law), whose: format!("all in {namespace}"), way: Way::Default })
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
fn attach(dir: &Path, pins: &Path, law: &str, rules: &[([u8; 8], Network)]) -> Result<std::os::fd::OwnedFd, TcpError> {
    laws::load_chooser(pins)?;
    let doing = "attaching to a cgroup";
    let map = bpf::pinned(&pins.join("rules")).map_err(TcpError::doing(doing))?;
    for (cookie, network) in rules {
        let (address, bits) = mapped(*network);
        // IPv4 and IPv6 are both meant where no network is.
        let bits = if *network == EVERYTHING { 0 } else { bits };
        let key = [&(64 + bits).to_ne_bytes()[..], cookie, &address].concat();
        bpf::update(map.as_fd(), &key, &name_field(law)).map_err(TcpError::doing(doing))?;
    }
    let program = bpf::pinned(&pins.join("program")).map_err(TcpError::doing(doing))?;
    cgroup::attach(dir, program.as_fd())
}

/// As the kernel's field for it.
fn name_field(law: &str) -> [u8; 16] {
    let mut field = [0; 16];
    for (to, from) in field.iter_mut().zip(law.bytes().take(15)) {
        *to = from;
    }
    field
}

fn rule(change: &Change) -> Rule {
    let (law, whose, way) = match change {
        Change::Default { namespace, law, .. } => (law, format!("all in {namespace}"), Way::Default),
        Change::Routes { namespace, network, before, law } => {
            (law, format!("to {network} in {namespace}"), Way::Routes(before.len()))
        }
        Change::Cgroup { dir, namespace, network, law, .. } => {
            let to = network.map_or_else(|| "all".to_owned(), |network| format!("to {network}"));
            let within = namespace.as_ref().map_or_else(String::new, |namespace| format!(" in {namespace}"));
            (law, format!("{to}{within}"), Way::Cgroup(dir.clone()))
        }
        Change::Run { dir, process, law } => (law, format!("started by process {process}"), Way::Cgroup(dir.clone())),
    };
    Rule { law: Choice::of_kernel(law), whose, way }
}

/// What programs that run are given ends with them.
fn command(change: &Change) -> Option<Vec<String>> {
    let root = cgroup::root().ok();
    let (law, namespace, network, dir) = match change {
        Change::Default { namespace, law, .. } => (law, Some(namespace), None, None),
        Change::Routes { namespace, network, law, .. } => (law, Some(namespace), Some(network), None),
        Change::Cgroup { dir, namespace, network, law, .. } => {
            // The root was taken for want of a route.
            (law, namespace.as_ref(), network.as_ref(), Some(dir).filter(|dir| root.as_ref() != Some(dir) || network.is_none()))
        }
        Change::Run { .. } => return None,
    };
    let mut words = vec!["on".to_owned(), Choice::of_kernel(law).to_string()];
    let mut option =
        |name: &str, value: Option<String>| words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
    option("--to", network.map(ToString::to_string));
    option("--netns", namespace.and_then(|namespace| namespace.name().map(str::to_owned)));
    option("--cgroup", dir.map(|dir| dir.display().to_string()));
    Some(words)
}

/// Whether a scope names what was changed.
fn covers(scope: Option<&Scope>, own: Option<&Namespace>, change: &Change) -> bool {
    let (Some(scope), Some(own)) = (scope, own) else {
        // What runs ends by itself.
        return !matches!(change, Change::Run { process, .. } if Path::new(&format!("/proc/{process}")).exists());
    };
    let named = |network: Option<&Network>| {
        if scope.networks.is_empty() { true } else { network.is_some_and(|network| scope.networks.contains(network)) }
    };
    match change {
        Change::Default { namespace, .. } => scope.cgroup.is_none() && scope.networks.is_empty() && namespace == own,
        Change::Routes { namespace, network, .. } => scope.cgroup.is_none() && namespace == own && named(Some(network)),
        Change::Cgroup { dir, namespace, network, .. } => match &scope.cgroup {
            Some(of) => dir == of && named(network.as_ref()),
            None => namespace.as_ref() == Some(own) && named(network.as_ref()),
        },
        Change::Run { .. } => false,
    }
}

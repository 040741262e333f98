//! What a change of the journal is to people: a rule, the command that makes it again, and whether a scope names it.

use std::path::{Path, PathBuf};

use haul_units::Network;

use super::scope::Scope;
use crate::error::TcpError;
use crate::journal::Change;
use crate::kernel::cgroup;
use crate::kernel::netns::Namespace;
use crate::law::Choice;

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

pub(super) fn rule(change: &Change) -> Rule {
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
pub(super) fn command(change: &Change) -> Option<Vec<String>> {
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

/// The namespace whose default a scope names.
pub(super) fn whose_default(scope: Option<&Scope>) -> Result<Option<Namespace>, TcpError> {
    match scope {
        Some(scope) if scope.cgroup.is_some() || !scope.networks.is_empty() => Ok(None),
        Some(Scope { namespace: Some(namespace), .. }) => Ok(Some(namespace.clone())),
        _ => Namespace::own().map(Some),
    }
}

/// Whether a scope names what was changed.
pub(super) fn covers(scope: Option<&Scope>, own: Option<&Namespace>, change: &Change) -> bool {
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

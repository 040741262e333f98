//! What the other side may connect to: by default what it was told of, and nothing else.

use std::net::IpAddr;

use haul_peer::keys::Rights;
use haul_peer::{Rule, Target, TargetHost};

/// A set of targets.
#[derive(Debug, Clone)]
pub enum Policy {
    /// All of them.
    Everything,
    /// Those of a rule.
    Rules(Vec<Rule>),
}

impl Policy {
    /// Exactly these.
    pub fn only(targets: impl IntoIterator<Item = Target>) -> Self {
        Self::Rules(targets.into_iter().map(Rule::from).collect())
    }

    /// What one key may reach, within what everybody may.
    pub fn of(rights: &Rights) -> Self {
        if rights.targets.is_empty() { Self::Everything } else { Self::Rules(rights.targets.clone()) }
    }

    /// Whether a target is allowed whatever its name stands for.
    pub fn allows(&self, target: &Target) -> bool {
        self.any(|rule| rule.allows(&target.host, target.port))
    }

    /// Whether a target may be allowed at this address.
    pub fn allows_at(&self, address: IpAddr, port: u16) -> bool {
        self.any(|rule| rule.allows(&TargetHost::Address(address.to_canonical()), port))
    }

    /// Whether looking a name up may lead to something that is allowed.
    pub fn needs_addresses(&self) -> bool {
        self.any(Rule::needs_addresses)
    }

    fn any(&self, allows: impl Fn(&Rule) -> bool) -> bool {
        match self {
            Self::Everything => true,
            Self::Rules(rules) => rules.iter().any(allows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(rules: &[&str], target: &str) -> bool {
        let policy = Policy::Rules(rules.iter().map(|rule| rule.parse().expect(rule)).collect());
        policy.allows(&target.parse().expect(target))
    }

    #[test]
    fn what_no_rule_names_is_refused() {
        assert!(!allowed(&[], "localhost:80"));
        assert!(!Policy::only(["web:80".parse().unwrap()]).allows(&"web:81".parse().unwrap()));
        assert!(Policy::only(["web:80".parse().unwrap()]).allows(&"WEB:80".parse().unwrap()));
        assert!(!allowed(&["localhost:80"], "127.0.0.1:80"), "a name is not its address");
    }
}

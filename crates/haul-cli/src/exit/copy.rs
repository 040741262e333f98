//! Operands that make no copy, and what to do about it.

use haul_copy::PlanError;
use haul_peer::{OperandError, SshOptions};

use super::Failure;

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        let hint = match &error {
            PlanError::Operand(operand) => return Self::from(operand.clone()),
            PlanError::NoTarget => return Self::new(error),
            PlanError::StdinTwice => "name - once among the sources".to_owned(),
            PlanError::BothRemote { source_name, is_here: true, .. } => {
                format!("a file here has this name: write ./{source_name} if you mean it")
            }
            PlanError::BothRemote { direct: Some(direct), .. } => by_command(&direct.command(&SshOptions::default(), &[])),
            PlanError::BothRemote { .. } => "run haul on one of the two, or copy to this machine first".to_owned(),
            PlanError::BothLocal { in_store: true, .. } => {
                "use cp, or Gfarm's gfpcopy; a host called gfarm or ram is written scp://gfarm/path".to_owned()
            }
            PlanError::BothLocal { .. } => {
                "use cp for that, or rsync; another host is written host:path or haul://host/root/path".to_owned()
            }
            PlanError::NotOneDirectory => "name the directory that the names are below, once".to_owned(),
            PlanError::NotADirectory(_) => "make the directory first".to_owned(),
        };
        Self::new(error).hint(hint)
    }
}

/// What to do where neither end of a copy is here.
pub fn by_command(command: &str) -> String {
    format!("the data goes from host to host with `{command}`; or copy to this machine first")
}

impl From<OperandError> for Failure {
    fn from(error: OperandError) -> Self {
        let hint = match &error {
            OperandError::Empty => Some("was a variable unset?"),
            OperandError::BadHost(name) if name.starts_with("haul://") => Some("write haul://HOST/ROOT/path"),
            OperandError::BadHost(_) => Some("a local name with a : in it needs ./ before it"),
            OperandError::UnknownScheme(_) => Some("a local name with :// in it needs ./ before it"),
            _ => None,
        };
        let failure = Self::new(error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use haul_copy::Plan;

    use super::*;

    #[test]
    fn whoever_is_refused_is_told_what_to_do() {
        for line in
            ["a b", "far:a other:b", "a -", "a gfarm:/b", "- - far:x", "one:a two:b /no/such/dir", "sftp://far/a b", "-x:a b"]
        {
            let words: Vec<_> = line.split(' ').map(Into::into).collect();
            let failure = Failure::from(Plan::new(&words).expect_err(line));
            assert!(failure.hint.is_some(), "{line}: {failure}");
        }
    }
}

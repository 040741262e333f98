//! Where a listener's audit log goes.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use haul_serve::AuditTo;

/// A file, or systemd's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditTarget {
    /// Lines of JSON are appended to it.
    File(PathBuf),
    /// Entries with fields.
    Journal,
}

/// The audit log.
#[derive(Debug, Clone, Args)]
pub struct AuditArgs {
    /// Write who came, with which key, from where, for what, how much and with what result: a line of JSON an event, appended to FILE, or with `journal` entries of systemd's journal
    ///
    /// The file is opened when the listener starts, as the user that started it. docs/use/serve.md has the events and their fields, and how to rotate it.
    #[arg(long, value_name = "FILE")]
    pub audit: Option<AuditTarget>,
    /// Where the journal hears.
    #[arg(long, value_name = "SOCKET", default_value = "/run/systemd/journal/socket", hide = true)]
    pub journal_socket: PathBuf,
}

impl AuditArgs {
    /// Where it goes.
    pub fn to(&self) -> Option<AuditTo> {
        self.audit.as_ref().map(|word| match word {
            AuditTarget::File(path) => AuditTo::File(path.clone()),
            AuditTarget::Journal => AuditTo::Journal(self.journal_socket.clone()),
        })
    }
}

impl FromStr for AuditTarget {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "journal" { Self::Journal } else { Self::File(PathBuf::from(text)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_journals_name_is_still_possible() {
        assert_eq!("journal".parse(), Ok(AuditTarget::Journal));
        assert_eq!("./journal".parse(), Ok(AuditTarget::File("./journal".into())));
    }
}

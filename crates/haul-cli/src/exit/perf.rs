//! haul-perf's errors, for people.

use std::io;

use haul_perf::mesh::{NotAHost, SitesError};
use haul_perf::{CongestionError, MeasureError, PlanError, ServerError};

use super::Failure;

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::new(error).hint("`haul perf --help` tells what is possible")
    }
}

impl From<MeasureError> for Failure {
    fn from(error: MeasureError) -> Self {
        let failure = Self::new(&error);
        match error {
            MeasureError::Refused(refusal) => Self { hint: refusal.hint.map(String::from), ..failure },
            MeasureError::Tcp { .. } => failure.hint("haul's own UDP gets through; a firewall may block this TCP port"),
            MeasureError::Congestion(error) => error.into(),
            _ => failure,
        }
    }
}

impl From<CongestionError> for Failure {
    fn from(error: CongestionError) -> Self {
        let CongestionError { name, source, available } = &error;
        let hint = match source.kind() {
            io::ErrorKind::NotFound if name.starts_with("haul_") => {
                format!("`haul tcp on {}` loads it there, as root", name.trim_start_matches("haul_"))
            }
            io::ErrorKind::NotFound => format!("this kernel has: {available}; others may need `modprobe tcp_{name}`"),
            io::ErrorKind::PermissionDenied => {
                format!("root may add it to net.ipv4.tcp_allowed_congestion_control (available: {available})")
            }
            _ => format!("this kernel has: {available}"),
        };
        Self::new(&error).hint(hint)
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        Self::new(error)
    }
}

impl From<NotAHost> for Failure {
    fn from(error: NotAHost) -> Self {
        Self::new(error).hint("write [USER@]HOST, or -c HOST for a running server")
    }
}

impl From<SitesError> for Failure {
    fn from(error: SitesError) -> Self {
        let failure = Self::new(&error);
        match error {
            SitesError::File { .. } => failure,
            SitesError::TooFew | SitesError::NoFile(_) | SitesError::FewInFile(_) => {
                failure.hint("name them, or a file with one a line")
            }
            SitesError::SameName(_) => failure.hint("give each a name of its own: NAME=HOST"),
            SitesError::Host(error) => error.into(),
            SitesError::Site(_) => failure.hint("write [NAME=][USER@]HOST[,ADDRESS]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use haul_units::PeerText;

    use super::*;

    #[test]
    fn a_congestion_control_that_is_not_there_is_explained() {
        let error =
            |kind: io::ErrorKind| CongestionError { name: "htcp".into(), source: kind.into(), available: "reno cubic".into() };
        let hint = |kind| Failure::from(error(kind)).hint.unwrap_or_default();
        assert!(hint(io::ErrorKind::NotFound).ends_with("`modprobe tcp_htcp`"));
        assert!(hint(io::ErrorKind::PermissionDenied).contains("tcp_allowed_congestion_control (available: reno cubic)"));
        let own = CongestionError { name: "haul_fair".into(), source: io::ErrorKind::NotFound.into(), available: String::new() };
        assert_eq!(Failure::from(own).hint.as_deref(), Some("`haul tcp on fair` loads it there, as root"));
        assert_eq!(hint(io::ErrorKind::Other), "this kernel has: reno cubic");
        assert!(Failure::from(error(io::ErrorKind::Other)).message.starts_with("TCP congestion control `htcp`: "));
    }

    #[test]
    fn a_refusal_keeps_the_hint_that_came_with_it() {
        let refusal = haul_peer::Refusal { error: "no".into(), hint: Some(PeerText::from("ask later")) };
        let failure = Failure::from(MeasureError::Refused(refusal));
        assert_eq!((failure.message.as_str(), failure.hint.as_deref()), ("no", Some("ask later")));
    }
}

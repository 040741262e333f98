//! The lab's errors, and what to do about them.

use haul_bench::bench::KeepError;
use haul_bench::experiment::ExperimentError;
use haul_lab::check::CheckError;
use haul_lab::emulator::{AskError, EmulateError, NotUp, Obstacle, PassError, StartError};
use haul_lab::{LinkError, RelayError};

use super::Failure;

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let failure = Self::new(&error);
        match error {
            StartError::NotRoot => {
                failure.hint("run it with sudo; without root, `haul lab relay` plays the same link for haul alone")
            }
            StartError::Spawn(_) => failure
                .hint("it needs a process namespace and a mount namespace of its own: root in a container may not make them"),
            StartError::NotUp(why) => why.into(),
            StartError::Link(_) | StartError::System(_) | StartError::Ended => failure,
        }
    }
}

impl From<NotUp> for Failure {
    fn from(why: NotUp) -> Self {
        let failure = Self::new(&why);
        match why.obstacle {
            Obstacle::NameTaken => failure.hint("`haul lab wan down` ends it, --name makes another one"),
            Obstacle::NoTunDevice => {
                failure.hint("`modprobe tun` brings the device; without it `haul lab relay` plays the same link for haul alone")
            }
            Obstacle::NotAllowed => {
                failure.hint("root in a container is not enough; `haul lab relay` plays the same link for haul alone")
            }
            Obstacle::NoIproute => failure.hint("install iproute2"),
            Obstacle::Other => failure,
        }
    }
}

impl From<EmulateError> for Failure {
    fn from(error: EmulateError) -> Self {
        match error {
            EmulateError::Cradle(why) => {
                Self::new(format!("`haul lab wan emulate` is a part of `haul lab wan up`, not for use by hand: {why}"))
                    .hint("`haul lab wan up` makes a WAN, `haul lab wan run` one for a single command")
            }
            other => Self::new(other),
        }
    }
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        let failure = Self::new(&error);
        match error {
            AskError::NoSuchWan { .. } => failure.hint("`haul lab wan up` makes one"),
            _ => failure,
        }
    }
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Start(error) => error.into(),
            CheckError::Ask(error) => error.into(),
            CheckError::NotInstalled { .. } => Self::new(&error).hint("apt-get install iputils-ping iperf3"),
            other => Self::new(other),
        }
    }
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Self {
        let failure = Self::new(&error);
        match error {
            ExperimentError::Unknown { .. } => failure.hint("`haul lab list` tells what each shows"),
            _ => failure,
        }
    }
}

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Self {
        Self::new(error)
    }
}

impl From<PassError> for Failure {
    fn from(error: PassError) -> Self {
        Self::new(error)
    }
}

impl From<RelayError> for Failure {
    fn from(error: RelayError) -> Self {
        Self::new(error)
    }
}

impl From<KeepError> for Failure {
    fn from(error: KeepError) -> Self {
        Self::new(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_way_decides_the_hint() {
        let failure = |obstacle| Failure::from(StartError::NotUp(NotUp { obstacle, said: "why".to_owned() }));
        assert_eq!(failure(Obstacle::NoIproute), Failure::new("why").hint("install iproute2"));
        assert!(failure(Obstacle::NameTaken).hint.is_some_and(|hint| hint.contains("haul lab wan down")));
        assert_eq!(failure(Obstacle::Other), Failure::new("why"));
    }
}

//! What failed on the kernel's TCP, and what to do about it.

use std::io;

use haul_tcp::unit::UnitError;
use haul_tcp::{LoadError, TcpError};

use super::Failure;

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let failure = Self::new(&error);
        match &error {
            LoadError::NotBuilt => failure.hint("install clang (apt-get install clang) and build haul again"),
            LoadError::NoLibrary { .. } => failure.hint("apt-get install libbpf1 (where there is dnf: libbpf)"),
            LoadError::NoTypes => {
                failure.hint("boot the distribution's own kernel: Debian, Ubuntu, Fedora and RHEL build theirs with it")
            }
            LoadError::OldKernel { .. } => failure
                .hint("boot a newer kernel; `haul proxy` carries the TCP of other programs over haul's own transport on any"),
            LoadError::Rights { .. } => failure.hint("run it with sudo; root in a container is not enough"),
            LoadError::OwnMounts => failure.hint("run it outside, with --netns NAME"),
            LoadError::Refused { kept: Some(kept), .. } => failure.hint(format!(
                "this kernel's verifier does not take what was built: please report it with {} (of the last refusal only)",
                kept.display()
            )),
            LoadError::Refused { log, .. } if log.contains("PROG LOAD LOG") => {
                failure.hint("this kernel's verifier does not take what was built: please report it with the lines above")
            }
            LoadError::Refused { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                failure.hint("the kernel may be locked down, or this is a container: run it on the host")
            }
            LoadError::Refused { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                failure.hint("something else has registered that name: `bpftool struct_ops show` tells who")
            }
            _ => failure,
        }
    }
}

impl From<TcpError> for Failure {
    fn from(error: TcpError) -> Self {
        let failure = Self::new(&error);
        match error {
            TcpError::Load(error) => error.into(),
            TcpError::NoSuchLaw { .. } => failure.hint("one that is a module of the kernel is there after `modprobe tcp_NAME`"),
            TcpError::Namespace { .. } => failure.hint("`ip netns list` has the names"),
            TcpError::NoInterface { .. } => failure.hint("`ip -br link` has the names"),
            TcpError::QueueTaken { interface, .. } => {
                failure.hint(format!("`tc qdisc del dev {interface} root` puts the kernel's default there again"))
            }
            TcpError::QueueInUse { .. } => failure.hint("`haul pace status` shows what is on, `haul pace off` takes it back"),
            TcpError::NoDepartures(_) => {
                failure.hint("`--queue-by htb` holds the rates all the same; fq is a module of most kernels (`modprobe sch_fq`)")
            }
            TcpError::Queue(_) => failure.hint("it needs `tc` of iproute2, the rights of root, and HTB in the kernel (`modprobe sch_htb`)"),
            TcpError::NoCgroups => failure.hint("mount -t cgroup2 none /sys/fs/cgroup/unified"),
            TcpError::NotACgroup(_) => failure.hint("`mkdir` in the cgroup2 file system makes one; systemd has one for each of its units"),
            TcpError::Default { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => failure.hint(
                "as root; a namespace takes only what `sysctl net.ipv4.tcp_allowed_congestion_control` of the host has, and modes of haul",
            ),
            TcpError::Journal { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => failure.hint("run it with sudo"),
            TcpError::Unreadable { path, .. } => {
                failure.hint(format!("remove {} if nothing of haul tcp is on; a restart of the machine does it too", path.display()))
            }
            TcpError::NothingOn => failure.hint("`haul tcp on MODE` loads them"),
            _ => failure,
        }
    }
}

impl From<UnitError> for Failure {
    fn from(error: UnitError) -> Self {
        let failure = Self::new(&error);
        match error {
            UnitError::NoSystemd => failure.hint("run these at each start: `haul tcp install --print` shows them"),
            UnitError::File(_) => failure.hint("run it with sudo"),
            UnitError::NoSystemctl(_) | UnitError::Systemctl { .. } => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lack_has_the_command_that_mends_it() {
        let hint = |error: LoadError| Failure::from(TcpError::from(error)).hint.expect("a hint");
        assert!(hint(LoadError::NotBuilt).contains("apt-get install clang"));
        assert!(hint(LoadError::Rights { missing: vec!["CAP_BPF"] }).contains("sudo"));
        assert!(hint(LoadError::OldKernel { release: "6.1".to_owned() }).contains("haul proxy"));
        assert!(hint(LoadError::OwnMounts).contains("--netns"));
    }
}

//! Where the programs are, and what is said about one that is missing.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::tool::Tool;

/// The programs that are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    haul: PathBuf,
    places: Vec<PathBuf>,
}

/// What a tool needs, and how it is installed.
struct Needs {
    programs: &'static [&'static str],
    install: &'static str,
}

impl Programs {
    /// With this `haul`; the drivers are where a release is built or beside it, everything else where the shell would look, and where
    /// daemons are.
    pub fn beside(haul: PathBuf) -> Self {
        let own = haul.parent().map(|dir| [dir.with_file_name("release"), dir.to_owned()]);
        let path = env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
        let daemons = ["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from);
        let places = own.into_iter().flatten().chain(env::split_paths(&path)).chain(daemons).collect();
        Self { haul, places }
    }

    /// The `haul` that is measured.
    pub fn haul(&self) -> &Path {
        &self.haul
    }

    /// The full path of a program.
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        if program == "haul" {
            return Some(self.haul.clone());
        }
        self.places.iter().map(|place| place.join(program)).find(|path| path.is_file())
    }

    /// Why a tool cannot be measured here: what is missing, and what brings it.
    pub fn missing(&self, tool: Tool) -> Option<String> {
        let needs = needs(tool);
        let missing: Vec<_> = needs.programs.iter().copied().filter(|program| self.find(program).is_none()).collect();
        (!missing.is_empty()).then(|| format!("there is no {} here: {}", missing.join(", no "), needs.install))
    }
}

const fn needs(tool: Tool) -> Needs {
    let (programs, install): (&[&str], _) = match tool {
        Tool::Haul | Tool::HaulQuickstart | Tool::HaulModest | Tool::HaulAggressive | Tool::HaulCpDaemon => {
            (&["haul", "ss"], "apt-get install iproute2")
        }
        Tool::Cubic | Tool::Bbr | Tool::Reno => (&["iperf3", "ss"], "apt-get install iperf3 iproute2"),
        Tool::Udt => (&["udt-bulk", "ss"], "apt-get install libudt-dev g++ iproute2, then scripts/setup-bench.sh"),
        Tool::Srt => (&["srt-bulk", "ss"], "apt-get install libsrt-openssl-dev g++ iproute2, then scripts/setup-bench.sh"),
        Tool::QuicCubic | Tool::QuicBbr => {
            (&["quinn-bulk", "ss"], "cargo build --release -p quinn-bulk; apt-get install iproute2")
        }
        Tool::HaulCp | Tool::HaulCpAgain | Tool::HaulCpTcp | Tool::HaulCpSsh | Tool::Scp | Tool::Tar => {
            (&["ssh", "sshd", "ssh-keygen", "scp", "ss"], "apt-get install openssh-client openssh-server iproute2")
        }
        Tool::Sftp => (&["ssh", "sshd", "ssh-keygen", "sftp", "ss"], "apt-get install openssh-client openssh-server iproute2"),
        Tool::Mscp => (&["mscp", "sshd", "ssh-keygen", "ss"], "build github.com/upa/mscp, which Debian 12 does not have"),
        Tool::Rsync => {
            (&["ssh", "sshd", "ssh-keygen", "rsync", "ss"], "apt-get install rsync openssh-client openssh-server iproute2")
        }
        Tool::Gridftp | Tool::GridftpBbr => (
            &["globus-url-copy", "globus-gridftp-server", "ss"],
            "apt-get install globus-gass-copy-progs globus-gridftp-server-progs iproute2",
        ),
    };
    Needs { programs, install }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_what_brings_it() {
        let nothing = Programs { haul: "/nowhere/haul".into(), places: vec!["/nowhere".into()] };
        let message = nothing.missing(Tool::Gridftp).expect("nothing is there");
        assert!(
            message.contains("no globus-url-copy, no globus-gridftp-server") && message.contains("apt-get install globus"),
            "{message}"
        );
        let dir = tempfile::tempdir().expect("a directory");
        for program in ["iperf3", "ss"] {
            std::fs::write(dir.path().join(program), "").expect("a file");
        }
        let some = Programs { haul: "/nowhere/haul".into(), places: vec![dir.path().to_owned()] };
        assert_eq!(some.missing(Tool::Bbr), None);
        assert!(some.missing(Tool::Rsync).is_some());
    }
}

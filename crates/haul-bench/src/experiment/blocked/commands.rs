//! What is transferred by each command of haul's, and the same by ssh alone.

use serde::Serialize;

use super::cases::{Case, RELAY};

/// Where the disk is; every host sees it.
pub const DISK: &str = "/run/netns/bench";
/// Where the rsync daemon of the far host listens, on its loopback.
pub const DAEMON_PORT: u16 = 8873;
/// The proxy's port at the near host.
const PROXY_PORT: u16 = 8874;
/// The file is in so many parts for `haul fleet`.
pub const PARTS: u64 = 8;

/// A command of haul's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    Cp,
    Perf,
    Pipe,
    Rsync,
    Rsh,
    Proxy,
    Fleet,
}

/// Who transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    Haul,
    Ssh,
}

/// What the words of a script need.
#[derive(Debug, Clone)]
pub struct Words {
    /// The path of `haul`.
    pub haul: String,
    /// What is transferred.
    pub bytes: u64,
    /// How long the script may take, in seconds.
    pub at_most_s: u64,
}

impl Command {
    pub const ALL: [Self; 7] = [Self::Cp, Self::Perf, Self::Pipe, Self::Rsync, Self::Rsh, Self::Proxy, Self::Fleet];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Cp => "cp",
            Self::Perf => "perf",
            Self::Pipe => "pipe",
            Self::Rsync => "rsync",
            Self::Rsh => "rsh",
            Self::Proxy => "proxy",
            Self::Fleet => "fleet",
        }
    }

    /// What ssh alone does in its place.
    pub const fn by_ssh(self) -> &'static str {
        match self {
            Self::Cp => "scp",
            Self::Perf => "zeros through ssh",
            Self::Pipe => "ssh far cat",
            Self::Rsync => "rsync over ssh",
            Self::Rsh => "tar over ssh",
            Self::Proxy => "rsync's daemon behind ssh -L",
            Self::Fleet => "two scp at once",
        }
    }

    /// Whether something is to be at the far host afterwards.
    const fn stores(self) -> bool {
        !matches!(self, Self::Perf)
    }

    /// A script for bash at the near host: it prints `took BEGIN END`, in seconds, when the transfer is over and what has come is what was sent.
    pub fn script(self, by: By, case: Case, words: &Words) -> String {
        let work = match by {
            By::Haul => self.haul(case, words),
            By::Ssh => self.ssh(words),
        };
        let check =
            if self.stores() { format!("cmp <(cat {DISK}/source/part*) <(cat {DISK}/arrived/*) >&2") } else { String::new() };
        format!(
            "set -eo pipefail; export XDG_CONFIG_HOME={DISK}/near XDG_STATE_HOME={DISK}/near LC_ALL=C\n\
             rm -rf {DISK}/arrived; mkdir {DISK}/arrived\n\
             F={DISK}/ssh_config; begin=$EPOCHREALTIME\n{work}\nend=${{end:-$EPOCHREALTIME}}\n{check}\necho took $begin $end\n"
        )
    }

    fn haul(self, case: Case, Words { haul, bytes, at_most_s }: &Words) -> String {
        let relay = if case.has_relay() { format!(" --relay {RELAY}") } else { String::new() };
        let told = format!("--remote-haul {haul}{relay}");
        let file = format!("{DISK}/source/part");
        match self {
            Self::Cp => format!("{haul} cp -F $F {told} {file}* far:{DISK}/arrived/"),
            Self::Perf => format!("{haul} perf -F $F {told} -n {bytes} far"),
            Self::Pipe => format!("cat {file}* | {haul} pipe -F $F {told} far -- 'cat >{DISK}/arrived/all'"),
            Self::Rsync => {
                format!("{haul} rsync {told} -a --whole-file --inplace -e \"ssh -F $F\" {file}* far:{DISK}/arrived/")
            }
            Self::Rsh => {
                format!("tar -C {DISK}/source -cf - . | {haul} rsh -F $F {told} far tar -C {DISK}/arrived -xf -")
            }
            Self::Proxy => through(&format!("{haul} proxy -F $F {told} far -L {PROXY_PORT}:127.0.0.1:{DAEMON_PORT}"), *at_most_s),
            Self::Fleet => format!("{haul} fleet put -F $F {told} -H far,far2 {file}* {DISK}/arrived/"),
        }
    }

    fn ssh(self, Words { bytes, at_most_s, .. }: &Words) -> String {
        let file = format!("{DISK}/source/part");
        match self {
            Self::Cp => format!("scp -q -F $F {file}* far:{DISK}/arrived/"),
            Self::Perf => format!("head -c {bytes} /dev/zero | ssh -F $F far 'cat >/dev/null'"),
            Self::Pipe => format!("cat {file}* | ssh -F $F far 'cat >{DISK}/arrived/all'"),
            Self::Rsync => format!("rsync -a --whole-file --inplace -e \"ssh -F $F\" {file}* far:{DISK}/arrived/"),
            Self::Rsh => format!("tar -C {DISK}/source -cf - . | ssh -F $F far tar -C {DISK}/arrived -xf -"),
            Self::Proxy => through(&format!("ssh -N -F $F -L {PROXY_PORT}:127.0.0.1:{DAEMON_PORT} far"), *at_most_s),
            Self::Fleet => {
                let half = |from: u64| (from..from + PARTS / 2).map(|part| format!("{file}{part} ")).collect::<Vec<_>>().concat();
                format!(
                    "scp -q -F $F {}far:{DISK}/arrived/ & scp -q -F $F {}far:{DISK}/arrived/; wait $!",
                    half(0),
                    half(PARTS / 2)
                )
            }
        }
    }
}

/// The files go to the rsync daemon of the far host, through a port of this one that `proxy` listens on. The proxy's own end is no part of the transfer.
fn through(proxy: &str, at_most_s: u64) -> String {
    format!(
        "{proxy} & proxy=$!\n\
         trap 'kill $proxy 2>/dev/null || true' EXIT\n\
         until [ -n \"$(ss -Hltn 'sport = :{PROXY_PORT}')\" ]; do kill -0 $proxy; [ $SECONDS -lt {at_most_s} ]; sleep 0.02; done\n\
         rsync -a --whole-file --inplace {DISK}/source/part* rsync://127.0.0.1:{PROXY_PORT}/arrived/\n\
         end=$EPOCHREALTIME; kill $proxy; wait $proxy || true"
    )
}

/// The seconds of the line that a script prints at its end.
pub fn took(output: &str) -> Option<f64> {
    let line = output.lines().rev().find_map(|line| line.strip_prefix("took "))?;
    let (begin, end) = line.split_once(' ')?;
    let seconds = end.trim().parse::<f64>().ok()? - begin.parse::<f64>().ok()?;
    (seconds > 0.0).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        Words { haul: "/opt/haul".into(), bytes: 1000, at_most_s: 9 }
    }

    #[test]
    fn each_command_is_called_with_the_relay_where_there_is_one_and_ssh_never() {
        for command in Command::ALL {
            let haul = command.script(By::Haul, Case::Symmetric, &words());
            assert!(haul.contains(&format!("/opt/haul {}", command.name())) && haul.contains("--relay 10.80.128.2"), "{haul}");
            assert!(!command.script(By::Haul, Case::Open, &words()).contains("--relay"));
            let ssh = command.script(By::Ssh, Case::Symmetric, &words());
            assert!(!ssh.contains("haul") && !ssh.contains("relay"), "{ssh}");
            assert!(ssh.contains("-F $F") && ssh.contains("echo took"), "{ssh}");
        }
    }

    /// bash reads them all.
    #[test]
    fn scripts_are_sound() {
        for (command, by) in Command::ALL.iter().flat_map(|command| [(command, By::Haul), (command, By::Ssh)]) {
            let script = command.script(by, Case::Cones, &words());
            let read = std::process::Command::new("bash").args(["-nc", &script]).output().expect("bash");
            assert!(read.status.success(), "{script}: {}", String::from_utf8_lossy(&read.stderr));
        }
    }

    #[test]
    fn times_are_read() {
        assert_eq!(took("noise\ntook 100.500000 103.750000\n"), Some(3.25));
        for nonsense in ["", "took\n", "took 5\n", "took 5 4\n", "took a b\n"] {
            assert_eq!(took(nonsense), None, "{nonsense}");
        }
    }
}

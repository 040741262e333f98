//! Where the far side may be reached over UDP.
//!
//! ssh knows host aliases that nobody else knows: `ssh -G` tells the real name. The far side in its turn knows at which of its addresses
//! ssh reached it. Both are tried: behind address translation only the first works, behind a jump host often only the second.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::process::{Child, Stdio};

use super::{Family, SshCommand, spawn};

/// The names that ssh would connect to: the real host name, or else the one given.
pub fn ssh_names(command: &SshCommand, given: &str) -> String {
    let mut explain = command.explain();
    // Its input ends at once. That of Windows takes the null device for a console (PowerShell/Win32-OpenSSH, issue 856), but not a pipe.
    explain.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let output = spawn(explain).and_then(Child::wait_with_output);
    let explained = output.ok().filter(|output| output.status.success());
    explained.and_then(|output| hostname(&String::from_utf8_lossy(&output.stdout))).unwrap_or_else(|| given.to_owned())
}

/// What a name means, as the resolver has it: this may take seconds.
pub fn resolve(name: &str) -> Vec<IpAddr> {
    (name, 0).to_socket_addrs().into_iter().flatten().map(|addr| addr.ip()).collect()
}

/// Addresses to try, best first, none twice. The far side's word alone does not make the client ask a crowd.
pub fn candidates(resolved: &[IpAddr], reported: &[IpAddr], port: u16, family: Family) -> Vec<SocketAddr> {
    let mut candidates: Vec<SocketAddr> = Vec::new();
    for ips in [resolved, reported] {
        let most = candidates.len() + MOST;
        for ip in ips.iter().filter(|ip| family.admits(**ip)) {
            let addr = SocketAddr::new(*ip, port);
            if candidates.len() < most && !candidates.contains(&addr) {
                candidates.push(addr);
            }
        }
    }
    candidates
}

/// Addresses that are tried of those that the resolver or the far side names.
const MOST: usize = 8;

fn hostname(explained: &str) -> Option<String> {
    let name = explained.lines().find_map(|line| line.strip_prefix("hostname "))?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_ssh_explains() {
        assert_eq!(hostname("user me\nhostname far.example\nport 22\n").as_deref(), Some("far.example"));
        assert_eq!(hostname("Pseudo-terminal\n"), None);
    }

    #[test]
    fn the_name_first_then_what_the_far_side_reports() {
        let reported = [IpAddr::from([192, 0, 2, 7]), IpAddr::from([127, 0, 0, 1])];
        let here = resolve("127.0.0.1");
        let found = candidates(&here, &reported, 9, Family::Any);
        assert_eq!(found, ["127.0.0.1:9".parse().unwrap(), "192.0.2.7:9".parse().unwrap()]);
        assert!(candidates(&here, &reported, 9, Family::Ipv6).is_empty());
        assert_eq!(candidates(&resolve("no such name"), &reported, 9, Family::Ipv4).len(), 2);
    }

    #[test]
    fn a_far_side_with_many_addresses_is_not_asked_at_all_of_them() {
        let many: Vec<_> = (0..6000_u32).map(|n| IpAddr::from(n.to_be_bytes())).collect();
        let here = [IpAddr::from([192, 0, 2, 7])];
        let found = candidates(&here, &many, 9, Family::Any);
        assert_eq!((found.len(), found[0].ip()), (1 + MOST, here[0]));
    }
}

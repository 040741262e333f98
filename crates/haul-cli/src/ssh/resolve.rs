//! Where the far side may be reached over UDP.
//!
//! ssh knows host aliases that nobody else knows: `ssh -G` tells the real name. The far side in its turn knows at which of its addresses
//! ssh reached it. Both are tried: behind address translation only the first works, behind a jump host often only the second.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::process::Stdio;

use super::{Family, SshCommand};

/// The names that ssh would connect to: the real host name, or else the one given.
pub fn ssh_names(command: &SshCommand, given: &str) -> String {
    let output = command.explain().stdin(Stdio::null()).stderr(Stdio::null()).output();
    let explained = output.ok().filter(|output| output.status.success());
    explained.and_then(|output| hostname(&String::from_utf8_lossy(&output.stdout))).unwrap_or_else(|| given.to_owned())
}

/// Addresses to try, best first, none twice.
pub fn candidates(name: &str, reported: &[IpAddr], port: u16, family: Family) -> Vec<SocketAddr> {
    let resolved = (name, port).to_socket_addrs().into_iter().flatten();
    let reported = reported.iter().map(|&ip| SocketAddr::new(ip, port));
    distinct(resolved.chain(reported).filter(|addr| family.admits(addr.ip())))
}

fn distinct(addrs: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut distinct = Vec::new();
    for addr in addrs {
        if !distinct.contains(&addr) {
            distinct.push(addr);
        }
    }
    distinct
}

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
        let found = candidates("127.0.0.1", &reported, 9, Family::Any);
        assert_eq!(found, ["127.0.0.1:9".parse().unwrap(), "192.0.2.7:9".parse().unwrap()]);
        assert!(candidates("127.0.0.1", &reported, 9, Family::Ipv6).is_empty());
        assert_eq!(candidates("no such name", &reported, 9, Family::Ipv4).len(), 2);
    }
}

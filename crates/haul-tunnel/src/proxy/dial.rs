//! Connecting to a target, as far as the policy lets.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use haul_peer::{Target, TargetHost};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::policy::Policy;
use super::wire::{CONNECTION_REFUSED, FAILED, HOST_UNREACHABLE, NETWORK_UNREACHABLE, NOT_ALLOWED, Refused, TIMED_OUT};

/// How long one address may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// Connects to the first address of a target that answers, of those that every policy allows.
pub async fn dial(policies: &[&Policy], target: &Target) -> Result<TcpStream, Refused> {
    let mut refused = Refused::new(HOST_UNREACHABLE, format!("{}: no address", target.host));
    for address in addresses(policies, target).await? {
        match connect(SocketAddr::new(address, target.port)).await {
            Ok(tcp) => return Ok(tcp),
            Err(error) => refused = explain(target, &error),
        }
    }
    Err(refused)
}

/// Where the target may be looked for.
async fn addresses(policies: &[&Policy], target: &Target) -> Result<Vec<IpAddr>, Refused> {
    let forbidden = || Refused::new(NOT_ALLOWED, format!("{target} is not allowed here (see --to and --allow)"));
    // Those that do not allow it whatever its name stands for.
    let doubtful: Vec<_> = policies.iter().filter(|policy| !policy.allows(target)).collect();
    let name = match &target.host {
        TargetHost::Address(address) if doubtful.is_empty() => return Ok(vec![*address]),
        TargetHost::Name(name) if doubtful.iter().all(|policy| policy.needs_addresses()) => name,
        _ => return Err(forbidden()),
    };
    let found = lookup_host((name.as_str(), target.port)).await;
    let found = found.map_err(|error| Refused::new(HOST_UNREACHABLE, format!("{name}: {error}")))?;
    let allowed = |address: &IpAddr| doubtful.iter().all(|policy| policy.allows_at(*address, target.port));
    let allowed: Vec<IpAddr> = found.map(|address| address.ip().to_canonical()).filter(allowed).collect();
    if allowed.is_empty() && !doubtful.is_empty() { Err(forbidden()) } else { Ok(allowed) }
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let tcp = timeout(PATIENCE, TcpStream::connect(address)).await.map_err(|_| io::ErrorKind::TimedOut)??;
    prepare(&tcp)?;
    Ok(tcp)
}

/// What every TCP connection that is carried gets: bytes go on as they come, and a peer that has vanished is noticed some time.
pub fn prepare(tcp: &TcpStream) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    socket2::SockRef::from(tcp).set_keepalive(true)
}

fn explain(target: &Target, error: &io::Error) -> Refused {
    let code = match error.kind() {
        io::ErrorKind::ConnectionRefused => CONNECTION_REFUSED,
        io::ErrorKind::NetworkUnreachable => NETWORK_UNREACHABLE,
        io::ErrorKind::HostUnreachable => HOST_UNREACHABLE,
        io::ErrorKind::TimedOut => TIMED_OUT,
        _ => FAILED,
    };
    Refused::new(code, format!("{target}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(rules: &[&str]) -> Policy {
        Policy::Rules(rules.iter().map(|rule| rule.parse().expect(rule)).collect())
    }

    #[tokio::test]
    async fn a_client_reaches_what_every_policy_allows() {
        let (everybody, confined) =
            (rules(&["*:80", "127.0.0.0/8:*"]), rules(&["localhost:80", "127.0.0.0/8:81", "127.0.0.2:*"]));
        let all = Policy::Everything;
        for (policies, target, allowed) in [
            (&[&all, &all][..], "127.0.0.9:9", true),
            (&[&everybody, &all], "127.0.0.9:9", true),
            (&[&everybody, &confined], "127.0.0.9:9", false),
            (&[&everybody, &confined], "127.0.0.2:9", true),
            (&[&everybody, &confined], "192.0.2.1:80", false),
            // By name for one, by what the name stands for here for the other.
            (&[&everybody, &confined], "localhost:80", true),
            (&[&everybody, &confined], "localhost:81", true),
            (&[&everybody, &confined], "localhost:82", false),
        ] {
            let found = addresses(policies, &target.parse().expect(target)).await;
            assert_eq!(found.is_ok(), allowed, "{target}: {found:?}");
        }
    }
}

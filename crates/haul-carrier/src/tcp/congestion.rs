//! The congestion control of a lane's TCP connection, where there is a choice.

use std::fs;
use std::net::TcpStream;

use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};

/// Those that do not take every lost packet for a full queue, the best first: haul's law for the kernel (`haul tcp`), and BBR.
const BETTER: [&str; 2] = ["haul_fair", "bbr"];
/// What a kernel has where nobody has chosen. Whatever else is there was chosen by the administrator of the machine, and stays.
const UNCHOSEN: [&str; 2] = ["cubic", "reno"];
/// What the administrator lets every program use.
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// Gives the connection a better one; without one it is as good as TCP is by itself.
pub(super) fn choose(stream: &TcpStream) {
    let allowed = fs::read_to_string(ALLOWED).unwrap_or_default();
    let Some(better) = tcp_congestion(stream).ok().and_then(|present| better(&present, &allowed)) else { return };
    if let Err(error) = set_tcp_congestion(stream, better) {
        tracing::debug!(%error, better, "TCP keeps its congestion control");
    }
}

/// Of those that are allowed. A name that is not may be that of a module, which nobody should have loaded by a connection.
fn better(present: &str, allowed: &str) -> Option<&'static str> {
    let is_allowed = |name: &&str| allowed.split_whitespace().any(|allowed| allowed == *name);
    UNCHOSEN.contains(&present).then(|| BETTER.into_iter().find(is_allowed)).flatten()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_is_allowed_and_not_chosen_is_changed() {
        assert_eq!(better("cubic", "reno cubic"), None, "as Debian has it");
        assert_eq!(better("cubic", "reno cubic bbr"), Some("bbr"));
        assert_eq!(better("reno", "reno cubic bbr haul_fair"), Some("haul_fair"));
        assert_eq!(better("cubic", "reno bbr2"), None, "a whole name");
        for chosen in ["haul_modest", "bbr", "dctcp", "lp"] {
            assert_eq!(better(chosen, "reno cubic bbr haul_fair"), None, "{chosen} was chosen");
        }
    }

    #[test]
    fn a_connection_has_what_is_best_of_what_there_is() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a listener");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let before = tcp_congestion(&stream).expect("one");
        choose(&stream);
        let allowed = fs::read_to_string(ALLOWED).expect("Linux has it");
        assert_eq!(tcp_congestion(&stream).expect("one"), better(&before, &allowed).unwrap_or(&before));
    }
}

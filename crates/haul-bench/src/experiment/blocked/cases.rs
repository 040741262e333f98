//! What is in the way, and what is then to carry.

use std::time::Duration;

use haul_lab::LinkOptions;
use haul_units::{BitRate, Bytes, Ratio};
use serde::Serialize;

use crate::experiment::Scale;

/// Where sshd listens.
pub const SSH_PORT: u16 = 2222;
/// The near host, and the far one as the near one knows it.
pub const FAR: &str = "10.80.128.1";
/// The relay, on the second host of the far side.
pub const RELAY: &str = "10.80.128.2";
/// The far host of [`Case::Narrow`], behind the first host of its side.
pub const BEHIND: &str = "10.99.0.2";

/// What is transferred each time.
pub fn bytes(scale: Scale) -> Bytes {
    Bytes(scale.pick(4_000_000, 60_000_000))
}

/// A transfer that is not through by then is cut off, and its rate is that until then.
pub fn at_most(scale: Scale) -> Duration {
    Duration::from_secs(scale.pick(30, 12))
}

/// What is between the hosts.
pub fn link(scale: Scale, loss_percent: f64) -> LinkOptions {
    let (rate, rtt_ms) = scale.pick((BitRate::mbps(200), 20), (BitRate::gbps(1), 100));
    LinkOptions { rate, rtt: Duration::from_millis(rtt_ms), loss: Ratio::percent(loss_percent), ..LinkOptions::default() }
}

/// Packets that are lost, each way, in per cent.
pub fn losses(scale: Scale) -> &'static [f64] {
    scale.pick(&[0.0], &[0.0, 0.1])
}

/// A network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    Open,
    NoUdp,
    NoneIn,
    AnswersIn,
    OnlySsh,
    Limited,
    Narrow,
    Cones,
    Symmetric,
}

/// What carries a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    Udp,
    /// UDP, once the far side had sent first.
    FarFirst,
    /// UDP, directly through both NATs.
    Punched,
    Relay,
    Tcp,
    Ssh,
}

impl Case {
    const ALL: [Self; 9] = [
        Self::Open,
        Self::NoUdp,
        Self::NoneIn,
        Self::AnswersIn,
        Self::OnlySsh,
        Self::Limited,
        Self::Narrow,
        Self::Cones,
        Self::Symmetric,
    ];

    /// Those that are tried.
    pub fn of(scale: Scale) -> &'static [Self] {
        const QUICK: [Case; 4] = [Case::Open, Case::OnlySsh, Case::Narrow, Case::Symmetric];
        scale.pick(&QUICK, &Self::ALL)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "nothing is blocked",
            Self::NoUdp => "all UDP is dropped",
            Self::NoneIn => "UDP to the far side is dropped",
            Self::AnswersIn => "only ssh and answers get in at the far side",
            Self::OnlySsh => "nothing but ssh passes",
            Self::Limited => "UDP is limited to 100 Mbit/s",
            Self::Narrow => "over 1280 bytes are dropped, and no ICMP says so",
            Self::Cones => "both behind NATs (cones), --relay",
            Self::Symmetric => "both behind NATs (symmetric), --relay",
        }
    }

    /// What the documents say of it.
    pub const fn promised(self) -> Carrier {
        match self {
            Self::Open | Self::Limited | Self::Narrow => Carrier::Udp,
            Self::NoUdp | Self::NoneIn => Carrier::Tcp,
            Self::AnswersIn => Carrier::FarFirst,
            Self::OnlySsh => Carrier::Ssh,
            Self::Cones => Carrier::Punched,
            Self::Symmetric => Carrier::Relay,
        }
    }

    /// Whether ssh alone is something else there than where nothing is blocked: its TCP has to find out what passes.
    pub const fn hinders_ssh(self) -> bool {
        matches!(self, Self::Narrow)
    }

    pub const fn has_relay(self) -> bool {
        matches!(self, Self::Cones | Self::Symmetric)
    }

    /// Hosts of the far side.
    pub const fn far_hosts(self) -> u8 {
        if self.has_relay() || matches!(self, Self::Narrow) { 2 } else { 1 }
    }

    /// Which of them is logged in to.
    pub const fn far_host(self) -> usize {
        if matches!(self, Self::Narrow) { 1 } else { 0 }
    }

    /// nft's rules at the near host.
    pub fn near_rules(self) -> String {
        match self {
            Self::NoUdp => filter("input", "meta l4proto udp drop;"),
            Self::Cones | Self::Symmetric => self.nat(),
            _ => String::new(),
        }
    }

    /// nft's rules at the first host of the far side.
    pub fn far_rules(self) -> String {
        let ssh_and_answers = format!("iif lo accept; tcp dport {SSH_PORT} accept; ct state established,related accept; drop;");
        match self {
            Self::Open => String::new(),
            Self::NoUdp | Self::NoneIn => filter("input", "iif lo accept; meta l4proto udp drop;"),
            Self::AnswersIn => filter("input", &ssh_and_answers),
            Self::OnlySsh => filter("input", &ssh_and_answers) + &filter("output", "oif != lo meta l4proto udp drop;"),
            Self::Limited => filter("input", "meta l4proto udp limit rate over 12500 kbytes/second burst 250 kbytes drop;"),
            // All that comes goes on to the host behind; what is too long for it is dropped, and who sent it is not told.
            Self::Narrow => format!(
                "{} table ip nat {{ chain into {{ type nat hook prerouting priority -100; iifname wan0 dnat to {BEHIND}; }}; }};",
                filter("output", "meta l4proto icmp drop;")
            ),
            Self::Cones | Self::Symmetric => self.nat(),
        }
    }

    /// A NAT on the host itself: another port for what leaves, and nothing gets in that has not been asked for, but ssh.
    fn nat(self) -> String {
        let how = if self == Self::Symmetric { " fully-random" } else { "" };
        format!(
            "{} table ip nat {{ chain out {{ type nat hook postrouting priority 100; oif != lo meta l4proto udp masquerade to :10000-19999{how}; }}; }};",
            filter("input", &format!("iif lo accept; tcp dport {SSH_PORT} accept; ct state new drop;"))
        )
    }

    /// Lines of a shell at the first host of the far side, `$second` being a process of the second.
    pub fn line(self) -> Option<String> {
        match self {
            // The relay sees the far host at the address by which the near one knows it.
            Self::Cones | Self::Symmetric => Some(format!(
                "ip link add to2 type veth peer name to1 netns $second; ip link set to2 up; ip route add {RELAY}/32 dev to2 src {FAR}"
            )),
            Self::Narrow => Some(
                "ip link add to2 type veth peer name to1 netns $second; ip addr add 10.99.0.1/24 dev to2; ip link set to2 mtu 1280 up; \
                 echo 1 >/proc/sys/net/ipv4/ip_forward"
                .to_owned(),
            ),
            _ => None,
        }
    }

    /// The other end of it.
    pub fn line_of_second(self) -> Option<String> {
        match self {
            Self::Cones | Self::Symmetric => Some(format!("ip link set to1 up; ip route add {FAR}/32 dev to1 src {RELAY}")),
            Self::Narrow => Some(format!(
                "ip link set wan0 down; ip addr add {BEHIND}/24 dev to1; ip link set to1 up; ip route add default via 10.99.0.1"
            )),
            _ => None,
        }
    }
}

fn filter(hook: &str, rules: &str) -> String {
    format!("table inet case_{hook} {{ chain c {{ type filter hook {hook} priority 0; {rules} }}; }};")
}

impl Carrier {
    /// By what `haul` has said on its standard error; the last word counts.
    pub fn said(stderr: &str) -> Self {
        let word = |line: &str| WORDS.iter().find(|(words, _)| line.contains(words)).map(|&(_, carrier)| carrier);
        stderr.lines().rev().find_map(word).unwrap_or(Self::Udp)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::FarFirst => "UDP, the far side first",
            Self::Punched => "UDP through both NATs",
            Self::Relay => "the relay",
            Self::Tcp => "TCP",
            Self::Ssh => "ssh",
        }
    }

    /// The same by its packets: nobody can tell from them who has sent first.
    const fn on_the_wire(self) -> Self {
        match self {
            Self::FarFirst | Self::Punched => Self::Udp,
            other => other,
        }
    }

    /// Whether packets say the same.
    pub fn is_seen(self, left: &Left) -> bool {
        self.on_the_wire() == left.most()
    }
}

/// haul's words for it.
const WORDS: [(&str, Carrier); 6] = [
    ("through ssh's own connection", Carrier::Ssh),
    ("logins of ssh to", Carrier::Ssh),
    ("over TCP", Carrier::Tcp),
    ("by way of relay", Carrier::Relay),
    ("directly through both NATs", Carrier::Punched),
    ("it has, and UDP passes", Carrier::FarFirst),
];

/// Bytes that have left the near host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Left {
    /// UDP to the relay.
    pub relay: u64,
    /// Other UDP.
    pub udp: u64,
    /// TCP to sshd.
    pub ssh: u64,
    /// Other TCP.
    pub tcp: u64,
}

impl Left {
    /// nft's rules that count it.
    pub fn rules() -> String {
        let counted = ["ip daddr RELAY meta l4proto udp", "meta l4proto udp", "tcp dport SSH", "meta l4proto tcp"];
        let rule = |what: &str| format!("oif != lo {what} counter accept;");
        let rules = counted.map(rule).concat().replace("RELAY", RELAY).replace("SSH", &SSH_PORT.to_string());
        format!("table inet left {{ chain c {{ type filter hook output priority -10; {rules} }}; }};")
    }

    /// From what `nft list table inet left` prints.
    pub fn of(listed: &str) -> Option<Self> {
        let count = |rest: &str| rest.split_once(" bytes ")?.1.split_whitespace().next()?.parse().ok();
        let counts: Vec<u64> = listed.split("counter packets").skip(1).filter_map(count).collect();
        let &[relay, udp, ssh, tcp] = counts.as_slice() else { return None };
        Some(Self { relay, udp, ssh, tcp })
    }

    pub const fn since(self, before: Self) -> Self {
        Self {
            relay: self.relay.saturating_sub(before.relay),
            udp: self.udp.saturating_sub(before.udp),
            ssh: self.ssh.saturating_sub(before.ssh),
            tcp: self.tcp.saturating_sub(before.tcp),
        }
    }

    fn most(self) -> Carrier {
        let all = [(self.relay, Carrier::Relay), (self.udp, Carrier::Udp), (self.ssh, Carrier::Ssh), (self.tcp, Carrier::Tcp)];
        all.into_iter().max_by_key(|(bytes, _)| *bytes).map_or(Carrier::Udp, |(_, carrier)| carrier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_haul_says_is_understood_and_the_last_word_counts() {
        for (said, carrier) in [
            ("", Carrier::Udp),
            ("something else\n", Carrier::Udp),
            (
                "UDP is blocked inbound at far: ask for UDP 60000; over TCP for now, which one lost packet slows down more\n",
                Carrier::Tcp,
            ),
            (
                "UDP to far is blocked: ask for UDP 1; over TCP for now\n..; through ssh's own connection for now, which is slower\nbye\n",
                Carrier::Ssh,
            ),
            ("through 4 logins of ssh to far\n", Carrier::Ssh),
            ("UDP to far does not pass from outside: directly through both NATs, met by relay r:7700\n", Carrier::Punched),
            ("UDP to far does not pass from outside, nor through both NATs: by way of relay r:7700\n", Carrier::Relay),
            ("UDP is blocked inbound at far until far itself has sent some: it has, and UDP passes\n", Carrier::FarFirst),
        ] {
            assert_eq!(Carrier::said(said), carrier, "{said}");
        }
    }

    #[test]
    fn packets_say_the_same_or_do_not() {
        let listed = "table inet left {\n chain c {\n  oif != \"lo\" ip daddr 10.80.128.2 meta l4proto udp counter packets 1 bytes 60 accept\n  \
                      oif != \"lo\" meta l4proto udp counter packets 9 bytes 9000 accept\n  oif != \"lo\" tcp dport 2222 counter packets 3 bytes 700 accept\n  \
                      oif != \"lo\" meta l4proto tcp counter packets 0 bytes 0 accept\n }\n}\n";
        let left = Left::of(listed).expect("four counters");
        assert_eq!(left, Left { relay: 60, udp: 9000, ssh: 700, tcp: 0 });
        assert_eq!(left.since(Left { udp: 8950, ..Left::default() }).udp, 50);
        for (carrier, seen) in [
            (Carrier::Udp, true),
            (Carrier::FarFirst, true),
            (Carrier::Punched, true),
            (Carrier::Ssh, false),
            (Carrier::Tcp, false),
            (Carrier::Relay, false),
        ] {
            assert_eq!(carrier.is_seen(&left), seen, "{carrier:?}");
        }
        assert!(Carrier::Relay.is_seen(&Left { relay: 10, ..Left::default() }));
        assert_eq!(Left::of("counter packets 1 bytes 2"), None, "three are missing");
    }

    /// Every network is another one, and what is behind a second host of the far side has a line to it.
    #[test]
    fn networks_are_complete() {
        for (number, case) in Case::ALL.into_iter().enumerate() {
            assert!(
                Case::ALL[..number]
                    .iter()
                    .all(|other| other.far_rules() != case.far_rules() || other.near_rules() != case.near_rules()),
                "{case:?}"
            );
            assert_eq!(case.far_hosts() == 2, case.line().is_some() && case.line_of_second().is_some(), "{case:?}");
            for rules in [case.near_rules(), case.far_rules()] {
                assert_eq!(rules.matches('{').count(), rules.matches('}').count(), "{rules}");
            }
        }
        assert!(Case::of(Scale::Quick).iter().all(|case| Case::of(Scale::Full).contains(case)));
    }
}

//! The queueing discipline that stands at an interface for `haul pace --queue`, in tc's words.
//!
//! fq holds each packet until the time that a program ([`departure`](crate::departure)) has given it, where the kernel has it; HTB has a class for each of ours, and lets it go at its rate. fq paces
//! sockets of TCP too, unless it is told not to: TCP has its own timer for that here, which goes on when the discipline is taken away.

use std::fmt;

use haul_netdev::iproute::{IprouteError, tc, tc_batch};
use serde_json::Value;

use crate::class::{PaceClass, with_rates};
use crate::error::TcpError;

/// What holds packets at an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discipline {
    /// fq: until the departure time that a program gives each packet.
    Fq,
    /// HTB: by its classes.
    Htb,
}

/// The discipline that an interface has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The kernel's default.
    Default,
    Ours,
    /// Another one, that somebody has chosen.
    Chosen(String),
}

/// By which it is known for ours, in tc's words; the programs have the same.
const HANDLE: &str = "4861:";
/// A timer of a busy host is late by that much; what the line would have carried meanwhile may follow at once, or HTB's rate is never reached. A departure time is what it is, however late
/// the one before was.
const LATE_US: u64 = 500;
/// A full frame, at least.
const LEAST_BURST: u64 = 1600;
/// What a frame has on a line beside what the kernel counts: check sum, preamble, gap; and the shortest one.
const ON_LINE: &str = "overhead 24 mpu 84";
/// What waits in fq is bounded by the buffers of its sockets and by the program's horizon. fq's own limits, in packets, are far above: a socket would not wait for them, but lose its packets.
const LIMITS: &str = "limit 1000000 flow_limit 1000000";

impl Discipline {
    /// Makes it at an interface, in the place of the kernel's default, with a class for each of these that has a rate.
    pub(crate) fn lay(self, interface: &str, classes: &[PaceClass]) -> Result<(), TcpError> {
        match (self, tc_batch(&self.lines(interface, classes))) {
            (Self::Fq, Err(IprouteError::Failed { said, .. })) if is_unknown(&said) => {
                Err(TcpError::NoDepartures("it has no fq (CONFIG_NET_SCH_FQ)"))
            }
            (_, laid) => Ok(laid?),
        }
    }

    /// For `tc -batch`.
    fn lines(self, interface: &str, classes: &[PaceClass]) -> String {
        match self {
            Self::Fq => format!("qdisc add dev {interface} root handle {HANDLE} fq nopacing {LIMITS}\n"),
            Self::Htb => {
                let mut lines = format!("qdisc add dev {interface} root handle {HANDLE} htb default 0\n");
                for (class, number) in with_rates(classes) {
                    let rate = class.bits_per_s;
                    let burst = (rate / 8).saturating_mul(LATE_US).div_ceil(1_000_000).max(LEAST_BURST);
                    let class = format!("class add dev {interface} parent {HANDLE} classid {HANDLE}{:x}", number + 1);
                    let held = format!(" htb rate {rate}bit burst {burst} cburst {burst} quantum {LEAST_BURST} {ON_LINE}\n");
                    lines.extend([class, held]);
                }
                lines
            }
        }
    }

    /// Takes it away, where it is there; the kernel's default comes back.
    pub(crate) fn take_away(interface: &str) -> Result<(), TcpError> {
        if standing(interface)? == Standing::Ours {
            tc_batch(&format!("qdisc del dev {interface} root\n"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fq => "departure times, fq",
            Self::Htb => "HTB",
        })
    }
}

/// Whether this is how tc says that the kernel has no discipline of that name, in words of its own or of the kernel.
fn is_unknown(said: &str) -> bool {
    said.contains("qdisc kind is unknown") || said.contains("No such file or directory")
}

pub(crate) fn standing(interface: &str) -> Result<Standing, TcpError> {
    let told = tc(&["-json", "qdisc", "show", "dev", interface, "root"])?;
    let list: Vec<Value> = serde_json::from_str(&told).unwrap_or_default();
    Ok(list.first().map_or(Standing::Default, |root| {
        let word = |key: &str| root.get(key).and_then(Value::as_str).unwrap_or_default();
        match (word("kind"), word("handle")) {
            ("htb" | "fq", HANDLE) => Standing::Ours,
            // What nobody has chosen has no number.
            ("noqueue", _) | (_, "0:") => Standing::Default,
            (kind, handle) => Standing::Chosen(format!("{kind} {handle}")),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn class(bits_per_s: u64) -> PaceClass {
        PaceClass { to: None, bits_per_s, follows: false }
    }

    #[test]
    fn each_class_with_a_rate_has_one_of_htb() {
        let lines = Discipline::Htb.lines("eth0", &[class(1_000_000), class(0), class(2_000_000_000)]);
        let words: Vec<Vec<&str>> = lines.lines().map(|line| line.split(' ').collect()).collect();
        assert_eq!(words[0].join(" "), "qdisc add dev eth0 root handle 4861: htb default 0");
        let of = |line: &[&str], word: &str| line[line.iter().position(|one| *one == word).expect("the word") + 1].to_owned();
        let each = words[1..].iter().map(|line| ["classid", "rate", "burst"].map(|word| of(line, word)));
        let expected = [["4861:1", "1000000bit", "1600"], ["4861:3", "2000000000bit", "125000"]];
        assert_eq!(each.collect::<Vec<_>>(), expected.map(|words| words.map(str::to_owned)));
    }

    #[test]
    fn fq_leaves_sockets_to_their_own_timer() {
        let lines = Discipline::Fq.lines("eth0", &[class(1_000_000), class(2_000_000_000)]);
        assert!(lines.starts_with("qdisc add dev eth0 root handle 4861: fq nopacing "), "{lines}");
        assert_eq!(lines.lines().count(), 1);
    }

    #[test]
    fn a_kernel_without_a_discipline_is_told_from_another_error() {
        assert!(is_unknown("Error: Specified qdisc kind is unknown."));
        assert!(is_unknown("RTNETLINK answers: No such file or directory"));
        assert!(!is_unknown("RTNETLINK answers: Operation not permitted"));
        assert!(!is_unknown("Error: Exclusivity flag on, cannot modify."));
    }
}

//! Tables, goals and charts of what was transferred.

use std::time::Duration;

use haul_units::{BitRate, Bytes};
use serde::Serialize;

use super::cases::{Carrier, Case, Left, at_most, bytes, link};
use super::commands::{By, Command};
use crate::experiment::{Judged, Report, Scale, Table};

/// A transfer, as it came out.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Ran {
    pub case: Case,
    pub loss_percent: f64,
    pub command: Command,
    pub by: By,
    /// What carried it, as haul says.
    pub carrier: Carrier,
    /// What has left the near host.
    pub left: Left,
    /// From the command to the end of the transfer.
    pub seconds: f64,
    /// What has come.
    pub bytes: u64,
    /// It was not through when its time was over.
    pub is_cut_off: bool,
    /// It ended with an error, which a note tells; nothing counts as come.
    pub has_failed: bool,
}

impl Ran {
    /// Nothing has been seen of it yet.
    pub fn of(case: Case, loss_percent: f64, command: Command, by: By) -> Self {
        let (carrier, left) = (case.promised(), Left::default());
        Self { case, loss_percent, command, by, carrier, left, seconds: 0.0, bytes: 0, is_cut_off: false, has_failed: false }
    }

    fn mbps(&self) -> f64 {
        BitRate::of(Bytes(self.bytes), Duration::from_secs_f64(self.seconds)).as_bps() as f64 / 1e6
    }

    fn cell(&self) -> String {
        if self.has_failed {
            return "failed".to_owned();
        }
        format!("{}{}", short(self.mbps()), if self.is_cut_off { "*" } else { "" })
    }
}

fn short(mbps: f64) -> String {
    if mbps < 10.0 { format!("{mbps:.1}") } else { format!("{mbps:.0}") }
}

pub fn report(scale: Scale, ran: &[Ran], notes: Vec<String>) -> Report {
    let mut losses: Vec<f64> = Vec::new();
    for one in ran {
        if losses.iter().all(|loss| (loss - one.loss_percent).abs() > 1e-9) {
            losses.push(one.loss_percent);
        }
    }
    let path = link(scale, 0.0);
    let mut report = Report {
        heading: format!(
            "What carries where UDP is blocked: {} from host to host, {}, {} ms, real sockets over the emulated WAN; from the command to the end of the transfer, the login included",
            bytes(scale),
            path.rate,
            path.rtt.as_millis()
        ),
        notes: [NOTES.iter().map(|&note| note.to_owned()).collect(), vec![cut_off(scale)], notes].concat(),
        data: serde_json::json!(ran),
        ..Report::default()
    };
    for loss_percent in losses {
        let of_loss: Vec<&Ran> = ran.iter().filter(|one| (one.loss_percent - loss_percent).abs() < 1e-9).collect();
        report.tables.push(matrix(loss_percent, &of_loss));
        report.verdicts.extend(verdicts(loss_percent, &of_loss));
    }
    report
}

const NOTES: [&str; 2] = [
    "In the first rows ssh alone does the same: scp, zeros to cat, a file to cat, rsync, tar, rsync's daemon behind ssh -L, two scp at once. It was measured where nothing is blocked and where it is hindered, scp in every network.",
    "What carries is what haul says, and what the packets that left the near host say too. A cell of another carrier than its row has that in front.",
];

fn cut_off(scale: Scale) -> String {
    format!("* not through after {} s: the rate until then, heads of packets counted", at_most(scale).as_secs())
}

/// Networks by commands.
fn matrix(loss_percent: f64, ran: &[&Ran]) -> Table {
    let (haul, ssh) = (by(ran, By::Haul), by(ran, By::Ssh));
    let commands: Vec<Command> = unique(ran.iter().map(|one| one.command));
    let names: Vec<&str> = commands.iter().map(|command| command.name()).collect();
    let columns = [&["network", "carried by"], &names[..], &["scp beside it"]].concat();
    let title = format!("What carries each command, and how fast [Mbit/s], {loss_percent} % loss each way");
    let mut table = Table::new(&format!("matrix-{}", loss_percent.to_string().replace('.', "-")), &title, &columns);
    let of = |among: &[&Ran], case: Case, command: Command| {
        among.iter().find(|one| one.case == case && one.command == command).copied().copied()
    };
    let print = |one: Option<Ran>| one.map_or_else(|| "-".to_owned(), |one| one.cell());
    for case in unique(ssh.iter().map(|one| one.case)).into_iter().filter(|case| *case == Case::Open || case.hinders_ssh()) {
        let alone = commands.iter().map(|&command| print(of(&ssh, case, command)));
        table.rows.push([vec![case.name().to_owned(), "ssh alone".to_owned()], alone.collect(), vec!["-".to_owned()]].concat());
    }
    for case in unique(haul.iter().map(|one| one.case)) {
        let usual = usual(&haul.iter().filter(|one| one.case == case && !one.has_failed).map(|one| one.carrier));
        let cell = |&command: &Command| {
            let one = of(&haul, case, command);
            match one.filter(|one| one.carrier != usual && !one.has_failed) {
                Some(other) => format!("{}: {}", other.carrier.name(), other.cell()),
                None => print(one),
            }
        };
        let cells = commands.iter().map(cell).collect();
        table.rows.push(
            [vec![case.name().to_owned(), usual.name().to_owned()], cells, vec![print(of(&ssh, case, Command::Cp))]].concat(),
        );
    }
    table
}

fn by<'a>(ran: &[&'a Ran], by: By) -> Vec<&'a Ran> {
    ran.iter().copied().filter(|one| one.by == by).collect()
}

fn unique<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// What carried most of the commands.
fn usual(carriers: &(impl Iterator<Item = Carrier> + Clone)) -> Carrier {
    let count = |wanted: Carrier| carriers.clone().filter(|&carrier| carrier == wanted).count();
    unique(carriers.clone()).into_iter().rev().max_by_key(|&carrier| count(carrier)).unwrap_or(Carrier::Udp)
}

/// Of each network: that what carries is what the documents say, and that no command is slower than ssh alone.
fn verdicts(loss_percent: f64, ran: &[&Ran]) -> Vec<Judged> {
    let (haul, ssh) = (by(ran, By::Haul), by(ran, By::Ssh));
    let mut judged = Vec::new();
    for case in unique(haul.iter().map(|one| one.case)) {
        let here: Vec<&Ran> = haul.iter().copied().filter(|one| one.case == case).collect();
        let who = format!("{loss_percent} %, {}", case.name());
        let listed = |others: Vec<String>, all: &str| if others.is_empty() { all.to_owned() } else { others.join(", ") };
        let other = here.iter().filter(|one| one.has_failed || one.carrier != case.promised() || !one.carrier.is_seen(&one.left));
        let told = |one: &&Ran| {
            let Ran { command, carrier, left, has_failed, .. } = one;
            if *has_failed {
                format!("{}: failed", command.name())
            } else {
                format!("{}: {}, by its packets {left:?}", command.name(), carrier.name())
            }
        };
        let others: Vec<String> = other.map(told).collect();
        let promised = case.promised().name();
        judged.push(Judged {
            who: who.clone(),
            goal: format!("all commands go by {promised}"),
            met: Some(others.is_empty()),
            value: listed(others, "they do"),
        });
        let beside = |one: &&Ran| {
            let alone = ssh.iter().filter(|alone| alone.command == one.command);
            let nearest = alone
                .clone()
                .find(|alone| alone.case == case)
                .or_else(|| alone.clone().find(|alone| alone.case == Case::Open))?;
            (one.mbps() < nearest.mbps()).then(|| format!("{}: {} beside {}", one.command.name(), one.cell(), nearest.cell()))
        };
        let slower: Vec<String> = here.iter().filter_map(beside).collect();
        judged.push(Judged {
            who,
            goal: "no command is slower than ssh alone".to_owned(),
            met: Some(slower.is_empty()),
            value: listed(slower, "none is"),
        });
    }
    judged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(case: Case, command: Command, by: By, carrier: Carrier, seconds: f64) -> Ran {
        let left = match carrier {
            Carrier::Tcp => Left { tcp: 9, ..Left::default() },
            Carrier::Ssh => Left { ssh: 9, ..Left::default() },
            _ => Left { udp: 9, ..Left::default() },
        };
        Ran { carrier, left, seconds, bytes: 60_000_000, ..Ran::of(case, 0.1, command, by) }
    }

    #[test]
    fn a_table_has_networks_and_commands_and_ssh_beside_them() {
        let all = [
            ran(Case::Open, Command::Cp, By::Haul, Carrier::Udp, 2.0),
            ran(Case::Open, Command::Cp, By::Ssh, Carrier::Ssh, 4.0),
            ran(Case::Open, Command::Pipe, By::Haul, Carrier::Udp, 3.0),
            ran(Case::Open, Command::Pipe, By::Ssh, Carrier::Ssh, 2.4),
            ran(Case::NoUdp, Command::Cp, By::Haul, Carrier::Tcp, 6.0),
            ran(Case::NoUdp, Command::Cp, By::Ssh, Carrier::Ssh, 4.8),
            Ran { is_cut_off: true, bytes: 1_000_000, ..ran(Case::NoUdp, Command::Pipe, By::Haul, Carrier::Ssh, 8.0) },
        ];
        let report = report(Scale::Full, &all, vec!["a note".to_owned()]);
        let [table] = report.tables.as_slice() else { panic!("{report:?}") };
        assert_eq!(table.columns, ["network", "carried by", "cp", "pipe", "scp beside it"]);
        let rows: Vec<Vec<&str>> = table.rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
        assert_eq!(rows[0][1..], ["ssh alone", "120", "200", "-"]);
        assert_eq!(rows[1], ["nothing is blocked", "UDP", "240", "160", "120"]);
        assert_eq!(rows[2], ["all UDP is dropped", "TCP", "80", "ssh: 1.0*", "100"]);
        let verdict = |what: &str| {
            let of = report.verdicts.iter().find(|judged| {
                judged.who.contains(what.split('|').next().unwrap_or_default())
                    && judged.goal.contains(what.rsplit('|').next().unwrap_or_default())
            });
            of.map(|judged| (judged.met, judged.value.clone())).expect("a verdict")
        };
        assert_eq!(verdict("nothing|go by UDP"), (Some(true), "they do".to_owned()));
        assert_eq!(verdict("nothing|slower"), (Some(false), "pipe: 160 beside 200".to_owned()));
        assert_eq!(verdict("all UDP|slower"), (Some(false), "cp: 80 beside 100, pipe: 1.0* beside 200".to_owned()));
        let (met, value) = verdict("all UDP|go by TCP");
        assert!(met == Some(false) && value.starts_with("pipe: ssh"), "{value}");
        assert!(
            report.notes.iter().any(|note| note == "a note") && report.notes.iter().any(|note| note.contains("after 12 s")),
            "{:?}",
            report.notes
        );
    }

    /// A command that failed is in its network's table and in both verdicts, by name.
    #[test]
    fn what_failed_has_not_met_its_goals() {
        let all = [
            ran(Case::NoUdp, Command::Cp, By::Haul, Carrier::Tcp, 2.0),
            ran(Case::Open, Command::Proxy, By::Ssh, Carrier::Ssh, 4.0),
            Ran { bytes: 0, has_failed: true, ..ran(Case::NoUdp, Command::Proxy, By::Haul, Carrier::Tcp, 1.0) },
        ];
        let report = report(Scale::Full, &all, Vec::new());
        let verdicts: Vec<_> = report.verdicts.iter().map(|judged| (judged.met, judged.value.as_str())).collect();
        assert_eq!(verdicts, [(Some(false), "proxy: failed"), (Some(false), "proxy: failed beside 120")]);
        assert!(report.tables[0].rows.iter().any(|row| row.iter().any(|cell| cell == "failed")), "{:?}", report.tables);
    }

    /// What haul says and its packets do not is no success.
    #[test]
    fn packets_that_say_something_else_are_told() {
        let lied = Ran { left: Left { ssh: 9, ..Left::default() }, ..ran(Case::Open, Command::Cp, By::Haul, Carrier::Udp, 2.0) };
        let report = report(Scale::Full, &[lied], Vec::new());
        assert_eq!(report.verdicts[0].met, Some(false), "{:?}", report.verdicts);
    }
}

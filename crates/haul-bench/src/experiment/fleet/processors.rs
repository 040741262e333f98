//! What the client and each of the servers take of the processors.
//!
//! A group of the kernel's for each host and one for the WAN between them, so that what sshd starts and does not wait for counts, and what a killed server did too.
//! What arrives at a host is taken in by the kernel in the WAN's time, for it is the WAN that hands it over: for TCP that is also what an acknowledgement sets
//! free. So the WAN stands beside the hosts.

use std::io;
use std::process::Command;
use std::time::Duration;

use haul_units::Bytes;
use rustix::process::Pid;
use serde::Serialize;

use crate::bench::{Group, Groups};
use crate::experiment::Table;
use crate::plot::{Axis, BarSeries, Bars, Chart, Figure, Line, Value};

/// The groups of one run.
pub struct Accounts {
    client: Group,
    servers: Vec<Group>,
    wan: Group,
}

/// Processor time, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(clippy::struct_field_names, reason = "the unit is part of the name")]
pub struct Spent {
    pub client_s: f64,
    /// Server by server.
    pub servers_s: Vec<f64>,
    /// The WAN between them, with what the kernel does there with what arrives at a host.
    pub wan_s: f64,
}

/// A run of which it is known.
pub struct Counted<'a> {
    pub who: &'static str,
    /// Which files, and what happened.
    pub words: [&'a str; 2],
    pub payload: Bytes,
    pub spent: &'a Spent,
}

/// What had been used at some point of time, in the order of [`Accounts::all`].
pub struct Reading(Vec<Duration>);

impl Accounts {
    /// For so many servers; what is the WAN already runs.
    pub fn open(groups: &Groups, servers: usize, wan: Option<Pid>) -> io::Result<Self> {
        let servers = (1..=servers).map(|server| groups.make(&format!("s{server}"))).collect::<Result<_, _>>()?;
        let accounts = Self { client: groups.make("client")?, servers, wan: groups.make("wan")? };
        if let Some(pid) = wan {
            accounts.wan.enter(pid)?;
        }
        Ok(accounts)
    }

    /// Has the client's account pay for a program, and all that it will start.
    pub fn for_client(&self, command: &mut Command) {
        self.client.admit(command);
    }

    /// The same for that of a server.
    pub fn for_server(&self, server: usize, command: &mut Command) {
        self.servers[server].admit(command);
    }

    pub fn read(&self) -> io::Result<Reading> {
        self.all().map(Group::used).collect::<Result<_, _>>().map(Reading)
    }

    fn all(&self) -> impl Iterator<Item = &Group> {
        [&self.client, &self.wan].into_iter().chain(&self.servers)
    }
}

impl Reading {
    /// What has been used from another one to this, where so many servers take part.
    pub fn since(&self, earlier: &Self, servers: usize) -> Option<Spent> {
        let mut spent = self.0.iter().zip(&earlier.0).map(|(now, then)| now.saturating_sub(*then).as_secs_f64());
        Some(Spent { client_s: spent.next()?, wan_s: spent.next()?, servers_s: spent.take(servers).collect() })
    }
}

impl Spent {
    pub fn of_servers(&self) -> f64 {
        self.servers_s.iter().sum()
    }

    /// The servers' for a gigabyte of content.
    fn for_gigabyte(&self, payload: Bytes) -> f64 {
        self.of_servers() / payload.as_u64().max(1) as f64 * 1e9
    }
}

/// Of runs with this many servers; none where nothing was counted.
pub fn table(name: &str, title: &str, servers: usize, ran: &[Counted<'_>]) -> Option<Table> {
    let each: Vec<String> = (1..=servers).map(|server| format!("s{server}")).collect();
    let mut columns = vec!["who", "files", "what happens", "client", "WAN", "servers", "servers per GB"];
    columns.extend(each.iter().map(String::as_str));
    let mut table = Table::new(name, title, &columns);
    for Counted { who, words: [files, fate], payload, spent } in ran {
        let mut row = [who, files, fate].map(|word| (*word).to_owned()).to_vec();
        let sums = [spent.client_s, spent.wan_s, spent.of_servers(), spent.for_gigabyte(*payload)];
        row.extend(sums.iter().chain(&spent.servers_s).map(|seconds| format!("{seconds:.2}")));
        row.resize(columns.len(), "-".to_owned());
        table.rows.push(row);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Of the same, each fetcher once.
pub fn figure(conditions: &str, ran: &[Counted<'_>]) -> Option<Figure> {
    if ran.is_empty() {
        return None;
    }
    let seconds = || Axis::linear("processor time", "s");
    let bar = |Counted { who, spent, .. }: &Counted<'_>| BarSeries {
        name: (*who).to_owned(),
        values: [spent.client_s, spent.wan_s, spent.of_servers()].map(|mean| Some(Value { mean, spread: None })).to_vec(),
        look: None,
    };
    let groups = ["client", "the WAN", "all servers"].map(str::to_owned).to_vec();
    let bars = Bars { groups, series: ran.iter().map(bar).collect() };
    let line = |Counted { who, spent, .. }: &Counted<'_>| {
        Line::through(*who, spent.servers_s.iter().enumerate().map(|(at, seconds)| (at as f64 + 1.0, *seconds)))
    };
    let lines = ran.iter().map(line).collect();
    Some(Figure {
        title: "Processor time of client and servers".to_owned(),
        subtitle: conditions.to_owned(),
        charts: vec![
            Chart::bars("", seconds(), bars).titled("in sum"),
            Chart::lines(Axis::linear("server", ""), seconds(), lines).titled("each server"),
        ],
        columns: 2,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Data;

    fn reading(seconds: &[f64]) -> Reading {
        Reading(seconds.iter().copied().map(Duration::from_secs_f64).collect())
    }

    #[test]
    fn what_was_used_before_the_run_is_not_its_own() {
        // Client, WAN, three servers of which two take part.
        let (before, after) = (reading(&[0.0, 1.0, 0.5, 0.25, 0.25]), reading(&[2.0, 4.0, 1.5, 0.75, 0.25]));
        let spent = after.since(&before, 2).expect("counted");
        assert_eq!(spent, Spent { client_s: 2.0, servers_s: vec![1.0, 0.5], wan_s: 3.0 });
        assert_eq!((spent.of_servers(), spent.for_gigabyte(Bytes(500_000_000))), (1.5, 3.0));
    }

    #[test]
    fn each_server_has_a_column_and_each_fetcher_a_line() {
        let spent = Spent { client_s: 2.0, servers_s: vec![1.0, 0.5], wan_s: 3.0 };
        let ran = [Counted { who: "somebody", words: ["own", ""], payload: Bytes(500_000_000), spent: &spent }];
        let few = table("t", "", 3, &ran).expect("a table");
        assert_eq!(few.columns[3..], ["client", "WAN", "servers", "servers per GB", "s1", "s2", "s3"]);
        let cells = ["somebody", "own", "", "2.00", "3.00", "1.50", "3.00", "1.00", "0.50", "-"];
        assert_eq!(few.rows, [cells.map(str::to_owned)]);
        let drawn = figure("over a wire", &ran).expect("a figure");
        drawn.svg().expect("drawn");
        let (Data::Bars(bars), Data::Lines(lines)) = (&drawn.charts[0].data, &drawn.charts[1].data) else { panic!("{drawn:?}") };
        let values: Vec<f64> = bars.series[0].values.iter().flatten().map(|value| value.mean).collect();
        assert_eq!((bars.series.len(), &*bars.series[0].name, values), (1, "somebody", vec![2.0, 3.0, 1.5]));
        let points: Vec<(f64, f64)> = lines[0].points.iter().map(|point| (point.x, point.value.mean)).collect();
        assert_eq!((lines.len(), points), (1, vec![(1.0, 1.0), (2.0, 0.5)]));
    }

    #[test]
    fn where_nothing_was_counted_there_is_no_table() {
        assert!(table("t", "", 3, &[]).is_none() && figure("", &[]).is_none());
    }
}

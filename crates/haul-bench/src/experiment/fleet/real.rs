//! The same on real sockets: sshd and GridFTP on each server, a tenth of the paper's rates.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use haul_lab::{LinkOptions, Side, WanSpec, now};
use haul_units::{BitRate, Bytes};
use rustix::process::Signal;
use serde::Serialize;

use super::contestants::Contestant;
use super::{FAST, PAPERS_SHARE, RTT, SERVERS, START, WANTED_SHARE, line};
use crate::bench::{MeasureError, Running, Series, Site, Usage};
use crate::experiment::report::Judged;
use crate::experiment::{Ground, Report, Scale, Table};
use crate::plot::{Axis, Chart, Figure, Line};

/// Where the disk is; every host sees it.
pub const DISK: &str = "/run/netns/bench";
/// Where each server sees its own part of it.
pub const HERE: &str = "/run/netns/bench/here";
/// Where the client puts what it fetches.
pub const ARRIVED: &str = "/run/netns/bench/arrived";
pub const FTP_PORT: u16 = 2811;
const SSH_PORT: u16 = 2222;

const CLIENT: BitRate = BitRate::gbps(1);
const FILE: Bytes = Bytes(12_500_000);
/// A run that takes so much longer than its link needs has failed.
const PATIENCE: u32 = 20;

/// Which files.
const OWN: &str = "own";
/// Each file on two servers.
const TWICE: &str = "twice";

/// What happens in the middle of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Nothing,
    /// The second server's line falls to a fiftieth.
    Slows,
    /// The first server is killed, with all that runs there.
    Dies,
}

/// A run, as it is to be.
#[derive(Debug, Clone, Copy)]
struct Turn {
    who: Contestant,
    servers: usize,
    set: &'static str,
    fate: Fate,
}

/// A run, as it was.
#[derive(Debug, Clone, Serialize)]
struct Ran {
    who: &'static str,
    servers: usize,
    set: &'static str,
    fate: String,
    seconds: f64,
    payload_bytes: u64,
    /// IP bytes that the client's link delivered, since the command was typed.
    series: Series,
    /// What each server had brought, by the second that the command told.
    members: BTreeMap<String, Vec<(f64, u64)>>,
    /// Points of time that the command told: the first server up, the last one, files found, in seconds.
    parts: BTreeMap<String, f64>,
    client_cpu_s: Option<f64>,
    client_memory_bytes: Option<u64>,
}

pub fn measured(scale: Scale, ground: &Ground<'_>) -> Report {
    let files = scale.pick(2, 12);
    let mut notes = Vec::new();
    let mut ran = Vec::new();
    for turn in turns(scale) {
        if !ground.go_on() {
            break;
        }
        let missing = turn.who.needs().iter().find(|(program, _)| ground.programs.find(program).is_none());
        if let Some((program, install)) = missing {
            notes.push(format!("{}: there is no {program} here: {install}", turn.who.name()));
            continue;
        }
        ground.tell(&format!("{}, {} servers, {}{}", turn.who.name(), turn.servers, turn.set, fate_words(turn.fate)));
        match Scene::set(ground, files, turn).and_then(|scene| scene.play(ground)) {
            Ok(run) => ran.push(run),
            Err(MeasureError::Interrupted) => break,
            Err(error) => notes.push(format!("{}, {} servers{}: {error}", turn.who.name(), turn.servers, fate_words(turn.fate))),
        }
    }
    report(files, &ran, notes)
}

fn turns(scale: Scale) -> Vec<Turn> {
    let all = |who| Turn { who, servers: SERVERS, set: OWN, fate: Fate::Nothing };
    let mut turns: Vec<Turn> =
        [Contestant::Fleet, Contestant::RoundRobin, Contestant::Gridftp, Contestant::Rsyncs, Contestant::Copies].map(all).into();
    for who in [Contestant::Fleet, Contestant::RoundRobin] {
        for fate in [Fate::Nothing, Fate::Slows, Fate::Dies] {
            turns.push(Turn { set: TWICE, fate, ..all(who) });
        }
    }
    let numbers = scale.pick(vec![1, 3], (1..SERVERS).collect());
    turns.extend(numbers.into_iter().map(|servers| Turn { servers, ..all(Contestant::Fleet) }));
    turns
}

const fn fate_words(fate: Fate) -> &'static str {
    match fate {
        Fate::Nothing => "",
        Fate::Slows => ", the second slows to a fiftieth",
        Fate::Dies => ", the first is killed",
    }
}

/// A WAN with its servers.
struct Scene {
    site: Box<dyn Site>,
    turn: Turn,
    files: usize,
    /// sshd and the GridFTP server of each host.
    servers: Vec<Vec<Running>>,
}

impl Scene {
    fn set(ground: &Ground<'_>, files: usize, turn: Turn) -> Result<Self, MeasureError> {
        let spec = WanSpec {
            link: LinkOptions { rate: CLIENT, rtt: RTT, ..LinkOptions::default() },
            hosts: [SERVERS as u8, 1],
            access: (0..SERVERS).map(|server| line(server, CLIENT)).collect(),
            ..WanSpec::default()
        };
        let site = ground.sites.up(&spec).map_err(MeasureError::Site)?;
        let mut scene = Self { site, turn, files, servers: Vec::new() };
        scene.shell(None, &disk_script(files))?;
        for server in 0..SERVERS {
            scene.start_server(ground, server)?;
        }
        scene.wait_for_servers()?;
        Ok(scene)
    }

    fn start_server(&mut self, ground: &Ground<'_>, server: usize) -> Result<(), MeasureError> {
        // GridFTP's server looks up the names of the machine and of its address.
        let here = format!("mount --bind {DISK}/s{} {HERE} && mount --bind {DISK}/hosts /etc/hosts", server + 1);
        let start = |what: &'static str, words: String| -> Result<Running, MeasureError> {
            let mut command = self.site.command_on(Side::A, server, "unshare".as_ref());
            command.args(["-m", "sh", "-c", &format!("{here} && exec {words}")]);
            Running::start(command).map_err(|error| MeasureError::Start { what, error })
        };
        let mut running = Vec::new();
        // It calls itself again for each session, by its full path.
        let sshd = ground.programs.find("sshd").unwrap_or_else(|| "/usr/sbin/sshd".into());
        running
            .push(start("sshd", format!("{} -D -e -f {DISK}/sshd_config -o ListenAddress={}", sshd.display(), address(server)))?);
        if self.turn.who == Contestant::Gridftp {
            let address = address(server);
            running.push(start(
                "the GridFTP server",
                format!(
                    "env GLOBUS_HOSTNAME={address} globus-gridftp-server -control-interface {address} -data-interface {address} -p {FTP_PORT} \
                     -aa -anonymous-user root -home-dir / -auth-level 0"
                ),
            )?);
        }
        self.servers.push(running);
        Ok(())
    }

    fn wait_for_servers(&mut self) -> Result<(), MeasureError> {
        let ports: &[u16] = if self.turn.who == Contestant::Gridftp { &[SSH_PORT, FTP_PORT] } else { &[SSH_PORT] };
        let limit = now() + Duration::from_secs(20);
        for server in 0..SERVERS {
            for port in ports {
                loop {
                    let mut command = self.site.command_on(Side::A, server, "ss".as_ref());
                    command.args(["-Hlnt", &format!("sport = :{port}")]);
                    let listening = command.output().map_err(|error| MeasureError::Start { what: "ss", error })?;
                    if listening.stdout.contains(&b':') {
                        break;
                    }
                    if now() > limit {
                        let said = self.servers[server].iter().map(Running::last_words).collect::<Vec<_>>().join("; ");
                        return Err(MeasureError::NotListening(said));
                    }
                    std::thread::park_timeout(Duration::from_millis(20));
                }
            }
        }
        Ok(())
    }

    fn shell(&self, server: Option<usize>, script: &str) -> Result<(), MeasureError> {
        let mut command = match server {
            Some(server) => self.site.command_on(Side::A, server, "bash".as_ref()),
            None => self.site.command(Side::B, "bash".as_ref()),
        };
        let output = command.args(["-ec", script]).output().map_err(|error| MeasureError::Start { what: "bash", error })?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("it does not say why").to_owned();
        Err(MeasureError::Ended { who: "script", status: output.status.code().unwrap_or(-1), said })
    }

    fn play(mut self, ground: &Ground<'_>) -> Result<Ran, MeasureError> {
        let Turn { who, servers, set, fate } = self.turn;
        let payload = FILE * (self.files * servers) as u64;
        let lines: u64 = (0..servers).map(|server| line(server, CLIENT).as_bps()).sum();
        let soonest = CLIENT.min(BitRate::from_bps(lines)).time_for(payload);
        let names = |server: usize| (0..self.files).map(|file| name(server, file)).collect();
        let commands = who.commands(&*self.site, ground.programs, servers, set, &names);
        let failed = |error| MeasureError::Start { what: "the client", error };
        let begin = now();
        let mut clients = commands.into_iter().map(Running::start).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let (mut series, mut carried, mut fate_left) = (Series::default(), self.site.delivered(), fate);
        let ended = loop {
            let mut ended = Vec::new();
            for client in &mut clients {
                ended.extend(client.wait_until(now()).map_err(failed)?);
            }
            if let Some((before, after)) = carried.zip(self.site.delivered()) {
                series.push(now().since(begin), after.saturating_sub(before));
                carried = Some(after);
            }
            if ended.len() == clients.len() {
                break ended;
            }
            if !ground.go_on() {
                return Err(MeasureError::Interrupted);
            }
            let passed = now().since(begin);
            if passed > soonest * PATIENCE + Duration::from_secs(30) {
                return Err(MeasureError::Unexpected {
                    who: "the client",
                    said: format!("nothing after {} s", passed.as_secs()),
                });
            }
            if passed > soonest / 3 && fate_left != Fate::Nothing {
                self.befall(fate_left)?;
                fate_left = Fate::Nothing;
            }
            let _ = clients[0].wait_until(now() + LOOK).map_err(failed)?;
        };
        let seconds = ended.iter().map(|ended| ended.at.since(begin)).max().unwrap_or_default().as_secs_f64();
        for (client, ended) in clients.iter().zip(&ended) {
            if ended.status != 0 {
                return Err(MeasureError::Ended { who: who.name(), status: ended.status, said: client.last_words() });
            }
        }
        self.check(servers)?;
        let told = Told::of(&clients[0].stdout());
        let usage = |of: fn(&Usage) -> Option<f64>| ended.iter().map(|ended| of(&ended.usage)).sum::<Option<f64>>();
        Ok(Ran {
            who: who.name(),
            servers,
            set,
            fate: fate_words(fate).trim_start_matches(", ").to_owned(),
            seconds,
            payload_bytes: payload.as_u64(),
            series,
            members: told.members,
            parts: told.parts,
            client_cpu_s: usage(|usage| Some(usage.cpu?.as_secs_f64())),
            client_memory_bytes: usage(|usage| Some(usage.memory?.as_u64() as f64)).map(|bytes| bytes as u64),
        })
    }

    fn befall(&mut self, fate: Fate) -> Result<(), MeasureError> {
        match fate {
            Fate::Nothing => Ok(()),
            Fate::Slows => {
                let slow = line(1, CLIENT).scaled(0.02).as_bps();
                self.shell(Some(1), &format!("tc qdisc replace dev wan0 root tbf rate {slow}bit burst 128k limit 2m"))
            }
            Fate::Dies => {
                for server in &self.servers[0] {
                    server.signal(Signal::KILL);
                }
                // What sshd has started goes on without it: the machine is off the network, and says nothing more.
                self.shell(Some(0), "ip link set wan0 down")
            }
        }
    }

    /// Every file has come, and is what it was.
    fn check(&self, servers: usize) -> Result<(), MeasureError> {
        let script = format!(
            "cd {ARRIVED}; n=0
             while read -r path; do f=$(basename \"$path\"); s=${{f%%-*}}; cmp -s \"$path\" {DISK}/$s/{OWN}/$f || {{ echo \"$path differs\" >&2; exit 1; }}; n=$((n+1)); done \
             < <(find . -type f -name 's*-*')
             [ $n = {} ] || {{ echo \"$n files came\" >&2; exit 1; }}",
            servers * self.files
        );
        self.shell(None, &script)
    }
}

/// The name of a server's file.
fn name(server: usize, file: usize) -> String {
    format!("s{}-{file}", server + 1)
}

/// A server's address.
pub fn address(server: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 80, 0, server as u8 + 1)
}

/// Makes the disk, the servers' files, keys and configurations.
fn disk_script(files: usize) -> String {
    let bytes = FILE.as_u64();
    let room = bytes * (files * SERVERS) as u64 * 3 + (256 << 20);
    let client = Ipv4Addr::new(10, 80, 128, 1);
    format!(
        "mkdir -p {DISK} && mount -t tmpfs -o size={room} bench {DISK}
        mkdir -p {HERE} {ARRIVED} /run/sshd {DISK}/near
        {{ cat /etc/hosts; echo {client} $(hostname); for s in $(seq {SERVERS}); do echo 10.80.0.$s s$s; done; }} >{DISK}/hosts
        cd {DISK}
        for s in $(seq {SERVERS}); do mkdir -p s$s/{OWN} s$s/{TWICE} {ARRIVED}/s$s; for f in $(seq 0 {last}); do
            head -c {bytes} /dev/urandom >s$s/{OWN}/s$s-$f; done; done
        for s in $(seq {SERVERS}); do t=$(( (s - 1 + {FAST}) % {SERVERS} + 1 )); ln s$s/{OWN}/* s$s/{TWICE}/; ln s$s/{OWN}/* s$t/{TWICE}/; done
        ssh-keygen -q -t ed25519 -N '' -f host_key
        ssh-keygen -q -t ed25519 -N '' -f user_key
        cat >sshd_config <<CONFIG
Port {SSH_PORT}
HostKey {DISK}/host_key
AuthorizedKeysFile {DISK}/user_key.pub
StrictModes no
PidFile none
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
UseDNS no
MaxStartups 100
Subsystem sftp internal-sftp
CONFIG
        echo \"* $(cat host_key.pub)\" >known_hosts
        cat >ssh_config <<CONFIG
Host *
  Port {SSH_PORT}
  User $(id -un)
  IdentityFile {DISK}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {DISK}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
  ControlPath none
  Compression no
CONFIG
        for s in $(seq {SERVERS}); do printf 'Host s%s\\n  HostName 10.80.0.%s\\n' $s $s >>ssh_config; done
",
        last = files - 1,
    )
}

/// What `haul fleet get --json` told.
#[derive(Default)]
struct Told {
    members: BTreeMap<String, Vec<(f64, u64)>>,
    parts: BTreeMap<String, f64>,
}

impl Told {
    fn of(output: &str) -> Self {
        let mut told = Self::default();
        for event in output.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()) {
            let at = event["at_s"].as_f64().unwrap_or_default();
            match event["event"].as_str() {
                Some("up") => {
                    told.parts.entry("first server up".to_owned()).or_insert(at);
                    told.parts.insert("last server up".to_owned(), at);
                }
                Some("listed") => _ = told.parts.insert("last server listed".to_owned(), at),
                Some("ordered") => _ = told.parts.entry("first order".to_owned()).or_insert(at),
                Some("progress") => {
                    for member in event["members"].as_array().into_iter().flatten() {
                        let bytes = member["bytes"].as_u64().unwrap_or_default();
                        told.members
                            .entry(member["member"].as_str().unwrap_or_default().to_owned())
                            .or_default()
                            .push((at, bytes));
                    }
                }
                _ => {}
            }
        }
        told
    }
}

impl Ran {
    fn mean(&self) -> BitRate {
        BitRate::of(Bytes(self.payload_bytes), Duration::from_secs_f64(self.seconds))
    }

    /// IP bytes over the client's link from the end of the start to where nine tenths had come.
    fn after_start(&self) -> Option<BitRate> {
        let first = self.series.time_of(Bytes(1))? + START;
        let last = self.series.time_of(Bytes(self.series.total().as_u64() / 10 * 9))?;
        (last > first + RTT).then(|| self.series.mean_between(first, last))
    }

    /// From the command to where four fifths of the link are used over a round trip.
    fn until_four_fifths(&self) -> Option<f64> {
        self.series.time_to(CLIENT.scaled(0.8), RTT).map(|time| time.as_secs_f64())
    }
}

fn report(files: usize, ran: &[Ran], notes: Vec<String>) -> Report {
    let whole: Vec<&Ran> = ran.iter().filter(|run| run.servers == SERVERS).collect();
    let ours = whole.iter().find(|run| run.who == Contestant::Fleet.name() && run.set == OWN);
    let share = |rate: BitRate| rate.as_bps() as f64 / CLIENT.as_bps() as f64;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let others = whole.iter().filter(|run| run.set == OWN && !run.who.contains("fleet"));
    let best = others.map(|run| run.mean()).max();
    let verdicts = vec![
        Judged::at_least(
            "haul fleet get",
            "of the client's link after 10 RTT",
            ours.and_then(|run| run.after_start()).map(share),
            WANTED_SHARE,
            percent,
        ),
        Judged::at_least(
            "haul fleet get",
            "of the client's link after 10 RTT, the paper:",
            ours.and_then(|run| run.after_start()).map(share),
            PAPERS_SHARE,
            percent,
        ),
        Judged::at_least(
            "haul fleet get",
            "payload over the whole job beside the best of the others",
            ours.zip(best).map(|(run, best)| run.mean().as_bps() as f64 / best.as_bps().max(1) as f64),
            1.0,
            |ratio| format!("{ratio:.2}"),
        ),
    ];
    Report {
        heading: format!(
            "Fleet: {FAST} servers of {CLIENT} and {} of {}, {} ms, a client of {CLIENT}, {files} files of 12.5 MB a server; real sockets over the emulated WAN",
            SERVERS - FAST,
            line(SERVERS - 1, CLIENT),
            RTT.as_millis()
        ),
        verdicts,
        tables: vec![jobs(&whole), numbers(ran), parts(&whole)],
        charts: charts(&whole, ran),
        notes,
        data: serde_json::json!(ran),
        ..Report::default()
    }
}

fn mbps(rate: BitRate) -> String {
    format!("{:.0}", rate.as_bps() as f64 / 1e6)
}

fn jobs(whole: &[&Ran]) -> Table {
    let columns = [
        "who",
        "files",
        "what happens",
        "time [s]",
        "payload [Mbit/s]",
        "link after 10 RTT [Mbit/s]",
        "until 80 % [s]",
        "client cpu [s]",
        "client memory [MB]",
    ];
    let mut table = Table::new("jobs", "All thirteen servers, from the command to its end", &columns);
    let print = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
    for run in whole {
        table.rows.push(vec![
            run.who.to_owned(),
            run.set.to_owned(),
            run.fate.clone(),
            format!("{:.1}", run.seconds),
            mbps(run.mean()),
            run.after_start().map_or_else(|| "-".to_owned(), mbps),
            print(run.until_four_fifths()),
            print(run.client_cpu_s),
            print(run.client_memory_bytes.map(|bytes| bytes as f64 / 1e6)),
        ]);
    }
    table
}

/// `haul fleet get` by the number of servers.
fn by_number(ran: &[Ran]) -> Vec<&Ran> {
    let mut runs: Vec<&Ran> = ran.iter().filter(|run| run.who == Contestant::Fleet.name() && run.set == OWN).collect();
    runs.sort_by_key(|run| run.servers);
    runs
}

fn numbers(ran: &[Ran]) -> Table {
    let mut table = Table::new(
        "by-number",
        "haul fleet get against the number of servers, the fast ones first",
        &["servers", "time [s]", "payload [Mbit/s]", "link after 10 RTT [Mbit/s]"],
    );
    for run in by_number(ran) {
        let steady = run.after_start().map_or_else(|| "-".to_owned(), mbps);
        table.rows.push(vec![run.servers.to_string(), format!("{:.1}", run.seconds), mbps(run.mean()), steady]);
    }
    table
}

/// The parts of the time until the link is used.
fn parts(whole: &[&Ran]) -> Table {
    let names = ["first server up", "last server up", "last server listed", "first order"];
    let mut table =
        Table::new("parts", "From the command to 80 % of the link [s]", &[&["who", "files"], &names[..], &["80 %"]].concat());
    for run in whole.iter().filter(|run| !run.parts.is_empty() && run.fate.is_empty()) {
        let mut row = vec![run.who.to_owned(), run.set.to_owned()];
        row.extend(names.map(|name| run.parts.get(name).map_or_else(|| "-".to_owned(), |at| format!("{at:.2}"))));
        row.push(run.until_four_fifths().map_or_else(|| "-".to_owned(), |at| format!("{at:.2}")));
        table.rows.push(row);
    }
    table
}

fn charts(whole: &[&Ran], ran: &[Ran]) -> Vec<(String, Figure)> {
    let axes = || (Axis::linear("time since the command", "s"), Axis::linear("arriving", "Mbit/s"));
    let conditions = format!("real sockets over the emulated WAN, {} ms", RTT.as_millis());
    let over_time = |run: &Ran| {
        let coarse = (1..=run.seconds.ceil() as u64).map(|second| {
            let to = Duration::from_secs(second);
            (to.as_secs_f64() - 0.5, run.series.mean_between(Duration::from_secs(second - 1), to).as_bps() as f64 / 1e6)
        });
        coarse.collect::<Vec<_>>()
    };
    let mut charts = Vec::new();
    let rivals: Vec<Line> =
        whole.iter().filter(|run| run.set == OWN).map(|run| Line::through(run.who, over_time(run)).plain()).collect();
    if !rivals.is_empty() {
        let chart = Chart::lines(axes().0, axes().1, rivals).limit("the client's link", 1000.0);
        charts.push(("rivals".to_owned(), Figure::single("Thirteen servers, one client", conditions.clone(), chart)));
    }
    if let Some(run) = whole.iter().find(|run| run.who == Contestant::Fleet.name() && run.set == OWN) {
        let line = |(name, points): (&String, &Vec<(f64, u64)>)| {
            let rate = |pair: &[(f64, u64)]| {
                let ((from, before), (to, after)) = (pair[0], pair[1]);
                (f64::midpoint(from, to), after.saturating_sub(before) as f64 * 8.0 / 1e6 / (to - from).max(1e-3))
            };
            Line::through(name.clone(), points.windows(2).map(rate)).plain()
        };
        let lines: Vec<Line> = run.members.iter().map(line).filter(|line| !line.points.is_empty()).collect();
        if !lines.is_empty() {
            let chart = Chart::lines(axes().0, axes().1, lines);
            charts.push(("servers".to_owned(), Figure::single("What each server brings", conditions.clone(), chart)));
        }
    }
    let points: Vec<(f64, f64)> =
        by_number(ran).iter().map(|run| (run.servers as f64, run.mean().as_bps() as f64 / 1e6)).collect();
    if points.len() > 1 {
        let chart = Chart::lines(
            Axis::linear("servers", ""),
            Axis::linear("payload, start included", "Mbit/s"),
            vec![Line::through("haul fleet get", points)],
        );
        charts.push((
            "by-number".to_owned(),
            Figure::single("Rate against the number of servers", conditions, chart.limit("the client's link", 1000.0)),
        ));
    }
    charts
}

/// Between two looks at the WAN.
const LOOK: Duration = Duration::from_millis(100);

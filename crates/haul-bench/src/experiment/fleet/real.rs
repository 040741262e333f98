//! The same on real sockets: sshd and GridFTP on each server, a tenth and a hundredth of the paper's rates.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use haul_lab::{LinkOptions, Side, WanSpec, now};
use haul_units::{BitRate, Bytes};
use rustix::process::Signal;

use super::fetchers::Fetcher;
use super::outcome::{KILLED, OWN, Ran, Size, TWICE, report};
use super::paper::{FAST, RTT, SERVERS, line};
use super::places::{ARRIVED, DISK, FTP_PORT, HERE, address};
use super::processors::Accounts;
use crate::bench::{AtHand, Groups, MeasureError, Running, Series, Site, SshSetup, Usage, processor_ticks};
use crate::experiment::{Ground, Report, Scale};

const SSH_PORT: u16 = 2222;

const FILE: Bytes = Bytes(12_500_000);
/// A run that takes so much longer than its link needs has failed.
const PATIENCE: u32 = 20;

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
    who: Fetcher,
    size: Size,
    servers: usize,
    set: &'static str,
    fate: Fate,
}

pub fn measured(scale: Scale, ground: &Ground<'_>) -> Report {
    let mut notes = Vec::new();
    let mut ran = Vec::new();
    let _memory = AtHand::take(memory_of(Size::Tenth.files(scale)))
        .inspect_err(|error| notes.push(format!("memory was not at hand: {error}")));
    let groups =
        Groups::open().inspect_err(|error| notes.push(format!("processor time of each server was not counted: {error}"))).ok();
    for turn in turns(scale) {
        if !ground.go_on() {
            break;
        }
        let missing = turn.who.needs().iter().find(|(program, _)| ground.programs.find(program).is_none());
        if let Some((program, install)) = missing {
            notes.push(format!("{}: there is no {program} here: {install}", turn.who.name()));
            continue;
        }
        ground.tell(&format!(
            "{}, {}, {} servers, {}{}",
            turn.who.name(),
            turn.size.client(),
            turn.servers,
            turn.set,
            after_comma(turn.fate)
        ));
        match Scene::set(ground, groups.as_ref(), turn.size.files(scale), turn).and_then(|scene| scene.play(ground)) {
            Ok(run) => ran.push(run),
            Err(MeasureError::Interrupted) => break,
            Err(error) => notes.push(format!("{}, {} servers{}: {error}", turn.who.name(), turn.servers, after_comma(turn.fate))),
        }
    }
    report(scale, &ran, notes)
}

/// What a run takes with so many files of each server: at the servers, where they arrive, and programs.
fn memory_of(files: usize) -> Bytes {
    FILE * (files * SERVERS * 2) as u64 + Bytes::gib(2)
}

fn turns(scale: Scale) -> Vec<Turn> {
    let all = |who| Turn { who, size: Size::Tenth, servers: SERVERS, set: OWN, fate: Fate::Nothing };
    let everybody = [Fetcher::Fleet, Fetcher::RoundRobin, Fetcher::Gridftp, Fetcher::Rsyncs, Fetcher::Copies];
    let sizes = Size::ALL.into_iter();
    let mut turns: Vec<Turn> = sizes.flat_map(|size| everybody.map(|who| Turn { size, ..all(who) })).collect();
    for who in [Fetcher::Fleet, Fetcher::RoundRobin] {
        for fate in [Fate::Nothing, Fate::Slows, Fate::Dies] {
            turns.push(Turn { set: TWICE, fate, ..all(who) });
        }
    }
    let numbers = scale.pick(vec![1, 3], (1..SERVERS).collect());
    turns.extend(numbers.into_iter().map(|servers| Turn { servers, ..all(Fetcher::Fleet) }));
    turns
}

const fn fate_words(fate: Fate) -> &'static str {
    match fate {
        Fate::Nothing => "",
        Fate::Slows => "the second slows to a fiftieth",
        Fate::Dies => KILLED,
    }
}

fn after_comma(fate: Fate) -> String {
    match fate_words(fate) {
        "" => String::new(),
        words => format!(", {words}"),
    }
}

/// A WAN with its servers.
struct Scene {
    site: Box<dyn Site>,
    turn: Turn,
    files: usize,
    /// sshd and the GridFTP server of each host.
    servers: Vec<Vec<Running>>,
    /// After what runs in them has ended.
    accounts: Option<Accounts>,
}

impl Scene {
    fn set(ground: &Ground<'_>, groups: Option<&Groups>, files: usize, turn: Turn) -> Result<Self, MeasureError> {
        let spec = WanSpec {
            link: LinkOptions { rate: turn.size.client(), rtt: RTT, ..LinkOptions::default() },
            hosts: [SERVERS as u8, 1],
            access: (0..SERVERS).map(|server| line(server, turn.size.client())).collect(),
            ..WanSpec::default()
        };
        let site = ground.sites.up(&spec).map_err(MeasureError::Site)?;
        let accounts = groups.map(|groups| Accounts::open(groups, SERVERS, site.process())).transpose();
        let accounts = accounts.map_err(|error| MeasureError::Start { what: "in a control group", error })?;
        let mut scene = Self { site, turn, files, servers: Vec::new(), accounts };
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
            if let Some(accounts) = &self.accounts {
                accounts.for_server(server, &mut command);
            }
            Running::start(command).map_err(|error| MeasureError::Start { what, error })
        };
        let mut running = Vec::new();
        // It calls itself again for each session, by its full path.
        let sshd = ground.programs.find("sshd").unwrap_or_else(|| "/usr/sbin/sshd".into());
        running
            .push(start("sshd", format!("{} -D -e -f {DISK}/sshd_config -o ListenAddress={}", sshd.display(), address(server)))?);
        if self.turn.who == Fetcher::Gridftp {
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
        let ports: &[u16] = if self.turn.who == Fetcher::Gridftp { &[SSH_PORT, FTP_PORT] } else { &[SSH_PORT] };
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

    fn play(self, ground: &Ground<'_>) -> Result<Ran, MeasureError> {
        let Turn { who, size, servers, set, fate } = self.turn;
        let payload = FILE * (self.files * servers) as u64;
        let lines: u64 = (0..servers).map(|server| line(server, size.client()).as_bps()).sum();
        let soonest = size.client().min(BitRate::from_bps(lines)).time_for(payload);
        let names = |server: usize| (0..self.files).map(|file| name(server, file)).collect();
        let mut commands = who.commands(&*self.site, ground.programs, servers, set, &names);
        let failed = |error| MeasureError::Start { what: "the client", error };
        if let Some(accounts) = &self.accounts {
            for command in &mut commands {
                accounts.for_client(command);
            }
        }
        let used = || self.accounts.as_ref().and_then(|accounts| accounts.read().ok());
        let (begin, idle, unused) = (now(), processor_ticks(), used());
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
            if series.total() > Bytes(payload.as_u64() / 3) && fate_left != Fate::Nothing {
                self.befall(fate_left)?;
                fate_left = Fate::Nothing;
            }
            let _ = clients[0].wait_until(now() + LOOK).map_err(failed)?;
        };
        let machine_busy = idle.zip(processor_ticks()).and_then(|(before, after)| after.taken_since(before));
        let processors = unused.zip(used()).and_then(|(before, after)| after.since(&before, servers));
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
            size,
            set,
            fate: fate_words(fate).to_owned(),
            seconds,
            payload_bytes: payload.as_u64(),
            series,
            members: told.members,
            parts: told.parts,
            machine_busy,
            client_cpu_s: usage(|usage| Some(usage.cpu?.as_secs_f64())),
            processors,
            client_memory_bytes: usage(|usage| Some(usage.memory?.as_u64() as f64)).map(|bytes| bytes as u64),
        })
    }

    fn befall(&self, fate: Fate) -> Result<(), MeasureError> {
        match fate {
            Fate::Nothing => Ok(()),
            Fate::Slows => {
                let slow = line(1, self.turn.size.client()).scaled(0.02).as_bps();
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

/// Makes the disk, the servers' files, keys and configurations.
fn disk_script(files: usize) -> String {
    let bytes = FILE.as_u64();
    let room = bytes * (files * SERVERS) as u64 * 3 + (256 << 20);
    let client = Ipv4Addr::new(10, 80, 128, 1);
    let hosts: Vec<(String, String)> =
        (0..SERVERS).map(|server| (format!("s{}", server + 1), format!("HostName {}", address(server)))).collect();
    let sshd = SshSetup {
        dir: DISK,
        port: SSH_PORT,
        known_as: "*",
        server: &["MaxStartups 100".to_owned()],
        client: &hosts.iter().map(|(host, lines)| (&**host, lines.clone())).collect::<Vec<_>>(),
    };
    format!(
        "mkdir -p {DISK} && mount -t tmpfs -o size={room} bench {DISK}
        mkdir -p {HERE} {ARRIVED} /run/sshd {DISK}/near
        {{ cat /etc/hosts; echo {client} $(hostname); for s in $(seq {SERVERS}); do echo 10.80.0.$s s$s; done; }} >{DISK}/hosts
        cd {DISK}
        for s in $(seq {SERVERS}); do mkdir -p s$s/{OWN} s$s/{TWICE} {ARRIVED}/s$s; for f in $(seq 0 {last}); do
            head -c {bytes} /dev/urandom >s$s/{OWN}/s$s-$f; done; done
        for s in $(seq {SERVERS}); do t=$(( (s - 1 + {FAST}) % {SERVERS} + 1 )); ln s$s/{OWN}/* s$s/{TWICE}/; ln s$s/{OWN}/* s$t/{TWICE}/; done
        {sshd}",
        last = files - 1,
        sshd = sshd.script(),
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

/// Between two looks at the WAN.
const LOOK: Duration = Duration::from_millis(100);

//! The transfers on real sockets: for each network and loss a WAN of its own with sshd and an rsync daemon, on which the commands follow each other.

use std::os::unix::process::CommandExt as _;
use std::process::Output;
use std::time::Duration;

use haul_lab::{Side, WanSpec, now};
use rustix::process::Signal;

use super::cases::{Carrier, Case, FAR, Left, RELAY, SSH_PORT, at_most, bytes, link, losses};
use super::commands::{By, Command, DAEMON_PORT, DISK, PARTS, Words, took};
use super::show::{Ran, report};
use crate::bench::{AtHand, Listens, MeasureError, Running, Site, SshSetup};
use crate::experiment::{Ground, Report, Scale};

pub fn measured(scale: Scale, ground: &Ground<'_>) -> Report {
    let mut notes = Vec::new();
    let missing: Vec<String> = NEEDS
        .iter()
        .filter(|(program, _)| ground.programs.find(program).is_none())
        .map(|(program, of)| format!("there is no {program} here: apt-get install {of}"))
        .collect();
    if !missing.is_empty() {
        return Report { notes: missing, ..Report::default() };
    }
    let _memory = AtHand::take(bytes(scale) * 4).inspect_err(|error| notes.push(format!("memory was not at hand: {error}")));
    let mut ran = Vec::new();
    for &loss_percent in losses(scale) {
        for &case in Case::of(scale) {
            let title = format!("{loss_percent} % loss, {}", case.name());
            ground.tell(&title);
            let done = Scene::set(ground, scale, case, loss_percent).and_then(|scene| scene.play(ground, &mut ran, &mut notes));
            match done {
                Ok(()) => {}
                Err(MeasureError::Interrupted) => return report(scale, &ran, notes),
                Err(error) => notes.push(format!("{title}: failed, {error}")),
            }
        }
    }
    report(scale, &ran, notes)
}

/// A network, and what runs in it.
struct Scene {
    site: Box<dyn Site>,
    scale: Scale,
    case: Case,
    loss_percent: f64,
    servers: Vec<Running>,
}

impl Scene {
    fn set(ground: &Ground<'_>, scale: Scale, case: Case, loss_percent: f64) -> Result<Self, MeasureError> {
        let spec = WanSpec { link: link(scale, loss_percent), hosts: [1, case.far_hosts()], ..WanSpec::default() };
        let site = ground.sites.up(&spec).map_err(MeasureError::Site)?;
        let mut scene = Self { site, scale, case, loss_percent, servers: Vec::new() };
        scene.done(Host::Near, &disk_script(scale))?;
        scene.lines()?;
        scene.serve(ground)?;
        // From here on the firewalls stand.
        scene.done(
            Host::Near,
            &format!("echo 1 >/proc/sys/net/ipv4/tcp_mtu_probing\nnft '{} {}'", Left::rules(), case.near_rules()),
        )?;
        if !case.far_rules().is_empty() {
            scene.done(Host::First, &format!("nft '{}'", case.far_rules()))?;
        }
        scene.done(Host::Far, "echo 1 >/proc/sys/net/ipv4/tcp_mtu_probing")?;
        Ok(scene)
    }

    fn command(&self, host: Host, program: &str) -> std::process::Command {
        match host {
            Host::Near => self.site.command(Side::A, program.as_ref()),
            Host::Second => self.site.command_on(Side::B, 1, program.as_ref()),
            Host::Far if self.case.far_host() == 1 => self.command(Host::Second, program),
            // Where there are two, the first is also the side's.
            Host::First | Host::Far => self.site.command(Side::B, program.as_ref()),
        }
    }

    fn shell(&self, host: Host, script: &str) -> Result<Output, MeasureError> {
        let mut command = self.command(host, "bash");
        command.args(["-ec", script]).output().map_err(|error| MeasureError::Start { what: "bash", error })
    }

    /// A script that has to succeed; what it has printed.
    fn done(&self, host: Host, script: &str) -> Result<String, MeasureError> {
        let output = self.shell(host, script)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("it does not say why").to_owned();
        Err(MeasureError::Ended { who: "script", status: output.status.code().unwrap_or(-1), said })
    }

    fn start(&mut self, host: Host, what: &'static str, script: &str) -> Result<(), MeasureError> {
        let mut command = self.command(host, "bash");
        command.args(["-c", script]);
        self.servers.push(Running::start(command).map_err(|error| MeasureError::Start { what, error })?);
        Ok(())
    }

    /// The line between the two hosts of the far side, where there are two.
    fn lines(&mut self) -> Result<(), MeasureError> {
        let Some((first, second)) = self.case.line().zip(self.case.line_of_second()) else { return Ok(()) };
        self.start(Host::Second, "a process on the second host", &format!("echo $$ >{DISK}/second; exec sleep 100000"))?;
        let waits =
            format!("for _ in $(seq 500); do [ -s {DISK}/second ] && break; sleep 0.01; done; second=$(cat {DISK}/second)");
        self.done(Host::First, &format!("{waits}; {first}"))?;
        self.done(Host::Second, &second)?;
        Ok(())
    }

    fn serve(&mut self, ground: &Ground<'_>) -> Result<(), MeasureError> {
        // It calls itself again for each session, by its full path.
        let sshd = ground.programs.find("sshd").unwrap_or_else(|| "/usr/sbin/sshd".into());
        self.start(Host::Far, "sshd", &format!("exec {} -D -e -f {DISK}/sshd_config", sshd.display()))?;
        let config = format!("{DISK}/rsyncd.conf");
        let daemon = format!("exec rsync --daemon --no-detach --address 127.0.0.1 --port {DAEMON_PORT} --config {config}");
        self.start(Host::Far, "the rsync daemon", &daemon)?;
        self.listens(Host::Far, Listens::Tcp(SSH_PORT))?;
        self.listens(Host::Far, Listens::Tcp(DAEMON_PORT))?;
        if self.case.has_relay() {
            self.start_relay(ground)?;
        }
        Ok(())
    }

    fn start_relay(&mut self, ground: &Ground<'_>) -> Result<(), MeasureError> {
        let haul = ground.programs.haul().display();
        let homes = |who: &str| format!("mkdir -p {DISK}/{who}; export XDG_CONFIG_HOME={DISK}/{who} XDG_STATE_HOME={DISK}/{who}");
        let shown = self.done(Host::Second, &format!("{}; {haul} key show", homes("relay")))?;
        let print = shown.split_whitespace().find(|word| word.starts_with("SHA256:"));
        let print = print.ok_or_else(|| MeasureError::Unexpected { who: "haul key show", said: shown.clone() })?;
        self.done(Host::Near, &format!("{}; {haul} key trust {RELAY} {print}", homes("near")))?;
        let serve = format!("{}; exec {haul} serve --listen {RELAY}:{RELAY_PORT} --relay anybody", homes("relay"));
        self.start(Host::Second, "the relay", &serve)?;
        self.listens(Host::Second, Listens::Udp(RELAY_PORT))
    }

    fn listens(&self, host: Host, where_to: Listens) -> Result<(), MeasureError> {
        let (what, port) = match where_to {
            Listens::Tcp(port) => ("-Hlnt", port),
            Listens::Udp(port) => ("-Hlnu", port),
        };
        let script =
            format!("for _ in $(seq 500); do [ -n \"$(ss {what} 'sport = :{port}')\" ] && exit 0; sleep 0.02; done; exit 1");
        self.done(host, &script).map(drop).map_err(|_| {
            let said = self.servers.last().map(Running::last_words).unwrap_or_default();
            MeasureError::NotListening(said)
        })
    }

    fn play(self, ground: &Ground<'_>, ran: &mut Vec<Ran>, notes: &mut Vec<String>) -> Result<(), MeasureError> {
        for command in Command::ALL {
            for by in [By::Haul, By::Ssh] {
                // Nobody stands in ssh's way but narrow lines: one of its transfers shows that, and all of them where nothing is blocked.
                if by == By::Ssh && self.case != Case::Open && !self.case.hinders_ssh() && command != Command::Cp {
                    continue;
                }
                match self.transfer(ground, command, by) {
                    Ok(one) => ran.push(one),
                    Err(MeasureError::Interrupted) => return Err(MeasureError::Interrupted),
                    Err(error) => {
                        let (loss_percent, case) = (self.loss_percent, self.case);
                        let name = if by == By::Haul { command.name() } else { command.by_ssh() };
                        notes.push(format!("{loss_percent} % loss, {}, {name}: failed, {error}", case.name()));
                        // Who ssh alone is has no goal.
                        if by == By::Haul {
                            ran.push(Ran { has_failed: true, ..Ran::of(case, loss_percent, command, by) });
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn left(&self) -> Result<Left, MeasureError> {
        let listed = self.done(Host::Near, "nft list table inet left")?;
        Left::of(&listed).ok_or(MeasureError::Unexpected { who: "nft", said: listed })
    }

    fn transfer(&self, ground: &Ground<'_>, command: Command, by: By) -> Result<Ran, MeasureError> {
        let failed = |error| MeasureError::Start { what: "the client", error };
        let limit = at_most(self.scale);
        let haul = ground.programs.haul().display().to_string();
        let words = Words { haul, bytes: bytes(self.scale).as_u64(), at_most_s: limit.as_secs() };
        let mut shell = self.command(Host::Near, "bash");
        // What it starts can be ended with it.
        shell.process_group(0).args(["-c", &command.script(by, self.case, &words)]);
        let (before, delivered) = (self.left()?, self.site.delivered());
        let mut client = Running::start(shell).map_err(failed)?;
        let (begin, mut ended) = (now(), None);
        while ended.is_none() && now() < begin + limit {
            if !ground.go_on() {
                return Err(MeasureError::Interrupted);
            }
            ended = client.wait_until(now() + GLANCE).map_err(failed)?;
        }
        let passed = now().since(begin);
        let over_link = self.site.delivered().zip(delivered).map(|(after, before)| after.saturating_sub(before));
        let left = self.left()?.since(before);
        let mut one = Ran {
            carrier: if by == By::Haul { Carrier::said(&client.stderr()) } else { Carrier::Ssh },
            left,
            seconds: passed.as_secs_f64(),
            bytes: words.bytes,
            ..Ran::of(self.case, self.loss_percent, command, by)
        };
        match ended {
            Some(ended) if ended.status == 0 => {
                let output = client.stdout();
                one.seconds = took(&output).ok_or(MeasureError::Unexpected { who: "the script", said: output })?;
            }
            Some(ended) => {
                return Err(MeasureError::Ended { who: "script", status: ended.status, said: client.last_words() });
            }
            None => {
                // Of what the link has brought, a part is heads of packets: no more than that has come.
                one.is_cut_off = true;
                one.bytes = over_link.unwrap_or_default().as_u64().min(words.bytes);
                Self::end_all(&mut client).map_err(failed)?;
            }
        }
        Ok(one)
    }

    /// Ends a transfer with all that it has started, and leaves the far side a moment to see it go. Its group is named by the number that it has here: in the network's own
    /// process namespace it has another one.
    fn end_all(client: &mut Running) -> std::io::Result<()> {
        client.signal_group(Signal::TERM);
        client.wait_until(now() + PATIENCE)?;
        client.signal_group(Signal::KILL);
        client.end(Signal::KILL)?;
        std::thread::park_timeout(FAREWELL);
        Ok(())
    }
}

/// One of the hosts.
#[derive(Debug, Clone, Copy)]
enum Host {
    Near,
    /// Of the far side, where its firewall is.
    First,
    Second,
    /// The one that is logged in to.
    Far,
}

/// Makes the disk, what is sent, keys and configurations.
fn disk_script(scale: Scale) -> String {
    let bytes = bytes(scale).as_u64();
    let (room, part) = (bytes * 4 + (64 << 20), bytes / PARTS);
    let far = format!("HostName {FAR}\nHostKeyAlias far\nCiphers aes128-gcm@openssh.com");
    let sshd = SshSetup {
        dir: DISK,
        port: SSH_PORT,
        known_as: "far",
        server: &["MaxStartups 100".to_owned(), format!("SetEnv XDG_CONFIG_HOME={DISK}/far XDG_STATE_HOME={DISK}/far")],
        client: &[("far", far.clone()), ("far2", far)],
    };
    format!(
        "mkdir -p {DISK} && mount -t tmpfs -o size={room} bench {DISK}\n\
         mkdir -p {DISK}/source {DISK}/arrived {DISK}/near {DISK}/far\n\
         for part in $(seq 0 {last}); do head -c {part} /dev/urandom >{DISK}/source/part$part; done\n\
         printf 'use chroot = no\\nuid = root\\ngid = root\\nstrict modes = no\\n[arrived]\\npath = {DISK}/arrived\\nread only = no\\n' >{DISK}/rsyncd.conf\n\
         {}",
        sshd.script(),
        last = PARTS - 1,
    )
}

/// What it takes, and the package that has it.
const NEEDS: [(&str, &str); 5] =
    [("sshd", "openssh-server"), ("ssh", "openssh-client"), ("rsync", "rsync"), ("nft", "nftables"), ("ss", "iproute2")];
const RELAY_PORT: u16 = 7700;
const GLANCE: Duration = Duration::from_millis(50);
/// For a command that was asked to end.
const PATIENCE: Duration = Duration::from_secs(4);
const FAREWELL: Duration = Duration::from_millis(500);

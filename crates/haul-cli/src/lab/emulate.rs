//! The emulator's own process, the first one of a process namespace.
//!
//! Every program on the hosts runs in that process namespace, whoever started it. So when the emulator ends, by whatever signal, the kernel
//! kills them all, and with them and it go the network namespaces, which nobody else holds.

use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;

use clap::{Args as _, FromArgMatches as _};
use haul_lab::{DirectionStats, Host, Side, TunError, Wan, WanError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::{Value, json};

use super::args::{LinkArgs, UpArgs, spec};
use super::control::{Answer, Request, listen, serve};
use super::cradle;
use super::wan_name;
use crate::exit::{Exit, Failure};

/// Runs until it is told to end; refuses, before anything else, outside of namespaces that were made for it.
pub fn run(args: &UpArgs) -> Result<Exit, Failure> {
    cradle::check().map_err(|why| {
        Failure::new(format!("`haul lab wan emulate` is a part of `haul lab wan up`, not for use by hand: {why}"))
            .hint("`haul lab wan up` makes a WAN, `haul lab wan run` one for a single command")
    })?;
    let name = wan_name(&args.name);
    let _ = rustix::thread::set_name(c"haul-lab");
    let (mut wan, listeners) = match start(&name, args) {
        Ok(started) => started,
        Err(failure) => {
            let message = json!([failure.message, failure.hint]).to_string();
            report(&Answer::Failed(message));
            return Ok(Exit::Failed);
        }
    };
    // SAFETY: dispositions of this process: `end` only calls _exit, which may be called from a handler. Orphans of the hosts become
    // children of this process, and are never waited for.
    unsafe {
        libc::signal(libc::SIGTERM, end as extern "C" fn(libc::c_int) as libc::sighandler_t);
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
    }
    report(&Answer::Done(hosts_json(&wan)));
    if !args.with_parent {
        silence();
    }
    serve_until_down(&name, &mut wan, &listeners, args.with_parent);
    Ok(Exit::Done)
}

fn start(name: &str, args: &UpArgs) -> Result<(Wan, Vec<UnixListener>), Failure> {
    let spec = spec(&args.link, &args.shape).map_err(Failure::new)?;
    let listener = listen(name).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => Failure::new(format!("there is a WAN of the name `{name}` already"))
            .hint("`haul lab wan down` ends it, --name makes another one"),
        _ => Failure::new(format!("cannot make the control socket: {error}")),
    })?;
    own_mounts().map_err(|error| Failure::new(format!("cannot set up the mounts of the emulator: {error}")))?;
    let wan = Wan::up(spec).map_err(|error| explain(&error))?;
    let mut listeners = vec![listener];
    for host in wan.hosts() {
        // Where it cannot, only commands from within that host miss it.
        listeners.extend(listen_on(host, name).ok());
        let _ = name_namespace(host);
    }
    Ok((wan, listeners))
}

fn explain(error: &WanError) -> Failure {
    let failure = Failure::new(error);
    match error {
        WanError::Tun(TunError::Open(_)) => {
            failure.hint("`modprobe tun` brings the device; without it `haul lab relay` plays the same link for haul alone")
        }
        WanError::Tun(_) | WanError::Namespace(haul_lab::NamespaceError::Create(_)) => {
            failure.hint("root in a container is not enough; `haul lab relay` plays the same link for haul alone")
        }
        WanError::Namespace(haul_lab::NamespaceError::NoIp(_)) => failure.hint("install iproute2"),
        _ => failure,
    }
}

/// Mounts that nobody else sees: `/proc` of this process namespace, and a place for the hosts' names.
fn own_mounts() -> io::Result<()> {
    use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None)?;
    if !Path::new("/run/netns").exists() {
        // `ip netns` makes it as well, and leaves it.
        fs::create_dir_all("/run/netns")?;
    }
    mount("tmpfs", "/run/netns", "tmpfs", flags, c"size=64k")?;
    Ok(())
}

/// Makes `ip netns exec HOST` work for the processes of this emulator.
fn name_namespace(host: &Host) -> io::Result<()> {
    let path = Path::new("/run/netns").join(&host.name);
    fs::write(&path, [])?;
    let namespace = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&host.as_fd()));
    Ok(rustix::mount::mount_bind(namespace, path)?)
}

fn listen_on(host: &Host, name: &str) -> io::Result<UnixListener> {
    let body = || {
        move_into_link_name_space(host.as_fd(), Some(LinkNameSpaceType::Network))?;
        listen(name)
    };
    std::thread::scope(|scope| scope.spawn(body).join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
}

/// Tells whoever started this process, who reads its standard output to the end of the line.
fn report(answer: &Answer) {
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    // Where nobody listens, nobody needs to know.
    let _ = io::stdout().write_all(&line).and_then(|()| io::stdout().flush());
}

/// Lets go of the terminal.
fn silence() {
    if let Ok(null) = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

fn serve_until_down(name: &str, wan: &mut Wan, listeners: &[UnixListener], with_parent: bool) {
    let stdin = io::stdin();
    loop {
        let mut fds: Vec<PollFd<'_>> = listeners.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        if with_parent {
            fds.push(PollFd::new(&stdin, PollFlags::IN));
        }
        if poll(&mut fds, None).is_err() {
            continue;
        }
        if with_parent && fds.last().is_some_and(|fd| !fd.revents().is_empty()) {
            return;
        }
        for listener in listeners {
            let Ok((stream, _)) = listener.accept() else { continue };
            let mut down = false;
            // A client that goes away early loses its answer, and nothing else.
            let _ = serve(&stream, |request| answer(name, wan, request, &mut down));
            if down {
                return;
            }
        }
    }
}

type Answered = Result<(Value, Option<[OwnedFd; 3]>), String>;

fn answer(name: &str, wan: &mut Wan, request: Request, down: &mut bool) -> Answered {
    match request {
        Request::Enter { host } => {
            let fds = namespaces(wan, host.as_deref())?;
            Ok((hosts_json(wan), Some(fds)))
        }
        Request::Set { options } => {
            let mut link = wan.spec().link.clone();
            link_args(&options)?.apply(&mut link)?;
            wan.set(link);
            Ok((Value::Null, None))
        }
        Request::Status => Ok((status_json(name, wan), None)),
        Request::Down => {
            *down = true;
            end_everything();
            Ok((Value::Null, None))
        }
    }
}

fn link_args(options: &[String]) -> Result<LinkArgs, String> {
    let command = LinkArgs::augment_args(clap::Command::new("set").no_binary_name(true));
    let matches = command.try_get_matches_from(options).map_err(|error| error.to_string())?;
    LinkArgs::from_arg_matches(&matches).map_err(|error| error.to_string())
}

fn namespaces(wan: &Wan, host: Option<&str>) -> Result<[OwnedFd; 3], String> {
    let open = |what: &str| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::open(format!("/proc/self/ns/{what}"), flags, Mode::empty()).map_err(|error| error.to_string())
    };
    let net = match host {
        None => open("net")?,
        Some(name) => {
            let known: Vec<&str> = wan.hosts().iter().map(|host| host.name.as_str()).collect();
            let host = wan.host(name).ok_or_else(|| format!("no host `{name}`: this WAN has {}", known.join(", ")))?;
            host.as_fd().try_clone_to_owned().map_err(|error| error.to_string())?
        }
    };
    Ok([net, open("pid")?, open("mnt")?])
}

fn hosts_json(wan: &Wan) -> Value {
    let host = |host: &Host| {
        let addresses: Vec<_> = host.addresses.iter().map(|address| json!({"v4": address.v4, "v6": address.v6})).collect();
        json!({"name": host.name, "addresses": addresses})
    };
    Value::Array(wan.hosts().iter().map(host).collect())
}

fn status_json(name: &str, wan: &mut Wan) -> Value {
    let link = wan.spec().link.clone();
    let configs = link.links();
    let mut directions = Vec::new();
    for (number, stats) in wan.stats().iter().enumerate() {
        for ((stats, config), (from, to)) in stats.iter().zip(configs).zip([("a", "b"), ("b", "a")]) {
            let mut value = direction_json(stats);
            value["link"] = json!(number);
            value["from"] = json!(from);
            value["to"] = json!(to);
            value["rate_bps"] = json!(config.rate.as_bps());
            value["queue_bytes"] = json!(config.queue.as_u64());
            directions.push(value);
        }
    }
    json!({
        "name": name,
        "hosts": hosts_json(wan),
        "rtt_s": link.rtt.as_secs_f64(),
        "loss": link.loss.as_f64(),
        "mtu": wan.spec().mtu,
        "directions": directions,
        "device_drops": {"a": wan.device_drops(Side::A), "b": wan.device_drops(Side::B)},
    })
}

fn direction_json(stats: &DirectionStats) -> Value {
    let micros = |time: std::time::Duration| time.as_secs_f64() * 1e6;
    json!({
        "at_s": stats.at.as_secs_f64(),
        "sent_pkts": stats.link.sent_pkts,
        "sent_bytes": stats.offered.as_u64(),
        "delivered_pkts": stats.link.delivered_pkts,
        "delivered_bytes": stats.delivered.as_u64(),
        "queue_drops_pkts": stats.link.dropped_pkts,
        "lost_pkts": stats.link.lost_pkts,
        "duplicated_pkts": stats.link.duplicated_pkts,
        "marked_pkts": stats.link.marked_pkts,
        "queued_bytes": stats.queued.as_u64(),
        "max_queued_bytes": stats.link.max_queued.as_u64(),
        "inside_pkts": stats.inside_pkts,
        "reads": stats.reads,
        "writes": stats.writes,
        "unroutable_pkts": stats.unroutable_pkts,
        "failed_writes": stats.failed_writes,
        "added_delay_mean_us": micros(stats.late) / (stats.writes.max(1) as f64),
        "added_delay_max_us": micros(stats.latest),
        "cpu_s": stats.cpu.as_secs_f64(),
        "memory_bytes": stats.memory.as_u64(),
    })
}

/// Kills every process of this process namespace but this one, and waits until they are gone.
fn end_everything() {
    // Of any other process this would be every process that it may kill.
    if rustix::process::getpid() != rustix::process::Pid::INIT {
        return;
    }
    // SAFETY: plain system calls. With SIGCHLD ignored, `wait` returns when no child is left.
    unsafe {
        libc::kill(-1, libc::SIGKILL);
        while libc::wait(std::ptr::null_mut()) > 0 || *libc::__errno_location() == libc::EINTR {}
    }
}

extern "C" fn end(_signal: libc::c_int) {
    // SAFETY: _exit is async-signal-safe; what is to go goes with the process.
    unsafe { libc::_exit(0) }
}

//! The emulator's own process, the first one of a process namespace.
//!
//! Every program on the hosts runs in that process namespace, whoever started it. So when the emulator ends, by whatever signal, the kernel
//! kills them all, and with them and it go the network namespaces, which nobody else holds.

use std::fs;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use haul_netdev::DeviceError;
use haul_netdev::iproute::IprouteError;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::Life;
use super::cradle::{self, CradleError, Order};
use super::status::{HostStatus, WanStatus};
use super::talk::{Answer, Namespaces, NotUp, Obstacle, Refusal, Request, listen, serve};
use crate::namespace::NamespaceError;
use crate::wan::{Host, Wan, WanError};

/// Why this process has emulated nothing.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// It has not been started by [`Emulator::start`](super::Emulator::start): nothing was done.
    #[error(transparent)]
    Cradle(#[from] CradleError),
    /// There is a WAN of that name.
    #[error("there is a WAN of the name `{0}` already")]
    NameTaken(String),
    /// No control socket.
    #[error("cannot make the control socket: {0}")]
    Control(#[source] io::Error),
    /// No mounts of its own.
    #[error("cannot set up the mounts of the emulator: {0}")]
    Mounts(#[source] io::Error),
    /// No WAN.
    #[error(transparent)]
    Wan(#[from] WanError),
}

/// Is the emulator until it is told to end; refuses, before anything else, outside of namespaces that were made for it.
///
/// Whoever started this process knows why there is no WAN; only what is wrong with the [cradle](EmulateError::Cradle) nobody has been told.
pub fn run() -> Result<(), EmulateError> {
    let order = cradle::check()?;
    let _ = rustix::thread::set_name(c"haul-lab");
    let (mut wan, listeners) = start(&order).inspect_err(|error| {
        report(&Answer::NotUp(NotUp { obstacle: error.obstacle(), said: error.to_string() }));
    })?;
    // SAFETY: dispositions of this process: `end` only calls _exit, which may be called from a handler. Orphans of the hosts become
    // children of this process, and are never waited for.
    unsafe {
        libc::signal(libc::SIGTERM, end as extern "C" fn(libc::c_int) as libc::sighandler_t);
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
    }
    report(&Answer::Hosts(HostStatus::all(&wan)));
    let with_parent = order.life == Life::WithThisProcess;
    if !with_parent {
        silence();
    }
    serve_until_down(&order.name, &mut wan, &listeners, with_parent);
    Ok(())
}

impl EmulateError {
    fn obstacle(&self) -> Obstacle {
        match self {
            Self::NameTaken(_) => Obstacle::NameTaken,
            Self::Wan(WanError::Tun(DeviceError::Open(_))) => Obstacle::NoTunDevice,
            Self::Wan(WanError::Tun(_) | WanError::Namespace(NamespaceError::Create(_))) => Obstacle::NotAllowed,
            Self::Wan(WanError::Namespace(NamespaceError::Iproute(IprouteError::Missing { .. }))) => Obstacle::NoIproute,
            _ => Obstacle::Other,
        }
    }
}

fn start(order: &Order) -> Result<(Wan, Vec<UnixListener>), EmulateError> {
    let name = &order.name;
    let listener = listen(name).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => EmulateError::NameTaken(name.clone()),
        _ => EmulateError::Control(error),
    })?;
    own_mounts().map_err(EmulateError::Mounts)?;
    let wan = Wan::up(order.wan.clone())?;
    let mut listeners = vec![listener];
    for host in wan.hosts() {
        // Where it cannot, only commands from within that host miss it.
        listeners.extend(listen_on(host, name).ok());
        let _ = name_namespace(host);
    }
    Ok((wan, listeners))
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

fn answer(name: &str, wan: &mut Wan, request: Request, down: &mut bool) -> Result<(Answer, Option<Namespaces>), Refusal> {
    match request {
        Request::Enter { host } => {
            let namespaces = namespaces(wan, host.as_deref())?;
            Ok((Answer::Hosts(HostStatus::all(wan)), Some(namespaces)))
        }
        Request::Set { link } => {
            let link = link.apply(&wan.spec().link).map_err(Refusal::Link)?;
            wan.set(link);
            Ok((Answer::Done, None))
        }
        Request::Status => Ok((Answer::Status(Box::new(WanStatus::of(name, wan))), None)),
        Request::Down => {
            *down = true;
            end_everything();
            Ok((Answer::Done, None))
        }
    }
}

fn namespaces(wan: &Wan, host: Option<&str>) -> Result<Namespaces, Refusal> {
    let open = |what: &str| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(format!("/proc/self/ns/{what}"), flags, Mode::empty());
        opened.map_err(|error| Refusal::System(error.raw_os_error()))
    };
    let net = match host {
        None => open("net")?,
        Some(name) => {
            let known = || wan.hosts().iter().map(|host| host.name.clone()).collect();
            let host = wan.host(name).ok_or_else(|| Refusal::NoHost { host: name.to_owned(), known: known() })?;
            let failed = |error: io::Error| Refusal::System(error.raw_os_error().unwrap_or_default());
            host.as_fd().try_clone_to_owned().map_err(failed)?
        }
    };
    Ok(Namespaces { net, pid: open("pid")?, mnt: open("mnt")? })
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

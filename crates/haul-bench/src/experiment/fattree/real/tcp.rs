//! Flows of the kernel's TCP and MPTCP, and what the kernel tells of each subflow.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::time::Duration;

use haul_units::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

use super::ledger::{Ledger, send};
use super::way::Sent;

/// A socket of a host, in whose namespace the calling thread is.
pub fn listen(address: Ipv4Addr, port: u16, is_multipath: bool) -> io::Result<TcpListener> {
    let socket = socket(is_multipath)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(address, port))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// The next connection; none when nobody receives any more.
pub fn accept(listener: &TcpListener, ledger: &Ledger) -> io::Result<Option<TcpStream>> {
    while !ledger.is_closed() {
        if is_ready(listener, PollFlags::IN)? {
            let (stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(GLANCE))?;
            return Ok(Some(stream));
        }
    }
    Ok(None)
}

/// Sends a flow from the host in whose namespace the calling thread is, and stays until it has arrived or the run is over.
pub fn flow(to: SocketAddrV4, is_multipath: bool, flow: usize, size: Option<Bytes>, ledger: &Ledger) -> io::Result<Sent> {
    let Some(stream) = connect(to, is_multipath, ledger)? else { return Ok(Sent::default()) };
    // The last packet leaves with the others.
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(GLANCE))?;
    send(flow, size, ledger, |piece| io::Write::write(&mut &stream, piece))?;
    if size.is_some() {
        ledger.wait(flow);
    }
    let subflows = if is_multipath { subflows(&stream)? } else { vec![plain(&stream)?] };
    Ok(Sent {
        by_subflow: subflows.iter().map(|subflow| Bytes(subflow.sent_bytes)).collect(),
        resent_pkts: subflows.iter().map(|subflow| u64::from(subflow.resent_pkts)).sum(),
        timeouts: subflows.iter().map(|subflow| u64::from(subflow.timeouts)).sum(),
    })
}

/// Nothing if the run is over before somebody answers.
fn connect(to: SocketAddrV4, is_multipath: bool, ledger: &Ledger) -> io::Result<Option<TcpStream>> {
    let socket = socket(is_multipath)?;
    // The default of a namespace may be another one, and need not be allowed to change. MPTCP gives it to each subflow.
    sockopt::set_tcp_congestion(&socket, "cubic")?;
    let flags = fcntl_getfl(&socket)?;
    fcntl_setfl(&socket, flags | OFlags::NONBLOCK)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) => {}
        Err(rustix::io::Errno::INPROGRESS) => {
            while !is_ready(&socket, PollFlags::OUT)? {
                if ledger.is_over() {
                    return Ok(None);
                }
            }
            sockopt::socket_error(&socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    fcntl_setfl(&socket, flags)?;
    Ok(Some(socket.into()))
}

fn socket(is_multipath: bool) -> io::Result<OwnedFd> {
    let protocol = is_multipath.then_some(ipproto::MPTCP);
    Ok(rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, protocol)?)
}

fn is_ready(socket: impl AsFd, what: PollFlags) -> io::Result<bool> {
    let glance = Timespec { tv_sec: 0, tv_nsec: i64::from(GLANCE.subsec_nanos()) };
    match poll(&mut [PollFd::new(&socket, what)], Some(&glance)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What the kernel tells of a subflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Subflow {
    sent_bytes: u64,
    resent_pkts: u32,
    timeouts: u16,
}

impl Subflow {
    /// From the kernel's `struct tcp_info` (linux/tcp.h), which grows at its end; an older kernel's is shorter, and what it does not have is 0.
    fn of(info: &[u8]) -> Self {
        fn at<const N: usize>(info: &[u8], place: usize) -> [u8; N] {
            info.get(place..place + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
        }
        Self {
            sent_bytes: u64::from_ne_bytes(at(info, BYTES_SENT)),
            resent_pkts: u32::from_ne_bytes(at(info, TOTAL_RETRANS)),
            timeouts: u16::from_ne_bytes(at(info, TOTAL_RTO)),
        }
    }
}

fn plain(stream: &TcpStream) -> io::Result<Subflow> {
    let mut info = [0; INFO_BYTES];
    let length = ask(stream, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    Ok(Subflow::of(&info[..length]))
}

/// Those of an MPTCP connection, the first one first; of one that has fallen back to TCP the one there is.
fn subflows(stream: &TcpStream) -> io::Result<Vec<Subflow>> {
    let mut answer = [0; HEAD_BYTES + MOST_SUBFLOWS * INFO_BYTES];
    // `struct mptcp_subflow_data` (linux/mptcp.h): its own size, how many there are, the kernel's size of each, the size that we want.
    answer[..4].copy_from_slice(&(HEAD_BYTES as u32).to_ne_bytes());
    answer[12..16].copy_from_slice(&(INFO_BYTES as u32).to_ne_bytes());
    match ask(stream, SOL_MPTCP, MPTCP_TCPINFO, &mut answer) {
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(vec![plain(stream)?]),
        Err(error) => return Err(error),
    }
    let count = u32::from_ne_bytes([answer[4], answer[5], answer[6], answer[7]]) as usize;
    Ok(answer[HEAD_BYTES..].chunks_exact(INFO_BYTES).take(count).map(Subflow::of).collect())
}

/// getsockopt into a buffer; how much was filled.
fn ask(stream: &TcpStream, level: libc::c_int, name: libc::c_int, room: &mut [u8]) -> io::Result<usize> {
    let mut length = room.len() as libc::socklen_t;
    // SAFETY: the buffer has the length told, and both outlive the call.
    let result = unsafe { libc::getsockopt(stream.as_raw_fd(), level, name, room.as_mut_ptr().cast(), &raw mut length) };
    if result == 0 { Ok((length as usize).min(room.len())) } else { Err(io::Error::last_os_error()) }
}

/// Places in `struct tcp_info`, whose beginning never changes.
const TOTAL_RETRANS: usize = 100;
const BYTES_SENT: usize = 200;
const TOTAL_RTO: usize = 240;
/// Of one, as far as it is wanted.
const INFO_BYTES: usize = 248;
const HEAD_BYTES: usize = 4 * size_of::<u32>();
/// Subflows of a connection, at most.
const MOST_SUBFLOWS: usize = 8;
const SOL_MPTCP: libc::c_int = 284;
const MPTCP_TCPINFO: libc::c_int = 2;
const BACKLOG: i32 = 1024;
/// How long somebody who waits does not see that the run is over.
const GLANCE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    /// Over loopback: what was sent is what the kernel counts.
    #[test]
    fn the_kernel_counts_what_a_flow_sends() {
        let listener = listen(Ipv4Addr::LOCALHOST, 0, false).expect("a listener");
        let std::net::SocketAddr::V4(to) = listener.local_addr().expect("an address") else { panic!("IPv4 was asked for") };
        let ledger = Ledger::new(std::iter::once(Some(Bytes(70_000))));
        let sent = std::thread::scope(|scope| {
            scope.spawn(|| {
                let stream = accept(&listener, &ledger).expect("a connection").expect("before the end");
                ledger.receive(stream).expect("it can be read");
            });
            flow(to, false, 0, Some(Bytes(70_000)), &ledger).expect("it can be sent")
        });
        // On a machine that is busy something may be sent again, loopback or not.
        let [bytes] = sent.by_subflow[..] else { panic!("one subflow: {sent:?}") };
        assert!(bytes >= Bytes(70_000) && (bytes == Bytes(70_000)) == (sent.resent_pkts == 0), "{sent:?}");
        ledger.close();
        assert!(accept(&listener, &ledger).expect("no error").is_none());
    }
}

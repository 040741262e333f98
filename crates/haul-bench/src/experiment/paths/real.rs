//! The connections on real sockets: threads in the hosts of a WAN with both links, which ends with them.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use haul::{ClientConfig, Connection, Endpoint, Identity, PeerTrust, ServerConfig, SharedBytes, TransportConfig};
use haul_lab::{Host, LinkOptions, QueueSize, Wan, WanError, WanSpec, now};
use haul_sim::{Path, Queue};
use haul_units::Bytes;

use super::cases::{Over, Pair, Seen, length, pairs, runs};
use super::show;
use crate::bench::Series;
use crate::experiment::{Ground, Report, Scale};

pub fn measured(scale: Scale, ground: &Ground<'_>) -> Report {
    let (mut seen, mut notes) = (Vec::new(), Vec::new());
    for pair in pairs(scale) {
        for (over, is_ordered) in runs() {
            if !ground.go_on() {
                break;
            }
            let title = show::title(*pair, over, is_ordered);
            ground.tell(&title);
            match run(*pair, over, is_ordered, length(scale)) {
                Ok(one) => seen.push(one),
                Err(error) => notes.push(format!("{title}: failed, {error}")),
            }
        }
    }
    Report { notes, ..show::report("real sockets over two emulated links", scale, &seen) }
}

#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Wan(#[from] WanError),
    #[error("no host")]
    NoHost,
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn run(pair: Pair, over: Over, is_ordered: bool, length: Duration) -> Result<Seen, RunError> {
    let wan = Wan::up(spec(pair))?;
    let (near, far) = wan.host("a").zip(wan.host("b")).ok_or(RunError::NoHost)?;
    let link = if let Over::One(link) = over { link } else { 0 };
    let to = far.addresses.get(link).ok_or(RunError::NoHost)?.v4;
    let (via, arrived) = (via(over), AtomicU64::new(0));
    let (series, by_path) = thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(far, is_ordered, &arrived));
        let sent = scope.spawn(|| send(near, to, &via, is_ordered, length));
        // The clock starts with the first byte.
        let limit = now() + PATIENCE;
        while arrived.load(Ordering::Relaxed) == 0 && now() < limit && !sent.is_finished() {
            thread::park_timeout(Duration::from_millis(1));
        }
        let series = watch(&arrived, length, || sent.is_finished());
        let by_path = joined(sent.join())?;
        joined(receiver.join())?;
        Ok::<_, io::Error>((series, by_path))
    })?;
    Ok(Seen { pair, over, is_ordered, series, by_path })
}

fn joined<T>(ended: thread::Result<io::Result<T>>) -> io::Result<T> {
    ended.unwrap_or_else(|_| Err(io::Error::other("a thread failed")))
}

fn spec(pair: Pair) -> WanSpec {
    let mut links = pair.links.iter().map(options);
    WanSpec { link: links.next().unwrap_or_default(), beside: links.collect(), ..WanSpec::default() }
}

fn options(path: &Path) -> LinkOptions {
    let queue = match path.queue {
        Queue::Bdp(factor) => QueueSize::Bdp(factor),
        Queue::Bytes(bytes) => QueueSize::Bytes(bytes),
    };
    LinkOptions { rate: path.rate, rtt: path.rtt, queue, ..LinkOptions::default() }
}

fn via(over: Over) -> Vec<String> {
    match over {
        Over::One(link) => vec![format!("wan{link}")],
        Over::Both => vec!["wan0".to_owned(), "wan1".to_owned()],
    }
}

/// What has arrived, every tenth of a second.
fn watch(arrived: &AtomicU64, length: Duration, is_over: impl Fn() -> bool) -> Series {
    let (start, mut series, mut before) = (now(), Series::default(), 0);
    for tenth in 1..=(length.as_millis() / STRETCH.as_millis()) as u32 {
        let end = STRETCH * tenth;
        while now() < start + end && !is_over() {
            thread::park_timeout((start + end).since(now()));
        }
        let all = arrived.load(Ordering::Relaxed);
        series.push(now() - start, Bytes(all - before));
        before = all;
        if is_over() {
            break;
        }
    }
    series
}

/// In host b, bound to every address, so that it tells of them.
fn receive(far: &Host, is_ordered: bool, arrived: &AtomicU64) -> io::Result<()> {
    far.enter().map_err(io::Error::other)?;
    let config = ServerConfig { transport: transport(&[])?, ..ServerConfig::new(Identity::generate(), PeerTrust::Anyone) };
    let endpoint = Endpoint::listen(SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)), config).map_err(io::Error::other)?;
    let Some(connection) = endpoint.accept_timeout(PATIENCE).map_err(io::Error::other)? else {
        return Err(io::Error::other("nobody has come"));
    };
    // The end of the connection is that of the run.
    let _ = take(&connection, is_ordered, arrived);
    Ok(())
}

fn take(connection: &Connection, is_ordered: bool, arrived: &AtomicU64) -> io::Result<()> {
    if is_ordered {
        let (mut stream, mut room) = (connection.accept_uni()?, vec![0; 1 << 18]);
        loop {
            match stream.read(&mut room)? {
                0 => return Ok(()),
                count => arrived.fetch_add(count as u64, Ordering::Relaxed),
            };
        }
    }
    let blocks = connection.accept_blocks()?;
    while let Some(block) = blocks.recv()? {
        arrived.fetch_add(block.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// In host a, until the time is over. What each path has carried.
fn send(near: &Host, to: Ipv4Addr, via: &[String], is_ordered: bool, length: Duration) -> io::Result<Vec<u64>> {
    near.enter().map_err(io::Error::other)?;
    let endpoint = Endpoint::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).map_err(io::Error::other)?;
    let config = ClientConfig { transport: transport(via)?, connect_timeout: PATIENCE, ..ClientConfig::new(PeerTrust::Anyone) };
    // The server may not listen yet: its host is asked again.
    let connection = endpoint.connect(SocketAddr::from((to, PORT)), config).map_err(io::Error::other)?;
    let end = now() + length + MARGIN;
    let stop = connection.clone();
    // What waits for room ends with the connection.
    let stopper = thread::spawn(move || {
        while now() < end && stop.end().is_none() {
            thread::park_timeout(end.since(now()).min(STRETCH));
        }
        let by_path = stop.paths().iter().map(|path| path.acknowledged.as_u64()).collect();
        stop.close(0, "over");
        by_path
    });
    let _ = give(&connection, is_ordered);
    stopper.join().map_err(|_| io::Error::other("a thread failed"))
}

fn give(connection: &Connection, is_ordered: bool) -> io::Result<()> {
    // On the slow link a larger block would arrive every few seconds.
    let content = SharedBytes::from(vec![0x5a; 1 << 16]);
    if is_ordered {
        let mut stream = connection.open_uni()?;
        loop {
            stream.write_all(&content)?;
        }
    }
    let blocks = connection.open_blocks()?;
    loop {
        blocks.send(content.clone())?;
    }
}

fn transport(via: &[String]) -> io::Result<TransportConfig> {
    let via = via.iter().map(|way| way.parse().map_err(io::Error::other)).collect::<io::Result<_>>()?;
    // Nothing larger passes here: it need not be tried.
    Ok(TransportConfig { via, max_packet: ETHERNET, ..TransportConfig::default() })
}

const PORT: u16 = 7790;
/// UDP payload of a packet of 1500 bytes.
const ETHERNET: u16 = 1472;
const PATIENCE: Duration = Duration::from_secs(10);
/// The sender goes on until the receiver's clock is through.
const MARGIN: Duration = Duration::from_secs(2);
const STRETCH: Duration = Duration::from_millis(100);

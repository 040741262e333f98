//! Where a server takes TCP connections for measurements of the kernel's TCP.
//!
//! A connection says first which measurement it belongs to, by a cookie that the client got over haul; one that does not is closed. So TCP is
//! only for clients that haul's handshake has let in.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use super::plan::Direction;

/// How long a connection may take to say whose it is.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections that have not said it yet, at most.
const MOST_STRANGERS: usize = 256;
/// Bytes of a cookie, and of all that a connection says: the cookie, its direction and its stream.
pub const COOKIE_BYTES: usize = 32;
const PREAMBLE_BYTES: usize = COOKIE_BYTES + 3;

/// A connection that has said whose it is.
#[derive(Debug)]
pub struct Arrived {
    /// Its direction.
    pub direction: Direction,
    /// Its stream.
    pub stream: u16,
    /// The connection.
    pub connection: TcpStream,
}

/// A listening TCP port. It is closed when the last clone is dropped.
#[derive(Clone)]
pub struct DataPort {
    inner: Arc<Inner>,
}

struct Inner {
    port: u16,
    address: SocketAddr,
    expected: Arc<Mutex<HashMap<String, mpsc::Sender<Arrived>>>>,
    closed: Arc<AtomicBool>,
    listening: Option<thread::JoinHandle<()>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Release);
        // Wakes the listening thread, which then sees that it is over.
        let ip = match self.address.ip() {
            ip if !ip.is_unspecified() => ip,
            ip if ip.is_ipv4() => Ipv4Addr::LOCALHOST.into(),
            _ => Ipv6Addr::LOCALHOST.into(),
        };
        let woken = TcpStream::connect_timeout(&SocketAddr::new(ip, self.port), Duration::from_secs(1));
        if let (Ok(_), Some(listening)) = (woken, self.listening.take()) {
            let _ = listening.join();
        }
    }
}

impl DataPort {
    /// Listens on the first free port of the range, any free one for 0..=0; on IPv4 alone where there is no IPv6.
    pub fn open(address: SocketAddr, ports: RangeInclusive<u16>) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for port in ports {
            for ip in [Some(address.ip()), address.ip().is_unspecified().then(|| Ipv4Addr::UNSPECIFIED.into())] {
                let Some(ip) = ip else { continue };
                match TcpListener::bind(SocketAddr::new(ip, port)) {
                    Ok(listener) => return Self::start(listener),
                    Err(error) => last = error,
                }
            }
        }
        Err(last)
    }

    fn start(listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (expected, closed) = (Arc::<Mutex<HashMap<_, _>>>::default(), Arc::new(AtomicBool::new(false)));
        let (known, over) = (Arc::clone(&expected), Arc::clone(&closed));
        let listening = Some(thread::spawn(move || listen(&listener, &known, &over)));
        let inner = Inner { port: address.port(), address, expected, closed, listening };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.inner.port
    }

    /// From now on connections with this cookie are welcome, until the guard is dropped.
    pub fn expect(&self, cookie: &str) -> Expected {
        let (arrived, arrivals) = mpsc::channel();
        lock(&self.inner.expected).insert(cookie.to_owned(), arrived);
        Expected { data_port: self.clone(), cookie: cookie.to_owned(), arrivals }
    }
}

/// Connections of one measurement.
pub struct Expected {
    data_port: DataPort,
    cookie: String,
    arrivals: mpsc::Receiver<Arrived>,
}

impl Expected {
    /// Waits for this many streams of each of the directions; sorted by stream.
    pub fn collect(
        &self,
        directions: &[Direction],
        streams: u16,
        patience: Duration,
    ) -> Option<Vec<(Direction, Vec<TcpStream>)>> {
        let deadline = crate::clock::now() + patience;
        let mut places: Vec<(Direction, Vec<Option<TcpStream>>)> =
            directions.iter().map(|&direction| (direction, (0..streams).map(|_| None).collect())).collect();
        while places.iter().any(|(_, streams)| streams.iter().any(Option::is_none)) {
            let arrived = self.arrivals.recv_timeout(deadline.saturating_duration_since(crate::clock::now())).ok()?;
            let (_, streams) = places.iter_mut().find(|(direction, _)| *direction == arrived.direction)?;
            *streams.get_mut(usize::from(arrived.stream))? = Some(arrived.connection);
        }
        Some(places.into_iter().map(|(direction, streams)| (direction, streams.into_iter().flatten().collect())).collect())
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        lock(&self.data_port.inner.expected).remove(&self.cookie);
    }
}

type ByCookie = Mutex<HashMap<String, mpsc::Sender<Arrived>>>;

fn lock(expected: &ByCookie) -> MutexGuard<'_, HashMap<String, mpsc::Sender<Arrived>>> {
    expected.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(listener: &TcpListener, expected: &Arc<ByCookie>, closed: &AtomicBool) {
    let strangers = Arc::new(AtomicUsize::new(0));
    for connection in listener.incoming() {
        if closed.load(Ordering::Acquire) {
            return;
        }
        let Ok(connection) = connection else {
            // Out of descriptors, most likely: not to be tried again at once.
            crate::clock::pause(Duration::from_millis(50));
            continue;
        };
        if strangers.fetch_add(1, Ordering::AcqRel) >= MOST_STRANGERS {
            strangers.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let (expected, strangers) = (Arc::clone(expected), Arc::clone(&strangers));
        thread::spawn(move || {
            let arrived = identify(connection);
            strangers.fetch_sub(1, Ordering::AcqRel);
            if let Some((cookie, arrived)) = arrived
                && let Some(measurement) = lock(&expected).get(&cookie)
            {
                let _ = measurement.send(arrived);
            }
        });
    }
}

fn identify(mut connection: TcpStream) -> Option<(String, Arrived)> {
    connection.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut preamble = [0; PREAMBLE_BYTES];
    connection.read_exact(&mut preamble).ok()?;
    connection.set_read_timeout(None).ok()?;
    let (cookie, rest) = preamble.split_at(COOKIE_BYTES);
    let (direction, stream) = match *rest {
        [b'u', high, low] => (Direction::Up, u16::from_be_bytes([high, low])),
        [b'd', high, low] => (Direction::Down, u16::from_be_bytes([high, low])),
        _ => return None,
    };
    Some((String::from_utf8(cookie.to_vec()).ok()?, Arrived { direction, stream, connection }))
}

/// Connects one stream and says whose it is.
pub fn join(to: SocketAddr, cookie: &str, direction: Direction, stream: u16) -> io::Result<TcpStream> {
    let mut connection = TcpStream::connect_timeout(&to, PATIENCE)?;
    let mut preamble = cookie.as_bytes().to_vec();
    preamble.push(if direction == Direction::Up { b'u' } else { b'd' });
    preamble.extend(stream.to_be_bytes());
    connection.write_all(&preamble)?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data_port() -> (DataPort, SocketAddr) {
        let data_port = DataPort::open("127.0.0.1:0".parse().unwrap(), 0..=0).unwrap();
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), data_port.port());
        (data_port, address)
    }

    #[test]
    fn streams_find_their_measurement_in_any_order() {
        let (data_port, address) = data_port();
        let cookies = ["a".repeat(COOKIE_BYTES), "b".repeat(COOKIE_BYTES)];
        let expected = cookies.each_ref().map(|cookie| data_port.expect(cookie));
        let mut kept = Vec::new();
        for (cookie, stream) in [(1, 1), (0, 0), (1, 0), (0, 1)] {
            kept.push(join(address, &cookies[cookie], Direction::Up, stream).unwrap());
        }
        for expected in expected {
            let collected = expected.collect(&[Direction::Up], 2, Duration::from_secs(20)).expect("all came");
            assert_eq!(collected[0].1.len(), 2);
        }
    }

    #[test]
    fn a_stranger_is_shown_out_and_a_closed_port_refuses() {
        let (data_port, address) = data_port();
        let expected = data_port.expect(&"a".repeat(COOKIE_BYTES));
        let mut stranger = join(address, &"x".repeat(COOKIE_BYTES), Direction::Up, 0).unwrap();
        assert_eq!(stranger.read(&mut [0]).unwrap_or(0), 0);
        let beyond = join(address, &"a".repeat(COOKIE_BYTES), Direction::Up, 9).unwrap();
        assert!(expected.collect(&[Direction::Up], 1, Duration::from_secs(20)).is_none(), "no such stream in the plan");
        drop((expected, data_port, beyond));
        assert!(TcpStream::connect(address).is_err());
    }
}

//! The far side's end of what carries a connection where UDP does not pass.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use data_encoding::BASE64;
use haul::Endpoint;
use haul::carrier::{Carrier, Lane, tcp};
use haul_units::{Cancel, PeerText};
use serde::{Deserialize, Serialize};

/// TCP connections of one client, at most.
const MAX_LANES: usize = 64;
/// The longest greeting line that may stand before the first frame.
const MAX_GREETING: usize = 64 << 10;

/// Where a far side takes TCP connections that carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarrierPort {
    /// The port.
    pub port: u16,
    /// The carrier's name, in base64.
    pub name: PeerText,
}

impl CarrierPort {
    /// The carrier's name, if that is one.
    pub fn name(&self) -> Option<tcp::Name> {
        BASE64.decode(self.name.as_bytes()).ok()?.try_into().ok()
    }
}

/// Listens on the port of the endpoint's, or on the first free one that is allowed; the lanes of who knows the name are the client's. None where no port is free.
pub(crate) fn open_port(
    endpoint: &Endpoint,
    ports: RangeInclusive<u16>,
    client: Option<IpAddr>,
    name: tcp::Name,
    over: Cancel,
) -> Option<CarrierPort> {
    let local = endpoint.local_addr();
    let others = ports.filter(|port| *port != local.port());
    let listener =
        std::iter::once(local.port()).chain(others).find_map(|port| tcp::listen(SocketAddr::new(local.ip(), port)).ok())?;
    let port = listener.local_addr().ok()?.port();
    let (_, carrier) = endpoint.carry(client.map(|ip| SocketAddr::new(ip, 0)));
    let lanes = Lanes { name, carrier, over, from: Mutex::default() };
    thread::Builder::new().name("haul-carrier".to_owned()).spawn(move || tcp::accept(&listener, lanes)).ok()?;
    Some(CarrierPort { port, name: BASE64.encode(&name).into() })
}

impl Lanes {
    /// Whether the client has come from another address so far. What ssh forwards comes from this host itself, wherever the client is.
    fn has_moved(&self, to: IpAddr) -> bool {
        if to.is_loopback() {
            return false;
        }
        let mut from = self.from.lock().unwrap_or_else(PoisonError::into_inner);
        let before = from.get_mut(usize::from(to.is_ipv6())).and_then(|from| from.replace(to));
        before.is_some_and(|before| before != to)
    }
}

struct Lanes {
    name: tcp::Name,
    carrier: Carrier,
    over: Cancel,
    /// Where the client's lanes come from, by IPv4 and by IPv6.
    from: Mutex<[Option<IpAddr>; 2]>,
}

impl tcp::Welcome for Lanes {
    fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    fn knows(&self, name: &tcp::Name, _from: SocketAddr) -> bool {
        // All of it is compared, however it begins: time tells nothing.
        verify_slices_are_equal(name, &self.name).is_ok() && self.carrier.lanes() < MAX_LANES
    }

    fn take(&self, _name: &tcp::Name, from: SocketAddr, lane: Lane, _cut: tcp::Cut) {
        if self.has_moved(from.ip()) {
            // Nothing will come from the old address, and what goes there is lost.
            self.carrier.leave_lanes();
        }
        match self.carrier.add(lane) {
            Ok(()) => tracing::debug!(%from, "a lane over TCP"),
            Err(error) => tracing::debug!(%error, "no lane"),
        }
    }
}

/// Carries by what comes from `input` and goes to `output`, until there is no more input. A line may stand before it.
pub(crate) fn follow(carrier: &Carrier, input: impl Read + Send + 'static, output: impl io::Write + Send + 'static) {
    let (give_back, given_back) = mpsc::channel();
    let read = Lent { input: Some(input), give_back };
    let finish = Box::new(|| {});
    if let Err(error) = carrier.add(Lane { read: Box::new(read), write: Box::new(output), finish }) {
        tracing::debug!(%error, "no lane");
    }
    // Whatever else may come says nothing, but its end does.
    if let Ok(mut input) = given_back.recv() {
        let _ = io::copy(&mut input, &mut io::sink());
    }
    carrier.close();
}

/// Passes over a line, if one comes first.
pub(crate) fn skip_line(input: &mut impl Read) -> io::Result<()> {
    let mut byte = [0];
    for _ in 0..MAX_GREETING {
        if input.read(&mut byte)? == 0 || byte == *b"\n" {
            return Ok(());
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// A reader that comes back when its lane is done with it.
struct Lent<R: Read> {
    input: Option<R>,
    give_back: mpsc::Sender<R>,
}

impl<R: Read> Read for Lent<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.as_mut().map_or(Ok(0), |input| input.read(buffer))
    }
}

impl<R: Read> Drop for Lent<R> {
    fn drop(&mut self) {
        if let Some(input) = self.input.take() {
            let _ = self.give_back.send(input);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_passed_over_and_what_follows_stays() {
        let mut input = &b"{\"hello\":1}\nrest"[..];
        skip_line(&mut input).expect("a line");
        assert_eq!(input, b"rest");
        skip_line(&mut input).expect("the end is an end");
        assert!(skip_line(&mut &vec![b'x'; MAX_GREETING + 1][..]).is_err());
    }

    #[test]
    fn noise_is_heard_to_its_end() {
        let server = haul::ServerConfig::new(haul::Identity::generate(), haul::PeerTrust::Anyone);
        let endpoint = Endpoint::listen("127.0.0.1:0".parse().expect("an address"), server).expect("an endpoint");
        let (_, carrier) = endpoint.carry(None);
        follow(&carrier, io::Cursor::new(vec![0xff; 300_000]), io::sink());
        // The lane's own threads end when they have heard of it.
        for _ in 0..1_000_000 {
            if carrier.lanes() == 0 {
                return;
            }
            thread::yield_now();
        }
        panic!("{} lanes", carrier.lanes());
    }
}

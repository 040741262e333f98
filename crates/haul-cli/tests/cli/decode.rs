//! A copy that is captured, and what `haul lab decode` and Wireshark's dissector (`scripts/haul.lua`) read of it.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::support::{Bench, Daemon, noise};

const LEN: usize = 300_000;

/// What `decode` says of a packet after the handshake, and what the dissector does: whose it is, its number, and for data stream and offset.
type Seen = (u32, u64, Option<(u32, u64)>);

/// Passes datagrams between one client and a daemon, and keeps what came by as `tcpdump -w` would.
struct Tap {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    captured: mpsc::Receiver<(SocketAddr, SocketAddr, Vec<u8>)>,
}

impl Tap {
    fn before(daemon: SocketAddr) -> Self {
        let (near, far) = (socket(), socket());
        let (address, stop) = (near.local_addr().unwrap(), Arc::<AtomicBool>::default());
        let (sender, captured) = mpsc::channel();
        let client = Arc::new(Mutex::new(None));
        let pass = |from: &UdpSocket, to: &UdpSocket, is_outward: bool| {
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let (stop, sender, client) = (stop.clone(), sender.clone(), client.clone());
            thread::spawn(move || {
                let mut room = vec![0; 65_536];
                while !stop.load(Ordering::Relaxed) {
                    let Ok((len, peer)) = from.recv_from(&mut room) else { continue };
                    let known = *client.lock().unwrap().get_or_insert(peer);
                    let (source, target) = if is_outward { (known, address) } else { (address, known) };
                    drop(sender.send((source, target, room[..len].to_vec())));
                    let _ = to.send_to(&room[..len], if is_outward { daemon } else { known });
                }
            })
        };
        let threads = vec![pass(&near, &far, true), pass(&far, &near, false)];
        Self { address, stop, threads, captured }
    }

    /// Writes everything that came by into a file of the classic format, IP packets without a frame.
    fn end(self, to: &Path) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, RAW_IP] {
            file.extend(u32::to_le_bytes(word));
        }
        for (number, (from, to, payload)) in self.captured.try_iter().enumerate() {
            let (SocketAddr::V4(from), SocketAddr::V4(to)) = (from, to) else { panic!("not over IPv4") };
            let (ip, udp) = ((28 + payload.len()) as u16, (8 + payload.len()) as u16);
            for word in [1, number as u32, u32::from(ip), u32::from(ip)] {
                file.extend(u32::to_le_bytes(word));
            }
            // RFC 791: version and length of the header, .., time to live, UDP; then RFC 768. Nobody looks at the check sums.
            let [high, low] = ip.to_be_bytes();
            file.extend([0x45, 0, high, low, 0, 0, 0x40, 0, 64, 17, 0, 0]);
            file.extend(from.ip().octets().into_iter().chain(to.ip().octets()));
            for half in [from.port(), to.port(), udp, 0] {
                file.extend(half.to_be_bytes());
            }
            file.extend(payload);
        }
        fs::write(to, file).unwrap();
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    socket
}

#[test]
fn a_captured_copy_is_read_with_its_keys_and_its_headers_without() {
    let (server, client) = (Bench::new(), Bench::new());
    let source = server.file("export/file", LEN);
    let root = format!("pub={}", source.parent().unwrap().display());
    let daemon = Daemon::start(&server, &client, &[root]);
    let tap = Tap::before(daemon.address.parse().unwrap());
    client.haul(["key", "trust", &tap.address.to_string(), &daemon.key]).expect(0);
    let url = format!("haul://{}/pub/file", tap.address);
    let copied = client.command(["cp", &url, "copied"]).env("HAUL_KEYLOG", client.path("keys")).output().unwrap();
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    assert_eq!(fs::read(client.path("copied")).unwrap(), noise(LEN));
    tap.end(&client.path("pcap"));

    let opened = client.haul(["lab", "decode", "pcap", "--keys", "keys"]).expect(0).text();
    assert!(!opened.contains("sealed") && !opened.contains("something else"), "not everything was opened: {opened}");
    assert!(
        opened.lines().next().unwrap().contains("handshake") && opened.contains("[Ack(") || opened.contains(", Ack("),
        "{opened}"
    );
    let carried: usize =
        opened.lines().filter_map(|line| line.strip_suffix(" bytes")?.rsplit_once(' ')?.1.parse::<usize>().ok()).sum();
    assert!(carried > LEN, "{carried} bytes of {LEN}: {opened}");

    let closed = client.haul(["lab", "decode", "pcap"]).expect(0).text();
    let headers: Vec<Seen> = closed.lines().filter_map(decoded).collect();
    assert_eq!(headers, opened.lines().filter_map(decoded).collect::<Vec<_>>());
    assert!(closed.lines().filter(|line| line.contains(" number ")).all(|line| line.contains("sealed")), "{closed}");
    let furthest = headers.iter().filter_map(|(.., data)| data.map(|(_, offset)| offset)).max();
    assert!(furthest.is_some_and(|offset| offset > LEN as u64 / 2), "of what was sent {furthest:?} is the last: {closed}");
    dissector_agrees(&client.path("pcap"), &headers);
}

/// That Wireshark shows the same with the script, on a port that is not haul's own: it knows the connection by its first packet.
fn dissector_agrees(capture: &Path, headers: &[Seen]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/haul.lua");
    let fields = ["haul.destination", "haul.number", "haul.stream", "haul.offset"];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(capture).arg("-X").arg(format!("lua_script:{script}"));
    tshark.args(["-Y", "haul.number", "-T", "fields", "-E", "separator=,"]).args(fields.iter().flat_map(|field| ["-e", field]));
    let Ok(shown) = tshark.output() else {
        return skip::skip("the dissector is not tried: tshark is not installed (make setup)");
    };
    let (text, said) = (String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&shown.stderr));
    assert!(shown.status.success() && !said.contains("Lua"), "{said}");
    let seen: Vec<Seen> = text.lines().map(|line| dissected(line).unwrap_or_else(|| panic!("{line}"))).collect();
    assert_eq!(seen, headers, "{said}");
}

/// Of a line of `decode`: `.. to 0e66d1f3 path 0 epoch 0 number 9 stream 4 offset 12720 ..`
fn decoded(line: &str) -> Option<Seen> {
    let words: Vec<&str> = line.split(' ').collect();
    let after = |name: &str| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1));
    let data = || Some((after("stream")?.parse().ok()?, after("offset")?.parse().ok()?));
    Some((u32::from_str_radix(after("to")?, 16).ok()?, after("number")?.parse().ok()?, data()))
}

/// Of a line of tshark's: `0x0e66d1f3,9,4,12720`
fn dissected(line: &str) -> Option<Seen> {
    let values: Vec<&str> = line.split(',').collect();
    let [destination, number, stream, offset] = values[..] else { return None };
    let data = stream.parse().ok().zip(offset.parse().ok());
    Some((u32::from_str_radix(destination.strip_prefix("0x")?, 16).ok()?, number.parse().ok()?, data))
}

/// LINKTYPE_RAW of <https://www.tcpdump.org/linktypes.html>.
const RAW_IP: u32 = 101;

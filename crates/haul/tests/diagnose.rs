//! What is logged for who looks for a fault: keys that open captured packets, and a trace. Both are of a whole process: so this test is one of its own.

use std::io::{self, Read as _, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use haul::{ClientConfig, Endpoint, Identity, PeerTrust, ServerConfig, diagnose};
use haul_inspect::{Content, Inspector, Secrets};
use haul_proto::crypto::Role;
use haul_proto::wire::{Frame, Header};

/// What was written to it, shared with whoever writes.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no panic").clone()).expect("text")
    }
}

/// Passes datagrams between one client and a server, and keeps a copy of each.
struct Tap {
    client_side: UdpSocket,
    captured: Arc<Mutex<Vec<Vec<u8>>>>,
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Tap {
    fn start(server: SocketAddr) -> Self {
        let (client_side, server_side) = (socket(), socket());
        let (captured, stop) = (Arc::<Mutex<Vec<Vec<u8>>>>::default(), Arc::<AtomicBool>::default());
        let client = Arc::new(Mutex::new(None));
        let forward = |from: &UdpSocket, to: &UdpSocket, outward: bool| {
            let (from, to) = (from.try_clone().expect("a descriptor"), to.try_clone().expect("a descriptor"));
            let (captured, stop, client) = (captured.clone(), stop.clone(), client.clone());
            thread::spawn(move || {
                let mut room = vec![0; 65_536];
                while !stop.load(Ordering::Relaxed) {
                    let Ok((len, peer)) = from.recv_from(&mut room) else { continue };
                    captured.lock().expect("no panic").push(room[..len].to_vec());
                    let mut client = client.lock().expect("no panic");
                    if outward {
                        *client = Some(peer);
                    }
                    let target = if outward { Some(server) } else { *client };
                    target.map(|target| to.send_to(&room[..len], target));
                }
            })
        };
        let threads = vec![forward(&client_side, &server_side, true), forward(&server_side, &client_side, false)];
        Self { client_side, captured, stop, threads }
    }

    /// Everything that came by.
    fn end(self) -> Vec<Vec<u8>> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        std::mem::take(&mut *self.captured.lock().expect("no panic"))
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a limit");
    socket
}

#[test]
fn captured_packets_open_with_the_logged_keys_and_the_trace_tells_of_them() {
    let (keys, trace) = (Log::default(), Log::default());
    assert!(diagnose::log_keys(Box::new(keys.clone())) && diagnose::trace(Box::new(trace.clone())));
    assert!(!diagnose::log_keys(Box::new(keys.clone())) && !diagnose::trace(Box::new(trace.clone())));

    let identity = Identity::generate();
    let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
    let server = Endpoint::listen("127.0.0.1:0".parse().expect("an address"), ServerConfig::new(identity, PeerTrust::Anyone))
        .expect("listens");
    let tap = Tap::start(server.local_addr());
    let client = Endpoint::bind("127.0.0.1:0".parse().expect("an address")).expect("binds");
    let near = client.connect(tap.client_side.local_addr().expect("bound"), ClientConfig::new(trust)).expect("connects");
    let far = server.accept_timeout(Duration::from_secs(20)).expect("listens").expect("in time");
    let mut send = near.open_uni().expect("a stream");
    send.write_all(b"a secret of the user").expect("writes");
    send.finish().expect("finishes");
    let mut heard = Vec::new();
    far.accept_uni().expect("a stream").read_to_end(&mut heard).expect("reads");
    send.wait_acknowledged().expect("arrives");
    near.close(7, "enough");
    far.closed();
    let captured = tap.end();

    let text = keys.text();
    let secrets: Vec<Secrets> = text.lines().map(|line| line.parse().expect("a line of secrets")).collect();
    // Both ends are in this process, and have the same keys.
    assert_eq!(secrets.len(), 2, "{text}");
    assert_eq!(secrets[0], secrets[1]);
    let inspector = Inspector::new(secrets[0].clone());
    let packets: Vec<&Vec<u8>> = captured.iter().filter(|packet| Header::parse(packet).is_some()).collect();
    let opened: Vec<_> = packets.iter().map(|packet| inspector.open(packet).expect("every packet opens")).collect();
    let data = |content: &Content| matches!(content, Content::Data(bytes) if bytes == b"a secret of the user");
    assert!(opened.iter().any(|packet| packet.from == Role::Client && data(&packet.content)), "{opened:?}");
    let acks = |content: &Content| matches!(content, Content::Frames(frames) if frames.iter().any(|frame| matches!(frame, Frame::Ack(_))));
    assert!(opened.iter().any(|packet| packet.from == Role::Server && acks(&packet.content)), "{opened:?}");
    let seen = |needle: &[u8]| captured.iter().any(|packet| packet.windows(needle.len()).any(|window| window == needle));
    assert!(!seen(b"a secret of the user"), "in clear on the wire");

    let events: Vec<serde_json::Value> = trace.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for id in [secrets[0].client, secrets[0].server].map(|id| format!("{:08x}", id.0)) {
        let of: Vec<_> = events.iter().filter(|event| event["id"] == *id).collect();
        assert_eq!(of.first().map(|event| &event["event"]), Some(&"connected".into()), "{events:?}");
        assert!(of.iter().any(|event| event["event"] == "closed"), "{events:?}");
        assert!(
            of.iter().all(|event| event["rtt_s"].is_f64() && event["window_bytes"].is_u64() && event["algorithm"].is_string())
        );
    }
}

//! Flows over the kernel's TCP: a connection a stream.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_peer::TcpInfo;

use super::info::{congestion_of, sample, sent_once};
use super::{Event, Events, Flow, Portions, Quota, incompressible};

use crate::clock;
use crate::plan::Plan;
use crate::sample::PathSample;

/// Sends on connections.
pub struct TcpSender {
    streams: Vec<Arc<TcpStream>>,
    stopped: Arc<AtomicBool>,
    started: Instant,
}

impl TcpSender {
    /// Starts to send.
    pub fn start(streams: Vec<TcpStream>, plan: &Plan, events: &Events) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let quota = Arc::new(Quota::new(plan));
        let source = Arc::new(incompressible(plan.block()));
        let streams: Vec<_> = streams.into_iter().map(Arc::new).collect();
        for stream in &streams {
            let (stream, source, events) = (Arc::clone(stream), Arc::clone(&source), events.clone());
            let portions = Portions::new(&quota, plan, &stopped);
            let stopped = Arc::clone(&stopped);
            thread::spawn(move || {
                let sent = send(&stream, &source, portions, &stopped);
                if !stopped.load(Ordering::Acquire) {
                    let _ = events.send(match sent {
                        Ok(()) => Event::StreamEnded,
                        // The receiver has measured enough.
                        Err(error) if is_gone(&error) => Event::StreamEnded,
                        Err(error) => Event::Failed(format!("TCP: {error}")),
                    });
                }
            });
        }
        Self { streams, stopped, started: clock::now() }
    }
}

fn send(mut stream: &TcpStream, source: &[u8], mut portions: Portions, stopped: &AtomicBool) -> io::Result<()> {
    while let Some(len) = portions.next(source.len()) {
        stream.write_all(source.get(..len).unwrap_or(source))?;
    }
    if stopped.load(Ordering::Acquire) {
        return Ok(());
    }
    stream.shutdown(Shutdown::Write)?;
    // The receiver closes its side when it has all.
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

impl Flow for TcpSender {
    fn bytes(&self) -> Vec<u64> {
        self.streams.iter().map(|stream| TcpInfo::of(stream).map_or(0, |info| sent_once(&info))).collect()
    }

    fn paths(&self) -> Vec<PathSample> {
        let elapsed = clock::now() - self.started;
        self.streams.iter().map(|stream| TcpInfo::of(stream).map(|info| sample(&info, elapsed)).unwrap_or_default()).collect()
    }

    fn congestion(&self) -> Option<String> {
        self.streams.first().and_then(|stream| congestion_of(stream))
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        end_at_once(&self.streams);
    }
}

/// Receives on connections and drops what comes.
pub struct TcpReceiver {
    streams: Vec<Arc<TcpStream>>,
    counts: Vec<Arc<AtomicU64>>,
    stopped: Arc<AtomicBool>,
}

impl TcpReceiver {
    /// Starts to receive.
    pub fn start(streams: Vec<TcpStream>, plan: &Plan, events: &Events) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let streams: Vec<_> = streams.into_iter().map(Arc::new).collect();
        let counts: Vec<_> = streams.iter().map(|_| Arc::new(AtomicU64::new(0))).collect();
        let buffer_bytes = (plan.block_bytes as usize).max(RECEIVE_BYTES);
        for (stream, count) in streams.iter().zip(&counts) {
            let (stream, count) = (Arc::clone(stream), Arc::clone(count));
            let (stopped, events) = (Arc::clone(&stopped), events.clone());
            thread::spawn(move || {
                let received = receive(&stream, &count, buffer_bytes, &events);
                if !stopped.load(Ordering::Acquire) {
                    let _ = events.send(match received {
                        Ok(()) => Event::StreamEnded,
                        Err(error) if is_gone(&error) => Event::StreamEnded,
                        Err(error) => Event::Failed(format!("TCP: {error}")),
                    });
                }
            });
        }
        Self { streams, counts, stopped }
    }
}

fn receive(mut stream: &TcpStream, count: &AtomicU64, buffer_bytes: usize, events: &Events) -> io::Result<()> {
    let mut buffer = vec![0; buffer_bytes];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => {
                // The sender may have gone already: all has come, whatever this says.
                let _ = stream.shutdown(Shutdown::Both);
                return Ok(());
            }
            Ok(read) => {
                if count.fetch_add(read as u64, Ordering::Relaxed) == 0 {
                    let _ = events.send(Event::Begin);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl Flow for TcpReceiver {
    fn bytes(&self) -> Vec<u64> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        end_at_once(&self.streams);
    }
}

/// Whether the other end has closed the connection, in whichever way it shows.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected)
}

/// What is still in the buffers is dropped, so that it does not disturb whatever is measured next.
fn end_at_once(streams: &[Arc<TcpStream>]) {
    for stream in streams {
        let _ = socket2::SockRef::from(&**stream).set_linger(Some(Duration::ZERO));
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// What is read at once, at least.
const RECEIVE_BYTES: usize = 256 << 10;

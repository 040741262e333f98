//! How evenly trains arrive: watches UDP packets on a network interface, by the kernel's own time stamps, and prints the gaps between them.
//!
//! A train that the kernel carries whole (segmentation offload, receive offload) is seen once. Needs root (a packet socket). Run it beside a
//! transfer, on `lo` or on a host's device in the lab:
//!
//!     gaps --interface lo --port 5001 [--seconds N]
//!
//! Trains that follow each other within `--burst` microseconds (default 60) are one burst; gaps are between the starts of bursts. `late` is how far the
//! bytes that have arrived are behind or before a steady flow of the mean rate.

use std::io;
use std::time::Duration;

use haul_netdev::PacketSocket;

/// What arrived at once.
#[derive(Clone, Copy)]
struct Train {
    at_ns: u64,
    bytes: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut interface, mut port, mut seconds, mut burst_us) = ("lo".to_owned(), 5001u16, 3.0, 60);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
        match arg.as_str() {
            "--interface" => interface = value,
            "--port" => port = value.parse()?,
            "--seconds" => seconds = value.parse()?,
            "--burst" => burst_us = value.parse()?,
            _ => return Err(format!("unknown argument {arg}").into()),
        }
    }
    let socket = PacketSocket::watcher(&interface, Duration::from_millis(200))?;
    let trains = watch(&socket, port, Duration::from_secs_f64(seconds))?;
    // The start, with its handshake and its search for the packet size, is left out.
    let steady: Vec<Train> = trains.into_iter().filter(|train| train.bytes > 1000).skip(50).collect();
    report(&steady, burst_us * 1000);
    Ok(())
}

fn watch(socket: &PacketSocket, port: u16, time: Duration) -> io::Result<Vec<Train>> {
    let mut trains: Vec<Train> = Vec::with_capacity(1 << 20);
    let mut head = [0u8; 80];
    loop {
        let Some(seen) = socket.see(&mut head)? else {
            if trains.is_empty() {
                continue;
            }
            return Ok(trains);
        };
        let packet = &head[ETHERNET..];
        let header = usize::from(packet[0] & 15) * 4;
        let to = packet.get(header + 2..header + 4).map(|port| u16::from_be_bytes([port[0], port[1]]));
        // On loopback each packet is seen on its way out and on its way in.
        let foreign = head[12..14] != IPV4 || packet[9] != UDP || to != Some(port);
        let Some(payload) = seen.bytes.checked_sub(ETHERNET + header + 8).filter(|_| !seen.outgoing && !foreign) else {
            continue;
        };
        let at_ns = u64::try_from(seen.at.as_nanos()).unwrap_or(u64::MAX);
        trains.push(Train { at_ns, bytes: payload as u64 });
        if trains.first().is_some_and(|first| u128::from(at_ns.saturating_sub(first.at_ns)) > time.as_nanos()) {
            return Ok(trains);
        }
    }
}

fn report(trains: &[Train], burst_ns: u64) {
    let [first, .., last] = trains else {
        println!("too few trains");
        return;
    };
    let bytes: u64 = trains.iter().map(|train| train.bytes).sum();
    let rate = (bytes - last.bytes) as f64 / (last.at_ns - first.at_ns) as f64;
    let (mut starts, mut sizes, mut late) = (vec![first.at_ns], vec![first.bytes], Vec::new());
    let mut before = 0;
    for pair in trains.windows(2) {
        before += pair[0].bytes;
        if pair[1].at_ns - pair[0].at_ns > burst_ns {
            starts.push(pair[1].at_ns);
            sizes.push(0);
            late.push((pair[1].at_ns - first.at_ns) as f64 / 1e3 - before as f64 / rate / 1e3);
        }
        *sizes.last_mut().unwrap_or(&mut 0) += pair[1].bytes;
    }
    let mut gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e3).collect();
    let middle = percentile(&mut late.clone(), 50.0);
    let mut late: Vec<f64> = late.iter().map(|late| (late - middle).abs()).collect();
    let mut sizes: Vec<f64> = sizes.iter().map(|&bytes| bytes as f64 / 1472.0).collect();
    println!(
        "{:.0} Mbit/s in {} trains, {} bursts of {:.0} packets (p99 {:.0}); gap us: p1 {:.0}, p10 {:.0}, p50 {:.0}, p90 {:.0}, p99 {:.0}, p99.9 {:.0}; off a steady flow by us: p50 {:.0}, p90 {:.0}, p99 {:.0}",
        rate * 8e3,
        trains.len(),
        starts.len(),
        percentile(&mut sizes, 50.0),
        percentile(&mut sizes, 99.0),
        percentile(&mut gaps, 1.0),
        percentile(&mut gaps, 10.0),
        percentile(&mut gaps, 50.0),
        percentile(&mut gaps, 90.0),
        percentile(&mut gaps, 99.0),
        percentile(&mut gaps, 99.9),
        percentile(&mut late, 50.0),
        percentile(&mut late, 90.0),
        percentile(&mut late, 99.0),
    );
}

fn percentile(values: &mut [f64], percent: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let index = ((values.len() as f64 - 1.0) * percent / 100.0).round() as usize;
    values.get(index).copied().unwrap_or(f64::NAN)
}

const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const UDP: u8 = 17;

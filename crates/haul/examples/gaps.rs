//! How evenly trains arrive: watches UDP packets on a network interface, by the kernel's own time stamps, and prints the gaps between them.
//!
//! A train that the kernel carries whole (segmentation offload, receive offload) is seen once. Needs root (a packet socket). Run it beside a
//! transfer, on `lo` or on a host's device in the lab:
//!
//!     gaps --interface lo --port 5001 [--seconds N]
//!
//! Trains that follow each other within `--burst` microseconds (default 60) are one burst; gaps are between the starts of bursts. `late` is how far the
//! bytes that have arrived are behind or before a steady flow of the mean rate.

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("error: packet sockets are Linux's");
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::ffi::CString;
    use std::io;
    use std::mem::{size_of, zeroed};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::time::Duration;

    /// What arrived at once.
    #[derive(Clone, Copy)]
    struct Train {
        at_ns: u64,
        bytes: u64,
    }

    pub fn main() -> Result<(), Box<dyn Error>> {
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
        let socket = open(&interface)?;
        let trains = watch(&socket, port, Duration::from_secs_f64(seconds))?;
        // The start, with its handshake and its search for the packet size, is left out.
        let steady: Vec<Train> = trains.into_iter().filter(|train| train.bytes > 1000).skip(50).collect();
        report(&steady, burst_us * 1000);
        Ok(())
    }

    fn open(interface: &str) -> io::Result<OwnedFd> {
        // ETH_P_IP in network order, as a packet socket wants it.
        let protocol = (libc::ETH_P_IP as u16).to_be();
        // SAFETY: creates a descriptor that nobody else has.
        let socket = unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, i32::from(protocol));
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let name = CString::new(interface)?;
        // SAFETY: the name ends with a zero.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        // SAFETY: all zero is a valid address.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = index as i32;
        // SAFETY: the address has the size told.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32) };
        if index == 0 || bound != 0 {
            return Err(io::Error::last_os_error());
        }
        let timeout = libc::timeval { tv_sec: 0, tv_usec: 200_000 };
        set(&socket, libc::SO_TIMESTAMPNS, &1i32)?;
        set(&socket, libc::SO_RCVBUFFORCE, &(64i32 << 20))?;
        set(&socket, libc::SO_RCVTIMEO, &timeout)?;
        Ok(socket)
    }

    fn set<T>(socket: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
        // SAFETY: the value has the size told.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                std::ptr::from_ref(value).cast(),
                size_of::<T>() as u32,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn watch(socket: &OwnedFd, port: u16, time: Duration) -> io::Result<Vec<Train>> {
        let mut trains: Vec<Train> = Vec::with_capacity(1 << 20);
        let (mut head, mut control) = ([0u8; 64], [0u64; 16]);
        loop {
            // SAFETY: all zero is a valid address and a valid message header.
            let (mut from, mut message): (libc::sockaddr_ll, libc::msghdr) = unsafe { (zeroed(), zeroed()) };
            let mut iov = libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: head.len() };
            message.msg_name = (&raw mut from).cast();
            message.msg_namelen = size_of::<libc::sockaddr_ll>() as u32;
            message.msg_iov = &raw mut iov;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(&control);
            // MSG_TRUNC: the length is that of the packet, whatever fits.
            // SAFETY: the header names live buffers of the sizes told.
            let len = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
            if len < 0 {
                let error = io::Error::last_os_error();
                match error.kind() {
                    io::ErrorKind::WouldBlock if trains.is_empty() => continue,
                    io::ErrorKind::WouldBlock => return Ok(trains),
                    io::ErrorKind::Interrupted => continue,
                    _ => return Err(error),
                }
            }
            let header = usize::from(head[0] & 15) * 4;
            let to = head.get(header + 2..header + 4).map(|port| u16::from_be_bytes([port[0], port[1]]));
            // On loopback each packet is seen on its way out and on its way in.
            let outgoing = from.sll_pkttype == libc::PACKET_OUTGOING;
            if outgoing || head[9] != libc::IPPROTO_UDP as u8 || to != Some(port) {
                continue;
            }
            // SAFETY: the kernel has filled in the header.
            let Some(at_ns) = (unsafe { time_stamp(&message) }) else { continue };
            trains.push(Train { at_ns, bytes: len as u64 - header as u64 - 8 });
            if trains.first().is_some_and(|first| at_ns - first.at_ns > time.as_nanos() as u64) {
                return Ok(trains);
            }
        }
    }

    /// # Safety
    /// The header must be as `recvmsg` left it.
    unsafe fn time_stamp(message: &libc::msghdr) -> Option<u64> {
        // SAFETY: by the contract the control messages are valid; the kind says what is behind them.
        unsafe {
            let control = libc::CMSG_FIRSTHDR(message).as_ref()?;
            if control.cmsg_level != libc::SOL_SOCKET || control.cmsg_type != libc::SO_TIMESTAMPNS {
                return None;
            }
            let time = libc::CMSG_DATA(control).cast::<libc::timespec>().read_unaligned();
            Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
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
}

//! What the border to C costs: blocks and streams from memory to memory over loopback, from C and from Rust, in turns.
//!
//!     cargo run --release -p haul-ffi --example speed -- [ROUNDS [SECONDS]]
//!
//! Each turn is a process of its own: this program again, or `examples/c/speed.c`, compiled here against the library that cargo has built. Prints the rate of each turn, the medians, and
//! their ratio. `speed twin DIRECTORY` only compiles the program in C there, and `speed turn blocks|stream SECONDS` is one turn in Rust: `bench/c-speed.py` takes the turns by itself.

use std::env;
use std::error::Error;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use haul::{ClientConfig, Connection, Endpoint, Identity, PeerTrust, ServerConfig};

type Failure = Box<dyn Error + Send + Sync>;

const PIECE: usize = 1 << 20;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [turn, kind, seconds] = arguments.as_slice()
        && turn == "turn"
    {
        let (bytes, time) = measure(kind == "blocks", Duration::from_secs_f64(seconds.parse()?))?;
        println!("{bytes} {}", time.as_nanos());
        return Ok(());
    }
    if let [twin, directory] = arguments.as_slice()
        && twin == "twin"
    {
        println!("{}", compile(Path::new(directory))?.display());
        return Ok(());
    }
    let rounds: usize = arguments.first().map_or(Ok(5), |rounds| rounds.parse())?;
    let seconds = arguments.get(1).map_or("2", String::as_str);
    let directory = tempfile::tempdir()?;
    let from_c = compile(directory.path())?;
    for kind in ["blocks", "stream"] {
        let (mut in_rust, mut in_c) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            in_rust.push(turn(Command::new(env::current_exe()?).args(["turn", kind, seconds]))?);
            in_c.push(turn(Command::new(&from_c).args([kind, seconds]).env("LD_LIBRARY_PATH", directory.path()))?);
        }
        let shown = |rates: &[f64]| rates.iter().map(|rate| format!("{:.2}", rate / 1e9)).collect::<Vec<_>>().join(" ");
        println!("{kind}: Rust {} Gbit/s", shown(&in_rust));
        println!("{kind}: C    {} Gbit/s", shown(&in_c));
        let (rust, c) = (median(&mut in_rust), median(&mut in_c));
        println!("{kind}: medians {:.2} and {:.2} Gbit/s, C / Rust = {:.3}", rust / 1e9, c / 1e9, c / rust);
    }
    Ok(())
}

/// The program in C, with the library beside it.
fn compile(directory: &Path) -> Result<PathBuf, Failure> {
    let program = env::current_exe()?;
    let built = program.ancestors().skip(2).map(|dir| [dir.join("libhaul_ffi.so"), dir.join("deps/libhaul_ffi.so")]);
    // Of an earlier build there may be one in the other place.
    let found = built.flatten().filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)));
    let (_, library) = found.max().ok_or("libhaul_ffi.so is not built")?;
    symlink(&library, directory.join("libhaul.so"))?;
    let soname = concat!("libhaul.so.", env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));
    symlink(&library, directory.join(soname))?;
    let (root, made) = (Path::new(env!("CARGO_MANIFEST_DIR")), directory.join("speed"));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O2", "-pthread", "-I"]).arg(root.join("include")).arg("-o").arg(&made);
    let status = compiler.arg(root.join("examples/c/speed.c")).arg("-L").arg(directory).arg("-lhaul").status()?;
    if status.success() { Ok(made) } else { Err("examples/c/speed.c does not compile".into()) }
}

/// The rate of a turn, in bit/s.
fn turn(command: &mut Command) -> Result<f64, Failure> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let text = String::from_utf8(output.stdout)?;
    let (bytes, nanoseconds) = text.trim().split_once(' ').ok_or("a turn prints bytes and nanoseconds")?;
    Ok(bytes.parse::<f64>()? * 8e9 / nanoseconds.parse::<f64>()?)
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}

/// What `speed.c` does.
#[expect(clippy::disallowed_methods, reason = "a measurement takes the time")]
fn measure(blocks: bool, time: Duration) -> Result<(u64, Duration), Failure> {
    let identity = Identity::generate();
    let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
    let server = Endpoint::listen("127.0.0.1:0".parse()?, ServerConfig::new(identity, PeerTrust::Anyone))?;
    let near = Endpoint::bind("127.0.0.1:0".parse()?)?.connect(server.local_addr(), ClientConfig::new(trust))?;
    let far = server.accept()?;
    let begun = Instant::now();
    let receiver = far.clone();
    let receiving = thread::spawn(move || if blocks { receive_blocks(&receiver) } else { receive_stream(&receiver) });
    if blocks {
        let (sender, data) = (near.open_blocks()?, vec![7; PIECE]);
        while begun.elapsed() < time {
            let mut block = sender.buffer();
            block.extend_from_slice(&data);
            sender.send(block)?;
        }
        sender.finish()?;
    } else {
        let (mut stream, data) = (near.open_uni()?, vec![7; PIECE]);
        while begun.elapsed() < time {
            stream.write_all(&data)?;
        }
        stream.finish()?;
        stream.wait_acknowledged()?;
    }
    let bytes = receiving.join().map_err(|_| "the receiver panicked")??;
    let elapsed = begun.elapsed();
    // The last handle closes the connection: not before the sender has its acknowledgements.
    drop(far);
    Ok((bytes, elapsed))
}

fn receive_blocks(connection: &Connection) -> Result<u64, Failure> {
    let (receiver, mut bytes) = (connection.accept_blocks()?, 0);
    while let Some(block) = receiver.recv()? {
        bytes += block.len() as u64;
    }
    Ok(bytes)
}

fn receive_stream(connection: &Connection) -> Result<u64, Failure> {
    let (mut stream, mut buffer, mut bytes) = (connection.accept_uni()?, vec![0; PIECE], 0);
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(bytes),
            read => bytes += read as u64,
        }
    }
}

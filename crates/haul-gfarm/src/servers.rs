//! The storage servers of a Gfarm: their load, and the room on each. Asked of Gfarm's own programs, whose output is for people and for scripts: `gfhost -l` (load, or that it does not answer) and `gfdf` (room).
//! libgfarm has functions for it too, with structures that are its own and change.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use haul_units::{Bytes, Cancel};

/// How long a program may take: Gfarm itself gives a storage server a few seconds to tell its load.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often one that waits looks whether it is still to.
const LOOK: Duration = Duration::from_millis(20);
/// What is read of a program: 10,000 servers have a tenth of it.
const MOST: u64 = 8 << 20;
/// gfdf counts in these.
const BLOCK: u64 = 1024;

/// A storage server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StorageServer {
    /// Its name.
    pub host: String,
    /// What its administrator calls its kind of machine.
    pub architecture: String,
    /// Processors, as its administrator has said.
    pub processors: u32,
    /// How many processes wanted a processor, over the last minute; none where it does not answer.
    pub load1: Option<f64>,
    /// What is in use of its disk; none where the metadata server does not know.
    pub used: Option<Bytes>,
    /// What may still be written there.
    pub free: Option<Bytes>,
}

/// All storage servers, in the order of Gfarm's own list. An error where its programs are missing, end with one, or take too long.
pub fn storage_servers(cancel: &Cancel) -> io::Result<Vec<StorageServer>> {
    let (loads, rooms) = thread::scope(|scope| {
        let loads = scope.spawn(|| printed("gfhost", &["-l"], cancel));
        let rooms = printed("gfdf", &[], cancel);
        (loads.join().unwrap_or_else(|_| Err(io::Error::other("the thread that asks has failed"))), rooms)
    });
    // gfdf fails where no server is up: then there is no room to tell.
    Ok(joined(&loads?, &rooms.unwrap_or_default()))
}

/// What a program prints.
fn printed(program: &'static str, arguments: &[&str], cancel: &Cancel) -> io::Result<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))?;
    let mut output = child.stdout.take().ok_or_else(|| io::Error::other("no pipe to the program"))?.take(MOST);
    let (tell, told) = mpsc::channel();
    let reading = thread::spawn(move || {
        let mut text = Vec::new();
        let read = output.read_to_end(&mut text);
        let _ = tell.send(read.map(|_| String::from_utf8_lossy(&text).into_owned()));
    });
    let mut looks = PATIENCE.as_nanos() / LOOK.as_nanos();
    let text = loop {
        match told.recv_timeout(LOOK) {
            Ok(text) => break text,
            Err(RecvTimeoutError::Timeout) if looks > 0 && !cancel.is_cancelled() => looks -= 1,
            Err(_) => {
                // Its end ends the reading.
                let _ = child.kill();
                break Err(io::Error::new(io::ErrorKind::TimedOut, format!("{program} does not end")));
            }
        }
    };
    let ended = child.wait()?;
    let _ = reading.join();
    let text = text?;
    if ended.success() { Ok(text) } else { Err(io::Error::other(format!("{program}: {ended}"))) }
}

/// Of `gfhost -l`, lines like `0.41/0.30/0.22 s x86_64-linux 8 store01.site 600 0(10.0.0.1)`, with `-.--` or `x.xx` as the load of who does not answer; of `gfdf`, lines of blocks, used, free, percent and host.
fn joined(loads: &str, rooms: &str) -> Vec<StorageServer> {
    let room = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, used, free, _, host] = fields[..] else { return None };
        let bytes = |text: &str| Some(Bytes(text.parse::<u64>().ok()?.checked_mul(BLOCK)?));
        Some((host.to_owned(), (bytes(used)?, bytes(free)?)))
    };
    let rooms: HashMap<String, (Bytes, Bytes)> = rooms.lines().filter_map(room).collect();
    let server = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [loads, _, architecture, processors, host, ..] = fields[..] else { return None };
        let (used, free) = rooms.get(host).copied().unzip();
        Some(StorageServer {
            host: host.to_owned(),
            architecture: architecture.to_owned(),
            processors: processors.parse().ok()?,
            load1: loads.split('/').next().and_then(|load| load.parse().ok()),
            used,
            free,
        })
    };
    loads.lines().filter_map(server).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gfarms_programs_print_is_understood() {
        let loads = "3.77/4.27/3.36 s amd64-linux 4 a.site 20650 0(10.0.0.1)\n-.--/-.--/-.-- - amd64-linux 1 b.site 20650 0(10.0.0.2)\n\
                     x.xx/x.xx/x.xx - arm 1 c.site 20650 0(10.0.0.3)\nnonsense\n";
        let rooms = "    1K-blocks          Used         Avail Use% Host\n     95501264      28924624      66576640  30% a.site\n\
                     18446744073709551615 18446744073709551615 18446744073709551615 30% c.site\n\
                     ----------------------------------------------\n     95501264      28924624      66576640  30% \n";
        let told = joined(loads, rooms);
        let a = StorageServer {
            host: "a.site".into(),
            architecture: "amd64-linux".into(),
            processors: 4,
            load1: Some(3.77),
            used: Some(Bytes(28_924_624 * 1024)),
            free: Some(Bytes(66_576_640 * 1024)),
        };
        assert_eq!(told[0], a);
        assert_eq!(told[1].load1, None);
        assert_eq!((&*told[2].host, told[2].load1, told[2].free), ("c.site", None, None));
        assert_eq!(told.len(), 3);
    }

    #[test]
    fn a_program_that_is_missing_fails_or_hangs_is_an_error() {
        let cancel = Cancel::new();
        assert_eq!(printed("no-program-of-this-name", &[], &cancel).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(printed("false", &[], &cancel).unwrap_err().to_string().starts_with("false: exit status"));
        assert_eq!(printed("echo", &["text"], &cancel).unwrap(), "text\n");
        cancel.cancel();
        assert_eq!(printed("sleep", &["1000"], &cancel).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}

//! `haul serve` on the far host.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::clock::{eventually, pause};
use crate::lab::Lab;
use crate::program::{Finished, Running};

const PORT: u16 = 7700;

/// The daemon; ends with this value, and prints what it said if that is because a test fails.
pub struct Daemon {
    running: Option<Running>,
    host: String,
}

impl Daemon {
    /// Starts it, exports `root` for reading and writing as `data`, owners and set-id bits included, and lets both ends know each other's key.
    pub fn start(lab: &Lab, root: &Path) -> Self {
        Self::introduce(lab);
        Self::start_known(lab, root)
    }

    /// The same on every address of the far host, with these further options.
    pub fn start_everywhere(lab: &Lab, root: &Path, options: &[&str]) -> Self {
        Self::introduce(lab);
        Self::start_at(lab, root, "[::]", options)
    }

    fn introduce(lab: &Lab) {
        let theirs = own_key(lab, &lab.far);
        let ours = own_key(lab, &lab.near);
        key(lab, &lab.far, &["authorize", &ours, "--name", "near"]);
        key(lab, &lab.near, &["trust", &lab.far.address, &theirs]);
    }

    /// Starts one whose clients know it already.
    fn start_known(lab: &Lab, root: &Path) -> Self {
        Self::start_at(lab, root, &lab.far.address, &[])
    }

    fn start_at(lab: &Lab, root: &Path, listen: &str, options: &[&str]) -> Self {
        let mut export = std::ffi::OsString::from("data=");
        export.push(root);
        export.push(":rw,owners");
        let host = lab.far.address.clone();
        let mut command = lab.haul(&lab.far);
        command.args(["serve", "--root"]).arg(export).args(["--listen", &format!("{listen}:{PORT}")]).args(options);
        let running = Running::start(command);
        let daemon = Self { running: Some(running), host };
        let listens = || {
            let output = lab.far.command("ss").args(["-Hlun", &format!("sport = :{PORT}")]).output();
            output.is_ok_and(|output| !output.stdout.is_empty())
        };
        assert!(eventually(Duration::from_secs(10), listens), "haul serve does not listen");
        daemon
    }

    /// The address of a file or directory below the exported root.
    pub fn url(&self, path: &str) -> String {
        format!("haul://{}/data/{path}", self.host)
    }

    /// Kills it, and starts another one in its place after `pause_for`.
    pub fn kill_and_start(mut self, lab: &Lab, root: &Path, pause_for: Duration) -> Self {
        let running = self.running.take().expect("it was started");
        running.signal(Signal::KILL);
        running.wait(Duration::from_secs(10));
        pause(pause_for);
        Self::start_known(lab, root)
    }

    /// Ends the daemon and returns what it printed.
    pub fn stop(mut self) -> Finished {
        self.terminate().expect("it was started")
    }

    fn terminate(&mut self) -> Option<Finished> {
        let running = self.running.take()?;
        running.signal(Signal::TERM);
        Some(running.wait(Duration::from_secs(10)))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let Some(running) = self.running.take() else { return };
        running.signal(Signal::TERM);
        pause(Duration::from_millis(500));
        running.signal(Signal::KILL);
        println!("the daemon: {}", running.wait(Duration::from_secs(5)));
    }
}

/// The fingerprint that `haul key show` prints on a host.
pub fn own_key(lab: &Lab, host: &crate::Host) -> String {
    let shown = key(lab, host, &["show"]);
    let found = shown.split_whitespace().find(|word| word.starts_with("SHA256:"));
    found.unwrap_or_else(|| panic!("no fingerprint in {shown}")).to_owned()
}

/// Runs `haul key` on a host and returns what it printed.
pub fn key(lab: &Lab, host: &crate::Host, args: &[&str]) -> String {
    let mut command = lab.haul(host);
    command.arg("key").args(args);
    let finished = Running::start(command).wait(Duration::from_secs(10)).expect(0);
    String::from_utf8_lossy(&finished.stdout).into_owned()
}

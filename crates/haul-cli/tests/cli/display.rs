//! What stands on a terminal in the end: a pair of pseudo-terminals, at whose far end a model of a screen obeys what the program writes.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::Signal;
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::{Bench, Daemon, signal};

const ROWS: u16 = 24;
/// What the terminal shows before the program starts.
const PROMPT: &str = "$ haul cp file far:";

struct Terminal {
    child: Child,
    master: File,
    parser: vt100::Parser,
}

const fn size(columns: u16) -> Winsize {
    Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Both ends of a new pseudo-terminal: the one that shows, and the program's.
fn pair(columns: u16) -> (OwnedFd, OwnedFd) {
    let (mut master, mut slave) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: two places for descriptors, and nothing else is given.
    let status = unsafe { libc::openpty(&raw mut master, &raw mut slave, none, none.cast(), none.cast()) };
    assert_eq!(status, 0, "a pseudo-terminal");
    // SAFETY: they are open, and nobody else's.
    let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    tcsetwinsize(&slave, size(columns)).unwrap();
    (master, slave)
}

impl Terminal {
    /// Runs the program with its standard error on a terminal of so many columns.
    fn start(bench: &Bench, args: &[&str], columns: u16) -> Self {
        let (master, slave) = pair(columns);
        let child = bench.command(args).env("TERM", "xterm").stderr(Stdio::from(slave)).spawn().unwrap();
        let mut parser = vt100::Parser::new(ROWS, columns, 0);
        parser.process(format!("{PROMPT}\r\n").as_bytes());
        Self { child, master: master.into(), parser }
    }

    /// The same with its standard output there.
    fn printing(bench: &Bench, args: &[&str], columns: u16) -> Self {
        let (master, slave) = pair(columns);
        let child = bench.command(args).env("TERM", "xterm").stdout(Stdio::from(slave)).spawn().unwrap();
        Self { child, master: master.into(), parser: vt100::Parser::new(2 * ROWS, columns, 0) }
    }

    /// Shows more of what is written; false at the end.
    fn shows_more(&mut self) -> bool {
        let mut bytes = [0; 4096];
        // EIO where nobody has the other end open any more.
        let count = self.master.read(&mut bytes).unwrap_or(0);
        self.parser.process(&bytes[..count]);
        count > 0
    }

    /// The rows of the screen: of two of which the first fills its width, the text makes one line.
    fn rows(&self) -> Vec<String> {
        let screen = self.parser.screen();
        screen.rows(0, screen.size().1).collect()
    }

    /// How many rows show how far it has come.
    fn progress_rows(&self) -> usize {
        self.rows().iter().filter(|row| row.contains(" % ") || row.contains("=>")).count()
    }

    /// Until the bar stands there.
    fn shows_a_bar(&mut self) {
        while !self.text().contains(" % ") {
            assert!(self.shows_more(), "it ended without a bar: {}", self.text());
        }
    }

    fn resized(&mut self, columns: u16) {
        tcsetwinsize(self.master.as_fd(), size(columns)).unwrap();
        self.parser.screen_mut().set_size(ROWS, columns);
    }

    fn text(&self) -> String {
        self.parser.screen().contents()
    }

    /// What stands there when it is over; the cursor must be at the beginning of a line.
    fn ended(mut self) -> (ExitStatus, Vec<String>) {
        while self.shows_more() {}
        let text = self.text();
        assert_eq!(self.parser.screen().cursor_position().1, 0, "{text}");
        assert!(!self.parser.screen().hide_cursor(), "the cursor is hidden: {text}");
        (self.child.wait().unwrap(), text.lines().map(|line| line.trim_end().to_owned()).collect())
    }
}

/// All that a program writes on its standard error, a terminal with these in its environment.
fn written(mut command: Command, environment: &[(&str, &str)]) -> String {
    let (master, slave) = pair(100);
    command.env("TERM", "xterm").envs(environment.iter().copied()).stderr(Stdio::from(slave));
    let mut child = command.spawn().unwrap();
    // The program's end of the terminal is open here too as long as there is a command that has it.
    drop(command);
    let (mut master, mut shown, mut bytes) = (File::from(master), Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = master.read(&mut bytes) {
        shown.extend_from_slice(&bytes[..count]);
    }
    let shown = String::from_utf8(shown).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{shown}");
    shown
}

/// A daemon, and a client with a file that takes some seconds at 16 Mbit/s.
fn slow_copy() -> (Bench, Bench, Daemon) {
    let (server, client) = (Bench::new(), Bench::new());
    let root = format!("home={}:rw", server.path("home").display());
    let daemon = Daemon::start(&server, &client, &[root]);
    client.file("file", 6 << 20);
    (server, client, daemon)
}

#[test]
fn an_interrupt_leaves_nothing_of_the_bar() {
    let (_server, client, daemon) = slow_copy();
    let mut terminal = Terminal::start(&client, &["cp", "-l", "16M", "file", &daemon.url("home/")], 100);
    terminal.shows_a_bar();
    signal(&terminal.child, Signal::INT);
    let (status, lines) = terminal.ended();
    assert_eq!(status.code(), Some(130), "{lines:#?}");
    let stopping = "stopping, and keeping what has arrived; interrupt again to end at once";
    let kept = "interrupted; what has arrived is kept, and the same command goes on from there";
    assert_eq!(lines, [PROMPT, stopping, kept]);
}

#[test]
fn a_terminal_that_becomes_narrow_keeps_nothing_of_the_bar_and_shows_all_that_is_said() {
    let (_server, client, daemon) = slow_copy();
    let mut terminal = Terminal::start(&client, &["cp", "-l", "16M", "file", &daemon.url("home/")], 110);
    terminal.shows_a_bar();
    terminal.resized(50);
    let (status, lines) = terminal.ended();
    assert_eq!(status.code(), Some(0), "{lines:#?}");
    assert!(lines.iter().all(|line| line.len() < 50), "{lines:#?}");
    let said = lines.iter().filter(|line| *line != PROMPT).map(|line| line.trim_start()).collect::<Vec<_>>().join(" ");
    assert!(said.starts_with("copied 1 file: 6.00 MiB in "), "{lines:#?}");
    assert!(said.ends_with(" Mbit/s; verified on arrival limited by the rate limit of 16.0 Mbit/s"), "{lines:#?}");
}

#[test]
fn a_narrow_terminal_breaks_lines_between_words_and_a_pipe_has_one() {
    let (_server, client, daemon) = slow_copy();
    let terminal = Terminal::start(&client, &["cp", "-v", "-l", "64M", "file", &daemon.url("home/a")], 60);
    let (status, lines) = terminal.ended();
    assert_eq!(status.code(), Some(0), "{lines:#?}");
    assert!(lines.iter().all(|line| line.len() < 60), "{lines:#?}");
    assert!(lines.iter().filter(|line| line.starts_with("path: RTT ") || line.starts_with("       ")).count() > 2, "{lines:#?}");
    let run = client.haul(["cp", "-v", "-l", "64M", "file", &daemon.url("home/b")]).expect(0);
    assert!(
        run.stderr
            .lines()
            .any(|line| line.starts_with("path: RTT ") && line.ends_with(" for its turn at the path's rate (pacing)")),
        "{}",
        run.stderr
    );
}

/// `ESC [ numbers m`, that is; others move the cursor.
fn is_coloured(text: &str) -> bool {
    text.split("\u{1b}[").skip(1).any(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m'))
}

/// See no-color.org.
#[test]
fn there_are_colours_on_a_terminal_unless_nobody_wants_them() {
    let (_server, client, daemon) = slow_copy();
    for (environment, coloured) in [(&[][..], true), (&[("NO_COLOR", "")], true), (&[("NO_COLOR", "1")], false)] {
        // A bar, and an error with its label.
        let copy = client.command(["cp", "-l", "24M", "missing", "file", &daemon.url("home/")]);
        let shown = written(copy, environment);
        let red = "\u{1b}[1;31merror:\u{1b}[0m";
        let label = if coloured { red } else { "error:" };
        assert!(shown.contains(&format!("{label} ")) && shown.contains(" % "), "{environment:?}: {shown:?}");
        assert_eq!(is_coloured(&shown.replace(red, "")), coloured, "{environment:?}: {shown:?}");
    }
}

#[test]
fn one_file_has_one_row_and_several_have_two() {
    for (files, rows) in [(&["file"][..], 1), (&["file", "other"], 2)] {
        let (_server, client, daemon) = slow_copy();
        client.file("other", 6 << 20);
        let target = daemon.url("home/");
        let mut terminal = Terminal::start(&client, &[&["cp", "-l", "16M"], files, &[&target]].concat(), 120);
        terminal.shows_a_bar();
        // The total's row tells the time that is left; that of one file ends with its name.
        let is_both = |row: &String| row.contains(" left  ") && row.trim_end().ends_with("  file");
        let (mut most, mut together) = (terminal.progress_rows(), false);
        while terminal.shows_more() {
            most = most.max(terminal.progress_rows());
            together |= terminal.rows().iter().any(is_both);
        }
        assert_eq!((most, together), (rows, rows == 1), "{}", terminal.text());
        let (status, lines) = terminal.ended();
        assert_eq!(status.code(), Some(0), "{lines:#?}");
        assert!(lines[0] == PROMPT && lines[1].starts_with("copied "), "a row is left: {lines:#?}");
        assert_eq!(lines.iter().filter(|line| line.contains(" % ")).count(), 0, "{lines:#?}");
    }
}

/// Where a server's row begins, however much of its name has room.
const SERVER: &str = "st";

#[test]
fn a_row_of_a_fleet_is_one_row_on_any_terminal_and_names_keep_both_ends() {
    let long = "storage-numbe..e.example.org";
    for (columns, server, has_file) in [(120, long, true), (80, long, false), (40, "storage..mple.org", false)] {
        let (server_place, client) = (Bench::new(), Bench::new());
        let root = format!("home={}:rw", server_place.path("home").display());
        let daemon = Daemon::start(&server_place, &client, &[root]);
        let name = "a-measurement-of-the-third-of-december-in-all-its-length-and-more.h5";
        for dir in ["home/one", "home/two"] {
            let path = server_place.file(&format!("{dir}/{name}"), 8 << 20);
            let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
            File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        }
        let entry = |dir: &str| format!("{} name=storage-number-{dir}.example.org\n", daemon.url(&format!("home/{dir}")));
        std::fs::write(client.path("hosts"), entry("one") + &entry("two")).unwrap();
        let mut terminal = Terminal::start(&client, &["fleet", "get", "-H", "@hosts", "-l", "24M", name, "got"], columns);
        let (mut most, mut seen, mut cut) = (0, false, false);
        while terminal.shows_more() {
            let rows = terminal.rows();
            let shown = |what: &str| rows.iter().filter(|row| row.starts_with(what)).count();
            // Besides these there is the row of all; what wraps makes one more.
            let drawn = rows.iter().filter(|row| !row.trim().is_empty() && row.trim_end() != PROMPT).count();
            assert!(shown(SERVER) == 0 || drawn <= shown(SERVER) + 1, "{columns} columns: {rows:#?}");
            most = most.max(shown(SERVER));
            seen |= rows.iter().any(|row| row.starts_with(server) && row.contains("  busy") && row.contains("bit/s"));
            cut |= rows.iter().any(|row| row.starts_with(server) && row.contains("  a-") && row.trim_end().ends_with("more.h5"));
        }
        let left = terminal.rows().iter().any(|row| row.contains("  servers "));
        assert!(seen && most == 2 && !left, "{columns} columns, {most} rows: {}", terminal.text());
        assert_eq!(cut, has_file, "{columns} columns");
        let (status, lines) = terminal.ended();
        assert_eq!(status.code(), Some(0), "{lines:#?}");
    }
}

#[test]
fn content_for_standard_output_has_no_bar_in_its_midst() {
    let (server, client, daemon) = slow_copy();
    std::fs::rename(client.path("file"), server.path("home/file")).unwrap();
    let (master, slave) = pair(100);
    let into = File::create(client.path("out")).unwrap();
    // Long enough for a bar, and over before a log would get its first line.
    let mut command = client.command(["cp", "-l", "32M", &daemon.url("home/file"), "-"]);
    let mut child = command.env("TERM", "xterm").stdout(into).stderr(Stdio::from(slave)).spawn().unwrap();
    // The program's end of the terminal is open here too as long as there is a command that has it.
    drop(command);
    let (mut master, mut shown, mut bytes) = (File::from(master), Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = master.read(&mut bytes) {
        shown.extend_from_slice(&bytes[..count]);
    }
    let shown = String::from_utf8(shown).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{shown}");
    assert!(!shown.contains('\u{1b}') && !shown.replace("\r\n", "").contains('\r'), "it drew: {shown:?}");
    assert!(shown.starts_with("copied 1 file: 6.00 MiB in ") && !shown.contains("=>"), "it told how far it was: {shown:?}");
    let same = std::fs::read(client.path("out")).unwrap() == std::fs::read(server.path("home/file")).unwrap();
    assert!(same, "what came on standard output is another content");
}

#[test]
fn what_perf_prints_fits_a_terminal_of_eighty_columns() {
    let bench = Bench::new();
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let server = bench.command(["perf", "-s", "-1", "-B", "127.0.0.1", "-p", &port]).stdout(Stdio::null()).spawn().unwrap();
    let _server = crate::support::Held(server);
    let terminal = Terminal::printing(&bench, &["perf", "-c", &format!("127.0.0.1:{port}"), "-t", "0.5", "-i", "0.1"], 80);
    let (status, lines) = terminal.ended();
    assert_eq!(status.code(), Some(0), "{lines:#?}");
    assert!(lines.iter().all(|line| line.len() < 80), "{lines:#?}");
    let limits = ["application", "window", "receiver", "pacing", "processor"];
    let whole = |line: &&String| line.starts_with("[  1]") && limits.iter().any(|limit| line.ends_with(limit));
    assert!(lines.iter().filter(whole).count() >= 5, "{lines:#?}");
    let waited = lines.iter().position(|line| line.starts_with("Waited for")).unwrap();
    let keyed = lines.iter().position(|line| line.starts_with("Connected to ")).unwrap();
    assert!(lines[keyed + 1].starts_with("       SHA256:") && !lines[waited].is_empty(), "{lines:#?}");
}

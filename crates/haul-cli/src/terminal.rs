//! The way to standard output and standard error: everything that is shown goes through here, and nothing that a terminal obeys comes through.
//!
//! Words of a peer are clean when they get here ([`PeerText`](haul_units::PeerText)). What is printed is cleaned again all the same, whole lines of it: an error of a
//! library may hold a name that nobody thought of. A text of several lines is printed with all but the first of them set in, so that none of them can be taken
//! for a line of the program's own. `cargo xtask check peer-text` finds printing that goes around this file.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, IsTerminal as _, Write as _};
use std::process::Stdio;
use std::sync::OnceLock;

use haul_units::{PeerStream, SET_IN, shown_json, wrapped};

#[cfg(unix)]
use unix::{console, size_of, takes_colours};
#[cfg(windows)]
use windows::{console, size_of, takes_colours};

pub use haul_units::shown;

/// Why standard output did not take something; the first time counts.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Where the user answers, and where he is asked, whatever the standard streams are; an error where there is no terminal.
pub fn to_ask_on() -> io::Result<(BufReader<File>, File)> {
    let (answers, questions) = console()?;
    Ok((BufReader::new(answers), questions))
}

/// Prints a text to standard error; a closed one is nobody's loss.
pub fn err(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", shown(text));
}

/// Prints a line to standard error; on a terminal that it does not fit, in several.
pub fn err_wrapped(line: &str) {
    // In the last column some terminals begin the next line.
    err(&width().map_or_else(|| line.to_owned(), |columns| wrapped(line, columns - 1, SET_IN.len())));
}

/// Prints a text to standard error behind a label, coloured where colours are welcome.
pub fn err_labelled(label: &str, colour: &str, text: &str) {
    let text = shown(text);
    let mut stderr = io::stderr().lock();
    let _ = if colours() { writeln!(stderr, "{colour}{label}\x1b[0m {text}") } else { writeln!(stderr, "{label} {text}") };
}

/// Replaces the last line on standard error, where that is a terminal; an empty text takes it away.
pub fn err_in_place(text: &str) {
    if is_terminal() {
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "\r\x1b[K{}", shown(text)).and_then(|()| stderr.flush());
    }
}

/// Prints a text to standard output at once. What is under way goes on where it could not be written; [`unwritten`] has it at the end.
pub fn out(text: &str) {
    let mut stdout = io::stdout().lock();
    keep(writeln!(stdout, "{}", shown(text)).and_then(|()| stdout.flush()));
}

/// Prints a line to standard output; on a terminal that it does not fit, in several.
pub fn out_wrapped(line: &str) {
    out(&out_width().map_or_else(|| line.to_owned(), |columns| wrapped(line, columns - 1, SET_IN.len())));
}

/// Why standard output has not all that was printed: a full disk, for instance. A reader that went away has read enough.
pub fn unwritten() -> Option<&'static io::Error> {
    UNWRITTEN.get()
}

fn keep(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        // Where there is one already, that one counts.
        let _ = UNWRITTEN.set(error);
    }
}

/// Prints lines of the program's own to standard output, a table for instance: each is cleaned, none is set in.
pub fn out_lines(text: &str) {
    text.lines().for_each(out);
}

/// Standard error, for the output of a program of the user's own.
pub fn for_program() -> Stdio {
    io::stderr().into()
}

/// Empties the screen where standard output is a terminal.
pub fn clear() {
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        let _ = write!(stdout, "\x1b[H\x1b[2J").and_then(|()| stdout.flush());
    }
}

/// Prints JSON to standard output.
pub fn out_json(json: &str) {
    let mut stdout = io::stdout().lock();
    keep(writeln!(stdout, "{}", shown_json(json)).and_then(|()| stdout.flush()));
}

/// Writes what is no text for people to standard output, and says whether that could be done: pages, scripts, keys of this program's own making.
pub fn out_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}

/// The same for the whole of what a command has to give.
pub fn out_all(bytes: &[u8]) {
    keep(out_bytes(bytes));
}

/// Whether standard error is a terminal.
pub fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// How many columns the terminal on standard error has, if it says so.
pub fn width() -> Option<usize> {
    size_of(io::stderr()).map(|(columns, _)| columns).filter(|columns| *columns > 0)
}

fn out_width() -> Option<usize> {
    size_of(io::stdout()).map(|(columns, _)| columns).filter(|columns| *columns > 0)
}

/// How many lines the terminal on standard error has, if it says so.
pub fn height() -> Option<usize> {
    size_of(io::stderr()).map(|(_, lines)| lines)
}

/// Whether standard error is for coloured text. See no-color.org: set and not empty means no.
pub fn colours() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !unwanted && takes_colours() && is_terminal()
}

/// A progress bar's place in a template. What draws it has its own idea of where colours are wanted, and is told this one.
pub fn bar(columns: usize) -> String {
    ::console::set_colors_enabled_stderr(colours());
    format!("{{bar:{columns}.cyan/dim}}")
}

/// Passes on to standard error what a program at the far side prints there, cleaned.
#[derive(Debug, Default)]
pub struct PeerOutput {
    stream: PeerStream,
    /// Nobody looks at it: a program reads it, byte by byte as it was written.
    raw: bool,
}

impl PeerOutput {
    /// For the standard error of a command that another program has started: cleaned only where it goes to a terminal.
    pub fn of_a_command() -> Self {
        Self { raw: !is_terminal(), ..Self::default() }
    }
}

impl io::Write for PeerOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = if self.raw { bytes.to_vec() } else { self.stream.clean(bytes).into_bytes() };
        let mut stderr = io::stderr().lock();
        stderr.write_all(&text).and_then(|()| stderr.flush())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

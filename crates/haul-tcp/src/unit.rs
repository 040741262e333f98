//! A systemd unit that switches on at each start of the machine what is on now.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};

use thiserror::Error;

/// Where the unit is written to.
pub const UNIT: &str = "/etc/systemd/system/haul-tcp.service";
const NAME: &str = "haul-tcp.service";

/// Why a unit was not installed, or not taken away.
#[derive(Debug, Error)]
pub enum UnitError {
    /// Nothing would start it.
    #[error("this machine was not started by systemd")]
    NoSystemd,
    /// Its file cannot be written or removed.
    #[error("{UNIT}: {0}")]
    File(io::Error),
    /// systemctl cannot be run.
    #[error("systemctl: {0}")]
    NoSystemctl(io::Error),
    /// It did not do what it was told.
    #[error("systemctl {words}: {status}")]
    Systemctl {
        /// What it was told.
        words: String,
        /// How it ended.
        status: ExitStatus,
    },
}

/// Writes a unit and has it started with the machine.
pub fn install(text: &str) -> Result<(), UnitError> {
    if !Path::new("/run/systemd/system").exists() {
        return Err(UnitError::NoSystemd);
    }
    fs::write(UNIT, text).map_err(UnitError::File)?;
    systemctl(&["daemon-reload"])?;
    systemctl(&["enable", NAME])
}

/// Takes it away; false where there is none. What is on stays on.
pub fn remove() -> Result<bool, UnitError> {
    match fs::metadata(UNIT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        _ => systemctl(&["disable", NAME])?,
    }
    fs::remove_file(UNIT).map_err(UnitError::File)?;
    systemctl(&["daemon-reload"])?;
    Ok(true)
}

fn systemctl(arguments: &[&str]) -> Result<(), UnitError> {
    let status = Command::new("systemctl").args(arguments).status().map_err(UnitError::NoSystemctl)?;
    if status.success() { Ok(()) } else { Err(UnitError::Systemctl { words: arguments.join(" "), status }) }
}

/// The unit: a line of `program tcp` for each of the commands, which [`Tcp::commands`](crate::Tcp::commands) has.
pub fn text(program: &Path, commands: &[Vec<String>]) -> String {
    let program = quoted(&program.display().to_string());
    let mut text = String::from(
        "[Unit]\nDescription=Congestion control of haul for this machine's TCP\nWants=network-online.target\nAfter=network-online.target\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\n",
    );
    for words in commands {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let _ = writeln!(text, "ExecStart={program} tcp {}", words.join(" "));
    }
    let _ = writeln!(text, "ExecStop={program} tcp off\n\n[Install]\nWantedBy=multi-user.target");
    text
}

/// As systemd.service(5) reads a word: `%` and `$` are special, and so is what stands between blanks.
fn quoted(word: &str) -> String {
    let word = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    if word.chars().all(|char| char.is_ascii_alphanumeric() || "/._-:".contains(char)) { word } else { format!("\"{word}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_a_line_for_each_rule() {
        let commands = [
            vec!["on".to_owned(), "fair".to_owned()],
            vec!["on".to_owned(), "modest".to_owned(), "--to".to_owned(), "10.0.0.0/8".to_owned()],
        ];
        let text = text(Path::new("/opt/my programs/haul"), &commands);
        assert!(text.contains("\nExecStart=\"/opt/my programs/haul\" tcp on fair\n"), "{text}");
        assert!(text.contains(" tcp on modest --to 10.0.0.0/8\n"), "{text}");
        assert!(text.contains("\nExecStop=\"/opt/my programs/haul\" tcp off\n"), "{text}");
    }

    #[test]
    fn nothing_in_a_word_is_special() {
        assert_eq!(quoted("a%b"), "\"a%%b\"");
        assert_eq!(quoted("$x \""), "\"$$x \\\"\"");
    }
}

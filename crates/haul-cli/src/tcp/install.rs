//! `haul tcp install`: a systemd unit that switches on at each start what is on now.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use haul_tcp::Tcp;

use crate::exit::{Exit, Failure};
use crate::output;

const UNIT: &str = "/etc/systemd/system/haul-tcp.service";
const NAME: &str = "haul-tcp.service";

/// Writes the unit, prints it, or takes it away.
pub fn run(tcp: &Tcp, print: bool, remove: bool) -> Result<Exit, Failure> {
    if remove {
        return take_away();
    }
    let commands = tcp.commands()?;
    if commands.is_empty() {
        return Err(Failure::new("nothing is on that could be installed").hint("switch it on first: `haul tcp on MODE`"));
    }
    let program = std::env::current_exe().map_err(|error| Failure::new(format!("the path of this program: {error}")))?;
    let text = unit(&program, &commands);
    if print {
        output::out_lines(&text);
        return Ok(Exit::Done);
    }
    if !Path::new("/run/systemd/system").exists() {
        return Err(Failure::new("this machine was not started by systemd")
            .hint("run these at each start: `haul tcp install --print` shows them"));
    }
    fs::write(UNIT, text).map_err(|error| Failure::new(format!("{UNIT}: {error}")).hint("run it with sudo"))?;
    systemctl(&["daemon-reload"])?;
    systemctl(&["enable", NAME])?;
    output::print_out(&format!("{UNIT}: switches on at each start what is on now"));
    Ok(Exit::Done)
}

fn take_away() -> Result<Exit, Failure> {
    match fs::metadata(UNIT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            output::print_out("no unit is installed");
            return Ok(Exit::Done);
        }
        _ => systemctl(&["disable", NAME])?,
    }
    fs::remove_file(UNIT).map_err(|error| Failure::new(format!("{UNIT}: {error}")).hint("run it with sudo"))?;
    systemctl(&["daemon-reload"])?;
    output::print_out(&format!("{UNIT} is removed; what is on stays on until `haul tcp off`"));
    Ok(Exit::Done)
}

fn systemctl(arguments: &[&str]) -> Result<(), Failure> {
    match Command::new("systemctl").args(arguments).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(format!("systemctl {}: {status}", arguments.join(" ")))),
        Err(error) => Err(Failure::new(format!("systemctl: {error}"))),
    }
}

fn unit(program: &Path, commands: &[Vec<String>]) -> String {
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
        let text = unit(Path::new("/opt/my programs/haul"), &commands);
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

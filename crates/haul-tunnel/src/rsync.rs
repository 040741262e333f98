//! rsync with another remote shell in the place of ssh.
//!
//! rsync starts a program that connects it with another one over there, ssh unless `-e` says otherwise, and splits what `-e` says at blanks itself.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::process::Command;

/// rsync with these arguments, and a shell of the caller's wherever it would start ssh: `shell` makes the word for `-e` of the options that ssh was to have (` -p 2222`, with the blank before it; empty
/// where there are none). Another remote shell that the arguments name stays what it is.
pub fn command<E>(arguments: &[OsString], shell: impl Fn(&[u8]) -> Result<OsString, E>) -> Result<Command, E> {
    let mut command = Command::new("rsync");
    if !arguments.iter().any(|argument| is_shell_option(argument)) {
        command.arg("-e").arg(shell(b"")?);
    }
    let mut takes_shell = false;
    for argument in arguments {
        if std::mem::take(&mut takes_shell) {
            command.arg(in_place_of(argument, &shell)?);
        } else if let Some((prefix, named)) = shell_in(argument) {
            let mut changed = prefix.to_owned();
            changed.push(in_place_of(named, &shell)?);
            command.arg(changed);
        } else {
            takes_shell = is_shell_option(argument);
            command.arg(argument);
        }
    }
    Ok(command)
}

/// An option that is not rsync's, and its value.
pub type Own = (&'static str, OsString);

/// An option came last, and without its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} needs a value")]
pub struct NoValue(pub &'static str);

/// Takes options of these names, each with a value, out of rsync's arguments: `--mode MODE` or `--mode=MODE`, anywhere before a `--`. Returns them and the rest.
pub fn own_options(arguments: &[OsString], names: &[&'static str]) -> Result<(Vec<Own>, Vec<OsString>), NoValue> {
    let (mut own, mut rest) = (Vec::new(), Vec::new());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            rest.push(word.clone());
            rest.extend(words.by_ref().cloned());
            break;
        }
        let name = names.iter().copied().find(|name| {
            word.as_bytes().strip_prefix(name.as_bytes()).is_some_and(|tail| tail.is_empty() || tail.first() == Some(&b'='))
        });
        let Some(name) = name else {
            rest.push(word.clone());
            continue;
        };
        let value = match word.as_bytes().get(name.len() + 1..) {
            Some(value) => OsStr::from_bytes(value).to_owned(),
            None => words.next().cloned().ok_or(NoValue(name))?,
        };
        own.push((name, value));
    }
    Ok((own, rest))
}

/// A program with options as one word for rsync's `-e`: `own` first, then `options` as ssh would have them.
pub fn shell_word(program: &OsStr, subcommand: &str, own: &[Own], options: &[u8]) -> OsString {
    let mut line = quoted(program);
    line.extend(format!(" {subcommand}").bytes());
    for (name, value) in own {
        line.extend(format!(" {name} ").bytes());
        line.extend(quoted(value));
    }
    line.extend(options);
    OsString::from_vec(line)
}

/// A word that survives rsync's splitting: in `-e` a quote is written twice inside of quotes.
fn quoted(word: &OsStr) -> Vec<u8> {
    let bytes = word.as_bytes();
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+:,~@%=".contains(b);
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return bytes.to_vec();
    }
    let mut quoted = vec![b'"'];
    for &byte in bytes {
        quoted.push(byte);
        if byte == b'"' {
            quoted.push(b'"');
        }
    }
    quoted.push(b'"');
    quoted
}

/// `-e` and `--rsh` take the remote shell in the next word; in a bundle, `-ave`, too.
fn is_shell_option(argument: &OsStr) -> bool {
    let bytes = argument.as_bytes();
    bytes == b"--rsh" || bytes.starts_with(b"--rsh=") || shell_at(bytes).is_some()
}

/// The remote shell in the same word: `--rsh=ssh`, `-essh`, `-avessh`.
fn shell_in(argument: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let bytes = argument.as_bytes();
    let long = b"--rsh=";
    let at = if bytes.starts_with(long) { long.len() } else { shell_at(bytes)? };
    let (prefix, shell) = bytes.split_at_checked(at).filter(|(_, shell)| !shell.is_empty())?;
    Some((OsStr::from_bytes(prefix), OsStr::from_bytes(shell)))
}

/// Where the value of `-e` begins in a bundle of letters, which is its end if the next word is the value. A letter before it that takes a value takes it along.
fn shell_at(bytes: &[u8]) -> Option<usize> {
    let letters = bytes.strip_prefix(b"-").filter(|letters| !letters.starts_with(b"-"))?;
    let at = letters.iter().position(|letter| b"eBTfM@".contains(letter))?;
    (letters.get(at) == Some(&b'e')).then_some(at + 2)
}

/// `ssh ...` becomes the caller's shell with the same options; another remote shell stays what it is.
fn in_place_of<E>(named: &OsStr, shell: impl Fn(&[u8]) -> Result<OsString, E>) -> Result<OsString, E> {
    match named.as_bytes().strip_prefix(b"ssh").filter(|rest| rest.is_empty() || rest.starts_with(b" ")) {
        Some(options) => shell(options),
        None => Ok(named.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn with_shell(line: &[&str]) -> Vec<String> {
        let arguments: Vec<OsString> = line.iter().map(OsString::from).collect();
        let shell = |options: &[u8]| Ok::<_, Infallible>(format!("haul rsh{}", String::from_utf8_lossy(options)).into());
        let Ok(command) = command(&arguments, shell);
        command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_shell_of_the_user_s_is_recognised() {
        for arg in ["-e", "--rsh", "--rsh=ssh", "-essh", "-ave", "-avessh"] {
            assert!(is_shell_option(OsStr::new(arg)), "{arg}");
        }
        for arg in ["-a", "--delete", "--exclude", "file", "-fe", "-avfe", "--include=e"] {
            assert!(!is_shell_option(OsStr::new(arg)), "{arg}");
        }
    }

    #[test]
    fn ssh_with_its_options_becomes_another_shell() {
        assert_eq!(with_shell(&["-a", "x", "h:y"]), ["-e", "haul rsh", "-a", "x", "h:y"]);
        assert_eq!(with_shell(&["-ave", "ssh -p 2222 -i key", "x"]), ["-ave", "haul rsh -p 2222 -i key", "x"]);
        assert_eq!(with_shell(&["-avessh -p 22", "x"]), ["-avehaul rsh -p 22", "x"]);
        assert_eq!(with_shell(&["--rsh=ssh -4", "x"]), ["--rsh=haul rsh -4", "x"]);
        assert_eq!(with_shell(&["-e", "sshpass x", "x"]), ["-e", "sshpass x", "x"]);
    }

    #[test]
    fn options_of_the_caller_are_found_among_rsync_s() {
        let split = |line: &str| own_options(&line.split(' ').map(OsString::from).collect::<Vec<_>>(), &["--mode", "--port"]);
        let (own, rest) = split("-av --mode modest a --port=7000-7010 b: -- --mode").expect("sound");
        assert_eq!(own, [("--mode", "modest".into()), ("--port", "7000-7010".into())]);
        assert_eq!(rest, ["-av", "a", "b:", "--", "--mode"]);
        assert_eq!(split("a b: --mode"), Err(NoValue("--mode")));
        assert_eq!(split("--modest a").map(|(own, _)| own), Ok(Vec::new()));
    }

    #[test]
    fn the_shell_is_a_program_with_its_options_and_ssh_s() {
        let own = [("--mode", OsString::from("modest")), ("--remote-haul", OsString::from("/my haul"))];
        let word = shell_word(OsStr::new("/bin/haul"), "rsh", &own, b" -p 2222 -i key");
        assert_eq!(word, "/bin/haul rsh --mode modest --remote-haul \"/my haul\" -p 2222 -i key");
    }

    #[test]
    fn a_word_survives_rsync_s_splitting() {
        assert_eq!(quoted(OsStr::new("/opt/haul")), b"/opt/haul");
        assert_eq!(quoted(OsStr::new("/my \"own\"/haul")), b"\"/my \"\"own\"\"/haul\"");
    }
}

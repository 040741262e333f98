//! Subsystems: what the sshd of this machine runs for a name. No sshd is in the way of the data here, so its configuration is read for the command.
//!
//! `sftp` is also looked for where systems install it: sshd may have it built in (`internal-sftp`), or its configuration may not be ours to read.

use std::fs;
use std::path::{Path, PathBuf};

use haul_peer::Refusal;

/// Where sshd's configuration is; files that it includes are beside it.
const CONFIGURATION: &str = "/etc/ssh/sshd_config";
/// Where Debian, Fedora, Alpine, Arch, FreeBSD and openSUSE have it.
const SFTP_SERVERS: [&str; 6] = [
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
    "/usr/libexec/sftp-server",
    "/usr/lib/sftp-server",
    "/usr/local/libexec/sftp-server",
];

/// The line for the user's shell that runs a subsystem.
pub fn line(name: &str) -> Result<Vec<u8>, Refusal> {
    let configured = configuration().iter().find_map(|text| command_for(name, text));
    match configured {
        Some(line) if !line.starts_with("internal-sftp") => Ok(line.into_bytes()),
        _ if name == "sftp" => {
            let server = SFTP_SERVERS.into_iter().find(|path| Path::new(path).exists());
            server.map(|path| path.as_bytes().to_vec()).ok_or_else(|| Refusal {
                error: "no sftp-server was found".into(),
                hint: Some("install OpenSSH's sftp-server there, or name it in sshd_config: Subsystem sftp PATH".into()),
            })
        }
        _ => Err(Refusal {
            error: format!("the subsystem {name} is not known").into(),
            hint: Some("name it in sshd_config there: Subsystem NAME COMMAND".into()),
        }),
    }
}

/// The texts that sshd would read, as far as this user may.
fn configuration() -> Vec<String> {
    let included = fs::read_dir("/etc/ssh/sshd_config.d").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = included.filter(|path| path.extension().is_some_and(|end| end == "conf")).collect();
    paths.sort();
    paths.push(CONFIGURATION.into());
    paths.iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// `Subsystem NAME COMMAND`, keywords in any case (sshd_config(5)).
fn command_for(name: &str, text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let keyword = words.next()?;
        (keyword.eq_ignore_ascii_case("subsystem") && words.next()? == name).then(|| words.collect::<Vec<_>>().join(" "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_found_in_sshd_s_configuration() {
        let text =
            "# Subsystem sftp /no\nPort 22\n subsystem\tsftp  /usr/lib/openssh/sftp-server -l INFO\nSubsystem netconf /opt/n\n";
        assert_eq!(command_for("sftp", text).as_deref(), Some("/usr/lib/openssh/sftp-server -l INFO"));
        assert_eq!(command_for("netconf", text).as_deref(), Some("/opt/n"));
        assert_eq!(command_for("other", text), None);
    }

    #[test]
    fn a_name_that_nobody_knows_is_refused_in_words() {
        let refusal = line("no such subsystem").expect_err("refused");
        assert!(refusal.to_string().contains("no such subsystem is not known"), "{refusal}");
    }
}

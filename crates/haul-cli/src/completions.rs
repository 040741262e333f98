//! Completion scripts, from the definition of the command line, and by what the shells' own know of hosts and of files over there.

use clap_complete::Shell;

use crate::exit::Exit;
use crate::output;
use crate::{args, manners};

/// `haul completions SHELL`.
pub fn completions(shell: Shell, name: &str) -> Exit {
    output::out_all(&script(shell, name));
    Exit::Done
}

fn script(shell: Shell, name: &str) -> Vec<u8> {
    let command = match name {
        "hcp" => args::hcp(),
        "hperf" => args::hperf(),
        _ => args::haul(),
    };
    let mut command = manners::shown(&command);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    match shell {
        Shell::Bash => script.extend(BASH_HOSTS.replace("NAME", name).into_bytes()),
        Shell::Zsh => return with_zsh_hosts(&String::from_utf8_lossy(&script), name).into_bytes(),
        Shell::Fish => script.extend(FISH_HOSTS.replace("NAME", name).into_bytes()),
        _ => {}
    }
    script
}

/// zsh's script with what completes operands and hosts: these stand before the call at its end, and are named where the definition has files and hosts.
fn with_zsh_hosts(script: &str, name: &str) -> String {
    let operands = script.replace("then where to:_files'", &format!("then where to:_{name}_operands'"));
    let hosts = operands.replace(":_hosts'", &format!(":_{name}_hosts'"));
    let (definitions, call) = hosts.rsplit_once("\nif [ ").unwrap_or((&hosts, ""));
    format!("{definitions}\n{}\nif [ {call}", ZSH_HOSTS.replace("NAME", name))
}

/// Hosts of ssh's configuration, and behind `host:` what is there, by ssh and without a question: for operands that are hosts, or may begin with one.
const BASH_HOSTS: &str = include_str!("completions/hosts.bash");
const ZSH_HOSTS: &str = include_str!("completions/hosts.zsh");
const FISH_HOSTS: &str = include_str!("completions/hosts.fish");

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn text(shell: Shell, name: &str) -> String {
        String::from_utf8(script(shell, name)).expect("text")
    }

    #[test]
    fn what_the_help_does_not_show_is_not_completed() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = text(shell, "haul");
            for hidden in ["no-strict-modes", "haul__subcmd__man", "haul__subcmd__completions"] {
                assert!(!script.contains(hidden), "{shell}: {hidden}");
            }
            assert!(script.contains("aggressive") && script.contains("mesh"), "{shell}");
            // `hcp` is `haul cp` alone: perf and proxy have a -R and a -D that the help shows.
            let script = text(shell, "hcp");
            let has = |letter: char| match shell {
                Shell::Bash => script.split([' ', '"']).any(|word| word == format!("-{letter}")),
                // A flag, and what takes a value.
                Shell::Zsh => [format!("-{letter}["), format!("-{letter}+[")].iter().any(|form| script.contains(form)),
                _ => script.contains(&format!(" -s {letter} ")),
            };
            assert_eq!(['r', 'P', 'X', '3', 'R', 'D'].map(has), [true, true, true, false, false, false], "{shell}");
        }
    }

    /// A home with hosts that ssh knows, the shell's script, and an ssh that shows names.
    fn home(shell: Shell) -> tempfile::TempDir {
        let home = tempfile::tempdir().expect("a directory");
        let at = |name: &str| home.path().join(name);
        std::fs::create_dir_all(at(".ssh")).expect("room");
        std::fs::create_dir_all(at("bin")).expect("room");
        std::fs::write(at(".ssh/config"), "Host nas nas2 *.lan\n  Port 22\n").expect("room");
        std::fs::write(at(".ssh/known_hosts"), "kyushu,192.0.2.7 ssh-ed25519 AAAA\n|1|x= ssh-ed25519 AAAA\n").expect("room");
        std::fs::write(at("script"), script(shell, "haul")).expect("room");
        let ssh = at("bin/ssh");
        let names =
            "#!/bin/sh\nfor last; do :; done\ncase $last in 'ls -1dp -- ~/'*da*) echo '~/data/'; echo '~/day one';; esac\n";
        std::fs::write(&ssh, names).expect("room");
        let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
        std::fs::set_permissions(&ssh, mode).expect("ours");
        home
    }

    /// What a shell prints there; nothing where it is not installed, which is an error in CI.
    fn printed(home: &tempfile::TempDir, shell: &str, args: &[&str]) -> Option<Vec<String>> {
        let path = format!("{}:/usr/bin:/bin", home.path().join("bin").display());
        let mut command = Command::new(shell);
        command.args(args).current_dir(home.path()).env("HOME", home.path()).env("PATH", path);
        let Ok(output) = command.output() else {
            skip::skip(format_args!("{shell} is not installed (make setup)"));
            return None;
        };
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect())
    }

    /// What bash offers for a line.
    fn offered(line: &str) -> Vec<String> {
        let asked = r#". "$HOME/script"; COMP_LINE=$1; COMP_POINT=${#1}; IFS=' :' read -ra COMP_WORDS <<<"$1"; [[ $1 == *' ' ]] && COMP_WORDS+=("")
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); cd "$HOME"; _haul_with_hosts haul "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"; printf '%s\n' "${COMPREPLY[@]}""#;
        printed(&home(Shell::Bash), "bash", &["--norc", "-c", asked, "bash", line]).expect("bash")
    }

    #[test]
    fn fish_offers_modes_hosts_and_what_is_over_there() {
        let offered = |line: &str| {
            let asked = format!("source ~/script; complete -C '{line}' | string replace -r '\\t.*' ''");
            printed(&home(Shell::Fish), "fish", &["--no-config", "-c", &asked])
        };
        if offered("haul cp na").is_none() {
            return;
        }
        for (line, expected) in [
            ("haul cp na", "nas:"),
            ("haul cp na", "nas2:"),
            ("haul cp scr", "script"),
            ("haul perf ky", "kyushu"),
            ("haul cp nas:~/da", "nas:~/data/"),
            ("haul cp nas:~/da", "nas:~/day one"),
            ("haul cp --mode ag", "aggressive"),
        ] {
            let offered = offered(line).unwrap_or_default();
            assert!(offered.iter().any(|word| word == expected), "{line}: {offered:?}");
        }
        assert_eq!(offered("haul cp haul://na").as_deref(), Some(&[][..]));
    }

    /// With stand-ins for what zsh has in a completion alone: they print what they are given.
    #[test]
    fn zsh_offers_hosts_and_what_is_over_there() {
        let offered = |function: &str, word: &str| {
            let asked = format!(
                "compdef() {{ :; }}; _files() {{ print FILES; }}; compset() {{ PREFIX=${{PREFIX#*:}}; }}
                compadd() {{ while [[ $1 == -* ]]; do case $1 in -S) shift 2;; -a) shift; print -l ${{(P)1}}; return;; *) shift;; esac; done; print -l -- \"$@\"; }}
                PREFIX='{word}'; . ~/script; {function}; true"
            );
            printed(&home(Shell::Zsh), "zsh", &["-f", "-c", &asked])
        };
        let Some(mut hosts) = offered("_haul_hosts", "") else { return };
        hosts.sort();
        assert_eq!(hosts, ["192.0.2.7", "kyushu", "nas", "nas2"]);
        let operands = offered("_haul_operands", "na").unwrap_or_default();
        assert!(
            operands.iter().any(|word| word == "nas2") && operands.last().is_some_and(|word| word == "FILES"),
            "{operands:?}"
        );
        assert_eq!(offered("_haul_operands", "nas:~/da").unwrap_or_default(), ["~/data/", "~/day one"]);
        assert_eq!(offered("_haul_operands", "haul://na").unwrap_or_default(), [""; 0]);
        for name in ["haul", "hcp", "hperf"] {
            let script = text(Shell::Zsh, name);
            assert_eq!(script.contains(&format!("then where to:_{name}_operands' \\")), name != "hperf", "{name}");
            assert_eq!(script.contains(&format!(":_{name}_hosts' \\")), name != "hcp", "{name}");
            assert!(!script.contains(":_hosts'"), "{name}");
        }
    }

    #[test]
    fn bash_offers_modes_hosts_and_what_is_over_there() {
        assert_eq!(offered("haul cp na"), ["nas:", "nas2:"]);
        assert_eq!(offered("haul cp scr"), ["script"]);
        assert_eq!(offered("haul perf ky"), ["kyushu"]);
        assert_eq!(offered("haul cp nas:~/da"), ["~/data/", "~/day one"]);
        assert_eq!(offered("haul cp --mode ag"), ["aggressive"]);
        assert_eq!(offered("haul perf --mode sca"), ["scalable"]);
        assert_eq!(offered("haul compl"), [""; 1]);
        assert_eq!(offered("haul cp haul://nas"), [""; 1], "no host of ssh's");
    }
}

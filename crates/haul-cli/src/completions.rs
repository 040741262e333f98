//! Completion scripts, from the definition of the command line, and by what the shells' own know of hosts and of files over there.

use clap_complete::Shell;

use crate::args;
use crate::exit::Exit;
use crate::output;

/// `haul completions SHELL`.
pub fn completions(shell: Shell, name: &str) -> Exit {
    let _ = output::out_bytes(&script(shell, name));
    Exit::Done
}

fn script(shell: Shell, name: &str) -> Vec<u8> {
    let command = match name {
        "hcp" => args::hcp(),
        "hperf" => args::hperf(),
        _ => args::haul(),
    };
    let mut command = without_hidden(&command);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    if shell == Shell::Bash {
        script.extend(BASH_HOSTS.replace("NAME", name).into_bytes());
    }
    script
}

/// The same without what the help does not show either.
fn without_hidden(command: &clap::Command) -> clap::Command {
    let mut shown = clap::Command::new(command.get_name().to_owned());
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    shown = shown.disable_help_subcommand(true).disable_help_flag(command.is_disable_help_flag_set());
    if let Some(version) = command.get_version() {
        shown = shown.version(version.to_owned());
    }
    shown = shown.args(command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned());
    let commands: Vec<clap::Command> =
        command.get_subcommands().filter(|command| !command.is_hide_set()).map(without_hidden).collect();
    shown.subcommands(commands)
}

/// Hosts of ssh's configuration, and behind `host:` what is there, by ssh and without a question: for operands that are hosts, or may begin with one.
const BASH_HOSTS: &str = r#"
_haul_known_hosts() {
    cat ~/.ssh/config ~/.ssh/config.d/* 2>/dev/null | awk 'tolower($1) == "host" { for (i = 2; i <= NF; i++) if ($i !~ /[*?!]/) print $i }'
    cat ~/.ssh/known_hosts 2>/dev/null | awk '$1 !~ /^[|@#[]/ { split($1, names, ","); for (i in names) print names[i] }'
}

_NAME_with_hosts() {
    _NAME "$@"
    # The word with its colons, at which readline divides.
    local line=${COMP_LINE:0:COMP_POINT} command=${COMP_WORDS[0]##*/} word
    word=${line##*[[:space:]]}
    [[ $command == haul ]] && command=${COMP_WORDS[1]-}
    [[ $word == -* || ( ${COMP_WORDS[0]##*/} == haul && COMP_CWORD -lt 2 ) ]] && return
    # The value of an option.
    [[ ${COMP_WORDS[COMP_CWORD-1]} == -* && ${COMPREPLY[0]--} != -* ]] && return
    case $command in
    cp | hcp)
        COMPREPLY=()
        if [[ $word == *:* && ${word%%:*} != */* ]]; then
            local path name IFS=$'\n'
            path=$(printf %q "${word#*:}")
            for name in $(ssh -o BatchMode=yes -o ConnectTimeout=3 -- "${word%%:*}" "ls -1dp -- ${path/#\\~/\~}* 2>/dev/null" </dev/null 2>/dev/null); do
                [[ $COMP_WORDBREAKS == *:* ]] || name=${word%%:*}:$name
                COMPREPLY+=("$name")
            done
        else
            COMPREPLY=($(compgen -f -- "$word") $(compgen -S : -W "$(_haul_known_hosts)" -- "$word"))
        fi
        ;;
    perf | hperf | pipe | rsh | ssh)
        COMPREPLY+=($(compgen -W "$(_haul_known_hosts)" -- "$word"))
        ;;
    esac
}
complete -F _NAME_with_hosts -o nosort -o bashdefault -o default -o nospace NAME
"#;

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
            for hidden in ["no-strict-modes", "haul__subcmd__man", "haul__subcmd__completions", "'-X'"] {
                assert!(!script.contains(hidden), "{shell}: {hidden}");
            }
            assert!(script.contains("aggressive") && script.contains("mesh"), "{shell}");
        }
    }

    /// What bash offers for a line, with a home of its own and an ssh that shows names.
    fn offered(line: &str) -> Vec<String> {
        let home = tempfile::tempdir().expect("a directory");
        let at = |name: &str| home.path().join(name);
        std::fs::create_dir_all(at(".ssh")).expect("room");
        std::fs::create_dir_all(at("bin")).expect("room");
        std::fs::write(at(".ssh/config"), "Host nas nas2 *.lan\n  Port 22\n").expect("room");
        std::fs::write(at(".ssh/known_hosts"), "kyushu,192.0.2.7 ssh-ed25519 AAAA\n|1|x= ssh-ed25519 AAAA\n").expect("room");
        std::fs::write(at("script"), script(Shell::Bash, "haul")).expect("room");
        let ssh = at("bin/ssh");
        std::fs::write(
            &ssh,
            "#!/bin/sh\nfor last; do :; done\ncase $last in 'ls -1dp -- ~/da*'*) echo '~/data/'; echo '~/day one';; esac\n",
        )
        .expect("room");
        let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
        std::fs::set_permissions(&ssh, mode).expect("ours");
        let asked = r#". "$HOME/script"; COMP_LINE=$1; COMP_POINT=${#1}; IFS=' :' read -ra COMP_WORDS <<<"$1"; [[ $1 == *' ' ]] && COMP_WORDS+=("")
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); cd "$HOME"; _haul_with_hosts haul "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"; printf '%s\n' "${COMPREPLY[@]}""#;
        let output = Command::new("bash")
            .args(["--norc", "-c", asked, "bash", line])
            .env("HOME", home.path())
            .env("PATH", format!("{}:/usr/bin:/bin", at("bin").display()))
            .output()
            .expect("bash");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
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
    }
}

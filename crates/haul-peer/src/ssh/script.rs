//! A far side without haul gets one, over the ssh that logs in anyway.
//!
//! ```text
//! local  -> remote   sh -c SCRIPT .. remote GREETING       runs the haul of this version that is there, or one that was kept; else:
//! remote -> local    HAUL/1 wants Linux x86_64
//! local  -> remote   the program, as long as was said
//! remote             compares its hash, names it ~/.cache/haul/VERSION-HASH/haul, runs it
//! remote -> local    HAUL/1 {"ready":..}                   as ever
//! ```
//!
//! One login, and two round trips in it besides the transfer. The script is for any POSIX shell; what starts it may be any login shell, so it is one word in single quotes without a quote, an exclamation mark (csh),
//! a doubled backslash (fish) or a line's end. Where sshd runs `haul remote` whatever is asked for, the greeting is found at the end of the command, and nothing of the script runs.

use crate::bootstrap::{Bootstrap, Obstacle, ObstacleKind, SYSTEM, Stay};
use crate::programs::Program;

/// What the script says in the place of haul, in words: a shell has no JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShellSays {
    /// A program for this kind of machine.
    Wants { system: String, machine: String },
    /// It cannot be brought there.
    Lacks(Obstacle),
}

/// What the far side's shell is told to run, up to haul's own arguments; `haul` is what would be run without all this, as a word of the shell.
pub(super) fn command(bootstrap: &Bootstrap, haul: &str) -> String {
    let stay = match bootstrap.stay {
        Stay::Keep => "keep",
        Stay::Once => "once",
    };
    let version = if bootstrap.afresh { "-" } else { env!("CARGO_PKG_VERSION") };
    let programs: Vec<String> = bootstrap.programs.iter().map(listed).collect();
    // What is listed has nothing that a shell would look at.
    format!("sh -c '{SCRIPT}' haul {stay} {version} {haul} '{}'", programs.join(" "))
}

/// A program as the script has it: kind of machine, length, hash, name of its directory.
fn listed(program: &Program) -> String {
    let Program { machine, bytes, sha256, .. } = program;
    let short = sha256.get(..SHORT).unwrap_or(sha256);
    format!("{SYSTEM}-{machine}:{bytes}:{sha256}:{}-{short}", env!("CARGO_PKG_VERSION"))
}

impl ShellSays {
    /// From what stands behind the prefix.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.trim().splitn(3, ' ');
        let (what, first, rest) = (words.next()?, words.next()?, words.next().unwrap_or_default());
        match what {
            "wants" => Some(Self::Wants { system: first.to_owned(), machine: rest.to_owned() }),
            "lacks" => {
                let kind = KINDS.iter().find(|(word, _)| *word == first)?.1;
                Some(Self::Lacks(Obstacle { kind, detail: rest.trim().into() }))
            }
            _ => None,
        }
    }
}

/// Digits of the hash in the directory's name.
const SHORT: usize = 16;

const KINDS: [(&str, ObstacleKind); 6] = [
    ("directory", ObstacleKind::Directory),
    ("owner", ObstacleKind::Owner),
    ("room", ObstacleKind::Room),
    ("hash", ObstacleKind::Hash),
    ("no-hash", ObstacleKind::NoHash),
    ("run", ObstacleKind::Run),
];

/// Its arguments: `keep` or `once`, the version, the haul that may be there, the programs at hand, and then haul's own.
///
/// The directory of kept programs may lie where others write too (`XDG_CACHE_HOME`). The script goes into it, asks whose it is and shuts it, and names what is in it from there: whoever moves it or puts another in its place gains nothing.
/// A program is opened before it is named to be run, and run by its descriptor: what was compared is what runs, and one that is not to stay is gone by then, with its directory.
const SCRIPT: &str = concat!(
    r#"set -f; k=$1 v=$2 h=$3 l=$4; shift 4; "#,
    r#"say() { printf "\nHAUL/1 %s\n" "$*"; }; lack() { say lacks $*; exit 3; }; "#,
    r#"if [ "$v" = "$("$h" --version 2>/dev/null | sed -n "s/^haul //p")" ]; then exec "$h" "$@"; fi; "#,
    r#"m=$(uname -m); s=$(uname -s); case $m in amd64) m=x86_64;; arm64) m=aarch64;; esac; "#,
    r#"p=; for i in $l; do case $i in $s-$m:*) p=${i#*:};; esac; done; "#,
    r#"if [ -z "$p" ]; then say wants $s $m; exit 3; fi; "#,
    r#"n=${p%%:*}; p=${p#*:}; x=${p%%:*}; d=${p#*:}; w=$PWD; "#,
    r#"case $XDG_CACHE_HOME in /*) c=$XDG_CACHE_HOME/haul;; *) c=$HOME/.cache/haul;; esac; "#,
    r#"has() { command -v $1 >/dev/null; }; if has sha256sum; then sum() { sha256sum; }; elif has shasum; then sum() { shasum -a 256; }; "#,
    r#"elif has openssl; then sum() { openssl dgst -sha256 -r; }; else lack no-hash; fi; "#,
    r#"good() { case $(sum <$1 2>/dev/null) in $x*) return 0;; esac; return 1; }; "#,
    r#"umask 077; e=$(mkdir -p "$c" 2>&1) || lack directory $e; "#,
    r#"cd "$c" || lack directory $c; [ -O . ] || lack owner $c; e=$(chmod 700 . 2>&1) || lack directory $e; "#,
    r#"if [ -f $d/haul ] && good $d/haul; then f=$d/haul; else "#,
    r#"find . -name "new.*" -prune -mtime +1 -exec rm -rf {} + 2>/dev/null; "#,
    r#"t=$(mktemp -d ./new.XXXXXX 2>&1) || lack directory $t; "#,
    r#"trap "rm -rf $t" 0; trap "exit 3" 1 2 13 15; say wants $s $m; "#,
    r#"e=$({ head -c $n >$t/haul; } 2>&1) || lack room $e; good $t/haul || lack hash; "#,
    r#"chmod 700 $t/haul; e=$($t/haul --version 2>&1) || lack run $e; f=$t/haul; "#,
    r#"if [ $k = keep ]; then e=$({ mkdir -p $d && mv -f $f $d/haul; } 2>&1) || lack directory $e; f=$d/haul; fi; fi; "#,
    r#"exec 3<$f; if [ -n "$t" ]; then rm -rf $t; trap - 0; fi; cd "$w"; exec /proc/self/fd/3 "$@""#,
);

#[cfg(unix)]
#[cfg(test)]
mod tests;

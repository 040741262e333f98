#!/usr/bin/env bash
# rsync's own tests of remote shells, with ssh and with `haul rsh`, side by side. Needs root (a network namespace of its own), an ssh server, a C compiler.
#
#     scripts/rsync-suite.sh [--haul PATH] [--source DIRECTORY] [TEST ..]
#
# Takes Debian's source of the installed rsync, or the nearest older one that can be had, or a copy of DIRECTORY; builds its rsync and the programs of its
# tests, unless they are there. In the suite a script, support/lsh.sh, plays the remote shell on the same host. Here it is replaced by one that logs
# in for real, to an sshd on loopback in a namespace: by ssh, or by haul. Every test that uses it runs both ways, by default all of them.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
haul=$(cd "$root" && scripts/target-dir.sh)/release/haul source= tests=()
while [ $# -gt 0 ]; do
    case $1 in
        --haul) haul=$(realpath "$2"); shift 2 ;;
        --source) source=$(realpath "$2"); shift 2 ;;
        -*) echo "error: unknown option $1" >&2; exit 2 ;;
        *) tests+=("$1"); shift ;;
    esac
done
. "$root/scripts/sshd.sh"

# Into directory src: the source package of the installed rsync; where the archive has it no more, what it has.
fetch_source() {
    local options
    mkdir -p sources lists/partial
    # The archives that packages come from, asked for sources.
    sed 's/^Types:.*/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >sources/sources.sources 2>/dev/null || rm -f sources/sources.sources
    [ ! -s /etc/apt/sources.list ] || sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >sources/sources.list
    options=(-qq -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$PWD/sources" -o "Dir::State::Lists=$PWD/lists" -o APT::Sandbox::User=root)
    apt-get "${options[@]}" update
    for version in $(dpkg-query -W -f '${Version}\n' rsync) $(apt-cache "${options[@]}" showsrc --only-source rsync | sed -n 's/^Version: //p' | sort -rV); do
        if apt-get "${options[@]}" source --download-only "rsync=$version" 2>apt-errors; then
            dpkg-source -x rsync_*.dsc src >dpkg-source.log 2>&1
            return
        fi
    done
    cat apt-errors >&2
    echo "error: no source of rsync can be had; name one with --source DIRECTORY" >&2
    return 1
}

build() {
    [ ! -x src/rsync ] || [ ! -x src/tls ] || return 0
    [ -e src/configure.sh ] || make -C src -f prepare-source.mak conf
    (cd src && ./configure --disable-md2man --disable-openssl --disable-xxhash --disable-zstd --disable-lz4)
    # Every version builds these when it runs its tests, not every one without.
    printf '%s\n' 'include Makefile' 'programs-of-tests: $(CHECK_PROGS) $(CHECK_SYMLINKS)' >src/tests.mk
    make -C src -f tests.mk -j"$(nproc)" programs-of-tests
}

# In the place of support/lsh.sh, which knows two hosts: `localhost`, where a command starts in the home directory, and `lh`, where it starts in this one.
# What the script's commands inherit is handed over.
write_remote_shell() {
    cat >src/support/lsh.sh <<'SHELL'
#!/usr/bin/env bash
options=() directory=$HOME
while :; do
    case $1 in
        --no-cd) directory=$PWD ;;
        -l) options+=(-l "$2"); shift ;;
        -*) options+=("$1") ;;
        lh) directory=$PWD; break ;;
        localhost) break ;;
        *) echo "unable to connect to host $1" >&2; exit 1 ;;
    esac
    shift
done
shift
echo >>"$LOGINS"
printf -v before 'cd %q && umask %q && export HOME=%q PATH=%q CVSIGNORE=%q &&' "$directory" "$(umask)" "$HOME" "$PATH" "${CVSIGNORE-}"
exec $REMOTE_SHELL "${options[@]}" far "$before" "$@"
SHELL
    chmod +x src/support/lsh.sh
}

# The tests that use the script, in the shell's and in Python's suite.
uses_remote_shell() { (cd src/testsuite && grep -lE 'support/lsh\.sh|rsh_cmd\(' ./*.test ./*_test.py 2>/dev/null) | sed -E 's|^\./||; s/(\.test|_test\.py)$//'; }

# PASS, FAIL or SKIP, and how often the remote shell was called: TEST COMMAND
run_test() {
    local log=logs/$1-$(basename "${2%% *}") result logins
    : >logins
    if [ -e src/runtests.py ]; then
        (cd src && LOGINS=$place/logins REMOTE_SHELL=$2 timeout 900 python3 runtests.py --always-log "$1") >"$log" 2>&1 </dev/null || true
    else
        (cd src && LOGINS=$place/logins REMOTE_SHELL=$2 always_log=yes whichtests=$1.test timeout 900 ./runtests.sh) >"$log" 2>&1 </dev/null || true
    fi
    result=$(sed -nE "s/^(PASS|FAIL|SKIP|XFAIL) +$1( .*)?\$/\1/p" "$log" | tail -1)
    logins=$(wc -l <logins)
    echo "${result:-BROKEN} ($logins)"
}

if [ -z "${RSYNC_SUITE:-}" ]; then
    [ "$(id -u)" = 0 ] || { echo "error: only root can make a network namespace: run it as root" >&2; exit 2; }
    [ -x "$haul" ] || { echo "error: no haul at $haul: build it (cargo build --release), or name it with --haul" >&2; exit 2; }
    place=$(mktemp -d /tmp/rsync-suite.XXXXXX)
    trap 'rm -rf "$place"' EXIT
    cd "$place" && mkdir logs
    if [ -n "$source" ]; then cp -a "$source" src; else fetch_source; fi
    build >build.log 2>&1 || { tail -20 build.log >&2; echo "error: rsync does not build" >&2; exit 1; }
    write_remote_shell
    status=0
    RSYNC_SUITE=$place unshare --net -- "$root/scripts/rsync-suite.sh" --haul "$haul" "${tests[@]}" || status=$?
    if [ $status != 0 ]; then trap - EXIT; echo "the tests' output: $place/logs"; fi
    exit $status
fi

place=$RSYNC_SUITE
cd "$place"
ip link set lo up
write_ssh_files 127.0.0.1 "SetEnv XDG_STATE_HOME=$place/state XDG_CONFIG_HOME=$place/state" 'MaxStartups 100'
"$(command -v sshd || echo /usr/sbin/sshd)" -D -f sshd_config 2>sshd.log &
sshd=$!
trap 'kill $sshd' EXIT
until ss -Hlnt 'sport = :22' | grep -q .; do kill -0 $sshd || { cat sshd.log >&2; exit 1; }; sleep 0.1; done
echo "$("$haul" --version), $(src/rsync --version | sed -n '1s/  */ /gp'), $(ssh -V 2>&1 | cut -d, -f1); logins in brackets"
[ ${#tests[@]} -gt 0 ] || mapfile -t tests < <(uses_remote_shell)
printf '%-32s%-14s%s\n' test ssh 'haul rsh'
worse=0
for test in "${tests[@]}"; do
    by_ssh=$(run_test "$test" "ssh -F $place/ssh_config")
    by_haul=$(run_test "$test" "$haul rsh -F $place/ssh_config --remote-haul $haul")
    [[ "$by_ssh$by_haul" = *'(0)'*'(0)' ]] || printf '%-32s%-14s%s\n' "$test" "$by_ssh" "$by_haul"
    [ "$by_ssh" = "$by_haul" ] || worse=1
done
exit $worse

#!/usr/bin/env bash
# Round trips that it takes to bring haul to a far side that has none: the time from the command to the first byte that comes back, over emulated links of 20 and 200 ms. What
# it grows by, over what the round-trip time grows by, is the number of round trips; beside it the same where haul is there, and ssh with and without the program's bytes.
#
#     bench/bootstrap.sh [--haul PATH] [--program PATH] [--rate 1G] [--turns 5] [DIRECTORY]
#
# --program is what is sent: by default the static one (make static), else haul itself without its symbols. With DIRECTORY, what it prints stands in DIRECTORY/bootstrap.txt too.
# Needs root, sshd and strip. Three to four minutes.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
haul=$(cd "$root" && scripts/target-dir.sh)/release/haul
static=$(cd "$root" && scripts/target-dir.sh)/static/haul-$(uname -m)
program='' rate=1G turns=5 out=''
near=20 far=200
while [ $# -gt 0 ]; do
    case $1 in
        --haul) haul=$(realpath "$2"); shift 2 ;;
        --program) program=$(realpath "$2"); shift 2 ;;
        --rate) rate=$2; shift 2 ;;
        --turns) turns=$2; shift 2 ;;
        -*) echo "error: unknown option $1" >&2; exit 2 ;;
        *) out=$1; shift ;;
    esac
done

# What is done, by name: a command whose first byte of output ends it.
steps=(login there bootstrap ssh-empty ssh-program)
step() {
    case $1 in
        login) ssh -F "$dir/ssh_config" far echo x ;;
        there) "$haul" rsh -q -F "$dir/ssh_config" --remote-haul "$haul" far echo x ;;
        bootstrap) "$haul" rsh -q -F "$dir/ssh_config" --remote-haul there-is-none --bootstrap=once --bootstrap-from "$dir/program" far echo x ;;
        ssh-empty) ssh -C -F "$dir/ssh_config" far sha256sum </dev/null ;;
        ssh-program) ssh -C -F "$dir/ssh_config" far sha256sum <"$dir/program" ;;
    esac
}

on() { local host=$1; shift; "$haul" lab wan exec --name "$HAUL_LAB_NAME" "$host" -- "$@"; }

# Inside the emulated WAN, on host a: one line for each turn, its step and seconds.
if [ -n "${HAUL_BOOTSTRAP_TIMES:-}" ]; then
    dir=$HAUL_BOOTSTRAP_TIMES haul=$HAUL_BOOTSTRAP_HAUL
    for turn in $(seq "$turns"); do
        for name in "${steps[@]}"; do
            begin=$(date +%s%N)
            # The rest of its output, and its end, are no part of it.
            first=$(step "$name" 2>"$dir/said" | { head -c 1; date +%s%N >"$dir/end"; cat >/dev/null; }) || { cat "$dir/said" >&2; exit 1; }
            [ -n "$first" ] || { echo "error: $name: nothing came" >&2; cat "$dir/said" >&2; exit 1; }
            echo "$name $(($(cat "$dir/end") - begin))"
        done
    done
    exit
fi

# Inside the emulated WAN, outside of its hosts: the sshd on host b, then the turns on host a.
if [ -n "${HAUL_BOOTSTRAP_DIR:-}" ]; then
    dir=$HAUL_BOOTSTRAP_DIR
    sed "s/ADDRESS/$HAUL_LAB_B_ADDRESS/" "$dir/ssh_config.in" >"$dir/ssh_config"
    on b "$(command -v sshd || echo /usr/sbin/sshd)" -D -e -f "$dir/sshd_config" 2>"$dir/sshd.log" &
    until on b ss -Hlnt 'sport = :2222' | grep -q .; do sleep 0.1; done
    for host in a b; do on $host sysctl -qw net.ipv4.tcp_no_metrics_save=1; done
    on a env HAUL_BOOTSTRAP_TIMES="$dir" HAUL_BOOTSTRAP_HAUL="$haul" "$root/bench/bootstrap.sh" --turns "$turns"
    exit
fi

if [ -n "$out" ]; then
    mkdir -p "$out"
    exec > >(tee "$out/bootstrap.txt")
fi
[ -x "$haul" ] || { echo "error: no $haul: cargo build --release -p haul-cli, or --haul PATH" >&2; exit 2; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
[ -n "$program" ] || program=$([ -x "$static" ] && echo "$static" || echo "$haul")
strip --strip-all -o "$dir/program" "$program"
mkdir -p /run/sshd
for key in host_key user_key; do ssh-keygen -q -t ed25519 -N '' -f "$dir/$key"; done
cat >"$dir/sshd_config" <<CONFIG
Port 2222
HostKey $dir/host_key
AuthorizedKeysFile $dir/user_key.pub
StrictModes no
PidFile none
UsePAM no
PermitRootLogin yes
UseDNS no
SetEnv XDG_CACHE_HOME=$dir/far XDG_CONFIG_HOME=$dir/far XDG_STATE_HOME=$dir/far
CONFIG
echo "far $(cat "$dir/host_key.pub")" >"$dir/known_hosts"
cat >"$dir/ssh_config.in" <<CONFIG
Host far
HostName ADDRESS
HostKeyAlias far
Port 2222
User root
IdentityFile $dir/user_key
IdentitiesOnly yes
UserKnownHostsFile $dir/known_hosts
GlobalKnownHostsFile /dev/null
BatchMode yes
ControlPath none
CONFIG
mkdir -p "$dir/far"
export XDG_CONFIG_HOME=$dir/near XDG_STATE_HOME=$dir/near XDG_CACHE_HOME=$dir/near

echo "bench/bootstrap.sh: $("$haul" --version), $(uname -r), $(nproc) processors, $(date -u '+%F %H:%M') UTC, load $(cut -d' ' -f1-3 /proc/loadavg)"
echo "a program of $(stat -c %s "$dir/program") bytes, $(gzip -6 -c "$dir/program" | wc -c) compressed; $rate, $near and $far ms, the fastest of $turns turns"
for rtt in $near $far; do
    HAUL_BOOTSTRAP_DIR=$dir "$haul" lab wan run --rate "$rate" --rtt "${rtt}ms" -- "$root/bench/bootstrap.sh" --haul "$haul" --turns "$turns" |
        sed "s/^/$rtt /"
done >"$dir/times"

# The fastest, for whatever else the machine does only adds, and what they grow by in round trips.
sort -k1,1n -k2,2 -k3,3n "$dir/times" | awk -v near=$near -v far=$far '
    { key = $1 " " $2; count[key]++; times[key, count[key]] = $3 / 1e9 }
    function fastest(rtt, name) { return times[rtt " " name, 1] }
    function trips(name) { return (fastest(far, name) - fastest(near, name)) / ((far - near) / 1000) }
    function line(text, name) { printf "%-58s %9.2f s %9.2f s %8.1f\n", text, fastest(near, name), fastest(far, name), trips(name) }
    END {
        printf "%-58s %9s   %9s   %8s\n", "from the command to the first byte", near " ms", far " ms", "round trips"
        line("ssh far echo", "login")
        line("haul rsh far echo, haul is there", "there")
        line("haul rsh --bootstrap=once far echo, there is none", "bootstrap")
        line("ssh -C far sha256sum, of nothing", "ssh-empty")
        line("ssh -C far sha256sum, of the program", "ssh-program")
        transfer = trips("ssh-program") - trips("ssh-empty")
        more = trips("bootstrap") - trips("there")
        printf "\nBootstrap takes %.1f round trips more than where haul is there; ssh takes %.1f for the bytes of the program alone (TCP starts slowly).\n", more, transfer
        printf "Besides the transfer, bootstrap costs %.1f round trips; the whole is a login and %.1f round trips.\n", more - transfer, trips("bootstrap") - trips("login") - transfer
    }'

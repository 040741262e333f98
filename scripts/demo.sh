#!/usr/bin/env bash
# The same files by scp and by haul over a WAN of 10 Gbit/s, 100 ms and 0.1 % loss that is emulated on this machine. As root: two hosts made of
# network namespaces, a real sshd on the far one. Otherwise: a daemon behind a relay that plays the same link, and no scp to compare with.
# Everything it makes is in a directory and in namespaces of its own, and goes when it ends. HAUL_BIN: a program built before, to use instead.
set -euo pipefail
cd "$(dirname "$0")/.."

file_mb=${DEMO_FILE_MB:-2000}
tree_files=${DEMO_TREE_FILES:-5000}
# scp gets this long for each copy; what it would need for the rest is computed from its pace.
patience_s=${DEMO_SCP_SECONDS:-12}
link=(--rate 10G --rtt 100ms --loss 0.1%)
# Of 10 Gbit/s: what the headers of 1500-byte packets and the loss leave, in MB a second.
ideal_mb_s=1186

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
seconds() { awk "BEGIN {printf \"%.1f\", $1}"; }
bytes_in() { find "$1" -type f -printf '%s\n' 2>/dev/null | awk '{sum += $1} END {print sum + 0}'; }
hash_of() { (cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16); }

main() {
    haul=${HAUL_BIN:-}
    if [ -z "$haul" ]; then
        say "Building haul"
        cargo build --release --locked -p haul-cli
        haul="$(scripts/target-dir.sh)/release/haul"
    fi
    # In memory where there is room for the source and two copies: a slow disk would hide the network.
    local place=${TMPDIR:-/tmp} need_kb=$((file_mb * 1024 * 4))
    if [ "$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 {print $4}')" -gt "$need_kb" ] 2>/dev/null; then
        place=/dev/shm
    fi
    work=$(mktemp -d "$place/haul-demo.XXXXXX")
    helpers=()
    trap clean EXIT
    trap 'exit 130' INT TERM
    make_files
    export haul work
    if [ "$(id -u)" = 0 ] && command -v ssh >/dev/null && PATH="$PATH:/usr/sbin" command -v sshd >/dev/null; then
        say "A WAN of 10 Gbit/s, 100 ms, 0.1 % loss; TCP there is CUBIC, as on most machines"
        "$haul" lab wan run "${link[@]}" --tcp cubic -- "$PWD/scripts/demo.sh" over-wan
    else
        say "No root, or no sshd: a daemon behind a relay of 10 Gbit/s, 100 ms, 0.1 % loss, and no scp to compare with"
        over_relay
    fi
}

clean() {
    local status=$?
    [ ${#helpers[@]} = 0 ] || kill "${helpers[@]}" 2>/dev/null || true
    rm -rf "$work"
    exit "$status"
}

make_files() {
    say "Making a file of $file_mb MB and a tree of $tree_files real files"
    mkdir -p "$work/source/tree" "$work/scp" "$work/haul"
    head -c "${file_mb}000000" /dev/urandom >"$work/source/file"
    # A broken pipe is how `head` says that it has enough.
    { find /usr/share /usr/include /usr/lib -xdev -type f -size -1000k -readable 2>/dev/null || true; } | head -n "$tree_files" >"$work/list" || true
    tar -cf - -T "$work/list" 2>/dev/null | tar -xf - -C "$work/source/tree"
    echo "$(find "$work/source/tree" -type f | wc -l) files, $(du -sm "$work/source/tree" | cut -f1) MB"
}

# Inside `haul lab wan run`: sshd on host b, copies from host a.
over_wan() {
    ssh-keygen -q -t ed25519 -N '' -f "$work/host_key"
    ssh-keygen -q -t ed25519 -N '' -f "$work/user_key"
    mkdir -p /run/sshd
    cat >"$work/sshd_config" <<CONFIG
Port 2222
ListenAddress $HAUL_LAB_B_ADDRESS
HostKey $work/host_key
AuthorizedKeysFile $work/user_key.pub
StrictModes no
PidFile none
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
UseDNS no
Subsystem sftp internal-sftp
CONFIG
    echo "[$HAUL_LAB_B_ADDRESS]:2222 $(cat "$work/host_key.pub")" >"$work/known_hosts"
    cat >"$work/ssh_config" <<CONFIG
Host far
  HostName $HAUL_LAB_B_ADDRESS
  Port 2222
  User $(id -un)
  IdentityFile $work/user_key
  IdentitiesOnly yes
  UserKnownHostsFile $work/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
CONFIG
    "$haul" lab wan exec b -- "$(PATH="$PATH:/usr/sbin" command -v sshd)" -f "$work/sshd_config"
    on_near=("$haul" lab wan exec a --)
    copy_scp() { timeout "$patience_s" "${on_near[@]}" scp -r -p -F "$work/ssh_config" "$1" "far:$work/scp/"; }
    copy_haul() { "${on_near[@]}" "$haul" cp -r -p -F "$work/ssh_config" --remote-haul "$haul" "$1" "far:$work/haul/"; }
    compare scp
    say "What the WAN saw"
    "$haul" lab wan status
}

over_relay() {
    export XDG_CONFIG_HOME="$work/config"
    local port=17700 relay=17701 client server
    "$haul" serve --state "$work/daemon" --root "demo=$work/haul:rw" --listen "127.0.0.1:$port" 2>"$work/daemon.log" &
    helpers+=($!)
    "$haul" lab relay --listen "127.0.0.1:$relay" --to "127.0.0.1:$port" "${link[@]}" >/dev/null &
    helpers+=($!)
    client=$("$haul" key show | grep -o 'SHA256:[A-Za-z0-9+/]*' | head -1)
    for _ in $(seq 50); do [ -e "$work/daemon/identity" ] && break; sleep 0.1; done
    server=$("$haul" key --state "$work/daemon" show | grep -o 'SHA256:[A-Za-z0-9+/]*' | head -1)
    "$haul" key --state "$work/daemon" authorize "$client" >/dev/null
    "$haul" key trust "127.0.0.1:$relay" "$server" >/dev/null
    copy_haul() { "$haul" cp -r -p "$1" "haul://127.0.0.1:$relay/demo/"; }
    compare
}

# Copies both, by scp too if it is named, and says what it took.
compare() {
    local rows=() what size count all scp_took haul_took start found expected
    for what in file tree; do
        size=$(bytes_in "$work/source/$what")
        scp_took=-
        if [ "${1:-}" = scp ]; then
            say "scp, the $what (for $patience_s s at most)"
            start=$(date +%s%N)
            if copy_scp "$work/source/$what" >"$work/output" 2>&1; then
                scp_took="$(seconds "($(date +%s%N) - $start) / 1e9") s"
                echo "done in $scp_took"
            else
                found=$(bytes_in "$work/scp/$what")
                if [ "$found" = 0 ]; then
                    cat "$work/output" >&2
                    echo "demo: error: scp copied nothing" >&2
                    exit 1
                fi
                # Small files cost round trips, large ones bytes: what is nearer to its end counts, to scp's favour.
                count=$(find "$work/scp/$what" -type f | wc -l) all=$(find "$work/source/$what" -type f | wc -l)
                [ "$all" -gt 1 ] || count=0
                scp_took=$(awk "BEGIN {a = $found / $size; b = $count / $all; s = $patience_s / (a > b ? a : b)
                    if (s < 300) printf \"%.0f s *\", s; else printf \"%.0f min *\", s / 60}")
                echo "stopped: $(seconds "$found / 1e6") of $(seconds "$size / 1e6") MB arrived in $patience_s s"
            fi
        fi
        say "haul cp, the $what"
        start=$(date +%s%N)
        copy_haul "$work/source/$what"
        haul_took=$(seconds "($(date +%s%N) - $start) / 1e9")
        rows+=("$what ($(seconds "$size / 1e6") MB)|$scp_took|$haul_took s|$(seconds "$size / 1e6 / $ideal_mb_s") s")
    done
    say "Result"
    printf '%-24s %12s %12s %12s\n' '' scp 'haul cp' ideal
    for what in "${rows[@]}"; do
        IFS='|' read -r what scp_took haul_took found <<<"$what"
        printf '%-24s %12s %12s %12s\n' "$what" "$scp_took" "$haul_took" "$found"
    done
    echo "ideal: the bytes at the line's rate, without logging in (1.6 s at 100 ms) and without starting"
    [ "${1:-}" != scp ] || echo "*: at the pace of its first $patience_s s"
    expected=$(hash_of "$work/source")
    found=$(hash_of "$work/haul")
    if [ "$found" != "$expected" ]; then
        echo "demo: error: what haul copied is not what was sent: $found, not $expected" >&2
        exit 1
    fi
    echo "haul: SHA-256 over every file is the same at both ends ($found)"
}

if [ "${1:-}" = over-wan ]; then over_wan; else main; fi

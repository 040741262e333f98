#!/usr/bin/env bash
# A real copy, with scp beside it. As root: two hosts made of network namespaces, a real sshd on one of them. Otherwise: a daemon on loopback.
# Everything it makes is in a directory and in namespaces of its own, and goes when it ends. HAUL_BIN: a program built before, to use instead.
set -euo pipefail
cd "$(dirname "$0")/.."

file_mb=${DEMO_FILE_MB:-1000}
tree_files=${DEMO_TREE_FILES:-5000}

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

haul=${HAUL_BIN:-}
if [ -z "$haul" ]; then
    say "Building haul"
    cargo build --release --locked -p haul-cli
    haul="$(scripts/target-dir.sh)/release/haul"
fi

# In memory where there is room for the source and two copies: a slow disk would hide the network.
need_kb=$((file_mb * 1024 * 4))
place=${TMPDIR:-/tmp}
if [ "$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 {print $4}')" -gt "$need_kb" ] 2>/dev/null; then
    place=/dev/shm
fi
work=$(mktemp -d "$place/haul-demo.XXXXXX")
id=haul-demo-$$
near=$id-near
far=$id-far
daemon=

clean() {
    local status=$?
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    if [ -e "/run/netns/$far" ]; then
        ip netns pids "$far" | xargs -r kill 2>/dev/null || true
    fi
    for namespace in "$near" "$far"; do
        [ ! -e "/run/netns/$namespace" ] || ip netns del "$namespace"
    done
    rm -rf "$work"
    exit "$status"
}
trap clean EXIT
trap 'exit 130' INT TERM

say "Making a file of $file_mb MB and a tree of $tree_files real files"
mkdir -p "$work/source/tree" "$work/scp" "$work/haul"
head -c "${file_mb}000000" /dev/urandom >"$work/source/file"
# A broken pipe is how `head` says that it has enough.
{ find /usr/share /usr/include /usr/lib -xdev -type f -size -1000k -readable 2>/dev/null || true; } | head -n "$tree_files" >"$work/list" || true
tar -cf - -T "$work/list" 2>/dev/null | tar -xf - -C "$work/source/tree"
echo "$(find "$work/source/tree" -type f | wc -l) files, $(du -sm "$work/source/tree" | cut -f1) MB"

hash_of() { (cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16); }

# Runs a command, quietly, and leaves the time it took, in seconds, in `took`. What it prints is shown where it fails.
timed() {
    local start end
    start=$(date +%s%N)
    if ! "$@" >"$work/output" 2>&1; then
        cat "$work/output" >&2
        echo "demo: error: failed: $*" >&2
        exit 1
    fi
    end=$(date +%s%N)
    took=$(awk "BEGIN {printf \"%.2f\", ($end - $start) / 1e9}")
}

make_hosts() {
    ip netns add "$near"
    ip netns add "$far"
    ip link add wan netns "$near" type veth peer name wan netns "$far"
    local namespace last=1
    for namespace in "$near" "$far"; do
        ip -n "$namespace" address add "10.78.0.$last/24" dev wan
        ip -n "$namespace" link set lo up
        ip -n "$namespace" link set wan up
        last=2
    done
    ssh-keygen -q -t ed25519 -N '' -f "$work/host_key"
    ssh-keygen -q -t ed25519 -N '' -f "$work/user_key"
    mkdir -p /run/sshd
    cat >"$work/sshd_config" <<CONFIG
Port 2222
ListenAddress 10.78.0.2
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
    echo "[10.78.0.2]:2222 $(cat "$work/host_key.pub")" >"$work/known_hosts"
    cat >"$work/ssh_config" <<CONFIG
Host far
  HostName 10.78.0.2
  Port 2222
  User $(id -un)
  IdentityFile $work/user_key
  IdentitiesOnly yes
  UserKnownHostsFile $work/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
CONFIG
    ip netns exec "$far" "$(PATH="$PATH:/usr/sbin" command -v sshd)" -f "$work/sshd_config"
}

if [ "$(id -u)" = 0 ] && command -v ip >/dev/null && command -v ssh >/dev/null && PATH="$PATH:/usr/sbin" command -v sshd >/dev/null; then
    say "Two hosts: network namespaces joined by a link, sshd on the far one"
    make_hosts
    on_near=(ip netns exec "$near")
    copy_scp() { "${on_near[@]}" scp -q -r -p -F "$work/ssh_config" "$1" "far:$work/scp/"; }
    copy_haul() { "${on_near[@]}" "$haul" cp -r -p -F "$work/ssh_config" --remote-haul "$haul" "$1" "far:$work/haul/"; }
    with_scp=yes
else
    say "No root, or no sshd: a daemon on loopback, and no scp to compare with"
    export XDG_CONFIG_HOME="$work/config"
    "$haul" serve --state "$work/daemon" --root "demo=$work/haul:rw" --listen 127.0.0.1:17700 2>"$work/daemon.log" &
    daemon=$!
    client=$("$haul" key show | grep -o 'SHA256:[A-Za-z0-9+/]*' | head -1)
    for _ in $(seq 50); do [ -e "$work/daemon/identity" ] && break; sleep 0.1; done
    server=$("$haul" key --state "$work/daemon" show | grep -o 'SHA256:[A-Za-z0-9+/]*' | head -1)
    "$haul" key --state "$work/daemon" authorize "$client" >/dev/null
    "$haul" key trust 127.0.0.1:17700 "$server" >/dev/null
    copy_haul() { "$haul" cp -r -p "$1" "haul://127.0.0.1:17700/demo/"; }
    with_scp=
fi

expected=$(hash_of "$work/source")
results=()
for what in file tree; do
    say "Copying the $what"
    scp_took=-
    if [ -n "$with_scp" ]; then
        timed copy_scp "$work/source/$what"
        scp_took=$took
        echo "scp      $scp_took s"
    fi
    timed copy_haul "$work/source/$what"
    echo "haul cp  $took s"
    sed 's/^/         /' "$work/output"
    results+=("$what $scp_took $took")
done

say "Result"
printf '%-28s %10s %10s\n' '' scp 'haul cp'
for result in "${results[@]}"; do
    read -r what scp_took haul_took <<<"$result"
    case $what in
        file) what="one file of $file_mb MB" ;;
        tree) what="a tree of $tree_files files" ;;
    esac
    printf '%-28s %8s s %8s s\n' "$what" "$scp_took" "$haul_took"
done
for copy in ${with_scp:+scp} haul; do
    found=$(hash_of "$work/$copy")
    if [ "$found" != "$expected" ]; then
        echo "demo: error: what $copy copied is not what was sent: $found, not $expected" >&2
        exit 1
    fi
    echo "$copy: SHA-256 over every file is the same at both ends ($found)"
done

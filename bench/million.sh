#!/bin/bash
# Memory of both ends of `haul cp` of many empty files over loopback: most that was resident (VmHWM), and how long it took.
#
#     bench/million.sh HAUL [FILES] [DIRECTORY]
#
# HAUL is the program; a million files in /dev/shm unless told otherwise, in directories of a thousand. All of it is removed at the end.
set -eu
haul=$(realpath "$1")
files=${2:-1000000}
place=$(mktemp -d "${3:-/dev/shm}/haul-million.XXXXXX")
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$place"' EXIT

mkdir -p "$place"/{near,far,source,arrived}
python3 - "$place/source" "$files" <<'MAKE'
import os, sys
root, files = sys.argv[1], int(sys.argv[2])
for number in range(files):
    directory = f"{root}/d{number // 1000}"
    if number % 1000 == 0:
        os.mkdir(directory)
    os.close(os.open(f"{directory}/file{number}", os.O_CREAT | os.O_WRONLY, 0o644))
MAKE

# Each end with keys of its own.
near() { XDG_CONFIG_HOME=$place/near "$@"; }
far() { XDG_CONFIG_HOME=$place/far "$@"; }
far "$haul" key authorize "$(near "$haul" key show)" --name near >"$place/said"
listen() {
    # What the last daemon has said is not to be taken for this one's.
    rm -f "$place/log"
    XDG_CONFIG_HOME=$place/far "$haul" serve --listen 127.0.0.1:0 --root "in=$place/arrived:rw" 2>"$place/log" &
    server=$!
    until address=$(grep -so 'address=[^ ]*' "$place/log" | head -1 | cut -d= -f2) && [ -n "$address" ]; do sleep 0.1; done
    near "$haul" key trust "$address" "$(far "$haul" key show)" >>"$place/said"
}

listen

# Says what a copy from $1 to $2 took; $3: where what arrives is.
measure() {
    local begun near_peak=0 peak client came
    begun=$(date +%s.%N)
    XDG_CONFIG_HOME=$place/near "$haul" cp -q -r "$1" "$2" &
    client=$!
    while peak=$(awk '/VmHWM/ { print $2 }' "/proc/$client/status" 2>/dev/null) && [ -n "$peak" ]; do
        near_peak=$peak
        sleep 0.05
    done
    wait "$client"
    came=$(find "$3" -type f | wc -l)
    echo "$came of $files files in $(echo "$(date +%s.%N) - $begun" | bc) s; most resident: client $((near_peak / 1024)) MiB," \
        "daemon $(($(awk '/VmHWM/ { print $2 }' "/proc/$server/status") / 1024)) MiB"
    [ "$came" = "$files" ]
}

echo "to the daemon:"
measure "$place/source" "haul://$address/in/" "$place/arrived"
rm -rf "$place/source"
# A new daemon, for its peak is that of all its life.
kill "$server" && wait "$server" || true
listen
echo "from the daemon:"
measure "haul://$address/in/source" "$place/near/" "$place/near/source"

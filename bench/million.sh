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
trap 'kill "${server:-0}" 2>/dev/null || true; rm -rf "$place"' EXIT

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
XDG_CONFIG_HOME=$place/far "$haul" serve --listen 127.0.0.1:0 --root "in=$place/arrived:rw" 2>"$place/log" &
server=$!
until address=$(grep -o 'address=[^ ]*' "$place/log" | head -1 | cut -d= -f2) && [ -n "$address" ]; do sleep 0.1; done
near "$haul" key trust "$address" "$(far "$haul" key show)" >>"$place/said"

begun=$(date +%s.%N)
XDG_CONFIG_HOME=$place/near "$haul" cp -q -r "$place/source" "haul://$address/in/" &
client=$!
near_peak=0
while peak=$(awk '/VmHWM/ { print $2 }' "/proc/$client/status" 2>/dev/null) && [ -n "$peak" ]; do
    near_peak=$peak
    sleep 0.05
done
wait "$client"
took=$(echo "$(date +%s.%N) - $begun" | bc)
far_peak=$(awk '/VmHWM/ { print $2 }' "/proc/$server/status")
came=$(find "$place/arrived" -type f | wc -l)
echo "$came of $files files in $took s; most resident: sender $((near_peak / 1024)) MiB, receiver $((far_peak / 1024)) MiB"
[ "$came" = "$files" ]

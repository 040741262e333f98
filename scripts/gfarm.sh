#!/usr/bin/env bash
# A Gfarm of one's own on this machine, for tests: a metadata server that keeps all in memory and three storage servers, on 127.0.0.1 and 127.0.0.11 to .13. Needs no root and no namespaces,
# starts in 0.3 s. Debian: gfmd gfsd gfarm-client (scripts/setup.sh installs them, 6 s).
#
#   scripts/gfarm.sh up DIR PORT [FREE]   starts it (ends with 3 where somebody has PORT); it has PORT and the one below it, leaves FREE of a disk alone (1M), and GFARM_CONFIG_FILE=DIR/etc/gfarm2.conf is how to use it
#   scripts/gfarm.sh meta DIR PORT HOST [FREE]   starts the metadata server alone, whose address for all others is HOST
#   scripts/gfarm.sh register DIR N       makes a storage server known: with an address before it is started in the network namespace that has it; libgfarm crashes where a device of the namespace is a tunnel
#   scripts/gfarm.sh kill DIR N           kills the storage server N with what serves clients at the moment
#   scripts/gfarm.sh start DIR N          starts it again
#   scripts/gfarm.sh spread DIR PATH N   brings a file (/path) to N of the servers, and waits until they have it
#   scripts/gfarm.sh down DIR             stops all of it; the directory stays
set -euo pipefail
PATH="$PATH:/usr/sbin:/sbin"
verb=$1 dir=$2
export GFARM_CONFIG_FILE=$dir/etc/gfarm2.conf

# Waits until a command succeeds, for 30 s.
until_true() {
    for _ in $(seq 600); do
        if "$@" 2>/dev/null; then return; fi
        sleep 0.05
    done
    echo "gfarm.sh: no success in 30 s: $*" >&2
    exit 1
}

# Whether the process with the number in this file is there.
runs() { kill -0 "$(cat "$1")" 2>/dev/null; }

listens_or_gone() { ss -Hltnp "sport = :$1" | grep -q "pid=$(cat "$dir/run/gfmd.pid")," || ! runs "$dir/run/gfmd.pid"; }

# Whether as many storage servers are up as were ever added and not killed.
all_up() { [ "$(gfhost | wc -l)" = "$(find "$dir/run" -name 'gfsd-*.pid' | wc -l)" ]; }

# Of a file and a number: as many servers have it. gfmd says "device busy" while a server still removes an earlier copy: one asks again.
spread() { gfrep -q -N "$2" "gfarm:$1" && [ "$(gfwhere "gfarm:$1" | wc -w)" = "$2" ]; }

# The address of a storage server.
address_of() { case $1 in *.*) echo "$1" ;; *) echo "127.0.0.$1" ;; esac; }

start_meta() {
    local port=$1 host=$2 free=${3:-1M} me
    me=$(id -un)
    mkdir -p "$dir"/{etc,run,log}
    printf '_gfarmfs %s\n_gfarmmd %s\n' "$me" "$me" >"$dir/etc/users"
    printf '%s\n' "metadb_server_host $host" "metadb_server_port $port" "admin_user $me" 'auth enable sharedsecret *' \
        'metadb_replication disable' 'digest md5' "local_user_map $dir/etc/users" >"$dir/etc/gfmd.conf"
    # Hosts are never too busy for a test; a silent server is given up after 10 s, and room that nobody has after 1 s.
    printf '%s\n' "metadb_server_host $host" "metadb_server_port $port" 'auth enable sharedsecret *' 'schedule_busy_load_thresh 1000' \
        'schedule_idle_load_thresh 1000' 'network_receive_timeout 10' 'no_file_system_node_timeout 1' "minimum_free_disk_space $free" >"$dir/etc/gfarm2.conf"
    cp "$dir/etc/gfarm2.conf" "$dir/etc/gfsd.conf"
    echo "local_user_map $dir/etc/users" >>"$dir/etc/gfsd.conf"
    echo "$port" >"$dir/etc/port"
    # The key is this user's, in the home directory, for a day; one that is there is kept.
    gfkey -c -p 86400
    gfmd -f "$dir/etc/gfmd.conf" -P "$dir/run/gfmd.pid" -F "$dir/log/gfmd.log"
    # The process that writes the number is not the one that has returned: on a busy machine it is not there yet.
    for _ in $(seq 100); do
        [ ! -s "$dir/run/gfmd.pid" ] || break
        sleep 0.05
    done
    # It aborts where somebody else has its port.
    until_true listens_or_gone "$port"
    if ! runs "$dir/run/gfmd.pid"; then
        echo "gfarm.sh: gfmd has ended: $(grep -F '<err>' "$dir/log/gfmd.log" || tail -3 "$dir/log/gfmd.log")" >&2
        exit 3
    fi
}

register() {
    local host port
    host=$(address_of "$1") port=$(cat "$dir/etc/port")
    mkdir -p -m 700 "$dir/spool-$host"
    gfhost -c -a amd64-linux -p $((port - 1)) -n 1 "$host"
}

start_storage() {
    local host
    host=$(address_of "$1")
    gfsd -f "$dir/etc/gfsd.conf" -h "$host" -l "$host" -r "$dir/spool-$host" -P "$dir/run/gfsd-$host.pid" -F "$dir/log/gfsd-$host.log"
}

# Ends a server with its children, by the number in its file.
end_server() {
    local pid
    pid=$(cat "$1" 2>/dev/null) || return 0
    # shellcheck disable=SC2046 # each is a number
    kill -9 "$pid" $(ps -o pid= --ppid "$pid") 2>/dev/null || true
    rm -f "$1"
}

case $verb in
up)
    start_meta "$3" 127.0.0.1 "${4:-}"
    for n in 11 12 13; do
        register "$n"
        start_storage "$n"
    done
    until_true all_up
    ;;
meta)
    start_meta "$3" "$4" "${5:-}"
    ;;
register)
    register "$3"
    ;;
kill)
    end_server "$dir/run/gfsd-$(address_of "$3").pid"
    ;;
start)
    start_storage "$3"
    until_true all_up
    ;;
spread)
    until_true spread "$3" "$4"
    ;;
down)
    port=$(cat "$dir/etc/port")
    for pid in "$dir"/run/*.pid; do
        end_server "$pid"
    done
    for spool in "$dir"/spool-*; do
        host=${spool##*/spool-}
        rm -rf "/tmp/.gfarm-gfsd$host-$((port - 1))" "/tmp/gfsd-readonly-${host}_$((port - 1))"
    done
    ;;
*)
    echo "gfarm.sh: up, meta, register, kill, start, spread or down" >&2
    exit 2
    ;;
esac

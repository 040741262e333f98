#!/usr/bin/env bash
# A Gfarm of one's own on this machine, for tests: a metadata server that keeps all in memory and three storage servers, on 127.0.0.1 and 127.0.0.11 to .13. Needs no root and no namespaces,
# starts in 0.3 s. Debian: gfmd gfsd gfarm-client (scripts/setup.sh installs them, 6 s).
#
#   scripts/gfarm.sh up DIR PORT [FREE]   starts it; it has PORT and the one below it, leaves FREE of a disk alone (1M), and GFARM_CONFIG_FILE=DIR/etc/gfarm2.conf is how to use it
#   scripts/gfarm.sh kill DIR N           kills the storage server 127.0.0.N with what serves clients at the moment
#   scripts/gfarm.sh start DIR N          starts it again
#   scripts/gfarm.sh spread DIR PATH N   brings a file (/path) to N of the servers, and waits until they have it
#   scripts/gfarm.sh down DIR             stops all of it; the directory stays
#
# And one whose servers are on several hosts, as network namespaces that see each other:
#   scripts/gfarm.sh meta DIR PORT ADDRESS STORE...  on the host with that address: the metadata server, which is told of stores at these addresses (gfhost -c ends in a fault on hosts whose own name nobody knows)
#   scripts/gfarm.sh store DIR ADDRESS    on the host with that address: its storage server
#   scripts/gfarm.sh ready DIR N          waits until so many are there
set -euo pipefail
PATH="$PATH:/usr/sbin:/sbin"
verb=$1 dir=$2
export GFARM_CONFIG_FILE=$dir/etc/gfarm2.conf

# Waits until a command succeeds, for 10 s.
until_true() {
    for _ in $(seq 200); do
        if "$@" 2>/dev/null; then return; fi
        sleep 0.05
    done
    echo "gfarm.sh: no success in 10 s: $*" >&2
    exit 1
}

answers() { (exec 3<>"/dev/tcp/$1/$2"); }

all_up() { [ "$(gfhost | wc -l)" = "${1:-3}" ]; }

# What clients and servers are told: where the metadata server is, its port, and what is left free of a disk.
configure() {
    local me
    me=$(id -un)
    mkdir -p "$dir"/{etc,run,log}
    printf '_gfarmfs %s\n_gfarmmd %s\n' "$me" "$me" >"$dir/etc/users"
    printf '%s\n' "metadb_server_host $1" "metadb_server_port $2" "admin_user $me" 'auth enable sharedsecret *' \
        'metadb_replication disable' 'digest md5' "local_user_map $dir/etc/users" >"$dir/etc/gfmd.conf"
    # Hosts are never too busy for a test; a silent server is given up after 10 s, and room that nobody has after 1 s.
    printf '%s\n' "metadb_server_host $1" "metadb_server_port $2" 'auth enable sharedsecret *' 'schedule_busy_load_thresh 1000' \
        'schedule_idle_load_thresh 1000' 'network_receive_timeout 10' 'no_file_system_node_timeout 1' "minimum_free_disk_space $3" >"$dir/etc/gfarm2.conf"
    cp "$dir/etc/gfarm2.conf" "$dir/etc/gfsd.conf"
    echo "local_user_map $dir/etc/users" >>"$dir/etc/gfsd.conf"
    echo "$2" >"$dir/etc/port"
}

start_meta() {
    # The key is this user's, in the home directory, for a day; one that is there is kept.
    gfkey -c -p 86400
    gfmd -f "$dir/etc/gfmd.conf" -P "$dir/run/gfmd.pid" -F "$dir/log/gfmd.log"
    until_true answers "$1" "$2"
}

# Of a file and a number: as many servers have it. gfmd says "device busy" while a server still removes an earlier copy: one asks again.
spread() { gfrep -q -N "$2" "gfarm:$1" && [ "$(gfwhere "gfarm:$1" | wc -w)" = "$2" ]; }

start_storage() {
    local address=$1
    [[ $address = *.* ]] || address=127.0.0.$1
    gfsd -f "$dir/etc/gfsd.conf" -h "$address" -l "$address" -r "$dir/spool-$1" -P "$dir/run/gfsd-$1.pid" -F "$dir/log/gfsd-$1.log"
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
    port=$3
    configure 127.0.0.1 "$port" "${4:-1M}"
    start_meta 127.0.0.1 "$port"
    for n in 11 12 13; do
        mkdir -p -m 700 "$dir/spool-$n"
        gfhost -c -a amd64-linux -p $((port - 1)) -n 1 "127.0.0.$n"
        start_storage "$n"
    done
    until_true all_up
    ;;
meta)
    port=$3 address=$4
    configure "$address" "$port" 1M
    start_meta "$address" "$port"
    for store in "${@:5}"; do
        gfhost -c -a amd64-linux -p $((port - 1)) -n 1 "$store"
    done
    ;;
store)
    mkdir -p -m 700 "$dir/spool-$3"
    start_storage "$3"
    ;;
ready)
    until_true all_up "$3"
    ;;
kill)
    end_server "$dir/run/gfsd-$3.pid"
    ;;
start)
    start_storage "$3"
    until_true all_up
    ;;
spread)
    until_true spread "$3" "$4"
    ;;
down)
    for pid in "$dir"/run/*.pid; do
        end_server "$pid"
    done
    port=$(cat "$dir/etc/port")
    for spool in "$dir"/spool-*; do
        address=${spool##*/spool-}
        [[ $address = *.* ]] || address=127.0.0.$address
        rm -rf "/tmp/.gfarm-gfsd$address-$((port - 1))" "/tmp/gfsd-readonly-${address}_$((port - 1))"
    done
    ;;
*)
    echo "gfarm.sh: up, kill, start, spread, meta, store, ready or down" >&2
    exit 2
    ;;
esac

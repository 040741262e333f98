#!/usr/bin/env bash
# Programs that know nothing of haul, across an emulated WAN: plain, through ssh, and through haul. Needs root, and what scripts/setup-bench.sh
# installs; of nginx, postgresql (initdb, pgbench), git, iperf3 and nc, who is missing is skipped.
#
#     bench/programs.sh [--haul PATH] [--rate 1G] [--rtt 100ms] [--loss 0.1%] [--mib 954] [--limit 60] [--tcp cubic] [--plain] [NAME ..]
#
# --tcp is the congestion control of both hosts' TCP, one of the kernel's or a mode of `haul tcp`; with --plain there is no haul but for that.
# NAME: pipe scp rsync curl small psql pgbench git iperf; by default all. Each runs once a way; what takes longer than the limit (seconds) is ended, and
# its figure is what had arrived by then (>). Both ends are on disks in memory. Logging in is part of the time of pipe and rsync over ssh; forwards
# are up before programs use them. After a copy the bytes are compared.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
haul=$(cd "$root" && scripts/target-dir.sh)/release/haul
rate=1G rtt=100ms loss=0.1% mib=954 limit=60 tcp=cubic plain= names=()
while [ $# -gt 0 ]; do
    case $1 in
        --haul) haul=$(realpath "$2"); shift 2 ;;
        --rate) rate=$2; shift 2 ;;
        --rtt) rtt=$2; shift 2 ;;
        --loss) loss=$2; shift 2 ;;
        --mib) mib=$2; shift 2 ;;
        --limit) limit=$2; shift 2 ;;
        --tcp) tcp=$2; shift 2 ;;
        --plain) plain=--plain; shift ;;
        -*) echo "error: unknown option $1" >&2; exit 2 ;;
        *) names+=("$1"); shift ;;
    esac
done
[ ${#names[@]} -gt 0 ] || names=(pipe scp rsync curl small psql pgbench git iperf)

if [ -z "${HAUL_PROGRAMS:-}" ]; then
    link=(--rate "$rate" --rtt "$rtt" --loss "$loss")
    place=$(mktemp -d /dev/shm/haul-programs.XXXXXX)
    trap 'rm -rf "$place"' EXIT
    echo "$("$haul" --version), $(uname -r), $(nproc) processors, $(date -u '+%F %H:%M') UTC, load $(cut -d' ' -f1-3 /proc/loadavg); ${link[*]}; TCP $tcp"
    wan=("$haul" lab wan run)
    case $tcp in
        fair | quickstart | modest | aggressive | fast | highspeed | scalable | bic | westwood | lia | olia | balia)
            # What is in the kernel for this run; the hosts' routes then name it, as `haul tcp on MODE --to NET` has them do.
            wan=("$haul" tcp run --mode "$tcp" -- "${wan[@]}" --tcp "haul_$tcp") ;;
        *) wan+=(--tcp "$tcp") ;;
    esac
    HAUL_PROGRAMS=$place "${wan[@]}" "${link[@]}" -- "$root/bench/programs.sh" --haul "$haul" --mib "$mib" --limit "$limit" $plain "${names[@]}"
    exit
fi

. "$root/scripts/sshd.sh"
place=$HAUL_PROGRAMS far=$HAUL_LAB_B_ADDRESS
a() { "$haul" lab wan exec --name "$HAUL_LAB_NAME" a -- "$@"; }
b() { "$haul" lab wan exec --name "$HAUL_LAB_NAME" b -- "$@"; }
there() { command -v "$1" >/dev/null || { echo "SKIPPED: there is no $1" >&2; return 1; }; }
now() { date +%s.%N; }
# WHAT WAY SECONDS BYTES STATUS
row() {
    awk -v what="$1" -v way="$2" -v s="$3" -v bytes="$4" -v status="$5" 'BEGIN {
        printf "%-12s%-22s%s%8.2f s%10.1f Mbit/s%s\n", what, way, status == 124 ? ">" : " ", s, bytes * 8e-6 / s,
            status == 0 || status == 124 ? "" : "   FAILED, status " status }'
}
# Waits until somebody listens at a TCP port: HOST PORT
listening() {
    for _ in $(seq 100); do
        "$1" ss -Hlnt "sport = :$2" | grep -q . && return
        sleep 0.1
    done
    echo "error: nobody listens at port $2 of host $1" >&2
    return 1
}

set_up_ssh() {
    cd "$place"
    # A shell that sshd starts reads the user's files: they would be part of each login, and of each command.
    mkdir far
    write_ssh_files "$far" "Subsystem sftp internal-sftp" "SetEnv HOME=$place/far XDG_STATE_HOME=$place/far XDG_CONFIG_HOME=$place/far"
    export XDG_STATE_HOME=$place/near XDG_CONFIG_HOME=$place/near
    b /usr/sbin/sshd -D -f "$place/sshd_config" &
    listening b 22
}

# The row of the last copy once more, without the time from ssh's start until the far side listens, as the copy's own log tells it.
without_login() {
    local login
    login=$(awk 'function at(stamp) { split(substr(stamp, 12), t, ":"); return t[1] * 3600 + t[2] * 60 + t[3] }
        /ssh starts/ { a = at($1) } /the far side listens/ { b = at($1) } END { if (b > a) print b - a }' "$place/errors")
    [ -z "$login" ] || row "$copied" "  without the login" "$(echo "$seconds - $login" | bc)" "$bytes" "$status"
}

# Runs a copy, compares, and prints its row: WHAT WAY COMMAND ..
copy() {
    local what=$1 way=$2 begin
    copied=$1 status=0
    shift 2
    rm -rf arrived && mkdir arrived
    begin=$(now)
    timeout "$limit" "$@" 2>"$place/errors" || status=$?
    seconds=$(echo "$(now) - $begin" | bc)
    bytes=$(find arrived -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }')
    [ "$status" != 0 ] || cmp file arrived/file || status=different
    row "$what" "$way" "$seconds" "$bytes" "$status"
    case $status in 0 | 124) ;; *) tail -3 "$place/errors" >&2 ;; esac
}

pipe_nc() {
    b nc -l 9000 >arrived/file &
    listening b 9000
    a nc -N "$far" 9000 <file
    wait $!
}
pipe_ssh() { a ssh -F ssh_config far "cat >$place/arrived/file" <file; }
# What follows are options of haul pipe.
pipe_haul() { a "$haul" pipe -q "$@" -F ssh_config --remote-haul "$haul" far -- "cat >$place/arrived/file" <file; }
# Without logging in, like nc.
pipe_listen() {
    b "$haul" pipe -l 9001 --anyone </dev/null >arrived/file 2>listens &
    until grep -q -e --key listens; do sleep 0.1; done
    a "$haul" pipe -q "$@" --key "$(sed -n 's/.*--key \([^ ]*\) .*/\1/p' listens)" "$far" 9001 <file >/dev/null
    wait $!
}
export -f pipe_nc pipe_ssh pipe_haul pipe_listen a b listening
export haul place far

measure_pipe() {
    ! there nc || copy pipe nc bash -ec pipe_nc
    copy pipe ssh bash -ec pipe_ssh
    [ -z "$plain" ] || return 0
    copy pipe 'haul pipe, ssh' bash -ec pipe_haul
    copy pipe '  fair' bash -ec 'pipe_haul --mode fair'
    copy pipe 'haul pipe -l' bash -ec pipe_listen
    copy pipe '  fair' bash -ec 'pipe_listen --mode fair'
}

measure_scp() {
    copy scp ssh "$haul" lab wan exec --name "$HAUL_LAB_NAME" a -- scp -q -F ssh_config file far:"$place/arrived/"
}

measure_rsync() {
    there rsync || return 0
    copy rsync ssh "$haul" lab wan exec --name "$HAUL_LAB_NAME" a -- \
        rsync -a --whole-file --inplace -e "ssh -F ssh_config" file far:"$place/arrived/"
    [ -z "$plain" ] || return 0
    copy rsync 'haul rsync' env RUST_LOG=debug "$haul" lab wan exec --name "$HAUL_LAB_NAME" a -- \
        rsync -a --whole-file --inplace -e "$haul rsh -F ssh_config --remote-haul $haul" file far:"$place/arrived/"
    without_login
    copy rsync '  fair' "$haul" lab wan exec --name "$HAUL_LAB_NAME" a -- \
        rsync -a --whole-file --inplace -e "$haul rsh --mode fair -F ssh_config --remote-haul $haul" file far:"$place/arrived/"
}

# The ways of a program to a port of host b: WAY HOST PORT lines
ways() {
    printf '%s\n' "plain $far $1"
    [ -z "$plain" ] || return 0
    printf '%s\n' "ssh-L 127.0.0.1 1$1"
    ! proxies || printf '%s\n' "haul-proxy 127.0.0.1 2$1"
}
proxies() { "$haul" proxy --help >/dev/null 2>&1; }

set_up_forwards() {
    [ -z "$plain" ] || return 0
    local ports=(8080 5432 5201) ssh=() proxy=() port
    for port in "${ports[@]}"; do
        ssh+=(-L "127.0.0.1:1$port:127.0.0.1:$port") proxy+=(-L "127.0.0.1:2$port:127.0.0.1:$port")
    done
    a ssh -F ssh_config -N "${ssh[@]}" far &
    if proxies; then a "$haul" proxy -q -F ssh_config --remote-haul "$haul" "${proxy[@]}" far & fi
    for port in "${ports[@]}"; do
        listening a "1$port"
        ! proxies || listening a "2$port"
    done
}

set_up_nginx() {
    mkdir -p web/small
    ln -f file web/file
    for n in $(seq 1000); do head -c 4096 file >"web/small/$n"; done
    ! there git || { git clone -q --bare "$root" web/repository.git && git -C web/repository.git update-server-info; }
    printf '%s\n' 'user root; daemon off; worker_processes 2; pid nginx.pid; error_log nginx.log;' 'events { worker_connections 4096; }' \
        "http { access_log off; sendfile on; keepalive_requests 10000; server { listen 8080; root $place/web; } }" >nginx.conf
    b nginx -p "$place" -c "$place/nginx.conf" &
    listening b 8080
}

measure_curl() {
    while read -r way host port; do
        local told status=0
        told=$(a curl -s -m "$limit" -o arrived/file -w '%{time_total} %{size_download}' "http://$host:$port/file") || status=$?
        [ "$status" != 28 ] || status=124
        [ "$status" != 0 ] || cmp file arrived/file || status=different
        row 'curl 1' "$way" "${told% *}" "${told#* }" "$status"
    done < <(ways 8080)
}

measure_small() {
    while read -r way host port; do
        local begin status=0
        begin=$(now)
        timeout "$limit" "$haul" lab wan exec --name "$HAUL_LAB_NAME" a -- curl -f --no-progress-meter -H 'Connection: close' \
            -Z --parallel-immediate --parallel-max 50 -o /dev/null -w '%{stdout}%{size_download}\n' "http://$host:$port/small/[1-1000]" >sizes 2>errors ||
            status=$?
        row '1000 small' "$way" "$(echo "$(now) - $begin" | bc)" "$(awk '{ sum += $1 } END { print sum + 0 }' sizes)" "$status"
    done < <(ways 8080)
}

measure_git() {
    while read -r way host port; do
        local begin status=0
        rm -rf clone
        begin=$(now)
        timeout "$limit" "$haul" lab wan exec --name "$HAUL_LAB_NAME" a -- git clone -q --bare "http://$host:$port/repository.git" "$place/clone" || status=$?
        row 'git clone' "$way" "$(echo "$(now) - $begin" | bc)" "$(du -sb clone | cut -f1)" "$status"
    done < <(ways 8080)
}

set_up_postgres() {
    bin=$(dirname "$(readlink -f "$(command -v initdb || find /usr/lib/postgresql -name initdb | head -1)")")
    mkdir -p data && chown postgres data && chmod 755 "$place"
    su postgres -c "$bin/initdb -A trust -D $place/data" >/dev/null
    b su postgres -c "$bin/postgres -D $place/data -k $place/data -h '*' -c listen_addresses='*' -c fsync=off" >postgres.log 2>&1 &
    echo "host all all 0.0.0.0/0 trust" >>data/pg_hba.conf
    listening b 5432
    b pgbench -q -i -s 1 -h 127.0.0.1 -U postgres postgres 2>/dev/null
}

# Killed, it would leave its shared memory behind.
stop_postgres() { su postgres -c "$bin/pg_ctl -D $place/data -m fast -s stop"; }

measure_psql() {
    while read -r way host port; do
        local begin status=0
        begin=$(now)
        timeout "$limit" "$haul" lab wan exec --name "$HAUL_LAB_NAME" a -- psql -q -h "$host" -p "$port" -U postgres postgres -o arrived/rows \
            -c "copy (select repeat('x', 999) from generate_series(1, 100000)) to stdout" || status=$?
        row 'psql copy' "$way" "$(echo "$(now) - $begin" | bc)" "$(stat -c %s arrived/rows)" "$status"
    done < <(ways 5432)
}

measure_pgbench() {
    while read -r way host port; do
        printf '%-12s%-22s%s\n' pgbench "$way" "$(a pgbench -n -S -c 20 -j 2 -T 10 -h "$host" -p "$port" -U postgres postgres 2>/dev/null |
            sed -nE 's/^(latency average) = |^(tps) = /\1\2 /p; /failed/p' | paste -sd, | sed 's/,/, /g')"
    done < <(ways 5432)
}

measure_iperf() {
    b iperf3 -s >/dev/null &
    listening b 5201
    while read -r way host port; do
        local bps
        bps=$(a iperf3 -c "$host" -p "$port" -t 20 -O 0 -J | sed -n '/"sum_received"/,/}/s/.*"bits_per_second":[^0-9]*\([0-9.e+]*\).*/\1/p')
        row iperf3 "$way" 20 "$(awk -v bps="${bps:-0}" 'BEGIN { printf "%.0f", bps * 20 / 8 }')" 0
    done < <(ways 5201)
}

wants() { [[ " ${names[*]} " =~ \ $1\  ]]; }

set_up_ssh
head -c "${mib}M" /dev/urandom >file
mkdir arrived
for name in pipe scp rsync; do ! wants $name || measure_$name; done
if [[ " ${names[*]} " =~ \ (curl|small|psql|pgbench|git|iperf)\  ]]; then
    set_up_forwards
    if { wants curl || wants small || wants git; } && there nginx; then
        set_up_nginx
        for name in curl small git; do ! wants $name || measure_$name; done
    fi
    if { wants psql || wants pgbench; } && there pgbench; then
        set_up_postgres
        for name in psql pgbench; do ! wants $name || measure_$name; done
        stop_postgres
    fi
    if wants iperf && there iperf3; then measure_iperf; fi
fi

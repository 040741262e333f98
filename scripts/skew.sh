#!/usr/bin/env bash
# Has another version of haul talk with this one, both ways, by every protocol: scripts/skew.sh OTHER [THIS]
#
#   OTHER   a program, or a commit or tag of this repository, which is built once, in a work tree of its own, and kept (SKEW_DIR, target/skew)
#   THIS    a program; target/debug/haul, built
#
# Each pair either works or says in words that the versions differ: no hang, no crash, no wrong content, and a copy that is refused has changed nothing. What it is, is printed as a table.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
[ $# -ge 1 ] || { echo "usage: scripts/skew.sh OTHER [THIS]" >&2; exit 2; }

if [ -x "$1" ] && [ -f "$1" ]; then
    other=$(realpath "$1")
else
    commit=$(git rev-parse --verify "$1^{commit}") || exit 2
    dir=${SKEW_DIR:-$(scripts/target-dir.sh)/skew}
    mkdir -p "$dir"
    dir=$(realpath "$dir")
    other=$dir/haul-${commit:0:12}
    if [ ! -x "$other" ]; then
        echo "skew: building $commit" >&2
        git worktree add -q --detach "$dir/tree" "$commit" || exit 2
        (cd "$dir/tree" && CARGO_TARGET_DIR=$dir/build cargo build --locked -q -p haul-cli) && cp "$dir/build/debug/haul" "$other"
        git worktree remove --force "$dir/tree"
        [ -x "$other" ] || exit 2
    fi
fi
if [ $# -ge 2 ]; then
    this=$(realpath "$2")
else
    cargo build --locked -q -p haul-cli || exit 2
    this=$(scripts/target-dir.sh)/debug/haul
fi

work=$(mktemp -d)
daemons=()
clean() {
    [ ${#daemons[@]} = 0 ] || kill "${daemons[@]}" 2>/dev/null
    rm -rf "$work"
}
trap clean EXIT
mkdir -p "$work/home/far" "$work/near"
export HOME=$work/home XDG_CONFIG_HOME=$work/home/config XDG_STATE_HOME=$work/home/state
head -c 3000000 /dev/urandom >"$work/near/file"

# Everything of ssh but the login: runs the far side's command here.
cat >"$work/ssh" <<'END'
#!/bin/sh
while [ "$1" != "--" ]; do [ "$1" = "-G" ] && explain=yes; shift; done
shift 2
[ -n "$explain" ] && { echo "hostname 127.0.0.1"; exit 0; }
SSH_CONNECTION="127.0.0.1 50000 127.0.0.1 22"; export SSH_CONNECTION
HOME=$HOME/far; export HOME
cd "$HOME" && exec /bin/sh -c "$*"
END
chmod +x "$work/ssh"

failed=
# One try: WHAT COMMAND..; the words of a refusal are shown.
try() {
    local what=$1 output status
    shift
    output=$(timeout 60 "$@" 2>&1 </dev/null)
    status=$?
    if [ "$status" = 0 ] && matches; then
        printf '  %-32s works\n' "$what"
    elif grep -q 'unexpected argument' <<<"$output"; then
        printf '  %-32s not known to the near one\n' "$what"
    elif [[ $status = 2 || $status = 255 ]] && grep -qiE 'version|application protocol' <<<"$output"; then
        printf '  %-32s refused: %s\n' "$what" "$(grep -m1 'error:' <<<"$output" | cut -c1-150)"
    else
        printf '  %-32s FAILED, status %s: %s\n' "$what" "$status" "$(tr '\n' ' ' <<<"$output" | cut -c1-300)"
        failed=yes
    fi
}

# What to compare after a try.
result='' expected=$work/near/file
matches() {
    [ -z "$result" ] || cmp -s "$result" "$expected"
}

# A word of cp, with a tree of `a` and `b` that goes to where another name is already, and comes from there: it does what it says, or nothing: NEAR FAR "NAMES THAT ARE THERE THEN" WORDS..
word() {
    local near=$1 far=$2 expected=$3 what ssh direction output status has from to into
    shift 3
    ssh=(-S "$work/ssh" --remote-haul "$far")
    for direction in to from; do
        rm -rf "$work/near/tree" "$work/near/into" "$work/home/far/tree" "$work/home/far/into"
        if [ $direction = to ]; then
            from=$work/near/tree to=far:into into=$work/home/far/into
            mkdir -p "$into/tree" "$from"
            echo a >"$from/a" && echo b >"$from/b"
        else
            from=far:tree to=$work/near/into into=$work/near/into
            mkdir -p "$into/tree" "$work/home/far/tree"
            echo a >"$work/home/far/tree/a" && echo b >"$work/home/far/tree/b"
        fi
        echo z >"$into/tree/z"
        output=$(timeout 60 "$near" cp -r "${ssh[@]}" "$@" "$from" "$to" 2>&1 </dev/null)
        status=$?
        has=$(find "$into" -type f -printf '%f\n' | sort | tr '\n' ' ')
        has=${has% }
        what="cp ${*/#$work\/near\//}, $direction it"
        if grep -q 'unexpected argument' <<<"$output" && [ "$has" = z ]; then
            printf '  %-32s not known to the near one\n' "$what"
        elif [[ $status = 0 || $* = --compare && $status = 1 ]] && [ "$has" = "$expected" ]; then
            printf '  %-32s works\n' "$what"
        elif [ "$status" = 2 ] && grep -qi version <<<"$output" && [ "$has" = z ]; then
            printf '  %-32s refused: %s\n' "$what" "$(grep -m1 'error:' <<<"$output" | cut -c1-150)"
        else
            printf '  %-32s FAILED, status %s, then there: %s: %s\n' "$what" "$status" "$has" "$(tr '\n' ' ' <<<"$output" | cut -c1-300)"
            failed=yes
        fi
    done
}

words() {
    echo a >"$work/near/list"
    local with=("$1" "$2")
    word "${with[@]}" z --dry-run
    word "${with[@]}" "a z" --exclude b
    word "${with[@]}" "a z" --files-from "$work/near/list"
    word "${with[@]}" "a b" --delete
    word "${with[@]}" "a b z" --checksum
    word "${with[@]}" "a b z" --size-only
    word "${with[@]}" z --compare
    word "${with[@]}" "a b z" --copy-links
    word "${with[@]}" "a b z" --transport tcp
    word "${with[@]}" "a b z" --transport ssh
}

both_ways() {
    local near=$1 far=$2
    local ssh=(-S "$work/ssh" --remote-haul "$far")
    rm -rf "$work/home/far" && mkdir -p "$work/home/far"
    result=$work/home/far/up
    try "cp, to it" "$near" cp "${ssh[@]}" "$work/near/file" far:up
    result=$work/near/down
    cp "$work/near/file" "$work/home/far/up"
    try "cp, from it" "$near" cp "${ssh[@]}" far:up "$work/near/down"
    result=''
    try "perf" "$near" perf "${ssh[@]}" -t 1 far
    try "pipe" "$near" pipe "${ssh[@]}" far -- true
    try "rsh" "$near" rsh --ssh "$work/ssh" --remote-haul "$far" far true
    try "fleet get" "$near" fleet get -S "$work/ssh" --remote-haul "$far" -H far "up" "$work/near/fleet"
    rm -f "$work/near/down" "$work/near/fleet" "$work/home/far/up"
    words "$near" "$far"

    # The daemon.
    rm -rf "$work/state"
    mkdir -m 700 "$work/state"
    "$far" key authorize --state "$work/state" "$("$near" key show)" --name near >/dev/null
    "$far" serve --state "$work/state" --listen 127.0.0.1:0 --root "data=$work/home/far:rw" 2>"$work/log" &
    local daemon=$! address=
    daemons+=("$daemon")
    for _ in $(seq 100); do
        address=$(sed 's/\x1b\[[0-9;]*m//g' "$work/log" | sed -n 's/.*listening.*address=\([^ ]*\).*/\1/p')
        [ -n "$address" ] && break
        sleep 0.1
    done
    "$near" key trust "$address" "$("$far" key show --state "$work/state")" >/dev/null
    result=$work/home/far/file
    try "cp, to its daemon" "$near" cp "$work/near/file" "haul://$address/data/"
    cp "$work/near/file" "$work/home/far/file"
    result=$work/near/down
    try "cp, from its daemon" "$near" cp "haul://$address/data/file" "$work/near/down"
    result=''
    try "perf, with its daemon" "$near" perf -t 1 "haul://$address"
    kill "$daemon"
    wait "$daemon" 2>/dev/null
    rm -f "$work/near/down" "$work/home/far/file"
}

echo "near: this ($("$this" --version)), far: the other ($("$other" --version))"
both_ways "$this" "$other"
echo "near: the other, far: this"
both_ways "$other" "$this"
[ -z "$failed" ]

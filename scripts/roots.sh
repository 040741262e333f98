#!/usr/bin/env bash
# Installs what a release hands out into clean roots, and runs a copy from each: scripts/roots.sh [--quick] DIST      (root; DIST as scripts/artifacts.sh makes it)
#
#   empty      nothing but the static program: the daemon runs there, and every other root copies to it and back
#   tarball    the static tarball, unpacked below an empty root
#   bookworm, trixie, bullseye     Debian 12, 13 and 11, made by debootstrap: the package is installed, used, removed and purged. In Debian 11, whose C library is too old, it must be
#                                  refused, and the static program must work
#   bookworm-dev, trixie-dev       the same with a C compiler: a program is compiled with what libhaul-dev has, and runs with the library's package alone
#   rpm        Debian 13 with rpm: the RPM by its scriptlets and files. (Its dependencies are names that only a distribution of RPMs has.)
#
# --quick leaves out what debootstrap makes. Its roots are kept in HAUL_ROOTS (/var/cache/haul-roots); remove that to have them made anew.
set -euo pipefail
cd "$(dirname "$0")/.."
quick=
if [ "${1:-}" = --quick ]; then
    quick=yes
    shift
fi
[ $# = 1 ] || { echo "usage: scripts/roots.sh [--quick] DIST" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "roots: error: root is needed for chroot" >&2; exit 2; }
if [ -z "$quick" ] && ! command -v debootstrap >/dev/null; then
    echo "roots: installing debootstrap" >&2
    apt-get install -y -qq debootstrap >/dev/null || { echo "roots: error: no debootstrap, which makes roots: apt-get install debootstrap, or --quick" >&2; exit 2; }
fi
dist=$(realpath "$1")
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
machine=$(uname -m)
static=$dist/haul-$version-$machine-linux
kept=${HAUL_ROOTS:-/var/cache/haul-roots}
work=$(mktemp -d)
daemon=
clean() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    for mounted in "$work"/*/proc "$work"/*; do
        ! mountpoint -q "$mounted" || umount "$mounted"
    done
    rm -rf --one-file-system "$work"
}
trap clean EXIT

say() {
    echo "roots: $*"
}

fail() {
    echo "roots: error: $*" >&2
    exit 1
}

# The daemon, in a root that has nothing else.
mkdir -p "$work/empty/data" "$work/empty/state" "$work/empty/proc"
chmod 700 "$work/empty/state"
cp "$static" "$work/empty/haul"
mount -t proc proc "$work/empty/proc"
chroot "$work/empty" /haul serve --state /state --listen 127.0.0.1:0 --root data=/data:rw 2>"$work/daemon.log" &
daemon=$!
for _ in $(seq 100); do
    address=$(sed -n 's/.*listening.*address=\([^ ]*\).*/\1/p' "$work/daemon.log" | sed 's/\x1b\[[0-9;]*m//g')
    [ -z "$address" ] || break
    sleep 0.1
done
[ -n "$address" ] || fail "the daemon does not listen: $(cat "$work/daemon.log")"
key=$(chroot "$work/empty" /haul key show --state /state)
say "empty: the static program serves at $address, from a root of $(find "$work/empty" -xdev -type f | grep -vc /proc/) files"

# Copies a tree from a root to the daemon and back: NAME PROGRAM-AS-IT-IS-CALLED-THERE.
copy_from() {
    local name=$1 haul=$2 root=$work/$1
    local run=(chroot "$root" env -i HOME=/root PATH=/usr/bin:/bin "$haul")
    mkdir -p "$root/root/tree/below"
    head -c 20000000 /dev/urandom >"$root/root/tree/large"
    for number in 1 2 3 4 5; do echo "$number" >"$root/root/tree/below/$number"; done
    chroot "$work/empty" /haul key authorize --state /state "$("${run[@]}" key show)" --name "$name" >/dev/null
    "${run[@]}" key trust "$address" "$key" >/dev/null
    "${run[@]}" cp -rpq /root/tree "haul://$address/data/$name"
    "${run[@]}" cp -rpq "haul://$address/data/$name" /root/back
    diff -r "$root/root/tree" "$work/empty/data/$name" && diff -r "$root/root/tree" "$root/root/back" || fail "$name: what came is not what went"
    rm -rf "$root/root/tree" "$root/root/back" "$work/empty/data/$name"
    say "$name: $("${run[@]}" --version) copied there and back"
}

mkdir -p "$work/tarball/usr/bin" "$work/tarball/root"
tar -C "$work/tarball" -xzf "$dist/haul-$version-$machine-linux-static.tar.gz" --strip-components=1
for file in bin/haul bin/hcp share/man/man1/haul-cp.1.gz share/bash-completion/completions/haul lib/systemd/system/haul-serve.service; do
    [ -e "$work/tarball/$file" ] || fail "the tarball lacks $file"
done
# env(1) for the call alone: it stands alone too, where busybox is there.
copy_alone() {
    local root=$work/tarball
    chroot "$work/empty" /haul key authorize --state /state "$(HOME=/root chroot "$root" /bin/haul key show)" --name tarball >/dev/null
    HOME=/root chroot "$root" /bin/haul key trust "$address" "$key" >/dev/null
    HOME=/root chroot "$root" /bin/hcp -rpq /share "haul://$address/data/tarball"
    HOME=/root chroot "$root" /bin/haul cp -rpq "haul://$address/data/tarball" /back
    diff -r "$root/share" "$root/back" || fail "tarball: what came is not what went"
    say "tarball: $(chroot "$root" /bin/haul --version) copied there and back, in a root without a C library"
}
copy_alone
if [ -n "$quick" ]; then
    say "quick: the packages are not tried"
    exit 0
fi

# A clean root of a suite, a copy of the one that is kept: SUITE NAME [PACKAGE]..
debian() {
    local suite=$1 name=$2
    shift 2
    local more
    more=$(IFS=,; echo "$*")
    local tar=$kept/$suite${more:+-$more}.tar
    if [ ! -e "$tar" ]; then
        say "$suite: debootstrap"
        mkdir -p "$kept"
        rm -rf "$work/making"
        debootstrap --variant=minbase ${more:+--include="$more"} "$suite" "$work/making" >"$work/debootstrap.log" 2>&1 || fail "debootstrap $suite: $(tail -3 "$work/debootstrap.log")"
        rm -rf "$work/making/var/cache/apt/archives" "$work/making/var/lib/apt/lists"
        mkdir -p "$work/making/var/cache/apt/archives/partial" "$work/making/var/lib/apt/lists/partial"
        tar -C "$work/making" -cf "$tar.new" .
        mv "$tar.new" "$tar"
        rm -rf "$work/making"
    fi
    mkdir -p "$work/$name"
    # rpm (4.20) wants the root to be one that is mounted, as it is in a container.
    mount --bind "$work/$name" "$work/$name"
    tar -C "$work/$name" -xf "$tar"
    mount -t proc proc "$work/$name/proc"
}

done_with() {
    umount "$work/$1/proc" "$work/$1"
    rm -rf --one-file-system "${work:?}/$1"
}

arch=$(dpkg --print-architecture)
deb=$dist/haul_${version}_$arch.deb
for suite in bookworm trixie; do
    debian "$suite" "$suite"
    cp "$deb" "$work/$suite/tmp/haul.deb"
    chroot "$work/$suite" dpkg -i /tmp/haul.deb >"$work/dpkg.log" 2>&1 || fail "$suite: $(cat "$work/dpkg.log")"
    copy_from "$suite" haul
    chroot "$work/$suite" /usr/lib/haul/static/haul-"$machine"-linux --version >/dev/null || fail "$suite: the static program in the package does not run"
    chroot "$work/$suite" dpkg --purge haul >/dev/null
    left=$(find "$work/$suite" -xdev -name '*haul*' -not -path '*/tmp/*' -not -path '*/root/*')
    [ -z "$left" ] || fail "$suite: left behind by the package: $left"
    say "$suite: installed, purged, nothing left behind"
    done_with "$suite"
done

# If the library was packed.
library=$(ls "$dist"/libhaul[0-9]*_"${version}_$arch".deb "$dist/libhaul-dev_${version}_$arch.deb" 2>/dev/null || true)
for suite in ${library:+bookworm trixie}; do
    name=$suite-dev root=$work/$suite-dev
    debian "$suite" "$name" gcc libc6-dev pkgconf
    mkdir "$root/tmp/library"
    # shellcheck disable=SC2086 # a list of names
    cp $library "$root/tmp/library"
    chroot "$root" sh -c 'dpkg -i /tmp/library/*.deb' >"$work/dpkg.log" 2>&1 || fail "$name: $(cat "$work/dpkg.log")"
    printf '%s\n' '#include <haul.h>' '#include <stdio.h>' 'int main(void) { return haul_startup() != 0 || haul_identity_generate() <= 0 || puts(haul_version()) < 0; }' >"$root/tmp/program.c"
    chroot "$root" sh -ec 'cc -o /tmp/program /tmp/program.c $(pkg-config --cflags --libs haul)' || fail "$name: no program can be compiled with the library"
    chroot "$root" dpkg --purge libhaul-dev >/dev/null
    [ "$(chroot "$root" /tmp/program)" = "$version" ] || fail "$name: the program does not run with the library's package"
    chroot "$root" sh -ec 'dpkg --purge $(dpkg-query -W -f "\${Package} " "libhaul[0-9]*")' >/dev/null
    left=$(find "$root" -xdev -name '*haul*' -not -path '*/tmp/*')
    [ -z "$left" ] || fail "$name: left behind by the library's packages: $left"
    say "$name: a program was compiled with the library and ran, nothing left behind"
    done_with "$name"
done

debian bullseye bullseye
cp "$deb" "$work/bullseye/tmp/haul.deb"
! chroot "$work/bullseye" dpkg -i /tmp/haul.deb >/dev/null 2>&1 || fail "bullseye: its C library is too old for the package, which was installed all the same"
cp "$static" "$work/bullseye/usr/local/bin/haul"
copy_from bullseye /usr/local/bin/haul
done_with bullseye

rpm=$(ls "$dist/haul-$version-1.$machine.rpm" 2>/dev/null || true)
if [ -n "$rpm" ]; then
    debian trixie rpm rpm
    cp "$rpm" "$work/rpm/tmp/haul.rpm"
    chroot "$work/rpm" rpm -i --nodeps /tmp/haul.rpm || fail "the RPM cannot be installed"
    chroot "$work/rpm" rpm -V --nodeps haul || fail "the RPM's files are not as it has them"
    copy_from rpm haul
    chroot "$work/rpm" rpm -e haul
    left=$(find "$work/rpm" -xdev -name '*haul*' -not -path '*/tmp/*' -not -path '*/root/*')
    [ -z "$left" ] || fail "rpm: left behind: $left"
    say "rpm: installed, removed, nothing left behind"
    done_with rpm
fi

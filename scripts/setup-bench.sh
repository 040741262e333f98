#!/usr/bin/env bash
# What `haul lab bench` measures haul beside: installs the tools (Debian packages, as root or by sudo) and builds the drivers of UDT, SRT and quinn
# beside a release of haul, with that release; and what bench/programs.sh and scripts/rsync-suite.sh need. Says what it cannot install: the bench skips
# that.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=()
for pair in iperf3:iperf3 rsync:rsync ssh:openssh-client sshd:openssh-server ss:iproute2 g++:g++ \
    globus-url-copy:globus-gass-copy-progs globus-gridftp-server:globus-gridftp-server-progs \
    nc:netcat-openbsd curl:curl nginx:nginx-light git:git psql:postgresql-client bc:bc \
    dpkg-source:dpkg-dev autoconf:autoconf aclocal:automake gawk:gawk; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "${pair%%:*}" >/dev/null || packages+=("${pair#*:}")
done
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || packages+=(postgresql)
[ -e /usr/include/sys/acl.h ] || packages+=(libacl1-dev)
[ -e /usr/include/udt/udt.h ] || packages+=(libudt-dev)
[ -e /usr/include/srt/srt.h ] || packages+=(libsrt-openssl-dev)

if [ ${#packages[@]} -gt 0 ]; then
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    echo "setup-bench: installing ${packages[*]}"
    $as_root apt-get update -qq || true
    for package in "${packages[@]}"; do
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null ||
            echo "setup-bench: SKIPPED, cannot install $package" >&2
    done
fi

release="$(scripts/target-dir.sh)/release"
cargo build --release --locked -p haul-cli -p quinn-bulk
for library in udt srt; do
    if [ -e "/usr/include/$library/$library.h" ]; then
        g++ -std=c++17 -O2 -Wall -Wextra -isystem "/usr/include/$library" -o "$release/$library-bulk" "bench/$library-bulk/main.cpp" "-l$library" -pthread
    else
        echo "setup-bench: SKIPPED, no $library-bulk without the library's headers" >&2
    fi
done
echo "setup-bench: $release/haul lab bench --help"

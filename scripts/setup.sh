#!/usr/bin/env bash
# Installs what building and testing haul needs and this machine lacks: Debian packages as root or by sudo, Rust by rustup. Says what it
# cannot install. Does nothing, in no time, where all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

oldest_rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
packages=()
for pair in gcc:gcc ar:binutils make:make ssh:openssh-client sshd:openssh-server ip:iproute2 ping:iputils-ping iperf3:iperf3 rsync:rsync curl:curl python3:python3 nft:nftables mpirun:openmpi-bin srun:slurm-client slurmctld:slurmctld slurmd:slurmd; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "${pair%%:*}" >/dev/null || packages+=("${pair#*:}")
done
[ -e /usr/include/stdlib.h ] || packages+=(libc6-dev)
[ -d /etc/ssl/certs ] || packages+=(ca-certificates)

# For the tests of the Gfarm store; without them those say that they are skipped. Some 6 s.
gfarm=()
for pair in gfmd:gfmd gfsd:gfsd gfls:gfarm-client; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "${pair%%:*}" >/dev/null || gfarm+=("${pair#*:}")
done

if [ $((${#packages[@]} + ${#gfarm[@]})) -gt 0 ]; then
    as_root=
    if [ "$(id -u)" != 0 ]; then
        as_root=$(command -v sudo || true)
        if [ -z "$as_root" ] || ! sudo -n true 2>/dev/null && [ ! -t 0 ]; then
            as_root=none
        fi
    fi
    if [ "$as_root" = none ]; then
        echo "setup: SKIPPED, needs root: apt-get install ${packages[*]} ${gfarm[*]}" >&2
    elif command -v apt-get >/dev/null; then
        echo "setup: installing ${packages[*]} ${gfarm[*]}"
        $as_root apt-get update -qq
        install_packages() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
        [ ${#packages[@]} -eq 0 ] || install_packages "${packages[@]}"
        # Not every release of Debian and Ubuntu has Gfarm.
        [ ${#gfarm[@]} -eq 0 ] || install_packages "${gfarm[@]}" || echo "setup: SKIPPED, cannot be installed here: ${gfarm[*]}" >&2
    else
        echo "setup: SKIPPED, no apt-get here: install what provides ${packages[*]} ${gfarm[*]}" >&2
    fi
fi

# True where `rustc` is there and not older than the workspace wants.
rust_is_new_enough() {
    local found
    found=$(rustc --version 2>/dev/null | cut -d' ' -f2) || return 1
    [ -n "$found" ] && [ "$(printf '%s\n' "$oldest_rust" "$found" | sort -V | head -1)" = "$oldest_rust" ]
}

if ! rust_is_new_enough; then
    if ! command -v rustup >/dev/null; then
        echo "setup: installing rustup into ~/.cargo"
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y -q --no-modify-path --profile minimal --default-toolchain stable
    else
        echo "setup: installing the stable toolchain"
        rustup -q toolchain install stable --profile minimal
        rustup -q default stable
    fi
    hash -r
    rust_is_new_enough || { echo "setup: error: no Rust of $oldest_rust or newer; see https://rustup.rs" >&2; exit 1; }
fi
for component in rustfmt:cargo-fmt clippy:cargo-clippy; do
    if ! command -v "${component#*:}" >/dev/null; then
        rustup -q component add "${component%%:*}"
    fi
done

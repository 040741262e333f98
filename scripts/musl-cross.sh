#!/usr/bin/env bash
# Prints a C compiler that builds for musl on another machine: scripts/musl-cross.sh MACHINE DIR. Debian's cross compiler, and Debian's musl-dev for that machine, which is unpacked below DIR and not installed.
set -euo pipefail
machine=$1 dir=$2/musl-$1
case $machine in
    aarch64) arch=arm64 ;;
    x86_64) arch=amd64 ;;
    *) echo "musl-cross: error: $machine is not known here" >&2; exit 2 ;;
esac
if [ ! -e "$dir/bin/cc" ]; then
    # Lists of packages of their own: the system knows of this machine alone.
    mkdir -p "$dir"/{lists/partial,cache/archives/partial,bin}
    apt=(apt-get -q -o "APT::Architecture=$arch" -o "APT::Architectures=$arch" -o "Dir::State::lists=$dir/lists" -o "Dir::Cache=$dir/cache" -o Dir::State::status=/dev/null -o Debug::NoLocking=1)
    "${apt[@]}" update >&2
    (cd "$dir" && "${apt[@]}" download musl-dev >&2 && dpkg -x musl-dev_*.deb root && rm musl-dev_*.deb)
    rm -rf "$dir/lists" "$dir/cache"
    lib=$dir/root/usr/lib/$machine-linux-musl include=$dir/root/usr/include/$machine-linux-musl
    # As musl-gcc does it: musl's headers and start files in the place of glibc's. With what gcc itself has.
    cat >"$dir/bin/cc" <<END
#!/bin/sh
gcc=$machine-linux-gnu-gcc
own=\$(\$gcc -print-file-name=include)
for word in "\$@"; do
    case \$word in -c | -S | -E | -M*) exec \$gcc -nostdinc -isystem $include -isystem "\$own" "\$@" ;; esac
done
case " \$* " in *" -nostartfiles "*) exec \$gcc -nostdinc -isystem $include -isystem "\$own" -nostdlib -L$lib "\$@" ;; esac
begin=\$(\$gcc -print-file-name=crtbeginT.o)
end=\$(\$gcc -print-file-name=crtend.o)
exec \$gcc -static -nostdinc -isystem $include -isystem "\$own" -nostdlib -L$lib $lib/crt1.o $lib/crti.o "\$begin" "\$@" -Wl,--start-group -lc -lgcc -lgcc_eh -Wl,--end-group "\$end" $lib/crtn.o
END
    chmod +x "$dir/bin/cc"
fi
echo "$dir/bin/cc"

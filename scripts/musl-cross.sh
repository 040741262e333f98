#!/usr/bin/env bash
# Prints a C compiler that builds for musl: scripts/musl-cross.sh MACHINE DIR. gcc for that machine (Debian's cross compiler, where it is another one than this), and Debian's musl-dev for it: the one that is installed, or one that is unpacked below DIR.
# musl-tools has a compiler too, which does not know static programs that run at any address (-static-pie), and is for this machine alone.
set -euo pipefail
machine=$1 dir=$2/musl-$1
case $machine in
    aarch64) arch=arm64 ;;
    x86_64) arch=amd64 ;;
    *) echo "musl-cross: error: $machine is not known here" >&2; exit 2 ;;
esac
mkdir -p "$dir/bin"
root=
if [ ! -e "/usr/lib/$machine-linux-musl/rcrt1.o" ]; then
    root=$dir/root
    if [ ! -e "$root/usr/lib/$machine-linux-musl/rcrt1.o" ]; then
        # Lists of packages of their own: the system knows of this machine alone.
        mkdir -p "$dir"/{lists/partial,cache/archives/partial}
        apt=(apt-get -q -o "APT::Architecture=$arch" -o "APT::Architectures=$arch" -o "Dir::State::lists=$dir/lists" -o "Dir::Cache=$dir/cache" -o Dir::State::status=/dev/null -o Debug::NoLocking=1)
        "${apt[@]}" update >&2
        (cd "$dir" && "${apt[@]}" download musl-dev >&2 && dpkg -x musl-dev_*.deb root && rm musl-dev_*.deb)
        rm -rf "$dir/lists" "$dir/cache"
    fi
fi
lib=$root/usr/lib/$machine-linux-musl include=$root/usr/include/$machine-linux-musl
# musl's headers and start files in the place of glibc's. With what gcc itself has.
cat >"$dir/bin/cc" <<END
#!/bin/sh
gcc=$machine-linux-gnu-gcc lib=$lib
own=\$(\$gcc -print-file-name=include)
for word in "\$@"; do
    case \$word in -c | -S | -E | -M*) exec \$gcc -nostdinc -isystem $include -isystem "\$own" "\$@" ;; esac
done
case " \$* " in
    *" -static-pie "*) start=rcrt1.o begin=crtbeginS.o end=crtendS.o ;;
    *) start=crt1.o begin=crtbeginT.o end=crtend.o; set -- -static "\$@" ;;
esac
exec \$gcc -nostdinc -isystem $include -isystem "\$own" -nostdlib -L\$lib \$lib/\$start \$lib/crti.o \$(\$gcc -print-file-name=\$begin) "\$@" \\
    -Wl,--start-group -lc -lgcc -lgcc_eh -Wl,--end-group \$(\$gcc -print-file-name=\$end) \$lib/crtn.o
END
chmod +x "$dir/bin/cc"
echo "$dir/bin/cc"

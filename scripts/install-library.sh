#!/usr/bin/env bash
# install-library.sh BUILT PREFIX LIBDIR: puts libhaul, as cargo has built it in the directory BUILT, below PREFIX and LIBDIR (below $DESTDIR), with what programs in C need to be
# compiled with it: header, pkg-config file, manual pages.
set -euo pipefail
cd "$(dirname "$0")/.."
built=$1 prefix=$2 libdir=$3
crate=crates/haul-ffi
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
to=${DESTDIR:-}

[ -e "$built/libhaul_ffi.so" ] || { echo "install: error: there is no $built/libhaul_ffi.so: make install-library BUILT=DIRECTORY says where cargo has built it" >&2; exit 1; }
# What the linker was told in build.rs: programs look for it by this name.
soname=$(readelf -d "$built/libhaul_ffi.so" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
[ -n "$soname" ] || { echo "install: error: $built/libhaul_ffi.so has no soname" >&2; exit 1; }

install -D -m 755 "$built/libhaul_ffi.so" "$to$libdir/libhaul.so.$version"
ln -sf "libhaul.so.$version" "$to$libdir/$soname"
ln -sf "$soname" "$to$libdir/libhaul.so"
install -D -m 644 "$built/libhaul_ffi.a" "$to$libdir/libhaul.a"
install -D -m 644 "$crate/include/haul.h" "$to$prefix/include/haul.h"
mkdir -p "$to$libdir/pkgconfig" "$to$prefix/share/man/man3"
sed -e "s|@PREFIX@|$prefix|; s|@LIBDIR@|$libdir|; s|@VERSION@|$version|" "$crate/haul.pc.in" >"$to$libdir/pkgconfig/haul.pc"
chmod 644 "$to$libdir/pkgconfig/haul.pc"
install -m 644 "$crate"/man/*.3 "$to$prefix/share/man/man3/"

# Programs find it when the loader knows of it: in a directory of the loader's that is a matter of its cache, elsewhere of whoever runs them.
if [ -z "$to" ]; then
    PATH=$PATH:/usr/sbin:/sbin
    if ldconfig -v -N -X 2>/dev/null | grep -q "^$libdir:"; then
        ldconfig 2>/dev/null || echo "install: for programs to find $soname: ldconfig (as root)"
    else
        echo "install: the loader does not look into $libdir: LD_LIBRARY_PATH=$libdir for programs that are linked with it, and PKG_CONFIG_PATH=$libdir/pkgconfig for compiling them"
    fi
fi

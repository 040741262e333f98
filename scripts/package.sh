#!/usr/bin/env bash
# Packs programs that are built: scripts/package.sh HAUL STATIC OUT [BUILT]
#
#   HAUL      haul for this distribution: it loads what some commands need at run time (libbpf for `haul tcp`, libgfarm)
#   STATIC    haul that needs nothing (scripts/static.sh): what a far side without haul gets
#   OUT/haul_VERSION_ARCH.deb, OUT/haul-VERSION-1.MACHINE.rpm     HAUL, and STATIC for others, with those of other machines in OTHERS
#   OUT/haul-VERSION-MACHINE-linux-static.tar.gz                  STATIC, manual pages, completions, units: unpack anywhere
#   BUILT     the directory in which cargo has built libhaul; without it there are no packages of the library
#   OUT/libhaulSO_VERSION_ARCH.deb, OUT/libhaul-VERSION-1.MACHINE.rpm              the shared library; SO is the number in its soname
#   OUT/libhaul-dev_VERSION_ARCH.deb, OUT/libhaul-devel-VERSION-1.MACHINE.rpm      header, static library, pkg-config file, manual pages
#
# For another machine than this one: MACHINE=aarch64 (or x86_64), and WRITER is a haul that runs here, which writes manual pages and completions.
#
# The same bytes from the same files, whoever packs them, and when: the time is that of the last commit (SOURCE_DATE_EPOCH).
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 3 ] || [ $# = 4 ] || { echo "usage: scripts/package.sh HAUL STATIC OUT [BUILT]" >&2; exit 2; }
haul=$(realpath "$1") static=$(realpath "$2")
library=${4:+$(realpath "$4")}
mkdir -p "$3"
out=$(realpath "$3")
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
machine=${MACHINE:-$(uname -m)}
case $machine in
    x86_64) arch=amd64 ;;
    aarch64) arch=arm64 ;;
    *) arch=$(dpkg --print-architecture) ;;
esac
writer=${WRITER:+$(realpath "$WRITER")}
others=()
for other in ${OTHERS:-}; do others+=("$(realpath "$other")"); done
strip=strip multiarch=$machine-linux-gnu
if [ "$machine" = "$(uname -m)" ]; then
    multiarch=$(gcc -print-multiarch 2>/dev/null || echo "$multiarch")
else
    [ -n "$writer" ] || { echo "package: error: WRITER is to name a haul that runs here, as that for $machine does not" >&2; exit 2; }
    strip=$machine-linux-gnu-strip
    export OBJCOPY=$machine-linux-gnu-objcopy
    command -v "$strip" >/dev/null || { echo "package: error: no $strip: apt-get install binutils-${machine/_/-}-linux-gnu" >&2; exit 2; }
fi
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export TZ=UTC LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# What belongs to a program, below a directory: PROGRAM DIR PREFIX.
put() {
    make -s install-files HAUL="$1" WRITER="${writer:-$1}" DESTDIR="$2" PREFIX="$3"
    "$strip" --strip-all "$2$3/bin/haul"
    local doc=$2$3/share/doc/haul
    install -D -m 644 -t "$doc" LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md SECURITY.md
    find docs -name '*.md' -exec install -D -m 644 {} "$doc/{}" \;
    install -D -m 644 -t "$2$3/lib/systemd/system" packaging/systemd/*.service
    install -D -m 644 packaging/sysusers.conf "$2$3/lib/sysusers.d/haul.conf"
    gzip -9n "$2$3"/share/man/man1/*.1
}

# Everything was made at one time.
settle() {
    find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

# Who may do what with it: DIR PACKAGE.
put_copyright() {
    mkdir -p "$1/usr/share/doc/$2"
    cat >"$1/usr/share/doc/$2/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: haul

Files: *
Copyright: the haul maintainers
License: MIT or Apache-2.0
 Both texts are beside this file. The programs for the kernel in haul (congestion control) are under the GPL, version 2 only.
END
}

# A Debian package of what lies in a directory: DIR CONTROL NAME.
pack_deb() {
    local kib
    kib=$(find "$1" -type f -not -path "$1/DEBIAN/*" -printf '%k\n' | awk '{ sum += $1 } END { print sum }')
    mkdir -p "$1/DEBIAN"
    sed -e "s/@VERSION@/$version/; s/@ARCH@/$arch/; s/@KIB@/$kib/; s/@NAME@/$runtime/" "$2" >"$1/DEBIAN/control"
    (cd "$1" && find . -type f -not -path './DEBIAN/*' -printf '%P\n' | sort | xargs -d '\n' md5sum >DEBIAN/md5sums)
    settle "$1"
    dpkg-deb --root-owner-group -Zxz --build "$1" "$out/$3.deb" >/dev/null
}

# RPMs by a specification, of what lies in a directory: SPECIFICATION DIR. Files are named in lists beside the directory.
pack_rpm() {
    sed "s/@VERSION@/$version/" "$1" >"$work/$(basename "$1" .in)"
    "$rpmbuild" -bb --quiet --target "$machine-linux" --define "_topdir $work/rpm" --define "stage $2" --define "_buildhost localhost" \
        --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" --define "_binary_payload w6.xzdio" \
        --define "_rpmdir $out" --define "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" "$work/$(basename "$1" .in)"
}

# libhaul as `make install` has it, stripped, below a directory: DIR LIBDIR.
put_library() {
    DESTDIR=$1 scripts/install-library.sh "$library" /usr "$2"
    "$strip" --strip-unneeded "$1$2/libhaul.so.$version"
    "$strip" --strip-debug --enable-deterministic-archives "$1$2/libhaul.a"
    gzip -9n "$1"/usr/share/man/man3/*.3
}

rpmbuild=$(command -v rpmbuild || true)
# Debian calls the package of a shared library by its soname: what was linked with another one goes on beside it.
runtime=libhaul$(sed -n 's/^version = "\([0-9]*\.[0-9]*\)\..*/\1/p' Cargo.toml | head -1)

stage=$work/stage
put "$haul" "$stage" /usr
install -D -m 755 "$static" "$stage/usr/lib/haul/static/haul-$machine-linux"
"$strip" --strip-all "$stage/usr/lib/haul/static/haul-$machine-linux"
# Without symbols already: their names say for which machine each is.
for other in "${others[@]}"; do install -m 755 -t "$stage/usr/lib/haul/static" "$other"; done
install -D -m 644 packaging/roots "$stage/etc/haul/roots"
settle "$stage"

# Debian's.
deb=$work/deb
cp -a "$stage" "$deb"
put_copyright "$deb" haul
mkdir "$deb/DEBIAN"
install -m 755 packaging/debian/{postinst,prerm,postrm} "$deb/DEBIAN/"
echo /etc/haul/roots >"$deb/DEBIAN/conffiles"
pack_deb "$deb" packaging/debian/control.in "haul_${version}_$arch"

# RPM: all that is staged, each file by its name, and /etc/haul/roots as configuration.
if [ -n "$rpmbuild" ]; then
    (cd "$stage" && find . \( -type f -o -type l \) -not -path './etc/*' -printf '/%P\n' | sort) >"$work/stage.files"
    (cd "$stage" && find . -type d \( -path './usr/lib/haul*' -o -path './usr/share/doc/haul*' \) -printf '%%dir /%P\n' | sort) >>"$work/stage.files"
    pack_rpm packaging/rpm/haul.spec.in "$stage"
else
    echo "package: SKIPPED, no rpmbuild here (apt-get install rpm): the RPM" >&2
fi

# The library, and what is compiled with it.
if [ -n "$library" ]; then
    libdir=/usr/lib/$multiarch
    put_library "$work/$runtime" "$libdir"
    mkdir -p "$work/libhaul-dev$libdir"
    # The names that a linker and a compiler look for, and all that is no library.
    mv "$work/$runtime$libdir"/{libhaul.so,libhaul.a,pkgconfig} "$work/libhaul-dev$libdir/"
    mv "$work/$runtime"/usr/{include,share} "$work/libhaul-dev/usr/"
    for package in "$runtime" libhaul-dev; do
        install -D -m 644 -t "$work/$package/usr/share/doc/$package" LICENSE-APACHE LICENSE-MIT
        put_copyright "$work/$package" "$package"
    done
    mkdir "$work/$runtime/DEBIAN"
    echo "activate-noawait ldconfig" >"$work/$runtime/DEBIAN/triggers"
    soname=$(basename "$(find "$work/$runtime$libdir" -type l)")
    echo "libhaul ${soname#libhaul.so.} $runtime" >"$work/$runtime/DEBIAN/shlibs"
    [ "libhaul${soname#libhaul.so.}" = "$runtime" ] || { echo "package: error: $soname is not of version $version" >&2; exit 1; }
    pack_deb "$work/$runtime" packaging/library/runtime.control.in "${runtime}_${version}_$arch"
    pack_deb "$work/libhaul-dev" packaging/library/dev.control.in "libhaul-dev_${version}_$arch"
    if [ -n "$rpmbuild" ]; then
        put_library "$work/library" /usr/lib64
        install -D -m 644 -t "$work/library/usr/share/licenses/libhaul" LICENSE-APACHE LICENSE-MIT
        settle "$work/library"
        files() { (cd "$work/library" && find . \( -type f -o -type l \) "$@" -printf '/%P\n' | sort); }
        files \( -name 'libhaul.so.*' -o -path './usr/share/licenses/*' \) >"$work/library.runtime"
        files -not -name 'libhaul.so.*' -not -path './usr/share/licenses/*' >"$work/library.devel"
        pack_rpm packaging/library/libhaul.spec.in "$work/library"
    fi
fi

# The one that runs everywhere.
name=haul-$version-$machine-linux-static
put "$static" "$work/$name" ""
settle "$work/$name"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -c "$name" | gzip -9n >"$out/$name.tar.gz"

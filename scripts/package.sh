#!/usr/bin/env bash
# Packs programs that are built: scripts/package.sh HAUL STATIC OUT
#
#   HAUL      haul for this distribution: it loads what some commands need at run time (libbpf for `haul tcp`, libgfarm)
#   STATIC    haul that needs nothing (scripts/static.sh): what a far side without haul gets
#   OUT/haul_VERSION_ARCH.deb, OUT/haul-VERSION-1.MACHINE.rpm     HAUL, and STATIC for others
#   OUT/haul-VERSION-MACHINE-linux-static.tar.gz                  STATIC, manual pages, completions, units: unpack anywhere
#
# The same bytes from the same files, whoever packs them, and when: the time is that of the last commit (SOURCE_DATE_EPOCH).
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 3 ] || { echo "usage: scripts/package.sh HAUL STATIC OUT" >&2; exit 2; }
haul=$(realpath "$1") static=$(realpath "$2")
mkdir -p "$3"
out=$(realpath "$3")
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
machine=$(uname -m)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export TZ=UTC LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# What belongs to a program, below a directory: PROGRAM DIR PREFIX.
put() {
    make -s install-files HAUL="$1" DESTDIR="$2" PREFIX="$3"
    strip --strip-all "$2$3/bin/haul"
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

stage=$work/stage
put "$haul" "$stage" /usr
install -D -m 755 "$static" "$stage/usr/lib/haul/static/haul-$machine-linux"
strip --strip-all "$stage/usr/lib/haul/static/haul-$machine-linux"
install -D -m 644 packaging/roots "$stage/etc/haul/roots"
settle "$stage"

# Debian's.
arch=$(dpkg --print-architecture)
deb=$work/deb
cp -a "$stage" "$deb"
cat >"$deb/usr/share/doc/haul/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: haul

Files: *
Copyright: the haul maintainers
License: MIT or Apache-2.0
 Both texts are beside this file. The programs for the kernel in haul (congestion control) are under the GPL, version 2 only.
END
mkdir "$deb/DEBIAN"
install -m 755 packaging/debian/{postinst,prerm,postrm} "$deb/DEBIAN/"
echo /etc/haul/roots >"$deb/DEBIAN/conffiles"
kib=$(find "$stage" -type f -printf '%k\n' | awk '{ sum += $1 } END { print sum }')
sed -e "s/@VERSION@/$version/; s/@ARCH@/$arch/; s/@KIB@/$kib/" packaging/debian/control.in >"$deb/DEBIAN/control"
(cd "$deb" && find . -type f -not -path './DEBIAN/*' -printf '%P\n' | sort | xargs -d '\n' md5sum >DEBIAN/md5sums)
settle "$deb"
dpkg-deb --root-owner-group -Zxz --build "$deb" "$out/haul_${version}_$arch.deb" >/dev/null

# RPM: all that is staged, each file by its name, and /etc/haul/roots as configuration.
rpmbuild=$(command -v rpmbuild || true)
if [ -n "$rpmbuild" ]; then
    (cd "$stage" && find . \( -type f -o -type l \) -not -path './etc/*' -printf '/%P\n' | sort) >"$work/stage.files"
    (cd "$stage" && find . -type d \( -path './usr/lib/haul*' -o -path './usr/share/doc/haul*' \) -printf '%%dir /%P\n' | sort) >>"$work/stage.files"
    sed "s/@VERSION@/$version/" packaging/rpm/haul.spec.in >"$work/haul.spec"
    "$rpmbuild" -bb --quiet --define "_topdir $work/rpm" --define "stage $stage" --define "_buildhost localhost" \
        --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" --define "_binary_payload w6.xzdio" \
        --define "_rpmdir $out" --define "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" "$work/haul.spec"
else
    echo "package: SKIPPED, no rpmbuild here (apt-get install rpm): the RPM" >&2
fi

# The one that runs everywhere.
name=haul-$version-$machine-linux-static
put "$static" "$work/$name" ""
settle "$work/$name"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -c "$name" | gzip -9n >"$out/$name.tar.gz"

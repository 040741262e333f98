#!/usr/bin/env bash
# Writes what a release hands out as a table, DIST/haul-VERSION.md: scripts/artifact-table.sh DIST [OTHER]     (DIST as scripts/artifacts.sh makes it)
# OTHER is the directory of a second build of the same commit: then the table says of each file whether both are equal.
set -euo pipefail
dist=$(realpath "$1") other=${2:+$(realpath "$2")}
cd "$(dirname "$0")/.."
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# Two builds are of the commit itself.
changed=$([ -n "$other" ] || [ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || echo ", with changes")
table=$dist/haul-$version.md
{
    echo "# haul $version"
    echo
    echo "Commit $(git rev-parse HEAD)$changed; $(rustc --version)."
    [ -n "$other" ] || echo "Built once: whether a second build is equal, \`make release TWICE=yes\` says."
    echo
    echo "| file | bytes | SHA-256 |${other:+ second build |}"
    echo "|---|---:|---|${other:+---|}"
    # In the order of the checksums, which are of what is there.
    while read -r sum name; do
        row="| \`$name\` | $(stat -c %s "$dist/$name" | sed ':a; s/\B[0-9]\{3\}\>/,&/; ta') | \`$sum\` |"
        if [ -n "$other" ]; then
            row+=" $(cmp -s "$dist/$name" "$other/$name" && echo equal || echo '**differs**') |"
        fi
        echo "$row"
    done <"$dist/SHA256SUMS"
} >"$table.new"
mv "$table.new" "$table"
echo "artifacts: $table"

#!/usr/bin/env bash
# haul for Python: builds the wheel, installs it into a fresh environment and runs the copy of the README there; then the tests (pytest), the types (mypy, stubtest) and the example. What
# it installs comes by pip into environments below target/. Without a network, or without Python, it says what it skipped; under CI=true that is an error.
# `scripts/python.sh PART..` passes the words on to pytest and leaves the rest out.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(scripts/target-dir.sh)
here=$target/python
python=${PYTHON:-python3}

skip() {
    echo "python: SKIPPED: $*" >&2
    [ "${CI:-}" != true ] || exit 1
    exit 0
}

command -v "$python" >/dev/null || skip "no $python here"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || skip "$python is older than 3.9"
mkdir -p "$here"
if ! [ -x "$here/tools/bin/maturin" ]; then
    "$python" -m venv "$here/tools" || skip "no environments can be made with $python (Debian: python3-venv)"
fi
"$here/tools/bin/pip" install -q --disable-pip-version-check 'maturin>=1.9,<2' pytest mypy 'fsspec>=2024.2' tqdm typing_extensions ||
    skip "pip cannot install maturin, pytest, mypy, fsspec and tqdm: no network?"
# For one test: pandas reads what lies at a daemon, as CSV and (by pyarrow, 50 MB) as Parquet. Where there are none for this Python, that test is skipped; under CI=true it fails.
"$here/tools/bin/pip" install -q --disable-pip-version-check --only-binary :all: pandas pyarrow ||
    echo "python: pip cannot install pandas and pyarrow" >&2

echo "== program and wheel"
# As part of the workspace, as the other tests build it: alone its dependencies would have other features, and be built again.
cargo build -q --locked --workspace --bin haul
rm -rf "$here/wheels"
(cd python && PATH="$here/tools/bin:$PATH" maturin build -q --locked --profile dev -i "$here/tools/bin/python" --out "$here/wheels")
wheel=$(echo "$here"/wheels/haul-*-abi3-*.whl)
ls -l "$wheel"
export HAUL=$target/debug/haul

if [ $# -eq 0 ]; then
    # Every Python that is here: the wheel is one for all of them.
    seen=
    for other in "$python" python3.9 python3.10 python3.11 python3.12 python3.13 python3.14; do
        "$other" -c 'import ensurepip' 2>/dev/null || continue
        version=$("$other" --version)
        case "$seen" in *"$version;"*) continue ;; esac
        seen+="$version;"
        echo "== $version, fresh"
        rm -rf "$here/fresh"
        "$other" -m venv "$here/fresh"
        "$here/fresh/bin/pip" install -q --disable-pip-version-check --no-index "$wheel"
        (cd "$here" && fresh/bin/python "$OLDPWD/python/tests/fresh.py" "$OLDPWD/python/README.md")
    done
    # As the guide has it, by pip, which fetches maturin and calls it in an environment of its own. With what is built already: a release build is for who installs it.
    echo "== pip install ./python, fresh"
    rm -rf "$here/fresh"
    "$python" -m venv "$here/fresh"
    MATURIN_PEP517_ARGS="--profile dev --locked" "$here/fresh/bin/pip" install -q --disable-pip-version-check ./python
    (cd "$here" && fresh/bin/python "$OLDPWD/python/tests/fresh.py" "$OLDPWD/python/README.md")
fi

"$here/tools/bin/pip" install -q --disable-pip-version-check --no-index --no-deps --force-reinstall "$wheel"
echo "== tests"
# From another directory, so that what is installed is tested and not what lies here.
(cd "$here" && tools/bin/python -m pytest -q -c "$OLDPWD/python/pyproject.toml" --rootdir "$OLDPWD/python" -p no:cacheprovider --import-mode=importlib \
    -o pythonpath="$OLDPWD/python/tests" "$OLDPWD/python/tests" "$@")
[ $# -eq 0 ] || exit 0

echo "== types"
(cd python && "$here/tools/bin/mypy" --cache-dir "$here/mypy")
(cd "$here" && MYPYPATH= tools/bin/python -m mypy.stubtest haul._haul --ignore-missing-stub)
echo "python: all well"

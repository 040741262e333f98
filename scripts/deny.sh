#!/usr/bin/env bash
# Licences, sources, bans and known vulnerabilities of what haul depends on, by cargo-deny (deny.toml). Installs cargo-deny below the target
# directory where it is missing. The list of vulnerabilities lives on GitHub: where that cannot be reached, the rest is checked and the gap is
# said aloud, and the status is 77.
set -euo pipefail
cd "$(dirname "$0")/.."

tools="$(scripts/target-dir.sh)/tools"
export PATH="$tools/bin:$PATH"
if ! command -v cargo-deny >/dev/null; then
    echo "deny: building cargo-deny into $tools (once, some minutes)"
    # Optimised lightly: it runs for a second, and building it is the slow part.
    CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        CARGO_TARGET_DIR="$tools/build" cargo install cargo-deny --locked --quiet --root "$tools"
    rm -rf "$tools/build"
fi

cargo deny --log-level warn check licenses bans sources
if curl -sfI -m 10 https://github.com/RustSec/advisory-db >/dev/null; then
    cargo deny --log-level warn check advisories
else
    echo "deny: WARNING: advisories NOT checked: https://github.com/RustSec/advisory-db cannot be reached from here" >&2
    exit 77
fi

#!/usr/bin/env bash
# Runs each fuzz target for so many seconds: scripts/fuzz.sh SECONDS [TARGET..]. What is found stays in fuzz/artifacts; what reaches new code
# goes, minimised, into fuzz/corpus. Stable Rust: the instrumentation is a pass of the compiler's that needs no nightly flag.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

seconds=${1:?usage: scripts/fuzz.sh SECONDS [TARGET..]}
shift
if ! command -v c++ >/dev/null; then
    echo "fuzz: error: libFuzzer is C++: install g++" >&2
    exit 1
fi
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing"
# With --target the flags do not reach build scripts, which cannot be linked with them.
cargo build --release --locked --target "$host" --bins
built="$(cargo metadata --no-deps --format-version=1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/$host/release"

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for file in fuzz_targets/*.rs; do
        targets+=("$(basename "$file" .rs)")
    done
fi
failed=()
for target in "${targets[@]}"; do
    echo "== $target, $seconds s"
    mkdir -p "corpus/$target" "artifacts/$target"
    grown=$(mktemp -d)
    cp -r "corpus/$target/." "$grown"
    if ! "$built/$target" "$grown" -max_total_time="$seconds" -max_len=2048 -len_control=10 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="artifacts/$target/" -verbosity=0 2>"artifacts/$target/log"; then
        failed+=("$target")
    fi
    grep -E '^(stat::number_of_executed_units|stat::peak_rss_mb|SUMMARY|.*panicked at)' "artifacts/$target/log" || true
    # Keeps what the old corpus does not cover, nothing twice.
    "$built/$target" -merge=1 -set_cover_merge=1 -use_counters=0 -verbosity=0 -timeout=10 -max_len=2048 "corpus/$target" "$grown" >/dev/null 2>&1 || true
    rm -rf "$grown"
done
if [ ${#failed[@]} -gt 0 ]; then
    printf 'fuzz: FOUND SOMETHING: %s, see fuzz/artifacts\n' "${failed[@]}" >&2
    exit 1
fi

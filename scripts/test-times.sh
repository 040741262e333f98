#!/usr/bin/env bash
# Reads the output of `cargo test` and says how long each of its parts took and how many tests it had, the longest first.
# Usage: test-times.sh SECONDS-OF-BUILDING SECONDS-IN-ALL <output
set -euo pipefail

echo
printf '%10s %7s  %s\n' seconds tests part
awk '
    # "     Running tests/simulated/main.rs (target/debug/deps/simulated-5ddf90)"
    $1 == "Running" && /\/deps\// {
        part = $NF
        sub(/.*\/deps\//, "", part)
        sub(/-[0-9a-f]+\)$/, "", part)
        part = part " (" ($2 == "unittests" ? $3 : $2) ")"
    }
    $1 == "Doc-tests" { part = $2 " (documentation)" }
    # "test result: ok. 89 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2.83s"; documentation has several
    $1 == "test" && $2 == "result:" && part != "" {
        sub(/s$/, "", $NF)
        seconds[part] += $NF
        tests[part] += $4 + $6
    }
    END { for (part in seconds) printf "%10.1f %7d  %s\n", seconds[part], tests[part], part }
' | sort -rn
printf '%10.1f %7s  %s\n' "$1" "" "building"
printf '%10.1f %7s  %s\n' "$2" "" "in all"

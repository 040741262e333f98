#!/usr/bin/env bash
# strip.sh PROGRAM [SYMBOLS]: takes out of the program what only a debugger reads, six sevenths of it. It is kept in the file SYMBOLS, if one is named, to which the program
# then refers: gdb, perf and addr2line find it beside the program, in .debug/ there, or below /usr/lib/debug.
set -euo pipefail
program=$1 symbols=${2:-}
# Where the program is for another machine, that machine's.
objcopy=${OBJCOPY:-objcopy}
if [ -n "$symbols" ]; then
    mkdir -p "$(dirname "$symbols")"
    "$objcopy" --only-keep-debug "$program" "$symbols"
    chmod 644 "$symbols"
fi
"$objcopy" --strip-all "$program"
if [ -n "$symbols" ]; then
    "$objcopy" --add-gnu-debuglink="$symbols" "$program"
fi

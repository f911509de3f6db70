#!/usr/bin/env bash
# killed.sh SAYS PROGRAM [TEST]: the program, which is built from a source with a mistake in it, must fail with an
# output that matches SAYS. It runs under CUDA_EMU_WATCH, unless UNWATCHED is set: the sanitizers cannot check the watch's
# memory, and in some mistakes the order of blocks matters, which then run one after the other.
says=$1
shift
[ -n "${UNWATCHED:-}" ] || export CUDA_EMU_WATCH=1
output=$("$@" 2>&1)
status=$?
[ "$status" -ne 0 ] || { echo "the mistake was not noticed: $*"; exit 1; }
grep -qE -- "$says" <<<"$output" && exit 0
echo "ended with status $status, but its output has no '$says':"
tail -20 <<<"$output"
exit 1

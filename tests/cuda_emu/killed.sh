#!/usr/bin/env bash
# killed.sh SAYS PROGRAM [TEST]: the program, made of a source with a mistake in it, must fail under CUDA_EMU_WATCH with an
# output that matches SAYS.
says=$1
shift
output=$(CUDA_EMU_WATCH=1 "$@" 2>&1)
status=$?
[ "$status" -ne 0 ] || { echo "not noticed: $*"; exit 1; }
grep -qE -- "$says" <<<"$output" && exit 0
echo "ended with status $status, and not with '$says':"
tail -20 <<<"$output"
exit 1

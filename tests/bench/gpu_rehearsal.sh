#!/usr/bin/env bash
# gpu.sh run does its parts on a machine that may be lent for minutes only, once: so its logic is tested here, on the emulated device,
# and with stand-ins that fail in the ways that it must tell apart.  gpu_rehearsal.sh SOURCE BUILD
# shellcheck source=tests/bench/rehearsal.sh
. "$(dirname "$0")/rehearsal.sh"
rehearse() { # NAME PART...
  local name=$1
  shift
  # A stand-in for python3 finds no torch; the results say so.
  PATH=$work/path:$PATH PYTHON=$work/path/python3 OUT=$work/$name GPU_PROGRAMS=$work/bin SECONDS_EACH=0 tests/bench/gpu.sh run "$@" \
    >"$work/$name.said" 2>&1 || fail "gpu.sh: $(<"$work/$name.said")"
}
says() { grep -qE "$2" "$work/$1.said" || fail "$1 does not say '$2': $(<"$work/$1.said")"; }

mkdir -p "$work/bin" "$work/path"
printf '#!/bin/sh\nexit 1\n' >"$work/path/python3"
printf '#!/bin/sh\necho "a stand-in, 1"\n' >"$work/path/nvidia-smi"
for program in dtrun_emu test_cuda_forward; do ln -s "$(find "$build/tests" -name "$program" -type f | head -n 1)" "$work/bin/${program%_emu}"; done
chmod +x "$work"/path/*

tests/bench/gpu.sh run kernel >/dev/null 2>&1
[ $? = 2 ] || fail 'a part that there is not'

rehearse real smoke pair kernels tools peers
says real '^# a stand-in, 1, commit .*: smoke pair kernels tools peers$'
says real '^passed: test_cuda_forward \([0-9]+ s\)$'
says real '^dtrun: 40 tokens, '
says real '^SKIPPED: the synthetic pair and all that is measured on it'
says real '^SKIPPED: transformers, plain and assisted'
says real '^SKIPPED: (ncu|compute-sanitizer) '
grep -q '^FAILED' "$work/real.said" && fail "it fails: $(<"$work/real.said")"
[ "$(cat "$work"/real/gpu-*.txt)" = "$(<"$work/real.said")" ] || fail 'the file has not what was printed'

rm "$work"/bin/*
stand_in() { printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1" && chmod +x "$work/bin/$1"; }
for program in dtrun test_golden_logits test_golden_sampling test_heads test_cuda_{forward,draw,exact,groups,packed,q8,failures,generation,prompt,heads,turns}; do
  stand_in "$program" 'exit 0'
done
# shellcheck disable=SC2016
stand_in test_cuda_draw 'echo so it is; [ "$DTRUN_NO_PDL" ]'
# shellcheck disable=SC2016
stand_in test_cuda_exact '[ "$DTRUN_NO_PDL" ] && [ "$DTRUN_NO_GRAPH" ]'
stand_in test_cuda_prompt 'exit 3'
stand_in test_cuda_heads 'exit 77'
rehearse broken exact
says broken '^passed: test_cuda_forward '
says broken '^    so it is$'
says broken '^FAILED: test_cuda_draw \(status 1;.*: passes with DTRUN_NO_PDL=1, with DTRUN_NO_PDL=1 DTRUN_NO_GRAPH=1$'
says broken '^FAILED: test_cuda_exact .*: passes with DTRUN_NO_PDL=1 DTRUN_NO_GRAPH=1$'
says broken '^FAILED: test_cuda_prompt \(status 3;.*: fails in every way$'
says broken '^SKIPPED: test_cuda_heads '
says broken '^passed: dtrun run matrix.lua '

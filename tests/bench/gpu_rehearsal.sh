#!/usr/bin/env bash
# gpu.sh may get a machine only once, for minutes. Therefore all of it is tested here: on the emulated device, and with
# stand-ins for its programs that fail, hang or are killed in all the ways that it must distinguish.
# gpu_rehearsal.sh SOURCE BUILD
# shellcheck source=tests/bench/rehearsal.sh
. "$(dirname "$0")/rehearsal.sh"
says() { grep -qE "$2" "$work/$1/gpu.txt" || fail "$1 does not say '$2': $(<"$work/$1/gpu.txt")"; }
says_not() { ! grep -E "$2" "$work/$1/gpu.txt" || fail "$1 says '$2'"; }

mkdir -p "$work/bin" "$work/path"
printf '#!/bin/sh\nexit 1\n' >"$work/path/python3" # has no torch
printf '#!/bin/sh\necho "a stand-in, 1"\n' >"$work/path/nvidia-smi"
printf '#!/bin/sh\necho "llama-bench: 1 token/s"\n' >"$work/path/llama-bench"
chmod +x "$work"/path/*

tests/bench/gpu.sh run kernel >/dev/null 2>&1
[ $? = 2 ] || fail 'an unknown part is not refused'

# ---- on the emulated device ----

OUT=$work/emulated PATH=$work/path:$PATH tests/bench/gpu.sh rehearse "$build" >"$work/printed" 2>&1 ||
  fail "$(<"$work/printed")"
cmp -s "$work/printed" "$work/emulated/gpu.txt" || fail 'gpu.txt differs from what was printed'
says emulated '^# a stand-in, 1, commit .*: exact rows wgmma prompts memory loading policies llama sanitize$'
for step in smoke test_cuda_{forward,sample,exact,prompt} test_heads linear 'linear sampling' 'dynatree sampling' \
  'eagle2 head' 'rows F16' 'rows Q4_K' 'rows Q4_K in groups' wgmma 'prompts F16' 'prompts Q4_K' memory 'loading F16' \
  'loading Q4_K' 'loading IQ4_XS' 'policies bundled'; do
  says emulated "^passed: $step \([0-9]+ s\)$"
done
says_not emulated '^(FAILED|SLOW|LEFT)'
says emulated '^SKIPPED: the synthetic pair and all measurements with it'
for rows in 1 65 257; do
  grep -qE "^tiny,verify,512,$rows," "$work/emulated/rows-Q4_K-in-groups.txt" || fail "there is no pass of $rows rows"
done
grep -q '^wgmma: the same bits' "$work/emulated/wgmma.txt" || fail 'wgmma: the bits should be the same on the emulated device'
grep -q '^memory,first again,.*,ran$' "$work/emulated/memory.txt" || fail 'memory: the last pass did not run'
grep -E '^passed: |^=== ' "$work/emulated/gpu.txt"

# ---- stand-ins ----

stand_in() { # PROGRAM COMMANDS: replaces a program; it records that it ran
  printf '#!/bin/sh\necho "%s" >>"%s/ran"\n%s\n' "$1" "$work" "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
stand_ins() {
  local program
  rm -f "$work"/bin/* "$work/ran" "$work/finished"
  for program in dtrun bench_limit bench_gpu wgmma test_golden_logits test_golden_sampling test_heads \
    test_cuda_{forward,sample,exact,groups,packed,q8,failures,generation,prompt,heads,turns}; do
    stand_in "$program" 'exit 0'
  done
}
rehearse() { # NAME PART...
  PATH=$work/path:$PATH OUT=$work/$1 GPU_PROGRAMS=$work/bin FINISHED=$work/finished tests/bench/gpu.sh run "${@:2}" \
    >"$work/printed" 2>&1 || fail "$(<"$work/printed")"
}

stand_ins
# shellcheck disable=SC2016
stand_in test_cuda_sample 'echo so it is; [ "$DTRUN_NO_PDL" ]'
# shellcheck disable=SC2016
stand_in test_cuda_exact '[ "$DTRUN_NO_PDL" ] && [ "$DTRUN_NO_GRAPH" ]'
stand_in test_cuda_prompt 'exit 3'
stand_in test_cuda_heads 'echo no GPU; exit 77'
rm "$work/bin/test_cuda_q8"
rehearse broken exact
says broken '^passed: test_cuda_forward '
says broken '^    so it is$'
says broken '^FAILED: test_cuda_sample: status 1; passes with DTRUN_NO_PDL=1, with DTRUN_NO_PDL=1 DTRUN_NO_GRAPH=1 '
says broken '^FAILED: test_cuda_exact: status 1; passes with DTRUN_NO_PDL=1 DTRUN_NO_GRAPH=1 '
says broken '^FAILED: test_cuda_prompt: status 3; fails in every way '
says broken '^SKIPPED: test_cuda_heads: no GPU '
says broken '^SKIPPED: test_cuda_q8 .*does not exist'
says broken '^passed: matrix '

# A step that hangs costs only itself. When the time is over, the remaining steps are left for another run.
stand_ins
stand_in wgmma 'echo begun; sleep 1000'
stand_in bench_gpu 'sleep 1000'
BUDGET=14 rehearse slow rows wgmma prompts memory
says slow '^passed: rows Q4_K in groups '
says slow '^begun$'
says slow '^SLOW: wgmma: stopped after [0-9]+ s'
says slow '^LEFT: prompts Q4_K '
stand_in bench_gpu 'exit 0'
rm "$work/ran"
rehearse rest rest
says_not rest 'rows F16|wgmma:'
says rest '^passed: prompts Q4_K '
says rest '^passed: test_cuda_forward '
grep -qE '^(bench_limit|wgmma)$' "$work/ran" && fail 'a step that has a result ran again'

# If a step is killed, what it printed before is kept, although the program buffers its output to files.
stand_ins
# shellcheck disable=SC2016
stand_in bench_gpu 'awk '\''BEGIN { print "a first line"; print "a second line"; while (1) n++ }'\'
PATH=$work/path:$PATH OUT=$work/killed GPU_PROGRAMS=$work/bin FINISHED=$work/finished \
  setsid tests/bench/gpu.sh run rows prompts >/dev/null 2>&1 &
group=$!
until grep -q 'a second line' "$work/killed/prompts-F16.txt" 2>/dev/null; do
  kill -0 $group 2>/dev/null || fail "it ended: $(cat "$work/killed/gpu.txt")"
  sleep 0.2
done
step=$(pgrep -f "^timeout .*$work/bin/bench_gpu") # it has a process group of its own
kill -9 -- -$group "-$step"
wait $group 2>/dev/null
says killed '^passed: rows Q4_K in groups '
says_not killed '^(passed|SLOW|FAILED): prompts'
[ "$(sed 1d "$work/killed/prompts-F16.txt")" = $'a first line\na second line' ] ||
  fail "lost: $(<"$work/killed/prompts-F16.txt")"
stand_in bench_gpu 'exit 0'
rm "$work/ran"
rehearse killed rest
says killed '^passed: prompts F16 '
grep -qx bench_limit "$work/ran" && fail 'a step that has a result ran again'
exit 0

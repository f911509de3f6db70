#!/usr/bin/env bash
# `dtrun doctor`: one page that says what this machine has and lacks.
. "$(dirname "$0")/helpers.sh"

says() { grep -qE "^$1" stdout || fail "no line like '$1'"; }

it_says_what_it_finds() {
  mkdir -p hf/models--some-org--mini cache/dtrun config/dtrun/presets
  touch cache/dtrun/costs-1.json cache/dtrun/costs-2.json
  run env HF_HUB_CACHE="$PWD/hf" XDG_CACHE_HOME="$PWD/cache" XDG_CONFIG_HOME="$PWD/config" "$dtrun" doctor
  [ "$status" -eq 0 ] && [ ! -s stderr ] || fail "exit status $status"
  says 'dtrun: +[0-9.]+, Lua 5.4$'
  says 'system: .*Linux '
  says "processor: .*$(nproc) CPUs?$"
  for feature in $(grep -m1 '^flags' /proc/cpuinfo | grep -owE 'avx2|avx_vnni|avx512f|avx512_vnni|amx_int8'); do says "features: .*\b$feature\b"; done
  says "processors: +[0-9]+ usable; allowed: [0-9,-]+; quota of the control group: "
  says 'memory: +[0-9.]+ GB, [0-9.]+ GB free; last cache '
  says 'build: +[0-9a-f]{64}, commit '
  says 'backend: +cpu:[a-z0-9]+ with [0-9]+ threads; available: .*cpu:scalar'
  says 'bandwidth: +[1-9][0-9]*\.[0-9] GB/s'
  says 'bundled pair: ar [0-9]+, linear [0-9]+ tokens/s, prompt included, the same tokens$'
  if "$dtrun" ar -p It --backend x 2>&1 | grep -q 'auto, cuda, cpu'; then
    says 'backends: +cpu and cuda$'
    says 'GPU: +(none: no GPU can be used: .*|cuda works)$'
  else
    says 'backends: +cpu; this program was built without cuda: .*cmake --preset cuda$'
    says 'GPU: +(none: /dev/nvidia0 does not exist|/dev/nvidia[0-9]+ exists, but this program has no CUDA backend)$'
  fi
  says 'MPI: +(mpirun -n R dtrun .*|none: .*)$'
  says 'serve: +(dtrun serve is installed|none: building it needs libmicrohttpd-dev)$'
  [ -x "$(dirname "$dtrun")/dtrun-serve" ] && says 'serve: +dtrun serve is installed$'
  says "model: +.*/models/mini-target$"
  says "model: +some-org/mini in $PWD/hf$"
  says "caches: +files of costs in $PWD/cache/dtrun: [23]$"
  says "tuned: +presets in $PWD/config/dtrun/presets: 0$"
}
it_names_the_variants_of_this_machine() {
  local have=
  for name in scalar avx2 avx512 avxvnni avx512vnni amx neon dotprod i8mm; do
    run "$dtrun" ar -p It -n 1 --backend cpu:$name && [ "$status" -eq 0 ] && have+="${have:+, }cpu:$name"
  done
  refuses 2 "no backend 'x' in this build, on this machine; available: auto, (cuda, )?cpu \($have\)$" ar -p It --backend x
  refuses 2 "backend cpu:x: no such variant on this machine \(available: $have\)$" ar -p It --backend cpu:x
  run "$dtrun" doctor
  says "backend: .*; available: ${have//, / }$"
}
it_says_what_is_missing() {
  : >file # a home below a file cannot be created, not even by root
  run env -i PATH=/nowhere HOME="$PWD/file/home" DTRUN_HOME=/nowhere DTRUN_TARGET=/nowhere/model "$dtrun" doctor
  [ "$status" -eq 0 ] && [ ! -s stderr ] || fail "exit status $status"
  says 'backend: +none: .*/nowhere/model'
  says 'gnuplot: +not installed$'
  says 'Graphviz: +not installed$'
  says 'serve: +none: '
  says 'DTRUN_TARGET: /nowhere/model$'
  says 'caches: +files of costs in .*: 0'
}

run_tests

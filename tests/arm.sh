#!/usr/bin/env bash
# The ARM build under emulation: it is compiled here, and its programs run on processors that qemu-user emulates. They
# must give the same bits as x86; the same files of hashes serve for both.
#
#   arm.sh [long]
#     neoverse-n1     the newest variant is dotprod
#     max,sve=off     the newest variant is i8mm
#     cortex-a72      the newest variant is neon
#     max             all that qemu supports
#
# Emulation is 20 to 50 times slower, so most programs run a part of their usual cases. `long` runs most of the rest,
# which takes hours. The emulator has the memory order of the machine it runs on. Errors that only weak ordering would
# show are left to ThreadSanitizer (mutants/threads.sh) and to the reasoning in runtime/cpu/team.c.
set -u
cd "$(dirname "$0")/.." || exit 1
for program in aarch64-linux-gnu-gcc qemu-aarch64; do
  command -v "$program" >/dev/null || { echo "skipped: $program is not installed (scripts/packages arm installs it)"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! { cmake --preset arm64 && cmake --build build/arm64; } >"$work/log" 2>&1; then
  tail -30 "$work/log"
  exit 1
fi
build=$(realpath build/arm64)
export XDG_CACHE_HOME=$work/cache
count=0

# on PROCESSOR NAME COMMAND...: runs a program of the build on that processor, in parallel with others (JOBS at once;
# default: one per core)
on() {
  while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-$(nproc)}" ]; do wait -n; done
  count=$((count + 1))
  run_on "$count" "$@" &
}
run_on() {
  local output=$work/output$1 processor=$2 name=$3 start=$SECONDS
  shift 3
  if QEMU_CPU=$processor "$@" >"$output" 2>&1; then
    echo "ok    $processor: $name ($((SECONDS - start)) s)"
  else
    printf '%s\n' "$(tail -30 "$output")" "FAIL  $processor: $name"
    touch "$work/failed"
  fi
}
# emulated PROGRAM ARGUMENTS...
emulated() {
  local program=$1
  shift
  qemu-aarch64 "$build/$program" "$@"
}

# The tests of the command line start a program by its path.
printf '#!/bin/sh\nexec qemu-aarch64 %s/dtrun "$@"\n' "$build" >"$work/dtrun"
chmod +x "$work/dtrun"

# Unpacks the Debian package and the wheel. Runs the package's program, and the guide's example in C with the library of
# each.
packages() {
  (cd "$build" && cpack -G DEB -B "$work") && dpkg-deb -x "$work"/dtrun_*_arm64.deb "$work/there" || return
  qemu-aarch64 "$work/there/usr/bin/dtrun" linear -p 'It was' -n 4 || return
  scripts/wheel "$work" "$build" && python3 -m zipfile -e "$work"/dtrun-*-linux_aarch64.whl "$work/wheel" || return
  awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' runtime/LIBRARY.md >"$work/hello.c"
  aarch64-linux-gnu-gcc "$work/hello.c" -I"$work/there/usr/include" -L"$work/there/usr/lib" -ldtrun -o "$work/hello" || return
  LD_LIBRARY_PATH=$work/there/usr/lib qemu-aarch64 "$work/hello" || return
  local libraries=$work/wheel/dtrun/needed # ctypes opens the wheel's own by its path; a program asks for its soname
  cp "$work/wheel/dtrun/libdtrun.so" "$libraries/libdtrun.so.0" && LD_LIBRARY_PATH=$libraries qemu-aarch64 "$work/hello"
}
# Leaves out the tests in which a call must be longer than a signal takes and shorter than a policy's seconds: under
# emulation it is not.
cli() { LEAVE_OUT=interrupt "tests/cli/$1.sh" "$work/dtrun" .; }
matrix() { emulated dtrun run tests/exact/matrix.lua --backend "cpu:$1" "${@:2}"; }
quantized() { emulated dtrun run tests/exact/quantized.lua "$@"; }

newest=max,sve=off
part() {
  on $newest 'every variant compared with scalar: test_cpu_isa, a part' emulated tests/test_cpu_isa quick
  on $newest 'every variant compared with scalar: test_cpu_kernels' emulated tests/test_cpu_kernels
  on $newest 'the bits of a row do not depend on the other rows of its pass, a part' emulated tests/test_cpu_exact quick
  on cortex-a72 'hashes of logits' emulated tests/test_cpu_logits_hash quick neon
  on neoverse-n1 'hashes of logits' emulated tests/test_cpu_logits_hash quick dotprod
  on $newest 'hashes of logits' emulated tests/test_cpu_logits_hash quick i8mm
  on max 'hashes of logits' emulated tests/test_cpu_logits_hash quick scalar i8mm
  on $newest 'hashes of the guesses of heads, on all variants' emulated tests/test_cpu_head_hash
  on neoverse-n1 'a part of the exactness matrix' matrix dotprod --prompts 1 --chars 60 -n 8
  on $newest 'a part of the exactness matrix' matrix i8mm --prompts 1 -n 8
  on $newest 'tokens of quantized models, a part' quantized --quick -n 4
  on $newest 'random policies' emulated dtrun run tests/exact/random_policies.lua -t 1 --policies 300
  on $newest 'every variant compared with scalar: test_cpu_quant' emulated tests/test_cpu_quant
  on $newest 'a team of 1 to 64 threads' emulated tests/test_team
  for unit in processors text tokenizer tokenizer_kinds types tree session grammar chat lua_box; do
    on $newest "test_$unit" emulated "tests/test_$unit"
  done
  on $newest 'the Debian package and the wheel' packages
  for name in box first names bad_input; do on $newest "cli.$name" cli "$name"; done
}
long() {
  on $newest 'every variant compared with scalar: test_cpu_isa' emulated tests/test_cpu_isa
  on $newest 'the bits of a row do not depend on the other rows of its pass' emulated tests/test_cpu_exact
  for variant in scalar neon dotprod i8mm; do on $newest 'the exactness matrix' matrix $variant --prompts 2 -n 24; done
  on $newest 'tokens of quantized models' quantized
  on $newest 'hashes of logits' emulated tests/test_cpu_logits_hash
}

case "${1:-}" in
  "") part ;;
  long) long ;;
  *) echo "usage: tests/arm.sh [long]" >&2; exit 2 ;;
esac
wait
[ ! -e "$work/failed" ]

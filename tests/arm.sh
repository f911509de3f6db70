#!/usr/bin/env bash
# The ARM build under emulation: it is compiled here, and its programs run on processors that qemu-user imitates. Their bits
# must be those of x86: one file of hashes serves both.  arm.sh [BUILD_DIR]
#   neoverse-n1     the newest variant is dotprod
#   max,sve=off     i8mm
#   cortex-a72      neon
#   max             all that qemu knows
# Emulation is 20 to 50 times slower, and its memory is ordered as that of the machine beneath: what weak ordering could break
# is left to ThreadSanitizer (mutants/threads.sh) and to the reasons in runtime/cpu/team.c.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build/arm64}
for program in aarch64-linux-gnu-gcc qemu-aarch64; do
  command -v "$program" >/dev/null || { echo "skipped: no $program (scripts/packages arm)"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
units=(team processors cpu_kernels cpu_quant cpu_isa cpu_exact cpu_logits_hash text tokenizer tokenizer_kinds types tree session
  grammar chat lua_box)
cmake --preset arm64 -B "$build" >"$work/log" 2>&1 && cmake --build "$build" --target dtrun "${units[@]/#/test_}" >>"$work/log" 2>&1 ||
  { tail -30 "$work/log"; exit 1; }
build=$(realpath "$build")
export XDG_CACHE_HOME=$work/cache
failed=0

# on PROCESSOR NAME COMMAND...: a program of the build on that processor
on() {
  local processor=$1 name=$2 start=$SECONDS
  shift 2
  if QEMU_CPU=$processor "$@" >"$work/output" 2>&1; then
    echo "ok    $processor: $name ($((SECONDS - start)) s)"
  else
    tail -30 "$work/output"
    echo "FAIL  $processor: $name"
    failed=1
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

# The Debian package, unpacked: its program, and its library in the guide's example for C. The wheel has the same library.
packages() {
  cmake --build "$build" --target product && (cd "$build" && cpack -G DEB -B "$work") && dpkg-deb -x "$work"/dtrun_*_arm64.deb "$work/there" || return
  qemu-aarch64 "$work/there/usr/bin/dtrun" linear -p 'It was' -n 4 || return
  awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' runtime/LIBRARY.md >"$work/hello.c"
  aarch64-linux-gnu-gcc "$work/hello.c" -I"$work/there/usr/include" -L"$work/there/usr/lib" -ldtrun -o "$work/hello" || return
  LD_LIBRARY_PATH=$work/there/usr/lib qemu-aarch64 "$work/hello" || return
  scripts/wheel "$work" "$build" | grep 'linux_aarch64\.whl$'
}
# Without those in which a call must be longer than a signal takes and shorter than a page's seconds: emulated, it is not.
cli() { LEAVE_OUT=interrupt "tests/cli/$1.sh" "$work/dtrun" .; }
matrix() { emulated dtrun run tests/exact/matrix.lua --prompts 1 -n 8 --backend "cpu:$1"; }

newest=max,sve=off
on $newest 'a team of 1 to 64 threads' emulated tests/test_team
on $newest 'the number of fast cores' emulated tests/test_processors
for unit in kernels quant isa; do on $newest "every variant beside scalar: test_cpu_$unit" emulated "tests/test_cpu_$unit"; done
on $newest 'a row has its bits whatever rows share the pass' emulated tests/test_cpu_exact
on cortex-a72 'hashes of logits' emulated tests/test_cpu_logits_hash quick neon
on neoverse-n1 'hashes of logits' emulated tests/test_cpu_logits_hash quick dotprod
on $newest 'hashes of logits' emulated tests/test_cpu_logits_hash quick i8mm
on max 'hashes of logits' emulated tests/test_cpu_logits_hash quick scalar i8mm
on neoverse-n1 'a part of the exactness matrix' matrix dotprod
on $newest 'a part of the exactness matrix' matrix i8mm
on $newest 'tokens of quantized models' emulated dtrun run tests/exact/quantized.lua -n 4
on $newest 'random pages' emulated dtrun run tests/exact/random_pages.lua -t 1 --pages 300
for unit in "${units[@]:7}"; do on $newest "test_$unit" emulated "tests/test_$unit"; done
on $newest 'the Debian package and the wheel' packages
for name in box first names bad_input; do on $newest "cli.$name" cli "$name"; done
exit $failed

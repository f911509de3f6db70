#!/usr/bin/env bash
# Everything that an ARM machine can tell about dtrun, in one command and one archive:
#
#   tests/bench/arm.sh [PART]...     in a clone, on the machine (on Debian it installs what is missing); PART or all:
#     check     builds, the narrow tests, all hashes of logits, exactness on small models         (about 15 minutes)
#     kernels   every variant: products and attention alone, passes of real and random models     (about 20 minutes)
#     policies  plain decoding and policies: the bundled pair and SmolLM2 with its head           (about 5 minutes)
#     peers     llama.cpp, built from source, on the same model: by its own benchmark, and compared with dtrun as a
#               server (about 20 minutes; it needs pip, which Debian has in python3-pip)
#
# The archive is OUT/arm-DATE.tar.gz (from the environment variable OUT; default: build/arm). It contains what each part
# printed, the processor and the commit. A part reports what it cannot do as SKIPPED or FAILED, and the next part
# continues. The minutes are estimates, since this has not run on an ARM machine yet. QUICK=1 is for a rehearsal
# (arm_rehearsal.sh): it measures hardly anything, with the bundled models.
set -u
cd "$(dirname "$0")/../.." || exit 1
parts=("$@")
[ $# -gt 0 ] || parts=(check kernels policies peers)
for part in "${parts[@]}"; do
  [[ $part =~ ^(check|kernels|policies|peers)$ ]] || { echo "usage: tests/bench/arm.sh [check | kernels | policies | peers]..." >&2; exit 2; }
done
out=${OUT:-build/arm}
results=$out/arm-$(date -u +%Y%m%d-%H%M%S)
mkdir -p "$results"
build=${BUILD:-build} # with EMULATOR (qemu-aarch64) and build/arm64: a rehearsal on another machine
run() { ${EMULATOR:-} "$@"; }
tokens=200 prompts=5 seconds=20 shapes=('8960 1536' '896 256') format=() random=pythia-70m
model=models/SmolLM2-135M-Instruct.Q4_1.gguf pair=(-m "$model" -md models/smollm2-head --template chatml)
if [ -n "${QUICK:-}" ]; then
  tokens=8 prompts=1 seconds=0.1 shapes=('32 256') format=(q4_k) random=models/mini-draft model=models/mini-target pair=()
fi
llama=${LLAMA:-build/peers/llama.cpp}

try() { echo "## $*"; "$@" || echo "FAILED: $* (status $?)"; }
there() { [ -e "$1" ] || { echo "SKIPPED: $1 is not installed"; return 1; }; }

# The names of this machine's variants, slowest first.
variants() { run "$build/dtrun" ar -p It --backend none 2>&1 | grep -oE 'cpu:[a-z0-9]+' | cut -d: -f2; }

check() {
  if [ -z "${EMULATOR:-}" ]; then
    try scripts/packages test
    try cmake --preset release
    try cmake --build build
    try ctest --preset release -L check -j"$(nproc)"
    try run "$build/tests/test_cpu_logits_hash" all
    try run "$build/dtrun" run tests/exact/matrix.lua --prompts 2 -n 24
    try run "$build/dtrun" run tests/exact/quantized.lua
  fi
  try run "$build/tests/test_team"
  try run "$build/dtrun" doctor
}

kernels() {
  for variant in $(variants); do
    [ "$variant" = scalar ] && continue
    # shellcheck disable=SC2086 # two words
    for shape in "${shapes[@]}"; do try run "$build/tests/bench_products" $shape "$variant" "${format[@]}"; done
    try run "$build/tests/bench_attention" -v "$variant" ${QUICK:+-r 1 -c 256 -n 4}
    try run "$build/tests/bench_limit" -v "$variant" -s "$seconds" "$random"
    there "$model" && try run "$build/tests/bench_limit" -v "$variant" -s "$seconds" -a "$model"
  done
}

policies() {
  try run "$build/dtrun" run tests/bench/policies.lua --prompts "$prompts" -n "$tokens"
  there "$model" && try run "$build/dtrun" run tests/bench/rivals.lua --prompts 1 --tokens "$tokens" "${pair[@]}"
}

peers() {
  there "$model" || return
  [ -x "$llama/bin/llama-server" ] || try tests/bench/peers/build.sh "$(dirname "$llama")" llama.cpp
  there "$llama/bin/llama-server" || return
  [ -x "$llama/bin/llama-bench" ] || try cmake --build "$llama" --target llama-bench
  try "$llama/bin/llama-bench" -m "$model" -p 128 -n 64
  try python3 tests/bench/compare_peers.py --dtrun "$build/dtrun" --target "$model" --draft none --policy rate --prompts "$prompts" \
    --tokens "$tokens" --repeats 3 --threads "$(nproc)" --peers --llama-cpp "$llama/bin/llama-server"
}

{
  git rev-parse HEAD
  uname -a
  lscpu
  grep -E 'model name|CPU (implementer|part)|Features|flags' /proc/cpuinfo | sort | uniq -c
  cat /sys/devices/system/cpu/cpu*/cpu_capacity
  free -m
} >"$results/machine.txt" 2>&1
[ -e "$model" ] || scripts/get-model smollm2 >"$results/model.txt" 2>&1 || echo 'SKIPPED: the real model (scripts/get-model smollm2)'
for part in "${parts[@]}"; do
  echo "arm.sh: $part"
  "$part" 2>&1 | tee "$results/$part.txt" | grep -E '^(##|FAILED|SKIPPED)'
done
tar -C "$out" -czf "$results.tar.gz" "$(basename "$results")" && echo "$results.tar.gz"

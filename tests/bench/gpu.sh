#!/usr/bin/env bash
# The CUDA backend on a real GPU, in two steps, since the machine with the GPU may lack our Debian packages:
#
#   tests/bench/gpu.sh pack         where nvcc and the packages are: builds, and puts programs and their libraries in build/gpu
#   tests/bench/gpu.sh run [PART]   where the GPU is, with build/gpu carried there: one part, or all:
#     check      the tests, the memory checker, four policies with the bundled pair                       (about 5 minutes)
#     measure    passes of both shapes (random weights), and a synthetic Pythia-2.8B + 70M pair: four policies, memory
#                                                                                                         (about 8 minutes)
#     peers      transformers, plain and assisted, alternating with dtrun, on that pair                    (about 8 minutes)
#
# A program of ours needs the C library, and for long prompts looks for cuBLASLt, as the toolkit or a Python package brings it;
# the pair and the peers need python3 with torch, safetensors and transformers. What needs a thing that is missing is left out
# and says SKIPPED: torch with CUDA is some 3 GB, and 64 MB may be carried; PYTHON (the environment's; else python3) may name an
# interpreter that has it. What is printed goes to OUT (the environment's; else tests/bench/results), with device and commit.
# TOKENS (500), PROMPTS (10) and PAIRS (a folder for the pairs, build/pairs) may be set. The minutes are guesses: it has never
# run on a GPU.
#
# What must be read, counted: a plain token of the 2.8B shape reads 5.29 GB of weights and 0.33 MB of cache per position of
# its context; at 4.8 TB/s that is 1.10 ms, 907 tokens/s. A draft level of the 70M shape reads 0.089 GB: 19 microseconds.
set -euo pipefail
cd "$(dirname "$0")/../.."
tests=(draw exact failures forward generation prompt)
programs=(dtrun tests/bench_limit tests/test_golden_logits "${tests[@]/#/tests/test_cuda_}")
gpu=build/gpu

pack() {
  cmake --preset cuda
  cmake --build build/cuda
  rm -rf "$gpu" && mkdir -p "$gpu/lib"
  for program in "${programs[@]}"; do cp "build/cuda/$program" "$gpu/"; done
  # Everything but the C library, which must be the machine's own.
  ldd "$gpu"/dtrun "$gpu"/test_cuda_exact | awk '$2 == "=>" && $3 ~ "^/" && $1 !~ "^lib(c|m|dl|pthread|rt|gcc_s|stdc\\+\\+)\\.so" { print $3 }' |
    sort -u | xargs -I{} cp -L {} "$gpu/lib/"
  git rev-parse --short HEAD >"$gpu/commit"
  du -sh "$gpu"
}

has() { "$python" -c "import $1" 2>/dev/null || { echo "SKIPPED: $2 ($python has no ${1//,/, or no })"; return 1; }; }

# The folders where the machine may have cuBLASLt: the toolkit's, and the one of the Python packages.
cublas_folders() {
  echo /usr/local/cuda/lib64
  "$python" -c 'import glob, importlib.util as u
spec = u.find_spec("nvidia")
for folder in spec.submodule_search_locations if spec else ():
    print(*glob.glob(folder + "/*/lib"), sep="\n")' || true
}

check() {
  for test in "${tests[@]}"; do "$gpu/test_cuda_$test" || echo "FAILED: test_cuda_$test"; done
  "$gpu/test_golden_logits" cuda || echo 'FAILED: test_golden_logits'
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck synccheck; do
      DTRUN_GUARD=1 timeout 90 compute-sanitizer --tool "$tool" --error-exitcode 9 "$gpu/test_cuda_forward" ||
        echo "FAILED: compute-sanitizer $tool (status $?; 124: it took more than 90 seconds)"
    done
  else
    echo 'SKIPPED: compute-sanitizer (it is not here)'
  fi
  "$gpu/dtrun" run tests/bench/policies.lua --backend cuda --prompts "$prompts" -n "$tokens" || echo 'FAILED: policies.lua on the bundled pair'
}

make_pair() {
  [ -d "$target" ] && return
  has torch,safetensors 'the synthetic pair and all that is measured on it' || return
  "$python" scripts/training/make_synthetic_pair.py --target pythia-2.8b --draft pythia-70m --agreement 0.7 0.8 0.9 0.95 --second 0.1 \
    --seed 1 "$pairs" || { echo 'FAILED: make_synthetic_pair.py'; return 1; }
}

measure() {
  "$gpu/bench_limit" -b cuda pythia-2.8b pythia-70m || echo 'FAILED: bench_limit'
  make_pair || return 0
  for draft in "$pairs"/synthetic-70m-*; do
    "$gpu/dtrun" run tests/bench/policies.lua --backend cuda -m "$target" -md "$draft" --prompts "$prompts" -n "$tokens" ||
      echo "FAILED: policies.lua with $draft"
  done
  "$gpu/dtrun" run tests/bench/policies.lua --backend cuda -m "$target" -md "$pairs/synthetic-70m-0.8" --prompts 2 -n "$tokens" \
    --temp 1 || echo 'FAILED: policies.lua, sampling'
}

peers() {
  has torch,transformers 'transformers, plain and assisted' || return 0
  "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' ||
    { echo 'SKIPPED: transformers, plain and assisted (its torch sees no GPU)'; return 0; }
  make_pair || return 0
  "$python" tests/bench/compare_peers.py --backend cuda --dtrun "$gpu/dtrun" --target "$target" --draft "$pairs/synthetic-70m-0.8" \
    --prompts "$prompts" --tokens "$tokens" --repeats 1 || echo 'FAILED: compare_peers.py'
}

run() {
  tokens=${TOKENS:-500} prompts=${PROMPTS:-10} python=${PYTHON:-python3} pairs=${PAIRS:-build/pairs} target=$pairs/synthetic-2.8b
  LD_LIBRARY_PATH=$PWD/$gpu/lib:${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(cublas_folders | paste -sd:)
  export LD_LIBRARY_PATH DTRUN_HOME=$PWD
  echo "# $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader), commit $(cat "$gpu/commit"): $*"
  ! ldd "$gpu/dtrun" | grep 'not found' || { echo 'FAILED: the machine lacks these libraries'; return 1; }
  for part in "$@"; do "$part"; done
}

case "${1:-} ${2:-}" in
  'pack ') pack ;;
  'run ') set -- run check measure peers ;;&
  'run check' | 'run measure' | 'run peers' | 'run ')
    shift
    [ -x "$gpu/dtrun" ] || { echo "gpu.sh: $gpu/dtrun is not here: tests/bench/gpu.sh pack makes it, where nvcc is" >&2; exit 1; }
    out=${OUT:-tests/bench/results}
    mkdir -p "$out"
    run "$@" 2>&1 | tee "$out/gpu-$(date -u +%Y%m%d-%H%M%S).txt"
    ;;
  *) echo "usage: tests/bench/gpu.sh pack | run [check | measure | peers]" >&2; exit 2 ;;
esac

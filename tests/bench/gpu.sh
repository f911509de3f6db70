#!/usr/bin/env bash
# The CUDA backend on a real GPU, in two steps, since the machine with the GPU may lack our Debian packages and may be lent for
# minutes only:
#
#   tests/bench/gpu.sh pack           where nvcc and the packages are: builds, and writes the archive that it names
#   tests/bench/gpu.sh run [PART]...  where the GPU is, in the unpacked archive (tar xf, or python3 -m tarfile -e): these parts, or
#                                     all, in this order; about so many seconds on an H100:
#     smoke     one test, a text with the bundled pair                                                         (2)
#     exact     all tests of the backend on the device, and policies against plain decoding                   (60)
#     speed     passes of three shapes of random weights, in 4 and 8 bits, at 16k, without overlap and graphs (60; since then more)
#     pair      a synthetic Pythia-2.8B + 70M pair: policies, sampling, memory       (30; before, to make it once, 60)
#     kernels   each kernel of a plain token, as ncu times it                                                 (12)
#     tools     memory and race checker                                                        (racecheck: over 60)
#     peers     transformers, plain and assisted, alternating with dtrun, on that pair        (100 tokens: untried)
#
# A test that fails runs again without overlap (DTRUN_NO_PDL), without graphs (DTRUN_NO_GRAPH), and without both, and one line says
# which mends it. What is missing (python3 with torch, safetensors and transformers; ncu; compute-sanitizer) is said as SKIPPED.
# Environment: ARCHITECTURES (90-real; what to build for), OUT (a folder for what is printed, results of the archive), PYTHON,
# TOKENS (300), PROMPTS (4), PAIRS (a folder for the pair, build/pairs), SECONDS_EACH (6, of a shape's passes), GPU_PROGRAMS
# (the folder of the programs, bin).
#
# What must be read, counted: a plain token of the 2.8B shape reads 5.29 GB of weights and 0.33 MB of cache per position of
# its context; at 4.8 TB/s that is 1.10 ms, 907 tokens/s. A draft level of the 70M shape reads 0.089 GB: 19 microseconds.
set -euo pipefail
cd "$(dirname "$0")/../.."
tests=(test_cuda_{forward,draw,exact,groups,packed,q8,failures,generation,prompt,heads,turns} 'test_golden_logits cuda' 'test_heads cuda' 'test_golden_sampling 500 cuda')
parts=(smoke exact speed pair kernels tools peers)
archive=build/gpu.tar.xz

# ---- where nvcc is ----

pack() {
  local build=build/gpu/build tree=build/gpu/dtrun-gpu programs=(dtrun dtrun_serve bench_limit) test file
  for test in "${tests[@]}"; do programs+=("${test%% *}"); done
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDTRUN_CUDA=ON -DDTRUN_TESTS_ROOT:STRING=. \
    -DDTRUN_CUDA_ARCHITECTURES="${ARCHITECTURES:-90-real}"
  cmake --build "$build" --target "${programs[@]}"
  rm -rf "$tree" && mkdir -p "$tree/bin/lib"
  for test in "${programs[@]}"; do
    file=${test/_serve/-serve} # as the program is called
    strip -o "$tree/bin/$file" "$(find "$build" -name "$file" -type f -perm -u+x | head -n 1)"
  done
  # Everything but the C library, which must be the machine's own.
  ldd "$tree"/bin/dtrun{,-serve} "$tree"/bin/test_cuda_exact | awk '$2 == "=>" && $3 ~ "^/" && $1 !~ "^lib(c|m|dl|pthread|rt)\\.so" { print $3 }' |
    sort -u | xargs -I{} cp -L {} "$tree/bin/lib/"
  git ls-files lua policies scripts models/mini-\* tests/bench tests/data tests/exact tests/golden/heads tests/golden/logits \
    tests/golden/sampling | grep -v '^tests/bench/results' | xargs cp --parents -t "$tree"
  git rev-parse --short HEAD >"$tree/commit"
  XZ_OPT=-9 tar -cJf "$archive" -C build/gpu dtrun-gpu # -9 sees that the programs hold the same kernels
  echo "$archive: $(du -m "$archive" | cut -f 1) MB; unpacked $(du -sm "$tree" | cut -f 1) MB"
}

# ---- where the GPU is ----

has() { "$python" -c "import $1" 2>/dev/null || { echo "SKIPPED: $2 ($python has no ${1//,/, or no })"; return 1; }; }
finds() { command -v "$1" >/dev/null || { echo "SKIPPED: $1 (it is not here)"; return 1; }; }

# try SECONDS COMMAND...: prints the seconds it took; when it fails, its last lines, and what mends it.
try() {
  local limit=$1 log start=$SECONDS ways=('DTRUN_NO_PDL=1' 'DTRUN_NO_GRAPH=1' 'DTRUN_NO_PDL=1 DTRUN_NO_GRAPH=1') way mended='' status
  shift
  log=$(mktemp)
  if timeout "$limit" "$@" >"$log" 2>&1; then
    echo "passed: ${*##*/} ($((SECONDS - start)) s)"
  elif status=$? && [ "$status" = 77 ]; then
    echo "SKIPPED: ${*##*/} ($(tail -n 1 "$log"))"
  else
    tail -n 12 "$log" | sed 's/^/    /'
    for way in "${ways[@]}"; do
      # shellcheck disable=SC2086
      env $way timeout "$limit" "$@" >/dev/null 2>&1 && mended="$mended, with $way"
    done
    echo "FAILED: ${*##*/} (status $status; 124: more than $limit s): $([ "$mended" ] && echo "passes${mended#,}" || echo "fails in every way")"
  fi
  rm -f "$log"
}

told() { echo "--- $*"; "$@" || echo "FAILED: $*"; }

smoke() {
  try 60 "$bin/test_cuda_forward"
  told "$bin/dtrun" rate --backend cuda -p 'The old man went down to the' -n 40
}

exact() {
  for test in "${tests[@]}"; do
    # shellcheck disable=SC2086
    try 120 "$bin/"$test
  done
  for policy in linear fixed_tree dynatree rate eagle2 opt_tree; do
    try 60 "$bin/dtrun" "$policy" --backend cuda --compare ar -p 'The old man went down to the' -n 500 --ignore-eos
  done
  for policy in linear dynatree; do
    try 60 "$bin/dtrun" "$policy" --backend cuda --compare ar -p 'The old man' -n 300 --ignore-eos --temp 1 --top-p 0.9 --seed 3
  done
  try 60 "$bin/dtrun" eagle2 --backend cuda -md models/mini-head --compare ar -p 'The old man went down to the' -n 300 --ignore-eos
  try 120 "$bin/dtrun" run tests/exact/matrix.lua --backend cuda --prompts 2 -n 40
}

speed() {
  told "$bin/bench_limit" -b cuda -p -s "$seconds" pythia-2.8b pythia-70m llama-3.1-8b
  for type in Q4_0 Q8_0; do told "$bin/bench_limit" -b cuda -p -s 1 -q "$type" pythia-2.8b; done
  told "$bin/bench_limit" -b cuda -p -s 1 -q Q4_K llama-3.1-8b
  told "$bin/bench_limit" -b cuda -k -s 1 -c 16384 llama-3.1-8b
  for way in DTRUN_NO_PDL=1 DTRUN_NO_GRAPH=1; do told env "$way" "$bin/bench_limit" -b cuda -p -s 1 pythia-2.8b pythia-70m; done
}

make_pair() {
  [ -d "$target" ] && return
  has torch,safetensors 'the synthetic pair and all that is measured on it' || return
  "$python" scripts/training/make_synthetic_pair.py --target pythia-2.8b --draft pythia-70m --agreement 0.8 --second 0.1 --seed 1 "$pairs" ||
    { echo 'FAILED: make_synthetic_pair.py'; return 1; }
}

pair() {
  make_pair || return 0
  local options=(--backend cuda -m "$target" -md "$draft" -n "$tokens")
  told "$bin/dtrun" run tests/bench/policies.lua --backend cuda --prompts "$prompts" -n "$tokens"
  told "$bin/dtrun" run tests/bench/policies.lua "${options[@]}" --prompts "$prompts" --policies 'linear fixed_tree dynatree rate eagle2'
  told "$bin/dtrun" run tests/bench/policies.lua "${options[@]}" --prompts 2 --temp 1 --policies 'linear dynatree rate'
}

# The first 1,600 kernels warm up and read the prompt; then come passes of one row.
kernels() {
  finds ncu && make_pair || return 0
  DTRUN_NO_GRAPH=1 DTRUN_NO_PDL=1 told ncu --clock-control none --cache-control none --launch-skip 1600 --launch-count 280 --csv \
    --metrics gpu__time_duration.sum,dram__bytes_read.sum,launch__grid_size --log-file "$out/kernels.csv" \
    "$bin/dtrun" ar --backend cuda -m "$target" -md none -p 'The old man' -n 16 --ignore-eos >/dev/null
  "$python" - "$out/kernels.csv" <<'PYTHON'
import collections, csv, sys
rows = list(csv.DictReader(line for line in open(sys.argv[1]) if line.startswith('"')))
took, read, launches = (collections.defaultdict(list) for _ in range(3))
for row in rows:
    key = row["Kernel Name"].split("(")[0][:60], row["Grid Size"]
    value = float(row["Metric Value"].replace(",", ""))
    value *= {"us": 1, "ns": 1e-3, "ms": 1e3, "byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1, "Gbyte": 1e3}.get(row["Metric Unit"], 1)
    {"gpu__time_duration.sum": took, "dram__bytes_read.sum": read}.get(row["Metric Name"], launches)[key].append(value)
print("kernel, grid, launches, microseconds (median), MB from memory (median), TB/s")
for key, times in sorted(took.items(), key=lambda kv: -sum(kv[1])):
    us, mb = sorted(times)[len(times) // 2], sorted(read[key] or [0])[len(read[key]) // 2]
    print(f"{key[0]:60} {key[1]:18} {len(times):4} {us:8.2f} {mb:9.2f} {mb / us:6.2f}")
PYTHON
}

tools() {
  finds compute-sanitizer || return 0
  for tool in memcheck racecheck synccheck; do # racecheck was not done with all its tests in a minute
    DTRUN_GUARD=1 try 100 compute-sanitizer --tool "$tool" --error-exitcode 9 "$bin/test_cuda_forward" logits_are_those_of_the_cpu
  done
  DTRUN_GUARD=1 try 100 compute-sanitizer --tool memcheck --error-exitcode 9 "$bin/test_cuda_prompt"
}

peers() {
  has torch,transformers 'transformers, plain and assisted' || return 0
  "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' ||
    { echo 'SKIPPED: transformers, plain and assisted (its torch sees no GPU)'; return 0; }
  make_pair || return 0
  told "$python" tests/bench/compare_peers.py --backend cuda --dtrun "$bin/dtrun" --peers transformers --target "$target" --draft "$draft" \
    --prompts 1 --tokens 100 --repeats 1
}

run() {
  # cuBLASLt, which long prompts ask for: the toolkit's, or the one of Python's packages.
  LD_LIBRARY_PATH=$bin/lib:/usr/local/cuda/lib64:$("$python" -c 'import glob, importlib.util as u
spec = u.find_spec("nvidia")
print(*(lib for folder in (spec.submodule_search_locations if spec else ()) for lib in glob.glob(folder + "/*/lib")), sep=":")' || true)
  export LD_LIBRARY_PATH DTRUN_HOME=$PWD
  echo "# $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || echo 'no nvidia-smi'), commit $(cat commit || echo '?'): $*"
  ! ldd "$bin/dtrun" | grep 'not found' || { echo 'FAILED: the machine lacks these libraries'; return 1; }
  for part in "$@"; do
    echo "=== $part, after $SECONDS s"
    "$part"
  done
  echo "=== done after $SECONDS s"
}

usage() { echo "usage: tests/bench/gpu.sh pack | run [${parts[*]}]" >&2; exit 2; }
[ "${1:-}" = pack ] && [ $# = 1 ] && { pack; exit; }
[ "${1:-}" = run ] || usage
shift
for part in "$@"; do [[ " ${parts[*]} " = *" $part "* ]] || usage; done
[ $# -gt 0 ] || set -- "${parts[@]}"
bin=${GPU_PROGRAMS:-$PWD/bin} out=${OUT:-$PWD/results} tokens=${TOKENS:-300} prompts=${PROMPTS:-4} seconds=${SECONDS_EACH:-6}
python=${PYTHON:-python3} pairs=${PAIRS:-build/pairs} target=$pairs/synthetic-2.8b draft=$pairs/synthetic-70m
[ -x "$bin/dtrun" ] || { echo "gpu.sh: $bin/dtrun is not here: tests/bench/gpu.sh pack makes an archive of it, where nvcc is" >&2; exit 1; }
mkdir -p "$out"
run "$@" 2>&1 | tee "$out/gpu-$(date -u +%Y%m%d-%H%M%S).txt"

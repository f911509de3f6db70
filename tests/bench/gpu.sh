#!/usr/bin/env bash
# Tests of the CUDA backend and measurements on a real GPU, for a machine that may lack our Debian packages and may be
# available for fifteen minutes only:
#
#   gpu.sh pack [ARCHITECTURE]...  on a machine with nvcc: builds for these architectures (90-real: H100, H200; 80-real:
#                                  A100; 120-real: RTX 50; ...) and writes an archive of less than 60 MB
#   gpu.sh run [PART]...           on the machine with the GPU, in the unpacked archive (tar xf, or python3 -m tarfile -e)
#   gpu.sh run rest                the steps that have no result yet, after a run that was stopped
#   gpu.sh rehearse BUILD          all parts on the emulated device of a build, with tiny sizes
#
# The parts, in this order (estimated seconds on an H100):
#     exact     all tests of the backend on the device, policies compared with plain decoding                  (90)
#     rows      passes of 1, 8 and 16 rows at 16,383; 1 to 257 rows at 512; F16, Q4_K, Q4_K in groups of 64  (110)
#     wgmma     whether wgmma has mma.sync's bits                                                              (5)
#     prompts   prompts of 2k, 16k and 64k tokens, by cuBLASLt and by our own kernels                        (130)
#     memory    a session of the largest context, then passes of new shapes until memory is full               (30)
#     loading   how long a model takes to load, by parts                                                     (100)
#     policies  policies with the bundled pair and, if torch is installed, a synthetic pair of 2.8B and 70M    (90)
#     llama     llama-bench and dtrun, alternating, if llama-bench is installed                                (20)
#     sanitize  memory checker; race checker on test_cuda_exact's rows, last, since it is slow               (140)
# Only if they are named: kernels (each kernel of a plain token, timed by ncu), peers (transformers).
#
# Every step has a time limit, and the whole run has one of 800 seconds. A step that fails or is stopped does not affect
# the others. What a step prints is written to OUT/STEP.txt at once, line by line; when it ends, OUT/gpu.txt gets its
# result. A run that is killed therefore loses nothing that was written. A test that fails is run again, within its
# limit, without overlap (DTRUN_NO_PDL), without graphs (DTRUN_NO_GRAPH), and without both; its line says with which of
# these it passes. Steps for which something is missing are reported as SKIPPED.
#
# Environment: OUT (results), BUDGET (800, seconds), FINISHED (a file that lists the steps with results), PYTHON, PAIRS
# (build/pairs: a folder for the synthetic pair), GPU_PROGRAMS (bin), LLAMA_BENCH (its path), GGUF (pack: a real model
# that is added if it fits; small golden ones are always added).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
parts=(exact rows wgmma prompts memory loading policies llama sanitize)
more=(kernels peers)
tests=(test_cuda_{forward,parts,sample,adjust,exact,groups,packed,q8,failures,generation,prompt,heads,turns})
tests+=('test_golden_logits cuda' 'test_heads cuda' 'test_golden_sampling 500 cuda')
archive=build/gpu.tar.xz most_mb=60 model=model.gguf
prompt='The old man went down to the'

# ---- where nvcc is ----

pack() (
  set -e
  local build=build/gpu/build tree=build/gpu/dtrun-gpu name file size
  local programs=(dtrun dtrun_serve bench_limit bench_gpu wgmma)
  [ $# -gt 0 ] || set -- 90-real
  for name in "${tests[@]}"; do programs+=("${name%% *}"); done
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDTRUN_CUDA=ON -DDTRUN_TESTS_ROOT:STRING=. \
    "-DDTRUN_CUDA_ARCHITECTURES=$(IFS=';' && echo "$*")"
  cmake --build "$build" --target "${programs[@]}"
  rm -rf "$tree" && mkdir -p "$tree/bin/lib"
  for name in "${programs[@]}"; do
    file=${name/_serve/-serve} # the program's name
    strip -o "$tree/bin/$file" "$(find "$build" -name "$file" -type f -perm -u+x | head -n 1)"
  done
  # All libraries except for the C library, which must be the machine's own.
  ldd "$tree"/bin/dtrun{,-serve} "$tree"/bin/test_cuda_exact |
    awk '$2 == "=>" && $3 ~ "^/" && $1 !~ "^lib(c|m|dl|pthread|rt)\\.so" { print $3 }' | sort -u |
    xargs -I{} cp -L {} "$tree/bin/lib/"
  git ls-files lua policies scripts models/mini-\* tests/bench tests/data tests/exact \
    tests/golden/{heads,logits,sampling} | grep -v '^tests/bench/results' | xargs cp --parents -t "$tree"
  git rev-parse --short HEAD >"$tree/commit"
  [ -z "${GGUF:-}" ] || cp -L "$GGUF" "$tree/model.gguf"
  XZ_OPT=-9 tar -cJf "$archive" -C build/gpu dtrun-gpu # -9 finds that the programs contain the same kernels
  size=$(du -m "$archive" | cut -f 1)
  if [ "$size" -gt $most_mb ] && [ -e "$tree/model.gguf" ]; then
    echo "gpu.sh: with $GGUF the archive would have $size MB, more than $most_mb MB, so $GGUF is left out" >&2
    rm "$tree/model.gguf"
    XZ_OPT=-9 tar -cJf "$archive" -C build/gpu dtrun-gpu
    size=$(du -m "$archive" | cut -f 1)
  fi
  echo "$archive: $size MB; unpacked $(du -sm "$tree" | cut -f 1) MB; for $*"
  [ "$size" -le $most_mb ] && return
  echo "gpu.sh: the archive has $size MB, more than $most_mb MB; pack fewer architectures" >&2
  exit 1
)

# ---- steps ----

say() { printf '%s\n' "$*" | tee -a "$out/gpu.txt"; }
file_of() { echo "$out/${1//[^A-Za-z0-9_.-]/-}.txt"; }
has() { "$python" -c "import $1" 2>/dev/null || { say "SKIPPED: $2 ($python has no ${1//,/, or no })"; return 1; }; }
finds() { command -v "$1" >/dev/null || { say "SKIPPED: $2 ($1 is not installed)"; return 1; }; }

# within SECONDS COMMAND...: returns its exit status; 124 or 137: it was stopped. Its output comes line by line.
within() { timeout -k 5 "$1" stdbuf -oL -eL "${@:2}"; }

# passes_with SECONDS COMMAND...: says in which of three ways a test that failed passes.
passes_with() {
  local end=$((SECONDS + $1)) way ways=('DTRUN_NO_PDL=1' 'DTRUN_NO_GRAPH=1' 'DTRUN_NO_PDL=1 DTRUN_NO_GRAPH=1') found=''
  shift
  for way in "${ways[@]}"; do
    [ "$end" -gt $SECONDS ] || break
    # shellcheck disable=SC2086
    within $((end - SECONDS)) env $way "$@" >/dev/null 2>&1 && found="$found, with $way"
  done
  [ "$found" ] && echo "passes${found#,}" || echo 'fails in every way'
}

# step test|ask NAME SECONDS COMMAND...: runs a step and reports how it went; for `ask`, also what it printed.
step() {
  local kind=$1 name=$2 limit=$(($3 * slack)) file start=$SECONDS status=0 left=$((budget - SECONDS)) why=''
  shift 3
  file=$(file_of "$name")
  [ "$rest" ] && grep -qxF "$name" "$finished" && return
  if [ "$left" -lt 3 ]; then
    say "LEFT: $name (out of time; gpu.sh run rest continues)"
    return
  fi
  if [[ $1 = "$bin"/* && ! -x $1 ]]; then
    say "SKIPPED: $name (${1##*/} does not exist)"
    return
  fi
  [ "$limit" -le "$left" ] || limit=$left
  echo "# $*" >"$file"
  within "$limit" "$@" >>"$file" 2>&1 || status=$?
  case $status in
    0) why="passed: $name" ;;
    77) why="SKIPPED: $name: $(tail -n 1 "$file")" ;;
    124 | 137) why="SLOW: $name: stopped after $limit s" ;;
    *)
      why="FAILED: $name: status $status"
      [ "$kind" = ask ] || why+="; $(passes_with $((limit + start - SECONDS)) "$@")"
      ;;
  esac
  if [ "$kind" = ask ]; then
    say "$(sed 1d "$file")"
  elif [ "$status" != 0 ] && [ "$status" != 77 ]; then
    say "$(tail -n 12 "$file" | sed 's/^/    /')"
  fi
  say "$why ($((SECONDS - start)) s)"
  printf '%s\n' "$name" >>"$finished"
}

# ---- the parts ----

exact() {
  local test policy compared=(--backend cuda --compare ar -p "$prompt" --ignore-eos "${length[@]}")
  step ask smoke 30 "$bin/dtrun" rate "${pair[@]}" --backend cuda -p "$prompt" -n "$few"
  for test in "${tests[@]}"; do
    # shellcheck disable=SC2086
    step test "${test%% *}" 60 "$bin/"$test
  done
  for policy in $policies; do step test "$policy" 40 "$bin/dtrun" "$policy" "${pair[@]}" "${compared[@]}"; done
  for policy in linear dynatree; do
    step test "$policy sampling" 40 "$bin/dtrun" "$policy" "${pair[@]}" "${compared[@]}" --temp 1 --top-p 0.9 --seed 3
  done
  step test 'eagle2 head' 40 "$bin/dtrun" eagle2 -md models/mini-head "${compared[@]}"
  [ ! -e "$model" ] || step test gguf 40 "$bin/dtrun" rate -m "$model" -md none "${compared[@]}"
  [ ${#matrix[@]} = 0 ] ||
    step test matrix 60 "$bin/dtrun" run tests/exact/matrix.lua --backend cuda "${matrix[@]}"
}

rows() {
  local type run=("$bin/bench_limit" -b cuda -r -s "$each" -c "$long")
  for type in F16 Q4_K; do step ask "rows $type" 80 "${run[@]}" -q "$type" "$shape"; done
  step ask 'rows Q4_K in groups' 80 env DTRUN_ROWS=64 "${run[@]}" -q Q4_K "$shape"
}

wgmma() { step ask wgmma 20 "$bin/wgmma" "$blocks"; }

prompts() {
  local type
  for type in F16 Q4_K; do
    # shellcheck disable=SC2086
    step ask "prompts $type" 100 "$bin/bench_gpu" prompts "$shape" "$type" $lengths
  done
}

memory() { step ask memory 60 env "${full[@]}" "$bin/bench_gpu" memory "$shape" F16 "$most"; }

loading() {
  local type
  for type in F16 Q4_K IQ4_XS; do step ask "loading $type" 60 "$bin/bench_gpu" loading "$shape" "$type"; done
}

make_pair() {
  [ -d "$target" ] && return
  has torch,safetensors 'the synthetic pair and all measurements with it' || return
  step test 'the synthetic pair' 90 "$python" scripts/training/make_synthetic_pair.py --target pythia-2.8b \
    --draft pythia-70m --agreement 0.8 --second 0.1 --seed 1 "$pairs"
  [ -d "$target" ]
}

policies() {
  local run=("$bin/dtrun" run tests/bench/policies.lua --backend cuda "${short[@]}")
  step ask 'policies bundled' 60 "${run[@]}" "${pair[@]}"
  make_pair || return 0
  step ask 'policies synthetic' 90 "${run[@]}" -m "$target" -md "$draft" \
    --policies 'linear fixed_tree dynatree rate eagle2'
}

llama() {
  local turn bench=${LLAMA_BENCH:-llama-bench}
  finds "$bench" 'llama-bench in turns with dtrun' || return 0
  [ -e "$model" ] || { say 'SKIPPED: llama-bench in turns with dtrun (model.gguf does not exist)'; return; }
  for turn in 1 2 3; do
    step ask "llama-bench, turn $turn" 30 "$bench" -m "$model" -ngl 99 -p 0 -n 128 -r 1
    step ask "dtrun, turn $turn" 30 "$bin/dtrun" ar --backend cuda -m "$model" -md none -p "$prompt" -n "$few" \
      --ignore-eos
  done
}

sanitize() {
  finds compute-sanitizer 'memory and race checker' || return 0
  local checker=(env DTRUN_GUARD=1 compute-sanitizer --error-exitcode 9 --tool)
  step test memcheck 60 "${checker[@]}" memcheck "$bin/test_cuda_forward" logits_are_those_of_the_cpu
  step test racecheck 120 "${checker[@]}" racecheck "$bin/test_cuda_exact" 'rows_that*'
}

# The first 1,600 kernels warm up and read the prompt. Passes of one row follow.
kernels() {
  finds ncu 'the time of each kernel' && make_pair || return 0
  step test ncu 60 env DTRUN_NO_GRAPH=1 DTRUN_NO_PDL=1 ncu --clock-control none --cache-control none \
    --launch-skip 1600 --launch-count 280 --csv --log-file "$out/kernels.csv" \
    --metrics gpu__time_duration.sum,dram__bytes_read.sum,launch__grid_size \
    "$bin/dtrun" ar --backend cuda -m "$target" -md none -p 'The old man' -n 16 --ignore-eos
  step ask 'kernels' 20 "$python" tests/bench/gpu_kernels.py "$out/kernels.csv"
}

peers() {
  has torch,transformers 'transformers, plain and assisted' && make_pair || return 0
  step ask 'transformers' 120 "$python" tests/bench/compare_peers.py --backend cuda --dtrun "$bin/dtrun" \
    --peers transformers --target "$target" --draft "$draft" --prompts 1 --tokens 100 --repeats 1
}

# ---- a run ----

real_sizes() {
  shape=llama-3.1-8b long=16384 lengths='2048 16384 65536' each=6 blocks=2048 few=128 most=288 full=() pair=()
  policies='linear fixed_tree dynatree rate eagle2 opt_tree' length=(-n 300) matrix=(--prompts 2 -n 40)
  short=(--prompts 4 -n 300)
}

# What the emulated device can do in three minutes: few tests, since all of them run there as unit.test_cuda_*, and no
# matrix of policies, since that is gpu.exact.matrix.
tiny_sizes() {
  shape=tiny long=514 lengths=520 each=0 blocks=1 few=6 most=9 full=(CUDA_EMU_FAULTS='1 3.3e8 -1')
  pair=(-m models/mini-draft -md models/mini-draft)
  policies=linear length=(-n 6 --rounds 1) matrix=() short=(--prompts 1 -n 2 --policies linear --costs learn)
  tests=('test_cuda_forward wide_rows*' 'test_cuda_sample a_row*' 'test_cuda_exact a_nan*')
  tests+=('test_cuda_prompt a_prompt_begins*' 'test_heads cuda a_layer*')
}

run() {
  local part
  mkdir -p "$out"
  # cuBLASLt, which long prompts use: the toolkit's, or the one of Python's packages.
  LD_LIBRARY_PATH=$bin/lib:/usr/local/cuda/lib64:$("$python" -c 'import glob, importlib.util as u
spec = u.find_spec("nvidia")
folders = spec.submodule_search_locations if spec else ()
print(*(lib for folder in folders for lib in glob.glob(folder + "/*/lib")), sep=":")' 2>/dev/null || true)
  export LD_LIBRARY_PATH DTRUN_HOME=$PWD
  local device about=name,driver_version,memory.total
  device=$(nvidia-smi --query-gpu=$about --format=csv,noheader 2>/dev/null || echo 'no nvidia-smi')
  say "# $device, commit $(cat commit 2>/dev/null || echo '?'): $*"
  ! ldd "$bin/dtrun" | grep 'not found' || { say 'FAILED: these libraries are missing'; return 1; }
  for part in "$@"; do
    say "=== $part, after $SECONDS s"
    "$part"
  done
  say "=== done after $SECONDS s"
}

# rehearse BUILD: makes links to the emulated programs, with the names that the archive has.
rehearse() {
  local name file
  bin=$(mktemp -d)
  trap 'rm -rf "$bin"' EXIT
  for name in dtrun bench_limit bench_gpu wgmma test_cuda_{forward,sample,exact,prompt} test_golden_logits test_heads; do
    file=$(find "$1/tests" -name "${name}_emu" -type f -perm -u+x | head -n 1)
    [ "$file" ] || file=$(find "$1/tests" -name "$name" -type f -perm -u+x | head -n 1)
    [ -z "$file" ] || ln -s "$(realpath "$file")" "$bin/$name"
  done
  finished=$bin/finished slack=20 budget=$((20 * budget)) # slack: on a busy machine a slow step is no failure
  : >"$finished"
  tiny_sizes
  run "${parts[@]}"
}

usage() {
  echo "usage: gpu.sh pack [ARCHITECTURE]... | run [rest | ${parts[*]} ${more[*]}] | rehearse BUILD" >&2
  exit 2
}
out=${OUT:-$PWD/results} finished=${FINISHED:-$PWD/finished} budget=${BUDGET:-800} rest='' slack=1
python=${PYTHON:-python3} pairs=${PAIRS:-build/pairs}
target=$pairs/synthetic-2.8b draft=$pairs/synthetic-70m
case ${1:-} in
  pack)
    shift
    pack "$@"
    ;;
  run)
    shift
    for part in "$@"; do [[ " ${parts[*]} ${more[*]} rest " = *" $part "* ]] || usage; done
    bin=${GPU_PROGRAMS:-$PWD/bin}
    if ! [ -x "$bin/dtrun" ]; then
      echo "gpu.sh: $bin/dtrun does not exist; make an archive with gpu.sh pack on a machine with nvcc" >&2
      exit 1
    fi
    [[ " $* " != *' rest '* ]] || rest=yes
    [ -z "$rest" ] || set -- "${parts[@]}"
    [ $# -gt 0 ] || set -- "${parts[@]}"
    touch "$finished"
    real_sizes
    run "$@"
    ;;
  rehearse)
    [ $# = 2 ] && [ -d "$2" ] || usage
    out=${OUT:-$2/gpu-rehearsal}
    rehearse "$2"
    ;;
  *) usage ;;
esac

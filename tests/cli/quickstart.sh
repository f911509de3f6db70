#!/usr/bin/env bash
# scripts/quickstart: what it prints about its steps and their results, with stand-ins for cmake, dtrun and the model.
. "$(dirname "$0")/helpers.sh"

# Makes a clone's tree in which everything exists already; $played is what dtrun prints on standard error.
stage() {
  mkdir -p tree/scripts tree/bin tree/build
  cp "$source_dir/scripts/quickstart" tree/scripts/
  printf '#!/bin/sh\n' | tee tree/scripts/packages tree/scripts/get-model >/dev/null
  cat >tree/bin/cmake <<'SH'
#!/bin/sh
echo "$*" >>cmake.log
case $1 in --build) for i in 1 2 3 4 5 6 7 8 9 10; do echo "[$i/10] Building"; done ;; esac
SH
  cat >tree/build/dtrun <<'SH'
#!/bin/sh
echo "$*" >>dtrun.log
echo "the text"
cat told >&2
SH
  chmod +x tree/scripts/* tree/bin/* tree/build/dtrun
}
starts() { run env PATH="$PWD/tree/bin:$PATH" DTRUN_GPU_DEVICE="$PWD/${gpu:-nowhere}" tree/scripts/quickstart "$@"; }
said() { grep -qE "$1" stderr || fail "not said: $1"; }

it_shows_the_speedup_of_the_default_policy_and_the_same_text() {
  stage
  echo 'dtrun: rate 131.5 tokens/s, ar 98.1 tokens/s, prompt included: 1.34x, same 120 tokens, median of 3 rounds' >tree/told
  starts
  [ "$status" -eq 0 ] || fail "exit status $status"
  [ "$(grep -c 'the text' stdout)" -eq 1 ] || fail 'not a text of the real model'
  [ "$(wc -l <tree/dtrun.log)" -eq 1 ] || fail 'not one run'
  grep -vE '^-m smollm2 --chat .* -n 300 --compare ar$' tree/dtrun.log && fail 'a policy is named, or the real model is not shown first'
  grep -q -- '--target product' tree/cmake.log || fail 'not what an installation needs'
  for part in 20 40 60 80 100; do said "^  $part %$"; done
  said '^  plain decoding +98.1 tokens/s$'
  said '^  with its head +131.5 tokens/s$'
  said '^  The same text, 1.34x as fast.$'
  [ "$(grep -cE '^  [0-9]+ s$' stderr)" -eq 4 ] || fail 'not the time of packages, build, model and text'
}
it_shows_no_speedup_where_the_speeds_show_none() {
  stage
  echo 'dtrun: rate 250.7 tokens/s, ar 275.8 tokens/s, prompt included: 1.07x, same 219 tokens, median of 3 rounds' >tree/told
  starts
  said 'and no speedup: '
  ! grep -q '1.07x' stderr || fail 'a ratio that the speeds contradict'
}
it_shows_the_toy_models_where_no_real_one_is_wanted() {
  stage
  echo 'dtrun: rate 131.5 tokens/s, ar 98.1 tokens/s, prompt included: 1.34x, same 100 tokens, median of 3 rounds' >tree/told
  starts --no-model
  [ "$(wc -l <tree/dtrun.log)" -eq 1 ] || fail 'not one run'
  grep -qE '^-p .* --compare ar$' tree/dtrun.log || fail 'not the toy models'
  said '^  with its draft +131.5 tokens/s$'
}
it_says_why_there_is_no_speedup_and_shows_no_loss() {
  stage
  for told in 'dtrun: slower than plain decoding (0.93x, prompt included): a pass over 3 rows takes 2.1 times as long as one over a single row; try: dtrun ar' \
    'dtrun: the machine was busy in 5 of the rounds (steal): they count too, so the ratio is rough' ''; do
    { echo 'dtrun: rate 92.1 tokens/s, ar 98.1 tokens/s, prompt included: 0.93x, same 120 tokens, median of 3 rounds'; echo "$told"; } >tree/told
    starts --no-model
    [ "$status" -eq 0 ] || fail "exit status $status"
    case $told in
      *slower*) said 'and no speedup: a pass over 3 rows takes 2.1 times as long as one over a single row; a larger model would be faster' ;;
      *busy*) said 'and no speedup: the machine was busy; a larger model would be faster' ;;
      *) said 'and no speedup: drafting costs as much as it saves here; a larger model would be faster' ;;
    esac
    grep -qE '0\.93x|92\.1' stderr && fail 'a loss is shown'
  done
  sed -i 's/0.93x, same/1.01x, same/' tree/told
  starts --no-model
  said 'and no speedup'
  sed -i 's/1.01x, same/1.02x, same/; s/rate 92.1/rate 100.1/' tree/told
  starts --no-model
  said '^  The same text, 1.02x as fast.$'
}
it_does_without_the_real_model() {
  stage
  echo 'dtrun: rate 131.5 tokens/s, ar 98.1 tokens/s, prompt included: 1.34x, same 120 tokens, median of 3 rounds' >tree/told
  printf '#!/bin/sh\necho "no network" >&2\nexit 1\n' >tree/scripts/get-model
  starts
  [ "$status" -eq 0 ] || fail "exit status $status"
  [ "$(wc -l <tree/dtrun.log)" -eq 1 ] || fail 'not one run'
  said 'no network'
  said 'build/dtrun pull smollm2, then build/dtrun chat -m smollm2'
  starts --no-model
  grep -q 'no network' stderr && fail 'it was tried nevertheless'
  starts nonsense
  [ "$status" -eq 2 ] || fail "exit status $status, expected 2"
}
it_shows_what_failed() {
  stage
  echo 'dtrun: no such folder' >tree/told
  echo 'exit 2' >>tree/build/dtrun
  starts --no-model
  [ "$status" -eq 1 ] || fail "exit status $status, expected 1"
  said '^dtrun: no such folder$'
  printf '#!/bin/sh\n[ $1 != --build ] || { echo "[1/2] Building"; echo "no gcc"; exit 1; }\n' >tree/bin/cmake
  starts --no-model
  [ "$status" -eq 1 ] || fail "exit status $status, expected 1"
  said 'no gcc'
}

# Makes a clone on a machine with a GPU and an nvcc of this release ("": no nvcc).
stage_gpu() {
  stage
  echo 'dtrun: rate 131.5 tokens/s, ar 98.1 tokens/s, prompt included: 1.34x, same 120 tokens, median of 3 rounds' >tree/told
  gpu=nvidia0
  : >nvidia0
  printf '#!/bin/sh\n[ "%s" ] || exit 127\necho "Cuda compilation tools, release %s, V%s.1"\n' "$1" "$1" "$1" >tree/bin/nvcc
  chmod +x tree/bin/nvcc
}
it_builds_for_the_GPU_that_is_there() {
  stage_gpu 12.4
  starts --no-model
  [ "$status" -eq 0 ] || fail "exit status $status"
  [ "$(grep -c -- --preset tree/cmake.log)" -eq 1 ] || fail 'configured more than once'
  grep -qE -- "--preset release -DDTRUN_CUDA=ON -DDTRUN_CUDA_ARCHITECTURES=native -DCMAKE_CUDA_COMPILER=$PWD/tree/bin/nvcc$" tree/cmake.log || fail "$(<tree/cmake.log)"
  said '^building for the CPU and this GPU \(some minutes\)'
  stage_gpu 13.0
  starts --no-model
  grep -q -- -DDTRUN_CUDA=ON tree/cmake.log || fail 'a later CUDA is not taken'
}
it_says_what_a_GPU_needs_and_builds_for_the_CPU() {
  for release in 11.8 12.3 ''; do
    stage_gpu "$release"
    starts --no-model
    [ "$status" -eq 0 ] || fail "exit status $status"
    grep -q DTRUN_CUDA tree/cmake.log && fail "with nvcc $release: $(<tree/cmake.log)"
    said "^There is a GPU, but (nvcc $release is too old|nvcc is not installed): building for the CPU only. For the GPU, install NVIDIA's package cuda-toolkit"
    [ "$(grep -c GPU stderr)" -eq 1 ] || fail 'more than a line'
  done
  gpu=nowhere
  starts --no-model
  ! grep -q GPU stderr || fail 'a GPU where there is none'
}
it_builds_for_the_CPU_where_the_driver_names_no_GPU() {
  stage_gpu 13.0
  cat >tree/bin/cmake <<'SH'
#!/bin/sh
echo "$*" >>cmake.log
case $* in *DTRUN_CUDA=ON*) printf 'CMake Error in CMakeLists.txt:\n  CUDA_ARCHITECTURES is set to "native", but no GPU was detected.\n'; exit 1 ;; esac
SH
  starts --no-model
  [ "$status" -eq 0 ] || fail "exit status $status"
  said '^The CUDA backend cannot be configured .CUDA_ARCHITECTURES is set to "native", but no GPU was detected..: building for the CPU only'
  [ "$(grep -- --preset tree/cmake.log | tail -n 1)" = '--preset release -DDTRUN_CUDA=OFF' ] || fail "$(<tree/cmake.log)"
  grep -q 'no GPU was detected' tree/build/quickstart-cuda.log || fail 'the messages are lost'
}

run_tests

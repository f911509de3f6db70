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
# Runs the doctor on a model, with nothing of this machine's caches.
asks_about() {
  run env HF_HUB_CACHE="$PWD/none" XDG_CACHE_HOME="$PWD/cache" "$dtrun" doctor -m "$1"
  [ "$status" -eq 0 ] && [ ! -s stderr ] || fail "exit status $status"
}
it_lists_the_drafts_that_are_here() {
  mkdir here
  cp -r "$models/mini-target" here/big
  cp -r "$models/mini-draft" here/small
  cp -r "$models/mini-draft" here/odd
  echo ' ' >>here/odd/tokenizer.json # another tokenizer
  cp "$source_dir/tests/golden/logits/gguf_llama/model.gguf" here/other.gguf
  asks_about here/big
  says 'draft here: +here/small: model, 2\.9 MB; a pass costs 0\.[0-9]+ of the target.s \(estimated\); no published acceptance; chains of 3 pay above [0-9.]+ tokens per pass$'
  says 'draft here: +.*/models/mini-head: head, 2\.5 MB; a pass costs '
  grep -q '^draft here: .*/\(odd\|other\)' stdout && fail 'a draft of another tokenizer'
  [ "$(grep -c '^draft here: .*mini-head' stdout)" -eq 1 ] || fail 'a draft is listed twice'
  grep -q '^mistake' stdout && fail 'models/drafts.txt has a mistake'
  says "try first: +dtrun -m here/big -md .*/models/mini-head --chat -p '.*' --compare ar # "
}
it_takes_times_that_dtrun_has_kept() {
  export XDG_CACHE_HOME=$PWD/cache
  for policy in 'linear --set K=2' ar; do # shellcheck disable=SC2086
    succeeds $policy -m mini-target -md mini-draft -p 'It was a dark night' -n 150 -q
  done
  asks_about mini-target
  says 'draft here: +.*/mini-draft: model, 2\.9 MB; a pass costs 0\.[0-9]+ of the target.s \(measured\); 3\.10 tokens per pass in chains of 4 \(.*\): about [0-9.]+x with chains of [1-8]$'
}
it_lists_published_drafts() {
  mkdir -p home/models
  cp "$source_dir/tests/golden/logits/gguf_llama/model.gguf" Toy-1B-Q4_K_M.gguf
  cat >home/models/drafts.txt <<'END'
# target draft kind file weights licence guesses tokens source
Toy-1B o/pickled eagle3 bin 0.0001 mit 3 3.50 a test
Toy-1B o/head eagle3 safetensors 0.0001 mit 3 3.00 a test
Toy-1B o/nonsense eagle3 safetensors 0.0001 mit 3 4.50 a test
Toy-1B o/unknown medusa - - - - - a test
Toy-1B-Instruct o/another eagle3 - - - - - a test
END
  export DTRUN_HOME=$PWD/home
  asks_about Toy-1B-Q4_K_M.gguf
  says 'draft here: +none of the models here drafts for Toy-1B-Q4_K_M\.gguf$'
  says "mistake: +$PWD/home/models/drafts\.txt, line 4: tokens '4\.5.*expected a number from 1 to one more than the guesses, or -$"
  says 'published: +o/head: eagle3, mit; a pass costs [0-9.]+ of the target.s \(estimated\); 3\.00 tokens per pass in chains of 3 \(a test\): about [0-9.]+x with chains of [1-8]$'
  says 'published: +o/pickled: eagle3, mit, published as \.bin, which scripts/training/convert_head\.py converts; '
  says 'published: +o/unknown: medusa, see its page for the licence; the cost of its pass is not known; no published acceptance$'
  grep -q 'o/another\|o/nonsense' stdout && fail 'a draft that is not this model.s'
  says 'try first: +dtrun pull o/head && dtrun chat -m Toy-1B-Q4_K_M\.gguf -md o/head$'
  mkdir -p none/models--o--head/refs
  touch none/models--o--head/refs/main
  asks_about Toy-1B-Q4_K_M.gguf
  says 'draft here: +o/head: eagle3, pulled; a pass costs '
  says 'try first: +dtrun chat -m Toy-1B-Q4_K_M\.gguf -md o/head$'
}
it_says_what_to_try_without_a_draft() {
  cp "$source_dir/tests/golden/logits/gguf_llama/model.gguf" 'nobody knows.gguf'
  asks_about 'nobody knows.gguf'
  says 'published: +models/drafts\.txt has no draft for nobody knows\.gguf$'
  says "try first: +dtrun chat suffix -m 'nobody knows\.gguf' -md none # "
  asks_about nowhere.gguf
  says 'drafts: +no such file: nowhere\.gguf$'
  asks_about "$models/mini-head"
  says 'drafts: +.*mini-head'
}
it_names_a_layer_that_drafts() {
  asks_about "$source_dir/tests/golden/heads/mtp.gguf"
  says "draft here: +mtp: a layer of the model.s own files$"
  says 'try first: +dtrun -m .*/mtp\.gguf -md mtp --chat'
}

run_tests

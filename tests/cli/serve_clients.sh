#!/usr/bin/env bash
# dtrun serve and programs in Python: mixed requests one at a time and at once, the package openai: serve_clients.sh DTRUN SOURCE [REQUESTS]
# [SECONDS of random clients]
requests=${3:-60} seconds=${4:-60}
. "$(dirname "$0")/helpers.sh"
. "$(dirname "$0")/server.sh"
python=${DTRUN_PYTHON:-python3} # preferably one with the package openai

it_gives_each_of_many_requests_its_text() {
  serve --cache-ram 8 # room for the rows of some prompts, not of all
  "$python" "$source_dir/tests/serve/many.py" "$url" "$requests" >many || fail "$(<many)"
  kill $server
  wait $server || fail "exit status $?: $(<server.log)"
  [ ! -s server.log ] || fail "$(<server.log)"
}
it_serves_the_package_openai() {
  "$python" -c 'import openai' 2>/dev/null || { echo '  skipped: no package openai for Python (DTRUN_PYTHON names one that has it)'; return 0; }
  serve --template chatml --api-key secret
  "$python" "$source_dir/tests/serve/openai_client.py" "$url" secret >said 2>&1 || fail "$(tail -n 5 said)"
  serve --template llama3 --api-key secret
  "$python" "$source_dir/tests/serve/openai_tools.py" "$url" secret >said 2>&1 || fail "$(tail -n 5 said)"
}

it_answers_the_shapes_of_benchmarks() {
  serve --template chatml
  "$python" "$source_dir/tests/serve/shapes.py" "$url" >said 2>&1 || fail "$(tail -n 5 said)"
}
it_fills_gaps_with_a_model_for_code() {
  local coder=${DTRUN_CODER:-$models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf}
  [ -e "$coder" ] || { echo "  SKIPPED: no $coder (DTRUN_CODER names a GGUF file of Qwen2.5-Coder)"; return 0; }
  serve -m "$coder"
  "$python" "$source_dir/tests/serve/infill.py" "$url" code >said 2>&1 || fail "$(tail -n 5 said)"
  echo "  $(tail -n 1 said)"
}
it_bears_texts_of_eight_mebibytes() {
  serve --template chatml -np 4
  "$python" "$source_dir/tests/serve/extremes.py" "$url" long >said 2>&1 || fail "$(tail -n 5 said)"
}
it_keeps_requests_from_hostile_policies() {
  serve -np 4
  "$python" "$source_dir/tests/serve/hostile.py" "$url" >said 2>&1 || fail "$(tail -n 5 said)"
}
it_bounds_the_trace_of_an_answer() {
  serve
  "$python" "$source_dir/tests/serve/long_trace.py" "$url" >said 2>&1 || fail "$(tail -n 5 said)"
}
it_bears_random_clients() {
  grep -q __asan_init "$dtrun" && seconds=10 # its memory is mostly the sanitizer's
  serve -np 4 -c 1024 --cache-ram 8
  "$python" "$source_dir/tests/serve/soak.py" "$url" "$(grep -q __asan_init "$dtrun" && echo 0 || echo $server)" "$seconds" >said 2>&1 || fail "$(tail -n 5 said)"
  kill $server
  wait $server || fail "exit status $?: $(<server.log)"
  [ ! -s server.log ] || fail "$(<server.log)"
}
it_notices_memory_that_grows() {
  serve
  "$python" -c 'import time
kept = [bytearray(400000) for _ in range(400) if not time.sleep(0.02)]' &
  "$python" "$source_dir/tests/serve/soak.py" "$url" $! 6 >said 2>&1 && fail "$(<said)"
  grep -q '^its memory grows' said || fail "$(tail -n 5 said)"
}
it_gives_lm_eval_the_likelihoods_of_transformers() {
  "$python" -c 'import lm_eval, torch, transformers, accelerate' 2>/dev/null || { echo '  skipped: no package lm_eval for Python (DTRUN_PYTHON names one that has it)'; return 0; }
  serve --cache-dtype f32
  HF_HOME=$PWD/hf "$python" "$source_dir/tests/serve/likelihoods.py" "$url" "$source_dir/models/mini-target" >said 2>&1 || fail "$(tail -n 5 said)"
}

run_tests

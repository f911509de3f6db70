#!/usr/bin/env bash
# What dtrun does when the GPU fails. It is run with dtrun_emu, whose emulated device fails as CUDA_EMU_FAULTS says (tests/cuda_emu/faults.h).
# cuda.sh DTRUN_EMU SOURCE_DIR TEST_CROSS_ATTENTION
. "$(dirname "$0")/helpers.sh"
writer=$(realpath "$3")
prompt=(-p 'The old man went down to the' -n 12)
faults() { export CUDA_EMU_FAULTS=$1; }

it_says_that_there_is_no_device() {
  faults '0 1e12 -1'
  refuses 1 'no GPU can be used: no CUDA-capable device.*--backend cpu' ar --backend cuda "${prompt[@]}"
}
it_says_that_the_driver_is_too_old() {
  faults '-1 1e12 -1'
  refuses 1 'no GPU can be used: CUDA driver version is insufficient.*--backend cpu' ar --backend cuda "${prompt[@]}"
}
it_takes_the_CPU_where_there_is_no_device() {
  faults '0 1e12 -1'
  succeeds ar --backend auto "${prompt[@]}" --json result.json
  grep -qE '"backend":[[:space:]]*"cpu:' result.json || fail 'another backend than the CPU'
}
it_says_why_it_takes_the_CPU_beside_a_GPU() {
  faults '-1 1e12 -1'
  succeeds ar "${prompt[@]}"
  grep -qx 'dtrun: the GPU is not used: its driver supports CUDA 12.4, but this dtrun needs CUDA 13.0' stderr || fail "not said: $(<stderr)"
  succeeds ar "${prompt[@]}" --backend cpu
  ! grep -q 'the GPU is not used' stderr || fail 'said where the CPU was asked for'
  faults '-2 1e12 -1'
  succeeds ar "${prompt[@]}"
  ! grep -q 'the GPU is not used' stderr || fail 'said where there is no driver'
}
it_names_the_types_that_it_takes() {
  faults '1 1e12 -1'
  refuses 2 "weights: 'q8' is not possible: the backend cuda cannot round weights" ar --backend cuda --weights q8 "${prompt[@]}"
  refuses 2 "--draft-weights: 'q4' is not possible: the backend cuda cannot round weights" \
    linear --backend cuda --draft-weights q4 "${prompt[@]}"
  refuses 2 "--draft-output: 'q4' is not possible: the backend cuda cannot round weights" \
    linear --backend cuda --draft-output q4 "${prompt[@]}"
  local none='the backend cuda does not support penalties, biases, grammars, min_tokens, think_tokens or log-probabilities .--backend cpu does.$'
  refuses 2 "$none" ar --backend cuda --repeat-penalty 1.2 "${prompt[@]}"
  refuses 2 "$none" ar --backend cuda --grammar 'root ::= "a"' "${prompt[@]}"
  refuses 2 "$none" ar --backend cuda --logprobs 1 --json r.json "${prompt[@]}"
  refuses 2 "'f16' is not supported by the backend cuda; supported: 16-bit or q8" ar --backend cuda --cache-dtype f16 "${prompt[@]}"
}
# falls_back PATTERN ARGUMENTS...: without --backend the CPU generates the text, and one line that matches PATTERN says why.
falls_back() {
  local pattern=$1
  shift
  succeeds "$@" -n 12 --backend cpu && cp stdout expected
  succeeds "$@" -n 12 --json result.json
  same_text expected stdout
  [ "$(grep -c 'GPU' stderr)" = 1 ] && grep -qE "^dtrun: the GPU is not used: $pattern" stderr || fail "not said, or not in one line: $(<stderr)"
  grep -qE '"backend":[[:space:]]*"cpu:' result.json || fail 'another backend than the CPU'
}
it_takes_the_CPU_for_what_the_GPU_refuses() {
  faults '1 1e12 -1'
  local small=(-m "$models/mini-draft") # which loads in less time
  local golden=$source_dir/tests/golden/logits lacks='the backend cuda does not support penalties, biases, grammars, min_tokens, think_tokens or log-prob'
  falls_back 'model: it has scales of the stream, which a GPU does not compute .--backend cpu does.$' ar -m "$golden/gguf_gemma3/model.gguf" -p dog
  falls_back 'model: it has experts, which a GPU does not compute' ar -m "$golden/gguf_mixtral/model.gguf" -p dog
  falls_back "$lacks" ar -p It --json-schema '{"enum": ["a letter", "a dog"]}'
  falls_back "$lacks" linear -p It --regex '[a-z ]{9}'
  falls_back "$lacks" linear -p It --repeat-penalty 1.3
  falls_back "$lacks" ar -p It --logprobs 1 --json logs.json
  falls_back "weights: 'q8' is not possible: the backend cuda" linear -p It --weights q8
  falls_back 'draft: the backend cuda does not support exit:1' linear "${small[@]}" -p It -md exit:1
  falls_back "cache_dtype: 'f32' is not supported by the backend cuda; supported: 16-bit or q8" ar -p It --cache-dtype f32
  faults '1 4e6 -1'
  falls_back 'out of GPU memory: the weights needs' ar -p It
  faults '1 1e12 40'
  falls_back 'the GPU failed while running its first kernels' ar -p It
}
# Perplexity, which needs log-probabilities, falls back too.
it_takes_the_CPU_for_a_driver_that_says_what_it_needs() {
  faults '1 1e12 -1'
  head -c 3000 "$models/prompt.txt" >text
  succeeds run perplexity -c 32 --backend cpu text && cp stdout expected
  succeeds run perplexity -c 32 text
  same_text expected stdout
  grep -q '^dtrun: the GPU is not used: the backend cuda does not support penalties' stderr || fail "not said: $(<stderr)"
}
it_reports_what_no_backend_takes() {
  faults '1 1e12 -1'
  refuses 2 "weights: 'int4' is not supported by the backend cpu" ar --weights int4 "${prompt[@]}"
  refuses 2 'no such file: nowhere.gguf' ar -m nowhere.gguf "${prompt[@]}"
}
it_tells_the_doctor_which_backends_there_are_and_why_not_the_GPU() {
  faults '0 1e12 -1'
  succeeds doctor
  grep -qE '^backends: +cpu and cuda$' stdout || fail "$(grep '^backends' stdout)"
  grep -qE '^GPU: +none: no GPU can be used: no CUDA-capable device is detected' stdout || fail "$(grep '^GPU' stdout)"
}
it_holds_caches_in_q8() {
  faults '1 1e12 -1'
  succeeds dynatree --compare ar --rounds 1 --backend cuda --cache-dtype q8 "${prompt[@]}" --json result.json
  grep -q '"cache_dtype":[[:space:]]*"q8"' result.json || fail 'another type of caches'
}
it_runs_draft_heads() {
  local pair=(--backend cuda -m "$models/mini-target" -md head "${prompt[@]}" -q)
  mkdir head && "$dtrun" run "$source_dir/tests/cli/make_head.lua" head || fail 'make_head.lua'
  succeeds eagle2 --preset eagle3 --compare ar --rounds 1 "${pair[@]}"
  succeeds linear --compare ar --rounds 1 --temp 0.8 --top-p 0.95 -s 7 "${pair[@]}" --json result.json
  grep -q '"draft_head":[[:space:]]*"eagle3, layers 2,3,5"' result.json || fail 'another head'
  succeeds linear --cache-dtype q8 --compare ar --rounds 1 "${pair[@]}"
  refuses 2 "--draft-weights: 'q8' is not possible: the backend cuda cannot round weights" linear --draft-weights q8 "${pair[@]}"
  succeeds cascade -md2 "$models/mini-draft" --compare ar --rounds 1 "${pair[@]}" # a head and a draft model
  refuses 2 '-md2: the backend cuda does not support exit:2 .--backend cpu does' cascade -md2 exit:2 "${pair[@]}"
  rm -r head && mkdir head && "$dtrun" run "$source_dir/tests/cli/make_head.lua" head medusa || fail 'make_head.lua'
  succeeds dynatree --compare ar --rounds 1 "${pair[@]}"
}
it_refuses_the_assistants_of_gemma_4() {
  faults '1 1e12 -1'
  "$writer" write . || fail 'they were not written'
  refuses 2 'model: it has .*, which a GPU does not compute .--backend cpu does' linear --backend cuda -m target -md assistant --text FACE
}
it_says_what_did_not_fit_when_loading() {
  faults '1 4e6 -1'
  refuses 1 'out of GPU memory: the weights needs .* MB.*--backend cpu' ar --backend cuda "${prompt[@]}"
}
# The text so far is printed, then one line.
it_ends_when_the_device_fails_in_mid_run() {
  faults '1 1e12 500'
  run timeout 120 "$dtrun" ar --backend cuda "${prompt[@]}" -q
  [ "$status" -eq 1 ] || fail "exit status $status, expected 1"
  [ -s stdout ] || fail 'nothing of the text was printed'
  says_in_one_line 'the GPU failed while running a pass: unspecified launch failure.*--backend cpu' ar
  cp stdout partial
  faults '1 1e12 -1'
  succeeds ar --backend cuda "${prompt[@]}" -q
  head -c "$(stat -c %s partial)" stdout | cmp -s - partial || fail 'what was printed is not the beginning of the text'
}
run_tests

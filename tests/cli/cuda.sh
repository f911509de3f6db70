#!/usr/bin/env bash
# What dtrun does when the GPU fails. It is run with dtrun_emu, whose emulated device fails as CUDA_EMU_FAULTS says (tests/cuda_emu/faults.h).
# cuda.sh DTRUN_EMU SOURCE_DIR
. "$(dirname "$0")/helpers.sh"
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
  local golden=$source_dir/tests/golden/logits
  falls_back 'the CUDA backend supports matrices in F16 or BF16 and quantized ones, but some of this model.s are F32' ar -m "$golden/gguf_gpt_oss_one/model.gguf" -p dog
  falls_back "weights: 'q8' is not possible: the backend cuda" linear -p It --weights q8
  falls_back "cache_dtype: 'f32' is not supported by the backend cuda; supported: 16-bit or q8" ar -p It --cache-dtype f32
  faults '1 4e6 -1'
  falls_back 'out of GPU memory: .* needs' ar -p It
  faults '1 1e12 40'
  falls_back 'the GPU failed while running its first kernels' ar -p It
}
it_adjusts_logits_under_every_policy_alike() {
  faults '1 1e12 -1'
  local how policy
  for how in '--repeat-penalty 1.3 --min-tokens 12' '--regex [a-z]{3,9}(.[a-z]{2,9}){2} --temp 1 --top-p 0.9 -s 5'; do
    succeeds ar --backend cuda -p It -n 16 -q $how
    cp stdout expected
    [[ $how != *regex* ]] || grep -qxE '[a-z]{3,9}(.[a-z]{2,9}){2}' expected || fail "another text: $(<expected)"
    for policy in dynatree rate; do
      succeeds $policy --backend cuda -p It -n 16 -q $how --json result.json
      same_text expected stdout
      grep -qE '"backend":[[:space:]]*"cuda:' result.json || fail 'another backend than the GPU'
    done
  done
}
it_reports_log_probabilities_near_those_of_the_CPU() {
  faults '1 1e12 -1'
  local backend
  for backend in cpu cuda; do
    succeeds rate --backend $backend -p 'The old man' -n 12 -q --logprobs 3 --echo --repeat-penalty 1.2 --json $backend.json
    head -c 3000 "$models/prompt.txt" >text
    succeeds run perplexity -c 32 --backend $backend text
    grep -oE 'perplexity [0-9.]+' stdout >$backend.ppl || fail "no perplexity: $(<stdout)"
  done
  paste -d ' ' cpu.ppl cuda.ppl | awk '{ exit !($2 > 1 && ($4 - $2) / $2 < 0.002 && ($2 - $4) / $2 < 0.002) }' || fail "$(cat cpu.ppl cuda.ppl)"
  cat >near.lua <<'LUA'
local dt = require "dt"
local function read(name)
  local file = assert(io.open(name .. ".json"))
  local result = dt.json.decode(file:read "a")
  local list = table.move(result.prompt_logprobs, 2, #result.prompt_logprobs, #result.logprobs + 1, result.logprobs)
  return list
end
local a, b = read "cpu", read "cuda"
assert(#a >= 13 and #a == #b, #a)
for i, x in ipairs(a) do
  assert(x.id == b[i].id and math.abs(x.logprob - b[i].logprob) < 0.02, i)
  for k, top in ipairs(x.top) do assert(math.abs(top[2] - b[i].top[k][2]) < 0.02, i) end
end
LUA
  succeeds run ./near.lua
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
  rm -r head && mkdir head && "$dtrun" run "$source_dir/tests/cli/make_head.lua" head medusa || fail 'make_head.lua'
  succeeds dynatree --compare ar --rounds 1 "${pair[@]}"
}
it_splits_a_target_between_the_CPU_and_the_GPU() {
  faults '1 1e12 -1'
  local layers policy golden=$source_dir/tests/golden
  for layers in 1 4; do
    succeeds ar --gpu-layers $layers "${prompt[@]}" -q
    cp stdout expected
    for policy in dynatree 'linear --temp 0.8 -s 3 --compare ar --rounds 1'; do
      succeeds $policy -ngl $layers "${prompt[@]}" -q --json result.json
      [[ $policy = linear* ]] || same_text expected stdout
      grep -qE "\"backend\":[[:space:]]*\"cuda:.* \(layers $((7 - layers)) to 6\) after cpu:[a-z0-9]+ \(layers 1 to $((6 - layers))\)\"" result.json || fail "$(grep backend result.json)"
    done
  done
  succeeds ar --backend cuda "${prompt[@]}" -q
  cp stdout expected
  succeeds ar --gpu-layers 99 "${prompt[@]}" -q
  same_text expected stdout
  succeeds ar --gpu-layers auto "${prompt[@]}" -q
  same_text expected stdout
  succeeds ar -m "$golden/logits/gguf_qwen35/model.gguf" -p It --ignore-eos -n 110 -q --gpu-layers 2
  cp stdout expected
  succeeds suffix -m "$golden/logits/gguf_qwen35/model.gguf" -p It --ignore-eos -n 110 -q --gpu-layers 2
  same_text expected stdout
}
it_has_the_CPU_compute_experts() {
  faults '1 1e12 -1'
  local model=$source_dir/tests/golden/logits/gguf_gpt_oss/model.gguf policy experts
  for experts in 1 99; do
    succeeds ar --cpu-experts $experts -m "$model" -p It --ignore-eos -n 40 -q --json result.json
    cp stdout expected
    grep -qE "\"backend\":[[:space:]]*\"cuda:.* with experts of layers 1 to $((experts > 4 ? 4 : experts)) on cpu:[a-z0-9]+\"" result.json || fail "$(grep backend result.json)"
    for policy in suffix prompt_lookup; do
      succeeds $policy -ncmoe $experts -m "$model" -p It --ignore-eos -n 40 -q
      same_text expected stdout
    done
  done
  succeeds dynatree --cpu-experts 99 -m "$model" -md "$model" -p It --ignore-eos -n 20 -q --temp 0.8 -s 3 --compare ar --rounds 1
}
it_divides_a_target_among_GPUs() {
  faults '1 1e12 -1'
  succeeds ar --backend cuda "${prompt[@]}" -q
  cp stdout expected
  faults '2 1e12 -1'
  for policy in ar dynatree; do
    succeeds $policy --gpus 2 "${prompt[@]}" -q --json result.json
    same_text expected stdout
    grep -qE '"backend":[[:space:]]*"cuda:.* \(layers 1 to 3\), cuda:.* \(layers 4 to 6\)"' result.json || fail "$(grep backend result.json)"
  done
  faults '1 1e12 -1'
  refuses 2 'gpus: GPU 2 is wanted, but there is 1' ar --gpus 2 "${prompt[@]}"
  refuses 2 'gpus: 17 is out of range: 1..16' ar --gpus 17 "${prompt[@]}"
  refuses 2 'gpus: 0 is out of range' ar --gpus 0 "${prompt[@]}"
  refuses 2 'cpu-experts: 0 is out of range' ar --cpu-experts 0 "${prompt[@]}"
}
it_names_a_split_that_fits() {
  local model=$source_dir/tests/golden/logits/gguf_gpt_oss/model.gguf
  faults '1 1e12 -1'
  succeeds doctor -m "$model" -c 64
  grep -qE '^on GPUs: .*model.gguf needs [0-9.]+ MB with a context of 64: weights 0.4 MB, caches' stdout || fail "$(grep '^on' stdout)"
  grep -qE '^fits: .* GB are free: all of it fits$' stdout || fail "$(grep '^fits' stdout)"
  echo 'local n = assert(require("dt").needs { target = arg[1], ctx = 64 }) print(n.weights + n.caches + n.scratch)' >needs.lua
  succeeds run ./needs.lua "$model"
  faults "1 $((256 * 1024 * 1024 + $(cat stdout) - 1)) -1"
  succeeds doctor -m "$model" -c 64
  grep -qE '^fits: .* MB are free: --cpu-experts 1 or --gpu-layers 3 \(of 4\) fits$' stdout || fail "$(grep '^fits' stdout)"
  refuses 1 'out of GPU memory: .*--gpu-layers 3 fits, --cpu-experts 1 fits, --backend cpu' ar --backend cuda -c 64 -n 4 -m "$model" -p It
  succeeds ar --gpu-layers auto -c 64 -n 4 -m "$model" -p It --json result.json
  grep -qE '"backend":.* \(layers 2 to 4\) after cpu:' result.json || fail "$(grep backend result.json)"
  succeeds ar --cpu-experts 1 -c 64 -n 4 -m "$model" -p It
  faults '1 277e6 -1'
  succeeds doctor -m "$model" -c 64
  grep -qE '^fits: .* MB are free: none of its layers fits: --backend cpu$' stdout || fail "$(grep '^fits' stdout)"
}
it_says_why_a_target_cannot_be_split() {
  faults '1 1e12 -1'
  local golden=$source_dir/tests/golden
  refuses 2 'gpu-layers: 0 is out of range' ar --gpu-layers 0 "${prompt[@]}"
  refuses 2 'gpu-layers: the backend cpu has no GPU: give one of the two options' ar --gpu-layers 2 --backend cpu "${prompt[@]}"
  refuses 2 'head: it reads streams of all layers of its target, which must then be on one GPU' linear --gpu-layers 2 -md "$models/mini-head" "${prompt[@]}"
  refuses 2 'gpu-layers: each layer of this model reads inputs of its own' ar --gpu-layers 1 -m "$golden/logits/gguf_gemma4_inputs/model.gguf" -p It
  faults '0 1e12 -1'
  refuses 1 'no GPU can be used for gpu_layers: without it, the CPU computes all layers' ar --gpu-layers 2 "${prompt[@]}"
}
it_says_what_did_not_fit_when_loading() {
  faults '1 4e6 -1'
  refuses 1 'out of GPU memory: .* with a context of .* needs .* GiB .*, .* GiB are free .*--backend cpu' ar --backend cuda "${prompt[@]}"
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

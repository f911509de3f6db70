#!/usr/bin/env bash
# Draft heads on the command line: a random head for the bundled target, whose guesses cost time and change nothing.
# With the third argument "small" SmolLM2 is left out, which takes six minutes with the sanitizers.
. "$(dirname "$0")/helpers.sh"
size=${3:-}

make_head() { mkdir -p head && "$dtrun" run "$source_dir/tests/cli/make_head.lua" head "$@" || fail 'make_head.lua'; }
make_medusa() { make_head medusa "$@"; }
# with_head POLICY OPTIONS...: the bundled target with the head
with_head() { succeeds "$@" -m "$models/mini-target" -md head --backend cpu; }

# The bundled head of the bundled target.
with_mini_head() { succeeds "$@" -m "$models/mini-target" -md "$models/mini-head" --backend cpu; }

it_generates_what_plain_decoding_does_under_every_policy() {
  for policy in linear dynatree rate eagle2; do
    with_mini_head "$policy" --text 'The old man' -n 32 -q --compare ar --rounds 1
    with_mini_head "$policy" --text 'The old man' -n 32 -q --compare ar --rounds 1 --temp 0.8 --top-p 0.95 -s 7
  done
  make_head
  with_head eagle2 --preset eagle3 --text 'The old man' -n 16 -q --compare ar --rounds 1 --draft-weights q8 --cache-dtype f16
}
it_finds_the_head_that_was_made_for_a_target_and_says_so() {
  succeeds ar --text 'The old man' -n 20 -q
  mv stdout expected
  succeeds linear --text 'The old man' -n 20 -m "$models/mini-target" --json r.json -v
  same_text expected stdout
  grep -qE "^dtrun: draft: .*/models/mini-head, found$" stderr || fail 'not said'
  grep -qE '"draft":[[:space:]]*".*/models/mini-head"' r.json || fail 'not in the result'
  succeeds linear --text 'The old man' --text 'The ship' -n 5 -m "$models/mini-target"
  grep -qE ' tokens/s.*; draft: .*/models/mini-head, found$' stderr || fail 'not said of several'
  succeeds linear --text 'The old man' -n 5
  grep -q 'found' stderr && fail 'the bundled pair is named, not found'
  for none in --draft=none -md=none; do
    succeeds rate --text 'The old man' -n 5 -m "$models/mini-target" "${none%=*}" none --json r.json
    grep -qE '"draft":[[:space:]]*null' r.json || fail 'a draft, though none was wanted'
  done
  DTRUN_DRAFT=none succeeds rate --text 'The old man' -n 5 -m "$models/mini-target" --json r.json
  grep -qE '"draft":[[:space:]]*null' r.json || fail 'a draft, though none was wanted'
  cat >found.lua <<'LUA'
local dt, target = require "dt", arg[1]
assert(assert(dt.load { target = target }).draft.path:match "/models/mini%-head$")
assert(not assert(dt.load { target = target, draft = false }).draft)
assert(not assert(dt.load { target = target, draft = "none" }).draft)
assert(assert(dt.load {}).draft.path:match "/models/mini%-draft$")
assert(assert(dt.load { target = target }).load_ms > 0)
LUA
  succeeds run ./found.lua "$models/mini-target"
}
it_reduces_and_rounds_the_output_of_any_draft() {
  make_head
  succeeds ar --text 'The old man' -n 40 -q && mv stdout expected
  local draft how
  for draft in head "$models/mini-head" "$models/mini-draft"; do
    for how in '--draft-vocab 500' '--draft-vocab auto' '--draft-output q4' '--draft-vocab 500 --draft-output q8'; do
      succeeds dynatree --text 'The old man' -n 40 -q -m "$models/mini-target" -md "$draft" $how --backend cpu --json r.json
      same_text expected stdout
      [[ $how != *output* ]] || grep -qE '"draft_output":[[:space:]]*"q[48]"' r.json || fail "$draft $how: not in the result"
    done
  done
  rm -r head && make_medusa
  with_head linear --text 'The old man' -n 40 -q --draft-output q4
  same_text expected stdout
  refuses 2 '--draft-vocab: head is a Medusa head, which has an output for each distance' linear --text 'The old man' -m "$models/mini-target" -md head --draft-vocab 500 --backend cpu
}
# has_output VALUE OPTIONS..: what the result says of the output of the head
has_output() {
  with_head linear --text hello -n 2 -q --json r.json "${@:2}"
  grep -qE '"draft_output":[[:space:]]*'"$1" r.json || fail "${*:2}: $(grep draft_output r.json), expected $1"
}
it_rounds_the_output_of_heads_of_512_numbers_and_more() {
  make_head eagle3 504 # four heads of an even size: the nearest below
  has_output null
  make_head eagle3 512
  has_output '"q4"'
  has_output '"q8"' --draft-output q8
  has_output null --draft-output file
  has_output null --draft-weights file
  has_output null --draft-weights q8
}
it_finds_smollm2s_head() {
  local model=$models/SmolLM2-135M-Instruct.Q4_1.gguf
  [ -e "$model" ] || { echo '  skipped: no SmolLM2; scripts/get-model smollm2 brings it'; return 0; }
  succeeds linear --chat -p 'Hi' -n 3 -m "$model" -v
  grep -qE '^dtrun: draft: .*/models/smollm2-head, found$' stderr || fail 'not found'
}
it_leaves_out_what_was_found_and_cannot_be_loaded() {
  mkdir home home/models
  cp -r "$models/mini-target" home/models/target
  mkdir home/models/broken
  cp "$models/mini-head/config.json" home/models/broken/
  echo nonsense >home/models/broken/model.safetensors
  succeeds rate --text 'The old man' -n 5 -m home/models/target --json r.json
  grep -qE '^dtrun: the draft that was found is not used: home/models/broken/model.safetensors' stderr || fail 'not said'
  grep -qE '"draft":[[:space:]]*null' r.json || fail 'a draft'
  refuses 2 'home/models/broken/model.safetensors' linear --text 'The old man' -n 5 -m home/models/target
}
it_generates_what_plain_decoding_does_with_a_medusa_head() {
  make_medusa
  for policy in linear dynatree eagle2; do
    with_head "$policy" --text 'The old man' -n 16 -q --compare ar --rounds 1
    with_head "$policy" --text 'The old man' -n 16 -q --compare ar --rounds 1 --temp 0.8 -s 7
  done
  with_head linear --text hello -n 5 -q --json r.json
  reads '"medusa, final norm"'
  refuses 2 '--head-layers: head is a Medusa head, which always reads the output of the final norm' linear --text hello -m "$models/mini-target" -md head --head-layers 1,2,3 --backend cpu
  refuses 2 '--draft-window: head is a Medusa head, which sees no earlier tokens' linear --text hello -m "$models/mini-target" -md head --draft-window 9 --backend cpu
  sed -i 's/"1.1.weight"/"2.1.weight"/' head/medusa_lm_head.safetensors
  with_head linear --text hello -n 5 -q # one distance fewer
  sed -i 's/"0.1.weight"/"3.1.weight"/' head/medusa_lm_head.safetensors
  is_refused 'tensor 0.1.weight is missing'
}
it_drafts_nothing_with_a_medusa_head_that_a_grammar_forbids() {
  make_medusa
  cat >wide.lua <<'END'
local Wide = require "dt.policy".define { name = "wide", params = {} }
function Wide:draft(tree)
  local level = { tree.root }
  for _ = 1, 3 do
    tree:draft_step(level)
    local first, last = tree:branch_best(level, 20)
    level = {}
    for v = first, last do
      assert(tree:allowed(tree:parent(v), tree:token(v)), "a forbidden guess")
      level[#level + 1] = v
    end
    if #level == 0 then return end
  end
end
return Wide
END
  with_head ./wide.lua -p 'The old man' -n 30 -q --grammar 'root ::= ([a-m ]{1,3} [n-z ]{1,3}){4,40}' --compare ar --rounds 1 --json r.json
  grep -qE '"drafted":[[:space:]]*[0-9]{3}' r.json || fail "$(cat r.json)"
}
it_takes_medusa_heads_of_sixteen_distances_and_four_blocks() {
  make_medusa 16 4
  with_head linear --set K=17 --text 'The old man' -n 16 -q --compare ar --rounds 1
  make_medusa 17
  is_refused 'it guesses at more than 16 distances, the maximum'
  make_medusa 1 5
  is_refused 'medusa_num_layers: expected a whole number from 1 to 4'
}
# has_plain_tokens NAME: the texts of NAME.json are those of plain.json, in any order
has_plain_tokens() {
  for name in plain "$1"; do grep -o '"tokens":\[[^]]*' "$name.json" | sort >"$name.ids"; done
  [ "$(wc -l <plain.ids)" -gt 1 ] && cmp -s plain.ids "$1.ids" || fail "$1.json: not plain decoding's tokens"
}
# first_guesses RESULTS: prints the percentage of first guesses that were right
first_guesses() {
  grep -o '"accepted_by_depth":\[{"depth":1,"verified":[0-9]*,"accepted":[0-9]*' "$1" | tr -c '0-9\n' ' ' |
    awk '{ verified += $2; accepted += $3 } END { print int(100 * accepted / verified) }'
}
it_guesses_right_for_the_bundled_target() {
  of_prompts() { with_mini_head "$@" -f "$models/prompt.txt" -f "$source_dir/scripts/prompts/novels/01.txt" -f "$source_dir/scripts/prompts/novels/05.txt" -n 100 -q; }
  guess_first() { # TEMPERATURE LEAST: at least LEAST percent of the first guesses are right
    of_prompts ar --temp "$1" --json plain.json
    of_prompts linear --temp "$1" --set K=1 --json right.json
    of_prompts linear --temp "$1" --set K=1 --json off.json --head-layers 1,3,5
    has_plain_tokens right && has_plain_tokens off
    right=$(first_guesses right.json) off=$(first_guesses off.json)
    echo "  first guesses right at temperature $1: $right %, one layer off: $off %"
    [ "$right" -ge "$2" ] || fail "temperature $1: only $right % of the first guesses are right"
  }
  local right off
  guess_first 1 50
  guess_first 0 70
  [ "$off" -le $((right - 5)) ] || fail 'one layer off loses less than 5 points'
}
it_guesses_right_for_smollm2() {
  local model=$models/SmolLM2-135M-Instruct.Q4_1.gguf
  [ -e "$model" ] || { echo '  skipped: no SmolLM2; scripts/get-model smollm2 brings it'; return 0; }
  [ "$size" != small ] || { echo '  skipped: too long with the sanitizers'; return 0; }
  head -n 2 "$source_dir"/scripts/prompts/tasks/*.jsonl | grep '^{' >prompts.jsonl
  with_its_head() { succeeds "$@" -m "$model" -md "$models/smollm2-head" --chat --prompts prompts.jsonl -n 48 -q --backend cpu; }
  with_its_head ar --json plain.json
  with_its_head linear --set K=1 --json right.json
  with_its_head linear --set K=1 --head-layers 3,16,28 --json off.json
  has_plain_tokens right && has_plain_tokens off
  local right off
  right=$(first_guesses right.json) off=$(first_guesses off.json)
  echo "  first guesses right: $right %, one layer off: $off %"
  [ "$right" -ge 46 ] || fail "only $right % of the first guesses are right"
}
it_generates_several_texts_at_once() {
  make_head
  prompts=$source_dir/scripts/prompts/novels
  for i in 1 2 3; do
    "$dtrun" ar --prompt "$prompts/0$i.txt" -q -n 20 >"text.$i" || fail 'ar'
    echo >>"text.$i"
  done
  with_head dynatree -n 20 -f "$prompts/01.txt" -f "$prompts/02.txt" -f "$prompts/03.txt" -np 2 -q
  cat text.1 text.2 text.3 | tr -s '\n' >expected && tr -s '\n' <stdout >shown && same_text expected shown
}
# reads WHAT: prints this value of the result
reads() { grep -q "\"draft_head\":[[:space:]]*$1" r.json || fail "draft_head is not $1: $(grep draft_head r.json)"; }
it_says_what_the_head_reads() {
  make_head
  with_head linear --text hello -n 5 -q --json r.json
  reads '"eagle3, layers 2,3,5"'
  with_head linear --text hello -n 5 -q --json r.json --head-layers 0,3,6
  reads '"eagle3, layers 0,3,6"'
  with_head ar --text hello -n 5 -q --json r.json
  reads null
  succeeds linear --text hello -n 5 -q --json r.json
  reads null
}
it_refuses_layers_that_there_are_not() {
  make_head
  for layers in 0,3,7 -1,3,5 1,,2 '1,2,' a '' 1,2,3,4,5,6,1,2,3 '1 2 3' 1.5,2,3; do
    refuses 2 'head: head_layers: expected up to 8 layers from 0 to 6 whose inputs the head reads, as in 2,3,3' linear --text hello -m "$models/mini-target" -md head --head-layers "$layers" --backend cpu
  done
  refuses 2 'head: its fc reads 768 numbers, but the inputs of 2 layers of the target have 512' linear --text hello -m "$models/mini-target" -md head --head-layers 1,2 --backend cpu
  refuses 2 '--head-layers: .*mini-draft is a model, not a draft head' linear --text hello --head-layers 1,2,3 --backend cpu
}
it_refuses_what_a_head_cannot_serve() {
  make_head
  refuses 2 'head is a draft head, not a target: give it with --draft, and its target with --target' ar --text hello -m head
  refuses 2 'head: its fc reads 768 numbers, but the inputs of 3 layers of the target have 384' linear --text hello -m "$models/mini-draft" -md head --head-layers 0,1,2 --backend cpu
  rm head/model.safetensors && : >head/pytorch_model.bin
  refuses 2 'head/pytorch_model.bin is a pickle, which dtrun does not read: scripts/training/convert_head.py makes model.safetensors' linear --text hello -m "$models/mini-target" -md head --backend cpu
}
# changed FROM TO: changes a text in config.json
changed() {
  sed -i "s/$1/$2/" head/config.json
  cmp -s whole/config.json head/config.json && fail "config.json: $1"
}
# is_refused PATTERN: the head in its present state is refused
is_refused() { refuses 2 "$1" linear --text hello -m "$models/mini-target" -md head --backend cpu; }
it_says_what_is_wrong_with_a_head() {
  make_head && cp -r head whole
  while IFS='|' read -r from to pattern; do
    rm -rf head && cp -r whole head
    changed "$from" "$to"
    is_refused "$pattern"
  done <<'END'
"num_hidden_layers": 1|"num_hidden_layers": 2|num_hidden_layers is 2, expected 1: only draft heads with one layer
"model_type": "llama"|"model_type": "gemma2"|model_type "gemma2": not supported in a draft head, whose layer must be that of Llama, Mistral or Qwen
\[1, 2, 4\]|[1, 2, 6]|eagle_aux_hidden_state_layer_ids: expected up to 8 layers from 0 to 6
\[1, 2, 4\]|[]|eagle_aux_hidden_state_layer_ids: expected up to 8 layers
\[1, 2, 4\]|"1"|eagle_aux_hidden_state_layer_ids: expected up to 8 layers
"draft_vocab_size": 600|"draft_vocab_size": 601|lm_head.weight: found shape .600, 32., expected .601, 32.
"draft_vocab_size": 600|"draft_vocab_size": 5000|draft_vocab_size: expected a whole number from 1 to 4096
"hidden_size": 32|"hidden_size": 34|heads of 8 numbers|found shape
"hidden_size": 32|"hidden_size": 48|fc.weight: found shape .32, 768., expected .48, 768.
"num_attention_heads": 4|"num_attention_heads": 3|heads
"eagle_config"|"norm_before_fc": true, "eagle_config"|tensor input_norm.weight is missing
"eagle_config"|"fc_norm": true, "eagle_config"|tensor fc_norm.0.weight is missing
"eagle_config"|"fc_norm": true, "norm_before_fc": true, "eagle_config"|norm_before_fc and fc_norm: expected only one of them
"eagle_config"|"norm_before_residual": 1, "eagle_config"|norm_before_residual: expected true or false
END
  rm -rf head && cp -r whole head && echo '{"medusa_num_heads": 5, "medusa_num_layers": 1}' >head/config.json
  is_refused 'tensor 0.0.linear.weight is missing'
  rm -rf head && cp -r whole head && echo '{' >head/config.json
  is_refused 'config.json'
  for name in fc.weight norm.weight midlayer.hidden_norm.weight midlayer.self_attn.q_proj.weight midlayer.mlp.up_proj.weight; do
    rm -rf head && cp -r whole head
    sed -i "s/\"$name\"/\"${name/weight/weighs}\"/" head/model.safetensors
    is_refused "tensor ${name//./\\.} is missing"
  done
  rm -rf head && cp -r whole head && sed -i 's/"d2t"/"d3t"/' head/model.safetensors
  is_refused 'tensor d2t is missing: lm_head.weight has 600 of 4096 ids'
  rm -rf head && cp -r whole head && sed -i 's/"lm_head.weight"/"ml_head.weight"/' head/model.safetensors
  is_refused 'it has no lm_head.weight of its own, and cannot use the target.s, whose rows have 256 numbers'
  for size in 0 7 100 1000 100000; do
    rm -rf head && cp -r whole head && truncate -s "$size" head/model.safetensors
    is_refused 'model.safetensors'
  done
}

run_tests

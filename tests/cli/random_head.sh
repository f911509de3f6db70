#!/usr/bin/env bash
# Heads that cannot draft for the bundled pairs (Gemma 4's assistant, block heads) on the command line: a tiny random pair, whose guesses are accepted
# now and then and change nothing.
# random_head.sh DTRUN SOURCE_DIR WRITER assistant|dflash|dspark|dflash2      WRITER: test_cross_attention or test_block_heads
. "$(dirname "$0")/helpers.sh"
writer=$(realpath "$3") head=block block=
case $4 in # of block heads: the case of tests/golden/heads/blocks.json, the tokens of a block, what results say
assistant) head=assistant said='gemma4_assistant, final norm' ;;
dflash) case=dflash block=7 said='dflash, block of 8, layers 2,4,5' ;;
dspark) case='dspark, from the anchor' block=7 said='dspark, block of 7, layers 2,4,5' ;;
dflash2) case=dflash2 block=6 said='dflash2, block of 7, layers 2,4,5' ;;
esac
pair=(-m target -md "$head" --backend cpu -t 1)

write_pair() { "$writer" write . ${case:+"$case"} || fail 'they were not written'; }
# drafts POLICY OPTIONS...: gives the text of plain decoding with the same options, which is in the file plain
drafts() {
  succeeds "$@" "${pair[@]}" --json r.json -q
  same_text plain stdout
}

it_drafts_under_every_policy_and_changes_no_token() {
  write_pair
  local policies policy how drafted=0
  policies=$("$dtrun" --list | sed -n 's/^  \([a-z0-9_]*\) .*/\1/p;/^drivers/q')
  [ "$(wc -w <<<"$policies")" -ge 20 ] || fail "policies: $policies"
  for how in '--temp 0' '--temp 0.8 --top-p 0.95 -s 7' '--temp 1 -s 5 --repeat-penalty 1.3'; do
    succeeds ar "${pair[@]}" --text 'FACE A CAGE. ' -n 40 --ignore-eos $how -q
    mv stdout plain
    for policy in $policies; do
      drafts "$policy" --text 'FACE A CAGE. ' -n 40 --ignore-eos $how
      grep -qE '"drafted":[[:space:]]*[1-9]' r.json && drafted=$((drafted + 1))
    done
  done
  [ $drafted -ge 45 ] || fail "only $drafted of $(($(wc -w <<<"$policies") * 3)) texts had guesses"
}
it_drafts_for_texts_at_once_each_of_its_own_length() {
  write_pair
  printf '{"prompt": "%s"}\n' 'FACE A CAGE. ' 'A' 'BID 30 OF 42, THEN HIDE; ADD A FEE?' >prompts.jsonl
  succeeds ar "${pair[@]}" --prompts prompts.jsonl -n 30 --ignore-eos --temp 0.8 -s 3 -q
  mv stdout plain
  for policy in linear dynatree eagle2 echo cast; do
    drafts $policy --prompts prompts.jsonl -n 30 --ignore-eos --temp 0.8 -s 3 --parallel 3
  done
}
it_drafts_what_a_grammar_allows() {
  write_pair
  local grammar='root ::= [A-Z]{3,9} (" " [A-Z]{2,9}){3,12} "."'
  succeeds ar "${pair[@]}" --text 'FACE A CAGE. ' -n 60 --temp 1 -s 3 --grammar "$grammar" -q
  mv stdout plain
  for policy in linear dynatree eagle2 rate; do
    drafts $policy --text 'FACE A CAGE. ' -n 60 --temp 1 -s 3 --grammar "$grammar"
  done
  grep -qE '[A-Z]{3}' plain || fail 'no text'
}
it_reduces_its_output() {
  write_pair
  succeeds ar "${pair[@]}" --text 'FACE A CAGE. ' -n 40 --ignore-eos -q
  mv stdout plain
  for policy in linear dynatree rate; do
    drafts $policy --text 'FACE A CAGE. ' -n 40 --ignore-eos --draft-vocab 40
    drafts $policy --text 'FACE A CAGE. ' -n 40 --ignore-eos --draft-vocab 40 --draft-output q4
  done
}
it_learns_what_blocks_cost() {
  [ $block ] || return 0
  write_pair
  XDG_CACHE_HOME=$PWD/cache succeeds linear "${pair[@]}" --text 'FACE A CAGE. ' -n 60 --ignore-eos --costs learn -q
  grep -qE '"draft":\[\[[2-8],' cache/dtrun/learned*.json || fail "$(cut -c1-500 cache/dtrun/learned*.json)"
  grep -q '"first":\[\]' cache/dtrun/learned*.json || fail 'first passes, which a block head does not have'
}
it_takes_costs_of_blocks() {
  [ $block ] || return 0
  write_pair
  succeeds ar "${pair[@]}" --text 'FACE A CAGE. ' -n 60 --ignore-eos -q
  mv stdout plain
  cat >widths.lua <<LUA
local block = $block
LUA
  cat >>widths.lua <<'LUA'
local dt = require "dt"
local plain = io.open("plain"):read "a"
-- the costs of blocks of 1, 2, 3, 4 and 8 rows
for _, draft in ipairs { { 0.001, 0.0011, 0.0012, 0.0013, 0.002 }, { 0.001, 0.0011, 0.9, 1.8, 4 } } do
  local costs = { batch = 1, contexts = { 128 }, rows = { 1, 2, 3, 4, 8 }, target = { { 1, 1.001, 1.002, 1.003, 1.01 } },
                  draft = { draft }, block = block, cache_miss = { 0, 0, 0 } }
  local pair = assert(dt.load { target = "target", draft = "block", backend = "cpu", threads = 1, costs = costs })
  assert(pair.draft.block == block)
  local made = assert(pair:generate { policy = "rate", prompt = "FACE A CAGE. ", tokens = 60, ignore_eos = true })
  assert(made.text == plain or made.text .. "\n" == plain, made.text)
  assert(made.stats.drafted > 0)
end
LUA
  succeeds run ./widths.lua
}
it_names_the_head_and_takes_it_under_its_other_names() {
  write_pair
  succeeds linear "${pair[@]}" --text 'FACE' -n 8 --ignore-eos --json r.json -q
  grep -q '"draft_head":[[:space:]]*"'"$said"'"' r.json || fail 'another head'
  succeeds linear -m target --assistant-model "$head" --text 'FACE' -n 8 --ignore-eos --json r.json -q
  grep -q '"draft_head":[[:space:]]*"'"$said" r.json || fail 'another head'
}
it_refuses_what_it_does_not_do() {
  write_pair
  refuses 2 "--draft-output: 'q5' is not supported by the backend cpu" linear "${pair[@]}" --draft-output q5 --text FACE
  [ $block ] || refuses 2 'assistant head, which always reads the output of the final norm' linear "${pair[@]}" --head-layers 1,2 --text FACE
  refuses 2 'hidden_size is [46][08], expected the target.s 256|target_layer_ids: expected' linear -m "$models/mini-target" -md $head --text FACE
}
run_tests

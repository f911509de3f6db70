#!/usr/bin/env bash
# Penalties, biases, bans, minimum lengths, log-probabilities and several answers on the command line.
. "$(dirname "$0")/helpers.sh"
prompt='It was a dark night, and'
long=$source_dir/scripts/prompts/novels/01.txt

it_adjusts_in_every_policy_alike() {
  succeeds linear -p "$prompt" -n 24 --repeat-penalty 1.4 --presence-penalty 0.5 --frequency-penalty -0.1 --logit-bias 300+1.5 --compare ar --json r.json
  grep -qE '"repeat_penalty":[[:space:]]*1.4,' r.json || fail 'the result does not say so'
  mv stdout adjusted
  succeeds linear -p "$prompt" -n 24 -q
  cmp -s stdout adjusted && fail 'nothing was adjusted'
  succeeds ar -p "$prompt" -n 24 --repetition_penalty 1.4 --presence_penalty=0.5 --frequency-penalty -0.1 --logit-bias 300+1.5 -q
  same_text stdout adjusted
}
# The target is its own draft and applies the same adjustments, so every guess is right.
it_lets_drafts_know_the_adjustments() {
  cat >chain.lua <<'END'
local Chain = require "dt.policy".define { name = "chain", params = {} }
function Chain:draft(tree)
  local node = tree.root
  for _ = 1, math.min(6, tree:depth_room()) do
    tree:draft_step(node)
    node = tree:branch(node, 1)
  end
end
return Chain
END
  for temp in 0 1; do
    succeeds ./chain.lua -md "$source_dir/models/mini-target" -p "$prompt" -n 60 --temp $temp --top-p 1 --min-p 0 --repeat-penalty 1.3 --presence-penalty 0.3 --frequency-penalty 0.2 \
      --logit-bias 300+1.5 --logit-bias ' the=-inf' --min-tokens 30 --json - -q
    tr -d ' \t\n' <stdout | grep -q '"acceptance_rate":1,' || fail "a guess was wrong at temperature $temp"
  done
}
it_bans_by_id_and_by_text() {
  succeeds ar -p "$prompt" -n 40 -q
  grep -q ' the ' stdout || fail 'the text has no the: another prompt is needed'
  succeeds rate -p "$prompt" -n 40 -q --logit-bias ' the=-inf'
  grep -q ' the ' stdout && fail 'banned, and there'
  mv stdout by_text
  id=$("$dtrun" ar -p ' the' -n 1 -q --json - | tr -d ' \t\n' | sed -E 's/.*"prompt_ids":\[([0-9]+)\].*/\1/')
  succeeds rate -p "$prompt" -n 40 -q --logit-bias "$id-inf"
  same_text stdout by_text
}
it_goes_on_to_the_least_length() {
  succeeds ar -p "$prompt" -n 20 --min-tokens 20 --logit-bias 0+50 --json - -q
  grep -q '"finish_reason":[[:space:]]*"length"' stdout || fail 'it ended early'
  succeeds ar -p "$prompt" -n 20 --min-tokens 19 --logit-bias 0+1000 --json - -q
  grep -q '"finish_reason":[[:space:]]*"eos"' stdout || fail 'the end of text did not come'
  grep -q '"generated\|"tokens":' stdout || fail 'no tokens'
}
it_tells_log_probabilities_in_the_result() {
  succeeds linear -p "$prompt" -n 5 --logprobs 2 --echo --json r.json -q
  tr -d ' \t\n' <r.json | grep -qE '"logprobs":\[\{"id":[0-9]+,"logprob":-[0-9.e-]+,"top":\[\[[0-9]+,-[0-9.e-]+\],\[[0-9]+,-[0-9.e-]+\]\]\},' || fail 'none of the tokens'
  tr -d ' \t\n' <r.json | grep -qE '"prompt_logprobs":\[null,\{"id":' || fail 'none of the prompt'
  succeeds linear -p "$prompt" -n 5 --logprobs 0 --json - -q
  tr -d ' \t\n' <stdout | grep -qE '"logprobs":\[\{"id":[0-9]+,"logprob":-[0-9.e-]+,"top":\[\]\},.*"prompt_logprobs":null' || fail 'not of the tokens alone'
}
it_gives_several_answers_that_share_their_prompts_pass() {
  succeeds linear -f "$long" -n 12 --temp 1 -s 5 --answers 3 --json r.jsonl -np 2
  [ "$(wc -l <r.jsonl)" -eq 3 ] && [ "$(grep -c '"shared_prefix":true' r.jsonl)" -eq 2 ] || fail 'the pass was not shared'
  grep -q '^dtrun: 3 of 3 sequences' stderr || fail 'not told'
  tr -s '\n' <stdout >shown
  for seed in 5 6 7; do "$dtrun" ar -f "$long" -n 12 --temp 1 -s "$seed" -q && echo; done | tr -s '\n' >expected
  same_text shown expected
  succeeds cast -p "$prompt" -p 'The ship' -n 4 --temp 1 --answers 2 --json r.jsonl -q
  [ "$(grep -oE '"index":[0-9],"slots":4,"prompt":[0-9]' r.jsonl | sort | tr -dc '0-9\n' | paste -sd' ')" = '141 241 342 442' ] || fail 'whose answers'
}
it_refuses_what_makes_no_sense() {
  refuses 2 'answers: at temperature 0 all 2 answers are identical: set temp above 0' ar -p a --answers 2 -q
  refuses 2 "echo needs a single answer \(got 2\)" ar -p a --answers 2 --temp 1 --logprobs 1 --echo --json r -q
  refuses 2 'min_tokens with ignore_eos' ar -p a --min-tokens 2 --ignore-eos -q
  refuses 2 '--min-tokens: 9 is more than the maximum number of tokens, 8' ar -p a --min-tokens 9 -n 8 -q
  refuses 2 '--echo: only log-probabilities of the prompt' ar -p a --echo --json r -q
  refuses 2 '--logprobs are written into the result' ar -p a --logprobs 1 -q
  refuses 2 "--logprobs: 21 is out of range: 0..20" ar -p a --logprobs 21 --json r
  refuses 2 "--logprobs: -1 is out of range: 0..20" ar -p a --logprobs -1 --json r
  refuses 2 "--presence-penalty: 101 is out of range: -100 to 100" ar -p a --presence-penalty 101
  refuses 2 "--repeat-penalty: 0 is out of range" ar -p a --repeat-penalty 0
  refuses 2 '--repeat-penalty: 0.001 is out of range: 0.01 to 100' ar -p a --repeat-penalty 0.001 -q
  refuses 2 "logit_bias 'the': expected ID.BIAS, ID-BIAS or TEXT=BIAS" ar -p a --logit-bias the -q
  refuses 2 "logit_bias 'the=x': expected" ar -p a --logit-bias the=x -q
  refuses 2 "logit_bias: 'hello world' is 4 tokens \(259, 289, ..\): bias each by its id" ar -p a --logit-bias 'hello world=1' -q
  refuses 2 'logit_bias: token 99999 is out of range 0..4095' ar -p a --logit-bias 99999+1 -q
  refuses 2 'logit_bias: 1001 for token 3 is out of range' ar -p a --logit-bias 3+1001 -q
  refuses 2 '--color shows one text: give one prompt, and no --answers' ar -p a --temp 1 --answers 2 --color -q
}
# Each option with each of these: it works, or is refused with the line in the table.
it_does_or_refuses_each_combination() {
  local option with
  for option in '--logprobs 2' '--logprobs 2 --echo' '--answers 2' '--repeat-penalty 1.2' '--logit-bias 5-inf' '--min-tokens 3'; do
    for with in '--compare ar' '--trace t.html' '-p Once' '--window 16' "-md $source_dir/models/mini-head" '-md none' '--color' '--cache-dtype q8' '--ignore-eos' '--uncoupled' chat; do
      case "$option $with" in
      *--logprobs*chat) set -- 'chat does not take --logprobs and --echo' ;;
      *--answers*chat) set -- 'chat does not take --answers' ;;
      *--answers*--color) set -- '--color shows one text: give one prompt, and no --answers' ;;
      *--min-tokens*--ignore-eos) set -- 'min_tokens with ignore_eos: end-of-text does not end the text' ;;
      *) set -- ;;
      esac
      local run=(linear -p 'It was' --json r.json)
      [ "$with" != chat ] || run=("$with" linear --template chatml)
      [[ "$with" != *none ]] || run[0]='ar'
      # shellcheck disable=SC2206 # words
      run+=(-n 4 --temp 1 -q $option ${with#chat})
      if [ $# -eq 1 ]; then refuses 2 "$1" "${run[@]}"; else succeeds "${run[@]}" </dev/null; fi
    done
  done
}
it_sets_penalties_in_a_chat() {
  printf '%s\n' '/set repeat_penalty 1.5' '/set frequency_penalty -0.5' /set | "$dtrun" chat ar --template chatml -q >out 2>&1
  grep -qE '^repeat_penalty +1.5$' out && grep -qE '^frequency_penalty +-0.5$' out || fail 'not set'
  printf '%s\n' '/set presence_penalty 200' | "$dtrun" chat ar --template chatml -q 2>&1 | grep -q 'presence_penalty' || fail 'taken'
}
run_tests

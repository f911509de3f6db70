#!/usr/bin/env bash
# Costs of passes: learned from runs, or a table that is measured once. They are kept in the user's cache folder and made again when they do not fit.
. "$(dirname "$0")/helpers.sh"
export XDG_CACHE_HOME=

learn_run() { succeeds cast --text 'The ship' -n 8 -c 60 -t 1 "$@"; }
cost_run() { learn_run --costs table "$@"; }
# On a busy machine loading and measuring take long enough to be reported.
no_note() { [ "$(grep -vcE 'machine was busy|loaded in|measuring the cost of passes' stderr)" -eq 1 ] || fail 'expected the summary alone'; }

it_measures_once_and_remakes_what_cannot_be_read() {
  export HOME=$PWD
  cost_run
  no_note
  cp .cache/dtrun/costs-*.json first || fail 'not one table'
  cost_run
  same_text first .cache/dtrun/costs-*.json
  echo '{' >"$(echo .cache/dtrun/costs-*.json)"
  cost_run
  grep -qE '^dtrun: the table of costs /.*/costs-[0-9a-f]*.json is replaced: it is not a JSON object$' stderr || fail 'no note'
  cost_run
  no_note
  [ "$(find .cache -type f | wc -l)" -eq 1 ] || fail 'something else is left in the cache'
}
it_minds_no_weights_that_the_text_never_meets() {
  export HOME=$PWD
  # the row of token 0, which measurements use and this text does not contain
  "$dtrun" run "$source_dir/tests/cli/checkpoint.lua" "$models/mini-draft" odd poke gpt_neox.embed_in.weight 0 ffff
  learn_run --target odd --draft "$models/mini-draft"
  no_note
  refuses 2 'NaN at position [0-9]+: odd/model.safetensors: tensor gpt_neox.embed_in.weight contains NaN' cast --text 'The ship' -n 8 -c 60 -t 1 \
    --costs table --target odd --draft "$models/mini-draft"
  [ -z "$(find .cache -name 'costs-*')" ] || fail 'a table is kept'
}
it_measures_nothing_unless_asked() {
  export HOME=$PWD
  learn_run
  no_note
  [ "$(find .cache -type f -name 'learned-*.json' | wc -l)" -eq 1 ] || fail 'not one file'
  local first key
  first=$(echo .cache/dtrun/learned-*)
  key=$(grep -o '"key":"[^"]*"' "$first")
  learn_run -c 90 # another context, the same file
  no_note
  learn_run --costs learn
  [ "$(echo .cache/dtrun/learned-*)" = "$first" ] || fail 'other files'
  [ "$(grep -o '"key":"[^"]*"' "$first")" = "$key" ] || fail 'another key'
  learn_run -s 1 --temp 0.8
  [ "$(find .cache -type f -name 'learned-*.json' | wc -l)" -eq 2 ] || fail 'sampling costs the same'
  cut -c1-100 "$first" >torn
  cp torn "$first"
  learn_run
  grep -qE '^dtrun: the learned costs in /.*/learned-[0-9a-f]*.json are ignored and replaced: it is not a JSON object$' stderr || fail 'no note'
  learn_run
  no_note
}
it_needs_no_table_where_the_policy_counts_with_none() {
  succeeds ar --text hello -n 3 --costs table
  succeeds run paper memory --quick --out memory.jsonl # it runs each arm in a program of its own
}
it_says_that_a_table_of_an_earlier_version_is_not_read() {
  export HOME=$PWD
  cp -r "$models/mini-target" short && sed -i -E 's/("max_position_embeddings": *)[0-9]+/\180/' short/config.json # takes less time to measure
  local pair=(-m short -md "$models/mini-draft" -t 1)
  runs() { succeeds cast --text 'The ship' -n 8 "${pair[@]}" "$@"; }
  runs --costs table
  local table aside
  table=$(echo .cache/dtrun/costs-*.json)
  sed -i -E 's/"key":[[:space:]]*"/&dtrun 0.1.0 bc34801 0123456789abcdef, /' "$table"
  aside="^dtrun: the table of costs /.*/$(basename "$table") is ignored: it was measured by an older version, or on another machine or model; costs are learned from runs instead; measure again with 'dtrun run costs'\$"
  runs
  [ "$(grep -cE "$aside" stderr)" -eq 1 ] || fail "not one line: $(cat stderr)"
  runs
  no_note # the costs that this run learned exist
  rm .cache/dtrun/learned-*.json
  succeeds run costs "${pair[@]}"
  grep -q 'is replaced: it was measured by an older version' stderr || fail 'costs measures nothing'
  runs
  no_note
}
it_says_once_that_what_an_earlier_version_learned_is_not_read() {
  export HOME=$PWD
  runs() { succeeds linear --text 'The ship' -n 8 -t 1 -md draft; } # this policy keeps nothing
  cp -r "$models/mini-draft" draft
  echo '{"schema": "dtrun.calibration/1"}' >draft/calibration.json
  runs
  grep -qx "dtrun: the draft's calibration.json is ignored: its schema is not dtrun.calibration/2" stderr || fail "$(<stderr)"
  runs
  no_note
  sed -i 's:dtrun.ledger/[0-9]*:dtrun.ledger/1:' .cache/dtrun/ledger-*.json
  sed -i 's:dtrun.learned/[0-9]*:dtrun.learned/1:' .cache/dtrun/learned-*.json
  runs
  grep -qE '^dtrun: what was learned about this pair in /.*/ledger-[0-9a-f]*.json is ignored and replaced: its schema is not dtrun.ledger/[0-9]+$' stderr &&
    grep -qE '^dtrun: the learned costs in /.*/learned-[0-9a-f]*.json are ignored and replaced: its schema is not dtrun.learned/[0-9]+$' stderr || fail "$(<stderr)"
  runs
  no_note
}
it_says_which_costs_were_counted_with() {
  export HOME=$PWD
  learn_run --json learn.json
  cost_run --json table.json
  succeeds ar --text 'The ship' -n 8 -t 1 --json none.json
  grep -qE '"costs":[[:space:]]*"learn"' learn.json && grep -qE '"costs":[[:space:]]*"table"' table.json && grep -qE '"costs":[[:space:]]*null' none.json ||
    fail 'it does not say so'
  refuses 2 '--costs: .measured.: expected learn or table' cast --text hello --costs measured
}
it_lets_program_and_library_share_a_file() {
  export HOME=$PWD
  learn_run
  cat >driver.lua <<'LUA'
local dt = require "dt"
local pair = dt.check(dt.load { threads = 1 })
assert(pair:generate { policy = "cast", prompt = "The ship", tokens = 8 }.costs == "learn")
pair:close()
LUA
  cp "$dtrun" other-build && printf 'x' >>other-build
  DTRUN_HOME=$source_dir ./other-build run ./driver.lua 2>stderr || fail 'the driver fails'
  [ -s stderr ] && fail 'a note'
  [ "$(find .cache -type f -name 'learned-*.json' | wc -l)" -eq 1 ] || fail 'not one file'
  [ "$(find .cache -type f -name 'ledger-*.json' | wc -l)" -eq 1 ] || fail 'not one ledger'
}
it_loses_nothing_when_many_learn_at_once() {
  export HOME=$PWD
  learn_run
  local i
  for i in 1 2 3 4 5 6; do "$dtrun" cast --text 'The ship' -n 8 -c 60 -t 1 >/dev/null 2>"said$i" & done
  wait
  cat said? | grep -E 'is ignored|are ignored|cannot be written to' && fail 'they disturb each other'
  learn_run
  no_note
  [ "$(find .cache -type f | wc -l)" -eq 2 ] || fail 'something else than learned costs and a ledger is left in the cache'
}
it_goes_on_where_nothing_can_be_kept() {
  echo >file
  XDG_CACHE_HOME=$PWD/file cost_run
  grep -qE '^dtrun: the table of costs cannot be written to /.*: Not a directory$' stderr || fail 'no note'
  XDG_CACHE_HOME=$PWD/file learn_run
  grep -qE '^dtrun: the learned costs cannot be written to /.*: Not a directory$' stderr || fail 'no note of what was learned'
  XDG_CACHE_HOME=$PWD/file succeeds rate --text 'The ship' -n 40 -t 1
  [ "$(grep -c '^dtrun: what was learned about this pair cannot be written to ' stderr)" -eq 1 ] || fail "not one note: $(<stderr)"
}
it_tells_of_a_failed_run_its_failure_alone() {
  echo >file
  export XDG_CACHE_HOME=$PWD/file
  printf '{"prompt": "%s"}\n' 'The ship' 'It was' >prompts.jsonl
  for scope in sequence batch; do
    cat >policy.lua <<LUA
local Mine = require "dt.policy".define { name = "mine", doc = "fails in the end", scope = "$scope", uses = { costs = true } }
function Mine:draft()
  self.made = (self.made or 0) + 1
  assert(self.made < 4, "no fourth")
end
return Mine
LUA
    for texts in '--text=The ship' --prompts=prompts.jsonl; do
      run "$dtrun" ./policy.lua "$texts" -n 8 -t 1 -q
      [ "$status" -eq 3 ] || fail "$scope, $texts: exit status $status, expected 3"
      grep -q 'no fourth$' stderr || fail "$scope, $texts: not told"
      ! grep -v 'no fourth$' stderr || fail "$scope, $texts: something else is told"
    done
  done
}

run_tests

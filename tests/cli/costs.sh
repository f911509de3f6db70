#!/usr/bin/env bash
# What passes cost: learned from runs, or a table that is measured once; kept in the user's cache folder, remade when it does not fit.
. "$(dirname "$0")/helpers.sh"
export XDG_CACHE_HOME=

learn_run() { succeeds cast --text 'The ship' -n 8 -c 60 -t 1 "$@"; }
cost_run() { learn_run --costs table "$@"; }
no_note() { [ "$(grep -vc 'machine was busy' stderr)" -eq 1 ] || fail 'expected the summary alone'; }

it_measures_once_and_remakes_what_cannot_be_read() {
  export HOME=$PWD
  cost_run
  no_note
  cp .cache/dtrun/costs-*.json first || fail 'not one table'
  cost_run
  same_text first .cache/dtrun/costs-*.json
  echo '{' >"$(echo .cache/dtrun/costs-*.json)"
  cost_run
  grep -qE '^dtrun: the table of costs /.*/costs-[0-9a-f]*.json is made anew: it is no JSON object$' stderr || fail 'no note'
  cost_run
  no_note
  [ "$(find .cache -type f | wc -l)" -eq 1 ] || fail 'something else is left in the cache'
}
it_minds_no_weights_that_the_text_never_meets() {
  export HOME=$PWD
  # the row of token 0, with which costs are looked at and measured, and no token of this text
  "$dtrun" run "$source_dir/tests/cli/checkpoint.lua" "$models/mini-draft" odd poke gpt_neox.embed_in.weight 0 ffff
  learn_run --target odd --draft "$models/mini-draft"
  no_note
  refuses 2 'NaN at position [0-9]+: odd/model.safetensors: tensor gpt_neox.embed_in.weight holds NaN' cast --text 'The ship' -n 8 -c 60 -t 1 \
    --costs table --target odd --draft "$models/mini-draft"
  [ -z "$(find .cache -name 'costs-*')" ] || fail 'a table is kept'
}
it_tells_exits_apart() {
  export HOME=$PWD
  learn_run -md exit:2
  learn_run -md exit:3
  cost_run -md exit:2
  cost_run -md exit:3
  [ "$(find .cache -name 'learned-*.json' | wc -l)" -eq 2 ] && [ "$(find .cache -name 'costs-*.json' | wc -l)" -eq 2 ] || fail 'one table for both'
  for second in exit:2 exit:4; do learn_run -md exit:3 -md2 $second; done
  [ "$(find .cache -name 'learned-*.json' | wc -l)" -eq 4 ] || fail 'one file for two second drafts'
}
it_measures_nothing_unless_asked() {
  export HOME=$PWD
  learn_run
  no_note
  [ "$(find .cache -type f -name 'learned-*.json' | wc -l)" -eq 1 ] || fail 'not one file'
  local first key
  first=$(echo .cache/dtrun/*)
  key=$(grep -o '"key":"[^"]*"' "$first")
  learn_run -c 90 # another context, the same file
  no_note
  learn_run --costs learn
  [ "$(echo .cache/dtrun/*)" = "$first" ] || fail 'other files'
  [ "$(grep -o '"key":"[^"]*"' "$first")" = "$key" ] || fail 'another key'
  learn_run -s 1 --temp 0.8
  [ "$(find .cache -type f | wc -l)" -eq 2 ] || fail 'drawing tokens costs the same'
  cut -c1-100 "$first" >torn
  cp torn "$first"
  learn_run
  grep -qE '^dtrun: what was learned of costs in /.*/learned-[0-9a-f]*.json is left aside, and written anew: it is no JSON object$' stderr || fail 'no note'
  learn_run
  no_note
}
it_needs_no_table_where_the_policy_counts_with_none() {
  succeeds ar --text hello -n 3 --costs table
  succeeds run paper memory --quick --out memory.jsonl # whose arms are programs of their own
}
it_says_that_a_table_of_an_earlier_version_is_not_read() {
  export HOME=$PWD
  cp -r "$models/mini-target" short && sed -i -E 's/("max_position_embeddings": *)[0-9]+/\180/' short/config.json # measured sooner
  local pair=(-m short -md "$models/mini-draft" -t 1)
  runs() { succeeds cast --text 'The ship' -n 8 "${pair[@]}" "$@"; }
  runs --costs table
  local table aside
  table=$(echo .cache/dtrun/costs-*.json)
  sed -i -E 's/"key":[[:space:]]*"/&dtrun 0.1.0 bc34801 0123456789abcdef, /' "$table"
  aside="^dtrun: the table of costs /.*/$(basename "$table") is left aside: it was measured by an older version, or on another machine or model; costs are learned from runs, dtrun run calibrate measures it anew\$"
  runs
  [ "$(grep -cE "$aside" stderr)" -eq 1 ] || fail "not one line: $(cat stderr)"
  runs
  no_note # what that run learned is there
  rm .cache/dtrun/learned-*.json
  succeeds run calibrate "${pair[@]}"
  grep -q 'is made anew: it was measured by an older version' stderr || fail 'calibrate measures nothing'
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
  refuses 2 '--costs measured: expected table or learn' cast --text hello --costs measured
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
  [ "$(find .cache -type f | wc -l)" -eq 1 ] || fail 'not one file'
}
it_loses_nothing_when_many_learn_at_once() {
  export HOME=$PWD
  learn_run
  local i
  for i in 1 2 3 4 5 6; do "$dtrun" cast --text 'The ship' -n 8 -c 60 -t 1 >/dev/null 2>"said$i" & done
  wait
  cat said? | grep -E 'left aside|cannot be kept' && fail 'they disturb each other'
  learn_run
  no_note
  [ "$(find .cache -type f | wc -l)" -eq 1 ] || fail 'something else is left in the cache'
}
it_keeps_the_tables_of_rounded_weights_apart() {
  export HOME=$PWD
  cost_run
  cost_run --weights q4
  cost_run --draft-weights q4
  cost_run --draft-vocab 600
  [ "$(find .cache -name 'costs-*.json' | wc -l)" -eq 4 ] || fail 'not four tables'
  grep -lq ' in q4, draft ' .cache/dtrun/costs-*.json || fail 'no table says that the target is in q4'
}
it_goes_on_where_nothing_can_be_kept() {
  echo >file
  XDG_CACHE_HOME=$PWD/file cost_run
  grep -qE '^dtrun: the table of costs cannot be kept as /.*: Not a directory$' stderr || fail 'no note'
  XDG_CACHE_HOME=$PWD/file learn_run
  grep -qE '^dtrun: what was learned of costs cannot be kept as /.*: Not a directory$' stderr || fail 'no note of what was learned'
}
it_tells_of_a_failed_run_its_failure_alone() {
  echo >file
  export XDG_CACHE_HOME=$PWD/file
  printf '{"prompt": "%s"}\n' 'The ship' 'It was' >prompts.jsonl
  for scope in sequence batch; do
    cat >page.lua <<LUA
local Page = require "dt.policy".define { name = "page", doc = "fails in the end", scope = "$scope", uses = { costs = true } }
function Page:draft()
  self.made = (self.made or 0) + 1
  assert(self.made < 4, "no fourth")
end
return Page
LUA
    for texts in '--text=The ship' --prompts=prompts.jsonl; do
      run "$dtrun" ./page.lua "$texts" -n 8 -t 1 -q
      [ "$status" -eq 3 ] || fail "$scope, $texts: exit status $status, expected 3"
      grep -q 'no fourth$' stderr || fail "$scope, $texts: not told"
      ! grep -v 'no fourth$' stderr || fail "$scope, $texts: something else is told"
    done
  done
}
it_prints_a_table_and_draws_it() {
  export XDG_CACHE_HOME=$PWD
  succeeds run calibrate -c 60 -t 1 --json table.json
  grep -qE '^  rows +target@[0-9]+ +draft@[0-9]+$' stdout || fail 'no table'
  grep -qE '^first draft pass of an iteration: [0-9.]+@[0-9]+$' stdout || fail 'no first pass'
  grep -qE "^a row whose token is drawn: [0-9.]+ more, a draft's that knows the noise [0-9.]+$" stdout || fail 'no draws'
  grep -qE '^     1 #+ 1\.00$' stdout || fail 'no plot'
  grep -q '"contexts"' table.json || fail 'no JSON'
  succeeds run calibrate -c 60 -t 1 -md2 exit:2
  grep -qE '^milliseconds per pass, .*mini-draft and exit:2$' stdout || fail 'no second draft'
  grep -qE '^  rows +target@[0-9]+ +draft@[0-9]+ +draft2@[0-9]+$' stdout || fail 'no column for it'
  grep -qE '^first pass of the second draft of an iteration: [0-9.]+@[0-9]+$' stdout || fail 'no first pass of it'
  succeeds run calibrate -c 60 -t 1 --batch 3
  grep -q '^milliseconds per pass over 3 sequences, by the rows of each, ' stdout || fail 'no table of a batch'
  refuses_to_draw 2 'must end in .svg or .png' "$PATH" costs.gif
  mkdir bin && ln -s "$(command -v sh)" bin/sh
  refuses_to_draw 1 'there is no gnuplot \(Debian: apt-get install gnuplot-nox\)' "$PWD/bin" costs.svg
  command -v gnuplot >/dev/null || return 0
  succeeds run calibrate -c 60 -t 1 --plot costs.svg
  grep -q '<svg' costs.svg || fail 'no picture'
  local name="|touch 'x' \$HOME "'"@"''.svg' # a file, whatever gnuplot would make of its name
  succeeds run calibrate -c 60 -t 1 --plot "$name"
  grep -q '<svg' "$name" || fail "no picture $name"
  refuses_to_draw 1 "nowhere/x.svg" "$PATH" nowhere/x.svg
}
# refuses_to_draw STATUS PATTERN PATH FILE
refuses_to_draw() {
  run env PATH="$3" "$dtrun" run calibrate -c 60 -t 1 --plot "$4"
  [ "$status" -eq "$1" ] || fail "--plot $4: exit status $status, expected $1"
  says_in_one_line "$2" --plot "$4"
}

run_tests

#!/usr/bin/env bash
# "Why no speedup?": the line after a run that was slower than plain decoding, and --explain. Each policy here wastes one thing.
. "$(dirname "$0")/helpers.sh"

# policy NAME STATEMENTS: writes a policy whose draft consists of these statements
policy() {
  printf 'local P = require("dt.policy").define { name = "%s", params = { { "N", 1, min = 1, max = 9, doc = "" } } }\nfunction P:draft(tree) %s end\nreturn P\n' "$1" "$2" >"$1.lua"
}
# advised PATTERN ARGUMENTS...: the last line is advice that matches PATTERN
advised() {
  local pattern=$1
  shift
  succeeds "$@"
  tail -1 stderr | grep -qE "^dtrun: slower than plain decoding \(0\.[0-9]+x, (prompt included|after the prompt)\): $pattern" || fail "no advice like '$pattern'"
}
# Five rounds: a run here takes milliseconds, so a pause of the machine in one round must not decide the result.
both='--compare ar --rounds 5'

it_says_that_drafting_is_too_expensive() {
  policy deep 'local n = 0 for _ = 1, 24 do tree:draft_step(n) local f, l = tree:branch(n, 1) if l < f then break end n = f end if tree:size() > 0 then tree:keep { 1 } end'
  advised 'drafting takes [0-9.]+ ms per iteration, plain decoding [0-9.]+ ms per token; try: .*dtrun rate -p '"'It was a dark night'"' -n 40 --ignore-eos --compare ar$' \
    ./deep.lua -p 'It was a dark night' -n 40 --ignore-eos $both
}
it_says_that_rows_are_expensive_here() {
  policy wide 'tree:draft_step(0) tree:branch(0, 1) for t = 100, 300 do tree:add(0, t) end'
  advised 'a pass over [0-9]+ rows takes [0-9.]+ times as long as one over a single row; try: .*dtrun rate ' ./wide.lua -p 'It was a dark night' -n 40 --ignore-eos $both
}
it_says_that_guesses_are_wrong() {
  policy blind 'for t = 100, 300 do tree:add(0, t) end'
  advised 'only [0-3]?[0-9] % of the first guesses were right; try: .*dtrun prompt_lookup ' ./blind.lua -p 'It was a dark night' -n 40 --ignore-eos $both
}
it_says_that_the_policy_itself_is_slow() {
  policy idle 'tree:draft_step(0) tree:branch(0, 1) for _ = 1, 1000000 do end'
  advised 'the policy itself takes [0-9.]+ ms per iteration; try: .*dtrun rate ' ./idle.lua -p 'It was a dark night' -n 40 --ignore-eos $both
}
it_says_that_the_machine_was_busy_and_how_to_measure_then() {
  policy idle 'tree:draft_step(0) tree:branch(0, 1) for _ = 1, 1000000 do end'
  local processor busy
  processor=$(taskset -cp $$ | grep -oE '[0-9]+([,-].*)?$' | grep -oE '^[0-9]+')
  taskset -c "$processor" bash -c 'while :; do :; done' &
  busy=$!
  run taskset -c "$processor" "$dtrun" ./idle.lua -t 1 --set N=2 -p "It's a dark night" -n 40 --ignore-eos
  kill $busy
  wait $busy 2>/dev/null
  tail -1 stderr | grep -qE "^dtrun: slower than plain decoding \(0\.[0-9]+x, (prompt included|after the prompt)\): the machine was busy \(.*\), so this says little; try: .*dtrun ./idle.lua --set N=2 -t 1 -p 'It'\\\\''s a dark night' -n 40 --ignore-eos --compare ar$" stderr ||
    fail 'no word of it'
}
it_gives_no_advice_where_there_is_nothing_to_advise() {
  succeeds ar -p 'It was a dark night' -n 40
  policy blind 'for t = 100, 300 do tree:add(0, t) end for _ = 1, 1000000 do end'
  grep -q slower stderr && fail 'plain decoding is slower than itself'
  succeeds ./blind.lua -p 'It was a dark night' -n 15 --ignore-eos # one token too few
  grep -q slower stderr && fail 'advice after 15 tokens'
  succeeds ./blind.lua -p 'It was a dark night' -n 16 --ignore-eos
  grep -q slower stderr || fail 'no advice after 16 tokens'
  succeeds ./blind.lua -p 'It was a dark night' -n 40 --ignore-eos -q
  [ -s stderr ] && fail 'advice, though quiet'
  true
}
it_says_nothing_of_a_run_too_short_to_tell() {
  local brief=0 lasting=0 nodes tokens
  cat >brief.lua <<'END'
local file = io.open("r.json", "rb")
local time = require "dt".json.decode(file:read "a").stats.time_ms
local ms = time.draft + time.verify + time.commit + time.policy + time.other
print(ms < 50 and "brief" or "lasting")
END
  for nodes in 10 30 100 300; do
    for tokens in 16 40; do
      policy "wrong$nodes" "for t = 1, $nodes do tree:add(0, 1000 + t) end"
      succeeds "./wrong$nodes.lua" -p 'It was a dark night' -n $tokens --ignore-eos --json r.json
      if [ "$("$dtrun" run brief.lua)" = brief ]; then
        brief=$((brief + 1))
        grep -q slower stderr && fail "advice after $tokens tokens with $nodes nodes"
      elif [ "$nodes" -ge 100 ]; then
        lasting=$((lasting + 1))
        grep -q slower stderr || fail "no advice after $tokens tokens with $nodes nodes"
      fi
    done
  done
  [ $lasting -gt 0 ] || fail 'no run lasted'
  [ $brief -gt 0 ] || echo 'every run lasted 50 ms: none was too short'
}
it_explains_any_run() {
  succeeds linear -p 'It was a dark night' -n 40 --ignore-eos --explain
  for line in 'plain decoding takes [0-9.]+ ms per token, this run [0-9.]+ ms: [0-9.]+x, after the prompt' \
    'an iteration takes [0-9.]+ ms: draft [0-9.]+, verify [0-9.]+ \([0-9.]+ rows, [0-9.]+ times one row\), policy and other [0-9.]+' \
    'drafting pays from [0-9.]+ tokens per iteration; this run had [0-9.]+' 'by depth: 1: [0-9]+ %, 2: [0-9]+ %' 'what may help with '; do
    grep -qE "^dtrun: .*$line" stderr || fail "no line like '$line'"
  done
  succeeds ar -p hello -n 20 --explain
  grep -q 'nothing to explain: plain decoding drafts nothing' stderr || fail 'ar is explained'
  succeeds rate -p 'It was a dark night' -n 60 --ignore-eos --explain
  grep -qE '^dtrun: (draft|copy): [0-9]+ guesses verified, [0-9.]+ expected to be right, [0-9]+ were; cost [0-9.]+ ms \(drafting [0-9.]+, rows [0-9.]+\), saved [0-9.]+ ms$' stderr || fail 'no line of a source'
  succeeds rate -md "$models/mini-target" -p 'Xq zv 17 kw' -n 30 --ignore-eos --temp 2 --explain # as slow as the target
  grep -qE '^dtrun: draft: not used; a draft pass was expected to cost [0-9.]+ ms and to save -?[0-9.]+ ms, after [0-9.]+ ms for the tokens before it$' stderr &&
    grep -qE '^dtrun: copy: (not used; a copy was expected to pay after [0-9]+ repeated tokens?$|[0-9]+ guesses)' stderr || fail 'no line of a source that is not used'
  refuses 2 '--explain shows one text: give one prompt' linear -p one -p two --explain
}

run_tests

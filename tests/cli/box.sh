#!/usr/bin/env bash
# The most that a policy from an unknown source can do to a run: end it in time with exit status 3 and one line, after text of plain decoding.
. "$(dirname "$0")/helpers.sh"

# policy PREPARATION LOOP: writes a policy that drafts nothing in two iterations and then repeats LOOP
policy() {
  cat >policy.lua <<LUA
local policy = require "dt.policy"
local P = policy.define { name = "mine", uses = { draft = false } }
function P:init()
  self.n = 0
  $1
end
function P:draft()
  self.n = self.n + 1
  while self.n > 2 do $2 end
end
return P
LUA
}

# ends_in_time PATTERN: the policy is ended with a line that matches PATTERN, with at most 3 seconds of processor time more than plain
# decoding takes, which the sanitizers and a busy machine make slow, too
ends_in_time() {
  local TIMEFORMAT='%U %S'
  { time succeeds ar --text 'The ship' -n 2 -q; } 2>plain_seconds
  mv stdout plain
  { time run "$dtrun" ./policy.lua --text 'The ship' -n 20 -t 1 -q; } 2>seconds
  [ "$status" -eq 3 ] || fail "exit status $status, expected 3"
  says_in_one_line "policy.lua:.*$1"
  same_text plain stdout
  awk '{ t[NR] = $1 + $2 } END { exit t[2] > t[1] + 3 }' plain_seconds seconds || fail "$(cat seconds) seconds, plain decoding $(cat plain_seconds)"
}

it_ends_a_sort_with_a_comparator_in_C() {
  policy 's, t = ("1"):rep(65000), {} for i = 1, 10000 do t[i] = s end' 'pcall(table.sort, t, utf8.offset)'
  ends_in_time 'policy ran longer than 2 s'
}
it_ends_comparisons_of_long_strings() {
  policy 'a, b = ("\0"):rep(65536), ("\0"):rep(65535) .. "\0"' 'local _ = a < b'
  ends_in_time 'policy ran longer than 2 s'
}
it_ends_texts_of_many_numbers() {
  policy 't = {} for i = 1, 3000 do t[i] = i / 7 end' 'table.concat(t)'
  ends_in_time 'policy ran longer than 2 s'
}
it_ends_formats_of_what_is_long() {
  policy 's, t = ("\1"):rep(16000), {} for i = 1, 120 do t[i] = 1e308 end' \
    'local _ = ("%q"):format(s), ("%99.99f"):rep(120):format(table.unpack(t))'
  ends_in_time 'policy ran longer than 2 s'
}
it_refuses_a_description_that_is_too_long() {
  cat >policy.lua <<'LUA'
local t, doc = {}, ("x"):rep(60000)
for i = 1, 1500 do t[i] = { "p" .. i, 1, doc = doc } end
local P = require("dt.policy").define { name = "long", params = t }
return P
LUA
  refuses 3 'policy.lua:3: .*1500 parameters are more than 64' ./policy.lua --text x -n 1
}
it_takes_nothing_that_a_policy_overwrites() {
  cat >policy.lua <<'LUA'
local P = require("dt.policy").define { name = "mine", params = { { "K", 7 } }, presets = { b = {}, a = {} } }
table.sort = function(t) t[1] = true end
table.concat, string.format, math.type = error, error, function() return '7,"output_hash":"fake"' end
tostring, next, ipairs, error, type = nil
return P
LUA
  succeeds ./policy.lua --help
  grep -q '^  K *7 *integer' stdout || fail 'the parameter'
  grep -q 'NAME: a b tuned' stdout || fail 'the presets'
  succeeds ./policy.lua --preset b --text x -n 2 --json r.json
  ! grep -q fake r.json || fail 'a text of the policy in the result'
  refuses 2 'no preset .c. .it has: a, b.' ./policy.lua --preset c --text x -n 2
}
it_ends_a_policy_that_used_its_seconds() {
  policy 'zeros = ("\0"):rep(65536)' 'for _ = 1, 50 do local _ = zeros < zeros end return'
  run "$dtrun" ./policy.lua --policy-seconds 0.2 --text 'The ship' -n 200 --ignore-eos -q
  [ "$status" -eq 3 ] || fail "exit status $status, expected 3"
  says_in_one_line 'policy.lua:.*policy used up its time limit for the whole run in draft'
  succeeds ./policy.lua --policy-seconds 1000 --text 'The ship' -n 5
  succeeds ar --policy-seconds 1000000 --text x -n 1 -q
  for s in 0 1000001 x; do
    refuses 2 "--policy-seconds '$s': expected a number of seconds above 0, at most 1000000" ar --policy-seconds $s --text x
  done
}
it_answers_an_interrupt_within_a_call() {
  policy 's, t = ("1"):rep(65000), {} for i = 1, 10000 do t[i] = s end' 'print "in the call" pcall(table.sort, t, utf8.offset)'
  set -m # otherwise bash makes a background job ignore the signal
  "$dtrun" ./policy.lua --text 'The ship' -n 20 >stdout 2>stderr &
  for _ in $(seq 1000); do grep -qs 'in the call' stderr && break || sleep 0.02; done
  kill -INT $!
  status=0
  wait $! || status=$?
  [ "$status" -eq 130 ] || fail "exit status $status, expected 130"
  grep -q '2 tokens (interrupted)' stderr || fail 'no summary of an interrupted run'
}
it_answers_an_interrupt_while_a_policy_is_opened() {
  cat >policy.lua <<'LUA'
local s = ("x"):rep(65000)
for _ = 1, 4000 do s:reverse() end -- nearly all of the run: it is opened again for each text
return require("dt.policy").define { name = "mine", uses = { draft = false } }
LUA
  for _ in $(seq 9); do echo '{"prompt": "The"}'; done >p.jsonl
  set -m
  "$dtrun" ./policy.lua --prompts p.jsonl -np 1 -n 2 >stdout 2>stderr &
  for _ in $(seq 2000); do grep -qs '^dtrun: 1/9 ' stderr && break || sleep 0.01; done
  kill -INT $!
  status=0
  wait $! || status=$?
  [ "$status" -eq 130 ] || fail "exit status $status, expected 130"
  grep -q '^dtrun: [1-8] of 9 sequences' stderr || fail 'no summary of an interrupted run'
}
it_shows_the_calls_that_an_error_stood_in() {
  cat >policy.lua <<'LUA'
local P = require("dt.policy").define { name = "mine", uses = { draft = false } }
local function deep(tree, n)
  if n == 0 then tree:branch(77, 3) end
  deep(tree, n - 1)
  return 1
end
function P:draft(tree)
  deep(tree, DEEP)
end
return P
LUA
  sed 's/DEEP/1/' policy.lua >one.lua
  run "$dtrun" ./one.lua --text x -v
  [ "$status" -eq 3 ] || fail "exit status $status, expected 3"
  local expected="dtrun: ./one.lua:3: tree:branch: u: there is no node 77 (the tree has 0..0)
dtrun:   [C]: in method 'branch'
dtrun:   ./one.lua:3: in upvalue 'deep'
dtrun:   ./one.lua:4: in function 'deep'
dtrun:   ./one.lua:8: in method 'draft'"
  [ "$(head -n 5 stderr | sed "s/upvalue 'deep'/function 'deep'/2; 4s/upvalue/function/")" = "$expected" ] || fail 'not the calls'
  grep -q '^dtrun:   dt.policy:[0-9]*: in the function that dtrun called$' stderr || fail 'not the outermost call'
  refuses 3 'there is no node 77' ./one.lua --text x
  sed 's/DEEP/7/' policy.lua >seven.lua # [C], deep 8 times and draft: ten
  run "$dtrun" ./seven.lua --text x -v
  grep -q "seven.lua:8: in method 'draft'" stderr || fail 'the tenth call'
  grep -q '(outer calls are not shown)' stderr || fail 'the eleventh call'
  sed 's/DEEP/190/' policy.lua >deep.lua
  run "$dtrun" ./deep.lua --text x --text y -v
  [ "$(grep -c '(outer calls are not shown)' stderr)" -eq 2 ] && [ "$(grep -c "in upvalue 'deep'" stderr)" -eq 18 ] || fail 'of deep calls'
  echo 'while true do end' >loop.lua
  run "$dtrun" ./loop.lua --text x -v
  grep -q '^dtrun:   ./loop.lua:1: in the policy file$' stderr || fail 'of a call that was stopped'
}
it_shows_no_control_character_of_a_policy() {
  printf 'local evil = "\\27[31m\\u{9b}31m\\n"\nreturn require("dt.policy").define { name = "n" .. evil, doc = "d" .. evil,\n' >policy.lua
  printf '  uses = { draft = false }, params = { { "p" .. evil, "v" .. evil, one_of = { "v" .. evil } } } }\n' >>policy.lua
  for arguments in --help '--text x -n 2 -v --json -'; do
    # shellcheck disable=SC2086
    run "$dtrun" ./policy.lua $arguments
    [ "$status" -eq 0 ] || fail "$arguments: exit status $status"
    cat stdout stderr | LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' && fail "$arguments: a control character"
  done
  return 0
}

run_tests

#!/usr/bin/env bash
# Measurements while other programs run: a process that uses the same processor is noticed, whatever else the machine does.
. "$(dirname "$0")/helpers.sh"
novel=$source_dir/scripts/prompts/novels/01.txt

# beside_a_busy_process COMMAND...: runs the command and a busy process on one processor
beside_a_busy_process() {
  local processor busy
  command -v taskset >/dev/null || fail 'no taskset, which util-linux has'
  processor=$(taskset -cp $$ | grep -oE '[0-9]+([,-].*)?$' | grep -oE '^[0-9]+')
  taskset -c "$processor" bash -c 'while :; do :; done' &
  busy=$!
  run taskset -c "$processor" "$@"
  kill $busy
  wait $busy 2>/dev/null
  [ "$status" -eq 0 ] || fail "exit status $status, expected 0"
}
by='\((it had a processor for only [0-9]+ % of the time|it was preempted [0-9]+ times in [0-9.]+ s|[0-9]+ % of the processors. time was stolen)\)'

it_takes_medians_of_rounds() {
  succeeds ar --text 'It was' -n 20 --ignore-eos --compare ar --rounds 2 --json r.json
  grep -qE '^dtrun: ar [0-9.]+ tokens/s, ar [0-9.]+ tokens/s, prompt included: [0-9.]+x, same 20 tokens, median of [2-4] rounds$' stderr || fail 'the line'
  grep -qE '"rounds":[[:space:]]*[2-4]' r.json && grep -qE '"disturbed":[[:space:]]*[0-4]' r.json || fail 'the result'
  refuses 2 '--rounds' ar --text hello --compare ar --rounds 0
  refuses 2 '--rounds' ar --text hello --compare ar --rounds 33
}
it_says_that_a_comparison_was_disturbed() {
  beside_a_busy_process "$dtrun" ar --text 'It was' -n 100 --ignore-eos -t 1 --compare ar --rounds 3
  grep -qE "^dtrun: the machine was busy in 6 of the rounds $by: they count too, so the ratio is rough\$" stderr || fail 'no word of it'
  grep -qE 'median of 6 rounds$' stderr || fail 'not twice as many rounds'
}
it_repeats_disturbed_runs_of_a_sweep_and_the_report_says_so() {
  beside_a_busy_process "$dtrun" run sweep linear --set K=1,2 --prompt "$novel" --chars 80 -n 100 --ignore-eos -t 1 --repeats 1 --out o.jsonl
  local word='The machine was busy: 3 of 3 runs were disturbed and repeated; 3 were disturbed even in the last try \(one: .*\), and 3 of these count because there are no others\.'
  grep -qE "^dtrun: $word\$" stderr || fail 'no word of it'
  [ "$(grep -c '"disturbed": ".*"tries": 3' o.jsonl)" -eq 3 ] || fail 'not marked in the file'
  succeeds run report o.jsonl
  grep -qE "^$word\$" o/report.md || fail 'no word in the report'
}
write_slow_policy() {
  cat >slow.lua <<'LUA'
local policy = require "dt.policy"
local Slow = policy.define { name = "slow", uses = { draft = false } }
function Slow:draft() for _ = 1, 300000 do end end
return Slow
LUA
}
it_shows_the_round_that_runs_at_a_terminal() {
  at_terminal 'comparing with ar: round 1 of 2 ...' '' 'comparing with ar: round 2 of 2 ...' '' -- "$dtrun" ar -p 'It was' -n 20 --ignore-eos --compare ar --rounds 2
  [ "$status" -eq 0 ] || fail "exit status $status"
  grep -q comparing stdout && fail 'a round stays on the screen'
  grep -q '^dtrun: ar .* median of' stdout || fail 'no comparison'
  prompt_stands_alone
  succeeds ar -p 'It was' -n 20 --ignore-eos --compare ar --rounds 2
  grep -q comparing stderr && fail 'a round is shown where no terminal is'
  at_terminal -- "$dtrun" ar -p 'It was' -n 20 --ignore-eos --compare ar --rounds 1 -q
  grep -q dtrun stdout && fail 'a message in spite of -q'
  true
}
it_keeps_the_rounds_that_ended_before_ctrl_c() {
  write_slow_policy
  at_terminal 'round 3 of 9' ^C -- "$dtrun" ./slow.lua -p 'It was' -n 40 --ignore-eos --compare ar --rounds 9 --json r.json
  [ "$status" -eq 130 ] || fail "exit status $status, expected 130"
  grep -q '^dtrun: interrupted in round 3 of the comparison: the ratio is that of the 2 rounds before$' stdout || fail "no word of it: $(cat stdout)"
  grep -qE '^dtrun: slow [0-9.]+ tokens/s, ar [0-9.]+ tokens/s, .*: 0\.[0-9]+x, same 40 tokens, median of 2 rounds$' stdout || fail 'no ratio'
  grep -qE '"rounds":[[:space:]]*2,' r.json || fail 'not in the result'
  prompt_stands_alone
}
it_says_that_no_round_had_ended() {
  write_slow_policy
  at_terminal 'round 1 of 3' ^C -- "$dtrun" ./slow.lua -p 'It was' -n 200 --ignore-eos --compare ar --json r.json
  [ "$status" -eq 130 ] || fail "exit status $status, expected 130"
  grep -q '^dtrun: interrupted in the first round of the comparison: there is no ratio$' stdout || fail "no word of it: $(cat stdout)"
  grep -q '"compare"' r.json && fail 'a comparison in the result'
  prompt_stands_alone
}

run_tests

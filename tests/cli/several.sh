#!/usr/bin/env bash
# Several prompts in one run: what is printed and written, and in which order.
. "$(dirname "$0")/helpers.sh"

prompts=$source_dir/scripts/prompts

# texts_of N OPTIONS...: generates from each of the first N novels by itself, under ar, into text.1 ..
texts_of() {
  local n=$1 i
  shift
  for i in $(seq "$n"); do
    "$dtrun" ar --prompt "$prompts/novels/0$i.txt" -q "$@" >"text.$i" || fail 'ar'
    echo >>"text.$i"
  done
}
# shows FILES: these texts were printed, one after the other
shows() { cat "$@" | tr -s '\n' >expected && tr -s '\n' <stdout >shown && same_text expected shown; }

it_gives_each_prompt_what_it_is_alone_in_the_order_of_the_prompts() {
  texts_of 3 -n 30
  succeeds dynatree -n 30 --json r.jsonl -f "$prompts/novels/01.txt" -f "$prompts/novels/02.txt" -f "$prompts/novels/03.txt" -np 2
  shows text.1 text.2 text.3
  [ "$(wc -l <stderr)" -eq 4 ] || fail 'expected a line for each sequence, and one for all'
  grep -qE '^dtrun: 2/3 .*novels/02.txt: 30 tokens \(length\), [0-9.]+ per iteration$' stderr || fail 'the line of a sequence'
  grep -qE '^dtrun: 3 of 3 sequences, 2 at once, 90 tokens in [0-9.]+ s: [0-9.]+ tokens/s, prompt included$' stderr || fail 'the last line'
  [ "$(wc -l <r.jsonl)" -eq 3 ] || fail 'expected three lines of results'
  for i in 1 2 3; do
    grep -c "^{\"schema\":\"dtrun.result/1\".*\"batch\":{\"index\":$i,\"slots\":2,\"prompt\":$i}.*\"load_ms\":0*[1-9.].*\"output_hash\":" r.jsonl | grep -qx 1 || fail "result $i"
  done
}
it_samples_with_a_seed_for_each() {
  "$dtrun" ar --prompt "$prompts/novels/02.txt" -q -n 30 --temp 1 -s 6 >second
  succeeds cast -n 30 --temp 1 -s 5 -f "$prompts/novels/01.txt" -f "$prompts/novels/02.txt" -q
  tail -c "$(wc -c <second)" <(head -c -1 stdout) | cmp -s - second || fail 'the second sequence is not that of seed + 1'
}
it_reads_lines_of_json() {
  printf '%s\n' '{"id": "a", "prompt": "It was a dark night"}' '' '{"prompt": "Zoë said \"no\""}' >p.jsonl
  succeeds linear --prompts p.jsonl -n 8 --json - -q
  [ "$(wc -l <stdout)" -eq 2 ] || fail 'expected two lines'
  printf '%s\n' '{"prompt": "a"}' '{"text": "b"}' >q.jsonl
  refuses 2 'q.jsonl:2: no prompt: expected \{"prompt": "\.\.\."\}' ar --prompts q.jsonl
  echo '{"prompt": "a"' >q.jsonl
  refuses 2 'q.jsonl:1: not valid JSON' ar --prompts q.jsonl
  printf '{"prompt": "before\\u0000after"}\n' >q.jsonl
  refuses 2 'q.jsonl:1: a NUL character at byte 19,' ar --prompts q.jsonl
  printf '{"prompt": "a"}\n{"prompt": "before\0after"}\n' >q.jsonl
  refuses 2 'q.jsonl:2: a NUL character at byte 19,' ar --prompts q.jsonl
  printf '{"prompt": "a\\\\u0000"}\n' >q.jsonl # a backslash, and a letter followed by four digits
  succeeds ar --prompts q.jsonl -n 2
  printf '{"prompt": "caf\xe9"}\n' >q.jsonl
  refuses 2 'q.jsonl:1: invalid UTF-8 at byte 16' ar --prompts q.jsonl
  echo '{"prompt": ""}' >q.jsonl
  refuses 2 'q.jsonl:1: the prompt is empty' ar --prompts q.jsonl
  echo >q.jsonl
  refuses 2 'prompts q.jsonl: the file has no lines' ar --prompts q.jsonl
  refuses 2 "prompt none.jsonl: No such file" ar --prompts none.jsonl
}
it_takes_several_texts() {
  printf '%s\n' '{"prompt": "It was"}' '{"prompt": "The ship"}' >q.jsonl
  succeeds linear --prompts q.jsonl -n 8
  mv stdout expected
  succeeds linear -p 'It was' --text 'The ship' -n 8
  same_text expected stdout
}
it_compares_two_policies_over_all_prompts() {
  succeeds linear --prompt "$prompts/novels/01.txt" --prompt "$prompts/wikitext2/01.txt" -n 20 --compare ar
  grep -qE '^dtrun: linear [0-9.]+ tokens/s, ar [0-9.]+ tokens/s, prompt included: [0-9.]+x, same 40 tokens, median of [0-9]+ rounds?$' stderr || fail 'the comparison'
}
it_goes_on_when_one_text_fails() {
  printf '%s\n' '{"prompt": "It was"}' "{\"prompt\": \"$(yes word | head -3000 | tr '\n' ' ')\"}" '{"prompt": "The ship"}' >p.jsonl
  run "$dtrun" ar --prompts p.jsonl -n 5 --json r.jsonl
  [ "$status" -eq 2 ] || fail "exit status $status, expected 2"
  grep -qE '^dtrun: prompt p.jsonl:2: the prompt has [0-9]+ tokens' stderr || fail 'no word of the failure'
  grep -q '^dtrun: 3 of 3 sequences (1 failed), ' stderr || fail 'the last line'
  [ "$(wc -l <r.jsonl)" -eq 3 ] || fail 'expected three results'
  [ "$(wc -l <stdout)" -ge 2 ] || fail 'expected two texts'
}
it_traces_each_text() {
  for policy in linear cast; do
    succeeds $policy -p 'It was' -p 'The ship' -p 'A dog' -np 2 -n 9 --ignore-eos --trace t.jsonl --json r.jsonl
    for i in 1 2 3; do
      grep -q "^{\"schema\":\"dtrun.trace/1\",\"version\":\"[^\"]*\",\"sequence\":$i," t.jsonl || fail "$policy: no head of sequence $i"
      grep -q "^{\"sequence\":$i,\"finish_reason\":\"length\",\"tokens\":9," t.jsonl || fail "$policy: no end of sequence $i"
    done
    succeeds run trace t.jsonl --sequence 3
    same_text stdout <(echo 't.html (sequence 3 of 3: --sequence)')
    grep -q 'A dog' t.html || fail "$policy: another text is shown"
    grep -q 'The ship' t.html && fail "$policy: all texts are shown"
    refuses 2 't.jsonl: there is no sequence 4 \(it has: [123], [123], [123]\)' run trace t.jsonl --sequence 4
  done
  succeeds linear -p 'It was' -n 5 --trace t.jsonl
  refuses 2 't.jsonl: there is no sequence 1 \(the trace has one text only\)' run trace t.jsonl --sequence 1
}
it_refuses_what_follows_one_text() {
  echo hello >file
  refuses 2 '--color shows one text' ar -f file -f file --color
  refuses 2 "--parallel: 0 is out of range" ar -f file -f file --parallel 0
}
it_ends_with_3_when_a_policy_fails() {
  cat >fails.lua <<'LUA'
local policy = require "dt.policy"
local Fails = policy.define { name = "fails", scope = "batch", uses = { draft = false } }
function Fails:observe(batch)
  self.n = (self.n or 0) + 1
  if self.n == 4 then error "tired" end
end
return Fails
LUA
  run "$dtrun" ./fails.lua -f "$prompts/novels/01.txt" -f "$prompts/novels/02.txt" -f "$prompts/novels/03.txt" -np 2 -n 9 -q
  [ "$status" -eq 3 ] || fail "exit status $status, expected 3"
  [ "$(grep -c '^dtrun: prompt .*fails.lua:5: tired$' stderr)" -eq 2 ] || fail 'expected a line for each sequence that it ended'
  texts_of 2 -n 4
  shows text.1 text.2
}
it_prints_and_writes_what_is_finished_on_ctrl_c() {
  cat >slow.lua <<'LUA'
local policy = require "dt.policy"
local Slow = policy.define { name = "slow", uses = { draft = false } }
function Slow:draft(tree) if tree.seq:left() < 900 then for _ = 1, 1000000 do end end end
return Slow
LUA
  for i in $(seq 6); do echo '{"prompt": "It was a dark night"}'; done >p.jsonl
  set -m
  "$dtrun" ./slow.lua --prompts p.jsonl -np 2 -n 12 --ignore-eos --json r.jsonl >stdout 2>stderr &
  for _ in $(seq 1000); do [ -s r.jsonl ] && break || sleep 0.02; done
  kill -INT $!
  status=0
  wait $! || status=$?
  [ "$status" -eq 130 ] || fail "exit status $status, expected 130"
  local n
  n=$(wc -l <r.jsonl)
  [ "$n" -ge 2 ] && [ "$n" -lt 6 ] || fail "$n results"
  grep -q '"finish_reason":"length"' r.jsonl || fail 'no finished sequence'
  grep -qE "^dtrun: $n of 6 sequences, " stderr || fail 'the last line'
  [ "$(grep -c 'It\|a\|the' stdout)" -ge 1 ] || fail 'nothing printed'
}

run_tests

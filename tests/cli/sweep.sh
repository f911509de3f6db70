#!/usr/bin/env bash
# dtrun run sweep: grids, results, continuing after a full disk, and refusals.
. "$(dirname "$0")/helpers.sh"
novel=$source_dir/scripts/prompts/novels/01.txt

sweep=(run sweep linear fixed_tree --set 'K=1..8' 'D=1..8' 'tau=0.1,0.2,0.5' --prompt "$novel" --chars 80 -n 12 -t 1 --repeats 1 --out) # 33 runs
runs() { "$dtrun" run "$source_dir/tests/cli/runs.lua" "$1"; }

same_runs() {
  runs "$1" >first && runs "$2" >second || fail 'a file that cannot be read'
  same_text first second
}

it_lets_one_process_at_a_time_write_a_file() {
  succeeds "${sweep[@]}" whole.jsonl
  command -v flock >/dev/null || fail 'no flock, which util-linux has'
  : >held.jsonl
  run flock held.jsonl "$dtrun" "${sweep[@]}" held.jsonl
  [ "$status" -eq 2 ] || fail "exit status $status, expected 2"
  says_in_one_line 'held.jsonl: another process is writing this file: wait until it ends, or give another file' sweep
  [ -s held.jsonl ] && fail 'it has written nevertheless'
  local writers=() writer done=0
  for writer in 1 2 3 4; do
    "$dtrun" "${sweep[@]}" both.jsonl >/dev/null 2>stderr.$writer &
    writers+=($!)
  done
  for writer in 1 2 3 4; do
    status=0
    wait "${writers[writer - 1]}" || status=$?
    case $status in
      0) done=$((done + 1)) ;; # it ran alone, or after another one had finished
      2) grep -q 'another process is writing this file' stderr.$writer || fail "$(cat stderr.$writer)" ;;
      *) fail "exit status $status: $(cat stderr.$writer)" ;;
    esac
  done
  [ $done -ge 1 ] || fail 'none has finished'
  same_runs whole.jsonl both.jsonl
}

it_says_that_the_disk_is_full_and_loses_nothing() {
  succeeds "${sweep[@]}" whole.jsonl
  mkdir small
  if mount -t tmpfs -o size=16k none small 2>/dev/null; then
    run "$dtrun" "${sweep[@]}" small/out.jsonl
    mount -o remount,size=1m small
    reason='No space left on device'
  else # without root, a limit on the size of files has the same effect
    run bash -c "trap '' XFSZ; ulimit -f 16; exec \"\$@\"" - "$dtrun" "${sweep[@]}" small/out.jsonl
    reason='File too large'
  fi
  [ "$status" -eq 1 ] || fail "exit status $status, expected 1"
  says_in_one_line "small/out.jsonl: $reason" sweep
  [ "$(tail -c 1 small/out.jsonl)" = '' ] || fail 'half a line is left'
  if mountpoint -q small; then
    succeeds "${sweep[@]}" small/out.jsonl
    same_runs whole.jsonl small/out.jsonl
    umount small
  fi
  refuses 1 '/dev/full: No space left on device' run sweep linear --prompt "$novel" -n 5 --out /dev/full
}

it_prints_the_best_settings() {
  succeeds run sweep -t 1 linear --set K=1..3 --prompt "$novel" --chars 80 -n 12 --best 2
  [ "$(wc -l <stdout)" -eq 4 ] || fail 'expected a summary, a heading and two settings'
  head -1 stdout | grep -q '^3 settings, prompts: 1, tokens: 12, .* outputs equal$' || fail 'the summary'
  grep -qE '^ +[0-9.]+x .* linear K=[1-3]$' stdout || fail 'a setting'
}
it_takes_sets_several_lengths_presets_and_paths() {
  printf '{"id": 1, "prompt": "One"}\n{"id": "b", "prompt": "Two and"}\n' >task.jsonl
  cp "$source_dir/policies/dynatree.lua" own.lua
  succeeds run sweep -t 1 ./own.lua --preset narrow --set D0=2,3 --prompts task.jsonl -n 4,8 --repeats 2 --out o.jsonl
  runs o.jsonl >stdout
  [ "$(wc -l <stdout)" -eq 24 ] || fail 'expected (2 settings + ar) x 2 prompts x 2 lengths x 2 repeats'
  grep -q '^own narrow D0=3|task/b|8|2|' stdout || fail 'a run'
}
it_calls_prompts_without_an_id_by_their_lines() {
  printf '{"prompt": "One"}\n{"id": "b", "prompt": "Two and"}\n{"prompt": "Three"}\n' >task.jsonl
  succeeds run sweep -t 1 linear --set K=2 --prompts task.jsonl -n 4 --repeats 1 --out o.jsonl
  runs o.jsonl >stdout
  [ "$(grep -cE '\|task/(1|b|3)\|' stdout)" -eq 6 ] || fail 'not lines 1 and 3, and b'
  echo '{"id": {}, "prompt": "One"}' >task.jsonl
  refuses 2 'task.jsonl:1: expected \{"id": .., "prompt": "..."\} on one line; "id" may be left out' run sweep linear --prompts task.jsonl
  printf '{"prompt": "One"}\n{"id": 1, "prompt": "Two"}\n' >task.jsonl
  refuses 2 'the prompt is named task/1' run sweep linear --prompts task.jsonl
}
it_goes_on_after_the_error_of_one_policy() {
  printf 'local P = require "dt.policy".define { name = "broken" }\nfunction P:draft() error "enough" end\nreturn P\n' >broken.lua
  local command=(run sweep -t 1 ./broken.lua linear --prompt "$novel" --chars 80 -n 4 --repeats 1 --out o.jsonl)
  run "$dtrun" "${command[@]}"
  [ "$status" -eq 3 ] || fail "exit status $status, expected 3"
  sed -i '/^dtrun: The machine was busy: /d' stderr
  says_in_one_line 'broken: 1 run failed, first novels/01, 4 tokens: .*enough' sweep
  head -1 stdout | grep -q '^1 settings, ' || fail 'the others did not go on'
  cp o.jsonl before
  run "$dtrun" "${command[@]}"
  [ "$status" -eq 3 ] || fail "again: exit status $status, expected 3"
  same_text before o.jsonl
  run "$dtrun" "${command[@]}" --retry
  [ "$status" -eq 3 ] || fail "--retry: exit status $status, expected 3"
  [ "$(wc -l <o.jsonl)" -eq $(($(wc -l <before) + 1)) ] || fail 'it was not run again'
  succeeds run report o.jsonl --out r
  grep -q 'broken: 1 run failed' r/report.md || fail 'not in the report'
}
it_leaves_out_combinations_that_contradict_themselves() {
  succeeds run sweep -t 1 dynatree --set D0=2..4 D_max=3,4 --prompt "$novel" --chars 80 -n 4
  head -1 stdout | grep -q '^3 settings (3 more left out by checks of policies)' || fail 'the summary'
}

it_refuses_grids_that_the_policy_does_not_have() {
  refuses 2 '--set Z: linear, fixed_tree has no such parameter' run sweep linear fixed_tree --set K=1 Z=1 --prompt "$novel" --out o.jsonl
  refuses 2 'linear: K = 300 is out of range: 1..256' run sweep linear --set K=1,300 --prompt "$novel" --out o.jsonl
  refuses 2 'linear: K = two is not an integer' run sweep linear --set K=two --prompt "$novel" --out o.jsonl
  refuses 2 "linear: K: '5..1' is not a range" run sweep linear --set K=5..1 --prompt "$novel"
  refuses 2 "linear: K: '1..5:0' is not a range" run sweep linear --set K=1..5:0 --prompt "$novel"
  refuses 2 '--set K: expected NAME=VALUES' run sweep linear --set K --prompt "$novel"
  refuses 2 '--set K is given twice' run sweep linear --set K=1 K=2 --prompt "$novel"
  refuses 2 'linear: no preset .fast.' run sweep linear --preset fast --prompt "$novel"
  refuses 2 "no policy 'nothing'" run sweep nothing --prompt "$novel"
  refuses 2 'D0 < D_max is required' run sweep dynatree --set D0=9 --prompt "$novel"
  refuses 2 'no policy: expected' run sweep --prompt "$novel"
  [ ! -e o.jsonl ] || fail 'a file of results was begun'
}
it_refuses_prompts_that_are_none() {
  printf 'caf\xe9' >latin.txt
  refuses 2 'latin.txt: invalid UTF-8 at byte 4' run sweep linear --prompt latin.txt
  printf '{"id": 1, "prompt": "caf\xe9"}\n' >latin.jsonl
  refuses 2 'latin.jsonl:1: invalid UTF-8' run sweep linear --prompts latin.jsonl
  refuses 2 'nowhere.txt: No such file' run sweep linear --prompt nowhere.txt
  refuses 2 'no prompts' run sweep linear
  refuses 2 "tokens = x is not an integer" run sweep linear --prompt "$novel" -n 5,x
}
it_samples_with_a_seed() {
  local sampled=(run sweep -t 1 linear --set K=2 --prompt "$novel" --chars 80 -n 12 --repeats 1 --temp 1)
  succeeds "${sampled[@]}" --seed 3 --out three.jsonl
  succeeds "${sampled[@]}" --seed 3 --out again.jsonl
  succeeds "${sampled[@]}" --seed 4 --out four.jsonl
  same_runs three.jsonl again.jsonl
  runs four.jsonl >second
  cmp -s first second && fail 'another seed, and the same text'
  refuses 2 'three.jsonl: made with seed = 3, not 4' "${sampled[@]}" --seed 4 --out three.jsonl
  refuses 2 'temp: 0.000999 is out of range: 0, or 0.001 to 100' "${sampled[@]}" --temp 0.000999
  refuses 2 "--temp: 100.1 is out of range: 0, or 0.001 to 100" "${sampled[@]}" --temp 100.1
  for t in 0 0.001 0.00101 100; do succeeds "${sampled[@]}" --temp $t; done
}
it_refuses_a_file_of_other_runs() {
  succeeds run sweep -t 1 linear --prompt "$novel" --chars 80 -n 4 --out o.jsonl
  cp o.jsonl before
  refuses 2 'o.jsonl: made with tokens = \[4\], not \[5\]' run sweep linear --prompt "$novel" --chars 80 -n 5 --out o.jsonl
  refuses 2 'o.jsonl: made with chars = 80, not 90' run sweep linear --prompt "$novel" --chars 90 -n 4 --out o.jsonl
  refuses 2 'o.jsonl: made with draft = ' run sweep linear --prompt "$novel" --chars 80 -n 4 --out o.jsonl --target "$models/mini-draft"
  refuses 2 'o.jsonl: made with draft_dtype = "f16", not "q8"' run sweep -t 1 linear --prompt "$novel" --chars 80 -n 4 --out o.jsonl --backend cpu --draft-weights q8
  refuses 2 'o.jsonl: made with target_dtype = "f16", not "q4"' run sweep -t 1 linear --prompt "$novel" --chars 80 -n 4 --out o.jsonl --backend cpu --weights q4
  refuses 2 'o.jsonl: made with draft_vocab = null, not "600"' run sweep -t 1 linear --prompt "$novel" --chars 80 -n 4 --out o.jsonl --backend cpu --draft-vocab 600
  refuses 2 'o.jsonl: made with cache_dtype = "f16", not "f32"' run sweep -t 1 linear --prompt "$novel" --chars 80 -n 4 --out o.jsonl --backend cpu --cache-dtype f32
  same_text before o.jsonl
  sed -i '2s/}$//' o.jsonl
  refuses 2 'o.jsonl:2: not a line of an experiment: JSON' run sweep linear --prompt "$novel" --chars 80 -n 4 --out o.jsonl
}
it_says_that_the_same_command_goes_on_after_ctrl_c() {
  local slow=(run sweep linear --set 'K=1..16' --prompt "$novel" --chars 80 -n 60 --ignore-eos -t 1 --repeats 1)
  at_terminal '3/17 ' ^C -- "$dtrun" "${slow[@]}" --out o.jsonl
  [ "$status" -eq 130 ] || fail "exit status $status, expected 130"
  grep -q '^dtrun: interrupted: o.jsonl has the finished runs; the same command continues there$' stdout || fail "no word of it: $(cat stdout)"
  grep -q left stdout && fail 'progress stays on the screen'
  prompt_stands_alone
  at_terminal -- "$dtrun" "${slow[@]}" --out o.jsonl
  [ "$status" -eq 0 ] || fail "again: exit status $status"
  grep -qE '^17/17  [0-9]+ s$' stdout || fail "the last line of progress: $(head -n 1 stdout)"
  at_terminal '3/17 ' ^C -- "$dtrun" "${slow[@]}"
  grep -q '^dtrun: interrupted: the finished runs are lost; with --out FILE the same command continues where it stopped$' stdout || fail 'without a file'
}
it_hides_a_line_of_progress_before_a_message() {
  for last in 'dt.check(nil, "enough")' 'error("enough", 0)'; do
    echo "local dt = require 'dt' local p = dt.progress(3) p:step() $last" >driver.lua
    at_terminal -- "$dtrun" run ./driver.lua
    [ "$(head -n 1 stdout)" = 'dtrun: enough' ] || fail "$last: $(cat stdout)"
    prompt_stands_alone
  done
}

run_tests

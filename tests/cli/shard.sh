#!/usr/bin/env bash
# Shards without Slurm: sweep, tune and paper with --shard, dtrun run merge, and reports on shards.
. "$(dirname "$0")/helpers.sh"
novels=$source_dir/scripts/prompts/novels
sweep=(run sweep linear fixed_tree --set 'K=1..4' 'D=1..4' 'tau=0.1,0.2' --prompt "$novels/01.txt" --chars 80 -n 12 -t 1 --repeats 2) # 12 settings

runs() { "$dtrun" run "$source_dir/tests/cli/runs.lua" "$1" | sort -u; }
# same_runs A B: both files have the same runs; those of plain decoding, which each shard has, count once
same_runs() {
  runs "$1" >first && runs "$2" >second || fail 'a file that cannot be read'
  same_text first second
}
# shards N OUT COMMAND...
shards() {
  local n=$1 out=$2 i
  shift 2
  for ((i = 1; i <= n; i++)); do succeeds "$@" --out "$out" --shard "$i/$n"; done
}

it_finds_in_shards_what_it_finds_in_one() {
  succeeds "${sweep[@]}" --out whole.jsonl
  for n in 2 4; do
    shards $n s$n.jsonl "${sweep[@]}"
    grep -qE "^$((12 / n)) settings of shard $n/$n, " stdout || fail 'the shares are not equal'
    [ ! -e s$n.jsonl ] || fail 'a shard has written the file of all'
    succeeds run merge s$n.jsonl s$n-*of$n.jsonl
    grep -qx "s$n.jsonl: $((24 + 2 * n)) runs" stdout || fail 'not as many runs'
    same_runs whole.jsonl s$n.jsonl
  done
  succeeds run merge s4.jsonl s4-*of4.jsonl s4-2of4.jsonl
  cp s4.jsonl before
  succeeds "${sweep[@]}" --out s4.jsonl # everything has been done already
  same_text before s4.jsonl
}
it_has_nothing_to_do_where_there_are_more_shards_than_settings() {
  local two=(run sweep linear --set 'K=1,2' --prompt "$novels/01.txt" --chars 60 -n 4 -t 1 --repeats 1)
  shards 3 s.jsonl "${two[@]}"
  [ "$(wc -l <s-3of3.jsonl)" -eq 1 ] || fail 'runs of nothing'
  grep -q '^0 settings of shard 3/3' stdout || fail 'the summary'
  succeeds run merge s.jsonl s-[12]of3.jsonl
}
it_refuses_what_is_no_shard() {
  for text in 0/4 5/4 4 x/4 ''; do
    refuses 2 "--shard: '$text' is not a shard: expected i/n with i from 1 to n and n at most 1000000, as in 3/4" "${sweep[@]}" --out s.jsonl --shard "$text"
  done
  refuses 2 'shard 4/4 needs --out FILE' "${sweep[@]}" --shard 4/4
  refuses 2 'shard 1/4 needs --out FILE' run tune linear --shard 1/4
  SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=5 refuses 2 'shard 1/4 needs --out FILE' "${sweep[@]}"
  refuses 2 "--shard: '3/2' is not a shard" run paper ablation --quick --shard 3/2
  [ -z "$(ls ./*.jsonl 2>/dev/null)" ] || fail 'a file was begun'
}
it_goes_on_after_a_kill() {
  local lines
  succeeds "${sweep[@]}" --out whole.jsonl
  shards 2 s.jsonl "${sweep[@]}"
  cp s-2of2.jsonl complete
  for lines in 1 5 13; do
    { head -n $lines complete; sed -n "$((lines + 1))p" complete | head -c 40; } >s-2of2.jsonl # as if killed in the middle of a line
    succeeds "${sweep[@]}" --out s.jsonl --shard 2/2
    same_runs complete s-2of2.jsonl
    head -n $lines complete | cmp -s - <(head -n $lines s-2of2.jsonl) || fail 'finished runs were made again'
  done
  refuses 2 's-2of2.jsonl: made with runs of linear K=5 = null, not 2: give the same options' "${sweep[@]/K=1..4/K=1..5}" --out s.jsonl --shard 2/2
  cp s-2of2.jsonl t-1of2.jsonl
  refuses 2 't-1of2.jsonl: made with shard = "2/2", not "1/2"' "${sweep[@]}" --out t.jsonl --shard 1/2
  refuses 2 's-2of2.jsonl: the file of shard 2/2' "${sweep[@]}" --out s-2of2.jsonl
}
it_names_what_is_missing() {
  shards 3 s.jsonl "${sweep[@]}"
  run "$dtrun" run merge s.jsonl s-[23]of3.jsonl
  [ "$status" -eq 2 ] || fail "exit status $status, expected 2"
  says_in_one_line 's.jsonl is incomplete: shard 1 of 3 is missing: run these shards again' merge
  head -n 6 s-1of3.jsonl >torn && mv torn s-1of3.jsonl
  run "$dtrun" run merge s.jsonl s-1of3.jsonl
  [ "$status" -eq 2 ] || fail "exit status $status, expected 2"
  says_in_one_line 's.jsonl is incomplete: unfinished (plain decoding|linear K=.|fixed_tree D=. tau=0..) \([01] of 2 runs, shard 1\)' merge
  succeeds run report s-*of3.jsonl
  grep -q '^The experiment is incomplete: unfinished ' s/report.md || fail 'the report does not say it'
  succeeds "${sweep[@]}" --out s.jsonl --shard 1/3
  succeeds run merge s.jsonl s-1of3.jsonl
  succeeds run report s.jsonl --out all
  grep -q 'Runs were made in 3 shards on 1 node' all/report.md || fail 'the report does not say where'
  grep -q 'Not all' all/report.md && fail 'nothing is missing'
  return 0
}
# altered NAME PATTERN VALUE: copies s-2of2.jsonl with another value
altered() { sed -E "$1s/$2/$3/" s-2of2.jsonl >other.jsonl; }
it_refuses_to_merge_what_does_not_fit() {
  shards 2 s.jsonl "${sweep[@]}"
  local hash='"([0-9a-f]{16}|[0-9a-f]{64})"' zeros=0000000000000000
  for name in build target_hash draft_hash; do
    altered 1 "\"$name\": $hash" "\"$name\": \"$zeros\""
    refuses 2 "other.jsonl has $name = \"$zeros\", but s-1of2.jsonl has $hash: only shards of one experiment can be merged" run merge m.jsonl s-1of2.jsonl other.jsonl
  done
  altered 1 '"machine": "[^"]*"' '"machine": "a toaster"'
  refuses 2 'other.jsonl has machine = "a toaster", but s-1of2.jsonl has "' run merge m.jsonl s-1of2.jsonl other.jsonl
  altered '2,$' "\"source\": $hash" "\"source\": \"$zeros\""
  refuses 2 "other.jsonl has the source of (ar|linear|fixed_tree) = $zeros, but s-1of2.jsonl has [0-9a-f]{64}" run merge m.jsonl s-1of2.jsonl other.jsonl
  altered '2,$' "\"output_hash\": $hash" "\"output_hash\": \"$zeros\""
  refuses 2 "other.jsonl: .* changed the output of novels/01, 12 tokens: hash $zeros, that of .* is [0-9a-f]{16}" run merge m.jsonl s-1of2.jsonl other.jsonl
  succeeds "${sweep[@]}" --out s.jsonl --shard 1/3
  refuses 2 's-1of3.jsonl has shard = 1/3, but s-1of2.jsonl has 1/2' run merge m.jsonl s-1of2.jsonl s-1of3.jsonl
  succeeds "${sweep[@]}" --out whole.jsonl
  refuses 2 'whole.jsonl: not a shard, expected files that were written with --shard' run merge m.jsonl s-1of2.jsonl whole.jsonl
  refuses 2 's-1of2.jsonl: the file of shard 1/2' run merge s-*of2.jsonl
  refuses 2 'nowhere.jsonl: No such file' run merge m.jsonl nowhere.jsonl
  refuses 2 'merge: no files of shards: expected dtrun run merge OUT FILE.jsonl' run merge m.jsonl
  [ ! -e m.jsonl ] || fail 'something was merged'
  refuses 1 '/dev/full: No space left on device' run merge /dev/full s-1of2.jsonl
}
it_searches_in_shards_and_goes_on() {
  export XDG_CONFIG_HOME=$PWD/config
  local tune=(run tune linear --settings 6 --save-anyway -n 6 --repeats 1 --chars 60 -t 1 --prompt "$novels"/0[1-4].txt)
  shards 2 t.jsonl "${tune[@]}"
  grep -qE '^best of shard 2/2: linear K=[0-9]+, speedup after the prompt [0-9.]+x on the prompts of the search$' stdout || fail 'no best of a shard'
  [ ! -e config ] || fail 'a shard has kept a preset'
  succeeds run merge t.jsonl t-*of2.jsonl
  cp t.jsonl merged.jsonl
  succeeds "${tune[@]}" --out t.jsonl
  grep -qE '^speedup after the prompt on 2 held-out prompts: tuned [0-9.]+x, defaults [0-9.]+x$' stdout || fail 'the comparison'
  [ -n "$(find config/dtrun/presets -name "linear-*.json" -size +0)" ] || fail 'no preset'
  head -n "$(wc -l <merged.jsonl)" t.jsonl | same_text merged.jsonl /dev/stdin
  [ "$(grep -c '"arm"' t.jsonl)" -le $(($(grep -c '"arm"' merged.jsonl) + 6)) ] || fail 'it has searched again'
  grep -v '"repeat": 3' t-2of2.jsonl >torn.jsonl # its finalists were not run
  run "$dtrun" run merge u.jsonl t-1of2.jsonl torn.jsonl
  refuses 2 'u.jsonl: shard 2 of 2 is not finished' "${tune[@]}" --out u.jsonl
  succeeds "${tune[@]}" --out whole.jsonl
  head -n 12 whole.jsonl >first && cp first whole.jsonl
  succeeds "${tune[@]}" --out whole.jsonl # continues where it was
  head -n 12 whole.jsonl | same_text first /dev/stdin
  refuses 2 'whole.jsonl: made with drawn = 6, not 7' "${tune[@]}" --settings 7 --out whole.jsonl
  succeeds run report whole.jsonl
}
it_runs_papers_in_shards() {
  local name
  for name in cast_figures memory; do
    shards 2 $name.jsonl run paper $name --quick
    grep -qx "$name-2of2.jsonl" stdout || fail 'the file is not named'
    [ ! -e $name-2of2 ] || fail 'a report on a shard'
    succeeds run merge $name.jsonl $name-*of2.jsonl
    succeeds run paper $name --quick --out whole-$name.jsonl
    same_runs whole-$name.jsonl $name.jsonl
  done
  sed '/"probability"/d' cast_figures-1of2.jsonl >a.jsonl && sed '/"probability"/d' cast_figures-2of2.jsonl >b.jsonl
  run "$dtrun" run merge c.jsonl a.jsonl b.jsonl
  says_in_one_line 'unfinished traced eagle2 eagle3 \(0 of 1 runs, shard [12]\)' merge
}
it_submits_tasks_and_what_follows_them() {
  local script=$source_dir/scripts/slurm/sweep.sbatch
  # is_refused PATTERN ARGUMENTS...
  is_refused() {
    local pattern=$1
    shift
    run "$script" "$@"
    [ "$status" -eq 2 ] && [ "$(wc -l <stderr)" -eq 1 ] && grep -qE "^usage: .*$pattern" stderr || fail "sweep.sbatch $*: expected '$pattern'"
  }
  mkdir bin
  printf '#!/bin/sh\nfor word; do echo "$word"; done >>asked\necho "77;cluster"\n' >bin/sbatch
  chmod +x bin/sbatch
  is_refused 'expected three or more arguments, got 0'
  is_refused 'expected three or more arguments, got 2' 4 s.jsonl
  for n in 0 1 1000000 x 4x ''; do is_refused "N = $n is not a number of tasks from 2 to 999999" "$n" s.jsonl sweep linear; done
  is_refused 'OUT = sweep does not end in .jsonl' 4 sweep sweep linear
  is_refused "'report' cannot run in shards" 4 s.jsonl report
  PATH=/usr/bin:/bin
  command -v sbatch >/dev/null || is_refused 'sbatch is not installed' 4 s.jsonl sweep linear
  PATH=$PWD/bin:$PATH
  DTRUN=nowhere is_refused 'no program at nowhere' 4 s.jsonl sweep linear
  for n in 2 999999; do
    DTRUN=$dtrun run "$script" $n s.jsonl sweep linear --set 'K=1..4'
    [ "$status" -eq 0 ] && grep -qx "array 77: $n tasks, s.jsonl" stdout || fail "sweep.sbatch $n"
    grep -qx -e "--array=1-$n" asked && grep -qx -e --dependency=afterok:77 asked || fail "$(cat asked)"
  done
}

run_tests

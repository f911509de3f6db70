#!/usr/bin/env bash
# Shards as the tasks of a real Slurm on two nodes: scripts/slurm/sweep.sbatch, a killed task, arrays of any numbers.
. "$(dirname "$0")/helpers.sh"
. "$(dirname "$0")/cluster.sh"
novels=$source_dir/scripts/prompts/novels
submit=$source_dir/scripts/slurm/sweep.sbatch
export DTRUN=$dtrun

why=$(cluster_lacks)
[ -z "$why" ] || { echo "skipped: $why"; exit 77; }
trap cluster_stop EXIT
cluster_start || { echo 'skipped: Slurm does not come up on this machine (above: what it says)'; exit 77; }

# 450 settings: 6 depths, 3 breadths, 25 thresholds
settings=(fixed_tree --set D=3..8 B=2..4 tau=0.02..0.5:0.02 --prompt "$novels/01.txt" --chars 80 -n 40 -t 1 --repeats 1)

runs() { "$dtrun" run "$source_dir/tests/cli/runs.lua" "$1" | sort -u; }
lines() { if [ -e "$1" ]; then wc -l <"$1"; else echo 0; fi; }
# task_of I: prints the process id of dtrun in task I of an array
task_of() { grep -lszx "SLURM_ARRAY_TASK_ID=$1" /proc/[0-9]*/environ | cut -d / -f 3 | while read -r process; do [ "/proc/$process/exe" -ef "$dtrun" ] && echo "$process"; done; }

# Kills task 2 while it works; fails if it has ended before.
kill_task_2() {
  for _ in {1..3000}; do
    [ "$(lines sweep-2of4.jsonl)" -lt 5 ] || break
    sleep 0.01
  done
  kill -9 "$(task_of 2)" 2>/dev/null
}

it_loses_nothing_of_a_task_that_is_killed() {
  succeeds run sweep "${settings[@]}" --out whole.jsonl
  runs whole.jsonl >expected
  [ "$(wc -l <expected)" -eq 451 ] || fail 'expected 450 settings and plain decoding'
  for _ in 1 2 3 4 5; do
    rm -f sweep*.jsonl
    "$submit" 4 sweep.jsonl sweep "${settings[@]}" >submitted || fail 'sbatch'
    kill_task_2 && break
    cluster_idle 60
  done
  cluster_idle 60
  [ "$(lines sweep-2of4.jsonl)" -lt 114 ] || fail 'no kill came in time'
  [ ! -e sweep.jsonl ] || fail 'merged, though a task had failed'
  run "$dtrun" run merge part.jsonl sweep-*of4.jsonl
  [ "$status" -eq 2 ] || fail "exit status $status for a merge that is not all, expected 2"
  says_in_one_line 'part.jsonl is incomplete: unfinished .*fixed_tree .* \(0 of 1 runs, shard 2\)' merge
  cat sweep-[134]of4.jsonl >before
  "$submit" 4 sweep.jsonl sweep "${settings[@]}" >submitted || fail 'sbatch'
  cluster_idle 60
  cat sweep-[134]of4.jsonl | same_text before /dev/stdin
  runs sweep.jsonl >found
  same_text expected found
  # Plain decoding of each shard, and again when the second shard continued on the other node.
  [[ "$(wc -l <sweep.jsonl)" =~ ^45[56]$ ]] || fail 'expected 450 settings, and plain decoding of each shard'
  grep -q 'compared with plain decoding of another node' sweep/report.md && fail 'speedups of one node to another'
  grep -q '"job": "[0-9]*_[1-4]", "node": "n1"' sweep.jsonl && grep -q '"job": "[0-9]*_[1-4]", "node": "n2"' sweep.jsonl || fail 'runs do not say where they were made'
  grep -qE 'Runs were made in 4 shards on 2 nodes \(n1: [0-9]+, n2: [0-9]+\)\.' sweep/report.md || fail 'the report does not say where'
}
it_takes_arrays_of_any_numbers_at_equal_distances() {
  local small=(run sweep linear --set K=1..4 --prompt "$novels/01.txt" --chars 60 -n 4 -t 1 --repeats 1)
  succeeds "${small[@]}" --out whole.jsonl
  printf '#!/bin/sh\nexec "$@"\n' >job.sh
  sbatch --array=3-9:2 --output=%a.log job.sh "$dtrun" "${small[@]}" --out s.jsonl >submitted || fail 'sbatch'
  sbatch --array=0-1 --output=zero%a.log job.sh "$dtrun" "${small[@]}" --out zero.jsonl >submitted || fail 'sbatch'
  sbatch --array=1,2,4 --output=uneven%a.log job.sh "$dtrun" "${small[@]}" --out uneven.jsonl >submitted || fail 'sbatch'
  sbatch --array=2 --output=one.log job.sh "$dtrun" "${small[@]}" --out one.jsonl >submitted || fail 'sbatch'
  cluster_idle 60
  for name in s-*of4 zero-*of2; do
    succeeds run merge "${name%%-*}.jsonl" ${name}.jsonl
    same_text <(runs whole.jsonl) <(runs "${name%%-*}.jsonl")
  done
  grep -q '^dtrun: SLURM_ARRAY_TASK_ID = 4: expected an array of tasks at equal distances' uneven4.log || fail "$(cat uneven4.log)"
  grep -q '^dtrun: SLURM_ARRAY_TASK_ID = 2 is the only task of its array.*: give --shard i/n' one.log || fail "$(cat one.log)"
  [ ! -e one.jsonl ] || fail 'one task of an array has run all'
}
it_searches_in_shards() {
  export XDG_CONFIG_HOME=$PWD/config
  "$submit" 2 tune.jsonl tune linear --save-anyway --settings 6 -n 6 --repeats 1 --chars 60 -t 1 --prompt "$novels"/0[1-4].txt >submitted || fail 'sbatch'
  cluster_idle 60
  [ -s tune/report.html ] || fail "$(cat ./*.log)"
  ls config/dtrun/presets/linear-*.json >/dev/null || fail 'no preset'
}

(run_tests)
status=$?
sbatch --output=/dev/null --wrap 'sleep 600' >/dev/null # ends what is still running
for _ in {1..100}; do
  running=$(cluster_processes | wc -l)
  [ "$running" -lt 8 ] || break
  sleep 0.1
done
trap - EXIT
if cluster_stop && [ "$running" -ge 8 ]; then echo 'ok    it leaves nothing behind'; else status=1; fi
exit $status

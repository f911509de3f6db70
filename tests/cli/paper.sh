#!/usr/bin/env bash
# `dtrun run paper`: every experiment in its smallest form; not with the sanitizers, with which it takes minutes.
. "$(dirname "$0")/helpers.sh"

it_runs_every_experiment() {
  local name
  for name in $(sed -n 's/^  \([a-z_]*\) = {$/\1/p' "$source_dir/lua/dt/experiment/papers.lua"); do
    [[ $name == *_bench || $name == modes ]] && continue # questions.sh and modes.sh run these
    succeeds run paper "$name" --quick --out "$name.jsonl"
    grep -qx "$name/report.html" stdout || fail "$name: no report"
    [ "$(grep -c '"arm": "ar"' "$name.jsonl")" -ge 1 ] || fail "$name: no plain decoding"
    grep -qE '^(Fastest|No arm is reliably|On .* there are too few texts)' "$name/report.md" || fail "$name: no findings"
  done
  [ -s main.jsonl ] && [ -s cast_figures.jsonl ] || fail 'the names were not found'
  grep -q '"probability"' cast_figures.jsonl || fail 'cast_figures: no trees were looked into'
  grep -q 'over plain decoding' memory/report.md || fail 'memory: no comparison'
  [ -s batch-tasks.jsonl ] || fail 'batch: no runs of batch_tasks'
  grep -q 'paper batch_tasks' batch/report.md || fail 'batch: its report is without batch_tasks'
  grep -q 'speedup by sequences at once' batch/report.md || fail 'batch: no scale'
  for name in 'T = 0' 'T = 1' 'T = 1, uncoupled'; do
    grep -qx "$name: Speedup by set (prompt included):" temperature/report.md || fail "temperature: no table of $name"
  done
}
# weights: prints the largest size of weights of a run of linear in memory-quick.jsonl
weights() { grep '"policy": "linear"' memory-quick.jsonl | grep -oE '"weights": [0-9]+' | sort -k 2n | tail -n 1 | cut -d ' ' -f 2; }
it_passes_on_what_the_weights_are_held_in() {
  succeeds run paper memory --quick
  local wide
  wide=$(weights)
  rm memory-quick.jsonl
  succeeds run paper memory --quick --draft-weights q8
  [ "$(weights)" -lt "$wide" ] || fail 'as large as without --draft-weights q8'
}
# goes_on NAME: the same command finishes an experiment of which only four lines have been written
goes_on() {
  succeeds run paper "$1" --quick --out x.jsonl
  cp x.jsonl whole.jsonl
  head -n 4 whole.jsonl >x.jsonl
  succeeds run paper "$1" --quick --out x.jsonl
  head -n 4 whole.jsonl | cmp -s - <(head -n 4 x.jsonl) || fail 'finished runs were changed'
  [ "$(wc -l <x.jsonl)" -eq "$(wc -l <whole.jsonl)" ] || fail 'not as many runs'
}
it_goes_on_where_it_was_stopped() { goes_on ablation; }
it_goes_on_with_batches() {
  goes_on batch_tasks
  sed -i '2s/"output_hash": "[0-9a-f]/"output_hash": "x/' x.jsonl
  head -n 4 x.jsonl >torn.jsonl
  run "$dtrun" run paper batch_tasks --quick --out torn.jsonl
  [ "$status" -eq 1 ] || fail "exit status $status for another output, expected 1"
  grep -q 'changed the output of mt_bench@2/1, T = 0, ' stderr || fail 'nothing about another output'
}
it_says_what_the_context_does_not_allow() {
  succeeds run paper ablation --prompts 1 -n 60 -c 300
  grep -qE '60 tokens do not fit after the longest prompt, [0-9]+, in a context of 300: generating [0-9]+' stderr || fail 'no note'
  grep -q '"note": "60 tokens do not fit' ablation.jsonl || fail 'no note in the file'
  refuses 2 'the longest prompt, [0-9]+ tokens, fills the context of 100' run paper ablation --prompts 1 -c 100
}
it_runs_the_policies_that_are_asked_for() {
  succeeds run paper efficiency --quick --policies linear --out x.jsonl
  grep -q '"policy": "linear"' x.jsonl && ! grep -qE '"policy": "(rate|dynatree)"' x.jsonl || fail 'other arms'
  grep -q '"arm": "ar"' x.jsonl || fail 'no plain decoding'
  refuses 2 "no arms of 'mian'; known: .*linear" run paper efficiency --quick --policies linear,mian
}
it_names_the_experiments() {
  refuses 2 "no experiment 'mian'; known: ablation, .*, tasks" run paper mian
  refuses 2 "no experiment ''; known: ablation, " run paper
  succeeds run paper --help
  grep -q '^  fixed_sweep  ' stdout || fail 'no fixed_sweep in the help'
}

run_tests

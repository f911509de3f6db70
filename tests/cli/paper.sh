#!/usr/bin/env bash
# `dtrun run paper`: every experiment, in its smallest form; not with the sanitizers, which make it minutes.
. "$(dirname "$0")/helpers.sh"

it_runs_every_experiment() {
  local name
  for name in $(sed -n 's/^  \([a-z_]*\) = {$/\1/p' "$source_dir/lua/dt/papers.lua"); do
    succeeds run paper "$name" --quick --out "$name.jsonl"
    grep -qx "$name/report.html" stdout || fail "$name: no report"
    [ "$(grep -c '"arm": "ar"' "$name.jsonl")" -ge 1 ] || fail "$name: no plain decoding"
    grep -q '^Fastest on ' "$name/report.md" || fail "$name: no findings"
  done
  [ -s main.jsonl ] && [ -s cast_figures.jsonl ] || fail 'the names were not found'
  grep -q '"probability"' cast_figures.jsonl || fail 'cast_figures: no trees were looked into'
  grep -q 'over plain decoding' memory/report.md || fail 'memory: no comparison'
}
it_goes_on_where_it_was_stopped() {
  succeeds run paper ablation --quick --out x.jsonl
  cp x.jsonl whole.jsonl
  head -n 5 whole.jsonl >x.jsonl
  succeeds run paper ablation --quick --out x.jsonl
  head -n 5 whole.jsonl | cmp -s - <(head -n 5 x.jsonl) || fail 'finished runs were changed'
  [ "$(wc -l <x.jsonl)" -eq "$(wc -l <whole.jsonl)" ] || fail 'not as many runs'
}
it_says_what_the_context_does_not_allow() {
  succeeds run paper ablation --prompts 1 -n 60 -c 300
  grep -qE '60 tokens do not fit beside the longest prompt, [0-9]+, in a context of 300: [0-9]+ are generated' stderr || fail 'no note'
  grep -q '"note": "60 tokens do not fit' ablation.jsonl || fail 'no note in the file'
  refuses 2 'the longest prompt, [0-9]+ tokens, fills the context of 100' run paper ablation --prompts 1 -c 100
}
it_names_the_experiments() {
  refuses 2 "no experiment 'mian'; there are: ablation, .*, tasks" run paper mian
  refuses 2 "no experiment ''; there are: ablation, " run paper
  succeeds run paper --help
  grep -q '^  fixed_sweep  ' stdout || fail 'no fixed_sweep in the help'
}

run_tests
